"""The vocabulary of mechanisms: dp-accounting's ``DpEvent`` classes, a few more, and shorthands.

Event classes that files of ``accountants/mechanisms/`` declare next to their losses are found here,
too:

>>> SkellamDpEvent = __getattr__("SkellamDpEvent")      # events.SkellamDpEvent
>>> SkellamDpEvent(variance=8.0)
SkellamDpEvent(variance=8.0, sensitivity=1, l2_sensitivity=None)
>>> dpsgd(sampling_probability=0.01, noise_multiplier=1.1, steps=100)
... # doctest: +NORMALIZE_WHITESPACE
SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01,
event=GaussianDpEvent(noise_multiplier=1.1)), count=100)
"""

import os
import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from typing import Any

import attr

from dpcal._internal import lazy, validate


def _load_vocabulary() -> None:
    """Load the module ``dp_accounting.dp_event`` without its package's accountants.

    Its classes need only attrs, but importing the package takes half a second. The module is
    registered under its own name, so that a later ``import dp_accounting`` finds the same classes.
    """
    name = "dp_accounting.dp_event"
    package = None if "dp_accounting" in sys.modules else find_spec("dp_accounting")
    if package is None or not package.submodule_search_locations:
        return
    path = os.path.join(package.submodule_search_locations[0], "dp_event.py")
    spec = spec_from_file_location(name, path)
    if spec is not None and spec.loader is not None and os.path.exists(path):
        module = sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(module)


_load_vocabulary()

from dp_accounting.dp_event import (  # noqa: E402
    ComposedDpEvent as ComposedDpEvent,
    DiscreteLaplaceDpEvent as DiscreteLaplaceDpEvent,
    DpEvent as DpEvent,
    GaussianDpEvent as GaussianDpEvent,
    LaplaceDpEvent as LaplaceDpEvent,
    MixtureOfGaussiansDpEvent as MixtureOfGaussiansDpEvent,
    NonPrivateDpEvent as NonPrivateDpEvent,
    NoOpDpEvent as NoOpDpEvent,
    PoissonSampledDpEvent as PoissonSampledDpEvent,
    RandomizedResponseDpEvent as RandomizedResponseDpEvent,
    RepeatAndSelectDpEvent as RepeatAndSelectDpEvent,
    SampledWithoutReplacementDpEvent as SampledWithoutReplacementDpEvent,
    SampledWithReplacementDpEvent as SampledWithReplacementDpEvent,
    SelfComposedDpEvent as SelfComposedDpEvent,
    SingleEpochTreeAggregationDpEvent as SingleEpochTreeAggregationDpEvent,
    TruncatedSubsampledGaussianDpEvent as TruncatedSubsampledGaussianDpEvent,
    UnsupportedDpEvent as UnsupportedDpEvent,
    ZCDpEvent as ZCDpEvent,
)

_mechanisms = lazy.Module("dpcal.accountants.mechanisms.row")


def __getattr__(name: str) -> Any:
    """Return the class of events of this name that a file of mechanisms declares."""
    if name.endswith("DpEvent"):
        for event in _mechanisms.rows():
            if event.__name__ == name:
                return event
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


@attr.s(frozen=True, slots=True, auto_attribs=True)
class AboveThresholdDpEvent(DpEvent):  # type: ignore[misc]
    """The sparse vector technique until its first answer above a threshold, however late it comes.

    The threshold gets Laplace noise once, and each query has Laplace noise of its own. It is public
    which queries stayed below (Dwork and Roth 2014, Algorithm 1; Lyu, Su and Li 2017, Algorithm 1).

    Parameters
    ----------
    threshold_noise, query_noise
        Scales > 0 of both noises, in units of the distance by which adding, removing or blanking
        one record moves a query; replacing one moves it twice as far.
    """

    threshold_noise: float
    query_noise: float


@attr.s(frozen=True, slots=True, auto_attribs=True)
class AllocatedDpEvent(DpEvent):  # type: ignore[misc]
    """One epoch of any mechanism on batches; each record draws one batch uniformly.

    Its conditions are those of :class:`RandomAllocationDpEvent`, which is this epoch for Gaussian
    noise: draws are independent, secret, and fresh in every epoch, and every batch is answered.

    Parameters
    ----------
    event
        The mechanism that answers about each batch, perhaps a composition.
    batches
        Number >= 1 of batches of the epoch, public.
    """

    event: DpEvent
    batches: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class CorrelatedGaussianDpEvent(DpEvent):  # type: ignore[misc]
    """A whole run of a matrix mechanism on random batches.

    The steps of such a run are not independent, so no single step has an epsilon.
    :mod:`dpcal.accountants.correlated` computes the epsilon of the run. Where it is a composition
    of independent steps it counts as that composition for every accountant; otherwise its Renyi
    divergences are bounded.

    Parameters
    ----------
    strategy
        A :class:`dpcal.accountants.matrix.Strategy`: the matrix C.
    sampler
        A sampler of :mod:`dpcal.accountants.correlated`: the rounds in which records take part.
    noise_multiplier
        Standard deviation > 0 of z, in units of the clipping norm, not divided by a norm of C.
        Papers that write z for sigma over the largest column norm mean ``z *
        dpcal.accountants.correlated.Mechanism.of(strategy).largest_column`` here.
    statistics
        ``"certified"``: draws, with a confidence bound that holds at every sample size, where they
        tell more than the deterministic bound. ``"none"``: deterministic bounds only.
    draws
        Monte Carlo draws for each direction.
    seed
        Whole number that fixes the draws, so that you always get the same answer; without one each
        answer has fresh, secret draws.
    failure_probability
        Probability of wrong bounds from draws, which is part of delta; when omitted, a hundredth of
        the given delta, or 1e-9 that is added to the delta at an epsilon.
    confirmations
        Largest number of answers, each with this failure probability, until one met a target. Delta
        contains the failure probabilities of all of them.
    """

    strategy: Any
    sampler: Any
    noise_multiplier: float
    statistics: str = "certified"
    draws: int = 100_000
    seed: int | None = None
    failure_probability: float | None = None
    confirmations: int = 1


@attr.s(frozen=True, slots=True, auto_attribs=True)
class DiscreteGaussianDpEvent(DpEvent):  # type: ignore[misc]
    """The discrete Gaussian mechanism on a sum of whole numbers (Canonne et al. 2020).

    The noise x has probability proportional to exp(-x^2 / (2 sigma^2)) on the whole numbers.

    Parameters
    ----------
    sigma
        Scale > 0 of the noise.
    sensitivity
        Largest size of one record's contribution, a whole number >= 1.
    """

    sigma: float
    sensitivity: int = 1


@attr.s(frozen=True, slots=True, auto_attribs=True)
class DominatingPairDpEvent(DpEvent):  # type: ignore[misc]
    """A mechanism that is known by the privacy losses of a dominating pair.

    :func:`dpcal.accountants.from_pmf` and its neighbors make such events.

    Parameters
    ----------
    name
        Name of the mechanism.
    neighboring_relation
        The relation for which the pair dominates the mechanism; others are refused.
    removed, added
        Each a :class:`~dpcal.accountants.losses.base.PrivacyLoss`: of the output with the record
        against the output without it, and the reverse.
    """

    name: str
    neighboring_relation: str
    removed: Any = attr.ib(repr=False)
    added: Any = attr.ib(repr=False)


@attr.s(frozen=True, slots=True, auto_attribs=True)
class EpsilonDeltaDpEvent(DpEvent):  # type: ignore[misc]
    """Any mechanism that is (epsilon, delta)-private under the given neighboring relation.

    Parameters
    ----------
    epsilon
        A finite number >= 0.
    delta
        A number in [0, 1].
    """

    epsilon: float
    delta: float = 0.0


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ExponentialMechanismDpEvent(DpEvent):  # type: ignore[misc]
    """Any epsilon-bounded-range mechanism, such as the exponential mechanism.

    Its privacy loss on any two neighbors lies in an interval of length epsilon (Durfee and Rogers
    2019), under the relation of the question. The exponential mechanism that answers r with
    probability proportional to exp(epsilon u(r) / (2 Delta)) is one of them; u are its scores, and
    Delta is their sensitivity.

    Parameters
    ----------
    epsilon
        A finite number >= 0.
    monotone
        Whether it is that exponential mechanism, and a record that is added moves no score down,
        or none up, as with counts, by at most Delta. It then costs half as much where a record is
        added, removed or blanked, and as much where one is replaced.
    """

    epsilon: float
    monotone: bool = False


@attr.s(frozen=True, slots=True, auto_attribs=True)
class LastIterateDpEvent(DpEvent):  # type: ignore[misc]
    """The last iterate of noisy gradient descent on all records; no other iterate is released.

    The start, the number of steps and their size are fixed without the records, and a step without
    noise does not expand distances: clipped losses are convex and smooth, and the step size is at
    most two over the smoothness. See :mod:`dpcal.accountants.mechanisms.last_iterate`.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise of each step, over the bound on the norm of a record's
        contribution.
    steps
        Number of steps, at least 1.
    contraction
        Lipschitz constant in [0, 1] of a step without noise.
    diameter
        Diameter of the convex set that every iterate is projected onto, > 0, divided by the bound
        on how far a record that is added, removed or zeroed out moves a step; infinite for none.
    """

    noise_multiplier: float
    steps: int
    contraction: float = 1.0
    diameter: float = float("inf")


@attr.s(frozen=True, slots=True, auto_attribs=True)
class PermuteAndFlipDpEvent(DpEvent):  # type: ignore[misc]
    """The permute-and-flip mechanism (McKenna and Sheldon 2020), epsilon-private.

    Parameters
    ----------
    epsilon
        A finite number >= 0.
    monotone
        Whether a record that is added moves no score down, or none up, as with counts, by at most
        the sensitivity. It then costs half as much where a record is added, removed or blanked, and
        as much where one is replaced.
    """

    epsilon: float
    monotone: bool = False


@attr.s(frozen=True, slots=True, auto_attribs=True)
class RandomAllocationDpEvent(DpEvent):  # type: ignore[misc]
    """One epoch of Gaussian noise on batches; each record draws one batch uniformly.

    Draws are independent between records and fresh in every epoch, and are never released. The
    number of batches, and every number that a sum is divided by, is public and fixed; a batch
    without records is answered too. A shuffle is not such a draw: there, other records move.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, over the bound on the norm of a record's contribution.
    batches
        Number >= 1 of batches of the epoch.
    """

    noise_multiplier: float
    batches: int


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ReportNoisyMaxDpEvent(DpEvent):  # type: ignore[misc]
    """The index of the largest (or least) of several scores, after Laplace noise on each of them.

    Only the index is public (Dwork and Roth 2014, Claim 3.9).

    Parameters
    ----------
    noise
        Scale > 0 of the noise, in units of the distance by which adding, removing or blanking one
        record moves a score; replacing one moves it twice as far.
    monotone
        Whether a record that is added moves no score down, or none up, as with counts. It then
        costs half as much.
    """

    noise: float
    monotone: bool = False


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ShuffledEpochsDpEvent(DpEvent):  # type: ignore[misc]
    """A whole run of Gaussian noise on the batches of shuffled epochs, each a fresh permutation.

    The number of records is fixed and known. The answer is a bracket, for one such run and not in a
    composition. It is neither for one permutation that is kept for all epochs, nor for a shuffle
    buffer, nor for records that a parallel loader deals out to shards.

    Parameters
    ----------
    noise_multiplier
        Standard deviation > 0 of the noise, over the bound on the norm of a record's contribution.
    batches
        Number >= 1 of the largest batches of an epoch.
    epochs
        Number >= 1 of epochs.
    remainder
        Whether the records that are left over are one more batch of an epoch.
    """

    noise_multiplier: float
    batches: int
    epochs: int
    remainder: bool = False


@attr.s(frozen=True, slots=True, auto_attribs=True)
class ExchangedRowsDpEvent(MixtureOfGaussiansDpEvent):  # type: ignore[misc]
    """A mixture of Gaussians for a user's rows in a batch of a fixed size: only added or removed.

    A batch with the user is one without in which some rows are exchanged. Where rows are blanked
    or replaced, both batches have them, and the mixture does not dominate
    (:func:`dpcal.calibrate.persons.for_group`).
    """


@attr.s(frozen=True, slots=True, auto_attribs=True)
class UnequalAllocationDpEvent(DpEvent):  # type: ignore[misc]
    """One epoch of random allocation whose batches differ in noise or in probability.

    Its conditions are those of :class:`RandomAllocationDpEvent`. A short last batch is one that is
    drawn with a smaller probability.

    Parameters
    ----------
    groups
        Batches that are alike: tuples of the noise multiplier > 0, the number >= 1 of batches, and
        the probability that a record draws one of them. Probabilities add up to 1.
    """

    groups: tuple[tuple[float, int, float], ...]


def dpsgd(*, sampling_probability: float, noise_multiplier: float, steps: int) -> DpEvent:
    """Return the event of DP-SGD with Poisson sampling.

    Parameters
    ----------
    sampling_probability
        Probability in (0, 1] that a record joins a step's batch.
    noise_multiplier
        Standard deviation > 0 of the noise on the sum of clipped gradients, in units of the
        clipping norm.
    steps
        Number of steps, a whole number >= 1.
    """
    q = validate.rate(sampling_probability=sampling_probability)
    sigma = validate.positive(noise_multiplier=noise_multiplier)
    gaussian = GaussianDpEvent(sigma)
    step = gaussian if q == 1 else PoissonSampledDpEvent(q, gaussian)
    return SelfComposedDpEvent(step, validate.count(steps=steps))


__all__ = ["dpsgd", *(name for name in globals() if name.endswith("DpEvent"))]
