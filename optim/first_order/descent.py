"""One loop of projected descent on noisy gradients, for several optimizers.

Noisy gradient descent, DP-SGD and DP-SGD with correlated noise take the same steps: a noisy
gradient, a move against it, a projection onto a ball. The query fixes samples and noise.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import PrivateOracle, Squared
>>> plan = calibrate.dpsgd(n=2, batch_size=2, steps=3, epsilon=9.0, delta=1e-2)
>>> run = Run(PrivateOracle(Squared([[0.0], [1.0]], [0.0, 1.0]), plan, seed=0), steps=3)
>>> last = descend(run, "gradient", np.full(3, 0.1), "last")
>>> bool((last == run.w).all()), run.step
(True, 3)
"""

from __future__ import annotations

import math

from dpcal.optim.driver import Run, walk_of
from dpcal.optim.objectives.arrays import Vector

__all__ = ["OUTPUTS", "descend"]

OUTPUTS = ("last", "random", "uniform", "tail", "linear")


def descend(
    run: Run, query: str, learning_rates: Vector, output: str, *, reach: float = math.inf
) -> Vector:
    """Take all steps ``w <- P(w - eta_t g_t)`` of a run, where g_t answers ``query`` at w.

    The learning rates are one eta_t a step, shape (steps,); none is above ``reach / sqrt(|g_1|^2 +
    ... + |g_t|^2)``. The ``output`` is returned: ``"last"``, the last iterate; ``"random"``, one of
    w_0, ..., w_{T-1}, uniformly; or a mean of iterates, ``"uniform"`` of all, ``"tail"`` of the
    last half, ``"linear"`` of all with weight t of iterate t.

    Where the last iterate is returned, the run hears answers that show whether it ended below its
    start.
    """
    steps, asked = len(learning_rates), run.oracle.plan.query(query)
    start = {"uniform": 0, "tail": steps // 2, "linear": 0}.get(output, steps)
    drawn = int(run.oracle.public.integers(steps)) if output == "random" else steps
    tells = output == "last" and asked.sampler in ("full", "poisson") and asked.correlation is None
    walk = walk_of(
        run.oracle,
        run.w,
        query,
        rates=learning_rates,
        averaged_from=start,
        growth=1.0 if output == "linear" else 0.0,
        reach=reach,
        **run.ball,
    )
    picked = run.w
    while run.going:
        hears = tells and not run.until_telling
        moves = run.until_noted
        if tells:
            moves = min(moves, max(1, run.until_telling))
        if run.step < drawn:
            moves = min(moves, drawn - run.step)
        run.follow(walk, moves, heard=asked if hears else None)
        if run.step <= drawn:
            picked = run.w
    return walk.mean if run.step > start else picked
