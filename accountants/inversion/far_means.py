r"""What if a mixture of Gaussians has a far mean of tiny weight? delta without it, from both sides.

A component of weight w and mean a adds w exp(c (c + 1) a^2 / (2 sigma^2)) to the moment of order c,
however small w is against delta: no contour is short among such losses. But two pairs without far
means have the loss between them. Let the components of P beyond a mean have the total weight w.

* P is (1 - w) P' + w R. By joint convexity delta is at most w + (1 - w) delta of (P', Q): the far
  components count as a failure, whose loss is infinite. This pair dominates.
* Moved to the farthest mean that is kept, their outputs are smaller in the likelihood ratio's
  order, in which all tests are half-lines. This pair is dominated.

Both statements carry over to compositions, since domination does.

>>> from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
>>> loss = GaussianMixtures(((0.0, 0.75), (1.0, 0.25 - 2**-40), (9.0, 2**-40)), ((0.0, 1.0),), 2.0)
>>> below, above = without_far_means(Direction("remove", ((loss, 10),)), math.log(1e-9))
>>> [(mean, round(weight, 9)) for mean, weight in below.parts[0][0].numerator]
[(0.0, 0.75), (1.0, 0.25)]
>>> f"{above.parts[0][0].failure_probability:.3e}", above.parts[0][0].given.numerator[1][0]
('9.095e-13', 1.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures, Mixture
from dpcal.accountants.rounding import UNIT

__all__ = ["narrowed", "without_far_means"]

# Shares of delta that far means may have, in turn, until the bounds are close. The first leaves six
# digits of epsilon, the second three. A smaller first share would cost a search that seldom helps.
_SHARES = (1e-6, 1e-3)
# Relative width of bounds on epsilon, and width of those on log delta, that are close.
_CLOSE = 1e-4
# Relative rounding of a weight: a few sums and quotients of doubles.
_ROUNDING = 8 * UNIT


def without_far_means(direction: Direction, log_rest: float) -> tuple[Direction, Direction] | None:
    """Return a direction that is dominated and one that dominates, without far means; or None.

    Over all uses of mixtures far means may have a probability of exp(``log_rest``). It is None if
    no mean is so rare.
    """
    uses = sum(times for loss, times in direction.parts if isinstance(loss, GaussianMixtures))
    if uses == 0:
        return None
    most = math.exp(log_rest) / uses
    below, above = [], []
    for loss, times in direction.parts:
        low, high = _either_side(loss, most)
        below.append((low, times))
        above.append((high, times))
    if all(low is loss for (low, _), (loss, _) in zip(below, direction.parts, strict=True)):
        return None
    return Direction(direction.name, tuple(below)), Direction(direction.name, tuple(above))


def _either_side(loss: PrivacyLoss, most: float) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Return losses below and above the given one; the loss itself if no mean is so rare."""
    if not isinstance(loss, GaussianMixtures):
        return loss, loss
    ordered = sorted(loss.numerator)
    kept = len(ordered)
    while kept > 1 and math.fsum(weight for _, weight in ordered[kept - 1 :]) <= most:
        kept -= 1
    # Two means are kept at least: with the mean of Q alone, the loss would be 0.
    kept = max(kept, 2)
    if kept >= len(ordered):
        return loss, loss
    far = math.fsum(weight for _, weight in ordered[kept:])
    near = ordered[:kept]
    last, weight = near[-1]
    moved = [*near[:-1], (last, weight + far)]
    given = [(mean, weight / (1 - far)) for mean, weight in near]
    dominated = GaussianMixtures(_rounded(moved, -1), loss.denominator, loss.noise_multiplier)
    dominating = GaussianMixtures(_rounded(given, 1), loss.denominator, loss.noise_multiplier)
    return dominated, LossWithFailure(dominating, far * (1 + _ROUNDING))


def _rounded(mixture: list[tuple[float, float]], sign: int) -> Mixture:
    """Return the mixture with weights rounded towards its largest means, or its smallest (-1)."""
    others = tuple((mean, weight * (1 + sign * _ROUNDING)) for mean, weight in mixture[1:])
    return ((mixture[0][0], 1 - math.fsum(weight for _, weight in others)), *others)


def narrowed(
    direction: Direction,
    bounds: Bounds,
    log_delta: float,
    bounds_of: Callable[[Direction, int], Bounds],
    width: Callable[[Bounds], float],
    side: int = 0,
) -> Bounds:
    """Return bounds without far means of tiny weight, where they are closer than those given.

    Those given are on epsilon or on log delta of finite losses with all means, and ``width`` is the
    width of such bounds. The logarithm of delta is about ``log_delta``. ``bounds_of`` returns the
    same bounds for another direction, whose losses may be infinite, and for the end that counts
    there: 1 for the upper and -1 for the lower one. ``side`` is that of the result, or 0 for both.
    """
    last = None
    for share in _SHARES:
        if not width(bounds) > _CLOSE:
            break
        sides = without_far_means(direction, log_delta + math.log(share))
        if sides is None or sides == last:
            continue
        last = sides
        ends = (side,) if side else (-1, 1)
        # Where one end counts, the other shows how close the bounds of the same losses are.
        found = [bounds_of(sides[end > 0], end) for end in ends]
        below, above = found[0], found[-1]
        bounds = bounds.both(Bounds(below.lower, above.upper, above.method))
    return bounds
