"""Shared parts of commands: types of options, pictures, progress."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import dpcal

Accountant = Literal["auto", "characteristic", "renyi", "pld", "prv"]


def check_new(path: Path, *, force: bool) -> None:
    """Raise ``ValueError`` if a file exists and ``force`` is false."""
    if not path.absolute().parent.is_dir() or path.is_dir():
        raise ValueError(f"output must be a file in an existing folder, got {str(path)!r}.")
    if path.exists() and not force:
        raise ValueError(
            f"output must be a new file, but {str(path)!r} is there; --force replaces it."
        )


def one_or_all(name: str, documents: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the document of one answer, or a document with a list of several answers."""
    return documents[0] if len(documents) == 1 else {name: documents}


def drawn(figure: Any, path: Path, title: str = "", *about: str) -> str:
    """Write a picture with its description, and return the line that names the file."""
    if about:
        about = (*about, f"dpcal {dpcal.report.software()['dpcal']}")
    dpcal.plot.save(figure, path, title=title, description=" | ".join(about))
    return f"picture written to {path}"


def bar(text: str, unit: str) -> Callable[[int, int], None]:
    """Return a function that shows progress on a terminal; the bar is erased at the end."""
    from tqdm import tqdm

    shown = tqdm(desc=text, unit=unit, leave=False, disable=None, delay=1.0)

    def reach(done: int, total: int) -> None:
        shown.total = total
        shown.update(done - shown.n)
        if done >= total:
            shown.close()

    return reach
