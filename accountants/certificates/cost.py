r"""How much work is it to re-prove a bound? An estimate, known before any of the work is done.

The unit is one product of complex balls at 128 bits within a product of matrices, about 0.06
microseconds in 2024. The verifier rejects a document whose proofs together take more than
``MAX_WORK`` units, which is about ten minutes on one core of such a machine. The search proposes no
proof of more than ``MAX_WORK_OF_PROOF`` units. A document has at most eight proofs (two epsilons,
two directions, two sides), so that the verifier agrees to check every certificate of the search.

>>> from dpcal.accountants.certificates import balls
>>> from dpcal.accountants.certificates.enclosed_losses import enclosed
>>> from dpcal.accountants.certificates.proofs import Grid, SumProof
>>> from dpcal.accountants.losses.laplace import Laplace
>>> parts = [(enclosed(Laplace(1.0)), 1)]
>>> [round(work(SumProof((Grid(0.1, 0, 1000),)), parts, bits)) for bits in (128, 2048)]
[1201225, 76878400]
"""

from __future__ import annotations

import math
from functools import singledispatch

from dpcal.accountants.certificates import proofs
from dpcal.accountants.certificates.enclosed_losses import EnclosedLoss

__all__ = ["BITS", "MAX_WORK", "MAX_WORK_OF_PROOF", "work"]

# Precisions in bits that a verifier accepts. Fewer than 64 bits save no time; deltas of 1e-300 take
# about 2,300 bits.
BITS = (64, 4096)
# Units of work of all proofs of a document. The proofs of hard corners (rare large losses) have
# 1e8 units each.
MAX_WORK = 4e9
# Units of work of one proof that the search proposes, so that eight of them are within MAX_WORK.
MAX_WORK_OF_PROOF = MAX_WORK / 8

# Power of the precision with which time grows, for products at 128 to 4,096 bits. The time of
# functions grows more slowly.
_EXPONENT = 1.5
# Units of an exponential or a logarithm of a complex ball (1.2 to 1.6 microseconds at 128 bits).
_FUNCTION = 25
# Functions that a value of a law takes for each Gaussian of its pair: two error functions, each
# as slow as ten functions, and a few exponentials.
_FUNCTIONS_OF_COMPONENT = 25
# Further functions for a value of a law: its ends and its share of the mass.
_FUNCTIONS_OF_VALUE = 6
# Functions for a value in the sum of a transform along a line, where a transform is summed at three
# tilts and beyond the last node.
_FUNCTIONS_OF_TRANSFORM = 12
# Units of a product of two balls in Python, outside of a product of matrices.
_PRODUCT = 3
# Functions for an interval and for a node of two laws in convex order, and digits of a number of
# batches, most of them: as many nodes as a law may have.
_FUNCTIONS_OF_CELL, _FUNCTIONS_OF_RATIO, _BITS_OF_BATCHES = 60, 30, 16
# Units of a term of a power of a polynomial, and of a product of two of them.
_TERM, _TERM_OF_RAYS = 150, 40


def work(proof: proofs.Proof, parts: list[tuple[EnclosedLoss, int]], bits: int) -> float:
    """Return the units of work of checking a proof that fits its parts, at this precision."""
    at_128_bits = float(_work(proof, parts)) + _FUNCTION * len(parts)
    return at_128_bits * math.pow(max(1.0, bits / 128), _EXPONENT)


def _of_law(loss: EnclosedLoss, grid: proofs.Grid) -> float:
    """Return the work of building a law on one side of the loss."""
    functions = _FUNCTIONS_OF_VALUE + _FUNCTIONS_OF_COMPONENT * loss.components
    return _FUNCTION * functions * loss.values(grid)


def _of_rays(loss: EnclosedLoss, item: proofs.Rays, numbers: int = 1) -> float:
    """Return the work of the table, of a product of polynomials for each order, and of powers.

    Powers are taken for each of several numbers of batches.
    """
    entries, orders = loss.entries(item), item.order + 1
    multiplied = orders * (_TERM_OF_RAYS * entries + _FUNCTION * 2 * item.reach)
    powers = _PRODUCT * orders * (orders + 1) * item.points * numbers
    return 2 * _FUNCTION * entries + multiplied + powers


def _values(loss: EnclosedLoss, item: proofs.Substitute) -> int:
    """Return the number of terms of a transform."""
    if isinstance(item, proofs.Grid):
        return loss.values(item)
    return 1 if item is None else item.points + 1


def _of_transform(loss: EnclosedLoss, item: proofs.Substitute) -> float:
    """Return the work of building a transform and of summing it at a few real points."""
    building = _of_law(loss, item) if isinstance(item, proofs.Grid) else 0.0
    if isinstance(item, proofs.Rays):
        building = _of_rays(loss, item)
    if isinstance(item, proofs.Clones):
        building = _of_rays(loss, item.rays, len(item.numbers))
        # The masses of all numbers of clones, for a transform and for its slack.
        building += 8 * _PRODUCT * (item.numbers[-1] - item.numbers[0])
    if isinstance(item, proofs.Scores):
        # A power of up to 62 squarings, and as many products.
        building = 128.0 * _TERM_OF_RAYS * item.places
        building += _FUNCTION * 3 * _FUNCTIONS_OF_COMPONENT * item.answers.points
    return building + _FUNCTION * _FUNCTIONS_OF_TRANSFORM * _values(loss, item)


@singledispatch
def _work(proof: proofs.Proof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work at 128 bits of an argument with a closed form in each part."""
    return _FUNCTION * _FUNCTIONS_OF_VALUE * len(parts)


@_work.register
def _(proof: proofs.ContourProof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work of a product at each node and term of a transform, and of powers."""
    total = float(_FUNCTION * _FUNCTIONS_OF_VALUE * proof.nodes)
    for (loss, times), item, tail in zip(parts, proof.sums, proof.tails, strict=True):
        # This includes the rows and columns of the two matrices, which are computed outside their
        # product.
        in_matrices = proof.nodes + 2 * _PRODUCT * (proof.nodes**0.5 + 1)
        total += in_matrices * _values(loss, item)
        total += 2 * _PRODUCT * proof.nodes * times.bit_length()
        total += _of_transform(loss, item) + _of_transform(loss, tail)
    # Laws on either side are summed separately.
    pairs = zip(parts, proof.sums, strict=True)
    one_sided = any(loss.one_sided(item) for (loss, _), item in pairs)
    return 2 * total if proof.smoothing > 0 or one_sided else total


@_work.register
def _(proof: proofs.ChernoffProof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work of summing every part at one real point."""
    return sum(_of_transform(loss, item) for (loss, _), item in zip(parts, proof.sums, strict=True))


@_work.register
def _(proof: proofs.SumProof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work of building, convolving and summing two laws."""
    ((loss, times),) = parts
    grid = proof.sums[0]
    return 2 * (_of_law(loss, grid) + _TERM * loss.values(grid) * times)


@_work.register
def _(proof: proofs.OrderProof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work of two laws on the intervals and on the ratios, and of their powers."""
    cells, ratios = proof.cells, proof.ratios.points
    # Numbers of batches and of epochs are below 2^62, and products are as many as their digits.
    uses = sum(times.bit_length() for _, times in parts)
    products = 4 * _TERM_OF_RAYS * (_BITS_OF_BATCHES * cells + uses * ratios)
    return _FUNCTION * (_FUNCTIONS_OF_CELL * cells + _FUNCTIONS_OF_RATIO * ratios) + products


@_work.register
def _(proof: proofs.ThresholdProof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work of each counted part's distribution, and of two convolutions of all."""
    counted = [
        (loss, times)
        for (loss, times), threshold in zip(parts, proof.thresholds, strict=True)
        if threshold is not None
    ]
    # A law with atoms is computed in full; for other laws only two masses are computed.
    grid = proofs.Grid(1.0, 0, 1)
    total = sum(_of_law(loss, grid) for loss, _ in counted)
    terms = [min(proof.least, times + 1) for _, times in counted]
    convolved = sum(count * proof.least for count in terms) if len(counted) > 1 else 0
    return total + 2 * _PRODUCT * (8 * sum(terms) + 2 * convolved)


@_work.register
def _(proof: proofs.SamplingProof, parts: list[tuple[EnclosedLoss, int]]) -> float:
    """Return the work of comparing all means of a pair with one another."""
    compared = sum(2 * _PRODUCT * loss.components**2 for loss, _ in parts)
    return compared + _FUNCTION * _FUNCTIONS_OF_VALUE * len(parts)
