r"""From a target to Gauss-PSGD: batches, a threshold for saddles, and how long to try to escape.

The noise that privacy needs also pushes the iterate off a saddle point. Every answer is about
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
4 chi, and aims a round at the weakest saddle that counts, with curvature gamma = sqrt(rho alpha):
the radius is sqrt(alpha / rho), a few times farther than a constant error of size chi leads on a
valley's side that bends by gamma; and in Gamma steps noise grows past it, (1 + eta gamma)^Gamma >=
40 R / (eta r). With ``failure_probability`` the threshold is a bound that no error of the run
exceeds, but with that probability; it is several times larger.

Letters are as in Tao et al. (2025), with every constant written out:

=========== ====================================================================================
n, d, m     records of a silo, parameters, silos
G, M, rho   bounds on one record's gradient, Hessian and change of the Hessian
z           noise multiplier of an answer, in units of one record's contribution
b1, b2      records behind a fresh gradient, and behind a difference
kappa       squared movement after which the next gradient is fresh
eta         step size
sigma, r    sampling error of an estimate, and standard deviation of its noise in a coordinate
psi         sqrt(sigma^2 + d r^2), the size of an estimate's error
=========== ====================================================================================

An estimate holds one fresh gradient, and differences along a path with squared steps that add up to
less than kappa. So

    sigma = 2 sqrt((G^2 / b1 + M^2 kappa / b2) / m),   r = z sqrt((G^2 / b1^2 + M^2 kappa / b2^2) /
    m),

and with probability 1 - omega / 2 no error among T estimates is larger than
``sigma sqrt(2 ln(8 T / omega)) + r (sqrt(d) + sqrt(2 ln(4 T / omega)))``: a martingale bound for
vectors, and a Gaussian's tail.

>>> plan = gauss_psgd(constants, n=100_000, dimension=10, epsilon=1.0, delta=1e-6, steps=300,
...                   failure_probability=0.05)
>>> print(f"psi = {plan.parameters['error']:.3f}, at most {plan.parameters['threshold']:.2f}")
psi = 0.165, at most 0.86

Nothing is amplified by a number of silos: each adds the noise of one Gaussian release a pass, and
the claim is about one record of one silo, the others' records fixed. The mean of m answers errs
less, so that with n records in each silo the error falls as 1 / sqrt(m):

>>> sizes = dict(n=20_000, dimension=10, epsilon=1.0, delta=1e-6, batch_size=1000, drift=0.02,
...              difference_batch_size=20, threshold=0.2)
>>> for m in (1, 2, 5, 10):
...     plan = distributed_psgd(constants, silos=m, **sizes)
...     print(m, f"{plan.parameters['error']:.3f}", f"{plan.queries[0].noise_multiplier:.4f}")
1 0.295 8.4494
2 0.208 8.4494
5 0.132 8.4494
10 0.093 8.4494
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import epsilon as epsilon_of
from dpcal.accountants.events import GaussianDpEvent
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.query import Query
from dpcal.errors import warn_caller

RESETS = ("rewind", "carry", "fresh")

# Unit: 1 / M, beyond which no descent is sure; shorter steps need more answers.
_STEP = 0.2
# Shares of the records behind one fresh gradient and one difference, when omitted.
_REFRESH = 1 / 50
_DIFFERENCE = 1 / 1000
# A fresh gradient with a sampling error, or noise, above an eighth of G is of little use.
_SHARPNESS = 8
# Unit: the drift at which differences err as much as the fresh gradient before them.
_DRIFT = 1 / 4
# Noise must grow to this, in units of the radius over one step's noise: the 40 of Lemma 1's proof.
_GROWTH = 40.0
# Noise of a difference over its step's estimate: at 1 it feeds on itself, at 1/2 it adds a third.
_FEEDBACK = 0.5
_COUNTS = ("period", "escape_steps", "escape_rounds", "passes", "steps")
_CHECKS: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(_COUNTS, validate.count),
    **dict.fromkeys(("learning_rate", "threshold", "escape_radius"), validate.positive),
    "drift": validate.non_negative,
    "failure_probability": validate.probability,
    "reset": partial(validate.choice, RESETS),
}


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

    def __post_init__(self) -> None:
        common.check_given(self, _CHECKS)


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
        Fields of :class:`~dpcal.calibrate.plans.second_order.gauss_psgd.Options`.

    Returns
    -------
    Plan
        For each pass the queries ``"refresh"`` and ``"difference"`` on parts of one partition (with
        several passes: ``"refresh 1"``, ``"difference 1"``, ...). ``parameters`` holds the facts
        that the run needs, ``accuracy`` (alpha = 4 chi), whether it is ``vacuous``, and
        ``certificate``, the records for Q rounds without an escape.

    Raises
    ------
    ValueError
        For a batch larger than the pool, a drift from noise by itself, or differences with noise
        that feeds on itself.

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


@common.builder("replace-one", options=Options)
def distributed_psgd(
    given: Given, *, silos: int = 1, max_norm: float | None = None, **options: Any
) -> Plan:
    """Return the plan of Gauss-PSGD over silos that meets (epsilon, delta) in each of them.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        As :func:`dpcal.calibrate.gauss_psgd` needs them.
    epsilon, delta
        Target of one silo's whole transcript with respect to one of its records (inter-client
        record-level privacy).
    n
        Number of records of the smallest silo. A silo with more has larger batches in proportion.
    silos
        Number of silos m >= 1.
    **options
        Fields of :class:`~dpcal.calibrate.plans.second_order.gauss_psgd.Options`, for a silo with
        ``n`` records.

    Returns
    -------
    Plan
        Plan of a silo with ``n`` records; ``parameters`` holds ``silos``.

    References
    ----------
    Tao, Zhang, Yu, Cheng, Dressler and Wang 2025, Algorithm 3; with ``period``, the distributed
    SPIDER of DIFF2 (Murata and Suzuki 2023).
    """
    m = validate.count(silos=silos)
    plan = planned(given, max_norm, Options(**options), silos=m)
    parameters = {**plan.parameters, "silos": m}
    return dataclasses.replace(plan, optimizer="distributed_psgd", parameters=parameters)


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
    common.replaced_in_place(given.target.relation)
    run = _Run.of(given, max_norm, options, silos)
    if run.kappa == 0 and options.batch_size is None:
        run = run.certifying()
    horizon = options.steps or max(1, run.enough)
    parameters: dict[str, Parameter] = {
        "learning_rate": run.eta,
        "drift": run.kappa,
        **common.told_of(options, "period reset passes"),
        "steps": horizon,
        "preset": "practical",
        **run.settled(horizon, promised),
    }
    return run.plan("gauss_psgd", run.queries(), parameters)


@dataclass(frozen=True, kw_only=True)
class _Run(Given):
    """Step size, batches and drift, chosen where they were not given, with their error.

    In the letters of the module.
    """

    m: int
    G: float
    M: float
    multiplier: float
    eta: float
    b1: int
    b2: int
    kappa: float
    options: Options

    @classmethod
    def of(  # type: ignore[override]
        cls, given: Given, max_norm: float | None, options: Options, silos: int
    ) -> _Run:
        """Return the run of a builder's arguments."""
        n, d, z = given.n, given.d, common.repeated(given.z, options.passes)
        G, M = given.known("lipschitz", "max_norm", max_norm), given.known("smoothness")
        eta = options.learning_rate or _STEP / M
        if eta * M > 1:
            raise ValueError(f"learning_rate must be at most 1 / M = {1 / M:.6g}, got {eta!r}.")
        root = math.sqrt(d / silos)
        refresh = max(n * _REFRESH, _SHARPNESS * z * root, 4 * _SHARPNESS**2 / silos)
        difference = max(n * _DIFFERENCE, z * M * eta * root / _FEEDBACK)
        b1, b2 = (
            min(n, math.ceil(size)) if asked is None else common.at_most(n, **{name: asked})
            for name, size in {"batch_size": refresh, "difference_batch_size": difference}.items()
            for asked in [getattr(options, name)]
        )
        own: dict[str, Any] = {"options": options, "m": silos, "b1": b1, "b2": b2, "eta": eta}
        run = cls(**vars(given), **own, G=G, M=M, multiplier=z, kappa=0.0)
        kappa = options.drift
        if options.period is not None:
            kappa = (options.period - 1) * (eta * G) ** 2
        elif kappa is None:
            fresh = 4 * G**2 / b1 + d * (z * G / b1) ** 2
            balanced = fresh / (4 * M**2 / b2 + d * (z * M / b2) ** 2)
            kappa = max(_DRIFT * balanced, 10 * run.own_drift)
        return dataclasses.replace(run, kappa=kappa).checked()

    def checked(self) -> _Run:
        """Refuse differences that are mostly noise; fresh gradients need no check."""
        feedback = self.multiplier * self.M * self.eta * math.sqrt(self.d / self.m) / self.b2
        if self.kappa and feedback > _FEEDBACK * (1 + 1e-9):
            needed = math.ceil(self.b2 * feedback / _FEEDBACK)
            raise ValueError(
                f"difference_batch_size must be at least {needed} at learning_rate={self.eta:.6g}, "
                f"so that the noise of differences does not feed on itself, got {self.b2}. Use "
                "drift=0 where there are too few records for that."
            )
        if self.options.period is None and 0 < self.kappa <= self.own_drift:
            raise ValueError(
                f"drift must be 0 or greater than {self.own_drift:.6g}, the squared step that "
                f"noise alone makes, got {self.kappa!r}: every gradient would be fresh."
            )
        return self

    @property
    def noise(self) -> float:
        """The noise r in a coordinate."""
        squares = (self.G / self.b1) ** 2 + self.kappa * (self.M / self.b2) ** 2
        return self.multiplier * math.sqrt(squares / self.m)

    @property
    def spread(self) -> float:
        """The sampling error sigma."""
        return 2 * math.sqrt((self.G**2 / self.b1 + self.M**2 * self.kappa / self.b2) / self.m)

    @property
    def size(self) -> float:
        """The size psi of the whole error."""
        return math.hypot(self.spread, math.sqrt(self.d) * self.noise)

    @property
    def own_drift(self) -> float:
        """Squared length of the step from a fresh gradient's noise."""
        return (self.eta * self.multiplier * self.G / self.b1) ** 2 * int(self.d) / self.m

    @property
    def least(self) -> int:
        """Number of records of the most frequent answer."""
        return self.b2 if self.kappa else self.b1

    @property
    def enough(self) -> int:
        """Number of answers that the records are enough for."""
        return self.options.passes * (self.n // self.least)

    @property
    def trivial(self) -> tuple[str, float]:
        """Name and value of the least alpha at which every point passes."""
        rho = self.constants.hessian_lipschitz
        if rho and self.M**2 / rho < self.G:
            return "accuracy M^2 / rho at which every Hessian passes,", self.M**2 / rho
        return "Lipschitz constant", self.G

    def chi(self, horizon: int) -> float:
        """Return the threshold that was given, the size of an error, or a bound on all of them."""
        threshold, omega = self.options.threshold, self.options.failure_probability
        if threshold is not None or omega is None:
            return threshold or self.size
        sampled = math.sqrt(2 * math.log(8 * horizon / omega))
        drawn = math.sqrt(self.d) + math.sqrt(2 * math.log(4 * horizon / omega))
        return self.spread * sampled + self.noise * drawn

    def escape(self, alpha: float) -> tuple[float, int]:
        """Return the radius of an escape and the steps of a round."""
        R, Gamma = self.options.escape_radius, self.options.escape_steps

        if R is None:
            rho = self.known("hessian_lipschitz", "escape_radius")
            R = validate.positive(escape_radius=math.sqrt(alpha / rho))
        if Gamma is None:
            gamma = math.sqrt(self.known("hessian_lipschitz", "escape_steps") * alpha)
            growth = max(math.e, _GROWTH * R / (self.eta * self.noise))
            Gamma = math.ceil(math.log(growth) / math.log1p(self.eta * min(gamma, self.M)))
        return R, validate.count(escape_steps=Gamma)

    def certificate(self, Gamma: int) -> int:
        """Return how many records rounds without an escape take."""
        return self.options.escape_rounds * Gamma * self.least

    def certifying(self) -> _Run:
        """Return fresh gradients on fewer records each, so that half of all certify a point.

        They stay as they are where estimates would then be too wrong for a certificate to mean a
        thing.
        """
        fewer = self
        while fewer.b1 > 1:
            alpha = 4 * fewer.chi(fewer.enough)
            if alpha >= fewer.trivial[1]:
                return self
            if fewer.certificate(fewer.escape(alpha)[1]) <= self.options.passes * self.n / 2:
                return fewer
            fewer = dataclasses.replace(fewer, b1=max(1, math.ceil(0.9 * fewer.b1) - 1))
        return self

    def settled(
        self, horizon: int, promised: Callable[[float], float] | None
    ) -> dict[str, Parameter]:
        """Return threshold, radius, steps and rounds of an escape, and the claim about them.

        A run takes ``horizon`` gradients at most; ``promised`` is a theorem's accuracy by size.
        """
        alpha = 4 * self.chi(horizon)
        R, Gamma = self.escape(alpha)

        def accuracy(size: float) -> float:
            b1, b2 = (max(1, round(b * size / self.n)) for b in (self.b1, self.b2))
            there = dataclasses.replace(self, b1=b1, b2=b2)
            return 4 * (there.chi(horizon) if self.options.threshold is None else there.size)

        fresh = math.sqrt(self.d) * dataclasses.replace(self, kappa=0.0).noise
        told = "an estimate's norm, where an escape begins,"
        common.warn_below_noise("gauss_psgd", self.n, told, 3 * alpha / 4, fresh)
        needed, records = self.certificate(Gamma), self.options.passes * self.n
        if needed > records:
            warn_caller(
                f"gauss_psgd cannot certify a point at n={self.n}: rounds without an escape take "
                f"{needed} records, of {records}. Smaller batches, or more passes, leave enough."
            )
        return {
            "threshold": alpha / 4,
            "escape_radius": R,
            "escape_steps": Gamma,
            "escape_rounds": self.options.escape_rounds,
            "error": self.size,
            "certificate": needed,
            **({"certifiable": False} if needed > records else {}),
            **common.promise("gauss_psgd", alpha, self.trivial, promised or accuracy, self.n),
        }

    def queries(self) -> tuple[Query, ...]:
        """Return the queries of each pass: gradients and differences on parts of one partition."""
        queries, passes = [], self.options.passes
        for ending in [""] if passes == 1 else [f" {number + 1}" for number in range(passes)]:
            part = common.disjoint(self.b1, f"pool{ending}")
            name, count = f"refresh{ending}", self.n // self.b1
            queries.append(common.gradients(self.G, self.multiplier, count, name=name, **part))
            if self.kappa:
                name, count = f"difference{ending}", self.n // self.b2
                own = {"name": name, "count": count, "batch_size": self.b2}
                queries.append(common.differences(queries[-1], self.M, **own))
        return tuple(queries)


def silo_plans(
    constants: Constants,
    *,
    epsilon: Sequence[float],
    delta: float,
    neighboring_relation: str = "replace-one",
    accountant: str = "auto",
    **options: Any,
) -> tuple[Plan, ...]:
    """Return a plan for each of several silos with different epsilons.

    Each silo has the noise of its own target. Sizes, threshold and escapes are the same in all
    plans: :func:`distributed_psgd` computes them for noise with the mean of the silos' variances,
    so that the mean of their answers has the planned noise.

    Parameters
    ----------
    constants
        As :func:`distributed_psgd` needs them.
    epsilon
        Target of each silo, at least one number > 0.
    delta, neighboring_relation
        Epsilon of each silo.
    accountant
        ``"auto"``, ``"characteristic"`` or ``"renyi"``.
    **options
        Further arguments of :func:`distributed_psgd`, except ``silos``.

    Examples
    --------
    >>> from dpcal.calibrate import Constants
    >>> constants = Constants(lipschitz=10**0.5, smoothness=1.0, hessian_lipschitz=1.0)
    >>> plans = silo_plans(constants, epsilon=[1.0, 4.0], n=20_000, dimension=10, delta=1e-6,
    ...                    batch_size=1000, drift=0.02, difference_batch_size=20, threshold=0.2)
    >>> for plan in plans:
    ...     print(f"{plan.queries[0].noise_multiplier:.4f} {plan.price():.4f}")
    8.4494 1.0000
    2.3870 4.0000
    """
    if isinstance(epsilon, str) or not isinstance(epsilon, Iterable):
        raise TypeError(f"epsilon must be a sequence of numbers, one a silo, got {epsilon!r}.")
    targets = [validate.positive(epsilon=each) for each in epsilon]
    if not targets:
        raise ValueError(f"epsilon must have a number > 0 for each silo, got {epsilon!r}.")
    validate.choice(("auto", "characteristic", "renyi"), accountant=accountant)
    unit = (neighboring_relation, 1, "row", accountant)
    releases = [common.single_release(each, delta, *unit) for each in targets]
    together = math.hypot(*releases) / math.sqrt(len(releases))
    same: dict[str, Any] = {"delta": delta, "neighboring_relation": neighboring_relation}
    same["accountant"] = accountant
    plan = distributed_psgd(
        constants,
        epsilon=float(epsilon_of(GaussianDpEvent(together), **same)),
        silos=len(targets),
        **same,
        **options,
    )
    passes = int(plan.parameters["passes"] or 1)

    def own(target: float, release: float) -> Plan:
        noise = common.repeated(release, passes)
        queries = (dataclasses.replace(each, noise_multiplier=noise) for each in plan.queries)
        return dataclasses.replace(plan, epsilon=target, queries=tuple(queries))

    return tuple(map(own, targets, releases))
