"""The privacy boundary of optimizers: noisy answers about records.

A :class:`PrivateOracle` answers queries of a plan, by their names. The oracle checks the budget,
writes the ledger, and only then samples, clips, sums and adds noise. Records and noise also meet in
:class:`dpcal.optim.boundary.choices.PrivateChoices`, which answers without sums, and in
:mod:`dpcal.adapters.stepwise`, which takes the gradients of another library.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic
>>> objective = Logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1], classes=[0, 1])
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=4, queries=(query,), epsilon=3.0, delta=1e-6)
>>> oracle = PrivateOracle(objective, plan, seed=0)
>>> oracle.gradient(np.zeros(2), "gradient").shape
(2,)
>>> oracle.gradient(np.zeros(2), "gradient")
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: query 'gradient' may be asked 1 times, 1 are spent, 1 more asked for.

Each answer is a noisy version of the second column, which one record moves by the other two. C is
the query's ``max_norm``, to which every record's contribution to a sum is clipped:

================ ========================================= ====================== ===========
method           the sum behind the answer                 one added or zeroed    replaced
================ ========================================= ====================== ===========
``gradient``     of clipped gradients                      C                      2 C
``difference``   of clipped gradient differences           C, or C ||w - v||      twice that
``norm``         norm of the sum of clipped gradients      C                      2 C
``scalar``       of losses clipped to [-C, C]              C                      2 C
``one_pass``     the mean iterate itself, no sum           C                      2 C
``last_iterate`` of clipped gradients, in every step       C                      2 C
================ ========================================= ====================== ===========

The noise has standard deviation ``noise_multiplier * C`` under every relation; accountants know
that replacing a record moves a sum twice as far. A query with ``correlation`` has a stream of its
own: the noise of its answer number t is ``noise_multiplier * C`` times row t of C^-1 z, and the row
is spent with the answer, also where the answer fails.

A record with a contribution of NaN or infinity contributes zero, without a warning or an error.

Sums and noise are whole numbers, and noise is from cryptographic bits
(:mod:`dpcal.optim.boundary.noise`). A run with a seed that others know is reproducible, not
private. The same seed, plan and records give the same noise. A process and its forks refuse a
second such run; you must not make one in another process. See ``docs/explanation/boundary.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.answers import Records, Slot, copied, distance
from dpcal._ext.loops import Steps
from dpcal._internal import validate
from dpcal.accountants.samplers import everyone
from dpcal.calibrate.plan import Plan, Query
from dpcal.optim import boundary, budget
from dpcal.optim.boundary.batches import Batches
from dpcal.optim.boundary.ledger import Admits, Ledger
from dpcal.optim.boundary.noise import Mechanism, present, rounded, seen
from dpcal.optim.boundary.seeds import Seed, Streams
from dpcal.optim.objectives.arrays import AllRows, Rows, Vector, numbers, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.check import screen
from dpcal.optim.objectives.contributions import gradients, kernel_of, losses

if TYPE_CHECKING:
    from dpcal.optim.boundary.store import Answers

# In units of a gradient: below it a proportional query answers 0, as noise could round to zero.
NEGLIGIBLE = 1e-290

_DRAWN = ("full", "poisson", "fixed-size")
_COMPILED = ("gradient", "gradient difference", "gradient norm")
# Steps in the ledger at once: fewer go singly, exact where a run stops; more name too many.
FEWEST, MOST = 4, 256


@runtime_checkable
class Oracle(Protocol):
    """Answers a plan's queries with noise, and keeps the ledger of all releases.

    A :class:`PrivateOracle` answers about records in memory. An object with these attributes is an
    oracle too, and every optimizer takes it in place of an objective: for records that are spread
    over silos, a ledger that others share, a recording that is played again, a test. An
    implementation makes the privacy claim. An answer's entry is in the ledger before any record
    is read for it, every record's contribution is within the query's bound, and the noise is the
    plan's. Methods are documented on :class:`dpcal.optim.PrivateOracle`.
    """

    @property
    def dimension(self) -> int:
        """Number of parameters."""

    @property
    def plan(self) -> Plan:
        """Queries, with their counts and their noise."""

    @property
    def ledger(self) -> Ledger:
        """The answers so far."""

    @property
    def public(self) -> np.random.Generator:
        """A generator for public choices."""

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy gradient of the regularised objective, shape (dimension,)."""

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy difference of gradients, at w minus at v, shape (dimension,)."""

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy norm of the gradient; possibly negative."""

    def scalar(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy mean of clipped losses."""

    def remaining(self, query: str) -> int:
        """Return the number of answers that are left to the query."""

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return whether one more answer to an adaptive query, with this noise, is allowed."""


class PrivateOracle(Admits):
    """Answers a plan's queries about an objective's records, with noise, and keeps the ledger.

    Parameters
    ----------
    objective
        Objective that holds the plan's number of records. BrokenObjective is raised for your own
        objective if its sums are not the sums of its records.
    plan
        Queries, with their counts and their noise.
    seed
        Seed as in :func:`dpcal.optim.run`. Sampling, noise, partitions and public choices have
        independent streams.

    Notes
    -----
    Methods share these arguments: parameters ``w`` and ``v``, shape (dimension,), finite, which
    must be functions of released values; and ``query``, the name of a query of the method's kind in
    the plan. Adaptive queries need ``noise_multiplier``, and others refuse it: the noise of this
    answer in units of the query's ``max_norm``, at least the plan's, a function of released values.

    UnsupportedEvent is raised where rounding to whole numbers has no proof: see
    :mod:`dpcal.optim.boundary.noise`, ``lattice`` for correlated noise, and ``sealed``.

    Methods raise ``BudgetExceeded`` if the plan's count, its adaptive budget, the records of a
    partition or a budget in use are used up: no record is touched and nothing is spent. Methods
    raise ``NonFiniteAnswer`` if the answer is not finite, which happens if the regulariser
    overflows; the ledger then holds the answer.

    Attributes
    ----------
    dimension
        Number of parameters.
    l2, linear_loss
        Strength of the regulariser; and name and largest weight of a linear model's loss, for which
        defaults are known, or None.
    read_from_data
        Names of the properties that were read off the records to make the objective.
    """

    noise = "discrete"
    closes_with_run = False
    _pays = True
    _ends: Callable[[], object] | None = None

    def __init__(self, objective: Objective, plan: Plan, *, seed: Seed = None) -> None:
        validate.instance(Objective, objective=objective)
        validate.instance(Plan, plan=plan)
        streams = present().streams(seed, plan, objective.digest)
        self._open(objective, plan, streams)

    # A floating-point error of one record must not raise; digests of records may have such errors.
    @np.errstate(all="ignore")
    def _open(
        self,
        objective: Objective,
        plan: Plan,
        streams: Streams,
        *,
        ledger: Ledger | None = None,
    ) -> None:
        self._begin_ledger(plan, objective.n, ledger)
        _check_unit(objective, plan)
        if not objective.checked:
            screen(objective)
        self.objective, self._streams = objective, streams
        self.dimension, self.l2 = objective.dimension, objective.l2
        self.linear_loss, self.read_from_data = objective.linear_loss, objective.read_from_data
        mechanism = Mechanism(plan, objective.dimension, streams)
        self._mechanism = seen().watched(mechanism, plan, self.ledger)
        self._slots: dict[str, Slot] = {}
        kernel = kernel_of(objective) if self._mechanism.fused else None
        self._records = None if kernel is None else Records(kernel, objective.strengths)
        self._kept: Answers | None = None
        self._owed = budget.owed(plan) if self._pays else None

    @cached_property
    def _batches(self) -> Batches:
        """Draws batches that compiled code does not draw itself."""
        objective = self.objective
        return Batches(
            self.plan,
            objective.dimension,
            self._streams,
            n=objective.n,
            everyone=everyone if objective.rows_are_arrays else AllRows.of,
        )

    @property
    def seed_given(self) -> bool:
        """Whether a seed was given: then the run is private only while the seed is secret."""
        return self._streams.given

    @property
    def public(self) -> np.random.Generator:
        """A generator for public choices, such as the iterate to return."""
        return self._streams.public

    @property
    def held(self) -> Ledger:
        """All releases: the content of the run's file, while the run has not caught up with it."""
        return self.ledger if self._kept is None else self._kept.held(self.ledger)

    def flush(self) -> None:
        """Write answers that wait for their transaction to the run's file."""
        if self._kept is not None:
            self._kept.flush()

    def close(self) -> None:
        """Answer no more; close the run's file, and complete its row in a budget book."""
        self._ledger.end()
        try:
            if self._kept is not None:
                self._kept.close()
        finally:
            # Complete the row last, because it counts the answers in the file.
            if self._ends is not None:
                self._ends()

    def _parameters(self, name: str, w: ArrayLike) -> Vector:
        vector = copied(w, self.objective.dimension)
        if vector is None:
            vector = parameters(numbers(name, w), self.objective.dimension)
        return vector

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy gradient of the regularised objective, shape (dimension,).

        The gradient is (sum of clipped gradients over a fresh sample + Gaussian noise) / expected
        sample size, plus the regulariser's gradient. The expected size is q n, and n is public.
        """
        w = self._parameters("w", w)
        return self._answer("gradient", query, noise_multiplier, w)

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy difference of gradients of the regularised objective, at w minus at v.

        The difference is (sum of clipped differences + Gaussian noise) / expected sample size, plus
        the difference of the regulariser's gradients; shape (dimension,). A record's two gradients
        are of the same sample. Their difference is clipped to :meth:`dpcal.calibrate.Query.bound`
        at the distance ``||w - v||``, and a proportional query's noise is proportional to this
        distance too. Between equal parameters a proportional query's sum is exactly zero. It has no
        noise and no record is read, but the answer is in the ledger.
        """
        w, v = self._parameters("w", w), self._parameters("v", v)
        return self._answer("gradient difference", query, noise_multiplier, w, v)

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy norm of the gradient of the regularised objective; possibly negative.

        The noise is one number, however many parameters there are: by the triangle inequality a
        record moves the norm of a sum no farther than it moves the sum.
        """
        w = self._parameters("w", w)
        return float(self._answer("gradient norm", query, noise_multiplier, w)[0])

    def scalar(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy mean of losses, each clipped to ``[-max_norm, max_norm]``.

        The mean is (sum of clipped losses over a fresh sample + Gaussian noise) / expected sample
        size, plus the regulariser. An objective without losses of single records raises a
        TypeError.
        """
        w = self._parameters("w", w)
        return float(self._answer("scalar", query, noise_multiplier, w)[0])

    def one_pass(
        self,
        w: ArrayLike,
        query: str,
        *,
        learning_rate: float,
        strength: float = 0.0,
        center: ArrayLike | None = None,
        radius: float = math.inf,
    ) -> Vector:
        """Return the noisy mean iterate of one pass of gradient descent over fresh records.

        Step i moves against the clipped gradient of record i, plus ``strength (w - center)``, plus
        the regulariser's gradient, by the learning rate eta, and projects onto a ball. If every
        step is a contraction, replacing a record moves the mean of the iterates by at most 2 eta
        times the clipping bound (see :mod:`dpcal.optim.boundary.sealed`). A loss that is less
        smooth is scaled down, so that the claim does not rest on constants.

        UnsupportedEvent is raised, before any record is read, if no theorem states that clipped
        steps are contractions: for losses that are not convex, or not of a linear model, and for a
        step size above 2 over the regulariser's smoothness.

        Parameters
        ----------
        w, query
            The start, and the query; gradients are clipped to its ``max_norm`` over eta.
        learning_rate
            eta > 0.
        strength, center
            Strength and center of a further regulariser ``strength / 2 ||w - center||^2``; the
            center is the origin when omitted.
        radius
            Radius as in :func:`dpcal.optim.run`.
        """
        w = self._parameters("w", w)
        center = None if center is None else self._parameters("center", center)
        asked = self._asked(query, "one pass")
        how = learning_rate, strength, center, radius
        one_pass = boundary.Pass.planned(asked, self.objective, w, *how)

        def made() -> Vector:
            rows = self._batches.sample(asked)
            with np.errstate(all="ignore"):
                mean = rounded(one_pass.mean_iterate(self.objective, w, rows))
                what = asked.kind, self.objective, (w,), rows
                total = self._mechanism.whole(mean, asked.max_norm, *what)
            return self._mechanism.noisy_mean(total, asked, asked.max_norm, size=1.0)

        toward = np.zeros_like(w) if center is None else center
        return self._given(asked, (w, toward, np.array([learning_rate, strength, radius])), made)

    def last_iterate(self, w: ArrayLike, query: str) -> Vector:
        """Return only the last iterate of noisy gradient descent on all records.

        The steps follow the query's :class:`~dpcal.calibrate.descent.Descent`, from ``w`` on. Their
        answers stay inside, so that the cost need not grow with their number. The ledger holds the
        whole descent before a record is read. UnsupportedEvent is raised, before that, if no
        theorem covers the objective (see :mod:`dpcal.optim.boundary.sealed`).
        """
        w = self._parameters("w", w)
        asked = self._asked(query, "last iterate")
        steps = boundary.LastIterate.planned(asked, self.objective, w, self.plan.n)

        @np.errstate(all="ignore")
        def made() -> Vector:
            return steps.taken(
                self._mechanism, self.objective, w, self._batches.sample(asked), asked
            )

        return self._given(asked, (w,), made)

    def _answer(self, kind: str, name: str, noise_multiplier: float | None, *at: Vector) -> Vector:
        """Return an answer: admitted and written, then the batch, its sum, and the noise."""
        query = self._asked(name, kind, noise_multiplier)
        bound = query.bound(distance(*at)) if len(at) == 2 else query.max_norm
        if not math.isfinite(bound):
            raise ValueError("w and v must be at a finite distance, got one that overflows.")
        return self._given(query, at, lambda: self._noisy_answer(query, bound, *at))

    def _given(
        self, query: Query, points: tuple[Vector, ...], make: Callable[[], Vector]
    ) -> Vector:
        """Return the next answer: it is in the ledger before it is made, or found where it is kept.

        The answer depends on the query and the points.
        """
        with self._lock:
            self._admit((query, 1))
            if self._kept is None:
                return make()
            held = self._kept.again(query, points)
            if held is None:
                answer = make()
                self._kept.keep(query, points, answer)
                return answer
            if not _draws(query):
                self._batches.sample(query)
            return held

    def _slot(self, query: Query) -> Slot | None:
        """Return a query's answers in compiled code, or None; nothing is drawn before an answer."""
        if self._records is None or query.kind not in _COMPILED:
            return None
        slot = self._slots.get(query.name)
        if slot is not None and query.budget is None:
            return slot
        sums = self._mechanism.compiled_sums(query.noise_multiplier)
        if slot is not None:
            slot.sums = sums
            return slot
        drawn = _draws(query) and query.sampler != "full"
        self._slots[query.name] = Slot(
            self._records,
            sums,
            sampling=self._streams.sampling if drawn else None,
            sampling_probability=query.sampling_probability or 1.0,
            batch_size=query.batch_size or 0,
            everyone=query.sampler == "full",
            max_norm=query.max_norm,
            proportional=query.proportional,
            cap=math.inf if query.cap is None else query.cap,
            size=query.expected_batch_size(self.plan.n),
        )
        return self._slots[query.name]

    def _noisy_answer(self, query: Query, bound: float, *at: Vector) -> Vector:
        """Return an answer that is in the ledger: batch, sum, noise, regulariser."""
        slot = self._slot(query)
        answer: Vector | None = None
        norm = query.kind == "gradient norm"
        if slot is not None and not norm and _draws(query):
            answer = slot.answer(*at)
        if answer is not None:
            return answer
        rows = self._batches.sample(query)
        rounds = None if query.correlation is None else self._batches.rounds[query.name]
        if slot is not None and not norm:
            row, digits = (None, 0) if rounds is None else (rounds.noise, rounds.digits)
            answer = slot.answer(*at, rows=rows, row=row, digits=digits)
        elif slot is not None and rounds is None:
            answer = slot.norm(*at, rows=rows)
        if answer is not None:
            return answer
        if bound < NEGLIGIBLE:
            return self._penalty(*at)
        with np.errstate(all="ignore"):
            total = self._sum(query, bound, rows, *at)
        mean = self._noisy_mean(total, query, bound)
        if query.kind == "scalar":
            return mean + self.objective.regularizer(*at)
        return mean if norm else mean + self._penalty(*at)

    def _sum(self, query: Query, bound: float, rows: Rows, w: Vector, *v: Vector) -> Any:
        """Return a sum of contributions, without the floating-point errors of single records."""
        objective, kind = self.objective, "gradient difference" if v else "gradient"
        if query.kind == "scalar":
            kind, found = "scalar", losses(objective, rows, w)
        else:
            found = gradients(objective, rows, w, *v)
        total = self._mechanism.whole(found, bound, kind, objective, (w, *v), rows)
        if query.kind == "gradient norm":
            offset = query.expected_batch_size(self.plan.n) * self.objective.regularizer_gradient(w)
            return self._mechanism.norm(total, offset, bound)
        return total

    def _penalty(self, w: Vector, v: Vector | None = None) -> Vector:
        """Return the regulariser's gradient, which no record enters, or its difference."""
        slope = self.objective.regularizer_gradient(w)
        return slope if v is None else slope - self.objective.regularizer_gradient(v)

    def _noisy_mean(
        self, total: Any, query: Query, bound: float, *, moved: float | None = None
    ) -> Vector:
        """Return a total with the noise of a bound on contributions, over a public size."""
        row = None if query.correlation is None else self._batches.rounds[query.name].noise
        size = query.expected_batch_size(self.plan.n)
        return self._mechanism.noisy_mean(total, query, bound, size=size, row=row, moved=moved)

    def _compiled(self, *names: str) -> list[tuple[Query, Slot]]:
        """Return queries with their answers in compiled code, for many answers in a row.

        The list is empty unless all of them are not adaptive, draw a fresh batch for each answer,
        and have independent noise; and where the run has a file.
        """
        found: list[tuple[Query, Slot]] = []
        for name, kind in zip(names, _COMPILED, strict=False):
            query = self._queries.get(name)
            if self._kept is None and query and query.kind == kind and query.budget is None:
                slot = self._slot(query) if _draws(query) else None
                found += [] if slot is None else [(query, slot)]
        return found if len(found) == len(names) else []


class Walk(Steps):
    """Steps over answers of an oracle: many at once where the oracle has compiled answers.

    The ledger has an entry before a record is read. ``refresh`` and ``difference`` are names of
    queries of kinds ``"gradient"`` and ``"gradient difference"``, not adaptive; the latter None
    where every gradient is fresh. ``how`` is as for :class:`Steps`.
    """

    def __init__(
        self,
        oracle: Oracle,
        w: Vector,
        refresh: str,
        difference: str | None = None,
        *,
        period: int = 1,
        **how: Any,
    ) -> None:
        names = [refresh] if difference is None else [refresh, difference]
        self._oracle, self._period = oracle, 1 if difference is None else period
        self.compiled = oracle._compiled(*names) if isinstance(oracle, PrivateOracle) else []
        asked: list[Any] = [slot for _, slot in self.compiled] or [
            lambda w: oracle.gradient(w, refresh),
            lambda w, v: oracle.difference(w, v, str(difference)),
        ]
        super().__init__(asked[0], asked[1] if difference else None, w, period=period, **how)

    def take(self, steps: int = 1) -> bool:
        """Take up to ``steps`` steps; return False where the next iterate would not be finite.

        The ledger holds all of these steps before the first is taken.
        """
        if not (self.compiled and isinstance(self._oracle, PrivateOracle)):
            return super().take(min(steps, 1)) == 1
        steps = min(steps, MOST) if steps >= FEWEST else 1
        self._oracle._check_process()
        with self._oracle._lock:
            self._oracle._admit(*self._due(self.step, steps))
            return super().take(steps) == steps

    def _due(self, first: int, steps: int) -> Iterator[tuple[Query, int]]:
        """Yield the answers of these steps in order, consecutive ones to a query together."""
        for later, alike in groupby(range(first, first + steps), lambda t: t % self._period > 0):
            yield self.compiled[later][0], len(list(alike))


def _check_unit(objective: Objective, plan: Plan) -> None:
    """Refuse records of another unit than the claim's: rows, or persons with so many rows."""
    most = getattr(objective, "group_size", None)
    if plan.clipped == "user" and most is None:
        raise ValueError(
            "plan must be for rows, which are the objective's records, got one with "
            "clipped='user', which is for optim.Users."
        )
    if most is not None and (plan.clipped == "row" or most > plan.group_size):
        raise ValueError(
            "plan must be for persons, who are the objective's records, with clipped='user' and "
            f"group_size of at least {most}, got clipped={plan.clipped!r} and group_size="
            f"{plan.group_size!r}."
        )


def _draws(query: Query) -> bool:
    """Return whether each answer has a batch and noise of its own, and compiled code draws both."""
    alone = query.composition != "disjoint" and query.correlation is None and query.epoch is None
    return alone and query.sampler in _DRAWN
