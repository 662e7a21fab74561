"""Release of statistics of a table: plan, cost, records and report.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> table = {"age": rng.uniform(20, 80, 5000), "clinic": rng.choice(["north", "south"], 5000)}
>>> schema = {"columns": {"age": {"type": "number", "range": [0, 100]},
...                       "clinic": {"type": "category", "categories": ["north", "south"]}}}
>>> asked = ["count age > 65", "mean age by clinic"]
>>> from dpcal import release
>>> found = release(table, schema, asked, epsilon=1.0, delta=1e-6)
>>> [(row["statistic"], row.get("clinic"), round(row["value"] / 10)) for row in found.rows[1:]]
[('mean of age', 'north', 5), ('mean of age', 'south', 5)]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal._internal.columns import columns
from dpcal.accountants.events import DpEvent
from dpcal.calibrate import Plan, Query, noise_multiplier
from dpcal.calibrate.persons import unit_of
from dpcal.calibrate.plan import compose
from dpcal.calibrate.query import LAPLACE_TOTAL
from dpcal.errors import UnsupportedEvent
from dpcal.optim import Ledger, Result
from dpcal.optim.boundary.choices import PrivateChoices, PrivateTotals
from dpcal.optim.budget import Budget, prepaid
from dpcal.optim.linear_fit import query_on_all
from dpcal.report import document_of, sentences, write
from dpcal.tables.booking import booked, checked_book, opened_book
from dpcal.tables.reading import polars, source_of
from dpcal.tables.records import Rows
from dpcal.tables.releasing.quantiles import Quantile
from dpcal.tables.releasing.statistics import CONFIDENCE, SHOWN, Noisy, Statistic, Total
from dpcal.tables.releasing.words import parse
from dpcal.tables.schema import Schema, schema_of
from dpcal.tables.scores import print_warnings, warn_before

COVERED = "every number in the section 'release', and all of them together"

GROUPS = "groups"
# Part of delta for a shown group of one record.
_SURPRISE = 0.1


@dataclass(frozen=True, kw_only=True, eq=False)
class Release:
    """Released statistics of a table, with their errors.

    Attributes
    ----------
    rows
        One statistic of one cell each: ``statistic``, the groups by column, ``share`` of a
        quantile, ``value``, ``standard_error`` of the noise, and ``low`` and ``high``, an interval
        that holds the table's own statistic with probability 95 percent. A value is None where the
        noise hides it, and a standard error is None where it is unknown.
    result
        Plan, ledger and cost: ``result.epsilon(delta)``.
    document
        The content of ``report.json``.
    """

    rows: tuple[Mapping[str, Any], ...]
    result: Result
    document: Mapping[str, Any]

    def frame(self) -> Any:
        """Return the rows as a polars data frame."""
        return polars().DataFrame(list(self.rows), infer_schema_length=None)

    def save(self, folder: str | Path, *, force: bool = False) -> Path:
        """Write a report that ``dpcal verify`` checks, its statement, and ``release.csv``.

        Parameters
        ----------
        folder
            Folder of the report; its parent must exist.
        force
            Whether an earlier report there is replaced.
        """
        table = {"release.csv": self.frame().write_csv()}
        write(Path(folder), self.document, files=table, force=force)
        return Path(folder)

    def __str__(self) -> str:
        privacy, plan = self.document["privacy"], self.result.plan
        claim = (
            f"epsilon {self.result.epsilon(plan.delta):.4g} at delta {plan.delta:g} for "
            f"{privacy['unit']}, {privacy['neighboring_relation']}; intervals of confidence "
            f"{CONFIDENCE:.0%}"
        )
        return "\n".join([*_lines(self.rows), "", claim])


def released(
    table: Any,
    schema: Schema | Mapping[str, Any] | str | Path,
    statistics: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    n: int | None,
    group_size: int | None,
    budget: str | Path | None,
    find_groups: bool,
    **which: str | None,
) -> Release:
    """Release statistics of a table: see :func:`dpcal.release`."""
    if isinstance(statistics, str) or not statistics:
        raise ValueError(f"statistics must be a list of one or more, got {statistics!r}.")
    validate.positive(epsilon=epsilon)
    if delta == 0:
        raise ValueError(
            "delta must be a number in (0, 1), got 0: released numbers have the law of their "
            "noise up to a probability of 2^-101 each, so no release is pure. Choose 1e-20: "
            "where Laplace noise is the smaller one, it is that of delta=0."
        )
    validate.probability(delta=delta)
    if group_size is not None:
        validate.count(group_size=group_size)
    known = schema_of(schema, group_size)
    source = source_of(table, known.missing_values)
    n = known.n if n is None else validate.count(n=n)
    asked = [parse(text, known, find=find_groups, **which) for text in statistics]
    found = _open(asked)
    if (found and not find_groups) or len(found) > 1:
        raise ValueError(
            f"groups must be those of categories that the schema lists, got {sorted(found)}: "
            "list them, or let those of one column be found (find_groups=True)."
        )
    path = checked_book(budget, source.records)
    used = {name for each in asked for name in each.columns}
    read = {each.name: each for each in known.columns if each.name in used}
    read |= {axis.name: axis.column for each in asked for axis in each.groups.axes}
    rows = Rows(source, known, read.values())
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "public_n": n is not None}
    plan = planned(asked, n=rows.n if n is None else n, group_size=known.group_size, **target)
    print_warnings(warn_before(plan))
    book = opened_book(path, source.records, plan)
    with Budget(book=book) if book is not None else nullcontext():
        answers, result, groups = _answers(asked, plan, rows)
    document = _document(source.path.name, known, result, answers, rows, groups) | booked(path)
    return Release(rows=tuple(answers), result=result, document=document)


def _open(asked: Sequence[Statistic]) -> set[str]:
    """Return the names of columns with groups to find."""
    axes = (axis for each in asked for axis in each.groups.axes)
    return {axis.name for axis in axes if axis.labels is None}


def _trees(asked: Sequence[Statistic]) -> dict[str, Quantile]:
    """Return the statistics with quantiles, by the name of their query."""
    return {each.tree: each for each in asked if isinstance(each, Quantile)}


def planned(
    statistics: Sequence[Statistic],
    *,
    n: int,
    public_n: bool,
    group_size: int,
    epsilon: float,
    delta: float,
) -> Plan:
    """Return the plan that answers statistics with the smallest noise.

    It has a query for each total, one for the quantiles of each column, and one for groups that are
    to be found: a group of one person rarely passes its threshold. Each total has a share of the
    budget: of the sum of inverse squares of Gaussian noise multipliers, or of the sum of losses
    where noise is Laplace. The scale of all noise is solved for the exact cost of all answers.
    Noise is Gaussian or Laplace, whichever is smaller: Laplace for few answers, Gaussian for many.

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
    epsilon, delta
        The target.

    Raises
    ------
    UnsupportedEvent
        If nothing is left to be answered with noise.
    """
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
    trees, found = _trees(statistics), bool(_open(statistics))
    surprise = NormalDist().inv_cdf(1 - delta * _SURPRISE / group_size) if found else 0.0

    def queries(noise: str, scale: float) -> tuple[Query, ...]:
        power, wide = (1.0, 2.0) if noise == LAPLACE_TOTAL else (0.5, 1.0)
        how: dict[str, Any] = {"kind": noise, "group_size": group_size}
        made = [
            query_on_all(total.name, total.bound, scale / share**power, **how)
            for total, share in shares.values()
        ]
        for name, tree in trees.items():
            multiplier = wide * scale * (tree.levels / tree.tree_part) ** power
            made.append(query_on_all(name, tree.reach, multiplier, tree.levels, kind="selection"))
        if found:
            threshold = group_size + scale * surprise * (1 + 1e-9)
            made.append(query_on_all(GROUPS, 1.0, scale, kind="labels", threshold=threshold))
        return tuple(made)

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


def _size(queries: Sequence[Query]) -> float:
    """Return the sum of the logarithms of the sizes of noises."""
    return math.fsum(
        math.log(query.noise_multiplier) + 0.5 * math.log(2) * (query.kind == LAPLACE_TOTAL)
        for query in queries
    )


def _answers(
    asked: Sequence[Statistic], plan: Plan, rows: Rows
) -> tuple[list[dict[str, Any]], Result, dict[str, list[Any]]]:
    """Return the rows of the release, its plan with all ledgers, and the groups that were found.

    The whole plan is paid before anything is read for it. A query that follows an answer depends on
    the records through this answer only.
    """
    ledgers, groups, published = [], {}, not plan.public_n

    def part(names: Iterable[str]) -> Plan:
        return replace(plan, queries=tuple(map(plan.query, names)))

    with prepaid(plan):
        for name in _open(asked):
            choices = PrivateChoices(rows.cells[name], part([GROUPS]), known=rows.known[name])
            groups[name] = choices.labels(GROUPS).tolist()
            ledgers.append(choices.ledger)
        asked = [each.with_found(groups) for each in asked]
        trees = _trees(asked)
        if trees:
            lines = np.column_stack([each.line(rows) for each in trees.values()])
            choices = PrivateChoices(lines, part(trees))
            drawn = {
                name: replace(each, points=each.drawn(choices, place))
                for place, (name, each) in enumerate(trees.items())
            }
            asked = [drawn[each.tree] if isinstance(each, Quantile) else each for each in asked]
            ledgers.append(choices.ledger)
        totals = {total.name: total for each in asked for total in each.totals(published)}
        answered = PrivateTotals(part(totals), {n: each.cells(rows) for n, each in totals.items()})
        noisy = {name: Noisy(answered.totals(name), plan.query(name)) for name in totals}
        ledgers.append(answered.ledger)
    answers = [row for each in asked for row in each.rows(noisy, plan.n, published)]
    entries = [entry for ledger in ledgers for entry in ledger.entries]
    ledger = Ledger(plan.n, plan.neighboring_relation, entries=entries)
    result = Result(
        w=np.empty(0),
        ledger=ledger,
        plan=plan,
        complete=True,
        early=ledger.answers < sum(query.count for query in plan.queries),
        message="released all statistics",
        noise="discrete",
    )
    result.verify()
    return answers, result, groups


def _document(
    name: str,
    schema: Schema,
    result: Result,
    answers: Sequence[Mapping[str, Any]],
    rows: Rows,
    groups: Mapping[str, Sequence[Any]],
) -> dict[str, Any]:
    """Return the content of ``report.json``."""
    plan, alone = result.plan, schema.person is not None and schema.group_size == 1
    unit = "one person, who has at most one row of the table" if alone else None
    unit = unit or unit_of(schema.group_size)
    document = document_of(result, unit=unit, outside=sentences("release.txt", {}))
    document["privacy"] |= {"covered": COVERED}
    sizes = {"public_rows": plan.n} if plan.public_n else {"rows": rows.n}
    if schema.person is not None and not plan.public_n:
        sizes["beyond_group_size"] = rows.beyond
    read = [*schema.copied(), *([] if plan.public_n else ["number of records"])]
    about = {"name": name, **sizes, "schema": schema.to_dict(), "read_from_data": read}
    statistics = [dict(row) for row in answers]
    released = {"confidence": CONFIDENCE, "groups_found": dict(groups), "statistics": statistics}
    return document | {"data": about, "release": released}


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows as lines of a table, with digits that the noise leaves."""
    table = [["statistic", "group", "value", "standard error", "interval"]]
    for row in rows:
        width, value, error = row["high"] - row["low"], row["value"], row["standard_error"]
        digits = 2 - math.floor(math.log10(width)) if 0 < width < 1e300 else 0
        low, high, shown = (
            "-" if each is None else f"{each:.{min(12, max(0, digits))}f}"
            for each in (row["low"], row["high"], value)
        )
        share = f" at {row['share']:g}" if "share" in row else ""
        groups = ", ".join(str(row[key]) for key in row if key not in SHOWN)
        noise = "-" if error is None else f"{error:.2g}"
        table.append([row["statistic"] + share, groups, shown, noise, f"[{low}, {high}]"])
    return columns(table)
