"""Estimators of which the last iterate alone is released: price, ledger, refusals."""

import numpy as np
import pytest

import dpcal
from dpcal.errors import BudgetExceeded
from dpcal.estimators import LogisticRegression, Ridge
from dpcal.report import verify
from dpcal.report.saving import document_of

RNG = np.random.default_rng(0)
N = 3_000
X = RNG.uniform(-1, 1, (N, 3))
SCORES = X @ [3.0, -2.0, 0.0]
Y = SCORES + RNG.logistic(size=N) > 0
TARGETS = np.clip(SCORES / 5 + 0.05 * RNG.standard_normal(N), -1, 1)


def logistic(**options):
    given = {"bounds": (-1, 1), "classes": [False, True], "l2": 0.1, "release": "last", **options}
    return LogisticRegression(**given)


def ridge(**options):
    given = {"bounds": (-1, 1), "target_bounds": (-1, 1), "alpha": N / 20, "release": "last"}
    return Ridge(**{**given, **options})


@pytest.mark.parametrize(
    ("model", "y", "least"),
    [(logistic(), Y, 0.75), (ridge(), TARGETS, 0.8)],
    ids=["logistic", "ridge"],
)
def test_a_fit_releases_one_answer_and_spends_its_target(model, y, least):
    model.fit(X, y)
    (entry,) = model.ledger_.entries
    assert (entry.kind, entry.count) == ("last iterate", 1)
    assert 0.999 < model.epsilon_spent_ <= 1.0
    assert model.score(X, y) > least
    document = document_of(model)
    assert all(row["holds"] for row in verify(document))
    assert document["privacy"]["covered"] == "the released parameters, and no other iterate"
    # The conditions are public numbers: of rows in a cube, with the constant column.
    descent = entry.descent
    curvature = 0.25 if isinstance(model, LogisticRegression) else 1.0
    assert descent.smoothness == pytest.approx(curvature * 4)
    assert descent.strong_convexity == descent.l2
    assert descent.contraction < 1


def test_it_needs_less_noise_than_all_iterates():
    (last,) = logistic(steps=60).fit(X, Y).ledger_.entries
    every = logistic(steps=60, release="all", max_norm=1.0, learning_rate=0.1).fit(X, Y)
    # c = 5/6 at kappa = 11: 60 steps cost as 11 of them.
    ratio = every.ledger_.entries[-1].noise_multiplier / last.noise_multiplier
    assert ratio == pytest.approx((60 / 11) ** 0.5, rel=1e-3)


def test_further_calls_are_composed():
    model = logistic(steps=20).partial_fit(X[:1_000], Y[:1_000], classes=[False, True])
    one = model.epsilon_spent_
    model.partial_fit(X[1_000:], Y[1_000:])
    assert one < model.epsilon_spent_ < 2 * one


def test_rows_of_a_person_are_paid_for():
    pairs = logistic(rows_per_person=2).fit(X, Y)
    assert 0.999 < pairs.epsilon_spent_ <= 1.0
    assert pairs.ledger_.entries[0].group_size == 2


def test_a_budget_pays_for_two_fits_by_their_exact_sum():
    with dpcal.budget(epsilon=1.5, delta=1e-6, neighboring_relation="replace-special") as budget:
        logistic().fit(X, Y)
        logistic().fit(X, Y)
        with pytest.raises(BudgetExceeded):
            logistic().fit(X, Y)
    # Two Gaussian releases of epsilon 1 are sqrt(2) times one.
    assert 1.4 < budget.spent <= 1.5


@pytest.mark.parametrize(
    ("model", "y", "sentence"),
    [
        (logistic(classes=None), Y, "release='last' needs two declared classes"),
        (logistic(classes=[0, 1, 2]), Y.astype(int), "release='last' needs two declared classes"),
        (logistic(learning_rate=5.0), Y, "learning_rate must be at most 2 / "),
        (ridge(solver="statistics"), TARGETS, "solver must be 'auto' or 'gradient'"),
    ],
)
def test_what_no_theorem_covers_is_refused_before_anything_is_spent(model, y, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.fit(X, y)
    assert not hasattr(model, "ledger_")


def test_second_calls_of_ridge_are_refused():
    with pytest.raises(ValueError, match="statistics have no iterates"):
        ridge().partial_fit(X, TARGETS)
