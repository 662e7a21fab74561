"""Samplers with a proved cost for data loaders, and a check of any loader's batches.

:class:`AllocationSampler`, :class:`PoissonSampler` and :class:`FixedSizeSampler` give the row
numbers of batches, in numpy. In torch they take the place of ``shuffle=True``:
``DataLoader(dataset, batch_sampler=sampler, collate_fn=collate(dataset))``, with
``dpcal.adapters.torch.collate`` for batches without records. :func:`check` names the sampler of a
loader and the event of its batches.

>>> from dpcal import accountants
>>> sampler = AllocationSampler(60_000, batches=117)
>>> batches = list(sampler)
>>> len(batches), sorted(sum(batches, [])) == list(range(60_000))
(117, True)
>>> sampler.event(0.8, epochs=100)  # doctest: +NORMALIZE_WHITESPACE
SelfComposedDpEvent(event=RandomAllocationDpEvent(noise_multiplier=0.8, batches=117), count=100)
>>> print(f"{accountants.epsilon(sampler.event(0.8, epochs=100), delta=1e-5):.4f}")
8.8874
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.samplers import FixedSize, Poisson, RandomAllocation, Sampler
from dpcal.optim.boundary.seeds import Seed, key_of, keyed_generator, root_of

__all__ = [
    "AllocationSampler",
    "FixedSizeSampler",
    "PoissonSampler",
    "PricedSampler",
    "Verdict",
    "check",
    "drawn_probability",
    "repetition",
]

EventOf = Callable[[float, int], events.DpEvent]


class PricedSampler:
    """Base class: each iteration yields the batches of one epoch, as lists of row numbers.

    Draws are made from cryptographic bits, afresh for each iteration, in the process that iterates.
    An iteration that is broken off counts as an epoch. Some batches may be empty: answer these too.

    The cost of :meth:`event` holds if

    - the draws are never released, nor the sizes of batches;
    - sums are divided by the public :attr:`expected_batch_size`, never by the size of a batch;
    - n is public: a record is blanked, not removed. Where it is added or removed (not in batches of
      a fixed size), n and the divisor are numbers that do not depend on it;
    - all ranks of a distributed run have one sampler: each loads the :meth:`state_dict` of the
      first rank before the first batch, and takes a slice of every batch. With samplers of their
      own, ranks would draw a record several times.

    Parameters
    ----------
    law
        A sampler of :mod:`dpcal.accountants.samplers`.
    n
        Number of records, at least 1, public.
    length
        Number of batches of an epoch.
    seed
        For tests: an integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``. A seed that
        others know voids the claim, and two runs of one seed have the same batches. None, for all
        other uses, takes a secret from the operating system.

    Attributes
    ----------
    law, n
        As they were given.
    """

    def __init__(self, law: Sampler, n: int, length: int, seed: Seed) -> None:
        self.law, self.n, self._length = law, n, length
        self._root = root_of(seed, "loader", repr(law), str(n))
        self._identity: dict[str, Any] = {"law": repr(law), "n": n}
        self._epoch, self._given = 0, length
        self._begun = self._resumed = False

    def __len__(self) -> int:
        """Return the number of batches of an epoch."""
        return self._length

    def __iter__(self) -> Iterator[list[int]]:
        """Yield row numbers of each batch of the next epoch, or of the rest of a resumed one."""
        if not self._resumed or self._given == len(self):
            self._epoch, self._given = self._epoch + 1, 0
        self._begun, self._resumed = True, False
        epoch, first = self._epoch, self._given
        generator = keyed_generator(key_of(self._root, f"epoch {epoch}"))
        batches = islice(self.law.batches(self.n, len(self), generator), first, len(self))
        for given, rows in enumerate(batches, first + 1):
            if epoch == self._epoch:
                self._given = given
            yield rows.tolist()

    @property
    def expected_batch_size(self) -> float:
        """The average number of records of a batch: the public divisor of a batch's sum."""
        return self.law.expected_batch_size(self.n, len(self))

    def event(self, noise_multiplier: float, epochs: int) -> events.DpEvent:
        """Return the event of Gaussian noise on every batch of some epochs.

        Parameters
        ----------
        noise_multiplier
            Standard deviation > 0 of the noise, over the bound on the norm of a record's
            contribution.
        epochs
            Number >= 1 of iterations, including every iteration that was broken off.
        """
        sigma = validate.positive(noise_multiplier=noise_multiplier)
        steps = validate.count(epochs=epochs) * len(self)
        return events.SelfComposedDpEvent(*self.law.answers(sigma, self.n, steps))

    def state_dict(self, batches: int | None = None) -> dict[str, Any]:
        """Return the state for :meth:`load_state_dict`, as JSON values. It is a secret.

        It determines all batches, past and future: never release it together with a model.

        Parameters
        ----------
        batches
            Number of batches of the present epoch that the loop has used; all that were given when
            omitted. A loader with workers takes some in advance: there the loop must count.
        """
        used = self._given if batches is None else batches
        if not isinstance(used, int) or not 0 <= used <= self._given:
            raise ValueError(
                f"batches must be a whole number from 0 to the {self._given} batches that the "
                f"present epoch has given, got {batches!r}."
            )
        return {**self._identity, "secret": self._root, "epoch": self._epoch, "batches": used}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where :meth:`state_dict` was taken, with the same batches. Go on from a state once.

        Two runs from one state share their batches, and cost more than two runs that do not.

        Raises
        ------
        ValueError
            If the state is of another sampler, or this one has given batches already.
        """
        if self._begun:
            raise ValueError(
                "state must be loaded before the first batch: this sampler has given some already."
            )
        found = {name: state.get(name) for name in self._identity}
        if found != self._identity:
            raise ValueError(f"state must be of a sampler with {self._identity}, got {found}.")
        self._root = str(state["secret"])
        self._epoch, self._given = int(state["epoch"]), int(state["batches"])
        self._resumed = True


class AllocationSampler(PricedSampler):
    """Each record draws one batch of every epoch, uniformly and independently of other records.

    Sizes of batches vary, other than in a shuffle. The cost is exact for a record that is zeroed
    out, added or removed. For a replaced record, it has a bracket. See :class:`PricedSampler` for
    the conditions.

    Parameters
    ----------
    n
        Number of records, at least 1, public.
    batches
        Number >= 1 of batches of an epoch, public.
    seed
        For tests; see :class:`PricedSampler`.

    Notes
    -----
    Chua et al. 2025 (Balls-and-bins sampling for DP-SGD), with fresh bins in every epoch. For the
    cost see docs/explanation/batches.md, "Random allocation".

    Examples
    --------
    >>> sampler = AllocationSampler(10, batches=4, seed=0)
    >>> [sorted(sum(sampler, [])) == list(range(10)) for _ in range(2)], sampler.expected_batch_size
    ([True, True], 2.5)
    """

    def __init__(self, n: int, batches: int, *, seed: Seed = None) -> None:
        count = validate.count(batches=batches)
        super().__init__(RandomAllocation(1, count), validate.count(n=n), count, seed)


class PoissonSampler(PricedSampler):
    """Each record is in each batch with one probability, independently of everything else.

    Its cost is covered under every relation. See :class:`PricedSampler` for the conditions.

    Parameters
    ----------
    n
        Number of records, at least 1, public.
    sampling_probability
        In (0, 1]. An epoch has as many batches as the whole number next to its inverse.
    seed
        For tests; see :class:`PricedSampler`.

    Examples
    --------
    >>> sampler = PoissonSampler(1000, sampling_probability=0.02)
    >>> len(sampler), sampler.expected_batch_size, sampler.event(1.1, epochs=3).count
    (50, 20.0, 150)
    """

    def __init__(self, n: int, sampling_probability: float, *, seed: Seed = None) -> None:
        law = Poisson(validate.rate(sampling_probability=sampling_probability))
        super().__init__(law, validate.count(n=n), round(1 / law.sampling_probability), seed)


class FixedSizeSampler(PricedSampler):
    """Each batch is a fresh uniform set of ``batch_size`` records, independent of other batches.

    Its cost is covered under every relation. It is larger than the cost of a Poisson sample,
    because a record takes its place in a batch from another record. See :class:`PricedSampler` for
    the conditions.

    Parameters
    ----------
    n
        Number of records, public. Where a record is added or removed, the number of the larger data
        set.
    batch_size
        From 1 to n. An epoch has n / batch_size batches, rounded up.
    seed
        For tests; see :class:`PricedSampler`.

    Examples
    --------
    >>> sampler = FixedSizeSampler(1000, batch_size=30)
    >>> len(sampler), {len(set(batch)) for batch in sampler}
    (34, {30})
    """

    def __init__(self, n: int, batch_size: int, *, seed: Seed = None) -> None:
        count, size = validate.count(n=n), validate.count(batch_size=batch_size)
        super().__init__(FixedSize(size, count), count, -(-count // size), seed)


@dataclass(frozen=True)
class Verdict:
    """A finding of :func:`check` about a loader.

    Attributes
    ----------
    name
        Class of its sampler.
    sentence
        Sentence on the sampler, the cost of its batches, and the conditions and relations of this
        cost.
    law
        Sampler with the cost of these batches; None for shuffles and unknown draws.
    event
        ``event(noise_multiplier, epochs)`` returns the event of Gaussian noise on every batch. None
        where no theorem here covers the batches.
    """

    name: str
    sentence: str
    law: Sampler | None = None
    event: EventOf | None = None


def check(loader: Any) -> Verdict:
    """Return the name of a loader's sampler, its fault if any, and the event of its batches.

    Parameters
    ----------
    loader
        A ``torch.utils.data.DataLoader``, Opacus' ``DPDataLoader``, or an object with their
        attributes ``batch_sampler``, ``sampler`` and ``dataset``. Samplers are known by their exact
        class, because a derived class may draw otherwise.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> sampler = PoissonSampler(1000, 0.02)
    >>> found = check(SimpleNamespace(batch_sampler=sampler, dataset=range(1000)))
    >>> found.name, found.law
    ('PoissonSampler', Poisson(sampling_probability=0.02))
    >>> check(SimpleNamespace(batch_sampler=[[0, 1], [2, 3]])).sentence
    'The law of its batches is not known here, and no price is: use AllocationSampler.'
    """
    sampler, size, drop_last = _opened(loader)
    name, judge = type(sampler).__name__, _JUDGES.get(_named(sampler))
    if isinstance(sampler, PricedSampler) and type(sampler).__iter__ is PricedSampler.__iter__:
        judge = _ours
    if judge is None:
        return Verdict(name, _REFUSED.get(name, _UNKNOWN))
    fault = _fault(loader, sampler, size)
    return judge(sampler, size, drop_last) if fault is None else Verdict(name, fault)


def drawn_probability(sample_rate: float) -> float:
    """Return a bound on the probability with which Opacus draws a record at a rate in (0, 1].

    Opacus compares random numbers of 24 bits, in single precision, with the rate (on a processor):
    the probability is the next multiple of 2^-24, which is far above a small rate.

    >>> drawn_probability(0.02) / 0.02 - 1 < 3e-6, drawn_probability(1e-8) / 1e-8
    (True, 5.9604644775390625)
    """
    rate = validate.rate(sample_rate=sample_rate)
    return math.ceil(max(rate, float(np.float32(rate))) * 2**24) / 2**24


def repetition(dataset: Any) -> str | None:
    """Return the part of a sentence about records that a data set holds twice; None without them.

    Subsets, concatenations and stacks of PyTorch are opened, however they are nested, and rows of
    tensors are known by their place in memory. A data set of any other class is not opened: its
    items are taken for records.

    Parameters
    ----------
    dataset
        The ``dataset`` of a loader.
    """
    parts = _parts(dataset)
    if any(type(each).__module__.startswith(_PIPES) for each in (dataset, *parts)):
        return "it is made of data pipes, whose items are not known to be records"
    if not parts:
        return None
    held = np.sort(_records(dataset, np.arange(len(dataset)), {}), axis=1)
    held[:, 1:][held[:, 1:] == held[:, :-1]] = _NOTHING
    places = held[held != _NOTHING]
    if len(np.unique(places)) == len(places):
        return None
    return f"its {type(dataset).__name__} holds a record more than once"


def _parts(dataset: Any) -> list[Any]:
    """Return the data sets inside one of PyTorch, at any depth; none for other data sets."""
    direct: list[Any] = []
    if _is(dataset, "Subset"):
        direct = [dataset.dataset]
    elif _is(dataset, "ConcatDataset"):
        direct = list(dataset.datasets)
    elif _is(dataset, "StackDataset"):
        held = dataset.datasets
        direct = list(held.values() if isinstance(held, dict) else held)
    return direct + [part for each in direct for part in _parts(each)]


def _records(dataset: Any, rows: NDArray[np.int64], leaves: dict[int, int]) -> NDArray[np.int64]:
    """Return a number for each record that items are made of, shape (items, records of one)."""
    rows = np.where(rows < 0, rows + len(dataset), rows)
    if _is(dataset, "Subset"):
        indices = np.asarray(dataset.indices, dtype=np.int64).reshape(-1)
        return _records(dataset.dataset, indices[rows], leaves)
    if _is(dataset, "ConcatDataset"):
        ends = np.cumsum([len(each) for each in dataset.datasets])
        place = np.searchsorted(ends, rows, side="right")
        parts = [
            _records(each, rows[place == number] - (end - len(each)), leaves)
            for number, (each, end) in enumerate(zip(dataset.datasets, ends, strict=True))
        ]
        held = np.full((len(rows), max(part.shape[1] for part in parts)), _NOTHING)
        for number, part in enumerate(parts):
            held[place == number, : part.shape[1]] = part
        return held
    if _is(dataset, "StackDataset"):
        stacked = dataset.datasets
        stacked = stacked.values() if isinstance(stacked, dict) else stacked
        return np.hstack([_records(each, rows, leaves) for each in stacked])
    tensors = [each for each in getattr(dataset, "tensors", ()) if each.stride(0)]
    if _is(dataset, "TensorDataset") and tensors:
        widest = max(tensors, key=lambda each: each[:1].numel())
        start, step = widest.data_ptr(), widest.stride(0) * widest.element_size()
    else:
        start, step = leaves.setdefault(id(dataset), _ABOVE + (len(leaves) << 40)), 1
    return np.asarray(start + step * rows, dtype=np.int64)[:, np.newaxis]


def _is(dataset: Any, name: str) -> bool:
    """Return whether a data set is of a class of PyTorch, or of one that is derived from it."""
    return any(
        each.__name__ == name and each.__module__.startswith("torch.")
        for each in type(dataset).__mro__
    )


def _named(sampler: Any) -> tuple[str, str]:
    """Return the package and the name of a sampler's class."""
    return type(sampler).__module__.partition(".")[0], type(sampler).__name__


def _opened(loader: Any) -> tuple[Any, int, bool]:
    """Return a loader's sampler, its size of batches, and whether a short last one is left out."""
    batches: Any = getattr(loader, "batch_sampler", None)
    if batches is None:
        batches = getattr(loader, "sampler", None)
    if _named(batches) == ("opacus", "BatchSplittingSampler"):
        # Opacus adds up the parts of a batch, and adds noise to their sum.
        batches = batches.sampler
    if _named(batches) == ("torch", "BatchSampler"):
        return batches.sampler, batches.batch_size, batches.drop_last
    return batches, 1, False


def _fault(loader: Any, sampler: Any, size: int) -> str | None:
    """Return a sentence on a loader that changes the batches of its sampler's law."""
    draws_batches = hasattr(sampler, "law") or hasattr(sampler, "sample_rate")
    if draws_batches and size > 1:
        return (
            f"The loader puts {size} of its batches together, and a record may be in several: "
            "give it as batch_sampler, or as sampler with batch_size=None."
        )
    items, drawn = len(loader.dataset), getattr(sampler, "n", getattr(sampler, "num_samples", None))
    if hasattr(sampler, "data_source"):
        drawn = len(sampler.data_source)
    if drawn not in (None, items):
        return f"It draws from n={drawn} records, and the data set has {items}."
    rows = np.asarray(getattr(sampler, "indices", ()), dtype=np.int64)
    if len(np.unique(rows % max(items, 1))) < len(rows):
        return f"Its indices name a record more than once: {_NO_PRICE}"
    repeated = repetition(loader.dataset)
    if repeated is not None:
        return f"Each record must be in the data set once, and {repeated}: {_NO_PRICE}"
    if getattr(getattr(loader, "collate_fn", None), "rand_on_empty", False):
        return (
            "Random numbers take the place of an empty batch (rand_on_empty), so that a record "
            "moves the sum by up to twice its bound where it is alone in a batch. Leave it out."
        )
    return None


def _ours(sampler: PricedSampler, size: int, drop_last: bool) -> Verdict:
    words = (
        f"Its batches have a price. Divide sums by expected_batch_size="
        f"{sampler.expected_batch_size:.6g}, answer batches without records, release no draws."
    )
    return Verdict(type(sampler).__name__, words, sampler.law, sampler.event)


def _random(sampler: Any, size: int, drop_last: bool) -> Verdict:
    """Judge ``RandomSampler``: a shuffle, or draws with replacement."""
    n, draws = len(sampler.data_source), sampler.num_samples
    if not sampler.replacement and draws == n:
        return _shuffled("RandomSampler", n, size)
    if not sampler.replacement:
        sentence = f"It takes {draws} draws without replacement of {n}: {_NO_PRICE}"
        return Verdict("RandomSampler", sentence)
    whole, rest = divmod(draws, size)

    def event(noise_multiplier: float, epochs: int) -> events.DpEvent:
        gaussian = events.GaussianDpEvent(noise_multiplier)
        parts = [(size, whole), (rest, int(rest > 0 and not drop_last))]
        drawn = [
            events.SelfComposedDpEvent(
                events.SampledWithReplacementDpEvent(n, length, gaussian), count * epochs
            )
            for length, count in parts
            if count
        ]
        return events.ComposedDpEvent(drawn)

    return Verdict(
        "RandomSampler",
        "It draws with replacement: a record may be in one batch several times, and costs more "
        f"than in a Poisson sample. SampledWithReplacementDpEvent({n}, {size}, ...) prices it, if "
        "its seed is secret.",
        event=event,
    )


def _subset(sampler: Any, size: int, drop_last: bool) -> Verdict:
    """Judge ``SubsetRandomSampler``: a shuffle of some records."""
    found = _shuffled("SubsetRandomSampler", len(sampler.indices), size)
    note = " This is about the records of the subset, which must not be chosen by their contents."
    return replace(found, sentence=found.sentence + note)


def _shuffled(name: str, n: int, size: int) -> Verdict:
    batches = max(1, n // size)
    differ = n > size and n % size > 0
    uneven = " Batches differ in size, so only the upper end holds." if differ else ""
    return Verdict(
        name,
        f"It shuffles {n} records into batches of {size}. The price of Poisson samples is too low: "
        f"ShuffledEpochsDpEvent with {batches} batches has a bracket, if a record is blanked or "
        "replaced, every permutation is fresh and its seed is secret."
        f"{uneven} AllocationSampler({n}, {-(-n // size)}) has an exact price.",
        event=lambda sigma, epochs: events.ShuffledEpochsDpEvent(sigma, batches, epochs),
    )


def _in_order(sampler: Any, size: int, drop_last: bool) -> Verdict:
    """Judge ``SequentialSampler``."""
    return Verdict(
        "SequentialSampler",
        "It takes records in a known order: nothing is gained, and each epoch costs one Gaussian "
        "answer, if a record is blanked or replaced. Adding or removing one moves others between "
        "batches.",
        event=lambda sigma, epochs: events.SelfComposedDpEvent(
            events.GaussianDpEvent(sigma), epochs
        ),
    )


def _coins(sampler: Any, size: int, drop_last: bool) -> Verdict:
    """Judge Opacus' ``UniformWithReplacementSampler``: Poisson samples."""
    law = Poisson(drawn_probability(sampler.sample_rate))

    def event(noise_multiplier: float, epochs: int) -> events.DpEvent:
        step = law.event(events.GaussianDpEvent(noise_multiplier), sampler.num_samples)
        return events.SelfComposedDpEvent(step, epochs * len(sampler))

    return Verdict(
        "UniformWithReplacementSampler",
        f"It draws Poisson samples at rate {sampler.sample_rate:.6g}, from random numbers of 24 "
        f"bits: at {law.sampling_probability:.6g}, which is the rate to price. Its seed must be "
        "secret (secure_mode).",
        law,
        event,
    )


# Numbers of records: for no record, and from which on for rows without a place in memory.
_NOTHING, _ABOVE = -1, 1 << 60
_PIPES = "torch.utils.data.datapipes"
_NO_PRICE = "no theorem here prices this. Use AllocationSampler."
_UNKNOWN = "The law of its batches is not known here, and no price is: use AllocationSampler."
_JUDGES: Mapping[tuple[str, str], Callable[[Any, int, bool], Verdict]] = MappingProxyType(
    {
        ("torch", "RandomSampler"): _random,
        ("torch", "SequentialSampler"): _in_order,
        ("torch", "SubsetRandomSampler"): _subset,
        ("opacus", "UniformWithReplacementSampler"): _coins,
    }
)
_REFUSED: Mapping[str, str] = MappingProxyType(
    {
        "WeightedRandomSampler": "Records are drawn with probabilities that differ, and that may "
        f"depend on their contents: {_NO_PRICE}",
        "DistributedSampler": "Every rank takes a shard of a permutation that a public seed and "
        f"the epoch determine, and some records may be in two shards: {_NO_PRICE}",
        "_InfiniteConstantSampler": "An iterable data set has an order of its own, of shards or a "
        f"buffer, that the loader does not know: {_NO_PRICE}",
        "LengthGroupedSampler": "Batches depend on the lengths of records, which are part of their "
        f"contents: {_NO_PRICE}",
        "DistributedUniformWithReplacementSampler": "Ranks leave out batches without records, "
        f"which tells that a record was not drawn: {_NO_PRICE}",
    }
)
