"""Delta of a sample, a batch or an epoch of a composition, in balls, from its parts.

>>> from flint import ctx
>>> with ctx.workprec(64):
...     answer = Inner(arb(1), [(arb(1), arb(1))], arb(0))
...     low, high = on_sample(answer.delta, arb(1), "remove", arb(1))
...     low.overlaps(high), low.overlaps((1 / arb(8).sqrt()).erf())
(True, True)

Nothing here is shared with an accountant: python-flint is all that it needs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import arb

from benchmarks.corpus.laws import Law

Ball = Any
Bounds = tuple[Ball, Ball]
Profile = Callable[[Ball], Bounds]
"""Bounds on sup over events of P - k Q, at k > 0."""


@dataclass(frozen=True)
class Inner:
    """Gaussian answers next to one law with finitely many values, and pure mechanisms.

    All are symmetric, so that one profile holds for both directions.
    """

    mu: Ball
    """Of the Gaussian answers, composed; 0 for none."""
    law: Law
    """Of the values of all finite laws, composed."""
    pure: Ball
    """The sum of the epsilons of the pure mechanisms."""

    def delta(self, k: Ball) -> Bounds:
        """Bound sup over events of P - k Q: without the pure mechanisms, and by adding epsilons."""
        low = self._exact(k)
        return low, low if self.pure == 0 else self._exact(k * (-self.pure).exp())

    def _exact(self, k: Ball) -> Ball:
        # Given a value of the finite law, the ratio of the Gaussian answers is compared to k q / p.
        return sum((p * gaussian(self.mu, k * q / p) for p, q in self.law), arb(0))


def gaussian(mu: Ball, k: Ball) -> Ball:
    """Enclose the profile of composed Gaussian answers (Balle and Wang 2018, Theorem 8)."""
    if mu == 0:
        return arb.max(1 - k, arb(0))
    epsilon, root = k.log(), arb(2).sqrt()
    below, above = (epsilon / mu + sign * mu / 2 for sign in (-1, 1))
    return (below / root).erfc() / 2 - k * (above / root).erfc() / 2


def on_sample(profile: Profile, q: Ball, direction: str, k: Ball) -> Bounds:
    """Bound the profile on a Poisson sample at k >= 1, of a record removed or added.

    (1 - q) Q + q P - k Q = q (P - (1 + (k - 1) / q) Q), and likewise the other way round.
    """
    if direction == "remove":
        low, high = profile(1 + (k - 1) / q)
        return q * low, q * high
    share = 1 - k * (1 - q)
    if share > 0:
        low, high = profile(k * q / share)
        return share * low, share * high
    return arb(0), arb.max(share, arb(0)).upper()


def on_epoch(profile: Profile, batches: int, direction: str, k: Ball) -> Bounds:
    """Bound the profile of an epoch in which a record draws one batch, at k >= 1.

    Above: delta is convex, and every batch is a use. Below, for a record that is removed: the event
    that some batch has P > n k Q. Its probability under Q is at most n times the probability for
    one batch. For a record that is added: the first batch only, which is a sample.
    """
    if direction == "remove":
        return profile(k * batches)[0], profile(k)[1]
    return on_sample(profile, arb(1) / batches, "add", k)[0], profile(k)[1]
