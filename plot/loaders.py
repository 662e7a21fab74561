"""Pictures of what loaders cost: epsilon by the way in which batches are drawn.

>>> bracket = {"lower": 66.0, "upper": 130.6}
>>> rows = [("poisson", "9.1", {"lower": 9.1, "upper": 9.1}), ("shuffle", "[66, 130.6]", bracket)]
>>> figure = samplers(rows, delta=1e-5)
>>> [label.get_text() for label in figure.axes[0].get_yticklabels()]
['poisson', 'shuffle']
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpcal.plot.style import BLUE, INK, RED, figure_and_axes, note, plain_ticks

__all__ = ["samplers"]

# Relative width from which an answer is drawn as a bracket.
_WIDE = 1e-2


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
    figure, axes = figure_and_axes()
    bar: dict[str, Any] = {"linewidth": 7, "solid_capstyle": "butt"}
    left = min(ends["lower"] or ends["upper"] for *_, ends in rows) / 2
    for place, (_, text, ends) in enumerate(rows):
        lower, upper = max(ends["lower"], left), ends["upper"]
        wide = lower < upper * (1 - _WIDE)
        color = RED if wide else BLUE
        axes.plot([lower, upper], [place, place], **bar, color=color, zorder=2)
        axes.plot([lower, upper], [place, place], "|", color=color, markersize=16, zorder=3)
        how: dict[str, Any] = {"va": "bottom", "ha": "center", "color": color}
        note(axes, text, ((lower * upper) ** 0.5, place), (0, 9), fontweight="bold", **how)
    right = 2 * max(ends["upper"] for *_, ends in rows)
    axes.set(xscale="log", xlabel=f"epsilon at delta = {delta:g}", xlim=(left, right))
    plain_ticks(axes.xaxis, axes.get_xlim())
    axes.set_yticks(range(len(rows)), labels=[name for name, *_ in rows])
    axes.set_ylim(len(rows) - 0.5, -0.7)
    axes.grid(visible=False, axis="y")
    axes.set_title("The same sizes and noise, by how batches are drawn", loc="left", color=INK)
    return figure
