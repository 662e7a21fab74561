"""The batches of records for answers: samples, parts of a partition, rounds of correlated noise.

Batches are drawn from the sampling law that the accountant accounts for. Batches never depend on
the contents of records. Where records are sampled independently, they do not depend on other
records either.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.calibrate import Correlation, Query
>>> from dpcal.optim.boundary.seeds import keyed_generator
>>> query = Query(name="gradient", kind="gradient", sampler="balls-in-bins", separation=3,
...               max_norm=1.0, noise_multiplier=2.0, count=6,
...               correlation=Correlation(strategy=LambdaCGD(6, 0.5)))
>>> stream = annexes.LatticeStream(annexes.grid_of(query, 2), keyed_generator)
>>> rounds = Rounds(query.sampling.batches(9, 6, np.random.default_rng(0)), stream)
>>> batches = [rounds.begin().tolist() for _ in range(6)]
>>> batches[:3] == batches[3:], sorted(sum(batches[:3], []))
(True, [0, 1, 2, 3, 4, 5, 6, 7, 8])
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from functools import cached_property, partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import annexes
from dpcal.accountants.random_groups import RandomOrder, is_long
from dpcal.accountants.samplers import everyone
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import BudgetExceeded
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.seeds import Streams

if TYPE_CHECKING:
    from dpcal.optim.boundary.lattice import LatticeStream

Rows = NDArray[np.intp]


class Rounds:
    """The rounds of a query with batches or noise that hang together, in turn.

    Parameters
    ----------
    batches
        The batch of each round.
    stream
        Its rows of noise; None for independent noise.

    Attributes
    ----------
    noise
        The row of noise of the last round, shape (dimension,), in whole steps.
    digits
        Number of bits by which these steps are finer than the steps of sums.
    """

    def __init__(self, batches: Iterator[Rows], stream: LatticeStream | None = None) -> None:
        self._batches, self._stream, self._round = batches, stream, 0
        self.digits = 0 if stream is None else stream.digits
        self.noise: NDArray[Any] = np.empty(0)

    def begin(self) -> Rows:
        """Draw the next round's noise, and return its batch: row numbers."""
        if self._stream is not None:
            _check_whole(self._round, self._stream.step)
            self.noise = self._stream.read(self.noise if len(self.noise) else None)
        batch = next(self._batches, None)
        _check_whole(batch is not None, True)
        assert batch is not None
        self._round += 1
        return batch

    def skip_to(self, count: int) -> None:
        """Go on as if ``count`` rounds had begun, before the first one."""
        if self._stream is not None:
            self._stream = self._stream.at(count)
        deque(islice(self._batches, count), maxlen=0)
        self._round = count


class Batches:
    """Draws the rows that each answer of a plan is about.

    Parameters
    ----------
    plan, dimension, streams
        The plan, the number of parameters, and the random streams of the run.
    n
        Number of records, for which the plan may have a public number.
    everyone
        Returns the row numbers of all n records, as the objective takes them.
    """

    def __init__(
        self,
        plan: Plan,
        dimension: int,
        streams: Streams,
        *,
        n: int,
        everyone: Callable[[int], Rows] = everyone,
    ) -> None:
        self._plan, self._dimension, self._streams = plan, dimension, streams
        self._n, self._all = n, everyone
        self.parts = Parts(plan, streams)

    @cached_property
    def _everyone(self) -> Rows:
        return self._all(self._n)

    @cached_property
    def rounds(self) -> dict[str, Rounds]:
        """The rounds of each query that samples by epochs or has correlated noise, by its name."""
        correlated = [query.name for query in self._plan.queries if query.correlation is not None]
        # Each query has its own stream, so that other queries and a resumption do not change it.
        children = dict(zip(correlated, self._streams.samplings(len(correlated)), strict=True))
        found: dict[str, Rounds] = {}
        for query in self._plan.queries:
            stream = None
            if query.correlation is not None:
                stream, steps = self._stream(query), query.correlation.strategy.steps
                generator = children[query.name]
            elif query.epoch is not None:
                steps = -(-query.count // query.epoch) * query.epoch
                generator = self._streams.allotting("epochs", query.name)
            else:
                continue
            batches: Iterator[Rows] = repeat(self._everyone)
            if query.sampler != "full":
                batches = query.sampling.batches(self._n, steps, generator)
            found[query.name] = Rounds(batches, stream)
        return found

    def skip_to(self, ledger: Ledger) -> None:
        """Go on as if all answers of a ledger had been given, where batches hang together."""
        for name, rounds in self.rounds.items():
            rounds.skip_to(ledger.count(name))

    def _stream(self, query: Query) -> LatticeStream:
        grid = annexes.grid_of(query, self._dimension)
        made: LatticeStream = annexes.LatticeStream(grid, partial(self._streams.rows, query.name))
        return made

    def sample(self, query: Query) -> Rows:
        """Return the row numbers of the query's next answer.

        For correlated noise, each call begins the next round and uses it up: neither its batch nor
        its row of noise is used again. For epochs, each call takes the next batch.
        """
        if query.correlation is not None or query.epoch is not None:
            return self.rounds[query.name].begin()
        if query.composition == "disjoint":
            return self.parts.take(query)
        if query.sampler == "full":
            return self._everyone
        return query.sampling.draw(self._n, self._streams.sampling)


class Parts:
    """Disjoint parts of the records, handed out in the order of a random permutation.

    The permutation does not depend on the contents of records: a record that is replaced in place
    stays in the same part.
    """

    def __init__(self, plan: Plan, streams: Streams) -> None:
        disjoint = [query for query in plan.queries if query.composition == "disjoint"]
        names = dict.fromkeys(_partition(query) for query in disjoint)
        self._n = plan.n
        self._names, self._streams = names, streams
        self._handed_out = dict.fromkeys(names, 0)
        self._allotted = dict.fromkeys((query.name for query in disjoint), 0)
        self._waiting: dict[str, deque[Rows]] = defaultdict(deque)
        self._last: dict[str, Rows] = {}

    @cached_property
    def _order(self) -> dict[str, RandomOrder]:
        """A random order of the records for each partition, made when it is first needed.

        A long order is drawn while it is handed out, so it has its own stream.
        """
        streams, n = self._streams, self._n
        if not is_long(n):
            return {name: RandomOrder(n, streams.parting) for name in self._names}
        return {name: RandomOrder(n, streams.allotting("order", name)) for name in self._names}

    def check(self, query: Query, count: int, spent: int) -> None:
        """Refuse ``count`` answers after ``spent`` if the partition has not enough records left."""
        _check_whole(self._allotted[query.name], spent)
        needed = len(_new_parts(query, count, spent)) * (query.batch_size or 0)
        handed_out = self._handed_out[_partition(query)]
        if handed_out + needed > self._n:
            raise BudgetExceeded(
                f"query {query.name!r} needs {needed} records, partition {_partition(query)!r} of "
                f"n={self._n} has {self._n - handed_out} left."
            )

    def allot(self, query: Query, count: int, spent: int) -> None:
        """Set the parts of ``count`` answers aside; each answer takes one."""
        name, size = _partition(query), query.batch_size or 0
        fresh = _new_parts(query, count, spent)
        for answer in range(spent, spent + count):
            if answer in fresh:
                self._last[query.name] = self._order[name].take(size)
                self._handed_out[name] += size
            self._waiting[query.name].append(self._last[query.name])
        self._allotted[query.name] = spent + count

    def take(self, query: Query) -> Rows:
        """Return the records of the next answer."""
        return self._waiting[query.name].popleft()


def _check_whole(done: int, begun: int) -> None:
    """Refuse to go on after an interruption: later batches or noise would have another law."""
    if done != begun:
        raise RuntimeError("an answer was interrupted while it was drawn: make a new oracle.")


def _partition(query: Query) -> str:
    return query.partition or query.name


def _new_parts(query: Query, count: int, spent: int) -> range:
    """Return which of the answers ``spent`` to ``spent + count - 1`` begin a new part."""
    first = -(-spent // query.answers_per_part) * query.answers_per_part
    return range(first, spent + count, query.answers_per_part)
