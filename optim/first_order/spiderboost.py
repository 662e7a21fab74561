"""Private SpiderBoost (Arora et al. 2022, Algorithm 1): gradients now and then, else differences.

Differences between near iterates are small, so their noise is small too, and sums of them follow
the gradient at less cost than fresh gradients would.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Sigmoid, spiderboost
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((5_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Sigmoid(X, y, fit_intercept=False)
>>> constants = calibrate.Constants(lipschitz=0.3, smoothness=0.16, gap=0.25)
>>> plan = calibrate.spiderboost(constants, n=5_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = spiderboost(objective, plan, seed=0)
>>> bool(np.linalg.norm(objective.gradient(result.w)) < plan.parameters["accuracy"])
True
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9)
True
>>> bool(result.epsilon(1e-6) <= 1.0), result.complete
(True, True)
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.fused import FEWEST, Estimate, Loops
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run, planned, step_size
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

__all__ = ["spiderboost"]

OUTPUTS = ("last", "random", "smallest-norm")


@keeps_ledger
def spiderboost(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    learning_rate: float | None = None,
    initial: ArrayLike | None = None,
    output: str = "last",
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    noise: str = "gaussian",
) -> Result:
    """Find a stationary point by Private SpiderBoost, spending a plan.

    Step t: if t is a multiple of the period, V_t is a noisy gradient at w_t over all records.
    Otherwise it is V_{t-1} plus a noisy difference of gradients, at w_t minus at w_{t-1}, over a
    fresh sample, whose clipping and noise are in proportion to ``min(L1 ||w_t - w_{t-1}||, 2 C)``.
    Then ``w_{t+1} = w_t - eta V_t``.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it. With a
        kernel the steps are fused.
    plan
        A plan for ``"spiderboost"``, as :func:`dpcal.calibrate.plans.spiderboost` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    learning_rate
        A number > 0, and below 2 / l2, beyond which the regulariser alone makes iterates diverge.
        When omitted, the plan's eta, shortened to eta / (1 + eta l2): the plan knows how smooth the
        loss is, and the regulariser adds l2 to it.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    output
        ``"last"`` returns the last iterate, which is best as a rule, and about which the plan's
        ``accuracy`` says nothing; ``"random"`` one of w_0, ..., w_{T-1}, uniformly, whose mean
        squared gradient norm is what ``accuracy`` bounds; ``"smallest-norm"`` the one whose
        estimate V_t was shortest. Estimates are released anyway, so that choosing costs nothing.
    callback
        Called with a :class:`dpcal.optim.Progress` every ``callback_every`` steps and after
        the last; a true answer stops the run, which then costs all that was planned.
    callback_every
        A whole number >= 1; a hundredth of the run when omitted. It does not change the iterates.
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
        If iterates overflow, or a record's gradient is not finite, the run stops with a
        ``RuntimeWarning``, incomplete, at a finite iterate.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective, or an argument is out of range.

    References
    ----------
    Arora, Bassily, Gonzalez, Guzman, Menart and Ullah 2022, Faster rates of convergence to
    stationary points in differentially private optimization, Algorithm 1 (with steps 0 to T - 1,
    since the answer of step T would not be used).
    """
    kinds = ("gradient", "gradient difference")[: len(plan.queries)]
    refresh, *rest = planned(plan, "spiderboost", *kinds)
    steps = refresh.count + sum(query.count for query in rest)
    period = _period(plan, steps, refresh.count)
    eta = step_size(plan, objective, learning_rate)
    _validate.choice(OUTPUTS, output=output)
    oracle = oracle_of(objective, plan, seed, store, noise, store_every)
    run = Run(
        oracle,
        steps=steps,
        initial=initial,
        callback=callback,
        callback_every=callback_every,
    )
    drawn = int(oracle.public.integers(steps)) if output == "random" else steps
    difference = rest[0].name if rest else None
    # Every estimate's norm is needed for the smallest one.
    fused = output != "smallest-norm" and Loops.fit(oracle, *(q.name for q in plan.queries))
    estimate, picked, shortest = Estimate.start(run.w), run.w, math.inf
    while run.going:
        if run.step == drawn:
            picked = run.w
        until = min(run.until_noted, drawn - run.step if run.step < drawn else steps)
        if fused and until >= FEWEST:
            before = estimate.step
            estimate = Loops(oracle).follow(
                estimate, refresh.name, difference, steps=until, period=period, learning_rate=eta
            )
            if estimate.step - before < until:
                run.overflow(estimate.w, estimate.step - before)
            else:
                run.jump(estimate.w, until)
        else:
            with run.answering():
                estimate = _step(oracle, estimate, refresh.name, difference, period, eta)
                run.move(estimate.w)
        norm = l2_norm(estimate.gradient)
        if output == "smallest-norm" and norm < shortest:
            picked, shortest = estimate.previous, norm
    return run.result(None if output == "last" else picked)


def _step(
    oracle: Oracle,
    estimate: Estimate,
    refresh: str,
    difference: str | None,
    period: int,
    learning_rate: float,
) -> Estimate:
    """Take one step, as the paper writes it."""
    w = estimate.w
    if estimate.step % period == 0 or difference is None:
        gradient = oracle.gradient(w, refresh)
    else:
        gradient = estimate.gradient + oracle.difference(w, estimate.previous, difference)
    return Estimate(
        w=w - learning_rate * gradient, previous=w, gradient=gradient, step=estimate.step + 1
    )


def _period(plan: Plan, steps: int, refreshes: int) -> int:
    """Return the plan's period, if its queries agree with it."""
    period = _validate.count(period=plan.parameters.get("period"))
    if -(-steps // period) != refreshes:
        raise ValueError(
            f"plan.parameters['period'] must agree with the plan's queries, {refreshes} fresh "
            f"gradients in {steps} steps, got {period}."
        )
    return period
