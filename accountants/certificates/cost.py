r"""How much work is it to re-prove a bound? An estimate, known before any of the work is done.

The unit is one product of complex balls at 128 bits within a product of matrices, about 0.06
microseconds in 2024. The verifier rejects a document whose proofs together take more than
``MAX_WORK`` units, which is about ten minutes on one core of such a machine. The search proposes no
proof of more than ``MAX_WORK_OF_PROOF`` units. A document has at most eight proofs (two epsilons,
two directions, two sides), so that the verifier agrees to check every certificate of the search.

>>> from dpcal.accountants.certificates.proofs import Grid, Use
>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = proofs.OrderProof(0.0, 1000, 0.0, (Use(0.0, 0, Grid(1.0, 0, 1000)),))
>>> [round(work(proof, [(Laplace(1.0), 1)], bits)) for bits in (128, 2048)]
[720825, 46132800]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dpcal.accountants.certificates import proofs
from dpcal.accountants.certificates.contour import entries_of
from dpcal.accountants.certificates.pairs import pair_of
from dpcal.accountants.losses.base import PrivacyLoss

Losses = Sequence[tuple[PrivacyLoss, int]]

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
# Functions for a node of a contour.
_FUNCTIONS_OF_NODE = 6
# Functions for a value in the sum of a transform along a line, where a transform is summed at three
# tilts and beyond the last node.
_FUNCTIONS_OF_TRANSFORM = 12
# Units of a product of two balls in Python, outside of a product of matrices.
_PRODUCT = 3
# Units of a term of a product of polynomials, and of a node of a law at each doubling, of which it
# takes two such products, and may be made coarser.
_TERM_OF_RAYS, _NODE_OF_LAW = 40, 160
# Digits of a number of batches, as many as are multiplied.
_BITS_OF_BATCHES = 62


def work(proof: proofs.Proof, losses: Losses, bits: int) -> float:
    """Return the units of work of checking a proof that fits its losses, at this precision."""
    if isinstance(proof, proofs.OrderProof):
        found = _of_order(proof, losses)
    else:
        found = _of_contour(proof, losses)
    return (found + _FUNCTION * len(losses)) * math.pow(max(1.0, bits / 128), _EXPONENT)


def _of_order(proof: proofs.OrderProof, losses: Losses) -> float:
    """Return the work of cells, of nodes, and of products on either side."""
    total, nodes = 0.0, max(proof.nodes, 2)
    for (loss, times), item in zip(losses, proof.uses, strict=True):
        pair = pair_of(loss)
        cells = pair.size(item.cells)
        total += _FUNCTION * pair.work_of_cell * cells
        total += _NODE_OF_LAW * nodes * (times.bit_length() + item.level)
        total += _TERM_OF_RAYS * _BITS_OF_BATCHES * pair.terms(item.cells)
    return 2 * total


def _of_rays(loss: PrivacyLoss, item: proofs.Rays, numbers: int = 1) -> float:
    """Return the work of the table, of a product of polynomials for each order, and of powers.

    Powers are taken for each of several numbers of batches.
    """
    entries, orders = entries_of(loss, item), item.order + 1
    multiplied = orders * (_TERM_OF_RAYS * entries + _FUNCTION * 2 * item.reach)
    powers = _PRODUCT * orders * (orders + 1) * item.points * numbers
    return 2 * _FUNCTION * entries + multiplied + powers


def _of_transform(loss: PrivacyLoss, item: proofs.Substitute) -> float:
    """Return the work of building a transform and of summing it at a few real points."""
    building = 0.0
    if isinstance(item, proofs.Rays):
        building = _of_rays(loss, item)
    if isinstance(item, proofs.Clones):
        building = _of_rays(loss, item.rays, len(item.numbers))
        # The masses of all numbers of clones, for a transform and for its slack.
        building += 8 * _PRODUCT * (item.numbers[-1] - item.numbers[0])
    return building + _FUNCTION * _FUNCTIONS_OF_TRANSFORM * _values(item)


def _values(item: proofs.Substitute) -> int:
    """Return the number of terms of a transform."""
    return 1 if item is None else item.points + 1


def _of_contour(proof: Any, losses: Losses) -> float:
    """Return the work of a product at each node and term of a transform, and of powers."""
    total = float(_FUNCTION * _FUNCTIONS_OF_NODE * proof.nodes)
    for (loss, times), item, tail in zip(losses, proof.sums, proof.tails, strict=True):
        # This includes the rows and columns of the two matrices, which are computed outside their
        # product.
        in_matrices = proof.nodes + 2 * _PRODUCT * (proof.nodes**0.5 + 1)
        total += in_matrices * _values(item)
        total += 2 * _PRODUCT * proof.nodes * times.bit_length()
        total += _of_transform(loss, item) + _of_transform(loss, tail)
    return total
