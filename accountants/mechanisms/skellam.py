r"""Skellam noise on sums of whole numbers, which a sum over clients keeps (Agarwal et al. 2021).

The noise is the difference of two Poisson numbers of mean mu / 2 each: it has variance mu and
probabilities exp(-mu) I_n(mu), I_n a modified Bessel function. Poisson numbers have log-concave
laws, and so does their difference: the largest shift of one number dominates all others. By
Bernstein's inequality, as cosh t - 1 <= e^t - 1 - t, it is n or more with a probability of at most
exp(-n^2 / (2 mu + 2 n / 3)).

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

import attr
import numpy as np

from dpcal._internal import lazy, validate
from dpcal.accountants.events import DpEvent
from dpcal.accountants.inversion.amplification import between, loss_of
from dpcal.accountants.inversion.finite_laws import FiniteLaw, gathered
from dpcal.accountants.limits import BYTES_OF_NOISE, hold
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.failure import WholeOrders
from dpcal.accountants.mechanisms.row import Row, distance, times

# Bits of ball arithmetic: differences of logarithms of neighboring masses keep 53 of them.
_BITS = 192
# Noise that is rarer than exp(-680) on either side counts as an infinite loss.
_NATS = 680.0
_flint = lazy.Module("flint")


@attr.s(frozen=True, slots=True, auto_attribs=True)
class SkellamDpEvent(DpEvent):  # type: ignore[misc]
    """The Skellam mechanism on a sum of whole numbers, or of vectors of them.

    Parameters
    ----------
    variance
        Variance mu in [1e-12, 1e8] of the noise of each number, added over all clients.
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


def _law(event: SkellamDpEvent, shift: int, q: float = 1.0) -> FiniteLaw:
    """Return the law of noise that is moved, or that a sampled record moves either way."""
    variance, shift, third = float(event.variance), int(shift), _NATS / 3
    far = shift + math.ceil(third + math.sqrt(third**2 + 2 * _NATS * variance))
    hold(2 * far, f"a shift by {shift}", BYTES_OF_NOISE)
    with _flint.ctx.workprec(_BITS):
        mu, most = _flint.arb(variance), far + shift
        masses = [mu.bessel_i(most + 1, scaled=True), mu.bessel_i(most, scaled=True)]
        for n in range(most, 0, -1):
            masses.append(masses[-2] + 2 * n / mu * masses[-1])
        logs = [mass.log() for mass in masses[:0:-1]]
    x = range(-far, far + 1)
    noise = np.array([float(logs[abs(n)]) for n in x])
    up = np.array([float(logs[abs(n - shift)] - logs[abs(n)]) for n in x])
    law = FiniteLaw(*(between(noise, up, up[::-1], q) if q < 1 else (up, noise)))
    return gathered(replace(law, outside=2 * math.exp(-_NATS), below=law))


@Row(
    SkellamDpEvent(8.0),
    "finite sums; of vectors Renyi alone (Agarwal, Kairouz and Liu 2021)",
    record="sum",
    group=times("sensitivity", "l2_sensitivity"),
    replaced=lambda event, q: None if event.l2_sensitivity else _law(event, event.sensitivity, q),
)
def _skellam(event: SkellamDpEvent, relation: str) -> PrivacyLoss:
    # The largest has 400,000 whole numbers in reach, which take 3 seconds.
    mu = validate.within(1e-12, 1e8, variance=event.variance)
    shift = distance(relation) * validate.count(sensitivity=event.sensitivity)
    if event.l2_sensitivity is None:
        return loss_of(_law(event, shift), repr(event))
    norm = validate.positive(l2_sensitivity=event.l2_sensitivity)
    return _Vector(mu, shift, distance(relation) * norm)
