"""Delta of two rounds of correlated noise on random batches, by brute force over the plane.

The rounds answer C x plus Gaussian noise, C lower triangular, and a record joins none, one or both
of the rounds: a mixture of four Gaussians against one (Choquette-Choo et al. 2024). The plane is
cut into strips, in each of which an output is taken from a threshold on. What the strips miss is at
most the mass between the thresholds at their two edges, times the gain there.

>>> from flint import ctx
>>> with ctx.workprec(64):
...     matrix = [[1.0, 0.0], [0.5, 1.0]]
...     law = independent(arb(0.1))
...     lower, upper = two_rounds(matrix, law, 1.0, "remove", arb(0.5), strips=200)
...     lower < upper < lower * 1.05
True
"""

from __future__ import annotations

import math
from typing import Any

from flint import arb

Ball = Any
_Components = list[tuple[float, float, float]]

# Distance from the means, in standard deviations, at which strips end.
_REACH = 14.0


Law = dict[tuple[int, int], Any]
"""Probability of each pair of participations, 0 or 1, in the two rounds."""


def independent(q: Ball) -> Law:
    """Return the law of a record that joins each round with probability q."""
    chance = {0: 1 - q, 1: q}
    return {(i, j): chance[i] * chance[j] for i in (0, 1) for j in (0, 1)}


def one_of_two() -> Law:
    """Return the law of a record that joins one of the rounds, either as likely."""
    return {(1, 0): arb(0.5), (0, 1): arb(0.5)}


def two_rounds(
    matrix: list[list[float]],
    law: Law,
    sigma: float,
    direction: str,
    epsilon: Ball,
    *,
    strips: int = 3000,
) -> tuple[Ball, Ball]:
    """Return bounds on delta; entries of the matrix are >= 0, its columns the steps of a record."""
    (a, zero), (b, c) = matrix
    if zero != 0 or min(a, b, c) < 0:
        raise ValueError("matrix must be lower triangular with entries >= 0.")
    sign = 1.0 if direction == "remove" else -1.0
    weighted = [(sign * i * a, sign * (i * b + j * c), chance) for (i, j), chance in law.items()]
    alone = [(0.0, 0.0, arb(1))]
    p, r = (weighted, alone) if sign > 0 else (alone, weighted)
    return _sum(p, r, sigma, epsilon.exp(), strips, (sign * a, 0.0))


def _sum(
    p: Any, q: Any, sigma: float, k: Ball, strips: int, means: tuple[float, float]
) -> tuple[Ball, Ball]:
    low, high = min(means) - _REACH * sigma, max(means) + _REACH * sigma
    edges = [low + (high - low) * i / strips for i in range(strips + 1)]
    far_out = max(abs(x) for side in (p, q) for _, x, _ in side) + 40 * sigma
    roots = [_root(p, q, sigma, float(k.mid()), y, far_out) for y in edges]
    scale = arb(sigma) * arb(2).sqrt()
    tails = [[_tails(side, y, scale) for y in edges] for side in (p, q)]
    lower, upper = arb(0), arb(0)
    for i in range(strips):
        masses = [
            [(a - b) * w for a, b, (_, _, w) in zip(rows[i], rows[i + 1], side, strict=True)]
            for rows, side in zip(tails, (p, q), strict=True)
        ]
        sides = [
            [(mean, mass) for (_, mean, _), mass in zip(side, each, strict=True)]
            for side, each in zip((p, q), masses, strict=True)
        ]
        there, back = (_above(side, (roots[i] + roots[i + 1]) / 2, scale) for side in sides)
        lower += arb.max(there - k * back, arb(0))
        # The ratio of the densities grows along both axes. Roots are rounded, so they move apart.
        near = max(roots[i + 1] - 1e-9 * sigma, -far_out)
        far = min(roots[i] + 1e-9 * sigma, far_out)
        whole = sum(masses[0], arb(0))
        least = _ratio(p, q, sigma, edges[i + 1], near) < k
        most = _ratio(p, q, sigma, edges[i], far) > k
        there, back = (_above(side, far, scale) for side in sides)
        from_near = _above(sides[0], near, scale)
        share = 1 - k / _ratio(p, q, sigma, edges[i + 1], far)
        upper += there - k * back if most else there
        upper += arb.max(share, arb(0)) * (from_near - there)
        upper += arb(0) if least else whole - from_near
    outside = arb(0)
    for y, _, w in p:
        outside += w * (((arb(high) - y) / scale).erfc() + ((y - arb(low)) / scale).erfc()) / 2
    return lower, upper + outside


def _above(side: Any, x: float, scale: Ball) -> Ball:
    """Return the mass of a strip above a threshold."""
    return sum((mass * ((arb(x) - mean) / scale).erfc() / 2 for mean, mass in side), arb(0))


def _tails(side: Any, y: float, scale: Ball) -> list[Ball]:
    return [((arb(y) - mean) / scale).erfc() / 2 for mean, _, _ in side]


def _ratio(p: Any, q: Any, sigma: float, y: float, x: float) -> Ball:
    """Return the ratio of the densities of P and Q at a point."""
    found = []
    for side in (p, q):
        value = arb(0)
        for b, a, w in side:
            value += (
                w
                * (
                    (arb(y) * b + arb(x) * a - (arb(a) ** 2 + arb(b) ** 2) / 2) / arb(sigma) ** 2
                ).exp()
            )
        found.append(value)
    return found[0] / found[1]


def _root(p: Any, q: Any, sigma: float, k: float, y: float, far_out: float) -> float:
    """Return about the x at which the ratio is k, in floats; the proof does not rest on it."""
    log_k = math.log(k)

    def loss(x: float) -> float:
        logs = []
        for side in (p, q):
            terms = [
                math.log(float(w.mid())) + (y * b + x * a - (a * a + b * b) / 2) / sigma**2
                for b, a, w in side
            ]
            top = max(terms)
            logs.append(top + math.log(sum(math.exp(t - top) for t in terms)))
        return logs[0] - logs[1] - log_k

    low, high = -far_out, far_out
    for _ in range(80):
        middle = (low + high) / 2
        low, high = (middle, high) if loss(middle) < 0 else (low, middle)
    return high
