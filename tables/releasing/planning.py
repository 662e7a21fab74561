"""Noise of each statistic. One scale is solved for all statistics together.

Each total has a share of the budget, and its noise multiplier is the scale over the root of the
share; the scale is solved for the exact cost of all answers. Noise is Gaussian or Laplace,
whichever is smaller: Laplace for few answers, Gaussian for many.

>>> from dpcal.tables import Schema
>>> from dpcal.tables.releasing.words import parse
>>> schema = Schema.from_dict({"columns": {"age": {"type": "number", "range": [0, 100]}}})
>>> asked = [parse(each, schema) for each in ("mean age", "variance age")]
>>> plan = planned(asked, n=100, public_n=False, group_size=1, target=(1.0, 1e-6))
>>> [(query.name, query.max_norm) for query in plan.queries]
[('sum of age', 50.0), ('squares of age', 1.0)]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from dpcal.accountants.events import DpEvent
from dpcal.calibrate import Plan, Query, noise_multiplier
from dpcal.calibrate.plan import compose
from dpcal.calibrate.query import LAPLACE_TOTAL
from dpcal.errors import UnsupportedEvent
from dpcal.optim.linear_fit import query_on_all
from dpcal.tables.releasing.quantiles import Quantile
from dpcal.tables.releasing.statistics import Statistic, Total, open_axes

__all__ = ["GROUPS", "planned", "trees_of"]

GROUPS = "groups"
# Part of delta for a shown group of one record.
_SURPRISE = 0.1


def trees_of(statistics: Sequence[Statistic]) -> dict[str, Quantile]:
    """Return the statistics with quantiles, by the name of their query."""
    return {each.tree: each for each in statistics if isinstance(each, Quantile)}


def planned(
    statistics: Sequence[Statistic],
    *,
    n: int,
    public_n: bool,
    group_size: int,
    target: tuple[float, float],
) -> Plan:
    """Return the plan that answers statistics with the smallest noise.

    It has a query for each total, one for the quantiles of each column, and one for groups that are
    to be found.

    Parameters
    ----------
    statistics
        One or more.
    n
        Number of rows, published or public.
    public_n
        Whether n was given in public: the claim is then about an added or removed record, and
        otherwise about a zeroed-out record.
    group_size
        Largest number of rows of a person.
    target
        Epsilon and delta.

    Raises
    ------
    UnsupportedEvent
        If nothing is left to be answered with noise.
    """
    epsilon, delta = target
    relation = "add-or-remove-one" if public_n else "replace-special"
    shares: dict[str, tuple[Total, float]] = {}
    for each in statistics:
        for total, part in each.totals(published=not public_n).items():
            first, share = shares.get(total.name, (total, 0.0))
            shares[total.name] = first, max(part, share)
    if not shares:
        raise UnsupportedEvent(
            f"statistics must include more than the number of rows, which is published: n = {n}."
        )
    trees, found = trees_of(statistics), bool(open_axes(statistics))
    surprise = delta * _SURPRISE / group_size

    def queries(noise: str, scale: float) -> tuple[Query, ...]:
        made = [_total(noise, scale, *each, group_size) for each in shares.values()]
        made += [_tree(noise, scale, name, each) for name, each in trees.items()]
        return (*made, *([_groups(scale, surprise, group_size)] if found else []))

    def event(scale: float) -> DpEvent:
        return compose(((query, query.count) for query in queries("total", scale)), n, relation)

    scale = noise_multiplier(event, epsilon=epsilon, delta=delta, neighboring_relation=relation)
    chosen = queries("total", scale * (1 + 1e-12))
    if not found:
        # Laplace noise is pure: largest losses add up to epsilon, and delta is not used.
        losses = math.fsum(share for _, share in shares.values()) + len(trees) * Quantile.tree_part
        laplace = queries(LAPLACE_TOTAL, group_size * losses / epsilon * (1 + 1e-12))
        chosen = min(laplace, chosen, key=_size)
    return Plan(
        optimizer="release",
        n=n,
        queries=chosen,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=relation,
        parameters={"statistics": "; ".join(each.words for each in statistics)},
        public_n=public_n,
    )


def _total(noise: str, scale: float, total: Total, share: float, group_size: int) -> Query:
    """Return the query of a total, with noise of a scale.

    Shares are of the sum of inverse squares of Gaussian noise multipliers, or of the sum of losses
    where noise is Laplace.
    """
    multiplier = scale / share ** (1.0 if noise == LAPLACE_TOTAL else 0.5)
    return query_on_all(total.name, total.bound, multiplier, kind=noise, group_size=group_size)


def _tree(noise: str, scale: float, name: str, statistic: Quantile) -> Query:
    """Return the query of quantiles, for a plan of totals with this noise."""
    wide, power = (2.0, 1.0) if noise == LAPLACE_TOTAL else (1.0, 0.5)
    multiplier = wide * scale * (statistic.levels / statistic.tree_part) ** power
    return query_on_all(name, statistic.reach, multiplier, statistic.levels, kind="selection")


def _size(queries: Sequence[Query]) -> float:
    """Return the sum of the logarithms of the sizes of noises."""
    return math.fsum(
        math.log(query.noise_multiplier) + 0.5 * math.log(2) * (query.kind == LAPLACE_TOTAL)
        for query in queries
    )


def _groups(scale: float, surprise: float, group_size: int) -> Query:
    """Return the query that finds groups; one person's group rarely passes its threshold."""
    threshold = group_size + scale * NormalDist().inv_cdf(1 - surprise) * (1 + 1e-9)
    return query_on_all(GROUPS, 1.0, scale, kind="labels", threshold=threshold)
