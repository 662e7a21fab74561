"""Pictures of predicted errors: which optimizer fits best at which number of records?

>>> from types import SimpleNamespace as Row
>>> def table(*rows):
...     return Row(rows=[Row(optimizer=name, error=error) for name, error in rows])
>>> tables = table(("one", 1.0), ("other", 10.0)), table(("other", 0.1), ("one", 1.0))
>>> [(round(n), before, after) for n, before, after in crossings((10, 1_000), tables)]
[(100, 'one', 'other')]
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcal.plot.style import BLUE, INK, MUTED, RED, figure_and_axes, legend, note

if TYPE_CHECKING:
    from dpcal.calibrate.recommending.recommendation import Recommendation

__all__ = ["crossings", "errors"]

_COLORS = (BLUE, RED, INK)


def crossings(n: Sequence[int], tables: Sequence[Recommendation]) -> list[tuple[float, str, str]]:
    """Return where the first row changes: the number of records, the row before and the row after.

    Errors are taken to be straight between two tables, on logarithmic axes.
    """
    found = []
    for (low, one), (high, two) in itertools.pairwise(zip(n, tables, strict=True)):
        before, after = one.rows[0].optimizer, two.rows[0].optimizer
        if before == after:
            continue
        gaps = [np.log(_error(table, before) / _error(table, after)) for table in (one, two)]
        share = gaps[0] / (gaps[0] - gaps[1])
        found.append((float(low * (high / low) ** share), before, after))
    return found


def errors(n: Sequence[int], tables: Sequence[Recommendation]) -> Any:
    """Draw predicted errors against the number of records, and where their order changes.

    Parameters
    ----------
    n, tables
        Numbers of records, increasing, and what :func:`dpcal.calibrate.recommend` returns for each.

    Returns
    -------
    matplotlib.figure.Figure
        A band about the error of the first rows holds about two of three runs.

    Raises
    ------
    MissingExtra
        If matplotlib is not installed.
    """
    figure, axes = figure_and_axes()
    axes.set(xscale="log", yscale="log", xlabel="number of records")
    names = sorted({row.optimizer for table in tables for row in table.rows}, reverse=True)
    for name, color in zip(names, itertools.cycle(_COLORS), strict=False):
        at = [each for each, table in zip(n, tables, strict=True) if _error(table, name) < np.inf]
        known = [_error(table, name) for table in tables if _error(table, name) < np.inf]
        axes.plot(at, known, "o-", color=color, markersize=3, label=name)
    best = [table.rows[0] for table in tables]
    ends = ([row.low for row in best], [row.high for row in best])
    axes.fill_between(n, *ends, color=MUTED, alpha=0.15, linewidth=0)
    statistical = [table.statistical for table in tables]
    axes.plot(n, statistical, "--", color=MUTED, label="error of the records, without privacy")
    for where, before, after in crossings(n, tables):
        axes.axvline(where, color=MUTED, linewidth=0.8, linestyle=":")
        low, _ = axes.get_ylim()
        text = f"{before} to {after}\nat {where:.2g}"
        note(axes, text, (where, low), (4, 4), fontsize=7, color=INK, va="bottom")
    axes.set_ylabel("predicted excess of the training loss")
    legend(axes, loc="upper right")
    return figure


def _error(table: Recommendation, name: str) -> float:
    """Return the predicted error of an optimizer, infinite where it has none."""
    return next((row.error for row in table.rows if row.optimizer == name), np.inf)
