"""Delta of several answers with Laplace noise of one scale, in closed form.

The loss of an answer has 1/2 of the mass of P at a = 1 / scale and exp(-a) / 2 at -a. The rest has
the density exp((l - a) / 2) / 4 between them. Apart from the factor exp(l / 2), which a sum keeps,
losses in between are uniform, and their sums are Irwin and Hall's.

>>> from flint import ctx
>>> with ctx.workprec(128):
...     exact = 1 - ((arb(1) - 2) / 2).exp()
...     composed_laplace(arb(2), 1, arb(1)).overlaps(exact)
True
"""

from __future__ import annotations

import math
from typing import Any

from flint import arb

Ball = Any


def composed_laplace(a: Ball, times: int, epsilon: Ball) -> Ball:
    """Enclose delta of answers with losses from -a to a."""
    delta = arb(0)
    half, far = arb(1) / 2, (-a).exp() / 2
    for inner in range(times + 1):
        for high in range(times - inner + 1):
            low = times - inner - high
            ways = math.comb(times, inner) * math.comb(times - inner, high)
            rest = epsilon - (high - low) * a
            delta += ways * half**high * far**low * _inside(a, inner, rest)
    return delta


def _inside(a: Ball, k: int, s: Ball) -> Ball:
    """Return the integral of (1 - exp(s - l))+ over the law of k losses in between."""
    if k == 0:
        return arb.max(-s.expm1(), arb(0))
    if s >= k * a:
        return arb(0)
    if s <= -k * a:
        return ((1 - (-a).exp()) / 2) ** k * -s.expm1()
    total = arb(0)
    for m in range(k + 1):
        start = (2 * m - k) * a
        first = _from(s, start)
        width = k * a - start
        if m == k:
            continue
        pieces = [
            (sign * start / 2).exp() * (_power(k, sign, width) - _power(k, sign, first))
            for sign in (1, -1)
        ]
        total += (-1) ** m * math.comb(k, m) * (pieces[0] - s.exp() * pieces[1])
    return total / math.factorial(k - 1) * ((-a / 2).exp() / 4) ** k


def _from(s: Ball, start: Ball) -> Ball:
    return arb.max(s - start, arb(0))


def _power(k: int, sign: int, width: Ball) -> Ball:
    """Return the integral of exp(sign u / 2) u^(k - 1) from 0 to ``width``."""
    return width**k / k * (sign * width / 2).hypgeom_1f1(arb(k), arb(k + 1))
