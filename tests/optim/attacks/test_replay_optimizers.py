"""Every optimizer is recorded and replayed on neighbours: nothing tells of a record but answers."""

import dataclasses
import warnings

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Constants
from dpcal.optim import attacks
from dpcal.optim.minimax import AUCMaximization, Box, ToySaddle
from dpcal.optim.registry import OPTIMIZERS

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

N, D = 300, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (X[:, 0] > 0).astype(int)
CONSTANTS = Constants(
    lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1, strong_concavity=0.25
)
TARGET = {"n": N, "epsilon": 4.0, "delta": 1e-3}
PROBLEM = {"dimension": D}
POISSON = {"neighboring_relation": "add-or-remove-one"}
BLOCKS = {"dimensions": (D + 2, 1), **POISSON}
KL = {**PROBLEM, "gamma": 2.0}

# For each optimizer, its builder's arguments beside the constants and the target, and those of the
# optimizer itself. One without a row here runs on its defaults.
RUNS = {
    "dpsgd": [
        ({"batch_size": 60, "steps": 40}, {"output": "uniform"}),
        ({"batch_size": 60, "steps": 40, "neighboring_relation": "replace-one"}, {}),
    ],
    "noisy_gd": [({**PROBLEM, "steps": 20}, {"output": "random"})],
    "spiderboost": [({**PROBLEM, "steps": 20, "batch_size": 100}, {})],
    "tree_spider": [({**PROBLEM, "neighboring_relation": "replace-one"}, {})],
    "recursive_regularization": [
        ({**PROBLEM, "distance": 3.0, "neighboring_relation": "replace-one"}, {}),
        (
            {
                **PROBLEM,
                "distance": 3.0,
                "neighboring_relation": "replace-one",
                "subsolver": "phased_sgd",
            },
            {},
        ),
    ],
    "jl_glm": [({**PROBLEM, "inner": "noisy_gd", "embedding_dimension": 2, "steps": 10}, {})],
    "kl_spider": [(KL, {})],
    "adaptive_gd": [({**KL, "steps": 10}, {"output": "smallest-norm"})],
    "proximal_point": [({**KL, "kappa": 3.0, "inner_steps": 8}, {})],
    # Both rules of clipping, blocks that are clipped alone or together, samples and all records.
    "dp_rgda": [
        ({**BLOCKS, "steps": 12, "period": 4, "batch_size": N}, {"initial_dual": [0.5]}),
        ({**BLOCKS, "steps": 12, "period": 4, "batch_size": 60, "difference_norm": 0.3}, {}),
        ({**BLOCKS, "steps": 30, "period": 5, "accuracy": 9.0, "escape_steps": 3}, {}),
        ({**BLOCKS, "steps": 9, "period": 3, "algorithm": "literal", "inner_steps": 1}, {}),
    ],
    "dp_sgda": [({**BLOCKS, "steps": 20, "batch_size": 60}, {"output": "tail"})],
    "privatediff": [({**BLOCKS, "steps": 8}, {})],
    "sto_spider": [({**PROBLEM, **POISSON, "steps": 20}, {})],
    "ada_dp_spider": [({**PROBLEM, **POISSON, "steps": 60, "drift": 1e-3}, {})],
    "correlated_dpsgd": [
        ({"strategy": LambdaCGD(20, 0.5), "batch_size": N, "sampler": "full"}, {}),
    ],
}
CASES = [
    pytest.param(name, *case, id=f"{name} {number}")
    for name in OPTIMIZERS
    for number, case in enumerate(RUNS.get(name, [(PROBLEM, {})]))
]


def plan_of(name, options):
    """Return the plan of an optimizer's own builder."""
    options = dict(options)
    first = [CONSTANTS] if OPTIMIZERS[name].constants else []
    if "strategy" in options:
        first = [options.pop("strategy")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = getattr(calibrate, name)(*first, **TARGET, **options)
    # The tree goes on until its pass is over: no estimate is small enough to stop it.
    return dataclasses.replace(plan, parameters={**plan.parameters, "threshold": 1e-300})


def objective_of(name, rows, labels):
    """Return a problem that the optimizer is for, on a table."""
    if OPTIMIZERS[name].blocks:
        return AUCMaximization(rows, labels, positive_share=0.4, classes=(0, 1))
    return optim.Logistic(rows, labels, fit_intercept=False, classes=[0, 1])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options", "chosen"), CASES)
def test_a_search_for_neighbours_finds_nothing(name, options, chosen):
    plan = plan_of(name, options)

    def run(table):
        return getattr(optim, name)(objective_of(name, *table), plan, **chosen)

    shown = attacks.replay_table(run, X, Y, seed=2)
    for found in shown:
        assert found.holds, str(found)
        assert found.answers > 0
        if found.label == "long" and plan.queries[0].sampler == "full":
            # At the origin the two records pull with all they may, and against each other.
            assert found.largest > 0.99
    # Of some records, those of the random mixtures, one is in a part of a pass, or in a sample.
    assert any(found.moved for found in shown)


def test_a_record_that_says_nothing_moves_sums_by_one_bound():
    plan = plan_of("noisy_gd", {**PROBLEM, "steps": 5})
    objective = optim.Logistic(1e9 * X, Y, fit_intercept=False, classes=[0, 1])
    found = attacks.replay(
        lambda records: optim.noisy_gd(records, plan),
        objective,
        attacks.without(objective, 7),
        silent=True,
        seed=1,
    )
    assert found.holds, str(found)
    assert found.largest == pytest.approx(1.0, abs=1e-9)


def test_minimax_descent_is_replayed_without_a_record():
    problem = ToySaddle(n=N, seed=7)
    plan = calibrate.dp_rgda(problem.constants, dimensions=(2, 2), **TARGET)

    def run(records):
        oracle = optim.PrivateOracle(records, plan)
        return optim.dp_rgda(oracle, plan, dual_set=Box(-1.0, 1.0)).w

    found = attacks.replay(run, problem, attacks.without(problem, 3), silent=True, seed=3)
    assert found.holds, str(found)
    assert found.moved > 0
