"""What is epsilon by Microsoft's prv-accountant? A backend for Gaussians on Poisson samples.

It supports add-or-remove-one, and replace-special: if each record joins a batch independently, a
blanked record is equivalent to an absent one, and the dominating pairs are equal.

>>> from dpcal.accountants import events
>>> from dpcal.accountants.mechanisms.decompose import decompose
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000)
>>> bounds = epsilon_bounds(decompose(event, "add-or-remove-one"), 1e-6, eps_error=0.1)
>>> bounds.lower < 2.1095 < bounds.upper
True
"""

from __future__ import annotations

import math
import warnings
from functools import singledispatch
from typing import Any

from dpcal.accountants import renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Composition
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import BackendRefused, UnsupportedEvent

__all__ = ["epsilon_bounds", "log_delta_bounds"]

# Its random variables describe a sum to which a record adds a contribution or nothing.
RELATIONS = ("add-or-remove-one", "replace-special")


def _asked(
    composition: Composition, question: str, at: float, eps_error: float, delta_error: float
) -> tuple[float, float]:
    """Return the ends of the package's answer, or raise its refusal as one sentence."""
    import prv_accountant
    from prv_accountant import privacy_random_variables as variables

    if composition.neighboring_relation not in RELATIONS:
        raise UnsupportedEvent(
            f"The PRV backend answers for neighboring relation {' or '.join(map(repr, RELATIONS))} "
            f"only, got {composition.neighboring_relation!r}."
        )
    parts = composition.directions[0].parts
    counts = [times for _, times in parts]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            accountant = prv_accountant.PRVAccountant(
                prvs=[_variable(loss, variables) for loss, _ in parts],
                max_self_compositions=counts,
                eps_error=eps_error,
                delta_error=delta_error,
            )
            lower, _, upper = getattr(accountant, question)(at, counts)
        except (ArithmeticError, MemoryError, RuntimeError, ValueError) as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            raise BackendRefused(f"prv-accountant refused: {reason}") from error
    return float(lower), float(upper)


@singledispatch
def _variable(loss: PrivacyLoss, variables: Any) -> Any:
    """Return one loss as prv-accountant's privacy random variable."""
    raise UnsupportedEvent(f"The PRV backend does not price {loss!r}.")


@_variable.register
def _(loss: Gaussian, variables: Any) -> Any:
    return variables.GaussianMechanism(loss.noise_multiplier)


@_variable.register
def _(loss: SampledGaussian, variables: Any) -> Any:
    return variables.PoissonSubsampledGaussianMechanism(
        loss.sampling_probability, loss.noise_multiplier
    )


def epsilon_bounds(
    composition: Composition,
    delta: float,
    *,
    eps_error: float = 0.01,
    delta_error: float | None = None,
) -> Bounds:
    """Return bounds on epsilon at a delta.

    Parameters
    ----------
    composition
        What is composed.
    delta
        In (0, 1); prv-accountant refuses small ones.
    eps_error, delta_error
        Its error budget; ``delta_error`` is delta / 1000 when omitted.

    Raises
    ------
    BackendRefused
        If prv-accountant gives no answer.
    """
    lost = delta_error or delta / 1000
    lower, upper = _asked(composition, "compute_epsilon", delta, eps_error, lost)
    return Bounds(max(0.0, lower), upper, f"PRV, eps_error {eps_error:g}")


def log_delta_bounds(
    composition: Composition,
    epsilon: float,
    *,
    eps_error: float = 0.01,
    delta_error: float | None = None,
) -> Bounds:
    """Return bounds on log delta; ``delta_error`` is 1/1000 of the Renyi bound when omitted."""
    if delta_error is None:
        bound = max(renyi.log_delta_bounds(item, epsilon).upper for item in composition.directions)
        delta_error = math.exp(bound) / 1000
    lower, upper = _asked(composition, "compute_delta", epsilon, eps_error, delta_error)
    return Bounds.of_logarithms(lower, upper, f"PRV, eps_error {eps_error:g}")
