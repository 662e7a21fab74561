"""Compiled sums of pairs and the fused inner loop: to the bit what single answers give."""

import contextlib
import dataclasses
from unittest import mock

import numpy as np
import pytest
from _built_plans import theory_of
from _minimax import MATRICES, PROBLEMS, MatrixSensing, N, acceptance
from _recording import record
from saddles import ToySaddle

from dpcal import optim
from dpcal.errors import NonFiniteAnswer
from dpcal.optim.boundary import oracle
from dpcal.optim.boundary.oracle import CompiledWalk
from dpcal.optim.minimax.dp_rgda import Tracker
from dpcal.optim.minimax.sets import Everywhere

# Small plans, whose noise hides everything, are planned for what they cost and release.
pytestmark = pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")

COMPILED = {name: PROBLEMS[name] for name in ("fair", "shift", "auc")}
SMALL = {"n": N, "batch_size": 40, "steps": 8, "period": 4, "epsilon": 30.0, "dimensions": (5, 1)}


def plan_for(problem, **changes):
    sizes = {"n": N, "batch_size": 30, "steps": 9, "period": 4, "inner_steps": 3, "max_norm": 0.8}
    return acceptance(**{"dimensions": problem.dimensions, "epsilon": 30.0, **sizes, **changes})


def one_by_one():
    """Answers are given one by one."""
    return mock.patch.object(oracle, "kernel_of", return_value=None)


# -- sums


@pytest.mark.parametrize("shares", [None, (1.0, 1.0)])
@pytest.mark.parametrize("name", COMPILED)
def test_no_contribution_exceeds_its_bound_at_any_scale(name, shares):
    problem = COMPILED[name](block_shares=shares)
    rng = np.random.default_rng(2)
    for scale in (1e-160, 1e-80, 1.0, 1e40, 1e150, 1e300):
        w, v = scale * rng.standard_normal((2, problem.dimension))
        for bound in (1e-280, 1e-3, 0.3, 1e200):
            for row in range(0, N, 3) if scale == 1.0 else (17,):
                alone = np.array([row])
                for total in (
                    problem.clipped_sum(w, alone, bound),
                    problem.clipped_difference_sum(w, v, alone, bound),
                ):
                    assert np.isfinite(total).all()
                    largest = max(np.abs(total).max(), 1e-300)
                    assert largest * np.linalg.norm(total / largest) <= bound


def test_a_record_without_finite_gradients_contributes_nothing():
    A = MATRICES.copy()
    A[5] = 1e300
    problem = MatrixSensing(A, np.ones(N), rank=1)
    w = np.full(problem.dimension, 1e10)
    assert problem.clipped_sum(w, np.array([5]), 1.0).tolist() == [0.0] * problem.dimension
    both = problem.clipped_sum(w, np.array([5, 6]), 1.0)
    assert both.tolist() == problem.clipped_sum(w, np.array([6]), 1.0).tolist()


# -- the fused loop


RULES = {
    "rule B": {},
    "rule A": {"difference_norm": 0.3},
    "argmin": {"select": "argmin"},
    "literal K=1": {"algorithm": "literal", "inner_steps": 1},
    "literal": {"algorithm": "literal"},
    "poisson": {"sampler": "poisson", "refresh_size": 50},
}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", COMPILED)
def test_fused_runs_are_those_of_single_answers(name, rule):
    problem, changes = COMPILED[name](), RULES[rule]
    relation = "add-or-remove-one" if "sampler" in changes else "replace-one"
    plan = plan_for(problem, neighboring_relation=relation, **changes)
    start = 0.3 * np.random.default_rng(0).standard_normal(problem.dimensions[0])
    fused = optim.dp_rgda(problem, plan, seed=5, initial=start)
    with one_by_one():
        single = optim.dp_rgda(problem, plan, seed=5, initial=start)
    assert fused.ledger.to_json() == single.ledger.to_json()
    assert fused.message == single.message
    if "difference_norm" in changes:  # then nothing but sums, noise and steps is computed
        assert (fused.x == single.x).all()
        assert (fused.y == single.y).all()
    # The distance that a bound is in proportion to is summed in another order.
    assert fused.x == pytest.approx(single.x, rel=1e-10, abs=1e-13)
    assert fused.y == pytest.approx(single.y, rel=1e-10, abs=1e-13)


def tracker(problem, plan, *, rate=0.1, inner_steps=4, period=10**9, **more):
    """Return a tracker from (0.5, 0.5), and its oracle."""
    oracle = optim.PrivateOracle(problem, plan, seed=0, **more)
    how = {"period": period, "inner_steps": inner_steps, "ascent_rate": rate, "select": "last"}
    made = Tracker(dataclasses.replace(plan, parameters=how), Everywhere())
    made.start(oracle, *(np.full(d, 0.5) for d in problem.dimensions))
    return made, oracle


def test_what_cannot_be_compiled_is_taken_answer_by_answer():
    def compiled(problem, plan, **more):
        return isinstance(tracker(problem, plan, **more)[0]._walk, CompiledWalk)

    problem, plan = COMPILED["auc"](), acceptance(**SMALL)
    assert compiled(problem, plan)
    own = acceptance(**{**SMALL, "dimensions": (3, 3)})
    assert not compiled(PROBLEMS["own"](), own)
    once = {"n": N, "dimensions": (5, 1), "epsilon": 2.0, "delta": 1e-6}
    once = theory_of("dp_rgda_population", ToySaddle.constants, **once)
    assert not compiled(problem, once)


def test_an_observer_sees_every_answer_of_a_fused_problem():
    result, tape = record(optim.dp_rgda, COMPILED["auc"](), acceptance(**SMALL), seed=0)
    assert len(tape.answers) == sum(query.count for query in result.ledger.totals) > 8


@pytest.mark.parametrize("difference_norm", [None, 0.3], ids=["rule B", "rule A"])
def test_a_step_that_overflows_on_the_way_is_charged_as_far_as_it_went(difference_norm):
    """Y climbs by 1e200 in its first step, and the next distance has no square."""
    problem = COMPILED["auc"]()
    plan = acceptance(**SMALL, difference_norm=difference_norm)
    for rate, differences in ((1e200, 0), (1e308, 0), (0.1, 3)):
        made, oracle = tracker(problem, plan, rate=rate)
        ends = pytest.raises(NonFiniteAnswer) if rate > 1 else contextlib.nullcontext()
        with ends:
            made.advance(np.full(5, 0.5))
        assert oracle.ledger.count("refresh") == 1
        assert oracle.ledger.count("difference") == differences
    # So does a projection that fails: what was answered before is in the ledger.
    ends = mock.Mock(side_effect=[np.zeros(1), np.zeros(1), np.ones(1), KeyboardInterrupt])
    with mock.patch.object(Everywhere, "project", ends):
        made, oracle = tracker(problem, plan)
        with pytest.raises(KeyboardInterrupt):
            made.advance(np.full(5, 0.5))
    assert (oracle.ledger.count("refresh"), oracle.ledger.count("difference")) == (1, 2)
