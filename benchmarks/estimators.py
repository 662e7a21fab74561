"""Scores of private estimators next to other packages, over epsilon, on six tables.

``python -m benchmarks estimators [--only WORD]`` fits on six tables. Four come with scikit-learn
(breast cancer, digits, wine, diabetes). Two are made here from fixed seeds, with the columns and
the noise of house prices ("houses": 20,000 records, 8 columns, as California's) and of a census
("census": 20,000 records, 14 columns, six of them of categories, as Adult's).

Bounds of columns and targets are the extremes of the shipped tables, taken as published by their
makers; for the made tables they are known by construction. Every method gets the same bounds.
Settings are the defaults of each package and cost no epsilon. "dpcal, tuned" is a private search
over settings: all of its trials are part of the same epsilon. Delta is 1e-6. Packages that are not
installed are left out.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy.optimize import brentq
from sklearn import datasets, linear_model as exact, preprocessing
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline

from benchmarks.harness import Series, run_studies
from dpcal.accountants import epsilon as epsilon_of, events
from dpcal.estimators import (
    LinearRegression,
    LogisticRegression,
    PrivateSearch,
    Ridge,
    StandardScaler,
)
from dpcal.estimators.queries import single_release

EPSILONS = (0.5, 1.0, 2.0, 4.0)
DELTA = 1e-6
SCALER = 0.25


def houses():
    """Return 20,000 made house prices: skewed columns, a saturating income, capped targets."""
    rng = np.random.default_rng(2024)
    n = 20_000
    # Income, age, rooms, bedrooms, population, occupants, latitude and longitude.
    X = np.column_stack(
        [
            np.clip(rng.gamma(4.0, 1.0, n), 0.5, 15),
            rng.uniform(1, 52, n),
            np.clip(rng.lognormal(1.65, 0.3, n), 1, 20),
            np.clip(rng.lognormal(0.07, 0.12, n), 0.5, 4),
            np.clip(rng.lognormal(7.0, 0.7, n), 3, 12_000),
            np.clip(rng.lognormal(1.05, 0.25, n), 1, 12),
            rng.uniform(32.5, 42, n),
            rng.uniform(-124.4, -114.3, n),
        ]
    )
    price = 0.45 * X[:, 0] + 0.009 * X[:, 1] - 0.25 * (X[:, 6] - 32.5) + 0.02 * X[:, 2]
    y = np.clip(price - 0.1 * (X[:, 7] + 124.4) + 1.2 + 0.65 * rng.standard_normal(n), 0.15, 5.0)
    low = np.array([0.5, 1, 1, 0.5, 3, 1, 32.5, -124.4])
    high = np.array([15, 52, 20, 4, 12_000, 12, 42, -114.3])
    return X, y, (low, high), (0.15, 5.0)


def census():
    """Return 20,000 made census records; about a quarter of them have a high income."""
    rng = np.random.default_rng(1994)
    n = 20_000
    age, school = rng.uniform(17, 90, n), np.clip(np.round(rng.normal(10, 2.6, n)), 1, 16)
    hours = np.clip(rng.normal(40, 12, n), 1, 99)
    gain = np.where(rng.random(n) < 0.08, np.clip(rng.lognormal(8.5, 1, n), 0, 99_999), 0.0)
    loss = np.where(rng.random(n) < 0.05, rng.uniform(500, 4_000, n), 0.0)
    kinds = rng.random((n, 6)) < np.array([0.33, 0.45, 0.67, 0.85, 0.75, 0.9])
    rest = rng.standard_normal((n, 3)).clip(-4, 4)
    score = 0.35 * (school - 10) + 0.03 * (hours - 40) - ((age - 48) / 22) ** 2 + 1.8 * kinds[:, 1]
    score += 0.8 * kinds[:, 2] + 0.0004 * gain - 2.2 + rng.logistic(size=n)
    X = np.column_stack([age, school, hours, gain, loss, kinds, rest])
    low = np.array([17, 1, 1, 0, 0, *[0] * 6, *[-4] * 3], dtype=float)
    high = np.array([90, 16, 99, 99_999, 4_000, *[1] * 6, *[4] * 3], dtype=float)
    return X, (score > 0).astype(int), (low, high), None


def shipped(load, *, targets=False):
    """Return a function that returns a table of scikit-learn, with its own extremes as bounds."""

    def made():
        X, y = load(return_X_y=True)
        low, high = X.min(axis=0), X.max(axis=0)
        high = np.where(high > low, high, low + 1)
        return X, y, (low, high), (float(y.min()), float(y.max())) if targets else None

    return made


TABLES: dict[str, Callable] = {
    "breast cancer": shipped(datasets.load_breast_cancer),
    "wine": shipped(datasets.load_wine),
    "digits": shipped(datasets.load_digits),
    "census (made)": census,
    "diabetes": shipped(datasets.load_diabetes, targets=True),
    "houses (made)": houses,
}


def by_dpcal(epsilon, bounds, targets, classes):
    if targets is not None:
        return LinearRegression(epsilon=epsilon, delta=DELTA, bounds=bounds, target_bounds=targets)
    return make_pipeline(
        StandardScaler(epsilon=SCALER * epsilon, delta=DELTA / 2, bounds=bounds),
        LogisticRegression(epsilon=(1 - SCALER) * epsilon, delta=DELTA / 2, classes=classes),
    )


GRIDS = (
    {"logisticregression__steps": [20, 60, 120], "logisticregression__l2": [0.0, 0.01]},
    {"alpha": [0.1, 1.0, 10.0, 100.0]},
)
TRIALS = 6


@lru_cache
def _scale(epsilon, classifies):
    """Return the epsilon of one fit with which a whole search costs this epsilon at most."""

    def excess(scale):
        parts = [(scale, DELTA), (0.2 * scale, DELTA)]
        if classifies:
            share = 1 - SCALER
            parts = [(part * scale, DELTA / 2) for part in (SCALER, share, 0.2 * share)]
        noise = sum(single_release(*part, [1.0])[0] ** -2 for part in parts) ** -0.5
        search = events.RepeatAndSelectDpEvent(events.GaussianDpEvent(noise), TRIALS, 0.0)
        return epsilon_of(search, delta=DELTA).upper - epsilon * (1 - 1e-4)

    return brentq(excess, epsilon / 9, epsilon * 1.2, xtol=1e-5 * epsilon)


def by_dpcal_tuned(epsilon, bounds, targets, classes):
    """Return a private search with all trials together at a cost of at most epsilon."""
    scale = _scale(epsilon, targets is None)
    if targets is None:
        return PrivateSearch(by_dpcal(scale, bounds, targets, classes), GRIDS[0], trials=TRIALS)
    ridge = Ridge(epsilon=scale, delta=DELTA, bounds=bounds, target_bounds=targets)
    return PrivateSearch(ridge, GRIDS[1], trials=TRIALS)


def by_diffprivlib(epsilon, bounds, targets, classes):
    from diffprivlib import models

    if targets is not None:
        return models.LinearRegression(epsilon=epsilon, bounds_X=bounds, bounds_y=targets)
    return make_pipeline(
        models.StandardScaler(epsilon=SCALER * epsilon, bounds=bounds),
        models.LogisticRegression(
            epsilon=(1 - SCALER) * epsilon, data_norm=math.sqrt(len(bounds[0]))
        ),
    )


def by_interpret(epsilon, bounds, targets, classes):
    from interpret.privacy import DPExplainableBoostingClassifier, DPExplainableBoostingRegressor

    given = {
        "epsilon": epsilon, "delta": DELTA, "n_jobs": 1,
        "privacy_bounds": np.column_stack(bounds),
    }  # fmt: skip
    if targets is not None:
        return DPExplainableBoostingRegressor(
            privacy_target_min=targets[0], privacy_target_max=targets[1], **given
        )
    return DPExplainableBoostingClassifier(**given) if len(classes) == 2 else None


def without_privacy(epsilon, bounds, targets, classes):
    if targets is not None:
        return exact.LinearRegression()
    return make_pipeline(preprocessing.StandardScaler(), exact.LogisticRegression(max_iter=1_000))


METHODS = {
    "dpcal": (by_dpcal, "dpcal"),
    "dpcal, tuned": (by_dpcal_tuned, "dpcal"),
    "diffprivlib": (by_diffprivlib, "diffprivlib"),
    "DP-EBM": (by_interpret, "interpret"),
    "not private": (without_privacy, "sklearn"),
}


def on_tables():
    """Return a series over epsilon for each table and each method with an installed package."""
    found = []
    for name, made in TABLES.items():
        X, y, bounds, targets = made()
        classes = None if targets is not None else sorted(set(y.tolist()))
        for method, (build, package) in METHODS.items():
            sizes = EPSILONS if package != "sklearn" else (math.inf,)
            installed = importlib.util.find_spec(package) is not None
            if not installed or build(sizes[0], bounds, targets, classes) is None:
                continue

            def run(epsilon, seed, build=build, given=(bounds, targets, classes), X=X, y=y):
                stratify = None if given[1] is not None else y
                split = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=stratify)
                model = build(epsilon, *given).fit(split[0], split[2])
                assert getattr(model, "epsilon_spent_", 0.0) <= epsilon
                return {"score": model.score(split[1], split[3])}

            seeds = 3 if package == "interpret" else 10
            found.append(Series(panel=name, label=method, sizes=sizes, run=run, seeds=seeds))
    return found


def report(found, _):
    """Print means and standard deviations of test scores as a table in Markdown."""
    print("| table | method | " + " | ".join(f"{e:g}" for e in EPSILONS) + " |")
    print("|---" * (2 + len(EPSILONS)) + "|")
    for each, rows in found:
        scores = [[row["score"] for row in rows[epsilon]] for epsilon in each.sizes]
        cells = [f"{np.mean(some):.3f} ± {np.std(some):.3f}" for some in scores]
        print(f"| {each.panel} | {each.label} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    run_studies({"estimators": (on_tables, report)}, "estimators")
