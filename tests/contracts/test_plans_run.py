"""Every plan that a planner returns can be run, and the run costs no more than the plan."""

import dataclasses
import warnings

import numpy as np
import pytest
from _built_plans import BUILT, CASES, CONSTANTS, DIMENSION, built, logistic, target

from dpcal import calibrate, optim
from dpcal.calibrate import schedules
from dpcal.errors import VacuousSchedule
from dpcal.optim.boundary.ledger import check_ledger
from dpcal.optim.minimax import ToySaddle
from dpcal.optim.registry import OPTIMIZERS

# A paper's constants, and sizes at which its theorem promises something.
PLANNED = {
    "spiderboost": {"n": 2_000, "d": DIMENSION, "L0": 1, "L1": 0.25, "F0": 0.7},
    "kl_condition": {"n": 40_000, "d": DIMENSION, "L0": 1, "L1": 0.25, "F0": 0.7, "gamma": 1.5},
    "kan": {"n": 2_000, "d": DIMENSION, "gamma": 0.5},
    "gauss_psgd": {"n": 40_000, "d": DIMENSION, "G": 1, "M": 1, "U": 1, "rho": 1},
    "dp_rgda": {"n": 2_000, "d": 4, "M": 2.5, "L": 4, "F0": 0.5, "mu": 1, "rho": 6},
    "moments": {"n": 2_000, "q": 0.05, "T": 20},
}
# What a paper's optimizer is for, where it is no regression.
PAPERS_PROBLEM = {"dp_rgda": lambda n, d: ToySaddle(n=n, seed=7)}


def check_screen(printed):
    """What is printed fits on a screen, as short as a terminal is by default."""
    lines = str(printed).split("\n")
    assert 2 <= len(lines) <= 24
    assert max(map(len, lines)) <= 100


def check_run(plan, objective):
    """Run a plan to its end, and compare what its ledger holds with the plan."""
    check_screen(plan)
    assert plan.price() <= plan.epsilon
    with warnings.catch_warnings():
        # A run that takes no step is one, too: what counts here is what it asks for.
        warnings.simplefilter("ignore", VacuousSchedule)
        result = optim.run(objective, plan, seed=1)
    assert result.complete, result.message
    check_screen(result)
    assert result.plan == plan
    assert np.isfinite(result.w).all()
    result.verify()
    assert result.ledger.epsilon(plan.delta) <= plan.price()
    assert result.epsilon(plan.delta) <= plan.price()
    replayed = optim.Ledger(plan.n, plan.neighboring_relation)
    entries = result.ledger.entries
    for number, entry in enumerate(entries):
        replayed.record(entry, entry.count)
        if number % max(1, len(entries) // 10) == 0:
            check_ledger(replayed, plan, exact=False)
    assert replayed == result.ledger
    again = calibrate.Plan.from_json(plan.to_json())
    check_ledger(optim.Ledger.from_json(result.ledger.to_json()), again, exact=False)


def test_every_optimizer_and_every_paper_has_a_case():
    assert set(BUILT) == set(OPTIMIZERS)
    assert set(PLANNED) == set(schedules.PLANNERS)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "relation"), CASES)
def test_an_optimizer_runs_what_its_builder_planned(name, options, relation):
    with warnings.catch_warnings():
        # Where a theorem promises nothing, its plan can be run all the same.
        warnings.simplefilter("ignore", VacuousSchedule)
        plan, objective = built(name, options, relation)
    assert plan.optimizer == name
    check_run(plan, objective)


# An optimizer of its own name takes fewer relations; any other is asked under the first two.
PAPERS = [
    (paper, relation)
    for paper in sorted(PLANNED)
    for relation in (OPTIMIZERS[paper] if paper in OPTIMIZERS else OPTIMIZERS["dpsgd"]).relations[
        :2
    ]
]


@pytest.mark.slow
@pytest.mark.parametrize(("paper", "relation"), PAPERS)
def test_an_optimizer_runs_what_its_paper_planned(paper, relation):
    asked = target(**PLANNED[paper], epsilon=8.0, neighboring_relation=relation)
    plan = schedules.load(paper).plan(**asked)
    # The sixth paper promises no accuracy.
    assert plan.parameters.get("vacuous", paper != "moments") is False
    check_run(plan, PAPERS_PROBLEM.get(paper, logistic)(plan.n, DIMENSION))


def test_a_run_over_many_silos_and_a_plan_of_many_queries_fit_a_screen():
    X = np.random.default_rng(0).standard_normal((40, 300, DIMENSION))
    silos = [optim.Logistic(rows / 10, rows[:, 0] > 0, classes=(False, True)) for rows in X]
    asked = target(300, neighboring_relation="replace-one")
    plan = calibrate.distributed_psgd(CONSTANTS, dimension=DIMENSION + 1, silos=40, **asked)
    result = optim.distributed_psgd(silos, plan, seed=1)
    check_screen(result)
    assert "40 silos of 300 records, a ledger each" in str(result)
    one = plan.queries[0]
    many = tuple(dataclasses.replace(one, name=f"{one.name} {each}") for each in range(50))
    check_screen(dataclasses.replace(plan, queries=many))
    assert str(dataclasses.replace(plan, queries=many)).endswith("lines more")


@pytest.mark.parametrize("run", [optim.run, optim.dpsgd, optim.noisy_gd])
def test_plans_of_silos_are_for_the_optimizer_over_silos(run):
    plan = calibrate.dpsgd(batch_size=100, epochs=1, **target(200))
    for given in ([plan, plan], None, plan.to_json()):
        with pytest.raises(TypeError, match=r"plan must be a Plan, .* optim\.distributed_psgd"):
            run(logistic(200, DIMENSION), given)


# Where rows of a person are clipped one by one, these have parts, budgets or noise without a price.
ROWS_REFUSED = {
    "tree_spider",
    "recursive_regularization",
    "kl_spider",
    "adaptive_gd",
    "gauss_psgd",
    "distributed_psgd",
    "correlated_dpsgd",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_a_plan_for_persons_meets_its_target_or_is_refused_by_name(name):
    relation = min(OPTIMIZERS[name].relations)  # add-or-remove-one, if it is among them
    case = BUILT[name][1 if name in ("spiderboost", "jl_glm") else 0]
    if name in ROWS_REFUSED:
        with pytest.raises(ValueError, match="group_size > 1 is for sums"):
            built(name, {**case, "group_size": 3}, relation)
        return
    plan, _ = built(name, {**case, "group_size": 3}, relation)
    assert plan.group_size == 3
    assert plan.price() <= plan.epsilon
