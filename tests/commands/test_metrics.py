"""Scores that follow from a table of counts are those that follow from the records."""

import numpy as np
import pytest

from dpcal.report.metrics import BINS, cells, metrics


@pytest.fixture(scope="module")
def records():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 5000)
    probability = np.clip(0.5 + 0.2 * (2 * labels - 1) + 0.2 * rng.standard_normal(5000), 0, 1)
    return labels, np.append(probability[:-3], [0.0, 0.5, 1.0])


def counted(labels, probability):
    return np.bincount(cells(labels, probability), minlength=2 * BINS).reshape(2, BINS)


def test_scores_of_counts_are_those_of_records(records):
    labels, probability = records
    found = metrics(counted(*records), ("no", "yes"))
    said = probability > 0.5
    assert found["accuracy"] == pytest.approx((said == labels).mean())
    assert found["majority_baseline"] == pytest.approx(max(labels.mean(), 1 - labels.mean()))
    assert found["confusion"]["yes"]["no"] == (labels == 1)[~said].sum()
    for row in found["thresholds"]:
        above = probability > row["threshold"]
        assert row["recall"] == pytest.approx(above[labels == 1].mean())
        assert row["false_alarms"] == pytest.approx(above[labels == 0].mean())
        assert row["precision"] == pytest.approx((labels == 1)[above].mean())
    assert sum(row["records"] for row in found["calibration"]) == 5000
    top = found["calibration"][-1]
    assert top["observed"] == pytest.approx(labels[probability > 0.9].mean())


def test_auc_is_that_of_another_package(records):
    from sklearn.metrics import roc_auc_score

    labels, probability = records
    found = metrics(counted(*records), ("no", "yes"))["auc"]
    bins = cells(labels, probability) % BINS
    assert found == pytest.approx(roc_auc_score(labels, bins), abs=1e-12)
    assert found == pytest.approx(roc_auc_score(labels, probability), abs=0.01)


def test_the_standard_error_is_that_of_noisy_counts(records):
    rng = np.random.default_rng(1)
    exact = counted(*records)
    noisy = [
        metrics(exact + 20 * rng.standard_normal(exact.shape), ("no", "yes"), noise=20.0)
        for _ in range(400)
    ]
    accuracy = metrics(exact, ("no", "yes"))["accuracy"]
    spread = np.std([each["accuracy"] for each in noisy])
    drawn = accuracy * (1 - accuracy) / 5000
    told = np.mean([each["standard_error"] for each in noisy])
    # The noise of the total is in the quotient, too: the error told is an upper one.
    assert spread < np.sqrt(told**2 - drawn) * 1.1
    assert spread > 0.5 * np.sqrt(told**2 - drawn)


def test_counts_below_zero_do_no_harm():
    counts = np.full((2, BINS), -3.0)
    found = metrics(counts, ("no", "yes"), noise=5.0)
    assert 0 <= found["accuracy"] <= 1
    assert found["auc"] is None
    assert found["calibration"] == []
