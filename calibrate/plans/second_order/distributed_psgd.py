r"""From a target to Gauss-PSGD over silos: one plan, whose noise every silo adds by itself.

Nothing is amplified by the number of silos: each adds the noise of one Gaussian release a pass, and
the claim is about one record of one silo, the others' records fixed. The mean of m answers errs
less, so that with n records in each silo the error falls as 1 / sqrt(m):

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=10**0.5, smoothness=1.0, hessian_lipschitz=1.0)
>>> sizes = dict(n=20_000, dimension=10, epsilon=1.0, delta=1e-6, batch_size=1000, drift=0.02,
...              difference_batch_size=20, threshold=0.2)
>>> for m in (1, 2, 5, 10):
...     plan = distributed_psgd(constants, silos=m, **sizes)
...     print(m, f"{plan.parameters['error']:.3f}", f"{plan.queries[0].noise_multiplier:.4f}")
1 0.295 8.4494
2 0.208 8.4494
5 0.132 8.4494
10 0.093 8.4494
"""

from __future__ import annotations

import dataclasses
from typing import Any

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import Given, builder
from dpcal.calibrate.plans.second_order.gauss_psgd import Options, planned

__all__ = ["distributed_psgd"]


@builder("replace-one", options=Options)
def distributed_psgd(
    given: Given,
    *,
    silos: int = 1,
    preset: str = "practical",
    max_norm: float | None = None,
    **options: Any,
) -> Plan:
    """Return the plan of Gauss-PSGD over silos that meets (epsilon, delta) in each of them.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        As :func:`dpcal.calibrate.gauss_psgd` needs them.
    epsilon, delta
        Target of one silo's whole transcript with respect to one of its records (inter-client
        record-level privacy).
    n
        Number of records of the smallest silo. A silo with more has larger batches in proportion.
    silos
        Number of silos m >= 1.
    **options
        Of :class:`~dpcal.calibrate.plans.second_order.gauss_psgd.Options`, for a silo with ``n``
        records.

    Returns
    -------
    Plan
        Of a silo with ``n`` records; ``parameters`` holds ``silos``.

    References
    ----------
    Tao, Zhang, Yu, Cheng, Dressler and Wang 2025, Algorithm 3; with ``period``, the distributed
    SPIDER of DIFF2 (Murata and Suzuki 2023).
    """
    m = _validate.count(silos=silos)
    plan = planned(given, max_norm, preset, Options(**options), silos=m)
    parameters = {**plan.parameters, "silos": m}
    return dataclasses.replace(plan, optimizer="distributed_psgd", parameters=parameters)
