r"""Which pairs dominate a Gaussian mechanism on a random batch? One function for each sampler.

Each function returns the losses for removing and for adding a record; where the relation is
symmetric the two are one pair, which dominates both orders of every two neighbors. Noise
multipliers are the noise over the bound on *one record's* contribution, so a replaced record moves
a sum by up to 2.

All functions follow one argument. Given everything that the record does not influence, the output
is a mixture over whether the record was drawn. The hockey-stick divergence is jointly convex, so
everything else may be fixed at its worst value, or be published beside the output; and the worst
means lie on a line.

Every function takes a noise multiplier sigma > 0 and any neighboring relation.

>>> remove, add = poisson(0.01, 1.0, "replace-one")
>>> remove == add, remove.numerator, remove.denominator
(True, ((0.0, 0.99), (1.0, 0.01)), ((0.0, 0.99), (-1.0, 0.01)))
>>> without_replacement(10_000, 100, 2.0, "replace-one")[0]
FixedBatchGaussian(sampling_probability=0.01, noise_multiplier=1.0)
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcal import _validate
from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.fixed_batch import FixedBatchGaussian
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians, replaced_record
from dpcal.accountants.losses.random_choice import RandomChoice
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.accountants.mechanisms.row import Pairs
from dpcal.errors import UnsupportedEvent

__all__ = [
    "poisson",
    "share_of_batch",
    "truncated_poisson",
    "with_replacement",
    "without_replacement",
]

# This value replaces a probability below the range of a double.
_SMALLEST = 1e-300
# Most records of a sample that is truncated: neighboring whole numbers are doubles.
_MOST_RECORDS = 2.0**53
# Bound on the relative error of binomial probabilities; those of scipy 1.17 are within 2e-10 of
# sums at 40 digits, for up to 1e7 trials.
_MARGIN = 1e-9
# Probability, per step, of a number of draws of one record that counts as a failure, with an
# infinite loss: it adds to delta. Rarer draws would widen the bounds.
_FAILURE = 1e-18
# Most draws of one record that are priced.
_MOST_DRAWS = 64


def poisson(q: float, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Gaussian on a batch that each record joins with probability q.

    A record that is added, removed or blanked out gives the sampled pair (Zhu, Dong and Wang 2022,
    Theorem 11); a replaced record gives the pair of
    :func:`~dpcal.accountants.losses.gaussian_mixtures.replaced_record`.

    Parameters
    ----------
    q
        In (0, 1].
    """
    q = _validate.rate(sampling_probability=q)
    loss: PrivacyLoss
    if q == 1:
        loss = Gaussian(sigma / 2 if relation == "replace-one" else sigma)
    elif relation == "replace-one":
        loss = replaced_record(sampling_probability=q, noise_multiplier=sigma)
    else:
        return SampledGaussian(q, sigma, "remove"), SampledGaussian(q, sigma, "add")
    return loss, loss


def without_replacement(size: int, batch: int, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Gaussian on ``batch`` distinct records out of ``size``.

    A record always takes its place in the batch from another one, so the two sums differ by up to
    2 under every relation. Replacing a record, by another or by a blank one (which counts among the
    ``size``, and contributes 0), gives
    :class:`~dpcal.accountants.losses.fixed_batch.FixedBatchGaussian`.
    When one is added or removed, the larger data set having ``size`` records, the output without
    the record is that of a batch in which another one stands in its place: the sampled pair at
    distance 2, one direction for each order.

    Parameters
    ----------
    size, batch
        Whole numbers, as :func:`share_of_batch` takes them.
    """
    q = share_of_batch(size, batch, relation)
    if q == 1:
        loss: PrivacyLoss = Gaussian(sigma / 2 if relation == "replace-one" else sigma)
        return loss, loss
    return _displacing(q, sigma, relation)


def share_of_batch(size: int, batch: int, relation: str) -> float:
    """Return the probability that a record is in a batch of ``batch`` distinct ones of ``size``.

    Parameters
    ----------
    size, batch
        Whole numbers, 1 <= batch <= size.

    Raises
    ------
    UnsupportedEvent
        For a batch of every record under add-or-remove-one.
    """
    size = _validate.count(source_dataset_size=size)
    m = _validate.count(sample_size=batch)
    if m > size:
        raise ValueError(
            f"sample_size must be at most source_dataset_size = {size}, got {batch!r}."
        )
    if m == size and relation == "add-or-remove-one":
        raise UnsupportedEvent(
            f"A batch of all {size} records has no neighbor with one record less: "
            "sample_size must be below source_dataset_size under 'add-or-remove-one'."
        )
    return m / size


def _displacing(q: float, sigma: float, relation: str) -> Pairs:
    """Return the pairs of a record that is in the batch with probability q, in place of another."""
    if relation == "add-or-remove-one":
        return SampledGaussian(q, sigma / 2, "remove"), SampledGaussian(q, sigma / 2, "add")
    loss = FixedBatchGaussian(q, sigma / 2)
    return loss, loss


def with_replacement(size: int, batch: int, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Gaussian on ``batch`` independent draws from ``size`` records.

    A record is drawn k times with the probability b_k of Bin(batch, 1 / size), each time in another
    one's place. Replaced, it costs at most as if k were published: H_alpha <= sum of b_k times
    H_a(N(2 k) || N(0)), a = 1 + (alpha - 1) / (1 - b_0) (Balle, Barthe and Gaboardi 2018, Theorem
    10); so a choice among fixed-size batches with gaps 2 k. Blanked out, no more. Added or removed
    (the larger data set having ``size`` records), the mixture of N(2 k) against N(0) dominates:
    however the shifts point, N(0) being given, half-lines give every N(2 k) its largest chance
    at once.

    A number of draws that is exceeded with a probability below 1e-18 counts as a failure, with an
    infinite loss. The loss grows with the draws, so probabilities are rounded towards more draws,
    and towards fewer for the lower end.

    Parameters
    ----------
    size, batch
        Whole numbers >= 1.
    """
    size = _validate.count(source_dataset_size=size)
    batch = _validate.count(sample_size=batch)
    if size == 1:
        raise UnsupportedEvent("A single record is drawn always: source_dataset_size must be > 1.")
    # With more draws on average than are priced, no number of draws is rarely exceeded.
    tried = range(1, min(batch, _MOST_DRAWS) + 1 if batch <= _MOST_DRAWS * size else 1)
    beyond = {k: _chance_beyond(k, batch, size) for k in tried}
    most = next((k for k in tried if beyond[k] < _FAILURE), batch)
    if most > _MOST_DRAWS:
        raise UnsupportedEvent(
            f"{batch} draws from {size} records may hold one record too often to be priced."
        )
    drawn = -math.expm1(batch * math.log1p(-1 / size))
    chances = [_chance(k, batch, size) for k in range(most + 1)]
    failure = max(beyond[most] * (1 + _MARGIN), _SMALLEST)
    sides = (
        _of_draws(chances, drawn, sigma, relation, way) for way in (_towards_more, _towards_fewer)
    )
    remove, add = (
        LossWithFailure(above, failure, below) for above, below in zip(*sides, strict=True)
    )
    return remove, add


def _chance(k: int, batch: int, size: int) -> float:
    """Return the probability that one of ``size`` records is drawn k times, to some 1e-14."""
    value = math.exp((batch - k) * math.log1p(-1 / size))
    for i in range(k):
        value *= (batch - i) / (i + 1) / size
    return value


def _chance_beyond(k: int, batch: int, size: int) -> float:
    """Return the probability of more than k draws, without terms that are less than rounding."""
    total = 0.0
    for count in range(k + 1, batch + 1):
        term = _chance(count, batch, size)
        total += term
        # Beyond twice the mean, terms fall by half or more.
        if count * size > 2 * batch and term <= 1e-17 * total:
            break
    return total


def _of_draws(
    chances: list[float],
    drawn: float,
    sigma: float,
    relation: str,
    rounded: Callable[[list[float]], list[float]],
) -> Pairs:
    """Return the losses of a record that is drawn k times with the probability ``chances[k]``."""
    if relation == "add-or-remove-one":
        shifts = [2.0 * k for k in range(len(chances))]
        return mixture_of_gaussians(shifts, rounded(chances), standard_deviation=sigma)
    margin = _MARGIN if rounded is _towards_more else -_MARGIN
    drawn = min(drawn * (1 + margin), math.nextafter(1.0, 0.0))
    choices = [
        (share, FixedBatchGaussian(drawn, sigma / (2 * k)))
        for k, share in enumerate(rounded(chances[1:]), start=1)
        if share > 0
    ]
    loss = RandomChoice(tuple(choices))
    return loss, loss


def _towards_more(chances: list[float]) -> list[float]:
    """Return the law on 0, 1, ... proportional to ``chances``, with every tail rounded up."""
    total = math.fsum(chances)
    tails = [
        min(1.0, math.fsum(chances[k:]) / total * (1 + 2 * _MARGIN)) for k in range(len(chances))
    ]
    return [tail - further for tail, further in zip(tails, [*tails[1:], 0.0], strict=True)]


def _towards_fewer(chances: list[float]) -> list[float]:
    """Return the law on 0, 1, ... proportional to ``chances``, with every tail rounded down."""
    total = math.fsum(chances) * (1 + 4 * _MARGIN)
    others = [chance / total for chance in chances[1:]]
    return [1 - math.fsum(others), *others]


def truncated_poisson(size: int, q: float, batch: int, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Poisson sample of which at most ``batch`` random records are kept.

    Whether ``batch`` or more of the *other* records were drawn does not depend on the record, and
    may be published. If fewer were, the sample is not truncated. If so many were, the batch is full
    either way, and the record is in it with probability P(Bin(size, q) > batch) batch / size over
    that of the condition, in another one's place. (Compare Ganesh et al. 2025, arXiv:2508.15089.)

    Binomial tails have a relative error: what it leaves open is the chance of a third case, a
    record that displaces another one with probability q, which dominates both. For the lower end
    both probabilities are smaller, as if a record that was drawn were at times left out.

    Parameters
    ----------
    size
        Number of records; the larger number if a record is added or removed.
    q
        Sampling probability in [0, 1].
    batch
        Largest size >= 1 of a batch.
    """
    from scipy.stats import binom

    size = int(_validate.within(1, _MOST_RECORDS, dataset_size=_validate.count(dataset_size=size)))
    batch = _validate.count(truncated_batch_size=batch)
    q = _validate.within(0.0, 1.0, sampling_probability=q)
    if q == 0:
        return NO_LOSS, NO_LOSS
    if batch >= size:
        return poisson(q, sigma, relation)
    if q == 1:
        return without_replacement(size, batch, sigma, relation)
    full = float(binom.sf(batch - 1, size - 1, q))
    short = float(binom.cdf(batch - 1, size - 1, q))
    # A share below the range of a double is replaced by its bound q.
    share = q
    if full > _SMALLEST:
        drawn = float(binom.sf(batch, size, q)) * (1 + 3 * _MARGIN)
        share = min(q, drawn * batch / (full * size))
    # The error of the rarer case bounds that of the other, its complement.
    rare = max(min(short, full), _SMALLEST)
    common, least = 1 - rare * (1 + _MARGIN), rare * (1 - _MARGIN)
    chances = (common, least) if full < short else (least, common)
    open_chance = max(2 * _MARGIN * rare, _SMALLEST)
    plain, truncated = poisson(q, sigma, relation), _displacing(share, sigma, relation)
    either = _displacing(q, sigma, relation)
    fewer = 1 - 8 * _MARGIN
    lower = poisson(fewer * q, sigma, relation), _displacing(fewer * share, sigma, relation)
    lower_chances = (1 - least, least) if full < short else (least, 1 - least)

    def below(direction: int) -> PrivacyLoss:
        if rare == _SMALLEST:
            return lower[0 if full < short else 1][direction]
        found = (pair[direction] for pair in lower)
        return RandomChoice(tuple(zip(lower_chances, found, strict=True)))

    remove, add = (
        RandomChoice(tuple(zip((*chances, open_chance), losses, strict=True)), below(k))
        for k, losses in enumerate(zip(plain, truncated, either, strict=True))
    )
    return remove, add
