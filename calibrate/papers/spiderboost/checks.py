"""Programs that claims and errata of the paper name: loops and sums."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb

import flint

from dpcal.calibrate.papers.claims.kinds import Enumeration


def depth_first(depth: int) -> list[str]:
    """Return the labels of a binary tree in depth-first order, without the root.

    A label stands before labels that continue it, as in a dictionary.
    """
    levels = (itertools.product("01", repeat=k) for k in range(1, depth + 1))
    return sorted("".join(steps) for level in levels for steps in level)


def _tree_facts(depth: int) -> bool:
    """Counts of nodes, leaves and right children, and the node after each leaf."""
    order = depth_first(depth)
    leaves = [k for k, label in enumerate(order) if len(label) == depth]
    right = [label for label in order if label.endswith("1")]
    follows = all(order[k + 1].endswith("1") for k in leaves[:-1])
    noise = max(1 + label.count("1") for label in order)
    return (
        len(order) == 2 ** (depth + 1) - 2
        and len(leaves) == 2**depth
        and len(right) == 2**depth - 1
        and follows
        and noise == depth + 1
    )


def _total_variation_is_small(size: int) -> bool:
    """Total variation of Binomial(n, 1/2 -+ p/2), p = 1/(4 sqrt n), is at most 1/4."""
    root = int(size**0.5)
    shift = Fraction(1, 8 * root)
    low, high = Fraction(1, 2) - shift, Fraction(1, 2) + shift

    def mass(chance: Fraction, k: int) -> Fraction:
        return comb(size, k) * chance**k * (1 - chance) ** (size - k)

    return sum(abs(mass(low, k) - mass(high, k)) for k in range(size + 1)) / 2 <= Fraction(1, 4)


def _integer_depth(size: int) -> bool:
    """D 2^(D + 1) = b has a whole solution D."""
    return any(k * 2 ** (k + 1) == size for k in range(1, 30))


def _gradient_of_instance(records: list[tuple[int, int]]) -> bool:
    """||grad F|| is half of ||Proj(w) - mean|| or more, off the mean, at L0 = L1 = 1.

    Records are in the plane, in hundredths; Proj is on the ball of radius 1/4 that holds them.
    """
    data = [flint.acb(flint.arb(x) / 100, flint.arb(y) / 100) for x, y in records]
    mean = sum(data, flint.acb(0)) / len(data)
    one = flint.arb(1)
    for k in range(-13, 14):
        for j in range(-13, 14):
            w = flint.acb(flint.arb(3 * k) / 26, flint.arb(5 * j) / 38) + flint.acb(one / 1000)
            pulls = ((w - x) / abs(w - x).max(one) for x in data)
            gradient = sum(pulls, flint.acb(0)) / len(data)
            if not abs(gradient) >= abs(w / (4 * abs(w)).max(one) - mean) / 2:
                return False
    return all(x**2 + y**2 <= 25**2 for x, y in records)


_RECORDS = [
    [(25, 0), (-25, 0)],
    [(0, 25), (25, 0)],
    [(25, 0), (25, 0), (25, 0), (0, 20), (-25, 0)],
    [(7, 24)] * 3,
]


CHECKS: dict[str, Enumeration] = {
    "tree_facts": Enumeration(_tree_facts, list(range(1, 9))),
    "gradient_of_instance": Enumeration(_gradient_of_instance, _RECORDS),
    "total_variation_is_small": Enumeration(_total_variation_is_small, [1, 4, 9, 16, 25, 64, 100]),
    "integer_depth": Enumeration(_integer_depth, [4, 16, 48, 100]),
}
