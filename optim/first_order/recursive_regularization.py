"""Recursive regularization (Arora et al. 2022, Algorithm 3): small gradients of convex risk.

Each round minimises the loss plus quadratics around the centers of all rounds before, on a block of
records of its own, by noisy gradient descent or by phased stochastic gradient descent.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Huber, recursive_regularization
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((20_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(20_000)
>>> objective = Huber(X, y, fit_intercept=False)
>>> constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0)
>>> plan = calibrate.recursive_regularization(
...     constants, n=20_000, dimension=3, epsilon=1.0, delta=1e-6, distance=3.0)
>>> result = recursive_regularization(objective, plan, seed=0)
>>> before, after = (np.linalg.norm(objective.gradient(w)) for w in (np.zeros(3), result.w))
>>> bool(after < before / 5)
True
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from dpcal._internal import validate
from dpcal.calibrate.plan import Query
from dpcal.calibrate.plans.recursive_regularization import SUBSOLVERS
from dpcal.optim.boundary.oracle import Oracle, PrivateOracle
from dpcal.optim.objectives.arrays import Vector, l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, algorithm, planned, read


@Optimizer(
    summary="rounds with ever stronger regularisers, each on records of its own",
    problem="smooth and convex; population risk",
    needs=("lipschitz or max_norm", "smoothness", "distance"),
    rate="n^(-1/2) + sqrt(d) / (n epsilon)",
    measure="gradient norm",
    theorem="Arora et al. 2022, Theorem 5 (corrected)",
    relations=("replace-one", "replace-special"),
    options=("max_norm", "distance", "subsolver"),
    beaten="dpsgd",
).describes
@algorithm(initial=False)
def recursive_regularization(objective: Problem, plan: Plan, begin: Begin) -> None:
    """Find a point of small population gradient of a convex loss, spending a plan.

    The rate needs a convex objective. Phases of stochastic gradient descent need an objective, or a
    :class:`dpcal.optim.PrivateOracle` about one. The steps of callbacks are noisy answers.

    Returns
    -------
    Result
        Its ``w`` is the last round's center, or the last iterate of a stopped run. In between, the
        trace is of inner iterates.

    Raises
    ------
    UnsupportedEvent
        If the plan's subsolver is ``"phased_sgd"`` and no theorem covers the objective: it must be
        a linear model with a convex loss.

    References
    ----------
    Arora et al. 2022, Algorithm 3 (with T rounds on T blocks, and mu_t for lambda_t in selectors);
    Feldman, Koren and Talwar 2020, Algorithm 2 (phases).
    """
    subsolver = validate.choice(SUBSOLVERS, subsolver=plan.parameters.get("subsolver"))
    solve, kind = (_noisy_gd, "gradient") if subsolver == "noisy_gd" else (_phased_sgd, "one pass")
    queries = planned(plan, *[kind] * len(plan.queries))
    (regularization,) = read(plan, validate.positive, "regularization")
    rounds = [list(block) for _, block in itertools.groupby(queries, key=_round_of)]
    rates = [
        read(plan, validate.positive, f"learning_rate {t}", f"radius {t}")
        for t in range(1, len(rounds) + 1)
    ]
    run = begin()
    center = weighted = run.w
    weight = 0.0
    for t, (block, (eta, radius)) in enumerate(zip(rounds, rates, strict=True)):
        # The sum of 2^k lam ||w - c_k||^2 over k <= t is weight ||w - weighted||^2 plus a constant.
        share = 2**t * regularization
        weight += share
        weighted = weighted + (share / weight) * (center - weighted)
        for w in solve(run.oracle, block, center, (weight, weighted), eta, radius):
            run.move(w)
            if not run.going:
                return
        center = run.w


def _noisy_gd(
    oracle: Oracle,
    queries: list[Query],
    w: Vector,
    pull: tuple[float, Vector],
    learning_rate: float,
    radius: float,
) -> Iterator[Vector]:
    """Yield iterates of projected noisy descent, and at the end their mean.

    The weights of steps k = 1 to K are (1 - eta mu)^-k. With step sizes of at most 1 / L1, the
    excess risk after a step is at most the decrease of the squared distance to the minimiser, over
    2 eta, plus eta times the variance of the noise. So this mean has the usual bound, with every
    answer in it.
    """
    (query,) = queries
    mu, toward = pull
    decay, mean, total = 1 - learning_rate * mu, w, 0.0
    for left in reversed(range(query.count)):
        gradient = oracle.gradient(w, query.name) + mu * (w - toward)
        w = _projected(w - learning_rate * gradient, radius)
        total = decay * total + 1
        mean = mean + (w - mean) / total
        yield w if left else mean


def _phased_sgd(
    oracle: Oracle,
    queries: list[Query],
    w: Vector,
    pull: tuple[float, Vector],
    learning_rate: float,
    radius: float,
) -> Iterator[Vector]:
    """Yield the ends of phases of one pass; each has half the records and a quarter of the step."""
    mu, toward = pull
    if not isinstance(oracle, PrivateOracle):
        raise TypeError(
            "phased_sgd needs an objective, or a PrivateOracle about one, got "
            f"{type(oracle).__name__}."
        )
    for i, query in enumerate(queries, start=1):
        w = oracle.one_pass(
            w,
            query.name,
            learning_rate=learning_rate / 4**i,
            strength=mu,
            center=toward,
            radius=radius,
        )
        yield w


def _projected(w: Vector, radius: float) -> Vector:
    norm = l2_norm(w)
    return w * (radius / norm) if norm > radius else w


def _round_of(query: Query) -> str:
    return query.name.split(" phase ")[0]
