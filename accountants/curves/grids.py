"""What do many events cost? One question for each point of a grid, side by side on threads.

Where one contour serves, the points of a chunk take one compiled call, which holds no lock of the
interpreter. All others are asked one by one. Each answer is, to the bit, that of
:func:`dpcal.accountants.epsilon` or :func:`dpcal.accountants.delta`.

>>> from dpcal.accountants import events
>>> costs = grid(
...     events.dpsgd, sampling_probability=[[0.01], [0.02]], noise_multiplier=1.0,
...     steps=[100, 1000, 10_000], delta=1e-6,
... )
>>> print(costs.upper.round(4))
[[ 0.9542  2.1245  6.9074]
 [ 1.7693  4.4452 15.6417]]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal import _validate
from dpcal._ext import question
from dpcal.accountants import interface
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_down, exp_up
from dpcal.errors import UnsupportedEvent

__all__ = ["Grid", "grid"]

Answer = tuple[float, float, str]
# Points of one compiled call, and of one task of an executor: about 20 ms.
_CHUNK = 256


@dataclass(frozen=True)
class Grid:
    """Bounds of many questions: arrays of the shape of their parameters.

    Attributes
    ----------
    lower, upper
        Ends of the intervals that contain the true values; the upper ends are the answers.
    method
        What proved each.
    neighboring_relation
        The relation that they hold for.
    """

    lower: Reals
    upper: Reals
    method: NDArray[np.str_]
    neighboring_relation: str


def grid(
    event_of: Callable[..., DpEvent],
    *,
    delta: ArrayLike | None = None,
    epsilon: ArrayLike | None = None,
    neighboring_relation: str = "add-or-remove-one",
    executor: Executor | None = None,
    progress: Callable[[int], object] | None = None,
    **parameters: ArrayLike,
) -> Grid:
    """Return the epsilons of many events at given deltas, or their deltas at given epsilons.

    Parameters
    ----------
    event_of
        Returns an event of single parameters, as :func:`dpcal.accountants.events.dpsgd`.
    delta, epsilon
        Numbers or an array of one of them: each delta in (0, 1), each epsilon finite and >= 0.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    executor
        Threads that answer chunks of 256 points side by side, or processes if ``event_of`` makes
        events that can be pickled; None for this thread.
    progress
        Called with the number of points answered so far, after each chunk.
    **parameters
        Of ``event_of``: numbers or arrays, broadcast against each other and the targets.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range, or arrays that have no common shape.
    UnsupportedEvent
        If no theorem here covers one of the events under this relation.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    if (delta is None) == (epsilon is None):
        raise TypeError("grid() takes one of delta and epsilon.")
    deltas = epsilon is not None
    goal, check = (
        ("epsilon", _validate.non_negative) if deltas else ("delta", _validate.probability)
    )
    targets = _validate.reals(**{goal: epsilon if deltas else delta})
    for value in targets.ravel().tolist():
        check(**{goal: value})
    arrays = np.broadcast_arrays(targets, *(np.asarray(each) for each in parameters.values()))
    shape, columns = arrays[0].shape, [array.ravel().tolist() for array in arrays]
    events = [
        event_of(**dict(zip(parameters, row, strict=True)))
        for row in (zip(*columns[1:], strict=True) if parameters else [()] * len(columns[0]))
    ]
    starts = range(0, len(events), _CHUNK)
    ask = partial(_answered, relation=neighboring_relation, deltas=deltas)
    chunks = [events[start : start + _CHUNK] for start in starts]
    asked = [columns[0][start : start + _CHUNK] for start in starts]
    found: list[Answer] = []
    for answers in (map if executor is None else executor.map)(ask, chunks, asked):
        found += answers
        if progress is not None:
            progress(len(found))
    ends = np.array([row[:2] for row in found], dtype=float).reshape(*shape, 2)
    method = np.array([row[2] for row in found], dtype=str).reshape(shape)
    return Grid(ends[..., 0], ends[..., 1], method, neighboring_relation)


def _answered(
    events: Sequence[DpEvent], targets: Sequence[float], *, relation: str, deltas: bool
) -> list[Answer]:
    """Return the bounds of some events: of delta at epsilons, or of epsilon at deltas."""
    known = [_compiled(event, relation) for event in events]
    places = [place for place, parts in enumerate(known) if parts]
    at = np.array([targets[place] for place in places], dtype=float)
    rows = question.many([known[place] for place in places], at if deltas else np.log(at), deltas)
    answers: dict[int, Answer] = {}
    for place, (low, high, method) in zip(places, rows.tolist(), strict=True):
        if method >= 0:
            if deltas:
                low, high = exp_down(min(low, -UNIT)), exp_up(min(high, 0.0))
            answers[place] = low, high, "sampling" if method else "contour"
    for place in range(len(events)):
        if place not in answers:
            name, given = ("delta", "epsilon") if deltas else ("epsilon", "delta")
            how = {given: targets[place], "neighboring_relation": relation}
            one = getattr(interface, name)(events[place], **how)
            answers[place] = one.lower, one.upper, one.provenance
    return [answers[place] for place in range(len(events))]


def _compiled(event: DpEvent, relation: str) -> list[list[tuple[question.Law, int]]]:
    """Return the parts of each direction as one compiled call takes them; none if it cannot."""
    try:
        composition = decompose(event, relation)
    except UnsupportedEvent:  # a whole run has none, and others are refused where they are asked
        return []
    known = [side.compiled for side in composition.directions if composition.private]
    return [parts for parts in known if parts is not None] if None not in known else []
