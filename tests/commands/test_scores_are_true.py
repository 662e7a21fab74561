"""What a user is told of a model is within two standard errors of the truth, 95 times in 100."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

import dpcal

D = 4
NAMES = [f"x{j}" for j in range(D)]


def drawn(rng, n, slope, start):
    """Return records whose log-odds of class 1 are linear."""
    X = np.clip(rng.standard_normal((n, D)), -3, 3)
    return X, X @ (slope * np.linspace(1, 0.3, D)) + start


def trained(X, y, target, **options):
    columns = {name: {"type": "number", "range": [-3, 3]} for name in NAMES} | {"y": target}
    table = dict(zip(NAMES, X.T, strict=True)) | {"y": y}
    return dpcal.train(table, {"columns": columns}, target="y", delta=1e-6, **options)


def classified(rng, n, start, epsilon):
    """Return what is told of a model of classes, and fresh labels with its probabilities."""
    X, score = drawn(rng, n, 0.8, start)
    y = np.where(rng.random(n) < 1 / (1 + np.exp(-score)), "yes", "no")
    classes = {"type": "class", "categories": ["no", "yes"]}
    found = trained(X, y, classes, epsilon=epsilon, settings={"epochs": 5})
    fresh, score = drawn(rng, 100_000, 0.8, start)
    labels = rng.random(len(score)) < 1 / (1 + np.exp(-score))
    given = found.model.predict_proba(dict(zip(NAMES, fresh.T, strict=True)))[:, 1]
    return found.document["evaluation"], labels, given


def apart(told, error, truth):
    """Return by how many standard errors a number is off; None for one that is not told."""
    return None if told is None or error is None or error > abs(told) else (told - truth) / error


def of_classes(rng, *settings):
    told, labels, given = classified(rng, *settings)
    off = [
        apart(told["auc"], told["auc_standard_error"], roc_auc_score(labels, given)),
        apart(told["accuracy"], told["standard_error"], ((given > 0.5) == labels).mean()),
    ]
    for row in told["thresholds"]:
        said = given > row["threshold"]
        truths = {"recall": said[labels].mean(), "false_alarms": said[~labels].mean()}
        if said.sum() > 1000:
            truths["precision"] = labels[said].mean()
        off += [apart(row[n], row[f"{n}_standard_error"], truth) for n, truth in truths.items()]
    for row in told["calibration"]:
        inside = (given > row["from"]) & (given <= row["to"])
        if inside.sum() > 1000:
            off.append(apart(row["observed"], row["standard_error"], labels[inside].mean()))
    return off


def of_numbers(rng, n, epsilon):
    X, score = drawn(rng, n, 1.0, 0.0)
    y = np.clip(score + rng.standard_normal(n), -9, 9)
    found = trained(X, y, {"type": "number", "range": [-9, 9]}, loss="squared", epsilon=epsilon)
    fresh, score = drawn(rng, 100_000, 1.0, 0.0)
    y = np.clip(score + rng.standard_normal(len(score)), -9, 9)
    told = found.document["evaluation"]
    given = found.model.predict(dict(zip(NAMES, fresh.T, strict=True)))
    truths = {"root_mean_squared_error": ((given - y) ** 2).mean() ** 0.5, "baseline": y.std()}
    return [apart(told[n], told[f"{n}_standard_error"], truth) for n, truth in truths.items()]


SIZES = [(n, epsilon) for n in (1500, 6000) for epsilon in (0.5, 2.0)]
TABLES = [
    *((of_classes, n, start, epsilon) for n, epsilon in SIZES for start in (0, -1, -2.5, -4)),
    *((of_numbers, *size) for size in SIZES),
]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("runs", "share"), [(len(TABLES), 0.93), pytest.param(100, 0.95, marks=pytest.mark.study)]
)
def test_numbers_are_within_two_errors_of_the_truth(runs, share):
    told = []
    for seed in range(runs):
        make, *settings = TABLES[seed % len(TABLES)]
        found = make(np.random.default_rng(seed), *settings)
        told += [each for each in found if each is not None]
    assert len(told) > 5 * runs
    assert np.mean(np.abs(told) <= 2) > share


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_the_area_and_the_share_of_a_rare_class_are_near_the_truth():
    """One in ten, of 3,000 held out: ten equal bins of probability told 0.54 for 0.7."""
    off = []
    for seed in range(6):
        told, labels, given = classified(np.random.default_rng(seed), 15_000, -2.5, 1.0)
        off.append(told["auc"] - roc_auc_score(labels, given))
        assert told["auc_standard_error"] < 0.04
        assert told["warnings"] == []
        assert 0.75 < given.mean() / labels.mean() < 1.3
    assert np.sqrt(np.mean(np.square(off))) < 0.06
    assert abs(np.mean(off)) < 0.04
