"""The privacy boundary: the only place that sees records and noise.

An optimizer asks a :class:`PrivateOracle` by the name of a query in its plan. The oracle checks the
budget, writes the ledger, and only then samples, clips, sums and adds noise.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic
>>> objective = Logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])
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

What each answer is a noisy version of, and how far one record moves it. C is the query's
``max_norm``; every record's contribution to a sum is clipped to it, and b, the expected sample
size, is public:

============== ========================================= ====================== ===========
method         the sum behind the answer                 one added or zeroed    replaced
============== ========================================= ====================== ===========
``gradient``   of clipped gradients                      C                      2 C
``difference`` of clipped gradient differences           C, or C ||w - v||      twice that
``norm``       norm of the sum of clipped gradients      C                      2 C
``scalar``     of losses clipped to [-C, C]              C                      2 C
============== ========================================= ====================== ===========

The noise has standard deviation ``noise_multiplier * C`` under every relation; accountants know
that replacing a record moves a sum twice as far. A query with ``correlation`` has a stream of its
own: the noise of its answer number t is ``noise_multiplier * C`` times row t of C^-1 z, and the row
is spent with the answer, also where the answer fails.

Outside the claim: numpy's generators are not cryptographic, so an adversary who can guess the seed
or rebuild a generator's state can subtract the noise; and Gaussian noise in floating point is not
the real-valued Gaussian that theorems speak of (Mironov 2012). A run whose seed is known to others
is reproducible, not private.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict, deque
from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.loops import descend
from dpcal._ext.noise import add_gaussian, poisson_sample
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import BudgetExceeded, NonFiniteAnswer, UnsupportedEvent
from dpcal.optim.ledger import Ledger
from dpcal.optim.objectives import Objective, Vector, numbers, parameters
from dpcal.optim.rounds import Rounds

if TYPE_CHECKING:
    from dpcal.accountants.filters import PrivacyFilter

__all__ = ["PrivateOracle", "Seed"]

Rows = NDArray[np.intp]

# Below this a bound is taken for zero: noise in proportion to it could itself round to zero.
_NEGLIGIBLE = 1e-290

Seed = int | np.random.SeedSequence | np.random.Generator | None


class PrivateOracle:
    """Answers a plan's queries about an objective's records, with noise, and keeps the ledger.

    Parameters
    ----------
    objective
        Whose records are asked about.
    plan
        What may be asked, how often, with how much noise.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or a ``Generator`` (of which children are
        spawned), or None for fresh entropy from the operating system. Sampling, noise, partitions
        and public choices have independent streams.
    filter
        A budget that every answer is paid from besides the plan, for instance one that several
        runs about the same records share; None for the plan alone.

    Attributes
    ----------
    objective, plan
        As given.
    ledger
        What was released so far. An entry is written before its answer leaves, and before any
        record is read.
    public
        A generator for choices that are no secret, such as which iterate to return.

    Raises
    ------
    ValueError
        If the plan is for another number of records than the objective has.
    """

    def __init__(
        self,
        objective: Objective,
        plan: Plan,
        *,
        seed: Seed = None,
        filter: PrivacyFilter | None = None,  # noqa: A002 -- what it is called in the field
    ) -> None:
        if plan.n != objective.n:
            raise ValueError(
                f"plan must be for the objective's n={objective.n} records, got one for n={plan.n}."
            )
        if filter is not None and filter.neighboring_relation != plan.neighboring_relation:
            raise ValueError(
                f"filter must be for the plan's relation {plan.neighboring_relation!r}, got one "
                f"for {filter.neighboring_relation!r}."
            )
        self.objective = objective
        self.plan = plan
        self.ledger = Ledger(plan.n, plan.neighboring_relation)
        self._filter = filter
        if filter is not None and any(query.correlation for query in plan.queries):
            raise UnsupportedEvent(
                "A filter prices answers one by one, and those with correlated noise have no price "
                "of their own."
            )
        generator = _generator(seed)
        self._root = _root(generator)
        self._sampling, self._noise, parting, self.public = generator.spawn(4)
        self._parts = _Parts(plan, parting)
        self._rows = {
            query.name: Rounds(
                query, plan.n, objective.dimension, sampling=self._sampling, noise=self._noise
            )
            for query in plan.queries
            if query.correlation is not None
        }
        self._lock = Lock()

    @classmethod
    def resumed(cls, objective: Objective, plan: Plan, state: Mapping[str, Any]) -> PrivateOracle:
        """Return an oracle that goes on where another one stopped, with the same randomness.

        Parameters
        ----------
        objective, plan
            As before.
        state
            What :meth:`state` returned.

        Raises
        ------
        ValueError
            If the plan has queries with independent noise: their generators keep no count.
        """
        oracle = cls(objective, plan, seed=_restored(state["seed"]))
        if len(oracle._rows) != len(plan.queries):
            raise ValueError("plan must have correlated noise in all of its queries to be resumed.")
        oracle.ledger = Ledger.from_json(state["ledger"])
        for name, rounds in oracle._rows.items():
            rounds.skip_to(oracle.ledger.count(name))
        return oracle

    def state(self) -> dict[str, Any]:
        """Return what :meth:`resumed` needs, as JSON values. It is a secret, like the seed."""
        return {"seed": self._root, "ledger": self.ledger.to_json()}

    def remaining(self, query: str) -> int:
        """Return how often the query may still be asked."""
        return self.plan.query(query).count - self.ledger.count(query)

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return whether an adaptive query could be asked once more, with this noise.

        The answer is a function of the ledger alone. With a filter, it is asked too.

        Parameters
        ----------
        query
            Name of an adaptive query in the plan.
        noise_multiplier
            At least the plan's.
        """
        asked = self._chosen(self.plan.query(query), noise_multiplier)
        spent = self.ledger.share(asked.budget or 0.0)
        fits = self.remaining(query) >= 1 and spent + _once(asked).share <= 1
        if self._filter is not None and fits:
            return not self._filter.would_exceed(asked.event(self.plan.n))
        return fits

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy gradient of the regularised objective.

        Parameters
        ----------
        w
            Parameters, shape (dimension,), finite.
        query
            Name of a query of kind ``"gradient"`` in the plan.
        noise_multiplier
            For adaptive queries, and needed by them: the noise of this answer, in units of the
            query's ``max_norm``, at least the plan's. It must be a function of what was released.

        Returns
        -------
        numpy.ndarray
            (Sum of clipped gradients over a fresh sample + Gaussian noise) / expected sample size,
            plus the regulariser's gradient; shape (dimension,). The expected size is q n, and n is
            public.

        Raises
        ------
        BudgetExceeded
            If the plan's count, its adaptive budget, the records of a partition or the filter are
            used up; no record is touched and nothing is spent.
        NonFiniteAnswer
            If the objective's sum is NaN or infinite; the ledger holds the answer.
        """
        w = self._parameters("w", w)
        asked = self._asked(query, "gradient", noise_multiplier)
        with self._lock:
            self._spend(asked, 1)
            return self._noisy_gradient(w, asked)

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy difference of gradients of the regularised objective, at w minus at v.

        Both gradients are taken on the same sample, and each record's difference is clipped to
        :meth:`dpcal.calibrate.Query.bound` at the distance ``||w - v||``, to which a proportional
        query's noise is proportional too.

        Parameters
        ----------
        w, v
            Parameters, shape (dimension,), finite. They must be functions of what was released.
        query
            Name of a query of kind ``"gradient difference"`` in the plan.
        noise_multiplier
            As for :meth:`gradient`.

        Returns
        -------
        numpy.ndarray
            (Sum of clipped differences + Gaussian noise) / expected sample size, plus the
            difference of the regulariser's gradients; shape (dimension,). Between equal parameters
            a proportional query's sum is zero, exactly and without noise, and no record is read;
            it is an entry of the ledger all the same.

        Raises
        ------
        BudgetExceeded, NonFiniteAnswer
            As for :meth:`gradient`.
        """
        w, v = self._parameters("w", w), self._parameters("v", v)
        asked = self._asked(query, "gradient difference", noise_multiplier)
        with np.errstate(over="ignore"):
            bound = asked.bound(float(np.linalg.norm(w - v)))
        if not math.isfinite(bound):
            raise ValueError("w and v must be at a finite distance, got one that overflows.")
        penalty = self.objective.regularizer_gradient(w) - self.objective.regularizer_gradient(v)
        with self._lock:
            self._spend(asked, 1)
            rows = self._sample(asked)
            if bound < _NEGLIGIBLE:
                return penalty
            total = self.objective.clipped_difference_sum(w, v, rows, bound)
            return self._noisy_mean(total, asked, bound) + penalty

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy norm of the gradient of the regularised objective; possibly negative.

        The noise is one number, however many parameters there are: by the triangle inequality a
        record moves the norm of a sum no farther than it moves the sum.

        Parameters
        ----------
        w, noise_multiplier
            As for :meth:`gradient`.
        query
            Name of a query of kind ``"gradient norm"`` in the plan.

        Raises
        ------
        BudgetExceeded, NonFiniteAnswer
            As for :meth:`gradient`.
        """
        w = self._parameters("w", w)
        asked = self._asked(query, "gradient norm", noise_multiplier)
        size = expected_batch_size(asked, self.plan.n)
        with self._lock:
            self._spend(asked, 1)
            total = self.objective.clipped_sum(w, self._sample(asked), asked.max_norm)
            total = total + size * self.objective.regularizer_gradient(w)
            norm = np.array([np.linalg.norm(total)])
            return float(self._noisy_mean(norm, asked, asked.max_norm)[0])

    def scalar(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy mean of losses, each clipped to ``[-max_norm, max_norm]``.

        Parameters
        ----------
        w, noise_multiplier
            As for :meth:`gradient`.
        query
            Name of a query of kind ``"scalar"`` in the plan.

        Returns
        -------
        float
            (Sum of clipped losses over a fresh sample + Gaussian noise) / expected sample size,
            plus the regulariser.

        Raises
        ------
        BudgetExceeded, NonFiniteAnswer
            As for :meth:`gradient`.
        TypeError
            If the objective gives no losses of single records.
        """
        w = self._parameters("w", w)
        asked = self._asked(query, "scalar", noise_multiplier)
        with self._lock:
            self._spend(asked, 1)
            total = self.objective.clipped_loss_sum(w, self._sample(asked), asked.max_norm)
            mean = self._noisy_mean(np.array([total]), asked, asked.max_norm)
        return float(mean[0]) + self.objective.regularizer(w)

    def descend(
        self,
        w: ArrayLike,
        query: str,
        *,
        learning_rates: ArrayLike,
        radius: float = math.inf,
        average: tuple[Vector, int] | None = None,
    ) -> tuple[Vector, Vector | None]:
        """Take several gradient steps, fused where the objective has a kernel.

        Parameters
        ----------
        w
            Parameters to start from, shape (dimension,), finite.
        query
            Name of a query of kind ``"gradient"`` in the plan, not adaptive.
        learning_rates
            One finite number >= 0 per step, shape (k,), k at least 1.
        radius
            Radius > 0 of the ball around the origin that each iterate is projected onto; infinite
            for none.
        average
            A mean of iterates, shape (dimension,), and how many it is the mean of, to be continued;
            None for no averaging.

        Returns
        -------
        tuple
            The last iterate and the continued mean (None without averaging). They may be infinite
            or NaN when the learning rate is too large: noise and clipped sums are finite, but
            iterates can overflow.

        Raises
        ------
        BudgetExceeded
            If fewer than k answers remain; no record is touched and no step is taken.
        """
        w = self._parameters("w", w)
        rates = _learning_rates(learning_rates)
        check_radius(radius)
        mean, averaged = (None, 0) if average is None else (average[0].copy(), average[1])
        asked = self._asked(query, "gradient", None)
        with self._lock:
            self._spend(asked, len(rates))
            plain = asked.sampler != "fixed-size" and asked.correlation is None
            if self.objective.kernel is None or not plain:
                w = self._step_by_step(w, asked, rates, radius, mean, averaged)
            else:
                descend(
                    self.objective.kernel,
                    w,
                    learning_rates=rates,
                    sampling=self._sampling,
                    noise=self._noise,
                    sampling_probability=asked.sampling_probability or 1.0,
                    max_norm=asked.max_norm,
                    standard_deviation=asked.noise_multiplier * asked.max_norm,
                    expected_batch_size=expected_batch_size(asked, self.plan.n),
                    l2=self.objective.l2,
                    penalized=self.objective.penalized,
                    radius=radius,
                    average=mean,
                    averaged=averaged,
                )
        return w, mean

    def _step_by_step(
        self,
        w: Vector,
        query: Query,
        learning_rates: Vector,
        radius: float,
        mean: Vector | None,
        averaged: int,
    ) -> Vector:
        """Return what the fused loop would, for objectives that have no kernel."""
        for learning_rate in learning_rates:
            w = w - learning_rate * self._noisy_gradient(w, query)
            norm = math.sqrt(w @ w)
            if norm > radius:
                w *= radius / norm
            if mean is not None:
                averaged += 1
                mean += (w - mean) / averaged
        return w

    def _noisy_gradient(self, w: Vector, query: Query) -> Vector:
        if query.correlation is not None:
            # A round is over once it has begun: neither its batch nor its noise is used again.
            self._rows[query.name].begin()
        total = self.objective.clipped_sum(w, self._sample(query), query.max_norm)
        mean = self._noisy_mean(total, query, query.max_norm)
        return mean + self.objective.regularizer_gradient(w)

    def _noisy_mean(self, total: Vector, query: Query, bound: float) -> Vector:
        """Add the noise that goes with a bound on contributions, and divide by a public size."""
        total = np.array(
            total, dtype=np.float64
        )  # noise must not reach an array of the objective's
        if not np.isfinite(total).all():
            raise NonFiniteAnswer(
                f"The sum behind query {query.name!r} is NaN or infinite, and was not released. "
                "That it is so is itself a fact about the records, outside the privacy claim."
            )
        standard_deviation = query.noise_multiplier * bound
        if query.correlation is not None:
            add_correlated(total, standard_deviation, self._rows[query.name].noise)
        else:
            add_gaussian(total, standard_deviation, self._noise)
        return total / expected_batch_size(query, self.plan.n)

    def _sample(self, query: Query) -> Rows:
        n = self.objective.n
        if query.correlation is not None:
            return self._rows[query.name].batch
        if query.composition == "disjoint":
            return self._parts.take(query)
        if query.batch_size is not None:
            rows = self._sampling.choice(n, query.batch_size, replace=False, shuffle=False)
            return rows.astype(np.intp)
        return poisson_sample(n, query.sampling_probability or 1.0, self._sampling)

    def _parameters(self, name: str, w: ArrayLike) -> Vector:
        return parameters(numbers(name, w), self.objective.dimension)

    def _asked(self, name: str, kind: str, noise_multiplier: float | None) -> Query:
        """Return the query as it is asked now, or refuse it."""
        query = self.plan.query(name)
        if query.kind != kind:
            raise ValueError(
                f"query must be of kind {kind!r}, got {name!r} of kind {query.kind!r}."
            )
        if query.composition == "disjoint" and (
            query.sampler != "fixed-size" or self.plan.neighboring_relation == "add-or-remove-one"
        ):
            raise ValueError(
                f"query must be of kind {kind!r} and, with composition 'disjoint', have sampler "
                "'fixed-size' under 'replace-one' or 'replace-special', got "
                f"{name!r} with sampler {query.sampler!r} under "
                f"{self.plan.neighboring_relation!r}."
            )
        if query.budget is not None:
            return self._chosen(query, noise_multiplier)
        if noise_multiplier is not None:
            raise ValueError(
                f"noise_multiplier is for adaptive queries, got {noise_multiplier!r} for {name!r}, "
                "whose noise is planned."
            )
        return query

    def _chosen(self, query: Query, noise_multiplier: float | None) -> Query:
        """Return an adaptive query with the noise that was chosen for it."""
        if query.budget is None:
            raise ValueError(f"query must be adaptive, got {query.name!r}, whose noise is planned.")
        if noise_multiplier is None:
            raise ValueError(f"noise_multiplier must be given for adaptive query {query.name!r}.")
        if not _validate.positive(noise_multiplier=noise_multiplier) >= query.noise_multiplier:
            raise ValueError(
                f"noise_multiplier must be at least the planned {query.noise_multiplier!r} for "
                f"query {query.name!r}, got {noise_multiplier!r}."
            )
        return dataclasses.replace(query, noise_multiplier=float(noise_multiplier))

    def _spend(self, query: Query, count: int) -> None:
        """Write ``count`` answers into the ledger, or refuse them all and change nothing."""
        spent = self.ledger.count(query.name)
        if spent + count > query.count:
            raise BudgetExceeded(
                f"query {query.name!r} may be asked {query.count} times, {spent} are spent, "
                f"{count} more asked for."
            )
        if query.budget is not None:
            share, more = self.ledger.share(query.budget), count * _once(query).share
            if share + more > 1:
                raise BudgetExceeded(
                    f"query {query.name!r} with noise multiplier {query.noise_multiplier!r} would "
                    f"spend {float(more):.6g} of the adaptive budget, {float(share):.6g} of it is "
                    "spent."
                )
        if query.composition == "disjoint":
            self._parts.check(query, count, spent)
        if self._filter is not None:
            self._filter.spend(query.event(self.plan.n), count)
        self.ledger.record(query, count)
        if query.composition == "disjoint":
            self._parts.allot(query, count, spent)


class _Parts:
    """Disjoint parts of the records, handed out in the order of a random permutation.

    The permutation does not depend on what the records hold, so a record that is replaced in place
    stays in the same part.
    """

    def __init__(self, plan: Plan, generator: np.random.Generator) -> None:
        disjoint = [query for query in plan.queries if query.composition == "disjoint"]
        names = dict.fromkeys(_partition(query) for query in disjoint)
        self._n = plan.n
        self._order = {name: generator.permutation(plan.n).astype(np.intp) for name in names}
        self._handed_out = dict.fromkeys(names, 0)
        self._waiting: dict[str, deque[Rows]] = defaultdict(deque)
        self._last: dict[str, Rows] = {}

    def check(self, query: Query, count: int, spent: int) -> None:
        """Refuse ``count`` answers after ``spent`` if the partition has not enough records left."""
        needed = len(_new_parts(query, count, spent)) * (query.batch_size or 0)
        handed_out = self._handed_out[_partition(query)]
        if handed_out + needed > self._n:
            raise BudgetExceeded(
                f"query {query.name!r} needs {needed} records, partition {_partition(query)!r} of "
                f"n={self._n} has {self._n - handed_out} left."
            )

    def allot(self, query: Query, count: int, spent: int) -> None:
        """Set the parts of ``count`` answers aside, to be taken one by one."""
        name, size = _partition(query), query.batch_size or 0
        fresh = set(_new_parts(query, count, spent))
        for answer in range(spent, spent + count):
            if answer in fresh:
                first = self._handed_out[name]
                self._last[query.name] = self._order[name][first : first + size]
                self._handed_out[name] = first + size
            self._waiting[query.name].append(self._last[query.name])

    def take(self, query: Query) -> Rows:
        """Return the records of the next answer."""
        return self._waiting[query.name].popleft()


def _partition(query: Query) -> str:
    return query.partition or query.name


def _new_parts(query: Query, count: int, spent: int) -> range:
    """Which of the answers number ``spent`` to ``spent + count - 1`` begin a new part."""
    first = -(-spent // query.answers_per_part) * query.answers_per_part
    return range(first, spent + count, query.answers_per_part)


def _once(query: Query) -> Query:
    return dataclasses.replace(query, count=1)


def expected_batch_size(query: Query, n: int) -> float:
    """Return how many of ``n`` records one answer is about on average; public, like ``n``."""
    if query.batch_size is not None:
        return float(query.batch_size)
    q, b = query.sampling_probability or 1.0, query.separation or 1
    if query.sampler == "min-separation":
        return q / (1 + (b - 1) * q) * n
    return q * n / b


def add_correlated(out: Vector, standard_deviation: float, row: Vector) -> None:
    """Add a row of C^-1 z, times the standard deviation of z, to ``out``, in place."""
    out += standard_deviation * row


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "seed must be an integer >= 0, a numpy SeedSequence or Generator, or None, "
            f"got {seed!r}."
        ) from error


def _root(generator: np.random.Generator) -> dict[str, Any]:
    """What a generator's next children grow from, as JSON values."""
    sequence: Any = generator.bit_generator.seed_seq
    return {
        "entropy": sequence.entropy,
        "spawn_key": [int(word) for word in sequence.spawn_key],
        "children": sequence.n_children_spawned,
    }


def _restored(root: Mapping[str, Any]) -> np.random.SeedSequence:
    return np.random.SeedSequence(
        root["entropy"],
        spawn_key=tuple(root["spawn_key"]),
        n_children_spawned=root["children"],
    )


def check_radius(radius: float) -> None:
    """Refuse a radius that is not a number > 0 or infinite."""
    if not radius > 0:
        raise ValueError(f"radius must be a number > 0 or infinite, got {radius!r}.")


def _learning_rates(values: ArrayLike) -> Vector:
    rates = np.ascontiguousarray(numbers("learning_rates", values))
    if rates.ndim != 1 or not len(rates) or rates.min() < 0:
        raise ValueError(
            "learning_rates must be one or more numbers >= 0, "
            f"got shape {rates.shape} with smallest {rates.min() if rates.size else None}."
        )
    return rates
