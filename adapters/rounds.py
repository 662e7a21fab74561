"""Events of noisy rounds of federated learning, one for each way to draw the clients.

Updates are clipped to a norm C, summed, and get Gaussian noise of ``noise_multiplier`` C. Where
every round has exactly k clients, another client takes the place of a removed one, so that the sum
moves by up to 2 C. Twice the distance is half the noise multiplier:

>>> from dpcal.accountants import epsilon, events
>>> paid = round_event(noise_multiplier=3.0, sample_size=20, population_size=500,
...                    sampling_method="no-amplification")
>>> paid == events.GaussianDpEvent(1.5)
True

**Secret draws.** Let k of N clients be drawn uniformly, and let D' be D without one client x. With
probability 1 - k/N the draw from D leaves x out, and is then a uniform draw S of k clients from D'.
Otherwise it is x with k - 1 clients of D', which is such an S with one of its clients, a uniform
one, replaced by x. So the answers about D are a mixture over S of (1 - k/N) N(s, noise) + k/N
N(s + t, noise), and the answers about D' are a mixture of N(s, noise). Here s is the sum of S and
||t|| <= 2 C. Hockey-stick divergences are jointly convex, so no pair of D and D' differs more than
N(0, noise) and its mixture with N(2 C, noise). The accountants cover this as a batch without
replacement:

>>> round_event(noise_multiplier=3.0, sample_size=20, population_size=500,
...             sampling_method="no-amplification", secret_draws=True).sample_size
20
"""

from __future__ import annotations

from fractions import Fraction

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.rounding import rounded_up

__all__ = ["RELATIONS", "round_event"]

RELATIONS = {
    "poisson": "add-or-remove-one",
    "without-replacement": "replace-one",
    "no-amplification": "add-or-remove-one",
}


def round_event(
    *,
    noise_multiplier: float,
    sample_size: int,
    population_size: int,
    sampling_method: str,
    secret_draws: bool = False,
) -> events.DpEvent:
    """Return the event of a round under the relation of its way to draw clients.

    Parameters
    ----------
    noise_multiplier
        Standard deviation of the noise of the sum, in clipping norms.
    sample_size, population_size
        Clients of a round, 1 <= k <= N: exactly k, or on average for ``"poisson"``.
    sampling_method
        ``"poisson"``: each client by itself, and the sum is divided by a fixed number; one client
        moves it by a clipping norm. ``"without-replacement"``: k of N, uniformly and in secret, and
        a client is replaced. ``"no-amplification"``: exactly k, drawn in any way, and a client is
        added or removed.
    secret_draws
        For ``"no-amplification"``: whether the k clients of each round are drawn uniformly from at
        least N, and only the server learns who they are.

    Raises
    ------
    ValueError
        If an argument is outside its range.
    """
    validate.choice(tuple(RELATIONS), sampling_method=sampling_method)
    drawn = validate.count(sample_size=sample_size)
    population = validate.count(population_size=population_size)
    if drawn > population:
        raise ValueError(f"sample_size must be at most population_size={population}, got {drawn}.")
    if validate.flag(secret_draws=secret_draws) and sampling_method != "no-amplification":
        raise ValueError(
            "secret_draws must be False where the sampling method counts on them already, got "
            f"{secret_draws!r} with {sampling_method!r}."
        )
    noise = validate.positive(noise_multiplier=noise_multiplier)
    gaussian = events.GaussianDpEvent(noise)
    if sampling_method == "poisson":
        rate = rounded_up(drawn / population, Fraction(drawn, population))
        return events.PoissonSampledDpEvent(rate, gaussian)
    if sampling_method == "without-replacement" or (secret_draws and drawn < population):
        return events.SampledWithoutReplacementDpEvent(population, drawn, gaussian)
    return events.GaussianDpEvent(noise / 2)
