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
from typing import Any

from dpcal.tables import Column, Schema
from dpcal.tables.releasing.conditions import Condition, unquoted
from dpcal.tables.releasing.quantiles import Quantile
from dpcal.tables.releasing.statistics import PARTS, Axis, Groups, Statistic, ends_of

_PARTS = 10
_MOST_CELLS = 10**6

_ASKED = re.compile(
    rf"(?P<kind>{'|'.join(PARTS)})\b(?P<what>.*?)"
    r"(?:\bwhere\b(?P<where>.*?))?(?:\bby\b(?P<by>.*))?",
    re.DOTALL,
)


def parse(
    text: str,
    schema: Schema,
    *,
    by: str | None = None,
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
        raise ValueError(f"statistic must begin with {', '.join(PARTS)}, got {text!r}.")
    kind, what = found["kind"], found["what"].strip()
    axes = [_axis(each, schema, find=find) for each in [*_listed(by), *_listed(found["by"])]]
    conditions = [each for each in (where, found["where"]) if each and each.strip()]
    given: dict[str, Any] = {"kind": kind}
    if kind == "count":
        conditions += [what] if what else []
    elif not what:
        got = repr(text) if kind == "histogram" else "none"
        raise ValueError(f"{kind} needs a column, got {got}.")
    elif kind == "histogram":
        axes += [_axis(each, schema) for each in _listed(what)]
    else:
        name, shares = re.findall(r"^(`[^`]+`|\S+)(.*)", what, re.DOTALL)[0]
        name = name if kind == "quantile" else what
        given["column"] = schema.column(unquoted(name), "column of a statistic")
        ends_of(given["column"])
        given |= {"shares": _shares(shares)} if kind == "quantile" else {}
    names = [axis.name for axis in axes]
    if len(set(names)) != len(names):
        raise ValueError(f"columns of groups must be distinct, got {', '.join(names)}.")
    joined = " and ".join(f"({each.strip()})" for each in conditions)
    if len(conditions) == 1:
        joined = conditions[0]
    groups = Groups(tuple(axes), Condition(joined, schema) if joined else None)
    if groups.cells > _MOST_CELLS:
        raise ValueError(f"{text!r} must have at most 10^6 cells, got {groups.cells}.")
    return (Quantile if kind == "quantile" else Statistic)(groups=groups, **given)


def _listed(text: str | None) -> list[str]:
    return [each for each in (text or "").split(",") if each.strip()]


def _axis(text: str, schema: Schema, *, find: bool = False) -> Axis:
    """Read ``NAME`` or ``NAME:PARTS``; ``find`` lets the schema not describe the column."""
    name, colon, parts = text.strip().partition(":")
    name = unquoted(name)
    if find and not colon and name not in {each.name for each in schema.columns}:
        return Axis(Column(name=name, type="drop"), None)
    column = schema.column(name, "column of a statistic")
    if column.type == "number":
        ends_of(column)
        parts = parts.strip() or str(_PARTS)
        if not parts.isdecimal() or not 2 <= int(parts) <= _MOST_CELLS:
            raise ValueError(
                f"parts of {column.name!r} must be a number >= 2, at most 10^6, got {parts!r}."
            )
        return Axis.of(column, int(parts))
    if parts:
        raise ValueError(f"parts are for numbers, got {text.strip()!r}.")
    return Axis.of(column)


def _shares(text: str) -> tuple[float, ...]:
    """Read the shares of quantiles."""
    try:
        shares = tuple(sorted({float(each) for each in text.replace(",", " ").split()}))
    except ValueError:
        shares = ()
    if not shares or not all(0.0 < share < 1.0 for share in shares):
        raise ValueError(f"quantile needs shares in (0, 1) after the column, got {text.strip()!r}.")
    return shares
