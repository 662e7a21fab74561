"""One driver runs every plan: equal bits, and errors before anything is opened."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pytest
from _built_plans import BUILT, built, logistic

from dpcal import calibrate, optim
from dpcal.errors import VacuousSchedule
from dpcal.optim.registry import OPTIMIZERS

OBJECTIVE = logistic(500, 3)
TARGET = {"n": 500, "epsilon": 2.0, "delta": 1e-5}
PLAN = calibrate.dpsgd(batch_size=100, steps=10, **TARGET)
CONSTANTS = calibrate.Constants(lipschitz=1.0, smoothness=0.25, gap=0.7)
DESCENT = calibrate.noisy_gd(CONSTANTS, dimension=3, steps=10, **TARGET)
LOOPS = sorted(set(OPTIMIZERS) - {"jl_glm", "distributed_psgd"})


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_plan_names_the_loop(name):
    with warnings.catch_warnings(), optim.replaying():
        warnings.simplefilter("ignore", VacuousSchedule)
        plan, objective = built(name, BUILT[name][0], OPTIMIZERS[name].relations[0])
        one = optim.run(objective, plan, seed=3)
        other = getattr(optim, name)(objective, plan, seed=3)
    assert type(one) is type(other)
    assert (one.w == other.w).all()
    assert (one.message, one.ledger, one.plan) == (other.message, other.ledger, other.plan)


def test_keywords_reach_the_optimizer():
    with optim.replaying():
        one = optim.run(OBJECTIVE, PLAN, seed=1, radius=0.1, output="tail", initial=np.ones(3))
        other = optim.dpsgd(OBJECTIVE, PLAN, seed=1, radius=0.1, output="tail", initial=np.ones(3))
    assert (one.w == other.w).all()
    assert np.linalg.norm(one.w) <= 0.1 * (1 + 1e-12)


def test_a_point_is_selected_by_the_same_door():
    constants = calibrate.Constants(lipschitz=1.0, smoothness=0.25, hessian_lipschitz=0.1)
    plan = calibrate.select_point(
        constants, candidates=2, accuracy=0.9, dimension=3, **{**TARGET, "n": 2_000}
    )
    points = [np.zeros(3), np.ones(3)]
    with optim.replaying():
        one = optim.run(logistic(2_000, 3), plan, candidates=points, seed=1)
        other = optim.select_point(logistic(2_000, 3), points, plan, seed=1)
    assert (one.index, one.tested) == (other.index, other.tested)


@pytest.mark.parametrize("start", [optim.run, optim.noisy_gd])
def test_a_keyword_that_nobody_takes_is_refused(start):
    with pytest.raises(TypeError, match=r"noisy_gd\(\) got an unexpected keyword argument 'rate'"):
        start(OBJECTIVE, DESCENT, rate=0.1)
    steady = calibrate.recursive_regularization(
        CONSTANTS, dimension=3, distance=1.0, neighboring_relation="replace-one", **TARGET
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'radius'"):
        optim.run(OBJECTIVE, steady, radius=1.0)


@pytest.mark.parametrize(
    "wrong", [{"output": "median"}, {"learning_rate": -1.0}, {"rate": 1.0}, {"seed": -1}]
)
def test_nothing_is_opened_for_a_run_that_is_refused(tmp_path, wrong):
    file = tmp_path / "run.db"
    with pytest.raises((ValueError, TypeError)):
        optim.run(OBJECTIVE, DESCENT, store=file, **wrong)
    assert not file.exists()


@pytest.mark.parametrize(("former", "now"), [("none", "last"), ("tail", "tail")])
def test_averaging_is_now_called_output(former, now):
    with optim.replaying():
        with pytest.warns(DeprecationWarning, match="averaging of dpsgd is now called output") as w:
            one = optim.dpsgd(OBJECTIVE, PLAN, seed=1, averaging=former)
        other = optim.dpsgd(OBJECTIVE, PLAN, seed=1, output=now)
    assert w[0].filename == __file__
    assert (one.w == other.w).all()


def test_the_first_argument_is_now_called_objective():
    constants = calibrate.Constants(
        lipschitz=1.0, smoothness=0.25, hessian_lipschitz=0.1, strong_concavity=1.0, gap=0.5
    )
    toy = optim.minimax.ToySaddle(n=500, seed=0)
    saddle = calibrate.dp_sgda(toy.constants, dimensions=(2, 2), steps=5, **TARGET)
    walk = calibrate.distributed_psgd(constants, silos=1, dimension=3, **TARGET)
    for optimizer, former, records, plan in (
        (optim.dp_sgda, "problem", toy, saddle),
        (optim.distributed_psgd, "silos", [OBJECTIVE], walk),
    ):
        message = f"{former} of {optimizer.__name__} is now called objective"
        with pytest.warns(DeprecationWarning, match=message) as found:
            optimizer(**{former: records}, plan=plan, seed=1)
        assert found[0].filename == __file__


@pytest.mark.parametrize("name", LOOPS)
def test_what_is_no_objective_is_refused(name):
    with pytest.raises(TypeError, match="objective must be an Objective or an Oracle, got 5"):
        getattr(optim, name)(5, PLAN)


def test_a_warning_is_about_the_line_that_runs():
    objective = optim.Squared(np.ones((500, 1)), np.arange(500.0), l2=1.0, fit_intercept=False)
    for start in (optim.run, optim.dpsgd):
        with pytest.warns(RuntimeWarning, match="learning rate is too large") as found:
            start(objective, PLAN, seed=0, learning_rate=1e300)
        assert found[0].filename == __file__


@pytest.mark.parametrize("name", LOOPS)
def test_help_shows_what_an_optimizer_takes(name):
    optimizer = getattr(optim, name)
    shared, own = inspect.signature(optim.run).parameters, inspect.signature(optimizer).parameters
    assert list(own)[:3] == ["objective", "plan", "seed"]
    # Everything that the driver documents, but for a start or a ball that the algorithm has itself.
    assert set(shared) - set(own) <= {"options", "initial", "radius"}
    for parameter in set(own) - set(shared):
        assert re.search(rf"^(\w+, )*{parameter}(, \w+)*$", optimizer.__doc__, re.MULTILINE)
    assert "dpcal.optim.run" in optimizer.__doc__
    assert pickle.loads(pickle.dumps(optimizer)) is optimizer


@optim.algorithm()
def halving(run, oracle, plan, *, rate=0.1):
    """Descend, by half as much at each step."""
    while run.going:
        run.move(run.w - rate * 0.5**run.step * oracle.gradient(run.w, "gradient"))


def test_a_loop_of_ones_own_has_the_drivers_keywords(tmp_path):
    told = []
    with optim.replaying():
        kept = halving(OBJECTIVE, PLAN, seed=1, store=tmp_path / "run.db", callback=told.append)
        plain = halving(OBJECTIVE, PLAN, seed=1, rate=0.1)
    assert (kept.w == plain.w).all()
    assert [each.step for each in told] == list(range(1, 11))
    assert plain.verify() is None
    assert list(inspect.signature(halving).parameters)[3] == "rate"
