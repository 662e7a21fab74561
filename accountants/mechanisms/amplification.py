r"""What is the dominating pair after Poisson sampling? Each loss l becomes log(1 - q + q e^l).

If (P, Q) dominates a mechanism when a record is removed, ((1 - q) Q + q P, Q) dominates it after
Poisson sampling, and the reversed pair does when a record is added (Zhu, Dong and Wang 2022,
Theorem 11).

>>> from dpcal.accountants.losses.discrete import pure
>>> remove, add = sampled(pure(1.0), 0.1)
>>> print(f"{remove.upper:.12f} {math.log1p(0.1 * math.expm1(1.0)):.12f} {add.upper:.12f}")
0.158565078740 0.158565078740 0.065298335999
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import ROUNDING, DiscreteLoss, LatticeLoss, ScatteredLoss
from dpcal.accountants.losses.laplace import Laplace
from dpcal.errors import UnsupportedEvent

__all__ = ["amplified", "sampled"]

Reals = NDArray[np.float64]

# Number of intervals into which the density of a Laplace loss is cut. For ten steps at q = 0.1 and
# scale 1, rounding up adds 2e-7 to epsilon.
_INTERVALS = 1024
# Losses, in nats, from which on 1 - q is a small correction to q exp(l).
_LARGE = 500.0

Pair = tuple[PrivacyLoss, PrivacyLoss]


@singledispatch
def sampled(loss: PrivacyLoss, q: float) -> Pair:
    """Return the losses of a Poisson-sampled mechanism, for removing and for adding a record.

    Parameters
    ----------
    loss
        Loss of the mechanism when a record is removed; the reversed pair must be its loss when one
        is added.
    q
        Sampling probability in (0, 1).
    """
    raise UnsupportedEvent(f"Sampling {loss!r} takes a quadrature that is not here.")


@sampled.register
def _(loss: DiscreteLoss, q: float) -> Pair:
    return _amplified(loss.values, np.array(loss.log_reference), q, f"{q!r}-sampled {loss!r}")


def amplified(values: Reals, q: float) -> Reals:
    """Return log(1 - q + q exp(l)) of each l, without overflow, with the digits of small values.

    Parameters
    ----------
    values
        Privacy losses.
    q
        Sampling probability in (0, 1).
    """
    moderate = np.minimum(values, _LARGE)
    near = np.log1p(q * np.expm1(moderate))
    if q > 0.5:
        # This form takes no difference from 1, which would lose the digits of 1 - q.
        near = np.where(values < -0.5, np.log((1 - q) + q * np.exp(moderate)), near)
    far = values + math.log(q) + np.log1p((1 - q) / q * np.exp(-np.maximum(values, _LARGE)))
    return np.asarray(np.where(values < _LARGE, near, far))


def _amplified(values: Reals, log_reference: Reals, q: float, name: str) -> Pair:
    """Return the sampled losses from values and log probabilities under Q."""
    if len(values) == 2:
        # Any two values lie on a lattice, which starts at the more likely one.
        places = amplified(values, q)
        low, high = (float(value) for value in places)
        unit = high - low
        if unit < 1.0:
            odds = q * math.exp(values[0]) * math.expm1(values[1] - values[0]) / math.exp(low)
            unit = math.log1p(odds)
        mixture = (log_reference + places)[::-1]
        reference, added = tuple(log_reference.tolist()), tuple(mixture.tolist())
        remove = LatticeLoss(unit, (0, 1), reference, name, low, ROUNDING)
        add = LatticeLoss(unit, (-1, 0), added, f"{name}, added", -low, ROUNDING)
        return remove, add
    return _scattered(values, log_reference, q, name)


def _scattered(
    values: Reals, log_reference: Reals, q: float, name: str
) -> tuple[ScatteredLoss, ScatteredLoss]:
    """Return the sampled losses, whose values may lie anywhere."""
    places = amplified(values, q)
    added = (log_reference + places)[::-1]
    others = (-places[::-1]).tolist()
    return (
        ScatteredLoss(tuple(places.tolist()), tuple(log_reference.tolist()), name, q),
        ScatteredLoss(tuple(others), tuple(added.tolist()), f"{name}, added", q),
    )


@sampled.register
def _(loss: Laplace, q: float) -> Pair:
    """Return the sampled losses of Laplace noise, rounded up and down.

    The density is cut into short intervals. To round up, the mass of an interval from l to l + h
    moves to its ends so that both laws keep their mass: that pair dominates (Doroshenko et al.
    2022). To round down, it moves to the middle, where the loss is the log-ratio of both masses:
    that is post-processing, so that the pair is dominated.
    """
    a, h = loss.half_width, 2 * loss.half_width / _INTERVALS
    ends = np.linspace(-a, a, _INTERVALS + 1)
    # Under Q the ends of the interval from l to l + h get exp(-(l + a) / 2) tanh(h / 4) / 2, and
    # that times exp(-h / 2); the point mass at -a is 1/2, and the one at a is exp(-a) times that.
    half, share = math.log(0.5), math.tanh(h / 4)
    falling = -0.5 * h * np.arange(_INTERVALS + 1.0)
    up = falling + math.log(share)
    up[[0, -1]] = half + math.log1p(share) + np.array([0.0, -a])
    middles = np.concatenate([[-a], ends[:-1] + h / 2, [a]])
    inner = half + falling[:-1] + math.log(-math.expm1(-h / 2))
    down = np.concatenate([[half], inner, [half - a]])
    name = f"{q!r}-sampled {loss!r}"
    uppers = _scattered(ends, up, q, name)
    lowers = _scattered(middles, down, q, f"{name}, rounded down")
    remove, add = (
        replace(high, rounded_down=low) for high, low in zip(uppers, lowers, strict=True)
    )
    return remove, add
