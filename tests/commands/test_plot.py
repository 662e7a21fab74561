"""What is drawn is bounded by closed forms, and each picture says what it is of."""

import math
import re

import numpy as np
import pytest
from _integrals import gaussian_delta
from matplotlib.figure import Figure
from scipy.stats import norm

import dpcal
from dpcal import accountants
from dpcal.accountants import events

MECHANISM = "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000"


@pytest.fixture
def drawn(cli, tmp_path, monkeypatch):
    """Return what draws a picture, and returns its document and the words below the picture."""
    seen, save = [], Figure.savefig

    def savefig(figure, *args, **how):
        seen.append(figure.get_supxlabel())
        return save(figure, *args, **how)

    def draw(*words):
        path = tmp_path / "picture.png"
        told = cli.json(*words, "--plot", path)
        assert path.read_bytes().startswith(b"\x89PNG")
        return told, " ".join(seen[-1].split())

    monkeypatch.setattr(Figure, "savefig", savefig)
    return draw


@pytest.mark.slow
def test_pictures_of_a_run(drawn):
    told, of_curve = drawn("epsilon", MECHANISM, "--delta 1e-6")
    assert told["epsilon"]["upper"] == pytest.approx(6.907384495, abs=1e-8)
    told, words = drawn("compare", MECHANISM, "--delta 1e-6 --accountants characteristic,renyi")
    assert words == of_curve
    assert words.startswith("Gaussian noise of 1.0 clipping norms on 10000 Poisson samples")
    assert "| add-or-remove-one |" in words


@pytest.mark.slow
def test_a_curve_goes_through_its_mark_and_renyi_is_above():
    event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
    exact, renyi = dpcal.plot.bounds(event, accountants=["characteristic", "renyi"])
    assert max(exact.delta) <= 1
    assert np.all(np.diff(exact.delta) < 0)
    inside = np.interp(exact.upper, renyi.upper, np.log(renyi.delta))
    assert np.all(inside[20:-20] > np.log(exact.delta)[20:-20])
    assert exact.delta[exact.upper > 6.9073845].max() < 1e-6


def test_a_picture_made_in_python_says_what_it_is_of():
    event = events.GaussianDpEvent(2.0)
    how = {"neighboring_relation": "replace-one"}
    figure = dpcal.plot.profile(event, accountants=["renyi"], **how)
    assert "GaussianDpEvent(noise_multiplier=2.0)" in figure.get_supxlabel()
    assert "replace-one" in figure.get_supxlabel()
    curve = accountants.trade_off(event, [0.1, 0.5], **how)
    assert dpcal.plot.trade_off_curve(curve).get_supxlabel() == "replace-one"
    found = dpcal.plot.attacker(curve, "sigma 2").axes[0].lines[0]
    # The best attack on two Gaussians, one standard deviation apart, misses Phi(Phi^-1(1 - a) - 1).
    assert found.get_ydata()[1:3] == pytest.approx(100 * norm.sf(norm.isf([0.1, 0.5]) - 1))


@pytest.mark.slow
def test_the_trade_off_of_random_allocation_is_a_bound_which_an_attack_nearly_reaches():
    """One pass of three batches: between two Gaussian curves in closed form."""
    rates, event = np.linspace(0.001, 0.999, 99), events.RandomAllocationDpEvent(2.0, 3)
    epsilons = np.linspace(0.0, accountants.epsilon(event, delta=1e-3).upper, 20).tolist()
    deltas = [accountants.delta(event, epsilon=at).upper for at in epsilons]
    lower = np.asarray(accountants.trade_off_from_deltas(epsilons, deltas, rates).lower)
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
def test_pictures_of_a_shuffle_have_both_ends():
    """In one batch a pass, nothing is shuffled: four Gaussian answers of noise 2."""
    event = events.ShuffledEpochsDpEvent(2.0, batches=1, epochs=4, remainder=False)
    how = {"neighboring_relation": "replace-special"}
    (line,) = dpcal.plot.bounds(event, **how)
    for epsilon in (line.lower, line.upper):
        np.testing.assert_allclose(line.delta, gaussian_delta(1.0, epsilon), rtol=1e-4)


def test_an_svg_picture_has_each_colour_by_day_and_by_night():
    figure, axes = dpcal.plot.figure_and_axes("A title")
    axes.plot([0, 1], color=dpcal.plot.BLUE)
    text = dpcal.plot.svg(figure, title="A title", description="a line")
    style, _, drawn = text.partition("</style>")
    day, night = style.split("prefers-color-scheme:dark")
    used = set(re.findall(r"var\((--dpcal-\w+)", drawn))
    assert len(used) >= 4
    assert all(f"{name}:" in day and f"{name}:" in night for name in used)
    assert not re.search(r"(fill|stroke): #", drawn)
