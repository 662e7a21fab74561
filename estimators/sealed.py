"""How does an estimator release its last iterate alone? By a plan whose run shows nothing else.

>>> import numpy as np
>>> from dpcal.estimators import LogisticRegression
>>> X = np.random.default_rng(0).uniform(-1, 1, (2_000, 2))
>>> model = LogisticRegression(bounds=(-1, 1), classes=[False, True], l2=0.1, release="last")
>>> [(query.kind, query.count) for query in model.fit(X, X[:, 0] > 0).ledger_.entries]
[('last iterate', 1)]
"""

from __future__ import annotations

from typing import Any

from dpcal.calibrate import Constants, noisy_gd
from dpcal.estimators.base import RELATION, PrivateEstimator, Table
from dpcal.optim import Result, run

__all__ = ["RELEASES", "descend_sealed"]

# What leaves a fit beside its model: every iterate may, or none does.
RELEASES = ("all", "last")


def descend_sealed(
    model: PrivateEstimator,
    objective: Any,
    constants: Constants,
    *,
    steps: int | None,
    learning_rate: float | None = None,
    initial: Table | None = None,
) -> Result:
    """Return the result of descending to a last iterate, which a fit pays for and keeps.

    Parameters
    ----------
    model
        The estimator, whose whole target is spent.
    objective
        Convex losses of a linear model, with every parameter regularised.
    constants
        Public bounds of one record's loss; ``lipschitz`` is what gradients are clipped to.
    steps, learning_rate
        Where they were given.
    initial
        A start that was released, shape (dimension,); the origin when omitted.
    """
    epsilon, delta = model._target()
    plan = noisy_gd(
        constants,
        n=objective.n,
        dimension=objective.dimension,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=RELATION,
        group_size=model.rows_per_person,
        steps=steps,
        learning_rate=learning_rate,
        release="last",
    )
    whole = model._plan(objective.n, *plan.queries, **plan.parameters)
    with model._paid(whole):
        result: Result = run(objective, plan, seed=model._seed, initial=initial, noise=model.noise)
    model._close(whole, [result.ledger], result.w, first=initial is None, complete=result.complete)
    return result
