"""``dpcal predict``: answers of a private model to a table's records, in their order."""

from __future__ import annotations

import csv
import io
import math
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

import dpcal
from dpcal.commands._options import TABLE, add_options, file_to_write, source_of
from dpcal.commands.checking.output import check_new, present

if TYPE_CHECKING:
    from dpcal.tables import Model, Source

EXAMPLES = ("dpcal-report/model.json new.csv -o scores.csv", "dpcal-report new.csv --force")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the model, the table and the file of the answers."""
    model = "model MODEL:path  model.json of a report, or the report's folder"
    add_options(parser, model, TABLE, file_to_write("CSV"))


def run(options: Namespace) -> int:
    """Write a row for each record."""
    if options.table is None:
        raise ValueError("predict needs a table: dpcal predict MODEL FILE.")
    if options.output is not None:
        check_new(options.output, force=options.force)
    model = dpcal.load_model(options.model)
    source = source_of(options, missing_values=model.schema.missing_values)
    for column in model.coding.columns:
        if column.name not in source.columns:
            raise ValueError(
                f"table must have a column {column.name!r}, as the model's schema says."
            )
    try:
        rows = _answers(model, source, as_text=False)
    except dpcal.tables.NotANumber:
        rows = _answers(model, source, as_text=True)
    buffer = io.StringIO()
    names = ["prediction", *([f"probability of {model.labels[1]}"] if model.labels else [])]
    csv.writer(buffer, lineterminator="\n").writerows([names, *rows])
    left_out = sum(not row[0] for row in rows)
    document = {"records": len(rows), "left_out": left_out, "output": str(options.output or "")}
    if options.output is None:
        present(options, document, buffer.getvalue().rstrip("\n"))
        return 0
    dpcal.report.replace_file(options.output, buffer.getvalue().encode())
    plural = "s" * (len(rows) != 1)
    lines = [f"{len(rows)} record{plural} answered, written to {options.output}"]
    if left_out:
        lines.append(f"{left_out} of them without an answer, for the schema leaves them out")
    present(options, document, "\n".join(lines))
    return 0


def _answers(model: Model, source: Source, *, as_text: bool) -> list[tuple[str, ...]]:
    """Return the row of each record; its texts are empty where the schema leaves it out."""
    columns = [column.name for column in model.coding.columns]
    numbers = [column.name for column in model.coding.columns if column.type == "number"]
    rows: list[tuple[str, ...]] = []
    for batch in source.batches(numbers=numbers, columns=columns, as_text=as_text):
        scores = model.decision(batch)
        found = model.answers(scores).tolist()
        if not model.labels:
            rows += [("",) if math.isnan(value) else (repr(value),) for value in found]
            continue
        shares = model.probability(scores).tolist()
        rows += [
            ("", "") if label is None else (label, f"{share:.6g}")
            for label, share in zip(found, shares, strict=True)
        ]
    return rows
