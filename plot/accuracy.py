"""Pictures of what private runs achieve: accuracies, scores along a run, errors of strategies."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal.plot.style import (
    BLUE,
    INK,
    MUTED,
    RED,
    TARGET,
    figure_and_axes,
    figure_and_panels,
    legend,
    note,
    ticker,
)

if TYPE_CHECKING:
    from dpcal.calibrate.correlated.strategies import StrategyTable

__all__ = ["Point", "added", "along_run", "strategies", "utility"]

# Panels that fit on a printed page.
_PANELS = 12


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

    def to_dict(self) -> dict[str, float]:
        """Return epsilon, mean and spread as JSON values."""
        return {"epsilon": self.epsilon, "mean": self.mean, "standard_deviation": self.spread}


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
    figure, axes = figure_and_axes()
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
        top = max(point.mean + point.spread, *point.scores)
        how: dict[str, Any] = {"ha": "center", "color": BLUE, "fontsize": 9, "zorder": 4}
        note(axes, f"{point.mean:.1%}", (point.epsilon, top), (0, 6), boxed=True, **how)
    axes.set(xscale="log", xlabel="epsilon", ylabel=ylabel)
    axes.set_title(title, loc="left", color=INK)
    axes.set_xlim(x.min() / 1.35, x.max() * 1.35)
    axes.set_xticks(x, [f"{value:g}" for value in x])
    axes.xaxis.set_minor_locator(ticker().NullLocator())
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
            how: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "va": "center"}
            note(axes, f"{text}\n{value:.1%}", (1.0, value), (6, 0), color=color, **how)
    top = max([*scores, optimum or 0.0]) + 0.015
    axes.set_ylim(lowest, top if top < 0.99 else 1.005)
    axes.yaxis.set_major_formatter(ticker().PercentFormatter(1.0, decimals=0))


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
    figure, axes = figure_and_axes()
    axes.plot(spent, scores, color=BLUE, linewidth=1.2, label="iterates", zorder=2)
    label = f"returned: {final:.1%}" if share else f"returned: {final:.4g}"
    axes.plot(spent[-1], final, color=RED, **TARGET, label=label, zorder=3, clip_on=False)
    legend(axes, loc="best", fontsize=None)
    axes.set(xlabel="epsilon spent", ylabel=ylabel)
    axes.set_xlim(0, spent[-1])
    if share:
        axes.yaxis.set_major_formatter(ticker().PercentFormatter(1.0, decimals=0))
        axes.set_ylim(min(scores) - 0.03, min(max(*scores, final) + 0.06, 1.01))
    return figure


def added(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ylabel: str) -> Any:
    """Draw what the values of each column add to a model's score, a panel each.

    Parameters
    ----------
    curves
        Of each column: values and what they add, shape (points,) each; from
        :meth:`dpcal.tables.Model.curves`. Of more than 12, those with the widest spread are drawn.
    ylabel
        What is added.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.

    >>> added({"age": ([0, 50, 100], [-1, 0, 1])}, ylabel="added to log-odds").axes[0].get_xlabel()
    'age'
    """
    widest = sorted(curves, key=lambda name: -float(np.ptp(np.asarray(curves[name][1]))))
    names = [name for name in curves if name in widest[:_PANELS]]
    figure, panels = figure_and_panels(len(names), (7.2, 0.8 + 1.9 * -(-len(names) // 3)))
    for name, axes in zip(names, panels, strict=True):
        axes.plot(*curves[name], color=BLUE, linewidth=1.4)
        # A dollar sign would begin a formula.
        axes.set_xlabel(textwrap.shorten(name, 30, placeholder=" ...").replace("$", r"\$"))
    figure.supylabel(ylabel, fontsize="medium")
    return figure


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
    figure, axes = figure_and_axes()
    axes.set_xscale("log")
    axes.set_yscale("log")
    if table.baseline is not None and table.baseline.mean_error is not None:
        # Correlated noise must beat the error of independent noise.
        axes.axhline(table.baseline.mean_error, color=MUTED, linewidth=0.8, linestyle="--")
    above = True
    for row in sorted(table.rows, key=lambda row: row.noise_multiplier or 0.0):
        if row.noise_multiplier is None or row.mean_error is None or row.max_error is None:
            continue
        x = row.noise_multiplier
        axes.plot([x, x], [row.mean_error, row.max_error], color=MUTED, linewidth=0.8, zorder=1)
        axes.plot([x], [row.mean_error], "o", color=BLUE, markersize=5)
        axes.plot([x], [row.max_error], "o", color=BLUE, markersize=5, markerfacecolor="none")
        known = "" if row.label == "exact" else f" ({row.label})"
        how: dict[str, Any] = (
            {"va": "bottom", "rotation": 40} if above else {"va": "top", "rotation": -40}
        )
        how |= {"rotation_mode": "anchor", "fontsize": 7, "color": INK}
        at = x, row.max_error if above else row.mean_error
        note(axes, row.name + known, at, (2, 4 if above else -4), **how)
        # Names of neighbors go to either side.
        above = not above
    axes.set_xlabel("noise multiplier")
    axes.set_ylabel(f"mean and largest error of {table.workload}")
    axes.set_title(
        f"epsilon = {table.epsilon:g}, delta = {table.delta:g}, {table.schedule}", fontsize=9
    )
    return figure
