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

Outside the claim: numpy's generators are not cryptographic, so an adversary who can guess the seed
or rebuild a generator's state can subtract the noise; and Gaussian noise in floating point is not
the real-valued Gaussian that theorems speak of (Mironov 2012). A run whose seed is known to others
is reproducible, not private.
"""

from __future__ import annotations

import math
from threading import Lock

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext.loops import descend
from dpcal._ext.noise import add_gaussian, poisson_sample
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import BudgetExceeded
from dpcal.optim.ledger import Ledger
from dpcal.optim.objectives import Objective, Vector, numbers, parameters

__all__ = ["PrivateOracle", "Seed"]

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
        spawned), or None for fresh entropy from the operating system. Sampling and noise have
        independent streams.

    Attributes
    ----------
    objective, plan
        As given.
    ledger
        What was released so far. An entry is written before its answer leaves, and before any
        record is read.

    Raises
    ------
    ValueError
        If the plan is for another number of records than the objective has.
    """

    def __init__(self, objective: Objective, plan: Plan, *, seed: Seed = None) -> None:
        if plan.n != objective.n:
            raise ValueError(
                f"plan must be for the objective's n={objective.n} records, got one for n={plan.n}."
            )
        self.objective = objective
        self.plan = plan
        self.ledger = Ledger(plan.n, plan.neighboring_relation)
        self._sampling, self._noise = _streams(seed)
        self._lock = Lock()

    def remaining(self, query: str) -> int:
        """Return how often the query may still be asked."""
        return self.plan.query(query).count - self.ledger.count(query)

    def gradient(self, w: ArrayLike, query: str) -> Vector:
        """Return a noisy gradient of the regularised objective.

        Parameters
        ----------
        w
            Parameters, shape (dimension,), finite.
        query
            Name of a query of kind ``"gradient"`` in the plan.

        Returns
        -------
        numpy.ndarray
            (Sum of clipped gradients over a fresh sample + Gaussian noise) / expected sample size,
            plus the regulariser's gradient; shape (dimension,). The expected size is q n, and n is
            public.

        Raises
        ------
        BudgetExceeded
            If the plan's count is used up; no record is touched.
        """
        w = parameters(numbers("w", w), self.objective.dimension)
        asked = self._gradient_query(query)
        with self._lock:
            self._spend(asked, 1)
            return self._noisy_gradient(w, asked)

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
            Name of a query of kind ``"gradient"`` in the plan.
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
        w = parameters(numbers("w", w), self.objective.dimension)
        rates = _learning_rates(learning_rates)
        check_radius(radius)
        mean, averaged = (None, 0) if average is None else (average[0].copy(), average[1])
        asked = self._gradient_query(query)
        with self._lock:
            self._spend(asked, len(rates))
            if self.objective.kernel is None or asked.sampler == "fixed-size":
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
        total = self.objective.clipped_sum(w, self._sample(query), query.max_norm)
        add_gaussian(total, query.noise_multiplier * query.max_norm, self._noise)
        mean = total / expected_batch_size(query, self.plan.n)
        return mean + self.objective.regularizer_gradient(w)

    def _sample(self, query: Query) -> NDArray[np.intp]:
        n = self.objective.n
        if query.batch_size is not None:
            rows = self._sampling.choice(n, query.batch_size, replace=False, shuffle=False)
            return rows.astype(np.intp)
        return poisson_sample(n, query.sampling_probability or 1.0, self._sampling)

    def _gradient_query(self, name: str) -> Query:
        query = self.plan.query(name)
        if query.kind != "gradient" or query.composition != "sequential":
            raise ValueError(
                "query must be of kind 'gradient' with composition 'sequential', got "
                f"{name!r} of kind {query.kind!r} with composition {query.composition!r}."
            )
        return query

    def _spend(self, query: Query, count: int) -> None:
        """Write ``count`` answers into the ledger, or refuse them all."""
        spent = self.ledger.count(query.name)
        if spent + count > query.count:
            raise BudgetExceeded(
                f"query {query.name!r} may be asked {query.count} times, {spent} are spent, "
                f"{count} more asked for."
            )
        self.ledger.record(query, count)


def expected_batch_size(query: Query, n: int) -> float:
    """Return how many of ``n`` records one answer samples on average; public, like ``n``."""
    if query.batch_size is not None:
        return float(query.batch_size)
    return (query.sampling_probability or 1.0) * n


def _streams(seed: Seed) -> list[np.random.Generator]:
    """Return independent generators for sampling and for noise."""
    try:
        return np.random.default_rng(seed).spawn(2)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "seed must be an integer >= 0, a numpy SeedSequence or Generator, or None, "
            f"got {seed!r}."
        ) from error


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
