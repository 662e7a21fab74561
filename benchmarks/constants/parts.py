"""Questions for parts that questions about events reach seldom, or only at great cost.

Each is a function without arguments that returns intervals, as in
:mod:`benchmarks.constants.questions`. Where two bounds come from different arguments, an interval
has one as its lower and the other as its upper end, and a pair that crosses is an error.
"""

import contextlib
from functools import partial

import numpy as np

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.adaptive.filters import Odometer
from dpcal.accountants.certificates.enclosure import decimal_bounds, enclose
from dpcal.accountants.certificates.search.contour import choose_chernoff, choose_contour
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.replicas import ReplicaMoments
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.curves import tradeoff
from dpcal.accountants.loaders.subsets import SubsetBelow
from dpcal.accountants.losses.base import OutOfReach
from dpcal.accountants.mechanisms.decompose import decompose


class CrossedBoundsError(Exception):
    """A lower bound is above an upper bound of another argument."""


def between(low, high):
    """Return the interval of two bounds from different arguments."""
    if low > high:
        raise CrossedBoundsError(f"{low!r} is above {high!r}.")
    return [(float(low), float(high))]


# -- proofs in ball arithmetic, one argument at a time


def proved(choose, event, at, **options):
    """Return what one argument proves about delta, against the accountant's bounds."""
    found = []
    for direction in decompose(event, "add-or-remove-one").directions:
        _, given = direction.finite
        with contextlib.suppress(OutOfReach):
            proof = choose(given.parts, at, **options)
            ends = decimal_bounds(*enclose(proof, given.parts, at), 12)
            found += between(*map(float, ends))
    known = accountants.delta(event, epsilon=at)
    if max(low for low, _ in found) > known.upper or max(high for _, high in found) < known.lower:
        raise CrossedBoundsError(f"{found} and {known!r} have no point in common.")
    return found


def verified(event, **target):
    """Return the bounds of a certificate that was written, read and proved again."""
    document = accountants.certify(event, **target).to_json()
    again = accountants.verify_certificate(document)
    return [(float(again.lower), float(again.upper))]


def small_events():
    """Return events whose proofs take a fraction of a second."""
    return {
        "sgd": events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=20),
        "rare": events.dpsgd(sampling_probability=1e-6, noise_multiplier=0.5, steps=50),
        "two": events.ComposedDpEvent(
            [
                events.dpsgd(sampling_probability=1e-3, noise_multiplier=0.5, steps=4),
                events.dpsgd(sampling_probability=0.01, noise_multiplier=0.8, steps=3),
            ]
        ),
    }


def proof_questions():
    """Return questions for each argument by itself."""
    choices = {
        "contour": (choose_contour, {"width": 1e-2}),
        "chernoff": (choose_chernoff, {"width": 1e-2}),
    }
    found = {}
    for name, event in small_events().items():
        for argument, (choose, options) in choices.items():
            found[f"proof by {argument}, {name}"] = partial(proved, choose, event, 1.0, **options)
    lattice = events.SelfComposedDpEvent(events.DiscreteGaussianDpEvent(2.0), 5)
    found["verified, lattice"] = partial(verified, lattice, epsilon=1.0)
    for name, event in small_events().items():
        found[f"verified by order, {name}"] = partial(
            verified, event, epsilon=1.0, method="convex-order"
        )
    found["verified, gaussian"] = partial(verified, events.GaussianDpEvent(2.0), delta=1e-5)
    found["verified, sgd"] = partial(verified, small_events()["sgd"], epsilon=1.0, width=1e-2)
    return found


# -- bounds for correlated noise, one at a time


def bound_questions():
    """Return questions for single bounds of runs with correlated noise or random allocation."""

    def allocated(rounds, epochs):
        bound = allocated(norm=1.0, rounds=rounds, epochs=epochs)
        return [
            *between(bound.proof(0.5).lower, bound.delta(0.5)),
            *between(bound.epsilon(1e-4).lower, bound.epsilon(1e-4).value),
        ]

    def of_subsets(rounds, taken):
        low = SubsetBelow(norm=1.0, rounds=rounds, taken=taken, epochs=1).delta(0.5)
        # Whoever knows the blocks that the rounds are drawn from sees one round of each.
        high = allocated(norm=1.0, rounds=rounds // taken, epochs=taken).delta(0.5)
        return between(low, high)

    def capped():
        mechanism = Mechanism.of(matrix.LambdaCGD(200, 0.5), noise_multiplier=6.0)
        bound = ReplicaMoments(mechanism, Joining(np.full(200, 0.02)))
        return [(0.0, bound.epsilon(1e-5).value), (0.0, bound.delta(1.0))]

    def answered(strategy, sampler, sigma, delta):
        found = correlated.epsilon(
            strategy, sampler, noise_multiplier=sigma, delta=delta, statistics="none"
        )
        return [(found.lower, found.upper)]

    return {
        "allocation, one epoch": partial(allocated, 8, 1),
        "allocation, two epochs": partial(allocated, 4, 2),
        "subsets from below": partial(of_subsets, 6, 2),
        "subsets from below, many rounds": partial(of_subsets, 60, 3),
        "capped moments, many rounds": capped,
        "long memory": partial(
            answered, matrix.SquareRoot(24), correlated.Poisson(0.05), 12.0, 1e-5
        ),
        "allocation, little noise": partial(
            answered, matrix.Identity(20), correlated.RandomAllocation(1, 5), 0.08, 1e-4
        ),
    }


# -- everything else


def other_questions():
    """Return questions for closed forms, odometers and conversions."""

    def single(event, **options):
        found = [
            accountants.epsilon(event, delta=1e-6, **options),
            accountants.log_delta(event, epsilon=1.0, **options),
        ]
        return [(each.lower, each.upper) for each in found]

    def odometer():
        account = Odometer(delta=1e-6)
        for sigma in (8.0, 4.0, 6.0):
            account.spend(events.GaussianDpEvent(sigma))
        return [(account.epsilon, account.epsilon)]

    def from_pairs():
        found = tradeoff.trade_off_from_deltas([0.5, 2.0, 689.0], [1e-2, 1e-5, 0.0], [1e-3, 0.1])
        return list(zip(found.lower.tolist(), found.upper.tolist(), strict=True))

    def many():
        return single(
            events.ComposedDpEvent(
                [
                    events.dpsgd(
                        sampling_probability=1e-4 * k, noise_multiplier=0.8 + 0.01 * k, steps=2
                    )
                    for k in range(1, 121)
                ]
            )
        )

    def buffers():
        # Buffers of longer runs than this are found from closed forms.
        strategy = matrix.BLT.optimised(2**14 + 1, 2)
        return [(float(each), float(each)) for each in (*strategy.decays, *strategy.scales)]

    return {
        "matrix blt, long": buffers,
        "one discrete gaussian": partial(single, events.DiscreteGaussianDpEvent(2.0)),
        "one wide discrete gaussian": partial(single, events.DiscreteGaussianDpEvent(50.0)),
        "odometer": odometer,
        "trade-off of pairs": from_pairs,
        "one hundred losses": many,
    }


def questions():
    """Return these questions by name."""
    return {**proof_questions(), **bound_questions(), **other_questions()}
