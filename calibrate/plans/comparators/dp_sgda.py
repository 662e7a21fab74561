"""From a target to DP-SGDA: one noisy release of both gradients a step.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, strong_concavity=1.0)
>>> plan = dp_sgda(constants, n=400, dimensions=(3, 2), epsilon=2.0, delta=1e-6, steps=400,
...                batch_size=50)
>>> print(f"{plan.query('gradient').noise_multiplier / 2:.3f}")  # relative to 2 C / b
5.931
"""

from __future__ import annotations

import math

from dpcal import _validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import Given, builder, gradients, positive_or, sampling_of
from dpcal.calibrate.plans.minimax.setting import Setting

__all__ = ["dp_sgda"]


@builder("replace-one", sizes="dimensions")
def dp_sgda(
    given: Given,
    *,
    steps: int | None = None,
    batch_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    ascent_rate: float | None = None,
    value_smoothness: float | None = None,
    sampler: str | None = None,
) -> Plan:
    """Return the plan of DP-SGDA that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans.minimax`.

    Parameters
    ----------
    steps
        Twenty passes when omitted.
    batch_size
        3 sqrt(n), and at least 64, when omitted.
    learning_rate
        1 / L_Phi when omitted.

    Returns
    -------
    Plan
        One query, ``"gradient"``.

    References
    ----------
    Yang, Hu, Wang and Ying 2022, Differentially private SGDA for minimax problems.
    """
    n, target = given.n, given.target
    setting = Setting.of(given, max_norm, value_smoothness)
    if batch_size is None:
        batch_size = min(n, max(64, math.ceil(3 * math.sqrt(n))))
    sampling = sampling_of(batch_size, n, target.relation, sampler)
    T = math.ceil(20 * n / batch_size) if steps is None else _validate.count(steps=steps)
    queries = target.met_by(lambda z: (gradients(setting.C, z, T, **sampling),), n)
    parameters: dict[str, Parameter] = {
        **setting.dimensions,
        "steps": T,
        "batch_size": batch_size,
        "learning_rate": positive_or(1 / setting.L_Phi, learning_rate=learning_rate),
        "ascent_rate": positive_or(1 / setting.L, ascent_rate=ascent_rate),
    }
    return given.plan("dp_sgda", queries, parameters)
