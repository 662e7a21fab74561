"""One of several mechanisms, chosen at random, where no record influences the choice.

An output that names the choice is at least as informative as one that does not. By joint convexity
of the hockey-stick divergence, the pair of outputs with the choice dominates the pair of mixtures.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> rare = SampledGaussian(0.01, 1.0, "remove")
>>> often = SampledGaussian(0.1, 1.0, "remove")
>>> loss = RandomChoice(((0.75, rare), (0.25, often)))
>>> log_delta, _ = loss.log_delta(0.0)
>>> print(f"{math.exp(log_delta) / math.exp(rare.log_delta(0.0)[0]):.6f}")       # 0.75 + 0.25 * 10
3.250000
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcal.accountants.losses.base import Points, PrivacyLoss, Reals
from dpcal.accountants.rounding import UNIT


@dataclass(frozen=True)
class RandomChoice(PrivacyLoss):
    """A privacy loss drawn from several laws, each with a probability.

    Parameters
    ----------
    choices
        Probabilities > 0, which sum to 1, and losses that have points.
    below
        A loss that the true loss dominates, if this loss is rounded up; None otherwise.
    """

    choices: tuple[tuple[float, PrivacyLoss], ...]
    below: PrivacyLoss | None = None

    def __post_init__(self) -> None:
        total = math.fsum(weight for weight, _ in self.choices)
        if min((weight for weight, _ in self.choices), default=0.0) <= 0 or abs(total - 1) > 1e-9:
            raise ValueError(
                "choices must have probabilities > 0 that sum to 1, got "
                f"{[weight for weight, _ in self.choices]!r}."
            )

    @property
    def _log_weights(self) -> Reals:
        return np.log([weight for weight, _ in self.choices])

    @property
    def upper(self) -> float:
        """The largest supremum."""
        return max(loss.upper for _, loss in self.choices)

    def _log_mean(self, logs: list[float]) -> float:
        """Return the log of the mean over the choices of numbers with these logarithms."""
        return float(np.logaddexp.reduce(self._log_weights + logs))

    @property
    def log_unaffected(self) -> float:
        """Log of the mean of the choices' probabilities."""
        return self._log_mean([loss.log_unaffected for _, loss in self.choices])

    def log_mgf_bound(self, c: float) -> float:
        """Return the log of the mean of the choices' bounds."""
        return self._log_mean([loss.log_mgf_bound(c) for _, loss in self.choices])

    @property
    def has_rare_losses(self) -> bool:  # type: ignore[override]
        """Whether a choice has them."""
        return any(loss.has_rare_losses for _, loss in self.choices)

    @property
    def opposite(self) -> RandomChoice | None:
        """The choice of the other directions; None if one is not known."""
        found: Any = tuple((share, loss.opposite) for share, loss in self.choices)
        if any(loss is None for _, loss in found):
            return None
        return self if found == self.choices else RandomChoice(found)

    def cut_at(self, level: float, share: float, log_rest: float) -> PrivacyLoss:
        """Return the choice of the laws below cuts at one level."""
        cuts = ((chance, loss.cut_at(level, share, log_rest)) for chance, loss in self.choices)
        return RandomChoice(tuple(cuts))

    @property
    def gone(self) -> tuple[float, float, float]:  # type: ignore[override]
        """Masses that are cut off from the choices."""
        gone = np.array([loss.gone for _, loss in self.choices])
        p, q = np.exp(self._log_weights) @ gone[:, :2]
        return float(p), float(q), float(gone[:, 2].max()) + 8.0

    def log_beyond(self, tilts: Reals) -> Reals:
        """Return the bounds of all choices, each with its share."""
        logs = [loss.log_beyond(tilts) for _, loss in self.choices]
        return np.asarray(np.logaddexp.reduce(self._log_weights[:, None] + logs))

    def points(self, highest: float, *, shifted: bool = False) -> Points | None:
        """Return the points of all choices, each with its share; None if a choice has none."""
        found = [loss.points(highest, shifted=shifted) for _, loss in self.choices]
        rows: list[tuple[Any, ...]] = []
        merged: list[int] = []
        start, reach, latest = 0, 0.0, math.inf
        for share, item in zip(self._log_weights, found, strict=True):
            if item is None:
                return None
            logs, sizes = item.log_masses + share, item.mass_sizes + abs(share)
            rows.append((item.values, logs, item.value_sizes, sizes))
            merged += [start + at for at in item.merged]
            start += len(logs)
            reach, latest = max(reach, item.reach), min(latest, item.latest)
        values, logs, value_sizes, sizes = map(np.concatenate, zip(*rows, strict=True))
        return Points(values, logs, value_sizes, sizes, tuple(merged), reach, latest)

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return the log of the mean of the choices' deltas, where all are in closed form."""
        found = [loss.log_delta(epsilon) for _, loss in self.choices]
        known = [item for item in found if item is not None]
        if len(known) < len(found):
            return None
        logs = self._log_weights + [value for value, _ in known]
        total = float(np.logaddexp.reduce(logs))
        errors = [error for _, error in known]
        # If a delta is 0 to rounding, its error is unknown and a contour is needed.
        unknown = math.isinf(total) or math.isinf(max(errors))
        error = math.inf if unknown else float(np.exp(logs - total) @ np.expm1(errors))
        return total, error + 8 * UNIT * (1 + abs(total))
