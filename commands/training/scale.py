"""How long are most rows? A noisy mean of their squared norms, by which rows are rescaled.

Ranges bound the norms and do not tell them: of columns that fill their ranges, rows are four times
as long as of columns with long tails. Steps that are right for the one are too long or too short
for the other, or for the constant column beside them. So rows are multiplied by one number, the
same for all, that gives them the norm which clip and rate were chosen for.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate import Plan, Query, noise_multiplier
from dpcal.calibrate.defaults import SCALE_SHARE
from dpcal.commands._options import fields_of
from dpcal.commands.training.task import Run, Task
from dpcal.optim import Ledger
from dpcal.optim.boundary.access import Store, oracle_of
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.optim.objectives.placed import as_they_are, by_row, objective_of, vectors_of
from dpcal.tables.coding import Coding

__all__ = ["NAME", "asked_before", "released", "rescaled", "restored", "scale_query"]

NAME = "scale"

# The largest standard deviation of its noise, in units of the guess that it replaces, at which
# longer rows are still told apart from shorter ones.
_NOISE = 0.15
# Squares are cut at four guesses or more; where noise would be half a guess, the guess stays.
_LEAST_CUT, _LOUDEST = 4.0, 0.5


def scale_query(coding: Coding, *, release: float, n: int, group_size: int) -> Query | None:
    """Return the query about the mean squared norm of rows; None where noise would hide it.

    Parameters
    ----------
    coding
        It bounds the squared norm of rows, and guesses that of most.
    release
        Noise multiplier of one release at the whole target, about all rows of a person.
    n, group_size
        Number of records, and of records of one person.
    """
    guess, bound = coding.typical_square, coding.square_bound
    if not guess:
        return None
    multiplier = release / math.sqrt(SCALE_SHARE)
    cut = min(bound / guess, max(_LEAST_CUT, _NOISE * n / multiplier))
    if cut * multiplier / n > _LOUDEST:
        return None
    return Query(
        name=NAME,
        kind="gradient",
        sampler="full",
        max_norm=cut * guess,
        noise_multiplier=multiplier,
        count=1,
        group_size=group_size,
    )


def asked_before(plan: Plan, scale: Query) -> Plan:
    """Return a plan that asks for the scale first, and has more noise on what comes after."""
    query = plan.query("gradient")

    def both(value: float) -> Plan:
        return replace(plan, queries=(scale, replace(query, noise_multiplier=value)))

    target = fields_of(plan, "epsilon", "delta", "neighboring_relation", "accountant")
    return both(noise_multiplier(lambda value: both(value).event, **target))


def released(
    task: Task,
    plan: Plan,
    coding: Coding,
    *,
    seed: int | None,
    noise: str | None,
    store: Store,
) -> tuple[float, Ledger]:
    """Return what rows are to be multiplied by, as a plan's query tells, and its ledger."""
    query = plan.query(NAME)
    records = objective_of(partial(vectors_of, as_they_are, 1), by_row(_squares, task.X_train))
    # A seed serves once: training takes the seed itself, and the scores its other child.
    child = None if seed is None else np.random.SeedSequence(seed, spawn_key=(2,))
    part = replace(plan, optimizer=NAME, queries=(query,), parameters={})
    oracle = oracle_of(records, part, child, store, noise)
    (told,) = oracle.gradient(np.zeros(1), NAME)
    if hasattr(oracle, "close"):
        oracle.close()
    deviation = query.noise_multiplier * query.max_norm / plan.n
    # Rows are taken to be longer by one deviation: too low a clip costs more than its noise saves.
    square = min(query.max_norm, max(float(told), 0.0) + deviation)
    return math.sqrt((coding.typical_square or 1.0) / square), oracle.ledger


def _squares(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared norm of each row, 0 of a blank one, shape (m, 1)."""
    known = blanked(rows, finite_rows(rows))
    return np.asarray((known**2).sum(axis=1, keepdims=True))


def rescaled(task: Task, factor: float) -> Task:
    """Return the same problem for rows times a factor: a penalty is multiplied by its square."""
    by = partial(np.multiply, factor)
    tables = {name: by_row(by, getattr(task, name)) for name in ("X_train", "X_test")}
    return replace(task, **tables, l2=task.l2 * factor**2)


def restored(plan: Plan, before: Ledger, run: Run, features: int, factor: float) -> Run:
    """Return a run with the parameters of the original rows, and with what was asked before it."""
    w, ledger = run.result.w.copy(), run.result.ledger
    w[:features] *= factor
    entries = [*before.entries, *ledger.entries]
    ledger = Ledger(plan.n, plan.neighboring_relation, entries=entries)
    return replace(run, result=replace(run.result, w=w, plan=plan, ledger=ledger))
