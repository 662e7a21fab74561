"""Linear models in few dimensions (Arora et al. 2022, Algorithm 4): embed, optimize, lift.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Sigmoid, jl_glm, spiderboost
>>> rng = np.random.default_rng(0)
>>> span, _ = np.linalg.qr(rng.standard_normal((2_000, 10)))
>>> X = rng.standard_normal((5_000, 10)) @ span.T  # of rank 10 in 2,000 dimensions
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ span[:, 0] > 0
>>> objective = Sigmoid(X, y, fit_intercept=False, classes=[0, 1])
>>> constants = calibrate.Constants(lipschitz=0.3, smoothness=0.155, gap=0.25)
>>> target = {"n": 5_000, "dimension": 2_000, "epsilon": 1.0, "delta": 1e-6}
>>> result = jl_glm(objective, calibrate.jl_glm(constants, **target), seed=0)
>>> direct = spiderboost(objective, calibrate.spiderboost(constants, **target), seed=0)
>>> result.w.shape
(2000,)
>>> lifted, plain = (np.linalg.norm(objective.gradient(w)) for w in (result.w, direct.w))
>>> bool(lifted < plain)
True
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.jl_glm import INNER, MATRICES
from dpcal.optim.driver import Callback, Progress, check_callback
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.linear import Linear
from dpcal.optim.registry import Optimizer, check_plan, run
from dpcal.optim.result import Result

_STREAM = 0x4A4C


@Optimizer(
    summary="another optimizer on randomly embedded records",
    problem="linear models, convex or not; population risk",
    needs=("lipschitz or max_norm", "smoothness", "gap"),
    rate="n^(-1/2) + min((sqrt(rank) / (n epsilon))^(2/3), (n epsilon)^(-2/5))",
    measure="gradient norm",
    theorem="Arora et al. 2022, Theorem 6 and Corollary 1",
    options=(
        *("max_norm", "inner", "embedding_dimension", "rank"),
        *("matrix", "matrix_seed", "group_size"),
    ),
).describes
def jl_glm(
    objective: Objective,
    plan: Plan,
    *,
    callback: Callback | None = None,
    **options: Any,
) -> Result:
    """Optimize a linear model on embedded records, spending a plan, and lift the solution.

    Each record x becomes ``A x``, scaled down to norm ``sqrt(2) ||x||`` if it is longer; A is a
    public random matrix. The function returns ``w = A^T u`` for the inner optimizer's solution u:
    on records that were not scaled, w has the scores that u has on embedded records.

    Parameters
    ----------
    objective
        A linear model without an l2 regulariser, over the plan's number of records.
    plan
        As :func:`dpcal.calibrate.jl_glm` makes it, with the seed of the matrix.
    callback
        Called by the inner optimizer, with lifted iterates.
    **options
        Other keywords of :func:`dpcal.optim.run`, and the inner optimizer's own.

    Returns
    -------
    Result
        It has the lifted solution; the trace is the inner optimizer's.
    """
    check_plan(plan, "jl_glm")
    if not isinstance(objective, Linear):
        raise TypeError(
            f"objective must be a linear model, got {type(objective).__name__}, whose loss does "
            "not depend on scores alone."
        )
    check_callback(callback)
    name = validate.choice(tuple(INNER), inner=plan.parameters.get("inner"))
    A = embedding(plan, objective.dimension)
    small = objective if A is None else objective.embedded(A)

    def lifted(u: Vector) -> Vector:
        return u if A is None else np.asarray(u @ A)

    def follow(progress: Progress) -> object:
        assert callback is not None
        return callback(dataclasses.replace(progress, w=lifted(progress.w)))

    result: Result = run(
        small,
        dataclasses.replace(plan, optimizer=name),
        callback=None if callback is None else follow,
        **options,
    )
    return dataclasses.replace(result, w=lifted(result.w), plan=plan)


def embedding(plan: Plan, dimension: int) -> Vector | None:
    """Return the plan's matrix A, shape (k, dimension); None if k is the dimension or more.

    Examples
    --------
    >>> from dpcal import calibrate
    >>> constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    >>> plan = calibrate.jl_glm(constants, n=1_000, dimension=500, epsilon=1.0, delta=1e-6,
    ...                         embedding_dimension=64, matrix="sparse")
    >>> A = embedding(plan, 500)
    >>> A.shape, {int(count) for count in (A != 0).sum(axis=0)}
    ((64, 500), {8})
    >>> np.linalg.norm(A, axis=0).round(12).tolist() == [1.0] * 500
    True
    """
    k = validate.count(embedding_dimension=plan.parameters.get("embedding_dimension"))
    kind = validate.choice(MATRICES, matrix=plan.parameters.get("matrix"))
    if k >= dimension:
        return None
    # The matrix has its own stream, independent of other streams with an equal seed.
    rng = np.random.default_rng([_STREAM, int(plan.parameters.get("matrix_seed") or 0)])
    if kind == "gaussian":
        return rng.standard_normal((k, dimension)) / math.sqrt(k)
    filled = math.ceil(math.sqrt(k))
    A = np.zeros((k, dimension))
    rows = rng.random((dimension, k)).argpartition(filled - 1, axis=1)[:, :filled]
    signs = rng.choice([-1.0, 1.0], size=(dimension, filled))
    np.put_along_axis(A.T, rows, signs / math.sqrt(filled), axis=1)
    return A
