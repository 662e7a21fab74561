r"""Do laws of a privacy loss keep their mass? Sums of masses by logarithms, and a check of steps.

A law has masses Q_j at values l_j, and under P the masses Q_j exp(l_j). Values may be many thousand
nats, so Q and P may have no common scale with every mass a double: masses are added relative to the
largest of them, and a mass that underflows then is below rounding.

A step (a sum of two losses, values that are moved or merged) keeps the masses of Q and of P. If it
rounds up, the sums of Q_j exp(2 l_j) and of Q_j exp(-l_j) rise, and if it rounds down, they fall:
both are mean values of convex functions of the likelihood ratio. Rare large losses, hidden by the
rounding of masses, are most of the third sum. A step that gives less above, or more below, than it
was given has a fault, and there is no answer.

>>> values, logs = np.array([-2000.0, 1.0, 2000.0]), np.array([-0.5, -1.0, -2000.5])
>>> log_sums(logs, np.array([0, 2])).round(3).tolist()
[-0.026, -2000.5]
>>> before = log_moments(values, logs)
>>> require_kept("an example", before, values, logs, up=True)
>>> try:
...     require_kept("an example", before, values[:2], logs[:2], up=True)
... except BrokenLaw as broken:
...     print(str(broken).partition(":")[0])
A law of losses lost probability in an example
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.losses.base import Reals
from dpcal.errors import BrokenLaw

# Powers of exp(l) in the sums that are compared: masses of Q and P, and two convex in the ratio.
_POWERS = np.array([0.0, 1.0, 2.0, -1.0])
# Relative error over the size of exponents, which differ by 2^-47 in a chain; the least size.
_ERROR, _LEAST_SIZE = 2.0**-44, 64.0


def log_sums(logs: Reals, first: NDArray[np.intp]) -> Reals:
    """Return the logarithm of each sum of neighboring masses, without underflow.

    Parameters
    ----------
    logs
        Logarithms of masses.
    first
        Increasing places, from 0 on, at which sums begin.
    """
    if len(first) == len(logs):
        return logs
    top = np.maximum.reduceat(logs, first)
    top = np.where(top > -np.inf, top, 0.0)
    terms = np.exp(logs - np.repeat(top, np.diff(first, append=len(logs))))
    with np.errstate(divide="ignore"):
        return np.asarray(top + np.log(np.add.reduceat(terms, first)))


def log_moments(values: Reals, logs: Reals) -> Reals:
    """Return the logarithms of the sums of Q_j exp(k l_j), k = 0, 1, 2 and -1."""
    if not len(values):
        return np.full(len(_POWERS), -np.inf)
    start = np.zeros(1, np.intp)
    return np.concatenate([log_sums(logs + power * values, start) for power in _POWERS])


def rounding_of(values: Reals, logs: Reals) -> float:
    """Return the largest change of the logarithm of a sum by rounding."""
    sizes = (2 * np.abs(values) + np.abs(logs))[logs > -np.inf]
    return _ERROR * max(_LEAST_SIZE, float(sizes.max(initial=0.0)))


def require_kept(step: str, before: Reals, values: Reals, logs: Reals, *, up: bool) -> None:
    """Refuse a law with less than it must have, if it is rounded up, or with more, if down.

    Parameters
    ----------
    step
        Name of the step, in the message.
    before
        The first few of the ``log_moments`` that the law must have.
    values, logs
        The law.
    up
        Whether it is rounded up.

    Raises
    ------
    BrokenLaw
        If the law lost, or gained, more than rounding.
    """
    after, allowed = log_moments(values, logs)[: len(before)], rounding_of(values, logs)
    kept = after >= before - allowed if up else after <= before + allowed
    if not kept.all():
        change = "lost" if up else "gained"
        raise BrokenLaw(
            f"A law of losses {change} probability in {step}: logarithms of its sums are "
            f"{after.tolist()} and must be {before.tolist()}. This is a fault of dpcal, so there "
            "is no answer; please report the event."
        )
