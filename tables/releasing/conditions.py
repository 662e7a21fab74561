"""Which rows does a statistic count? Comparisons of columns with constants, row by row.

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

__all__ = ["Condition", "unquoted"]

Kept = NDArray[np.bool_]

# More text than a question has, and less than makes the parser slow.
_LONGEST = 1000

_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
_LISTED = (ast.In, ast.NotIn)
_ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def unquoted(name: str) -> str:
    """Return a column's name without the backticks that it may stand in."""
    name = name.strip()
    return name[1:-1] if len(name) > 2 and name[0] == name[-1] == "`" else name


class Condition:
    """Whether a row counts: a function of the row alone, and of no other one.

    Parameters
    ----------
    text
        Comparisons (``<``, ``<=``, ``>``, ``>=``, ``==``, ``!=``, ``in [...]``, ``not in [...]``)
        of a number with numbers, or of a category with its texts, joined by ``and``, ``or``,
        ``not`` and parentheses. A name that is no word stands in backticks.
    schema
        Of the columns.

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
            raise self._wrong(self.text) from None
        used: dict[str, None] = {}
        self._holds = self._read(tree, used)
        self.columns = tuple(used)

    def holds(self, cells: Mapping[str, NDArray[Any]]) -> Kept:
        """Return for each row whether it counts, shape (n,).

        ``cells`` are numbers, and of categories their places, by the name of the column.
        """
        return np.asarray(self._holds(cells), dtype=bool)

    def _word(self, found: re.Match[str]) -> str:
        word = f"quoted_{len(self._names)}"
        self._names[word] = found[1]
        return word

    def _wrong(self, part: str) -> ValueError:
        return ValueError(
            "condition must compare columns with constants, as in \"age > 65 and sex == 'f'\", got "
            f'{part!r} in "{self.text}".'
        )

    def _read(self, node: ast.expr, used: dict[str, None]) -> Callable[[Any], Any]:
        """Return the function of cells that a part of the condition is; note its columns."""
        if isinstance(node, ast.BoolOp):
            parts = [self._read(each, used) for each in node.values]
            join = operator.and_ if isinstance(node.op, ast.And) else operator.or_
            return lambda cells: reduce(join, (part(cells) for part in parts))
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._read(node.operand, used)
            return lambda cells: ~inner(cells)
        if not isinstance(node, ast.Compare):
            raise self._wrong(ast.unparse(node))
        sides = [node.left, *node.comparators]
        pairs = [
            self._compared(first, how, second, used)
            for first, how, second in zip(sides, node.ops, sides[1:], strict=False)
        ]
        return lambda cells: reduce(operator.and_, (pair(cells) for pair in pairs))

    def _compared(
        self, first: ast.expr, how: ast.cmpop, second: ast.expr, used: dict[str, None]
    ) -> Callable[[Any], Any]:
        """Return a comparison of a column with a constant, on whichever side it stands."""
        if isinstance(first, ast.Name) == isinstance(second, ast.Name):
            raise self._wrong(f"{ast.unparse(first)} and {ast.unparse(second)}")
        here, there = (first, second) if isinstance(first, ast.Name) else (second, first)
        assert isinstance(here, ast.Name)
        column = self._column(self._names.get(here.id, here.id))
        used[name := column.name] = None
        if isinstance(how, _LISTED):
            if not isinstance(there, ast.List | ast.Tuple | ast.Set) or here is second:
                raise self._wrong(ast.unparse(there))
            listed = [self._constant(each, column, how) for each in there.elts]
            negative = isinstance(how, ast.NotIn)
            return lambda cells: np.isin(cells[name], listed, invert=negative)
        if type(how) not in _COMPARED:
            raise self._wrong(self.text)
        compare, value = _COMPARED[type(how)], self._constant(there, column, how)
        if here is first:
            return lambda cells: compare(cells[name], value)
        return lambda cells: compare(value, cells[name])

    def _column(self, name: str) -> Column:
        found = next((each for each in self._schema.columns if each.name == name), None)
        if found is None or found.type in ("person", "drop"):
            known = [
                each.name for each in self._schema.columns if each.type not in ("person", "drop")
            ]
            raise ValueError(
                f"condition must name columns that the schema describes, {', '.join(known)}, got "
                f'{name!r} in "{self.text}".'
            )
        return found

    def _constant(self, node: ast.expr, column: Column, how: ast.cmpop) -> float | int:
        """Return a constant: a number, or the place of a text among the categories."""
        try:
            value = ast.literal_eval(node)
        except (ValueError, TypeError, MemoryError, RecursionError):
            raise self._wrong(ast.unparse(node)) from None
        if column.type == "number":
            if not isinstance(value, int | float) or not np.isfinite(float(value)):
                raise ValueError(
                    f"condition must compare column {column.name!r} with finite numbers, got "
                    f'{value!r} in "{self.text}".'
                )
            return float(value)
        if value not in column.categories or isinstance(how, _ORDERED):
            raise ValueError(
                f"condition must compare column {column.name!r}, by == or in, with its "
                f'{len(column.categories)} categories, got {value!r} in "{self.text}".'
            )
        return column.categories.index(value)
