"""``dpcal predict``: predictions of a private model for a table's records, in their order."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal.commands._shared import check_new
from dpcal.commands._signature import Answer, extends
from dpcal.tables.reading import Source

if TYPE_CHECKING:
    from dpcal.tables import Model


@extends(Source, without=("missing_values",))
def predict(
    model: Path, table: Path, *, output: Path | None = None, force: bool = False, **how: Any
) -> Answer:
    """Predict the target of each record of a table by a private model, a row for each record.

    Parameters
    ----------
    model
        File model.json of a report, or the report's folder.
    table
        Text file with a row of column names, also in gzip, or a parquet file.
    output
        File for the predictions, in CSV (default: the screen).
    force
        Replace an existing file.

    Examples
    --------
    dpcal predict dpcal-report/model.json new.csv -o scores.csv
    dpcal predict dpcal-report new.csv
    """
    if output is not None:
        check_new(output, force=force)
    known = dpcal.load_model(model)
    source = Source(table, missing_values=known.schema.missing_values, **how)
    columns = {each.name: each.type for each in known.coding.columns}
    source.check_columns(columns)
    numbers = [name for name, kind in columns.items() if kind == "number"]
    rows = _answers(known, source.frame(numbers=numbers, columns=list(columns)))
    buffer = io.StringIO()
    names = ["prediction", *([f"probability of {known.labels[1]}"] if known.labels else [])]
    csv.writer(buffer, lineterminator="\n").writerows([names, *rows])
    left_out = sum(not row[0] for row in rows)
    document = {"records": len(rows), "left_out": left_out, "output": str(output or "")}
    if output is None:
        return Answer(document, buffer.getvalue().rstrip("\n"))
    dpcal.report.replace_file(output, buffer.getvalue().encode())
    lines = [f"{len(rows)} record{'s' * (len(rows) != 1)} answered, written to {output}"]
    if left_out:
        lines.append(f"{left_out} of them without an answer, for the schema leaves them out")
    return Answer(document, "\n".join(lines))


def _answers(model: Model, frame: Any) -> list[tuple[str, ...]]:
    """Return the row of each record; the texts are empty where the schema leaves a record out."""
    scores = model.decision(frame)
    found = model.answers(scores).tolist()
    if not model.labels:
        return [("",) if math.isnan(value) else (repr(value),) for value in found]
    shares = model.probability(scores).tolist()
    return [
        ("", "") if label is None else (label, f"{share:.6g}")
        for label, share in zip(found, shares, strict=True)
    ]
