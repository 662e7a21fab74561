"""KL Spider: noisy gradients followed by their noisy differences (Menart et al. 2024, Algorithm 1).

For losses with the Kurdyka-Lojasiewicz condition and 1 <= kappa <= 2, such as strongly convex
losses, and losses that meet the Polyak-Lojasiewicz condition, convex or not.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, kl_spider
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((20_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Logistic(X, y, l2=0.1, fit_intercept=False, classes=[0, 1])
>>> constants = calibrate.Constants(
...     lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=np.log(2))
>>> plan = calibrate.kl_spider(constants, n=20_000, dimension=3, epsilon=1.0, delta=1e-6, l2=0.1)
>>> result = kl_spider(objective, plan, seed=0)
>>> excess = objective.loss(result.w) - objective.loss(objective.minimize())
>>> bool(excess < plan.parameters["accuracy"] < 0.01)
True
"""

from __future__ import annotations

from dpcal.calibrate.plans.kl_problem import number
from dpcal.calibrate.plans.kl_spider import Round, multipliers, schedule
from dpcal.optim.boundary.oracle import Oracle
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, algorithm, planned


@Optimizer(
    summary="rounds of a noisy gradient and its noisy differences, each to its target",
    problem="smooth and Kurdyka-Lojasiewicz with 1 <= kappa <= 2, convex or not",
    needs=("lipschitz", "smoothness", "gamma", "kappa"),
    rate="(sqrt(d) / (n epsilon))^kappa",
    measure="excess risk",
    theorem="Menart et al. 2024, Algorithm 1, Theorem 1",
    options=("gamma", "kappa", "beta", "l2"),
).describes
@algorithm()
def kl_spider(objective: Problem, plan: Plan, begin: Begin) -> None:
    """Minimise an objective by KL Spider, spending a plan.

    Returns
    -------
    Result
        Rounds end when they reach their targets, so that steps may be fewer than planned; the run
        costs its whole plan.

    References
    ----------
    Menart et al. 2024, Algorithm 1. A round starts at the end of the previous round, at the iterate
    where the gradient was tested. It releases one difference less than it makes steps. The noise is
    such that the transcript costs the budget exactly. Steps of its rounds are at most ||g|| / L1
    long, which is the length of plain steps in a plan without a promise.
    """
    planned(plan, "gradient", "gradient difference?")
    rounds = schedule(plan)
    run = begin(max(1, sum(each.steps for each in rounds)))
    oracle = run.oracle
    refunds = plan.parameters["preset"] == "practical" and not plan.parameters["vacuous"]
    longest = 1 / number(plan.parameters, "smoothness")
    for k, each in enumerate(rounds):  # 1, 2
        if not run.going:
            break
        spare = [_left(oracle, rounds[k:])] if refunds else []
        z_0, z_1 = multipliers(plan, each, *spare)
        g = oracle.gradient(run.w, "gradient", noise_multiplier=z_0)  # 3
        run.hear(g, oracle.plan.query("gradient").with_noise(z_0))
        t = 0  # 4
        while t < each.steps and (norm := l2_norm(g)) >= each.threshold:  # 5
            before = run.w
            run.move(run.w - min(each.length / norm, longest) * g)  # 6, 9
            t += 1  # 7
            if not run.going:
                break
            if t < each.steps:  # 8
                g = g + oracle.difference(run.w, before, "difference", noise_multiplier=z_1)
    if not rounds:
        run.finish("returned its start: the theorem promises nothing better at these sizes")
    elif run.going:
        run.finish(f"ended all {len(rounds)} rounds after {run.step} steps")


def _left(oracle: Oracle, rounds: list[Round]) -> float:
    """Return the remaining budget, in units of the planned budget of the rounds; at least 1."""
    budget = oracle.plan.query("gradient").budget or 0.0
    planned = sum(each.shares[0] + (each.steps - 1) * each.shares[1] for each in rounds)
    return max(1.0, (1 - float(oracle.ledger.share(budget))) / planned)
