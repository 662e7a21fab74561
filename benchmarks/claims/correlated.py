"""Do claims about correlated noise hold? Coverage, an attack, and check runs with other seeds.

    python -m benchmarks.claims.correlated [--coverage N] [--attack DRAWS] [--runs]

``--coverage``: N calibrations of two rounds, each with fresh draws, beside delta by quadrature: how
often the claim is false, and how often the bound of its draws, without the failure probability that
is added to it, is below delta.

``--attack``: noise for epsilon 4 and delta 1e-6 over 2000 rounds, Poisson batches with probability
0.01. Whoever sees the release, knows C and computes the exact likelihood ratio, says "present"
above a threshold; the best lower bound on epsilon over all thresholds is printed, for each strategy
at its calibrated multiplier and at half of it.

``--runs``: epsilons and deltas of other implementations, with three other seeds.
"""

import argparse
import itertools
import math
import time

import numpy as np

RATE, STEPS = 0.01, 2000
# Multipliers that draws certify for epsilon 4 and delta 1e-6 at failure probability 1e-10.
CALIBRATED = {"lambda-CGD, decay 0.5": 1.3330, "banded, 4 bands": 2.3042}


def delta_of_two_rounds(C, sigma, rate, epsilon):
    """Larger delta of both directions, by the trapezoid rule on the plane."""
    x = np.linspace(-8, 10, 361) * sigma
    first, second = np.meshgrid(x, x, indexing="ij")
    q = np.exp(-(first**2 + second**2) / (2 * sigma**2)) / (2 * np.pi * sigma**2)
    ratio = 0.0
    for y in itertools.product((0.0, 1.0), repeat=2):
        m = C @ np.array(y)
        chance = rate ** sum(y) * (1 - rate) ** (2 - sum(y))
        ratio = ratio + chance * np.exp((m[0] * first + m[1] * second - 0.5 * m @ m) / sigma**2)
    area, level = (x[1] - x[0]) ** 2, math.exp(epsilon)
    remove = (q * np.maximum(ratio - level, 0)).sum() * area
    return max(float(remove), float((q * np.maximum(1 - level * ratio, 0)).sum() * area))


def coverage(count):
    from dpcal.accountants import correlated
    from dpcal.accountants.correlated.table import WITH_CONFIDENCE
    from dpcal.accountants.matrix import LambdaCGD
    from dpcal.calibrate.correlated import noise_multiplier

    # Draws answer here, with less noise than is proved; a calibration takes about a second.
    run, rate, epsilon, delta, failure = LambdaCGD(2, 0.5), 0.3, 1.0, 1e-2, 2e-3
    false, below, drawn, ratios, start = 0, 0, 0, [], time.process_time()
    for seed in range(count):
        found = noise_multiplier(
            run,
            correlated.Poisson(rate),
            epsilon=epsilon,
            delta=delta,
            draws=2048,
            failure_probability=failure,
            seed=seed,
        )
        truth = delta_of_two_rounds(run.matrix(), found.noise_multiplier, rate, epsilon)
        drawn += found.label == WITH_CONFIDENCE
        false += truth > delta
        below += found.confirmation - failure < truth
        ratios.append(truth / delta)
    print(
        f"{count} calibrations, {drawn} by draws, failure probability {failure}: {false} false "
        f"claims, {below} bounds of draws alone below delta; true delta over the target "
        f"{np.mean(ratios):.3f} (at most {max(ratios):.3f}); {time.process_time() - start:.0f} s"
    )


def measured_epsilon(present, absent, delta):
    """Best lower bound on epsilon over thresholds, each of whose rates may fail with 1e-6."""
    from scipy.stats import beta

    best = 0.0
    for level in np.quantile(present, np.linspace(0.02, 0.999, 80)):
        hits, alarms = (present > level).sum(), (absent > level).sum()
        low = beta.ppf(1e-6, hits, len(present) - hits + 1)
        high = beta.ppf(1 - 1e-6, alarms + 1, len(absent) - alarms)
        best = max(best, math.log(max(low - delta, 1e-300) / high))
    return best


def attack(draws):
    from dpcal.accountants import correlated
    from dpcal.accountants.correlated.price import Options, Question
    from dpcal.accountants.matrix import Banded, LambdaCGD
    from dpcal.optim import NoiseStream

    runs = zip(CALIBRATED, (LambdaCGD(STEPS, 0.5), Banded.optimised(STEPS, 4)), strict=True)
    for (name, run), part in itertools.product(runs, (1.0, 0.5)):
        sigma, start = part * CALIBRATED[name], time.process_time()
        question = Question.of(run, correlated.Poisson(RATE), sigma, Options(seed=1))
        rng, found = np.random.default_rng(2), []
        for seed in (3, 4):
            stream = NoiseStream(run, dimension=draws, seed=seed)
            released = sigma * np.array([next(stream) for _ in range(STEPS)])
            if seed == 3:
                released += rng.random(released.shape) < RATE
            parts = [released[:, k : k + 1000] for k in range(0, draws, 1000)]
            means, fields = question.mechanism.means, question.mechanism.fields
            found.append(
                np.concatenate([question.engine.log_ratio(fields(means(each))) for each in parts])
            )
        print(
            f"{name}, noise multiplier {sigma:.4f}: the attack shows epsilon >= "
            f"{measured_epsilon(*found, 1e-6):.3f}; {time.process_time() - start:.0f} s",
            flush=True,
        )


def check_runs():
    from dpcal.accountants import correlated
    from dpcal.accountants.correlated.draws.montecarlo import simulate
    from dpcal.accountants.correlated.draws.tilted import Tilted
    from dpcal.accountants.correlated.price import Options, Question
    from dpcal.accountants.matrix import Banded, LambdaCGD

    half = math.sqrt(0.75)
    for run, sigma, epsilon, order, expected, draws in (
        (LambdaCGD(1000, 0.5), 2 / half, 1.6, 11, 9.95e-9, 40_960),
        (LambdaCGD(2000, 0.5), 1.155 / half, 4.0, 4, 6.1e-7, 40_960),
        (Banded.optimised(2000, 4), 2.638, 4.0, 5, 5.6e-9, 12_288),
        (LambdaCGD(1000, 0.5), 2 / half, 1.25, 11, 2.0e-6, 12_288),
    ):
        question = Question.of(run, correlated.Poisson(RATE), sigma, Options(seed=1))
        tilted = Tilted(question.engine, question.joining, order)
        for seed in (11, 12, 13):
            start = time.process_time()
            at = simulate(tilted, draws=draws, seed=seed).at(epsilon, failure_probability=1e-10)
            print(
                f"{run!r:.40} sigma {sigma:.4f} epsilon {epsilon} order {order} seed {seed}: range "
                f"{tilted.largest(epsilon):.3g}, delta {at.mean:.3g} +- {at.standard_error:.1g} "
                f"(other: {expected:.3g}), certified {at.upper:.3g}, {draws} draws, "
                f"{time.process_time() - start:.1f} s",
                flush=True,
            )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--coverage", type=int, metavar="N", help="calibrations (default: 300)")
    parser.add_argument("--attack", type=int, metavar="DRAWS", help="draws (default: 10,000)")
    parser.add_argument("--runs", action="store_true")
    options = parser.parse_args()
    everything = not (options.coverage or options.attack or options.runs)
    if options.coverage or everything:
        coverage(options.coverage or 300)
    if options.attack or everything:
        attack(options.attack or 10_000)
    if options.runs or everything:
        check_runs()


if __name__ == "__main__":
    main()
