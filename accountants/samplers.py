r"""Which pairs dominate a Gaussian mechanism on a random batch? One function for each sampler.

Each returns the losses for removing and for adding a record; where the relation is symmetric the
two are one pair, which dominates both orders of every two neighbors. Noise multipliers are the
noise over the bound on *one record's* contribution, so a replaced record moves a sum by up to 2.

The argument is the same throughout. Given all that the record does not influence, the output is a
mixture over whether it was drawn; the hockey-stick divergence is jointly convex, so the rest may be
fixed, or revealed, at its worst; and the worst means lie on a line.

>>> remove, add = poisson(0.01, 1.0, "replace-one")
>>> remove == add, remove.above, remove.below
(True, ((0.0, 0.99), (1.0, 0.01)), ((0.0, 0.99), (-1.0, 0.01)))
>>> without_replacement(10_000, 100, 2.0, "replace-one")[0]
FixedBatchGaussian(sampling_probability=0.01, noise_multiplier=1.0)
"""

from __future__ import annotations

from scipy.stats import binom

from dpcal import _validate
from dpcal.accountants.envelope import FixedBatchGaussian
from dpcal.accountants.loss import Gaussian, PrivacyLoss
from dpcal.accountants.mixtures import replaced_record
from dpcal.accountants.revealed import RevealedChoice
from dpcal.accountants.sampled import SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["poisson", "truncated_poisson", "without_replacement"]

Pairs = tuple[PrivacyLoss, PrivacyLoss]

# Stands for a chance below the range of a double.
_SMALLEST = 1e-300


def poisson(q: float, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Gaussian on a batch that each record joins with probability q.

    A record that is added, removed or blanked out gives the sampled pair (Zhu, Dong and Wang 2022,
    Theorem 11); a replaced one that of :func:`~dpcal.accountants.mixtures.replaced_record`.

    Parameters
    ----------
    q
        In (0, 1].
    sigma
        Noise multiplier > 0.
    relation
        Any neighboring relation.
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
    ``size``, and contributes 0), gives :class:`~dpcal.accountants.envelope.FixedBatchGaussian`.
    When one is added or removed, the larger data set having ``size`` records, the output without
    the record is that of a batch in which another one stands in its place: the sampled pair at
    distance 2, one direction for each order.

    Parameters
    ----------
    size, batch
        Whole numbers, 1 <= batch <= size.
    sigma
        Noise multiplier > 0.
    relation
        Any neighboring relation.

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
    if m == size:
        loss: PrivacyLoss = Gaussian(sigma / 2 if relation == "replace-one" else sigma)
        return loss, loss
    return _displacing(m / size, sigma, relation)


def _displacing(q: float, sigma: float, relation: str) -> Pairs:
    """A record that is in the batch with probability q, and displaces another one."""
    if relation == "add-or-remove-one":
        return SampledGaussian(q, sigma / 2, "remove"), SampledGaussian(q, sigma / 2, "add")
    loss = FixedBatchGaussian(q, sigma / 2)
    return loss, loss


def truncated_poisson(size: int, q: float, batch: int, sigma: float, relation: str) -> Pairs:
    """Return the losses of a Poisson sample of which at most ``batch`` random records are kept.

    Whether ``batch`` or more of the *other* records were drawn does not depend on the record, and
    is revealed. If fewer were, the sample is not truncated. If so many were, the batch is full
    either way, and the record is in it with probability P(Bin(size, q) > batch) batch / size over
    that of the condition, in another one's place. (Compare Ganesh et al. 2025, arXiv:2508.15089.)

    Parameters
    ----------
    size
        Number of records, the larger one where a record is added or removed.
    q
        Sampling probability in (0, 1].
    batch
        Largest size >= 1 of a batch.
    sigma
        Noise multiplier > 0.
    relation
        Any neighboring relation.
    """
    size = _validate.count(dataset_size=size)
    batch = _validate.count(truncated_batch_size=batch)
    q = _validate.rate(sampling_probability=q)
    if batch >= size:
        return poisson(q, sigma, relation)
    if q == 1:
        return without_replacement(size, batch, sigma, relation)
    full = float(binom.sf(batch - 1, size - 1, q))
    # A chance below the range of a double is raised to it; the share, to its bound q.
    share = min(q, float(binom.sf(batch, size, q)) * batch / (full * size)) if full else q
    full = max(full, _SMALLEST)
    short = max(float(binom.cdf(batch - 1, size - 1, q)), _SMALLEST)
    plain, displacing = poisson(q, sigma, relation), _displacing(share, sigma, relation)
    remove, add = (
        RevealedChoice(((short, untruncated), (full, truncated)))
        for untruncated, truncated in zip(plain, displacing, strict=True)
    )
    return remove, add
