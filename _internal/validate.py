"""Argument checks: a line each at the call, and a sentence in the error.

>>> positive(noise_multiplier=1.5)
1.5
>>> probability(delta=2.0)
Traceback (most recent call last):
    ...
ValueError: delta must be a number in (0, 1), got 2.0.
"""

import math
import numbers
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray


class NoiseOutOfRange(ValueError):  # noqa: N818 -- reads as what happened
    """A noise multiplier is positive, and too small or too large for every accountant."""

    number = math.nan


def _told(value: Any) -> str:
    """A value as messages show it: tables may hold records, so only their type is shown."""
    if value is None or isinstance(value, str | numbers.Number):
        return f"{value!r:.60}"
    return f"an object of type {type(value).__name__}"


def _real(name: str, value: Any, allowed: str) -> float:
    """``value`` as a finite float, or a sentence."""
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be {allowed}, got {value!r} of type {type(value).__name__}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def positive(**argument: Any) -> float:
    """A finite number > 0."""
    ((name, value),) = argument.items()
    number = _real(name, value, "a finite number > 0")
    if number <= 0:
        raise ValueError(f"{name} must be a finite number > 0, got {value!r}.")
    return number


def non_negative(**argument: Any) -> float:
    """A finite number >= 0."""
    ((name, value),) = argument.items()
    number = _real(name, value, "a finite number >= 0")
    if number < 0:
        raise ValueError(f"{name} must be a finite number >= 0, got {value!r}.")
    return number


def finite(**argument: Any) -> float:
    """Any finite number."""
    ((name, value),) = argument.items()
    return _real(name, value, "a finite number")


def probability(**argument: Any) -> float:
    """A number strictly between 0 and 1."""
    ((name, value),) = argument.items()
    number = _real(name, value, "a number in (0, 1)")
    if not 0 < number < 1:
        raise ValueError(f"{name} must be a number in (0, 1), got {value!r}.")
    return number


def below_one(**argument: Any) -> float:
    """A number in [0, 1), such as a delta that may be 0."""
    ((name, value),) = argument.items()
    number = _real(name, value, "a number in [0, 1)")
    if not 0 <= number < 1:
        raise ValueError(f"{name} must be a number in [0, 1), got {value!r}.")
    return number


def flag(**argument: Any) -> bool:
    """True or False, also numpy's."""
    ((name, value),) = argument.items()
    if isinstance(value, bool) or type(value).__name__ in ("bool", "bool_"):
        return bool(value)
    raise TypeError(f"{name} must be True or False, got {value!r} of type {type(value).__name__}.")


def rate(**argument: Any) -> float:
    """A number in (0, 1], such as a sampling probability."""
    ((name, value),) = argument.items()
    number = _real(name, value, "a number in (0, 1]")
    if not 0 < number <= 1:
        raise ValueError(f"{name} must be a number in (0, 1], got {value!r}.")
    return number


def order(**argument: Any) -> float:
    """A finite number > 1, such as the order of a Renyi divergence."""
    ((name, value),) = argument.items()
    number = _real(name, value, "a finite number > 1")
    if number <= 1:
        raise ValueError(f"{name} must be a finite number > 1, got {value!r}.")
    return number


def within(least: float, most: float, **argument: Any) -> float:
    """A number in [least, most]."""
    ((name, value),) = argument.items()
    if type(value) is float and least <= value <= most and math.isfinite(value):
        return value  # without a sentence, which takes longer than all else
    allowed = f"a number in [{least:g}, {most:g}]"
    number = _real(name, value, allowed)
    if not least <= number <= most:
        raise ValueError(f"{name} must be {allowed}, got {value!r}.")
    return number


def noise(**argument: Any) -> float:
    """A noise multiplier that is positive, with a square far from overflow either way."""
    number = positive(**argument)
    try:
        return within(1e-6, 1e12, **argument)
    except ValueError as error:
        refusal = NoiseOutOfRange(str(error))
        refusal.number = number
        raise refusal from None


def radius(**argument: Any) -> float:
    """A number > 0, or infinity where there is no ball."""
    ((name, value),) = argument.items()
    if isinstance(value, numbers.Real) and value == math.inf:
        return math.inf
    number = _real(name, value, "a number > 0 or infinite")
    if number <= 0:
        raise ValueError(f"{name} must be a number > 0 or infinite, got {value!r}.")
    return number


def count(**argument: Any) -> int:
    """A whole number >= 1; whole floats such as ``1e4`` are accepted."""
    ((name, value),) = argument.items()
    if type(value) is int and 1 <= value < 2**53:
        return value
    number = _real(name, value, "a whole number >= 1")
    if number != math.floor(number) or number < 1:
        raise ValueError(f"{name} must be a whole number >= 1, got {value!r}.")
    return int(value)


def counts(least: int = 1, **argument: Any) -> tuple[int, int]:
    """A pair of whole numbers, the first >= 1 and the second >= ``least``, as sizes of blocks."""
    ((name, value),) = argument.items()
    try:
        first, second = value
        return count(**{name: first}), count(**{name: second + 1 - least}) - 1 + least
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be two whole numbers, at least 1 and {least}, got {value!r:.60}."
        ) from None


def reals(**argument: Any) -> NDArray[np.float64]:
    """An array of real numbers, finite or not, of any shape."""
    ((name, value),) = argument.items()
    try:
        array = np.asarray(value)
        if array.dtype.kind in "iuf":
            return array.astype(np.float64)
    except ValueError:  # numpy's words show the cell that it could not read
        pass
    raise TypeError(f"{name} must be a number or an array of numbers, got {_told(value)}.")


def each(check: Callable[..., float], **argument: Any) -> NDArray[np.float64]:
    """An array of real numbers, of any shape; each passes a check of single numbers."""
    ((name, _),) = argument.items()
    array = reals(**argument)
    for value in array.ravel().tolist():
        check(**{name: value})
    return array


def seed(**argument: Any) -> Any:
    """A seed that numpy's generators take: a whole number >= 0, a generator of theirs, or None."""
    ((name, value),) = argument.items()
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    own = type(value).__module__.startswith("numpy.random")
    if value is None or own or (whole and int(value) >= 0):
        return value
    raise (ValueError if isinstance(value, numbers.Integral) else TypeError)(
        f"{name} must be a whole number >= 0, got {value!r:.60}."
    )


def instance(*kinds: type, **argument: Any) -> Any:
    """An object of one of some classes of this package."""
    ((name, value),) = argument.items()
    if isinstance(value, kinds):
        return value
    allowed = " or ".join(kind.__name__ for kind in kinds)
    raise TypeError(f"{name} must be of class {allowed}, got {_told(value)}.")


def only_one(**two: Any) -> None:
    """Refuse none, or both, of two arguments."""
    if sum(value is None for value in two.values()) != 1:
        got = ", ".join(f"{name}={value!r}" for name, value in two.items())
        raise ValueError(f"exactly one of {' and '.join(two)} must be given, got {got}.")


def relation(value: Any) -> Any:
    """The name of a neighboring relation that is dp-accounting's value; any other value as it is.

    >>> from dp_accounting import NeighboringRelation
    >>> relation(NeighboringRelation.REPLACE_ONE), relation("replace-one")
    ('replace-one', 'replace-one')
    """
    return value.name.lower().replace("_", "-") if isinstance(value, Enum) else value


def choice(allowed: tuple[str, ...], **argument: Any) -> str:
    """One of the strings in ``allowed``."""
    ((name, value),) = argument.items()
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}.")
    return str(value)
