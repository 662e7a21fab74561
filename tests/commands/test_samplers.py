"""The checker's commands: sizes as a run is told, samplers, several targets, and certificates."""

import json
import math
from fractions import Fraction

import pytest
from _integrals import gaussian_delta
from _tree import ROOT
from hypothesis import given, strategies as st

from dpcal.calibrate.runs import RUN_SAMPLERS as SAMPLERS, rate_of
from dpcal.commands._signature import fraction

RUN = "--n 6000 --batch-size 600 --epochs 3"
NOISE = "--noise-multiplier 2"
DELTA = "--delta 1e-5"


@pytest.mark.slow
def test_the_price_of_each_assumption_about_sampling(cli):
    """512 of 60,000, 100 epochs, noise 0.8: 9.13 by Poisson, 94 without replacement, 131 fixed."""
    run = "--n 60000 --batch-size 512 --epochs 100 --noise-multiplier 0.8 --delta 1e-5"
    table = cli("samplers", run)
    assert "is a bracket" in table
    assert table in (ROOT / "docs" / "how_to" / "loaders.md").read_text()
    words = " ".join(table.split())
    assert all(name in words and each.assumes in words for name, each in SAMPLERS.items())
    told = cli.json("samplers", run, "--only poisson,without-replacement,shuffled-epochs")
    found = {row["sampler"]: row["answers"][0]["epsilon"]["upper"] for row in told["samplers"]}
    assert found["poisson"] == pytest.approx(9.13, abs=5e-3)
    assert found["without-replacement"] == pytest.approx(94.08, abs=5e-3)
    # With so little noise nothing is gained from shuffling: one Gaussian at mu = 10 / 0.8.
    exact = gaussian_delta(10 / 0.8, found["shuffled-epochs"])
    assert exact == pytest.approx(1e-5, rel=1e-7)
    pld = cli.json("epsilon", run, "--accountant pld")["epsilon"]
    assert pld["lower"] <= found["poisson"] <= pld["upper"] * (1 + 1e-9)


def test_the_noise_that_each_sampler_needs_meets_each_target(cli):
    relation = "--neighboring-relation replace-one"
    for epsilon in (1, 2):
        asked = ["samplers", RUN, f"--epsilon {epsilon}", DELTA, relation]
        told = cli.json(*asked, "--only poisson,shuffled-epochs")["samplers"]
        for row in told:
            (each,) = row["answers"]
            assert (each["epsilon"], each["delta"]) == (epsilon, 1e-5)
            noise = f"--noise-multiplier {each['noise_multiplier']!r} --sampler {row['sampler']}"
            price = cli.json("epsilon", RUN, noise, relation, DELTA)["epsilon"]["upper"]
            assert epsilon * (1 - 1e-4) < price <= epsilon
        # Three passes with a record in one batch of each, which is known: mu = 2 sqrt(3) / sigma.
        shuffled = told[-1]["answers"][0]["noise_multiplier"]
        assert gaussian_delta(2 * math.sqrt(3) / shuffled, epsilon) == pytest.approx(1e-5, rel=1e-4)
        assert f"({epsilon}, 1e-05)" in cli(*asked)


def test_ways_to_say_one_run_have_one_price(cli):
    by_run = cli.json("epsilon", RUN, NOISE, DELTA)["epsilon"]
    for rate in ("0.1 --steps 30", "600/6000 --steps 30", "1e-1 --steps 30", "1/10 --epochs 2.95"):
        asked = f"--sampling-probability {rate}"
        assert cli.json("epsilon", asked, NOISE, DELTA)["epsilon"] == by_run
    for name in ("random-allocation", "shuffled-epochs"):
        words = f"{RUN} --noise-multiplier 0.3 {DELTA}"
        # A table has a row each, of a price or of what is refused.
        asked = f"--only poisson,{name} --neighboring-relation add-or-remove-one"
        _, row = cli.json("samplers", words, asked)["samplers"]
        assert row["sampler"] == name
        assert bool(row["answers"]) != ("add-or-remove-one" in row.get("refused", ""))


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=1))
def test_the_double_of_a_rate_is_the_next_one_that_is_not_below_it(exact):
    rate = rate_of(exact)
    assert Fraction(rate) >= exact > Fraction(math.nextafter(rate, 0))
    typed = f"{float(exact):.12f}"
    assert fraction(typed) == Fraction(typed)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_all_commands_take_every_sampler(cli, sampler):
    size = 20 if sampler == "with-replacement" else 200  # a price takes longer for more draws
    run = f"--n 600 --batch-size {size} --epochs 1 --sampler {sampler}"
    epsilon = cli.json("epsilon", run, NOISE, DELTA)["epsilon"]["upper"]
    back = cli.json("delta", run, NOISE, f"--epsilon {epsilon!r}")["delta"]
    assert back["upper"] == pytest.approx(1e-5, rel=0.2 if sampler == "shuffled-epochs" else 1e-2)
    if sampler in ("poisson", "without-replacement"):
        solved = cli.json("calibrate", run, f"--epsilon {epsilon!r}", DELTA)
        assert solved["noise_multiplier"] == pytest.approx(2.0, rel=1e-2)
        assert solved["epsilon"]["upper"] <= epsilon
    if sampler == "random-allocation":  # a proof takes long, and is made elsewhere
        return
    if sampler == "shuffled-epochs":
        assert "No certificate covers Shuffled" in cli.refused("certify", run, NOISE, DELTA)
        return
    made = cli.json("certify", run, NOISE, DELTA, "--width 0.1")
    assert float(made["upper"]) >= epsilon * (1 - 1e-9)
    assert float(made["lower"]) <= epsilon


def test_several_targets_are_answered_as_each_alone(cli, tmp_path):
    both = cli.json("epsilon", RUN, NOISE, "--delta 1e-5 1e-6")["answers"]
    alone = [cli.json("epsilon", RUN, NOISE, "--delta", delta) for delta in ("1e-5", "1e-6")]
    assert [each["epsilon"] for each in both] == [each["epsilon"] for each in alone]
    grid = cli.json("calibrate", RUN, "--epsilon 1 2 --delta 1e-5 1e-6")
    noises = [each["noise_multiplier"] for each in grid["solutions"]]
    assert sorted(noises) == [noises[place] for place in (2, 3, 0, 1)]
    two = cli.json("compare", RUN, NOISE, "--delta 1e-5 1e-6 --accountants renyi")
    assert len(two["comparisons"]) == 2
    proofs = tmp_path / "proof.json"
    cli("certify", RUN, NOISE, "--epsilon 1 2 --width 0.1 -o", proofs)
    assert {each.name for each in tmp_path.iterdir()} == {"proof-1.json", "proof-2.json"}


@pytest.mark.slow
def test_a_certificate_says_who_when_and_what_and_no_more_than_is_proved(cli, tmp_path):
    path = tmp_path / "proof.json"
    run = "--n 6000 --batch-size 60 --steps 100 --noise-multiplier 4 --delta 1e-6"
    run += " --sampler with-replacement"
    made = cli.json("certify", run, "-o", path)
    priced = cli.json("epsilon", run)["epsilon"]
    assert float(made["lower"]) <= priced["upper"] * (1 + 1e-12)
    assert priced["lower"] <= float(made["upper"]) <= 1.02 * priced["upper"]
    assert set(made["about"]) == {"software", "written", "sentence", "run"}
    sentence = made["about"]["sentence"]
    assert sentence.startswith("epsilon is at least ")
    assert "for Gaussian noise of 4.0" in sentence
    assert "under add-or-remove-one" in sentence
    assert cli.json("check", path)["certificate"] == made
    # Words about another run than the mixture is for, a smaller epsilon, and a smaller delta.
    about, proof = made["about"], made["proofs"][0]
    changed = (
        {"about": {**about, "run": {**about["run"], "batch_size": 30}}},
        {"about": {**about, "sentence": sentence.replace("100 batches", "10 batches")}},
        {"about": {**about, "sentence": "epsilon is at most 0.001"}},
        {"about": {**about, "run": {}}},
        {"about": "its run"},
        # A fraction that would take the memory, one that is none, and one that is not n's.
        {"about": {**about, "run": {**about["run"], "epochs": "1e999999999", "steps": None}}},
        {"about": {**about, "run": {**about["run"], "epochs": "1/0"}}},
        {"about": {**about, "run": {**about["run"], "rate": "1/7"}}},
        {"proofs": [{**proof, "epsilon": proof["epsilon"] / 2}]},
        {"delta": 1e-7},
    )
    for change in changed:
        path.write_text(json.dumps({**made, **change}))
        assert "DOES NOT HOLD" in cli("check", path, status=1)
    path.write_text(json.dumps({name: made[name] for name in made if name != "about"}))
    assert cli("check", path)


def test_half_a_pass_costs_what_a_pass_does_and_solving_for_passes_comes_back_to_it(cli):
    """By 400-bit arithmetic on two contours: epsilon 1.7014984358 for 100 batches and 10 passes."""
    run = "--n 10000 --batch-size 100 --noise-multiplier 1 --sampler random-allocation --delta 1e-5"
    found = cli.json("epsilon", run, "--epochs 9.5")["epsilon"]
    assert found["upper"] == pytest.approx(1.7014984358, abs=1e-9)
    assert cli.json("calibrate", run, "--epsilon 1.702")["epochs"] == 10


@pytest.mark.slow
def test_a_bracket_shows_both_ends(cli):
    """One epoch of 117 batches with noise 0.8 and a short one: between an attack and no gain.

    Of 117 batches an independent script has an attack of 5.6144, and no gain is 5.67959.
    """
    run = "--n 60000 --batch-size 512 --epochs 1 --noise-multiplier 0.8 --delta 1e-5"
    text = cli("epsilon", run, "--sampler shuffled-epochs")
    lower, upper = map(float, text.split("[")[1].split("]")[0].split(","))
    assert 5.6 < lower <= 5.6144 < upper <= 5.68
    assert "(bracket: " in text
