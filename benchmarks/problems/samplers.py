"""Which batches are best? DP-SGD on three kinds of batches at one price, beside correlated noise.

    python -m benchmarks.problems.samplers [--runs 20]

Three of the tables of ``benchmarks.optimizers``, at two epsilons and delta 1e-5, for a record that
is blanked. Each way takes the same steps on batches of the same mean size, at the best of seven
learning rates, and returns the better of its last iterate and of a mean with growing weights: what
is compared is noise and batches, and no default. Printed are the noise of a sum, and the mean
excess of the loss over its optimum with its standard error. Correlated noise is priced exactly with
bands, by what is proved on Poisson samples, and by draws in bins. Ten minutes of CPU.
"""

import argparse
import time

import numpy as np

from benchmarks.optimizers import cancer, digits, housing
from dpcal import calibrate, optim
from dpcal.accountants.matrix import Banded, LambdaCGD
from dpcal.optim.first_order.dpsgd import regret_rate

# Of each table: batches of an epoch, and epochs.
SIZES = ((cancer, 10, 20), (digits, 20, 20), (housing, 50, 10))
EPSILONS = (1.0, 4.0)
TARGET = {"delta": 1e-5, "neighboring_relation": "replace-special"}
RATES = 2.0 ** np.arange(-3, 4)
BANDS = 4


def independent(sampler):
    def plan(n, batch_size, epochs, epsilon):
        return calibrate.dpsgd(
            n=n, batch_size=batch_size, epochs=epochs, epsilon=epsilon, sampler=sampler, **TARGET
        )

    return plan


def correlated(make, sampler, **options):
    def plan(n, batch_size, epochs, epsilon):
        batches = -(-n // batch_size)
        strategy = make(batches * epochs)
        bins = {"separation": batches} if sampler == "balls-in-bins" else {}
        return calibrate.correlated_dpsgd(
            strategy,
            n=n,
            batch_size=batch_size,
            epsilon=epsilon,
            sampler=sampler,
            **bins,
            **options,
            **TARGET,
        )

    return plan


WAYS = {
    "Poisson": independent("poisson"),
    "random allocation": independent("random-allocation"),
    "shuffled epochs": independent("shuffled-epochs"),
    "lambda-CGD 0.5, Poisson": correlated(
        lambda steps: LambdaCGD(steps, 0.5), "poisson", statistics=False
    ),
    "4 bands, cyclic Poisson": correlated(
        lambda steps: Banded.optimised(steps, BANDS), "cyclic-poisson", statistics=False
    ),
    "lambda-CGD 0.5, bins": correlated(
        lambda steps: LambdaCGD(steps, 0.5), "balls-in-bins", seed=1
    ),
}


def excess(objective, plan, rate, seed, best):
    """Return the excess loss of the last iterate and of a mean with growing weights."""
    mean, count = np.zeros(objective.dimension), 0

    def follow(progress):
        nonlocal mean, count
        count += 1
        mean = mean + (progress.w - mean) * 2 / (count + 1)

    how = {"seed": seed, "noise": "gaussian", "callback": follow, "callback_every": 1}
    with optim.replaying():
        w = optim.run(objective, plan, learning_rate=rate, **how).w
    return [objective.loss(w) - best, objective.loss(mean) - best]


def best_in_hindsight(objective, plan, runs):
    """Return mean and standard error at the best rate and output."""
    best = objective.loss(objective.minimize())
    guess = regret_rate(dimension=objective.dimension, query=plan.query("gradient"), n=plan.n)
    found = [
        np.array([excess(objective, plan, guess * each, seed, best) for seed in range(runs)])
        for each in RATES
    ]
    columns = [rows[:, output] for rows in found for output in (0, 1)]
    chosen = min(columns, key=np.mean)
    return float(chosen.mean()), float(chosen.std(ddof=1) / np.sqrt(runs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    for make, batches, epochs in SIZES:
        table = make()
        objective = table.objective()
        size = -(-objective.n // batches)
        for epsilon in EPSILONS:
            print(f"{table.name}, n {objective.n}, batch {size}, {epochs} epochs, eps {epsilon:g}")
            for name, build in WAYS.items():
                start = time.process_time()
                plan = build(objective.n, size, epochs, epsilon)
                solved = time.process_time() - start
                mean, error = best_in_hindsight(objective, plan, runs)
                noise = plan.query("gradient").noise_multiplier
                print(
                    f"  {name:26} noise {noise:7.4f}  excess {1e3 * mean:8.4f} +- "
                    f"{1e3 * error:.4f} e-3  ({solved:.1f} s to plan)",
                    flush=True,
                )


if __name__ == "__main__":
    main()
