"""One driver runs every plan: its keywords, its refusals, and loops of one's own."""

import inspect
import pickle
import subprocess
import sys

import numpy as np
import pytest
from _built_plans import logistic

from dpcal import calibrate, optim
from dpcal.optim.registry import OPTIMIZERS

OBJECTIVE = logistic(500, 3)
TARGET = {"n": 500, "epsilon": 2.0, "delta": 1e-5}
PLAN = calibrate.dpsgd(batch_size=100, steps=10, **TARGET)
CONSTANTS = calibrate.Constants(
    lipschitz=1.0, smoothness=0.25, hessian_lipschitz=0.1, strong_concavity=1.0, gap=0.7
)
DESCENT = calibrate.noisy_gd(CONSTANTS, dimension=3, steps=10, **TARGET)
LOOPS = sorted(set(OPTIMIZERS) - {"jl_glm", "distributed_psgd"})


def test_keywords_reach_the_optimizer_and_iterates_stay_in_the_ball_from_the_start_on():
    seen, start = [], np.ones(3)
    given = {"seed": 1, "radius": 0.1, "output": "tail", "initial": start}
    one = optim.run(OBJECTIVE, PLAN, callback=lambda p: seen.append(p.w), **given)
    other = optim.dpsgd(OBJECTIVE, PLAN, **given)
    assert (one.w == other.w).all()
    assert max(map(np.linalg.norm, seen)) <= 0.1 * (1 + 1e-12)
    still = optim.dpsgd(OBJECTIVE, PLAN, initial=start, learning_rate=1e-12)
    np.testing.assert_allclose(still.w, start, atol=1e-9)
    assert (start == 1).all()


def test_a_point_is_selected_by_the_same_function():
    given = {"candidates": 2, "accuracy": 0.9, "dimension": 3, **TARGET, "n": 2_000}
    plan = calibrate.select_point(CONSTANTS, **given)
    points = [np.zeros(3), np.ones(3)]
    one = optim.run(logistic(2_000, 3), plan, candidates=points, seed=1)
    other = optim.select_point(logistic(2_000, 3), points, plan, seed=1)
    assert (one.index, one.tested) == (other.index, other.tested)


def test_nothing_is_opened_for_a_run_that_is_refused(tmp_path):
    file = tmp_path / "run.db"
    for name, value in (("output", "median"), ("learning_rate", -1.0), ("rate", 1.0), ("seed", -1)):
        for start in (optim.run, optim.noisy_gd):
            with pytest.raises((ValueError, TypeError), match=name):
                start(OBJECTIVE, DESCENT, store=file, **{name: value})
            assert not file.exists()


def test_a_warning_is_about_the_line_that_runs():
    far = optim.Squared(np.ones((500, 1)), np.arange(500.0), l2=1.0, fit_intercept=False)
    for start in (optim.run, optim.dpsgd):
        with pytest.warns(RuntimeWarning, match="learning rate is too large") as found:
            start(far, PLAN, seed=0, learning_rate=1e300)
        assert found[0].filename == __file__


def test_a_row_is_read_from_its_file_alone():
    script = (
        "import sys; from dpcal.optim.registry import find; print(find('kl_spider').name, "
        "*(name for name in sys.modules if name.startswith('dpcal.optim.first_order.')))"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stdout.split() == ["kl_spider", "dpcal.optim.first_order.kl_spider"]


@pytest.mark.parametrize("name", LOOPS)
def test_an_optimizer_takes_what_the_driver_documents_and_is_found_by_its_name(name):
    optimizer = getattr(optim, name)
    shared, own = inspect.signature(optim.run).parameters, inspect.signature(optimizer).parameters
    # But for a start or a ball that the algorithm has itself.
    assert set(shared) - set(own) <= {"options", "initial", "radius"}
    assert pickle.loads(pickle.dumps(optimizer)) is optimizer
