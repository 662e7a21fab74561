"""Scores that follow from two sums are those that follow from the records."""

import math

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from dpcal.report.metrics import BINS, EDGES, GRID, Held, metrics, root_errors

M = 5000
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, 2, M)
SCORES = np.append(
    0.8 * (2 * LABELS - 1)[:-3] + RNG.standard_normal(M - 3), [-math.inf, 0.0, math.inf]
)
PROBABILITY = 1 / (1 + np.exp(-SCORES))


def sums(scores=SCORES, labels=LABELS, noise=0.0, seed=1, scale=0.5):
    rng = np.random.default_rng(seed)
    held = Held(scores, labels, center=0.0, scale=scale)
    first = held.counts().sum(axis=0) + noise * rng.standard_normal(2 * BINS + GRID)
    return first, held.ranks(first).sum(axis=0) + noise * rng.standard_normal(2 * BINS + GRID)


def test_scores_of_sums_are_those_of_records():
    found = metrics(*sums(), ("no", "yes"))
    said = PROBABILITY > 0.5
    assert found["accuracy"] == pytest.approx((said == LABELS).mean())
    assert found["majority_baseline"] == pytest.approx(max(LABELS.mean(), 1 - LABELS.mean()))
    assert found["confusion"]["yes"]["no"] == pytest.approx((LABELS == 1)[~said].sum())
    assert [row["threshold"] for row in found["thresholds"]] == list(EDGES)
    for row in found["thresholds"]:
        above = row["threshold"] < PROBABILITY
        assert row["recall"] == pytest.approx(above[LABELS == 1].mean())
        assert row["false_alarms"] == pytest.approx(above[LABELS == 0].mean())
        assert row["precision"] == pytest.approx(LABELS[above].mean())
    assert sum(row["records"] for row in found["calibration"]) == pytest.approx(M)
    top = found["calibration"][-1]
    assert top["observed"] == pytest.approx(LABELS[top["from"] < PROBABILITY].mean())


@pytest.mark.parametrize("shift", [0.0, -4.0, 3.0])
@pytest.mark.parametrize("scale", [0.2, 1.0, 2.0])
def test_the_area_under_the_curve_is_that_of_another_package(shift, scale):
    told = metrics(*sums(SCORES + shift, scale=scale), ("no", "yes"))["auc"]
    finite = np.clip(SCORES, -99, 99)
    assert told == pytest.approx(roc_auc_score(LABELS, finite), abs=0.01)


def test_scores_that_are_no_numbers_do_no_harm():
    odd = np.where(np.arange(M) % 3 == 0, np.nan, SCORES)
    for center in (np.inf, np.nan):
        held = Held(odd, LABELS, center=center, scale=0.0)
        for rows in (held.counts(), held.ranks(held.counts().sum(axis=0))):
            assert np.isfinite(rows).all()


def test_a_blank_record_adds_nothing_and_no_record_more_than_one():
    held = Held(SCORES, np.where(np.arange(M) % 7 == 0, -1, LABELS), center=0.0, scale=1.0)
    first = held.counts()
    for rows in (first, held.ranks(first.sum(axis=0))):
        assert not rows[::7].any()
        assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-12


def test_standard_errors_hold_the_noise():
    exact = metrics(*sums(), ("no", "yes"))
    noisy = [metrics(*sums(noise=20.0, seed=s), ("no", "yes"), noise=20.0) for s in range(150)]
    errors = {"accuracy": "", "auc": "auc_", "majority_baseline": "majority_"}
    for name, prefix in errors.items():
        spread = np.std([each[name] - exact[name] for each in noisy])
        told = np.mean([each[f"{prefix}standard_error"] for each in noisy])
        # The chance of drawing is in what is told, and not in the spread.
        assert 0.3 * told < spread < 1.1 * told


def test_what_noise_hides_has_no_error_and_persons_have_larger_ones():
    hidden = metrics(*sums(SCORES[:60], LABELS[:60], noise=30.0), ("no", "yes"), noise=30.0)
    assert hidden["auc"] is None
    assert hidden["standard_error"] is None
    one, four = (metrics(*sums(), ("no", "yes"), group=group) for group in (1, 4))
    assert four["standard_error"] == pytest.approx(2 * one["standard_error"])
    none = metrics(np.full(2 * BINS + GRID, -3.0), np.zeros(9), ("no", "yes"), noise=5.0)
    assert 0 <= none["accuracy"] <= 1
    assert none["calibration"] == []


def test_root_errors_are_those_of_records():
    rng = np.random.default_rng(3)
    y, off = rng.uniform(-2, 2, M), 0.3 * rng.standard_normal(M)
    means = np.array([(off**2).mean(), (off**4).mean(), y.mean(), (y**2).mean()])
    found = root_errors(means, M, 3.0)
    assert found["root_mean_squared_error"] == pytest.approx(3 * np.sqrt((off**2).mean()))
    assert found["baseline"] == pytest.approx(3 * y.std())
    wanted = 3 * (off**2).std() / np.sqrt(M) / (2 * np.sqrt((off**2).mean()))
    assert found["root_mean_squared_error_standard_error"] == pytest.approx(wanted)
    hidden = root_errors(means, M, 3.0, noise=1.0)
    assert hidden["root_mean_squared_error_standard_error"] is None
