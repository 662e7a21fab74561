"""Can many steps be taken at once? Loops of answers, fused in compiled code.

Each loop gives the answers that :class:`dpcal.optim.PrivateOracle` gives step by step, with the
same random numbers, faster: there is no interpreter and no allocation between the steps. A loop
writes the ledger before it reads a record.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic, PrivateOracle, replaying
>>> objective = Logistic(np.array([[0.0], [1.0], [2.0], [3.0]]), [0, 0, 1, 1], classes=[0, 1])
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
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.loops import descend
from dpcal._ext.spider import follow
from dpcal._ext.sums import Sums
from dpcal.calibrate.plan import Query
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.objectives.arrays import Vector, numbers, parameters

__all__ = ["FEWEST", "Estimate", "Loops", "described", "plain"]

# The fewest steps that are taken in a fused loop: a call costs as much as three steps of the plain
# loop. The measurements are in docs/internals/fused_loops.md.
FEWEST = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """State of a walk along gradient estimates; released values only.

    It holds the iterate ``w`` and the ``previous`` one, shape (dimension,), the estimate
    ``gradient`` at ``previous``, which led to ``w``, and the number of steps taken.
    """

    w: Vector
    previous: Vector
    gradient: Vector
    step: int = 0

    @classmethod
    def start(cls, w: Vector) -> Self:
        """Return the state before the first step from ``w``."""
        return cls(w=w, previous=w, gradient=np.zeros_like(w))


class Loops:
    """The fused loops over one oracle's answers.

    A TypeError is raised unless the oracle is a :class:`dpcal.optim.PrivateOracle` about an
    objective with a kernel.
    """

    def __init__(self, oracle: Oracle) -> None:
        if not _compiled(oracle):
            raise TypeError(
                "oracle must be a PrivateOracle about an objective with a kernel, got "
                f"{type(oracle).__name__}."
            )
        # The loops are a part of the boundary: they use the oracle's own admission and streams.
        self._admission, self._streams = oracle._admission, oracle._streams
        self._lock, self._mechanism = oracle._lock, oracle._mechanism
        assert oracle.objective.kernel is not None
        self._kernel = oracle.objective.kernel
        self._l2, self._penalized = oracle.objective.l2, oracle.objective.penalized
        self._n = oracle.plan.n

    @staticmethod
    def fit(oracle: object, *names: str) -> bool:
        """Return whether the answers to all queries of these names can be taken in fused loops."""
        return _compiled(oracle) and all(plain(oracle.plan.query(name)) for name in names)

    def descend(
        self,
        w: ArrayLike,
        query: str,
        *,
        learning_rates: ArrayLike,
        radius: float = math.inf,
        average: tuple[Vector, int] | None = None,
        growth: float = 0.0,
        reach: float = math.inf,
        squares: Vector | None = None,
    ) -> tuple[Vector, Vector | None]:
        """Take several gradient steps; return the last iterate and the continued mean.

        The mean is None without averaging. Both may be infinite or NaN if the learning rate is too
        large: noise and clipped sums are finite, but iterates can overflow. BudgetExceeded is
        raised if fewer answers remain than steps; no record is read and no step is taken.

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
            A mean of iterates, shape (dimension,), and their number, to be continued; None for no
            averaging.
        growth
            0 for equal weights of the mean, 1 for weights that grow with an iterate's number.
        reach, squares
            No rate is above ``reach`` over the root of the sum of squared norms of all gradients so
            far; ``squares``, shape (1,), holds that of those before, and is overwritten.
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
                sums=self._mechanism.compiled_sums(asked.noise_multiplier),
                sampling_probability=asked.sampling_probability or 1.0,
                max_norm=asked.max_norm,
                expected_batch_size=asked.expected_batch_size(self._n),
                l2=self._l2,
                penalized=self._penalized,
                radius=radius,
                average=mean,
                averaged=averaged,
                growth=growth,
                reach=reach,
                squares=squares,
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
        """Take steps along a gradient estimate that differences update; return the last state.

        The estimate of step t is an answer to ``refresh`` if t is a multiple of ``period``;
        otherwise an answer to ``difference``, between the iterate and the one before, is added to
        it. Then the step moves against the estimate. The ledger holds the answers in this order. If
        iterates would overflow, the state is that of the last finite one, with all answers in the
        ledger. BudgetExceeded is raised, before any record is read, if too few answers remain.

        Parameters
        ----------
        estimate
            State of the walk, with finite iterates and estimate.
        refresh, difference
            Names of queries of kinds ``"gradient"`` and ``"gradient difference"`` in the plan, not
            adaptive, not disjoint and with independent noise. ``difference`` may be None if
            ``period`` is 1.
        steps, period
            Number of steps, and steps from one fresh gradient to the next, both at least 1.
        learning_rate
            A number > 0.
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
                refresh=described(asked["gradient"], self._n, self._mechanism),
                difference=described(
                    asked.get("difference", asked["gradient"]), self._n, self._mechanism
                ),
                l2=self._l2,
                penalized=self._penalized,
            )
        return Estimate(w=w, previous=v, gradient=gradient, step=first + taken)

    def _check_plain(self, query: Query, *, proportional: bool = False) -> None:
        """Refuse a query that the compiled loops do not support."""
        if not plain(query) or query.proportional != proportional:
            raise ValueError(
                f"query {query.name!r} must be sequential, not adaptive, with independent "
                "noise, and proportional if and only if it asks for differences, got "
                f"{query}."
            )

    def _parameters(self, name: str, w: ArrayLike) -> Vector:
        return parameters(numbers(name, w), self._kernel.dimension)


def plain(query: Query) -> bool:
    """Return whether a query is sequential, not adaptive, with independent noise and samples."""
    chosen_on_the_way = query.budget is not None
    alone = query.correlation is None and query.sampling.fresh
    return query.composition != "disjoint" and alone and not chosen_on_the_way


def _compiled(oracle: object) -> TypeGuard[PrivateOracle]:
    """Return whether an oracle's answers can be summed, and get their noise, in a compiled loop."""
    if not isinstance(oracle, PrivateOracle) or oracle._answers is None:
        return False
    return getattr(oracle.objective, "kernel", None) is not None


def _learning_rates(values: ArrayLike) -> Vector:
    rates = np.ascontiguousarray(numbers("learning_rates", values))
    if rates.ndim != 1 or not len(rates) or rates.min() < 0:
        raise ValueError(
            "learning_rates must be one or more numbers >= 0, "
            f"got shape {rates.shape} with smallest {rates.min() if rates.size else None}."
        )
    return rates


def described(query: Query, n: int, mechanism: Mechanism) -> tuple[Mapping[str, float], Sums]:
    """Return the numbers of a query that a compiled loop needs, and its sums."""
    numbers = {
        "sampling_probability": query.sampling_probability or 1.0,
        "batch_size": query.batch_size or 0,
        "max_norm": query.max_norm,
        "proportional": query.proportional,
        "cap": math.inf if query.cap is None else query.cap,
        "expected_batch_size": query.expected_batch_size(n),
    }
    return numbers, mechanism.compiled_sums(query.noise_multiplier)
