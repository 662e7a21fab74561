"""The best of a random number of runs: Renyi divergences from those of one run, and a law.

>>> from dpcal.accountants import epsilon, events
>>> best = events.RepeatAndSelectDpEvent(events.GaussianDpEvent(5.0), mean=10.0, shape=1.0)
>>> print(f"{epsilon(best, delta=1e-6, accountant='renyi'):.4f}")
1.8135
>>> answer = epsilon(best, delta=1e-6)      # the smaller of this, and of what a run's profile gives
>>> print(f"{answer:.4f} {answer.accountant}")
1.2315 characteristic
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._roots import minimum
from dpcal.accountants import events, renyi
from dpcal.accountants.directions import Direction
from dpcal.accountants.inversion.transform import Total
from dpcal.accountants.losses.base import OutOfReach, PrivacyLoss, Reals
from dpcal.accountants.losses.failure import MomentBound
from dpcal.accountants.mechanisms.best_run import best_run_laws, log_inverse_gamma
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.mechanisms.row import Pairs, Row, normal, refuse
from dpcal.accountants.rounding import UNIT

__all__ = ["RepeatedSelection"]

# Smallest c of the free Renyi order 1 + c of a repetition that is tried.
_SMALLEST = 1e-3
# Largest log(1 / gamma) of a law of the number of runs, whose exponential is a double.
_MOST_LOG_INVERSE = 600.0
# Largest c of the free Renyi order 1 + c of a repetition that is tried.
_LARGEST = 1e4
# Smallest tilt at which moments are taken by differences.
_LEAST_TILT = 1e-6
# They find the logarithm of that c to 1e-5, where the bound is flat to ten digits.
_SECTIONS = 30
# Largest mean number of runs, and shape of its law, of a selection: powers of both stay doubles.
_MOST_RUNS = 1e15


@dataclass(frozen=True)
class RepeatedSelection(MomentBound):
    """The best of a random number of runs of one mechanism (Papernot and Steinke 2022).

    Parameters
    ----------
    directions
        The losses of a single run, in each direction; the worse direction counts at each order.
    mean_runs
        Mean of the number of runs: at least 1, or any number > 0 for Poisson.
    shape
        Its law: infinite for Poisson (their Theorem 6), otherwise the shape eta > -1 of a truncated
        negative binomial law (their Theorem 2), 1 for geometric, 0 for logarithmic.
    forward
        Direction of its :attr:`law`: removing a record (True), or adding one.
    """

    directions: tuple[Direction, ...]
    mean_runs: float
    shape: float
    forward: bool = True

    def __post_init__(self) -> None:
        _validate.positive(mean=self.mean_runs)
        if not self.shape > -1:
            raise ValueError(f"shape must be a number > -1, got {self.shape!r}.")
        if self.mean_runs < 1 and math.isfinite(self.shape):
            raise ValueError(
                f"mean must be a number >= 1 unless shape is infinite, got {self.mean_runs!r}."
            )
        if math.isfinite(self.shape) and not self._log_inverse_gamma < _MOST_LOG_INVERSE:
            raise ValueError(
                f"shape must be further from -1 for a mean of {self.mean_runs!r} runs, got "
                f"{self.shape!r}."
            )

    @property
    def law(self) -> PrivacyLoss | None:
        """The law that follows from a run's privacy profile, or None if a run has none."""
        if not all(loss.has_law for item in self.directions for loss, _ in item.parts):
            return None
        laws = best_run_laws(self.directions, self.mean_runs, self.shape)
        return laws[0 if self.forward else 1]

    @property
    def upper(self) -> float:
        """Bound on the loss itself: the limit of the theorems at infinite order, rounded up.

        With e the largest loss of a single run, Theorem 2 tends to (2 + eta) e, and Theorem 6 to e
        plus the mean number of runs times a run's delta(0).
        """
        single = max(Total(item.parts).upper for item in self.directions)
        if math.isinf(single):
            return math.inf
        if math.isinf(self.shape):
            log_delta = max(renyi.log_delta_bounds(item, 0.0).upper for item in self.directions)
            # Renyi divergences bound delta(0) loosely: the loss bounds it as well, by tanh(e / 2).
            # A logarithm would lose digits of a small share.
            share = min(math.exp(log_delta), math.tanh(single / 2))
            return (single + self.mean_runs * share) * (1 + 16 * UNIT)
        return (2 + self.shape) * single * (1 + 16 * UNIT)

    def _single(self, c: float) -> float:
        """Return log M(c) of a single run, in the worse direction, rounded up."""
        found = []
        for direction in self.directions:
            # A run that is a selection itself has a bound, whose derivatives are not needed.
            runs = [item for item in direction.parts if isinstance(item[0], RepeatedSelection)]
            total = Total(tuple(item for item in direction.parts if item not in runs))
            try:
                value = float(total.moments([c])[0, 0])
            except OutOfReach:
                value = float(total.log_mgf_bounds(np.array([c]))[0])
            value += sum(times * loss.log_mgf_bound(max(c, _LEAST_TILT)) for loss, times in runs)
            found.append(value + 32 * UNIT * abs(value))
        return max(found)

    @cached_property
    def _known(self) -> dict[float, float]:
        """The bounds that were computed: of selections of selections, each is asked often."""
        return {}

    def log_mgf_bound(self, c: float) -> float:
        """Return the theorem's bound on log M(c)."""
        if c not in self._known:
            self._known[c] = self._log_mgf_bound(c)
        return self._known[c]

    def _log_mgf_bound(self, c: float) -> float:
        if math.isinf(self.shape):
            # The theorem's epsilon has exp(epsilon) = 1 + 1 / (order - 1).
            epsilon = math.log1p(1 / c)
            log_delta = max(renyi.log_delta_bounds(item, epsilon).upper for item in self.directions)
            extra = c * self.mean_runs * math.exp(log_delta)
        else:
            extra = c * self._overhead
        bound = self._single(c) + extra + math.log(self.mean_runs) * (1 + UNIT)
        if self.mean_runs >= 1:
            return bound
        # Without a run nothing is released, in either world: its probability adds to M(c).
        return float(np.logaddexp(bound, -self.mean_runs)) + 8 * UNIT

    @cached_property
    def _log_inverse_gamma(self) -> float:
        return log_inverse_gamma(self.mean_runs, self.shape)

    @cached_property
    def _overhead(self) -> float:
        """(1 + eta) times the smallest of (1 - 1/b) D_b + log(1/gamma) / b over orders b."""

        def cost(x: float) -> float:
            c = math.exp(x)
            return (self._single(c) + self._log_inverse_gamma) / (1 + c)

        best = minimum(cost, math.log(_SMALLEST), math.log(_LARGEST), sections=_SECTIONS)
        return (1 + self.shape) * cost(best) * (1 + 16 * UNIT)

    def moments(self, c: ArrayLike) -> Reals:
        """Return the bound on log M, with differences instead of its derivatives."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        rows: list[list[Any]] = []
        for x in np.maximum(c, _LEAST_TILT):
            step = 1e-3 * float(x)
            low, here, high = (self.log_mgf_bound(float(x) + d) for d in (-step, 0.0, step))
            curvature = max((high - 2 * here + low) / step**2, 1e-9)
            rows.append([here, (high - low) / (2 * step), curvature])
        return np.array(rows)


@Row(
    events.RepeatAndSelectDpEvent(events.GaussianDpEvent(1.0), 3.0, 1.0),
    "Papernot and Steinke 2022, Theorems 2 and 6; a law from [the profile of a run]"
    "(#the-best-of-many-runs)",
)
def _repeat_and_select(event: events.RepeatAndSelectDpEvent, relation: str) -> Pairs:
    single = decompose(event.event, relation)
    if not single.private:
        raise refuse(event, relation, "What is repeated is not private.")
    mean = _validate.positive(mean=event.mean)
    shape = event.shape if event.shape == math.inf else _validate.finite(shape=event.shape)
    normal(shape=shape)
    if mean > _MOST_RUNS or _MOST_RUNS < shape < math.inf:
        raise ValueError(
            f"mean and shape must be at most {_MOST_RUNS:g}, or shape infinite, got {mean!r} and "
            f"{shape!r}."
        )
    pairs = [
        RepeatedSelection(single.directions, mean, shape, forward)
        for forward in (True, len(single.directions) == 1)
    ]
    if all(item.finite[0] == 0 for item in single.directions):
        return pairs[0], pairs[1]
    # A run that may fail has no finite Renyi divergences, but its profile may be known.
    remove, add = (pair.law for pair in pairs)
    if remove is None or add is None:
        raise refuse(event, relation, "What is repeated has infinite Renyi divergences.")
    return remove, add
