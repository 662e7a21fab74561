"""Answers that carry their error: an interval, and numbers that equal their safe end.

>>> answer = Epsilon(1.5, lower=1.25, accountant="renyi", method="Renyi order 4.2",
...                  neighboring_relation="add-or-remove-one")
>>> answer + 1.0, answer.lower, answer.upper
(2.5, 1.25, 1.5)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

# An answer states its relative width from here on: it has fewer than five digits.
_WIDE = 1e-5


@dataclass(frozen=True)
class Bounds:
    """An interval that contains the true value, and the method that proved it."""

    lower: float
    upper: float
    method: str

    @staticmethod
    def around(log_value: float, error: float, method: str) -> Bounds:
        """Bounds on a logarithm whose value has a relative error of at most ``error`` < 1."""
        return Bounds(log_value + math.log1p(-error), log_value + math.log1p(error), method)

    @staticmethod
    def of_logarithms(lower: float, upper: float, method: str) -> Bounds:
        """Return bounds on the logarithm of a number in [0, 1] between two others, outward."""
        low, high = (
            math.nextafter(math.log(value), end) if value > 0 else -math.inf
            for value, end in ((lower, -math.inf), (upper, math.inf))
        )
        return Bounds(low, min(high, 0.0), method)

    @property
    def from_below(self) -> Bounds:
        """Return the lower end."""
        return Bounds(self.lower, math.inf, self.method)

    def both(self, other: Bounds | None) -> Bounds:
        """Return the intersection with other bounds on the same number; with None, these bounds."""
        if other is None:
            return self
        upper, method = min((self.upper, self.method), (other.upper, other.method))
        return Bounds(min(max(self.lower, other.lower), upper), upper, method)

    @staticmethod
    def worst(bounds: list[Bounds]) -> Bounds:
        """Return bounds on the maximum of several quantities."""
        largest = max(bounds, key=lambda item: item.upper)
        return Bounds(max(item.lower for item in bounds), largest.upper, largest.method)

    def saying_width(self, width: float) -> Bounds:
        """Return these bounds, with a relative width in their method if it is large."""
        if not _WIDE <= width < math.inf:
            return self
        return Bounds(self.lower, self.upper, f"{self.method}, relative width {width:.0e}")


class _Answer(float):
    """A float equal to its upper bound, with the interval and its provenance."""

    lower: float
    accountant: str
    method: str
    neighboring_relation: str
    # Kind of proof, for answers that random draws may give.
    label: str = ""

    def __new__(
        cls, upper: float, *, lower: float, accountant: str, method: str, neighboring_relation: str
    ) -> Self:
        self = super().__new__(cls, upper)
        self.lower, self.accountant, self.method = lower, accountant, method
        self.neighboring_relation = neighboring_relation
        return self

    @classmethod
    def of(cls, bounds: Bounds, *, accountant: str, neighboring_relation: str) -> Self:
        """Return an interval as an answer, with its accountant and its relation."""
        how = {"accountant": accountant, "neighboring_relation": neighboring_relation}
        return cls(bounds.upper, lower=bounds.lower, method=bounds.method, **how)

    @property
    def upper(self) -> float:
        """The value itself, as a plain float."""
        return float(self)

    @property
    def provenance(self) -> str:
        """The method, with the label of an answer that has one, for records without labels."""
        return ", ".join(filter(None, (self.method, self.label)))

    def to_dict(self) -> dict[str, float | str]:
        """Return the interval and its provenance as JSON values."""
        return {"lower": self.lower, "upper": self.upper, **vars(self)}

    def __repr__(self) -> str:
        return float.__repr__(self)

    def __getnewargs_ex__(self) -> tuple[tuple[float], dict[str, Any]]:
        return (self.upper,), vars(self)


class Epsilon(_Answer):
    """The smallest proved epsilon at a delta: a float equal to ``.upper``.

    Attributes
    ----------
    lower, upper
        Interval that contains the true epsilon.
    accountant, method
        The accountant that computed it, and its method.
    neighboring_relation
        The relation that it holds for.
    """


class Delta(_Answer):
    """The smallest proved delta at an epsilon: a float equal to ``.upper``.

    Has the attributes of :class:`Epsilon`. A delta below the range of a double is reported as the
    smallest positive double; :func:`dpcal.accountants.log_delta` keeps its digits.
    """


class LogDelta(_Answer):
    """Return the natural logarithm of a :class:`Delta` of any size, with the same attributes."""


class Risk(_Answer):
    """The success of an attacker, rounded up, with the attributes of :class:`Epsilon`."""
