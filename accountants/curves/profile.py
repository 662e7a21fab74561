r"""What is delta at a thousand epsilons? The whole privacy profile, from a handful of contours.

One contour serves many epsilons (:mod:`dpcal.accountants.direction_profile`). Aliases, truncation
and rounding are bounded at every epsilon. If the bounds at an epsilon are too loose, the next
contour serves it, and in the end a contour of its own.

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
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext import question
from dpcal.accountants import characteristic
from dpcal.accountants.direction_profile import DirectionProfile
from dpcal.accountants.directions import Composition
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import Reals
from dpcal.accountants.mechanisms.decompose import decompose
from dpcal.accountants.rounding import exp_down, exp_up

__all__ = [
    "EpsilonProfile",
    "PrivacyProfile",
    "epsilon_profile",
    "privacy_profile",
]


class _WorstProfile:
    """The larger of the directions' deltas; a direction that is provably smaller is skipped."""

    def __init__(self, composition: Composition) -> None:
        self._directions = [DirectionProfile(item) for item in composition.directions]

    def log_bounds(self, epsilons: Reals) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on log delta at each epsilon >= 0, in any order."""
        lower, upper = self._directions[0].log_bounds(epsilons)
        for direction in self._directions[1:]:
            low, high = direction.log_bounds(epsilons, above=lower)
            lower, upper = np.maximum(lower, low), np.maximum(upper, high)
        return lower, upper


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
    (name,) = argument
    array = np.atleast_1d(_validate.reals(**argument))
    if array.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional, got shape {array.shape}.")
    for value in array.tolist():
        check(**{name: value})
    return array


def privacy_profile(
    event: DpEvent,
    epsilons: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> PrivacyProfile:
    """Return bounds on delta at many epsilons, in the time of a few.

    ``event`` and ``neighboring_relation`` are those of :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    epsilons
        Finite numbers >= 0 in any order, shape (n,).

    Returns
    -------
    PrivacyProfile
        Where :func:`dpcal.accountants.delta` proves log delta to better than 1e-10, the bounds are
        at most that far apart, and otherwise about as far apart as its own.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no theorem here covers the event under this relation.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    asked = _numbers(_validate.non_negative, epsilons=epsilons)
    composition = decompose(event, neighboring_relation)
    if not composition.private:
        lower = upper = np.zeros(len(asked))
    else:
        lower, upper = _WorstProfile(composition).log_bounds(asked)
    return PrivacyProfile(asked, lower, upper, neighboring_relation)


def epsilon_profile(
    event: DpEvent,
    deltas: ArrayLike,
    *,
    neighboring_relation: str = "add-or-remove-one",
) -> EpsilonProfile:
    """Return bounds on epsilon at many deltas, each as close as that of one question.

    ``event`` and ``neighboring_relation`` are those of :func:`dpcal.accountants.epsilon`.

    Parameters
    ----------
    deltas
        Numbers in (0, 1) in any order, shape (n,).

    Returns
    -------
    EpsilonProfile
        Each has the bounds of :func:`dpcal.accountants.epsilon`.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    asked = _numbers(_validate.probability, deltas=deltas)
    composition = decompose(event, neighboring_relation)
    if not composition.private:
        infinite = np.full(len(asked), math.inf)
        return EpsilonProfile(asked, infinite, infinite, neighboring_relation)
    targets, places = np.unique(np.log(asked), return_inverse=True)
    lower, upper = _compiled(composition, targets)
    for place in np.flatnonzero(np.isinf(upper)):
        bounds = characteristic.worst_epsilon_bounds(composition.directions, float(targets[place]))
        lower[place], upper[place] = bounds.lower, bounds.upper
    return EpsilonProfile(asked, lower[places], upper[places], neighboring_relation)


def _compiled(composition: Composition, targets: Reals) -> tuple[Reals, Reals]:
    """Return bounds on the epsilons at increasing log deltas by compiled calls.

    Where there is no such call, or it has no answer, the interval is [0, infinity].
    """
    found = [direction.compiled for direction in composition.directions]
    compiled = [parts for parts in found if parts is not None]
    if len(compiled) < len(found):
        return np.zeros(len(targets)), np.full(len(targets), math.inf)
    first, *others = compiled
    lower, upper = question.epsilons(first, targets[::-1].copy())[:, ::-1]
    known = ~np.isnan(lower)
    for parts in others:
        # Another direction is proved to need no more, or asked too.
        above = question.log_deltas(parts, upper[known][::-1].copy())[1, ::-1]
        more = np.flatnonzero(known)[above > targets[known]]
        low, high = question.epsilons(parts, targets[more][::-1].copy())[:, ::-1]
        lower[more], upper[more] = np.fmax(lower[more], low), np.fmax(upper[more], high)
        known[more] &= ~np.isnan(low)
    return np.where(known, lower, 0.0), np.where(known, upper, math.inf)
