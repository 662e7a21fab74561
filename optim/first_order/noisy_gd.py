"""Noisy gradient descent: every step asks all records (Wang, Ye and Xu 2017, Algorithm 3).

The baseline that other optimizers are measured against: no sampling, one query, fixed noise.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, noisy_gd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((2_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Logistic(X, y, fit_intercept=False)
>>> constants = calibrate.Constants(lipschitz=1.0, smoothness=0.25, gap=np.log(2))
>>> plan = calibrate.noisy_gd(constants, n=2_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = noisy_gd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9)
True
>>> bool(result.epsilon(1e-6) <= 1.0), result.complete
(True, True)
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run, planned, step_size
from dpcal.optim.first_order.descent import projected_descent
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result

__all__ = ["noisy_gd"]

OUTPUTS = ("last", "random")


@keeps_ledger
def noisy_gd(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    learning_rate: float | None = None,
    initial: ArrayLike | None = None,
    output: str = "last",
    radius: float = math.inf,
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    noise: str = "gaussian",
) -> Result:
    """Minimise an objective by noisy gradient descent, spending a plan.

    Step t: clip every record's gradient at w_t to norm C, sum, add Gaussian noise of standard
    deviation ``noise_multiplier * C``, divide by n, add the regulariser's gradient, and move
    against it by the learning rate.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it.
    plan
        A plan for ``"noisy_gd"``, as :func:`dpcal.calibrate.plans.noisy_gd` makes it.
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
        ``"last"`` returns the last iterate, which is best as a rule, and about which the theorem on
        losses that are not convex says nothing; ``"random"`` one of w_0, ..., w_{T-1}, uniformly,
        whose mean squared gradient norm is what the theorem bounds.
    radius
        Radius > 0 of a ball around the origin that every iterate is projected onto; infinite for
        none.
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
        If iterates overflow, or a record's gradient is not finite, the run stops with a
        ``RuntimeWarning``, incomplete, at the iterate before.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective, or an argument is out of range.

    References
    ----------
    Wang, Ye and Xu 2017, Differentially private empirical risk minimization revisited: faster and
    more general, Algorithm 3 (gradient descent on non-convex losses).
    """
    (query,) = planned(plan, "noisy_gd", "gradient")
    eta = step_size(plan, objective, learning_rate)
    _validate.choice(OUTPUTS, output=output)
    oracle = oracle_of(objective, plan, seed, store, noise, store_every)
    run = Run(
        oracle,
        steps=query.count,
        initial=initial,
        radius=radius,
        callback=callback,
        callback_every=callback_every,
    )
    drawn = int(oracle.public.integers(query.count)) if output == "random" else query.count
    rates = np.full(query.count, eta)
    picked = projected_descent(run, query.name, rates, until=drawn)
    projected_descent(run, query.name, rates)
    return run.result(picked if output == "random" else None)
