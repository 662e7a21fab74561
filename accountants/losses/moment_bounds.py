"""Mechanisms for which a theorem bounds only the Renyi divergences.

Only the Renyi accountant accepts such a loss, and adds it to the exact divergences of the other
mechanisms.

>>> from dpcal.accountants import epsilon, events
>>> answer = epsilon(events.ZCDpEvent(rho=0.5), delta=1e-5)
>>> print(f"{answer:.4f} {answer.accountant}")
4.7284 renyi
>>> print(f"{epsilon(events.GaussianDpEvent(1.0), delta=1e-5, accountant='renyi'):.4f}")
4.7284
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.accountants.losses.base import PrivacyLoss, Reals, Tilt
from dpcal.errors import UnsupportedEvent

__all__ = ["Concentrated", "MomentBound"]


class MomentBound(PrivacyLoss):
    """A mechanism with known Renyi divergences only: bounds on log M, but no law."""

    @property
    def has_law(self) -> bool:
        """False."""
        return False

    @property
    def law(self) -> PrivacyLoss | None:
        """None."""
        return None

    def _refuse(self) -> UnsupportedEvent:
        return UnsupportedEvent(
            f"Only Renyi divergences are known of {self!r}: ask the accountant 'renyi'."
        )

    def cumulants(self, c: ArrayLike) -> Reals:
        """Refuse: the law is not known."""
        raise self._refuse()

    def tilt(self, c: float) -> Tilt:
        """Refuse: the law is not known."""
        raise self._refuse()


@dataclass(frozen=True)
class Concentrated(MomentBound):
    """Concentrated privacy: Renyi divergence at most xi + rho a at every order a (zCDP).

    Parameters
    ----------
    rho, xi
        Finite numbers >= 0 (Bun and Steinke 2016, Definition 8.1).
    """

    rho: float
    xi: float = 0.0

    def __post_init__(self) -> None:
        _validate.non_negative(rho=self.rho)
        _validate.non_negative(xi=self.xi)

    def moments(self, c: ArrayLike) -> Reals:
        """Return c (xi + rho (1 + c)) and its derivatives."""
        c = np.atleast_1d(np.asarray(c, dtype=float))
        curvature = np.full_like(c, 2 * self.rho)
        slope = self.xi + self.rho * (1 + 2 * c)
        return np.column_stack([c * (self.xi + self.rho * (1 + c)), slope, curvature])

    def log_mgf_bound(self, c: float) -> float:
        """Return c (xi + rho (1 + c))."""
        return c * (self.xi + self.rho * (1 + c))
