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
``one_pass``   the mean iterate itself, no sum           C                      2 C
============== ========================================= ====================== ===========

The noise has standard deviation ``noise_multiplier * C`` under every relation; accountants know
that replacing a record moves a sum twice as far. A query with ``correlation`` has a stream of its
own: the noise of its answer number t is ``noise_multiplier * C`` times row t of C^-1 z, and the row
is spent with the answer, also where the answer fails.

Outside the claim: numpy's generators are not cryptographic, so an adversary who can guess the seed
or rebuild a generator's state can subtract the noise; and Gaussian noise in floating point is not
the real-valued Gaussian that theorems speak of (Mironov 2012). A run whose seed is known to others
is reproducible, not private. Two oracles with equal integer seeds, or from copies of one generator,
as in forked processes, add equal noise: the difference of what they release has none, so that no
seed may serve twice, not even a secret one.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict, deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext.gradients import ClippedSum
from dpcal._ext.kl import NO_NORM, NOT_FINITE, adaptive_descent, pulled_descent
from dpcal._ext.loops import descend
from dpcal._ext.noise import add_gaussian, poisson_sample
from dpcal._ext.spider import follow, one_pass
from dpcal.calibrate.plan import Plan, Query, compose
from dpcal.errors import BudgetExceeded, NonFiniteAnswer, UnsupportedEvent
from dpcal.optim.boundary.batches import Rounds
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.objectives.base import Objective, Vector, numbers, parameters
from dpcal.optim.result import check_ledger

if TYPE_CHECKING:
    from dpcal.accountants.adaptive.filters import PrivacyFilter

__all__ = ["Estimate", "PrivateOracle", "Seed"]

Rows = NDArray[np.intp]

# Below this a bound is taken for zero: noise in proportion to it could itself round to zero.
_NEGLIGIBLE = 1e-290

Seed = int | np.random.SeedSequence | np.random.Generator | None


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretch:
    """Several steps of adaptive descent.

    Parameters
    ----------
    w
        Where they led, shape (dimension,).
    moves
        How many there were.
    ended
        Why they ended: one of the constants of ``dpcal._ext.kl``.
    smallest, best
        The smallest noisy norm that was released, infinite if none was, and where; shape
        (dimension,).
    """

    w: Vector
    moves: int
    ended: int
    smallest: float
    best: Vector


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """What a walk along gradient estimates carries from step to step; released values only.

    Parameters
    ----------
    w
        The iterate, shape (dimension,).
    previous
        The iterate before it.
    gradient
        The estimate of the gradient at ``previous``, by which ``w`` was reached.
    step
        Steps taken, at least 0.
    """

    w: Vector
    previous: Vector
    gradient: Vector
    step: int = 0

    @classmethod
    def start(cls, w: Vector) -> Estimate:
        """Return the state before the first step from ``w``."""
        return cls(w=w, previous=w, gradient=np.zeros_like(w))


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
        correlated = [query for query in plan.queries if query.correlation is not None]
        # Batches from a stream of its own: what others ask must not change them, nor a resumption.
        streams = self._sampling.spawn(len(correlated))
        self._rows = {
            query.name: Rounds(
                query, plan.n, objective.dimension, sampling=stream, noise=self._noise
            )
            for query, stream in zip(correlated, streams, strict=True)
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

        Notes
        -----
        Go on from a state once. Two oracles from one state add equal noise: where they are asked at
        different parameters, the difference of their answers has none.

        Raises
        ------
        ValueError
            If the plan has queries with independent noise: their generators keep no count.
        LedgerMismatch
            If the state's ledger is not within the plan.
        """
        oracle = cls(objective, plan, seed=_restored(state["seed"]))
        if len(oracle._rows) != len(plan.queries):
            raise ValueError("plan must have correlated noise in all of its queries to be resumed.")
        ledger = Ledger.from_json(state["ledger"])
        check_ledger(ledger, plan, exact=False)
        oracle.ledger = ledger
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

    @property
    def compiled(self) -> bool:
        """Whether fused loops can run: the objective has a kernel, and no filter must be asked."""
        return self.objective.kernel is not None and self._filter is None

    def adapt(
        self,
        w: ArrayLike,
        norm: str,
        gradient: str,
        *,
        steps: int,
        norm_multiplier: float,
        unit: float,
        learning_rate: float,
    ) -> Stretch:
        """Take several steps of adaptive descent in a fused loop; see ``compiled``.

        Each step is what :meth:`norm`, with ``norm_multiplier``, and :meth:`gradient`, with a
        multiplier of ``unit`` times the noisy norm, would answer, as long as the norm is positive
        and the budget pays for the next release, which is checked before it is made. All answers
        leave together, after their entries are in the ledger.

        Parameters
        ----------
        w
            Parameters to start from, shape (dimension,), finite.
        norm, gradient
            Names of adaptive queries on all records, of kinds ``"gradient norm"`` and
            ``"gradient"``, with one ``max_norm``.
        steps
            At least 1.
        norm_multiplier, unit, learning_rate
            Positive.
        """
        w = self._parameters("w", w)
        asked = self._asked(norm, "gradient norm", norm_multiplier)
        query = self._adaptive(gradient, asked)
        kernel = self._compiled()
        best, multipliers = w.copy(), np.empty(steps)
        with self._lock:
            possible = min(_validate.count(steps=steps), self.remaining(norm))
            if possible < 1:
                return Stretch(w=w, moves=0, ended=NO_NORM, smallest=math.inf, best=best)
            budget = query.budget or 0.0
            share = self.ledger.share(budget)
            norms, moves, smallest, ended = adaptive_descent(
                kernel,
                w,
                steps=min(possible, max(1, self.remaining(gradient))),
                noise=self._noise,
                max_norm=query.max_norm,
                l2=self.objective.l2,
                penalized=self.objective.penalized,
                learning_rate=_validate.positive(learning_rate=learning_rate),
                norm_multiplier=asked.noise_multiplier,
                unit=_validate.positive(unit=unit),
                least=query.noise_multiplier if self.remaining(gradient) else math.inf,
                budget=budget,
                spent=math.nextafter(float(share), math.inf) if share else 0.0,
                norm_share=asked.share_of_one,
                smallest=math.inf,
                best=best,
                multipliers=multipliers,
            )
            if norms:
                self.ledger.record(asked, norms)
            self.ledger.record_chosen(query, multipliers[:moves].tolist())
        if ended == NOT_FINITE:
            raise NonFiniteAnswer(
                f"The norm behind query {norm!r} is infinite, and was not released. That it is so "
                "is itself a fact about the records, outside the privacy claim."
            )
        return Stretch(w=w, moves=moves, ended=ended, smallest=smallest, best=best)

    def _compiled(self) -> ClippedSum:
        """Return the kernel that fused loops run on."""
        if self.objective.kernel is None or not self.compiled:
            raise ValueError("fused loops need an objective with a kernel, and no filter.")
        return self.objective.kernel

    def _adaptive(self, name: str, norm: Query) -> Query:
        """Return the query that goes with a norm in a fused loop."""
        query = self.plan.query(name)
        pair = (norm.budget, norm.max_norm, "gradient")
        if norm.budget is None or (query.budget, query.max_norm, query.kind) != pair:
            raise ValueError(
                f"queries {norm.name!r} and {name!r} must be adaptive with one budget and one "
                "max_norm, the second of kind 'gradient'."
            )
        return query

    def descend_pulled(self, center: ArrayLike, query: str, *, weight: float, steps: int) -> Vector:
        """Minimise F + weight ||w - center||^2 in a ball, in a fused loop; see ``compiled``.

        Parameters
        ----------
        center
            Start, and centre of the ball of radius ``max_norm / (2 weight)``; shape (dimension,),
            finite.
        query
            Name of a query of kind ``"gradient"`` in the plan, on all records, not adaptive, with
            independent noise.
        weight
            A number > 0.
        steps
            At least 1; step t is ``2 / (weight (t + 1))`` long.

        Returns
        -------
        numpy.ndarray
            The mean of iterates with weights t, the start counting as the first.

        Raises
        ------
        BudgetExceeded
            If fewer than ``steps`` answers remain; no record is touched and no step is taken.
        """
        center = self._parameters("center", center)
        asked = self._asked(query, "gradient", None)
        if asked.sampler != "full" or asked.correlation is not None:
            raise ValueError(
                "query must be about all records, with independent noise, got sampler "
                f"{asked.sampler!r} and correlation {asked.correlation!r}."
            )
        mean, kernel = np.empty_like(center), self._compiled()
        with self._lock:
            self._spend(asked, _validate.count(steps=steps))
            pulled_descent(
                kernel,
                center,
                mean,
                steps=steps,
                noise=self._noise,
                max_norm=asked.max_norm,
                l2=self.objective.l2,
                penalized=self.objective.penalized,
                standard_deviation=asked.noise_multiplier * asked.max_norm,
                weight=_validate.positive(weight=weight),
            )
        return mean

    def follow(
        self,
        estimate: Estimate,
        refresh: str,
        difference: str | None,
        *,
        steps: int,
        period: int,
        learning_rate: float,
    ) -> Estimate:
        """Take several steps along a gradient estimate that differences keep up to date, fused.

        Step t asks ``refresh`` for the gradient if t is a multiple of ``period``; otherwise it adds
        an answer to ``difference``, between the iterate and the one before, to the estimate. Then
        it moves against the estimate. Answers are what :meth:`gradient` and :meth:`difference`
        would give, one by one, and the ledger holds them in that order.

        Parameters
        ----------
        estimate
            Where the walk is: iterates and estimate of shape (dimension,), finite.
        refresh, difference
            Names of queries of kinds ``"gradient"`` and ``"gradient difference"`` in the plan, not
            adaptive, not disjoint and with independent noise. ``difference`` may be None if
            ``period`` is 1.
        steps
            How many steps to take, at least 1.
        period
            At least 1.
        learning_rate
            A number > 0.

        Returns
        -------
        Estimate
            After ``steps`` steps, or fewer if iterates would overflow: then at the last finite one,
            with all answers in the ledger.

        Raises
        ------
        BudgetExceeded
            If fewer answers remain than the steps need; no record is touched, nothing is spent.
        TypeError
            If the objective has no kernel.
        """
        kernel = self.objective.kernel
        if kernel is None:
            raise TypeError(
                f"objective must have a kernel, got {type(self.objective).__name__} without one."
            )
        eta = _validate.positive(learning_rate=learning_rate)
        first, last = estimate.step, estimate.step + _validate.count(steps=steps)
        refreshed = range(-(-first // _validate.count(period=period)) * period, last, period)
        asked = {"gradient": self._asked(refresh, "gradient", None)}
        if difference is not None:
            asked["difference"] = self._asked(difference, "gradient difference", None)
        elif len(refreshed) < last - first:
            raise ValueError(f"period must be 1 where no difference is asked, got {period!r}.")
        for kind, query in asked.items():
            proportional = query.proportional == (kind == "difference")
            plain = query.budget is None and query.correlation is None
            if query.composition == "disjoint" or not plain or not proportional:
                raise ValueError(
                    f"query {query.name!r} must be sequential, not adaptive, with independent "
                    "noise, and proportional if and only if it asks for differences, got "
                    f"{query}."
                )
        w, v, gradient = (
            self._parameters(name, x)
            for name, x in (
                ("w", estimate.w),
                ("previous", estimate.previous),
                ("gradient", estimate.gradient),
            )
        )
        order = groupby("gradient" if t in refreshed else "difference" for t in range(first, last))
        with self._lock:
            self._spend_in_order([(asked[kind], len(list(run))) for kind, run in order])
            taken = follow(
                kernel,
                w,
                v,
                gradient,
                first=first,
                steps=last - first,
                period=period,
                learning_rate=eta,
                sampling=self._sampling,
                noise=self._noise,
                refresh=self._described(asked["gradient"]),
                difference=self._described(asked.get("difference", asked["gradient"])),
                l2=self.objective.l2,
                penalized=self.objective.penalized,
            )
        return Estimate(w=w, previous=v, gradient=gradient, step=first + taken)

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
        the regulariser's gradient, by the learning rate eta, and projects onto a ball. Where every
        step is a contraction, replacing a record moves all later iterates, and their mean, by at
        most 2 eta times the clipping bound. That is a theorem for losses that are convex and
        L-smooth with eta <= 2 / L (Hardt, Recht and Singer 2016, Lemma 3.7; Feldman, Koren and
        Talwar 2020), also after clipping where clipped gradients are those of such a loss. A
        record that is less smooth has its loss scaled down until the condition holds, so nothing
        rests on constants that are only believed.

        Parameters
        ----------
        w
            Where to start, shape (dimension,), finite. It must be a function of what was released.
        query
            Name of a query of kind ``"one pass"`` in the plan; gradients are clipped to its
            ``max_norm`` over the learning rate.
        learning_rate
            eta > 0.
        strength, center
            Of a further regulariser ``strength / 2 ||w - center||^2``; the origin when omitted.
        radius
            Radius > 0 of the ball around the origin that each iterate is projected onto; infinite
            for none.

        Returns
        -------
        numpy.ndarray
            The mean of the iterates at which gradients were asked for, plus Gaussian noise; shape
            (dimension,).

        Raises
        ------
        UnsupportedEvent
            If no theorem says that clipped steps are contractions: for losses that are not convex,
            not of a linear model, or a step size above 2 over the regulariser's smoothness. No
            record is touched.
        BudgetExceeded
            As for :meth:`gradient`.
        """
        w = self._parameters("w", w)
        eta = _validate.positive(learning_rate=learning_rate)
        objective = self.objective
        pull = np.full(objective.dimension, _validate.non_negative(strength=strength))
        target = (
            np.zeros_like(pull) if center is None else self._parameters("center", center) * pull
        )
        pull[: objective.penalized] += objective.l2
        np.divide(target, pull, out=target, where=pull > 0)
        check_radius(radius)
        asked = self._asked(query, "one pass", None)
        room = 2 / eta * (1 - 2.0**-40) - float(pull.max())
        if objective.smoothness_when_convex(np.empty(0, dtype=np.intp)) is None or not room > 0:
            raise UnsupportedEvent(
                "one pass needs a convex loss of a linear model, and a learning rate below 2 over "
                "the regulariser's smoothness: then its steps are contractions. Got "
                f"{type(objective).__name__} and learning_rate={eta!r}, with a regulariser of "
                f"smoothness {pull.max():.6g}."
            )
        with self._lock:
            self._spend(asked, 1)
            rows = self._sample(asked)
            smoothness = np.asarray(objective.smoothness_when_convex(rows))
            scales = np.divide(
                room, smoothness, out=np.ones_like(smoothness), where=smoothness > room
            )
            pass_over = one_pass if objective.kernel is not None else _one_pass_interpreted
            mean = pass_over(
                objective.kernel or objective,  # type: ignore[arg-type]
                w,
                rows,
                scales,
                pull,
                target,
                learning_rate=eta,
                max_norm=asked.max_norm / eta,
                radius=radius,
            )
            if not np.isfinite(mean).all():
                raise NonFiniteAnswer(
                    f"The mean iterate behind query {query!r} is NaN or infinite, and was not "
                    "released."
                )
            add_gaussian(mean, asked.noise_multiplier * asked.max_norm, self._noise)
        return mean

    def _described(self, query: Query) -> dict[str, float]:
        """What the fused loop needs to know of a query."""
        return {
            "sampling_probability": query.sampling_probability or 1.0,
            "batch_size": query.batch_size or 0,
            "max_norm": query.max_norm,
            "cap": math.inf if query.cap is None else query.cap,
            "noise_multiplier": query.noise_multiplier,
            "expected_batch_size": expected_batch_size(query, self.plan.n),
        }

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
        spent = self._check_count(query, count)
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
            self._pay(self._filter, query, count)
        self.ledger.record(query, count)
        if query.composition == "disjoint":
            self._parts.allot(query, count, spent)

    def _pay(self, budget: PrivacyFilter, query: Query, count: int) -> None:
        if query.composition != "disjoint":
            budget.spend(query.event(self.plan.n), count)
            return
        # Of parts that share no record the worst one counts; a filter forgets them between calls.
        parts = [(query, count)]
        budget.spend(compose(parts, self.plan.n, self.plan.neighboring_relation))

    def _spend_in_order(self, answers: list[tuple[Query, int]]) -> None:
        """Write answers to several sequential queries, or refuse them all and change nothing."""
        totals: dict[Query, int] = {}
        for query, count in answers:
            totals[query] = totals.get(query, 0) + count
        for query, count in totals.items():
            self._check_count(query, count)
        if self._filter is not None:
            plan = self.plan
            self._filter.spend(compose(totals.items(), plan.n, plan.neighboring_relation))
        for query, count in answers:
            self.ledger.record(query, count)

    def _check_count(self, query: Query, count: int) -> int:
        """Return how often the query was answered, if its plan allows ``count`` more answers."""
        spent = self.ledger.count(query.name)
        if spent + count > query.count:
            raise BudgetExceeded(
                f"query {query.name!r} may be asked {query.count} times, {spent} are spent, "
                f"{count} more asked for."
            )
        return spent


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


def _one_pass_interpreted(
    objective: Objective,
    w: Vector,
    rows: Rows,
    scales: Vector,
    pull: Vector,
    target: Vector,
    *,
    learning_rate: float,
    max_norm: float,
    radius: float,
) -> Vector:
    """Do what the fused loop does, for objectives that have no kernel."""
    mean = np.zeros_like(w)
    for i, row in enumerate(rows):
        mean += (w - mean) / (i + 1)
        gradient = objective.clipped_sum(w, np.array([row], dtype=np.intp), max_norm)
        w = w - learning_rate * (scales[i] * gradient + pull * (w - target))
        norm = math.sqrt(w @ w)
        if norm > radius:
            w *= radius / norm
    return mean


def _once(query: Query) -> Query:
    return dataclasses.replace(query, count=1)


def expected_batch_size(query: Query, n: int) -> float:
    """Return how many of ``n`` records one answer is about on average; public, like ``n``."""
    return query.expected_batch_size(n)


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
