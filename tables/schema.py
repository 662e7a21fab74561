r"""What may be known of a table without a look at it? Its columns, as data, in a TOML file.

>>> schema = Schema.from_toml('''
... target = "sick"
... [columns.age]
... type = "number"
... range = [0, 120]
... [columns.sick]
... type = "class"
... classes = ["no", "yes"]
... ''')
>>> [column.name for column in schema.columns], schema.column("sick").categories
(['age', 'sick'], ('no', 'yes'))
>>> Schema.from_toml(schema.to_toml()) == schema
True
>>> Schema.from_toml('[columns.age]\ntype = "number"\nrange = [120, 0]')
Traceback (most recent call last):
    ...
ValueError: schema, column 'age': range must be [low, high] with finite low < high, got [120, 0].
"""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpcal._files import document_of, text_of

__all__ = ["CODINGS", "CURVES", "MISSING", "TYPES", "UNKNOWN", "Column", "Schema"]

TYPES = ("number", "category", "class", "person", "drop")
CODINGS = ("one-hot", "ordinal")
# Codings of a number whose effect is no straight line.
CURVES = ("bins", "splines", "random")
MISSING = ("refuse", "drop-row", "impute", "blank")
UNKNOWN = ("refuse", "drop-row", "ignore", "blank")


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table, as it is described in public.

    Parameters
    ----------
    name
        As in the table's first row.
    type
        ``"number"``; ``"category"``, one of a list of texts; ``"class"``, a category that is
        predicted; ``"person"``, which tells whose row it is; ``"drop"``, which is not read.
    range
        Low and high of a number, finite, low < high; values are clamped to it and scaled to
        [-4, 4]. None where numbers are used as they are.
    categories
        Of a category or a class: distinct texts, at least two.
    coding
        ``"one-hot"``, a feature 0 or 1 for each category; ``"ordinal"``, the place in the list of
        categories, scaled to [-4, 4]. Of a number with a range: ``"bins"``, 16 features, one for
        each equal part of it; ``"splines"``, 8 linear splines; ``"random"``, 256 random Fourier
        features of all such columns together. A number is one feature otherwise.
    missing
        Where a cell is missing: ``"refuse"`` the table, leave the record out (``"drop-row"``), take
        ``impute`` for it (``"impute"``), or let the record count and contribute nothing
        (``"blank"``), which alone tells nothing of the record; of numbers, also where a cell is not
        a finite number.
    unknown
        For a text that is not a category: ``"refuse"`` the table, leave the record out
        (``"drop-row"``), set every feature of the column to 0 (``"ignore"``), or ``"blank"``, as
        for a missing cell.
    impute
        What stands in for a missing cell: a number, or one of the categories.
    weights
        Of a class: for each of the classes, in their order, a number > 0 that the loss of its
        records is multiplied by; empty where all are 1.
    copied
        Which of these fields were read off the records, and so are not public.
    """

    name: str
    type: str
    range: tuple[float, float] | None = None
    categories: tuple[str, ...] = ()
    coding: str = "one-hot"
    missing: str = "refuse"
    unknown: str = "refuse"
    impute: float | str | None = None
    weights: tuple[float, ...] = ()
    copied: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        allowed = {
            "type": TYPES,
            "coding": (*CODINGS, *CURVES),
            "missing": MISSING,
            "unknown": UNKNOWN,
        }
        for field, values in allowed.items():
            if getattr(self, field) not in values:
                raise self._wrong(field, " or ".join(map(repr, values)), getattr(self, field))
        self._check_range()
        self._check_categories()
        self._check_imputed()
        self._check_weights()
        names = {each.name for each in fields(self)} - {"name", "copied"}
        if not isinstance(self.copied, tuple) or not set(self.copied) <= names:
            raise self._wrong("copied", f"a list of fields out of {sorted(names)}", self.copied)

    def _check_range(self) -> None:
        if self.coding in CURVES and (self.type != "number" or self.range is None):
            raise self._wrong(
                "coding", "'one-hot' or 'ordinal' unless it is a number with a range", self.coding
            )
        if self.range is None:
            return
        ends = [end for end in self.range if _is_number(end)]
        if len(ends) != 2 or len(self.range) != 2 or not ends[0] < ends[1]:
            raise self._wrong("range", "[low, high] with finite low < high", list(self.range))
        if self.type != "number":
            raise self._wrong("range", "left out unless type is 'number'", list(self.range))

    def _check_categories(self) -> None:
        listed = list(self.categories)
        texts = all(isinstance(each, str) and each for each in listed)
        if self.type in ("category", "class"):
            if not texts or len(set(listed)) != len(listed) or len(listed) < 2:
                key = "classes" if self.type == "class" else "categories"
                raise self._wrong(key, "two or more distinct texts that are not empty", listed)
        elif listed:
            raise self._wrong("categories", "left out unless type is 'category'", listed)
        if self.unknown == "ignore" and (self.type != "category" or self.coding != "one-hot"):
            raise self._wrong(
                "unknown", "'refuse', 'drop-row' or 'blank' unless one-hot coded", "ignore"
            )

    def _check_imputed(self) -> None:
        if (self.impute is None) == (self.missing == "impute"):
            raise self._wrong("impute", "given if and only if missing is 'impute'", self.impute)
        if self.impute is None:
            return
        if self.type == "number" and not _is_number(self.impute):
            raise self._wrong("impute", "a finite number", self.impute)
        if self.type == "category" and self.impute not in self.categories:
            raise self._wrong("impute", f"one of {list(self.categories)}", self.impute)
        if self.type not in ("number", "category"):
            raise self._wrong("impute", "left out unless type is 'number' or 'category'", "it")

    def _check_weights(self) -> None:
        given = list(self.weights)
        if given and self.type != "class":
            raise self._wrong("weights", "left out unless type is 'class'", given)
        good = [each for each in given if _is_number(each) and each > 0]
        if given and not len(good) == len(given) == len(self.categories):
            allowed = f"{len(self.categories)} finite numbers > 0, one for each class"
            raise self._wrong("weights", allowed, given)

    def _wrong(self, field: str, allowed: str, got: Any) -> ValueError:
        return ValueError(
            f"schema, column {self.name!r}: {field} must be {allowed}, got {_shown(got)}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the column as JSON values, without its name and without defaults."""
        return {
            "classes" if name == "categories" and self.type == "class" else name: value
            for name, value in _given(self, without="name").items()
        }

    @classmethod
    def from_dict(cls, name: str, given: Any) -> Column:
        """Read a column from JSON or TOML values.

        Raises
        ------
        ValueError
            If a key is unknown, or a value is not what it must be.
        """
        if not isinstance(given, Mapping):
            raise ValueError(f"schema, column {name!r} must be a table of keys, got {given!r}.")
        values = dict(given)
        allowed = {each.name for each in fields(cls)} - {"name"}
        if "classes" in values and values.get("type") == "class":
            values["categories"] = values.pop("classes")
        strange = sorted(set(values) - allowed)
        if strange or "type" not in values:
            what = f"has no key {strange[0]!r}" if strange else "needs a type"
            raise ValueError(
                f"schema, column {name!r} {what}: keys are {', '.join(sorted(allowed))}, and "
                "classes in place of categories where type is 'class'."
            )
        if "impute" in values:
            values.setdefault("missing", "impute")
        for field in ("range", "categories", "weights", "copied"):
            if field in values:
                if not isinstance(values[field], list):
                    raise ValueError(
                        f"schema, column {name!r}: {field} must be a list, got {values[field]!r}."
                    )
                values[field] = tuple(values[field])
        return cls(name=name, **values)


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The public description of a table.

    Parameters
    ----------
    columns
        Every column that the table must have, in the order of the features.
    target
        Name of the column that is predicted, or None where it is chosen later.
    n
        A number of records that is public, and that the table's own may differ from; None where
        the number is read from the table.
    group_size
        How many rows a person has at most.
    missing_values
        Texts that stand for a missing cell, beside the empty one.
    """

    columns: tuple[Column, ...]
    target: str | None = None
    n: int | None = None
    group_size: int = 1
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"schema must have columns of distinct names, got {names}.")
        for name in ("n", "group_size"):
            value = getattr(self, name)
            if not (name == "n" and value is None) and (type(value) is not int or value < 1):
                raise ValueError(f"schema: {name} must be a whole number >= 1, got {value!r}.")
        people = [column.name for column in self.columns if column.type == "person"]
        if len(people) > 1:
            raise ValueError(f"schema must have one column of type 'person', got {people}.")
        if self.group_size > 1 and not people:
            raise ValueError(
                f"schema: group_size={self.group_size} needs a column of type 'person', which "
                "tells whose row it is."
            )
        if self.target is not None:
            self.column(self.target)

    def column(self, name: str) -> Column:
        """Return the column of a name."""
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(repr(column.name) for column in self.columns)
        raise ValueError(f"target must be one of the columns {known}, got {name!r}.")

    @property
    def person(self) -> str | None:
        """Name of the column with the person of a row, if there is one."""
        return next((column.name for column in self.columns if column.type == "person"), None)

    def features(self, target: str) -> tuple[Column, ...]:
        """Return the columns that are neither the target, nor dropped, nor name a person."""
        found = tuple(
            column
            for column in self.columns
            if column.name != target and column.type in ("number", "category", "class")
        )
        extra = [column.name for column in found if column.type == "class"]
        if extra:
            raise ValueError(
                f"schema, column {extra[0]!r} has type 'class', which is for the target, and the "
                f"target is {target!r}: use 'category' or 'drop'."
            )
        if not found:
            raise ValueError(f"table must hold a column beside the target, got only {target!r}.")
        return found

    def with_column(self, column: Column) -> Schema:
        """Return the schema with the column of that name replaced."""
        return replace(
            self,
            columns=tuple(column if each.name == column.name else each for each in self.columns),
        )

    def copied(self) -> list[str]:
        """Return what was read off the records, as words: "range of 'age'"."""
        return [
            f"{'classes' if column.type == 'class' and field == 'categories' else field} of "
            f"{column.name!r}"
            for column in self.columns
            if column.type != "drop"
            for field in column.copied
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the schema as JSON values."""
        columns = {column.name: column.to_dict() for column in self.columns}
        return {**_given(self, without="columns"), "columns": columns}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Schema:
        """Read a schema from JSON or TOML values.

        Raises
        ------
        ValueError
            If a key is unknown, or a value is not what it must be.
        """
        values = dict(given)
        strange = sorted(set(values) - {each.name for each in fields(cls)})
        columns = values.pop("columns", None)
        if strange or not isinstance(columns, Mapping):
            what = f"has no key {strange[0]!r}" if strange else "must have [columns.NAME] tables"
            raise ValueError(
                f"schema {what}: keys are target, n, group_size, missing_values and columns."
            )
        texts = values.pop("missing_values", [])
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"schema: missing_values must be a list of texts, got {texts!r}.")
        read = tuple(Column.from_dict(name, each) for name, each in columns.items())
        return cls(columns=read, missing_values=tuple(texts), **values)

    @classmethod
    def from_toml(cls, text: str) -> Schema:
        """Read a schema from the text of a TOML file.

        Raises
        ------
        ValueError
            If the text is not TOML, or not a schema.
        """
        try:
            values = document_of(text, tomllib.loads)
        except ValueError as error:
            raise ValueError(f"schema must be a TOML file: {error}.") from error
        return cls.from_dict(values)

    @classmethod
    def read(cls, path: Path) -> Schema:
        """Read a schema from a file.

        Raises
        ------
        ValueError
            If the file cannot be read, or is not a schema.
        """
        text = text_of(path, "schema must be a readable file", encoding="utf-8-sig")
        return cls.from_toml(text)

    def to_toml(self, comments: Mapping[str, str] | None = None) -> str:
        """Return the schema as the text of a TOML file.

        Parameters
        ----------
        comments
            A line on a column, by its name, which stands above the column.
        """
        values = self.to_dict()
        columns = values.pop("columns")
        lines = [f"{key} = {toml_value(value)}" for key, value in values.items()]
        for name, column in columns.items():
            lines += ["", *(f"# {line}" for line in (comments or {}).get(name, "").splitlines())]
            lines.append(f"[columns.{toml_value(name)}]")
            lines += [f"{key} = {toml_value(value)}" for key, value in column.items()]
        return "\n".join(lines).strip("\n") + "\n"


def toml_value(value: Any) -> str:
    """Return a text, a number or a list of them as TOML, whose texts are written as in JSON."""
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        # JSON leaves this control character as it is, and TOML does not allow it.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
    return repr(value)


def _given(record: Any, *, without: str) -> dict[str, Any]:
    """Return the fields of a record that are not at their defaults, as JSON values."""
    values = {
        each.name: getattr(record, each.name)
        for each in fields(record)
        if each.name != without and getattr(record, each.name) != each.default
    }
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in values.items()
    }


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and type(value) is not bool and math.isfinite(value)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
