"""Sto-SPIDER and Ada-DP-SPIDER: comparators of minimax methods for a known value function.

Both follow the gradient of a function itself by estimates that are refreshed now and then, and kept
by differences in between. Sto-SPIDER refreshes every q steps; Ada-DP-SPIDER when the iterate has
drifted by ``eta^2 sum ||v||^2 >= kappa_d``, as often as its plan pays for.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import FromGradients, sto_spider
>>> targets = np.random.default_rng(0).uniform(-1, 1, (2_000, 2)) + [0.5, -0.5]
>>> problem = FromGradients(lambda w, rows: w - targets[rows], n=2_000, dimension=2)
>>> plan = calibrate.sto_spider(calibrate.Constants(lipschitz=3.0, smoothness=1.0), n=2_000,
...     dimension=2, epsilon=4.0, delta=1e-5, steps=40)
>>> result = sto_spider(problem, plan, seed=0)
>>> bool(np.abs(result.x - [0.5, -0.5]).max() < 0.3)
True
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from dpcal._internal import validate
from dpcal.optim.minimax.blocks import MinimaxResult
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Run, algorithm, planned, read

__all__ = ["ada_dp_spider", "sto_spider"]


@Optimizer(
    summary="sampled gradients now and then, clipped differences in between",
    problem="smooth, convex or not; an explicit value function",
    needs=("lipschitz or max_norm", "smoothness"),
    rate="(sqrt(d) / (n epsilon))^(2/3)",
    measure="gradient norm",
    theorem="Liu et al. 2023, as Xu et al. 2026 run it",
    relations=("replace-one", "add-or-remove-one", "replace-special"),
    options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    comparator=True,
).describes
@algorithm()
def sto_spider(objective: Problem, plan: Plan, begin: Begin) -> MinimaxResult:
    """Minimise by Sto-SPIDER, spending a plan. A comparator.

    The result's ``x`` is all of its parameters.

    References
    ----------
    Liu, Ganesh, Oh and Thakurta 2023, as Xu et al. 2026 run it.
    """
    (period,) = read(plan, validate.count, "period")
    return _followed(plan, begin, lambda run, drift: run.step % period == 0)


@Optimizer(
    summary="gradients afresh when the iterate has drifted, differences in between",
    problem="smooth, convex or not; an explicit value function",
    needs=("lipschitz or max_norm", "smoothness"),
    rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(2/5)",
    measure="gradient norm",
    theorem="Tao et al. 2025, as Xu et al. 2026 run it",
    relations=("replace-one", "add-or-remove-one", "replace-special"),
    options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    comparator=True,
).describes
@algorithm()
def ada_dp_spider(objective: Problem, plan: Plan, begin: Begin) -> MinimaxResult:
    """Minimise by Ada-DP-SPIDER, spending a plan. A comparator.

    A step refreshes the estimate if the squared moves since the last refresh have summed up to the
    plan's ``drift`` and a refresh is left; it takes a difference otherwise. The run costs its whole
    plan, because the number of refreshes is one of its outputs. The result's ``x`` is all of its
    parameters.

    References
    ----------
    Tao et al. 2025, as Xu et al. 2026 run it.
    """
    (allowed,) = read(plan, validate.positive, "drift")

    def due(run: Run, drift: float) -> bool:
        return run.step == 0 or (drift >= allowed and run.oracle.remaining("refresh") > 0)

    # The number of refreshes depends on released values, so the event is the whole plan's.
    return dataclasses.replace(_followed(plan, begin, due), early=True)


def _followed(plan: Plan, begin: Begin, due: Callable[[Run, float], bool]) -> MinimaxResult:
    """Take every step: refresh where it is due, else add a difference, and descend."""
    planned(plan, "gradient", "gradient difference?")
    (steps,) = read(plan, validate.count, "steps")
    (eta,) = read(plan, validate.positive, "learning_rate")
    run = begin(steps)
    v, before, drift, norms = np.zeros_like(run.w), run.w, 0.0, []
    while run.going:
        with run:
            w = run.w
            if due(run, drift):
                v, drift = run.oracle.gradient(w, "refresh"), 0.0
            else:
                v = v + run.oracle.difference(w, before, "difference")
            before = w
            norms.append(l2_norm(v))
            drift += (eta * norms[-1]) ** 2
            run.move(w - eta * v)
    return MinimaxResult.of(run.result(), len(run.w), norms)
