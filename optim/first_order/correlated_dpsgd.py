"""DP-SGD with correlated noise: each step takes back part of the noise of the steps before.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.optim import Logistic, correlated_dpsgd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((1_000, 3))
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> plan = calibrate.correlated_dpsgd(LambdaCGD(50, 0.8), n=1_000, batch_size=1_000, sampler="full",
...                                   epsilon=1.0, delta=1e-6)
>>> objective = Logistic(X, y)
>>> result = correlated_dpsgd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9)
True
>>> bool(result.epsilon(1e-6) <= plan.epsilon), result.message
(True, 'took all 50 planned steps')
"""

from __future__ import annotations

import dataclasses
import math

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run, planned
from dpcal.optim.first_order.descent import projected_descent
from dpcal.optim.first_order.dpsgd import default_learning_rate
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

__all__ = ["correlated_dpsgd"]


@keeps_ledger
def correlated_dpsgd(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    learning_rate: float | None = None,
    initial: ArrayLike | None = None,
    radius: float = math.inf,
    center: ArrayLike | None = None,
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    noise: str = "gaussian",
) -> Result:
    """Minimise an objective by DP-SGD with correlated noise, spending a plan.

    Step t: sample records, clip each one's gradient to norm C, sum, add ``noise_multiplier * C``
    times row t of C^-1 z, divide by the expected sample size, add the regulariser's gradient, move
    against it by the learning rate, and project onto the ball.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it.
    plan
        A plan for ``"correlated_dpsgd"``, as :func:`dpcal.calibrate.correlated_dpsgd` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    learning_rate
        A number > 0. When omitted, the plan's, or else that of
        :func:`dpcal.optim.first_order.dpsgd.default_learning_rate` for independent noise that would
        add up to as much.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    radius
        Radius > 0 of a ball that every iterate is projected onto; infinite for none.
    center
        Centre of the ball, shape (dimension,); where the run starts when omitted.
    callback
        Called with a :class:`dpcal.optim.Progress` every ``callback_every`` steps and after
        the last; a true answer stops the run, which then costs all that was planned.
    callback_every
        A whole number >= 1; a hundredth of the run when omitted.
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
        Its epsilon is that of the whole plan, also if the run stopped early. If iterates overflow,
        or a record's gradient is not finite, it stops with a ``RuntimeWarning``, incomplete, at the
        iterate before.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective, or an argument is out of range.

    References
    ----------
    Denisov et al. 2022, Algorithm 1; with one-step cancellation and projection, Wang et al. 2026,
    Algorithm 1.
    """
    (query,) = planned(plan, "correlated_dpsgd", "gradient")
    if query.correlation is None:
        raise ValueError(f"plan must have a query with correlated noise, got {query}.")
    chosen = plan.parameters.get("learning_rate") if learning_rate is None else learning_rate
    if chosen is None:
        strategy = query.correlation.strategy
        alike = query.noise_multiplier * strategy.max_error() / math.sqrt(strategy.steps)
        chosen = default_learning_rate(
            dimension=objective.dimension,
            query=dataclasses.replace(query, noise_multiplier=alike),
            n=plan.n,
            radius=radius,
        )
    eta = _validate.positive(learning_rate=chosen)
    oracle = oracle_of(objective, plan, seed, store, noise, store_every)
    run = Run(
        oracle,
        steps=query.count,
        initial=initial,
        radius=radius,
        center=initial if center is None else center,
        callback=callback,
        callback_every=callback_every,
    )
    projected_descent(run, query.name, np.full(query.count, eta))
    return run.result()
