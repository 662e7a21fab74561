r"""One contour for losses on a lattice: the transform is periodic, so one period is enough.

Let the composed loss have its values at l_j = O + j d. With g > 0 the distance from epsilon to the
next value,

    K(z) = exp(-z g) / (1 - exp(-z d)) - exp(-(z + 1) g) / (1 - exp(-(z + 1) d))

sums (1 - exp(-x)) exp(-z x) over the values x above epsilon, so that delta is the mean of
exp(-epsilon z) M(z) K(z) over one period of the line Re z = c. The rule of N equally spaced nodes
is *exactly* ``sum_m exp(c m N d) delta(epsilon + m N d)``: nothing is cut off, and the aliases are
those of :mod:`dpcal.accountants.inversion.contour`.

>>> from dpcal.accountants.losses.discrete import randomized_response
>>> from dpcal.accountants.inversion.transform import Total
>>> loss = randomized_response(noise_parameter=0.5, num_buckets=2)
>>> contour = LatticeContour(Total(((loss, 1_000_000),)), 0.002, 551_000.0)
>>> contour.nodes < 10_000, contour.log_bounds(551_000.0).method
(True, 'lattice')
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.inversion.contour import Contour
from dpcal.accountants.inversion.limits import LATTICE
from dpcal.accountants.inversion.transform import Measure
from dpcal.accountants.losses.base import Lattice, OutOfReach

__all__ = ["LatticeContour"]

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

# Log of the ratio of neighboring times between which the decay is bounded.
_LOG_RATIO = math.log(1.12)
# Nodes are left out if the log of a bound on their sum, relative to the real node, is below this:
# they add about a millionth of a unit.
_NOTHING = -50.0


class LatticeContour(Contour):
    """Nodes on one period of a line, for a measure on a lattice.

    The parameters are those of :class:`Contour`; nodes are neither limited by work nor smoothed.

    Raises
    ------
    OutOfReach
        If the measure is on no lattice, the period takes more nodes than are affordable, or K(c)
        leaves the range of a double.
    """

    method = "lattice"
    _lattice: Lattice

    def _choose_step(self, measure: Measure, epsilon: float) -> None:
        """Choose the largest step whose aliases are below the tolerance, by Chernoff bounds."""
        if measure.lattice is None:
            raise OutOfReach
        self._lattice = measure.lattice
        super()._choose_step(measure, epsilon)

    def _choose_nodes(self, work: float, smooth: bool) -> None:
        """Choose an odd number of nodes for the period, and leave out negligible ones."""
        d = self._lattice.spacing
        half = math.ceil(math.pi / (self.step * d))
        self.step = 2 * math.pi / ((2 * half + 1) * d)
        self.nodes, self._remainder = half + 1, -math.inf
        pieces = math.ceil(math.log(half) / _LOG_RATIO)
        if pieces:
            # Every |K| on the line is at most K(c); the last piece ends within the period.
            ratio = float(half ** (1 / pieces))
            grid = self.step * ratio ** np.arange(float(pieces))
            decay = self._log_decay(grid, ratio) + np.log(grid * (ratio - 1) / self.step + 1)
            rest = np.logaddexp.accumulate(decay[::-1])[::-1]
            small = np.flatnonzero(rest <= _NOTHING)
            if len(small):
                self.nodes = int(grid[small[0]] / self.step) + 2
                self._remainder = float(rest[small[0]])
        if self.nodes > LATTICE.nodes or self.work > LATTICE.work:
            raise OutOfReach

    def _gap(self, epsilon: float) -> float:
        """Return the distance in (0, d] from epsilon to the next value of the lattice."""
        d = self._lattice.spacing
        return d - math.fmod(math.fmod(epsilon - self._lattice.offset, d) + d, d)

    def _kernel(self, z: Complexes, epsilon: float) -> tuple[Complexes, Complexes]:
        """Return the two terms of K, times d."""
        d, g = self._lattice.spacing, self._gap(epsilon)
        first = d * np.exp(-z * g) / -np.expm1(-z * d)
        second = d * np.exp(-(z + 1) * g) / -np.expm1(-(z + 1) * d)
        return np.asarray(first), np.asarray(second)

    def _kernel_at_c(self, epsilon: float) -> float:
        """Return the absolute value of d K(c), free of cancellation."""
        with np.errstate(all="ignore"):
            first, second = self._kernel(np.array([self.c + 0j]), epsilon)
        value = abs(float((first - second).real[0]))
        if not 0 < value < math.inf:
            raise OutOfReach
        return value

    def _log_peaks(self, epsilons: Reals) -> Reals:
        """Return the log of the integrand at the real node, at each epsilon."""
        kernels = [math.log(self._kernel_at_c(float(epsilon))) for epsilon in epsilons]
        return np.asarray(self.log_mgf - self.c * epsilons + np.array(kernels))

    def _integrand(self, epsilon: float) -> Complexes:
        return self._integrands(epsilon)[0]

    def _integrands(self, epsilon: float) -> tuple[Complexes, Complexes]:
        """Return the normalised integrand at the nodes, and minus its derivative in epsilon.

        The derivative of 1 - exp(epsilon - l) in epsilon is -exp(epsilon - l), at each value l: the
        second term of K.
        """
        self._kernel_at_c(epsilon)
        t, values, z, _ = self._nodes
        phase = np.exp(values + 1j * t * (self._mean - epsilon))
        first, second = self._kernel(z, epsilon)
        scale = (first - second)[0].real
        integrand, part = phase * (first - second) / scale, phase * second / scale
        integrand[0], part[0] = 0.5, 0.5 * part[0]
        return integrand, part

    def _poles(self, z: Any) -> Complexes:
        """Return ones: K stands for the poles, and depends on epsilon."""
        return np.ones(len(z), dtype=complex)

    def _sums(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return normalised sums over the nodes, and their rounding in units."""
        _, values, z, rounding = self._nodes
        totals, rounded = [], []
        for epsilon in epsilons.tolist():
            totals.append(float(self._integrand(epsilon).real.sum()))
            first, second = self._kernel(z, epsilon)
            kernel = (np.abs(first) + np.abs(second)) / self._kernel_at_c(epsilon)
            # The rounding of the lattice's values changes the phases and the gap.
            reach = abs(self._mean) + abs(self._lattice.offset) + self._lattice.spacing
            reach += abs(epsilon)
            phase = 64 + (np.abs(z) + 1) * (4 * reach + self._mean_rounding)
            rounded.append(float((kernel * (rounding + np.exp(values.real) * phase)).sum()))
        return np.array(totals), np.array(rounded)
