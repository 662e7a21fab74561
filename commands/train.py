"""``dpcal train``: :func:`dpcal.train` for a table in a file, with a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal._internal import lazy
from dpcal.commands._shared import bar
from dpcal.commands._signature import Answer, extends, taken
from dpcal.tables.reading import Source

if TYPE_CHECKING:
    from dpcal.tables.fit import Planned

fit = lazy.Module("dpcal.tables.fit")

# A diverged run counts as a failed check; shells use 130 for Ctrl-C.
DIVERGED, INTERRUPTED = 1, 130


@extends(Source, dpcal.train, without=("missing_values",))
def train(
    table: Path,
    *,
    schema: Path | None = None,
    max_grad_norm: float | None = None,
    plan: bool = False,
    output: Path = Path("dpcal-report"),
    force: bool = False,
    **given: Any,
) -> Answer:
    """Fit a private linear model to a table, and write a report of its privacy claim.

    Parameters
    ----------
    table
        Text file with a row of column names, also in gzip, or a parquet file.
    schema
        File with types, ranges and categories (default: all columns are numbers). 'dpcal schema
        FILE' drafts one.
    max_grad_norm
        Norm that gradients are clipped to (default: chosen for the loss).
    plan
        Print the plan, its noise and its cost, and spend nothing.
    output
        Folder for the report.
    force
        Replace an earlier report in that folder.

    Examples
    --------
    dpcal train patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6
    dpcal train patients.csv --schema schema.toml --target sick --epsilon 1 --delta 1e-6 --budget
        clinic.budget -o second-report
    """
    fit.check_extras()
    known = None if schema is None else dpcal.tables.schema_of(schema)
    missing = () if known is None else known.missing_values
    source = Source(table, missing_values=missing, **taken(Source, given))
    if not plan:
        dpcal.report.check_replaceable(output, force=force)
        fit.key_file(output, force=force)
    if max_grad_norm is not None:
        given["settings"] = {**(given["settings"] or {}), "max_norm": max_grad_norm}
    request = fit.Request(source, known, **given)
    if plan:
        return _planned(fit.Planned(request))
    found = fit.fitted(request, bar("dpcal train", "step"))
    key = found.save(output, force=force)
    lines = [
        str(found),
        f"report written to {output}/",
        f"{key.name}, next to it, is the key of its fingerprint: keep it, do not publish it",
    ]
    status = INTERRUPTED if found.interrupted else 0 if found.result.complete else DIVERGED
    return Answer(dpcal.report.read(output), "\n".join(lines), status)


def _planned(found: Planned) -> Answer:
    """Return the document and the text of a planned training: its release and its cost."""
    plan, seconds = found.plan, found.plan.seconds(found.dimension)
    document: dict[str, Any] = {
        "optimizer": plan.optimizer,
        "chosen": found.table is not None,
        "plan": plan.to_dict(),
        "dimension": found.dimension,
        "passes": plan.evaluations / plan.n,
        "evaluations": plan.evaluations,
        "seconds": seconds,
    }
    lines = [str(plan)]
    if found.table is not None:
        document["recommendation"] = found.table.to_dict()
        lines += [
            "dpsgd or noisy_gd, by their predicted excess of the training loss:",
            str(found.table),
        ]
    lines.append(
        f"{document['passes']:.3g} passes, {plan.evaluations:.3g} gradients of "
        f"{found.dimension} parameters, about {seconds:.1g} s of this machine"
    )
    lines.append("nothing was spent: without --plan this plan is run")
    if found.drawn:
        lines.append("n is that of this split; without --seed a run draws its own")
    return Answer(document, "\n".join(lines))
