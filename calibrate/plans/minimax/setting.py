"""Known constants of a minimax problem, checked before any derivation.

>>> from dpcal.calibrate.constants import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=4.0, strong_concavity=2.0)
>>> given = Given.of(constants, n=1_000, dimension=(3, 2), epsilon=1.0, delta=1e-6)
>>> setting = Setting.of(given)
>>> setting.kappa, setting.L_Phi
(2.0, 12.0)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpcal import _validate
from dpcal.calibrate.plan import Parameters
from dpcal.calibrate.plans.common import Given, positive_or, warn_below_noise
from dpcal.calibrate.plans.variance_reduction import Bounds, Releases

__all__ = ["Setting"]


@dataclass(frozen=True, kw_only=True)
class Setting(Given):
    """Checked sizes, constants and target.

    Parameters
    ----------
    d2
        Dual dimension, of d in all.
    C, L, kappa
        Bound on a record's gradient; smoothness; L / mu, and 0 without a dual variable.
    L_Phi
        Smoothness of Phi.
    """

    d2: int
    C: float
    L: float
    kappa: float
    L_Phi: float

    @classmethod
    def of(
        cls, given: Given, max_norm: float | None = None, value_smoothness: float | None = None
    ) -> Setting:
        """Check arguments of a plan builder.

        Raises
        ------
        ValueError
            For a constant that is needed and missing or out of range, and for a dual variable for
            each record where records may be added.
        """
        pair, n, constants = given.d, given.n, given.constants
        d1, d2 = pair if isinstance(pair, Sequence) else (pair, 0)
        d1 = _validate.count(primal_dimension=d1)
        if d2 != 0:
            d2 = _validate.count(dual_dimension=d2)
        L = given.known("smoothness")
        kappa = 0.0
        if d2:
            mu = constants.strong_concavity
            if not 0 < mu <= L:
                raise ValueError(
                    f"constants.strong_concavity must be in (0, L] with L = smoothness = {L:g}, or "
                    "the best response is no function of x that estimates could follow, got "
                    f"{mu!r}. A public dual regulariser makes a problem strongly concave."
                )
            kappa = L / mu
        if d2 == n and given.target.relation == "add-or-remove-one":
            raise ValueError(
                f"dimensions must not depend on the records, got d2={d2} for n={n} records: to add "
                "a record would add a dual variable. Use 'replace-one' or 'replace-special'."
            )
        return cls(
            **{**vars(given), "d": d1 + d2},
            d2=d2,
            C=given.known("lipschitz", "max_norm", max_norm),
            L=L,
            kappa=kappa,
            L_Phi=positive_or((1 + kappa) * L, value_smoothness=value_smoothness),
        )

    @property
    def d1(self) -> int:
        """Primal dimension."""
        return self.d - self.d2

    @property
    def dimensions(self) -> Parameters:
        """The dimensions, as parameters of a plan."""
        return {"primal_dimension": self.d1, "dual_dimension": self.d2}

    @property
    def spread(self) -> float:
        """Distance that (x, y) moves for a unit of x, as y follows its best response."""
        return math.sqrt(1 + self.kappa**2)

    @property
    def value_hessian_lipschitz(self) -> float:
        """Lipschitz constant of the Hessian of Phi: ``rho (1 + kappa)^2 sqrt(1 + kappa^2)``."""
        rho = self.known("hessian_lipschitz", "escape_steps")
        return rho * (1 + self.kappa) ** 2 * self.spread

    def errors(self, releases: Releases, bounds: Bounds, length: float) -> tuple[float, float]:
        """Return a1 and a2: an estimate's coordinate errs by ``a1 z1^2 + a2 z2^2`` in mean square.

        ``length`` is the distance that x moves in an outer step.
        """
        refresh = (bounds.gradient / releases.refresh_size) ** 2
        difference = bounds.difference / releases.batch_size
        if bounds.proportional:
            return refresh, releases.period * (difference * length * self.spread) ** 2
        return refresh, releases.period * releases.inner * difference**2

    def floor(self, errors: tuple[float, float], multipliers: tuple[float, float]) -> float:
        """Return the root mean square of the noise in the estimated gradient in x."""
        noise = sum(a * z**2 for a, z in zip(errors, multipliers, strict=True))
        return math.sqrt(self.d1 * noise)

    def certified(self, floor: float, alpha: float, rate: float, movement: float) -> Parameters:
        """Return what a plan records of its escapes, and warn where noise spoils them.

        ``floor`` is the root mean square of the noise in the estimated gradient in x, ``alpha`` the
        accuracy, and ``rate`` and ``movement`` are eta_H and Dbar of an escape.
        """
        quiet = min(alpha, math.sqrt(movement) / rate)
        what = "the mean norm of estimated gradients in an escape phase"
        warn_below_noise("dp_rgda", self.n, what, quiet, floor)
        return {"noise_floor": floor, "certifiable": floor < quiet}
