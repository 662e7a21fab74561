"""Statistics of a table, read from words.

>>> from dpcal.tables import Schema
>>> schema = Schema.from_toml('''
... [columns.stay]
... type = "number"
... range = [0, 30]
... [columns.clinic]
... type = "category"
... categories = ["north", "south"]
... ''')
>>> asked = parse("mean stay where stay > 1 by clinic", schema)
>>> asked.kind, asked.column.name, asked.groups.where.text
('mean', 'stay', 'stay > 1')
>>> asked.words
'mean of stay where stay > 1 by clinic'
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dpcal.tables import Column, Schema
from dpcal.tables.releasing.conditions import Condition, unquoted
from dpcal.tables.releasing.quantiles import Quantile
from dpcal.tables.releasing.statistics import (
    Axis,
    Count,
    Groups,
    Histogram,
    Mean,
    Statistic,
    Sum,
    Variance,
    ends_of,
)

__all__ = ["KINDS", "parse"]

KINDS: Mapping[str, type[Statistic]] = {
    each.kind: each for each in (Count, Sum, Mean, Variance, Histogram, Quantile)
}

_PARTS = 10
_MOST_CELLS = 10**6

_ASKED = re.compile(rf"({'|'.join(KINDS)})\b(.*)", re.DOTALL)
_PARTS_OF = re.compile(r"(?P<what>.*?)(?:\bwhere\b(?P<where>.*?))?(?:\bby\b(?P<by>.*))?", re.DOTALL)


def parse(
    text: str,
    schema: Schema,
    *,
    by: Sequence[str] = (),
    where: str | None = None,
    find: bool = False,
) -> Statistic:
    """Return a statistic as ``release`` takes it.

    Parameters
    ----------
    text
        ``count [CONDITION]``, ``sum|mean|variance NAME``, ``histogram AXIS, ...`` or ``quantile
        NAME SHARE ...``, and then ``where CONDITION`` and ``by AXIS, ...``, if any.
    schema
        Schema of the columns.
    by, where
        Axes and a condition of all statistics.
    find
        Whether an axis after ``by`` may be a column that the schema does not describe.

    Raises
    ------
    ValueError
        If it is none of these.
    """
    found = _ASKED.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"statistic must begin with {', '.join(KINDS)}, got {text!r}.")
    kind, parts = found[1], _PARTS_OF.fullmatch(found[2])
    assert parts is not None
    what = parts["what"].strip()
    axes = [_axis(each, schema, find=find) for each in [*by, *_listed(parts["by"])]]
    conditions = [each for each in (where, parts["where"]) if each and each.strip()]
    given: dict[str, Any] = {}
    if kind == "count":
        conditions += [what] if what else []
    elif kind == "histogram":
        if not what:
            raise ValueError(f"histogram needs a column, got {text!r}.")
        axes += [_axis(each, schema) for each in _listed(what)]
    else:
        given = _numeric(kind, what, schema)
    names = [axis.name for axis in axes]
    if len(set(names)) != len(names):
        raise ValueError(f"columns of groups must be distinct, got {', '.join(names)}.")
    joined = " and ".join(f"({each.strip()})" for each in conditions)
    if len(conditions) == 1:
        joined = conditions[0]
    groups = Groups(tuple(axes), Condition(joined, schema) if joined else None)
    if groups.cells > _MOST_CELLS:
        raise ValueError(f"{text!r} must have at most 10^6 cells, got {groups.cells}.")
    return KINDS[kind](groups=groups, **given)


def _listed(text: str | None) -> list[str]:
    return [each for each in (text or "").split(",") if each.strip()]


def _axis(text: str, schema: Schema, *, find: bool = False) -> Axis:
    """Read ``NAME`` or ``NAME:PARTS``; ``find`` lets the schema not describe the column."""
    name, colon, parts = text.strip().partition(":")
    name = unquoted(name)
    if find and not colon and name not in {each.name for each in schema.columns}:
        return Axis(Column(name=name, type="drop"))
    column = schema.column(name, "column of a statistic")
    if column.type == "number":
        ends_of(column)
        count = parts.strip() or str(_PARTS)
        if not count.isdecimal() or int(count) < 2:
            raise ValueError(f"parts of {column.name!r} must be a number >= 2, got {parts!r}.")
        return Axis(column, int(count))
    if parts:
        raise ValueError(f"parts are for numbers, got {text.strip()!r}.")
    return Axis(column)


def _numeric(kind: str, what: str, schema: Schema) -> dict[str, Any]:
    """Return the column of a statistic of numbers, and the shares of quantiles."""
    found = re.fullmatch(r"(`[^`]+`|\S+)(.*)", what, re.DOTALL)
    if found is None:
        raise ValueError(f"{kind} needs a column, got none.")
    name, rest = (found[1], found[2]) if kind == "quantile" else (what, "")
    column = schema.column(unquoted(name), "column of a statistic")
    ends_of(column)
    if kind != "quantile":
        return {"column": column}
    try:
        shares = tuple(sorted({float(each) for each in rest.replace(",", " ").split()}))
    except ValueError:
        shares = ()
    if not shares or not all(0.0 < share < 1.0 for share in shares):
        raise ValueError(f"quantile needs shares in (0, 1) after the column, got {rest.strip()!r}.")
    return {"column": column, "shares": shares}
