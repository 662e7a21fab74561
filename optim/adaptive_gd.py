"""Adaptive gradient descent: noise in proportion to the gradient (Menart et al. 2024, Algorithm 3).

For smooth losses of which nothing else is known; where the Kurdyka-Lojasiewicz condition holds, the
excess risk falls at a rate that depends on its exponent, which the algorithm need not know.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, adaptive_gd
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((20_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Logistic(X, y, fit_intercept=False)
>>> constants = calibrate.Constants(lipschitz=1.0, smoothness=0.25)
>>> plan = calibrate.adaptive_gd(constants, n=20_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = adaptive_gd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.95)
True
>>> bool(result.epsilon(1e-6) <= 1.0)
True
"""

from __future__ import annotations

import math

from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.kl import LOST, NO_GRADIENT, NO_NORM
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.kl_problem import number
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.adaptive import AdaptiveLoops
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result
from dpcal.optim.run import Callback, Run, planned

__all__ = ["adaptive_gd"]

OUTPUTS = ("last", "smallest-norm")

_ENDS = {
    NO_NORM: "spent its budget on {} steps: the next norm costs more than is left",
    LOST: "stopped after {} steps: the gradient is lost in the noise of its norm",
    NO_GRADIENT: "spent its budget on {} steps: the next gradient costs more than is left",
}


@keeps_ledger
def adaptive_gd(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    initial: ArrayLike | None = None,
    output: str = "last",
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    noise: str = "gaussian",
) -> Result:
    """Minimise an objective by gradient descent with noise in proportion to the gradient.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it.
    plan
        A plan for ``"adaptive_gd"``, as :func:`dpcal.calibrate.plans.adaptive_gd` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    output
        ``"last"`` returns the last iterate, for a small excess risk (Theorem 4);
        ``"smallest-norm"`` the one whose noisy norm was smallest, for a small gradient (Theorem 5).
        The theorem draws it with the exponential mechanism; the noisy norms were released already,
        so that choosing by them costs nothing.
    callback
        Called with a :class:`dpcal.optim.dpsgd.Progress` every ``callback_every`` steps and after
        the last; a true answer stops the run, which then costs all that was planned.
    callback_every
        A whole number >= 1; a hundredth of the largest number of steps when omitted.
    store
        Path of a file that holds the run, so that it can be started again after its process has
        ended: see :mod:`dpcal.optim.boundary.store`. It is a secret, and steps are not fused then.
    noise
        ``"gaussian"``, in floating point; or ``"discrete"``: exact sums, and discrete Gaussian
        noise from cryptographic bits, at the same price and slower. Not together with ``store``.

    Returns
    -------
    Result
        The run ends when the gradient is lost in the norm's noise, or the budget does not pay for
        the next answer; it costs its whole plan whenever that is.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective, or an argument is out of range.

    References
    ----------
    Menart, Ullah, Arora, Bassily and Guzman 2024, Differentially private non-convex optimization
    under the KL condition with optimal rates, Algorithm 3; that noise may be chosen on the way:
    Smith and Thakurta 2022.
    """
    norm_query, query = planned(plan, "adaptive_gd", "gradient norm", "gradient")
    _validate.choice(OUTPUTS, output=output)
    z_norm, eta, shrink, quantile = (
        number(plan.parameters, name)
        for name in ("norm_multiplier", "learning_rate", "shrink", "quantile")
    )
    oracle = oracle_of(objective, plan, seed, store, noise)
    run = Run(
        oracle,
        steps=norm_query.count,
        initial=initial,
        callback=callback,
        callback_every=callback_every,
    )
    unit = plan.n / (shrink * quantile * query.max_norm)  # multiplier of a gradient per unit of N_t
    walk = _fused if AdaptiveLoops.fit(oracle, "norm", "gradient") else _walk
    best = run.w
    with run.answering():
        best = walk(oracle, run, z_norm, unit, eta)
    return run.result(best if output == "smallest-norm" else None)  # 14


def _walk(oracle: Oracle, run: Run, z_norm: float, unit: float, eta: float) -> Vector:
    """Make the steps of Algorithm 3; return the iterate of the smallest noisy norm."""
    least = oracle.plan.query("gradient").noise_multiplier
    smallest, best = math.inf, run.w  # 4
    while run.going:  # 5
        if not oracle.affords("norm", z_norm):  # 6
            run.finish(_ENDS[NO_NORM].format(run.step))
            break
        N_t = oracle.norm(run.w, "norm", noise_multiplier=z_norm)  # 7
        if N_t < smallest:  # 8
            smallest, best = N_t, run.w
        if N_t <= 0:  # 9
            run.finish(_ENDS[LOST].format(run.step))
            break
        z_t = unit * N_t  # 10
        if z_t < least or not oracle.affords("gradient", z_t):  # 11
            run.finish(_ENDS[NO_GRADIENT].format(run.step))
            break
        g_t = oracle.gradient(run.w, "gradient", noise_multiplier=z_t)  # 12
        run.move(run.w - eta * g_t)  # 13
    return best


def _fused(oracle: Oracle, run: Run, z_norm: float, unit: float, eta: float) -> Vector:
    """Make the steps of Algorithm 3 in fused loops; return what :func:`_walk` returns."""
    loops = AdaptiveLoops(oracle)
    smallest, best = math.inf, run.w
    while run.going:
        taken = loops.adapt(
            run.w,
            "norm",
            "gradient",
            steps=run.until_noted,
            norm_multiplier=z_norm,
            unit=unit,
            learning_rate=eta,
        )
        if taken.smallest < smallest:
            smallest, best = taken.smallest, taken.best
        if taken.moves:
            run.jump(taken.w, taken.moves)
        if run.going and taken.ended in _ENDS:
            run.finish(_ENDS[taken.ended].format(run.step))
    return best
