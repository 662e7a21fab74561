"""From a target to a DP-SGD run: the plan of SGD on random batches, clipped record by record.

>>> plan = dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.parameters['steps']} steps, sigma {plan.query('gradient').noise_multiplier:.4f}")
1000 steps, sigma 1.0290
>>> 2.0 - 1e-4 < plan.price() <= 2.0
True

Where each record draws one of an epoch's batches, the same target takes less noise:

>>> plan = dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6,
...              sampler="random-allocation")
>>> print(f"{plan.parameters['steps']} steps, sigma {plan.query('gradient').noise_multiplier:.4f}")
1000 steps, sigma 0.9916
"""

from __future__ import annotations

import math
from typing import Any

from dpcal._internal import validate
from dpcal.calibrate.batching import PLANNED
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import Target, at_most, gradients, rate_of
from dpcal.calibrate.samplers import SAMPLERS as OWN, fields_of, known_samplers


def dpsgd(
    *,
    n: int,
    batch_size: int,
    delta: float,
    epsilon: float | None = None,
    noise_multiplier: float | None = None,
    epochs: float | None = None,
    steps: int | None = None,
    max_norm: float = 1.0,
    learning_rate: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    group_size: int = 1,
    clipped: str = "row",
    sampler: str = "poisson",
    accountant: str = "auto",
) -> Plan:
    """Return the plan of DP-SGD (Abadi et al. 2016, Algorithm 1) that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    batch_size
        Expected batch size. Each record joins a batch with probability batch_size / n, or an epoch
        has n / batch_size batches, rounded up.
    epochs, steps
        Exactly one of: passes over the data (> 0, rounded up to whole steps, or to whole epochs),
        or steps (>= 1, in whole epochs).
    learning_rate
        The optimizer's default when omitted.
    neighboring_relation
        ``"add-or-remove-one"`` or ``"replace-special"``; for shuffles ``"replace-special"`` or
        ``"replace-one"``.
    sampler
        ``"poisson"``; ``"random-allocation"``, where each record draws one batch of an epoch by
        itself, afresh for every epoch; or ``"shuffled-epochs"``, where a fresh permutation of the
        records is cut into the batches of an epoch, which needs several times the noise: no exact
        epsilon is known, and the upper end of a bracket is charged; ``"truncated-poisson"``, where
        at most batch_size + 6 sqrt(batch_size) random records of a Poisson sample are kept, which
        bounds memory at hardly any cost. Or the name of a registered sampler.
    """
    relation, n = validate.relation(neighboring_relation), validate.count(n=n)
    batch_size = at_most(n, batch_size=batch_size)
    validate.only_one(epochs=epochs, steps=steps)
    validate.only_one(epsilon=epsilon, noise_multiplier=noise_multiplier)
    others = tuple(name for name in known_samplers() if name not in OWN)
    validate.choice((*PLANNED, "truncated-poisson", *others), sampler=sampler)
    fields = sampling(sampler, n, batch_size)
    epoch = fields.get("epoch", 1)
    if steps is None:
        passes = validate.positive(epochs=epochs)
        steps = epoch * math.ceil(passes) if epoch > 1 else math.ceil(passes * n / batch_size)
    count, clip = validate.count(steps=steps), validate.positive(max_norm=max_norm)
    if count % epoch:
        raise ValueError(
            f"steps must be a multiple of {epoch}, the batches of an epoch, with {sampler=}, "
            f"got {count}."
        )
    unit = (group_size, clipped, accountant, noise_multiplier)
    target = Target(epsilon or 0.0, delta, relation, *unit)
    queries = target.met_by(lambda sigma: (gradients(clip, sigma, count, **fields),), n)
    parameters = {"steps": count, "batch_size": batch_size, **rate_of(learning_rate)}
    return target.plan("dpsgd", n, queries, parameters)


def sampling(sampler: str, n: int, batch_size: int) -> dict[str, Any]:
    """Return the fields of a query about batches of a mean size."""
    values = {
        "sampling_probability": batch_size / n,
        "batch_size": batch_size,
        "participations": 1,
        "epoch": -(-n // batch_size),
    }
    if sampler == "truncated-poisson":
        values["batch_size"] = min(n, math.ceil(batch_size + 6 * math.sqrt(batch_size)))
    own = fields_of(sampler)
    return {"sampler": sampler, **{name: value for name, value in values.items() if name in own}}
