"""PrivateDiff: y climbs along fresh noisy gradients, x follows restarts and their differences.

    for t = 0, ..., T - 1:
        K times:  y = P_Y(y + eta_y (noisy gradient in y at (x_t, y)))
        t a multiple of the period:  v = noisy gradient in x at (x_t, y)
        otherwise:                   v = v + noisy difference, between (x_t, y) and where v was
        x_{t+1} = x_t - eta_x v

A first-order method: it has no escape from saddle points. Zhang et al. 2025 is known here from how
others describe it, without periods, step sizes and bounds of clipping: **this is an
approximation of it**, with contributions clipped record by record.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import privatediff
>>> from dpcal.optim.minimax import Minimax
>>> xi = np.random.default_rng(0).uniform(-0.5, 0.5, (5_000, 2)) - 1.0
>>> def gradients(x, y, rows):  # of <xi + y, x>, and a public -|y|^2 / 2: Phi has its minimum at 1
...     return xi[rows] + y, np.tile(x, (len(rows), 1))
>>> constants = calibrate.Constants(lipschitz=2.0, smoothness=2.0, strong_concavity=1.0, gap=1.0)
>>> problem = Minimax(gradients, n=5_000, dimensions=(2, 2), dual_l2=1.0)
>>> plan = calibrate.privatediff(constants, n=5_000, dimensions=(2, 2), epsilon=4.0,
...     delta=1e-5, steps=100, batch_size=500, learning_rate=0.1, ascent_rate=0.3)
>>> result = privatediff(problem, plan, seed=0, initial=[0.3, 0.3])
>>> bool(np.abs(result.x - 1.0).max() < 0.2)
True
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.optim.minimax.blocks import Blocks, MinimaxResult
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, algorithm, planned, read

__all__ = ["privatediff"]


@Optimizer(
    summary="noisy ascents in y, and restarts and differences in x",
    problem="minimax, smooth, strongly concave in y",
    needs=("lipschitz or max_norm", "smoothness", "strong_concavity"),
    rate="(sqrt(d) / (n epsilon))^(2/3)",
    measure="gradient norm of the value function",
    theorem="Zhang et al. 2025, approximately",
    relations=("replace-one", "add-or-remove-one", "replace-special"),
    options=("steps", "batch_size", "max_norm", "learning_rate", "inner_steps", "group_size"),
    blocks=True,
    comparator=True,
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
    d1, norms = blocks.dimensions[0], []
    v, before, oracle = np.zeros(d1), run.w, run.oracle
    while run.going:
        with run:
            w = run.w
            for _ in range(inner):
                w = blocks.climbed(w, oracle.gradient(w, "ascent"), eta_y)
            if run.step % period == 0:
                v = oracle.gradient(w, "refresh")[:d1]
            else:
                v = v + oracle.difference(w, before, "difference")[:d1]
            before = w
            norms.append(l2_norm(v))
            run.move(np.concatenate([w[:d1] - eta_x * v, w[d1:]]))
    return MinimaxResult.of(run.result(), d1, norms)
