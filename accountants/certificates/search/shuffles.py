"""Which proofs bound a shuffled run? Clones above, statistics below; chosen in floats.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.certificates.shuffled_epochs import directions_of
>>> run = events.ShuffledEpochsDpEvent(noise_multiplier=10.0, batches=100, epochs=2)
>>> remove, _ = directions_of(run, "replace-special").directions
>>> [proof.NAME for _, proof in proofs_of_shuffle(remove, 0.1, "lower", delta=1e-3)]
['convex order']
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from dpcal import _annexes
from dpcal.accountants.certificates.contour import ContourProof
from dpcal.accountants.certificates.cost import work
from dpcal.accountants.certificates.proofs import Clones, Grid, Proof, Rays, Scores
from dpcal.accountants.certificates.search.contour import (
    bits_of_contour,
    choose_contour,
    choose_parity,
)
from dpcal.accountants.certificates.search.order import choose_order
from dpcal.accountants.certificates.shuffled_epochs import Shuffled
from dpcal.accountants.directions import Direction
from dpcal.accountants.losses.allocation import Allocation
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.losses.gaussian import Gaussian

__all__ = ["is_shuffled", "proofs_of_shuffle"]

# Relative width in delta of a proof above, beside what the theorem loses, and of one below: a third
# of it takes ten times as long.
_WIDTH, _WIDTH_BELOW = 1e-3, 0.03
# Most work of a proof above: some seconds; and groups of numbers of clones, fewer where that many
# take more.
_MOST_WORK, _GROUPS = 4e8, (32, 12)
# Intervals of the largest answer in a standard deviation of the noise, which loses a thousandth of
# a lower bound, and the standard deviations below 0 and above 2 at which they end.
_FINE, _BELOW, _ABOVE = 64, 3, 9
# Places of the sum of scores, and how many of its standard deviations they are.
_PLACES, _SPREAD = 1 << 13, 20.0

Candidates = Iterator[tuple[int, Proof]]


def is_shuffled(direction: Direction) -> bool:
    """Return whether a direction is that of a run over shuffled epochs."""
    return any(isinstance(loss, Shuffled) for loss, _ in direction.parts)


def proofs_of_shuffle(
    direction: Direction, epsilon: float, sides: str, delta: float | None = None
) -> Candidates:
    """Yield precisions and proofs, of one side each, for a run over shuffled epochs.

    ``delta`` is about that which is to be proved from above; None if it is not known.
    """
    ((loss, epochs),) = direction.parts
    assert isinstance(loss, Shuffled)
    if sides != "lower":
        known = ((Gaussian(loss.noise_multiplier), epochs),)
        with contextlib.suppress(OutOfReach):
            proof = choose_contour(known, epsilon, width=_WIDTH)
            yield bits_of_contour(proof, known, width=_WIDTH), proof
        if not loss.replacing:
            yield from _by_clones(loss, epochs, epsilon, delta)
    if sides != "upper":
        with contextlib.suppress(OutOfReach):
            yield from _by_attacks(loss, epochs, epsilon)


def _by_clones(loss: Shuffled, epochs: int, epsilon: float, delta: float | None) -> Candidates:
    """Yield a proof of an upper bound."""
    shuffling, run = _annexes.shuffling, (loss.noise_multiplier, loss.batches, epochs)
    delta = shuffling.upper_delta(*run, epsilon) if delta is None else delta
    for groups in _GROUPS:
        reduced = shuffling.reduction(*run, delta, epsilon, groups)
        if reduced is None:
            return
        (given,) = [each for each in reduced.directions if each.name == loss.direction]
        log_delta = math.log(max(reduced.delta(epsilon) - reduced.slack, delta / 1e3))
        for choose in (choose_parity, choose_contour):
            with contextlib.suppress(OutOfReach):
                found = choose(given.parts, epsilon, width=_WIDTH, log_delta=log_delta)
                width = _WIDTH * math.exp(log_delta)
                bits = bits_of_contour(found, given.parts, width=width)
                proof = _with_clones(found, reduced.chance, [each for each, _ in reduced.law])
                if work(proof, [(loss, epochs)], bits) < _MOST_WORK:
                    yield bits, proof
                    return


def _with_clones(proof: ContourProof, chance: float, numbers: list[int]) -> ContourProof:
    """Return a proof about the least number of batches for all, on a longer ray."""
    (rays,) = proof.sums
    assert isinstance(rays, Rays)
    more = math.ceil(math.log(numbers[-1] / numbers[0]) / rays.step)
    clones = Clones(chance, tuple(numbers), replace(rays, first=rays.first - more))
    return replace(proof, sums=(clones,), tails=(clones,))


def _by_attacks(loss: Shuffled, epochs: int, epsilon: float) -> Candidates:
    """Yield a proof of a lower bound."""
    if loss.replacing:
        parts = ((Allocation(loss.noise_multiplier, loss.answers, loss.direction), epochs),)
        choose = choose_parity if loss.direction == "remove" else choose_contour
        proof = choose(parts, epsilon, width=_WIDTH)
        yield bits_of_contour(proof, parts, width=_WIDTH), proof
        return
    step = loss.noise_multiplier / _FINE
    grid = Grid(step, -_BELOW * _FINE, math.ceil(2 / step) + _ABOVE * _FINE)
    names = [("remove", grid), ("add", grid), ("remove", None), ("add", None)]
    attacks = _attacks(loss.noise_multiplier, loss.answers, epochs)
    delta, _, at = max((each.delta(epsilon), -k, k) for k, each in enumerate(attacks))
    name, item = names[at]
    if name == loss.direction and delta > 0:
        cells = item or _scores(loss)
        given = ((loss, epochs),)
        yield choose_order(
            given, epsilon, log_delta=math.log(delta), width=_WIDTH_BELOW, cells=cells
        )


@lru_cache(maxsize=4)
def _attacks(sigma: float, answers: int, epochs: int) -> Any:
    """Return the attacks by the largest answer and by a sum, in both directions each."""
    return _annexes.shuffling.attacks(sigma, answers, epochs)


def _scores(loss: Shuffled) -> Scores:
    """Return scores whose sum is spread over the places."""
    step = 1 / _FINE
    last = math.ceil((2 / loss.noise_multiplier + _ABOVE) * _FINE)
    answers = Grid(step, -_ABOVE * _FINE, last)
    x = step * np.arange(answers.first, answers.last + 1)
    scores = _annexes.shuffling.log_score(x, loss.noise_multiplier, loss.answers)
    density = np.exp(-x * x / 2)
    spread = math.sqrt(
        np.average((scores - np.average(scores, weights=density)) ** 2, weights=density)
    )
    unit = _SPREAD * spread * math.sqrt(loss.answers) / _PLACES
    return Scores(answers, unit, _PLACES)
