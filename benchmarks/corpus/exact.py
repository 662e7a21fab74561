"""Delta of an event in balls or rational numbers, from its parameters only, without an accountant.

The events are those of a row of the corpus, as JSON values. Each mechanism's pair is that of the
theorem which docs/explanation/proofs.md names.

>>> from flint import ctx
>>> event = {"type": "GaussianDpEvent", "noise_multiplier": 2.0}
>>> question = Question.of(event, "add-or-remove-one", "worst")
>>> question.kind
'closed form in balls'
>>> with ctx.workprec(128):
...     lower, upper = question.delta(arb(1))
...     lower.overlaps(upper), float(upper.mid()) > 0.0
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from flint import arb, ctx, fmpq

from benchmarks.corpus import laws
from benchmarks.corpus.inner import Inner, Profile, gaussian, on_epoch, on_sample
from benchmarks.corpus.laplace import composed_laplace
from benchmarks.corpus.noise import Pair, laplace, normal
from benchmarks.corpus.rows import leaves

Ball = Any
Event = dict[str, Any]
Bounds = tuple[Ball, Ball]
Leaves = list[tuple[Event, int]]

CLOSED = "closed form in balls"
ADD = "add-or-remove-one"
RATIONAL = "exact enumeration in rational numbers"
ENUMERATED = "enumeration in balls"
BRACKET = "attack below, theorem above"


def rational(value: float) -> Any:
    """Return a double as the rational number that it is."""
    return fmpq(*value.as_integer_ratio())


# Most draws of one record that are distinguished; the chance of more counts on either side.
_MOST_DRAWS = 60


@dataclass(frozen=True)
class Question:
    """An event with a known delta at any epsilon: the kind of proof, and a function in balls."""

    kind: str
    of_direction: Callable[[str, Ball], Bounds]
    directions: tuple[str, ...]

    @classmethod
    def of(cls, event: Event, relation: str, direction: str) -> Question | None:
        """Return the question; None if no exact answer is known here."""
        found = _exact(leaves(event), relation)
        if found is None:
            return None
        both = direction == "worst" and not _is_symmetric(event, relation)
        return cls(*found, ("remove", "add") if both else (direction,))

    def delta(self, epsilon: Ball) -> Bounds:
        """Return bounds on delta, for the worst of the requested directions."""
        found = [self.of_direction(direction, epsilon) for direction in self.directions]
        lower, upper = found[0]
        for low, high in found[1:]:
            lower, upper = arb.max(lower, low), arb.max(upper, high)
        return lower, upper


def _is_symmetric(event: Event, relation: str) -> bool:
    """Whether one answer holds for both directions of a relation."""
    kinds = {each["type"] for each, _ in leaves(event)}
    return kinds <= {*_GAUSSIAN, "LaplaceDpEvent"} or (
        kinds == {"SampledWithoutReplacementDpEvent"} and relation != ADD
    )


Found = tuple[str, Callable[[str, Ball], Bounds]]
_GAUSSIAN = {"GaussianDpEvent", "SingleEpochTreeAggregationDpEvent", "LastIterateDpEvent"}


def _exact(items: Leaves, relation: str) -> Found | None:
    kinds = {event["type"] for event, _ in items}
    if kinds <= _GAUSSIAN:
        return CLOSED, lambda _, epsilon: _both(gaussian(_mu(items, relation), epsilon.exp()))
    if kinds == {"LaplaceDpEvent"} and len(items) == 1 and items[0][1] <= 24:
        return CLOSED, lambda _, epsilon: _both(_laplace(*items[0], relation, epsilon))
    single = items[0][0]["type"] if len(items) == 1 and items[0][1] == 1 else None
    if single in _NOT_REPLACED and relation == "replace-one":
        return None
    if single in _SINGLE:
        function = _SINGLE[single]
        kind = BRACKET if function is _truncated else CLOSED
        return kind, lambda direction, epsilon: function(items[0][0], relation, direction, epsilon)
    if single == "PoissonSampledDpEvent" and _inner(items[0][0]) in _NOISE:
        return CLOSED, lambda direction, epsilon: _both(
            _poisson(items[0][0], relation, direction, epsilon)
        )
    if single == "SampledWithoutReplacementDpEvent" and _inner(items[0][0]) in _NOISE:
        kind = BRACKET if relation == "replace-special" else CLOSED
        return kind, lambda direction, epsilon: _without_replacement(
            items[0][0], relation, direction, epsilon
        )
    if single == "PoissonSampledDpEvent" and _inner(items[0][0]) == "DiscreteGaussianDpEvent":
        return ENUMERATED, lambda direction, epsilon: _discrete_gaussian(
            items[0][0], relation, direction, epsilon
        )
    composed = single in _OUTER and _inner(items[0][0]) in _COMPOSITIONS
    return _composed(items[0][0], relation) if composed else _by_enumeration(items, relation)


def _inner(event: Event) -> str | None:
    return event["event"]["type"] if "event" in event else None


def _both(ball: Ball) -> Bounds:
    return ball, ball


def _mu(items: Leaves, relation: str) -> Ball:
    """Enclose how far Gaussian answers move, all together, in units of their noise."""
    variance = arb(0)
    for event, times in items:
        sigma = arb(event["noise_multiplier"]) / (2 if relation == "replace-one" else 1)
        # A record is in one leaf of the deepest tree and in all nodes above it.
        counts = event.get("step_counts", 1)
        nodes = max(
            size.bit_length() for size in (counts if isinstance(counts, list) else [counts])
        )
        variance += arb(times) * nodes * _steps(event) / sigma**2
    return variance.sqrt()


def _steps(event: Event) -> Ball:
    """Enclose how many answers a last iterate is worth (Bok, Su and Altschuler 2024)."""
    steps, c = event.get("steps", 1), arb(event.get("contraction", 1.0))
    if c == 1:
        return arb(steps)
    return (1 - c**steps) * (1 + c) / ((1 + c**steps) * (1 - c))


def _laplace(event: Event, times: int, relation: str, epsilon: Ball) -> Ball:
    a = arb(2 if relation == "replace-one" else 1) / arb(event["noise_multiplier"])
    return composed_laplace(a, times, epsilon)


def _sampled_pair(
    noise: Any, q: Ball, scale: Ball, shift: int, relation: str, direction: str
) -> Pair:
    """Return the pair of noise on a Poisson sample (docs/explanation/batches.md)."""
    zero, one, moved = arb(0), arb(1), arb(shift)
    there, alone = [(zero, 1 - q), (moved, q)], [(zero, one)]
    if relation == "replace-one":
        return Pair(noise, scale, there, [(zero, 1 - q), (-moved, q)])
    if direction == "remove":
        return Pair(noise, scale, there, alone)
    return Pair(noise, scale, alone, [(zero, 1 - q), (-moved, q)])


def _poisson(event: Event, relation: str, direction: str, epsilon: Ball) -> Ball:
    q, noise = arb(event["sampling_probability"]), _NOISE[event["event"]["type"]]
    scale = arb(event["event"]["noise_multiplier"])
    return _sampled_pair(noise, q, scale, 1, relation, direction).delta(epsilon)


def _discrete_gaussian(event: Event, relation: str, direction: str, epsilon: Ball) -> Bounds:
    """Enclose delta of discrete Gaussian noise on a Poisson sample, by all numbers but far ones."""
    q, inner = arb(event["sampling_probability"]), event["event"]
    sigma, shift = arb(inner["sigma"]), inner["sensitivity"]
    pair = _sampled_pair(normal, q, sigma, shift, relation, direction)
    # Beyond the reach a density is below 2^-(6 bits), and falls at least geometrically.
    reach = int(float(inner["sigma"]) * (9 * ctx.prec) ** 0.5) + 2
    weights = [_density(x, sigma) for x in range(reach + 2)]
    tail = arb(0).union(weights[-1] / (1 - (-(reach + 1) / sigma**2).exp()))
    total = weights[0] + 2 * (sum(weights[1:-1], arb(0)) + tail)
    k, found = epsilon.exp(), arb(0)
    for x in range(-reach - shift, reach + shift + 1):
        p, q = (
            sum((w * _density(x - int(float(m)), sigma) for m, w in side), arb(0))
            for side in (pair.p, pair.q)
        )
        found += arb.max(p - k * q, arb(0))
    return found / total, (found + 2 * tail) / total


def _density(x: int, sigma: Ball) -> Ball:
    return (-arb(x * x) / (2 * sigma**2)).exp()


def _displaced(
    noise: Any, q: Ball, scale: Ball, relation: str, direction: str, epsilon: Ball
) -> Ball:
    """Enclose delta of a record in a batch of fixed size, where it takes another one's place."""
    # Losses above 0 of a replaced record are those of the sampled pair, at distance 2.
    side = direction if relation == "add-or-remove-one" else "remove"
    return _sampled_pair(noise, q, scale, 2, "add-or-remove-one", side).delta(epsilon)


def _without_replacement(event: Event, relation: str, direction: str, epsilon: Ball) -> Bounds:
    """Bound delta of a batch of distinct records; for a zeroed-out one, below by three attacks.

    All others contribute -1, and the record 1 before it is zeroed out; or its contribution is the
    only one, before or after.
    """
    q = arb(event["sample_size"]) / event["source_dataset_size"]
    noise = _NOISE[event["event"]["type"]]
    scale = arb(event["event"]["noise_multiplier"])
    above = _displaced(noise, q, scale, relation, direction, epsilon)
    if relation != "replace-special":
        return _both(above)
    there, blank = ([(arb(0), 1 - q), (arb(moved), q)] for moved in (2, 1))
    below = Pair(noise, scale, there, blank).delta(epsilon)
    for side in ("remove", "add"):
        alone = _sampled_pair(noise, q, scale, 1, "add-or-remove-one", side)
        below = arb.max(below, alone.delta(epsilon))
    return below, above


def _with_replacement(event: Event, relation: str, direction: str, epsilon: Ball) -> Bounds:
    """Bound delta of a mixture of N(2 k), k binomial, against N(0)."""
    size, batch = event["source_dataset_size"], event["sample_size"]
    weights = [(1 - arb(1) / size) ** batch]
    while len(weights) <= min(batch, _MOST_DRAWS) and weights[-1] > arb(2) ** -(2 * ctx.prec):
        k = len(weights) - 1
        weights.append(weights[-1] * (batch - k) / ((k + 1) * arb(size - 1)))
    rest = arb.max(1 - sum(weights, arb(0)), arb(0)).upper() if len(weights) <= batch else arb(0)
    sigma = arb(event["event"]["noise_multiplier"])
    sign = 1 if direction == "remove" else -1
    mixture = [(arb(2 * sign * k), weight) for k, weight in enumerate(weights)]
    alone = [(arb(0), arb(1))]
    pair = Pair(normal, sigma, mixture, alone) if sign > 0 else Pair(normal, sigma, alone, mixture)
    value = pair.delta(epsilon)
    # Numbers of draws that are left out change the sum by at most their probability, times k.
    return value - epsilon.exp() * rest, value + rest


def _mixture(event: Event, relation: str, direction: str, epsilon: Ball) -> Bounds:
    """Enclose delta of a mixture of Gaussians (Choquette-Choo et al. 2024), weights as they are."""
    total = sum((rational(w) for w in event["sampling_probs"]), fmpq(0))
    sign = 1 if direction == "remove" else -1
    mixture = [
        (arb(sign * s), arb(rational(w) / total))
        for s, w in zip(event["sensitivities"], event["sampling_probs"], strict=True)
    ]
    alone, sigma = [(arb(0), arb(1))], arb(event["standard_deviation"])
    pair = Pair(normal, sigma, mixture, alone) if sign > 0 else Pair(normal, sigma, alone, mixture)
    return _both(pair.delta(epsilon))


def _truncated(event: Event, relation: str, direction: str, epsilon: Ball) -> Bounds:
    """Bound delta of a Poisson sample that is cut at a largest batch.

    Above: it is published whether the other records fill the batch. Below: all others contribute 0,
    and the record is drawn and kept.
    """
    size, batch = event["dataset_size"], event["truncated_batch_size"]
    q, sigma = arb(event["sampling_probability"]), arb(event["noise_multiplier"])
    full, kept, term = arb(0), arb(0), (1 - q) ** (size - 1)
    for others in range(size):
        if others >= batch:
            full += term
            kept += term * q * batch / (others + 1)
        term = term * q * (size - 1 - others) / ((others + 1) * (1 - q))
    kept_at_all = (1 - full) * q + kept
    below = _sampled_pair(normal, kept_at_all, sigma, 1, relation, direction).delta(epsilon)
    plain = _sampled_pair(normal, q, sigma, 1, relation, direction).delta(epsilon)
    cut = _displaced(normal, kept / full, sigma, relation, direction, epsilon)
    return below, (1 - full) * plain + full * cut


def _bounded_range(event: Event, relation: str, direction: str, epsilon: Ball) -> Bounds:
    """Enclose delta of any mechanism of this range (Dong, Durfee and Rogers 2020, Lemma 3.4)."""
    top = arb(event["epsilon"])
    if epsilon >= top:
        return _both(arb(0))
    return _both(((epsilon - top) / 2).expm1() ** 2 / (-(-top).expm1()))


_SINGLE: dict[str, Callable[[Event, str, str, Ball], Bounds]] = {
    "SampledWithReplacementDpEvent": _with_replacement,
    "MixtureOfGaussiansDpEvent": _mixture,
    "TruncatedSubsampledGaussianDpEvent": _truncated,
    "ExponentialMechanismDpEvent": _bounded_range,
}
# Pairs of a replaced record are not known, or only from above.
_NOT_REPLACED = ("SampledWithReplacementDpEvent", "MixtureOfGaussiansDpEvent")
_NOISE = {"GaussianDpEvent": normal, "LaplaceDpEvent": laplace}


_OUTER = ("PoissonSampledDpEvent", "SampledWithoutReplacementDpEvent", "AllocatedDpEvent")
_COMPOSITIONS = ("SelfComposedDpEvent", "ComposedDpEvent")
_SYMMETRIC = ("GaussianDpEvent", "LaplaceDpEvent", "DiscreteLaplaceDpEvent")


def _composed(event: Event, relation: str) -> Found | None:
    """Bound delta of a sample, batch or epoch of Gaussian and Laplace answers, discrete or not."""
    items, batch = leaves(event["event"]), "sample_size" in event
    if relation == ("replace-special" if batch else "replace-one"):
        return None
    # In a batch of fixed size a record takes the place of another one.
    moved = "replace-one" if batch else ADD
    of = {kind: [item for item in items if item[0]["type"] == kind] for kind in _SYMMETRIC}
    finite = of["DiscreteLaplaceDpEvent"]
    parts = [(_law(each, moved, ""), times) for each, times in finite]
    if sum(map(len, of.values())) < len(items) or laws.combinations(parts) > laws.MOST:
        return None

    @lru_cache(maxsize=4)
    def profile(bits: int) -> Profile:
        pure = [
            arb(times * (2 if batch else 1)) / each["noise_multiplier"]
            for each, times in of["LaplaceDpEvent"]
        ]
        law = laws.combined([(_law(each, moved, ""), times) for each, times in finite])
        return Inner(_mu(of["GaussianDpEvent"], moved), law, sum(pure, arb(0))).delta

    def bounds(direction: str, epsilon: Ball) -> Bounds:
        found, k = profile(ctx.prec), epsilon.exp()
        if "batches" in event:
            return on_epoch(found, event["batches"], direction, k)
        if batch:
            q = arb(event["sample_size"]) / event["source_dataset_size"]
            return on_sample(found, q, "remove" if relation == "replace-one" else direction, k)
        return on_sample(found, arb(event["sampling_probability"]), direction, k)

    if of["LaplaceDpEvent"] or "batches" in event:
        return BRACKET, bounds
    return (ENUMERATED if finite else CLOSED), bounds


def _by_enumeration(items: Leaves, relation: str) -> Found | None:
    shapes = [_law(event, relation, "remove") for event, _ in items]
    if any(law is None for law in shapes):
        return None
    counts = [times for _, times in items]
    if laws.combinations(list(zip(shapes, counts, strict=True))) > laws.MOST:
        return None
    exact = all(isinstance(p, fmpq) for law in shapes for pair in law for p in pair)

    def bounds(direction: str, epsilon: Ball) -> Bounds:
        parts = [_law(event, relation, direction) for event, _ in items]
        return _both(laws.enumerated(list(zip(parts, counts, strict=True)), epsilon))

    if relation == "replace-special" and any("sample_size" in event for event, _ in items):
        return _blanked(items, bounds) if len(items) == 1 else None
    return (RATIONAL if exact else ENUMERATED), bounds


def _blanked(items: Leaves, bounds: Callable[[str, Ball], Bounds]) -> Found:
    """Bound delta of a zeroed-out record in batches of distinct ones, below by three attacks."""
    ((event, count),) = items
    q = arb(event["sample_size"]) / event["source_dataset_size"]
    a, shift = arb(event["event"]["noise_parameter"]), event["event"]["sensitivity"]

    def both(direction: str, epsilon: Ball) -> Bounds:
        there, blank = ([(0, 1 - q), (moved * shift, q)] for moved in (2, 1))
        attacks = [laws.discrete_laplace(a, there, blank)]
        attacks += [laws.sampled(_moved(a, shift), q, side) for side in ("remove", "add")]
        below = [laws.enumerated([(law, count)], epsilon) for law in attacks]
        return arb.max(arb.max(*below[:2]), below[2]), bounds(direction, epsilon)[1]

    return BRACKET, both


def _law(event: Event, relation: str, direction: str) -> laws.Law | None:
    """Return the law of one mechanism; None if it is not known here."""
    kind, twice = event["type"], 2 if relation == "replace-one" else 1
    if kind == "RandomizedResponseDpEvent":
        blank = {"replace-one": None, "replace-special": "Q" if direction == "remove" else "P"}
        return laws.response(
            rational(event["noise_parameter"]), event["num_buckets"], blank[relation]
        )
    if kind in ("EpsilonDeltaDpEvent", "PermuteAndFlipDpEvent"):
        return laws.stated(arb(event["epsilon"]), rational(event.get("delta", 0.0)))
    if kind == "DiscreteLaplaceDpEvent":
        return _moved(arb(event["noise_parameter"]), twice * event["sensitivity"])
    if event.get("event", {}).get("type") != "DiscreteLaplaceDpEvent":
        return None
    return _law_of_batch(event, relation, direction)


def _law_of_batch(event: Event, relation: str, direction: str) -> laws.Law | None:
    """Return the law of discrete Laplace noise on a batch; None if it is not known here."""
    kind, replaced = event["type"], relation == "replace-one"
    a, shift = arb(event["event"]["noise_parameter"]), event["event"]["sensitivity"]
    if kind == "PoissonSampledDpEvent":
        q = arb(event["sampling_probability"])
        if not replaced:
            return laws.sampled(_moved(a, shift), q, direction)
        # The noise is symmetric and log-concave, so that opposite contributions are the worst.
        there, back = ([(0, 1 - q), (sign * shift, q)] for sign in (1, -1))
        return laws.discrete_laplace(a, there, back)
    if kind == "AllocatedDpEvent" and not replaced:
        return laws.allocated(_moved(a, shift), event["batches"], direction)
    if kind == "SampledWithoutReplacementDpEvent":
        q = arb(event["sample_size"]) / event["source_dataset_size"]
        law = _moved(a, 2 * shift)
        if relation == "add-or-remove-one":
            return laws.sampled(law, q, direction)
        return laws.fixed_batch(laws.sampled(law, q, "remove"))
    return None


def _moved(a: Ball, shift: int) -> laws.Law:
    """Return the law of discrete Laplace noise that is moved by ``shift``, against that at 0."""
    return laws.discrete_laplace(a, [(shift, arb(1))], [(0, arb(1))])
