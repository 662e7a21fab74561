r"""Which pairs dominate a Gaussian mechanism on a random batch? One function for each sampler.

Each function returns the losses for removing and for adding a record; where the relation is
symmetric the two are one pair, which dominates both orders of every two neighbors. Noise
multipliers are the noise over the bound on *one record's* contribution, so a replaced record moves
a sum by up to 2.

All functions follow one argument. Given everything that the record does not influence, the output
is a mixture over whether the record was drawn. The hockey-stick divergence is jointly convex, so
everything else may be fixed at its worst value, or be published; and the worst means lie on a line.

>>> remove, add = poisson(0.01, 1.0, "replace-one")
>>> remove == add, remove.numerator, remove.denominator
(True, ((0.0, 0.99), (1.0, 0.01)), ((0.0, 0.99), (-1.0, 0.01)))
>>> displacing(0.01, 2.0, "replace-one")[0]
FixedBatchGaussian(sampling_probability=0.01, noise_multiplier=1.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from dpcal._internal import lazy, validate
from dpcal.accountants import events
from dpcal.accountants.losses.base import PrivacyLoss, Reals
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians, replaced_record
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.mechanisms.gaussian import noise_of
from dpcal.accountants.mechanisms.row import Pairs, Row, refuse
from dpcal.errors import UnsupportedEvent

_SMALLEST = 1e-300
# Most records of a sample that is truncated: neighboring whole numbers are doubles.
_MOST_RECORDS = 2.0**53
# Bits of ball arithmetic, which leave more than 53 of a difference from 1 of 1e-40.
_BITS = 256
# Relative error of probabilities: more than rounding balls to doubles, and the products after it.
_MARGIN = 1e-13
# Probability, per step, from which a number of draws counts as a failure: it adds to delta.
_FAILURE, _OF_REPLACED = 1e-18, 3e-23
_MOST_DRAWS = 64
_flint = lazy.Module("flint")
SAMPLERS = "[samplers](../explanation/batches.md#samplers-and-relations)"


def poisson(q: float, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Gaussian on a batch that each record joins with probability q < 1.

    A record that is added, removed or blanked out gives the sampled pair (Zhu, Dong and Wang 2022,
    Theorem 11); a replaced record gives the pair of
    :func:`~dpcal.accountants.losses.gaussian_mixtures.replaced_record`.
    """
    if relation == "replace-one":
        loss = replaced_record(sampling_probability=q, noise_multiplier=sigma)
        return loss, loss
    return SampledGaussian(q, sigma, "remove"), SampledGaussian(q, sigma, "add")


def displacing(q: float, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Gaussian on a batch that has a record in place of another one.

    The record takes its place with probability q < 1, so the two sums differ by up to 2 under every
    relation. Replacing a record, by another one or by a zero (which counts as a record), gives
    :class:`~dpcal.accountants.losses.fixed_batch.FixedBatchGaussian`. When one is added or removed,
    the batch without the record has another record in its place: the sampled pair at distance 2,
    one direction for each order.
    """
    if relation == "add-or-remove-one":
        return poisson(q, sigma / 2, relation)
    loss = FixedBatchGaussian(q, sigma / 2)
    return loss, loss


@Row(events.SampledWithReplacementDpEvent(10, 2, events.GaussianDpEvent(1.0)), SAMPLERS)
def _with_replacement(event: events.SampledWithReplacementDpEvent, relation: str) -> Pairs:
    """Return the losses of a Gaussian on independent draws from all records.

    A record is drawn k times with the probability b_k of Bin(batch, 1 / size), each time in another
    one's place. Replaced, it costs at most as if k were published: H_alpha <= sum of b_k times
    H_a(N(2 k) || N(0)), a = 1 + (alpha - 1) / (1 - b_0) (Balle, Barthe and Gaboardi 2018, Theorem
    10); so a choice among fixed-size batches with gaps 2 k. Blanked out, no more. Added or removed
    (the larger data set having ``size`` records), the mixture of N(2 k) against N(0) dominates:
    however the shifts point, N(0) being given, half-lines give every N(2 k) its largest chance
    at once.

    A number of draws that is exceeded with a probability below 1e-18, or 3e-23 if a record is
    replaced, counts as a failure, with an infinite loss. The loss grows with the draws, so
    probabilities of so many or more are rounded up, and down for the lower end, which has no
    failure.
    """
    sigma = noise_of(event.event)
    if sigma is None:
        reason = "Only Gaussian mechanisms and compositions of them are priced on repeated draws."
        raise refuse(event, relation, reason)
    size = validate.count(source_dataset_size=event.source_dataset_size)
    batch = validate.count(sample_size=event.sample_size)
    if size == 1:
        raise UnsupportedEvent("A single record is drawn always: source_dataset_size must be > 1.")
    beyond = _beyond(batch, size)
    mixed = relation == "add-or-remove-one"
    rare = np.flatnonzero(beyond < (_FAILURE if mixed else _OF_REPLACED))
    if batch > _MOST_DRAWS and not len(rare):
        raise UnsupportedEvent(
            f"{batch} draws from {size} records may hold one record too often to be priced."
        )
    most, failure = (rare[0], beyond[rare[0]]) if len(rare) else (batch, 0.0)
    failure = max(float(failure) * (1 + _MARGIN), _SMALLEST)
    sides = (_of_draws(beyond[:most] * (1 + way), sigma, relation) for way in (_MARGIN, -_MARGIN))
    remove, add = (LossWithFailure(up, failure, down) for up, down in zip(*sides, strict=True))
    return remove, add


def _beyond(batch: int, size: int) -> Reals:
    """Return the probabilities of more than 0, 1, ... draws of one record."""
    share, most = _flint.fmpq(1, size), min(batch, _MOST_DRAWS + 1)
    return np.array([float(_tails(k + 1, batch, share)[0]) for k in range(most)])


def _of_draws(reached: Reals, sigma: float, relation: str) -> Pairs:
    """Return the losses of a record that is drawn 1, 2, ... times or more with probabilities."""
    reached = np.minimum(reached, 1.0)
    chances = reached - np.append(reached[1:], 0.0)
    if relation == "add-or-remove-one":
        shifts = [2.0 * k for k in range(len(chances) + 1)]
        shares = [float(1 - reached[0]), *chances.tolist()]
        return mixture_of_gaussians(shifts, shares, standard_deviation=sigma)
    drawn = min(float(reached[0]), math.nextafter(1.0, 0.0))
    batches = (FixedBatchGaussian(drawn, sigma / (2 * k)) for k in range(1, len(chances) + 1))
    loss = _choice(chances / reached[0], batches)
    return loss, loss


def _choice(
    chances: Iterable[float], losses: Iterable[PrivacyLoss], below: PrivacyLoss | None = None
) -> PrivacyLoss:
    """Return the loss of a choice that is public; some probabilities may be 0."""
    pairs = zip(chances, losses, strict=True)
    return RandomChoice(tuple((float(chance), loss) for chance, loss in pairs if chance > 0), below)


def _rarely_truncated(
    event: events.TruncatedSubsampledGaussianDpEvent, relation: str
) -> events.DpEvent | None:
    """Return the sample that is always truncated, or never."""
    count = validate.count(dataset_size=event.dataset_size)
    size = validate.within(1, _MOST_RECORDS, dataset_size=count)
    batch = validate.count(truncated_batch_size=event.truncated_batch_size)
    q = validate.within(0.0, 1.0, sampling_probability=event.sampling_probability)
    gaussian = events.GaussianDpEvent(event.noise_multiplier)
    if q == 0 or batch >= size:
        return events.PoissonSampledDpEvent(q, gaussian)
    return events.SampledWithoutReplacementDpEvent(int(size), batch, gaussian) if q == 1 else None


@Row(events.TruncatedSubsampledGaussianDpEvent(20, 0.1, 5, 1.0), SAMPLERS, same=_rarely_truncated)
def _truncated(event: events.TruncatedSubsampledGaussianDpEvent, relation: str) -> Pairs:
    """Return the losses of a Poisson sample that keeps at most ``batch`` random records.

    Whether ``batch`` or more of the *other* records were drawn does not depend on the record, and
    may be published. If fewer were, the sample is not truncated. With so many, the batch is full
    either way, and the record is in it with probability P(Bin(size, q) > batch) batch / size over
    the probability of the condition, in another one's place. (Compare Ganesh et al. 2025,
    arXiv:2508.15089.)

    Binomial tails have a relative error: the open part is the probability of a third case, a record
    that displaces another one with probability q, which dominates both. For the lower end both
    probabilities are smaller, as if a record that was drawn were at times left out.
    """
    sigma = validate.noise(noise_multiplier=event.noise_multiplier)
    q, size, batch = map(
        float, (event.sampling_probability, event.dataset_size, event.truncated_batch_size)
    )
    full, short = _tails(batch, size - 1, q)
    with _flint.ctx.workprec(_BITS):
        found = _tails(batch + 1, size, q)[0] * batch / (full * size)
    share = min(q, float(found.upper()) * (1 + 3 * _MARGIN)) if _is_known(found) else q
    way = 1 if full < short else -1
    rare = full if full < short else short
    most = max(float(rare.upper()) * (1 + _MARGIN), _SMALLEST)
    least = float(rare) * (1 - _MARGIN) if _is_known(rare) else 0.0
    above, below = [*(1 - most, least)[::way], most - least], (1 - least, least)[::way]
    fewer = 1 - 8 * _MARGIN
    upper = poisson(q, sigma, relation), displacing(share, sigma, relation)
    lower = poisson(fewer * q, sigma, relation), displacing(fewer * share, sigma, relation)
    remove, add = (
        _choice(above, losses, _choice(below, less))
        for *losses, less in zip(
            *upper, displacing(q, sigma, relation), zip(*lower, strict=True), strict=True
        )
    )
    return remove, add


@lru_cache(maxsize=256)
def _tails(k: float, trials: float, p: Any) -> tuple[Any, Any]:
    """Return the probabilities of k or more of so many trials, and of fewer, as balls."""
    with _flint.ctx.workprec(_BITS):
        more, fewer, chance = (_flint.arb(x) for x in (k, trials - k + 1, p))
        upper = chance.beta_lower(more, fewer, regularized=True)
        lower = (1 - chance).beta_lower(fewer, more, regularized=True)
        if _is_known(upper):
            return upper, lower if _is_known(lower) else 1 - upper
        return 1 - lower, lower


def _is_known(ball: Any) -> bool:
    """Return whether a ball has the digits of a double."""
    return bool(ball.rel_accuracy_bits() > 53)
