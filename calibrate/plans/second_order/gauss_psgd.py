r"""From a target to Gauss-PSGD: batches, a threshold for saddles, and how long to try to escape.

The noise that privacy asks for is what pushes the iterate off a saddle point. Every answer is about
records that no other answer of the same pass is about, so that a pass costs one Gaussian release:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=10**0.5, smoothness=1.0, hessian_lipschitz=1.0, gap=20.0)
>>> plan = gauss_psgd(constants, n=100_000, dimension=10, epsilon=1.0, delta=1e-6)
>>> for query in plan.queries:
...     print(query.name, query.batch_size, f"{query.noise_multiplier:.4f}")
refresh 2000 8.4494
difference 100 8.4494
>>> 0.999 < plan.price() <= 1.0
True
>>> parameters = plan.parameters
>>> print(f"threshold {parameters['threshold']:.3f}, {parameters['escape_steps']} steps a round")
threshold 0.165, 59 steps a round

The practical preset takes the size psi of the oracle's error for the threshold chi, claims alpha =
4 chi, and aims a round at the weakest saddle that counts, whose curvature is gamma = sqrt(rho
alpha): the radius is sqrt(alpha / rho), a few times farther than a constant error of size chi leads
on a valley's side that bends by gamma; and in Gamma steps noise grows past it, (1 + eta
gamma)^Gamma >= 40 R / (eta r). With ``failure_probability`` the threshold is a bound that no error
of the run exceeds, but with that probability; it is several times larger.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcal import _validate
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.second_order.problem import FEEDBACK, Errors
from dpcal.calibrate.query import Query
from dpcal.errors import warn_caller

__all__ = ["RESETS", "Options", "errors_of", "gauss_psgd", "planned", "pool_queries", "settled"]

RESETS = ("rewind", "carry", "fresh")

# Unit: 1 / M. The step size eta when omitted. Beyond 1 / M no descent is sure; a shorter step needs
# more answers for the same way, and each costs records.
_STEP = 0.2
# Share of the records behind one fresh gradient, when omitted.
_REFRESH = 1 / 50
# Share of the records behind one difference, when omitted.
_DIFFERENCE = 1 / 1000
# A fresh gradient whose sampling error, or noise, is larger than an eighth of G tells little.
_SHARPNESS = 8
# Unit: the drift at which differences err as much as the fresh gradient before them. At a quarter
# they add a quarter to its squared error. Less makes more gradients fresh, which take more records.
_DRIFT = 1 / 4
# Noise must grow to this, in units of the radius over one step's noise: the 40 of Lemma 1's proof.
_GROWTH = 40.0


@dataclass(frozen=True, kw_only=True)
class Options:
    """Settings of Gauss-PSGD that may be given; a None is replaced by a derived value.

    Parameters
    ----------
    learning_rate
        Step size eta in (0, 1 / M]; 1 / (5 M) when omitted.
    batch_size, difference_batch_size
        Records b1 behind a fresh gradient and b2 behind a difference, each in [1, n]; when omitted,
        a fiftieth and a thousandth of the records, or more where noise needs it; without drift, as
        few as leave half of the records to certify a point, if its alpha means something then.
    drift
        kappa >= 0: a gradient is fresh where the squared movement since the last fresh one would
        reach it. 0 makes every gradient fresh, which is DP-SGD. When omitted, such that differences
        add a quarter to the squared error of the gradient before them.
    period
        Every so many gradients one is fresh, whatever the drift: SPIDER, as in DIFF2; None for
        Ada-DP-SPIDER.
    threshold
        chi > 0: an escape begins where a gradient estimate is no longer than 3 chi. When omitted,
        the size of the estimates' error.
    escape_radius, escape_steps, escape_rounds
        R > 0, Gamma >= 1 and Q >= 1: a point is a saddle if one of Q rounds of at most Gamma steps
        leads farther than R from it. :mod:`dpcal.calibrate.plans.second_order.gauss_psgd` derives
        the first two when omitted. If one round in ten fails, all four do once in ten thousand
        phases.
    reset
        The estimate with which a round begins: ``"rewind"`` (as it was when the escape began),
        ``"carry"`` (as the round before left it) or ``"fresh"`` (none: the round begins with a
        fresh gradient).
    passes
        How often a record may be used, E >= 1: noise grows as the root of E.
    steps
        Gradients >= 1 that a run may take, all rounds included; as many as the records are enough
        for when omitted.
    failure_probability
        In (0, 1), for a threshold that no error exceeds but with that probability; None for one
        that is an error's size.
    """

    learning_rate: float | None = None
    batch_size: int | None = None
    difference_batch_size: int | None = None
    drift: float | None = None
    period: int | None = None
    threshold: float | None = None
    escape_radius: float | None = None
    escape_steps: int | None = None
    escape_rounds: int = 4
    reset: str = "rewind"
    passes: int = 1
    steps: int | None = None
    failure_probability: float | None = None


@common.builder("replace-one", options=Options)
def gauss_psgd(given: Given, *, max_norm: float | None = None, **options: Any) -> Plan:
    """Return the plan of Gauss-PSGD with Ada-DP-SPIDER that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``smoothness`` M, ``lipschitz`` G (unless ``max_norm`` is given) and ``hessian_lipschitz``
        rho (unless ``escape_radius`` and ``escape_steps`` are given).
    **options
        Of :class:`~dpcal.calibrate.plans.second_order.gauss_psgd.Options`.

    Returns
    -------
    Plan
        For each pass the queries ``"refresh"`` and ``"difference"`` on parts of one partition (with
        several passes: ``"refresh 1"``, ``"difference 1"``, ...). ``parameters`` holds what the
        run needs, ``accuracy`` (alpha = 4 chi), whether it is ``vacuous``, and ``certificate``, the
        records that Q rounds without an escape take.

    Raises
    ------
    ValueError
        For a batch larger than the pool, a drift that noise alone brings about, or differences
        whose noise feeds on itself.

    Warns
    -----
    VacuousSchedule
        If alpha >= G, or rho alpha > M^2: then every point passes the test. If rounds without an
        escape take more records than there are, so that no point passes (``certifiable``).

    References
    ----------
    Tao, Zhang, Yu, Cheng, Dressler and Wang 2025, Second-order convergence in private stochastic
    non-convex optimization, Algorithms 1 and 2. Noise is exact, one Gaussian release a pass, where
    they leave constants open. Theorem 1 is proved for oracles with fresh noise of one size in every
    step, which ``drift=0`` is; for Ada-DP-SPIDER its guarantee is empirical (see the errata).
    """
    return planned(given, max_norm, Options(**options))


def planned(
    given: Given,
    max_norm: float | None,
    options: Options,
    silos: int = 1,
    promised: Callable[[float], float] | None = None,
) -> Plan:
    """Return the plan of Gauss-PSGD for estimates that are means over so many silos.

    ``promised`` is the accuracy of a theorem that set the options, as a function of n.
    """
    target = given.target
    common.replaced_in_place(target.relation)
    _validate.choice(RESETS, reset=options.reset)
    E = _validate.count(passes=options.passes)
    multiplier = common.repeated(given.single, E)
    errors = errors_of(given, max_norm, multiplier, options, silos)
    if errors.kappa == 0 and options.batch_size is None:
        errors = _certifying(errors, given.constants, options, E)
    enough = E * (errors.n // (errors.b2 if errors.kappa else errors.b1))
    steps = options.steps
    horizon = max(1, enough) if steps is None else _validate.count(steps=steps)
    parameters: dict[str, Parameter] = {
        "learning_rate": errors.eta,
        "drift": errors.kappa,
        **common.told_of(options, "period reset"),
        "passes": E,
        "steps": horizon,
        "preset": "practical",
        **settled(errors, given.constants, options, horizon, promised),
    }
    return given.plan("gauss_psgd", pool_queries(errors, E), parameters)


def errors_of(
    given: Given, max_norm: float | None, multiplier: float, options: Options, silos: int = 1
) -> Errors:
    """Return step size, batches and drift, chosen where they were not given, with their error.

    ``multiplier`` is the noise multiplier of an answer; those of ``silos`` silos are averaged.
    """
    n, d = given.n, given.dimension
    G, M = given.known("lipschitz", "max_norm", max_norm), given.known("smoothness")
    eta = common.positive_or(_STEP / M, learning_rate=options.learning_rate)
    if eta * M > 1:
        raise ValueError(f"learning_rate must be at most 1 / M = {1 / M:.6g}, got {eta!r}.")
    root = math.sqrt(d / silos)
    refresh = max(n * _REFRESH, _SHARPNESS * multiplier * root, 4 * _SHARPNESS**2 / silos)
    difference = max(n * _DIFFERENCE, multiplier * M * eta * root / FEEDBACK)
    chosen = {"batch_size": refresh, "difference_batch_size": difference}
    b1, b2 = (
        min(n, math.ceil(size)) if given is None else common.at_most(n, **{name: given})
        for name, size in chosen.items()
        for given in [getattr(options, name)]
    )
    errors = Errors(n=n, d=d, m=silos, G=G, M=M, z=multiplier, eta=eta, b1=b1, b2=b2, kappa=0.0)
    if options.period is not None:
        # A path of p - 1 differences, each at most eta G long.
        kappa = (_validate.count(period=options.period) - 1) * (eta * G) ** 2
        return _checked(dataclasses.replace(errors, kappa=kappa), adaptive=False)
    if options.drift is None:
        kappa = max(_DRIFT * errors.balanced_kappa, 10 * errors.own_drift)
    else:
        kappa = _validate.non_negative(drift=options.drift)
    return _checked(dataclasses.replace(errors, kappa=kappa), adaptive=True)


def _checked(errors: Errors, *, adaptive: bool) -> Errors:
    """Refuse differences that noise alone would rule; fresh gradients alone need no check."""
    if errors.kappa and errors.feedback > FEEDBACK * (1 + 1e-9):
        needed = math.ceil(errors.b2 * errors.feedback / FEEDBACK)
        raise ValueError(
            f"difference_batch_size must be at least {needed} at learning_rate={errors.eta:.6g}, "
            f"so that the noise of differences does not feed on itself, got {errors.b2}. Use "
            "drift=0 where there are too few records for that."
        )
    if adaptive and 0 < errors.kappa <= errors.own_drift:
        raise ValueError(
            f"drift must be 0 or greater than {errors.own_drift:.6g}, the squared step that noise "
            f"alone makes, got {errors.kappa!r}: every gradient would be fresh."
        )
    return errors


def settled(
    errors: Errors,
    constants: Constants,
    options: Options,
    horizon: int,
    promised: Callable[[float], float] | None = None,
) -> dict[str, Parameter]:
    """Return threshold, radius, steps and rounds of an escape, and what is claimed with them.

    A run takes ``horizon`` gradients at most; ``promised`` is a theorem's accuracy by size.
    """
    rounds = _validate.count(escape_rounds=options.escape_rounds)
    if options.failure_probability is not None:
        _validate.probability(failure_probability=options.failure_probability)
    alpha = 4 * _level(errors, options, horizon)
    R, Gamma = _escape(errors, constants, options, alpha)

    def accuracy(size: float) -> float:
        scale = size / errors.n
        b1, b2 = (max(1, round(b * scale)) for b in (errors.b1, errors.b2))
        there = dataclasses.replace(errors, b1=b1, b2=b2)
        return 4 * (_level(there, options, horizon) if options.threshold is None else there.size)

    fresh = math.sqrt(errors.d) * dataclasses.replace(errors, kappa=0.0).noise
    told = "an estimate's norm, where an escape begins,"
    common.warn_below_noise("gauss_psgd", errors.n, told, 3 * alpha / 4, fresh)
    needed = _certificate(errors, rounds, Gamma)
    verdict: dict[str, Parameter] = {}
    if needed > options.passes * errors.n:
        verdict = {"certifiable": False}
        warn_caller(
            f"gauss_psgd cannot certify a point at n={errors.n}: rounds without an escape take "
            f"{needed} records, of {options.passes * errors.n}. Smaller batches, or more passes, "
            "leave enough."
        )
    return {
        "threshold": alpha / 4,
        "escape_radius": R,
        "escape_steps": Gamma,
        "escape_rounds": rounds,
        "error": errors.size,
        "certificate": needed,
        **verdict,
        **common.promise(
            "gauss_psgd", alpha, _trivial(errors, constants), promised or accuracy, errors.n
        ),
    }


def _level(errors: Errors, options: Options, horizon: int) -> float:
    """Return chi: the threshold that was given, the size of an error, or a bound on all of them."""
    if options.threshold is not None:
        return _validate.positive(threshold=options.threshold)
    if options.failure_probability is None:
        return errors.size
    return errors.level(horizon, options.failure_probability)


def _escape(
    errors: Errors, constants: Constants, options: Options, alpha: float
) -> tuple[float, int]:
    """Return the radius of an escape and the steps of a round."""
    R, Gamma = options.escape_radius, options.escape_steps
    if R is None:
        R = math.sqrt(alpha / common.known(constants, "hessian_lipschitz", "escape_radius"))
    R = _validate.positive(escape_radius=R)
    if Gamma is None:
        gamma = math.sqrt(common.known(constants, "hessian_lipschitz", "escape_steps") * alpha)
        growth = max(math.e, _GROWTH * R / (errors.eta * errors.noise))
        Gamma = math.ceil(math.log(growth) / math.log1p(errors.eta * min(gamma, errors.M)))
    return R, _validate.count(escape_steps=Gamma)


def _certificate(errors: Errors, rounds: int, Gamma: int) -> int:
    """Return how many records rounds without an escape take."""
    return rounds * Gamma * (errors.b2 if errors.kappa else errors.b1)


def _certifying(errors: Errors, constants: Constants, options: Options, passes: int) -> Errors:
    """Return fresh gradients on fewer records each, so that half of all certify a point.

    They stay as they are where estimates would then be too wrong for a certificate to mean a thing.
    """
    rounds, fewer = _validate.count(escape_rounds=options.escape_rounds), errors
    while fewer.b1 > 1:
        alpha = 4 * _level(fewer, options, passes * (fewer.n // fewer.b1))
        if alpha >= _trivial(fewer, constants)[1]:
            return errors
        _, Gamma = _escape(fewer, constants, options, alpha)
        if _certificate(fewer, rounds, Gamma) <= passes * fewer.n / 2:
            return fewer
        fewer = dataclasses.replace(fewer, b1=max(1, math.ceil(0.9 * fewer.b1) - 1))
    return errors


def _trivial(errors: Errors, constants: Constants) -> tuple[str, float]:
    """Return the name and value of the least alpha at which every point passes."""
    rho = constants.hessian_lipschitz
    if rho and errors.M**2 / rho < errors.G:
        return "accuracy M^2 / rho at which every Hessian passes,", errors.M**2 / rho
    return "Lipschitz constant", errors.G


def pool_queries(errors: Errors, passes: int) -> tuple[Query, ...]:
    """Return the queries of each pass: gradients and differences on parts of one partition."""
    queries = []
    for number in range(1, passes + 1):
        ending = "" if passes == 1 else f" {number}"
        refresh = common.gradients(
            errors.G,
            errors.z,
            errors.n // errors.b1,
            name=f"refresh{ending}",
            **common.disjoint(errors.b1, f"pool{ending}"),
        )
        queries.append(refresh)
        if errors.kappa:
            name, count = f"difference{ending}", errors.n // errors.b2
            queries.append(
                common.differences(refresh, errors.M, name=name, batch_size=errors.b2, count=count)
            )
    return tuple(queries)
