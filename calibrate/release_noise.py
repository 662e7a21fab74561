"""How much noise does each of several releases need, so that all of them together meet a target?

>>> found = releases(
...     [Release("visits", mechanism="laplace", weight=2.0), Release("stay", sensitivity=30.0)],
...     epsilon=1.0, delta=1e-6)
>>> for noise in found.noises:
...     print(f"{noise.name}: {noise.mechanism}, scale {noise.scale:.4f}")
visits: laplace, scale 2.3875
stay: gaussian, scale 202.5850
>>> print(f"{found.epsilon:.6f}")
1.000000
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

from dpcal._internal import validate
from dpcal._internal.files import read_as
from dpcal.accountants import Epsilon, epsilon as epsilon_of, events
from dpcal.accountants.rounding import next_up
from dpcal.calibrate.noise import noise_multiplier


@dataclass(frozen=True, kw_only=True)
class Noise:
    """The noise of one release.

    Parameters
    ----------
    name, mechanism
        Name of the release.
    scale
        In the units of the statistic: the standard deviation of Gaussian noise, the parameter sigma
        of discrete Gaussian noise, b of Laplace noise of density exp(-abs(x) / b) / (2 b), and
        1 / a of discrete Laplace noise of weights exp(-a abs(x)). For ``"any"``, 1 / epsilon.
    event
        Event of all its answers.
    """

    name: str
    mechanism: str
    scale: float
    event: events.DpEvent


def _discrete_laplace(scale: float, size: float, delta: float) -> events.DpEvent:
    return events.DiscreteLaplaceDpEvent(next_up(1 / (scale * size)), int(size))


# Standard deviation over scale; the event of one answer, from scale, sensitivity and delta.
_EVENTS: Mapping[str, tuple[float, Callable[[float, float, float], events.DpEvent]]] = {
    "gaussian": (1.0, lambda scale, *_: events.GaussianDpEvent(scale)),
    "laplace": (2**0.5, lambda scale, *_: events.LaplaceDpEvent(scale)),
    "discrete-gaussian": (
        1.0,
        lambda scale, size, _: events.DiscreteGaussianDpEvent(scale * size, int(size)),
    ),
    "discrete-laplace": (2**0.5, _discrete_laplace),
    "any": (2**0.5, lambda scale, _, delta: events.EpsilonDeltaDpEvent(next_up(1 / scale), delta)),
}


@dataclass(frozen=True)
class Release:
    """A statistic that is to be released, with noise that is still unknown.

    Parameters
    ----------
    name
        Any text.
    mechanism
        ``"gaussian"``, ``"laplace"``, ``"discrete-gaussian"``, ``"discrete-laplace"``, or
        ``"any"``: one that is (epsilon, ``delta``)-differentially private and has no closer bound.
    sensitivity
        How far one record, added or removed, moves the statistic, > 0: in L2 norm for Gaussian
        noise, in L1 norm for Laplace noise; a whole number for discrete noise.
    weight
        A number > 0. The standard deviation of the noise, in units of the sensitivity, is inversely
        proportional to it (for ``"any"``, of Laplace noise of the same epsilon).
    count
        How often it is released, each time with new noise: >= 1.
    delta
        Delta of one release by ``"any"``, in [0, 1).

    Raises
    ------
    ValueError
        If a value is outside its range.
    """

    name: str
    mechanism: str = "gaussian"
    sensitivity: float = 1.0
    weight: float = 1.0
    count: int = 1
    delta: float = 0.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str):
            raise TypeError(f"name must be a text, got {self.name!r}.")
        validate.choice(tuple(_EVENTS), mechanism=self.mechanism)
        check = validate.count if self.mechanism.startswith("discrete") else validate.positive
        check(sensitivity=self.sensitivity)
        validate.positive(weight=self.weight)
        validate.count(count=self.count)
        if validate.below_one(delta=self.delta) and self.mechanism != "any":
            raise ValueError(
                f"delta goes with mechanism='any', got delta={self.delta!r} with mechanism="
                f"{self.mechanism!r}."
            )

    @classmethod
    def of(cls, document: Any) -> list[Self]:
        """Return the releases of a parsed TOML file: tables ``[[release]]`` of the fields above.

        Raises
        ------
        ValueError
            If it holds something else, or a value that is outside its range.
        """
        names = ", ".join(field.name for field in fields(cls))
        must = f"the file must hold one [[release]] table or more of {names}, and nothing else"
        with read_as(must):
            tables = dict(document)
            rows = [cls(**row) for row in tables.pop("release")]
            if tables or not rows:
                raise TypeError(f"{len(rows)} of them, and {sorted(tables)}")
        return rows

    def noise(self, common: float) -> Noise:
        """Return the noise at a standard deviation of weight 1, in units of the sensitivity."""
        ratio, event_of = _EVENTS[self.mechanism]
        scale = common / (ratio * self.weight)
        one = event_of(scale, self.sensitivity, self.delta)
        size = 1.0 if self.mechanism == "any" else self.sensitivity
        event = events.SelfComposedDpEvent(one, int(self.count))
        return Noise(
            name=self.name, mechanism=self.mechanism, scale=next_up(scale * size), event=event
        )


@dataclass(frozen=True)
class Calibrated:
    """Noises that meet a target together, their event, and its epsilon."""

    noises: tuple[Noise, ...]
    event: events.DpEvent
    epsilon: Epsilon


def releases(
    asked: Iterable[Release],
    *,
    epsilon: float,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
) -> Calibrated:
    """Return the least noise of several releases with an exact composition that meets a target.

    All noises have one common factor, so that weights and sensitivities fix their ratios.

    Parameters
    ----------
    asked
        The releases, about the same records.
    epsilon, delta
        The target: epsilon > 0, delta in [0, 1); at 0 every noise must be Laplace noise.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` (a replaced record moves a statistic by twice its
        sensitivity) or ``"replace-special"``.

    Raises
    ------
    ValueError
        If there is no release.
    TargetUnreachable
        If the deltas of releases by ``"any"`` leave nothing for the target.
    """
    validate.positive(epsilon=epsilon)
    wanted = list(asked)
    if not wanted:
        raise ValueError("asked must hold one release at least, got none.")

    def event(common: float) -> events.DpEvent:
        return events.ComposedDpEvent([each.noise(common).event for each in wanted])

    target: dict[str, Any] = {"delta": delta, "neighboring_relation": neighboring_relation}
    common = noise_multiplier(event, epsilon=epsilon, **target)
    together = event(common)
    noises = tuple(each.noise(common) for each in wanted)
    return Calibrated(noises, together, epsilon_of(together, **target))
