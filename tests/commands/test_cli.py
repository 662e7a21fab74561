"""The commands about a mechanism answer what closed forms, long arithmetic and the library say."""

import json
import math
import re

import pytest

import dpcal
from dpcal import calibrate
from dpcal.accountants import characteristic
from dpcal.accountants.answers import Bounds
from dpcal.accountants.interface import Compared, Comparison
from dpcal.calibrate import Plan

MECHANISM = "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000"
# In arithmetic of 140 bits: epsilon at delta = 1e-6, and delta at epsilon = 8.
EPSILON, DELTA = 6.907384495, 2.0283809414912160718e-8


def test_epsilon_and_delta(cli):
    epsilon = cli.json("epsilon", MECHANISM, "--delta 1e-6")["epsilon"]
    assert epsilon["lower"] <= EPSILON + 1e-9
    assert epsilon["upper"] == pytest.approx(EPSILON, abs=1e-9)
    assert epsilon["accountant"] == "characteristic"
    told = cli.json("delta", MECHANISM, "--epsilon 8")
    assert told["delta"]["upper"] == pytest.approx(DELTA, rel=1e-10)
    assert told["log_delta"]["upper"] == pytest.approx(math.log(DELTA))
    # What is printed is rounded outward.
    text = cli("epsilon", MECHANISM, "--delta 1e-6")
    low, high = map(float, text.split("[")[1].split("]")[0].split(","))
    assert low < 6.9073844951 < high < low + 3e-9


@pytest.mark.parametrize(
    ("given", "name", "solution"),
    [
        ("--sampling-probability 0.01 --steps 10000", "noise_multiplier", 2.355618),
        ("--sampling-probability 0.01 --noise-multiplier 1", "steps", 874),
        ("--noise-multiplier 1 --steps 1000", "sampling_probability", 0.009442),
    ],
)
def test_calibrate_solves_for_what_is_left_out(cli, given, name, solution):
    told = cli.json("calibrate", given, "--epsilon 2 --delta 1e-6")
    assert told["epsilon"]["upper"] <= 2.0
    assert told[name] == pytest.approx(solution, rel=1e-4)


def test_calibrate_writes_a_plan(cli, tmp_path):
    run = "--n 60000 --batch-size 600 --epochs 10 --epsilon 1 --delta 1e-5"
    told = cli.json("calibrate", run, "-o", tmp_path / "plan.json")
    plan = Plan.from_json((tmp_path / "plan.json").read_text())
    assert json.loads(plan.to_json()) == told["plan"]
    assert plan.price() <= 1.0
    assert [item.name for item in tmp_path.iterdir()] == ["plan.json"]


def test_a_script_and_a_shell_reach_the_same_numbers_by_the_same_names(cli):
    """What is left is in tests of ``train`` and ``release``."""
    sizes, target = {"n": 6000, "batch_size": 600, "epochs": 3}, {"epsilon": 1.0, "delta": 1e-5}
    run = calibrate.SampledRun(**sizes, noise_multiplier=2.0)
    shell = "--n 6000 --batch-size 600 --epochs 3"
    noisy, asked = f"{shell} --noise-multiplier 2", "--epsilon 1 --delta 1e-5"
    found = run.epsilon(delta=1e-5)
    assert cli.json("epsilon", noisy, "--delta 1e-5")["epsilon"] == found.to_dict()
    found = dpcal.delta(run.event(), epsilon=1.0)
    assert cli.json("delta", noisy, "--epsilon 1")["delta"] == found.to_dict()
    solved = calibrate.SampledRun(**sizes).solved(**target)
    assert cli.json("calibrate", shell, asked)["noise_multiplier"] == solved.noise_multiplier
    table = calibrate.compare_batches(n=6000, gradients=18_000, **target)
    told = cli.json("calibrate --n 6000 --gradients 18000", asked)
    assert told == json.loads(json.dumps(table.to_dict()))
    (row,) = dpcal.compare(run.event(), delta=1e-5, accountants=("renyi",)).rows
    (told,) = cli.json("compare", noisy, "--delta 1e-5 --accountants renyi")["rows"]
    assert (told["lower"], told["upper"]) == (row.lower, row.upper)
    proof = dpcal.certify(run.event(), delta=1e-5, width=0.1).to_dict()
    told = cli.json("certify", noisy, "--delta 1e-5 --width 0.1")
    assert {name: told[name] for name in proof} == proof
    report = calibrate.audit("kl_condition", only="EP1")
    assert cli.json("audit kl_condition --explain EP1") == json.loads(report.render("json"))


def test_batch_sizes_of_one_number_of_gradients_are_priced_as_each_alone(cli):
    table = calibrate.compare_batches(n=500, gradients=2_000, epsilon=2.0, delta=1e-5)
    assert [row.batch_size for row in table.rows] == [1, 3, 7, 15, 31, 62, 125, 250, 500]
    for row in table.rows[2::3]:
        assert row.steps == 2_000 // row.batch_size
        assert row.noise_batch_ratio == row.noise_multiplier / row.batch_size
        sizes = {"n": 500, "batch_size": row.batch_size, "steps": row.steps}
        price = calibrate.SampledRun(**sizes, noise_multiplier=row.noise_multiplier)
        assert 2.0 * (1 - 1e-5) < price.epsilon(delta=1e-5).upper <= 2.0
    with pytest.raises(ValueError, match="batch_sizes must be in"):
        calibrate.compare_batches(n=500, gradients=20, epsilon=2, delta=1e-5, batch_sizes=[21])


@pytest.mark.slow
def test_compare_asks_each_accountant_with_its_own_options(cli):
    asked = "--delta 1e-6 --accountants renyi,pld,characteristic"
    renyi, fine, exact = cli.json("compare", MECHANISM, asked)["rows"]
    assert renyi["upper"] > fine["upper"] > exact["upper"] > 6.907384
    coarse = cli.json("epsilon", MECHANISM, "--delta 1e-6 --accountant pld --set interval=5e-3")
    assert coarse["epsilon"]["upper"] > fine["upper"]


def test_a_contradiction_between_accountants_is_status_1(cli, monkeypatch):
    rows = (Compared("pld", 2.0, 3.0, 0.1), Compared("prv", 0.5, 1.0, 0.1))
    comparison = Comparison(1e-6, "add-or-remove-one", rows)
    monkeypatch.setattr(dpcal, "compare", lambda *_, **__: comparison)
    text = cli("compare", MECHANISM, "--delta 1e-6", status=1)
    assert "CONTRADICTION" in text
    assert "proves at least" in text


@pytest.mark.slow
def test_a_second_accountant_checks_the_first(cli, monkeypatch):
    asked = ["epsilon", MECHANISM, "--delta 1e-6"]
    checked = cli.json(*asked, "--cross-check --set interval=1e-3")
    assert checked["epsilon"] == cli.json(*asked)["epsilon"]
    for name, bounds in (("epsilon_bounds", (3.0, 3.1)), ("log_delta_bounds", (-30.0, -29.0))):
        wrong = Bounds(*bounds, "broken")
        monkeypatch.setattr(characteristic, name, lambda *_, wrong=wrong: wrong)
    sentence = cli.refused(*asked, "--cross-check --set interval=2e-4")
    assert "characteristic gives at most 3.1 where pld proves at least" in sentence
    assert "One of them is wrong" in sentence


def test_certify_and_check(cli, tmp_path):
    path = tmp_path / "certificate.json"
    made = cli.json("certify", MECHANISM, "--epsilon 8 -o", path)
    assert json.loads(path.read_text()) == made
    assert float(made["lower"]) < DELTA < float(made["upper"])
    assert cli.json("check", path) == {"holds": True, "certificate": made}
    at_delta = cli.json("certify", MECHANISM, "--delta 1e-6 --width 1e-6")
    assert float(at_delta["lower"]) < EPSILON < float(at_delta["upper"])
    assert at_delta["quantity"] == "epsilon"
    made["mechanisms"][0]["count"] = 9_999
    path.write_text(json.dumps(made))
    text = cli("check", path, status=1)
    assert text.startswith("DOES NOT HOLD: digest of the certificate")
    assert cli.json("check", path, status=1)["holds"] is False


@pytest.mark.parametrize(
    ("method", "told"), [("contour", {"contour", "parity"}), ("convex-order", {"convex order"})]
)
def test_certify_by_the_method_that_is_named(cli, method, told):
    run = "--sampler random-allocation --n 20 --batch-size 2 --epochs 10 --noise-multiplier 2"
    text = cli("certify", run, "--epsilon 2.1420731081 --width 0.3 --method", method)
    low, high = map(float, text.split("[")[1].split("]")[0].split(","))
    assert low < 1e-5 < high < 1.5e-5
    # A contour of a removed record is that of an added one.
    assert set(re.findall(r"\], by ([a-z ]+)$", text, re.MULTILINE)) == told
