r"""From a target to DP-RGDA: how many outer steps, how much noise, and how long is an escape?

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=2.5, smoothness=4.0, strong_concavity=1.0, gap=0.5,
...                       hessian_lipschitz=6.0)
>>> plan = dp_rgda(constants, n=200_000, dimensions=(2, 2), epsilon=2.0, delta=1e-6,
...                value_smoothness=5.0)
>>> 0.999 < plan.price() <= 2.0
True
>>> [plan.parameters[name] for name in ("inner_steps", "certifiable")]
[8, True]

Let e be the error of the estimate of grad Phi that the noise makes at the end of a period. A
normalised step of length eta with ``||v|| >= alpha`` and ``e <= alpha / 4`` lowers Phi by at least
``eta alpha / 2`` for ``eta = alpha / (2 L_Phi)``, so that ``4 L_Phi F0 / alpha^2`` steps reach a
small gradient. With (x, y) moving by ``eta sqrt(1 + kappa^2)`` an outer step, d = d1 + d2 and all
increments at the amplified cost,

    e^2 = d (C1 z1 / n)^2 + q d (L eta / b2)^2 (1 + kappa^2) z2^2

is least at ``q = C1 / (L eta sqrt((1 + kappa^2) K))`` and then is
``4 (d T / n^2) C1 L eta sqrt((1 + kappa^2) K) / mu^2``, mu being the Gaussian parameter of the
target. The smallest alpha with ``e <= alpha / 4`` falls as ``(sqrt(d) / (n mu))^(2/3)``. The noises
are then solved for exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpcal._internal import validate
from dpcal.calibrate.plan import Parameters, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given, rounded_down, rounded_up
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases
from dpcal.errors import warn_caller

_COUNTS = ("steps", "period", "inner_steps", "batch_size", "refresh_size", "escape_steps")
_LENGTHS = ("accuracy", "step_length", "ascent_rate", "escape_rate", "perturbation", "movement")
_CHECKS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_COUNTS, validate.count),
    **dict.fromkeys((*_LENGTHS, "difference_norm"), validate.positive),
    "step": partial(validate.choice, ("normalised", "plain")),
    "select": partial(validate.choice, ("last", "argmin")),
    "split": partial(validate.choice, ("balanced", "common")),
    "algorithm": partial(validate.choice, ("corrected", "literal")),
}

# Unit: kappa inner steps, which bring y near its best response.
_STEPS_PER_KAPPA = 2
_MOST_INNER = 20

# Unit: the period, at the end of which the variance of sampling is an eighth of alpha.
_RECORDS_PER_PERIOD = 16

_PHASES = 3


_ELSEWHERE = ("algorithm", "difference_norm", "sampler")


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of DP-RGDA that may be given; a None is replaced by a derived value.

    Choices have their defaults here too: a value that differs from its default was given.

    Parameters
    ----------
    steps, period, inner_steps
        T outer steps; q of them from one refresh to the next, at most T; K >= 2 inner estimates of
        an outer step (1 without a dual variable).
    batch_size, refresh_size
        Expected records, in [1, n], of an increment and of a refresh; all records for a refresh
        when omitted.
    difference_norm
        Rule A: the bound > 0 on a record's difference, whatever the movement. When omitted, rule B:
        ``min(L ||(x, y) - (x', y')||, 2 C)``, so that noise falls with the movement.
    accuracy
        alpha > 0: an escape is tried where the estimated gradient is shorter.
    step_length, step
        eta > 0: the length of a step for ``"normalised"``, its factor for ``"plain"``.
    escape_rate, perturbation, escape_steps, movement
        eta_H > 0, at most 1 / L_Phi; the radius r > 0 of the perturbation; t_thres >= 1 steps that
        a phase must last; Dbar > 0, the squared movement that a step of it may make on average.
    select
        ``"last"`` or ``"argmin"``; see :class:`dpcal.optim.minimax.dp_rgda.Tracker`.
    split
        ``"balanced"`` gives refreshes and increments the noises with the least error at one
        epsilon; ``"common"`` gives them one multiplier.
    ascent_rate, sampler
        See :mod:`dpcal.calibrate.plans.minimax`.
    warm_start
        Number of noisy ascent steps of y at x_0 before the first outer step; they are paid for.
    algorithm
        ``"corrected"``, or ``"literal"``, which runs the loop as printed, with its errors and an
        honest epsilon, for audits.
    """

    steps: int | None = None
    period: int | None = None
    inner_steps: int | None = None
    refresh_size: int | None = None
    batch_size: int | None = None
    difference_norm: float | None = None
    accuracy: float | None = None
    step: str = "normalised"
    step_length: float | None = None
    ascent_rate: float | None = None
    escape_steps: int | None = None
    escape_rate: float | None = None
    perturbation: float | None = None
    movement: float | None = None
    select: str = "last"
    split: str = "balanced"
    sampler: str | None = None
    warm_start: int = 0
    algorithm: str = "corrected"

    def __post_init__(self) -> None:
        common.check_given(self, _CHECKS)
        if self.warm_start != 0:
            validate.count(warm_start=self.warm_start)


@dataclass(frozen=True, kw_only=True)
class Setting(Given):
    """Checked sizes, constants and target.

    Parameters
    ----------
    d2
        Dual dimension, of d in all.
    C, L, kappa
        Bound on a record's gradient; smoothness; L / mu, and 0 without a dual variable.
    L_Phi
        Smoothness of Phi.
    """

    d2: int
    C: float
    L: float
    kappa: float
    L_Phi: float

    @classmethod
    def of(  # type: ignore[override]
        cls, given: Given, max_norm: float | None = None, value_smoothness: float | None = None
    ) -> Setting:
        """Check arguments of a plan builder.

        Raises
        ------
        ValueError
            For a constant that is needed and missing or out of range, and for a dual variable for
            each record where records may be added.
        """
        n = given.n
        d1, d2 = given.d if isinstance(given.d, Sequence) else (given.d, 0)
        L, kappa = given.known("smoothness"), 0.0
        if d2:
            mu = given.constants.strong_concavity
            if not 0 < mu <= L:
                raise ValueError(
                    f"constants.strong_concavity must be in (0, L] with L = smoothness = {L:g}, or "
                    "the best response is no function of x that estimates could follow, got "
                    f"{mu!r}. A public dual regulariser makes a problem strongly concave."
                )
            kappa = L / mu
        if d2 == n and given.target.relation == "add-or-remove-one":
            raise ValueError(
                f"dimensions must not depend on the records, got d2={d2} for n={n} records: to add "
                "a record would add a dual variable. Use 'replace-one' or 'replace-special'."
            )
        return cls(
            **{**vars(given), "d": d1 + d2},
            d2=d2,
            C=given.known("lipschitz", "max_norm", max_norm),
            L=L,
            kappa=kappa,
            L_Phi=common.positive_or((1 + kappa) * L, value_smoothness=value_smoothness),
        )

    @property
    def d1(self) -> int:
        """Primal dimension."""
        return int(self.d) - self.d2

    @property
    def dimensions(self) -> Parameters:
        """The dimensions, as parameters of a plan."""
        return {"primal_dimension": self.d1, "dual_dimension": self.d2}

    @property
    def spread(self) -> float:
        """Distance that (x, y) moves for a unit of x, as y follows its best response."""
        return math.sqrt(1 + self.kappa**2)

    @property
    def value_hessian_lipschitz(self) -> float:
        """Lipschitz constant of the Hessian of Phi: ``rho (1 + kappa)^2 sqrt(1 + kappa^2)``."""
        rho = self.known("hessian_lipschitz", "escape_steps")
        return rho * (1 + self.kappa) ** 2 * self.spread

    def errors(self, releases: Releases, bounds: Bounds, length: float) -> tuple[float, float]:
        """Return a1 and a2: an estimate's coordinate errs by ``a1 z1^2 + a2 z2^2`` in mean square.

        ``length`` is the distance that x moves in an outer step.
        """
        refresh = (bounds.gradient / releases.refresh_size) ** 2
        difference = bounds.difference / releases.batch_size
        if bounds.proportional:
            return refresh, releases.period * (difference * length * self.spread) ** 2
        return refresh, releases.period * releases.inner * difference**2

    def floor(self, errors: tuple[float, float], multipliers: tuple[float, float]) -> float:
        """Return the root mean square of the noise in the estimated gradient in x."""
        noise = sum(a * z**2 for a, z in zip(errors, multipliers, strict=True))
        return math.sqrt(self.d1 * noise)

    def certified(self, floor: float, alpha: float, rate: float, movement: float) -> Parameters:
        """Return the facts about escapes that a plan records, and warn where noise spoils them.

        ``floor`` is the root mean square of the noise in the estimated gradient in x, ``alpha`` the
        accuracy, and ``rate`` and ``movement`` are eta_H and Dbar of an escape.
        """
        quiet = min(alpha, math.sqrt(movement) / rate)
        what = "the mean norm of estimated gradients in an escape phase"
        common.warn_below_noise("dp_rgda", self.n, what, quiet, floor)
        return {"noise_floor": floor, "certifiable": floor < quiet}


@common.builder("replace-one", sizes="dimensions", options=Options)
def dp_rgda(
    given: Given,
    *,
    max_norm: float | None = None,
    value_smoothness: float | None = None,
    **options: Any,
) -> Plan:
    """Return the plan of DP-RGDA that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    constants
        Also ``gap`` (unless ``steps`` and ``accuracy`` are given) and ``hessian_lipschitz`` rho
        (unless ``escape_steps`` is given).
    dimensions
        With d2 = 0 the run looks for a second-order stationary point of a plain minimisation.
    **options
        Fields of :class:`~dpcal.calibrate.plans.minimax.dp_rgda.Options`; omitted ones are derived
        as the module states.

    Returns
    -------
    Plan
        Queries ``"refresh"``, ``"difference"`` and, if needed, ``"warm start"``; each answer is
        about both blocks. ``parameters`` holds the setting, the root mean square ``noise_floor`` of
        the estimated gradient in x, and whether a phase can last (``certifiable``).

    Warns
    -----
    VacuousSchedule
        If the noise is as large as the accuracy, or no phase can last, or alpha is not below M.

    References
    ----------
    Xu, Tao, Ding, Fan and Wang 2026, Algorithms 2 and 3, corrected; see the errata.
    """
    chosen, setting = Options(**options), Setting.of(given, max_norm, value_smoothness)
    v = _settled(setting, chosen)
    sizes = ("steps", "period", "refresh_size", "batch_size", "sampler", "warm_start")
    releases = Releases(
        n=setting.n,
        relation=setting.target.relation,
        inner=v["inner_steps"],
        literal=chosen.algorithm == "literal",
        **{name: v[name] for name in sizes},
    )
    cap = chosen.difference_norm
    bounds = Bounds(gradient=setting.C, difference=cap or setting.L, proportional=cap is None)
    errors = setting.errors(releases, bounds, v["step_length"])
    ray = releases.split(errors) if chosen.split == "balanced" else (1.0, 1.0)
    multipliers = releases.scaled(ray, setting.target)
    floor, alpha, rate = setting.floor(errors, multipliers), v["accuracy"], v["escape_rate"]
    parameters = {
        "preset": "practical",
        "algorithm": chosen.algorithm,
        **setting.dimensions,
        **{name: value for name, value in v.items() if name not in _ELSEWHERE},
        **setting.certified(floor, alpha, rate, v["movement"]),
        "vacuous": alpha >= setting.C,
    }
    # A step of length eta along an estimate that errs by alpha / 4 descends by eta alpha / 2.
    plain = alpha if chosen.step == "plain" else 1.0
    descent = releases.steps * v["step_length"] * plain * alpha / 2
    if alpha >= setting.C:
        warn_caller(
            f"dp_rgda is vacuous at n={setting.n}: the accuracy {alpha:.3g} is no better than the "
            f"bound on gradients {setting.C:.3g}."
        )
    elif parameters["certifiable"] and descent < (gap := setting.constants.gap or 0.0) < math.inf:
        warn_caller(
            f"dp_rgda may end before it has descended: its steps are sure of {descent:.3g} "
            f"together, and the gap is {gap:.3g}. More steps, or longer ones, would do."
        )
    if setting.d2 >= setting.n:
        dual = floor * math.sqrt(setting.d2 / setting.d1)
        warn_caller(
            f"With d2={setting.d2} dual numbers for n={setting.n} records, noise of root mean "
            f"square {dual:.3g} covers all of y for the sake of a few records in it, whose "
            f"gradients are clipped to {setting.C:.3g}."
        )
    return setting.plan("dp_rgda", releases.queries(multipliers, bounds), parameters)


def _settled(setting: Setting, options: Options) -> dict[str, Any]:
    """Return the settings; omitted ones are derived as the module states."""
    v = dict(vars(options))

    def settle(name: str, derived: Callable[[], Any]) -> Any:
        v[name] = derived() if v[name] is None else v[name]
        return v[name]

    kappa, L, L_Phi, n = setting.kappa, setting.L, setting.L_Phi, setting.n
    inner = min(_MOST_INNER, max(2, rounded_up(_STEPS_PER_KAPPA * kappa))) if setting.d2 else 1
    K = settle("inner_steps", lambda: inner)
    if setting.d2 and K < 2 and options.algorithm != "literal":
        raise ValueError(
            "inner_steps must be at least 2, because with K = 1 the estimate that would move y is "
            f"never taken and y stays where it starts, got {K!r}."
        )
    alpha = settle("accuracy", lambda: _accuracy(setting, K))
    eta = settle("step_length", lambda: alpha / (2 * L_Phi))
    patience = settle("escape_steps", lambda: _escape_steps(setting, alpha))
    gap = partial(setting.known, "gap", "steps")
    T = settle("steps", lambda: rounded_up(4 * L_Phi * gap() / alpha**2) + _PHASES * patience)
    longest = setting.C / (L * eta * setting.spread * math.sqrt(K))
    q = settle("period", lambda: min(T, rounded_down(longest)))
    wanted = max(_RECORDS_PER_PERIOD * q, n / math.sqrt(T * K))
    settle("batch_size", lambda: min(n, rounded_up(wanted)))
    settle("refresh_size", lambda: n)
    settle("ascent_rate", lambda: 1 / L)
    settle("perturbation", lambda: alpha / L_Phi)
    rate = settle("escape_rate", lambda: 1 / (2 * L_Phi))
    if rate * L_Phi > 1 + 1e-12:
        raise ValueError(
            f"escape_rate must be at most 1 / L_Phi = {1 / L_Phi:.6g}, beyond which a phase may "
            f"diverge where nothing is to be escaped, got {rate!r}."
        )
    settle("movement", lambda: (rate * alpha) ** 2)
    return v


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
