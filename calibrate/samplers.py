"""Which records is a noisy answer about? The samplers of queries, as data.

A sampler knows its fields and their ranges, the event that it makes of a mechanism, the law of one
record's participations in a whole run, the expected batch size, and the words for reports.

>>> sampler = sampler_of("poisson", sampling_probability=0.01)
>>> sampler
Poisson(sampling_probability=0.01)
>>> sampler.expected_batch_size(n=5_000, rounds=100)
50.0
>>> sampler_of("poisson", sampling_probability=0.01, batch_size=50)
Traceback (most recent call last):
    ...
ValueError: batch_size goes with sampler='fixed-size' and only with it, got batch_size=50 with \
sampler='poisson'.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.correlated import pricing, samplers as laws
from dpcal.accountants.matrix import MinSeparation as LeastSeparation
from dpcal.errors import UnsupportedEvent

if TYPE_CHECKING:
    from dpcal.accountants.matrix import Strategy

__all__ = [
    "SAMPLERS",
    "BallsInBins",
    "CyclicPoisson",
    "FixedSize",
    "Full",
    "MinSeparation",
    "Poisson",
    "RandomAllocation",
    "Sampler",
    "sampler_of",
]

# The fields that samplers have, each with the check of its range.
_FIELDS: Mapping[str, Callable[..., float]] = MappingProxyType(
    {
        "sampling_probability": _validate.rate,
        "batch_size": _validate.count,
        "separation": _validate.count,
        "participations": _validate.count,
    }
)


@dataclass(frozen=True)
class Sampler:
    """Base class of the samplers; a subclass's fields are keywords of ``Query``.

    Attributes
    ----------
    name
        What ``Query`` and its JSON document call the sampler.
    words
        What :attr:`sentence` says, with the fields in braces.
    independent_noise
        Whether answers may have independent noise. The other samplers relate one answer's batch to
        the next one's, and only a whole run with correlated noise has a price.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    independent_noise: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            _FIELDS[name](**{name: value})

    @property
    def law(self) -> laws.Sampler:
        """The law of one record's participations, as correlated noise is priced with it.

        Raises
        ------
        UnsupportedEvent
            For batches of a fixed size, for which no dominating pair is known.
        """
        raise NotImplementedError

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the event of a mechanism on one batch of ``n`` records.

        Raises
        ------
        UnsupportedEvent
            Where a batch depends on other batches: only all answers together have a price.
        """
        raise UnsupportedEvent(
            f"An answer with sampler {self.name!r} has no price of its own: its batch depends on "
            "the batches of other answers. All answers together have one."
        )

    def whole_run(
        self,
        strategy: Strategy,
        noise_multiplier: float,
        neighboring_relation: str,
        **accounting: Any,
    ) -> events.DpEvent:
        """Return the event of a whole run with correlated noise.

        Parameters
        ----------
        strategy
            The matrix C: answer t's noise is row t of C^-1 z.
        noise_multiplier
            Standard deviation > 0 of z, in units of the clipping norm.
        neighboring_relation
            ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
        **accounting
            Of :attr:`dpcal.calibrate.Correlation.accounting`.

        Raises
        ------
        UnsupportedEvent
            Where no theorem covers the strategy, the sampler or the relation.
        """
        pricing.check_relation(strategy, self.law, neighboring_relation)
        return pricing.whole_run(
            strategy, self.law, noise_multiplier=noise_multiplier, **accounting
        )

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return how many of ``n`` records a batch holds on average; as public as ``n`` is.

        Parameters
        ----------
        n
            Number of records, at least 1.
        rounds
            Number of answers that the whole run has at most.
        """
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        """What an answer is about, for the privacy statement of a report."""
        return self.words.format(**vars(self))

    @property
    def summary(self) -> str:
        """What an answer is about, in the few words of a command's summary."""
        probability = getattr(self, "sampling_probability", None)
        records = (
            "on all records" if probability is None else f"sampling probability {probability:.5g}"
        )
        return records if self.independent_noise else f"{self.name} samples, {records}"


@dataclass(frozen=True)
class Full(Sampler):
    """Every record is in every batch."""

    name: ClassVar[str] = "full"
    words: ClassVar[str] = "all records"
    independent_noise: ClassVar[bool] = True

    @property
    def law(self) -> laws.Sampler:
        """A Poisson sample at rate 1."""
        return laws.Poisson(1.0)

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the mechanism itself: nothing is sampled."""
        return mechanism

    def whole_run(
        self,
        strategy: Strategy,
        noise_multiplier: float,
        neighboring_relation: str,
        **accounting: Any,
    ) -> events.DpEvent:
        """Return the event of one Gaussian release at the strategy's sensitivity."""
        every_round = LeastSeparation(1, independent=True)
        return strategy.event(
            noise_multiplier, every_round, neighboring_relation=neighboring_relation
        )

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return n."""
        return float(n)


@dataclass(frozen=True)
class Poisson(Sampler):
    """Each record is in a batch with a probability in (0, 1], independently of everything else."""

    name: ClassVar[str] = "poisson"
    words: ClassVar[str] = "a Poisson sample at rate {sampling_probability!r}"
    independent_noise: ClassVar[bool] = True
    sampling_probability: float

    @property
    def law(self) -> laws.Sampler:
        """Independent participations at one rate."""
        return laws.Poisson(self.sampling_probability)

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the mechanism on a Poisson sample."""
        return events.PoissonSampledDpEvent(self.sampling_probability, mechanism)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return q n."""
        return self.sampling_probability * n


@dataclass(frozen=True)
class FixedSize(Sampler):
    """A batch holds ``batch_size`` >= 1 distinct records, each such set as likely as any other."""

    name: ClassVar[str] = "fixed-size"
    words: ClassVar[str] = "{batch_size!r} records"
    independent_noise: ClassVar[bool] = True
    batch_size: int

    @property
    def law(self) -> laws.Sampler:
        """Refused: no dominating pair is known under correlated noise."""
        raise UnsupportedEvent(
            "Batches of a fixed size are refused under correlated noise: the record that a "
            "batch gains, another record of it loses, and no dominating pair is known. Use "
            "sampler 'poisson', or account for known participations with "
            "dpcal.accountants.correlated.revealed_delta."
        )

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the mechanism on a sample without replacement."""
        return events.SampledWithoutReplacementDpEvent(n, self.batch_size, mechanism)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return the batch size, whatever n is."""
        return float(self.batch_size)

    @property
    def summary(self) -> str:
        """What an answer is about, in the few words of a command's summary."""
        return f"on batches of {self.batch_size} records"


@dataclass(frozen=True)
class CyclicPoisson(Sampler):
    """Each record is in one of ``separation`` random groups, which are sampled in turn."""

    name: ClassVar[str] = "cyclic-poisson"
    words: ClassVar[str] = (
        "a Poisson sample at rate {sampling_probability!r} of one of {separation!r} random groups, "
        "in turn"
    )
    separation: int
    sampling_probability: float

    @property
    def law(self) -> laws.Sampler:
        """The worst group's participations: a bound on those of a random one."""
        return laws.CyclicPoisson(self.separation, self.sampling_probability)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return q n / separation."""
        return self.sampling_probability * n / self.separation


@dataclass(frozen=True)
class MinSeparation(Sampler):
    """A sampled record sits out the next ``separation - 1`` answers, and may then join again."""

    name: ClassVar[str] = "min-separation"
    separation: int
    sampling_probability: float

    @property
    def law(self) -> laws.Sampler:
        """The stationary process, which gives every batch the same expected size."""
        return laws.MinSeparation(self.separation, self.sampling_probability, warm_start=True)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return the stationary rate of joining, times n."""
        q = self.sampling_probability
        return q / (1 + (self.separation - 1) * q) * n

    @property
    def sentence(self) -> str:
        """What an answer is about, for the privacy statement of a report."""
        return (
            f"a Poisson sample at rate {self.sampling_probability!r} of those "
            f"that were not in the {self.separation - 1} samples before"
        )


@dataclass(frozen=True)
class BallsInBins(Sampler):
    """Each record is in every ``separation``-th batch, from one on that is drawn at random."""

    name: ClassVar[str] = "balls-in-bins"
    words: ClassVar[str] = "one of {separation!r} random parts, in turn"
    separation: int

    @property
    def law(self) -> laws.Sampler:
        """One bin a record."""
        return laws.BallsInBins(self.separation)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return n / separation."""
        return n / self.separation


@dataclass(frozen=True)
class RandomAllocation(Sampler):
    """Each record is in ``participations`` of all the batches, a set drawn at random."""

    name: ClassVar[str] = "random-allocation"
    words: ClassVar[str] = "the records that drew it, each of which drew {participations!r} answers"
    participations: int

    @property
    def law(self) -> laws.Sampler:
        """A uniform subset of the rounds."""
        return laws.RandomAllocation(self.participations)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return participations n / rounds."""
        return self.participations / rounds * n


_ALL: tuple[type[Sampler], ...] = (
    Poisson,
    FixedSize,
    Full,
    CyclicPoisson,
    MinSeparation,
    BallsInBins,
    RandomAllocation,
)
SAMPLERS: Mapping[str, type[Sampler]] = MappingProxyType({each.name: each for each in _ALL})
_OWNERS = {
    field: tuple(each.name for each in _ALL if field in each.__dataclass_fields__)
    for field in _FIELDS
}


def sampler_of(name: str, **given: float | None) -> Sampler:
    """Return the sampler of a name with the values of its fields.

    Parameters
    ----------
    name
        A key of ``SAMPLERS``.
    **given
        ``sampling_probability``, ``batch_size``, ``separation`` and ``participations``; None, or
        left out, where the sampler has no such field.

    Raises
    ------
    ValueError, TypeError
        If a field is missing, is one that the sampler does not have, or is out of range.
    """
    kind = SAMPLERS[_validate.choice(tuple(SAMPLERS), sampler=name)]
    for field, owners in _OWNERS.items():
        value = given.get(field)
        if (value is not None) != (name in owners):
            raise ValueError(
                f"{field} goes with sampler={' or '.join(map(repr, owners))} and only with "
                f"{'it' if len(owners) == 1 else 'them'}, got {field}={value!r} with "
                f"sampler={name!r}."
            )
    return kind(**{field: given[field] for field, owners in _OWNERS.items() if name in owners})
