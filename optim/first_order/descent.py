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
from collections.abc import Collection
from typing import Any

from dpcal.optim.driver import Run, walk_of
from dpcal.optim.ending import first_late
from dpcal.optim.objectives.arrays import Vector, l2_norm

__all__ = ["OUTPUTS", "descend"]

OUTPUTS = ("last", "random", "uniform", "tail", "linear")


def descend(
    run: Run,
    query: str,
    learning_rates: Vector,
    output: str,
    *,
    difference: str | None = None,
    heard: Collection[int] | None = None,
    **how: Any,
) -> Vector:
    """Take all steps ``w <- P(w - eta_t g_t)`` of a run.

    Parameters
    ----------
    run
        The run, at its start.
    query, difference
        Names of the queries whose answers g_t is, as for :func:`dpcal.optim.driver.walk_of`.
    learning_rates
        One eta_t a step, shape (steps,).
    output
        What is returned: ``"last"``, the last iterate; ``"random"``, one of w_0, ..., w_{T-1},
        uniformly; ``"smallest-norm"``, the one with the shortest g_t; or a mean of iterates,
        ``"uniform"`` of all, ``"tail"`` of the last half, ``"linear"`` of all with weight t of
        iterate t.
    heard
        Steps with fresh gradients. Where the last iterate is returned, the run hears these answers,
        which show whether it ended below its start; by default the first and late ones, where each
        step has fresh noise.
    **how
        Period of fresh gradients and reach of steps, as for :class:`dpcal._ext.loops.Steps`.
    """
    steps, asked = len(learning_rates), run.oracle.plan.query(query)
    start = {"uniform": 0, "tail": steps // 2, "linear": 0}.get(output, steps)
    drawn = int(run.oracle.public.integers(steps)) if output == "random" else steps
    if heard is None:
        fresh = asked.sampler in ("full", "poisson") and asked.correlation is None
        heard = (0, *range(first_late(steps), steps)) if fresh else ()
    heard = heard if output == "last" else ()
    growth = 1.0 if output == "linear" else 0.0
    how |= {"rates": learning_rates, "averaged_from": start, "growth": growth, **run.ball}
    walk = walk_of(run.oracle, run.w, query, difference, **how)
    picked, shortest = run.w, math.inf
    while run.going:
        w, hears = run.w, run.step in heard
        ends = (run.step + run.until_noted, drawn, *heard)
        moves = min(end for end in ends if end > run.step) - run.step
        moves = 1 if hears or output == "smallest-norm" else moves
        run.follow(walk, moves, heard=asked if hears else None)
        if output == "smallest-norm":
            norm = l2_norm(walk.gradient)
            picked, shortest = (w, norm) if norm < shortest else (picked, shortest)
        elif run.step <= drawn:
            picked = run.w
    return walk.mean if run.step > start else picked
