"""Choices follow the laws that their prices are about."""

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from dpcal._ext.keyed import KeyedBits
from dpcal.accountants import epsilon, events
from dpcal.calibrate import Plan, Query
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim import Logistic, PrivateOracle
from dpcal.optim.boundary.choices import PrivateChoices, _drawn
from dpcal.optim.boundary.seeds import KeyStream


def plan_of(n, relation="replace-special", **query):
    fields = {"name": "asked", "sampler": "full", "max_norm": 1.0, "count": 1, **query}
    return Plan(
        optimizer="test", n=n, queries=(Query(**fields),), epsilon=9.0, delta=1e-6,
        neighboring_relation=relation,
    )  # fmt: skip


@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
def test_medians_are_drawn_with_the_density_that_was_promised(noise):
    """The chance of each gap between values, exp(score / scale) times its length, by brute force.

    3000 draws, seed 0. A chi-square test rejects one right law in 10^6.
    """
    values = np.array([[1.0], [2.0], [4.0], [7.0], [9.0]])
    plan = plan_of(5, kind="selection", max_norm=0.5, noise_multiplier=2.0, count=3000)
    edges = np.array([0.0, 1.0, 2.0, 4.0, 7.0, 9.0, 10.0])
    scores = -np.abs(np.arange(6) - 2.5)
    law = np.exp(scores / 1.0) * np.diff(edges)
    choices = PrivateChoices(values, plan, seed=0, noise=noise)
    draws = [choices.medians(0, [0, 10], "asked")[0] for _ in range(3000)]
    seen, _ = np.histogram(draws, edges)
    # Values are spread by half a millionth of the range, which moves no edge of note.
    assert chisquare(seen, 3000 * law / law.sum()).pvalue > 1e-6


def test_blanking_a_record_moves_the_density_of_medians_by_no_more_than_is_priced():
    """Over an interval in which a record lies, by brute force: the range of the log ratio."""
    rng, multiplier = np.random.default_rng(5), 3.0
    points = np.linspace(0.0, 1.0, 2001)

    def density(values):
        scores = -np.abs((values[:, np.newaxis] < points).sum(axis=0) - len(values) / 2)
        law = np.exp(scores / (multiplier * 0.5))
        return np.log(law / law.mean())

    worst = 0.0
    for size in (1, 2, 7, 8):
        values = rng.uniform(size=size)
        for row in range(size):
            ratio = density(values) - density(np.delete(values, row))
            worst = max(worst, np.ptp(ratio))
            assert np.abs(ratio).max() <= 2 / multiplier
    assert worst == pytest.approx(2 / multiplier)


def test_a_selection_costs_the_exponential_mechanism():
    plan = plan_of(5, kind="selection", max_norm=0.5, noise_multiplier=4.0, count=3)
    one = events.ExponentialMechanismDpEvent(0.5)
    three = epsilon(events.SelfComposedDpEvent(one, 3), delta=1e-6)
    assert plan.price() == pytest.approx(three, rel=1e-9)
    assert plan.price() >= three


def test_labels_cost_a_gaussian_and_the_chance_that_one_record_shows():
    plan = plan_of(60, kind="labels", noise_multiplier=3.0, threshold=14.0)
    surprise = norm.sf(13 / 3)
    parts = [events.GaussianDpEvent(3.0), events.EpsilonDeltaDpEvent(0.0, surprise)]
    delta = 2 * surprise
    assert plan.price(delta) == pytest.approx(epsilon(events.ComposedDpEvent(parts), delta=delta))


@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
def test_a_label_passes_the_threshold_as_often_as_the_normal_law_says(noise):
    """500 draws, seeds 0 to 499; five standard deviations, one false alarm in 10^6."""
    labels = np.repeat(["a", "b"], [10, 50])
    plan = plan_of(60, kind="labels", noise_multiplier=3.0, threshold=14.0)
    kept = [
        PrivateChoices(labels, plan, seed=k, noise=noise).labels("asked").tolist()
        for k in range(500)
    ]
    chance = norm.sf(4 / 3)
    seen = sum("a" in each for each in kept)
    assert abs(seen - 500 * chance) < 5 * np.sqrt(500 * chance * (1 - chance))
    assert all("b" in each for each in kept)


def test_a_discrete_choice_has_the_law_of_its_weights():
    """Against weights by brute force: 20,000 draws, seed 0; one right law in 10^6 is rejected."""
    lengths = np.array([5, 0, 1000, 1, 1 << 50, 3])
    steps = np.array([0, 0, 5, 3, 60, 1])
    law = lengths * np.exp(-steps / 2.0)
    bits = np.random.Generator(KeyedBits(KeyStream(bytes(32))))
    draws = np.bincount([_drawn(lengths, steps, 2.0, bits) for _ in range(20_000)], minlength=6)
    likely = law > 1e-4 * law.sum()
    expected = 20_000 * law[likely] / law.sum()
    assert chisquare(draws[likely], expected * draws[likely].sum() / expected.sum()).pvalue > 1e-6
    assert not draws[lengths == 0].any()


@pytest.mark.parametrize("height", [1.0, 1e9, 1e300])
def test_a_discrete_choice_lies_between_the_cuts_whatever_the_values_are(height):
    """All values beyond an end, equal, or huge: scores that no double tells apart from nothing."""
    plan = plan_of(50_000, kind="selection", max_norm=0.5, noise_multiplier=0.01, count=40)
    values = np.full((50_000, 1), height)
    values[::2] *= -1
    values[:9] = 0.0
    choices = PrivateChoices(values, plan, noise="discrete")
    for cuts in ([-height, 0.0, height], [2 * height / 3, height], [0.0, 0.0], [0.0, 1e-300]):
        medians = choices.medians(0, cuts, "asked")
        for low, high, drawn in zip(cuts, cuts[1:], medians, strict=False):
            assert low <= drawn <= high


def test_discrete_choices_come_from_words_and_repeat_with_their_seed():
    plan = plan_of(60, kind="selection", max_norm=0.5, noise_multiplier=3.0, count=1)
    values = np.arange(60.0)[:, np.newaxis]
    draws = [
        PrivateChoices(values, plan, seed=seed, noise="discrete").medians(0, [0, 60], "asked")[0]
        for seed in (3, 3, 4)
    ]
    assert draws[0] == draws[1] != draws[2]
    tiny = Plan(optimizer="test", n=60, queries=plan.queries, epsilon=9.0, delta=1e-28)
    with pytest.raises(UnsupportedEvent, match="got delta=1e-28"):
        PrivateChoices(values, tiny, noise="discrete")


def test_choices_are_refused_where_no_theorem_covers_them():
    for query in (
        {"kind": "labels", "noise_multiplier": 3.0, "threshold": 14.0},
        {"kind": "selection", "noise_multiplier": 3.0},
    ):
        with pytest.raises(UnsupportedEvent, match="added, removed or blanked"):
            plan_of(60, relation="replace-one", **query).price()
        X = np.zeros((60, 1))
        objective = Logistic(X, [0, 1] * 30, classes_from_data=True)
        with pytest.raises(UnsupportedEvent, match="is for sums and scores here"):
            PrivateOracle(objective, plan_of(60, **query), noise="discrete")


def test_a_choice_is_asked_no_more_often_than_planned():
    plan = plan_of(3, kind="selection", max_norm=0.5, noise_multiplier=4.0)
    choices = PrivateChoices(np.zeros((3, 1)), plan, seed=0)
    choices.medians(0, [-1, 1], "asked")
    with pytest.raises(BudgetExceeded):
        choices.medians(0, [-1, 1], "asked")
    assert choices.ledger.count("asked") == 1


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"kind": "labels"}, "threshold is for kind='labels' and needed there"),
        ({"kind": "gradient", "threshold": 3.0}, "threshold is for kind='labels'"),
        ({"kind": "labels", "threshold": 1.0}, "threshold must be a number > 1, got 1.0"),
        ({"kind": "labels", "threshold": 9.0, "max_norm": 2.0}, "max_norm must be 1"),
        (
            {"kind": "selection", "sampler": "poisson", "sampling_probability": 0.1},
            "kind='selection' is for sampler='full'",
        ),
    ],
)
def test_bad_choices_are_sentences(fields, told):
    with pytest.raises(ValueError, match=told):
        plan_of(9, noise_multiplier=2.0, **fields)
