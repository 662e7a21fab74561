"""What does the AUC problem learn from digits, with clip and steps that its constants give?

``python -m benchmarks digits_auc [--seeds 20]`` trains on 1,437 digits, 8 against the rest (a tenth
is positive), by ``dp_sgda`` on the AUC problem and by ``dpsgd`` on the logistic loss, and prints
mean and deviation of the AUC on 360 held-out digits, at epsilon 0.5, 1 and 4, delta 1e-5,
replace-one. Nothing is chosen on the table: the clip of the first is the bound on a gradient that
:meth:`AUCMaximization.constants_for` gives for rows of norm 1, steps and rates are those of the
builder; the clip of the second is the norm of rows.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_digits

from dpcal import calibrate, optim
from dpcal.optim import minimax


def scores(epsilon, seed):
    """Return the held-out AUC of both."""
    X, y = load_digits(return_X_y=True)
    X, y = X / 16 - 0.5, y == 8
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    train = np.random.default_rng(0).permutation(len(y)) < 1437
    sizes = {"n": 1437, "epsilon": epsilon, "delta": 1e-5, "neighboring_relation": "replace-one"}
    problem = minimax.AUCMaximization(X[train], y[train], positive_share=0.1, classes=[False, True])
    constants = minimax.AUCMaximization.constants_for(row_norm=1.0, positive_share=0.1)
    plan = calibrate.dp_sgda(
        constants, dimensions=problem.dimensions, max_norm=constants.lipschitz, **sizes
    )
    found = optim.dp_sgda(problem, plan, seed=seed, output="tail")
    plain = optim.dpsgd(
        optim.Logistic(X[train], y[train], classes=[False, True]),
        calibrate.dpsgd(batch_size=72, epochs=20, max_norm=2**0.5, **sizes),
        seed=seed,
    )
    held = X[~train], y[~train]
    return problem.auc(*held, found.x), problem.auc(*held, plain.w)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for epsilon in (0.5, 1.0, 4.0):
        values = np.array([scores(epsilon, seed) for seed in range(given.seeds)])
        cells = zip(
            ("dp_sgda", "dpsgd"), values.mean(axis=0), values.std(axis=0, ddof=1), strict=True
        )
        told = " | ".join(f"{name} {mean:.3f} (sd {spread:.3f})" for name, mean, spread in cells)
        print(f"epsilon {epsilon:g} | {told}", flush=True)


if __name__ == "__main__":
    main()
