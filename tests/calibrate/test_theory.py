"""Theorems as plans: one copy of each setting, integers on the safe side, feasibility, noise."""

import math
import random
import re
import tomllib
import warnings

import mpmath
import pytest
from _tree import DATA

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate.papers import PAPERS as NAMES, load
from dpcal.calibrate.plans import kl_spider
from dpcal.calibrate.plans.theory import THEOREMS, case_of, evaluated, theorem_at
from dpcal.errors import VacuousSchedule

PAPERS = tomllib.loads((DATA / "papers.toml").read_text(encoding="utf-8"))
CASES, BY_HAND = PAPERS["promising"], PAPERS["by_hand"]
MATH = {name: getattr(mpmath, name) for name in ("sqrt", "log", "exp")} | {"Max": max, "Min": min}


def quietly(make, *args, **asked):
    """Return what is made of a theorem that may promise nothing at its sizes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VacuousSchedule)
        return make(*args, **asked)


def numbers(paper, seed):
    """Return a random number for each letter of a paper, in the range that it declares."""
    dice, found = random.Random(f"{paper} {seed}"), {}
    for quantity in load(paper).quantities:
        ends = quantity.values()
        low, high = float(ends.low or 0), 1e6 if ends.high is None else float(ends.high)
        value = math.exp(dice.uniform(math.log(max(low, 1e-3)), math.log(high)))
        found[quantity.name] = math.ceil(value) if quantity.whole else value
    return found


@pytest.mark.parametrize("paper", NAMES)
def test_every_setting_is_evaluated_as_its_text_says(paper):
    """At 100 random inputs each, in the digits of another arithmetic."""
    schedule, counts = load(paper), {}
    for seed in range(100):
        letters = numbers(paper, seed)
        for setting in schedule.settings:
            dice = random.Random(f"{setting.name} {seed}")
            others = {each.name: 10 ** dice.uniform(-2, 4) for each in schedule.settings}
            values = {**others, **letters}
            exact = {name: mpmath.mpf(value) for name, value in values.items()}
            try:
                wanted = eval(setting.corrected, MATH, exact)
                found = evaluated(setting, values)
            except (ArithmeticError, ValueError, TypeError):
                continue
            if isinstance(wanted, mpmath.mpc) or not 1e-300 < abs(wanted) < 1e300:
                continue
            counts[setting.name] = counts.get(setting.name, 0) + 1
            if not setting.rounding:
                assert found == pytest.approx(float(wanted), rel=1e-7, abs=1e-12), setting.name
            elif setting.rounding == "up":
                assert max(1, wanted) * (1 - 1e-11) <= found < max(wanted, 1) * (1 + 1e-9) + 1
            else:
                assert max(wanted, 1) * (1 - 1e-9) - 1 < found <= max(1, wanted) * (1 + 1e-11)
    assert counts.keys() == {setting.name for setting in schedule.settings}
    assert min(counts.values()) > 20


@pytest.mark.slow
@pytest.mark.parametrize("name", THEOREMS)
def test_a_plan_says_what_the_settings_say(name):
    given = {**PAPERS["papers"][name], "epsilon": 2.0, "delta": 1e-6}
    given |= {"gamma": 2.0, "kappa": 1.5} if name in ("kl_condition", "adaptive_gd") else {}
    large = {"kl_condition": 10**8, "adaptive_gd": 10**6, "proximal_point": 10**6}
    for dice in (random.Random(seed) for seed in range(3)):
        n = 100 * int(large.get(name, 10**5) * dice.uniform(0.01, 0.04))
        plan, rows = quietly(theorem_at, name, n=n, **given)
        values = {name: value for name, value, *_ in rows} | {"Lam": math.log(1e6)} | given
        values |= {"z": plan.queries[0].noise_multiplier, "kappa": plan.parameters.get("drift")}
        for parameter, formula in PAPERS["said"][name].items():
            wanted = eval(formula, MATH, values)
            assert plan.parameters[parameter] == pytest.approx(float(wanted), rel=1e-9), parameter
        assert 2.0 * (1 - 1e-3) < plan.price() <= 2.0


def test_printed_values_stand_beside_corrected_ones_and_missing_letters_are_named():
    given = {"n": 60_000, "d": 784, "L0": 1, "L1": 2, "F0": 1}
    _, rows = theorem_at("spiderboost", epsilon=1.0, delta=1e-6, **given)
    table = {name: (value, printed) for name, value, printed, _ in rows}
    assert list(table) == [each.name for each in load("spiderboost").settings]
    assert table["q"][1] in (2 * table["q"][0] // 4, 2 * table["q"][0] // 4 + 1)  # over L1^2 = 4
    assert table["lam"] == ("needs W", "needs W")


def kl_steps(values):
    """Line 10 of Algorithm 1: steps and lengths of every round, from the settings."""
    case = case_of("kl_condition", epsilon=2.0, delta=1e-6, **CASES["kl_condition"])
    level = values["F0"]
    for _ in range(values["K"]):
        level = max(level / values["c"], values["level"])
        yield case.at("T_k", "h", **{**values, "Phi": level})


@pytest.mark.parametrize("kappa", [1.0, 1.5, 2.0])
def test_rounds_of_the_kl_plan_are_those_of_the_settings(kappa):
    constants = {**CASES["kl_condition"], "kappa": kappa}
    plan, rows = theorem_at("kl_condition", epsilon=2.0, delta=1e-6, **constants)
    found = {name: value for name, value, *_ in rows if not isinstance(value, str)}
    lines = list(kl_steps({**constants, **found}))
    for each, line in zip(kl_spider.schedule(plan), lines, strict=True):
        assert each.steps == line["T_k"]
        assert each.length == pytest.approx(line["h"], rel=1e-9)
    assert plan.parameters["steps"] == sum(line["T_k"] for line in lines)
    radius = sum(line["T_k"] * line["h"] for line in lines)
    assert plan.parameters["radius"] == pytest.approx(radius, rel=1e-9)


@pytest.mark.parametrize("row", BY_HAND["kan"])
def test_each_corollary_of_kan_by_hand(row):
    plan = quietly(calibrate.theory, "kan", epsilon=2.0, delta=1e-5, **row["asked"])
    assert {key: plan.parameters[key] for key in row["settings"]} == row["settings"]
    n, gamma, T = row["asked"]["n"], row["asked"]["gamma"], row["settings"]["steps"]
    radius = (math.log(T) + math.sqrt(math.log(n / 1e-5))) / gamma
    assert plan.parameters["projection_radius"] == pytest.approx(radius)
    if "lam" in row["asked"]:
        strategy = LambdaCGD(row["settings"]["steps"], 0.5)
        assert plan.query("gradient").correlation.strategy == strategy
    assert 1.9 < plan.price() <= 2.0


def test_a_corollary_without_noise_promises_nothing_with_it():
    target = {"n": 400, "d": 4, "gamma": 1.0, "epsilon": 2.0, "delta": 1e-5}
    with pytest.warns(VacuousSchedule, match=r"Corollary 5\.6 of kan is about SGD without noise"):
        plan = calibrate.theory("kan", corollary="5.6", **target)
    assert plan.parameters["vacuous"] is True
    assert "accuracy" not in plan.parameters
    assert plan.parameters["noiseless_accuracy"] == 1 / 400


def test_rounding_stays_on_the_safe_side():
    given = {"n": 10**5, "d": 4, "L0": 1, "L1": 1, "F0": 1}
    case = case_of("spiderboost", epsilon=1.0, delta=1e-6, **given)
    values = case.at("T1", "T", "q", "b2", abar=3.3e-3)
    assert values["T"] >= values["T1"]
    assert values["T"] * values["abar"] >= 1
    assert 2 * values["q"] * values["T"] * values["abar"] ** 2 <= 1
    assert 1 <= values["b2"] <= values["n"]
    assert values["b2"] >= min(values["n"], values["n"] / math.sqrt(values["T"]))


def test_infeasible_sizes_name_a_size_that_is_feasible():
    constants = {**CASES["spiderboost"], "epsilon": 4.0, "delta": 1e-6}
    with pytest.raises(ValueError, match=r"n must be at least (\d+)") as refusal:
        calibrate.theory("spiderboost", **{**constants, "n": 20})
    needed = float(re.search(r"at least (\d+)", str(refusal.value)).group(1))
    asked = {**constants, "n": math.ceil(1.1 * needed)}
    assert quietly(calibrate.theory, "spiderboost", **asked).price() <= 4


@pytest.mark.parametrize(("name", "n"), [("spiderboost", 400), ("kl_condition", 1000)])
def test_vacuous_theorem_says_where_it_bites(name, n):
    constants = {**CASES[name], "epsilon": 1.0, "delta": 1e-6}
    with pytest.warns(VacuousSchedule, match="informative from about n="):
        plan = calibrate.theory(name, **{**constants, "n": n})
    size = plan.parameters["informative_from_n"]
    with warnings.catch_warnings():
        warnings.simplefilter("error", VacuousSchedule)
        calibrate.theory(name, **{**constants, "n": int(1.2 * size)})


def test_wrong_letters_are_refused_by_name():
    given = {"n": 10**4, "epsilon": 1.0, "delta": 1e-6, "d": 4, "gamma": 0.5}
    for changes, sentence in (
        ({"gama": 0.5}, "did you mean 'gamma'"),
        ({"gamma": 1.5}, r"gamma must be in \(0, 1\], got 1\.5"),
        ({"d": 2.5}, "d must be a whole number"),
        ({"corollary": "5.4"}, "corollary must be"),
        ({"epsilon": -1.0}, "epsilon must be"),
    ):
        with pytest.raises((TypeError, ValueError), match=sentence):
            calibrate.theory("kan", **{**given, **changes})
    with pytest.raises(ValueError, match="did you mean 'spiderboost'"):
        calibrate.theory("spiderbost", **given)
    with pytest.raises(ValueError, match="constants of spiderboost must include L0, L1, F0"):
        calibrate.theory("spiderboost", n=100, epsilon=1.0, delta=1e-6, d=3)
