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
import math
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from dpcal import _validate
from dpcal.accountants import events
from dpcal.calibrate.correlation import Correlation
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.plan import Parameter, Plan, Query
from dpcal.calibrate.samplers import SAMPLERS
from dpcal.errors import TargetUnreachable

if TYPE_CHECKING:
    from dpcal.accountants.matrix import Strategy

__all__ = ["correlated_dpsgd"]

# How often a multiplier may be put to the test with fresh draws, and with how much more noise
# than the answer before asks for.
_CONFIRMATIONS = 8
_MARGIN = 1.003
# The search wants digits, not proofs.
_SEARCH = 8
_SEARCH_STEPS = 12
_WIDTH = 3e-3
_LARGEST = 1e6


def correlated_dpsgd(
    strategy: Strategy,
    *,
    n: int,
    batch_size: int,
    epsilon: float,
    delta: float,
    sampler: str = "poisson",
    separation: int | None = None,
    max_norm: float = 1.0,
    learning_rate: float | None = None,
    neighboring_relation: str = "add-or-remove-one",
    statistics: bool | str = True,
    draws: int = 100_000,
    failure_probability: float | None = None,
    seed: int | None = None,
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
    epsilon
        Target, > 0.
    delta
        Target, in (0, 1).
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
    statistics
        Where no exact price is known: True for draws with a confidence bound whose failure
        probability is part of delta, False for proved bounds only, which ask for more noise, or
        ``"asymptotic"`` for draws with a normal interval, which suits a small delta.
    draws
        Monte Carlo draws >= 1 for each direction.
    failure_probability
        In (0, 1): that the draws mislead, over all confirmations; delta / 100 when omitted, or 0.05
        for normal intervals.
    seed
        Fixes the draws; fresh and secret when omitted.

    Returns
    -------
    Plan
        With one query, of all the strategy's steps. ``parameters`` holds ``"steps"``,
        ``"batch_size"`` and how the price is known, as ``"label"``. ``plan.price()`` computes it
        again, from the draws that confirmed it; ``plan.price(seed=...)`` from others.

    Raises
    ------
    UnsupportedEvent
        Where no theorem covers the strategy, the sampler or the relation; among them are batches of
        a fixed size.
    TargetUnreachable
        If no noise meets the target, or the draws are too few to tell.
    ValueError, TypeError
        For an argument out of range.

    References
    ----------
    Denisov et al. 2022 (matrix mechanisms on adaptive gradients); Choquette-Choo et al. 2024 and
    Dong and Ganesh 2026 (the dominating pair under random participation); Kalinin et al. 2026
    (lambda-CGD). The fixed-size pair of Wang et al. 2026, Theorem F.8, does not dominate.
    """
    target = _validate.positive(epsilon=epsilon)
    limit = _validate.probability(delta=delta)
    method = statistics if isinstance(statistics, str) else ("certified" if statistics else "none")
    failure = failure_probability
    if failure is None and method != "none":
        failure = 0.01 * limit if method == "certified" else 0.05
    if failure is not None:
        failure = _validate.probability(failure_probability=failure) / _CONFIRMATIONS
    # Different questions get different draws: child 0 for the search, one for each confirmation.
    seeds = np.random.SeedSequence(seed if seed is not None else secrets.randbits(96))
    coins = [int(word) >> 1 for word in seeds.generate_state(_CONFIRMATIONS + 1, np.uint64)]
    query = Query(
        name="gradient",
        kind="gradient",
        max_norm=max_norm,
        noise_multiplier=1.0,
        count=strategy.steps,
        correlation=Correlation(
            strategy=strategy,
            statistics=method,
            draws=draws,
            seed=coins[0],
            failure_probability=failure,
            confirmations=1 if method == "none" else _CONFIRMATIONS,
        ),
        **_sampling(strategy, sampler, n, batch_size, separation),
    )
    parameters: dict[str, Parameter] = {"steps": strategy.steps, "batch_size": batch_size}
    if learning_rate is not None:
        parameters["learning_rate"] = _validate.positive(learning_rate=learning_rate)
    relation = neighboring_relation
    priced, label = _calibrated(query, target, limit, relation, coins)
    return Plan(
        optimizer="correlated_dpsgd",
        n=n,
        queries=(priced,),
        epsilon=target,
        delta=limit,
        neighboring_relation=relation,
        parameters={**parameters, "label": label},
    )


def _sampling(
    strategy: Strategy, sampler: str, n: int, batch_size: int, separation: int | None
) -> dict[str, Any]:
    """The query's fields that give batches of the wanted size on average."""
    n, size = _validate.count(n=n), _validate.count(batch_size=batch_size)
    _validate.choice(tuple(SAMPLERS), sampler=sampler)
    if size > n:
        raise ValueError(f"batch_size must be at most n={n}, got {batch_size}.")
    if sampler == "full" and size != n:
        raise ValueError(f"batch_size must be n={n} for sampler='full', got {batch_size}.")
    if sampler in ("full", "poisson", "fixed-size"):
        if separation is not None:
            raise ValueError(f"separation is not for sampler={sampler!r}, got {separation!r}.")
        rate: dict[str, dict[str, Any]] = {
            "poisson": {"sampling_probability": size / n},
            "fixed-size": {"batch_size": size},
        }
        return {"sampler": sampler, **rate.get(sampler, {})}
    if sampler == "random-allocation":
        if separation is not None:
            raise ValueError(f"separation is not for sampler={sampler!r}, got {separation!r}.")
        if size * strategy.steps % n:
            raise ValueError(
                "batch_size times the number of steps must be a multiple of n for "
                f"sampler='random-allocation', got {size} times {strategy.steps} for n={n}."
            )
        return {"sampler": sampler, "participations": size * strategy.steps // n}
    if separation is None:
        separation = max(1, round(n / size)) if sampler == "balls-in-bins" else strategy.bands
    if separation is None:
        raise ValueError(f"separation must be given for sampler={sampler!r} with {strategy!r}.")
    b = _validate.count(separation=separation)
    fields: dict[str, Any] = {"sampler": sampler, "separation": b}
    if sampler == "balls-in-bins":
        return fields
    q = size * b / n if sampler == "cyclic-poisson" else size / max(n - (b - 1) * size, 1e-300)
    if q > 1:
        raise ValueError(
            f"batch_size must be at most {n // b} for n={n} and separation={b}, got {batch_size}."
        )
    return {**fields, "sampling_probability": q}


# -- calibration


def _calibrated(
    query: Query, epsilon: float, delta: float, relation: str, seeds: list[int]
) -> tuple[Query, str]:
    """Return the query with its noise, and how the price is known."""

    def event(sigma: float) -> events.DpEvent:
        return dataclasses.replace(query, noise_multiplier=sigma).whole_run(relation)

    if not isinstance(event(1.0), events.CorrelatedGaussianDpEvent):
        sigma = noise_multiplier(event, epsilon=epsilon, delta=delta, neighboring_relation=relation)
        return _confirmed(query, sigma), _known(query)

    def price(sigma: float, **options: Any) -> Any:
        from dpcal.accountants import epsilon as asked

        return asked(event(sigma), delta=delta, neighboring_relation=relation, **options)

    exact = price(1.0, statistics="none", seed=None).label == "exact"
    if exact or (query.correlation is not None and query.correlation.statistics == "none"):
        width = 1e-8 if exact else 1e-4
        start = _start(query, epsilon, delta)
        sigma = _least(lambda value: bool(price(value) <= epsilon), start, width)
        return _confirmed(query, sigma), price(sigma).label
    return _drawn(query, price, epsilon, delta, seeds)


def _known(query: Query) -> str:
    """How a price is known that needs no draws: a sensitivity may be a bound."""
    if query.sampler != "full" or query.correlation is None:
        return "exact"
    from dpcal.accountants.matrix import MinSeparation

    sensitivity = query.correlation.strategy.sensitivity(MinSeparation(1, independent=True))
    return "exact" if sensitivity.label == "exact" else "certified"


def _confirmed(query: Query, sigma: float, **changes: Any) -> Query:
    correlation = query.correlation
    if correlation is not None and changes:
        correlation = dataclasses.replace(correlation, **changes)
    return dataclasses.replace(query, noise_multiplier=sigma, correlation=correlation)


def _start(query: Query, epsilon: float, delta: float) -> float:
    """A first guess: what independent noise needs at the same rate, times the largest column."""
    from dpcal.accountants.correlated.pricing import largest_column

    q = (query.sampling_probability or 1.0) / (query.separation or 1)
    steps = query.count
    found = noise_multiplier(
        lambda sigma: events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps),
        epsilon=epsilon,
        delta=delta,
    )
    return found * largest_column(query.correlation.strategy if query.correlation else None)


def _least(meets: Callable[[float], bool], start: float, width: float) -> float:
    """The least multiplier that meets a target, to a relative width."""
    low, high = 0.0, start
    while not meets(high):
        low, high = high, 2 * high
        if high > _LARGEST * start:
            raise TargetUnreachable("No noise multiplier meets the target.")
    while low == 0.0:
        low, high = (0.0, high / 2) if meets(high / 2) else (high / 2, high)
        if high < start / _LARGEST:
            return high
    while high / low > 1 + width:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _drawn(
    query: Query, price: Callable[..., Any], epsilon: float, delta: float, seeds: list[int]
) -> tuple[Query, str]:
    """Search by common random numbers, then put what was found to the test by others.

    A confirmation that fails says by how much: its multiplier is raised accordingly.
    """
    sigma, slope = _searched(price, epsilon, _start(query, epsilon, delta), seeds[0], query)
    found = []
    for coin in seeds[1:]:
        answer = price(sigma, seed=coin)
        if answer <= epsilon:
            return _confirmed(query, sigma, seed=coin), answer.label
        found.append(answer.upper)
        if len(found) > 2 and found[-1] > 0.97 * found[-2] > 1.05 * epsilon:
            break  # more noise does not help: what is left is the error of the draws
        sigma *= _MARGIN * (min(answer.upper / epsilon, 4.0)) ** (1 / slope)
    raise TargetUnreachable(
        f"No noise multiplier near {sigma:.4g} was confirmed for epsilon={epsilon!r} at "
        f"delta={delta!r}: the draws are too few to tell. Choose more draws."
    )


def _searched(
    price: Callable[..., Any], epsilon: float, sigma: float, seed: int, query: Query
) -> tuple[float, float]:
    """The multiplier at which the estimate is the target, and by what power epsilon falls."""
    draws = query.correlation.draws if query.correlation is not None else 1
    few = max(1, draws // _SEARCH)

    def estimate(value: float) -> float:
        nonlocal few
        for attempt in (few, draws):
            few = attempt
            try:
                return float(price(value, seed=seed, draws=few).estimate)
            except (ValueError, TargetUnreachable):
                continue
        # So little noise that these draws cannot tell: look where there is more of it.
        return 2 * epsilon

    slope = 1.3
    at = max(estimate(sigma), 1e-9)
    for _ in range(_SEARCH_STEPS):
        if abs(at / epsilon - 1) < _WIDTH:
            break
        change = min(max((at / epsilon) ** (1 / slope), 0.25), 4.0)
        value = max(estimate(sigma * change), 1e-9)
        measured = math.log(at / value) / math.log(change)
        slope = min(max(measured, 0.5), 8.0) if math.isfinite(measured) else slope
        sigma, at = sigma * change, value
    return sigma, slope
