"""Where do the searches for contours end? Their limits, one record for each search.

Work is counted in complex multiplications, of which 3e8 take about a second. No limit makes an
answer wrong: a search that ends early leaves wider bounds.

>>> CONTOUR.nodes, LAYERS.count
(524288, 24)
"""

from __future__ import annotations

from typing import Final

__all__ = ["CONTOUR", "EPSILON", "GUESS", "LAYERS", "SADDLE", "TIGHT"]

# Width of bounds on log delta at which an inversion is taken without a further try: six digits.
TIGHT = 1e-6


class ContourLimits:
    """Limits of a contour of a layer.

    Attributes
    ----------
    nodes, work
        Most nodes, and most work, about 0.1 s.
    check
        Times between two checks whether the remainder is negligible.
    error
        Relative error that aliases and the remainder may each have: about ten units, as large as
        the rounding of most answers.
    error_of_parts
        The same for a small part that is added to a much larger one.
    error_of_jumps
        Remainder at the last affordable node at which a contour is still taken: the transform of a
        density with jumps falls like a power of t.
    """

    nodes: Final = 1 << 19
    work: Final = 3e7
    check: Final = 32
    error: Final = 2e-15
    error_of_parts: Final = 1e-2
    error_of_jumps: Final = 1e-7


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
        Most quadrature points of all layers, of which only those of one are held for many losses.
    """

    count: Final = 24
    work: Final = 3e7
    share: Final = 0.1
    points: Final = 4e6


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

    first: Final = -30.0
    below: Final = 3.0
    count: Final = 4


class SaddleLimits:
    """Limits of the search for a saddle.

    Attributes
    ----------
    tilt
        The largest tilt: a loss of 1e-12 cannot be distinguished from 0.
    evaluations
        Most evaluations of a law.
    trials
        Tilts that are tried where the saddle is out of reach.
    """

    tilt: Final = 1e12
    evaluations: Final = 200
    trials: Final = 24


class EpsilonLimits:
    """Limits of the search for epsilon on contours.

    Attributes
    ----------
    inversions
        New contours around a root that lies far from the saddle of the last ones.
    halvings
        Halvings of an estimate at which delta is below its rounding, and of the last interval: the
        estimate of a bulk with rare large losses is up to a hundred times too large.
    newton, unsafe
        Steps of Newton's method on one inversion; after ``unsafe`` steps a bracket is halved.
    outward
        Largest distance from the root at which an end is tried, over its expected distance.
    layered
        Steps of a search with new layers at each.
    least, most
        Smallest and largest epsilon of a first guess.
    """

    inversions: Final = 3
    halvings: Final = 6
    newton: Final = 60
    unsafe: Final = 12
    outward: Final = 2.0**59
    layered: Final = 16
    least: Final = 1e-12
    most: Final = 1e6


CONTOUR = ContourLimits()
LAYERS = LayerLimits()
GUESS = GuessLimits()
SADDLE = SaddleLimits()
EPSILON = EpsilonLimits()
