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
>>> bool(result.epsilon(1e-6) <= 1.0), result.complete
(True, True)
"""

from __future__ import annotations

import itertools

from dpcal import _validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.plans.recursive_regularization import SUBSOLVERS
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.boundary.store import StoredOracle
from dpcal.optim.driver import Callback, Run, planned
from dpcal.optim.objectives.arrays import Vector, l2_norm
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

__all__ = ["recursive_regularization"]


@keeps_ledger
def recursive_regularization(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    noise: str = "gaussian",
) -> Result:
    """Find a point of small population gradient of a convex loss, spending a plan.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records; convex, for the rate. Or an oracle
        about it; phases of stochastic gradient descent need a :class:`dpcal.optim.PrivateOracle`.
    plan
        A plan for ``"recursive_regularization"``, as
        :func:`dpcal.calibrate.plans.recursive_regularization` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    callback
        Called with a :class:`dpcal.optim.Progress` every ``callback_every`` noisy answers and
        after the last; a true answer stops the run, which then costs all that was planned.
    callback_every
        A whole number >= 1; a hundredth of the run when omitted.
    store
        Path of a file that holds the run, so that it can be started again after its process has
        ended: see :mod:`dpcal.optim.boundary.store`. It is a secret, and steps are not fused then.
    store_every
        Steps of a transaction of the file, at least 1. More are faster; a run that is killed makes
        as many again, of which nothing had left it.
    noise
        ``"gaussian"``, in floating point; or ``"discrete"``: exact sums, and discrete Gaussian
        noise from cryptographic bits, at the same price and slower.

    Returns
    -------
    Result
        Its ``w`` is the last round's center; of a run that was stopped, the last iterate. In
        between, the trace is of inner iterates.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective, or an argument is out of range.
    UnsupportedEvent
        If the plan's subsolver is ``"phased_sgd"`` and no theorem covers the objective: it must be
        a linear model with a convex loss.

    References
    ----------
    Arora, Bassily, Gonzalez, Guzman, Menart and Ullah 2022, Algorithm 3 (with T rounds on T blocks,
    and mu_t for lambda_t in selectors); Feldman, Koren and Talwar 2020, Algorithm 2 (phases).
    """
    subsolver = _validate.choice(SUBSOLVERS, subsolver=plan.parameters.get("subsolver"))
    kind = "gradient" if subsolver == "noisy_gd" else "one pass"
    queries = planned(plan, "recursive_regularization", *[kind] * len(plan.queries))
    rounds = [list(group) for _, group in itertools.groupby(queries, key=_round_of)]
    lam = _validate.positive(regularization=plan.parameters.get("regularization"))
    oracle = oracle_of(objective, plan, seed, store, noise, store_every)
    run = Run(
        oracle,
        steps=sum(query.count for query in queries),
        callback=callback,
        callback_every=callback_every,
    )
    solve = _noisy_gd if subsolver == "noisy_gd" else _phased_sgd
    center = weighted = run.w
    weight = 0.0
    for t, asked in enumerate(rounds, start=1):
        # The sum of lam_k ||w - c_k||^2 over k < t is mu_t ||w - weighted mean||^2, but for a
        # constant.
        share = 2 ** (t - 1) * lam
        weight += share
        weighted = weighted + (share / weight) * (center - weighted)
        eta = _validate.positive(learning_rate=plan.parameters.get(f"learning_rate {t}"))
        radius = _validate.positive(radius=plan.parameters.get(f"radius {t}"))
        center = solve(run, asked, center, (weight, weighted), eta, radius)
        if not run.going:
            break
    return run.result(center)


def _noisy_gd(
    run: Run,
    asked: list[Query],
    center: Vector,
    pull: tuple[float, Vector],
    learning_rate: float,
    radius: float,
) -> Vector:
    """Projected noisy descent; a mean of what steps k = 1, ..., K lead to, weights (1 - eta mu)^-k.

    With step sizes of at most 1 / L1, the excess risk of where a step leads to is at most
    what the step takes off the squared distance to the minimiser, over 2 eta, plus eta times the
    variance of the noise. So this mean has the usual bound, with every answer in it.
    """
    (query,) = asked
    mu, toward = pull
    decay, w, mean, total = 1 - learning_rate * mu, center, center, 0.0
    for k in range(query.count):
        if not run.going:
            return run.w
        with run.answering():
            gradient = run.oracle.gradient(w, query.name) + mu * (w - toward)
            w = _projected(w - learning_rate * gradient, radius)
            total = decay * total + 1
            mean = mean + (w - mean) / total
            run.move(w if k < query.count - 1 else mean)
    return mean


def _phased_sgd(
    run: Run,
    asked: list[Query],
    center: Vector,
    pull: tuple[float, Vector],
    learning_rate: float,
    radius: float,
) -> Vector:
    """One pass in phases, each of half the records and a quarter of the step size."""
    mu, toward = pull
    if not isinstance(run.oracle, PrivateOracle | StoredOracle):
        raise TypeError(
            "phased_sgd needs an objective, or a PrivateOracle about one, got "
            f"{type(run.oracle).__name__}."
        )
    for i, query in enumerate(asked, start=1):
        if not run.going:
            return run.w
        with run.answering():
            center = run.oracle.one_pass(
                center,
                query.name,
                learning_rate=learning_rate / 4**i,
                strength=mu,
                center=toward,
                radius=radius,
            )
            run.move(center)
    return center


def _projected(w: Vector, radius: float) -> Vector:
    norm = l2_norm(w)
    return w * (radius / norm) if norm > radius else w


def _round_of(query: Query) -> str:
    return query.name.split(" phase ")[0]
