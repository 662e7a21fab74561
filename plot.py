"""Pictures: what a mechanism costs, and what a private run achieves.

matplotlib (``pip install 'dpcal[plot]'``) is imported when a picture is drawn. Nothing here touches
its global state, so pictures can be drawn in servers and threads.

>>> from dpcal.accountants import events
>>> curve = Curve.of(events.GaussianDpEvent(1.0), "sigma = 1", accountants=("characteristic",))
>>> figure = profile([curve])
>>> [axes.get_ylabel() for axes in figure.axes]
['delta']
"""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants import epsilon, log_delta, privacy_profile
from dpcal.accountants.curves.conversions import epsilon_from_renyi, renyi_divergence
from dpcal.accountants.curves.tradeoff import TradeOff
from dpcal.errors import BackendRefused, MissingExtra, UnsupportedEvent
from dpcal.report import replace_file

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent
    from dpcal.calibrate.strategies import StrategyTable

__all__ = [
    "Curve",
    "Line",
    "Point",
    "RenyiCurve",
    "along_run",
    "check_picture",
    "png",
    "profile",
    "renyi_curve",
    "save",
    "strategies",
    "trade_off_curve",
    "utility",
]

# Paul Tol's palettes: distinct to readers with any colour vision, and in grey.
INK, MUTED, BLUE, RED = "#222222", "#777777", "#0077BB", "#CC3311"
ORDERED = ("#88CCEE", "#44AA99", "#117733", "#AA4499", "#332288")
DPI = 200
LOWEST = 1e-10
STYLES: Mapping[str, Mapping[str, Any]] = {
    "characteristic": {"linestyle": "-", "linewidth": 2.0},
    "renyi": {"linestyle": (0, (4, 2)), "linewidth": 1.2},
    "pld": {"linestyle": "", "marker": "o", "markersize": 6.5, "markerfacecolor": "none"},
    "prv": {"linestyle": "", "marker": "+", "markersize": 6.5},
}
TARGET: Mapping[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 8,
    "markeredgecolor": "white",
}
NAMES = {
    "characteristic": "characteristic",
    "renyi": "Renyi",
    "pld": "PLD (dp-accounting)",
    "prv": "PRV (prv-accountant)",
}
# PLD and PRV take seconds for a dense curve; marks on the others show that they agree.
MARKS = 4

Vector = NDArray[np.float64]


# -- what is drawn


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
        Written beside the curve.
    lines
        One an accountant.
    target
        An (epsilon, delta) that the event was calibrated to, or None.
    """

    label: str
    lines: tuple[Line, ...]
    target: tuple[float, float] | None = None

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
        """Ask accountants for the profile of an event, for delta down to 1e-10."""

        def end(delta: float, name: str = "characteristic") -> float:
            how: dict[str, Any] = {"neighboring_relation": neighboring_relation, "accountant": name}
            return max(epsilon(event, delta=delta, **how).upper, 1e-6)

        lines = []
        for name in accountants:
            dense = "marker" not in STYLES[name]
            high = end(LOWEST, name) if dense else end(1e-8)
            low = max(end(0.2 if dense else 1e-2), high / 12)
            grid = np.geomspace(low, high, 160 if dense else MARKS)
            lines.append(_line(event, name, grid, neighboring_relation))
        return cls(label=label, lines=tuple(lines), target=target)


def _line(event: DpEvent, accountant: str, grid: Vector, relation: str) -> Line:
    """Evaluate one accountant, leaving out what it refuses."""
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


@dataclass(frozen=True, kw_only=True)
class Point:
    """Scores of runs with different seeds at one epsilon."""

    epsilon: float
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.scores))

    @property
    def spread(self) -> float:
        """Sample standard deviation over the seeds; 0 for a single one."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) > 1 else 0.0


# -- the pictures


def profile(curves: Sequence[Curve]) -> Any:
    """Draw delta against epsilon, a curve for each event and accountant.

    Parameters
    ----------
    curves
        At least one; ordered, for instance by epsilon.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _figure()
    drawn = list(dict.fromkeys(line.accountant for curve in curves for line in curve.lines))
    colors = ORDERED if len(curves) > 1 else (BLUE,)
    for place, curve in enumerate(curves):
        color = colors[place % len(colors)]
        for line in curve.lines:
            axes.plot(line.epsilon, line.delta, color=color, **STYLES[line.accountant], zorder=3)
            if line.lower is not None:
                _band(axes, line.epsilon, np.maximum(line.lower, LOWEST / 100), line.delta, color)
        if curve.target is not None:
            axes.plot(*curve.target, color=color, **TARGET, zorder=4)
        _label_curve(axes, curve, color, alone=len(curves) == 1)
    _profile_axes(axes, curves)
    _accountant_legend(axes, drawn, targets=any(curve.target for curve in curves))
    return figure


def _band(axes: Any, x: Vector, lower: Vector, upper: Vector, color: str) -> None:
    """Shade what lies between the bounds; it is a hair's breadth wherever they are tight."""
    axes.fill_between(x, lower, upper, color=color, alpha=0.25, linewidth=0, zorder=2)


def trade_off_curve(curves: Sequence[tuple[str, TradeOff]]) -> Any:
    """Draw false-negative against false-positive rates, between their bounds.

    Parameters
    ----------
    curves
        At least one label and curve, ordered by privacy.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _figure(square=True)
    colors = ORDERED if len(curves) > 1 else (BLUE,)
    for place, (label, curve) in enumerate(curves):
        color = colors[place % len(colors)]
        rates = np.concatenate([[0.0], curve.false_positive_rates, [1.0]])
        lower = np.concatenate([[1.0], curve.lower, [0.0]])
        upper = np.concatenate([[1.0], curve.upper, [0.0]])
        axes.plot(rates, lower, color=color, linewidth=2.0, label=label, zorder=3)
        _band(axes, rates, lower, upper, color)
    axes.plot([0, 1], [1, 0], color=MUTED, linewidth=1.0, linestyle=(0, (4, 2)), zorder=1)
    axes.annotate(
        "guessing", (0.5, 0.5), textcoords="offset points", xytext=(4, 4), rotation=-45,
        rotation_mode="anchor", color=MUTED, fontsize=9,
    )  # fmt: skip
    axes.set(
        xlabel="false-positive rate", ylabel="false-negative rate", xlim=(0, 1), ylim=(0, 1),
        aspect="equal",
    )  # fmt: skip
    axes.set_title("Trade-off: no attack is below the curve", loc="left", color=INK)
    if any(label for label, _ in curves):
        axes.legend(loc="upper right", framealpha=1.0, edgecolor="none", fontsize=9)
    return figure


@dataclass(frozen=True, kw_only=True, eq=False)
class RenyiCurve:
    """Renyi divergences of one event at many orders, rounded up."""

    label: str
    orders: Vector
    divergences: Vector

    @classmethod
    def of(
        cls,
        event: DpEvent,
        label: str,
        *,
        neighboring_relation: str = "add-or-remove-one",
        highest: float = 256.0,
    ) -> RenyiCurve:
        """Ask for the divergences at real orders from 1.05 to the highest."""
        orders = 1 + np.geomspace(0.05, highest - 1, 160)
        values = [
            renyi_divergence(event, order=float(order), neighboring_relation=neighboring_relation)
            for order in orders
        ]
        return cls(label=label, orders=orders, divergences=np.array(values))

    def best(self, delta: float) -> tuple[float, float, float]:
        """Order among these, divergence and epsilon, for the smallest epsilon at a delta."""
        pairs = zip(self.orders.tolist(), self.divergences.tolist(), strict=True)
        epsilons = [epsilon_from_renyi(value, order=order, delta=delta) for order, value in pairs]
        place = int(np.argmin(epsilons))
        return float(self.orders[place]), float(self.divergences[place]), epsilons[place]


def renyi_curve(curves: Sequence[RenyiCurve], *, delta: float | None = None) -> Any:
    """Draw Renyi divergences against the order, and mark the best order at a delta.

    Parameters
    ----------
    curves
        At least one, ordered by privacy.
    delta
        In (0, 1), or None.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _figure()
    colors = ORDERED if len(curves) > 1 else (BLUE,)
    for place, curve in enumerate(curves):
        color = colors[place % len(colors)]
        label = {"label": curve.label} if curve.label else {}
        axes.plot(curve.orders, curve.divergences, color=color, linewidth=2.0, zorder=3, **label)
        if delta is not None:
            order, value, best = curve.best(delta)
            axes.plot(order, value, color=color, **TARGET, zorder=4)
            axes.annotate(
                f"order {order:.3g} gives epsilon = {best:.4g}\nat delta = {delta:g}",
                (order, value),
                textcoords="offset points",
                xytext=(10, -4),
                va="top",
                color=color,
                fontsize=9,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
                zorder=5,
            )
    axes.set(xscale="log", yscale="log", xlabel="order", ylabel="Renyi divergence")
    _plain_ticks(axes.xaxis, axes.get_xlim())
    axes.yaxis.set_minor_locator(_ticker().NullLocator())
    axes.set_title("Renyi divergence, worse direction", loc="left", color=INK)
    if any(curve.label for curve in curves):
        axes.legend(loc="upper left", framealpha=1.0, edgecolor="none", fontsize=9)
    return figure


def _label_curve(axes: Any, curve: Curve, color: str, *, alone: bool) -> None:
    """Write a curve's label at its claim if it is the only one, and at its lower end otherwise."""
    first = curve.lines[0]
    if alone and curve.target is not None:
        place, offset, align, vertical = curve.target, (-8, -8), "right", "top"
    else:
        place, offset = (float(first.epsilon[-1]), float(first.delta[-1])), (0, -5)
        align, vertical = "center", "top"
    axes.annotate(
        curve.label,
        place,
        textcoords="offset points",
        xytext=offset,
        ha=align,
        va=vertical,
        color=color,
        fontweight="bold",
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=5,
    )


def _profile_axes(axes: Any, curves: Sequence[Curve]) -> None:
    axes.set(xscale="log", yscale="log", xlabel="epsilon", ylabel="delta")
    axes.set_ylim(LOWEST / 8, 1.0)
    axes.set_yticks([10.0**k for k in range(-10, 1, 2)])
    axes.yaxis.set_minor_locator(_ticker().NullLocator())
    _plain_ticks(axes.xaxis, axes.get_xlim())
    targets = {curve.target[1] for curve in curves if curve.target is not None}
    for delta in targets:
        axes.axhline(delta, color=MUTED, linewidth=0.8, zorder=1)
        axes.annotate(
            f"delta = {delta:g}",
            (0.005, delta),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            xytext=(2, -4),
            va="top",
            color=MUTED,
            fontsize=9,
        )
    axes.set_title("Privacy profile: upper bounds on delta", loc="left", color=INK)


def _accountant_legend(axes: Any, drawn: Sequence[str], *, targets: bool) -> None:
    """Name the line styles, in a colour that belongs to no event."""
    if len(drawn) < 2:
        return
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], color=INK, **STYLES[name]) for name in drawn]
    names = [NAMES[name] for name in drawn]
    if targets:
        handles.append(Line2D([], [], color=INK, **TARGET))
        names.append("claimed (epsilon, delta)")
    axes.legend(
        handles,
        names,
        loc="lower left",
        frameon=True,
        framealpha=1.0,
        edgecolor="none",
        fontsize=9,
    )


def utility(
    points: Sequence[Point],
    *,
    optimum: float | None,
    chance: float | None,
    ylabel: str = "test accuracy",
    title: str = "",
) -> Any:
    """Draw accuracy against epsilon: every seed, their mean, and one standard deviation.

    Parameters
    ----------
    points
        One an epsilon, in increasing order.
    optimum
        The non-private optimum's accuracy, or None.
    chance
        The larger class's share, or None.
    ylabel
        What is measured, a share in [0, 1].
    title
        Above the axes.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _figure()
    x = np.array([point.epsilon for point in points])
    mean = np.array([point.mean for point in points])
    for point in points:
        offsets = np.geomspace(0.96, 1.04, len(point.scores))
        axes.plot(point.epsilon * offsets, point.scores, ".", color=BLUE, alpha=0.35, zorder=2)
    axes.errorbar(
        x,
        mean,
        yerr=[point.spread for point in points],
        color=BLUE,
        marker="o",
        linewidth=2,
        capsize=4,
        zorder=3,
    )
    for point in points:
        axes.annotate(
            f"{point.mean:.1%}",
            (point.epsilon, max(point.mean + point.spread, *point.scores)),
            textcoords="offset points",
            xytext=(0, 6),
            ha="center",
            color=BLUE,
            fontsize=9,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            zorder=4,
        )
    axes.set(xscale="log", xlabel="epsilon", ylabel=ylabel)
    axes.set_title(title, loc="left", color=INK)
    axes.set_xlim(x.min() / 1.35, x.max() * 1.35)
    axes.set_xticks(x, [f"{value:g}" for value in x])
    axes.xaxis.set_minor_locator(_ticker().NullLocator())
    _share_axis(axes, [s for point in points for s in point.scores], optimum, chance)
    return figure


def _share_axis(
    axes: Any, scores: Sequence[float], optimum: float | None, chance: float | None
) -> None:
    """A y axis in percent, with the two reference lines labelled where they end."""
    lowest = min(scores) - 0.02
    if chance is not None and chance < lowest:
        text = f"always the larger class: {chance:.1%} (below the axis)"
        axes.annotate(
            text, (0.99, 0.02), xycoords="axes fraction", ha="right", color=MUTED, fontsize=9
        )
    for value, text, color in (
        (optimum, "non-private\noptimum", RED),
        (chance, "always the\nlarger class", MUTED),
    ):
        if value is not None and value >= lowest:
            axes.axhline(value, color=color, linewidth=1.2, zorder=1)
            axes.annotate(
                f"{text}\n{value:.1%}",
                (1.0, value),
                xycoords=("axes fraction", "data"),
                textcoords="offset points",
                xytext=(6, 0),
                va="center",
                color=color,
            )
    top = max([*scores, optimum or 0.0]) + 0.015
    axes.set_ylim(lowest, top if top < 0.99 else 1.005)
    axes.yaxis.set_major_formatter(_ticker().PercentFormatter(1.0, decimals=0))


def along_run(
    spent: Sequence[float], scores: Sequence[float], *, final: float, ylabel: str, share: bool
) -> Any:
    """Draw the held-out score of the iterates against the epsilon spent so far.

    Parameters
    ----------
    spent, scores
        One of each an iterate, in the order of the run.
    final
        Score of the returned parameters.
    ylabel
        What is measured.
    share
        Whether it is a share in [0, 1].

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = _figure()
    axes.plot(spent, scores, color=BLUE, linewidth=1.2, label="iterates", zorder=2)
    label = f"returned: {final:.1%}" if share else f"returned: {final:.4g}"
    axes.plot(spent[-1], final, color=RED, **TARGET, label=label, zorder=3, clip_on=False)
    axes.legend(loc="best", framealpha=1.0, edgecolor="none")
    axes.set(xlabel="epsilon spent", ylabel=ylabel)
    axes.set_xlim(0, spent[-1])
    if share:
        axes.yaxis.set_major_formatter(_ticker().PercentFormatter(1.0, decimals=0))
        axes.set_ylim(min(scores) - 0.03, min(max(*scores, final) + 0.06, 1.01))
    return figure


# -- matplotlib


def strategies(table: StrategyTable) -> Any:
    """Draw the errors of strategies at one target against the noise that they need.

    Parameters
    ----------
    table
        From :func:`dpcal.calibrate.compare_strategies`. Strategies without an answer are left out.

    Returns
    -------
    matplotlib.figure.Figure
        Filled points are mean errors and rings largest errors, in clipping norms, on logarithmic
        axes; a price that is not exact says how it is known.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.

    >>> from dpcal import calibrate
    >>> table = calibrate.compare_strategies(steps=32, epsilon=2.0, delta=1e-6)
    >>> strategies(table).axes[0].get_xlabel()
    'noise multiplier'
    """
    figure, axes = _figure()
    axes.set_xscale("log")
    axes.set_yscale("log")
    for row in table.rows:
        if row.noise_multiplier is None or row.mean_error is None or row.max_error is None:
            continue
        x = row.noise_multiplier
        axes.plot([x, x], [row.mean_error, row.max_error], color=MUTED, linewidth=0.8, zorder=1)
        axes.plot([x], [row.mean_error], "o", color=BLUE, markersize=5)
        axes.plot([x], [row.max_error], "o", color=BLUE, markersize=5, markerfacecolor="none")
        known = "" if row.label == "exact" else f" ({row.label})"
        axes.annotate(
            row.name + known,
            (x, row.mean_error),
            xytext=(5, -3),
            textcoords="offset points",
            fontsize=7,
            color=INK,
            va="top",
        )
    axes.set_xlabel("noise multiplier")
    axes.set_ylabel(f"mean and largest error of {table.workload}")
    axes.set_title(
        f"epsilon = {table.epsilon:g}, delta = {table.delta:g}, {table.schedule}", fontsize=9
    )
    return figure


def _matplotlib(load: Callable[[], Any]) -> Any:
    try:
        return load()
    except ImportError as error:
        raise MissingExtra("Pictures need matplotlib: pip install 'dpcal[plot]'.") from error


def _figure(*, square: bool = False) -> tuple[Any, Any]:
    """A figure with one pair of axes, in the house style."""

    def load() -> Any:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        return Figure, FigureCanvasAgg

    figure_class, canvas_class = _matplotlib(load)
    figure = figure_class(figsize=(5.4, 5.4) if square else (7.2, 4.6), layout="constrained")
    canvas_class(figure)
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(color="#E6E6E6", linewidth=0.7)
    axes.set_axisbelow(True)
    return figure, axes


def _ticker() -> Any:
    from matplotlib import ticker

    return ticker


def _plain_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Ticks at 1, 2, 5 times powers of ten, or at all digits where those are few, written out."""
    low, high = limits
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for digits in ((1, 2, 5), tuple(range(1, 10))):
        ticks = [m * 10.0**k for k in decades for m in digits if low <= m * 10.0**k <= high]
        if len(ticks) >= 5:
            break
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(_ticker().NullLocator())


def png(figure: Any) -> bytes:
    """Return a figure as a PNG picture."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI, metadata={"Software": "dpcal"})
    return buffer.getvalue()


def save(figure: Any, path: Path) -> None:
    """Write a figure to a file that ends in ``.png``, whole or not at all."""
    check_picture(path)
    replace_file(path, png(figure))


def check_picture(path: Path) -> None:
    """Raise ``ValueError`` unless a picture can be written to ``path``."""
    if path.suffix.lower() != ".png" or not path.absolute().parent.is_dir():
        raise ValueError(f"output must be a .png file in an existing folder, got {str(path)!r}.")
