"""What would tuning bring the demonstration? Cross-validation on its training records alone.

    python -m benchmarks.demo_settings

Prints the mean held-out accuracy over five folds of the 455 training records, twenty seeds each,
for each target epsilon and over all of them, and what a private choice of the best row would cost.
The demonstration's sizes are functions of n, and its steps the defaults of ``optim.dpsgd``,
whatever is printed here: this study looks at records without noise. Takes some minutes.
"""

import itertools

import numpy as np

from dpcal import calibrate, optim
from dpcal.commands.training.breast_cancer import breast_cancer
from dpcal.commands.training.demonstration import CANDIDATES, DELTA, EPSILONS, RELATION
from dpcal.commands.training.plans import default_sizes
from dpcal.commands.training.task import AVERAGING

BATCH_SIZES = (64, 128)
EPOCHS = (10.0, 20.0, 40.0, 80.0)
MAX_NORMS = (0.25, 1.0)
FOLDS, SEEDS = 5, 20


def folds():
    """Return (objective on the other folds, records and labels of the fold) for each fold."""
    task = breast_cancer()
    X, y = task.X_train, task.y_train
    for held_out in np.array_split(np.random.default_rng(1).permutation(len(y)), FOLDS):
        others = np.setdiff1d(np.arange(len(y)), held_out)
        yield (
            optim.Logistic(X[others], y[others], l2=task.l2, classes_from_data=True),
            X[held_out],
            y[held_out],
        )


def accuracy(parts, *, epsilon, **settings):
    scores = []
    for objective, X, y in parts:
        plan = calibrate.dpsgd(n=objective.n, epsilon=epsilon, delta=DELTA, **settings)
        for seed in range(SEEDS):
            w = optim.dpsgd(objective, plan, seed=seed, output=AVERAGING).w
            scores.append((objective.predict(X, w) == y).mean())
    return float(np.mean(scores))


def main():
    parts = list(folds())
    heads = "".join(f"{f'eps {epsilon:g}':>9}" for epsilon in EPSILONS)
    print(f"{'batch':>6}{'epochs':>8}{'norm':>6}{heads}{'mean':>9}")
    for batch_size, epochs, max_norm in itertools.product(BATCH_SIZES, EPOCHS, MAX_NORMS):
        settings = {"batch_size": batch_size, "epochs": epochs, "max_norm": max_norm}
        row = [accuracy(parts, epsilon=epsilon, **settings) for epsilon in EPSILONS]
        cells = "".join(f"{value:>9.2%}" for value in [*row, np.mean(row)])
        print(f"{batch_size:>6}{epochs:>8g}{max_norm:>6}{cells}", flush=True)
    for epsilon in EPSILONS:
        plan = calibrate.dpsgd(
            n=parts[0][0].n,
            epsilon=epsilon,
            delta=DELTA,
            neighboring_relation=RELATION,
            **default_sizes(parts[0][0].n, {}),
        )
        price = calibrate.tuning(
            plan.event, candidates=CANDIDATES, delta=DELTA, neighboring_relation=RELATION
        )
        print(f"the best of {CANDIDATES} at epsilon {epsilon:g}: epsilon {price:.3f}")


if __name__ == "__main__":
    # Runs are timed again, and compared, at equal seeds.
    from dpcal.optim import replaying

    with replaying():
        main()
