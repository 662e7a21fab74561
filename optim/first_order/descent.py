"""How do noisy gradients become iterates? One loop of projected descent, for several optimizers.

Noisy gradient descent, DP-SGD and DP-SGD with correlated noise take the same steps: a noisy
gradient, a move against it, a projection onto a ball. Samples and noise are the query's.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import PrivateOracle, Squared
>>> plan = calibrate.dpsgd(n=2, batch_size=2, steps=3, epsilon=9.0, delta=1e-2)
>>> run = Run(PrivateOracle(Squared([[0.0], [1.0]], [0.0, 1.0]), plan, seed=0), steps=3)
>>> last = projected_descent(run, "gradient", np.full(3, 0.1))
>>> bool((last == run.w).all()), run.step
(True, 3)
"""

from __future__ import annotations

import math

from dpcal.optim.driver import Run, walk_of
from dpcal.optim.objectives.arrays import Vector

__all__ = ["OUTPUTS", "averaged_descent", "projected_descent"]

OUTPUTS = ("last", "uniform", "tail", "linear")


def projected_descent(
    run: Run,
    query: str,
    learning_rates: Vector,
    *,
    until: int | None = None,
    averaged_from: int | None = None,
    growth: float = 0.0,
    reach: float = math.inf,
    tell: bool = False,
) -> Vector:
    """Take steps ``w <- P(w - eta_t g_t)`` of a run, where g_t answers ``query`` at w.

    The learning rates eta_t are those of every step of the run, shape (steps,). The run goes on
    from its step to the step ``until``, its last when omitted. The last iterate is returned or,
    with ``averaged_from``, the mean of the iterates that the steps from that one on lead to, in
    which iterate t has weight t if ``growth`` is 1.

    No rate is above ``reach / sqrt(|g_1|^2 + ... + |g_t|^2)``. With ``tell`` the run hears answers
    that tell whether it ended below its start.
    """
    steps = len(learning_rates)
    start = steps if averaged_from is None else averaged_from
    walk = walk_of(
        run.oracle,
        run.w,
        query,
        rates=learning_rates,
        step=run.step,
        averaged_from=start,
        growth=growth,
        reach=reach,
        **run.ball,
    )
    asked = run.oracle.plan.query(query)
    tell = tell and asked.sampler in ("full", "poisson") and asked.correlation is None
    until = steps if until is None else until
    while run.going and run.step < until:
        hears = tell and not run.until_telling
        moves = min(run.until_noted, until - run.step)
        if tell:
            moves = min(moves, max(1, run.until_telling))
        run.follow(walk, moves, heard=asked if hears else None)
    return walk.mean if run.step > start else run.w


def averaged_descent(
    run: Run, query: str, learning_rates: Vector, output: str, *, reach: float = math.inf
) -> Vector:
    """Take all steps of a run; return the last iterate, or a mean of iterates, as ``output`` says.

    ``"tail"`` is the mean of the last half, and in ``"linear"`` iterate t has weight t. See
    :func:`projected_descent` for the ``reach``.
    """
    steps = len(learning_rates)
    return projected_descent(
        run,
        query,
        learning_rates,
        averaged_from={"last": steps, "tail": steps // 2}.get(output, 0),
        growth=1.0 if output == "linear" else 0.0,
        reach=reach,
        tell=output == "last",
    )
