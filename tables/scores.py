"""Scores of the model on held-out records, and their cost.

``noisy``: one noisy table of counts, with the cost of the run, about records that the run never
saw. ``unprotected``: the same without noise; the report states it. ``none``: held-out records stay
untouched.

>>> from dpcal.calibrate import dpsgd
>>> plan = dpsgd(n=100, batch_size=10, steps=2, epsilon=1.0, delta=0.1)
>>> warn_before(plan)[0].split(":")[0]
'delta = 0.1 exceeds 1/n = 0.01'
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.events import DpEvent, SelfComposedDpEvent
from dpcal.calibrate import Plan, noise_multiplier
from dpcal.calibrate.persons import rows_of_one_person
from dpcal.errors import BudgetExceeded
from dpcal.optim.linear_fit import query_on_all
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.optim.objectives.placed import objective_of, vectors_of
from dpcal.optim.registry import Store, oracle_of
from dpcal.optim.result import Result
from dpcal.report.metrics import BINS, GRID, Held, metrics, root_errors
from dpcal.tables.coding import REACH
from dpcal.tables.model import Model
from dpcal.tables.records import Records

# Largest epsilon without a warning; published guidance calls values above 10 to 20 weak.
_WEAK_EPSILON = 20.0

Vector = NDArray[np.float64]


def evaluate(
    records: Records,
    model: Model,
    result: Result,
    *,
    how: str | None,
    seed: int | None,
    book: Store,
) -> dict[str, Any]:
    """Return the section ``evaluation`` of a report.

    Parameters
    ----------
    records, model, result
        Records, model and result of the training.
    how
        ``"noisy"``, ``"unprotected"`` or ``"none"``; when None, noisy unless there is a book.
    seed
        Seed of the training.
    book
        Budget book that the noisy answer is charged to, if any.
    """
    reason = _unasked(records, how, book)
    if reason:
        return _left_out(reason)
    plan, group, how = result.plan, records.schema.group_size, how or "noisy"
    bound, width, times, rows = 3.25**0.5, 4, 1, _errors
    if records.labels:
        grid: dict[str, Any] = {
            "center": model.intercept,
            "scale": float(np.linalg.norm(model.weights)),
        }
        bound, width, times, rows = 1.0, 2 * BINS + GRID, 2, partial(_held, **grid)
    scored, noise = _scores(records, model), 0.0
    told: dict[str, Any] = {"held_out": how, "covered_by_the_claim": False}
    n, before, found = len(scored), np.zeros(width), []
    if how == "unprotected":
        for _ in range(times):
            found.append(before := rows(before, scored).sum(axis=0))
    else:
        asked = _plan(plan, n, bound, times, group)
        n, noise = asked.n, asked.queries[0].noise_multiplier * bound
        vectors = objective_of(partial(vectors_of, rows, width, block=1 << 14), scored)
        # A seed serves once: the scores take a child of the training's seed.
        child = None if seed is None else np.random.SeedSequence(seed, spawn_key=(1,))
        try:
            oracle = oracle_of(vectors, asked, child, book)
            for _ in range(times):
                found.append(before := oracle.gradient(before, "scores") * n)
        except BudgetExceeded as error:
            return _left_out(f"the budget book does not allow them ({error})")
        if hasattr(oracle, "close"):
            oracle.close()
        told = {
            "held_out": "noisy",
            "covered_by_the_claim": True,
            "noise_standard_deviation": noise,
            "plan": asked.to_dict(),
            "ledger": json.loads(oracle.ledger.to_json()),
            "epsilon": oracle.ledger.epsilon(asked.delta).to_dict(),
            "delta": asked.delta,
        }
    if records.labels:
        first, second = found
        told |= metrics(first, second, records.labels, noise=noise, group=group)
    else:
        means, ends = found[0] / n * np.array([16.0, 512.0, 4.0, 16.0]), records.target.range
        unit = 1.0 if ends is None else (ends[1] - ends[0]) / (2 * REACH)
        told |= root_errors(means, n, unit, noise=16 * noise / n, group=group)
    return told | {"warnings": _about_scores(told)}


def _unasked(records: Records, how: str | None, book: Store) -> str:
    """Return the reason why held-out records are not scored; empty if they are."""
    if not len(records.y_test):
        return "no record is held out: test_fraction above 0 does"
    if how is None and book is not None:
        return (
            "a budget book charges scores like a run: held_out='noisy' (--held-out noisy) "
            "measures them, and test_fraction=0 keeps no record back"
        )
    if how == "none":
        return "held_out='none' was given; held_out='noisy' (--held-out noisy) measures them"
    if not records.labels and how != "unprotected" and records.target.range is None:
        return "a target without a range in the schema has no bound to scale noise by"
    return ""


def _left_out(reason: str) -> dict[str, Any]:
    found = {"held_out": "left out", "covered_by_the_claim": True, "reason": reason}
    return {**found, "warnings": []}


def _scores(records: Records, model: Model) -> Vector:
    """Return scores and targets of held-out records, shape (m, 2); NaN for ignored records."""
    X, y = records.X_test, records.y_test
    known = np.asarray(finite_rows(X) & (y >= (0 if records.labels else -np.inf)))
    return blanked(np.stack([model.scores(blanked(X, known)), y], axis=1), known, np.nan)


def _held(before: Vector, scored: Vector, **grid: float) -> Vector:
    """Return counts of records; and their ranks, once there is a sum of counts."""
    scores, labels = scored.T
    held = Held(scores, np.where(np.isnan(labels), -1, labels), **grid)
    return held.ranks(before) if before.any() else held.counts()


def _errors(before: Vector, scored: Vector) -> Vector:
    """Return squared errors, their squares, targets and squared targets, over 16, 512, 4 and 16.

    A scaled target is in [-4, 4]: squared errors are cut at 16.
    """
    known = np.asarray(~np.isnan(scored[:, 1]))
    scores, targets = blanked(scored, known).T
    squares = np.minimum((scores - targets) ** 2, 16.0) / 16
    rows = np.stack([squares, squares**2 / 2, targets / 4, targets**2 / 16], axis=1)
    return blanked(rows, known)


def _plan(trained: Plan, held_out: int, bound: float, times: int, group: int) -> Plan:
    """Return the plan of sums over held-out records, at the target of the training."""
    names = ("epsilon", "delta", "neighboring_relation")
    target: dict[str, Any] = {name: getattr(trained, name) for name in names}

    def all_of(value: float) -> DpEvent:
        once = rows_of_one_person(noise_multiplier=value, group_size=group)
        return once if times == 1 else SelfComposedDpEvent(once, times)

    sigma = noise_multiplier(all_of, **target)
    query = query_on_all("scores", bound, sigma, times, group_size=group)
    n, public = trained.n if trained.public_n else held_out, trained.public_n
    return Plan(optimizer="evaluation", n=n, queries=(query,), public_n=public, **target)


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


def _about_scores(found: dict[str, Any]) -> list[str]:
    """Return warnings about a model that learned nothing, or about scores that noise hides."""
    hidden = "noise hides the scores of so few held-out records"
    if "accuracy" in found:
        area, error = found["auc"], found["auc_standard_error"]
        if area is None or error > 0.25:
            return [hidden]
        if area - 0.5 <= 2 * error:
            return [
                "the model may not separate the classes, by the held-out records: "
                f"the area under the ROC curve is {area:.3f} with standard error {error:.3f}, "
                "and 0.5 for a model that learned nothing"
            ]
    elif "baseline" in found:
        names = ("root_mean_squared_error", "baseline")
        errors = [found[f"{name}_standard_error"] for name in names]
        missed, constant = (found[name] for name in names)
        if None in errors or max(errors) > constant / 4:
            return [hidden]
        if missed >= constant:
            return [
                f"the model is no better than a constant: root mean squared error {missed:.4g} "
                f"with standard error {errors[0]:.2g}, against {constant:.4g}"
            ]
    return []


def print_warnings(sentences: list[str]) -> None:
    """Print warnings on standard error."""
    for sentence in sentences:
        print(f"dpcal: warning: {sentence}.", file=sys.stderr)
