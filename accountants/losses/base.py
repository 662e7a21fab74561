r"""The law of the privacy loss: moments, transforms and points of quadratures.

For a dominating pair (P, Q) of a mechanism let L = log dP/dQ under P and

    M(z) = E_P[exp(z L)].

A :class:`PrivacyLoss` knows log M on the strip where it converges, the cumulants of the tilted
laws ``exp(c L) P / M(c)``, and its law as points with masses, on the real line and on a line on
which each factor exp(i t l) shrinks. Everything an accountant computes is read off these.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> loss = Gaussian(noise_multiplier=2.0)                # L is normal, with variance 1 / sigma^2
>>> loss.cumulants([0.0])[0, 1:3].tolist()
[0.125, 0.25]
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext.question import Law, moments
from dpcal.accountants.rounding import UNIT

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Log mass, in nats, of points that fill up a register: finite, so that its multiples are.
_NO_MASS = -1e300
_LANES = 8
_FIRST, _STEEPEST = 8.0, 1e4


class OutOfReach(Exception):  # noqa: N818 -- internal signal, never leaves the package
    """A tilt so extreme that no quadrature of affordable size covers it."""


@dataclass(frozen=True)
class Points:
    """The law of a finite loss as points with masses, for tilts up to a highest one.

    Attributes
    ----------
    values
        The losses l, real or on a line with Im l >= 0.
    log_masses
        Log of the masses under P. Both may be wider than doubles.
    value_sizes, mass_sizes
        Sizes of the terms of each value and logarithm: the unit of its rounding; a logarithm's own
        size is added.
    merged, reach
        Points that stand for a mass around them, and how far it reaches.
    latest
        The last time at which the points have the law's characteristic function.
    normal
        A variance v and a time: up to it, tilted characteristic functions are at most exp(-v t^2 /
        2).
    highest
        A tilt that the points serve in addition to the given one.
    """

    values: NDArray[Any]
    log_masses: NDArray[Any]
    value_sizes: Reals
    mass_sizes: Reals
    merged: tuple[int, ...] = ()
    reach: float = 0.0
    latest: float = math.inf
    normal: tuple[float, float] = (0.0, 0.0)
    highest: float = 0.0

    def real_rows(self, surplus: float) -> Reals:
        """Losses, masses, their logs, and two errors in units, as ``law.h`` takes them.

        The second-order term of P (exp(c l) - 1 - c l) doubles the relative error of a loss.
        """
        values, logs = self.values.real + surplus, np.maximum(self.log_masses.real, _NO_MASS)
        sizes, moved = np.abs(values), self.value_sizes + abs(surplus)
        doubled = np.divide(2 * moved, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        masses = np.where(logs > -700.0, np.exp(np.maximum(logs, -700.0)), 0.0)
        own = self.mass_sizes + np.abs(logs) * float(np.finfo(logs.dtype).eps) / UNIT
        rows = [values, masses, logs, 11 + own + doubled, moved + 0.5 * sizes]
        return _padded(rows, values, log=2)

    def line_rows(self) -> Reals:
        """Losses and log masses, by real and imaginary parts, and their errors in units."""
        values, logs = self.values.astype(complex), self.log_masses.astype(complex)
        own = self.mass_sizes + np.abs(logs)
        # Rounding must not turn a point into one that grows with t.
        height, sizes = np.maximum(values.imag, 0.0), np.maximum(logs.real, _NO_MASS)
        rows = [values.real, height, sizes, logs.imag, self.value_sizes, own]
        return _padded(rows, values.real, log=2)


def _padded(rows: list[Reals], order: Reals, *, log: int) -> Reals:
    """Return sorted rows, filled up with points without mass to whole registers."""
    found = np.zeros((len(rows), -(-max(len(order), 1) // _LANES) * _LANES))
    found[log, len(order) :] = _NO_MASS
    places = np.argsort(order, kind="stable")
    for filled, row in zip(found, rows, strict=True):
        filled[: len(order)] = row[places]
    return found


class Served(NamedTuple):
    """Points of a loss as rows, for tilts up to some highest one."""

    real: Reals
    line: Reals
    merged: list[tuple[float, float]]
    reach: float
    latest: float
    normal: tuple[float, float]
    highest: float
    gone: tuple[float, float, float]


class PrivacyLoss(ABC):
    """One direction of a dominating pair."""

    below: PrivacyLoss | None = None
    """A lower bound: a loss that the true loss dominates; None if this loss is not rounded."""
    has_law: bool = True
    """Whether the law of the loss is known; for some mechanisms only Renyi bounds are known."""
    renyi_is_tighter: bool = False
    """Whether :meth:`moments` bound the mechanism more closely than its dominating pair."""

    @property
    def upper(self) -> float:
        """Upper bound on the loss: its supremum, or infinity where none is known."""
        return math.inf

    @property
    def log_unaffected(self) -> float:
        """Log of a probability with which the output does not depend on the record.

        The total variation distance of the pair is at most one minus that probability.
        """
        return -math.inf

    has_rare_losses: bool = False
    """Whether rare large losses can be cut off, as of Gaussian noise on a sample."""
    gone: tuple[float, float, float] = (0.0, 0.0, 0.0)
    """Masses of P and Q that are cut off, and their relative error in units."""

    def cut_at(self, level: float, share: float, log_rest: float) -> PrivacyLoss:
        """Return the law below a smooth cut at a loss, or where the rest is improbable.

        Parameters
        ----------
        level
            The loss > 0.
        share
            Width of the cut, in relative size of the loss.
        log_rest
            Log of a chance of losses beyond it that is negligible.
        """
        return self

    def log_beyond(self, tilts: Reals) -> Reals:
        """Return upper bounds on the log of the tilted mass that is cut off, at tilts < -1."""
        return np.full(len(tilts), -math.inf)

    @cached_property
    def _kept_points(self) -> dict[str, tuple[float, Reals, float]]:
        return {}

    def _rows_up_to(self, asked: float) -> tuple[float, Reals, float]:
        """Return a tilt, points on the real line as rows, and the tilt that these serve.

        The last ones are kept, for sums and for contours.

        Raises
        ------
        OutOfReach
            If no points serve the tilt.
        """
        kept = self._kept_points.get("last")
        if kept is None or kept[0] != asked:
            if (points := self.points(asked)) is None:
                raise OutOfReach
            kept = asked, points.real_rows(self.surplus), max(asked, points.highest)
            self._kept_points["last"] = kept
        return kept

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return log M(c) and three moments of the tilted law, for each real c > -1.

        The columns of the result, of shape (len(c), 4), are log M, mean, variance and fourth
        central moment. They are sums over points unless a family has a closed form.

        Raises
        ------
        OutOfReach
            If no points serve a tilt.
        """
        c, surplus = np.atleast_1d(np.asarray(c, dtype=float)), self.surplus
        kept = self._kept_points.get("last")
        if kept is None or kept[0] < c.max():
            kept = self._rows_up_to(2.0 ** math.ceil(math.log2(max(_FIRST, float(c.max())))))
        found: Reals = np.asarray(moments(kept[1], c))
        found[:, 0] -= c * surplus
        found[:, 1] -= surplus
        # A tilted law is never a single point, but its variance may be below the range of a double.
        found[:, 2:] = np.maximum(found[:, 2:], np.finfo(np.float64).tiny)
        return found

    @abstractmethod
    def log_mgf_bound(self, c: float) -> float:
        """Return a closed-form upper bound on log M(c), c > 0, valid however extreme c is."""

    def log_delta(self, epsilon: float) -> tuple[float, float] | None:
        """Return log delta(epsilon) of one use and its relative error; None if not closed."""
        return None

    def points(self, highest: float, *, shifted: bool = False) -> Points | None:
        """Return points of the finite loss for tilts -1 < c <= highest; None if there are none.

        Points for integrals over the real line: they have M(c), and serve only t = 0. Shifted
        points have M(c + i t) for all t >= 0: they lie on a line on which each factor exp(i t l), t
        > 0, shrinks. Atoms lie on the real line in either case.
        """
        return None

    quick: bool = True
    """Whether one contour is asked first; for some losses an exact sum has more digits."""
    surplus: float = 0.0
    """Log of the mass of Q, which is not 0 where P, or Q, has outcomes of its own."""

    @property
    def steep(self) -> float:
        """A tilt, about, from which M is large: a search for a saddle begins below it."""
        c = 1.0
        while c < _STEEPEST and self.log_mgf_bound(c) < 1.0:
            c *= 2.0
        return c

    def served(self, highest: float) -> Served | None:
        """Return the points for tilts up to a highest one as rows; None if there are none."""
        with suppress(OutOfReach):
            _, real, most = self._rows_up_to(highest)
            if (line := self.points(highest, shifted=True)) is None:
                return None
            places = list(line.merged)
            values, logs = line.values.real[places], line.log_masses.real[places]
            total = float(np.logaddexp.reduce(logs)) if places else -math.inf
            # Merged points have all of their mass at each end: an upper bound on their effect.
            ends = [values.min(), values.max()] if places else [0.0, 0.0]
            return Served(
                real,
                line.line_rows(),
                [(float(end), total) for end in ends],
                line.reach if places else 0.0,
                line.latest,
                line.normal,
                most,
                self.gone,
            )
        return None

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copies and pickles of the loss: no compiled form."""
        return {
            name: value
            for name, value in self.__dict__.items()
            if name not in ("compiled", "pointed", "_kept_points")
        }

    @cached_property
    def pointed(self) -> Law | None:
        """The same by its points, which may be many; None if there are none."""
        return Law.points(self, _FIRST)

    @property
    def compiled(self) -> Law | None:
        """The loss as one compiled call takes it; None if it has no such form."""
        return self.pointed

    @property
    def law(self) -> PrivacyLoss | None:
        """A loss with a law that dominates the mechanism: itself, if its law is known; or None."""
        return self if self.has_law else None

    @property
    def log_finite(self) -> float:
        """Log of the probability that the loss is finite, under P."""
        return 0.0

    @property
    def when_finite(self) -> PrivacyLoss:
        """The loss given that it is finite."""
        return self

    @property
    def attained(self) -> PrivacyLoss:
        """The loss of one mechanism, where this loss dominates a class of them; else this loss."""
        return self

    @property
    def opposite(self) -> PrivacyLoss | None:
        """The loss of the other direction, its negative under Q, if E_Q exp(loss) = 1; or None."""
        return None

    def moments(self, c: ArrayLike) -> Reals:
        """Return an upper bound on log M at each real c > 0, and two derivatives of it.

        For most losses these are the cumulants. They are smaller if a theorem bounds the Renyi
        divergences more closely than the dominating pair does.
        """
        return self.cumulants(c)[:, :3]

    @staticmethod
    def by_differences(bound: Callable[[Reals], Reals], c: Reals, step: Reals) -> Reals:
        """Return a bound on log M at each c, and differences over steps as its two derivatives.

        Derivatives only lead a search to the best tilt: the bound holds wherever it ends.
        """
        below, here, above = (bound(x) for x in (c - step, c, c + step))
        curvature = np.maximum((above - 2 * here + below) / step**2, 1e-12)
        return np.column_stack([here, (above - below) / (2 * step), curvature])


class _NoLoss(PrivacyLoss):
    """The loss 0: the output does not depend on the data. No composition holds this loss."""

    upper = 0.0

    def cumulants(self, c: ArrayLike) -> Reals:
        """Return zeros."""
        return np.zeros((np.size(c), 4))

    def log_mgf_bound(self, c: float) -> float:
        """Return 0."""
        return 0.0


NO_LOSS = _NoLoss()

Pairs = tuple[PrivacyLoss, PrivacyLoss]
"""Losses of one mechanism when a record is removed, and when one is added."""
Parts = tuple[tuple[PrivacyLoss, int], ...]
