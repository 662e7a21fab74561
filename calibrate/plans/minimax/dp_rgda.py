"""From a target to DP-RGDA: how many outer steps, how much noise, and how long is an escape?

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=2.5, smoothness=4.0, strong_concavity=1.0, gap=0.5,
...                       hessian_lipschitz=6.0)
>>> plan = dp_rgda(constants, n=200_000, dimensions=(2, 2), epsilon=2.0, delta=1e-6,
...                value_smoothness=5.0)
>>> 0.999 < plan.price() <= 2.0
True
>>> [plan.parameters[name] for name in ("inner_steps", "certifiable")]
[8, True]
"""

from __future__ import annotations

from typing import Any

from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import Given, builder
from dpcal.calibrate.plans.minimax.practical import practical
from dpcal.calibrate.plans.minimax.setting import Options, Setting

__all__ = ["dp_rgda"]


@builder("replace-one", sizes="dimensions", options=Options)
def dp_rgda(
    given: Given,
    *,
    max_norm: float | None = None,
    value_smoothness: float | None = None,
    **options: Any,
) -> Plan:
    """Return the plan of DP-RGDA that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    constants
        Also ``gap`` (unless ``steps`` and ``accuracy`` are given) and ``hessian_lipschitz`` rho
        (unless ``escape_steps`` is given).
    dimensions
        With d2 = 0 the run looks for a second-order stationary point of a plain minimisation.
    **options
        Of :class:`~dpcal.calibrate.plans.minimax.setting.Options`; what is not given is derived as
        :mod:`dpcal.calibrate.plans.minimax.practical` says.

    Returns
    -------
    Plan
        Queries ``"refresh"``, ``"difference"`` and, if asked for, ``"warm start"``; each answer is
        about both blocks. ``parameters`` holds the setting, the root mean square ``noise_floor`` of
        the estimated gradient in x, and whether a phase can last (``certifiable``).

    Warns
    -----
    VacuousSchedule
        If the noise is as large as the accuracy, or no phase can last, or alpha is not below M.

    References
    ----------
    Xu, Tao, Ding, Fan and Wang 2026, Algorithms 2 and 3, corrected; see the errata.
    """
    chosen = Options(**options)
    setting = Setting.of(given, max_norm, value_smoothness)
    chosen.check(setting)
    return practical(setting, chosen)
