"""What does dp-accounting's privacy loss distribution say? A backend and an independent check.

Each loss is handed to dp-accounting's ``privacy_loss_distribution`` builders and composed there as
often as the event says (not by its accountant, which drops the count of some events). Rounding is
pessimistic, so the answer is an upper bound.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.composition import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
>>> bounds = epsilon_bounds(decompose(event, "add-or-remove-one"), 1e-6, interval=1e-3)
>>> print(f"{bounds.upper:.3f}")
2.125
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dpcal.accountants.atoms import AtomicLoss
from dpcal.accountants.bounds import Bounds
from dpcal.accountants.composition import Composition
from dpcal.accountants.discrete_gaussian import DiscreteGaussian
from dpcal.accountants.loss import Defective, Gaussian, PrivacyLoss
from dpcal.accountants.sampled import SampledGaussian
from dpcal.accountants.segment import Laplace
from dpcal.errors import UnsupportedEvent

__all__ = ["epsilon_bounds", "log_delta_bounds"]


def _composed(composition: Composition, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as builders

    total = builders.identity(value_discretization_interval=interval)
    # dp-accounting keeps both directions inside one distribution.
    for loss, times in composition.directions[0].parts:
        single = _distribution(loss, interval)
        total = total.compose(single.self_compose(times) if times > 1 else single)
    return total


def _distribution(loss: PrivacyLoss, interval: float) -> Any:
    """One loss as dp-accounting's distribution."""
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as builders

    grid = {"value_discretization_interval": interval}
    if isinstance(loss, Gaussian):
        return builders.from_gaussian_mechanism(loss.noise_multiplier, **grid)
    if isinstance(loss, SampledGaussian):
        return builders.from_gaussian_mechanism(
            loss.noise_multiplier, sampling_prob=loss.sampling_probability, **grid
        )
    if isinstance(loss, Laplace):
        return builders.from_laplace_mechanism(loss.scale, **grid)
    if isinstance(loss, DiscreteGaussian):
        return builders.from_discrete_gaussian_mechanism(loss.sigma, loss.sensitivity, **grid)
    if isinstance(loss, AtomicLoss):
        reference = np.array(loss.log_reference)
        lower, upper = (
            dict(enumerate(logs.tolist())) for logs in (reference, reference + loss.values)
        )
        return builders.from_two_probability_mass_functions(lower, upper, **grid)
    if isinstance(loss, Defective) and loss.infinite < 1:
        parameters = common.DifferentialPrivacyParameters(loss.given.upper, loss.infinite)
        return builders.from_privacy_parameters(parameters, **grid)
    raise UnsupportedEvent(f"The PLD backend does not price {loss!r}.")


def epsilon_bounds(composition: Composition, delta: float, *, interval: float = 1e-4) -> Bounds:
    """Upper bound on epsilon at delta; the lower bound is 0.

    Parameters
    ----------
    composition
        What is composed.
    delta
        In (0, 1). dp-accounting answers infinity for delta of about 1e-15 and smaller.
    interval
        Width > 0 of the grid of privacy losses.
    """
    upper = float(_composed(composition, interval).get_epsilon_for_delta(delta))
    return Bounds(0.0, upper, f"PLD, interval {interval:g}")


def log_delta_bounds(composition: Composition, epsilon: float, *, interval: float = 1e-4) -> Bounds:
    """Upper bound on log delta at epsilon; parameters as for :func:`epsilon_bounds`."""
    upper = float(_composed(composition, interval).get_delta_for_epsilon(epsilon))
    log_upper = math.log(upper) if upper > 0 else -math.inf
    return Bounds(-math.inf, log_upper, f"PLD, interval {interval:g}")
