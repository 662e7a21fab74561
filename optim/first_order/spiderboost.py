"""Private SpiderBoost (Arora et al. 2022, Algorithm 1): fresh gradients, and differences between.

Differences between near iterates are small, so their noise is small too, and sums of them follow
the gradient at less cost than fresh gradients would.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Sigmoid, spiderboost
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((5_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Sigmoid(X, y, fit_intercept=False, classes=[0, 1])
>>> constants = calibrate.Constants(lipschitz=0.3, smoothness=0.16, gap=0.25)
>>> plan = calibrate.spiderboost(constants, n=5_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = spiderboost(objective, plan, seed=0)
>>> bool(np.linalg.norm(objective.gradient(result.w)) < plan.parameters["accuracy"])
True
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9)
True
"""

from __future__ import annotations

import numpy as np

from dpcal._internal import validate
from dpcal.optim.driver import step_size
from dpcal.optim.first_order.dpsgd import descend
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, algorithm, planned

OUTPUTS = ("last", "random", "smallest-norm")


@Optimizer(
    summary="noisy gradients now and then, small noisy differences in between",
    problem="smooth, convex or not",
    needs=("lipschitz or max_norm", "smoothness", "gap or steps"),
    rate="(sqrt(d) / (n epsilon))^(2/3)",
    measure="gradient norm",
    theorem="Arora et al. 2022, Theorems 1 and 9 (corrected)",
    options=("steps", "batch_size", "max_norm", "learning_rate", "group_size"),
    beaten="dpsgd",
).describes
@algorithm()
def spiderboost(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    learning_rate: float | None = None,
    output: str = "last",
) -> Vector:
    """Find a stationary point by Private SpiderBoost, spending a plan.

    Step t: if t is a multiple of the period, V_t is a noisy gradient at w_t over all records.
    Otherwise V_t is V_{t-1} plus a noisy difference of gradients, at w_t minus at w_{t-1}, over a
    fresh sample. The clipping and noise of the difference are in proportion to ``min(L1 ||w_t -
    w_{t-1}||, 2 C)``. Then ``w_{t+1} = w_t - eta V_t``.

    Parameters
    ----------
    learning_rate
        A number > 0 and below 2 / l2: beyond it the regulariser by itself makes iterates diverge.
        When omitted, the plan's eta, shortened to eta / (1 + eta l2): the plan's eta is for the
        smoothness of the loss, to which the regulariser adds l2.
    output
        ``"last"`` returns the last iterate, which is best as a rule; ``"random"`` returns one of
        w_0, ..., w_{T-1}, uniformly, with a mean squared gradient norm bounded by the plan's
        ``accuracy``; ``"smallest-norm"`` returns the iterate with the shortest estimate V_t. The
        estimates are released in any case, so the choice costs nothing.

    References
    ----------
    Arora et al. 2022, Algorithm 1 (with steps 0 to T - 1: the answer of step T would not be used).
    """
    fresh, *rest = planned(plan, "gradient", "gradient difference?")
    steps = sum(query.count for query in plan.queries)
    period, eta = _period(plan, steps, fresh.count), step_size(plan, objective, learning_rate)
    validate.choice(OUTPUTS, output=output)
    run = begin(steps)
    return descend(
        run,
        fresh.name,
        np.full(steps, eta),
        output,
        difference=rest[0].name if rest else None,
        heard=(0, period * ((steps - 1) // period)),
        period=period,
    )


def _period(plan: Plan, steps: int, refreshes: int) -> int:
    """Return the plan's period, if its queries agree with it."""
    period = validate.count(period=plan.parameters.get("period"))
    if -(-steps // period) != refreshes:
        raise ValueError(
            f"plan.parameters['period'] must agree with the plan's queries, {refreshes} fresh "
            f"gradients in {steps} steps, got {period}."
        )
    return period
