r"""From a target to a linear model in few dimensions: how many, whatever the dimension d is?

A linear model's loss depends only on scores ``<w, x>``. A random k x d matrix A, drawn without a
look at the data, keeps norms and inner products of few vectors about as they are (Johnson and
Lindenstrauss 1984), so an optimizer in k dimensions, on records ``A x``, does in d dimensions the
same as its lifted solution ``A^T u``: noise grows with k, and k need not grow with d.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=0.3, smoothness=0.155, gap=0.25)
>>> target = {"n": 5_000, "epsilon": 1.0, "delta": 1e-6}
>>> wide = jl_glm(constants, dimension=4_000, **target)
>>> wider = jl_glm(constants, dimension=400_000, **target)
>>> wide.parameters["embedding_dimension"] == wider.parameters["embedding_dimension"]
True
>>> 0.999 < wide.price() <= 1.0
True

With k the optimizer's error g(k) grows, and the embedding's error falls. With C the bound on
gradients, k minimises ``g(k) + C sqrt(1 / k)``, or the value that ``rank`` of the records' span
allows.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any

from dpcal._internal import validate
from dpcal._internal.roots import minimum
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import Given, builder, single_release
from dpcal.calibrate.plans.noisy_gd import noisy_gd
from dpcal.calibrate.plans.recursive_regularization import recursive_regularization
from dpcal.calibrate.plans.spiderboost import spiderboost
from dpcal.calibrate.plans.tree_spider import tree_spider

_BUILDERS = (spiderboost, noisy_gd, recursive_regularization, tree_spider)
INNER: Mapping[str, Callable[..., Plan]] = {build.__name__: build for build in _BUILDERS}
MATRICES = ("gaussian", "sparse")
_SECTIONS = 80


@builder(None)
def jl_glm(
    given: Given,
    *,
    inner: str = "spiderboost",
    embedding_dimension: int | None = None,
    rank: int | None = None,
    matrix: str = "gaussian",
    matrix_seed: int = 0,
    **options: Any,
) -> Plan:
    """Return the plan of another optimizer on embedded records that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``lipschitz`` L0, ``smoothness`` L1 and, as the inner optimizer needs it, ``gap`` of a
        linear model's loss. Embedded records are at most sqrt(2) times as long, so the inner
        optimizer is given sqrt(2) L0 and 2 L1.
    epsilon, delta
        The inner optimizer gets all of it: embedding costs nothing, because it treats each record
        by itself.
    inner
        ``"spiderboost"``, ``"noisy_gd"``, ``"recursive_regularization"`` or ``"tree_spider"``.
    embedding_dimension
        k >= 1; by the module's rule when omitted. From d on records are left as they are.
    rank
        Public bound >= 1 on the dimension of the records' span: k need not be above ``rank log(2 n
        / delta)``. It must not be computed from the records.
    matrix
        ``"gaussian"``: entries N(0, 1/k). ``"sparse"``: ceil(sqrt(k)) entries of equal size and
        random sign in each column (Kane and Nelson 2014), cheaper where k is large; the theorem is
        about the first.
    matrix_seed
        Seed >= 0 of the matrix, which is public.
    neighboring_relation
        One that the inner optimizer allows: ``"add-or-remove-one"`` when omitted, or
        ``"replace-one"`` for optimizers with disjoint batches.
    **options
        Further keywords of the inner plan builder.

    Returns
    -------
    Plan
        With the inner plan's queries and parameters, and ``inner``, ``embedding_dimension``,
        ``matrix``, ``matrix_seed``.

    References
    ----------
    Arora, Bassily, Gonzalez, Guzman, Menart and Ullah 2022, Algorithm 4 and Theorem 6 (with records
    clipped after embedding, see the errata).
    """
    validate.choice(tuple(INNER), inner=inner)
    validate.choice(MATRICES, matrix=matrix)
    validate.choice(("row",), clipped=given.target.clipped)  # rows are embedded, not sums of them
    constants, n, d = given.constants, given.n, given.d
    C = given.known("lipschitz", "max_norm", options.get("max_norm"))
    if isinstance(matrix_seed, bool) or not isinstance(matrix_seed, int) or matrix_seed < 0:
        raise ValueError(f"matrix_seed must be a whole number >= 0, got {matrix_seed!r}.")
    relation = given.target.relation or _RELATIONS.get(inner, "add-or-remove-one")
    target = given.target._replace(relation=relation)
    a = single_release(*target) / n

    def error(k: float) -> float:
        return growth(inner, given, C, math.sqrt(k) * a) + C / math.sqrt(k)

    if embedding_dimension is None:
        embedding_dimension = least(error, given, rank)
    k = min(validate.count(embedding_dimension=embedding_dimension), d)
    inside = embedded(constants) if k < d else constants
    sizes = {"n": n, "dimension": k, "group_size": target.group_size}
    plan = INNER[inner](inside, **sizes, **target.asked, **options)
    return wrapped(plan, inner, k, {"matrix": matrix, "matrix_seed": matrix_seed})


def wrapped(plan: Plan, inner: str, k: int, told: dict[str, Parameter]) -> Plan:
    """Return the plan of an inner optimizer in k dimensions, with its matrix."""
    kept = {name: value for name, value in plan.parameters.items() if name not in _OWN}
    parameters = {**kept, "inner": inner, "embedding_dimension": k, **told}
    return dataclasses.replace(plan, optimizer="jl_glm", parameters=parameters)


def embedded(constants: Constants) -> Constants:
    """Return the constants of embedded records, which are at most sqrt(2) times as long."""
    longer = math.sqrt(2) * constants.lipschitz
    return dataclasses.replace(constants, lipschitz=longer, smoothness=2 * constants.smoothness)


# These inner optimizers have disjoint batches, and use these relations unless another is chosen.
_RELATIONS = {"recursive_regularization": "replace-one", "tree_spider": "replace-one"}
# Parameters of the inner plan that are left out: its theorem's error is not the lifted solution's.
_OWN = ("accuracy", "accuracy_kind", "vacuous", "informative_from_n")


def growth(inner: str, given: Given, C: float, a: float) -> float:
    """Error of an inner optimizer at relative noise a = sqrt(k) z / n, by the leading terms."""
    if inner == "recursive_regularization":
        return C * a
    scale = given.known("gap", "gap") * given.known("smoothness", "smoothness")
    if inner == "spiderboost":
        return float(math.sqrt(6) * (scale * C * a**2) ** (1 / 3))
    return float((8 * scale) ** 0.25 * math.sqrt(C * a))


def least(error: Callable[[float], float], given: Given, rank: int | None) -> int:
    """Return the k in [1, d] of the smallest error, or fewer that are enough for records of a rank.

    Errors fall and then rise.
    """
    best = minimum(lambda x: error(math.exp(x)), 0.0, math.log(given.d), sections=_SECTIONS)
    k = max(1, min(int(given.d), round(math.exp(best))))
    if rank is None:
        return k
    enough = validate.count(rank=rank) * math.log(2 * given.n / given.target.delta)
    return min(k, math.ceil(enough))
