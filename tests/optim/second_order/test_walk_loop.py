"""The compiled walk gives the numbers of the plain one, bit for bit, with the same ledger."""

import math
import pickle
import warnings
from unittest import mock

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal._ext.walks import TrigonometricClippedSum, distance, norm
from dpcal.errors import VacuousSchedule
from dpcal.optim.attacks import replay
from dpcal.optim.boundary.fused import WalkLoops
from dpcal.optim.objectives.arrays import clipped_rows
from dpcal.optim.problems import Trigonometric
from dpcal.optim.second_order.estimators import Spider

D, N = 5, 6_000
RNG = np.random.default_rng(0)
Z = RNG.uniform(-1, 1, (N, D))
LABELS = (Z[:, 0] + 0.3 * RNG.standard_normal(N) > 0).astype(int)
SADDLE = math.pi * np.eye(D)[0]

OBJECTIVES = {
    "trigonometric": lambda: Trigonometric(Z),
    "sigmoid": lambda: optim.Sigmoid(Z, LABELS, fit_intercept=False),
    "logistic, regularised": lambda: optim.Logistic(Z, LABELS, fit_intercept=False, l2=0.05),
    "softmax": lambda: optim.Softmax(Z[:, :1], LABELS + (Z[:, 1] > 0.5)),
}

PLANS = {
    "one pass": {},
    "three passes": {"passes": 3},
    "carry": {"reset": "carry"},
    "fresh": {"reset": "fresh"},
    "fresh gradients": {"drift": 0.0},
    "fixed period": {"period": 7},
    "horizon": {"steps": 23},
    "more steps than records": {"steps": 100_000},
}


def planned(objective, **changes):
    given = {
        "batch_size": 300,
        "difference_batch_size": 20,
        "drift": 0.02,
        "threshold": 0.05,
        "escape_radius": 0.4,
        "escape_steps": 12,
        "escape_rounds": 2,
        **changes,
    }
    constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, hessian_lipschitz=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousSchedule)
        return calibrate.gauss_psgd(
            constants,
            n=objective.n,
            dimension=objective.dimension,
            epsilon=20.0,
            delta=1e-6,
            **given,
        )


def both(objective, plan, **options):
    """Return a run in the compiled loop, and the plain one on the same random numbers."""
    fused = optim.gauss_psgd(objective, plan, **options)
    with optim.replaying(), mock.patch.object(WalkLoops, "fit", return_value=False):
        plain = optim.gauss_psgd(objective, plan, **options)
    return fused, plain


def assert_same(one, other):
    """Every number that two runs released, and their ledgers, entry by entry."""
    assert (one.w == other.w).all()
    assert (one.end == other.end).all()
    assert (one.trace.norm == other.trace.norm).all()
    assert (one.trace.step == other.trace.step).all()
    assert (one.status, one.message) == (other.status, other.message)
    assert (one.fresh_calls, one.difference_calls) == (other.fresh_calls, other.difference_calls)
    assert len(one.escapes) == len(other.escapes)
    for a, b in zip(one.escapes, other.escapes, strict=True):
        assert (a.point == b.point).all()
        assert (a.call, a.estimate, a.escaped) == (b.call, b.estimate, b.escaped)
        assert [(r.steps, r.escaped) for r in a.rounds] == [(r.steps, r.escaped) for r in b.rounds]
        assert all((r.end == s.end).all() for r, s in zip(a.rounds, b.rounds, strict=True))
    assert one.ledger == other.ledger
    assert one.ledger.entries == other.ledger.entries


@pytest.mark.slow
@pytest.mark.parametrize("kind", OBJECTIVES)
@pytest.mark.parametrize("name", PLANS)
def test_the_compiled_walk_is_the_plain_one(kind, name):
    objective = OBJECTIVES[kind]()
    plan = planned(objective, **PLANS[name])
    start = SADDLE if kind == "trigonometric" else np.full(objective.dimension, 0.5)
    for seed, every in ((1, None), (2, 7)):
        fused, plain = both(objective, plan, seed=seed, initial=start, callback_every=every)
        assert_same(fused, plain)
        assert fused.fresh_calls + fused.difference_calls > 5


def test_the_walk_is_taken_in_the_loop_and_its_ledger_is_exact():
    objective = Trigonometric(Z)
    plan = planned(objective)
    with mock.patch.object(Spider, "query", side_effect=AssertionError("a step by itself")):
        result = optim.gauss_psgd(objective, plan, seed=3, initial=SADDLE, callback_every=10**9)
        assert result.ledger.count("refresh") == result.fresh_calls > 0
        assert result.ledger.count("difference") == result.difference_calls > 0


def test_the_walk_stops_where_the_plan_does():
    """Counts in the plan below what the records would allow: the loop asks for no answer more."""
    objective = Trigonometric(Z)
    plan = planned(objective)
    oracle = optim.PrivateOracle(objective, plan, seed=4)
    spider = Spider(oracle, drift=0.0)
    taken = spider.stretch(SADDLE, most=1000, learning_rate=0.1)
    assert (taken.fresh, taken.steps) == (N // 300, N // 300)
    assert oracle.remaining("refresh") == 0
    assert spider.records_left == (0,)
    assert spider.stretch(taken.w, most=5, learning_rate=0.1).steps == 0


def test_iterates_that_overflow_end_a_walk_as_they_do_step_by_step():
    objective = Trigonometric(Z)
    plan = planned(objective, drift=0.0)
    # A plan's step is at most 1 / M; a step of one's own may be any.
    for eta in (1e155, 1e308):
        with pytest.warns(RuntimeWarning, match="became infinite"):
            fused, plain = both(objective, plan, seed=5, initial=SADDLE, learning_rate=eta)
        assert_same(fused, plain)
        assert fused.status == "stopped"


def test_who_watches_sees_every_answer():
    other = Z.copy()
    other[3] += math.pi
    plan = planned(Trigonometric(Z), drift=0.0)
    with mock.patch.object(WalkLoops, "walk", side_effect=AssertionError("not watched")):
        found = replay(
            lambda table: optim.gauss_psgd(Trigonometric(table), plan, initial=SADDLE),
            Z,
            other,
            seed=6,
            price=False,
        )
    assert found.holds, found.findings
    # All records are used up, and each is in one answer.
    assert (found.answers, found.moved) == (N // 300, 1)


# -- the kernel of the trigonometric problem


def direct(w, rows, v=None):
    table = np.sin(Z[rows] + w)
    return table if v is None else table - np.sin(Z[rows] + v)


@pytest.mark.parametrize("max_norm", [0.3, 1.5, 10.0])
def test_sums_are_those_of_the_formula(max_norm):
    kernel = TrigonometricClippedSum(Z)
    rows = RNG.integers(0, N, 400)
    for scale in (1e-8, 1.0, 1e6):
        w = RNG.standard_normal(D) * scale
        v = w + RNG.standard_normal(D) * min(scale, 1.0)
        expected = clipped_rows(direct(w, rows), max_norm)
        assert np.allclose(kernel(w, rows, max_norm=max_norm), expected, atol=1e-9 * (1 + scale))
        expected = clipped_rows(direct(w, rows, v), max_norm)
        found = kernel.difference(w, v, rows, max_norm=max_norm)
        assert np.allclose(found, expected, atol=1e-9 * (1 + scale))
    losses = (1 - np.cos(Z[rows] + v)).sum(axis=1)
    assert kernel.losses(v, rows, max_loss=2.0) == pytest.approx(np.clip(losses, -2, 2).sum())


def test_no_record_moves_a_sum_farther_than_the_bound():
    kernel = TrigonometricClippedSum(Z[:50])
    for _ in range(100):
        w, v = RNG.standard_normal((2, D)) * 10.0 ** RNG.integers(-180, 3)
        for share in (1e-3, 0.5, 1.0):
            bound = share * distance(w, v)
            if bound < 1e-290:
                continue
            for row in (0, 7):
                alone = kernel.difference(w, v, [row], max_norm=bound)
                largest = np.abs(alone).max()
                if largest > 0:
                    assert largest * norm(alone / largest) <= bound * (1 + 4e-16)
    # Differences of near points keep their digits.
    h = np.zeros(D)
    h[0] = 1e-12
    found = kernel.difference(SADDLE + h, SADDLE, [0], max_norm=1.0)[0]
    moved = (SADDLE + h)[0] - SADDLE[0]
    assert found == pytest.approx(moved * math.cos(Z[0, 0] + math.pi), rel=1e-9)


def test_parameters_at_the_end_of_the_range_give_no_record_away():
    kernel = TrigonometricClippedSum(Z[:3])
    w = np.full(D, 1.7e308)
    for found in (
        kernel(w, max_norm=1.0),
        kernel.difference(w, -w, max_norm=1.0),
        kernel.difference(w, w, max_norm=1.0),
    ):
        assert np.isfinite(found).all()


def test_a_pickled_problem_is_the_same():
    objective = Trigonometric(Z)
    again = pickle.loads(pickle.dumps(objective))
    rows = np.arange(N)
    assert (again.clipped_sum(SADDLE, rows, 1.0) == objective.clipped_sum(SADDLE, rows, 1.0)).all()
    assert again.digest() == objective.digest()
