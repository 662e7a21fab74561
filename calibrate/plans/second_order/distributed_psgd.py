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
from dpcal.calibrate.constants import Constants, public_constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.second_order.gauss_psgd import planned

__all__ = ["distributed_psgd"]


@public_constants
def distributed_psgd(
    constants: Constants,
    *,
    n: int,
    dimension: int,
    epsilon: float,
    delta: float,
    silos: int = 1,
    preset: str = "practical",
    max_norm: float | None = None,
    learning_rate: float | None = None,
    batch_size: int | None = None,
    difference_batch_size: int | None = None,
    drift: float | None = None,
    period: int | None = None,
    threshold: float | None = None,
    escape_radius: float | None = None,
    escape_steps: int | None = None,
    escape_rounds: int = 4,
    reset: str = "rewind",
    passes: int = 1,
    steps: int | None = None,
    failure_probability: float | None = None,
    neighboring_relation: str = "replace-one",
) -> Plan:
    """Return the plan of Gauss-PSGD over silos that meets (epsilon, delta) in each of them.

    Parameters
    ----------
    constants
        Public constants of one record's loss: ``smoothness`` (always), ``lipschitz`` (unless
        ``max_norm`` is given) and ``hessian_lipschitz`` (unless ``escape_radius`` and
        ``escape_steps`` are given).
    dimension
        Number of parameters, >= 1.
    epsilon, delta
        Target, epsilon >= 0 and delta in (0, 1): of one silo's whole transcript with respect to one
        of its records (inter-client record-level privacy).
    n
        Number of records of the smallest silo, >= 1, public. A silo with more has larger batches in
        proportion.
    silos
        How many silos there are, m >= 1.
    batch_size, difference_batch_size
        Of a silo with ``n`` records.
    max_norm, learning_rate
        Clipping norm > 0 and step size in (0, 1 / M], from the constants when omitted.
    drift, period
        A gradient is fresh where the squared movement since the last fresh one would reach
        ``drift`` >= 0, and every ``period`` >= 1 gradients.
    threshold
        chi > 0: an escape begins where a gradient estimate is no longer than 3 chi. When omitted,
        the size of the error of the mean over the silos.
    escape_radius, escape_steps, escape_rounds
        R > 0, Gamma >= 1 and Q >= 1: a point is a saddle if one of Q rounds of at most Gamma steps
        leads farther than R from it.
    preset
        ``"practical"``, or ``"theory"`` for the settings of the corrected theorems.
    reset
        What the estimate is when a round begins: ``"rewind"`` (as it was when the escape began),
        ``"carry"`` (as the round before left it) or ``"fresh"`` (none).
    passes, steps
        How often >= 1 a record may be used, and gradients >= 1 that a run may ask for; as many as
        the records are enough for when omitted.
    failure_probability
        In (0, 1), for a threshold that no error exceeds but with that probability; None for one
        that is an error's size.
    neighboring_relation
        ``"replace-one"`` or ``"replace-special"``: disjoint batches need records that stay in
        place.

    Returns
    -------
    Plan
        Of a silo with ``n`` records; ``parameters`` holds ``silos``.

    Raises
    ------
    ValueError
        As :func:`dpcal.calibrate.gauss_psgd` says.

    References
    ----------
    Tao, Zhang, Yu, Cheng, Dressler and Wang 2025, Algorithm 3; with ``period``, the distributed
    SPIDER of DIFF2 (Murata and Suzuki 2023).
    """
    options: dict[str, Any] = {**locals()}
    del options["constants"], options["silos"]
    m = _validate.count(silos=silos)
    plan = planned(constants, silos=m, **options)
    parameters = {**plan.parameters, "silos": m}
    return dataclasses.replace(plan, optimizer="distributed_psgd", parameters=parameters)
