"""Gaussian noise on a sum, a tree of such sums, and mixtures of Gaussians.

>>> from dpcal.accountants.mechanisms.row import dominating_pairs
>>> dominating_pairs(events.SingleEpochTreeAggregationDpEvent(2.0, [3, 4]), "replace-special")[0]
Gaussian(noise_multiplier=1.1547005383792517)
"""

from __future__ import annotations

import math

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.limits import hold
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.gaussian_mixtures import mixture_of_gaussians
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.accountants.mechanisms.row import Pairs, Row, distance, over, refuse

_BYTES_OF_COMPONENT = 14_000


@Row(
    events.GaussianDpEvent(1.0), "Balle and Wang 2018", record="sum", group=over("noise_multiplier")
)
def _gaussian(event: events.GaussianDpEvent, relation: str) -> Gaussian:
    sigma = validate.noise(noise_multiplier=event.noise_multiplier)
    return Gaussian(sigma / distance(relation))


def noise_of(event: events.DpEvent) -> float | None:
    """Return the noise multiplier of one Gaussian that equals several on the same records.

    Their losses add up to the loss of one Gaussian (Dong, Roth and Su 2022, composition of GDP).

    Returns
    -------
    float or None
        None if the event composes anything but Gaussian mechanisms.
    """
    if isinstance(event, events.GaussianDpEvent):
        return validate.noise(noise_multiplier=event.noise_multiplier)
    precisions = []
    for item, times in leaves(event).items():
        if not isinstance(item, events.GaussianDpEvent):
            return None
        precisions.append(times / validate.noise(noise_multiplier=item.noise_multiplier) ** 2)
    total = math.fsum(precisions)
    return 1 / math.sqrt(total) * (1 - 1e-15) if total > 0 else None


@Row(events.SingleEpochTreeAggregationDpEvent(1.0, [3, 4]), "Kairouz et al. 2021")
def _tree(event: events.SingleEpochTreeAggregationDpEvent, relation: str) -> Gaussian:
    """Return the loss of a record in one leaf and its ancestors (Kairouz et al. 2021, appendix D).

    In s steps, complete nodes cover a record at most ceil(log2(s + 1)) times; the deepest tree
    counts.
    """
    if relation != "replace-special":
        reason = "Only a blanked record leaves all others in their leaves of the tree."
        raise refuse(event, relation, reason)
    several = isinstance(event.step_counts, list | tuple)
    counts = event.step_counts if several else (event.step_counts,)
    sizes = [validate.count(step_counts=count) for count in counts]
    if not sizes:
        raise ValueError(f"step_counts must be one or more whole numbers, got {counts!r}.")
    nodes = max(size.bit_length() for size in sizes)
    sigma = validate.noise(noise_multiplier=event.noise_multiplier)
    return Gaussian(sigma / math.sqrt(nodes))


@Row(events.MixtureOfGaussiansDpEvent(1.0, [0.0, 1.0], [0.5, 0.5]), "Choquette-Choo et al. 2024")
def _mixture(event: events.MixtureOfGaussiansDpEvent, relation: str) -> Pairs:
    if relation == "replace-one":
        reason = "It says what a record adds to the output, not what exchanging two of them does."
        raise refuse(event, relation, reason)
    for name in ("sensitivities", "sampling_probs"):
        if not hasattr(value := getattr(event, name), "__len__"):
            raise TypeError(f"{name} must be a sequence of numbers, got {value!r}.")
    components = len(event.sensitivities)
    hold(components, f"a mixture of {components} Gaussians", _BYTES_OF_COMPONENT)
    return mixture_of_gaussians(
        event.sensitivities, event.sampling_probs, standard_deviation=event.standard_deviation
    )


@Row(
    events.ExchangedRowsDpEvent(1.0, (0.0, 2.0), (0.9, 0.1)),  # type: ignore[call-arg]
    "a user's rows in batches of a fixed size: the same mixture, by the "
    "[exchange of rows](../explanation/batches.md#samplers-and-relations)",
)
def _exchanged_rows(event: events.ExchangedRowsDpEvent, relation: str) -> Pairs:
    if relation != "add-or-remove-one":
        reason = "Batches of a fixed size then have the rows in both worlds: the mixture is beaten."
        raise refuse(event, relation, reason)
    return _mixture(event, relation)
