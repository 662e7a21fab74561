"""DP-SGDA: x descends and y climbs along one noisy release a step.

    for t = 0, ..., T - 1:
        (g_x, g_y) = noisy mean of the sampled records' clipped pairs of gradients at (x_t, y_t)
        x_{t+1} = x_t - eta_x g_x;   y_{t+1} = P_Y(y_t + eta_y g_y)

It has no escape: started at a saddle point of the value function, it moves there only by its noise.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import dp_sgda
>>> from dpcal.optim.minimax import Minimax
>>> xi = np.random.default_rng(0).uniform(-0.5, 0.5, (2_000, 2)) - 1.0
>>> def gradients(x, y, rows):  # of <xi + y, x>, and a public -|y|^2 / 2: Phi has its minimum at 1
...     return xi[rows] + y, np.tile(x, (len(rows), 1))
>>> constants = calibrate.Constants(lipschitz=2.0, smoothness=2.0, strong_concavity=1.0, gap=1.0)
>>> problem = Minimax(gradients, n=2_000, dimensions=(2, 2), dual_l2=1.0)
>>> plan = calibrate.dp_sgda(constants, n=2_000, dimensions=(2, 2), epsilon=4.0, delta=1e-5,
...                          steps=200, batch_size=200, learning_rate=0.05, ascent_rate=0.2)
>>> result = dp_sgda(problem, plan, seed=0, initial=[0.3, 0.3])
>>> bool(np.abs(result.x - 1.0).max() < 0.2), result.status
(True, 'finished')
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.optim.minimax.blocks import Blocks, MinimaxResult
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, algorithm, planned, read

__all__ = ["dp_sgda"]

OUTPUTS = ("last", "tail")


@Optimizer(
    summary="one noisy step down in x and up in y at a time",
    problem="minimax, strongly concave in y; convex in x, for the rate",
    needs=("lipschitz or max_norm", "smoothness", "strong_concavity"),
    rate="1 / sqrt(n) + sqrt(d) / (n epsilon)",
    measure="primal-dual risk",
    theorem="Yang et al. 2022, Algorithm 1",
    relations=("replace-one", "add-or-remove-one", "replace-special"),
    options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    blocks=True,
    comparator=True,
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
