"""Sources of schedules: a paper of the package, a file, a module, or an installed plug-in.

>>> find("kan").name
'kan'
>>> find("nowhere.py")
Traceback (most recent call last):
    ...
ValueError: paper must be a known name, a module or an existing file, got 'nowhere.py'.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from dpcal.calibrate.papers.claims.language import Schedule
from dpcal.calibrate.papers.claims.notation import nearest
from dpcal.calibrate.papers.registry import PAPERS, load

GROUP = "dpcal.schedules"


def find(name: str) -> Schedule:
    """Return the schedule of a name, a file or a module.

    Parameters
    ----------
    name
        A paper, the name of an entry point of the group ``dpcal.schedules``, a Python file, or a
        dotted module name. A file or a module defines ``SCHEDULE``. It is run.

    Raises
    ------
    ValueError
        If nothing is found there, or it is not a schedule; the sentence names the claim
        where one is at fault.
    """
    if name in PAPERS:
        return load(name)
    offered = {point.name: point for point in entry_points(group=GROUP)}
    if name in offered:
        return _schedule_of(offered[name].load(), name)
    if name.endswith(".py") or "/" in name:
        return _from_file(Path(name))
    if "." in name:
        try:
            return _schedule_of(import_module(name), name)
        except ImportError as error:
            raise ValueError(f"module {name} cannot be imported: {error}.") from error
    raise ValueError(f"schedule {nearest(name, dict.fromkeys((*PAPERS, *offered)))}")


def _from_file(path: Path) -> Schedule:
    if not path.is_file():
        raise ValueError(
            f"paper must be a known name, a module or an existing file, got {str(path)!r}."
        )
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"paper must be a Python file, got {str(path)!r}.")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # an error of a user's file is shown with the user's text
        raise ValueError(f"{path.name}: {error}") from error
    return _schedule_of(module, path.name)


def _schedule_of(found: Any, name: str) -> Schedule:
    schedule = found if isinstance(found, Schedule) else getattr(found, "SCHEDULE", None)
    if not isinstance(schedule, Schedule):
        raise ValueError(f"{name} must define SCHEDULE, a Schedule, got {schedule!r}.")
    return schedule


@contextmanager
def places(source: Any) -> Iterator[None]:
    """Name the line of a file in errors about the file's content.

    Parameters
    ----------
    source
        A file's name; errors about other sources stay as they are.
    """
    try:
        yield
    except ValueError as error:
        path = Path(str(source))
        if path.suffix != ".py" or not path.is_file():
            raise
        sentence = str(error).removeprefix(f"{path.name}: ")
        rows = path.read_text(encoding="utf-8").splitlines()
        place = next((k for k, row in enumerate(rows, 1) if _tells(row, sentence)), 0)
        where = f"{path.name}, line {place}" if place else path.name
        raise ValueError(f"{where}: {sentence}") from error


def _tells(row: str, sentence: str) -> bool:
    """Return whether a row has the claim, or the text, that a sentence is about."""
    claim = re.match(r"claim '(.+?)(\.printed|\.corrected)?'", sentence)
    if claim is None:
        text = re.search(r"got '(.+?)'", sentence)
        return text is not None and text[1].split("\\n")[0] in row
    name = re.escape(claim[1])
    return bool(re.search(rf"^\s*{name}(:| \()|\(['\"]{name}['\"]", row))
