"""KL Spider: noisy gradients followed by their noisy differences (Menart et al. 2024, Algorithm 1).

For losses with the Kurdyka-Lojasiewicz condition and 1 <= kappa <= 2, such as strongly convex ones
and those that meet the Polyak-Lojasiewicz condition, convex or not.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, kl_spider
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((20_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Logistic(X, y, l2=0.1, fit_intercept=False)
>>> constants = calibrate.Constants(
...     lipschitz=1.0, smoothness=0.25, strong_convexity=0.1, gap=np.log(2))
>>> plan = calibrate.kl_spider(constants, n=20_000, dimension=3, epsilon=1.0, delta=1e-6, l2=0.1)
>>> result = kl_spider(objective, plan, seed=0)
>>> excess = objective.loss(result.w) - objective.loss(objective.minimize())
>>> bool(excess < plan.parameters["accuracy"] < 0.01)
True
>>> bool(result.epsilon(1e-6) <= 1.0)
True
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.kl_spider import Round, multipliers, schedule
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run, planned
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

__all__ = ["kl_spider"]


@keeps_ledger
def kl_spider(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    initial: ArrayLike | None = None,
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    noise: str = "gaussian",
) -> Result:
    """Minimise an objective by KL Spider, spending a plan.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it.
    plan
        A plan for ``"kl_spider"``, as :func:`dpcal.calibrate.plans.kl_spider` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records, and the plan's gap must hold there.
    callback
        Called with a :class:`dpcal.optim.Progress` every ``callback_every`` steps and after
        the last; a true answer stops the run, which then costs all that was planned.
    callback_every
        A whole number >= 1; a hundredth of the largest number of steps when omitted.
    store
        Path of a file that holds the run, so that it can be started again after its process has
        ended: see :mod:`dpcal.optim.boundary.store`. It is a secret, and steps are not fused then.
    store_every
        Steps of a transaction of the file, at least 1. More are faster; a run that is killed makes
        as many again, of which nothing had left it.
    noise
        ``"gaussian"``, in floating point; or ``"discrete"``: exact sums, and discrete Gaussian
        noise from cryptographic bits, at the same price and slower.

    Returns
    -------
    Result
        Rounds end when they reach their targets, so that steps may be fewer than planned; the run
        costs its whole plan.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective, or an argument is out of range.

    References
    ----------
    Menart, Ullah, Arora, Bassily and Guzman 2024, Differentially private non-convex optimization
    under the KL condition with optimal rates, Algorithm 1. A round starts where the one before
    ended, at the iterate whose gradient was tested; it releases one difference less than it makes
    steps; and noise is such that the transcript costs the budget exactly.
    """
    kinds = ("gradient", "gradient difference")[: len(plan.queries)]
    planned(plan, "kl_spider", *kinds)
    rounds = schedule(plan)
    oracle = oracle_of(objective, plan, seed, store, noise, store_every)
    run = Run(
        oracle,
        steps=max(1, sum(each.steps for each in rounds)),
        initial=initial,
        callback=callback,
        callback_every=callback_every,
    )
    refunds = plan.parameters["preset"] == "practical"
    with run.answering():
        for k, each in enumerate(rounds):  # 8
            if not run.going:
                break
            z_0, z_1 = multipliers(plan, each)  # 9 to 13
            if refunds:
                z_0, z_1 = multipliers(plan, each, _left(oracle, rounds[k:]))
            g = oracle.gradient(run.w, "gradient", noise_multiplier=z_0)  # 14
            t = 0  # 15
            while t < each.steps and (norm := l2_norm(g)) >= each.threshold:  # 16
                before = run.w
                run.move(run.w - each.length * g / norm)  # 17
                t += 1  # 18
                if not run.going:
                    break
                if t < each.steps:  # 19
                    g = g + oracle.difference(  # 20
                        run.w, before, "difference", noise_multiplier=z_1
                    )
    if not rounds:
        run.finish("returned its start: the theorem promises nothing better at these sizes")
    elif run.going:
        run.finish(f"ended all {len(rounds)} rounds after {run.step} steps")
    return run.result()  # 23


def _left(oracle: Oracle, rounds: list[Round]) -> float:
    """By which factor more of the budget is left than these rounds were planned to take."""
    budget = oracle.plan.query("gradient").budget or 0.0
    planned = sum(each.shares[0] + (each.steps - 1) * each.shares[1] for each in rounds)
    return max(1.0, (1 - float(oracle.ledger.share(budget))) / planned)
