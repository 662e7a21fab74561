"""Report of a run that was made in Python. ``dpcal verify`` checks the report by itself.

Each of many silos has runs of its own; costs are not summed over silos, and the claim is the
largest claim of a silo.

>>> import tempfile
>>> import numpy as np
>>> from dpcal import calibrate, optim, report
>>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (3, 20_000, 5))
>>> silos = [optim.Squared(rows, rows[:, 0], fit_intercept=False) for rows in X]
>>> constants = calibrate.Constants(
...     lipschitz=1.0, smoothness=1.0, gap=1.0, hessian_lipschitz=1.0)
>>> plan = calibrate.distributed_psgd(
...     constants, silos=3, n=20_000, dimension=5, epsilon=1.0, delta=1e-6, threshold=0.15)
>>> result = optim.distributed_psgd(silos, plan, initial=np.full(5, 10.0))
>>> with tempfile.TemporaryDirectory() as parent:
...     folder = save(f"{parent}/report", result, unit=result.unit)
...     for row in report.verify(report.read(folder)):
...         print(row["claim"], row["holds"])
target epsilon 1, silo 0 True
target epsilon 1, silo 1 True
target epsilon 1, silo 2 True
all runs of each silo True
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import singledispatch
from pathlib import Path
from types import MappingProxyType
from typing import Any

from dpcal.calibrate.persons import unit_of
from dpcal.optim import Result
from dpcal.optim.boundary.ledger import ONE_OF_A_SILO
from dpcal.report.files import FORMAT, bind, check_replaceable, replace_file, replacing
from dpcal.report.output import dump
from dpcal.report.pages import answers_page, sentences, statement_page
from dpcal.report.statement import privacy_statement, released, software
from dpcal.report.verification import composed_epsilon

_NONE: Mapping[str, Any] = MappingProxyType({})

PRIVATE = "private, with a budget of its own"
NOTHING = "learns nothing"
NOT_PRIVATE = "learned from the records, and is not private"
ELSEWHERE = "was fitted elsewhere"


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Content of a report: runs about the same records, and the model that they are parts of.

    Parameters
    ----------
    by_silo
        The runs that the records of each silo paid for.
    delta
        Delta in (0, 1) for all runs together; the largest delta of a run when None.
    steps
        Steps of a model of several parts, in order of fitting: ``name``, ``type``, ``is``, which
        describes the training of the step, and for private parts ``epsilon`` (at most) and
        ``delta``.
    outside
        Sentences on limits of the claim.
    """

    by_silo: tuple[tuple[Result, ...], ...]
    delta: float | None = None
    steps: tuple[Mapping[str, Any], ...] = ()
    outside: tuple[str, ...] = ()

    @property
    def unit(self) -> str | None:
        """Unit of the claim, where steps that are not private come before private steps."""
        kinds = [step["is"] for step in self.steps]
        last = max((i for i, kind in enumerate(kinds) if kind == PRIVATE), default=-1)
        exact = [repr(step["name"]) for step in self.steps[:last] if step["is"] == NOT_PRIVATE]
        size = max(run.plan.group_size for own in self.by_silo for run in own)
        learned = f"{unit_of(size)}, if what {' and '.join(exact)} learned is public"
        return learned if exact else None


@singledispatch
def reported(result: Any) -> Runs:
    """Return the runs that a report of a result is about; packages register their own results.

    Raises TypeError for an object without runs.
    """
    if isinstance(result, Runs):
        return result
    if not hasattr(type(result), "by_silo"):
        raise TypeError(
            "result must be that of an optimizer, a fitted estimator of dpcal.estimators, or a "
            f"pipeline with one, got {type(result).__name__}."
        )
    return Runs(by_silo=result.by_silo)


def document_of(
    result: Any,
    *,
    unit: str | None = None,
    outside: Iterable[str] = (),
    sections: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return the document of a report, as :func:`save` writes it.

    Parameters
    ----------
    result, unit, outside, sections
        Arguments of :func:`save`.

    Raises
    ------
    LedgerMismatch
        If a ledger is not within its plan.
    """
    told = reported(result)
    silos, many = told.by_silo, len(told.by_silo) > 1
    runs = [
        released(run) | ({"silo": number} if many else {})
        for number, own in enumerate(silos)
        for run in own
    ]
    if unit is None and many:
        unit = ONE_OF_A_SILO
    delta = told.delta or max(run["delta"] for run in runs)
    last = silos[0][-1]
    privacy = privacy_statement(last, unit=unit or told.unit, outside=[*told.outside, *outside])
    if told.steps:
        mechanisms = [privacy_statement(run)["mechanism"] for run in silos[0]]
        privacy["mechanism"] = " ".join(dict.fromkeys(mechanisms))
    # Records of one silo are in no other: the cost of all runs is the largest cost of a silo.
    prices = [composed_epsilon(own, delta) for own in silos]
    read = [name for own in silos for run in own for name in run.read_from_data]
    return {
        "format": FORMAT,
        "version": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "privacy": privacy,
        "data": {
            "name": f"a run of {last.plan.optimizer}",
            "read_from_data": list(dict.fromkeys(read)),
        },
        "runs": runs,
        "everything": max(prices, key=lambda price: float(price["epsilon"]["upper"])),
        **({"steps": [*told.steps]} if told.steps else {}),
        "software": software(),
        **(sections or {}),
    }


def save(
    folder: str | os.PathLike[str],
    result: Any,
    *,
    unit: str | None = None,
    outside: Iterable[str] = (),
    sections: Mapping[str, Any] | None = None,
    force: bool = False,
) -> Path:
    """Write a report of a result and its statement, for ``dpcal verify``; whole or not at all.

    Parameters
    ----------
    folder
        Where it stands.
    result
        A result of an optimizer; or a fitted estimator of :mod:`dpcal.estimators`, with each fit as
        a run; or a fitted pipeline with private steps: its report lists the steps, and their total
        cost at the sum of their deltas; or a result of :func:`dpcal.optim.select_point`: training
        on the same records, if any, is then a run of its own in the report.
    unit
        Unit of the claim; by default the unit of the plans, and with several silos one record of
        one silo.
    outside
        Sentences on limits of the claim.
    sections
        More content of ``report.json``, by name.
    force
        Whether an earlier report there is replaced.

    Returns
    -------
    pathlib.Path
        The folder.

    Raises
    ------
    ValueError
        If the folder is taken, or a pipeline has no private step or one that is fitted repeatedly.
    TypeError
        If the result has no runs.
    LedgerMismatch
        If a ledger is not within its plan; nothing is written.
    """
    path = Path(folder)
    check_replaceable(path, force=force)
    document = document_of(result, unit=unit, outside=outside, sections=sections)
    write(path, document, force=force)
    return path


def write(
    folder: Path,
    document: Mapping[str, Any],
    *,
    files: Mapping[str, str] = _NONE,
    pictures: Mapping[str, Callable[[str, str], str]] = _NONE,
    force: bool = False,
) -> None:
    """Write a report whole or not at all, then its pictures and pages.

    The evidence of paid runs is on disk before a page is made. A picture that fails is left out.

    Parameters
    ----------
    folder
        Where it stands.
    document
        The content of ``report.json``, to which the sums of the other files are added.
    files
        Texts of the report's other files, by file name.
    pictures
        Drawing functions, by file name. Each returns the text of an SVG file for a title and a
        description.
    force
        Whether an earlier report there is replaced.
    """
    with replacing(folder, force=force) as temporary:
        for name, text in {"report.json": f"{dump(document)}\n", **files}.items():
            (temporary / name).write_text(text, encoding="utf-8")
    drawn: dict[str, str] = {}
    for name, draw in pictures.items():
        title = name.removesuffix(".svg").replace("-", " ").capitalize()
        try:
            about = " ".join(sentences("picture.txt", document))
            drawn[f"{title}: {about}"] = text = draw(title, about)
            replace_file(folder / name, text.encode())
        except Exception as error:
            print(f"dpcal: warning: {name} could not be drawn: {error}.", file=sys.stderr)
    replace_file(folder / "statement.html", statement_page(document, pictures=drawn).encode())
    replace_file(folder / "sp800-226.html", answers_page(document).encode())
    bind(folder)
