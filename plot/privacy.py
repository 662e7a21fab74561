"""Pictures of privacy profiles and trade-offs.

>>> from dpcal.accountants import events
>>> figure = profile(events.GaussianDpEvent(1.0), "sigma = 1", accountants=["renyi"])
>>> [axes.get_xlabel() for axes in figure.axes]
['epsilon']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants import epsilon
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
from dpcal.report.output import at_most

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

LOWEST = 1e-10
# Smallest epsilon that is drawn, relative to the largest: a large delta may need next to none.
SHOWN = 1 / 12
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
}
# Delta falls in epsilon: a step to the right of a point is a bound; a straight line is none.
WHOLE: Mapping[str, Any] = {"linestyle": "-", "linewidth": 1.5, "drawstyle": "steps-post"}
# First and last delta, and points: a dense curve takes PLD and PRV, and whole runs, seconds.
DELTAS = {"pld": (1e-2, 1e-8, 4), "prv": (1e-2, 1e-8, 4), "auto": (0.1, LOWEST, 10)}
WHOLE_RUNS = CorrelatedGaussianDpEvent, RandomAllocationDpEvent, ShuffledEpochsDpEvent

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """One accountant's lower and upper bounds on epsilon at several deltas."""

    accountant: str
    delta: Vector
    lower: Vector
    upper: Vector


def bounds(
    event: DpEvent,
    *,
    accountants: Sequence[str] = tuple(STYLES),
    neighboring_relation: str = "add-or-remove-one",
) -> list[Line]:
    """Return epsilons of an event by accountants, at deltas down to 1e-10.

    Points that an accountant refuses are left out. A run with correlated noise, by random
    allocation or over shuffled epochs has a line of ten points, whatever the accountants are.
    """
    if any(isinstance(leaf, WHOLE_RUNS) for leaf in leaves(event)):
        accountants = ("auto",)
    lines = []
    for name in accountants:
        how: dict[str, Any] = {"accountant": name, "neighboring_relation": neighboring_relation}
        found = []
        for delta in np.geomspace(*DELTAS.get(name, (0.2, LOWEST, 160))).tolist():
            with suppress(BackendRefused, UnsupportedEvent):
                answer = epsilon(event, delta=delta, **how)
                found.append((delta, answer.lower, answer.upper))
        rows = np.array([row for row in found if row[2] < np.inf]).reshape(-1, 3)
        delta, lower, upper = rows[rows[:, 2] >= SHOWN * rows[:, 2].max(initial=0.0)].T
        if len(delta):
            lines.append(Line(accountant=name, delta=delta, lower=lower, upper=upper))
    return lines


def profile(
    event: DpEvent,
    label: str = "",
    *,
    marks: Sequence[tuple[float, float]] = (),
    accountants: Sequence[str] = tuple(STYLES),
    neighboring_relation: str = "add-or-remove-one",
) -> Any:
    """Draw delta against epsilon, a line for each accountant, and bars down to its lower bounds.

    Parameters
    ----------
    event
        A mechanism.
    label
        Written next to the curve, or next to each target in place of its epsilon.
    marks
        Marked pairs (epsilon, delta).
    accountants, neighboring_relation
        As for :func:`bounds`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    relation = validate.relation(neighboring_relation)
    lines = bounds(event, accountants=accountants, neighboring_relation=relation)
    figure, axes = figure_and_axes("Privacy profile: upper bounds on delta")
    for line in lines:
        style = STYLES.get(line.accountant, WHOLE)
        axes.plot(line.upper, line.delta, color=BLUE, **style, zorder=3)
        if "marker" not in style:
            lower = np.where(line.lower > 0, line.lower, line.upper)
            axes.hlines(line.delta, lower, line.upper, color=BLUE, alpha=0.4, zorder=2)
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="delta")
    axes.set_ylim(LOWEST / 8, 1.0)
    axes.set_yticks([10.0**k for k in range(-10, 1, 2)])
    axes.set_yticks([], minor=True)
    how: dict[str, Any] = {"color": BLUE, "va": "top", "fontweight": "bold", "boxed": True}
    how["zorder"] = 5
    if lines and not marks:
        note(axes, label, (lines[0].upper[-1], lines[0].delta[-1]), (0, -5), ha="center", **how)
    for at, delta in marks:
        axes.plot(at, delta, color=BLUE, **TARGET, zorder=4)
        text = label or f"epsilon = {at_most(at, digits=5)}"
        note(axes, text, (at, delta), (-8, -8), ha="right", **how)
        axes.axhline(delta, color=MUTED, linewidth=0.8, zorder=1)
        place: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "top"}
        note(axes, f"delta = {delta:g}", (0.005, delta), (2, -4), color=MUTED, **place)
    plain_ticks(axes.xaxis, axes.get_xlim())
    if len(lines) > 1:
        _legend(axes, lines, marks)
    text = repr(event)
    caption(figure, f"{text if len(text) <= 300 else text[:297] + '...'} | {relation}")
    return figure


def _legend(axes: Any, lines: Sequence[Line], marks: Sequence[tuple[float, float]]) -> None:
    """Name the line styles of several accountants."""
    from matplotlib.lines import Line2D

    named = [(NAMES[line.accountant], STYLES[line.accountant]) for line in lines]
    named += [("claimed (epsilon, delta)", TARGET)] if marks else []
    handles = [Line2D([], [], color=INK, **style) for _, style in named]
    legend(axes, handles, [name for name, _ in named], loc="lower left")


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
    axes.fill_between(rates, lower, upper, color=BLUE, alpha=0.25, linewidth=0, zorder=2)
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
