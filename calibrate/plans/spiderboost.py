r"""From a target to SpiderBoost: how many steps, how often afresh, and how much noise in each?

Between two fresh gradients noisy differences keep the estimate up to date, with noise in proportion
to the move of the iterate:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
>>> plan = spiderboost(constants, n=10_000, dimension=20, epsilon=1.0, delta=1e-6)
>>> print(f"gradient norm {plan.parameters['accuracy']:.4f} after {plan.parameters['steps']} steps")
gradient norm 0.0386 after 4021 steps
>>> 0.999 < plan.price() <= 1.0
True

Noisy gradient descent promises 0.0731 there.

The bound. With w_{t+1} = w_t - eta V_t and h = eta L1, the descent lemma gives

    F(w_{t+1}) <= F(w_t) - eta/2 ||g_t||^2 - eta/2 (1 - h) ||V_t||^2 + eta/2 ||g_t - V_t||^2

where g_t is the gradient at w_t. A fresh gradient errs by s1^2 = d (C z1 / n)^2 in mean square,
and a difference adds ``s2^2 eta^2 ||V||^2`` with s2^2 = L1^2 (S + d z2^2 / b^2), S being the
variance of sampling: (1 - b/n) / b for Poisson samples, (n - b) / ((n - 1) b) for batches of fixed
size. Summed over T steps of period q, every ||V||^2 is counted at most q - 1 times, so that

    mean over t of E ||g_t||^2  <=  2 F0 / (eta T) + s1^2
                        where  (q - 1) (S + d z2^2 / b^2)  <=  (1 - h) / h^2.

The split. The noise of differences is in the condition and not in the bound: they get exactly the
noise that the condition tolerates, and all that is left of the budget goes to fresh gradients.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

from dpcal._internal import validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases
from dpcal.errors import TargetUnreachable

# Unit: the sensitivity. A difference with less noise costs an epsilon of hundreds.
_LEAST_MULTIPLIER = 1e-2

# Periods over the closed form, which accounts for samples roughly; each costs a calibration.
_FACTORS = (0.3, 0.5, 0.65, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5)


@common.builder()
def spiderboost(
    given: Given,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
) -> Plan:
    """Return the plan of Private SpiderBoost that meets (epsilon, delta).

    Fresh gradients use all records; differences use Poisson samples, or batches of a fixed size
    where a record is replaced.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``smoothness`` L1, ``lipschitz`` L0 (unless ``max_norm`` is given) and ``gap`` F0.
    batch_size
        Size of the samples for differences.
    learning_rate
        In (0, 1 / L1); 1 / (2 L1) when omitted.

    Returns
    -------
    Plan
        Queries ``"refresh"`` and, unless the period is 1, ``"difference"``, with contributions
        bounded by ``min(L1 ||w - v||, 2 C)``. ``parameters`` holds ``steps``, ``period``,
        ``batch_size``, ``learning_rate``, ``refresh_share`` (the share of the squared Gaussian
        parameter for fresh gradients) and, where C >= L0, the square root of the bound as
        ``accuracy``.

    Warns
    -----
    VacuousSchedule
        If ``constants.strong_convexity`` is above 0: on convex losses DP-SGD ended lower.

    References
    ----------
    Arora, Bassily, Gonzalez, Guzman, Menart and Ullah 2022, Faster rates of convergence to
    stationary points in differentially private optimization, Algorithm 1 and Theorem 9 (corrected:
    see the errata); Wang, Ji, Zhou, Liang and Tarokh 2019 (SpiderBoost). The bound above has
    smaller constants than their Lemma 3.
    """
    C, L1 = given.known("lipschitz", "max_norm", max_norm), given.known("smoothness", "smoothness")
    eta = common.positive_or(0.5 / L1, learning_rate=learning_rate)
    if not eta * L1 < 1:
        raise ValueError(
            f"learning_rate must be below 1 / L1 = {1 / L1:.6g} for estimates to follow the "
            f"gradient, got {eta!r}."
        )
    problem = _Problem(**vars(given), C=C, L1=L1, eta=eta)
    chosen = problem.best(steps, batch_size)
    if given.constants.strong_convexity > 0:
        common.warn_convex("spiderboost")
    parameters: dict[str, Parameter] = {
        "preset": "practical",
        **common.told_of(chosen.counts, "steps period batch_size"),
        "learning_rate": eta,
        "refresh_share": chosen.counts.refreshes * (problem.z / chosen.z1) ** 2,
    }
    accuracy = problem.bound(chosen)
    if accuracy < math.inf and given.constants.lipschitz <= C:
        parameters |= {"accuracy": accuracy, "accuracy_kind": "guarantee"}
    queries = chosen.counts.queries((chosen.z1, chosen.z2), Bounds(gradient=C, difference=L1))
    return problem.plan("spiderboost", queries, parameters)


class _Choice(NamedTuple):
    """Steps, period and samples, with the noise of a refresh and of a difference."""

    counts: Releases
    z1: float
    z2: float = math.nan


@dataclass(frozen=True, kw_only=True)
class _Problem(Given):
    """Checked constants and target."""

    C: float
    L1: float
    eta: float

    @property
    def a(self) -> float:
        """Error of one gradient that spends the whole budget, relative to C."""
        return math.sqrt(self.d) * self.z / self.n

    @property
    def tolerated(self) -> float:
        """Bound of the condition, (1 - h) / h^2."""
        h = self.eta * self.L1
        return (1 - h) / h**2

    def sampling_variance(self, batch: int) -> float:
        """Variance S of sampling."""
        if self.target.relation == "replace-one":
            return (self.n - batch) / (max(1, self.n - 1) * batch)
        return (1 - batch / self.n) / batch

    def bound(self, choice: _Choice) -> float:
        """The root of the bound, infinite where F0 is not known."""
        if self.constants.gap is None:
            return math.inf
        fresh = self.d * (self.C * choice.z1 / self.n) ** 2
        return math.sqrt(2 * self.constants.gap / (self.eta * choice.counts.steps) + fresh)

    def best(self, steps: int | None, batch_size: int | None) -> _Choice:
        """Minimise the bound: in closed form first, then over periods with the exact accountant."""
        if steps is None:
            self.known("gap", "steps")
        if batch_size is not None:
            common.at_most(self.n, batch_size=batch_size)
        T, period, batch = self.closed_form(steps, batch_size)
        periods = {min(T, max(1, round(factor * period))) for factor in _FACTORS}
        found = [each for q in sorted(periods - {1}) if (each := self.split(T, q, batch))]
        # If F0 is not known, steps are given: then the bound is as small as the noise of gradients.
        return min([*found, self.descent(steps)], key=lambda c: (self.bound(c), c.z1))

    def closed_form(self, steps: int | None, batch_size: int | None) -> tuple[int, int, int]:
        """Return steps, period and batch, if N samples at rate r with noise z cost N (r / z)^2.

        Differences then err by T a^2 / (1 - share) + S per step and unit of movement, and gradients
        by a^2 C^2 T / (q share). With u^2 = 1 + S / (T a^2) the best share is u / (1 + u).
        """
        a, weight, F0 = self.a, self.tolerated, self.constants.gap or 0.0
        u, T, batch = 1.0, 1 if steps is None else validate.count(steps=steps), self.n
        for _ in range(20):
            if steps is None:
                drift = (a**4 * self.C**2 * (1 + u) ** 2) / weight
                T = max(1, math.ceil((F0 / (self.eta * drift)) ** (1 / 3)))
            wanted = max(1 / (T * a**2), self.n / math.sqrt(T))
            batch = min(self.n, math.ceil(wanted)) if batch_size is None else int(batch_size)
            u = math.sqrt(1 + self.sampling_variance(batch) / (T * a**2))
        period = 1 + weight / (T * a**2 * u * (1 + u))
        return T, max(1, min(T, round(period))), batch

    def split(self, steps: int, period: int, batch: int) -> _Choice | None:
        """Give differences the noise that the condition tolerates and gradients the rest.

        None if no budget is left for gradients.
        """
        room = self.tolerated / (period - 1) - self.sampling_variance(batch)
        z2 = batch * math.sqrt(max(room, 0.0) / self.d)
        if z2 < _LEAST_MULTIPLIER:
            return None
        counts = self.counts(steps, period, batch)
        try:
            z1 = self.target.noise(lambda value: counts.event((value, z2)))
        except TargetUnreachable:
            return None
        return _Choice(counts, z1, z2)

    def descent(self, steps: int | None) -> _Choice:
        """Return noisy gradient descent, which is the period 1."""
        if steps is None:
            gap, rate = self.known("gap"), self.a * self.C
            steps = max(1, math.ceil(math.sqrt(2 * gap / self.eta) / rate))
        return _Choice(self.counts(steps, 1, self.n), common.repeated(self.z, steps))

    def counts(self, steps: int, period: int, batch: int) -> Releases:
        """Return counts about this problem's records."""
        sizes: dict[str, Any] = {"n": self.n, "refresh_size": self.n, "batch_size": batch}
        return Releases(**sizes, steps=steps, period=period, relation=self.target.relation)
