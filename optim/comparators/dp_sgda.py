"""DP-SGDA: x descends and y climbs along one noisy release a step.

    for t = 0, ..., T - 1:
        (g_x, g_y) = noisy mean of the sampled records' clipped pairs of gradients at (x_t, y_t)
        x_{t+1} = x_t - eta_x g_x;   y_{t+1} = P_Y(y_t + eta_y g_y)

It has no escape: started at a saddle point of the value function, it stays but for its noise.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import dp_sgda
>>> from dpcal.optim.minimax import ToySaddle
>>> problem = ToySaddle(n=2_000, seed=0)
>>> plan = calibrate.dp_sgda(problem.constants, n=2_000, dimensions=(2, 2), epsilon=4.0, delta=1e-5,
...                          steps=200, batch_size=200, learning_rate=0.05, ascent_rate=0.2)
>>> result = dp_sgda(problem, plan, seed=0, initial=[0.3, 0.3])
>>> bool(np.abs(result.x - [0.0, 1.0]).max() < 0.2), result.status
(True, 'not_applicable')
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.access import Store, keeps_ledger, oracle_of
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback, Run
from dpcal.optim.minimax.blocks import Blocks, checked_plan
from dpcal.optim.minimax.result import MinimaxResult
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.objectives.arrays import Vector, l2_norm
from dpcal.optim.objectives.base import Objective

__all__ = ["dp_sgda"]

AVERAGING = ("none", "tail")


@keeps_ledger
def dp_sgda(
    problem: Objective | Oracle,
    plan: Plan,
    *,
    seed: Seed = None,
    initial: ArrayLike | None = None,
    initial_dual: ArrayLike | None = None,
    dual_set: ConvexSet | None = None,
    averaging: str = "none",
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    store_every: int = 1,
    noise: str = "gaussian",
) -> MinimaxResult:
    """Descend in x and ascend in y by DP-SGDA, spending a plan.

    Parameters
    ----------
    problem
        A :class:`dpcal.optim.minimax.MinimaxObjective` over the plan's number of records, or an
        oracle about one.
    plan
        A plan for ``"dp_sgda"``, as :func:`dpcal.calibrate.dp_sgda` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    initial, initial_dual
        Where x and y start, shapes (d1,) and (d2,); the origin when omitted. They must not depend
        on the records.
    dual_set
        Where y lives; the problem's own when omitted.
    averaging
        ``"tail"`` returns the mean of the last half of the iterates, ``"none"`` the last one; both
        are as private.
    callback, callback_every
        Called with a :class:`dpcal.optim.Progress`, whose ``w`` is (x, y), every so many steps, a
        whole number >= 1 (a hundredth of the run when omitted), and after the last; a true answer
        stops the run, which then costs all that was planned.
    store, store_every
        Path of a file that holds the run, a secret, and steps >= 1 of a transaction of it; see
        :mod:`dpcal.optim.boundary.store`.
    noise
        ``"gaussian"``, in floating point; or ``"discrete"``: exact sums, and discrete Gaussian
        noise from cryptographic bits, at the same price and slower.

    Returns
    -------
    MinimaxResult
        With the status ``"not_applicable"``: there are no escape phases.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or problem, or an argument is out of range.

    References
    ----------
    Yang, Hu, Wang and Ying 2022, Differentially private SGDA for minimax problems, Algorithm 1.
    """
    checked_plan(plan, "dp_sgda")
    _validate.choice(AVERAGING, averaging=averaging)
    oracle = oracle_of(problem, plan, seed, store, noise, store_every)
    blocks = Blocks.of(problem, plan, dual_set)
    descent, ascent = (
        _validate.positive(**{name: plan.parameters.get(name)})
        for name in ("learning_rate", "ascent_rate")
    )
    steps = plan.query("gradient").count
    run = Run(
        oracle,
        steps=steps,
        initial=np.concatenate(blocks.start(initial, initial_dual)),
        callback=callback,
        callback_every=callback_every,
    )
    d1, norms = blocks.dimensions[0], []
    mean, averaged = np.zeros_like(run.w), 0
    while run.going:
        with run.answering():
            w = run.w
            gradient = oracle.gradient(w, "gradient")
            norms.append(l2_norm(gradient[:d1]))
            x = w[:d1] - descent * gradient[:d1]
            y = blocks.dual_set.project(w[d1:] + ascent * gradient[d1:])
            run.move(np.concatenate([x, y]))
            if 2 * run.step > steps:
                averaged += 1
                mean = mean + (run.w - mean) / averaged
    chosen: Vector | None = mean if averaging == "tail" and averaged else None
    return MinimaxResult.of(run.result(chosen), primal_dimension=d1, estimate_norms=norms)
