"""Pictures of the scores of private runs, and of loaders and numbers of records.

>>> from types import SimpleNamespace as Row
>>> def table(*rows):
...     return Row(rows=[Row(optimizer=name, error=error) for name, error in rows])
>>> tables = table(("one", 1.0), ("other", 10.0)), table(("other", 0.1), ("one", 1.0))
>>> [(round(n), before, after) for n, before, after in crossings((10, 1_000), tables)]
[(100, 'one', 'other')]
>>> bracket = {"lower": 66.0, "upper": 130.6}
>>> rows = [("poisson", "9.1", {"lower": 9.1, "upper": 9.1}), ("shuffle", "[66, 130.6]", bracket)]
>>> [label.get_text() for label in samplers(rows, delta=1e-5).axes[0].get_yticklabels()]
['poisson', 'shuffle']
"""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal.plot.style import (
    BLUE,
    INK,
    MUTED,
    RED,
    figure_and_axes,
    figure_and_panels,
    legend,
    note,
    plain_ticks,
)

if TYPE_CHECKING:
    from dpcal.calibrate.recommending.recommendation import Recommendation

__all__ = ["added", "crossings", "errors", "samplers"]

# Panels that fit on a printed page.
_PANELS = 12
# Relative width from which a bracket is drawn.
_WIDE = 1e-2


def added(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ylabel: str) -> Any:
    """Draw the part of each column in a model's score, a panel each.

    Parameters
    ----------
    curves
        For each column: values and their part of the score, shape (points,) each; from
        :meth:`dpcal.tables.Model.curves`. With more than 12, those with the widest spread are
        drawn.
    ylabel
        Unit of the score.

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
    figure, panels = figure_and_panels(len(names), 0.8 + 1.6 * -(-len(names) // 2))
    for name, axes in zip(names, panels, strict=True):
        axes.plot(*curves[name], color=BLUE, linewidth=1.4)
        axes.locator_params(axis="x", nbins=4)
        axes.set_xlabel(textwrap.shorten(name, 30, placeholder=" ...").replace("$", r"\$"))
    figure.supylabel(ylabel, fontsize="medium")
    return figure


def samplers(rows: Sequence[tuple[str, str, Mapping[str, float]]], *, delta: float) -> Any:
    """Draw epsilon of each sampler, and a bar from the lower to the upper end of a bracket.

    Parameters
    ----------
    rows
        At least one, from the top: a name, the answer as it is written, and its ends, ``"lower"``
        >= 0 and ``"upper"`` > 0.
    delta
        At which epsilon is.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = figure_and_axes("By how batches are drawn")
    left = min(ends["lower"] or ends["upper"] for *_, ends in rows) / 2
    right = 2 * max(ends["upper"] for *_, ends in rows)
    for place, (_, text, ends) in enumerate(rows):
        lower, upper = max(ends["lower"], left), ends["upper"]
        color = RED if lower < upper * (1 - _WIDE) else BLUE
        how: dict[str, Any] = {"linewidth": 7, "solid_capstyle": "butt", "color": color}
        axes.plot([lower, upper], [place, place], **how, zorder=2)
        axes.plot([lower, upper], [place, place], "|", color=color, markersize=16, zorder=3)
        how = {"va": "bottom", "ha": "center", "color": color, "fontweight": "bold"}
        note(axes, text, ((lower * upper) ** 0.5, place), (0, 9), **how)
    axes.set(xscale="log", xlabel=f"epsilon at delta = {delta:g}", xlim=(left, right))
    plain_ticks(axes.xaxis, (left, right))
    axes.set_yticks(range(len(rows)), labels=[name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.7)
    axes.grid(visible=False, axis="y")
    return figure


def crossings(n: Sequence[int], tables: Sequence[Recommendation]) -> list[tuple[float, str, str]]:
    """Return where the first row changes: the number of records, the row before and the row after.

    Errors are taken to be straight between two tables, on logarithmic axes.
    """
    found = []
    for (low, one), (high, two) in itertools.pairwise(zip(n, tables, strict=True)):
        before, after = one.rows[0].optimizer, two.rows[0].optimizer
        if before != after:
            gaps = [np.log(_error(table, before) / _error(table, after)) for table in (one, two)]
            share = gaps[0] / (gaps[0] - gaps[1])
            found.append((float(low * (high / low) ** share), before, after))
    return found


def errors(n: Sequence[int], tables: Sequence[Recommendation]) -> Any:
    """Draw predicted errors against the number of records, and where their order changes.

    Parameters
    ----------
    n, tables
        Numbers of records, increasing, and the result of :func:`dpcal.calibrate.recommend` for
        each.

    Returns
    -------
    matplotlib.figure.Figure
        A band about the error of the first rows holds about two of three runs.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    figure, axes = figure_and_axes(height=4.4)
    axes.set(xscale="log", yscale="log", xlabel="number of records")
    names = sorted({row.optimizer for table in tables for row in table.rows}, reverse=True)
    for name, color in zip(names, itertools.cycle((BLUE, RED, INK)), strict=False):
        known = [(at, _error(table, name)) for at, table in zip(n, tables, strict=True)]
        drawn = [each for each in known if each[1] < np.inf]
        axes.plot(*zip(*drawn, strict=True), "o-", color=color, markersize=3, label=name)
    best = [table.rows[0] for table in tables]
    ends = ([row.low for row in best], [row.high for row in best])
    axes.fill_between(n, *ends, color=MUTED, alpha=0.15, linewidth=0)
    statistical = [table.statistical for table in tables]
    axes.plot(n, statistical, "--", color=MUTED, label="of the records, without privacy")
    for where, before, after in crossings(n, tables):
        axes.axvline(where, color=MUTED, linewidth=0.8, linestyle=":")
        low, _ = axes.get_ylim()
        note(axes, f"{before} to {after}\nat {where:.2g}", (where, low), (4, 4), color=INK)
    axes.set_ylabel("predicted excess of the training loss")
    legend(axes, loc="upper right")
    return figure


def _error(table: Recommendation, name: str) -> float:
    """Return the predicted error of an optimizer, infinite where it has none."""
    return next((row.error for row in table.rows if row.optimizer == name), np.inf)
