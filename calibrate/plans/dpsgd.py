"""From a target to a DP-SGD run: the plan of Poisson-sampled, per-example clipped SGD.

>>> plan = dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.parameters['steps']} steps, sigma {plan.query('gradient').noise_multiplier:.4f}")
1000 steps, sigma 1.0290
>>> 2.0 - 1e-4 < plan.price() <= 2.0
True
"""

from __future__ import annotations

import math

from dpcal import _validate
from dpcal.accountants import events
from dpcal.calibrate.groups import rows_of_one_person
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import Target, gradients

__all__ = ["dpsgd"]


def dpsgd(
    *,
    n: int,
    batch_size: int,
    epsilon: float,
    delta: float,
    epochs: float | None = None,
    steps: int | None = None,
    max_norm: float = 1.0,
    learning_rate: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    group_size: int = 1,
) -> Plan:
    """Return the plan of DP-SGD (Abadi et al. 2016, Algorithm 1) that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    batch_size
        Expected batch size; each record joins a batch with probability batch_size / n.
    epochs, steps
        Exactly one of: passes over the data (> 0, rounded up to whole steps), or steps (>= 1).
    learning_rate
        The optimizer's default when omitted.
    neighboring_relation
        ``"add-or-remove-one"`` or ``"replace-special"``.
    group_size
        How many records a person has at most, >= 1: the claim is about all records of a person.
    """
    neighboring_relation = _validate.relation(neighboring_relation)
    n = _validate.count(n=n)
    batch_size = _validate.count(batch_size=batch_size)
    if batch_size > n:
        raise ValueError(f"batch_size must be at most n={n}, got {batch_size}.")
    if (epochs is None) == (steps is None):
        raise ValueError(
            "Exactly one of epochs and steps must be given, "
            f"got epochs={epochs!r}, steps={steps!r}."
        )
    if steps is None:
        steps = math.ceil(_validate.positive(epochs=epochs) * n / batch_size)
    count = _validate.count(steps=steps)
    q = batch_size / n
    target = Target(epsilon, delta, neighboring_relation)
    sigma = target.noise(
        lambda value: events.SelfComposedDpEvent(
            rows_of_one_person(
                noise_multiplier=value, group_size=group_size, sampling_probability=q
            ),
            count,
        )
    )
    sampling = {"sampler": "poisson", "sampling_probability": q, "group_size": group_size}
    query = gradients(_validate.positive(max_norm=max_norm), sigma, count, **sampling)
    parameters: dict[str, int | float] = {"steps": count, "batch_size": batch_size}
    if learning_rate is not None:
        parameters["learning_rate"] = _validate.positive(learning_rate=learning_rate)
    return target.plan("dpsgd", n, (query,), parameters)
