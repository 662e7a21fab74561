"""Epsilon by dp-accounting's privacy loss distribution. A backend and a check.

Each loss is passed to dp-accounting's ``privacy_loss_distribution`` builders and composed there by
the event's count (not by its accountant, which drops the count of some events). Losses are rounded
up, so the answer is an upper bound; rounding down, on request, gives a lower bound.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
>>> bounds = epsilon_bounds(decompose(event, "add-or-remove-one"), 1e-6, interval=1e-3)
>>> print(f"{bounds.upper:.3f}")
2.125
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from dp_accounting.pld import privacy_loss_distribution as builders

from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Composition
from dpcal.accountants.inversion.finite_laws import law_of
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.discrete import DiscreteLoss, LatticeLoss, ScatteredLoss
from dpcal.accountants.losses.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.laplace import Laplace
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import UnsupportedEvent

# Error of a lower bound on delta by dp-accounting's transforms and truncations.
_ROUNDING = 1e-12
Points = dict[str, Any]


def _composed(
    composition: Composition, interval: float, tail_mass: float, *, pessimistic: bool = True
) -> Any:
    points = {"value_discretization_interval": interval, "pessimistic_estimate": pessimistic}
    total = builders.identity(**points)
    for loss, times in composition.directions[0].parts:
        if loss.below is not None and not pessimistic:
            raise UnsupportedEvent(f"The PLD backend does not price {loss!r} from below.")
        single = _distribution(loss, points)
        if times > 1:
            single = single.self_compose(times, tail_mass_truncation=tail_mass)
        total = total.compose(single, tail_mass_truncation=tail_mass)
    return total


def _distribution(loss: PrivacyLoss, points: Points) -> Any:
    """Return one loss as dp-accounting's distribution."""
    dense = {**points, "use_connect_dots": points["pessimistic_estimate"]}
    if isinstance(loss, Gaussian | SampledGaussian):
        q = loss.sampling_probability if isinstance(loss, SampledGaussian) else 1.0
        return builders.from_gaussian_mechanism(loss.noise_multiplier, sampling_prob=q, **dense)
    if isinstance(loss, Laplace):
        return builders.from_laplace_mechanism(loss.scale, **dense)
    if isinstance(loss, DiscreteGaussian):
        return builders.from_discrete_gaussian_mechanism(loss.sigma, loss.sensitivity, **dense)
    lattice = isinstance(loss, LatticeLoss)
    finite = isinstance(loss, DiscreteLoss | LossWithFailure) and loss.when_finite.upper < math.inf
    drawn = isinstance(loss, ScatteredLoss) and loss.sampling_probability < 1
    known = lattice or (finite and points["pessimistic_estimate"] and not drawn)
    law = law_of(loss) if known else None
    if law is None or law.outside == 1:
        raise UnsupportedEvent(f"The PLD backend does not price {loss!r}.")
    lower, upper = (
        dict(enumerate(logs.tolist()))
        for logs in (law.log_reference, law.log_reference + law.values)
    )
    if law.outside:
        upper[-2] = math.log(law.outside)
    if law.lost:
        lower[-1] = math.log(law.lost)
    return builders.from_two_probability_mass_functions(lower, upper, **points, symmetric=lattice)


def epsilon_bounds(composition: Composition, delta: float, **options: Any) -> Bounds:
    """Return bounds on epsilon at a delta in (0, 1); the lower one is 0 unless ``two_sided``.

    dp-accounting answers infinity for delta of about 1e-15 and smaller. The options are those of
    :func:`_pld`.
    """

    def epsilon(law: Any, margin: float) -> float:
        return float(law.get_epsilon_for_delta(min(delta + margin, 1.0)))

    return Bounds(*_pld(composition, epsilon, **options))


def log_delta_bounds(composition: Composition, epsilon: float, **options: Any) -> Bounds:
    """Return bounds on log delta at an epsilon >= 0, with the options of :func:`_pld`."""

    def delta(law: Any, margin: float) -> float:
        return float(law.get_delta_for_epsilon(epsilon)) - margin

    return Bounds.of_logarithms(*_pld(composition, delta, **options))


def _pld(
    composition: Composition,
    ask: Callable[[Any, float], float],
    *,
    interval: float = 1e-4,
    tail_mass: float = 1e-15,
    two_sided: bool = False,
) -> tuple[float, float, str]:
    """Return a lower and an upper end >= 0, and their method.

    Parameters
    ----------
    composition
        The composition.
    ask
        Returns a number of dp-accounting's distribution, with a margin on delta.
    interval
        Width > 0 of the grid of privacy losses (dp-accounting's value_discretization_interval).
    tail_mass
        Probability > 0 of the losses left out at each composition (its tail_mass_truncation).
    two_sided
        Whether to add a lower end above 0, from losses that are rounded down: on average by half an
        interval a step. This takes as long again; a margin of 1e-12 on delta covers rounding and
        truncation.
    """
    lower, upper = 0.0, ask(_composed(composition, interval, tail_mass), 0.0)
    if two_sided:
        optimistic = _composed(composition, interval, tail_mass, pessimistic=False)
        lower = max(0.0, min(ask(optimistic, _ROUNDING), upper))
    return lower, upper, f"PLD, interval {interval:g}"
