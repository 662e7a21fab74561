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
import math
from collections.abc import Iterable, Sequence
from typing import Any

from dpcal import _validate
from dpcal.accountants.events import GaussianDpEvent
from dpcal.accountants.interface import epsilon as epsilon_of
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import Given, builder, repeated, single_release
from dpcal.calibrate.plans.second_order.gauss_psgd import Options, planned

__all__ = ["distributed_psgd", "silo_plans"]


@builder("replace-one", options=Options)
def distributed_psgd(
    given: Given, *, silos: int = 1, max_norm: float | None = None, **options: Any
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
    plan = planned(given, max_norm, Options(**options), silos=m)
    parameters = {**plan.parameters, "silos": m}
    return dataclasses.replace(plan, optimizer="distributed_psgd", parameters=parameters)


def silo_plans(
    constants: Constants,
    *,
    epsilon: Sequence[float],
    delta: float,
    neighboring_relation: str = "replace-one",
    accountant: str = "auto",
    **options: Any,
) -> tuple[Plan, ...]:
    """Return a plan for each of several silos that ask for different epsilons.

    Each silo has the noise of its own target. Sizes, threshold and escapes are the same in all
    plans: those of :func:`distributed_psgd` for noise whose variance is the mean of the silos', so
    that the mean of their answers has the noise that was planned for.

    Parameters
    ----------
    constants
        As :func:`distributed_psgd` needs them.
    epsilon
        Target of each silo, at least one number > 0.
    delta, neighboring_relation
        Of all silos.
    accountant
        ``"auto"``, ``"characteristic"`` or ``"renyi"``.
    **options
        Further arguments of :func:`distributed_psgd`, but for ``silos``.

    Examples
    --------
    >>> from dpcal.calibrate import Constants
    >>> constants = Constants(lipschitz=10**0.5, smoothness=1.0, hessian_lipschitz=1.0)
    >>> plans = silo_plans(constants, epsilon=[1.0, 4.0], n=20_000, dimension=10, delta=1e-6,
    ...                    batch_size=1000, drift=0.02, difference_batch_size=20, threshold=0.2)
    >>> for plan in plans:
    ...     print(f"{plan.queries[0].noise_multiplier:.4f} {plan.price():.4f}")
    8.4494 1.0000
    2.3870 4.0000
    """
    if isinstance(epsilon, str) or not isinstance(epsilon, Iterable):
        raise TypeError(f"epsilon must be a sequence of numbers, one a silo, got {epsilon!r}.")
    targets = [_validate.positive(epsilon=each) for each in epsilon]
    if not targets:
        raise ValueError(f"epsilon must have a number > 0 for each silo, got {epsilon!r}.")
    _validate.choice(("auto", "characteristic", "renyi"), accountant=accountant)
    unit = (neighboring_relation, 1, "row", accountant)
    releases = [single_release(each, delta, *unit) for each in targets]
    together = math.hypot(*releases) / math.sqrt(len(releases))
    same: dict[str, Any] = {"delta": delta, "neighboring_relation": neighboring_relation}
    same["accountant"] = accountant
    plan = distributed_psgd(
        constants,
        epsilon=float(epsilon_of(GaussianDpEvent(together), **same)),
        silos=len(targets),
        **same,
        **options,
    )
    passes = int(plan.parameters["passes"] or 1)

    def own(target: float, release: float) -> Plan:
        noise = repeated(release, passes)
        queries = (dataclasses.replace(each, noise_multiplier=noise) for each in plan.queries)
        return dataclasses.replace(plan, epsilon=target, queries=tuple(queries))

    return tuple(map(own, targets, releases))
