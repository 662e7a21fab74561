"""``dpcal schema``, ``train``, ``predict`` and ``release``: a private use of a table in a file."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal._internal import lazy
from dpcal.commands._shared import bar, check_new
from dpcal.commands._signature import Answer, extends, taken
from dpcal.tables.reading import Source

if TYPE_CHECKING:
    from dpcal.tables.fit import Planned

fit = lazy.Module("dpcal.tables.fit")

# A diverged run counts as a failed check; shells use 130 for Ctrl-C.
DIVERGED, INTERRUPTED = 1, 130

HEAD = """\
# What is public about {name}: a draft, which was made from the records and is not private.
# No noise covers this file: keep it as you keep the records until it is filled in.
#
# What a column lists under 'copied' was read off the records, and a model tells it without noise.
# Replace each such value by what is known without a look at the records (a rule, a code book, the
# range of a device), and take it off the list; what stays on the list is named in every statement.
# Comments are guesses from names and cells: check them.
#
# type = "number": range = [low, high], clamped to; coding = "splines", "bins" or "random" for a
# curve. "category": one of categories; coding = "one-hot" or "ordinal". "class": what is predicted,
# one of classes; weights = [1, 5] makes a record of the second class count five times. "person":
# whose row it is. "drop": not read.
# missing = "refuse", "drop-row", or impute = a value. unknown = "refuse", "drop-row" or "ignore",
# for a text that is no category.
# n = 10000 at the top says that the number of records is public; group_size = 3 how many rows a
# person has at most; target = "NAME" what is predicted. Drop what is not known of a new row.

"""


@extends(Source, without=("missing_values",))
def schema(
    table: Path | None = None,
    *,
    target: str | None = None,
    output: Path | None = None,
    force: bool = False,
    example: bool = False,
    **how: Any,
) -> Answer:
    """Draft a schema of a table: types, ranges, categories, missing values.

    Parameters
    ----------
    table
        Text file with a row of column names, also in gzip, or a parquet file.
    target
        Column to predict.
    output
        File for the schema, in TOML (default: the screen).
    force
        Replace an existing file.
    example
        Write patients.csv, a table of 2,000 made-up patients, and stop.

    Examples
    --------
    dpcal schema patients.csv -o schema.toml
    dpcal schema patients.csv --target sick
    """
    if example:
        path = Path("patients.csv")
        check_new(path, force=force)
        dpcal.report.replace_file(path, dpcal.tables.example().encode())
        return Answer({"output": str(path)}, f"2000 patients, made up, written to {path}")
    if table is None:
        raise ValueError("schema needs a table, as in: dpcal schema patients.csv; or --example.")
    if output is not None:
        check_new(output, force=force)
    source = Source(table, **how)
    found, comments = dpcal.tables.draft(source, target=target)
    text = HEAD.format(name=source.path.name) + found.to_toml(comments)
    assert dpcal.tables.Schema.from_toml(text) == found
    document = {"schema": found.to_dict(), "copied": found.copied(), "comments": comments}
    if output is None:
        return Answer(document, text.rstrip("\n"))
    dpcal.report.replace_file(output, text.encode())
    lines = [f"schema of {len(found.columns)} columns written to {output}"]
    if found.copied():
        lines.append(
            "copied from the records without noise, to be replaced by what is known without them: "
            + ", ".join(found.copied())
        )
    dropped = [column.name for column in found.columns if column.type == "drop"]
    lines += [f"dropped: {name!r}, {comments[name]}" for name in dropped]
    if target is None:
        lines.append("which column is predicted? Name it: --target COLUMN")
    return Answer(document, "\n".join(lines))


@extends(Source, "train", without=("missing_values",))
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


@extends(Source, "release", without=("missing_values",))
def release(
    table: Path,
    statistics: Sequence[str],
    *,
    schema: Path,
    output: Path = Path("dpcal-report"),
    force: bool = False,
    **given: Any,
) -> Answer:
    """Release private counts, sums, means, variances, histograms and quantiles of a table.

    Parameters
    ----------
    table
        Text file with a row of column names, also in gzip, or a parquet file.
    statistics
        Statistics, one or more, in quotes: count or 'count age > 65', 'sum stay', 'mean stay',
        'variance stay', 'histogram department, sex' or 'histogram age:20', 'quantile bp 0.1 0.5
        0.9'. Each can end in 'where CONDITION' and 'by AXES'.
    schema
        File with types, ranges and categories. 'dpcal schema FILE' drafts one.
    output
        Folder for the report.
    force
        Replace an earlier report in that folder.

    Examples
    --------
    dpcal release patients.csv count 'mean age' 'quantile risk 0.1 0.5 0.9' --where 'age > 65'
        --schema schema.toml --epsilon 1 --delta 1e-6 -o statistics
    dpcal release patients.csv 'histogram age:5' 'mean risk' --by sick --schema schema.toml
        --epsilon 0.5 --delta 1e-6 -o by-class
    """
    dpcal.report.check_replaceable(output, force=force)
    known = dpcal.tables.schema_of(schema)
    source = Source(table, missing_values=known.missing_values, **taken(Source, given))
    found = dpcal.release(source, known, statistics, **given)
    found.save(output, force=force)
    return Answer(dpcal.report.read(output), f"{found}\nreport written to {output}/")
