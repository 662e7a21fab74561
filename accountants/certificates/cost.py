r"""How much work is it to re-prove a bound? Units, limits, and the growth with the precision.

The unit is one product of complex balls at 128 bits within a product of matrices, about 0.06
microseconds in 2024. The verifier rejects a document whose proofs together take more than
``MAX_WORK`` units, which is about ten minutes on one core of such a machine. The search proposes no
proof of more than ``MAX_WORK_OF_PROOF`` units. A document has at most eight proofs (two epsilons,
two directions, two sides), so that the verifier agrees to check every certificate of the search.

>>> from dpcal.accountants.certificates.composed import OrderProof, Use
>>> from dpcal.accountants.certificates.proofs import Grid
>>> from dpcal.accountants.losses.laplace import Laplace
>>> proof = OrderProof(0.0, 1000, 0.0, (Use(0.0, 0, Grid(1.0, 0, 1000)),))
>>> [round(work(proof, ((Laplace(1.0), 1),), bits)) for bits in (128, 2048)]
[720825, 46132800]
"""

from __future__ import annotations

from typing import Any

__all__ = ["BITS", "FUNCTION", "MAX_WORK", "MAX_WORK_OF_PROOF", "PRODUCT", "TERM", "work"]

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
# Units of an exponential or a logarithm of a complex ball (1.2 to 1.6 microseconds at 128 bits), of
# a product of two balls in Python, outside of a product of matrices, and of a term of a product of
# polynomials.
FUNCTION, PRODUCT, TERM = 25, 3, 40


def work(proof: Any, parts: Any, bits: int) -> float:
    """Return the units of work of checking a proof that fits its losses, at this precision."""
    at_128: float = proof.work(parts) + FUNCTION * len(parts)
    return at_128 * float(max(1.0, bits / 128) ** _EXPONENT)
