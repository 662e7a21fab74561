"""Pictures of what loaders cost: epsilon by the way in which batches are drawn.

>>> figure = loaders([("poisson", 9.1, 9.1), ("shuffled-epochs", 66.0, 130.6)], delta=1e-5)
>>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
['poisson', 'shuffled-epochs']
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpcal.plot.style import BLUE, INK, RED, figure_and_axes, note, plain_ticks

__all__ = ["loaders"]

# Relative width from which an answer is drawn as a bracket, and its ends are written.
_WIDE = 1e-2


def loaders(rows: Sequence[tuple[str, float, float]], *, delta: float) -> Any:
    """Draw epsilon of each loader, and a bar from the lower to the upper end of a bracket.

    Parameters
    ----------
    rows
        At least one name with a lower end >= 0 and an upper end > 0 of epsilon, from the top.
    delta
        At which epsilon is.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure, axes = figure_and_axes()
    bar: dict[str, Any] = {"linewidth": 7, "solid_capstyle": "butt"}
    left = min(row[1] or row[2] for row in rows) / 2
    for place, (_, low, upper) in enumerate(rows):
        lower = max(low, left)
        wide = lower < upper * (1 - _WIDE)
        color = RED if wide else BLUE
        axes.plot([lower, upper], [place, place], **bar, color=color, zorder=2)
        axes.plot([lower, upper], [place, place], "|", color=color, markersize=16, zorder=3)
        text = f"{low:.3g} to {upper:.4g}" if wide else f"{upper:.3g}"
        how: dict[str, Any] = {"va": "bottom", "ha": "center", "color": color}
        note(axes, text, ((lower * upper) ** 0.5, place), (0, 9), fontweight="bold", **how)
    right = 2 * max(row[2] for row in rows)
    axes.set(xscale="log", xlabel=f"epsilon at delta = {delta:g}", xlim=(left, right))
    plain_ticks(axes.xaxis, axes.get_xlim())
    axes.set_yticks(range(len(rows)), labels=[name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.7)
    axes.grid(visible=False, axis="y")
    axes.set_title("The same sizes and noise, by how batches are drawn", loc="left", color=INK)
    return figure
