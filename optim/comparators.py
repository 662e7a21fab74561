"""Comparators: methods that the recommended optimizers are compared with; nothing advises them.

DP-SGDA: x descends and y climbs along one noisy release a step.

    for t = 0, ..., T - 1:
        (g_x, g_y) = noisy mean of the sampled records' clipped pairs of gradients at (x_t, y_t)
        x_{t+1} = x_t - eta_x g_x;   y_{t+1} = P_Y(y_t + eta_y g_y)

The others follow estimates v that are refreshed now and then, and kept by differences in between:

    for t = 0, ..., T - 1:
        K times:  y = P_Y(y + eta_y (noisy gradient in y at (x_t, y)))
        where a refresh is due:  v = noisy gradient in x at (x_t, y)
        otherwise:               v = v + noisy difference, between (x_t, y) and where v was
        x_{t+1} = x_t - eta_x v

Sto-SPIDER and Ada-DP-SPIDER have no y: they are for a known value function. Ada-DP-SPIDER
refreshes where the iterate has drifted by ``eta^2 sum ||v||^2 >= kappa_d``, as often as its plan
pays for, and the others every q steps. PrivateDiff (Zhang et al. 2025) is known here from how
others describe it, without periods, step sizes and bounds of clipping: **this is an approximation
of it**, with contributions clipped record by record.

None has an escape: started at a saddle point of the value function, they move there only by noise.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import FromGradients, dp_sgda, privatediff, sto_spider
>>> from dpcal.optim.minimax import Minimax
>>> xi = np.random.default_rng(0).uniform(-0.5, 0.5, (5_000, 2)) - 1.0
>>> def gradients(x, y, rows):  # of <xi + y, x>, and a public -|y|^2 / 2: Phi has its minimum at 1
...     return xi[rows] + y, np.tile(x, (len(rows), 1))
>>> constants = calibrate.Constants(lipschitz=2.0, smoothness=2.0, strong_concavity=1.0, gap=1.0)
>>> problem = Minimax(gradients, n=5_000, dimensions=(2, 2), dual_l2=1.0)
>>> target = dict(n=5_000, dimensions=(2, 2), epsilon=4.0, delta=1e-5)
>>> plan = calibrate.dp_sgda(constants, **target, steps=200, batch_size=200, learning_rate=0.05,
...                          ascent_rate=0.2)
>>> result = dp_sgda(problem, plan, seed=0, initial=[0.3, 0.3])
>>> bool(np.abs(result.x - 1.0).max() < 0.2), result.status
(True, 'finished')
>>> plan = calibrate.privatediff(constants, **target, steps=100, batch_size=500, learning_rate=0.1,
...                              ascent_rate=0.3)
>>> result = privatediff(problem, plan, seed=0, initial=[0.3, 0.3])
>>> bool(np.abs(result.x - 1.0).max() < 0.2)
True
>>> targets = np.random.default_rng(0).uniform(-1, 1, (2_000, 2)) + [0.5, -0.5]
>>> known = FromGradients(lambda w, rows: w - targets[rows], n=2_000, dimension=2)
>>> plan = calibrate.sto_spider(calibrate.Constants(lipschitz=3.0, smoothness=1.0), n=2_000,
...     dimension=2, epsilon=4.0, delta=1e-5, steps=40)
>>> result = sto_spider(known, plan, seed=0)
>>> bool(np.abs(result.x - [0.5, -0.5]).max() < 0.3)
True
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.optim.minimax.blocks import Blocks, MinimaxResult
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.objectives.arrays import Vector, l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Run, algorithm, planned, read

OUTPUTS = ("last", "tail")

_OPTIONS = ("steps", "batch_size", "max_norm", "learning_rate", "group_size")
_RELATIONS = ("replace-one", "add-or-remove-one", "replace-special")
_compared: Callable[..., Optimizer] = partial(
    Optimizer, relations=_RELATIONS, options=_OPTIONS, comparator=True
)


@_compared(
    summary="one noisy step down in x and up in y at a time",
    problem="minimax, strongly concave in y; convex in x, for the rate",
    needs=("lipschitz or max_norm", "smoothness", "strong_concavity"),
    rate="1 / sqrt(n) + sqrt(d) / (n epsilon)",
    measure="primal-dual risk",
    theorem="Yang et al. 2022, Algorithm 1",
    blocks=True,
).describes
@algorithm()
def dp_sgda(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    initial: ArrayLike | None,
    initial_dual: ArrayLike | None = None,
    dual_set: ConvexSet | None = None,
    output: str = "last",
) -> MinimaxResult:
    """Descend in x and ascend in y by DP-SGDA, spending a plan. A comparator.

    There are no escape phases. Callbacks receive (x, y).

    Parameters
    ----------
    objective, initial, initial_dual, dual_set
        See :func:`dpcal.optim.dp_rgda`.
    output
        ``"tail"`` returns the mean of the last half of the iterates, ``"last"`` the last one; both
        are as private.

    References
    ----------
    Yang, Hu, Wang and Ying 2022, Differentially private SGDA for minimax problems, Algorithm 1.
    """
    blocks, (query,) = Blocks.of(objective, plan, dual_set), planned(plan, "gradient")
    eta_x, eta_y = read(plan, validate.positive, "learning_rate", "ascent_rate")
    validate.choice(OUTPUTS, output=output)
    run = begin(query.count, initial=blocks.start(initial, initial_dual))
    d1, norms = blocks.dimensions[0], []
    mean, averaged = np.zeros_like(run.w), 0
    while run.going:
        with run:
            g = run.oracle.gradient(run.w, query.name)
            norms.append(l2_norm(g[:d1]))
            w = blocks.climbed(run.w, g, eta_y)
            w[:d1] -= eta_x * g[:d1]
            run.move(w)
            if 2 * run.step > run.planned:
                averaged += 1
                mean = mean + (run.w - mean) / averaged
    chosen = mean if output == "tail" and averaged else None
    return MinimaxResult.of(run.result(chosen), d1, norms)


@_compared(
    summary="noisy ascents in y, and restarts and differences in x",
    problem="minimax, smooth, strongly concave in y",
    needs=("lipschitz or max_norm", "smoothness", "strong_concavity"),
    rate="(sqrt(d) / (n epsilon))^(2/3)",
    measure="gradient norm of the value function",
    theorem="Zhang et al. 2025, approximately",
    options=(*_OPTIONS[:4], "inner_steps", "group_size"),
    blocks=True,
).describes
@algorithm()
def privatediff(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    initial: ArrayLike | None,
    initial_dual: ArrayLike | None = None,
    dual_set: ConvexSet | None = None,
) -> MinimaxResult:
    """Descend in x along estimates that restarts and differences keep. A comparator.

    There are no escape phases. Callbacks receive (x, y).

    Parameters
    ----------
    initial_dual, dual_set
        See :func:`dpcal.optim.dp_rgda`.

    References
    ----------
    Zhang et al. 2025 (PrivateDiff), approximately; see above.
    """
    blocks = Blocks.of(objective, plan, dual_set)
    planned(plan, "gradient", "gradient", "gradient difference?")
    eta_x, eta_y = read(plan, validate.positive, "learning_rate", "ascent_rate")
    steps, period, inner = read(plan, validate.count, "steps", "period", "inner_steps")
    run = begin(steps, initial=blocks.start(initial, initial_dual))

    def climbed(w: Vector) -> Vector:
        for _ in range(inner):
            w = blocks.climbed(w, run.oracle.gradient(w, "ascent"), eta_y)
        return w

    d1 = blocks.dimensions[0]
    return _followed(run, eta_x, lambda drift: run.step % period == 0, d1, climbed)


@_compared(
    summary="sampled gradients now and then, clipped differences in between",
    problem="smooth, convex or not; an explicit value function",
    needs=("lipschitz or max_norm", "smoothness"),
    rate="(sqrt(d) / (n epsilon))^(2/3)",
    measure="gradient norm",
    theorem="Liu et al. 2023, as Xu et al. 2026 run it",
).describes
@algorithm()
def sto_spider(objective: Problem, plan: Plan, begin: Begin) -> MinimaxResult:
    """Minimise by Sto-SPIDER, spending a plan. A comparator.

    The result's ``x`` is all of its parameters.

    References
    ----------
    Liu, Ganesh, Oh and Thakurta 2023, as Xu et al. 2026 run it.
    """
    planned(plan, "gradient", "gradient difference?")
    steps, period = read(plan, validate.count, "steps", "period")
    (eta,) = read(plan, validate.positive, "learning_rate")
    run = begin(steps)
    return _followed(run, eta, lambda drift: run.step % period == 0, len(run.w))


@_compared(
    summary="gradients afresh when the iterate has drifted, differences in between",
    problem="smooth, convex or not; an explicit value function",
    needs=("lipschitz or max_norm", "smoothness"),
    rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(2/5)",
    measure="gradient norm",
    theorem="Tao et al. 2025, as Xu et al. 2026 run it",
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
    planned(plan, "gradient", "gradient difference?")
    (steps,) = read(plan, validate.count, "steps")
    allowed, eta = read(plan, validate.positive, "drift", "learning_rate")
    run = begin(steps)

    def due(drift: float) -> bool:
        return run.step == 0 or (drift >= allowed and run.oracle.remaining("refresh") > 0)

    # The number of refreshes depends on released values, so the event is the whole plan's.
    return dataclasses.replace(_followed(run, eta, due, len(run.w)), early=True)


def _followed(
    run: Run,
    eta: float,
    due: Callable[[float], bool],
    d1: int,
    climbed: Callable[[Vector], Vector] = lambda w: w,
) -> MinimaxResult:
    """Take every step of x: refresh v where it is due, else add a difference, and descend."""
    v, before, drift, norms = np.zeros(d1), run.w, 0.0, []
    while run.going:
        with run:
            w = climbed(run.w)
            if due(drift):
                v, drift = run.oracle.gradient(w, "refresh")[:d1], 0.0
            else:
                v = v + run.oracle.difference(w, before, "difference")[:d1]
            before = w
            norms.append(l2_norm(v))
            drift += (eta * norms[-1]) ** 2
            run.move(np.concatenate([w[:d1] - eta * v, w[d1:]]))
    return MinimaxResult.of(run.result(), d1, norms)
