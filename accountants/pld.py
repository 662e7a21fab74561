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

from dpcal.accountants.bounds import Bounds
from dpcal.accountants.composition import Composition
from dpcal.accountants.loss import Gaussian, SampledGaussian
from dpcal.errors import UnsupportedEvent

__all__ = ["epsilon_bounds", "log_delta_bounds"]


def _composed(composition: Composition, interval: float) -> Any:
    from dp_accounting.pld import privacy_loss_distribution as builders

    total = builders.identity(value_discretization_interval=interval)
    # dp-accounting keeps both directions inside one distribution.
    for loss, times in composition.directions[0].parts:
        if isinstance(loss, Gaussian):
            q = 1.0
        elif isinstance(loss, SampledGaussian):
            q = loss.sampling_probability
        else:
            raise UnsupportedEvent(f"The PLD backend does not price {loss!r}.")
        single = builders.from_gaussian_mechanism(
            loss.noise_multiplier, value_discretization_interval=interval, sampling_prob=q
        )
        total = total.compose(single.self_compose(times) if times > 1 else single)
    return total


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
