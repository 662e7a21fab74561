"""Pictures of privacy profiles and trade-offs.

>>> from dpcal.accountants import events
>>> curve = Curve.of(events.GaussianDpEvent(1.0), "sigma = 1", accountants=["renyi"])
>>> [axes.get_xlabel() for axes in profile(curve).axes]
['epsilon']
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants import epsilon, log_delta, privacy_profile
from dpcal.accountants.curves.tradeoff import TradeOff
from dpcal.accountants.events import (
    CorrelatedGaussianDpEvent,
    RandomAllocationDpEvent,
    ShuffledEpochsDpEvent,
)
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.errors import BackendRefused, UnsupportedEvent
from dpcal.plot.style import (
    BLUE,
    INK,
    MUTED,
    RED,
    TARGET,
    caption,
    figure_and_axes,
    legend,
    note,
    plain_ticks,
)

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

__all__ = [
    "STYLES",
    "Curve",
    "Line",
    "attacker",
    "profile",
    "trade_off_curve",
]

LOWEST = 1e-10
STYLES: Mapping[str, Mapping[str, Any]] = {
    "characteristic": {"linestyle": "-", "linewidth": 2.0},
    "renyi": {"linestyle": (0, (4, 2)), "linewidth": 1.2},
    "pld": {"linestyle": "", "marker": "o", "markersize": 6.5, "markerfacecolor": "none"},
    "prv": {"linestyle": "", "marker": "+", "markersize": 6.5},
}
NAMES = {
    "characteristic": "characteristic",
    "renyi": "Renyi",
    "pld": "PLD (dp-accounting)",
    "prv": "PRV (prv-accountant)",
    "attack": "lower ends, by attacks",
}
# Delta falls in epsilon: a step to the right of a point is a bound; a straight line is none.
WHOLE: Mapping[str, Any] = {"linestyle": "-", "linewidth": 1.5, "drawstyle": "steps-post"}
# The same for lower ends by attacks: a step to the left.
BELOW: Mapping[str, Any] = {"linestyle": ":", "linewidth": 1.5, "drawstyle": "steps-pre"}
WHOLE_POINTS = 10
WHOLE_RANGE = 0.01
# PLD and PRV take seconds for a dense curve; marks on the others show that they agree.
MARKS = 4

WHOLE_RUNS = CorrelatedGaussianDpEvent, RandomAllocationDpEvent, ShuffledEpochsDpEvent

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """One accountant's bounds on delta at several epsilons; the lower ones if it proves any."""

    accountant: str
    epsilon: Vector
    delta: Vector
    lower: Vector | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """The privacy profile of one event, according to several accountants.

    Parameters
    ----------
    label
        Written next to the curve.
    lines
        One an accountant.
    target
        An (epsilon, delta) that the event was calibrated to, or None.
    about
        The mechanism and the neighboring relation, for the caption.
    """

    label: str
    lines: tuple[Line, ...]
    target: tuple[float, float] | None = None
    about: str = ""

    @classmethod
    def of(
        cls,
        event: DpEvent,
        label: str,
        *,
        target: tuple[float, float] | None = None,
        accountants: Sequence[str] = tuple(STYLES),
        neighboring_relation: str = "add-or-remove-one",
    ) -> Curve:
        """Return the profile of an event by accountants, for delta down to 1e-10.

        For a run with correlated noise, by random allocation or over shuffled epochs, points are
        computed one by one: epsilon at ten deltas, whatever the accountants are. For shuffled
        epochs the lower ends, which are attacks, are a second line.
        """
        neighboring_relation = validate.relation(neighboring_relation)
        about = _about(event, neighboring_relation)
        if any(isinstance(leaf, WHOLE_RUNS) for leaf in leaves(event)):
            lines = _whole_run(event, neighboring_relation)
            return cls(label=label, lines=lines, target=target, about=about)

        def end(delta: float, name: str = "characteristic") -> float:
            how: dict[str, Any] = {"neighboring_relation": neighboring_relation, "accountant": name}
            return max(epsilon(event, delta=delta, **how).upper, 1e-6)

        found = []
        for name in accountants:
            dense = "marker" not in STYLES[name]
            high = end(LOWEST, name) if dense else end(1e-8)
            low = max(end(0.2 if dense else 1e-2), high / 12)
            grid = np.geomspace(low, high, 160 if dense else MARKS)
            found.append(_line(event, name, grid, neighboring_relation))
        return cls(label=label, lines=tuple(found), target=target, about=about)


def _about(event: DpEvent, relation: str) -> str:
    """Return a mechanism, cut where it is long, and its relation."""
    text = repr(event)
    return f"{text if len(text) <= 300 else text[:297] + '...'} | {relation}"


def _whole_run(event: DpEvent, relation: str) -> tuple[Line, ...]:
    """Return epsilons of a whole run at deltas over a picture's range."""
    deltas = np.geomspace(0.1, LOWEST, WHOLE_POINTS)
    answers = [
        epsilon(event, delta=float(delta), neighboring_relation=relation) for delta in deltas
    ]
    upper, lower = np.array([(answer.upper, answer.lower) for answer in answers]).T
    name = f"{answers[0].accountant}, point by point"
    # A large delta may need next to no epsilon, which lies decades away from all others.
    shown = upper >= WHOLE_RANGE * upper.max()
    lines = [Line(accountant=name, epsilon=upper[shown], delta=deltas[shown])]
    if isinstance(event, ShuffledEpochsDpEvent):
        seen = lower > 0
        lines.append(Line(accountant="attack", epsilon=lower[seen], delta=deltas[seen]))
    return tuple(lines)


def _line(event: DpEvent, accountant: str, grid: Vector, relation: str) -> Line:
    """Evaluate one accountant, leaving out the points that it refuses."""
    if accountant == "characteristic":
        bounds = privacy_profile(event, grid, neighboring_relation=relation)
        return Line(accountant=accountant, epsilon=grid, delta=bounds.upper, lower=bounds.lower)
    answers = []
    for value in grid:
        try:
            bound = log_delta(
                event,
                epsilon=float(value),
                accountant=accountant,
                neighboring_relation=relation,
            )
        except (BackendRefused, UnsupportedEvent):
            continue
        answers.append((float(value), math.exp(bound)))
    epsilons, deltas = np.array(answers).reshape(-1, 2).T
    return Line(accountant=accountant, epsilon=epsilons, delta=deltas)


def _style(name: str) -> Mapping[str, Any]:
    """Return how the line of an accountant, of a whole run or of attacks is drawn."""
    return BELOW if name == "attack" else STYLES.get(name, WHOLE)


def profile(curve: Curve) -> Any:
    """Draw delta against epsilon, a line for each accountant.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = figure_and_axes("Privacy profile: upper bounds on delta")
    for line in curve.lines:
        axes.plot(line.epsilon, line.delta, color=BLUE, **_style(line.accountant), zorder=3)
        if line.lower is not None:
            _band(axes, line.epsilon, np.maximum(line.lower, LOWEST / 100), line.delta)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="delta")
    axes.set_ylim(LOWEST / 8, 1.0)
    axes.set_yticks([10.0**k for k in range(-10, 1, 2)])
    axes.set_yticks([], minor=True)
    how: dict[str, Any] = {"color": BLUE, "va": "top", "fontweight": "bold", "zorder": 5}
    if curve.target is None:
        end = curve.lines[0].epsilon[-1], curve.lines[0].delta[-1]
        note(axes, curve.label, end, (0, -5), boxed=True, ha="center", **how)
    else:
        axes.plot(*curve.target, color=BLUE, **TARGET, zorder=4)
        note(axes, curve.label, curve.target, (-8, -8), boxed=True, ha="right", **how)
        delta = curve.target[1]
        axes.axhline(delta, color=MUTED, linewidth=0.8, zorder=1)
        how = {"xycoords": ("axes fraction", "data"), "va": "top", "color": MUTED}
        note(axes, f"delta = {delta:g}", (0.005, delta), (2, -4), **how)
    plain_ticks(axes.xaxis, axes.get_xlim())
    _accountant_legend(axes, curve)
    caption(figure, curve.about)
    return figure


def _band(axes: Any, x: Vector, lower: Vector, upper: Vector) -> None:
    """Shade the area between the bounds; it is a hair's breadth wherever they are tight."""
    axes.fill_between(x, lower, upper, color=BLUE, alpha=0.25, linewidth=0, zorder=2)


def trade_off_curve(
    curve: TradeOff, label: str = "", *, attacks: Sequence[tuple[str, Vector, Vector]] = ()
) -> Any:
    """Draw false-negative against false-positive rates, between their bounds.

    Parameters
    ----------
    curve, label
        The curve, and its name in the legend.
    attacks
        Results of attacks: labels, false-positive and false-negative rates, shape (k,).

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = figure_and_axes("Trade-off: no attack is below the curve", height=4.9)
    rates = np.concatenate([[0.0], curve.false_positive_rates, [1.0]])
    lower, upper = (np.concatenate([[1.0], ends, [0.0]]) for ends in (curve.lower, curve.upper))
    axes.plot(rates, lower, color=BLUE, linewidth=2.0, label=label, zorder=3)
    _band(axes, rates, lower, upper)
    for name, positives, negatives in attacks:
        axes.plot(positives, negatives, color=RED, linewidth=1.2, label=name, zorder=4)
    axes.plot([0, 1], [1, 0], color=MUTED, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    how: dict[str, Any] = {"rotation": -45, "rotation_mode": "anchor", "color": MUTED}
    note(axes, "guessing", (0.5, 0.5), (4, 4), **how)
    ends: dict[str, Any] = {"xlim": (0, 1), "ylim": (0, 1), "aspect": "equal"}
    axes.set(xlabel="false-positive rate", ylabel="false-negative rate", **ends)
    if attacks or label:
        legend(axes, loc="upper right")
    caption(figure, curve.neighboring_relation)
    return figure


def attacker(curve: TradeOff, label: str = "") -> Any:
    """Draw the limits of an attacker: found members, in percent, against false alarms.

    Parameters
    ----------
    curve
        The trade-off of a mechanism.
    label
        A text at the curve's largest distance from guessing.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = figure_and_axes("What an attacker can find out, at most", height=4.4)
    alarms = 100 * np.concatenate([[0.0], curve.false_positive_rates, [1.0]])
    found = 100 * np.concatenate([[1.0 - curve.lower[0]], 1.0 - curve.lower, [1.0]])
    axes.plot(alarms, found, color=BLUE, linewidth=2.0, zorder=3)
    axes.fill_between(alarms, found, 100, color=MUTED, alpha=0.15, linewidth=0)
    axes.plot([0, 100], [0, 100], color=MUTED, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    note(axes, "impossible", (3, 97), (0, 0), color=INK, va="top")
    note(axes, "guessing", (60, 60), (5, -5), color=MUTED, va="top")
    far = int(np.argmax(found - alarms))
    how: dict[str, Any] = {"color": BLUE, "ha": "right", "fontweight": "bold"}
    note(axes, label, (alarms[far], found[far]), (-6, 6), **how)
    ends: dict[str, Any] = {"xlim": (0, 100), "ylim": (0, 100), "aspect": "equal"}
    axes.set(xlabel="false alarms, % of outsiders", ylabel="found, % of members", **ends)
    return figure


def _accountant_legend(axes: Any, curve: Curve) -> None:
    """Name the line styles of several accountants."""
    if len(curve.lines) < 2:
        return
    from matplotlib.lines import Line2D

    drawn = [line.accountant for line in curve.lines]
    named = [(NAMES.get(name, name), _style(name)) for name in drawn]
    named += [("claimed (epsilon, delta)", TARGET)] if curve.target else []
    handles = [Line2D([], [], color=INK, **style) for _, style in named]
    legend(axes, handles, [name for name, _ in named], loc="lower left")
