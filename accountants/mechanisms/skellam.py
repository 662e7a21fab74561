r"""Skellam noise on sums of whole numbers, which a sum over clients keeps (Agarwal et al. 2021).

The noise is the difference of two Poisson numbers of mean mu / 2 each: it has variance mu and
probabilities exp(-mu) I_n(mu), I_n a modified Bessel function. The laws of Poisson numbers are
log-concave, and so is that of their difference, so that the largest shift of one number dominates
all others. By Bernstein's inequality, as cosh t - 1 <= e^t - 1 - t, it is n or more with a
probability of at most exp(-n^2 / (2 mu + 2 n / 3)).

>>> from dpcal.accountants import epsilon
>>> print(f"{epsilon(SkellamDpEvent(variance=16.0), delta=1e-6):.4f}")
0.9512
>>> vector = SkellamDpEvent(variance=160.0, sensitivity=30, l2_sensitivity=6.0)
>>> print(f"{epsilon(vector, delta=1e-6):.4f} by {epsilon(vector, delta=1e-6).accountant}")
2.2931 by renyi
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import attr
import numpy as np

from dpcal import _validate
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.amplification import between, loss_of
from dpcal.accountants.inversion.finite_laws import BYTES_OF_NOISE, FiniteLaw, gathered
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.failure import WholeOrders
from dpcal.accountants.mechanisms.row import Row, distance
from dpcal.errors import UnsupportedEvent

__all__ = ["SkellamDpEvent"]

# Bits of ball arithmetic: differences of logarithms of neighboring masses keep 53 of them.
_BITS = 192
# Noise that is rarer than exp(-680) on either side counts as an infinite loss.
_NATS = 680.0
# Variances that are priced: the largest has 400,000 whole numbers in reach, which take 3 seconds;
# below the smallest, which is almost no noise, nobody needs a price.
_VARIANCES = 1e-12, 1e8


@attr.s(frozen=True, slots=True, auto_attribs=True)
class SkellamDpEvent(DpEvent):  # type: ignore[misc]
    """The Skellam mechanism on a sum of whole numbers, or of vectors of them.

    Parameters
    ----------
    variance
        Variance mu in [1e-12, 1e8] of the noise of each number: of all clients together.
    sensitivity
        Largest size of one record's contribution, a whole number >= 1; of a vector its l1 norm.
    l2_sensitivity
        Largest l2 norm of one record's contribution, if it is a vector; None for a single number.
    """

    variance: float
    sensitivity: int = 1
    l2_sensitivity: float | None = None


@dataclass(frozen=True)
class _Vector(WholeOrders):
    """The bound of Agarwal, Kairouz and Liu 2021 on vectors, at whole orders."""

    variance: float
    l1: float
    l2: float

    def divergence(self, order: int) -> float:
        mu, square = self.variance, self.l2**2
        more = ((2 * order - 1) * square + 6 * self.l1) / (4 * mu**2), 3 * self.l1 / (2 * mu)
        return order * square / (2 * mu) + min(more)


@lru_cache(maxsize=2)
def _log_masses(variance: float, most: int) -> list[Any]:
    """Return the log probabilities of 0, 1, ..., most as balls: a recurrence of positive terms."""
    import flint

    with flint.ctx.workprec(_BITS):
        mu = flint.arb(variance)
        masses = [mu.bessel_i(most + 1, scaled=True), mu.bessel_i(most, scaled=True)]
        for n in range(most, 0, -1):
            masses.append(masses[-2] + 2 * n / mu * masses[-1])
        return [mass.log() for mass in masses[:0:-1]]


def _law(variance: float, shifts: tuple[int, ...], q: float = 1.0) -> FiniteLaw:
    """Return the law of noise that is moved, or that a sampled record moves either way."""
    third, shift = _NATS / 3, max(shifts)
    far = shift + math.ceil(third + math.sqrt(third**2 + 2 * _NATS * variance))
    hold(2 * far, f"a shift by {shift}", BYTES_OF_NOISE)
    logs = _log_masses(variance, far + shift)
    x = range(-far, far + 1)
    noise = np.array([float(logs[abs(n)]) for n in x])
    moved = [np.array([float(logs[abs(n - s)] - logs[abs(n)]) for n in x]) for s in shifts]
    law = FiniteLaw(*(between(noise, moved[0], moved[1], q) if q < 1 else (moved[0], noise)))
    return gathered(replace(law, outside=2 * math.exp(-_NATS), below=law))


def _replaced(event: SkellamDpEvent, q: float) -> FiniteLaw:
    if event.l2_sensitivity is not None:
        raise UnsupportedEvent("The law of what is sampled is not known.")
    shift = int(event.sensitivity)
    return _law(float(event.variance), (shift, -shift), q)


def _of_group(event: SkellamDpEvent, k: int) -> SkellamDpEvent:
    norm = event.l2_sensitivity and math.nextafter(k * event.l2_sensitivity, math.inf)
    return attr.evolve(event, sensitivity=k * event.sensitivity, l2_sensitivity=norm)


@Row(
    SkellamDpEvent(8.0),
    "finite sums; of vectors Renyi alone (Agarwal, Kairouz and Liu 2021)",
    record="sum",
    group=_of_group,
    replaced=_replaced,
)
def _skellam(event: SkellamDpEvent, relation: str) -> PrivacyLoss:
    mu = _validate.within(*_VARIANCES, variance=event.variance)
    shift = distance(relation) * _validate.count(sensitivity=event.sensitivity)
    if event.l2_sensitivity is not None:
        norm = _validate.positive(l2_sensitivity=event.l2_sensitivity)
        return _Vector(mu, shift, distance(relation) * norm)
    return loss_of(_law(mu, (shift,)), repr(event))
