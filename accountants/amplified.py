r"""What does Poisson sampling make of a dominating pair? Each loss l becomes log(1 - q + q e^l).

If (P, Q) dominates a mechanism when a record is removed, ((1 - q) Q + q P, Q) dominates it after
Poisson sampling, and the reversed pair does when a record is added (Zhu, Dong and Wang 2022,
Theorem 11).

>>> from dpcal.accountants.atoms import pure
>>> remove, add = sampled(pure(1.0), 0.1)
>>> print(f"{remove.upper:.12f} {math.log1p(0.1 * math.expm1(1.0)):.12f} {add.upper:.12f}")
0.158565078740 0.158565078740 0.065298335999
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.atoms import AtomicLoss, FiniteLoss, ScatteredLoss
from dpcal.accountants.loss import PrivacyLoss
from dpcal.accountants.segment import Laplace
from dpcal.errors import UnsupportedEvent

__all__ = ["sampled"]

Reals = NDArray[np.float64]

# Cells into which the density of a Laplace loss is cut.
_CELLS = 1024

Pair = tuple[PrivacyLoss, PrivacyLoss]


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
    if isinstance(loss, FiniteLoss):
        return _thinned(loss.values, np.array(loss.log_reference), q, f"{q!r}-sampled {loss!r}")
    if isinstance(loss, Laplace):
        return _thinned_laplace(loss, q)
    raise UnsupportedEvent(f"Sampling {loss!r} takes a quadrature that is not here.")


def _thinned(values: Reals, log_reference: Reals, q: float, name: str) -> Pair:
    """The sampled losses from values and log probabilities under Q."""
    if len(values) == 2:
        # Any two values lie on a lattice.
        thinned = np.log1p(q * np.expm1(values))
        mixture = log_reference + thinned
        low = float(thinned[0])
        odds = q * math.exp(values[0]) * math.expm1(values[1] - values[0]) / math.exp(low)
        unit = math.log1p(odds)
        remove = AtomicLoss(unit, (0, 1), tuple(log_reference.tolist()), name, low)
        add = AtomicLoss(unit, (-1, 0), tuple(mixture[::-1].tolist()), f"{name}, added", -low)
        return remove, add
    return _scattered(values, log_reference, q, name)


def _scattered(
    values: Reals, log_reference: Reals, q: float, name: str
) -> tuple[ScatteredLoss, ScatteredLoss]:
    """The sampled losses, their values anywhere."""
    thinned = np.log1p(q * np.expm1(values))
    added = (log_reference + thinned)[::-1]
    places, others = thinned.tolist(), (-thinned[::-1]).tolist()
    return (
        ScatteredLoss(tuple(places), tuple(log_reference.tolist()), name, q),
        ScatteredLoss(tuple(others), tuple(added.tolist()), f"{name}, added", q),
    )


def _thinned_laplace(loss: Laplace, q: float) -> Pair:
    """The sampled losses of Laplace noise, rounded up and down.

    A cell of the density, from l to l + h, is spread over its ends so that both laws keep their
    mass (which makes a pair that dominates; Doroshenko et al. 2022), or gathered in its middle,
    where the ratio of its two masses is (post-processing, which makes a pair that is dominated).
    """
    a = loss.half_width
    ends = np.linspace(-a, a, _CELLS + 1)
    h = 2 * a / _CELLS
    left = ends[:-1]
    density = 0.25 * math.exp(-a / 2)
    # Probability under Q of a cell, and of the share that its right end takes.
    cell = 2 * density * np.exp(-left / 2) * -math.expm1(-h / 2)
    right = 8 * density * np.exp(-left / 2) * math.sinh(h / 4) ** 2 / math.expm1(h)
    atoms = np.zeros(_CELLS + 1)
    atoms[0], atoms[-1] = 0.5, 0.5 * math.exp(-a)
    up = atoms.copy()
    up[:-1] += cell - right
    up[1:] += right
    middles = np.concatenate([[-a], left + h / 2, [a]])
    down = np.concatenate([[0.5], cell, [0.5 * math.exp(-a)]])
    name = f"{q!r}-sampled {loss!r}"
    uppers = _scattered(ends, np.log(up), q, name)
    lowers = _scattered(middles, np.log(down), q, f"{name}, rounded down")
    remove, add = (
        replace(high, rounded_down=low) for high, low in zip(uppers, lowers, strict=True)
    )
    return remove, add
