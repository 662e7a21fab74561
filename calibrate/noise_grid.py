"""How much noise do many targets need? One search for each point, all side by side.

The searches of a chunk of points go on together: each round is one compiled call for the epsilons
of all, which holds no lock of the interpreter (:mod:`dpcal.accountants.curves.profile`). Every
eighth point is solved first, and gives the points between a start. Points that the compiled call
does not serve, or that do not settle, are solved by :func:`dpcal.calibrate.noise_multiplier`.

>>> from dpcal.accountants import events
>>> noise_multipliers(
...     events.dpsgd, sampling_probability=0.01, steps=[[100], [1000]], epsilon=[1.0, 2.0],
...     delta=1e-6,
... ).round(4)
array([[0.9859, 0.8018],
       [1.5627, 1.029 ]])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext import question
from dpcal._internal import validate
from dpcal._internal.validate import NoiseOutOfRange
from dpcal.accountants.curves.profile import CHUNK, compiled
from dpcal.accountants.events import DpEvent
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.targets import FAR, RELATIVE_WIDTH, Target

Reals = NDArray[np.float64]

# One point in so many is solved before the others, from a first guess of noise 1.
_APART = 8
# Rounds of a chunk: the first points need 8, the others 3 to 5.
_ROUNDS = 24
# Plausible slopes of log epsilon in log sigma: others come from rounding or from jumps.
_STEEPEST, _FLATTEST = -20.0, -0.02


class _Point(NamedTuple):
    """One target, and the event as a function of the noise multiplier."""

    event_of: Callable[..., DpEvent]
    parameters: Mapping[str, Any]
    epsilon: float
    delta: float
    relation: str

    def event(self, sigma: float) -> DpEvent:
        """Return the event with a noise multiplier."""
        if not self.parameters:
            return self.event_of(sigma)
        return self.event_of(noise_multiplier=sigma, **self.parameters)

    def compiled(self, sigma: float) -> list[question.Parts]:
        """Return the losses as a compiled call takes them; none if it does not serve them."""
        try:
            return compiled(self.event(sigma), self.relation)
        except NoiseOutOfRange:
            return []


def noise_multipliers(
    event_of_sigma: Callable[..., DpEvent],
    *,
    epsilon: ArrayLike,
    delta: ArrayLike,
    neighboring_relation: str = "add-or-remove-one",
    **parameters: ArrayLike,
) -> Reals:
    """Return the smallest noise multipliers that meet many targets, each to a relative 1e-6.

    At each the upper bound of epsilon, as :func:`dpcal.accountants.epsilon` proves it, is at most
    the target. An error is raised as :func:`dpcal.calibrate.noise_multiplier` raises it.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event; its epsilon falls as the multiplier grows; called
        with the keyword ``noise_multiplier`` where there are parameters.
    epsilon, delta
        Targets: numbers or arrays.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    **parameters
        Parameters of ``event_of_sigma``, such as batch sizes or steps: numbers or arrays, broadcast
        against each other and the targets.

    Returns
    -------
    ndarray
        The noise multipliers, of the common shape of all arrays.
    """
    relation = validate.relation(neighboring_relation)
    given = {"epsilon": validate.reals(epsilon=epsilon), "delta": validate.reals(delta=delta)}
    given |= {name: np.asarray(values) for name, values in parameters.items()}
    try:
        arrays = np.broadcast_arrays(*given.values())
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in given.items())
        raise ValueError(f"arrays must have a common shape, got {shapes}.") from None
    points = []
    for epsilon_at, delta_at, *rest in zip(
        *(each.ravel().tolist() for each in arrays), strict=True
    ):
        Target(epsilon_at, delta_at, relation)  # refuses what is out of range
        own = dict(zip(parameters, rest, strict=True))
        points.append(_Point(event_of_sigma, own, epsilon_at, delta_at, relation))
    places = np.arange(len(points))
    first, others = places[::_APART], places[places % _APART > 0]
    begun = _searched([points[i] for i in first], np.zeros((len(first), 2)) - [0, 1])
    guesses = np.stack([np.interp(places, first, row) for row in begun.T], axis=1)
    guesses[others] = _searched([points[i] for i in others], guesses[others])
    guesses[first] = begun
    return np.asarray(np.exp(guesses[:, 0]).reshape(arrays[0].shape))


def _searched(points: Sequence[_Point], guesses: Reals) -> Reals:
    """Return the logarithm of each answer, and the slope there, from guesses of both."""
    starts = range(0, len(points), CHUNK)
    found = [_solved(points[i : i + CHUNK], guesses[i : i + CHUNK]) for i in starts]
    return np.concatenate([guesses[:0], *found])


class _Searches:
    """The state of all searches of a chunk, by the logarithm of the noise multiplier."""

    def __init__(self, x: Reals, slope: Reals) -> None:
        self.x, self.slope = x, slope
        self.miss, self.meet = np.full_like(x, -np.inf), np.full_like(x, np.inf)
        self._before = np.stack([x, np.full_like(x, np.nan)])

    def step(self, at: NDArray[np.intp], excess: Reals) -> NDArray[np.bool_]:
        """Take the excess of some points; return which are done, and move the others."""
        x = self.x[at]
        with np.errstate(divide="ignore", invalid="ignore"):
            change = x - self._before[0, at]
            slope = (excess - self._before[1, at]) / change
        known = (slope > _STEEPEST) & (slope < _FLATTEST) & (np.abs(change) > 1e-7)
        slope = self.slope[at] = np.where(known, slope, self.slope[at])
        self._before[:, at] = x, excess
        meets = excess <= 0
        self.meet[at] = np.where(meets, np.minimum(x, self.meet[at]), self.meet[at])
        self.miss[at] = np.where(meets, self.miss[at], np.maximum(x, self.miss[at]))
        near = (excess >= 0.5 * RELATIVE_WIDTH * slope) | (x - self.miss[at] <= RELATIVE_WIDTH)
        done = meets & near
        # A quarter of the width beyond the root meets the target, just so.
        moved = x + np.clip(-excess / slope, -FAR, FAR) + 0.25 * RELATIVE_WIDTH
        low, high = self.miss[at], self.meet[at]
        outside = ~((moved > low) & (moved < high))
        moved[outside] = 0.5 * (low + high)[outside]
        self.x[at] = np.where(done, x, moved)
        return done


def _solved(points: Sequence[_Point], guesses: Reals) -> Reals:
    """Return the logarithm of each answer of a chunk, and the slope there."""
    searches = _Searches(guesses[:, 0].copy(), guesses[:, 1].copy())
    log_delta = np.log([max(point.delta, 1e-320) for point in points])
    wanted = np.log([max(point.epsilon, 1e-320) for point in points])
    left = np.array([i for i, each in enumerate(points) if each.epsilon and each.delta], dtype=int)
    alone = sorted({*range(len(points))} - {*left.tolist()})
    for _ in range(_ROUNDS):
        if not left.size:
            break
        sides = [points[i].compiled(float(np.exp(searches.x[i]))) for i in left]
        served = np.array([bool(each) for each in sides])
        alone += left[~served].tolist()
        left = left[served]
        rows = question.many([each for each in sides if each], log_delta[left], False)
        answered = rows[:, 2] >= 0
        alone += left[~answered].tolist()
        left, upper = left[answered], rows[answered, 1]
        with np.errstate(divide="ignore"):
            excess = np.log(upper) - wanted[left]
        above = upper > np.array([points[i].epsilon for i in left])
        excess = np.where(above, np.maximum(excess, 1e-16), np.minimum(excess, 0.0))
        left = left[~searches.step(left, excess)]
    for i in [*alone, *left.tolist()]:
        target = dict(zip(("epsilon", "delta", "neighboring_relation"), points[i][2:], strict=True))
        searches.x[i] = np.log(noise_multiplier(points[i].event, **target))
    return np.stack([searches.x, searches.slope], axis=1)
