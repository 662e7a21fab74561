r"""What is the pair of an epoch, in whose batches a mechanism answers and each record draws one?

Let (P, Q) dominate the mechanism when a record is removed, and let M be the number of batches. A
record draws its batch uniformly, independently of all else. The epoch is dominated by the uniform
mixture over j of M independent outcomes, the j-th from P and all others from Q, against M outcomes
from Q. Epochs compose.

*Proof.* That (P, Q) dominates (P', Q') says that a random map takes P to P' and Q to Q' (Blackwell
1953; Dong, Roth and Su 2022, Theorem 2.10). Given the past, answer j is such a map of an outcome of
P, if the record drew batch j, and of Q if not; which map it is follows from earlier answers, and so
from earlier outcomes. All answers of the epoch are then one map of the M outcomes. ∎

With Y = dP/dQ the likelihood ratio is the mean of M independent Y. Outcomes that P or Q alone has
count as known, in whichever batch they are.

A mean is formed by doubling. Where a law has too many values they are gathered above and below it:
mass moves to the ends around a value so that P and Q keep their mass, which is above in convex
order, or values are merged, which is below (:mod:`~dpcal.accountants.mechanisms.finite_laws`).

>>> from dpcal.accountants.losses.discrete import pure
>>> from dpcal.accountants.mechanisms.finite_laws import law_of
>>> remove, add = allocated(law_of(pure(1.0)), 2, "a claim")
>>> remove.values.round(6).tolist()
[-1.0, 0.433781, 1.0]
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.mechanisms.amplification import loss_of
from dpcal.accountants.mechanisms.finite_laws import FiniteLaw, gathered, joined

__all__ = ["allocated"]

# Most values of a mean over some batches: their square is the number of values of the next.
_MOST = 512


def allocated(law: FiniteLaw, batches: int, name: str) -> tuple[PrivacyLoss, PrivacyLoss]:
    """Return the losses of an epoch, for removing and for adding a record.

    Parameters
    ----------
    law
        Law of the mechanism's loss when a record is removed; the reversed pair must be that of
        adding one.
    batches
        Number >= 1 of batches.
    name
        Name of the mechanism.
    """
    name = f"{name}, in one of {batches} batches"
    found, count = law, 1
    for bit in bin(batches)[3:]:
        found, count = _mean(found, count, found, count), 2 * count
        if bit == "1":
            found, count = _mean(found, count, law, 1), count + 1
    return loss_of(found, name), loss_of(_reversed(found), f"{name}, added")


def _mean(one: FiniteLaw, m: int, other: FiniteLaw, n: int) -> FiniteLaw:
    """Return the law of the mean over m + n batches from those over m and over n."""
    one, other = gathered(one, _MOST), gathered(other, _MOST)
    shares = math.log(m / (m + n)), math.log(n / (m + n))

    def ratios(first: FiniteLaw, second: FiniteLaw) -> FiniteLaw:
        values = np.logaddexp.outer(first.values + shares[0], second.values + shares[1])
        return joined(first, second, values)

    law = ratios(one, other)
    if one.below is not None or other.below is not None:
        law = replace(law, below=ratios(one.down, other.down))
    return gathered(law)


def _reversed(law: FiniteLaw) -> FiniteLaw:
    """Return the law of the reversed pair."""
    below = None if law.below is None else _reversed(law.below)
    logs = (law.log_reference + law.values)[::-1]
    return FiniteLaw(-law.values[::-1], logs, law.outside, below)
