"""What ``dpcal plot`` draws is bounded by closed forms, and each picture says what it is of."""

import math

import numpy as np
import pytest
from matplotlib.figure import Figure
from scipy.stats import norm

import dpcal
from dpcal.accountants import events
from dpcal.commands.checking.mechanism import SAMPLERS

MECHANISM = "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000"
NOISE = "--noise-multiplier 2 -o"


@pytest.fixture
def drawn(cli, tmp_path, monkeypatch):
    """Return what draws a picture, and returns its document and the words below the picture."""
    seen, save = [], Figure.savefig

    def savefig(figure, *args, **how):
        seen.append(figure.get_supxlabel())
        return save(figure, *args, **how)

    def draw(*words):
        path = tmp_path / "picture.png"
        told = cli.json("plot", *words, "-o", path)
        assert path.read_bytes().startswith(b"\x89PNG")
        return told, " ".join(seen[-1].split())

    monkeypatch.setattr(Figure, "savefig", savefig)
    return draw


@pytest.mark.slow
def test_pictures_of_a_run(drawn):
    told, words = drawn("profile", MECHANISM, "--delta 1e-6")
    exact, renyi = told["profile"]
    assert max(exact["delta"]) <= 1
    assert np.all(np.diff(exact["delta"]) < 0)
    inside = np.interp(exact["epsilon"], renyi["epsilon"], np.log(renyi["delta"]))
    assert np.all(inside[20:-20] > np.log(exact["delta"])[20:-20])
    # The curve goes down through the mark.
    (mark,) = told["marks"]
    assert mark["epsilon"] == pytest.approx(6.907384495, abs=1e-8)
    beyond = np.array(exact["epsilon"]) > mark["epsilon"]
    assert np.array(exact["delta"])[beyond].max() < 1e-6
    of_curve = words
    told, words = drawn("trade-off", MECHANISM)
    assert words == of_curve
    rates, missed = np.array(told["false_positive_rate"]), told["false_negative_rate"]
    assert np.all(np.diff(missed["lower"]) < 0)
    assert np.all(np.array(missed["upper"]) <= 1 - rates + 1e-9)
    told, words = drawn("renyi", MECHANISM, "--delta 1e-6")
    assert np.all(np.diff(told["divergence"]) > 0)  # Renyi divergences rise with the order.
    assert words == of_curve
    assert words.startswith("Gaussian noise of 1.0 clipping norms on 10000 Poisson samples")
    assert "| add-or-remove-one |" in words


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


@pytest.mark.slow
def test_the_trade_off_of_random_allocation_is_a_bound_which_an_attack_nearly_reaches(
    cli, tmp_path
):
    """One pass of three batches: between two Gaussian curves in closed form."""
    path = tmp_path / "bound.svg"
    words = "--n 6000 --batch-size 2000 --epochs 1 --sampler random-allocation"
    told = cli.json("plot trade-off", words, NOISE, path)
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
def test_pictures_of_a_shuffle_have_both_ends(drawn, gaussian_delta):
    """In one batch a pass, nothing is shuffled: four Gaussian answers of noise 2."""
    words = "--n 6000 --batch-size 6000 --epochs 4 --sampler shuffled-epochs --noise-multiplier 2"
    told, _ = drawn("profile", words)
    above, below = told["profile"]
    assert below["accountant"] == "attack"
    for line in (above, below):
        exact = gaussian_delta(1.0, np.array(line["epsilon"]))
        np.testing.assert_allclose(line["delta"], exact, rtol=1e-4)
    told, _ = drawn("trade-off", words)
    assert f"{len(told['points'])} epsilons" in told["bound"]


@pytest.mark.slow
def test_a_picture_of_samplers_has_a_row_each(drawn):
    sizes = "--n 600 --batch-size 100 --epochs 1 --delta 1e-5 --noise-multiplier 2"
    told, words = drawn("samplers", sizes)
    assert [row["sampler"] for row in told["samplers"]] == list(SAMPLERS)
    assert "600 records, batches of 100, 1 passes, noise of 2.0 clipping norms" in words
