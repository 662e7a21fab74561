"""From a target to DP-SGD with correlated noise: the plan of one run of a matrix mechanism.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> plan = correlated_dpsgd(LambdaCGD(200, 0.0), n=2_000, batch_size=100, epsilon=2.0, delta=1e-5)
>>> from dpcal.calibrate import dpsgd
>>> plan.event == dpsgd(n=2_000, batch_size=100, steps=200, epsilon=2.0, delta=1e-5).event
True
>>> plan = correlated_dpsgd(LambdaCGD(200, 0.5), n=2_000, batch_size=20, epsilon=2.0, delta=1e-5,
...                         statistics=False)
>>> plan.parameters["label"], 1.9 < plan.price() <= 2.0
('certified', True)
"""

from __future__ import annotations

import dataclasses
import secrets
from concurrent.futures import Executor
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.accountants.correlated.answers import CERTIFIED
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.price import Options
from dpcal.accountants.matrix import LeastSeparation, Strategy
from dpcal.calibrate.correlated.calibration import CONFIRMATIONS, Calibration
from dpcal.calibrate.correlated.correlation import Correlation
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.plans.common import Target, at_most, gradients, rate_of
from dpcal.calibrate.plans.dpsgd import sampling
from dpcal.calibrate.samplers import SAMPLERS, fields_of


def correlated_dpsgd(
    strategy: Strategy,
    *,
    n: int,
    batch_size: int,
    delta: float,
    epsilon: float | None = None,
    noise_multiplier: float | None = None,
    sampler: str = "poisson",
    separation: int | None = None,
    max_norm: float = 1.0,
    learning_rate: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    group_size: int = 1,
    clipped: str = "row",
    statistics: bool = True,
    draws: int = 100_000,
    failure_probability: float | None = None,
    seed: int | None = None,
    executor: Executor | Any | None = None,
    accountant: str = "auto",
) -> Plan:
    """Return the plan of DP-SGD with correlated noise that meets (epsilon, delta).

    Parameters
    ----------
    strategy
        The matrix C, a :class:`dpcal.accountants.matrix.Strategy`, with one row a step.
    n
        Number of records, >= 1, public.
    batch_size
        Expected batch size, in [1, n]; n for ``"full"``.
    delta
        Target, in (0, 1).
    epsilon, noise_multiplier
        Exactly one of: target, > 0, or the standard deviation > 0 of z, in units of the clipping
        norm, from which the plan's epsilon follows.
    sampler
        ``"poisson"``, ``"cyclic-poisson"``, ``"min-separation"``, ``"balls-in-bins"``,
        ``"random-allocation"`` or ``"full"``; see :class:`dpcal.calibrate.Query`.
    separation
        For the three after the first: how far apart a record's steps are at least. By default as
        many as a banded strategy has bands, and for ``"balls-in-bins"`` n / batch_size.
    max_norm
        Bound > 0 to which each record's gradient is clipped.
    learning_rate
        Step size > 0; the optimizer's default when omitted.
    neighboring_relation
        ``"add-or-remove-one"`` or ``"replace-special"``; also ``"replace-one"`` for ``"full"`` and
        for independent noise.
    group_size, clipped
        See :mod:`dpcal.calibrate.plans`. More than one record of a person needs ``"user"``: where
        each is clipped and drawn by itself, no joint bound is known.
    statistics
        Where no exact epsilon is known: True for draws with a confidence bound (its failure
        probability is part of delta), False for proved bounds only, which need more noise.
    draws
        Monte Carlo draws >= 1 for each direction; up to three times as many where they save noise.
    failure_probability
        In (0, 1): that the draws mislead, over all confirmations; delta / 100 when omitted.
    seed
        Fixes the draws; fresh and secret when omitted.
    executor
        Who draws: a ``concurrent.futures`` executor or a Dask client; this process when omitted.
    accountant
        ``"auto"``, or another one of :func:`dpcal.accountants.epsilon`, without draws: by the bound
        for published participations, or by moments where it is ``"renyi"``.

    Returns
    -------
    Plan
        With one query, of all the strategy's steps. ``parameters`` holds ``"steps"``,
        ``"batch_size"`` and the kind of proof, as ``"label"``. ``plan.price()`` computes it again,
        from the draws that confirmed it; ``plan.price(seed=...)`` from others.

    Raises
    ------
    UnsupportedEvent
        Where no theorem covers the strategy, the sampler or the relation; among them are batches of
        a fixed size.
    TargetUnreachable
        If no noise meets the target, or there are too few draws to decide.
    ValueError, TypeError
        For an argument out of range.

    Warns
    -----
    RuntimeWarning
        If you chose draws and a proved bound, which needs more noise, answers.

    References
    ----------
    Denisov et al. 2022 (matrix mechanisms on adaptive gradients); Choquette-Choo et al. 2024 and
    Dong and Ganesh 2026 (the dominating pair under random participation); Kalinin et al. 2026
    (lambda-CGD). The fixed-size pair of Wang et al. 2026, Theorem F.8, does not dominate.
    """
    relation = validate.relation(neighboring_relation)
    validate.only_one(epsilon=epsilon, noise_multiplier=noise_multiplier)
    limit = validate.probability(delta=delta)
    correlation = Correlation(
        strategy=validate.instance(Strategy, strategy=strategy),
        statistics="certified" if validate.flag(statistics=statistics) else "none",
        seed=secrets.randbits(63) if seed is None else seed,
        draws=draws,
        failure_probability=failure_probability,
    )
    query = gradients(
        max_norm,
        1.0 if noise_multiplier is None else noise_multiplier,
        strategy.steps,
        correlation=correlation,
        group_size=group_size,
        clipped=clipped,
        **_sampling(strategy, sampler, n, batch_size, separation),
    )
    if epsilon is None:
        how = {"neighboring_relation": relation, "accountant": accountant}
        found = epsilon_of(query.whole_run(relation), delta=limit, **how)
        epsilon, label = float(found), getattr(found, "label", None) or _known(query)
    else:
        epsilon = validate.positive(epsilon=epsilon)
        query, label = _calibrated(query, epsilon, limit, relation, accountant, executor)
    parameters = {"steps": strategy.steps, "batch_size": batch_size, **rate_of(learning_rate)}
    target = Target(epsilon, limit, relation, group_size, clipped, accountant)
    return target.plan("correlated_dpsgd", n, (query,), {**parameters, "label": label})


def _sampling(
    strategy: Strategy, sampler: str, n: int, batch_size: int, separation: int | None
) -> dict[str, Any]:
    """The query's fields that give batches of the wanted size on average."""
    n, size, steps = validate.count(n=n), validate.count(batch_size=batch_size), strategy.steps
    validate.choice(tuple(SAMPLERS), sampler=sampler)
    at_most(n, batch_size=size)
    if sampler == "full" and size != n:
        raise ValueError(f"batch_size must be n={n} for sampler='full', got {batch_size}.")
    if "separation" not in fields_of(sampler):
        if sampler != "random-allocation":
            return {**sampling(sampler, n, size), "separation": separation}
        if size * steps % n:
            raise ValueError(
                "batch_size times the number of steps must be a multiple of n for "
                f"sampler='random-allocation', got {size} times {steps} for n={n}."
            )
        parts = size * steps // n
        return {"sampler": sampler, "participations": parts, "separation": separation}
    if separation is None:
        separation = max(1, round(n / size)) if sampler == "balls-in-bins" else strategy.bands
    if separation is None:
        raise ValueError(f"separation must be given for sampler={sampler!r} with {strategy!r}.")
    b = validate.count(separation=separation)
    fields: dict[str, Any] = {"sampler": sampler, "separation": b}
    if sampler == "balls-in-bins":
        if steps % b:
            raise ValueError(
                f"the number of steps must be a multiple of separation={b} for {sampler=}, got "
                f"{steps}."
            )
        return fields
    q = size * b / n if sampler == "cyclic-poisson" else size / max(n - (b - 1) * size, 1e-300)
    if q > 1:
        raise ValueError(
            f"batch_size must be at most {n // b} for n={n} and separation={b}, got {batch_size}."
        )
    return {**fields, "sampling_probability": q}


def _calibrated(
    query: Query, epsilon: float, delta: float, relation: str, accountant: str, executor: Any
) -> tuple[Query, str]:
    """Return the query with its noise, and the kind of proof."""

    def event(sigma: float) -> events.DpEvent:
        return dataclasses.replace(query, noise_multiplier=sigma).whole_run(relation)

    correlation = query.correlation
    bound = isinstance(event(1.0), events.CorrelatedGaussianDpEvent)
    if correlation is None or not bound or accountant != "auto":
        sigma = Target(epsilon, delta, relation, accountant=accountant).noise(event)
        known = CERTIFIED if bound else _known(query)
        return dataclasses.replace(query, noise_multiplier=sigma), known
    options = dataclasses.replace(Options.of(correlation), executor=executor)
    mechanism = Mechanism.of(correlation.strategy)
    calibration = Calibration(mechanism, query.sampling.law, epsilon, delta, options)
    found = calibration.least()
    found.warn()
    drawn: dict[str, Any] = {"statistics": "none", "failure_probability": None, "confirmations": 1}
    if found.confirmation is not None:
        drawn = {"draws": calibration.options.draws, "seed": found.confirmation.seed}
        drawn |= {"failure_probability": calibration.failure, "confirmations": CONFIRMATIONS}
    how = dataclasses.replace(correlation, **drawn)
    sigma = found.noise_multiplier
    return dataclasses.replace(query, noise_multiplier=sigma, correlation=how), found.label


def _known(query: Query) -> str:
    """The kind of proof of an epsilon that needs no draws: a sensitivity may be a bound."""
    if query.sampler != "full" or query.correlation is None:
        return "exact"
    sensitivity = query.correlation.strategy.sensitivity(LeastSeparation(1, independent=True))
    return "exact" if sensitivity.label == "exact" else "certified"
