"""The parts that all samplers of batches have in common. Their base class.

>>> rows = everyone(3)
>>> rows.tolist(), rows.flags.writeable
([0, 1, 2], False)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.participations import Automaton, Epochs, Floats, Groups
from dpcal.errors import UnsupportedEvent

__all__ = ["Floats", "Rows", "Sampler", "everyone"]

Rows = NDArray[np.intp]
# The range of each parameter in every sampler that has it; None where it is the default.
_RANGES: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "sampling_probability": validate.rate,
        **dict.fromkeys(("random_shift", "warm_start"), validate.flag),
        **dict.fromkeys(("batch_size", "n", "bands", "bins"), validate.count),
        **dict.fromkeys(("separation", "participations", "epoch"), validate.count),
    }
)


def everyone(n: int) -> Rows:
    """Return the numbers of all ``n`` rows, in an array that cannot be written to."""
    rows = np.arange(n, dtype=np.intp)
    rows.flags.writeable = False
    return rows


@dataclass(frozen=True)
class Sampler:
    """Base class of the samplers.

    Attributes
    ----------
    name
        Name of the sampler in ``Query`` and its JSON document.
    words
        The text of :attr:`sentence`, with fields in braces.
    fresh
        Whether each batch is drawn independently of other batches.
    sized
        Whether the number of records in a batch is fixed.
    independent_noise
        Whether answers may have independent noise. For the other samplers only a whole run with
        correlated noise has an epsilon.
    refused
        Why no dominating pair is known under correlated noise; empty if one is.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    fresh: ClassVar[bool] = False
    sized: ClassVar[bool] = False
    independent_noise: ClassVar[bool] = False
    refused: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for each in fields(self):
            value, check = getattr(self, each.name), _RANGES.get(each.name)
            if check is not None and not value is each.default is None:
                check(**{each.name: value})

    def event(self, mechanism: events.DpEvent, n: int) -> events.DpEvent:
        """Return the event of a mechanism on one batch of ``n`` records.

        Raises
        ------
        UnsupportedEvent
            If a batch depends on other batches: only all answers together have an epsilon.
        """
        raise UnsupportedEvent(
            f"An answer with sampler {self.name!r} has no price of its own: its batch depends on "
            "the batches of other answers. All answers together have one."
        )

    def answers(self, noise_multiplier: float, n: int, count: int) -> tuple[events.DpEvent, int]:
        """Return an event, and how often it happens, of answers with independent Gaussian noise.

        An epoch that is broken off costs at most as much as a whole one: its answers are a function
        of the answers of the whole epoch.

        Parameters
        ----------
        noise_multiplier
            Standard deviation > 0 of the noise, over the bound on one record's contribution.
        n
            Number of records, at least 1.
        count
            Number of answers in a row, at least 1, from the first of an epoch on.
        """
        return self.event(events.GaussianDpEvent(noise_multiplier), n), count

    def expected_batch_size(self, n: int, rounds: int) -> float:
        """Return the average number of records in a batch, of ``n``; as public as ``n`` is.

        Parameters
        ----------
        n
            Number of records, at least 1.
        rounds
            Most answers of the whole run.
        """
        raise NotImplementedError

    @property
    def sentence(self) -> str:
        """The records of an answer, for the privacy statement of a report."""
        return self.words.format(**vars(self))

    def draw(self, n: int, generator: np.random.Generator) -> Rows:
        """Return row numbers of a batch of ``n`` records, drawn independently of other batches."""
        raise NotImplementedError

    def batches(self, n: int, rounds: int, generator: np.random.Generator) -> Iterator[Rows]:
        """Yield the row numbers of each round's batch; the generator is used for this run only."""
        while True:
            yield self.draw(n, generator)

    @property
    def law(self) -> Sampler:
        """Return the law of participations that accountants of correlated noise use.

        Raises
        ------
        UnsupportedEvent
            If no dominating pair is known.
        """
        if self.refused:
            raise UnsupportedEvent(self.refused)
        return self

    @property
    def least_separation(self) -> int:
        """Least distance >= 1, in rounds, of two participations of a record."""
        return 1

    def automaton(self, rounds: int) -> Automaton:
        """Return the law of one record's participations in ``rounds`` rounds.

        Raises
        ------
        UnsupportedEvent
            If the sampler states none, or has no epsilon with correlated noise.
        """
        raise UnsupportedEvent(
            self.refused
            or f"Sampler {self.name!r} has no law of one record's participations, which "
            "correlated noise needs."
        )

    def participation_law(self, rounds: int) -> Automaton:
        """Return the law of participations that are known, which needs no dominating pair."""
        return self.automaton(rounds)

    def groups(self, rounds: int) -> Groups | None:
        """Return the groups whose records join rounds independently, if there are such groups."""
        return None

    def epochs(self, rounds: int) -> Epochs | None:
        """Return the epochs in which records join uniform subsets of rounds, if they do."""
        return None

    def equally_likely(self, rounds: int) -> Floats | None:
        """Return participation patterns, shape (rounds, patterns), if all are equally likely."""
        return None
