"""The checker's commands: sizes as a run is told, samplers, several targets, and what was meant."""

import io
import json
import math
import re
import time
from fractions import Fraction

import numpy as np
import pytest
from _tree import ROOT
from hypothesis import given, strategies as st
from matplotlib.figure import Figure
from scipy.optimize import brentq
from scipy.stats import norm

import dpcal
from dpcal.accountants import events
from dpcal.cli import main
from dpcal.commands.checking.mechanism import SAMPLERS, fraction, rate_of
from dpcal.commands.checking.progress import Progress

RUN = ["--n", "6000", "--batch-size", "600", "--epochs", "3"]
RATE = ["--sampling-probability", "0.1", "--steps", "9"]
NOISE = ["--noise-multiplier", "2"]


def ask(capsys, *words):
    """Run a command that must succeed, and return its JSON."""
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def refuse(capsys, *words):
    """Run a command that must be refused, and return its sentence."""
    assert main([*map(str, words)]) == 2
    return capsys.readouterr().err


def gaussian_epsilon(mu, delta):
    """Closed form of the Gaussian mechanism (Balle and Wang 2018, Theorem 8)."""

    def excess(epsilon):
        tail = math.exp(epsilon + norm.logcdf(-mu / 2 - epsilon / mu))
        return norm.cdf(mu / 2 - epsilon / mu) - tail - delta

    return brentq(excess, 0, 500, xtol=1e-12)


@pytest.mark.slow
def test_the_price_of_each_assumption_about_sampling(capsys):
    """512 of 60,000, 100 epochs, noise 0.8: 9.13 by Poisson, 94 without replacement, 131 fixed."""
    run = ["--n", "60000", "--batch-size", "512", "--epochs", "100", "--noise-multiplier", "0.8"]
    words = ["compare", *run, "--delta", "1e-5", "--samplers"]
    assert main(words) == 0
    table, _, _ = capsys.readouterr().out.partition("\n\n\n")
    assert table in (ROOT / "docs" / "loaders.md").read_text()
    told = ask(capsys, *words, "poisson,without-replacement,shuffled-epochs")
    found = {row["sampler"]: row["answers"][0]["epsilon"]["upper"] for row in told["samplers"]}
    assert found["poisson"] == pytest.approx(9.13, abs=5e-3)
    assert found["without-replacement"] == pytest.approx(94.08, abs=5e-3)
    # With so little noise nothing is gained from shuffling: one Gaussian at mu = 10 / 0.8.
    exact = gaussian_epsilon(10 / 0.8, 1e-5)
    assert found["shuffled-epochs"] == pytest.approx(exact, rel=1e-9)
    pld = ask(capsys, "epsilon", *run, "--delta", "1e-5", "--accountant", "pld")["epsilon"]
    assert pld["lower"] <= found["poisson"] <= pld["upper"] * (1 + 1e-9)


@pytest.mark.slow
def test_the_table_of_samplers_says_relation_assumption_and_refusal(capsys):
    words = ["compare", *RUN, *NOISE, "--delta", "1e-5", "--samplers"]
    assert main(words) == 0
    text = capsys.readouterr().out
    assert all(name in text and SAMPLERS[name].assumes in text for name in SAMPLERS)
    words += ["poisson,shuffled-epochs", "--neighboring-relation", "add-or-remove-one"]
    told = ask(capsys, *words)["samplers"]
    assert {row["neighboring_relation"] for row in told} == {"add-or-remove-one"}
    (refused,) = [row for row in told if not row["answers"]]
    assert refused["sampler"] == "shuffled-epochs"
    assert "add-or-remove-one" in refused["refused"]


def test_the_noise_that_each_sampler_needs_meets_each_target(capsys):
    replace_one = ["--neighboring-relation", "replace-one"]
    targets = ["--epsilon", "1", "2", "--delta", "1e-5", *replace_one]
    words = ["compare", *RUN, *targets, "--samplers", "poisson,shuffled-epochs"]
    told = {row["sampler"]: row["answers"] for row in ask(capsys, *words)["samplers"]}
    for name, answers in told.items():
        assert [(each["epsilon"], each["delta"]) for each in answers] == [(1, 1e-5), (2, 1e-5)]
        for each in answers:
            noise = ["--noise-multiplier", repr(each["noise_multiplier"]), "--sampler", name]
            noise += [*replace_one, "--delta", "1e-5"]
            price = ask(capsys, "epsilon", *RUN, *noise)["epsilon"]["upper"]
            assert each["epsilon"] * (1 - 1e-4) < price <= each["epsilon"]
    # Three passes with a record in one batch of each, which is known: mu = 2 sqrt(3) / sigma.
    shuffled = told["shuffled-epochs"][0]["noise_multiplier"]
    assert gaussian_epsilon(2 * math.sqrt(3) / shuffled, 1e-5) == pytest.approx(1, rel=1e-6)
    assert main(words) == 0
    assert "(2, 1e-05)" in capsys.readouterr().out
    assert "Exactly one of --noise-multiplier" in refuse(capsys, *words, *NOISE)


def test_short_names_of_samplers_are_names_of_samplers(capsys):
    for short, name in (("allocation", "random-allocation"), ("shuffle", "shuffled-epochs")):
        words = [*RUN, "--noise-multiplier", "0.3", "--delta", "1e-5"]
        told = ask(capsys, "epsilon", *words, "--sampler", short)
        assert told == ask(capsys, "epsilon", *words, "--sampler", name)
        (row,) = ask(capsys, "compare", *words, "--samplers", short)["samplers"]
        assert row["sampler"] == name


def test_a_run_as_it_is_told_is_the_rate_and_the_steps_that_it_means(capsys):
    by_run = ask(capsys, "epsilon", *RUN, *NOISE, "--delta", "1e-5")["epsilon"]
    for rate in ("0.1", "600/6000", "1e-1"):
        words = ["--sampling-probability", rate, "--steps", "30", *NOISE]
        assert ask(capsys, "epsilon", *words, "--delta", "1e-5")["epsilon"] == by_run
    words = ["--sampling-probability", "1/10", "--epochs", "2.95", *NOISE, "--delta", "1e-5"]
    assert ask(capsys, "epsilon", *words)["epsilon"] == by_run


@given(st.fractions(min_value=Fraction(1, 10**12), max_value=1))
def test_the_double_of_a_rate_is_the_next_one_that_is_not_below_it(exact):
    rate = rate_of(exact)
    assert Fraction(rate) >= exact > Fraction(math.nextafter(rate, 0))


@given(st.decimals(min_value="1e-9", max_value=1, places=12))
def test_a_typed_rate_is_an_exact_decimal(typed):
    assert fraction(str(typed)) == Fraction(typed)


@pytest.mark.slow
@pytest.mark.parametrize("sampler", SAMPLERS)
def test_all_commands_take_every_sampler(capsys, tmp_path, sampler):
    # Prices of draws with replacement take the longer the more a record is drawn, and the upper end
    # for a shuffle is searched for.
    quick, shuffled = sampler in ("poisson", "without-replacement"), sampler == "shuffled-epochs"
    batch = "200" if sampler == "with-replacement" else "600"
    words = ["--n", "6000", "--batch-size", batch, "--epochs", "1", "--sampler", sampler]
    delta = ["--delta", "1e-5"]
    epsilon = ask(capsys, "epsilon", *words, *NOISE, *delta)["epsilon"]["upper"]
    back = ask(capsys, "epsilon", *words, *NOISE, "--epsilon", repr(epsilon))["delta"]
    assert back["upper"] == pytest.approx(1e-5, rel=0.2 if shuffled else 1e-2)
    if quick:
        solved = ask(capsys, "calibrate", *words, "--epsilon", repr(epsilon), *delta)
        assert solved["noise_multiplier"] == pytest.approx(2.0, rel=1e-2)
        assert solved["epsilon"]["upper"] <= epsilon
    made = ask(capsys, "certify", *words, *NOISE, *delta, "--width", "0.1")
    assert float(made["upper"]) >= epsilon * (1 - 1e-9)
    dominates = "which it dominates" in made["about"]["sentence"]
    assert dominates == (sampler == "with-replacement")
    assert dominates or float(made["lower"]) <= epsilon
    picture = ["plot", "profile", *words, *NOISE, *delta, "-o", tmp_path / "p.png"]
    if quick:
        told = ask(capsys, *picture)
        (mark,) = told["marks"]
        assert mark == {"epsilon": epsilon, "delta": 1e-5}
        # The curve goes down through the mark.
        line = told["profile"][0]
        below = [d for e, d in zip(line["epsilon"], line["delta"], strict=True) if e > epsilon]
        assert max(below) < 1e-5 < max(line["delta"])


@pytest.mark.slow
def test_the_trade_off_of_random_allocation_is_a_bound_which_an_attack_nearly_reaches(
    capsys, tmp_path
):
    """One pass of three batches: between two Gaussian curves in closed form."""
    path = tmp_path / "bound.svg"
    words = ["--n", "6000", "--batch-size", "2000", "--epochs", "1", *NOISE]
    words += ["--sampler", "random-allocation", "-o", path]
    told = ask(capsys, "plot", "trade-off", *words)
    assert f"{len(told['points'])} epsilons" in told["bound"]
    assert told["bound"] in path.read_text()
    rates = np.array(told["false_positive_rate"])
    lower = np.array(told["false_negative_rate"]["lower"])
    # Who adds up three sums sees one step under noise 2 sqrt(3). No bound may be above the curve of
    # that attack, which is nearly the best one.
    attack = norm.cdf(norm.isf(rates) - 1 / (2 * math.sqrt(3)))
    assert np.all(lower <= attack)
    assert np.max(attack - lower) < 0.01
    # Who is told the batch sees one Gaussian mechanism; hiding it is worth something.
    revealed = norm.cdf(norm.isf(rates) - 1 / 2)
    middle = (rates > 0.05) & (rates < 0.95)
    assert np.all(lower[middle] > revealed[middle])


@pytest.mark.slow
def test_pictures_of_a_shuffle_have_both_ends(capsys, tmp_path):
    """In one batch a pass, nothing is shuffled: four Gaussian answers of noise 2."""
    path = tmp_path / "bound.svg"
    words = ["--n", "6000", "--batch-size", "6000", "--epochs", "4", *NOISE]
    words += ["--sampler", "shuffled-epochs", "-o", path]
    above, below = ask(capsys, "plot", "profile", *words)["profile"]
    assert below["accountant"] == "attack"
    exact = [gaussian_epsilon(1.0, delta) for delta in above["delta"]]
    assert above["epsilon"] == pytest.approx(exact, rel=1e-6)
    assert below["epsilon"] == pytest.approx(exact, rel=1e-6)
    told = ask(capsys, "plot", "trade-off", *words)
    assert f"{len(told['points'])} epsilons" in told["bound"]
    assert told["bound"] in path.read_text()


def test_there_is_no_renyi_picture_of_a_shuffle(capsys, tmp_path):
    words = [*RUN, *NOISE, "--sampler", "shuffled-epochs", "-o", tmp_path / "renyi.svg"]
    message = refuse(capsys, "plot", "renyi", *words)
    assert "no finite divergence follows" in message
    assert "use 'dpcal plot profile' or 'dpcal plot trade-off'" in message
    assert "DpEvent" not in message
    assert not list(tmp_path.iterdir())


def test_several_targets_are_answered_as_each_alone(capsys, tmp_path):
    words = [*RUN, *NOISE]
    both = ask(capsys, "epsilon", *words, "--delta", "1e-5", "1e-6")["answers"]
    alone = [ask(capsys, "epsilon", *words, "--delta", delta) for delta in ("1e-5", "1e-6")]
    assert [each["epsilon"] for each in both] == [each["epsilon"] for each in alone]
    grid = ask(capsys, "calibrate", *RUN, "--epsilon", "1", "2", "--delta", "1e-5", "1e-6")
    noises = [each["noise_multiplier"] for each in grid["solutions"]]
    assert len(noises) == 4
    assert noises[1] == max(noises)
    assert noises[2] == min(noises)
    two = ask(capsys, "compare", *words, "--delta", "1e-5", "1e-6", "--accountant", "renyi")
    assert len(two["comparisons"]) == 2
    path = tmp_path / "proof.json"
    ask(capsys, "certify", *words, "--epsilon", "1", "2", "--width", "0.1", "-o", path)
    assert {each.name for each in tmp_path.iterdir()} == {"proof-1.json", "proof-2.json"}


def test_calibration_by_another_accountant_meets_the_target_by_it(capsys):
    words = ["calibrate", *RUN, "--epsilon", "1", "--delta", "1e-5"]
    ours = ask(capsys, *words)["noise_multiplier"]
    renyi = ask(capsys, *words, "--accountant", "renyi")
    assert renyi["epsilon"]["accountant"] == "renyi"
    assert renyi["epsilon"]["upper"] <= 1
    assert renyi["noise_multiplier"] > ours


def test_a_certificate_says_who_when_and_what_and_no_more_than_is_proved(capsys, tmp_path):
    path = tmp_path / "proof.json"
    made = ask(capsys, "certify", *RUN, *NOISE, "--delta", "1e-5", "--width", "0.1", "-o", path)
    assert set(made["about"]) == {"software", "written", "sentence", "run"}
    assert "add-or-remove-one" in made["about"]["sentence"]
    assert ask(capsys, "certify", "--check", path)["certificate"] == made
    without = {name: value for name, value in made.items() if name != "about"}
    path.write_text(json.dumps(without))
    assert main(["certify", "--check", str(path)]) == 0
    made["about"]["sentence"] = "epsilon is at most 0.001"
    path.write_text(json.dumps(made))
    capsys.readouterr()
    assert main(["certify", "--check", str(path)]) == 1
    assert "sentence says other than what is proved" in capsys.readouterr().out


@pytest.mark.slow
def test_a_certificate_of_draws_with_replacement_is_an_upper_bound_of_its_own_run(capsys, tmp_path):
    path = tmp_path / "proof.json"
    words = ["--n", "6000", "--batch-size", "60", "--noise-multiplier", "4", "--steps", "100"]
    words += ["--sampler", "with-replacement", "--delta", "1e-6"]
    made = ask(capsys, "certify", *words, "-o", path)
    priced = ask(capsys, "epsilon", *words)["epsilon"]
    assert priced["lower"] <= float(made["upper"]) <= 1.02 * priced["upper"]
    sentence = made["about"]["sentence"]
    assert sentence.startswith("epsilon is at most ")
    assert "The upper bound holds for Gaussian noise of 4.0" in sentence
    assert "under add-or-remove-one" in sentence
    assert ask(capsys, "certify", "--check", path)["certificate"] == made
    # Words about another run than the mixture is for, a smaller epsilon, and a smaller delta.
    other = {**made["about"], "run": {**made["about"]["run"], "batch_size": 30}}
    proof = made["proofs"][0]
    changed = (
        {"about": other},
        {"about": {**made["about"], "sentence": sentence.replace("100 batches", "10 batches")}},
        {"about": {**made["about"], "run": {}}},
        {"proofs": [{**proof, "epsilon": proof["epsilon"] / 2}]},
        {"delta": 1e-7},
    )
    for change in changed:
        path.write_text(json.dumps({**made, **change}))
        assert main(["certify", "--check", str(path)]) == 1
        assert "DOES NOT HOLD" in capsys.readouterr().out
    message = refuse(capsys, "certify", *words, "--neighboring-relation", "replace-one")
    assert "under 'replace-one'" in message


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["epsilon", "--delt", "1e-5"], "--delt may be meant to be --delta"),
        (["epsilom"], "epsilom may be meant to be epsilon"),
        (["epsilon", *RUN, "--sampler", "poison"], "poisson"),
        (["compare", "--sampling-probabilty=0.1"], "meant to be --sampling-probability"),
        (["epsilon", *NOISE, "--n", "9", "--delta", "1e-5"], "--n and --batch-size go together"),
        (["epsilon", *RUN, *NOISE, "--steps", "3", "--delta", "1e-5"], "--steps and --epochs"),
        (["epsilon", *NOISE, "--steps", "3", "--delta", "1e-5"], "--sampling-probability"),
        (["epsilon", "--sampling-probability", "1/0"], "quotient such as 512/60000"),
        (
            ["epsilon", *RATE, *NOISE, "--delta", "1e-5", "--sampler", "without-replacement"],
            "needs --n and --batch-size",
        ),
        (["compare", *RUN, *NOISE, "--delta", "1e-5", "--samplers", "moon"], "--samplers must be"),
    ],
)
def test_errors_name_what_is_wrong_and_what_was_meant(capsys, words, named):
    message = refuse(capsys, *words)
    assert named in message
    assert message.count("\n") == 1


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def test_progress_is_drawn_on_a_terminal_after_a_while_and_erased():
    terminal = Terminal()
    with Progress("compare", after=0.01, stream=terminal) as progress:
        progress.stage("poisson")
        deadline = time.monotonic() + 10
        while not progress.drawn and time.monotonic() < deadline:
            time.sleep(0.005)
    assert "compare: poisson" in terminal.getvalue()
    assert terminal.getvalue().endswith(" \r")
    for stream in (Terminal(), io.StringIO()):
        with Progress("compare", after=60.0, stream=stream):
            pass
        assert stream.getvalue() == ""


def test_progress_is_one_plain_line_in_a_log():
    log = io.StringIO()
    with Progress("compare", after=0.2, stream=log) as progress:
        progress.stage("poisson")
        deadline = time.monotonic() + 10
        while not progress.drawn and time.monotonic() < deadline:
            time.sleep(0.005)
    assert log.getvalue() == "dpcal compare: poisson, which takes more than 0.2 s ...\n"


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()])
def test_progress_counts_units(stream):
    with Progress("train", after=0.05, stream=stream) as progress:
        progress.stage("training", total=10, unit="step")
        progress.update(4)
        deadline = time.monotonic() + 10
        while not progress.drawn and time.monotonic() < deadline:
            time.sleep(0.005)
    if stream.isatty():
        assert "training, 4 of 10 steps  40%|" in stream.getvalue()
    else:
        expected = "dpcal train: training, 4 of 10 steps, which takes more than 0.05 s ...\n"
        assert stream.getvalue() == expected


@pytest.mark.parametrize("suffix", ["png", "svg"])
@pytest.mark.parametrize("picture", ["profile", "trade-off", "renyi"])
def test_a_picture_says_what_it_is_of(picture, suffix, capsys, tmp_path, monkeypatch):
    seen, save = [], Figure.savefig

    def savefig(figure, *args, **how):
        seen.append(figure.get_supxlabel())
        return save(figure, *args, **how)

    monkeypatch.setattr(Figure, "savefig", savefig)
    words = ["plot", picture, *RATE, *NOISE, "--accountants", "renyi"]
    ask(capsys, *words, "-o", tmp_path / f"p.{suffix}")
    assert "| add-or-remove-one |" in " ".join(seen[0].split())
    assert seen[0].startswith("Gaussian noise of 2.0 clipping norms on 9 Poisson samples")


def test_a_picture_made_in_python_says_what_it_is_of():
    event = events.GaussianDpEvent(2.0)
    how = {"neighboring_relation": "replace-one"}
    figures = [
        dpcal.plot.profile([dpcal.plot.Curve.of(event, "", accountants=["renyi"], **how)]),
        dpcal.plot.renyi_curve([dpcal.plot.RenyiCurve.of(event, "", **how)]),
    ]
    for figure in figures:
        assert "GaussianDpEvent(noise_multiplier=2.0)" in figure.get_supxlabel()
        assert "replace-one" in figure.get_supxlabel()
    found = dpcal.plot.TradeOffCurve.of(event, [0.1, 0.5], **how)
    assert dpcal.plot.trade_off_curve([("", found.curve)]).get_supxlabel() == "replace-one"


@pytest.mark.parametrize(
    "words",
    [
        ["compare", *NOISE, "--delta", "1e-5"],
        ["compare", "--epsilon", "2", "--delta", "1e-5"],
        ["plot", "profile", *NOISE, "-o", "p.png"],
    ],
)
def test_progress_counts_the_accountants(words, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    told, update = [], Progress.update

    def counting(progress, count=1):
        update(progress, count)
        told.append(progress._words())

    monkeypatch.setattr(Progress, "update", counting)
    names = ("characteristic", "renyi")
    found = ask(capsys, *words, *RATE, "--accountants", ",".join(names))
    assert [each.rsplit(", ", 1)[1] for each in told] == [
        "1 of 2 accountants",
        "2 of 2 accountants",
    ]
    assert tuple(each["accountant"] for each in found.get("rows") or found["profile"]) == names


@pytest.mark.parametrize(
    "words", [["compare", "--delta", "1e-5"], ["plot", "profile", "-o", "p.png"]]
)
def test_no_accountant_is_refused_and_an_unknown_one_before_others_answer(words, capsys):
    assert "must be of" in refuse(capsys, *words, *RATE, *NOISE, "--accountants", ",")
    assert "foo" in refuse(capsys, *words, *RATE, *NOISE, "--accountants", "renyi,foo")


def test_random_allocation_is_priced_to_nine_digits(capsys):
    """By 400-bit arithmetic on two contours: epsilon 1.7014984358 for 100 batches and 10 passes."""
    words = ["--n", "10000", "--batch-size", "100", "--epochs", "10", "--noise-multiplier", "1"]
    words += ["--sampler", "random-allocation"]
    found = ask(capsys, "epsilon", *words, "--delta", "1e-5")["epsilon"]
    assert found["lower"] == pytest.approx(1.7014984358, abs=1e-9)
    assert found["upper"] == pytest.approx(1.7014984358, abs=1e-9)
    # Half a pass costs what a pass does, and solving for passes comes back to it.
    again = ask(capsys, "epsilon", *words, "--epochs", "9.5", "--delta", "1e-5")["epsilon"]
    assert again == found
    del words[4:6]
    target = ["--epsilon", "1.702", "--delta", "1e-5"]
    assert ask(capsys, "calibrate", *words, *target)["epochs"] == 10


def test_a_bracket_shows_both_ends(capsys):
    """One epoch of 117 batches with noise 0.8 and a short one: between an attack and no gain.

    Of 117 batches an independent script has an attack of 5.6144, and no gain is 5.67959.
    """
    words = ["--n", "60000", "--batch-size", "512", "--epochs", "1", "--noise-multiplier", "0.8"]
    words += ["--delta", "1e-5"]
    assert main(["compare", *words, "--samplers", "shuffled-epochs,random-allocation"]) == 0
    table = capsys.readouterr().out
    (lower, upper), *_ = re.findall(r"\[([\d.]+), ([\d.]+)\]", table)
    assert 5.6 < float(lower) <= 5.6144 < float(upper) <= 5.68
    assert "is a bracket" in table
    assert main(["epsilon", *words, "--sampler", "shuffled-epochs"]) == 0
    assert "(bracket: " in capsys.readouterr().out
    words += ["--sampler", "shuffled-epochs", "--neighboring-relation", "add-or-remove-one"]
    assert "moves others to other batches" in refuse(capsys, "epsilon", *words)
    assert "as a whole run" in refuse(
        capsys, "epsilon", *words[:-2], "--accountant", "characteristic"
    )


@pytest.mark.slow
def test_a_picture_of_samplers_has_a_row_each(capsys, tmp_path):
    path = tmp_path / "loaders.svg"
    words = ["plot", "samplers", "--n", "6000", "--batch-size", "200", "--epochs", "1", "-o", path]
    words += NOISE
    rows = ask(capsys, *words, "--delta", "1e-5")["samplers"]
    assert [row["sampler"] for row in rows] == list(SAMPLERS)
    text = path.read_text()
    assert all(name in text for name in SAMPLERS)
    assert "6000 records, batches of 200, 1 passes, noise of 2.0 clipping norms" in text
    assert "needs one --delta" in refuse(capsys, *words)


@pytest.mark.slow
def test_a_replaced_record_of_an_allocation_costs_at_most_two_blanked_ones(capsys):
    words = "epsilon --sampler random-allocation --n 300 --batch-size 30 --epochs 1 --json"
    words += " --noise-multiplier 2 --delta 1e-5 --neighboring-relation"
    found = {}
    for relation in ("replace-special", "replace-one"):
        assert main([*words.split(), relation]) == 0
        found[relation] = json.loads(capsys.readouterr().out)["epsilon"]
    assert found["replace-special"]["upper"] < found["replace-one"]["upper"]
    # The batch is told to an adversary who then faces a Gaussian answer at twice the distance.
    told = dpcal.epsilon(events.GaussianDpEvent(1.0), delta=1e-5)
    assert found["replace-one"]["upper"] <= told.upper
