"""``dpcal predict``: answers to the records of a table, in their order, a part at a time."""

from __future__ import annotations

import csv
import io
from argparse import Namespace
from collections.abc import Iterator

import numpy as np

from dpcal.commands._output import check_new, present
from dpcal.commands.training.data import source_of
from dpcal.report import replace_file
from dpcal.tables import Model, NotANumber, Source, load_model

__all__ = ["predict_table"]


def predict_table(options: Namespace) -> int:
    """Answer each record of a table; return the exit status."""
    if options.table is None:
        raise ValueError("predict needs a table: dpcal predict MODEL FILE.")
    if options.output is not None:
        check_new(options.output, force=options.force)
    model = load_model(options.model)
    source = source_of(options, model.schema.missing_values)
    for column in model.coding.columns:
        if column.name not in source.columns:
            raise ValueError(
                f"table must have a column {column.name!r}, as the model's schema says."
            )
    try:
        text, records, left_out = _answers(model, source, as_text=False)
    except NotANumber:
        text, records, left_out = _answers(model, source, as_text=True)
    document = {"records": records, "left_out": left_out, "output": str(options.output or "")}
    if options.output is None:
        present(options, document, text.rstrip("\n"))
        return 0
    replace_file(options.output, text.encode())
    lines = [f"{records} record{'s' * (records != 1)} answered, written to {options.output}"]
    if left_out:
        lines.append(f"{left_out} of them without an answer, for the schema leaves them out")
    present(options, document, "\n".join(lines))
    return 0


def _answers(model: Model, source: Source, *, as_text: bool) -> tuple[str, int, int]:
    """Return the answers as CSV, how many there are, and how many of them are empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(
        ["prediction", *([f"probability of {model.labels[1]}"] if model.labels else [])]
    )
    records = left_out = 0
    for scores in _scores(model, source, as_text=as_text):
        found = model.answers(scores).tolist()
        gone = np.isnan(scores)
        records, left_out = records + len(scores), left_out + int(gone.sum())
        if model.labels:
            shares = model.probability(scores).tolist()
            rows = [
                ("", "") if none else (label, f"{share:.6g}")
                for label, share, none in zip(found, shares, gone, strict=True)
            ]
            writer.writerows(rows)
        else:
            writer.writerows(
                ("",) if none else (repr(value),) for value, none in zip(found, gone, strict=True)
            )
    return buffer.getvalue(), records, left_out


def _scores(model: Model, source: Source, *, as_text: bool) -> Iterator[np.ndarray]:
    """Score the records of a table, a part at a time."""
    row = 2
    columns = [column.name for column in model.coding.columns]
    numbers = [column.name for column in model.coding.columns if column.type == "number"]
    for batch in source.batches(numbers=numbers, columns=columns, as_text=as_text):
        yield model.decision(batch, first_row=row)
        row += batch.height
