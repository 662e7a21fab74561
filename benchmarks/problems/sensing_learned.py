"""From how many measurements on is a low-rank matrix learned in private? Beside walks without data.

    python -m benchmarks.problems.sensing_learned [--sizes N ...] [--seeds N]

A 20 x 20 matrix of rank 3 from n measurements at (2, 1e-6), where the dual number of each record is
put in place locally and not released. DP-RGDA takes the steps of the paper's experiment (400, of
length 0.2, half of the records in fresh gradients and an eighth in differences, all clipped to 1),
and noisy gradient descent 100 steps. Beside each stands the same walk without data.
"""

import argparse
import warnings

import numpy as np

from benchmarks.problems.sensing import MatrixSensing
from dpcal import calibrate, optim

DIMENSION, DELTA, EPSILON = 120, 1e-6, 2.0


def plans(n):
    """Return a plan for each optimizer; nothing rests on the smoothness that is given."""
    target = {"n": n, "epsilon": EPSILON, "delta": DELTA, "neighboring_relation": "replace-one"}
    rgda = calibrate.dp_rgda(
        calibrate.Constants(lipschitz=1.0, smoothness=50.0, strong_concavity=1.0),
        dimensions=(DIMENSION, 0),
        steps=400,
        period=10,
        refresh_size=n // 2,
        batch_size=n // 8,
        difference_norm=1.0,
        accuracy=1e-6,
        step_length=0.2,
        value_smoothness=1.0,
        escape_steps=10,
        split="common",
        **target,
    )
    descent = calibrate.noisy_gd(
        calibrate.Constants(lipschitz=0.5, smoothness=1.0),
        dimension=DIMENSION,
        steps=100,
        learning_rate=10.0,
        max_norm=0.5,
        **target,
    )
    return {"DP-RGDA": rgda, "noisy_gd": descent}


def median_and_range(values):
    """Return text for a list of numbers."""
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def learned(n, seeds):
    """Return (label, losses, gradient norms) of the start and of each run."""
    value = MatrixSensing.generated(n=n, shape=(20, 20), rank=3, seed=0).value
    start = 0.1 * np.random.default_rng(0).standard_normal(DIMENSION)
    without = optim.FromGradients(
        lambda w, rows: np.zeros((len(rows), DIMENSION)), n=n, dimension=DIMENSION
    )
    ends = {"the start": [start]}
    for name, plan in plans(n).items():
        for label, objective in ((name, value), (f"{name}, without data", without)):
            runs = (optim.run(objective, plan, seed=s, initial=start) for s in range(seeds))
            ends[label] = [getattr(run, "x", run.w) for run in runs]
    return [
        (
            label,
            [value.loss(w) for w in points],
            [np.linalg.norm(value.gradient(w)) for w in points],
        )
        for label, points in ends.items()
    ]


def main():
    parser = argparse.ArgumentParser(description="Private sensing with enough measurements.")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 4_000, 16_000])
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for n in options.sizes:
        for label, losses, norms in learned(n, options.seeds):
            print(f"n {n} | {label} | {median_and_range(losses)} | {median_and_range(norms)}")


if __name__ == "__main__":
    main()
