"""How long are most rows? A noisy mean of their squared norms, by which rows are rescaled.

Ranges bound the norms and do not tell them: of columns that fill their ranges, rows are four times
as long as of columns with long tails. Steps that are right for the one are too long or too short
for the other, or for the constant column beside them. So rows are multiplied by one number, the
same for all, that gives them the norm which clip and rate were chosen for.

>>> from dpcal.tables.schema import Column
>>> coding = Coding([Column(name="age", type="number", range=(0, 120))])
>>> query = scale_query(coding, release=4.0, n=5_000, group_size=1)
>>> query.name, query.max_norm, query.noise_multiplier
('scale', 16.0, 40.0)
>>> scale_query(coding, release=4.0, n=50, group_size=1) is None
True
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.calibrate import Plan, Query
from dpcal.calibrate.defaults import SCALE_SHARE
from dpcal.optim import Ledger
from dpcal.optim.algorithms import Store
from dpcal.optim.linear_fit import SCALE, mean_square
from dpcal.optim.objectives.domains import blanked, finite_rows
from dpcal.tables.coding import Coding
from dpcal.tables.task import Run, Task

__all__ = ["released", "rescaled", "restored", "scale_query"]

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
        name=SCALE,
        kind="gradient",
        sampler="full",
        max_norm=cut * guess,
        noise_multiplier=multiplier,
        count=1,
        group_size=group_size,
    )


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
    query, squares = plan.query(SCALE), _squares(task.X_train)
    # A seed serves once: training takes the seed itself, and the scores its other child.
    child = None if seed is None else np.random.SeedSequence(seed, spawn_key=(2,))
    asked = replace(plan, optimizer=SCALE, queries=(query,))
    told, ledger = mean_square(squares, asked, seed=child, noise=noise, store=store)
    # Rows are taken to be longer by one deviation: too low a clip costs more than its noise saves.
    square = min(query.max_norm, told + query.noise_multiplier * query.max_norm / plan.n)
    return math.sqrt((coding.typical_square or 1.0) / square), ledger


def _squares(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the squared norm of each row, 0 of a blank one, shape (m, 1)."""
    known = blanked(rows, finite_rows(rows))
    return np.asarray((known**2).sum(axis=1, keepdims=True))


def rescaled(task: Task, factor: float) -> Task:
    """Return the same problem for rows times a factor: a penalty is multiplied by its square."""
    tables: dict[str, Any] = {"X_train": task.X_train * factor, "X_test": task.X_test * factor}
    return replace(task, **tables, l2=task.l2 * factor**2)


def restored(plan: Plan, before: Ledger, run: Run, features: int, factor: float) -> Run:
    """Return a run with the parameters of the original rows, and with what was asked before it."""
    w, ledger = run.result.w.copy(), run.result.ledger
    w[:features] *= factor
    entries = [*before.entries, *ledger.entries]
    ledger = Ledger(plan.n, plan.neighboring_relation, entries=entries)
    return replace(run, result=replace(run.result, w=w, plan=plan, ledger=ledger))
