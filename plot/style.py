r"""The house style of pictures: colours, one pair of axes, ticks, and a picture's file.

matplotlib is imported when a figure is made, and its global state is never touched.

>>> figure, axes = figure_and_axes()
>>> png(figure)[:4]
b'\x89PNG'
"""

from __future__ import annotations

import io
import itertools
import math
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from dpcal.errors import MissingExtra, extra
from dpcal.report.files import replace_file

__all__ = [
    "BLUE",
    "INK",
    "MUTED",
    "ORDERED",
    "RED",
    "TARGET",
    "caption",
    "check_picture",
    "figure_and_axes",
    "figure_and_panels",
    "in_colors",
    "legend",
    "note",
    "plain_ticks",
    "png",
    "save",
    "svg",
    "ticker",
]

# Paul Tol's palettes: distinct to readers with any colour vision, and in grey.
INK, MUTED, BLUE, RED = "#222222", "#777777", "#0077BB", "#CC3311"
ORDERED = ("#88CCEE", "#44AA99", "#117733", "#AA4499", "#332288")
DPI = 200
Curve = TypeVar("Curve")
# A caption in the size that it is given has so many letters an inch; more would not fit.
_LETTERS_PER_INCH = 17
TARGET: Mapping[str, Any] = {
    "linestyle": "",
    "marker": "D",
    "markersize": 8,
    "markeredgecolor": "white",
}


def _matplotlib(load: Callable[[], Any]) -> Any:
    try:
        return load()
    except ImportError as error:
        raise MissingExtra(f"Pictures need matplotlib: {extra('plot')}.") from error


def figure_and_axes(*, square: bool = False) -> tuple[Any, Any]:
    """A figure with one pair of axes, in the house style."""
    figure, (axes,) = figure_and_panels(1, (5.4, 5.4) if square else (7.2, 4.6))
    return figure, axes


def figure_and_panels(count: int, size: tuple[float, float]) -> tuple[Any, list[Any]]:
    """A figure of a size in inches; panels, three in a row at most, that share one scale."""

    def load() -> Any:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        return Figure, FigureCanvasAgg

    figure_class, canvas_class = _matplotlib(load)
    figure = figure_class(figsize=size, layout="constrained")
    canvas_class(figure)
    panels: list[Any] = []
    columns = min(count, 3)
    for place in range(count):
        axes = figure.add_subplot(
            -(-count // columns), columns, place + 1, sharey=panels[0] if panels else None
        )
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(color="#E6E6E6", linewidth=0.7)
        axes.set_axisbelow(True)
        panels.append(axes)
    return figure, panels


def in_colors(curves: Sequence[Curve]) -> Iterator[tuple[Curve, str]]:
    """Yield each curve with its colour: blue where it is alone, else in an order."""
    return zip(curves, itertools.cycle(ORDERED if len(curves) > 1 else (BLUE,)))


def note(
    axes: Any, text: str, at: Any, offset: tuple[float, float], *, boxed: bool = False, **how: Any
) -> None:
    """Write a text so many points away from a place, in a white box or without."""
    box = {"bbox": {"facecolor": "white", "edgecolor": "none", "pad": 0.8}} if boxed else {}
    axes.annotate(text, at, textcoords="offset points", xytext=offset, **{**box, **how})


def legend(axes: Any, *entries: Sequence[Any], loc: str, **how: Any) -> None:
    """Name what is drawn, before a white ground."""
    axes.legend(*entries, loc=loc, **{"framealpha": 1.0, "edgecolor": "none", "fontsize": 9, **how})


def ticker() -> Any:
    """Return matplotlib's module of tick locators and formatters."""
    from matplotlib import ticker as module

    return module


def plain_ticks(axis: Any, limits: tuple[float, float]) -> None:
    """Set ticks at 1, 2, 5 times powers of ten, or at more digits if these are few, written out."""
    low, high = limits
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for digits in ((1, 2, 5), (1, 2, 3, 5, 7), tuple(range(1, 10))):
        ticks = [m * 10.0**k for k in decades for m in digits if low <= m * 10.0**k <= high]
        if len(ticks) >= 5:
            break
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_minor_locator(ticker().NullLocator())


def caption(figure: Any, text: str) -> None:
    """Write a text under a figure, in place of an earlier one; an empty text changes nothing."""
    if text:
        width = round(_LETTERS_PER_INCH * figure.get_figwidth())
        lines = textwrap.wrap(text, width=width, break_on_hyphens=False)
        figure.supxlabel("\n".join(lines), fontsize=7, color=MUTED)


def png(figure: Any, *, title: str = "", description: str = "") -> bytes:
    """Return a figure as a PNG picture that says what it is about, under it and in its metadata.

    Parameters
    ----------
    figure
        Of matplotlib.
    title, description
        What the picture shows, and of what: mechanism, neighboring relation, version; left out
        where they are empty.
    """
    caption(figure, description)
    buffer = io.BytesIO()
    about = {"Title": title, "Description": description, "Software": "dpcal"}
    metadata = {name: text for name, text in about.items() if text}
    figure.savefig(buffer, format="png", dpi=DPI, metadata=metadata)
    return buffer.getvalue()


def svg(figure: Any, *, title: str, description: str) -> str:
    """Return a figure as an SVG picture that says what it is about, in it and under it.

    Parameters
    ----------
    figure
        Of matplotlib.
    title
        What the picture shows.
    description
        Of what: mechanism, neighboring relation, version.
    """
    import matplotlib as module

    caption(figure, description)
    buffer = io.StringIO()
    metadata = {"Title": title, "Description": description, "Creator": "dpcal", "Date": None}
    # Names inside the picture follow from its title, so that two pictures fit on one page.
    with module.rc_context({"svg.hashsalt": title}):
        figure.savefig(buffer, format="svg", metadata=metadata)
    return buffer.getvalue()


def save(figure: Any, path: Path, *, title: str = "", description: str = "") -> None:
    """Write a figure to a file that ends in ``.png`` or ``.svg``, whole or not at all.

    Parameters
    ----------
    figure, path
        A figure of matplotlib, and where it goes.
    title, description
        What the picture shows; the name of the file where it is empty, and of what: mechanism,
        neighboring relation, version.
    """
    check_picture(path)
    about = {"title": title or path.stem, "description": description}
    if path.suffix.lower() == ".svg":
        replace_file(path, svg(figure, **about).encode())
    else:
        replace_file(path, png(figure, **about))


def check_picture(path: Path) -> None:
    """Raise ``ValueError`` unless a picture can be written to ``path``."""
    if path.suffix.lower() not in (".png", ".svg") or not path.absolute().parent.is_dir():
        raise ValueError(
            f"output must be a .png or .svg file in an existing folder, got {str(path)!r}."
        )
