"""What does a contour invert? Positive measures on privacy losses, known by their transforms.

A :class:`Measure` has a transform, the integral of exp(z l). Along a vertical line Re z = c it is a
:class:`Line`. :class:`Product` is the measure of a sum of independent losses, of which each may be
truncated. The part of a law in which some loss is large is a measure as well
(:mod:`dpcal.accountants.inversion.layers.jumps`).

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> log_mass, mean, variance = Product([(Gaussian(2.0), 8)]).cumulants([1.0])[0]
>>> print(log_mass, mean, variance)
2.0 3.0 2.0
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.inversion import transform
from dpcal.accountants.inversion.layers import truncation
from dpcal.accountants.inversion.layers.quadrature import Part, Tilt, tilted
from dpcal.accountants.inversion.layers.truncation import Truncation
from dpcal.accountants.inversion.saddle import log_chernoff
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.rounding import UNIT

__all__ = [
    "Line",
    "Measure",
    "Piece",
    "Pieces",
    "Product",
    "ProductLine",
    "Rows",
    "extra_sizes",
    "rows_of",
]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]
# Nodes of a contour at which errors are computed; between them they are bounded.
_ERROR_NODES = 12

Piece = PrivacyLoss | Part
Pieces = Sequence[tuple[Piece, int]]
Rows = Callable[[Reals | Sequence[float]], Reals]


class Line(ABC):
    """The transform of a measure along Re z = c, relative to its value at c."""

    log_mass: float
    log_mass_rounding: float = 0.0
    """Absolute error of ``log_mass`` in units, beyond that of a sum of accurate terms."""
    mean: float
    mean_rounding: float
    """Absolute error of ``mean`` in units, beyond that of rounding it."""
    variance: float
    points: int

    @abstractmethod
    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return the log of transform(c + i k step) exp(-i k step mean) / transform(c)."""

    @abstractmethod
    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return upper bounds on log abs(transform(c + i s) / transform(c)) over [t, ratio t]."""

    @abstractmethod
    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Return two rounding errors in units: one relative to each value, one absolute."""


class Measure(ABC):
    """A positive measure on the line of privacy losses, of total mass at most 1."""

    near: float | None = None
    """A tilt > 0 near which its saddle is sought, then the last saddle; None for no guess."""

    @abstractmethod
    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilts exp(c l); shape (len(c), 3)."""

    @abstractmethod
    def line(self, c: float) -> Line:
        """Return the transform along Re z = c."""

    @property
    def steep(self) -> float:
        """Tilt, about, up to which rare large losses do not count; 0 where it is not known."""
        return 0.0

    def log_chernoff(self, c: Reals) -> Reals:
        """Return B(c), rounded up, at each c, with log delta(epsilon) <= B(c) - c epsilon.

        For a law and -1 <= c <= 0, B(c) - c epsilon bounds log(1 - delta(epsilon)).
        """
        log_mass, sizes = self.log_masses(c)
        return np.asarray(log_mass + log_chernoff(c) + UNIT * 32 * (sizes + 4))

    @abstractmethod
    def log_masses(self, c: Reals) -> tuple[Reals, Reals]:
        """Return log masses at each c, and the sizes of the terms that add up to them.

        The terms may cancel, and a log mass is off by at most 32 units of their size plus 4.
        """

    @cached_property
    def at_zero(self) -> tuple[float, float]:
        """Mean and variance of the measure, as a law."""
        _, mean, variance = self.cumulants([0.0])[0]
        return float(mean), float(variance)


class _SomeNodes:
    """Nodes of a contour at which errors are computed: errors that rise in t, but fall over t^2.

    Parameters
    ----------
    step, nodes
        Distance of the nodes and their number.
    """

    def __init__(self, step: float, nodes: int) -> None:
        known = np.unique(np.geomspace(1, max(nodes - 1, 1), _ERROR_NODES).astype(int))
        self.t = step * known
        self._after = np.searchsorted(known, np.arange(nodes))
        self._before = np.maximum(self._after - 1, 0)
        self._growth = (np.arange(nodes) / known[self._before]) ** 2

    def above(self, values: Reals) -> Reals:
        """Return bounds at all nodes on a rising quantity, from its values at the chosen nodes."""
        return np.asarray(values[self._after])

    def between(self, values: Reals) -> Reals:
        """Return bounds at all nodes on a quantity that rises in t, but falls over t^2."""
        return np.asarray(np.minimum(values[self._after], values[self._before] * self._growth))


class ProductLine(Line):
    """A product of tilted transforms, each to its power."""

    def __init__(
        self, tilts: list[tuple[Tilt, int]], cumulants: Reals, log_masses: list[float]
    ) -> None:
        self.tilts, self.log_masses = tilts, log_masses
        self.log_mass, self.mean, self.variance = (float(value) for value in cumulants)
        self.points = sum(tilt.points for tilt, _ in tilts)
        # Each part is centered on its own mean; the phase makes up for the rounding of the total
        # mean.
        self.offset = sum(times * tilt.mean for tilt, times in tilts) - self.mean
        self.mean_rounding = sum(times * tilt.mean_rounding for tilt, times in tilts)
        # Rounding is that of a sum of weights, or less near mass 1.
        self.log_mass_rounding = sum(
            4 * times * tilt.amplification * min(abs(size), 1.0)
            for (tilt, times), size in zip(tilts, log_masses, strict=True)
        )
        self._rounding: Reals | float = 0.0

    def log_ratio(self, step: float, nodes: int) -> Complexes:
        """Return the sum of the parts' logarithms."""
        total = 1j * self.offset * step * np.arange(nodes)
        self._rounding = 8.0
        for _, times, part, error in self.factors(step, nodes):
            total = total + times * part
            self._rounding = self._rounding + error
        return np.asarray(total)

    def factors(self, step: float, nodes: int) -> Iterator[tuple[Tilt, int, Complexes, Reals]]:
        """Yield each tilt, its power, its logarithm, and the relative rounding of the power."""
        some = _SomeNodes(step, nodes)
        for tilt, times in self.tilts:
            part = tilt.log_ratio(step, nodes)
            plain, relative, cancelled = tilt.sum_rounding(some.t)
            error = some.between(plain) + some.between(relative) * np.minimum(np.abs(part), 2.0)
            error += some.above(cancelled)
            # The error is absolute: it is relatively larger where the transform is small.
            yield tilt, times, part, times * (error * np.exp(np.minimum(-part.real, 600.0)))

    def log_decay(self, t: Reals, ratio: float) -> Reals:
        """Return the sum of the parts' bounds."""
        total = np.zeros_like(t)
        for tilt, times in self.tilts:
            total += times * np.minimum(tilt.log_decay(t, ratio), 0.0)
        return total

    def rounding(self, step: float, log_ratio: Complexes) -> tuple[Reals, float]:
        """Return rounding errors: each part's logarithm is a rounded sum, taken to its power."""
        return np.asarray(self._rounding + 0 * log_ratio.real), 0.0


def _extra_rounding(pieces: Pieces, c: float) -> float:
    """Return the rounding of truncated pieces' log masses at c, in units, beyond that of laws."""
    return sum(times * piece.mass_rounding(c) for piece, times in pieces if isinstance(piece, Part))


def extra_sizes(pieces: Pieces, c: Reals) -> Reals | float:
    """Return the rounding of truncated pieces' log masses at each c, in 32 units."""
    cut = [(piece, times) for piece, times in pieces if isinstance(piece, Part)]
    return np.array([_extra_rounding(cut, float(at)) / 32 for at in c]) if cut else 0.0


def rows_of(pieces: Sequence[Piece]) -> Rows:
    """Return a function from tilts c to log masses and moments, shape (len(pieces), len(c), 4).

    Pieces of one kind are summed in one compiled call.
    """
    cut = [place for place, piece in enumerate(pieces) if isinstance(piece, Truncation)]
    whole = [place for place in range(len(pieces)) if place not in set(cut)]

    def rows(c: Reals | Sequence[float]) -> Reals:
        c = np.asarray(c, dtype=float)
        found = np.empty((len(pieces), len(c), 4))
        if cut:
            found[cut] = truncation.cumulants_of([pieces[place] for place in cut], c)  # type: ignore[misc]
        if whole:
            found[whole] = transform.rows_of([pieces[place] for place in whole], c)  # type: ignore[misc]
        return found

    return rows


class Product(Measure):
    """The measure of a sum of independent losses, of which each is a piece of a law.

    Parameters
    ----------
    pieces
        Losses and parts of losses, with the number of times that each adds up.
    """

    def __init__(self, pieces: Pieces) -> None:
        self.pieces = pieces

    @cached_property
    def rows(self) -> Rows:
        """Log masses and moments of the tilted pieces."""
        return rows_of([piece for piece, _ in self.pieces])

    @cached_property
    def steep(self) -> float:
        """The smallest such tilt of the pieces."""
        known = (Truncation, SampledGaussian)
        steeps = (piece.steep if isinstance(piece, known) else 0.0 for piece, _ in self.pieces)
        return min(steeps, default=0.0)

    @cached_property
    def times(self) -> Reals:
        """How often each piece adds up; shape (len(pieces), 1)."""
        return np.array([float(times) for _, times in self.pieces])[:, None]

    def cumulants(self, c: Reals | Sequence[float]) -> Reals:
        """Return log mass, mean and variance of the tilted sums."""
        return np.asarray((self.times[:, :, None] * self.rows(c)[:, :, :3]).sum(axis=0))

    def line(self, c: float) -> ProductLine:
        """Return the product of the tilted characteristic functions."""
        tilts = [(tilted(piece, c), times) for piece, times in self.pieces]
        rows = self.rows([c])[:, 0]
        total = (self.times * rows[:, :3]).sum(axis=0)
        line = ProductLine(tilts, total, [float(row[0]) for row in rows])
        line.log_mass_rounding += _extra_rounding(self.pieces, c)
        return line

    def log_masses(self, c: Reals) -> tuple[Reals, Reals]:
        """Return log masses, and the sizes of the pieces' terms."""
        terms = self.times * self.rows(c)[:, :, 0]
        return terms.sum(axis=0), np.abs(terms).sum(axis=0) + extra_sizes(self.pieces, c)
