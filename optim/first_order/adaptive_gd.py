"""Adaptive gradient descent: noise in proportion to the gradient (Menart et al. 2024, Algorithm 3).

For smooth losses without other known constants. Under the Kurdyka-Lojasiewicz condition the excess
risk falls at a rate that depends on its exponent, which is not an input of the algorithm.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, adaptive_gd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((20_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Logistic(X, y, fit_intercept=False, classes=[0, 1])
>>> constants = calibrate.Constants(lipschitz=1.0, smoothness=0.25)
>>> plan = calibrate.adaptive_gd(constants, n=20_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = adaptive_gd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.95)
True
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal.optim.driver import Run
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Vector, algorithm, planned, read

OUTPUTS = ("last", "smallest-norm")

# Largest number of steps on the rest of the budget: with more, noise would hide small gradients.
_CLOSING_STEPS = 4

NO_NORM = "spent its budget on {} steps: the next norm costs more than is left"
LOST = "ended after {} steps: the gradient is lost in the noise of its norm"
NO_GRADIENT = "spent its budget on {} steps: the next gradient costs more than is left"
TAKEN = "took {} steps"


@Optimizer(
    summary="gradient steps with noise in proportion to a noisy norm",
    problem="smooth; Kurdyka-Lojasiewicz, for the rate, of unknown gamma and 1 <= kappa <= 2",
    needs=("lipschitz", "smoothness"),
    rate="(sqrt(d) / (n epsilon))^(2 kappa / (4 - kappa)) + (n epsilon)^(-kappa / 2)",
    measure="excess risk",
    theorem="Menart et al. 2024, Algorithm 3, Theorems 4 and 5",
    options=("steps", "l2"),
    beaten="dpsgd",
).describes
@algorithm()
def adaptive_gd(
    objective: Problem, plan: Plan, begin: Begin, *, output: str = "last"
) -> Vector | None:
    """Minimise an objective by gradient descent with noise in proportion to the gradient.

    Parameters
    ----------
    output
        ``"last"`` returns the last iterate, for a small excess risk (Theorem 4); with the preset
        ``"practical"`` closing steps on the rest of the budget lead to it. ``"smallest-norm"``
        returns the iterate with the smallest noisy norm, for a small gradient (Theorem 5). The
        theorem draws the iterate with the exponential mechanism; the noisy norms were released
        already, so choosing by them costs nothing.

    Returns
    -------
    Result
        The algorithm ends when the gradient is lost in the norm's noise, or the budget does not pay
        for the next answer. For the last iterate of the preset ``"practical"``, the rest is spent
        on up to four more gradients. The run costs its whole plan whenever it ends.

    References
    ----------
    Menart et al. 2024, Algorithm 3; Smith and Thakurta 2022 allow a run to choose its noise on the
    way.
    """
    norm_query, query = planned(plan, "gradient norm", "gradient")
    validate.choice(OUTPUTS, output=output)
    z_norm, eta, shrink, quantile = read(
        plan, validate.positive, "norm_multiplier", "learning_rate", "shrink", "quantile"
    )
    unit = plan.n / (shrink * quantile * query.max_norm)
    run = begin(norm_query.count)
    closing = 0
    if output == "last" and plan.parameters.get("preset") == "practical":
        closing = min(_CLOSING_STEPS, (run.planned + 1) // 2)
    best = run.w
    with run:
        best, ended = _walk(run, z_norm, unit, eta, run.planned - closing)
        message = ended.format(run.step)
        taken = _close(run, 2 * eta, closing)
        if run.going:
            run.finish(message + (f"; {taken} more took what was left" if taken else ""))
    return best if output == "smallest-norm" else None


def _walk(run: Run, z_norm: float, unit: float, eta: float, until: int) -> tuple[Vector, str]:
    """Take the steps of Algorithm 3; return the iterate of the smallest noisy norm, and the end."""
    oracle, query = run.oracle, run.oracle.plan.query("gradient")
    smallest, best = math.inf, run.w
    while run.going and run.step < until:
        if not oracle.affords("norm", z_norm):  # 1
            return best, NO_NORM
        N_t = oracle.norm(run.w, "norm", noise_multiplier=z_norm)  # 2
        if N_t < smallest:
            smallest, best = N_t, run.w
        if N_t <= 0:  # 3
            return best, LOST
        z_t = unit * N_t  # 4
        if z_t < query.noise_multiplier or not oracle.affords("gradient", z_t):  # 5
            return best, NO_GRADIENT
        g_t = oracle.gradient(run.w, "gradient", noise_multiplier=z_t)  # 6
        run.hear(g_t, query.with_noise(z_t))
        run.move(run.w - eta * g_t)  # 6
    return best, TAKEN


def _close(run: Run, step_size: float, most: int) -> int:
    """Spend the rest of the budget on at most ``most`` gradients; return their number.

    An answer g has noise of total variance v, so that ``||g||^2 - v`` is an unbiased estimate of
    the gradient's squared norm (James and Stein 1961). The share ``max(0, 1 - v / ||g||^2)`` of g
    is taken for the gradient: a step has its full length 1 / L1 where the noise is small, and
    length zero where the gradient is lost in it. The length of a step is a function of released
    values, so it costs nothing.
    """
    oracle, query = run.oracle, run.oracle.plan.query("gradient")
    rest = 1 - float(oracle.ledger.share(query.budget or 0.0))
    count = min(most, run.planned - run.step, oracle.remaining("gradient"))
    taken = 0
    for _ in range(count if rest > 0 else 0):
        z = query.noise_multiplier / math.sqrt(rest / count) * (1 + 1e-11)
        if not run.going or not oracle.affords("gradient", z):
            break
        g = oracle.gradient(run.w, "gradient", noise_multiplier=z)
        run.hear(g, query.with_noise(z))
        variance = len(g) * (query.max_norm * z / oracle.plan.n) ** 2
        squares = float(g @ g)
        run.move(run.w - step_size * (max(0.0, squares - variance) / max(squares, variance)) * g)
        taken += 1
    return taken
