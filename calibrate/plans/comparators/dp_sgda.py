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
from dpcal.calibrate.constants import Constants, public_constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.minimax.releases import positive_or, sampling_of, solved
from dpcal.calibrate.plans.minimax.setting import Setting
from dpcal.calibrate.query import Query

__all__ = ["dp_sgda"]


@public_constants
def dp_sgda(
    constants: Constants,
    *,
    n: int,
    dimensions: tuple[int, int],
    epsilon: float,
    delta: float,
    steps: int | None = None,
    batch_size: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    ascent_rate: float | None = None,
    value_smoothness: float | None = None,
    sampler: str | None = None,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of DP-SGDA that meets (epsilon, delta).

    Parameters
    ----------
    constants
        Public constants of one record's F: ``lipschitz`` (unless ``max_norm`` is given),
        ``smoothness`` and ``strong_concavity``.
    n
        Number of records, >= 1, public.
    dimensions
        d1 and d2.
    epsilon, delta
        Target: epsilon >= 0, delta in (0, 1).
    steps
        T >= 1; twenty passes when omitted.
    batch_size
        Expected records of a step, in [1, n]; 3 sqrt(n), and at least 64, when omitted.
    max_norm
        C > 0, to which a record's pair of gradients is clipped; M when omitted.
    learning_rate, ascent_rate
        Step sizes > 0 of x and of y; 1 / L_Phi and 1 / L when omitted.
    value_smoothness
        L_Phi > 0; (1 + kappa) L when omitted.
    sampler
        ``"fixed-size"`` (the default under replace-one) or ``"poisson"`` (the default otherwise).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.

    Returns
    -------
    Plan
        One query, ``"gradient"``.

    References
    ----------
    Yang, Hu, Wang and Ying 2022, Differentially private SGDA for minimax problems.
    """
    target = (epsilon, delta, neighboring_relation)
    setting = Setting.of(constants, n, dimensions, target, max_norm, value_smoothness)
    if batch_size is None:
        batch_size = min(setting.n, max(64, math.ceil(3 * math.sqrt(setting.n))))
    sampling = sampling_of(batch_size, setting.n, neighboring_relation, sampler)
    T = math.ceil(20 * setting.n / batch_size) if steps is None else _validate.count(steps=steps)

    def queries(multiplier: float) -> tuple[Query, ...]:
        query = Query(
            name="gradient",
            kind="gradient",
            max_norm=setting.C,
            noise_multiplier=multiplier,
            count=T,
            **sampling,
        )
        return (query,)

    return Plan(
        optimizer="dp_sgda",
        n=setting.n,
        queries=solved(queries, setting.n, target),
        epsilon=float(epsilon),
        delta=float(delta),
        neighboring_relation=neighboring_relation,
        parameters={
            "primal_dimension": setting.d1,
            "dual_dimension": setting.d2,
            "steps": T,
            "batch_size": batch_size,
            "learning_rate": positive_or(1 / setting.L_Phi, learning_rate=learning_rate),
            "ascent_rate": positive_or(1 / setting.L, ascent_rate=ascent_rate),
        },
    )
