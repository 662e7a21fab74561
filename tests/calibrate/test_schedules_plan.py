"""Plans from schedules: numbers, integers on the safe side, feasibility, and exact noise."""

import math
import re
import tomllib
import warnings

import pytest
from _tree import DATA

from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate.papers import load
from dpcal.calibrate.papers.from_schedule import settle
from dpcal.calibrate.plans import kl_spider
from dpcal.calibrate.plans.common import Target
from dpcal.calibrate.plans.variance_reduction import Releases, settled_counts
from dpcal.errors import VacuousSchedule

PAPERS = tomllib.loads((DATA / "papers.toml").read_text(encoding="utf-8"))
CASES, BY_HAND = PAPERS["promising"], PAPERS["by_hand"]


def quietly(paper, **asked):
    """Return a plan whose theorem may promise nothing at its sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousSchedule)
        return load(paper).plan(**asked)


@pytest.mark.slow
@pytest.mark.parametrize("paper", CASES)
def test_plan_meets_its_target_and_wastes_little(paper):
    plan = load(paper).plan(epsilon=2.0, delta=1e-6, **CASES[paper])
    assert (1 - 1e-3) * 2.0 < plan.price() <= 2.0
    assert plan.parameters["vacuous"] is False


def kl_steps(values):
    """Line 10 of Algorithm 1: steps of every round, from the settings."""
    level = values["F0"]
    for _ in range(values["K"]):
        level = max(level / values["c"], values["level"])
        work = (values["F0"] / level) ** ((2 - values["kappa"]) / values["kappa"])
        yield max(1, math.ceil(work * (1 - 1e-12)))


@pytest.mark.parametrize("kappa", [1.0, 1.5, 2.0])
def test_the_kl_plan_has_the_rounds_of_the_corrected_settings(kappa):
    constants = {**CASES["kl_condition"], "kappa": kappa}
    plan = load("kl_condition").plan(epsilon=2.0, delta=1e-6, **constants)
    rho = 1 / (2 * plan.query("gradient").budget ** 2)
    values = {**constants, "rho": rho, "beta": 0.05}
    settle(load("kl_condition"), ["X", "a", "c", "R", "K", "beta_k", "level"], values)
    rounds = kl_spider.schedule(plan)
    assert len(rounds) == values["K"]
    assert plan.parameters["contraction"] == pytest.approx(values["c"], rel=1e-12)
    assert plan.parameters["accuracy"] == pytest.approx(values["level"], rel=1e-12)
    assert [each.steps for each in rounds] == list(kl_steps(values))


def counted(plan, paper, names, constants, **more):
    """Return the counts of the corrected settings of a paper at the rate that meets a target."""
    n, d, relation = constants["n"], constants["d"], plan.neighboring_relation
    sizes = {"n": n, "refresh_size": n, "relation": relation, **more}

    def counts_at(rate):
        values = {**constants, names[0]: rate, **({"K": more["inner"]} if more else {})}
        settle(load(paper), ["T1", "T", "q", names[1]], values)
        period = min(values["q"], values["T"])
        return Releases(steps=values["T"], period=period, batch_size=values[names[1]], **sizes)

    return settled_counts(counts_at, Target(2.0, 1e-6, relation), n=n, d=d)[0]


@pytest.mark.slow
@pytest.mark.parametrize(("n", "d", "gap"), [(60_000, 784, 1.0), (10**6, 20, 0.1), (10**5, 5, 3.0)])
def test_the_spiderboost_plan_has_the_counts_of_the_corrected_settings(n, d, gap):
    constants = {"n": n, "d": d, "L0": 1.5, "L1": 0.5, "F0": gap}
    plan = quietly("spiderboost", epsilon=2.0, delta=1e-6, **constants)
    counts = counted(plan, "spiderboost", ("abar", "b2"), constants)
    assert plan.parameters["steps"] == counts.steps
    assert plan.parameters["batch_size"] == counts.batch_size
    # It is shorter where differences would leave too little of the budget for fresh gradients.
    assert 0.8 * counts.period < plan.parameters["period"] <= counts.period


@pytest.mark.slow
def test_the_minimax_plan_has_the_counts_of_the_corrected_settings():
    constants = {"n": 10**5, "d": 20, "L": 2.0, "M": 1.5, "F0": 0.5}
    plan = load("dp_rgda").plan(epsilon=2.0, delta=1e-6, mu=1.0, rho=1.0, **constants)
    counts = counted(plan, "dp_rgda", ("eb", "S2"), constants, inner=2)
    found = [plan.parameters[name] for name in ("steps", "period", "batch_size")]
    assert found == [counts.steps, counts.period, counts.batch_size]


@pytest.mark.parametrize("row", BY_HAND["kan"])
def test_each_corollary_of_kan_by_hand(row):
    plan = quietly("kan", epsilon=2.0, delta=1e-5, **row["asked"])
    assert {key: plan.parameters[key] for key in row["settings"]} == row["settings"]
    if "lam" in row["asked"]:
        strategy = LambdaCGD(row["settings"]["steps"], 0.5)
        assert plan.query("gradient").correlation.strategy == strategy
    assert 1.9 < plan.price() <= 2.0


def test_a_corollary_without_noise_promises_nothing_with_it():
    target = {"n": 400, "d": 4, "gamma": 1.0, "epsilon": 2.0, "delta": 1e-5}
    with pytest.warns(VacuousSchedule, match=r"Corollary 5\.6 of kan is about SGD without noise"):
        plan = load("kan").plan(corollary="5.6", **target)
    assert plan.parameters["vacuous"] is True
    assert "accuracy" not in plan.parameters
    assert plan.parameters["noiseless_accuracy"] == 1 / 400


@pytest.mark.parametrize("row", BY_HAND["minimax"])
def test_minimax_settings_by_hand(row):
    values = {**row["asked"], "ell": math.log(1 / row["delta"])}
    settle(load("dp_rgda"), ["eb", "T1", "T", "q", "S2"], values)
    assert {key: values[key] for key in row["settings"]} == row["settings"]


def test_rounding_stays_on_the_safe_side():
    schedule = load("spiderboost")
    values = {"n": 10**5, "abar": 3.3e-3, "L0": 1, "L1": 1, "F0": 1}
    settle(schedule, ["T1", "T", "q", "b2"], values)
    assert values["T"] >= values["T1"]
    assert values["T"] * values["abar"] >= 1
    assert 2 * values["q"] * values["T"] * values["abar"] ** 2 <= 1
    assert 1 <= values["b2"] <= values["n"]
    assert values["b2"] >= min(values["n"], values["n"] / math.sqrt(values["T"]))


@pytest.mark.parametrize(
    ("paper", "n", "sentence"),
    [
        ("spiderboost", 20, r"n must be at least (\d+)"),
        ("kl_condition", 1000, r"at least about (\S+) for the floor of Algorithm 1"),
    ],
)
def test_infeasible_sizes_name_a_size_that_is_feasible(paper, n, sentence):
    constants = {**CASES[paper], "epsilon": 4.0, "delta": 1e-6}
    with pytest.raises(ValueError, match=sentence) as refusal:
        load(paper).plan(**{**constants, "n": n})
    needed = float(re.search(sentence, str(refusal.value)).group(1))
    assert quietly(paper, **{**constants, "n": math.ceil(1.1 * needed)}).price() <= 4


def test_vacuous_theorem_says_where_it_bites():
    constants = {"d": 784, "epsilon": 1.0, "delta": 1e-6, "L0": 1, "L1": 1, "F0": 1}
    with pytest.warns(VacuousSchedule, match="informative from about n="):
        plan = load("spiderboost").plan(n=400, **constants)
    size = plan.parameters["informative_from_n"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", VacuousSchedule)
        load("spiderboost").plan(n=int(1.2 * size), **constants)
