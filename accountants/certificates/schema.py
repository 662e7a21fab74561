"""Readers that check the entries of a JSON document, from descriptions that are data.

A reader takes a JSON value and the name that an error message gives it. It returns a Python value,
or raises :class:`~dpcal.errors.CertificateRejected` with a sentence. The reader of one kind of JSON
object has a reader for each entry. The value that is built of the entries checks conditions between
them.

>>> interval = shape("an interval", dict, {"low": number(), "high": positive})
>>> interval({"low": 1, "high": 2.5}, "interval")
{'low': 1.0, 'high': 2.5}
>>> interval({"low": 1, "high": 0}, "interval")
Traceback (most recent call last):
    ...
dpcal.errors.CertificateRejected: high of the certificate must be a finite number > 0, got 0.
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn, get_type_hints

import attr
import numpy as np

from dpcal.accountants.events import DpEvent
from dpcal.errors import CertificateRejected, UnsupportedEvent

Reader = Callable[[Any, str], Any]

# Entry of an event that is left out if it is false.
MONOTONE = "monotone"
_LARGEST = 1e300
# Most characters of a document: 64 million take about a second to parse.
_MOST_CHARACTERS = 1 << 26


_short = reprlib.Repr()
_short.maxstring = 80


def shown(value: Any) -> str:
    """Return a value as an error message shows it: shortened, and for any value."""
    try:
        return _short.repr(value)
    except (ValueError, RecursionError):
        # Python does not convert whole numbers of thousands of digits to text.
        return f"a value of type {type(value).__name__}"


def reject(name: str, allowed: str, value: Any) -> NoReturn:
    """Raise the rejection of an entry, as a sentence with its name, its range and its value."""
    raise CertificateRejected(f"{name} of the certificate must be {allowed}, got {shown(value)}.")


def parse(document: str) -> Any:
    """Return the values of a JSON text.

    Raises
    ------
    CertificateRejected
        If the text is too long, is not JSON, or has an object with two entries of one name.
    """
    if len(document) > _MOST_CHARACTERS:
        raise CertificateRejected(
            f"The certificate must have at most {_MOST_CHARACTERS} characters, got {len(document)}."
        )
    try:
        return json.loads(document, object_pairs_hook=_object)
    except (ValueError, RecursionError) as error:
        raise CertificateRejected(f"The certificate is not JSON: {error}.") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object; refuse two entries of one name, which programs read differently."""
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise ValueError(
            f"an object has an entry twice among {_short.repr([name for name, _ in pairs])}"
        )
    return entries


def shape(name: str, build: Callable[..., Any], entries: Mapping[str, Reader]) -> Reader:
    """Return the reader of a JSON object, which has exactly these entries.

    ``build`` is called with their values as keyword arguments. Its exceptions become rejections
    under this name.
    """

    def read(value: Any, _: str) -> Any:
        if not isinstance(value, Mapping) or set(value) != set(entries):
            raise CertificateRejected(
                f"{name} must have exactly the entries {list(entries)}, "
                f"got {shown(list(value) if isinstance(value, Mapping) else value)}."
            )
        values = {key: reader(value[key], key) for key, reader in entries.items()}
        try:
            return build(**values)
        except (TypeError, ValueError, AttributeError, UnsupportedEvent) as error:
            reason = str(error).rstrip(".")
            raise CertificateRejected(f"{name} of the certificate is refused: {reason}.") from error

    return read


def shape_of(name: str, record: type) -> Reader:
    """Return the reader of a dataclass, with fields such as ``x: Annotated[float, positive]``."""
    hints = get_type_hints(record, include_extras=True)
    return shape(name, record, {x.name: hints[x.name].__metadata__[0] for x in fields(record)})


def document_of(value: Any) -> Any:
    """Return a record, an event, or a value in one, as JSON values; decimals become strings."""
    if is_dataclass(value):
        entries = {item.name: document_of(getattr(value, item.name)) for item in fields(value)}
        return {"method": value.NAME, **entries} if hasattr(value, "NAME") else entries
    if isinstance(value, DpEvent):
        names = [item.name for item in attr.fields(type(value))]
        entries = {name: document_of(getattr(value, name)) for name in names}
        if not entries.get(MONOTONE, True):
            del entries[MONOTONE]
        return {"type": type(value).__name__, **entries}
    if isinstance(value, tuple | list):
        return [document_of(item) for item in value]
    if isinstance(value, np.generic):
        return value.item()
    return str(value) if isinstance(value, Decimal) else value


def _checked(
    allowed: str, valid: Callable[[Any], bool], convert: Callable[[Any], Any] = lambda x: x
) -> Reader:
    """Return a reader of values that are valid, which are converted."""

    def read(value: Any, name: str) -> Any:
        if not valid(value):
            reject(name, allowed, value)
        return convert(value)

    return read


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST


def _is_probability(value: Any) -> bool:
    try:
        return isinstance(value, str) and 0 <= Decimal(value) <= 1
    except InvalidOperation:  # no decimal, or a signaling NaN, which has no order
        return False


def number(
    allowed: str = "a finite number", valid: Callable[[float], bool] = lambda _: True
) -> Reader:
    """Return a reader of finite numbers that are valid; they become doubles."""
    return _checked(allowed, lambda value: _is_number(value) and valid(value), float)


def whole(low: int, high: int) -> Reader:
    """Return a reader of whole numbers from ``low`` to ``high``."""
    allowed = f"a whole number in [{low}, {high}]"
    return _checked(allowed, lambda value: type(value) is int and low <= value <= high)


def choice(*options: str) -> Reader:
    """Return a reader of one of several strings."""
    allowed = f"one of {', '.join(options)}"
    return _checked(allowed, lambda value: isinstance(value, str) and value in options)


positive = number("a finite number > 0", lambda x: x > 0)
not_negative = number("a finite number >= 0", lambda x: x >= 0)
# A whole number keeps all its digits.
exact_number = _checked("a finite number", _is_number)
probability_text = _checked("a decimal in [0, 1], as a string", _is_probability, Decimal)


def list_of(reader: Reader, least: int, most: int) -> Reader:
    """Return a reader of lists of ``least`` to ``most`` items; they become tuples."""

    def read(value: Any, name: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or not least <= len(value) <= most:
            reject(name, f"a list of {least} to {most} items", value)
        return tuple(reader(item, name) for item in value)

    return read


def optional(reader: Reader) -> Reader:
    """Return a reader of null, which becomes None, or of the values of another reader."""
    return lambda value, name: None if value is None else reader(value, name)
