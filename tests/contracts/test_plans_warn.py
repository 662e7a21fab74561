"""Plans that take months, or whose noise hides a threshold, say so when they are made."""

import itertools
import math
import tomllib
import warnings
from functools import partial

import pytest
from _built_plans import BUILT, CONSTANTS, built, theory_of
from _tree import DATA

from dpcal import calibrate
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.theory import THEOREMS
from dpcal.errors import VacuousSchedule
from dpcal.optim.registry import OPTIMIZERS

TARGET = {"n": 100_000, "epsilon": 1.0, "delta": 1e-6}
PLANS = tomllib.loads((DATA / "papers.toml").read_text(encoding="utf-8"))
PAPERS, PRINTED = PLANS["papers"], PLANS["printed"]
LONG = "too long to be run"
HIDDEN = "is above its threshold"


def told(make):
    """Return what ``make`` returns, and the sentences of its warnings."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        plan = make()
    assert all(each.category is VacuousSchedule for each in seen)
    return plan, [str(each.message) for each in seen]


def hidden(make):
    """Return what ``make`` returns, and the sentences that name a threshold below its noise."""
    plan, sentences = told(make)
    return plan, [each for each in sentences if HIDDEN in each]


def work(plan):
    """Return noisy answers, and gradients of one record: two for a difference."""
    answers = gradients = 0
    for query in plan.queries:
        sums = query.count * (1 if query.descent is None else query.descent.steps)
        each = 2 if "difference" in query.name else 1
        answers += sums
        gradients += sums * each * (query.batch_size or plan.n)
    return answers, gradients


def test_every_schedule_is_asked():
    assert PAPERS.keys() == THEOREMS.keys()


@pytest.mark.slow
@pytest.mark.parametrize("name", PAPERS)
def test_a_schedule_of_months_says_so_with_the_number(name):
    plan, sentences = told(lambda: calibrate.theory(name, **TARGET, **PAPERS[name]))
    said = [each for each in sentences if LONG in each]
    answers, gradients = work(plan)
    # At a microsecond an answer and ten nanoseconds a gradient, more than a week; see cost.py.
    long = answers * 1e-6 + gradients * 1e-8 > 7 * 86_400
    assert len(said) == long
    if long:
        assert f"{answers:.3g} noisy answers" in said[0]
        assert plan.seconds(10) > 1e6
    else:
        assert plan.seconds(10) < 1e5


@pytest.mark.slow
@pytest.mark.parametrize("name", BUILT)
def test_every_builder_is_asked_how_long_its_plan_takes(name, monkeypatch):
    monkeypatch.setattr(common, "_WEEK", 0.0)
    relation = OPTIMIZERS[name].relations[0]
    options = BUILT[name][1 if name == "correlated_dpsgd" else 0]  # the first is priced by draws
    _, sentences = told(lambda: built(name, options, relation))
    assert any(LONG in each for each in sentences)


@pytest.mark.parametrize(
    ("name", "more"),
    [
        ("jl_glm", {}),
        ("recursive_regularization", {"W": 3.0, "dimension": 400}),
        ("tree_spider", {}),
    ],
)
def test_a_theorem_that_promises_nothing_says_from_which_n_on_it_does(name, more):
    given = {"n": 320, "dimension": 100, "epsilon": 0.2, "delta": 1e-5}
    plan, sentences = told(partial(theory_of, name, CONSTANTS, **{**given, **more}))
    assert any("informative from about n=" in each for each in sentences)
    assert plan.parameters["vacuous"]
    assert plan.parameters["informative_from_n"] > 320


# ------------------------------------------------------------------------- thresholds below noise


@pytest.mark.parametrize("batch_size", [600, 6_000])
@pytest.mark.parametrize(("epsilon", "silos"), [(0.5, 1), (0.5, 10), (2.0, 10)])
def test_a_printed_threshold_below_its_noise_is_told(epsilon, silos, batch_size):
    """Tao et al. (2025), experiments: n = 6000 a client, chi = 0.01; for gradients up to 1."""
    unit = calibrate.Constants(lipschitz=1.0, smoothness=1.0)
    given = {**PRINTED, "epsilon": epsilon, "batch_size": batch_size, "drift": 0.0}
    plan, (said,) = hidden(lambda: calibrate.distributed_psgd(unit, silos=silos, **given))
    query = plan.queries[0]
    one = query.noise_multiplier * query.max_norm / query.batch_size / math.sqrt(silos)
    noise = one * math.sqrt(PRINTED["dimension"])
    assert noise > 0.03
    assert "at most 0.03" in said
    assert f"makes it {noise:.3g}," in said
    enough = {**given, "threshold": noise / 3 * 1.01}
    assert hidden(lambda: calibrate.distributed_psgd(unit, silos=silos, **enough))[1] == []


def test_thresholds_of_selections_and_of_minimax_theories_below_their_noise_are_told():
    constants = calibrate.Constants(
        lipschitz=1.0, smoothness=1.0, gap=1.0, strong_concavity=1.0, hessian_lipschitz=1.0
    )
    given = {"n": 2_000, "dimension": 400, "epsilon": 0.5, "delta": 1e-5, "candidates": 50}
    select = partial(calibrate.select_point, constants, **given, accuracy=0.01)
    assert hidden(select)[1] == []
    given = {"n": 10**6, "epsilon": 1.0, "delta": 1e-5, "dimensions": (5, 5)}
    for name in ("dp_rgda", "dp_rgda_population"):
        plan, sentences = hidden(partial(theory_of, name, constants, **given))
        assert len(sentences) == (not plan.parameters["certifiable"])


@pytest.mark.slow
def test_derived_thresholds_are_above_their_noise():
    presets = ({}, {"drift": 0.0}, {"failure_probability": 0.1}, {"passes": 3})
    sizes = ((2_000, 3), (100_000, 50), (10**6, 1))
    builds = (calibrate.gauss_psgd, calibrate.distributed_psgd)
    for build, preset, (n, d) in itertools.product(builds, presets, sizes):
        given = {"n": n, "dimension": d, "epsilon": 1.0, "delta": 1e-6, **preset}
        assert hidden(partial(build, CONSTANTS, **given))[1] == [], (build, given)
