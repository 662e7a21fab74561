"""``dpcal predict``: predictions of a private model for a table's records, in their order."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import dpcal
from dpcal.commands._shared import check_new
from dpcal.commands._signature import Answer, extends
from dpcal.tables.reading import Source


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
    scores = known.decision(source.frame(numbers=numbers, columns=list(columns)))
    found = zip(scores.tolist(), known.answers(scores).tolist(), strict=True)
    texts = ["" if math.isnan(score) else str(each) for score, each in found]
    answers = {"prediction": texts}
    if known.labels:
        shares = zip(texts, known.probability(scores).tolist(), strict=True)
        answers[f"probability of {known.labels[1]}"] = [text and f"{p:.6g}" for text, p in shares]
    buffer = io.StringIO()
    csv.writer(buffer, lineterminator="\n").writerows(
        [answers, *zip(*answers.values(), strict=True)]
    )
    left_out = texts.count("")
    document = {"records": len(texts), "left_out": left_out, "output": str(output or "")}
    if output is None:
        return Answer(document, buffer.getvalue().rstrip("\n"))
    dpcal.report.replace_file(output, buffer.getvalue().encode())
    lines = [f"{len(texts)} record{'s' * (len(texts) != 1)} answered, written to {output}"]
    if left_out:
        lines.append(f"{left_out} of them without an answer, for the schema leaves them out")
    return Answer(document, "\n".join(lines))
