"""Where a person has several rows, claim, price, budget and scores are about the person."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

from dpcal import budget, report
from dpcal.accountants import epsilon
from dpcal.errors import UnsupportedEvent
from dpcal.estimators import LogisticRegression, PrivateSearch, noisy_accuracy, split_budget
from tests.estimators._models import made

RNG = np.random.default_rng(4)
WHOSE = RNG.integers(0, 300, 2_000)
X = RNG.uniform(-1, 1, (2_000, 3))
Y = (X[:, 0] > 0).astype(int)
UNIT = {"bounds": (-1, 1), "rows_per_person": 3}
SUMS = ("kmeans", "line", "line, gradient", "declared", "pca", "imputer", "scaler", "bounded, last")


@pytest.mark.parametrize("name", SUMS)
def test_ledger_report_and_budget_are_about_the_person(name, tmp_path):
    model = made(name, epsilon=1.0, rows_per_person=3)
    with budget(epsilon=1.0, delta=1e-6) as shared:
        model.fit(X, Y, groups=WHOSE)
        assert shared.group_size == model.ledger_.group_size == 3
        assert shared.spent == pytest.approx(1.0, rel=1e-5)
    assert model.ledger_.n == np.minimum(np.bincount(WHOSE), 3).sum()
    assert 0.999 < model.epsilon_spent_ <= 1.0
    assert "one person, who has at most 3" in model.report_["privacy"]["unit"]
    # A record alone pays a third: the noise is three times as large, in the mean of all answers, of
    # which there may be fewer where noise is larger.
    single = made(name, epsilon=1.0).fit(X, Y)
    ratios = [
        ours.noise_multiplier / theirs.noise_multiplier * (theirs.count / ours.count) ** 0.5
        for ours, theirs in zip(model.ledger_.entries, single.ledger_.entries, strict=True)
    ]
    solved = 1e-6 if "last" in name else 1e-9
    assert ratios == pytest.approx([3.0] * len(ratios), rel=solved)
    report.save(tmp_path / "report", model)
    document = report.read(tmp_path / "report")
    assert all(row["holds"] for row in report.verify(document))
    assert document["privacy"]["unit"] == model.report_["privacy"]["unit"]


def test_a_person_with_most_rows_has_the_say_of_a_few():
    rows, whose = np.full((1_000, 1), -1.0), np.arange(1_000)
    rows[:600], whose[:600] = 1.0, 0  # one person
    scaler = made("scaler", bounds=(-1, 1), epsilon=1e6, rows_per_person=2)
    assert scaler.fit(rows).mean_[0] == pytest.approx(0.2, abs=0.01)
    assert scaler.fit(rows, groups=whose).mean_[0] == pytest.approx(-1 + 4 / 402, abs=0.001)


def test_which_rows_stay_is_drawn_afresh():
    model = made("scaler", rows_per_person=4)
    one, other = (model._within_persons(WHOSE, np.arange(2_000))[0] for _ in range(2))
    assert len(one) == len(other) == np.minimum(np.bincount(WHOSE), 4).sum()
    assert (one != other).any()


def test_scores_and_further_batches_are_about_the_person():
    model = LogisticRegression(classes=[0, 1], epsilon=0.5, rows_per_person=3)
    with budget(epsilon=3.0, delta=1e-6) as shared:
        model.fit(X, Y)
        one = shared.spent
        noisy_accuracy(model, X, Y, epsilon=0.5)
        two = shared.spent
        assert one == pytest.approx(0.5, rel=1e-5)
        assert two < 1.0  # about a single record it would be three times as much for a person
        assert shared.group_size == 3
        model.set_params(rows_per_person=1).partial_fit(X, Y)
    # The further batch is priced for the person of the first one: three times.
    alone = epsilon(model._released[0].event, delta=1e-6, neighboring_relation="replace-special")
    assert model.epsilon_spent_ > 3 * alone


def test_steps_of_a_pipeline_take_persons_and_share_a_budget_if_they_are_of_one_unit():
    steps = make_pipeline(made("scaler", **UNIT), LogisticRegression(classes=[0, 1], **UNIT))
    model = split_budget(steps, epsilon=1.0, delta=1e-6)
    with budget(epsilon=1.0, delta=1e-6) as shared:
        model.fit(X, Y, standardscaler__groups=WHOSE, logisticregression__groups=WHOSE)
        assert 0.99 < shared.spent <= 1.0
    steps[1].set_params(rows_per_person=2)
    with pytest.raises(ValueError, match=r"same for all private steps, got \[2, 3\]"):
        split_budget(steps, epsilon=1.0, delta=1e-6)


def test_wrong_persons_are_refused():
    model = LogisticRegression(classes=[0, 1], rows_per_person=2)
    with pytest.raises(ValueError, match=r"one person for each of 2000 records.*\(5,\)"):
        model.fit(X, Y, groups=WHOSE[:5])
    with pytest.raises(ValueError, match="must say of every record whose it is"):
        model.fit(X, Y, groups=[None, *WHOSE[1:].tolist()])
    with pytest.raises(UnsupportedEvent, match="about persons of 2 records"):
        PrivateSearch(model.set_params(rows_per_person=2), {"steps": [5]}).fit(X, Y)
