"""The law of a loss below a smooth cut, where losses of a normal tail are rare and large.

A :class:`Cut` splits the law of a loss into two positive measures: for a point x of the noise, in
its standard deviations, the share Phi((k - x) / w) lies below the cut at k, of width w. The masses
beyond are normal probabilities, as a smooth cut of a normal law is a sharp one of a wider law.

>>> from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
>>> piece = Cut(SampledGaussian(1e-6, 1.0, "remove"), position=6.0, share=0.1)
>>> print(f"{piece.level:.4f} {piece.width:.4f} {piece.gone[1]:.4e}")
0.0002 0.1000 1.1846e-09
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcal._internal.lazy import special
from dpcal.accountants.losses.base import OutOfReach, Points, PrivacyLoss, Reals
from dpcal.accountants.losses.lattice import LOG_TOLERANCE
from dpcal.accountants.rounding import UNIT

if TYPE_CHECKING:
    from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures

# Most width of a cut: in standard deviations, and over distances in which its law changes.
_DEVIATIONS, _DENSITIES = 0.4, 0.7
# Distance from a cut, in widths, from which a point lies below it up to 1e-26.
_WHOLE = 10.75
# Distances of the shifted line and of the rule's strip, in widths; shares grow by exp(SHIFT^2 / 2).
SHIFT, FURTHER = 3.0, 4.85
# Distances beyond the cut at which a law may end, in widths: 1e-19 of a point is left there.
_ENDS = np.append(0.0, np.linspace(9.0, 80.0, 143))
# Edges of the cells for tilted masses, in widths from the cut; below the first, 1e-350 is left.
_EDGES = np.append(np.linspace(-40.0, 9.0, 197), math.inf)


@dataclass(frozen=True)
class Cut(PrivacyLoss):
    """The part of a law below a smooth cut.

    Parameters
    ----------
    loss
        The whole loss.
    position
        Place k of the cut on the axis of the noise, in its standard deviations.
    share
        Width of the cut, in relative size of the loss.
    """

    loss: NormalTail
    position: float
    share: float

    @property
    def _tail(self) -> GaussianMixtures:
        found: GaussianMixtures = self.loss.mixture
        return found

    @cached_property
    def level(self) -> float:
        """The loss at the cut."""
        return float(self._tail.losses(np.array([self.position]))[0])

    @cached_property
    def width(self) -> float:
        """Width of the cut, in standard deviations."""
        width = min(_DEVIATIONS, self.share / self._tail.slope(self.position) * max(1, self.level))
        if self.level < 1.0:
            # For larger losses the loss grows linearly, and the density does not matter.
            width = min(width, _DENSITIES / max(self.position, 1.0))
        return width

    @property
    def log_unaffected(self) -> float:
        """Rounding of the whole loss."""
        return self.loss.log_unaffected

    def log_mgf_bound(self, c: float) -> float:
        """Return the bound of the whole loss."""
        return self.loss.log_mgf_bound(c)

    @property
    def steep(self) -> float:
        """Tilt, about, up to which the losses next to the cut do not count."""
        return max(self.loss.steep, 0.5 * self.position**2 / self.level)

    @cached_property
    def gone(self) -> tuple[float, float, float]:  # type: ignore[override]
        """Masses of P and Q beyond the cut, and their relative error in units."""
        wide = math.hypot(1.0, self.width)
        p, q = (
            float(side.weights @ special.ndtr((side.means - self.position) / wide))
            for side in self._tail.sides
        )
        lowest = float(self._tail.sides[1].means[0])
        missing = special.ndtr((self.loss.starts - self.position) / self.width)
        error = 32.0 + 8.0 * ((self.position - lowest) / wide) ** 2
        return p, q, error + float(missing) / max(min(p, q), 1e-300) / UNIT

    def _log_share(self, x: Any) -> Any:
        """Return the log of the share of each point, real or complex."""
        z = ((self.position - x) / self.width).astype(complex if np.iscomplexobj(x) else float)
        some = np.flatnonzero(z.real < _WHOLE)
        share = np.zeros(len(z), z.dtype)
        share[some] = special.log_ndtr(z[some])
        return share

    def end(self, highest: float) -> float:
        """Return where the law, tilted by up to ``highest``, is negligible.

        It ends there: the share leaves less than 1e-19 of each point beyond, which counts as rest,
        and is less than the rounding of its masses. A sharp end changes the sums on a line by no
        more than a term at the end, at all times.
        """
        ends = self.position + self.width * _ENDS
        sizes = (1 + highest) * self._tail.losses(ends) - 0.5 * ends**2
        sizes += self._tail.sides[1].log_weight(ends) + self._log_share(ends)
        small = np.flatnonzero(sizes < sizes[0] + LOG_TOLERANCE - 8.0)
        if not len(small):
            raise OutOfReach
        return float(ends[small[0]])

    def kept(self, points: Points, x: Any) -> Points:
        """Return the shares of points x of the noise that lie below the cut."""
        share = self._log_share(x)
        sizes = np.abs(share)
        # SciPy's shares are off by up to 24 units next to 1, elsewhere by 2 of the logs' sizes.
        errors = points.mass_sizes + 4.0 * sizes + np.where(sizes > 1e-10, 24.0, 0.0)
        return replace(points, log_masses=points.log_masses + share, mass_sizes=errors)

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return the points of the loss that lie below the cut."""
        return self.loss.below_cut(self, highest, SHIFT * self.width if shifted else 0.0)

    def log_beyond(self, tilts: Reals) -> Reals:
        """Return upper bounds on the log of J(a), the tilted mass beyond the cut, at a < -1.

        J(a) is the integral of Q w^(1 + a), w the likelihood ratio, times the share beyond the cut.
        In each cell of the axis the power is largest at the lower edge, and the share at the upper
        one. Masses below all cells are left out: at most 1e-349 of the whole tilted mass.
        """
        edges, below = self.position + self.width * _EDGES, self._tail.sides[1]
        means, logs = below.means[:, None], np.log(below.weights)[:, None]
        tails = special.log_ndtr(np.minimum(edges[1:] - means, means - edges[:-1]))
        terms = np.outer(1 + tilts, self._tail.losses(edges[:-1]))
        terms += np.logaddexp.reduce(logs + tails) + special.log_ndtr(_EDGES[1:])
        return np.asarray(np.logaddexp.reduce(terms, axis=1)) + 1e-9


class NormalTail(PrivacyLoss):
    """A loss with the large values of mixtures of Gaussians.

    ``mixture`` is the loss of these mixtures, and ``starts`` the place from which on it has them,
    on the axis of the noise.
    """

    mixture: Any
    starts: float = -math.inf

    @property
    def has_rare_losses(self) -> bool:  # type: ignore[override]
        """Whether the loss has no end."""
        return self.upper == math.inf

    @abstractmethod
    def place_of(self, level: float) -> float:
        """Return about where the loss is a number > 0, on the axis of the noise."""

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return the points of the mixtures."""
        found: Points = self.mixture.points(highest, shifted=shifted)
        return found

    def below_cut(self, cut: Cut, highest: float, height: float) -> Points:
        """Return points, on a line for a height > 0, that lie below a cut."""
        found: Points = self.mixture.below_cut(cut, highest, height)
        return found

    def cut_at(self, level: float, share: float, log_rest: float) -> PrivacyLoss:
        """Return the law below a cut."""
        if not self.has_rare_losses:
            return self
        wide = math.hypot(1.0, _DEVIATIONS)
        outside = max(
            mean - wide * special.ndtri_exp(min(log_rest - math.log(weight), -1e-3))
            for side in self.mixture.sides
            for mean, weight in zip(side.means.tolist(), side.weights.tolist(), strict=True)
        )
        return Cut(self, min(self.place_of(level), float(outside)), share)
