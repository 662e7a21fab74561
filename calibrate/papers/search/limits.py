"""Limits of the search for a proof.

>>> LIMITS.depth > LIMITS.depth_of_moves
True
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["LIMITS"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits at which the search ends without a proof.

    Attributes
    ----------
    depth
        Strategies inside of strategies; each adds 1 to 3 to the depth.
    depth_of_domains, depth_of_factors, depth_of_moves, depth_of_cuts
        Depth up to which the search proves that parts are defined, factors a term, follows a
        slope, and cuts an unbounded range.
    share
        Share of the time that is left, which each strategy gets at the goal itself.
    boxes
        Parts of a box.
    ratios, negatives
        Ratios below one in a product, and negative terms that are bounded by such products.
    degree, factored
        Largest degree, in the smallest root that occurs, and largest number of terms of a quotient
        of polynomials that is factored. Factoring does not look at the clock: within these limits
        it takes less than a second, at a degree of half a million it takes all memory.
    """

    depth: int = 10
    depth_of_domains: int = 5
    depth_of_factors: int = 5
    depth_of_moves: int = 6
    depth_of_cuts: int = 1
    share: float = 0.35
    boxes: int = 2500
    ratios: int = 4
    negatives: int = 8
    degree: int = 64
    factored: int = 200


LIMITS = Limits()
