r"""From constants to a setting of DP-RGDA that does well: steps, period, batches and noise.

>>> from dpcal.calibrate.constants import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, strong_concavity=1.0, gap=0.5,
...                       hessian_lipschitz=1.0)
>>> from dpcal.calibrate.plans.common import Given
>>> given = Given.of(constants, n=100_000, dimension=(5, 2), epsilon=2.0, delta=1e-6,
...                  neighboring_relation="replace-one")
>>> setting = Setting.of(given)
>>> plan = practical(setting, Options())
>>> plan.parameters["noise_floor"] < plan.parameters["accuracy"] / 2
True

Let e be the error of the estimate of grad Phi
that the noise makes at the end of a period. A normalised step of length eta with ``||v|| >= alpha``
and ``e <= alpha / 4`` lowers Phi by at least ``eta alpha / 2`` for ``eta = alpha / (2 L_Phi)``, so
that ``4 L_Phi F0 / alpha^2`` steps reach a small gradient. With (x, y) moving by
``eta sqrt(1 + kappa^2)`` an outer step, d = d1 + d2 and all increments at the amplified price,

    e^2 = d (C1 z1 / n)^2 + q d (L eta / b2)^2 (1 + kappa^2) z2^2

is least at ``q = C1 / (L eta sqrt((1 + kappa^2) K))`` and then is
``4 (d T / n^2) C1 L eta sqrt((1 + kappa^2) K) / mu^2``, mu being the Gaussian parameter of the
target. The smallest alpha with ``e <= alpha / 4`` falls as ``(sqrt(d) / (n mu))^(2/3)``. The noises
are then solved for exactly.
"""

from __future__ import annotations

import math
from typing import Any

from dpcal import _validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import rounded_down, rounded_up
from dpcal.calibrate.plans.minimax.setting import Options, Setting
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases

__all__ = ["practical"]

# Inner steps of an outer step, in units of kappa: so many bring y near its best response. Fewer
# leave y behind; more cost privacy and gain little.
_STEPS_PER_KAPPA = 2
# Most inner steps of an outer step, however large kappa is.
_MOST_INNER = 20

# Records of an increment, in units of the period: the variance of sampling is then an eighth of
# alpha at the end of a period.
_RECORDS_PER_PERIOD = 16

# Escape phases, each as long as its steps, that the number of outer steps holds beside the descent.
_PHASES = 3


# Settings that the parameters of a plan hold, given or derived.
_TOLD = (
    *("steps", "period", "inner_steps", "refresh_size", "batch_size", "accuracy", "step"),
    *("step_length", "ascent_rate", "escape_steps", "escape_rate", "perturbation", "movement"),
    *("select", "split", "warm_start"),
)


def practical(setting: Setting, options: Options) -> Plan:
    """Return the plan of DP-RGDA, with settings derived as the module says where none is given."""
    v = _derived(setting, options)
    sizes = ("steps", "period", "refresh_size", "batch_size", "sampler", "warm_start")
    releases = Releases(
        n=setting.n,
        relation=setting.target.relation,
        inner=v["inner_steps"],
        literal=options.algorithm == "literal",
        **{name: v[name] for name in sizes},
    )
    cap = options.difference_norm
    difference = setting.L if cap is None else _validate.positive(difference_norm=cap)
    bounds = Bounds(gradient=setting.C, difference=difference, proportional=cap is None)
    errors = setting.errors(releases, bounds, v["step_length"])
    ray = releases.split(errors) if options.split == "balanced" else (1.0, 1.0)
    multipliers = releases.scaled(ray, setting.target)
    rate, floor = _escape_rate(setting, options), setting.floor(errors, multipliers)
    alpha, v["escape_rate"] = v["accuracy"], rate
    if options.movement is None:
        v["movement"] = (rate * alpha) ** 2
    # A step of length eta along an estimate that errs by alpha / 4 descends by eta alpha / 2.
    plain = alpha if options.step == "plain" else 1.0
    descent = releases.steps * v["step_length"] * plain * alpha / 2
    parameters: dict[str, Parameter] = {
        "preset": "practical",
        "algorithm": options.algorithm,
        **setting.dimensions,
        **{name: v[name] for name in _TOLD},
        **setting.feasible(floor, alpha, rate, v["movement"], descent=descent),
    }
    return setting.plan("dp_rgda", releases.queries(multipliers, bounds), parameters)


def _derived(setting: Setting, options: Options) -> dict[str, Any]:
    """Return the settings, with the ones that were not given derived."""
    K, alpha = _inner_steps(setting, options), options.accuracy
    if alpha is None:
        alpha = _accuracy(setting, K)
    eta = options.step_length or alpha / (2 * setting.L_Phi)
    patience, T = options.escape_steps, options.steps
    if patience is None:
        patience = _escape_steps(setting, alpha)
    if T is None:
        descent = rounded_up(4 * setting.L_Phi * setting.known("gap", "steps") / alpha**2)
        T = descent + _PHASES * patience
    T = _validate.count(steps=T)
    q, b = options.period, options.batch_size
    if q is None:
        q = min(T, rounded_down(setting.C / (setting.L * eta * setting.spread * math.sqrt(K))))
    q = _validate.count(period=q)
    if b is None:
        b = min(setting.n, rounded_up(max(_RECORDS_PER_PERIOD * q, setting.n / math.sqrt(T * K))))
    v = {"accuracy": alpha, "steps": T, "inner_steps": K, "period": q, "step_length": eta}
    v |= {"batch_size": _validate.count(batch_size=b)}
    v |= {"escape_steps": _validate.count(escape_steps=patience)}
    v |= {"refresh_size": setting.n if options.refresh_size is None else options.refresh_size}
    v |= {"ascent_rate": options.ascent_rate or 1 / setting.L}
    v |= {"perturbation": options.perturbation or alpha / setting.L_Phi}
    return {**vars(options), **v}


def _inner_steps(setting: Setting, options: Options) -> int:
    """K, as given or in proportion to kappa."""
    if options.inner_steps is not None:
        return _validate.count(inner_steps=options.inner_steps)
    if not setting.d2:
        return 1
    return min(_MOST_INNER, max(2, rounded_up(_STEPS_PER_KAPPA * setting.kappa)))


def _accuracy(setting: Setting, inner: int) -> float:
    """The least alpha with e <= alpha / 4, T = 4 L_Phi F0 / alpha^2 and eta = alpha / (2 L_Phi).

    It solves ``alpha^2 / 16 = 4 (d T / n^2) C1 L eta sqrt((1 + kappa^2) K) z^2``.
    """
    cubed = 128 * setting.d * setting.known("gap", "accuracy") * setting.C * setting.L
    return math.cbrt(cubed * setting.spread * math.sqrt(inner) * (setting.z / setting.n) ** 2)


def _escape_steps(setting: Setting, alpha: float) -> int:
    """Steps after which a curvature of -sqrt(rho_Phi alpha) would have shown."""
    curvature = math.sqrt(setting.value_hessian_lipschitz * alpha)
    growth = math.log1p(min(1.0, curvature / (2 * setting.L_Phi)))
    start = 4 * math.sqrt(setting.d1) * max(1.0, setting.L_Phi / curvature)
    return max(2, math.ceil(2 * math.log(start) / growth))


def _escape_rate(setting: Setting, options: Options) -> float:
    """eta_H, at most 1 / L_Phi."""
    if options.escape_rate is None:
        return 1 / (2 * setting.L_Phi)
    rate = _validate.positive(escape_rate=options.escape_rate)
    if rate * setting.L_Phi > 1 + 1e-12:
        raise ValueError(
            f"escape_rate must be at most 1 / L_Phi = {1 / setting.L_Phi:.6g}, beyond which a "
            f"phase may diverge where nothing is to be escaped, got {rate!r}."
        )
    return rate
