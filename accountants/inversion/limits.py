"""Where do the searches for contours end? Their limits, one record for each search.

Work is counted in complex multiplications, of which 3e8 take about a second. No limit makes an
answer wrong: a search that ends early leaves wider bounds.

>>> CONTOUR.nodes, LAYERS.count
(524288, 24)
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["BRACKET", "CONTOUR", "EPSILON", "GUESS", "LATTICE", "LAYERS", "SADDLE", "TRIM"]


@dataclass(frozen=True)
class ContourLimits:
    """Limits of one contour.

    Attributes
    ----------
    nodes, work
        Most nodes, and most work, about 0.1 s.
    cheap
        Work for each distinct loss up to which no better way is sought: that would cost more.
    granted, granted_work
        Nodes that every composition may have, while they take no more than this work.
    smoothed
        Fewest nodes that a contour is smoothed for: with fewer, the smoothing is too large.
    check
        Times between two checks whether the remainder is negligible.
    points
        From as many quadrature points on, few tilts are tried: each costs more than it saves.
    error
        Relative error that aliases and the remainder may each have: about ten units, as large as
        the rounding of most answers.
    error_of_parts
        The same for a small part that is added to a much larger one.
    error_of_jumps
        Remainder at the last affordable node at which a contour is not smoothed. The transform of a
        density with jumps falls like a power of t, and smoothing would cost more than this.
    error_of_many
        Remainder that ends such a contour for many losses: further nodes gain less than rounding.
    """

    nodes: int = 1 << 19
    work: float = 3e7
    cheap: float = 4e6
    granted: int = 1 << 14
    granted_work: float = 1.5e8
    smoothed: int = 1 << 10
    check: int = 32
    points: int = 5_000
    error: float = 2e-15
    error_of_parts: float = 1e-2
    error_of_jumps: float = 1e-7
    error_of_many: float = 1e-11


@dataclass(frozen=True)
class LatticeLimits:
    """Limits of half a period on a lattice: longer ones are left to contours that are cut off."""

    nodes: int = 1 << 19
    work: float = 6e7


@dataclass(frozen=True)
class TrimLimits:
    """Limits of a contour without the rarest losses, which is meant to be cheap."""

    work: float = 4e6


@dataclass(frozen=True)
class LayerLimits:
    """Limits of a law in layers.

    Attributes
    ----------
    count
        Most layers.
    work, share
        Most work for each layer: ``work`` times the larger of the root of the number of losses and
        ``share`` of this number.
    points
        Quadrature points of all layers, which bound the memory to a few hundred megabytes.
    """

    count: int = 24
    work: float = 3e7
    share: float = 0.1
    points: float = 4e6


@dataclass(frozen=True)
class GuessLimits:
    """Guesses of log delta, for which rare losses are cut.

    Attributes
    ----------
    first
        The first guess, if no better one is known.
    below
        How far an estimate may lie below the guess that the cuts were chosen for.
    count
        Most guesses.
    """

    first: float = -30.0
    below: float = 3.0
    count: int = 4


@dataclass(frozen=True)
class SaddleLimits:
    """Limits of the search for a saddle.

    Attributes
    ----------
    tilt
        The largest tilt: a loss of 1e-12 cannot be distinguished from 0.
    evaluations, of_many
        Most evaluations of a law, and of a law of many losses. The latter takes more only where it
        changes from one peak to another, and no tilt is then useful.
    trials
        Tilts that are tried where the saddle is out of reach.
    """

    tilt: float = 1e12
    evaluations: int = 200
    of_many: int = 28
    trials: int = 24


@dataclass(frozen=True)
class EpsilonLimits:
    """Limits of the search for epsilon on contours.

    Attributes
    ----------
    inversions
        New contours around a root that lies far from the saddle of the last ones.
    newton, unsafe
        Steps of Newton's method on one inversion; after ``unsafe`` steps a bracket is halved.
    outward
        Largest distance from the root at which an end is tried, over its expected distance.
    layered
        Steps of a search with new layers at each.
    least, most
        Smallest and largest epsilon of a first guess.
    """

    inversions: int = 3
    newton: int = 60
    unsafe: int = 12
    outward: float = 2.0**59
    layered: int = 16
    least: float = 1e-12
    most: float = 1e6


@dataclass(frozen=True)
class BracketLimits:
    """Evaluations of a search that brackets epsilon.

    Attributes
    ----------
    cheap
        Most evaluations, if none takes a contour.
    costly
        Most evaluations, if some take contours.
    few, losses
        Most evaluations, if they take contours of more than ``losses`` distinct losses.
    """

    cheap: int = 120
    costly: int = 6
    few: int = 4
    losses: int = 8


CONTOUR = ContourLimits()
LATTICE = LatticeLimits()
TRIM = TrimLimits()
LAYERS = LayerLimits()
GUESS = GuessLimits()
SADDLE = SaddleLimits()
EPSILON = EpsilonLimits()
BRACKET = BracketLimits()
