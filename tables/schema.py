r"""Public description of a table's columns. A schema is data, in a TOML file.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from dpcal._internal.files import document_of, text_of

TYPES = ("number", "category", "class", "person", "drop")
CURVES = ("bins", "splines", "random")
CODINGS = ("one-hot", "ordinal", *CURVES)
MISSING = ("refuse", "drop-row", "impute", "blank")
UNKNOWN = ("refuse", "drop-row", "ignore", "blank")
LISTED = ("category", "class")

TEXTS = "distinct texts that are not empty"
COLUMNS = "columns of distinct names"
WEIGHTS = "finite numbers > 0, one for each class"
UNWEIGHTED = "left out unless type is 'class'"
IMPUTED = "given if and only if missing is 'impute'"
OWNED = "1, or needs a column of type 'person', which names the person of a row"


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column of a table, as it is described in public.

    Parameters
    ----------
    name
        As in the table's first row.
    type
        ``"number"``; ``"category"``, one of a list of texts; ``"class"``, a category to predict;
        ``"person"``, which identifies the person of a row; ``"drop"``, which is not read.
    range
        Low and high of a number, finite, low < high; values are clamped to it and scaled to
        [-4, 4]. None where numbers are used as they are.
    categories
        Texts of a category or a class: distinct, at least two.
    coding
        ``"one-hot"``, a feature 0 or 1 for each category; ``"ordinal"``, the place in the list of
        categories, scaled to [-4, 4]. For a number with a range: ``"bins"``, 16 features, one for
        each equal part of it; ``"splines"``, 8 linear splines; ``"random"``, 256 random Fourier
        features of all such columns together. A number is one feature otherwise.
    missing
        Rule for a missing cell: ``"refuse"`` the table, leave the record out (``"drop-row"``), take
        ``impute`` for it (``"impute"``), or let the record count and contribute nothing
        (``"blank"``). Only ``"blank"`` reveals nothing about the record. For numbers, ``"blank"``
        also covers a cell that is not a finite number.
    unknown
        For a text that is not a category: ``"refuse"`` the table, leave the record out
        (``"drop-row"``), set every feature of the column to 0 (``"ignore"``), or ``"blank"``, as
        for a missing cell.
    impute
        Value in place of a missing cell: a number, or one of the categories.
    weights
        Weights of the classes, in their order: numbers > 0 that multiply the loss of a class's
        records; empty where all are 1.
    copied
        Fields of this column that were read off the records, and so are not public.
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
        number, listed, curve = self.type == "number", self.type in LISTED, self.coding in CURVES
        ranged, imputed, ends = self.range is not None, self.impute is not None, self.range or ()
        fits = _are_numbers(self.impute) if number else self.impute in self.categories
        simple = self.type != "category" or self.coding != "one-hot"
        weighted = _are_numbers(*self.weights) and all(each > 0 for each in self.weights)
        _check(
            self,
            f"schema, column {self.name!r}",
            ("type", self.type in TYPES, _either(TYPES)),
            ("coding", self.coding in CODINGS, _either(CODINGS)),
            ("missing", self.missing in MISSING, _either(MISSING)),
            ("unknown", self.unknown in UNKNOWN, _either(UNKNOWN)),
            ("range", number or not ranged, "left out unless type is 'number'"),
            ("range", not ranged or _is_range(ends), "[low, high] with finite low < high"),
            ("coding", ranged or not curve, "'one-hot' or 'ordinal' unless a number with a range"),
            ("categories", listed or not self.categories, "left out unless type is 'category'"),
            ("categories", not listed or _are_distinct(self.categories), f"two or more {TEXTS}"),
            ("unknown", self.unknown != "ignore" or not simple, "another one unless one-hot coded"),
            ("impute", imputed == (self.missing == "impute"), IMPUTED),
            ("impute", not imputed or fits, "a finite number, or one of the categories"),
            ("weights", self.type == "class" or not self.weights, UNWEIGHTED),
            ("weights", weighted and len(self.weights) in (0, len(self.categories)), WEIGHTS),
            ("copied", {*self.copied} < {*vars(self)}, "a list of other keys"),
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
            If a key is unknown, or a value is not allowed.
        """
        where = f"schema, column {name!r}"
        values = dict(given) if isinstance(given, Mapping) else {}
        if "type" not in values:
            raise ValueError(f"{where} needs a type: {_either(TYPES)}.")
        if values["type"] == "class" and "classes" in values:
            values["categories"] = values.pop("classes")
        if "impute" in values:
            values.setdefault("missing", "impute")
        return cls(name=name, **_fields(cls, where, values, without="name"))


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
        Largest number of rows of one person.
    missing_values
        Texts that stand for a missing cell, in addition to the empty text.
    """

    columns: tuple[Column, ...]
    target: str | None = None
    n: int | None = None
    group_size: int = 1
    missing_values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        types = [each.type for each in self.columns]
        told = self.group_size == 1 or "person" in types
        _check(
            self,
            "schema",
            ("columns", _are_distinct([each.name for each in self.columns], 1), COLUMNS),
            ("columns", types.count("person") < 2, "one column of type 'person' at most"),
            ("n", self.n is None or _is_count(self.n), "a whole number >= 1"),
            ("group_size", _is_count(self.group_size), "a whole number >= 1"),
            ("group_size", told, OWNED),
            ("missing_values", _are_distinct(self.missing_values, 0), f"a list of {TEXTS}"),
        )
        if self.target is not None:
            self.column(self.target)

    def column(self, name: str, of: str = "target") -> Column:
        """Return the column of a name; ``of`` is the name of the argument, for the error."""
        for column in self.columns:
            if column.name == name:
                return column
        known = ", ".join(repr(column.name) for column in self.columns)
        raise ValueError(f"{of} must be one of the columns {known}, got {name!r}.")

    @property
    def person(self) -> str | None:
        """Name of the column with the person of a row, if there is one."""
        return next((column.name for column in self.columns if column.type == "person"), None)

    def weighted(self, target: str, class_weights: Mapping[str, float]) -> Schema:
        """Return the schema with these weights of the target's classes."""
        column = self.column(target)
        if {*class_weights} != {*column.categories}:
            listed = ", ".join(map(repr, column.categories)) or "of the schema, which lists none"
            raise ValueError(
                f"class_weights must be for the classes {listed}, got {class_weights!r}."
            )
        own = replace(column, weights=tuple(class_weights[each] for each in column.categories))
        columns = tuple(own if each is column else each for each in self.columns)
        return replace(self, columns=columns)

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
            raise ValueError(
                f"table must hold another column than the target, got only {target!r}."
            )
        return found

    def copied(self) -> list[str]:
        """Return the fields that were read off the records, in words: "range of 'age'"."""
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
            If a key is unknown, or a value is not allowed.
        """
        columns = given.get("columns")
        if not isinstance(columns, Mapping):
            raise ValueError(f"schema must have [columns.NAME] tables, got {columns!r}.")
        listed = [Column.from_dict(name, each) for name, each in columns.items()]
        return cls(**_fields(cls, "schema", {**given, "columns": listed}))

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


def schema_of(schema: Any, group_size: int | None = None) -> Schema:
    """Return the schema from its object, values or file, with the given group size, if any."""
    if isinstance(schema, Mapping):
        schema = Schema.from_dict(schema)
    elif isinstance(schema, str | Path):
        schema = Schema.read(Path(schema))
    elif not isinstance(schema, Schema):
        raise TypeError(f"schema must be a Schema, a mapping or a path, got {schema!r}.")
    known: Schema = schema
    return known if group_size is None else replace(known, group_size=group_size)


def toml_value(value: Any) -> str:
    """Return a text, a number or a list of them as TOML, with texts written as in JSON."""
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


def _fields(
    record: type, where: str, given: Mapping[str, Any], *, without: str = ""
) -> dict[str, Any]:
    """Return the fields of a record from JSON or TOML values, with tuples in place of lists."""
    known = {each.name: str(each.type) for each in fields(record) if each.name != without}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"{where} has no key {name!r}: keys are {', '.join(known)}.")
        if known[name].startswith("tuple") and not isinstance(value, list):
            raise ValueError(f"{where}: {name} must be a list, got {value!r}.")
    lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
    return {**given, **lists}


def _check(record: Any, where: str, *rules: tuple[str, bool, str]) -> None:
    """Refuse a record by the first broken rule: a field, and its requirement."""
    for field, holds, must in rules:
        if not holds:
            value = getattr(record, field)
            told = "classes" if field == "categories" and record.type == "class" else field
            shown = repr([*value] if isinstance(value, tuple) else value)
            raise ValueError(f"{where}: {told} must be {must}, got {shown:.80}.")


def _either(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))


def _are_numbers(*values: Any) -> bool:
    return all(type(each) in (int, float) and math.isfinite(each) for each in values)


def _is_range(ends: Sequence[Any]) -> bool:
    return len(ends) == 2 and _are_numbers(*ends) and ends[0] < ends[1]


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 1


def _are_distinct(texts: Sequence[Any], least: int = 2) -> bool:
    known = all(isinstance(each, str) and (each or least < 2) for each in texts)
    return known and len(set(texts)) == len(texts) >= least
