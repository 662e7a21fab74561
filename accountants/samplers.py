"""Which records is a noisy answer about? Samplers of batches, as data.

A sampler knows its event, the law of one record's participations in a whole run, the expected batch
size, the words for reports, and how batches are drawn.

>>> sampler = Poisson(0.01)
>>> sampler.expected_batch_size(n=5_000, rounds=100), sampler.sentence
(50.0, 'a Poisson sample at rate 0.01')
>>> y, _ = MinSeparation(3, sampling_probability=0.5).automaton(6).sample(
...     10_000, np.random.default_rng(0))
>>> y.shape, int((y[0] + y[1] + y[2]).max())
((6, 10000), 1)
>>> batches = BallsInBins(3).batches(9, 6, np.random.default_rng(0))
>>> first, second = ([next(batches).tolist() for _ in range(3)] for _ in range(2))
>>> first == second, sorted(sum(first, []))
(True, [0, 1, 2, 3, 4, 5, 6, 7, 8])
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, cycle, repeat
from typing import ClassVar

import numpy as np

from dpcal._ext.samples import drawn
from dpcal.accountants import events
from dpcal.accountants.limits import hold
from dpcal.accountants.participations import Automaton, Epochs, Groups, independent, poisson
from dpcal.accountants.random_groups import RandomGroups, RandomOrder, is_long, later_states
from dpcal.accountants.sampler_base import Floats, Rows, Sampler, everyone
from dpcal.errors import UnsupportedEvent

__all__ = [
    "BallsInBins",
    "CyclicPoisson",
    "FixedSize",
    "Full",
    "MinSeparation",
    "Poisson",
    "RandomAllocation",
    "Sampler",
    "ShuffledEpochs",
    "TruncatedPoisson",
    "everyone",
]


@dataclass(frozen=True)
class Full(Sampler):
    """Every record is in every batch."""

    name: ClassVar[str] = "full"
    words: ClassVar[str] = "all records"
    fresh: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    independent_noise: ClassVar[bool] = True

    @property
    def law(self) -> Sampler:
        """A Poisson sample at rate 1."""
        return Poisson(1.0)

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the mechanism itself: nothing is sampled."""
        return mechanism

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return n."""
        return float(n)

    def draw(self, n: int, generator: np.random.Generator) -> Rows:
        """Return all row numbers."""
        return everyone(n)

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield all row numbers in each round, always in the same array."""
        return cycle((everyone(n),))


@dataclass(frozen=True)
class Poisson(Sampler):
    """Each record is in each batch independently of everything else.

    Parameters
    ----------
    sampling_probability
        In (0, 1].
    """

    name: ClassVar[str] = "poisson"
    words: ClassVar[str] = "a Poisson sample at rate {sampling_probability!r}"
    fresh: ClassVar[bool] = True
    independent_noise: ClassVar[bool] = True
    sampling_probability: float

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the mechanism on a Poisson sample."""
        return events.PoissonSampledDpEvent(self.sampling_probability, mechanism)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return q n."""
        return self.sampling_probability * n

    def draw(self, n: int, generator: np.random.Generator) -> Rows:
        """Return the row numbers of a Poisson sample."""
        return drawn(n, self.sampling_probability, 0, generator)

    def groups(self, rounds: int) -> Groups:
        """Return one group, which may join every round."""
        return Groups(self.sampling_probability, (slice(None),))

    def automaton(self, rounds: int) -> Automaton:
        """Return the law of one record's participations in ``rounds`` rounds."""
        return poisson(float(self.sampling_probability), rounds)


@dataclass(frozen=True)
class FixedSize(Sampler):
    """A batch holds exactly ``batch_size`` distinct records; all such sets are equally likely.

    Parameters
    ----------
    batch_size
        At least 1.
    n
        Number of records, at least ``batch_size``; None if it is not known yet.

    Notes
    -----
    Refused under correlated noise. A record's own participations are independent
    Bernoulli(batch_size / n) variables, yet the pair of a Bernoulli mixture against plain noise
    does not dominate: whether the record takes part decides how many others do.
    """

    name: ClassVar[str] = "fixed-size"
    words: ClassVar[str] = "{batch_size!r} records"
    fresh: ClassVar[bool] = True
    sized: ClassVar[bool] = True
    independent_noise: ClassVar[bool] = True
    refused: ClassVar[str] = (
        "Batches of a fixed size are refused under correlated noise: the record that a batch "
        "gains, another record of it loses, and no dominating pair is known. Use "
        "sampler 'poisson' (Poisson), or account for known participations with "
        "dpcal.accountants.correlated.revealed, which needs no secret batches."
    )
    batch_size: int
    n: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n is not None and self.batch_size > self.n:
            raise ValueError(f"batch_size must be at most n={self.n}, got {self.batch_size}.")

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the mechanism on a sample without replacement."""
        return events.SampledWithoutReplacementDpEvent(n, self.batch_size, mechanism)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return the batch size, for every n."""
        return float(self.batch_size)

    def draw(self, n: int, generator: np.random.Generator) -> Rows:
        """Return the row numbers of a sample without replacement."""
        rows = generator.choice(n, self.batch_size, replace=False, shuffle=False)
        return rows.astype(np.intp)

    def participation_law(self, rounds: int) -> Automaton:
        """Return the law of one record's participations, for a known n."""
        if self.n is None:
            raise ValueError("n must be given for the law of batches of a fixed size, got None.")
        return poisson(self.batch_size / self.n, rounds)


@dataclass(frozen=True)
class TruncatedPoisson(Sampler):
    """A Poisson sample; where it has more records, ``batch_size`` random ones are kept.

    Parameters
    ----------
    batch_size
        Most records of a batch, at least 1.
    sampling_probability
        In (0, 1], of the sample.

    Notes
    -----
    Ganesh, McKenna, McMahan, Smith and Wang 2025, It's my data too: private ML for datasets with
    multi-user training examples, and arXiv:2508.15089 (batches of a fixed shape).
    """

    name: ClassVar[str] = "truncated-poisson"
    words: ClassVar[str] = (
        "a Poisson sample at rate {sampling_probability!r}, of which at most {batch_size!r} random "
        "records are kept"
    )
    fresh: ClassVar[bool] = True
    independent_noise: ClassVar[bool] = True
    refused: ClassVar[str] = (
        "Truncated samples are refused under correlated noise: the record that a full batch gains, "
        "another record of it loses. Use sampler 'poisson' (Poisson)."
    )
    batch_size: int
    sampling_probability: float

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return a Gaussian mechanism on a truncated sample; UnsupportedEvent for any other one."""
        if not isinstance(mechanism, events.GaussianDpEvent):
            raise UnsupportedEvent(
                "Truncated samples are priced for Gaussian noise, got "
                f"{type(mechanism).__name__}: use sampler 'poisson'."
            )
        return events.TruncatedSubsampledGaussianDpEvent(
            n, self.sampling_probability, self.batch_size, mechanism.noise_multiplier
        )

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return q n, which a batch has on average without truncation, or the most."""
        return min(self.sampling_probability * n, float(self.batch_size))

    def draw(self, n: int, generator: np.random.Generator) -> Rows:
        """Return the row numbers of a Poisson sample, or of a random subset of it."""
        rows = drawn(n, self.sampling_probability, 0, generator)
        if len(rows) > self.batch_size:
            kept = generator.choice(len(rows), self.batch_size, replace=False, shuffle=False)
            rows = rows[np.sort(kept)]
        return rows


@dataclass(frozen=True)
class CyclicPoisson(Sampler):
    """Records are split into groups; group g may join rounds g, g + bands, g + 2 bands, ...

    Parameters
    ----------
    bands
        Number of groups, so that a record's participations are multiples of it apart.
    sampling_probability
        In (0, 1], within the group: the expected batch size is this times n / bands.
    random_shift
        Whether a record's group, which is drawn uniformly, is kept secret. A fixed group is
        accounted for at its worst, which bounds the epsilon of a random one.

    Notes
    -----
    Choquette-Choo et al. 2023 (Amplified banded matrix factorization), Theorem 4.
    """

    name: ClassVar[str] = "cyclic-poisson"
    words: ClassVar[str] = (
        "a Poisson sample at rate {sampling_probability!r} of one of {bands!r} random groups, "
        "in turn"
    )
    bands: int
    sampling_probability: float
    random_shift: bool = False

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return q n / bands."""
        return self.sampling_probability * n / self.bands

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield a Poisson sample of each group in turn; a record keeps its group."""
        groups = RandomGroups(self.bands, n, generator)
        for group in chain.from_iterable(repeat(groups)):
            yield group[drawn(len(group), self.sampling_probability, 0, generator)]

    @property
    def least_separation(self) -> int:
        """The number of groups."""
        return self.bands

    def groups(self, rounds: int) -> Groups:
        """Return the groups that have a round."""
        starts = range(min(self.bands, rounds))
        rows = tuple(slice(start, None, self.bands) for start in starts)
        return Groups(self.sampling_probability, rows, self.random_shift)

    def automaton(self, rounds: int) -> Automaton:
        """Return the law of one record's participations in ``rounds`` rounds."""
        b, q = self.bands, float(self.sampling_probability)
        if not self.random_shift:
            return independent(np.where(np.arange(rounds) % b == 0, q, 0.0))
        # The state is the number of rounds until the next one that the record may join.
        onward = (np.arange(b) - 1) % b
        return Automaton.of(rounds, q * np.eye(1, b)[0], (onward, onward), np.full(b, 1 / b))


@dataclass(frozen=True)
class MinSeparation(Sampler):
    """After taking part, a record sits out ``separation - 1`` rounds; otherwise it joins at random.

    Parameters
    ----------
    separation
        Least distance >= 1 between two participations.
    sampling_probability
        In (0, 1], of an eligible record.
    warm_start
        Whether the process is stationary at the first round, so that all batches have one expected
        size. Otherwise every record is eligible at the first round.

    Notes
    -----
    Dong and Ganesh 2026 (Privacy amplification for BandMF via b-min-sep subsampling).
    """

    name: ClassVar[str] = "min-separation"
    words: ClassVar[str] = (
        "a Poisson sample at rate {sampling_probability!r} of the records that were last in a "
        "batch at least {separation!r} answers ago, or in none"
    )
    separation: int
    sampling_probability: float
    warm_start: bool = False

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return the stationary rate of joining, times n."""
        q = self.sampling_probability
        return q / (1 + (self.separation - 1) * q) * n

    @property
    def waiting(self) -> Floats:
        """Probabilities of 0, 1, ..., separation - 1 rounds until the record is eligible."""
        b, p = self.separation, float(self.sampling_probability)
        law = np.where(np.arange(b) > 0, p if self.warm_start else 0.0, 1.0)
        return np.asarray(law / (1 + (b - 1) * p) if self.warm_start else law)

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield Poisson samples of the eligible records."""
        away, rounds_left = later_states(self.waiting / self.waiting.sum(), n, generator)
        waiting = deque(away[rounds_left == left] for left in range(1, self.separation))
        while True:
            before = away - np.arange(len(away))
            ranks = drawn(n - len(away), self.sampling_probability, 0, generator)
            joined = ranks + np.searchsorted(before, ranks, side="right")
            if waiting:
                away = np.delete(away, np.searchsorted(away, waiting.popleft()))
                away = np.insert(away, np.searchsorted(away, joined), joined)
                waiting.append(joined)
            yield joined

    @property
    def least_separation(self) -> int:
        """The separation."""
        return self.separation

    def groups(self, rounds: int) -> Groups | None:
        """Return one group, which may join every round, for a separation of 1; None for others."""
        return Groups(self.sampling_probability, (slice(None),)) if self.separation == 1 else None

    def automaton(self, rounds: int) -> Automaton:
        """Return the law of one record's participations in ``rounds`` rounds."""
        # The state is the number of rounds until the record is eligible.
        b, p = self.separation, float(self.sampling_probability)
        idle_to = np.maximum(np.arange(b) - 1, 0)
        return Automaton.of(rounds, p * np.eye(1, b)[0], (idle_to, b - 1), self.waiting)


@dataclass(frozen=True)
class RandomAllocation(Sampler):
    """A record joins exactly ``participations`` rounds of each epoch, a uniform subset of them.

    Parameters
    ----------
    participations
        Number k >= 1 of rounds.
    epoch
        Rounds of an epoch, at least ``participations`` and a divisor of the number of rounds;
        None for a single one. Subsets of different epochs are independent.

    Notes
    -----
    Feldman and Shenfeld 2025 (Privacy amplification by random allocation).
    """

    name: ClassVar[str] = "random-allocation"
    words: ClassVar[str] = "the records that drew it, each of which drew {participations!r} answers"
    independent_noise: ClassVar[bool] = True
    participations: int
    epoch: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.epoch is not None and self.epoch < self.participations:
            raise ValueError(
                f"epoch must be at least participations={self.participations}, got {self.epoch}."
            )

    @property
    def sentence(self) -> str:
        """The records of an answer, for the privacy statement of a report."""
        if self.epoch is None:
            return super().sentence
        drawn = f"{self.participations!r} of every {self.epoch!r} answers"
        return f"the records that drew it, each of which draws {drawn}"

    def answers(self, noise_multiplier: float, n: int, count: int) -> tuple[events.DpEvent, int]:
        """Return one epoch, and the number of epochs that were begun.

        Raises
        ------
        UnsupportedEvent
            Unless each record draws one answer of an epoch with a known number of them.
        """
        if self.epoch is None or self.participations != 1:
            raise UnsupportedEvent(
                f"{self} has no exact price with independent noise, which is for participations=1 "
                "and a given epoch."
            )
        epoch = events.RandomAllocationDpEvent(noise_multiplier, self.epoch)
        return epoch, -(-count // self.epoch)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return participations n / rounds of an epoch."""
        return self.participations / (self.epoch or rounds) * n

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield, for each round, the records that join it."""
        epochs = self.epochs(rounds)
        for _ in range(epochs.drawn):
            if epochs.times == 1 or is_long(n):
                yield from RandomGroups(epochs.rounds, n, generator, each=epochs.times)
                continue
            due = np.full(n, epochs.times)
            for left in range(epochs.rounds, 0, -1):
                # A round that is left is one of the due rounds with this chance.
                joined = np.flatnonzero(generator.random(n) * left < due)
                due[joined] -= 1
                yield joined

    def epochs(self, rounds: int) -> Epochs:
        """Return the epochs.

        Raises
        ------
        ValueError
            If whole epochs do not fill the rounds.
        """
        k, length = self.participations, self.epoch or rounds
        if length < k or rounds % length:
            raise ValueError(
                f"RandomAllocation(participations={k}, epoch={self.epoch}) needs a number of "
                f"rounds that is a multiple of the epoch and at least {k}, got {rounds}."
            )
        return Epochs(length, k, rounds // length, 1)

    def automaton(self, rounds: int) -> Automaton:
        """Return the law of one record's participations in ``rounds`` rounds."""
        epochs = self.epochs(rounds)
        k, length = epochs.times, epochs.rounds
        # The state is the number of participations due in the rest of the epoch.
        hold(5.0 * rounds * (k + 1), f"{rounds} rounds with {k} participations")
        due, left = np.arange(k + 1), (length - np.arange(rounds) % length)[:, None]
        idle_to = np.where(left > 1, due, k)
        join_to = np.where(left > 1, np.maximum(due - 1, 0), k)
        return Automaton.of(rounds, np.minimum(due / left, 1.0), (idle_to, join_to), due == k)


@dataclass(frozen=True)
class ShuffledEpochs(Sampler):
    """Each epoch cuts a fresh, uniform permutation of the records into batches, in turn.

    Batches have ``n / epoch`` records, rounded up, and the last ones fewer or none.

    Parameters
    ----------
    epoch
        Number of batches >= 1 of an epoch.

    Notes
    -----
    The theorem of docs/explanation/batches.md, "Shuffled epochs". Only for independent noise: with
    correlated noise no dominating pair is known.
    """

    name: ClassVar[str] = "shuffled-epochs"
    words: ClassVar[str] = (
        "a batch of a shuffle of the records, which is fresh after every {epoch!r} answers"
    )
    sized: ClassVar[bool] = True
    independent_noise: ClassVar[bool] = True
    refused: ClassVar[str] = (
        "Shuffled epochs are refused under correlated noise: where one record moves, others do, "
        "and no dominating pair is known. Use sampler 'balls-in-bins' or 'random-allocation'."
    )
    epoch: int

    def answers(self, noise_multiplier: float, n: int, count: int) -> tuple[events.DpEvent, int]:
        """Return the run of all epochs that were begun, which has one epsilon.

        Only batches of the largest size hide a record.
        """
        size, epochs = self._largest(n), -(-count // self.epoch)
        full, left = divmod(n, size)
        return events.ShuffledEpochsDpEvent(noise_multiplier, full, epochs, left > 0), 1

    def _largest(self, n: int) -> int:
        """Return the number of records of the largest batches."""
        return -(-n // self.epoch)

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return n / epoch."""
        return n / self.epoch

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield the batches of one epoch after another."""
        size = self._largest(n)
        while True:
            order = RandomOrder(n, generator)
            for _ in range(self.epoch):
                yield order.take(size)


@dataclass(frozen=True)
class BallsInBins(Sampler):
    """A record is put into one of ``bins`` at random and joins rounds bin, bin + bins, ... .

    Parameters
    ----------
    bins
        Number of bins, a divisor of the number of rounds: the batches of one epoch. The same bin is
        used in every epoch.

    Notes
    -----
    Chua et al. 2025 (Balls-and-bins sampling for DP-SGD).
    """

    name: ClassVar[str] = "balls-in-bins"
    words: ClassVar[str] = "one of {bins!r} random parts, in turn"
    bins: int

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return n / bins."""
        return n / self.bins

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield the records of the bins in turn."""
        return chain.from_iterable(repeat(RandomGroups(self.bins, n, generator)))

    def equally_likely(self, rounds: int) -> Floats:
        """Return the pattern of each bin."""
        if rounds % self.bins:
            raise ValueError(f"bins must divide the number of rounds {rounds}, got {self.bins}.")
        hold(float(rounds) * self.bins, f"{rounds} rounds with {self.bins} bins")
        return np.tile(np.eye(self.bins), (rounds // self.bins, 1))

    def epochs(self, rounds: int) -> Epochs:
        """Return the epochs that use the bin of the first one."""
        return Epochs(self.bins, 1, 1, len(self.equally_likely(rounds)) // self.bins)

    def automaton(self, rounds: int) -> Automaton:
        """Return the law of one record's participations in ``rounds`` rounds."""
        self.equally_likely(rounds)
        return CyclicPoisson(self.bins, 1.0, random_shift=True).automaton(rounds)
