"""What may another package bring? Mechanisms by name, and losses that keep the contract of a loss.

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> check_loss(Gaussian(noise_multiplier=2.0))
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dpcal import _lazy
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.base import PrivacyLoss

__all__ = ["GROUP", "check_loss", "mechanism"]

GROUP = "dpcal.mechanisms"
"""Entry points of this group name functions that return an event."""

# Few programs read the list of installed packages, which takes 40 ms.
_metadata = _lazy.Module("importlib.metadata")
# Tilts c at which a loss is checked: inside of the strip Re z > -1, on both sides of 0.
_TILTS = np.array([-0.75, -0.5, -0.25, 0.0, 0.5, 1.0, 2.0])
# Relative errors of differences with this step, in units of c, are far below the tolerance.
_STEP = 1e-3
_TOLERANCE = 1e-3
# Steps, in standard deviations, along a vertical line.
_NODES = 12


def mechanism(name: str, **parameters: Any) -> DpEvent:
    """Return the event of a mechanism that an installed package offers.

    Parameters
    ----------
    name
        Name of an entry point of the group ``dpcal.mechanisms``.
    **parameters
        Arguments of the function that it names.

    Raises
    ------
    ValueError
        If no installed package offers this name.
    """
    offered = {entry.name: entry for entry in _metadata.entry_points(group=GROUP)}
    if name not in offered:
        names = ", ".join(map(repr, offered)) or "none, since no installed package offers any"
        raise ValueError(f"name must be one of {names}, got {name!r}.")
    event: DpEvent = offered[name].load()(**parameters)
    return event


def check_loss(loss: PrivacyLoss, opposite: PrivacyLoss | None = None) -> None:
    """Check what every :class:`~dpcal.accountants.losses.base.PrivacyLoss` must keep.

    The moments belong to one law, under which P and Q have mass 1; bounds are bounds; the tilted
    law has these moments and this decay. A loss that passes may still be that of another mechanism:
    a closed form or a sum over outcomes checks that.

    Parameters
    ----------
    loss
        A finite loss that has a law.
    opposite
        The loss of the reversed pair, if the moments of both are to agree.

    Raises
    ------
    ValueError
        With a sentence about the first fact that does not hold.
    """
    found = loss.cumulants(_TILTS)
    log_mgf, mean, variance, fourth = found.T
    _hold("log M(0) is 0, since P has mass 1", abs(log_mgf[3]) <= 1e-9)
    near = float(loss.cumulants([-1 + 1e-7])[0, 0])
    _hold("log M(c) falls to 0 at c = -1, since Q has mass 1", abs(near) <= _TOLERANCE)
    _hold("variances are positive", (variance > 0).all())
    _hold("fourth moments are at least squared variances", (fourth >= variance**2 * 0.999).all())
    up, down = loss.cumulants(_TILTS + _STEP), loss.cumulants(_TILTS - _STEP)
    slopes = (up[:, :2] - down[:, :2]) / (2 * _STEP)
    _hold("mean is the slope of log M", _near(slopes[:, 0], mean, np.sqrt(variance)))
    _hold("variance is the slope of the mean", _near(slopes[:, 1], variance, variance))
    _hold("no mean exceeds upper", (mean <= loss.upper * (1 + 1e-12) + 1e-12).all())
    for c, value in zip(_TILTS[_TILTS > 0], log_mgf[_TILTS > 0], strict=True):
        bound = loss.log_mgf_bound(float(c))
        _hold("log_mgf_bound is at least log M", value <= bound + 1e-9 * abs(bound) + 1e-12)
    for epsilon in (0.0, loss.std, 3 * loss.std):
        closed = loss.log_delta(epsilon)
        if closed is not None:
            least = float((log_mgf - _TILTS * epsilon)[_TILTS > 0].min())
            _hold("log_delta is at most Chernoff's bound", closed[0] <= least + 1e-9)
    for row, c in zip(found, _TILTS, strict=True):
        _check_tilt(loss, float(c), float(row[1]), float(row[2]))
    if opposite is not None:
        inner = _TILTS[:3]
        both = loss.cumulants(-1 - inner)[:, 0], opposite.cumulants(inner)[:, 0]
        _hold("the opposite has M(-1 - c) at c", _near(*both, np.ones(3)))


def _check_tilt(loss: PrivacyLoss, c: float, mean: float, variance: float) -> None:
    """Check the law along one vertical line."""
    tilt, step = loss.tilt(c), 0.25 / variance**0.5
    _hold("the mean of the tilted law is its moment", abs(tilt.mean - mean) <= 1e-6 * step**-1)
    logs = np.asarray(tilt.log_ratio(step, _NODES))
    sizes = logs.real
    _hold("log_ratio begins with 0", abs(logs[0]) <= 1e-12)
    _hold("a characteristic function is at most 1 in size", (sizes <= 1e-12).all())
    small = float(np.asarray(tilt.log_ratio(step / 25, 2))[1].real)
    told = -0.5 * variance * (step / 25) ** 2
    _hold("log_ratio begins like that of its variance", abs(small - told) <= 0.05 * abs(told))
    t = step * np.arange(1.0, _NODES)
    _hold("log_decay bounds it", (sizes[1:] <= tilt.log_decay(t, 1.0) + 1e-9).all())


def _near(found: Any, told: Any, scale: Any) -> bool:
    """Whether numbers agree, up to differences of a size."""
    return bool((np.abs(found - told) <= _TOLERANCE * (np.abs(told) + scale)).all())


def _hold(fact: str, holds: Any) -> None:
    """Refuse a loss that does not keep a fact."""
    if not holds:
        raise ValueError(f"A privacy loss must keep this, and the given one does not: {fact}.")
