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
"""

from __future__ import annotations

import numpy as np

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.algorithms import Settings, algorithm, planned, step_size
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.driver import Run
from dpcal.optim.first_order.descent import projected_descent
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective

__all__ = ["noisy_gd"]

OUTPUTS = ("last", "random", "linear")


def _settings(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    learning_rate: float | None = None,
    output: str = "last",
) -> Settings:
    (query,) = planned(plan, "noisy_gd", "gradient")
    eta = step_size(plan, objective, learning_rate)
    return Settings(query.count, eta=eta, output=_validate.choice(OUTPUTS, output=output))


@algorithm(_settings, radius=True)
def noisy_gd(run: Run, oracle: Oracle, plan: Plan, *, eta: float, output: str) -> Vector | None:
    """Minimise an objective by noisy gradient descent, spending a plan.

    Step t: clip every record's gradient at w_t to norm C, sum, add Gaussian noise of standard
    deviation ``noise_multiplier * C``, divide by n, add the regulariser's gradient, and move
    against it by the learning rate.

    Parameters
    ----------
    learning_rate
        A number > 0, and below 2 / l2, beyond which the regulariser alone makes iterates diverge.
        When omitted, the plan's eta, shortened to eta / (1 + eta l2): the plan's eta is for the
        smoothness of the loss, to which the regulariser adds l2.
    output
        ``"last"`` returns the last iterate, which is best as a rule; ``"random"`` one of w_0, ...,
        w_{T-1}, uniformly. The theorem on losses that are not convex bounds the mean squared
        gradient norm of the latter. ``"linear"`` returns a mean in which iterate t has weight t,
        for convex losses.

    References
    ----------
    Wang, Ye and Xu 2017, Algorithm 3 (gradient descent on non-convex losses).
    """
    (query,) = plan.queries
    drawn = int(oracle.public.integers(query.count)) if output == "random" else query.count
    rates = np.full(query.count, eta)
    if output == "linear":
        return projected_descent(run, query.name, rates, mean=True, growth=1.0)
    picked = projected_descent(run, query.name, rates, until=drawn)
    projected_descent(run, query.name, rates)
    return picked if output == "random" else None
