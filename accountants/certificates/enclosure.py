"""Intervals of delta from the numbers of a proof, with every step in ball arithmetic.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.certificates.search.contour import choose_contour
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> parts = decompose(event, "add-or-remove-one").directions[0].parts
>>> lower, upper = enclose(choose_contour(parts, 8.0, log_delta=-17.7, width=1e-9), parts, 8.0)
>>> print(*decimal_bounds(lower, upper, 8))
2.0283809E-8 2.0283810E-8
"""

from __future__ import annotations

import contextlib
from dataclasses import replace
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal

from dpcal.accountants.certificates.balls import Ball, arb, workprec
from dpcal.accountants.certificates.pairs import least_mean
from dpcal.accountants.certificates.proofs import Proof
from dpcal.accountants.losses.base import NO_LOSS, Parts, PrivacyLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian_mixtures import GaussianMixtures
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian

# Relative error of rounded doubles: 2^-53 for a quotient, a few times this for a sum of weights.
_ROUNDING = 2.0**-50
# Decimal digits: claims have 3 to 40.
_DIGITS = 60
# No decimal is written beyond it: at 2^17 it has 40,000 digits.
_FARTHEST_EXPONENT = 1 << 17
# Upper bound on all positive numbers with a smaller exponent: it is larger than 2^-(2^17).
_LEAST = Decimal("1E-39000")


def enclose(
    proof: Proof, parts: Parts, epsilon: float, *, rounded: bool = False
) -> tuple[Ball, Ball]:
    """Return the lower and the upper bound on delta(epsilon) that a proof gives, as balls.

    Parameters
    ----------
    proof
        Proof with any numbers in the ranges that its record states. Bad numbers give wide bounds,
        never false ones.
    parts
        Losses, and how often each is used.
    epsilon
        The epsilon >= 0 at which delta is bounded.
    rounded
        Whether sampling probabilities and weights are quotients that were rounded.
    """
    ends = []
    with workprec(proof.bits):
        for above in (False, True):
            end = arb(above)
            finite, given = _side(parts, rounded, above)
            with contextlib.suppress(ArithmeticError, LookupError, ValueError):
                end = 1 - finite + finite * proof.bound(given, epsilon, above)
            ends.append(end)
        return ends[0], arb.min(ends[1], arb(1))


def _side(parts: Parts, rounded: bool, above: bool) -> tuple[Ball, Parts]:
    """Return the probability that no loss is infinite, and the losses given that none is.

    The returned losses are above the losses of the mechanisms, or below them.
    """
    finite, given = arb(1), []
    for loss, times in parts:
        if isinstance(loss, LossWithFailure):
            finite *= (1 - arb(loss.failure_probability)) ** times
            loss = loss.given
        if loss is not NO_LOSS:
            given.append((_end(loss, above) if rounded else loss, times))
    return finite, tuple(given)


def _end(loss: PrivacyLoss, above: bool) -> PrivacyLoss:
    """Return the loss at the largest or the least probabilities that round to the given ones.

    A larger sampling probability reveals more: a sample can be sampled again. So do larger weights
    of the means that a single mean of the other mixture is not, by the lemma of Neyman and Pearson.
    Mixtures on both sides are of a sampling probability that is exact.
    """
    factor = 1 + _ROUNDING if above else 1 - _ROUNDING
    if isinstance(loss, SampledGaussian | FixedBatchGaussian):
        return replace(loss, sampling_probability=loss.sampling_probability * factor)
    if not isinstance(loss, GaussianMixtures) or len(loss.numerator) > 1 < len(loss.denominator):
        return loss
    p, q = (
        tuple((m, w if m == least_mean(side) else w * factor) for m, w in side)
        for side in (loss.numerator, loss.denominator)
    )
    return replace(loss, numerator=p, denominator=q)


def decimal_bounds(lower: Ball, upper: Ball, digits: int = _DIGITS) -> tuple[Decimal, Decimal]:
    """Return bounds on a probability as decimals with some digits, rounded outward.

    No probability in the ball ``lower`` is below the first one, and none in ``upper`` is above the
    second.
    """
    low = _decimal(lower.lower(), digits, ROUND_FLOOR)
    return low, _decimal(upper.upper(), digits, ROUND_CEILING)


def relative_width(lower: Decimal, upper: Decimal) -> float:
    """Return the width of an interval relative to its upper end; 0 if that is 0."""
    return float((upper - lower) / upper) if upper else 0.0


def _decimal(point: Ball, digits: int, rounding: str) -> Decimal:
    """Return the probability that is nearest to an exact ball, as a rounded decimal.

    A tiny probability is not written to its last bit.
    """
    above = rounding == ROUND_CEILING
    if not point.is_finite() or not 0 < point < 1:
        return Decimal(int(above if not point.is_finite() else point > 0))
    mantissa, exponent = (int(part) for part in point.man_exp())
    if exponent < -_FARTHEST_EXPONENT - mantissa.bit_length():
        return _LEAST if above else Decimal(0)
    context = Context(prec=digits, rounding=rounding, Emin=MIN_EMIN, Emax=MAX_EMAX)
    return context.divide(Decimal(mantissa), Decimal(1 << -exponent))
