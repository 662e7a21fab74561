"""``dpcal select``: private selection among models of a table (Tao et al. 2025, Algorithm 4).

The candidates are released already. What is new is an answer about the holdout's records, whose
price stands in a report of its own. If these records are in the candidates' training too, both
prices are composed: the training's runs stand in the report beside the selection's.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal import calibrate, optim
from dpcal._files import document
from dpcal.commands._options import fields_of, required, source_of
from dpcal.commands.checking.output import answer, dump, present, warnings_printed
from dpcal.commands.checking.progress import stage
from dpcal.commands.training.data import Data, read
from dpcal.commands.training.documents import about_model, add_pages
from dpcal.commands.training.evaluation import print_warnings, warn_before
from dpcal.commands.training.request import Learning
from dpcal.optim import Selection
from dpcal.optim.registry import SELECTIONS
from dpcal.report import (
    bind,
    check_replaceable,
    document_of,
    read as read_report,
    write_report,
)
from dpcal.tables import Model, Schema, load_model

__all__ = ["select_model"]

# Exit status where no candidate passed: what was asked for was not found.
NONE_PASSED = 1
ROW = SELECTIONS["select_point"]
OUTSIDE = (
    "The candidates are taken as released: what they cost the records that they were trained on is "
    "in their own reports, unless the runs of the training stand here too.",
    "The schema, the accuracy that was asked for and the other options are taken as public.",
)

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """Points in the order that they are tested in, and what is known of them.

    Parameters
    ----------
    points
        Each of shape (dimension,), where the intercept comes last.
    names
        Where each came from.
    models
        The models among them, in order.
    reports
        Of the models, by the path that was given; without those that came without one.
    """

    points: list[Vector]
    names: list[str]
    models: list[Model]
    reports: dict[str, Any]


def select_model(options: Namespace) -> int:
    """Test candidates on a table's records; return the exit status."""
    if options.table is None:
        raise ValueError("select needs a table: dpcal select FILE --candidates ...")
    required(options, "candidates", "accuracy")
    if options.same_records and options.other_records:
        raise ValueError("--same-records and --other-records exclude each other.")
    check_replaceable(options.output, force=options.force)
    candidates = _candidates(options.candidates, intercept=options.intercept)
    asked = _asked(options, candidates)
    training = _training(options, candidates)
    relation = _relation(options.neighboring_relation, training)
    _check_sizes(candidates, asked)
    data = read(asked, stage(options, ""))
    task = data.task
    with warnings_printed():
        plan = calibrate.select_point(
            asked.constants(ROW),
            n=task.n,
            **task.sizes,
            candidates=len(candidates.points),
            rank=1,  # of a linear model's Hessians
            neighboring_relation=relation,
            **fields_of(options, "accuracy", "method", "failure_probability", "epsilon", "delta"),
        )
    print_warnings(warn_before(plan))
    selection = optim.select_point(
        task.objective, candidates.points, plan, seed=options.seed, overlap="ignore"
    )
    return _written(options, data, candidates, selection, training)


def _candidates(paths: Iterable[Path], *, intercept: bool) -> Candidates:
    """Read every file of candidates."""
    found = Candidates(points=[], names=[], models=[], reports={})
    for path in paths:
        points = None if path.is_dir() else _points(path)
        if points is None:
            model = load_model(path)
            if model.network:
                raise ValueError(
                    f"candidates must be linear models, got a network in {str(path)!r}."
                )
            points = [np.append(model.weights, model.intercept)[: None if intercept else -1]]
            found.models.append(model)
            folder = path if path.is_dir() else path.parent
            if (folder / "report.json").is_file():
                found.reports[str(path)] = read_report(folder)
        many = len(points) > 1
        found.points.extend(points)
        found.names.extend(
            f"{path}, point {k + 1}" if many else str(path) for k in range(len(points))
        )
    return found


def _points(path: Path) -> list[Vector] | None:
    """Return the points of a file that holds a list of them; None where it holds anything else."""
    listed = document(path, "candidates must be readable files")
    if not isinstance(listed, list):
        return None
    try:
        points = [np.asarray(point, dtype=np.float64) for point in listed]
    except (TypeError, ValueError):
        points = []
    if not points or any(point.ndim != 1 or not np.isfinite(point).all() for point in points):
        raise ValueError(
            f"candidates must be points, lists of finite numbers, got {str(path)!r} with a list of "
            "something else."
        )
    return points


def _asked(options: Namespace, candidates: Candidates) -> Learning:
    """Return what the table is read by: the models' schema, or the one that was given."""
    if not candidates.models:
        required(options, "schema", "target")
        schema, target = Schema.read(options.schema), options.target
    else:
        first = candidates.models[0]
        if options.schema is not None or options.target is not None:
            raise ValueError("--schema and --target are for candidates that are points.")
        about = [(each.schema, each.target, each.labels) for each in candidates.models]
        if any(each != about[0] for each in about):
            raise ValueError("candidates must be models with one schema, target and classes.")
        if any(each.about.get("loss") != "logistic" for each in candidates.models):
            raise ValueError(
                "candidates must be models of logistic losses: others have no Hessian whose change "
                "is bounded, or a constant one."
            )
        schema, target = first.schema.with_column(first.target), first.target.name
    if schema.group_size > 1:
        raise ValueError(f"select is for one row a person, the schema says {schema.group_size}.")
    schema.column(target)
    for column in schema.features(target):
        if column.type == "number" and column.range is None:
            raise ValueError(
                f"select needs a range for every number of the schema, {column.name!r} has none: "
                "they bound one record's gradient and Hessian."
            )
    return Learning(
        source=source_of(options, missing_values=schema.missing_values),
        schema=schema,
        target=target,
        **fields_of(options, "l2", "intercept", "seed"),
    )


def _training(options: Namespace, candidates: Candidates) -> list[dict[str, Any]]:
    """Return the runs of the training on the same records, whose prices are added.

    Raises
    ------
    ValueError
        If a report may be about the same records and nobody said so, or one is missing.
    """
    if not options.same_records:
        for path, document in candidates.reports.items():
            known = document.get("data", {}).get("name") == options.table.name
            if known and not options.other_records:
                raise ValueError(
                    f"candidate {path!r} was trained on a table called {options.table.name!r} too: "
                    "say --same-records, and the prices are composed, or --other-records if its "
                    "records are others."
                )
        return []
    if len(candidates.reports) < len(candidates.names):
        missing = next(name for name in candidates.names if name not in candidates.reports)
        raise ValueError(
            f"--same-records needs the report of each candidate, {missing!r} has none beside it."
        )
    runs: list[dict[str, Any]] = []
    for document in candidates.reports.values():
        # Held-out records of a training may be among the holdout's, and so may its own.
        scores = document.get("evaluation", {})
        paid = [*document["runs"], *([scores] if scores.get("held_out") == "noisy" else [])]
        if any("silo" in run for run in paid):
            raise ValueError("--same-records is for training on one data set, not over silos.")
        runs += [{"complete": True, "message": "gave held-out scores", **run} for run in paid]
    return runs


def _relation(given: str | None, training: list[dict[str, Any]]) -> str:
    """Return the neighboring relation: the one that was given, or that of the training's runs."""
    known = {run["plan"]["neighboring_relation"] for run in training}
    wanted = given or (known.pop() if len(known) == 1 else "replace-special")
    if known - {wanted}:
        raise ValueError(
            "--same-records needs one neighboring relation for all runs, got "
            f"{', '.join(sorted(known | {wanted}))}."
        )
    if wanted == "add-or-remove-one":
        raise ValueError(
            "--neighboring-relation must be replace-one or replace-special, got add-or-remove-one: "
            "the number of the holdout's records is read from the table."
        )
    return str(wanted)


def _check_sizes(candidates: Candidates, asked: Learning) -> None:
    """Refuse points of another dimension than the table's coding has."""
    features = asked.coding.names
    d = len(features) + asked.intercept
    for name, point in zip(candidates.names, candidates.points, strict=True):
        if len(point) != d:
            more = " and the intercept" if asked.intercept else ""
            raise ValueError(
                f"candidates must be points of {d} numbers, for {', '.join(features)}{more}; got "
                f"{len(point)} in {name}."
            )


def _written(
    options: Namespace,
    data: Data,
    candidates: Candidates,
    selection: Selection,
    training: Sequence[dict[str, Any]],
) -> int:
    """Write the report, print the answer, and return the exit status."""
    chosen = None if selection.index is None else candidates.names[selection.index]
    told = {
        "status": selection.status,
        "chosen": chosen,
        **fields_of(selection, "index", "tested"),
        "candidates": candidates.names,
        "accuracy": selection.accuracy,
        "failure_probability": options.failure_probability,
    }
    about = {
        "name": options.table.name,
        "holdout_records": data.task.objective.n,
        "features": len(data.features),
        "read_from_data": data.read_from_data,
    }
    document = document_of(
        selection,
        unit="one record of the table that candidates are tested on",
        outside=OUTSIDE,
        before=training,
        sections={"data": about, "selection": told},
    )
    folder, files = options.output, {"report.json": dump(document) + "\n"}
    if selection.w is not None:
        released = about_model(document, document["everything"])
        files["model.json"] = data.model(selection.w, {**released, "selection": told}).to_json()
    write_report(folder, files, force=options.force)
    add_pages(folder, document, {})
    document = bind(folder)
    price = selection.epsilon(options.delta)
    lines = [f"no candidate passed, {selection.tested} tested"]
    if chosen is not None:
        lines = [
            f"accepted {chosen}, after {selection.tested} tested: a second-order point of accuracy "
            f"{selection.accuracy:.4g}, but with probability {options.failure_probability:g}"
        ]
    lines.append(answer("epsilon", price, f"delta = {options.delta:g}"))
    if training:
        upper = document["everything"]["epsilon"]["upper"]
        lines.append(
            f"with {len(training)} runs of training on the same records: at most {upper:.9f}"
        )
    present(options, document, "\n".join([*lines, f"report written to {folder}/"]))
    return NONE_PASSED if chosen is None else 0
