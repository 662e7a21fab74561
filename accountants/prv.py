"""Epsilon by Microsoft's prv-accountant. A backend for Gaussians on Poisson samples.

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
from typing import Any

from dpcal.accountants import renyi
from dpcal.accountants.answers import Bounds
from dpcal.accountants.directions import Composition
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import BackendRefused, UnsupportedEvent

# Its random variables describe a sum to which a record adds its contribution or 0.
RELATIONS = ("add-or-remove-one", "replace-special")


def _prv(
    composition: Composition,
    question: str,
    at: float,
    *,
    eps_error: float = 0.01,
    delta_error: float,
) -> tuple[float, float, str]:
    """Return the ends of the package's answer, or raise its refusal as one sentence.

    Parameters
    ----------
    composition
        The losses and their counts.
    question, at
        A method of the package's accountant, and its first argument.
    eps_error, delta_error
        The package's error budget.

    Raises
    ------
    BackendRefused
        If prv-accountant gives no answer.
    """
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
    if any(loss.below is not None for loss, _ in parts):
        # A loss that is rounded up proves no lower end.
        lower = 0.0
    return float(lower), float(upper), f"PRV, eps_error {eps_error:g}"


def _variable(loss: PrivacyLoss, variables: Any) -> Any:
    """Return one loss as prv-accountant's privacy random variable."""
    if isinstance(loss, Gaussian):
        return variables.GaussianMechanism(loss.noise_multiplier)
    if isinstance(loss, SampledGaussian):
        q, sigma = loss.sampling_probability, loss.noise_multiplier
        return variables.PoissonSubsampledGaussianMechanism(q, sigma)
    raise UnsupportedEvent(f"The PRV backend does not price {loss!r}.")


def epsilon_bounds(composition: Composition, delta: float, **options: Any) -> Bounds:
    """Return bounds on epsilon at a delta in (0, 1); prv-accountant refuses small ones.

    The options are ``eps_error``, 0.01 unless given, and ``delta_error``, delta / 1000.
    """
    ends = _prv(composition, "compute_epsilon", delta, **{"delta_error": delta / 1000} | options)
    return Bounds(max(0.0, ends[0]), *ends[1:])


def log_delta_bounds(composition: Composition, epsilon: float, **options: Any) -> Bounds:
    """Return bounds on log delta; ``delta_error`` is 1/1000 of the Renyi bound unless given."""
    if "delta_error" not in options:
        found = [renyi.log_delta_bounds(item, epsilon) for item in composition.directions]
        options["delta_error"] = math.exp(Bounds.worst(found).upper) / 1000
    return Bounds.of_logarithms(*_prv(composition, "compute_delta", epsilon, **options))
