"""Sto-SPIDER and Ada-DP-SPIDER: what minimax methods are compared with where Phi is known.

Both follow the gradient of a function itself by estimates that are refreshed now and then, and kept
by differences in between. Sto-SPIDER refreshes every q steps; Ada-DP-SPIDER when the iterate has
drifted by ``eta^2 sum ||v||^2 >= kappa_d``, as often as its plan pays for.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import FromGradients, sto_spider
>>> targets = np.random.default_rng(0).uniform(-1, 1, (2_000, 2)) + [0.5, -0.5]
>>> problem = FromGradients(lambda w, rows: w - targets[rows], n=2_000, dimension=2)
>>> plan = calibrate.sto_spider(calibrate.Constants(lipschitz=3.0, smoothness=1.0), n=2_000,
...     dimension=2, epsilon=4.0, delta=1e-5, steps=40)
>>> result = sto_spider(problem, plan, seed=0)
>>> bool(np.abs(result.x - [0.5, -0.5]).max() < 0.3)
True
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

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
from dpcal.optim.minimax.sets import Everywhere
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.objectives.base import Objective

__all__ = ["ada_dp_spider", "sto_spider"]


@keeps_ledger
def sto_spider(
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
) -> MinimaxResult:
    """Minimise by Sto-SPIDER, spending a plan.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it.
    plan
        A plan for ``"sto_spider"``, as :func:`dpcal.calibrate.sto_spider` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh
        entropy. A seed that others know voids the privacy claim.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    callback, callback_every
        Called with a :class:`dpcal.optim.Progress` every so many steps, a whole number >= 1 (a
        hundredth of the run when omitted), and after the last; a true answer stops the run, which
        then costs all that was planned.
    store, store_every
        Path of a file that holds the run, a secret, and steps >= 1 of a transaction of it; see
        :mod:`dpcal.optim.boundary.store`.
    noise
        ``"gaussian"``, in floating point; or ``"discrete"``: exact sums, and discrete Gaussian
        noise from cryptographic bits, at the same price and slower.

    Returns
    -------
    MinimaxResult
        Whose ``x`` is all of its parameters.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective.

    References
    ----------
    Liu, Ganesh, Oh and Thakurta 2023, as Xu et al. 2026 run it.
    """
    checked_plan(plan, "sto_spider")
    period = _validate.count(period=plan.parameters.get("period"))
    run = _run(
        objective, plan, (seed, store, noise, store_every), initial, callback, callback_every
    )
    return _followed(run, plan, lambda step, drift: step % period == 0)


@keeps_ledger
def ada_dp_spider(
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
) -> MinimaxResult:
    """Minimise by Ada-DP-SPIDER, spending a plan.

    A step refreshes the estimate if the squared moves since the last refresh have summed up to the
    plan's ``drift`` and a refresh is left; it asks for a difference otherwise. The run costs its
    whole plan, for how often it refreshed is one of its outputs.

    Parameters
    ----------
    objective
        What to minimise, over the plan's number of records, or an oracle about it.
    plan
        A plan for ``"ada_dp_spider"``, as :func:`dpcal.calibrate.ada_dp_spider` makes it.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh entropy
        from the operating system. A seed that others know voids the privacy claim.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    callback, callback_every
        Called with a :class:`dpcal.optim.Progress` every so many steps, a whole number >= 1 (a
        hundredth of the run when omitted), and after the last; a true answer stops the run, which
        then costs all that was planned.
    store, store_every
        Path of a file that holds the run, a secret, and steps >= 1 of a transaction of it; see
        :mod:`dpcal.optim.boundary.store`.
    noise
        ``"gaussian"``, in floating point; or ``"discrete"``: exact sums, and discrete Gaussian
        noise from cryptographic bits, at the same price and slower.

    Returns
    -------
    MinimaxResult
        Whose ``x`` is all of its parameters.

    Raises
    ------
    ValueError
        If the plan is not for this optimizer or objective.

    References
    ----------
    Tao et al. 2025, as Xu et al. 2026 run it.
    """
    checked_plan(plan, "ada_dp_spider")
    allowed = _validate.positive(drift=plan.parameters.get("drift"))
    run = _run(
        objective, plan, (seed, store, noise, store_every), initial, callback, callback_every
    )
    oracle = run.oracle

    def due(step: int, drift: float) -> bool:
        return step == 0 or (drift >= allowed and oracle.remaining("refresh") > 0)

    # How many refreshes there were is a function of what was released.
    return dataclasses.replace(_followed(run, plan, due), early=True)


def _run(
    objective: Objective | Oracle,
    plan: Plan,
    kept: tuple[Seed, Store, str, int],
    initial: ArrayLike | None,
    callback: Callback | None,
    callback_every: int | None,
) -> Run:
    oracle = oracle_of(objective, plan, *kept)
    start, _ = Blocks(dimensions=(oracle.dimension, 0), dual_set=Everywhere()).start(initial, None)
    return Run(
        oracle,
        steps=_validate.count(steps=plan.parameters.get("steps")),
        initial=start,
        callback=callback,
        callback_every=callback_every,
    )


def _followed(run: Run, plan: Plan, due: Callable[[int, float], bool]) -> MinimaxResult:
    """Take every step: refresh where it is due, else add a difference, and descend."""
    eta = _validate.positive(learning_rate=plan.parameters.get("learning_rate"))
    v, before, drift, norms = np.zeros_like(run.w), run.w, 0.0, []
    while run.going:
        with run.answering():
            w = run.w
            if due(run.step, drift):
                v, drift = run.oracle.gradient(w, "refresh"), 0.0
            else:
                v = v + run.oracle.difference(w, before, "difference")
            before = w
            norms.append(l2_norm(v))
            drift += (eta * norms[-1]) ** 2
            run.move(w - eta * v)
    return MinimaxResult.of(run.result(), primal_dimension=len(run.w), estimate_norms=norms)
