"""Records that count: finite numbers, with a label of a class; other records are ignored.

Whether a fit fails, and the shape of its result, must not depend on one record. An ignored record
contributes zero to every answer, without a message. Shapes, and types of whole arrays, are public.

>>> table, known = records_of([[1.0, 2.0], ["?", 3.0], [4.0, float("inf")]])
>>> known.tolist()
[True, False, False]
>>> codes("y", labels_of(["b", "a", None, 0.5]), np.array(["a", "b"])).tolist()
[1, 0, -1, -1]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal.errors import warn_caller
from dpcal.optim.objectives.arrays import Vector, numbers_of, two_dimensional

Mask = NDArray[np.bool_]

_KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "f": "numbers", "U": "text"}


def cells(name: str, values: ArrayLike) -> Vector:
    """Return ``values`` as float64, with NaN for a cell that is not a real number.

    Cells of lists and of arrays of objects are taken one by one. Arrays and columns of texts, of
    dates, and of other types that are not numbers, sparse ones too, raise a TypeError that calls
    them ``name``: their types are public, and all of their records would be ignored.
    """
    if hasattr(values, "toarray"):
        raise TypeError(f"{name} must be a dense array, got a sparse one: use its toarray().")
    _check_types(name, values)
    try:
        array = np.asarray(values)
    except ValueError:
        array = np.array(values, dtype=object)
    if array.dtype.kind not in "biuf" and not hasattr(values, "__array__"):
        array = np.array(values, dtype=object)
    if array.dtype.kind not in "biufO":
        _check_types(name, array)
    if array.dtype.kind == "O":
        array = np.array([_number(cell) for cell in array.flat]).reshape(array.shape)
    return numbers_of(name, array)


def _check_types(name: str, values: Any) -> None:
    """Refuse a column of a frame, an array or a series if its type is not numeric."""
    if hasattr(values, "columns"):
        for column, kind in zip(values.columns, values.dtypes, strict=True):
            if not _is_of_numbers(kind):
                raise TypeError(
                    f"{name} must have columns of numbers, got column {column!r} of type {kind}: "
                    "leave it out, or encode it, as OneHotEncoder does."
                )
            if str(kind).lower() == "object":
                warn_caller(
                    f"column {column!r} of {name} is of type object: a record is blank where its "
                    "cell is no number. Where all are texts, nothing but noise would be left.",
                    UserWarning,
                )
    elif hasattr(values, "dtype") and not _is_of_numbers(values.dtype):
        kind = "texts" if getattr(values.dtype, "kind", "") in "US" else f"type {values.dtype}"
        raise TypeError(f"{name} must be an array of real numbers, got {kind}.")


def _is_of_numbers(kind: Any) -> bool:
    """Return whether a type of numpy, pandas or polars is of real numbers, or of any objects."""
    if str(kind).lower() in ("object", "boolean"):
        return True
    if hasattr(kind, "is_numeric"):
        return bool(kind.is_numeric())
    letter = getattr(kind, "kind", "O")
    return letter in "biuf" or (letter == "O" and bool(getattr(kind, "_is_numeric", False)))


def _number(cell: Any) -> float:
    """Return a cell as a float; NaN if it is not a real number, or the text of one."""
    if not isinstance(cell, Real | np.bool_ | Decimal | str):
        return np.nan
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return np.nan


def records_of(X: ArrayLike) -> tuple[Vector, Mask]:
    """Return records, shape (n, d), and whether each is of finite numbers, shape (n,).

    A shape without rows or columns raises a ValueError.
    """
    table = two_dimensional(cells("X", X))
    return table, finite_rows(table)


def finite_rows(table: Vector) -> Mask:
    """Return whether all numbers of each row are finite, shape (n,)."""
    return np.asarray(np.isfinite(table).all(axis=1))


def blanked(table: Vector, known: Mask, blank: float = 0.0) -> Vector:
    """Return a table, or a copy with ``blank`` in every cell of unknown rows."""
    if known.all():
        return table
    return np.where(known[:, np.newaxis] if table.ndim == 2 else known, table, blank)


def labels_of(y: ArrayLike) -> NDArray[Any]:
    """Return labels as an array of its own type, or else of objects.

    The type that numpy finds for a list depends on each of its entries. The type that polars finds
    for a series of whole numbers does too: floats, if an entry is missing.
    """
    series: Any = y
    if hasattr(getattr(series, "dtype", None), "is_integer") and series.dtype.is_integer():
        return np.array(series.to_list(), dtype=object)
    return np.asarray(y) if hasattr(y, "__array__") else np.array(y, dtype=object)


def declared(
    name: str, given: ArrayLike | None, labels: NDArray[Any], *, from_data: bool
) -> NDArray[Any]:
    """Return classes or groups in sort order: as given, or read off the labels.

    A ValueError that calls them ``name`` is raised unless you request exactly one of both.
    """
    if (given is None) is not from_data:
        raise ValueError(
            f"{name} must be declared, or else read off the records by {name}_from_data=True, "
            f"which every statement names: give one of both, got {name}={given!r} and "
            f"{name}_from_data={from_data!r}."
        )
    return typed(counted(labels)[0]) if given is None else np.unique(np.asarray(given))


def classes_and_weights(
    labels: NDArray[Any],
    given: ArrayLike | None,
    class_weights: Mapping[Any, float] | None = None,
    *,
    from_data: bool,
) -> tuple[NDArray[Any], Vector | None]:
    """Return the classes in sort order, and the weight of each of them if there are weights.

    A ValueError is raised if there are no classes (see :func:`declared`), or if the weights are not
    one for each class, or not finite and > 0.

    Parameters
    ----------
    labels
        Labels of the records, from which the classes are read if ``from_data``.
    given
        The classes, where they are known in public.
    class_weights
        A finite weight > 0 for each class; its keys are the classes if none are given.
    """
    if class_weights is not None and not isinstance(class_weights, Mapping):
        raise TypeError(
            f"class_weights must be a mapping from each class to a number > 0, got "
            f"{class_weights!r:.60}."
        )
    if given is None and class_weights is not None:
        given = list(class_weights)
    known = declared("classes", given, labels, from_data=from_data)
    if class_weights is None:
        return known, None
    if set(class_weights) != set(known.tolist()):
        raise ValueError(
            f"class_weights must name each of the classes {known.tolist()}, got "
            f"{list(class_weights)}."
        )
    weights = np.array([float(class_weights[each]) for each in known.tolist()])
    if not (np.isfinite(weights).all() and (weights > 0).all()):
        raise ValueError(
            f"class_weights must be finite numbers > 0, got {list(class_weights.values())}."
        )
    return known, weights


def codes(name: str, labels: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
    """Return the number of each label's class, -1 for other labels, in the shape of the labels.

    Parameters
    ----------
    name
        Name of the labels in errors: a ValueError is raised for numbers where classes are texts.
    labels
        Result of :func:`labels_of`.
    classes
        Different, in sort order.
    """
    kinds = [_KINDS.get(array.dtype.kind, array.dtype.kind) for array in (labels, classes)]
    if "O" in kinds:
        places = {each: place for place, each in enumerate(classes.tolist())}
        found = [_place(cell, places) for cell in labels.flat]
        return np.array(found, dtype=np.intp).reshape(labels.shape)
    if kinds[0] != kinds[1]:
        raise ValueError(f"{name} must hold {kinds[1]}, as classes do, got {kinds[0]}.")
    place = np.minimum(np.searchsorted(classes, labels), len(classes) - 1)
    return np.where(classes[place] == labels, place, -1)


def _place(cell: Any, places: dict[Any, int]) -> int:
    try:
        return places.get(cell, -1)
    except (TypeError, ValueError):
        return -1


def counted(labels: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return the different labels in sort order, and their numbers of records.

    Labels are finite numbers, truth values or texts, which come in this order where objects are of
    several types; others are not counted.
    """
    if labels.dtype.kind == "f":
        labels = labels[np.isfinite(labels)]
    if labels.dtype.kind != "O":
        return np.unique(labels, return_counts=True)
    return _in_order(Counter(key for key in map(_key, labels.flat) if key is not None))


def counted_together(
    parts: Sequence[tuple[NDArray[Any], NDArray[np.intp]]],
) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Return :func:`counted` of all records, given :func:`counted` of each part, at least one."""
    counts: Counter[Any] = Counter()
    for labels, numbers in parts:
        counts.update(dict(zip(map(_key, labels.tolist()), numbers.tolist(), strict=True)))
    values, sizes = _in_order(counts)
    kinds = [labels.dtype for labels, _ in parts]
    alike = len({kind.kind for kind in kinds}) == 1
    return values.astype(np.result_type(*kinds)) if alike else values, sizes


def _in_order(counts: Counter[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    found = sorted(counts)
    values = np.array([label for _, label in found], dtype=object)
    return values, np.array([counts[key] for key in found], dtype=np.intp)


def persons(name: str, owners: Any, n: int) -> NDArray[np.int64]:
    """Return a number for each row, equal where rows are about one person, shape (n,).

    ``owners`` names the person of each row by a number or a text, shape (n,); errors call it
    ``name``. Two rows are about one person if their texts are the same. ValueError is raised for
    another shape, or if a row names no person.
    """
    given = labels_of(owners)
    if given.shape != (n,):
        raise ValueError(
            f"{name} must have one person for each of {n} records, got an array of shape "
            f"{given.shape}."
        )
    if unlabelled(given).any():
        raise ValueError(f"{name} must say of every record whose it is, got a missing one.")
    return np.unique(given.astype(str), return_inverse=True)[1].astype(np.int64)


def unlabelled(labels: NDArray[Any]) -> Mask:
    """Return a mask of the cells that :func:`counted` ignores, in the shape of the labels."""
    if labels.dtype.kind == "O":
        odd = [_key(label) is None for label in labels.flat]
        return np.array(odd, dtype=bool).reshape(labels.shape)
    return ~np.isfinite(labels) if labels.dtype.kind == "f" else np.zeros(labels.shape, dtype=bool)


def _key(label: Any) -> tuple[int, Any] | None:
    """Return the key by which labels of an object array are compared; None if it is not a label."""
    if isinstance(label, bool | np.bool_):
        return 1, bool(label)
    if isinstance(label, str):
        return 2, str(label)
    if isinstance(label, Integral):
        return 0, int(label)
    number = _number(label) if isinstance(label, Real) else np.nan
    if not np.isfinite(number):
        return None
    return 0, int(number) if number.is_integer() else number


def typed(labels: NDArray[Any]) -> NDArray[Any]:
    """Return some labels of :func:`counted` in an array; only these labels decide its type.

    >>> typed(np.array([0, 1, "far"], dtype=object)[:2]).dtype
    dtype('int64')
    """
    if labels.dtype.kind not in "OU":
        return labels
    kinds = {key[0] for key in map(_key, labels) if key is not None}
    return np.array(labels.tolist(), dtype=None if len(kinds) < 2 else object)
