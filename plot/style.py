r"""The house style of pictures: colours, pairs of axes, ticks, and a picture's file.

An SVG picture follows its reader's setting: its colours are for the day or the night.
Text is set in 10 points on a width of 4.9 inches, so that a picture can be read on a telephone.
matplotlib is imported when a figure is made, and its global state is never touched.

>>> figure, axes = figure_and_axes()
>>> svg(figure, title="An empty picture", description="Nothing")[:5]
'<?xml'
"""

from __future__ import annotations

import io
import math
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from dpcal.errors import MissingExtra, extra
from dpcal.report.files import replace_file

__all__ = [
    "BLUE",
    "INK",
    "MUTED",
    "NIGHT",
    "RED",
    "TARGET",
    "caption",
    "check_picture",
    "figure_and_axes",
    "figure_and_panels",
    "legend",
    "note",
    "plain_ticks",
    "save",
    "svg",
]

# Paul Tol's palettes: distinct to readers with any colour vision, and in grey.
INK, MUTED, BLUE, RED = "#222222", "#777777", "#0077BB", "#CC3311"
NIGHT: Mapping[str, str] = {
    "#000000": "#EEEEEE",
    INK: "#EEEEEE",
    MUTED: "#AAAAAA",
    BLUE: "#66BBEE",
    RED: "#EE8866",
    "#E6E6E6": "#3A3A3A",
    "#FFFFFF": "#131416",
}
TARGET: Mapping[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 8,
    "markeredgecolor": "white",
}
# Inches: in 340 pixels, the least that a page has for it, 10 points are 9.6 pixels high.
_WIDTH = 4.9
_DPI = 250
_LETTERS_PER_INCH = 17


def figure_and_axes(title: str = "", *, height: float = 3.6) -> tuple[Any, Any]:
    """Return a figure of a height in inches with one pair of axes, in the house style."""
    figure, (axes,) = figure_and_panels(1, height)
    axes.set_title(title, loc="left", color=INK)
    return figure, axes


def figure_and_panels(
    count: int, height: float, *, columns: int = 2, shared: bool = True
) -> tuple[Any, list[Any]]:
    """Return a figure with panels, so many in a row at most, that share one scale or do not."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra(f"Pictures need matplotlib: {extra('plot')}.") from error
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    FigureCanvasAgg(figure)
    columns = min(count, columns)
    panels: list[Any] = []
    for place in range(count):
        scale = panels[0] if panels and shared else None
        axes = figure.add_subplot(-(-count // columns), columns, place + 1, sharey=scale)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E6E6E6", linewidth=0.7)
        axes.set_axisbelow(True)
        panels.append(axes)
    return figure, panels


def note(
    axes: Any, text: str, at: Any, offset: tuple[float, float], *, boxed: bool = False, **how: Any
) -> None:
    """Write a text so many points away from a place, in a white box or without."""
    box = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}} if boxed else {}
    axes.annotate(text, at, textcoords="offset points", xytext=offset, **{**box, **how})


def legend(axes: Any, *entries: Sequence[Any], loc: str) -> None:
    """Write the title of the picture, on a white ground."""
    axes.legend(*entries, loc=loc, framealpha=1.0, edgecolor="none")


def plain_ticks(axis: Any, limits: tuple[float, float], at: Sequence[float] = ()) -> None:
    """Set ticks, written out, at numbers or at 1, 2, 5 times powers of ten; at more if few fit."""
    low, high = limits
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [*at]
    for digits in ((1,), (1, 2, 5), (1, 2, 3, 5, 7), range(1, 10)):
        if len(ticks) < 4:
            ticks = [m * 10.0**k for k in decades for m in digits if low <= m * 10.0**k <= high]
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def caption(figure: Any, text: str) -> None:
    """Write a text under a figure, in place of an earlier one."""
    width = round(_LETTERS_PER_INCH * figure.get_figwidth())
    lines = textwrap.wrap(text, width=width, break_on_hyphens=False)
    figure.supxlabel("\n".join(lines), fontsize=7, color=MUTED)


def svg(figure: Any, *, title: str, description: str) -> str:
    """Return a figure as an SVG picture, for a page that has its description below it.

    Parameters
    ----------
    figure
        Axes of matplotlib.
    title, description
        Finding of the picture, and its subject: mechanism, neighboring relation, version. They are
        in its metadata.
    """
    caption(figure, "")
    return _saved(figure, "svg", title, description).decode()


def _saved(figure: Any, kind: str, title: str, description: str) -> bytes:
    import matplotlib as module

    buffer = io.BytesIO()
    about: dict[str, str | None] = {"Title": title, "Description": description}
    about |= {"Creator": "dpcal", "Date": None} if kind == "svg" else {"Software": "dpcal"}
    # Names inside an SVG follow from its title, so that two pictures fit on one page.
    with module.rc_context({"svg.hashsalt": title, "svg.fonttype": "none"}):
        figure.savefig(buffer, format=kind, dpi=_DPI, metadata=about)
    return _by_day_and_night(buffer.getvalue()) if kind == "svg" else buffer.getvalue()


def _by_day_and_night(picture: bytes) -> bytes:
    """Return an SVG picture with names of colours, and a style with two sets of their values."""
    named = {colour.lower(): f"--dpcal-{colour[1:].lower()}" for colour in NIGHT}
    text = re.sub(
        "|".join(named), lambda found: f"var({named[found[0]]}, {found[0]})", picture.decode()
    )
    day = "".join(f"{name}:{colour};" for colour, name in named.items())
    night = "".join(f"{named[colour.lower()]}:{value};" for colour, value in NIGHT.items())
    style = (
        f"<style>:root{{{day}}} svg text{{fill:var({named['#000000']})}}"
        f" @media (prefers-color-scheme:dark){{:root{{{night}}}}}</style>"
    )
    return text.replace("<defs>", f"{style}<defs>", 1).encode()


def save(figure: Any, path: Path, *, title: str = "", description: str = "") -> None:
    """Write a figure to a file that ends in ``.png`` or ``.svg``, whole or not at all.

    Parameters
    ----------
    figure, path
        A figure of matplotlib, and where it goes.
    title, description
        Finding of the picture (the name of the file where it is empty), and its subject: mechanism,
        neighboring relation, version, written below it.
    """
    check_picture(path)
    if description:
        caption(figure, description)
    kind = path.suffix.lower().removeprefix(".")
    replace_file(path, _saved(figure, kind, title or path.stem, description))


def check_picture(path: Path) -> None:
    """Raise ``ValueError`` unless a picture can be written to ``path``."""
    if path.suffix.lower() not in (".png", ".svg") or not path.absolute().parent.is_dir():
        raise ValueError(
            f"output must be a .png or .svg file in an existing folder, got {str(path)!r}."
        )
