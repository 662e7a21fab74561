"""Pictures of the scores of private runs, and of loaders.

>>> bracket = {"lower": 66.0, "upper": 130.6}
>>> rows = [("poisson", "9.1", {"lower": 9.1, "upper": 9.1}), ("shuffle", "[66, 130.6]", bracket)]
>>> [label.get_text() for label in samplers(rows, delta=1e-5).axes[0].get_yticklabels()]
['poisson', 'shuffle']
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal.plot.style import (
    BLUE,
    RED,
    figure_and_axes,
    figure_and_panels,
    note,
    plain_ticks,
)

_PANELS = 12
# Relative width from which a bracket is drawn.
_WIDE = 1e-2


def added(curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ylabel: str) -> Any:
    """Draw the part of each column in a model's score, a panel each.

    Parameters
    ----------
    curves
        For each column: values and their part of the score, shape (points,) each; from
        :meth:`dpcal.tables.Model.curves`. With more than 12, the columns with the widest spread
        are drawn.
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
