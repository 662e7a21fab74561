"""DP-SGD with correlated noise: each step cancels part of the noise of earlier steps.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.optim import Logistic, correlated_dpsgd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((1_000, 3))
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> plan = calibrate.correlated_dpsgd(LambdaCGD(50, 0.8), n=1_000, batch_size=1_000, sampler="full",
...                                   epsilon=1.0, delta=1e-6)
>>> objective = Logistic(X, y, classes=[0, 1])
>>> result = correlated_dpsgd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9)
True
>>> bool(result.epsilon(1e-6) <= plan.epsilon), result.message
(True, 'took all 50 planned steps')
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from dpcal.optim.first_order.dpsgd import dpsgd
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Vector, algorithm, planned

steps_of_dpsgd: Callable[..., Vector] = inspect.unwrap(dpsgd)


@Optimizer(
    summary="gradient steps whose noise takes back part of the noise before",
    problem="any; rates are known for convex losses and for wide networks",
    needs=("strategy", "batch_size", "max_norm"),
    rate="sqrt(d) / (n epsilon)",
    measure="excess risk",
    theorem="Denisov et al. 2022; Choquette-Choo et al. 2024; Kalinin et al. 2026",
    relations=("add-or-remove-one", "replace-special"),
    options=(
        *("batch_size", "epochs", "steps", "sampler"),
        *("max_norm", "learning_rate", "clipped"),
    ),
    constants=False,
).describes
@algorithm()
@functools.wraps(steps_of_dpsgd, assigned=("__annotations__",))
def correlated_dpsgd(
    objective: Problem, plan: Plan, begin: Begin, *, center: Any, initial: Any, **options: Any
) -> Vector:
    """Minimise an objective by DP-SGD with correlated noise, spending a plan.

    Step t: sample records, clip each one's gradient to norm C, sum, add ``noise_multiplier * C``
    times row t of C^-1 z, divide by the expected sample size, add the regulariser's gradient, move
    against it by the learning rate, and project onto the ball.

    Parameters
    ----------
    learning_rate, output
        As for :func:`dpcal.optim.dpsgd`; the default rate is the rate for independent noise with
        the same sum over the run.
    center
        Centre of the ball of ``radius``, shape (dimension,); the start of the run when omitted.
        Without a finite ``radius``, iterates are projected onto a ball around the start of the
        plan's ``"projection_radius"``, if it has one.

    Returns
    -------
    Result
        Its epsilon is the whole plan's, also if the run stopped early.

    References
    ----------
    Denisov et al. 2022, Algorithm 1; with one-step cancellation and projection, Wang et al. 2026,
    Algorithm 1.
    """
    (query,) = planned(plan, "gradient")
    if query.correlation is None:
        raise ValueError(f"plan must have a query with correlated noise, got {query}.")
    center = initial if center is None else center
    return steps_of_dpsgd(objective, plan, begin, center=center, initial=initial, **options)
