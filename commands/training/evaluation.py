"""How good is the model on held-out records, and what do these records pay for the answer?

``noisy``: one noisy table of counts, priced like the run, about records that the run never saw.
``unprotected``: the same without noise, which the report says. ``none``: held-out records stay
untouched.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate import Plan, Query, noise_multiplier
from dpcal.calibrate.groups import rows_of_one_person
from dpcal.commands._options import fields_of
from dpcal.commands.training.data import Data
from dpcal.commands.training.task import Run
from dpcal.errors import BudgetExceeded
from dpcal.optim import FromGradients
from dpcal.optim.boundary.access import Store, oracle_of
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.report.metrics import BINS, cells, metrics

__all__ = ["evaluate", "print_warnings", "warn_after", "warn_before"]

# A privacy loss that large protects nobody; published guidance calls anything above 10 to 20 weak.
_WEAK_EPSILON = 20.0

Vector = NDArray[np.float64]


def evaluate(
    data: Data, run: Run, *, how: str | None, seed: int | None, book: Store
) -> dict[str, Any]:
    """Return the section ``evaluation`` of a report.

    Parameters
    ----------
    data, run
        What was trained on, and what came of it.
    how
        ``"noisy"``, ``"unprotected"`` or ``"none"``; when None, noisy unless there is a book.
    seed
        That of the training.
    book
        What the noisy answer is charged to, if anything.
    """
    records, left_out = data.records, {"held_out": "left out", "covered_by_the_claim": True}
    how = how or ("none" if book is not None else "noisy")
    if how == "none" or not len(data.task.y_test):
        return left_out
    if not records.labels and how == "noisy" and records.target.range is None:
        reason = "errors of a target without a range have no bound to scale noise by"
        return {**left_out, "reason": reason}
    rows, bound = _contributions(data, run.result.w)
    if how == "unprotected":
        found, noise = rows.sum(axis=0), 0.0
        told: dict[str, Any] = {"held_out": how, "covered_by_the_claim": False}
    else:
        group = records.schema.group_size
        try:
            found, noise, told = _noisy(run, rows, bound, group=group, seed=seed, book=book)
        except BudgetExceeded as error:
            # The run is paid and released; its scores are what the book has no room for.
            return {**left_out, "reason": str(error)}
    if records.labels:
        return told | metrics(found.reshape(2, BINS), records.labels, noise=noise)
    n = run.result.plan.n if run.result.plan.public_n and how == "noisy" else len(rows)
    return told | _errors(found, n, data.task.unit)


def _contributions(data: Data, w: Vector) -> tuple[Vector, float]:
    """Return what each held-out record adds to the sums, and the bound on its norm."""
    task = data.task
    known = finite_rows(task.X_test) & (task.y_test >= (0 if data.records.labels else -np.inf))
    scores = task.objective.decision(blanked(task.X_test, known), w)
    targets = blanked(task.y_test, known)
    if data.records.labels:
        with np.errstate(over="ignore"):
            probability = 1 / (1 + np.exp(-scores))
        rows = np.zeros((len(scores), 2 * BINS))
        rows[np.arange(len(scores)), cells(targets, probability)] = 1.0
        return blanked(rows, known), 1.0
    # A scaled target is in [-4, 4]: squared errors beyond 16 count as that many.
    squares = np.minimum((scores - targets) ** 2, 16.0) / 16
    rows = np.stack([squares, targets / 4, targets**2 / 16], axis=1)
    return blanked(rows, known), 3.0**0.5


def _noisy(
    run: Run, rows: Vector, bound: float, *, group: int, seed: int | None, book: Store
) -> tuple[Vector, float, dict[str, Any]]:
    """Return the sums as an answer of an oracle, with a plan and a ledger of its own."""
    trained = run.result.plan
    target = fields_of(trained, "epsilon", "delta", "neighboring_relation")
    sigma = noise_multiplier(
        lambda value: rows_of_one_person(noise_multiplier=value, group_size=group), **target
    )
    query = Query(
        name="scores",
        kind="gradient",
        sampler="full",
        max_norm=bound,
        noise_multiplier=sigma,
        count=1,
        group_size=group,
    )
    plan = Plan(
        optimizer="evaluation",
        n=trained.n if trained.public_n else len(rows),
        queries=(query,),
        public_n=trained.public_n,
        **target,
    )
    records = FromGradients(
        lambda _, which: rows[which], n=len(rows), dimension=rows.shape[1], block=1 << 14
    )
    # A seed serves once: the scores take a child of the one that training took.
    child = None if seed is None else np.random.SeedSequence(seed, spawn_key=(1,))
    oracle = oracle_of(records, plan, child, book, run.result.noise)
    answer = oracle.gradient(np.zeros(rows.shape[1]), "scores") * plan.n
    if hasattr(oracle, "close"):
        oracle.close()
    price = oracle.ledger.epsilon(plan.delta)
    told = {
        "held_out": "noisy",
        "covered_by_the_claim": True,
        "noise_standard_deviation": sigma * bound,
        "plan": json.loads(plan.to_json()),
        "ledger": json.loads(oracle.ledger.to_json()),
        "epsilon": price.to_dict(),
        "delta": plan.delta,
    }
    return answer, sigma * bound, told


def _errors(sums: Vector, n: int, unit: float) -> dict[str, Any]:
    """Return the root mean squared error, and that of the best constant, in the target's unit."""
    square, first, second = (sums / n * np.array([16.0, 4.0, 16.0])).tolist()
    spread = max(0.0, second - first**2)
    return {
        "root_mean_squared_error": unit * max(0.0, square) ** 0.5,
        "baseline": unit * spread**0.5,
        "records": n,
    }


def warn_before(plan: Plan) -> list[str]:
    """Return warnings about a target that promises little, for the plan's number of records."""
    found = []
    if plan.delta > 1 / plan.n:
        found.append(
            f"delta = {plan.delta:g} exceeds 1/n = {1 / plan.n:.2g}: publishing one whole record "
            "at random would meet such a claim"
        )
    if plan.epsilon > _WEAK_EPSILON:
        found.append(
            f"epsilon = {plan.epsilon:g} is above {_WEAK_EPSILON:g}: an attacker may be all but "
            "certain of a record"
        )
    return found


def warn_after(evaluation: dict[str, Any], data: Data) -> list[str]:
    """Return warnings about a model that learned nothing, and about ranges that are too wide."""
    found = evaluation.setdefault("warnings", [])
    if "accuracy" in evaluation:
        margin = evaluation["accuracy"] - evaluation["majority_baseline"]
        if margin <= 2 * evaluation["standard_error"]:
            found.append(
                "the model is no better than always answering the larger class, as far as the "
                f"held-out records tell: accuracy {evaluation['accuracy']:.3f} with a standard "
                f"error of {evaluation['standard_error']:.3f}, against "
                f"{evaluation['majority_baseline']:.3f}"
            )
    elif "baseline" in evaluation:
        error, constant = evaluation["root_mean_squared_error"], evaluation["baseline"]
        if error >= constant:
            found.append(
                f"the model is no better than a constant: root mean squared error {error:.4g}, "
                f"against {constant:.4g}"
            )
    found = list(found)  # What follows looked at the records, and is no part of the report.
    for name, (low, high) in data.records.reached.items():
        ends = data.records.schema.column(name).range
        if ends is not None and not np.isnan(low):
            middle = ends[0] / 2 + ends[1] / 2
            unused = ends[1] if high < middle else ends[0] if low > middle else None
            if unused is not None:
                found.append(
                    f"the bound {unused:g} of column {name!r} was never reached, not even by half: "
                    "a range that fits better leaves more signal (this looked at the records; it "
                    "is not in the report)"
                )
    return found


def print_warnings(sentences: list[str]) -> None:
    """Print warnings on standard error."""
    for sentence in sentences:
        print(f"dpcal: warning: {sentence}.", file=sys.stderr)
