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

import csv
import io
import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal._internal.columns import columns
from dpcal.calibrate.persons import unit_of
from dpcal.optim import Ledger, Result
from dpcal.optim.boundary.choices import PrivateChoices, PrivateTotals
from dpcal.optim.budget import Budget, prepaid
from dpcal.optim.result import Trace
from dpcal.report import document_of, sentences, write
from dpcal.tables.booking import booked, checked_book, opened_book
from dpcal.tables.reading import polars, source_of
from dpcal.tables.releasing.estimates import (
    CONFIDENCE,
    Noisy,
    cuts_around,
    estimates,
    labels_of,
    quantile_estimates,
)
from dpcal.tables.releasing.planning import (
    GROUPS,
    Asked,
    Total,
    open_axes,
    planned,
    steps_of,
    tree_of,
)
from dpcal.tables.releasing.reading import Rows, size_of
from dpcal.tables.releasing.statistics import Statistic
from dpcal.tables.schema import Schema, schema_of
from dpcal.tables.scores import print_warnings, warn_before

__all__ = ["Release", "release"]

_SHOWN = {"statistic", "share", "value", "standard_error", "low", "high"}
COVERED = "every number in the section 'release', and all of them together"


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
        text = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        table = csv.DictWriter(text, names, lineterminator="\n")
        table.writeheader()
        table.writerows(self.rows)
        write(Path(folder), self.document, files={"release.csv": text.getvalue()}, force=force)
        return Path(folder)

    def __str__(self) -> str:
        return "\n".join([*_lines(self.rows), "", self._claim()])

    def _claim(self) -> str:
        privacy, plan = self.document["privacy"], self.result.plan
        return (
            f"epsilon {self.result.epsilon(plan.delta):.4g} at delta {plan.delta:g} for "
            f"{privacy['unit']}, {privacy['neighboring_relation']}; intervals of confidence "
            f"{CONFIDENCE:.0%}"
        )


def release(
    table: Any,
    schema: Schema | Mapping[str, Any] | str | Path,
    statistics: Sequence[str],
    *,
    epsilon: float,
    delta: float,
    by: str | None = None,
    where: str | None = None,
    find_groups: bool = False,
    n: int | None = None,
    group_size: int | None = None,
    budget: str | Path | None = None,
) -> Release:
    """Release statistics of a table, with noise solved for all of them together.

    Parameters
    ----------
    table
        A polars or pandas data frame, a mapping from names to columns, a list of rows as mappings,
        or the path of a file.
    schema
        Types, ranges and categories of the columns: a :class:`dpcal.tables.Schema`, its JSON
        values, or a TOML file, which 'dpcal schema FILE' drafts. Numbers are clamped to their
        ranges.
    statistics
        ``"count"`` or ``"count age > 65"``, ``"sum stay"``, ``"mean stay"``, ``"variance stay"``,
        ``"histogram department, sex"`` or ``"histogram age:20"``, ``"quantile bp 0.1 0.5 0.9"``.
        Each can end in ``where CONDITION`` and ``by AXES``.
    epsilon
        Target epsilon > 0 of all statistics together.
    delta
        Delta of the target, in (0, 1).
    by
        Groups of all statistics: columns, separated by commas. NAME:PARTS splits the range of a
        number into equal parts.
    where
        Rows that count: comparisons with and, or, not, in.
    find_groups
        Find the groups of a column in ``by`` that the schema does not describe: all groups with
        enough rows.
    n
        Public number of rows, for a claim under add-or-remove-one (default: the schema's, or read,
        for one under replace-special).
    group_size
        Largest number of rows of one person (default: the schema's).
    budget
        Budget book that pays for the release; a release that does not fit is refused. The total of
        a new book is the release's epsilon and delta.

    Returns
    -------
    Release
        Values with standard errors and confidence intervals; ``frame()`` is a data frame, and
        ``save(folder)`` writes files that ``dpcal verify`` checks.

    Raises
    ------
    ValueError
        If an argument is out of range, or a cell does not match the schema.
    BudgetExceeded
        If the release does not fit into the budget book.
    """
    if isinstance(statistics, str) or not statistics:
        raise ValueError(f"statistics must be a list of one or more, got {statistics!r}.")
    _check_target(epsilon, delta)
    if group_size is not None:
        validate.count(group_size=group_size)
    known = schema_of(schema, group_size)
    source = source_of(table, known.missing_values)
    n = known.n if n is None else validate.count(n=n)
    axes = [each for each in (by or "").split(",") if each.strip()]
    how: dict[str, Any] = {"by": axes, "where": where, "find": find_groups}
    asked = [Statistic.parse(text, known, **how) for text in statistics]
    found = open_axes(asked)
    if (found and not find_groups) or len(found) > 1:
        raise ValueError(
            f"groups must be those of categories that the schema lists, got {sorted(found)}: "
            "list them, or let those of one column be found (find_groups=True)."
        )
    path = checked_book(budget, source.records)
    rows = Rows.read(source, known, asked)
    plan = planned(
        asked,
        n=rows.n if n is None else n,
        public_n=n is not None,
        group_size=known.group_size,
        target=(epsilon, delta),
    )
    print_warnings(warn_before(plan.plan))
    book = opened_book(path, source.records, plan.plan)
    with Budget(book=book) if book is not None else nullcontext():
        told, ledgers, groups = _answers(plan, rows, found)
    result = _result(plan, ledgers)
    document = _document(source.path.name, known, result, told, rows, groups) | booked(path)
    return Release(rows=tuple(told), result=result, document=document)


def _check_target(epsilon: float, delta: float) -> None:
    """Refuse a target that no release meets."""
    validate.positive(epsilon=epsilon)
    if delta == 0:
        raise ValueError(
            "delta must be a number in (0, 1), got 0: released numbers have the law of their "
            "noise up to a probability of 2^-101 each, so no release is pure. Choose 1e-20: "
            "where Laplace noise is the smaller one, it is that of delta=0."
        )
    validate.probability(delta=delta)


def _answers(
    asked: Asked, rows: Rows, found: set[str]
) -> tuple[list[dict[str, Any]], list[Ledger], dict[str, list[Any]]]:
    """Return the rows of the release, the ledgers, and the groups that were found.

    The whole plan is paid before anything is read for it. A query that follows an answer depends on
    the records through this answer only.
    """
    plan, ledgers = asked.plan, []
    groups: dict[str, list[Any]] = {}
    with prepaid(plan):
        for name in found:
            part = replace(plan, queries=(plan.query(GROUPS),))
            choices = PrivateChoices(rows.cells[name], part, known=rows.known[name])
            groups[name] = choices.labels(GROUPS).tolist()
            ledgers.append(choices.ledger)
            rows.with_groups(name, groups[name])
        sizes = {name: len(labels) for name, labels in groups.items()}
        trees = {tree_of(each): each for each in asked.statistics if each.kind == "quantile"}
        points, cuts = {}, {}
        if trees:
            lines = np.column_stack([rows.lines(each, sizes) for each in trees.values()])
            part = replace(plan, queries=tuple(plan.query(name) for name in trees))
            choices = PrivateChoices(lines, part)
            for place, (name, statistic) in enumerate(trees.items()):
                points[name] = _points(choices, place, name, statistic, sizes)
                cuts[name] = cuts_around(points[name], statistic.range)
            ledgers.append(choices.ledger)
        cells = {}
        for name, total in asked.totals.items():
            if total.what == "ranks":
                cells[name] = rows.ranks(total, sizes, cuts[tree_of(total.statistic)])
            else:
                cells[name] = rows.cells_of(total, sizes)
        totals = PrivateTotals(replace(plan, queries=tuple(map(plan.query, cells))), cells)
        released = {name: Noisy(totals.totals(name), plan.query(name)) for name in cells}
        ledgers.append(totals.ledger)
    told = [
        row
        for statistic in asked.statistics
        for row in _told(statistic, asked, released, (points, cuts), groups)
    ]
    return told, ledgers, groups


def _points(
    choices: PrivateChoices,
    column: int,
    query: str,
    statistic: Statistic,
    sizes: Mapping[str, int],
) -> NDArray[np.float64]:
    """Return quantiles of each cell, shape (cells, shares), drawn over a tree of choices."""
    wanted = statistic.shares
    count = math.prod(size_of(axis, sizes) for axis in statistic.axes)
    low, high = statistic.range
    found = np.full((count, len(wanted)), np.nan)
    parts = [(0, len(wanted), 0.0, 1.0)]
    ends = np.stack([2.0 * np.arange(count), 2.0 * np.arange(count) + 1], axis=1)
    for _ in range(steps_of(statistic)):
        parts = [each for each in parts if each[0] < each[1]]
        if not parts or not count:
            break
        middles = [(first + last) // 2 for first, last, _, _ in parts]
        edges, shares = [], []
        for cell in range(count):
            for (first, last, below, above), middle in zip(parts, middles, strict=True):
                left = found[cell, first - 1] if first else ends[cell, 0]
                right = found[cell, last] if last < len(wanted) else ends[cell, 1]
                edges += [left, right]
                share = (wanted[middle] - below) / (above - below)
                shares += [min(max(share, 1e-6), 1 - 1e-6), np.nan]
        # An interval with equal ends has one point only.
        drawn = choices.quantiles(column, edges, query, shares[:-1])[::2].reshape(count, -1)
        found[:, middles] = drawn
        parts = [
            part
            for (first, last, below, above), middle in zip(parts, middles, strict=True)
            for part in (
                (first, middle, below, wanted[middle]),
                (middle + 1, last, wanted[middle], above),
            )
        ]
    places = np.clip((found - ends[:, :1] - 2e-6) / (1 - 4e-6), 0.0, 1.0)
    return np.asarray(low + places * (high - low))


def _told(
    statistic: Statistic,
    asked: Asked,
    released: Mapping[str, Noisy],
    drawn: tuple[Mapping[str, NDArray[np.float64]], Mapping[str, NDArray[np.float64]]],
    groups: Mapping[str, Sequence[Any]],
) -> list[dict[str, Any]]:
    """Return the rows of one statistic."""
    names = [f"group {axis.name}" if axis.name in _SHOWN else axis.name for axis in statistic.axes]
    labels, shares = labels_of(statistic.axes, groups), [{"share": s} for s in statistic.shares]
    if statistic.kind == "quantile":
        points, cuts = (each[tree_of(statistic)] for each in drawn)
        ranks = released[Total("ranks", statistic).name]
        cells = quantile_estimates(statistic, points, cuts, ranks)
    else:
        shares, cells = (
            [{}],
            [[each] for each in estimates(statistic, asked, released, len(labels))],
        )
    return [
        {"statistic": statistic.title, **dict(zip(names, own, strict=True)), **share, **vars(each)}
        for own, line in zip(labels, cells, strict=True)
        for share, each in zip(shares, line, strict=True)
    ]


def _result(asked: Asked, ledgers: Sequence[Ledger]) -> Result:
    plan = asked.plan
    entries = [entry for ledger in ledgers for entry in ledger.entries]
    ledger, empty = Ledger(plan.n, plan.neighboring_relation, entries=entries), np.empty(0)
    result = Result(
        w=empty,
        trace=Trace(step=empty.astype(np.int64), norm=empty, distance=empty),
        ledger=ledger,
        plan=plan,
        complete=True,
        early=ledger.answers < sum(query.count for query in plan.queries),
        message="released all statistics",
        noise="discrete",
    )
    result.verify()
    return result


def _document(
    name: str,
    schema: Schema,
    result: Result,
    told: Sequence[Mapping[str, Any]],
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
    statistics = [dict(row) for row in told]
    released = {"confidence": CONFIDENCE, "groups_found": dict(groups), "statistics": statistics}
    return document | {"data": about, "release": released}


def _lines(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return rows as lines of a table, with digits that the noise leaves."""
    table = [["statistic", "group", "value", "standard error", "interval"]]
    for row in rows:
        digits, value, error = _digits(row), row["value"], row["standard_error"]
        share = f" at {row['share']:g}" if "share" in row else ""
        cells = [
            row["statistic"] + share,
            ", ".join(str(row[key]) for key in row if key not in _SHOWN),
        ]
        cells.append("-" if value is None else f"{value:.{digits}f}")
        cells.append("-" if error is None else f"{error:.2g}")
        table.append([*cells, f"[{row['low']:.{digits}f}, {row['high']:.{digits}f}]"])
    return columns(table)


def _digits(row: Mapping[str, Any]) -> int:
    """Return how many digits behind the point the width of an interval leaves."""
    width = row["high"] - row["low"]
    if not 0 < width < 1e300:
        return 0
    return int(min(12, max(0, 2 - np.floor(np.log10(width)))))
