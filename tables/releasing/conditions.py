"""Conditions on rows: comparisons of columns with constants, row by row.

>>> from dpcal.tables import Schema
>>> schema = Schema.from_toml('''
... [columns.age]
... type = "number"
... [columns.sex]
... type = "category"
... categories = ["f", "m"]
... ''')
>>> condition = Condition("18 <= age < 65 and not sex == 'm'", schema)
>>> condition.columns
('age', 'sex')
>>> ages, sexes = np.array([17.0, 40.0, 40.0]), np.array([0, 0, 1])
>>> condition.holds({"age": ages, "sex": sexes}).tolist()
[False, True, False]
>>> Condition("age > mean(age)", schema)
Traceback (most recent call last):
    ...
ValueError: condition must compare columns with constants, as in "age > 65 and sex == 'f'", got \
'mean(age)' in "age > mean(age)".
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.tables import Column, Schema

Kept = NDArray[np.bool_]

# Characters: more than a condition needs, fewer than make the parser slow.
_LONGEST = 1000

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
DESCRIBED = ("number", "category", "class")
_LISTED = (ast.In, ast.NotIn)
_MUST = "compare columns with constants, as in \"age > 65 and sex == 'f'\""
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def unquoted(name: str) -> str:
    """Return a column's name without the backticks that it may stand in."""
    name = name.strip()
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] == "`" else name


class Condition:
    """Whether a row counts: a function of this row only.

    Parameters
    ----------
    text
        Comparisons (``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``, ``in [...]``, ``not in [...]``)
        of a number with numbers, or of a category with its texts, joined by ``and``, ``or``,
        ``not`` and parentheses. A name that is no word stands in backticks.
    schema
        Schema of the columns.

    Attributes
    ----------
    columns
        Names of the columns that are compared. A row that lacks one of them does not count.

    Raises
    ------
    ValueError
        If the text is anything else.
    """

    def __init__(self, text: str, schema: Schema) -> None:
        self.text, self._schema = text.strip(), schema
        self._names: dict[str, str] = {}
        if len(text) > _LONGEST:
            raise ValueError(f"condition must have at most {_LONGEST} characters, got {len(text)}.")
        try:
            tree = ast.parse(re.sub(r"`([^`]+)`", self._word, self.text), mode="eval").body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            raise self._error(self.text) from None
        self._tree, none = tree, np.empty(0)
        used: dict[str, NDArray[Any]] = {}
        self._rows(tree, lambda name: used.setdefault(name, none))
        self.columns = tuple(used)

    def holds(self, cells: Mapping[str, NDArray[Any]]) -> Kept:
        """Return for each row whether it counts, shape (n,).

        ``cells`` are numbers, and of categories their places, by the name of the column.
        """
        return np.asarray(self._rows(self._tree, cells.__getitem__), dtype=bool)

    def _word(self, found: re.Match[str]) -> str:
        word = f"quoted_{len(self._names)}"
        self._names[word] = found[1]
        return word

    def _error(self, got: object, must: str = _MUST) -> ValueError:
        got = ast.unparse(got) if isinstance(got, ast.AST) else got
        return ValueError(f'condition must {must}, got {got!r} in "{self.text}".')

    def _rows(self, node: ast.expr, cells: Callable[[str], Any]) -> Any:
        """Return for which rows a part of the condition holds."""
        match node:
            case ast.BoolOp(op=ast.And()):
                return reduce(operator.and_, [self._rows(each, cells) for each in node.values])
            case ast.BoolOp(op=ast.Or()):
                return reduce(operator.or_, [self._rows(each, cells) for each in node.values])
            case ast.UnaryOp(op=ast.Not()):
                return ~self._rows(node.operand, cells)
            case ast.Compare():
                sides = [node.left, *node.comparators]
                pairs = zip(sides, node.ops, sides[1:], strict=False)
                return reduce(operator.and_, [self._compared(*each, cells) for each in pairs])
            case _:
                raise self._error(node)

    def _compared(
        self, first: ast.expr, how: ast.cmpop, second: ast.expr, cells: Callable[[str], Any]
    ) -> Any:
        """Compare a column with a constant, on whichever side it stands."""
        here, there = (first, second) if isinstance(first, ast.Name) else (second, first)
        if not isinstance(here, ast.Name) or isinstance(there, ast.Name):
            raise self._error(f"{ast.unparse(first)} and {ast.unparse(second)}")
        column = self._column(self._names.get(here.id, here.id))
        values = cells(column.name)
        if isinstance(how, _LISTED):
            if not isinstance(there, ast.List | ast.Tuple | ast.Set) or here is second:
                raise self._error(there)
            listed = [self._constant(each, column, how) for each in there.elts]
            return np.isin(values, listed, invert=isinstance(how, ast.NotIn))
        if type(how) not in _COMPARED:
            raise self._error(self.text)
        compare, value = _COMPARED[type(how)], self._constant(there, column, how)
        return compare(values, value) if here is first else compare(value, values)

    def _column(self, name: str) -> Column:
        known = {each.name: each for each in self._schema.columns if each.type in DESCRIBED}
        if name not in known:
            must = f"name columns that the schema describes, {', '.join(known)}"
            raise self._error(name, must)
        return known[name]

    def _constant(self, node: ast.expr, column: Column, how: ast.cmpop) -> float | int:
        """Return a constant: a number, or the place of a text among the categories."""
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            raise self._error(node) from None
        if column.type == "number":
            if not isinstance(value, int | float) or not np.isfinite(float(value)):
                raise self._error(value, f"compare column {column.name!r} with finite numbers")
            return float(value)
        if value not in column.categories or isinstance(how, _ORDERED):
            its = f"its {len(column.categories)} categories"
            raise self._error(value, f"compare column {column.name!r}, by == or in, with {its}")
        return column.categories.index(value)
