r"""The interface of a proof about delta(epsilon): its numbers, its bounds, and its work.

A proof is about one direction of a neighboring relation, in which losses are used several times
each. Its numbers are hints: the interval is derived only from them. Bad numbers make it wide, never
wrong. The fields of a record are the entries of the JSON document, and each kind of proof is a
record that bounds delta: :class:`~dpcal.accountants.certificates.contour.ContourProof` and
:class:`~dpcal.accountants.certificates.composed.OrderProof`.

The unit of work is one product of complex balls at 128 bits within a product of matrices, about
0.06 microseconds in 2024. The verifier rejects a document if its proofs together take more than
``MAX_WORK`` units, which is about ten minutes on one core of such a machine.

>>> from dpcal.accountants.certificates.composed import OrderProof
>>> from dpcal.accountants.losses.laplace import Laplace
>>> parts = ((Laplace(1.0), 1),)
>>> [round(OrderProof(bits, 1e-3, 4000, 0.0, 9.0).work(parts)) for bits in (128, 2048)]
[2080825, 133172800]
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Annotated, ClassVar

from dpcal.accountants.certificates.balls import Ball, workprec
from dpcal.accountants.certificates.schema import whole
from dpcal.accountants.losses.base import Parts

# Bits that a verifier accepts: deltas of 1e-300 take about 2,300.
BITS = (64, 4096)
# Units of work of a document; proofs for rare large losses take 1e8 each.
MAX_WORK = 4e9
# Units of work of one proof of the search: about ten seconds.
MAX_WORK_OF_PROOF = 1.5e8
# Different losses: with 10,000 steps, a contour is still affordable.
MAX_PARTS = 1 << 14
# Power of the precision with which the time of products grows, at 128 to 4,096 bits.
_EXPONENT = 1.5
# Units of an exponential or log of a complex ball (1.2 to 1.6 us at 128 bits), and of a product.
FUNCTION, PRODUCT = 25, 3


@dataclass(frozen=True)
class Proof(ABC):
    """One argument about delta at one epsilon.

    Attributes
    ----------
    bits
        Precision of the arithmetic in which the proof is checked.
    """

    NAME: ClassVar[str]
    """The kind of argument, as in documents and messages."""

    bits: Annotated[int, whole(*BITS)]

    @abstractmethod
    def work_at_128(self, parts: Parts) -> float:
        """Return the units of work of its bounds at 128 bits.

        Raises
        ------
        ValueError
            If it is no proof about these losses.
        """

    @abstractmethod
    def bound(self, parts: Parts, epsilon: float, above: bool) -> Ball:
        """Return the upper or the lower bound on delta.

        Raises
        ------
        ArithmeticError, LookupError, ValueError
            If the numbers are so bad that nothing follows, or if the proof is not about these
            losses.
        """

    def work(self, parts: Parts) -> float:
        """Return the units of work of checking it, at its precision."""
        with workprec(self.bits):
            at_128 = self.work_at_128(parts) + FUNCTION * len(parts)
        return at_128 * float(max(1.0, self.bits / 128) ** _EXPONENT)
