"""Private proximal point method (Menart et al. 2024, Algorithms 2 and 4), for sharp minima.

For losses with the Kurdyka-Lojasiewicz condition and kappa >= 2, smooth or not, convex or weakly
convex. An example is the median of points in space, with a norm as the loss.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import FromGradients, proximal_point
>>> points = np.random.default_rng(0).standard_normal((1_000, 3)) + 1.0
>>> def gradients(w, rows):
...     away = w - points[rows]
...     return away / np.linalg.norm(away, axis=1, keepdims=True)
>>> def losses(w, rows):
...     return np.linalg.norm(w - points[rows], axis=1)
>>> objective = FromGradients(gradients, n=1_000, dimension=3, loss=losses)
>>> constants = calibrate.Constants(lipschitz=1.0, smoothness=np.inf, gap=1.0)
>>> plan = calibrate.proximal_point(constants, n=1_000, dimension=3, epsilon=1.0, delta=1e-6,
...                                 gamma=2.0, kappa=2.0)
>>> result = proximal_point(objective, plan, seed=0)
>>> bool(np.linalg.norm(result.w - 1.0) < 0.2)
True
"""

from __future__ import annotations

from dpcal._ext.answers import norm
from dpcal.calibrate.plans.kl_problem import number
from dpcal.calibrate.plans.proximal_point import stage_weights
from dpcal.optim.boundary.oracle import Oracle
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Vector, algorithm, planned


@Optimizer(
    summary="stages of noisy descent on the loss pulled to where the last one ended",
    problem="weakly convex and Kurdyka-Lojasiewicz with kappa >= 2, smooth or not",
    needs=("lipschitz", "gamma", "kappa"),
    rate="(sqrt(d) / (n epsilon))^kappa",
    measure="excess risk",
    theorem="Menart et al. 2024, Algorithms 2 and 4, Theorem 2",
    options=("gamma", "kappa", "weak_convexity", "beta", "inner_steps", "group_size"),
).describes
@algorithm()
def proximal_point(objective: Problem, plan: Plan, begin: Begin) -> None:
    """Minimise an objective by the private proximal point method, spending a plan.

    The steps of callbacks are stages.

    References
    ----------
    Menart et al. 2024, Algorithms 2 and 4. Weights grow from stage to stage, and the inner steps
    are the steps that the averaging weights belong to.
    """
    planned(plan, "gradient")
    weights = stage_weights(plan)
    inner_steps = int(number(plan.parameters, "inner_steps"))
    run = begin(max(1, len(weights)))
    for weight in weights:  # 1, 2
        if run.going:
            run.move(regularized_descent(run.oracle, run.w, weight, inner_steps))  # 3
    if not weights:
        run.finish("returned its start: the theorem promises nothing better at these sizes")


def regularized_descent(oracle: Oracle, center: Vector, weight: float, steps: int) -> Vector:
    """Minimise F + weight ||w - center||^2 in a ball by noisy gradient descent (Algorithm 4).

    The descent starts at the centre of a ball of radius C / (2 weight), and takes ``steps`` answers
    to the query ``"gradient"``. F + weight / 2 ||w||^2 is convex. The mean of the iterates with
    weights 2 t / (T (T + 1)), t = 1, ..., T = steps + 1, is returned.
    """
    radius = oracle.plan.query("gradient").max_norm / (2 * weight)
    w, mean = center, center
    for t in range(1, steps + 1):
        away = w - center
        g = oracle.gradient(w, "gradient") + 2 * weight * away
        away -= 2 / (weight * (t + 1)) * g  # 4
        w = center + radius / max(norm(away), radius) * away
        mean = mean + 2 / (t + 2) * (w - mean)  # 4: weight t + 1 of 1 + ... + (t + 1)
    return mean
