"""The sums of contributions and their noise, both in whole numbers.

One record moves a sum of whole numbers by at most the query's bound, exactly
(:mod:`dpcal.optim.objectives.contributions`), and noise of whole numbers is added. A whole number
of steps is released; multiplying it by the step, in floating point, is post-processing.

The noise is discrete Gaussian, with bits from AES in counter mode. It reveals no more than the
Gaussian noise that the plan accounts for
(:meth:`dpcal.optim.boundary.discrete.DiscreteNormals.covering`).

>>> from dpcal.optim import FromGradients
>>> from dpcal.optim.objectives.contributions import gradients
>>> table = np.array([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]])
>>> objective = FromGradients(lambda w, rows: table[rows], n=3, dimension=2)
>>> total = Mechanism.whole(gradients(objective, np.array([0, 1]), np.zeros(2)), 1.0)
>>> Mechanism.values(total, 1.0).round(4).tolist()
[0.9, 1.2]
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.discrete import LEAST
from dpcal._ext.sums import MOST_RECORDS, Sums, grid_step, in_units, whole_norm
from dpcal._internal import annexes, validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.query import CHOICES
from dpcal.errors import NonFiniteAnswer, UnobservedOracle, UnsupportedEvent
from dpcal.optim.boundary.discrete import DiscreteNormals, table_of
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.contributions import Asked, Contributions

Integers = NDArray[np.int64]
Chooser = Callable[[Query, Vector, Any, Callable[[], NDArray[Any]]], NDArray[Any]]

# Least delta over the distance of noise from its law: a millionth of delta is left out of account.
_MARGIN = 2.0**20

# Noise of 2^55 steps fits in 64 bits next to a sum; noise of 2^-20 steps has a law (``covering``).
_NARROWEST, _WIDEST = 2.0**-40, 2.0**34

_SINGLE = ("gradient norm", "scalar", "saddle score", "noisy max")

_FARTHEST = 2.0**60


class Mechanism:
    """Sums clipped contributions and adds noise; totals are whole numbers of grid steps.

    A bound > 0 is on the size of each record's contribution. A contribution that is not finite
    counts as zero.

    UnsupportedEvent is raised for choices, which this oracle does not make; if a sum has more
    records than whole numbers can hold; if correlated noise has no grid (see
    :mod:`dpcal.optim.boundary.lattice`); and by :func:`check_distance`.

    Attributes
    ----------
    fused
        Whether compiled answers may replace the mechanism.
    compiled_sums
        Function of a noise multiplier that returns the sums and noise for compiled code.
    """

    def __init__(self, plan: Plan, dimension: int, streams: Streams) -> None:
        self._streams, self._dimension = streams, dimension
        self.compiled_sums = lru_cache(maxsize=8)(self._sums_with)
        self._digits: dict[str, int] = {}
        self.fused, drawn = True, 0
        if plan.n > MOST_RECORDS:
            raise UnsupportedEvent(f"sums are of at most 2^29 records, got n={plan.n}.")
        for query in plan.queries:
            if query.kind in CHOICES:
                raise UnsupportedEvent(
                    "an oracle is for sums and scores, and PrivateChoices is for choices, got "
                    f"query {query.name!r} with kind {query.kind!r}."
                )
            noise = validate.within(_NARROWEST, _WIDEST, noise_multiplier=query.noise_multiplier)
            self.fused &= noise / grid_step(1.0) >= LEAST
            if query.correlation is not None:
                self._digits[query.name] = annexes.grid_of(query, dimension).digits
            steps = 1 if query.descent is None else query.descent.steps
            drawn += query.count * steps * numbers_in(query, dimension)
        check_distance(plan, drawn)

    def _sums_with(self, noise_multiplier: float) -> Sums:
        validate.within(_NARROWEST, _WIDEST, noise_multiplier=noise_multiplier)
        return Sums(self._streams.noise, noise_multiplier, self._dimension, table_of())

    @staticmethod
    def whole(found: Contributions, bound: float, *about: Any) -> Integers:
        """Return the sum of contributions, each clipped to a bound.

        ``about`` describes them to an observer: the kind of the sum, the objective, the parameters
        and the row numbers.
        """
        return found.whole(bound)

    @staticmethod
    def norm(total: Integers, offset: Vector, bound: float) -> Integers:
        """Return the norm of a sum plus a public vector, rounded to the grid and then down.

        By the triangle inequality a record moves the norm by no more than the sum. Rounding down
        adds less than a step, and contributions are shorter than the bound by this step. The root
        is taken in whole numbers, shape (1,). NonFiniteAnswer is raised for a public vector beyond
        2^60 steps.
        """
        with np.errstate(over="ignore"):
            steps = np.rint(offset / grid_step(bound))
        if not (np.abs(steps) <= _FARTHEST / max(1.0, math.sqrt(len(steps)))).all():
            raise NonFiniteAnswer(
                "The regulariser's gradient is too long for a norm in whole numbers, and the "
                "norm was not released: the parameters that were asked about are too large."
            )
        return np.array([whole_norm(total, steps)], dtype=np.int64)

    @staticmethod
    def values(total: Integers, bound: float) -> Vector:
        """Return a total in the units of the answer, as a copy in doubles."""
        return np.multiply(total, grid_step(bound), dtype=np.float64)

    @staticmethod
    def mean(total: Integers, bound: float, size: float, noise: Integers | None = None) -> Vector:
        """Return a total with its noise, in the units of the answer, over a public ``size`` > 0.

        Noise that is not in the total yet is given. The result is in the memory of the total, which
        must not be used again.
        """
        return in_units(total, noise, grid_step(bound), size)

    def noisy_mean(
        self,
        total: Integers,
        query: Query,
        bound: float,
        *,
        size: float,
        row: Integers | None = None,
        moved: float | None = None,
    ) -> Vector:
        """Return a total with the query's noise, divided by a public ``size`` > 0.

        The noise is the query's multiplier times ``bound``, which bounds the norm of one record's
        contribution. ``row`` is a row of correlated noise in steps of its grid, shape (dimension,);
        None for independent noise. ``moved`` is the number of steps by which one contribution moves
        the total, where rounding makes it more than the bound. The total must not be used again.
        """
        if row is not None:
            digits = self._digits.get(query.name, 0)
            return self.mean((total << digits) + row, bound, 2.0**digits * size)
        self.add_noise(total, query, bound, moved)
        return self.mean(total, bound, size)

    def add_noise(
        self, total: Integers, query: Query, bound: float, moved: float | None = None
    ) -> None:
        """Add the query's independent noise to a total; see :meth:`noisy_mean`."""
        sigma = query.noise_multiplier * (moved or bound / grid_step(bound))
        DiscreteNormals.covering(sigma, self._streams.noise).add(total)


def rounded(mean: Vector) -> Asked:
    """Return a mean as a mechanism takes it; the steps to it were shortened for its rounding."""

    def whole(bound: float) -> Any:
        return np.rint(mean / grid_step(bound)).astype(np.int64)

    return Asked(len(mean), whole, whole)


def numbers_in(query: Query, dimension: int) -> int:
    """Return how many numbers an answer has."""
    if query.kind == "hessian":
        return dimension * (dimension + 1) // 2
    return 1 if query.kind in _SINGLE else dimension


def check_distance(plan: Plan, numbers: float) -> None:
    """Refuse a plan unless its delta is large next to the distance of its noise from the law.

    ``numbers`` is how many numbers with noise the plan releases, at most. UnsupportedEvent is
    raised if they are too many for the plan's delta.
    """
    distance = _distance() + math.log2(max(numbers, 1.0))
    if plan.delta < _MARGIN * 2.0**distance:
        raise UnsupportedEvent(
            f"discrete noise keeps this plan's {numbers:.3g} numbers within 2^{distance:.0f} of "
            f"their law, which a delta of at least 2^{distance + 20:.0f} leaves out of account, "
            f"got delta={plan.delta!r}."
        )


@lru_cache(maxsize=1)
def _distance() -> float:
    """Base-2 logarithm of the distance of one number's law, for the widest noise."""
    return DiscreteNormals.covering(2.0**54, bytes(32)).log2_total_variation


class Observer:
    """Receives every oracle that is opened, and changes nothing; subclasses see its answers.

    An observer sees sums without noise, which reveal single records. An observer runs in the
    process that holds the records, for their owner. Its observations must not be released.
    :mod:`dpcal.optim.attacks` records and replays whole runs with it.

    >>> from dpcal.calibrate import Plan, Query
    >>> from dpcal.optim import Logistic, PrivateOracle
    >>> query = Query(name="gradient", kind="gradient", sampler="full",
    ...               max_norm=1.0, noise_multiplier=2.0, count=1)
    >>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=3.0, delta=1e-6)
    >>> class Counter(Observer):
    ...     opened = 0
    ...     def watched(self, mechanism, plan, ledger):
    ...         self.opened += 1
    ...         return mechanism
    >>> counter = Counter()
    >>> with observing(counter):
    ...     oracle = PrivateOracle(Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1]), plan)
    >>> counter.opened
    1
    """

    def streams(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> Streams:
        """Return the random streams of an oracle that is about to be opened."""
        return Streams(seed, plan, digest)

    def watched(self, mechanism: Mechanism, plan: Plan, ledger: Ledger) -> Mechanism:
        """Return the mechanism that the oracle uses in place of its own."""
        return mechanism

    def choosing(self, plan: Plan, ledger: Ledger) -> Chooser:
        """Return the function that answers for an oracle that chooses among candidates."""
        return lambda query, at, scores, choose: choose()


_NOBODY = Observer()
_OBSERVER: ContextVar[Observer] = ContextVar("observer", default=_NOBODY)

# Observations that go on, each with its process and the number of oracles that it missed.
_MISSED: dict[tuple[int, object], int] = {}
_LOCK = Lock()


@contextmanager
def observing(observer: Observer) -> Iterator[None]:
    """Let ``observer`` watch every oracle that is opened inside, in this thread's context.

    UnobservedOracle is raised at the end if the process opened an oracle elsewhere meanwhile: in
    another thread, which may or may not belong to the code inside.
    """
    token = os.getpid(), object()
    before = _OBSERVER.set(observer)
    with _LOCK:
        _MISSED[token] = 0
    try:
        yield
    finally:
        _OBSERVER.reset(before)
        with _LOCK:
            missed = _MISSED.pop(token)
    if missed:
        raise UnobservedOracle(
            f"{missed} oracles were opened in other threads: nobody saw what they answered. Start "
            "the threads of a run with contextvars.copy_context().run, and let the process do "
            "nothing else meanwhile."
        )


def present() -> Observer:
    """Return the observer of this context, for an oracle that is about to be opened."""
    return _OBSERVER.get()


def seen() -> Observer:
    """Return the observer of an oracle that is opened; refuse one that its observer cannot see."""
    observer = _OBSERVER.get()
    with _LOCK:
        for token in _MISSED:
            if token[0] != os.getpid():
                raise UnobservedOracle(
                    "an oracle cannot be observed in a forked process: let the run that is "
                    "attacked work in threads."
                )
            _MISSED[token] += observer is _NOBODY
    return observer


def observed() -> bool:
    """Return whether an observer watches the oracles that are opened here: they release nothing."""
    return _OBSERVER.get() is not _NOBODY
