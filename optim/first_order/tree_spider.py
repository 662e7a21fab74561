"""Tree-based Private Spider (Arora et al. 2022, Algorithm 2): one pass, differences along a tree.

The iterates of a round are the leaves of a binary tree, in depth-first order. A right child adds
the difference of gradients between its iterate and its parent's, on fresh records; a left child has
its parent's estimate. So a leaf's estimate is a sum of few answers, for any number of steps.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Sigmoid, tree_spider
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((100_000, 3))
>>> X /= np.linalg.norm(X, axis=1, keepdims=True)
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> objective = Sigmoid(X, y, fit_intercept=False, classes=[0, 1])
>>> constants = calibrate.Constants(lipschitz=0.3, smoothness=0.16, gap=0.25)
>>> plan = calibrate.tree_spider(constants, n=100_000, dimension=3, epsilon=1.0, delta=1e-6)
>>> result = tree_spider(objective, plan, seed=0)
>>> before, after = (np.linalg.norm(objective.gradient(w)) for w in (np.zeros(3), result.w))
>>> bool(after < before / 12)
True
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal.optim.boundary.oracle import Oracle
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Vector, algorithm, planned, read


@Optimizer(
    summary="one pass in disjoint batches, differences along a binary tree",
    problem="smooth, convex or not; population risk",
    needs=("lipschitz or max_norm", "smoothness", "gap"),
    rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(1/2)",
    measure="gradient norm",
    theorem="Arora et al. 2022, Theorems 3 and 4 (corrected)",
    relations=("replace-one", "replace-special"),
    options=("max_norm", "failure_probability"),
).describes
@algorithm()
def tree_spider(objective: Problem, plan: Plan, begin: Begin) -> Vector:
    """Find a stationary point of population risk in one pass, spending a plan.

    Steps have a fixed length where the estimate is longer than the plan's threshold. Below it they
    are in proportion to the estimate, so that the run reads all records that its budget covers.

    Returns
    -------
    Result
        Its ``w`` is the leaf with the shortest estimate, at which the theorem's bound holds too:
        some estimate is no longer than the threshold. It costs one Gaussian release.

    References
    ----------
    Arora et al. 2022, Algorithm 2, which ends at the first leaf below the threshold; here it goes
    on. The step of a round's last leaf is carried over to the next.
    """
    depth, rounds = _shape(plan)
    length, threshold = read(plan, validate.positive, "step_length", "threshold")
    run = begin(rounds * 2**depth)
    picked, shortest = run.w, math.inf
    path: list[tuple[Vector, Vector]] = []
    while run.going:
        with run:
            path = _leaf(run.oracle, path, run.w, run.step % 2**depth, depth)
            w, estimate = path[-1]
            norm = l2_norm(estimate)
            if norm < shortest:
                picked, shortest = w, norm
            run.move(w - (length / max(norm, threshold)) * estimate)
    return picked


def _leaf(
    oracle: Oracle,
    path: list[tuple[Vector, Vector]],
    w: Vector,
    leaf: int,
    depth: int,
) -> list[tuple[Vector, Vector]]:
    """Return pairs (iterate, estimate) from the root to a leaf, given the last leaf's pairs.

    Leaf k > 0 follows leaf k - 1 through a right child at depth D minus the number of zeros that k
    ends in; all nodes below it are left children.
    """
    if leaf == 0:
        return [(w, oracle.gradient(w, "root"))] * (depth + 1)
    right = depth - ((leaf & -leaf).bit_length() - 1)
    parent, estimate = path[right - 1]
    node = (w, estimate + oracle.difference(w, parent, f"depth {right}"))
    return path[:right] + [node] * (depth + 1 - right)


def _shape(plan: Plan) -> tuple[int, int]:
    """Return depth and rounds of a plan; refuse a plan without the queries of a tree."""
    differences = ("gradient difference",) * (len(plan.queries) - 1)
    root, *nodes = planned(plan, "gradient", *differences)
    for j, query in enumerate(nodes, start=1):
        if (query.name, query.count) != (f"depth {j}", root.count * 2 ** (j - 1)):
            raise ValueError(
                f"plan must have a query 'depth {j}' of count {root.count * 2 ** (j - 1)}, got "
                f"{query.name!r} of count {query.count}."
            )
    if root.name != "root" or not nodes:
        raise ValueError(
            "plan must have queries 'root' and 'depth 1', got "
            f"{[query.name for query in plan.queries]}."
        )
    return len(nodes), root.count
