"""Can many steps be taken at once? Loops of answers, fused in compiled code.

Each loop answers what :class:`dpcal.optim.PrivateOracle` would answer step by step, with the same
random numbers, and only faster: no interpreter and no allocation between the steps. A loop writes
the ledger before it reads a record.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, PrivateOracle, replaying
>>> objective = Logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1])
>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.5,
...               max_norm=1.0, noise_multiplier=2.0, count=3)
>>> plan = Plan(optimizer="dpsgd", n=4, queries=(query,), epsilon=9.0, delta=1e-6)
>>> fused, mean = Loops(PrivateOracle(objective, plan, seed=0)).descend(
...     np.zeros(2), "gradient", learning_rates=[0.1, 0.1, 0.1])
>>> oracle, w = PrivateOracle(objective, plan, seed=0), np.zeros(2)
>>> with replaying():
...     for _ in range(3):
...         w = w - 0.1 * oracle.gradient(w, "gradient")
>>> bool((fused == w).all())
True
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import groupby
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.follower import Follower
from dpcal._ext.loops import descend
from dpcal._ext.spider import follow
from dpcal.calibrate.plan import Query
from dpcal.errors import NonFiniteAnswer
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.first_order.estimate import Estimate
from dpcal.optim.objectives.arrays import Vector, numbers, parameters

__all__ = ["FEWEST", "Estimate", "Loops", "PairLoops"]

# The fewest steps that are taken in a fused loop: a call costs as much as three steps of the plain
# loop. The measurements are in docs/internals/fused_loops.md.
FEWEST = 4

TOO_FAST = "The dual iterate became NaN or infinite: the ascent rate is too large."


class Loops:
    """The fused loops over one oracle's answers.

    Parameters
    ----------
    oracle
        Whose objective has a kernel.

    Raises
    ------
    TypeError
        If the oracle is no :class:`dpcal.optim.PrivateOracle`, or its objective has no kernel.
    """

    def __init__(self, oracle: Oracle) -> None:
        if not _compiled(oracle):
            raise TypeError(
                "oracle must be a PrivateOracle about an objective with a kernel, with "
                f"noise='gaussian', got {type(oracle).__name__}."
            )
        # The loops are a part of the boundary: they use the oracle's own admission and streams.
        self._admission, self._streams = oracle._admission, oracle._streams
        self._lock = oracle._lock
        assert oracle.objective.kernel is not None
        self._kernel = oracle.objective.kernel
        self._l2, self._penalized = oracle.objective.l2, oracle.objective.penalized
        self._n = oracle.plan.n

    @staticmethod
    def fit(oracle: object, *names: str) -> bool:
        """Return whether the answers to all of these queries can be taken in fused loops.

        Parameters
        ----------
        oracle
            Any oracle.
        names
            Of queries in its plan.
        """
        if not _compiled(oracle):
            return False
        queries = [oracle.plan.query(name) for name in names]
        plain = all(q.composition != "disjoint" and q.correlation is None for q in queries)
        return plain and all(q.budget is None for q in queries)

    def descend(
        self,
        w: ArrayLike,
        query: str,
        *,
        learning_rates: ArrayLike,
        radius: float = math.inf,
        average: tuple[Vector, int] | None = None,
    ) -> tuple[Vector, Vector | None]:
        """Take several gradient steps.

        Parameters
        ----------
        w
            Parameters to start from, shape (dimension,), finite.
        query
            Name of a query of kind ``"gradient"`` in the plan, not adaptive, on all records or on
            Poisson samples, with independent noise.
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
        radius = _validate.radius(radius=radius)
        mean, averaged = (None, 0) if average is None else (average[0].copy(), average[1])
        asked = self._admission.asked(query, "gradient")
        if asked.sampler not in ("full", "poisson"):
            raise ValueError(
                f"query must be on all records or Poisson samples, got {asked.sampler!r}."
            )
        self._check_plain(asked)
        with self._lock:
            self._admission.spend(asked, len(rates))
            descend(
                self._kernel,
                w,
                learning_rates=rates,
                sampling=self._streams.sampling,
                noise=self._streams.noise,
                sampling_probability=asked.sampling_probability or 1.0,
                max_norm=asked.max_norm,
                standard_deviation=asked.noise_multiplier * asked.max_norm,
                expected_batch_size=asked.expected_batch_size(self._n),
                l2=self._l2,
                penalized=self._penalized,
                radius=radius,
                average=mean,
                averaged=averaged,
            )
        return w, mean

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
        """Take several steps along a gradient estimate that differences keep up to date.

        Step t asks ``refresh`` for the gradient if t is a multiple of ``period``; otherwise it adds
        an answer to ``difference``, between the iterate and the one before, to the estimate. Then
        it moves against the estimate. The ledger holds the answers in this order.

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
        """
        eta = _validate.positive(learning_rate=learning_rate)
        first, last = estimate.step, estimate.step + _validate.count(steps=steps)
        refreshed = range(-(-first // _validate.count(period=period)) * period, last, period)
        asked = {"gradient": self._admission.asked(refresh, "gradient")}
        if difference is not None:
            asked["difference"] = self._admission.asked(difference, "gradient difference")
        elif len(refreshed) < last - first:
            raise ValueError(f"period must be 1 where no difference is asked, got {period!r}.")
        for kind, query in asked.items():
            self._check_plain(query, proportional=kind == "difference")
        w = self._parameters("w", estimate.w)
        v = self._parameters("previous", estimate.previous)
        gradient = self._parameters("gradient", estimate.gradient)
        order = groupby("gradient" if t in refreshed else "difference" for t in range(first, last))
        with self._lock:
            self._admission.spend_in_order([(asked[kind], len(list(run))) for kind, run in order])
            taken = follow(
                self._kernel,
                w,
                v,
                gradient,
                first=first,
                steps=last - first,
                period=period,
                learning_rate=eta,
                sampling=self._streams.sampling,
                noise=self._streams.noise,
                refresh=_described(asked["gradient"], self._n),
                difference=_described(asked.get("difference", asked["gradient"]), self._n),
                l2=self._l2,
                penalized=self._penalized,
            )
        return Estimate(w=w, previous=v, gradient=gradient, step=first + taken)

    def _check_plain(self, query: Query, *, proportional: bool = False) -> None:
        """Refuse a query that the compiled loops do not know."""
        plain = query.budget is None and query.correlation is None
        if query.composition == "disjoint" or not plain or query.proportional != proportional:
            raise ValueError(
                f"query {query.name!r} must be sequential, not adaptive, with independent "
                "noise, and proportional if and only if it asks for differences, got "
                f"{query}."
            )

    def _parameters(self, name: str, w: ArrayLike) -> Vector:
        return parameters(numbers(name, w), self._kernel.dimension)


class PairLoops:
    """The fused inner loop of minimax methods, over one oracle's answers.

    Parameters
    ----------
    oracle
        Whose objective has ``pairs``; see :class:`dpcal.optim.minimax.MinimaxObjective`.
    refresh, difference
        Names of queries of kinds ``"gradient"`` and ``"gradient difference"`` in its plan, not
        adaptive, not disjoint and with independent noise.
    """

    def __init__(self, oracle: PrivateOracle, refresh: str, difference: str) -> None:
        # The loop is a part of the boundary: it uses the oracle's own admission and streams.
        self._admission, self._lock = oracle._admission, oracle._lock
        self._queries = (
            self._admission.asked(refresh, "gradient"),
            self._admission.asked(difference, "gradient difference"),
        )
        of_refresh, of_difference = (_described(query, oracle.plan.n) for query in self._queries)
        objective: Any = oracle.objective
        self._follower = Follower(
            objective.pairs,
            d1=objective.dimensions[0],
            sampling=oracle._streams.sampling,
            noise=oracle._streams.noise,
            refresh=of_refresh,
            difference=of_difference,
            primal_l2=objective.primal_l2,
            dual_l2=objective.dual_l2,
        )

    @classmethod
    def over(cls, oracle: object, refresh: str, difference: str) -> Self | None:
        """Return the loop over an oracle's answers, or None if they cannot be taken in it.

        Parameters
        ----------
        oracle
            Any oracle.
        refresh, difference
            Names of two queries in its plan.
        """
        if not isinstance(oracle, PrivateOracle) or oracle._answers is None:
            return None
        queries = [query for query in oracle.plan.queries if query.name in (refresh, difference)]
        plain = all(
            query.composition != "disjoint" and query.correlation is None and query.budget is None
            for query in queries
        )
        if not plain or len(queries) != 2 or getattr(oracle.objective, "pairs", None) is None:
            return None
        return cls(oracle, refresh, difference)

    def track(
        self,
        at: Vector,
        before: Vector,
        estimate: Vector,
        *,
        refreshed: bool,
        literal: bool,
        shortest: bool,
        inner_steps: int,
        ascent_rate: float,
        project: Callable[[Vector], Vector],
    ) -> tuple[Vector, Vector]:
        """Take an outer step: K estimates of both gradients, and y's steps between them.

        Parameters
        ----------
        at, before
            (x, y) now, and where the last estimate was; shape (dimension,), finite.
        estimate
            Of both gradients at ``before``, shape (dimension,), finite.
        refreshed, literal, shortest
            Whether the step begins afresh; whether a difference follows a refresh at once, as
            printed; whether the estimate with the shortest step of y is kept, not the last one.
        inner_steps, ascent_rate
            K, at least 1, and the step size > 0 of y.
        project
            Function that returns the point of Y nearest to its argument, shape (d2,).

        Returns
        -------
        tuple
            The estimate that is kept, shape (dimension,), and the y that it is about.

        Raises
        ------
        BudgetExceeded
            If fewer answers remain than the step needs; no record is touched, nothing is spent.
        NonFiniteAnswer
            If y would not be finite, or an iterate is too far from the one before; the ledger holds
            the answers that were given until then.
        """
        at, before, estimate = (numbers("w", w).copy() for w in (at, before, estimate))
        refresh, difference = self._queries
        differences = inner_steps - (refreshed and not literal)
        answers = [(refresh, 1)] if refreshed else []
        if differences:
            answers.append((difference, differences))
        with self._lock:
            asking = self._admission.in_turn(answers)
            y = self._follower.track(
                at,
                before,
                estimate,
                refreshed=refreshed,
                literal=literal,
                shortest=shortest,
                inner_steps=inner_steps,
                ascent_rate=ascent_rate,
                project=project,
                asking=asking,
            )
        if y is None:
            raise NonFiniteAnswer(TOO_FAST)
        return estimate, y


def _compiled(oracle: object) -> TypeGuard[PrivateOracle]:
    """Return whether an oracle's answers can be summed, and get their noise, in a compiled loop."""
    if not isinstance(oracle, PrivateOracle) or oracle._answers is None:
        return False
    return oracle.objective.kernel is not None


def _learning_rates(values: ArrayLike) -> Vector:
    rates = np.ascontiguousarray(numbers("learning_rates", values))
    if rates.ndim != 1 or not len(rates) or rates.min() < 0:
        raise ValueError(
            "learning_rates must be one or more numbers >= 0, "
            f"got shape {rates.shape} with smallest {rates.min() if rates.size else None}."
        )
    return rates


def _described(query: Query, n: int) -> Mapping[str, float]:
    """Return what a compiled loop needs to know of a query."""
    return {
        "sampling_probability": query.sampling_probability or 1.0,
        "batch_size": query.batch_size or 0,
        "max_norm": query.max_norm,
        "proportional": query.proportional,
        "cap": math.inf if query.cap is None else query.cap,
        "noise_multiplier": query.noise_multiplier,
        "expected_batch_size": query.expected_batch_size(n),
    }
