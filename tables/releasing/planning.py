"""Noise of each statistic. One scale is solved for all statistics together.

A statistic is a function of totals over cells (:mod:`dpcal.optim.boundary.choices`), which others
may share: the mean of a column and its variance need one sum, and all means by clinic one count.
Each total has a share of the budget, and its noise multiplier is the scale over the root of the
share; the scale is solved for the exact cost of all answers. Noise is Gaussian or Laplace,
whichever is smaller: Laplace for few answers, Gaussian for many.

>>> from dpcal.tables.schema import Schema
>>> schema = Schema.from_dict({"columns": {"age": {"type": "number", "range": [0, 100]}}})
>>> asked = [Statistic.parse(each, schema) for each in ("mean age", "variance age")]
>>> target = (1.0, 1e-6)
>>> made = planned(asked, n=100, public_n=False, group_size=1, target=target)
>>> [(query.name, query.max_norm) for query in made.plan.queries]
[('sum of age', 50.0), ('squares of age', 1.0)]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

from dpcal.accountants.events import DpEvent
from dpcal.calibrate import Plan, Query, noise_multiplier
from dpcal.calibrate.plan import compose
from dpcal.calibrate.query import LAPLACE_TOTAL
from dpcal.errors import UnsupportedEvent
from dpcal.optim.linear_fit import query_on_all
from dpcal.tables import Column
from dpcal.tables.releasing.statistics import Statistic

__all__ = ["GROUPS", "Asked", "Total", "open_axes", "planned", "steps_of", "told", "tree_of"]

# Parts of a statistic's share of the budget: for its sum, its sum of squares and its count, or for
# its quantiles and the check of their ranks.
_MEAN = {"sum": 2 / 3, "count": 1 / 3}
_VARIANCE = {"sum": 0.3, "squares": 0.5, "count": 0.2}
_QUANTILE = {"tree": 0.7, "ranks": 0.3}

# Name of the query that finds groups, and the part of delta for a shown group of one record.
GROUPS = "groups"
_SURPRISE = 0.1


@dataclass(frozen=True)
class Total:
    """A sum over cells.

    Parameters
    ----------
    what
        ``"count"`` of rows, ``"sum"`` of numbers less the middle of their range, ``"plain"`` sum,
        sum of ``"squares"`` (of 2 s^2 - 1, where s is the number scaled to [-1, 1]), or
        ``"ranks"``: counts between cuts around quantiles.
    statistic
        A statistic that uses the total. It defines the rows that count, their cells, and the
        column.
    """

    what: str
    statistic: Statistic

    @property
    def name(self) -> str:
        """Name of its query; totals of one name are one total."""
        asked = self.statistic
        about = [] if asked.column is None or self._shared else [asked.column.name]
        rows = [] if asked.where is None else [f"where {asked.where.text}"]
        axes = [f"{axis.name}:{axis.parts}" if axis.parts else axis.name for axis in asked.axes]
        groups = ["by " + ", ".join(axes)] if axes else []
        of = ["of", *about] if about else []
        shares = [" ".join(map(str, asked.shares))] if self.what == "ranks" else []
        return " ".join([self.what, *of, *shares, *rows, *groups])

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that a row must have to count."""
        found = self.statistic.columns
        return found[:-1] if self._shared and self.statistic.column is not None else found

    @property
    def _shared(self) -> bool:
        """Whether it is a count that does not depend on the column, which every row has."""
        column = self.statistic.column
        return self.what == "count" and column is not None and _always(column)

    @property
    def max_norm(self) -> float:
        """The most that a row adds to a cell."""
        if self.what not in ("sum", "plain"):
            return 1.0
        low, high = self.statistic.range
        return (high / 2 - low / 2) if self.what == "sum" else max(abs(low), abs(high))


@dataclass(frozen=True, eq=False)
class Asked:
    """Statistics, the totals that they are made of, and the plan that answers them.

    Parameters
    ----------
    statistics
        Requested statistics.
    totals
        By name.
    plan
        A query for each total, and one for the quantiles of each column.
    known
        Whether the number of rows is published, so that means of all rows need no count.
    """

    statistics: tuple[Statistic, ...]
    totals: Mapping[str, Total]
    plan: Plan
    known: bool


def _always(column: Column) -> bool:
    """Return whether every row has a number there."""
    return column.missing in ("refuse", "impute")


def told(statistic: Statistic, known: bool) -> bool:
    """Return whether all rows count for a statistic, in one cell, and their number is published."""
    column = statistic.column
    given = column is None or _always(column)
    return known and given and not statistic.axes and statistic.where is None


def totals_of(statistic: Statistic, known: bool) -> dict[Total, float]:
    """Return the totals of a statistic, each with its part of the statistic's share."""
    all_rows = told(statistic, known)
    if statistic.kind in ("count", "histogram"):
        return {} if all_rows else {Total("count", statistic): 1.0}
    if statistic.kind == "quantile":
        return {Total("ranks", statistic): _QUANTILE["ranks"]}
    if statistic.kind == "sum":
        return {Total("sum" if all_rows else "plain", statistic): 1.0}
    parts = dict(_MEAN if statistic.kind == "mean" else _VARIANCE)
    if all_rows:
        del parts["count"]
    whole = math.fsum(parts.values())
    return {Total(what, statistic): part / whole for what, part in parts.items()}


def tree_of(statistic: Statistic) -> str:
    """Return the name of the query of a statistic's quantiles."""
    return Total("ranks", statistic).name.replace("ranks", "quantiles", 1)


def steps_of(statistic: Statistic) -> int:
    """Return how many answers find the quantiles of a statistic, one a level of a tree."""
    return len(statistic.shares).bit_length()


def _reach(shares: Sequence[float], below: float = 0.0, above: float = 1.0) -> float:
    """Return the most that a row moves a score by, over a tree of quantiles at these shares."""
    if not shares:
        return 0.0
    middle = len(shares) // 2
    share = (shares[middle] - below) / (above - below)
    # Scores use rounded shares: 1e-6 covers the rounding.
    return max(
        max(share, 1 - share) + 1e-6,
        _reach(shares[:middle], below, shares[middle]),
        _reach(shares[middle + 1 :], shares[middle], above),
    )


def planned(
    statistics: Sequence[Statistic],
    *,
    n: int,
    public_n: bool,
    group_size: int,
    target: tuple[float, float],
) -> Asked:
    """Return the plan that answers statistics with the smallest noise.

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
    relation, known = "add-or-remove-one" if public_n else "replace-special", not public_n
    shares: dict[str, tuple[Total, float]] = {}
    for total, part in (pair for each in statistics for pair in totals_of(each, known).items()):
        first, share = shares.get(total.name, (total, 0.0))
        shares[total.name] = first, max(part, share)
    if not shares:
        raise UnsupportedEvent(
            f"statistics must include more than the number of rows, which is published: n = {n}."
        )
    trees = {tree_of(each): each for each in statistics if each.kind == "quantile"}
    found, surprise = bool(open_axes(statistics)), delta * _SURPRISE / group_size

    def queries(noise: str, scale: float) -> tuple[Query, ...]:
        made = [_total(noise, scale, *each, group_size) for each in shares.values()]
        made += [_tree(noise, scale, name, each) for name, each in trees.items()]
        return (*made, *([_groups(scale, surprise, group_size)] if found else []))

    def event(scale: float) -> DpEvent:
        return compose(((query, query.count) for query in queries("total", scale)), n, relation)

    scale = noise_multiplier(event, epsilon=epsilon, delta=delta, neighboring_relation=relation)
    chosen = queries("total", scale * (1 + 1e-12))
    if not found:
        # Laplace noise is accounted for as pure: largest losses add up to epsilon, and delta is not
        # used.
        losses = math.fsum(share for _, share in shares.values()) + len(trees) * _QUANTILE["tree"]
        laplace = queries(LAPLACE_TOTAL, group_size * losses / epsilon * (1 + 1e-12))
        chosen = min(laplace, chosen, key=_size)
    plan = Plan(
        optimizer="release",
        n=n,
        queries=chosen,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=relation,
        parameters={"statistics": "; ".join(each.words for each in statistics)},
        public_n=public_n,
    )
    totals = {name: total for name, (total, _) in shares.items()}
    return Asked(tuple(statistics), totals, plan, known)


def _total(noise: str, scale: float, total: Total, share: float, group_size: int) -> Query:
    """Return the query of a total, with noise of a scale.

    Shares are of the sum of inverse squares of Gaussian noise multipliers, or of the sum of losses
    where noise is Laplace.
    """
    multiplier = scale / share ** (1.0 if noise == LAPLACE_TOTAL else 0.5)
    return query_on_all(total.name, total.max_norm, multiplier, kind=noise, group_size=group_size)


def _tree(noise: str, scale: float, name: str, statistic: Statistic) -> Query:
    """Return the query of quantiles, for a plan whose totals have this noise."""
    levels, (wide, power) = (
        steps_of(statistic),
        (2.0, 1.0) if noise == LAPLACE_TOTAL else (1.0, 0.5),
    )
    multiplier = wide * scale * (levels / _QUANTILE["tree"]) ** power
    return query_on_all(name, _reach(statistic.shares), multiplier, levels, kind="selection")


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


def open_axes(statistics: Iterable[Statistic]) -> set[str]:
    """Return the names of columns with groups to find."""
    return {axis.name for each in statistics for axis in each.axes if axis.open}
