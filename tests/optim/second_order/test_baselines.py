"""What Gauss-PSGD is compared with keeps its own rules, and its ledger."""

import math

import numpy as np
import pytest

from benchmarks.problems.walks import perturbed_descent, perturbed_spider
from dpcal import calibrate, optim
from dpcal.optim.problems import Trigonometric
from dpcal.optim.second_order.estimators import Spider

SADDLE = math.pi * np.eye(5)[0]


@pytest.fixture(scope="module")
def problem():
    objective = Trigonometric.drawn(40_000, 5, seed=0)
    plan = calibrate.gauss_psgd(
        objective.constants, n=40_000, dimension=5, epsilon=2.0, delta=1e-6, drift=0.05
    )
    return objective, plan


def test_the_forerunner_perturbs_where_its_rule_says(problem, monkeypatch):
    objective, plan = problem
    seen = []
    query = Spider.query

    def watched(spider, w):
        before = None if spider.state is None else float(np.linalg.norm(spider.state.gradient))
        seen.append(before)
        return query(spider, w)

    options = {"small_gradient": 0.4, "perturbation": 0.5, "frozen": 20}
    result = perturbed_spider(objective, plan, seed=1, initial=SADDLE, **options)
    again = perturbed_spider(objective, plan, seed=1, initial=SADDLE, **options)
    assert (result.iterates == again.iterates).all()
    assert len(result.perturbed) >= 2
    assert min(np.diff(result.perturbed)) > 20  # at most one in 21 calls
    assert (result.iterates[0] == SADDLE).all()
    assert (result.w == result.iterates[-1]).all()
    # The estimate of a step can be read off the iterates; before a perturbation it was small.
    estimates = np.linalg.norm(np.diff(result.iterates, axis=0), axis=1) / 0.2
    assert all(estimates[step - 2] <= 0.4 * (1 + 1e-9) for step in result.perturbed if step > 1)
    # Privacy is that of the oracle: the perturbation says nothing of the records.
    assert result.epsilon(1e-6) == plan.price(1e-6)
    used = sum(entry.count * entry.batch_size for entry in result.ledger.totals)
    assert used <= 40_000
    monkeypatch.setattr(Spider, "query", watched)
    never = perturbed_spider(
        objective, plan, seed=1, initial=SADDLE, small_gradient=1e-200, perturbation=1.0, frozen=0
    )
    assert never.perturbed == ()
    assert seen.count(None) == 1


def test_a_private_selection_picks_one_of_its_iterates(problem):
    objective, plan = problem
    walked = perturbed_spider(
        objective, plan, seed=2, initial=SADDLE, small_gradient=0.4, perturbation=0.5, frozen=20
    )
    holdout = Trigonometric.drawn(20_000, 5, seed=9)
    candidates = walked.iterates[::-50][:10]
    select = calibrate.select_point(
        holdout.constants,
        n=20_000,
        dimension=5,
        epsilon=2.0,
        delta=1e-6,
        candidates=10,
        accuracy=0.3,
        method="above-threshold",
    )
    chosen = optim.select_point(holdout, candidates, select, seed=3)
    assert chosen.status == "accepted"
    # On records of its own: the price is not added, and it is there.
    assert chosen.epsilon(1e-6) <= 2.0
    assert chosen.ledger.count("score") == chosen.tested


def test_descent_with_bumps_leaves_the_saddle():
    objective = Trigonometric(np.zeros((1, 5)))
    for seed in range(5):
        w = perturbed_descent(
            objective,
            SADDLE,
            learning_rate=0.2,
            radius=0.1,
            small_gradient=1e-3,
            patience=80,
            decrease=0.5,
            seed=seed,
        )
        assert np.linalg.norm(objective.gradient(w)) < 1e-2
        assert optim.curvature(objective, w) > 0.9
        assert objective.loss(w) < 1e-4


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"small_gradient": 0.0}, "small_gradient must be a finite number > 0"),
        ({"perturbation": -1.0}, "perturbation must be a finite number >= 0"),
        ({"frozen": -1}, "frozen must be a whole number >= 0"),
    ],
)
def test_wrong_arguments_are_one_sentence(problem, changes, sentence):
    objective, plan = problem
    options = {"small_gradient": 0.4, "perturbation": 0.5, "frozen": 20, **changes}
    with pytest.raises(ValueError, match=sentence):
        perturbed_spider(objective, plan, **options)
