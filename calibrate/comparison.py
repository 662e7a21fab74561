"""How much noise do other accountants need for one target?

An accountant with looser bounds needs more noise than necessary for the target. A run with that
noise has a smaller epsilon than the target, and a lower utility.

>>> from dpcal.accountants import events
>>> def event(noise_multiplier):
...     return events.dpsgd(
...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=1000
...     )
>>> needs = compare(event, epsilon=2.0, delta=1e-6, accountants=("characteristic", "renyi"))
>>> [f"{row.accountant} {row.noise_multiplier:.3f}" for row in needs.rows]
['characteristic 1.029', 'renyi 1.094']
>>> f"{needs.rows[1].epsilon:.3f}"  # what the noisier run really has
'1.772'
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcal import _validate, accountants
from dpcal._roots import NoBracket, Stop, newton
from dpcal.accountants import Epsilon, events
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.targets import EventOf
from dpcal.errors import BackendRefused, TargetUnreachable, UnsupportedEvent

__all__ = ["ACCOUNTANTS", "Needed", "Needs", "compare"]

ACCOUNTANTS = ("characteristic", "renyi", "pld", "prv")

# Relative to the noise multiplier: how near an answer is to one that misses the target, for every
# accountant but ours; more digits would not show in the table.
_RELATIVE_WIDTH = 1e-4
# Relative to our own noise multiplier: how far from it dp-accounting searches first. Where its
# answer lies outside, it searches from zero, two to four times slower.
_NEAR = 0.01
# Over our own noise multiplier, and under it: the largest and the smallest that is tried.
_REACH = 1e6


@dataclass(frozen=True)
class Needed:
    """The noise that one accountant needs.

    Parameters
    ----------
    accountant
        Its name.
    noise_multiplier
        The smallest multiplier found whose upper bound, by this accountant, meets the target; None
        without an answer.
    epsilon
        Epsilon of a run with this noise, by the characteristic accountant.
    seconds
        Time that the search took.
    note
        Reason why there is no answer.
    """

    accountant: str
    noise_multiplier: float | None
    epsilon: Epsilon | None
    seconds: float
    note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        epsilon = None if self.epsilon is None else self.epsilon.to_dict()
        return {**vars(self), "epsilon": epsilon}


@dataclass(frozen=True)
class Needs:
    """The noise that several accountants need; ``str()`` is a table."""

    epsilon: float
    delta: float
    neighboring_relation: str
    rows: tuple[Needed, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {**vars(self), "rows": [row.to_dict() for row in self.rows]}

    def __str__(self) -> str:
        head = f"noise for epsilon = {self.epsilon:g}, delta = {self.delta:g}, "
        lines = [
            head + self.neighboring_relation,
            f"{'accountant':<16}{'noise multiplier':>18}{'epsilon of the run':>20}{'time':>12}",
        ]
        for row in self.rows:
            if row.noise_multiplier is None or row.epsilon is None:
                lines.append(f"{row.accountant:<16}{row.note}")
            else:
                lines.append(
                    f"{row.accountant:<16}{row.noise_multiplier:>18.6f}{row.epsilon:>20.6f}"
                    f"{row.seconds:>10.3f} s"
                )
        return "\n".join(lines)


def compare(
    event_of_sigma: EventOf,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    accountants: tuple[str, ...] = ACCOUNTANTS,
) -> Needs:
    """Return the noise that each of several accountants needs for a target.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event whose epsilon falls as it grows.
    epsilon
        Target, > 0.
    delta
        Target, in (0, 1).
    accountants
        Any of ``"characteristic"``, ``"renyi"``, ``"pld"`` (searched by
        ``dp_accounting.calibrate_dp_mechanism``) and ``"prv"``.

    Returns
    -------
    Needs
        One row an accountant. No row's noise multiplier has an upper bound, by its own accountant,
        above the target.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    _validate.positive(epsilon=epsilon)
    _validate.probability(delta=delta)
    target = {"epsilon": epsilon, "delta": delta, "neighboring_relation": neighboring_relation}
    for name in accountants:
        _validate.choice(ACCOUNTANTS, accountant=name)
    # The others search near our answer, which takes much less time than theirs.
    ours = _needed("characteristic", event_of_sigma, target, None)
    rows = [
        ours
        if name == "characteristic"
        else _needed(name, event_of_sigma, target, ours.noise_multiplier)
        for name in accountants
    ]
    return Needs(epsilon, delta, neighboring_relation, tuple(rows))


def _needed(
    name: str, event_of_sigma: EventOf, target: dict[str, Any], near: float | None
) -> Needed:
    start = time.perf_counter()
    try:
        if name == "characteristic":
            sigma = noise_multiplier(event_of_sigma, **target)
        elif name == "pld":
            sigma = _by_dp_accounting(event_of_sigma, near, **target)
        else:
            sigma = _by_search(event_of_sigma, near or 1.0, name, **target)
    except (BackendRefused, TargetUnreachable, UnsupportedEvent) as error:
        return Needed(name, None, None, time.perf_counter() - start, str(error))
    seconds = time.perf_counter() - start
    certified = accountants.epsilon(
        event_of_sigma(sigma),
        delta=target["delta"],
        neighboring_relation=target["neighboring_relation"],
    )
    return Needed(name, sigma, certified, seconds)


def _by_search(
    event_of_sigma: EventOf,
    near: float,
    accountant: str,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str,
) -> float:
    """Return the noise multiplier, by Newton's method on logarithms; the slope is about -1."""
    upper_at = _upper_bound(event_of_sigma, accountant, delta, neighboring_relation)
    before: list[tuple[float, float]] = []
    refusals: list[BackendRefused] = []

    def excess(x: float) -> tuple[float, float]:
        try:
            value = math.log(max(upper_at(math.exp(x)), 1e-300) / epsilon)
        except BackendRefused as refusal:
            # A noise level without an answer does not meet the target; look at larger ones.
            refusals.append(refusal)
            return math.inf, -1.0
        slope = (value - before[-1][1]) / (x - before[-1][0]) if before else -1.0
        before[:] = [(x, value)]
        return value, slope if -10.0 < slope < -0.1 else -1.0

    ends = math.log(near / _REACH), math.log(near * _REACH)
    try:
        found = newton(excess, math.log(near), *ends, Stop(absolute=_RELATIVE_WIDTH)).meet
    except NoBracket as none:
        if not none.meets:
            unreachable = TargetUnreachable(
                f"No noise multiplier up to {near * _REACH:.3g} gives epsilon={epsilon!r}."
            )
            raise (refusals[-1] if refusals else unreachable) from None
        found = none.at
    return math.exp(found)


def _upper_bound(
    event_of_sigma: EventOf, accountant: str, delta: float, relation: str
) -> Callable[[float], float]:
    """An accountant's upper bound on epsilon, as a function of the noise multiplier."""
    return lambda sigma: (
        accountants.epsilon(
            event_of_sigma(sigma), delta=delta, neighboring_relation=relation, accountant=accountant
        ).upper
    )


def _by_dp_accounting(
    event_of_sigma: EventOf,
    near: float | None,
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str,
) -> float:
    """Return the noise multiplier that dp-accounting finds with its PLD, and check it with ours.

    It searches first around ``near``, where that is known: from zero, it first prices what has
    little noise, which takes it long.
    """
    import dp_accounting
    from dp_accounting.mechanism_calibration import NoBracketIntervalFoundError
    from dp_accounting.pld import PLDAccountant

    relation = dp_accounting.NeighboringRelation[neighboring_relation.upper().replace("-", "_")]

    def event(sigma: float) -> events.DpEvent:
        return event_of_sigma(sigma) if sigma > 0 else events.NonPrivateDpEvent()

    def search(**bracket: Any) -> float:
        # Its width is absolute.
        width = _RELATIVE_WIDTH * min(near or 1.0, 1.0)
        sigma = dp_accounting.calibrate_dp_mechanism(
            lambda: PLDAccountant(relation), event, epsilon, delta, tol=width, **bracket
        )
        return float(sigma)

    refusals = (
        ArithmeticError,
        ValueError,
        NotImplementedError,
        dp_accounting.UnsupportedEventError,
        NoBracketIntervalFoundError,
    )
    upper_at = _upper_bound(event_of_sigma, "pld", delta, neighboring_relation)
    sigma = None
    if near is not None:
        upper_at(near)  # refuses at once what only a long search would refuse
        ends = (near * (1 - _NEAR), near * (1 + _NEAR))
        with contextlib.suppress(*refusals):
            sigma = search(bracket_interval=dp_accounting.ExplicitBracketInterval(*ends))
    try:
        sigma = search() if sigma is None else sigma
    except refusals as error:
        raise BackendRefused(f"dp-accounting refused: {' '.join(str(error).split())}") from error
    for _ in range(20):
        if upper_at(sigma) <= epsilon:
            return sigma
        sigma *= 1 + _RELATIVE_WIDTH
    raise BackendRefused(f"dp-accounting's noise multiplier {sigma!r} misses the target.")
