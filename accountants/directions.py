"""The losses that are composed in each direction of a neighboring relation.

Two neighboring data sets give two laws of the output, and a mechanism is private if neither is far
from the other. Where the relation is not symmetric in the losses (a record is removed, or added),
each order of the two laws is a :class:`Direction`, composed by itself; the worse one counts.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> once = Direction("both", ((Gaussian(2.0), 10),))
>>> Composition("replace-one", (once,)).has_law
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcal._ext.question import Law
from dpcal._internal import validate
from dpcal.accountants.losses.base import NO_LOSS, Parts, PrivacyLoss

RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")

# Largest count that is exact as a double.
MOST_TIMES = 2**53


def relation_of(value: object) -> str:
    """Return the name of a neighboring relation, given by its name or dp-accounting's value."""
    return validate.choice(RELATIONS, neighboring_relation=validate.relation(value))


@dataclass(frozen=True)
class Direction:
    """One direction of the neighboring relation: the losses that add up, and how often each."""

    name: str
    parts: Parts

    @property
    def once(self) -> PrivacyLoss | None:
        """The loss of a single mechanism that is used once, or None."""
        return self.parts[0][0] if [times for _, times in self.parts] == [1] else None

    @property
    def compiled(self) -> list[tuple[Law, int]] | None:
        """Losses and counts for one compiled call, which is tried first.

        It is None for one use, and where a loss is rounded or an exact sum has more digits.
        """
        if not self.parts or self.once is not None or not all(loss.quick for loss, _ in self.parts):
            return None
        return self.laws if self.below is None else None

    @property
    def laws(self) -> list[tuple[Law, int]] | None:
        """Losses and counts as one compiled call takes them; None where a loss has no such form."""
        return self._laws([(loss.compiled, times) for loss, times in self.parts])

    @property
    def pointed(self) -> list[tuple[Law, int]] | None:
        """The same by points of each loss, where these are more than the compiled form has."""
        if all(loss.pointed is None or loss.pointed is loss.compiled for loss, _ in self.parts):
            return None
        return self._laws([(loss.pointed or loss.compiled, times) for loss, times in self.parts])

    def _laws(self, parts: list[tuple[Law | None, int]]) -> list[tuple[Law, int]] | None:
        known = [(law, times) for law, times in parts if law is not None and times <= MOST_TIMES]
        return known if len(known) == len(parts) else None

    @property
    def below(self) -> Direction | None:
        """The direction with losses rounded down, for lower bounds; None if none is rounded."""
        if all(loss.below is None for loss, _ in self.parts):
            return None
        parts = tuple((loss.below or loss, times) for loss, times in self.parts)
        return Direction(self.name, parts)

    @property
    def finite(self) -> tuple[float, Direction]:
        """Log probability that every loss is finite, and the direction given that all are."""
        if all(loss.when_finite is loss for loss, _ in self.parts):
            return 0.0, self
        log_finite = math.fsum(times * loss.log_finite for loss, times in self.parts)
        given = ((loss.when_finite, times) for loss, times in self.parts)
        parts = tuple((loss, times) for loss, times in given if loss is not NO_LOSS)
        return log_finite, Direction(self.name, parts)


@dataclass(frozen=True)
class Composition:
    """The directions of a composed event: its privacy is the worst of their values.

    ``private`` is False when the event contains a non-private release; then every epsilon is
    infinite.
    """

    neighboring_relation: str
    directions: tuple[Direction, ...]
    private: bool = True

    @property
    def has_law(self) -> bool:
        """Whether every loss has a law; of some mechanisms only Renyi divergences are known."""
        return all(loss.has_law for direction in self.directions for loss, _ in direction.parts)

    @property
    def laws(self) -> Composition | None:
        """The composition with laws that dominate its losses, or None if a loss has no such law.

        A law that replaces a loss without its own bounds the mechanism from above only.
        """
        directions = []
        for direction in self.directions:
            found = [(loss.law, times) for loss, times in direction.parts]
            parts = tuple((law, times) for law, times in found if law is not None)
            if len(parts) < len(found):
                return None
            directions.append(Direction(direction.name, parts))
        return Composition(self.neighboring_relation, tuple(directions), self.private)
