"""Tests of an objective against the conditions of the privacy claim, on random rows.

The condition: a record's contribution depends only on that record and on the parameters; it is
clipped and added elsewhere (:mod:`dpcal.optim.objectives.contributions`). A check finds mistakes,
such as statistics of a batch; it does not find malice.

>>> import numpy as np
>>> from dpcal.optim import FromGradients, Logistic
>>> check_objective(Logistic(np.eye(4), [0, 1, 0, 1], classes=[0, 1]))
>>> table = np.diag([1.0, 2.0, 3.0, 4.0])
>>> centred = FromGradients(lambda w, rows: table[rows] - table[rows].mean(axis=0),
...                         n=4, dimension=4)
>>> check_objective(centred)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.BrokenObjective: sums of gradients must be those of their records: a sum over 4 rows...
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcal._internal import validate
from dpcal.errors import BrokenObjective, warn_caller
from dpcal.optim.objectives.arrays import Rows, Vector, norm_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import (
    Contributions,
    gradients,
    hessian_products,
    losses,
)

_ROUNDING = 1e-9

_ROWS = 24

# Groups of rows that an oracle tests, rows of each, and fewest groups that outvote one record.
_GROUPS, _IN_GROUP, _FEWEST_GROUPS = 5, 3, 3

# Relative step of central differences, and their largest error, which kinks of a loss cause.
_STEP, _DIFFERENCES = 1e-5, 1e-4

# Halvings of the segment between two parameters; its last length is far above rounding.
_HALVINGS = 20


def check_objective(
    objective: Objective, *, seed: int = 0, trials: int = 4, smoothness: float | None = None
) -> None:
    """Test an objective on random rows and parameters, before any run: the test is not private.

    BrokenObjective is raised if sums are not the sums of their records, if the order of rows or the
    previous call matters, or if a Hessian is not symmetric or not the derivative of the gradients.

    Parameters
    ----------
    objective
        Any objective.
    seed, trials
        Seed of the rows and parameters that are tried, an integer >= 0; and number of trials, at
        least 1.
    smoothness
        L1 > 0 of one record's loss, if a theorem is to be used that needs it. VacuousSchedule, a
        warning, names a row with gradients that change faster. The gradients of a hinge do:
        theorems for smooth losses then promise nothing, while privacy holds.
    """
    validate.instance(Objective, objective=objective)
    rng = np.random.default_rng(validate.seed(seed=seed))
    d = objective.dimension
    for trial in range(validate.count(trials=trials)):
        scale = 10.0 ** (trial % 3 - 1)
        w, v = scale * rng.standard_normal((2, d))
        rows = rng.permutation(objective.n)[:_ROWS].astype(np.intp)
        _check_all_sums(objective, w, v, rows)
        _check_hessian(objective, w, v, rows)
        if smoothness is not None:
            _check_smooth(objective, w, v, rows, validate.positive(smoothness=smoothness))


def screen(objective: Objective) -> None:
    """Refuse an objective of your own that breaks the claim, as an oracle does before a run.

    Sums are compared with the sums of their records, on random rows in disjoint groups of three.
    The objective is refused if the sums differ in more than half of the groups. No single record
    decides, whatever its gradients are: a correct objective is not refused for any records, and a
    refused objective had no claim. The error, BrokenObjective, holds no value of a record.
    :func:`check_objective` is stricter, has more precise messages, and is not private.

    An objective that is ``checked`` is not tested, and a tested objective becomes ``checked``.
    """
    if objective.checked:
        return
    w, v = 0.1 * np.random.default_rng(0).standard_normal((2, objective.dimension))
    rows = np.random.default_rng(1).permutation(objective.n)[: _GROUPS * _IN_GROUP]
    groups = [
        rows[i : i + _IN_GROUP].astype(np.intp)
        for i in range(0, len(rows) - _IN_GROUP + 1, _IN_GROUP)
    ]
    if len(groups) >= _FEWEST_GROUPS:
        odd = sum(not _keeps_promise(objective, w, v, group) for group in groups)
        if 2 * odd > len(groups):
            raise BrokenObjective(
                "an objective's sums must be those of its records, each clipped by itself, and on "
                f"most of {len(groups)} groups of {_IN_GROUP} random rows they are not: "
                "dpcal.optim.check_objective says more; set its attribute checked to True to run "
                "it all the same."
            )
    objective.checked = True


def _keeps_promise(objective: Objective, w: Vector, v: Vector, rows: Rows) -> bool:
    """Return whether sums over a few rows are right; a function of only these rows."""
    try:
        with np.errstate(all="ignore"):
            _check_all_sums(objective, w, v, rows)
    except BrokenObjective:
        return False
    except Exception:
        return True
    return True


def _check_all_sums(objective: Objective, w: Vector, v: Vector, rows: Rows) -> None:
    """Check sums of gradients, differences and losses."""
    _check_sums("gradients", lambda some: gradients(objective, some, w), rows)
    _check_sums("gradient differences", lambda some: gradients(objective, some, w, v), rows)
    try:
        losses(objective, rows[:1], w).clipped(math.inf)
    except TypeError:
        return
    _check_sums("losses", lambda some: losses(objective, some, w), rows)


def _check_sums(what: str, ask: Callable[[Rows], Contributions], rows: Rows) -> None:
    typical = float(np.linalg.norm(ask(rows[:1]).clipped(math.inf)))
    bound = 0.5 * typical if 0 < typical < math.inf else 1.0
    singles = [ask(rows[i : i + 1]).clipped(bound) for i in range(len(rows))]
    room = _ROUNDING * bound * len(rows)
    for size in sorted({min(2, len(rows)), len(rows) // 2, len(rows)}):
        whole = np.sum(singles[:size], axis=0)
        if not np.linalg.norm(ask(rows[:size]).clipped(bound) - whole) <= room:
            raise BrokenObjective(
                f"sums of {what} must be those of their records: a sum over {size} rows differs "
                "from what they contribute one by one. Is an average clipped, or a batch "
                "normalised?"
            )
    if not np.linalg.norm(ask(rows[::-1].copy()).clipped(bound) - whole) <= room:
        raise BrokenObjective(f"sums of {what} must not depend on the order of rows, or on calls.")


def _check_hessian(objective: Objective, w: Vector, v: Vector, rows: Rows) -> None:
    """Compare Hessian products with differences of gradients, and check their symmetry."""
    try:
        product = hessian_products(objective, rows, w, v).clipped(math.inf)
    except TypeError:
        return
    u = np.roll(v, 1) - v
    back = hessian_products(objective, rows, w, u).clipped(math.inf)
    size = float(np.linalg.norm(product) * np.linalg.norm(u) + np.linalg.norm(back) * _norm_of(v))
    if not abs(u @ product - v @ back) <= _ROUNDING * size:
        raise BrokenObjective("a Hessian must be symmetric: <u, H v> differs from <v, H u>.")
    h = _STEP * max(1.0, float(np.linalg.norm(w))) / _norm_of(v)
    ahead, behind = (objective.clipped_sum(w + s * h * v, rows, math.inf) for s in (1, -1))
    room = _DIFFERENCES * (float(np.linalg.norm(product)) + _norm_of(v))
    if not np.linalg.norm((ahead - behind) / (2 * h) - product) <= room:
        raise BrokenObjective(
            "a Hessian must be the derivative of the gradients: its product with a vector differs "
            "from a difference of gradients."
        )


def _check_smooth(objective: Objective, w: Vector, v: Vector, rows: Rows, most: float) -> None:
    """Warn if the gradients of a row change faster than ``most`` somewhere between w and v.

    At least one half of a segment has the rate of change of the whole or more, so halving finds a
    kink.
    """
    for row in rows:
        start, end = ((at, objective.clipped_sum(at, np.array([row]), math.inf)) for at in (w, v))
        for _ in range(_HALVINGS):
            at = (start[0] + end[0]) / 2
            middle = at, objective.clipped_sum(at, np.array([row]), math.inf)
            halves = (start, middle), (end, middle)
            start, end = max(halves, key=lambda ends: norm_of(ends[0][1] - ends[1][1]))
        apart, moved = (norm_of(a - b) for a, b in zip(start, end, strict=True))
        if moved > (1 + _DIFFERENCES) * most * apart:
            warn_caller(
                f"the gradient of row {row} moves by {moved:.3g} between parameters "
                f"{apart:.3g} apart, more than smoothness={most:.6g} allows: the loss has a kink, "
                "as a hinge has, or is curved more. Theorems for smooth losses promise nothing.",
            )
            return


def _norm_of(v: Vector) -> float:
    """Return the norm of a vector, 1 for the zero vector."""
    return float(np.linalg.norm(v)) or 1.0
