"""Noise that other accountants need for one target.

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

import time
from dataclasses import dataclass
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import Epsilon, epsilon as epsilon_of
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.targets import EventOf
from dpcal.errors import BackendRefused, TargetUnreachable, UnsupportedEvent

ACCOUNTANTS = ("characteristic", "renyi", "pld", "prv")


@dataclass(frozen=True)
class Needed:
    """The noise that one accountant needs.

    Parameters
    ----------
    accountant
        Its name.
    noise_multiplier
        The smallest multiplier found with an upper bound, by this accountant, that meets the
        target; None without an answer.
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
        Maps a noise multiplier > 0 to an event; its epsilon falls as the multiplier grows.
    epsilon
        Target, > 0.
    delta
        Target, in (0, 1).
    accountants
        Any of ``"characteristic"``, ``"renyi"``, ``"pld"`` and ``"prv"``.

    Returns
    -------
    Needs
        One row an accountant. No row's noise multiplier has an upper bound, by its own accountant,
        above the target.
    """
    target: dict[str, Any] = {
        "epsilon": validate.positive(epsilon=epsilon),
        "delta": validate.probability(delta=delta),
        "neighboring_relation": validate.relation(neighboring_relation),
    }
    for name in accountants:
        validate.choice(ACCOUNTANTS, accountant=name)
    rows = tuple(_needed(name, event_of_sigma, target) for name in accountants)
    return Needs(**target, rows=rows)


def _needed(name: str, event_of_sigma: EventOf, target: dict[str, Any]) -> Needed:
    start = time.perf_counter()
    try:
        sigma = noise_multiplier(event_of_sigma, **target, accountant=name)
    except (BackendRefused, TargetUnreachable, UnsupportedEvent) as error:
        return Needed(name, None, None, time.perf_counter() - start, str(error))
    seconds = time.perf_counter() - start
    asked = {key: value for key, value in target.items() if key != "epsilon"}
    return Needed(name, sigma, epsilon_of(event_of_sigma(sigma), **asked), seconds)
