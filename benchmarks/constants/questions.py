"""The questions that constants are changed under: small ones, of the accountants and of plans.

Each question is a function without arguments that returns intervals: pairs of a lower and an upper
end. A number that has no bounds, such as a calibrated noise multiplier, is a pair of equal ends.
"""

import math
import sys
import time
from functools import partial

import numpy as np

from benchmarks import sweep
from benchmarks.constants import parts, plans
from dpcal import accountants, calibrate
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.adaptive.filters import PrivacyFilter

SWEPT, SWEPT_WITH_LITTLE_NOISE = 90, 30
SEED = 7
RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")


class WrongAnswerError(Exception):
    """An answer is on the wrong side of an independent bound."""


def swept(draw, index):
    """Return the interval of a point of the sweep, after its checks."""
    point = draw(SEED, index)
    answer = sweep.ask(point)
    found, _ = sweep.problems(point, answer)
    if found:
        raise WrongAnswerError(found[0])
    return [(answer.lower, answer.upper)]


def priced(event, relation, *, delta=1e-6, epsilons=(1.0,), accountant="auto"):
    """Return epsilon at a delta and log delta at epsilons."""
    chosen = {"neighboring_relation": relation, "accountant": accountant}
    found = [accountants.epsilon(event, delta=delta, **chosen)]
    found += [accountants.log_delta(event, epsilon=at, **chosen) for at in epsilons]
    return [(each.lower, each.upper) for each in found]


def steps_of(event, count):
    """Return a mechanism that is used several times."""
    return events.SelfComposedDpEvent(event, count)


def composed_events():
    """Return events of every kind that a law is known for."""
    gaussian = events.GaussianDpEvent
    some = range(1, 13)
    return {
        "gaussian": steps_of(gaussian(3.0), 20),
        "laplace": steps_of(events.LaplaceDpEvent(4.0), 5),
        "many laplace": steps_of(events.LaplaceDpEvent(60.0), 12_000),
        "two laplace": events.ComposedDpEvent(
            [events.LaplaceDpEvent(2.0), steps_of(events.LaplaceDpEvent(7.3), 2)]
        ),
        "sampled laplace": steps_of(
            events.PoissonSampledDpEvent(0.05, events.LaplaceDpEvent(1.0)), 100
        ),
        "discrete laplace": steps_of(events.DiscreteLaplaceDpEvent(0.5, 2), 30),
        "lattices": events.ComposedDpEvent(
            [
                steps_of(events.DiscreteLaplaceDpEvent(0.3, 1), 7),
                steps_of(events.DiscreteLaplaceDpEvent(0.5, 2), 9),
            ]
        ),
        "many discrete laplace": steps_of(events.DiscreteLaplaceDpEvent(0.01, 1), 8000),
        "discrete gaussian": steps_of(events.DiscreteGaussianDpEvent(2.0), 15),
        "narrow discrete gaussian": steps_of(events.DiscreteGaussianDpEvent(0.6), 4),
        "wide discrete gaussian": steps_of(events.DiscreteGaussianDpEvent(40.0), 200),
        "randomized response": steps_of(events.RandomizedResponseDpEvent(0.3, 4), 12),
        "claims": events.ComposedDpEvent(
            [
                steps_of(events.EpsilonDeltaDpEvent(0.1, 1e-8), 40),
                steps_of(events.LaplaceDpEvent(4.0), 2),
            ]
        ),
        "permute and flip": steps_of(events.PermuteAndFlipDpEvent(0.3), 10),
        "exponential mechanism": steps_of(events.ExponentialMechanismDpEvent(0.2), 100),
        "sparse vectors": steps_of(events.AboveThresholdDpEvent(20.0, 40.0), 5),
        "concentrated": steps_of(events.ZCDpEvent(0.01), 10),
        "without replacement": steps_of(
            events.SampledWithoutReplacementDpEvent(10_000, 100, gaussian(2.0)), 300
        ),
        "without replacement, rare": steps_of(
            events.SampledWithoutReplacementDpEvent(10_000, 50, gaussian(6.0)), 500
        ),
        "without replacement, little noise": steps_of(
            events.SampledWithoutReplacementDpEvent(10_000, 20, gaussian(0.3)), 10
        ),
        "with replacement": steps_of(
            events.SampledWithReplacementDpEvent(600, 12, gaussian(4.0)), 10
        ),
        "cut batches": steps_of(
            events.TruncatedSubsampledGaussianDpEvent(10_000, 0.01, 130, 2.0), 50
        ),
        "mixture": steps_of(
            events.MixtureOfGaussiansDpEvent(1.5, [0.0, 1.0, 2.0], [0.9, 0.09, 0.01]), 25
        ),
        "far means": steps_of(
            events.MixtureOfGaussiansDpEvent(4.0, [0.0, 1.0, 300.0], [0.9, 0.1 - 1e-15, 1e-15]), 100
        ),
        "best of few": events.RepeatAndSelectDpEvent(gaussian(8.0), 10.0, 0.0),
        "best, poisson": events.RepeatAndSelectDpEvent(gaussian(8.0), 10.0, math.inf),
        "tree": events.SingleEpochTreeAggregationDpEvent(4.0, 100),
        "some losses": events.ComposedDpEvent(
            [events.dpsgd(sampling_probability=0.01 * k, noise_multiplier=3.0, steps=5 * k)
             for k in some]
        ),
        "many losses": events.ComposedDpEvent(
            [events.dpsgd(sampling_probability=0.002 * k, noise_multiplier=1.0 + 0.1 * k, steps=3)
             for k in range(1, 61)]
        ),
        "very many losses": events.ComposedDpEvent(
            [events.dpsgd(sampling_probability=1e-4 * k, noise_multiplier=0.8 + 0.01 * k, steps=2)
             for k in range(1, 161)]
        ),
        "sgd": events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=1000),
        "one step": events.dpsgd(sampling_probability=0.1, noise_multiplier=0.7, steps=1),
        "two steps": events.dpsgd(sampling_probability=1e-4, noise_multiplier=0.4, steps=2),
        "rare steps": events.dpsgd(sampling_probability=1e-8, noise_multiplier=0.5, steps=10**6),
        "wide noise": events.dpsgd(sampling_probability=0.3, noise_multiplier=500.0, steps=50),
    }  # fmt: skip


def event_questions():
    """Return questions about these events, under each relation, at usual and at extreme targets."""
    found = {}
    for name, event in composed_events().items():
        for relation in RELATIONS:
            found[f"{name}, {relation}"] = partial(priced, event, relation)
        found[f"{name}, far"] = partial(
            priced, event, "replace-special", delta=1e-30, epsilons=(0.0, 8.0)
        )
        found[f"{name}, renyi"] = partial(priced, event, "add-or-remove-one", accountant="renyi")
    for name in ("sgd", "laplace", "with replacement"):
        for backend in ("pld", "prv"):
            found[f"{name}, {backend}"] = partial(
                priced, composed_events()[name], "add-or-remove-one", accountant=backend
            )
    return found


def value(number):
    """Return a number without bounds as an interval."""
    return [(float(number), float(number))]


def curve_questions():
    """Return questions about whole curves and conversions."""
    sgd = composed_events()["sgd"]
    laplace = composed_events()["laplace"]

    def profile(event):
        found = accountants.privacy_profile(event, np.linspace(0.0, 6.0, 25))
        return list(zip(found.log_lower, found.log_upper, strict=True))

    def epsilons(event):
        found = accountants.epsilon_profile(event, [1e-2, 1e-4, 1e-6, 1e-8, 1e-12])
        return list(zip(found.lower, found.upper, strict=True))

    def trade(event):
        found = accountants.trade_off(event, [1e-3, 0.05, 0.3])
        return list(zip(found.lower, found.upper, strict=True))

    def filtered(kind):
        budget = PrivacyFilter(epsilon=2.0, delta=1e-6, kind=kind)
        budget.spend(events.GaussianDpEvent(8.0))
        return value(budget.remaining)

    found = {}
    for name, event in (("sgd", sgd), ("laplace", laplace)):
        found[f"{name}, profile"] = partial(profile, event)
        found[f"{name}, epsilons"] = partial(epsilons, event)
        found[f"{name}, trade-off"] = partial(trade, event)
    found["advantage"] = lambda: value(accountants.advantage(sgd))
    found["bayes"] = lambda: value(accountants.bayes_success(sgd, prior=0.1))
    found["true positives"] = lambda: value(
        accountants.true_positive_rate(sgd, false_positive_rate=1e-3)
    )
    found["gdp"] = lambda: value(accountants.gdp_mu(sgd))
    found["zcdp"] = lambda: value(accountants.epsilon(events.ZCDpEvent(0.1), delta=1e-6))
    for kind in ("renyi", "zcdp", "gdp"):
        found[f"filter, {kind}"] = partial(filtered, kind)
    return found


def certified(event, **options):
    """Return the interval of a certificate."""
    found = accountants.certify(event, **options)
    return [(float(found.lower), float(found.upper))]


def certificate_questions():
    """Return questions for proofs in ball arithmetic."""
    table = composed_events()
    names = (
        "sgd",
        "gaussian",
        "laplace",
        "two laplace",
        "discrete laplace",
        "two steps",
        "mixture",
    )
    found = {}
    for name in names:
        found[f"{name}, certified delta"] = partial(certified, table[name], epsilon=1.5)
        found[f"{name}, certified epsilon"] = partial(certified, table[name], delta=1e-6)
    found["rare steps, certified"] = partial(certified, table["rare steps"], epsilon=0.5)
    return found


def correlated_questions():
    """Return questions about correlated noise: what is proved, and what draws say."""

    def answered(strategy, sampler, sigma, **options):
        at = correlated.epsilon(strategy, sampler, noise_multiplier=sigma, delta=1e-4, **options)
        found = [(at.lower, at.upper)]
        back = correlated.delta(strategy, sampler, noise_multiplier=sigma, epsilon=1.0, **options)
        return [*found, (back.lower, back.upper)]

    half = matrix.LambdaCGD(40, 0.5)
    banded = matrix.Banded.optimised(40, 3)
    blt = matrix.BLT.optimised(40, 2, error="max")
    dense = matrix.Dense.optimised(12)
    plain = matrix.Identity(40)
    samplers = {
        "poisson": correlated.Poisson(0.05),
        "cyclic": correlated.CyclicPoisson(4, 0.2),
        "shifted": correlated.CyclicPoisson(4, 0.2, random_shift=True),
        "separated": correlated.MinSeparation(4, 0.1),
        "bins": correlated.BallsInBins(10),
        "allocation": correlated.RandomAllocation(1, 10),
        "allocation, twice": correlated.RandomAllocation(2, 10),
    }
    strategies = {"half": half, "banded": banded, "blt": blt, "dense": dense, "plain": plain}
    found = {}
    for name, strategy in strategies.items():
        for drawn, sampler in samplers.items():
            if name == "dense" and ("allocation" in drawn or drawn == "bins"):
                continue
            found[f"{name}, {drawn}"] = partial(answered, strategy, sampler, 3.0, statistics="none")
            found[f"{name}, {drawn}, little noise"] = partial(
                answered, strategy, sampler, 0.9, statistics="none"
            )
            found[f"{name}, {drawn}, drawn"] = partial(
                answered, strategy, sampler, 3.0, draws=2000, seed=3
            )
    found["long, allocation"] = partial(
        answered, matrix.Identity(1000), correlated.RandomAllocation(1), 3.0, statistics="none"
    )
    return found


def matrix_questions():
    """Return questions for the matrices themselves: optima, errors and sensitivities."""

    def errors(make, participation=None):
        strategy = make()
        found = [strategy.mean_error(), strategy.max_error()]
        if participation is not None:
            sensitivity = strategy.sensitivity(participation)
            found.append(sensitivity.value)
        return [(float(each), float(each)) for each in found]

    epochs = matrix.FixedEpochs(4, 16)
    apart = matrix.LeastSeparation(8, at_most=4)
    makers = {
        "lambda": lambda: matrix.LambdaCGD.optimised(64),
        "banded": lambda: matrix.Banded.optimised(64, 4),
        "bifr": lambda: matrix.BIFR.optimised(64, 3),
        "blt": lambda: matrix.BLT.optimised(64, 3),
        "blt, max": lambda: matrix.BLT.optimised(64, 3, error="max"),
        "blt, epochs": lambda: matrix.BLT.optimised(64, 2, participation=epochs),
        "dense": lambda: matrix.Dense.optimised(64),
        "dense, epochs": lambda: matrix.Dense.optimised(64, participation=epochs),
        "dense, apart": lambda: matrix.Dense.optimised(32, participation=apart),
        "root": lambda: matrix.SquareRoot(64),
        "tree": lambda: matrix.Tree(64),
    }
    found = {}
    for name, make in makers.items():
        for schema, text in ((None, "single"), (epochs, "epochs"), (apart, "apart")):
            if schema is apart and "dense" in name:
                continue
            found[f"matrix {name}, {text}"] = partial(errors, make, schema)
    return found


def calibration_questions():
    """Return questions for the noise, the rate and the steps that a target needs."""

    def sgd(sigma, q=0.01, steps=500):
        return events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=steps)

    target = {"epsilon": 2.0, "delta": 1e-6}

    def grid():
        found = calibrate.noise_multipliers(sgd, epsilon=[0.5, 1.0, 2.0, 4.0], delta=1e-6)
        return [(float(each), float(each)) for each in found]

    return {
        "multiplier": lambda: value(calibrate.noise_multiplier(sgd, **target)),
        "multiplier, laplace": lambda: value(
            calibrate.noise_multiplier(
                lambda s: steps_of(events.LaplaceDpEvent(s), 10), **target
            )
        ),
        "multiplier, tiny": lambda: value(
            calibrate.noise_multiplier(sgd, epsilon=1e-4, delta=1e-12)
        ),
        "multipliers": grid,
        "rate": lambda: value(
            calibrate.sampling_probability(lambda q: sgd(1.0, q), **target)
        ),
        "steps": lambda: value(calibrate.steps(lambda t: sgd(1.0, 0.01, t), **target)),
        "batch": lambda: value(
            calibrate.batch_size(lambda b: sgd(1.0, b / 10_000), n=10_000, **target)
        ),
        "risk": lambda: value(
            calibrate.noise_multiplier_for_risk(sgd, accountants.advantage, at_most=0.2)
        ),
    }  # fmt: skip


def questions():
    """Return all questions by name."""
    found = {}
    for index in range(SWEPT):
        found[f"sweep {index}"] = partial(swept, sweep.draw, index)
    for index in range(SWEPT_WITH_LITTLE_NOISE):
        found[f"sweep with little noise {index}"] = partial(
            swept, sweep.draw_with_little_noise, index
        )
    for more in (
        event_questions,
        curve_questions,
        certificate_questions,
        correlated_questions,
        matrix_questions,
        calibration_questions,
        parts.questions,
        plans.questions,
    ):
        found.update(more())
    return found


def main():
    """Ask every question, or those whose name holds a word that is given."""
    words = sys.argv[1:] or [""]
    for name, ask in questions().items():
        if any(word in name for word in words):
            start = time.process_time()
            try:
                found = ask()
            except Exception as error:
                found = f"{type(error).__name__}: {error}"[:150]
            print(f"{name:45} {time.process_time() - start:8.3f} {found}", flush=True)


if __name__ == "__main__":
    main()
