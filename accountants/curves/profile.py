r"""The epsilons of many events, and of one event at many deltas. Whole profiles, and grids.

One contour serves many epsilons (:class:`dpcal.accountants.characteristic.DirectionProfile`).
Aliases, truncation and rounding are bounded at every epsilon. If the bounds at an epsilon are too
loose, the next contour serves it, and in the end a contour of its own.

>>> import numpy as np
>>> from dpcal.accountants import events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> profile = privacy_profile(event, np.linspace(0.0, 20.0, 1001))
>>> bool((profile.log_upper - profile.log_lower).max() < 1e-9)
True
>>> print(f"{profile.epsilons[400]:.1f} {profile.upper[400]:.9e}")
8.0 2.028380941e-08
>>> answers = epsilon_profile(event, [1e-5, 1e-6, 1e-30])
>>> [f"{epsilon:.6f}" for epsilon in answers.upper]
['6.187712', '6.907384', '17.635061']

For a grid of events, and for many deltas, points are computed one by one, in parallel on threads.
Where one contour serves, the points of a chunk take one compiled call, which holds no lock of the
interpreter. All other points are computed one by one. Each answer has the same bits as
:func:`dpcal.accountants.epsilon` or :func:`dpcal.accountants.delta`.

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext import question
from dpcal._internal import validate
from dpcal._internal.executors import mapping
from dpcal.accountants import interface
from dpcal.accountants.characteristic import DirectionProfile
from dpcal.accountants.directions import relation_of
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import UNIT, exp_down, exp_up
from dpcal.errors import UnsupportedEvent

Answer = tuple[float, float, str]

# Points of one compiled call, and of one task of an executor: about 20 ms.
CHUNK = 256


@dataclass(frozen=True, eq=False)
class PrivacyProfile:
    """Bounds on delta at many epsilons.

    Attributes
    ----------
    epsilons
        Array of numbers >= 0.
    log_lower, log_upper
        Arrays of the same length: the natural logarithm of delta lies between them.
    neighboring_relation
        The relation that the bounds hold for.
    """

    epsilons: Reals
    log_lower: Reals
    log_upper: Reals
    neighboring_relation: str

    @property
    def lower(self) -> Reals:
        """Lower bounds on delta; 0 below the range of a double."""
        return np.array([exp_down(float(value)) for value in self.log_lower])

    @property
    def upper(self) -> Reals:
        """Upper bounds on delta; the smallest positive double below the range of a double."""
        return np.array([exp_up(float(value)) for value in self.log_upper])


@dataclass(frozen=True, eq=False)
class EpsilonProfile:
    """Bounds on epsilon at many deltas.

    Attributes
    ----------
    deltas
        Array of numbers in (0, 1).
    lower, upper
        Arrays of the same length: epsilon lies between them.
    neighboring_relation
        The relation that the bounds hold for.
    """

    deltas: Reals
    lower: Reals
    upper: Reals
    neighboring_relation: str


def _numbers(check: Callable[..., float], **argument: ArrayLike) -> Reals:
    """Return numbers that each pass a check of their range, as an array of one dimension."""
    array = np.atleast_1d(validate.each(check, **argument))
    if array.ndim != 1:
        raise ValueError(
            f"{next(iter(argument))} must be one-dimensional, got shape {array.shape}."
        )
    return array


def privacy_profile(
    event: DpEvent,
    epsilons: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> PrivacyProfile:
    """Return bounds on delta at many epsilons, in the time of a few.

    For ``event`` and ``neighboring_relation`` see :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    epsilons
        Finite numbers >= 0 in any order, shape (n,).

    Returns
    -------
    PrivacyProfile
        Bounds on log delta are at most 1e-6 apart, or as far apart as those of
        :func:`dpcal.accountants.delta`; mostly they are less than 1e-10 apart.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no theorem here covers the event under this relation.
    """
    neighboring_relation = relation_of(neighboring_relation)
    asked = _numbers(validate.non_negative, epsilons=epsilons)
    composition = decompose(event, neighboring_relation)
    lower = upper = np.zeros(len(asked))
    if composition.private:
        first, *others = map(DirectionProfile, composition.directions)
        lower, upper = first.log_bounds(asked)
        for direction in others:
            some = direction.log_chernoff(asked) > lower
            low, high = direction.log_bounds(asked[some])
            lower[some], upper[some] = np.maximum(lower[some], low), np.maximum(upper[some], high)
    return PrivacyProfile(asked, lower, upper, neighboring_relation)


def epsilon_profile(
    event: DpEvent,
    deltas: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> EpsilonProfile:
    """Return bounds on epsilon at many deltas, each as close as that of one question.

    For ``event`` and ``neighboring_relation`` see :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    deltas
        Numbers in (0, 1) in any order, shape (n,).

    Returns
    -------
    EpsilonProfile
        Each has the bounds of :func:`dpcal.accountants.epsilon`.
    """
    asked = _numbers(validate.probability, deltas=deltas)
    found = grid(lambda: event, delta=asked, neighboring_relation=neighboring_relation)
    return EpsilonProfile(asked, found.lower, found.upper, found.neighboring_relation)


@dataclass(frozen=True)
class Grid:
    """Bounds of many questions: arrays of the shape of their parameters.

    Attributes
    ----------
    lower, upper
        Ends of the intervals that contain the true values; the upper ends are the answers.
    method
        The proof of each.
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
        Parameters of ``event_of``: numbers or arrays, broadcast against each other and the targets.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range, or arrays that have no common shape.
    UnsupportedEvent
        If no theorem here covers one of the events under this relation.
    """
    neighboring_relation = relation_of(neighboring_relation)
    if (delta is None) == (epsilon is None):
        raise TypeError("grid() takes one of delta and epsilon.")
    deltas = epsilon is not None
    if deltas:
        targets = validate.each(validate.non_negative, epsilon=epsilon)
    else:
        targets = validate.each(validate.probability, delta=delta)
    arrays = np.broadcast_arrays(targets, *(np.asarray(each) for each in parameters.values()))
    shape, columns = arrays[0].shape, [array.ravel().tolist() for array in arrays]
    events = [
        event_of(**dict(zip(parameters, row, strict=True)))
        for row in (zip(*columns[1:], strict=True) if parameters else [()] * len(columns[0]))
    ]
    ask = partial(_answered, relation=neighboring_relation, deltas=deltas)
    chunks, asked = (
        [each[start : start + CHUNK] for start in range(0, len(events), CHUNK)]
        for each in (events, columns[0])
    )
    found: list[Answer] = []
    for answers in mapping(executor)(ask, chunks, asked):
        found += answers
        if progress is not None:
            progress(len(found))
    ends = np.array([row[:2] for row in found], dtype=float).reshape(*shape, 2)
    method = np.array([row[2] for row in found], dtype=str).reshape(shape)
    return Grid(ends[..., 0], ends[..., 1], method, neighboring_relation)


def _answered(
    events: Sequence[DpEvent], targets: Sequence[float], *, relation: str, deltas: bool
) -> list[Answer]:
    """Return the bounds of some events: on delta at epsilons, or on epsilon at deltas."""
    distinct = {id(event): event for event in events}
    parts_of = {each: compiled(event, relation) for each, event in distinct.items()}
    known = [parts_of[id(event)] for event in events]
    places = [place for place, parts in enumerate(known) if parts]
    at = np.array([targets[place] for place in places], dtype=float)
    rows = question.many([known[place] for place in places], at if deltas else np.log(at), deltas)
    answers: dict[int, Answer] = {}
    for place, (low, high, method) in zip(places, rows.tolist(), strict=True):
        if method >= 0:
            if deltas:
                low, high = exp_down(min(low, -UNIT)), exp_up(min(high, 0.0))
            answers[place] = low, high, "sampling" if method else "contour"
    ask, given = (interface.delta, "epsilon") if deltas else (interface.epsilon, "delta")
    for place in set(range(len(events))) - set(answers):
        how: dict[str, Any] = {given: targets[place], "neighboring_relation": relation}
        one = ask(events[place], **how)
        answers[place] = one.lower, one.upper, one.provenance
    return [answers[place] for place in range(len(events))]


def compiled(event: DpEvent, relation: str) -> list[list[tuple[question.Law, int]]]:
    """Return the parts of each direction as one compiled call takes them; none if it cannot."""
    try:
        composition = decompose(event, relation)
    except UnsupportedEvent:  # others are refused when they are computed
        return []
    known = [side.compiled for side in composition.directions if composition.private]
    return [parts for parts in known if parts is not None] if None not in known else []
