"""Do curves pay? Linear models on splines, bins and random features, beside DP-EBM.

``python -m benchmarks curved [--seeds 5] [--tables NAME ...]`` prints the area under the ROC curve
(R^2 where the target is a number) on held-out quarters of eight tables. Two are curved, and made
here: in "bumps" a wave, a square and a kink decide, in "bells" the length of three normal columns.
A line finds nearly nothing in either. The others are those of ``benchmarks.estimators``. Every
method is given the same bounds of columns, and has its own defaults. DP-EBM (interpret-core) is
left out where it is not installed. Delta is 1e-6.
"""

import argparse
import importlib.util
import math
import warnings

import numpy as np
from sklearn.metrics import r2_score, roc_auc_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.estimators import DELTA, TABLES, by_dpcal, by_interpret, without_privacy
from dpcal.estimators import (
    Bins,
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    RandomFeatures,
    Splines,
)

EPSILONS = (0.5, 1.0, 4.0)
ROWS = 12_000


def bumps():
    """Return records in [-3, 3]^6, of which a wave, a square and a kink decide."""
    rng = np.random.default_rng(7)
    X = rng.uniform(-3, 3, (ROWS, 6))
    score = 4.5 * np.sin(2 * X[:, 0]) + 1.6 * (X[:, 1] ** 2 - 3) - 2.4 * np.abs(X[:, 2])
    score += 2.4 + 0.5 * X[:, 3]
    y = (score + rng.logistic(size=ROWS) > 0).astype(int)
    return X, y, (np.full(6, -3.0), np.full(6, 3.0)), None


def bells():
    """Return records in [-5, 5]^8, of which the length of three columns decides."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((ROWS, 8)).clip(-5, 5)
    score = 4 * ((X[:, :3] ** 2).sum(axis=1) - 3.6) + 0.6 * X[:, 3]
    y = (score + rng.logistic(size=ROWS) > 0).astype(int)
    return X, y, (np.full(8, -5.0), np.full(8, 5.0)), None


CURVED = {"bumps (made)": bumps, "bells (made)": bells}


def on(basis):
    """Return a function that makes a linear model on a basis."""

    def made(epsilon, bounds, targets, classes):
        first = basis(bounds)
        if targets is None:
            return make_pipeline(
                first, LogisticRegression(epsilon=epsilon, delta=DELTA, classes=classes)
            )
        ends = len(first.fit([bounds[0]]).get_feature_names_out()) ** 0.5
        last = LinearRegression(
            epsilon=epsilon, delta=DELTA, bounds=(-ends, ends), row_norm=1.0, target_bounds=targets
        )
        return make_pipeline(first, last)

    return made


def chosen(epsilon, bounds, targets, classes):
    """Return a private search for the basis, a line among them, paid out of the same epsilon."""
    if targets is not None:
        return None
    bases = [
        Splines(bounds=bounds, n_knots=2),
        Splines(bounds=bounds),
        RandomFeatures(bounds=bounds),
    ]
    start = on(lambda bounds: bases[0])(epsilon, bounds, targets, classes)
    names = Pipeline([("basis", start[0]), ("model", start[1])])
    given = {"epsilon": epsilon, "delta": DELTA, "trials": 12, "shape": math.inf}
    return PrivateSearch(names, {"basis": bases}, **given)


METHODS = {
    "linear": (by_dpcal, "dpcal"),
    "splines": (on(lambda bounds: Splines(bounds=bounds)), "dpcal"),
    "bins": (on(lambda bounds: Bins(bounds=bounds)), "dpcal"),
    "random": (on(lambda bounds: RandomFeatures(bounds=bounds)), "dpcal"),
    "chosen": (chosen, "dpcal"),
    "DP-EBM": (by_interpret, "interpret"),
    "linear, not private": (without_privacy, "sklearn"),
}


def score(model, X, y):
    """Return the area under the ROC curve, of several classes one against the rest; or R^2."""
    if not hasattr(model, "predict_proba"):
        return r2_score(y, model.predict(X))
    shares = model.predict_proba(X)
    return roc_auc_score(y, shares[:, 1] if shares.shape[1] == 2 else shares, multi_class="ovr")


def main(seeds, names):
    print(f"{'table':16} {'method':20}" + "".join(f" {epsilon:>14}" for epsilon in EPSILONS))
    for name, table in (CURVED | TABLES).items():
        if names and name.split(" (")[0] not in names:
            continue
        X, y, bounds, targets = table()
        if name == "digits":
            y = (y >= 5).astype(int)
        classes = None if targets else np.unique(y).tolist()
        for method, (make, package) in METHODS.items():
            if importlib.util.find_spec(package) is None:
                continue
            cells = []
            for epsilon in EPSILONS:
                model, found = make(epsilon, bounds, targets, classes), []
                if model is None:
                    continue
                for seed in range(seeds):
                    parts = train_test_split(X, y, test_size=0.25, random_state=seed)
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        model.fit(parts[0], parts[2])
                        found.append(score(model, parts[1], parts[3]))
                cells.append(f" {np.mean(found):7.3f} ({np.std(found):.3f})")
            if cells:
                print(f"{name:16} {method:20}" + "".join(cells), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--tables", nargs="*", default=())
    options = parser.parse_args()
    main(options.seeds, options.tables)
