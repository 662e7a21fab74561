"""Noisy gradient descent: every step is on all records (Wang, Ye and Xu 2017, Algorithm 3).

It is the baseline for other optimizers: no sampling, one query, fixed noise.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, noisy_gd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((2_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Logistic(X, y, fit_intercept=False, classes=[0, 1])
>>> constants = calibrate.Constants(lipschitz=1.0, smoothness=0.25, gap=np.log(2))
>>> plan = calibrate.noisy_gd(constants, n=2_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = noisy_gd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9)
True

A plan with ``release="last"`` accounts for the last iterate only, and nothing else leaves its run:

>>> convex = Logistic.constants_for(row_norm=1.0, l2=0.1, fit_intercept=False)
>>> sealed = calibrate.noisy_gd(
...     convex, n=2_000, dimension=3, epsilon=1.0, delta=1e-6, steps=100, release="last")
>>> regularised = Logistic(X, y, l2=0.1, fit_intercept=False, classes=[0, 1])
>>> noisy_gd(regularised, sealed, seed=0).trace.step.tolist()
[100]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal.errors import UnsupportedEvent
from dpcal.optim.driver import step_size
from dpcal.optim.first_order.dpsgd import OUTPUTS, descend
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, algorithm, planned


@Optimizer(
    summary="noisy gradient steps on all records",
    problem="smooth, convex or not",
    needs=("lipschitz or max_norm", "smoothness or learning_rate", "gap or steps"),
    rate="(sqrt(d) / (n epsilon))^(1/2)",
    measure="gradient norm",
    theorem="Wang, Ye and Xu 2017, Theorem 5",
    options=("steps", "max_norm", "learning_rate", "group_size"),
).describes
@algorithm()
def noisy_gd(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    learning_rate: float | None = None,
    output: str = "last",
    radius: float,
    callback: Any = None,
    store: Any = None,
) -> Vector | None:
    """Minimise an objective by noisy gradient descent, spending a plan.

    Step t: clip every record's gradient at w_t to norm C, sum, add Gaussian noise of standard
    deviation ``noise_multiplier * C``, divide by n, add the regulariser's gradient, and move
    against it by the learning rate.

    Parameters
    ----------
    learning_rate
        A number > 0 and below 2 / l2: beyond it the regulariser by itself makes iterates diverge.
        When omitted, the plan's eta, shortened to eta / (1 + eta l2): the plan's eta is for the
        smoothness of the loss, to which the regulariser adds l2.
    output
        ``"last"`` returns the last iterate, which is best as a rule; ``"random"`` one of w_0, ...,
        w_{T-1}, uniformly. The theorem on losses that are not convex bounds the mean squared
        gradient norm of the random iterate. ``"uniform"``, ``"tail"`` and ``"linear"`` return
        means, as for :func:`dpcal.optim.dpsgd`, for convex losses.

    Raises
    ------
    UnsupportedEvent
        For a plan with ``release="last"``, if no theorem covers the objective, or if you pass a
        callback, a store, another output, radius or learning rate.

    References
    ----------
    Wang, Ye and Xu 2017, Algorithm 3 (gradient descent on non-convex losses).
    Bok, Su and Altschuler 2024, Shifted interpolation for differential privacy (the last iterate).
    """
    if any(query.descent is not None for query in plan.queries):
        given = {
            "learning_rate": learning_rate is not None,
            "output": output != "last",
            "radius": math.isfinite(radius),
            "callback": callback is not None,
            "store": store is not None,
        }
        _last_iterate(objective, plan, begin, [name for name, told in given.items() if told])
        return None
    (query,) = planned(plan, "gradient")
    eta = step_size(plan, objective, learning_rate)
    validate.choice(OUTPUTS, output=output)
    return descend(begin(query.count), query.name, np.full(query.count, eta), output)


def _last_iterate(objective: Problem, plan: Plan, begin: Begin, given: list[str]) -> None:
    """Spend a plan that releases only the last iterate; refuse every other output."""
    (query,) = planned(plan, "last iterate")
    if given:
        raise UnsupportedEvent(
            f"{given[0]} must be left out with a plan that releases the last iterate alone: steps "
            "and ball are the plan's, and no iterate may be averaged, shown or written."
        )
    if not isinstance(objective, Objective) and not hasattr(objective, "last_iterate"):
        raise UnsupportedEvent(
            "the last iterate alone is released by a PrivateOracle, which takes all steps itself, "
            f"got a {type(objective).__name__}."
        )
    assert query.descent is not None
    run = begin(query.descent.steps)
    run.jump(run.oracle.last_iterate(run.w, query.name), run.planned)  # type: ignore[attr-defined]
