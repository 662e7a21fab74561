"""Choices follow the laws that their prices are about."""

import numpy as np
import pytest
from _answers import N, check_law, oracle_for, plan_for, query
from scipy.stats import norm

from dpcal.accountants import epsilon, events
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary import choices
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.seeds import keyed_generator


def plan_of(n, kind="selection", *, count=1, relation="replace-special", delta=1e-6, **fields):
    given = {"max_norm": 0.5} if kind == "selection" else {"max_norm": 1.0, "threshold": 14.0}
    asked = query("asked", kind, count=count, **{**given, **fields})
    return plan_for(asked, n=n, relation=relation, delta=delta)


def test_medians_are_drawn_with_the_density_that_was_promised():
    """The chance of a gap between values is exp(score / scale) times its length."""
    values = np.array([[1.0], [2.0], [4.0], [7.0], [9.0]])
    plan = plan_of(5, noise_multiplier=2.0, count=3000)
    edges = np.array([0.0, 1.0, 2.0, 4.0, 7.0, 9.0, 10.0])
    scores = -np.abs(np.arange(6) - 2.5)
    law = np.exp(scores / 1.0) * np.diff(edges)
    made = PrivateChoices(values, plan, seed=0)
    draws = [made.quantiles(0, [0, 10], "asked")[0] for _ in range(3000)]
    seen, _ = np.histogram(draws, edges)
    # Values are spread by half a millionth of the range, which moves no edge of note.
    check_law(seen, law)


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


def test_a_label_passes_the_threshold_as_often_as_the_normal_law_says():
    """2,000 draws, a seed each; five standard deviations, one false alarm in 10^6."""
    labels = np.repeat(["a", "b"], [10, 50])
    plan = plan_of(60, "labels", noise_multiplier=3.0)
    kept = [PrivateChoices(labels, plan, seed=k).labels("asked").tolist() for k in range(2_000)]
    chance = norm.sf(4 / 3)
    seen = sum("a" in each for each in kept)
    assert abs(seen - 2_000 * chance) < 5 * np.sqrt(2_000 * chance * (1 - chance))
    assert all("b" in each for each in kept)


@pytest.mark.parametrize("height", [1.0, 1e9, 1e300])
def test_a_discrete_choice_lies_between_the_cuts_whatever_the_values_are(height):
    """All values beyond an end, equal, or huge: scores that no double tells apart from nothing."""
    plan = plan_of(50_000, noise_multiplier=0.01, count=40)
    values = np.full((50_000, 1), height)
    values[::2] *= -1
    values[:9] = 0.0
    made = PrivateChoices(values, plan)
    for cuts in ([-height, 0.0, height], [2 * height / 3, height], [0.0, 0.0], [0.0, 1e-300]):
        medians = made.quantiles(0, cuts, "asked")
        for low, high, drawn in zip(cuts, cuts[1:], medians, strict=False):
            assert low <= drawn <= high


@pytest.mark.parametrize(
    ("off", "lengths", "steps"),
    [
        (choices._OFF, [5, 0, 1000, 1, 1 << 50, 3], [0, 0, 5, 3, 60, 1]),
        # Where doubles cannot tell, ball arithmetic decides: here for most coins.
        (0.4, [5, 0, 1, 8, 3], [2, 0, 0, 5, 9]),
    ],
)
def test_a_discrete_choice_has_the_law_of_its_weights(off, lengths, steps, monkeypatch):
    """Against weights by brute force: 4,000 draws."""
    monkeypatch.setattr(choices, "_OFF", off)
    lengths, steps, bits = np.array(lengths), np.array(steps), keyed_generator(bytes(32))
    law = lengths * np.exp(-steps / 2.0)
    draws = [choices._drawn(lengths, steps, 2.0, bits) for _ in range(4_000)]
    seen = np.bincount(draws, minlength=len(law))
    check_law(seen, law)


def test_a_proposal_that_is_not_due_is_rejected_without_balls():
    """A weight of exp(-50) is proposed as one of 2^60 parts, of which it is due a 5000th."""

    class Scripted:
        places, coins = [-1, 0], [2**192 - 1, 0]

        def integers(self, high):
            return self.places.pop(0) % int(high)

        def bytes(self, size):
            return self.coins.pop(0).to_bytes(size, "little")

    assert choices._drawn(np.array([1, 1]), np.array([0, 100]), 2.0, Scripted()) == 0
    assert Scripted.places == Scripted.coins == []


def test_a_selection_costs_the_exponential_mechanism_and_labels_a_gaussian_and_a_surprise():
    plan = plan_of(5, noise_multiplier=4.0, count=3)
    one = events.ExponentialMechanismDpEvent(0.5)
    three = epsilon(events.SelfComposedDpEvent(one, 3), delta=1e-6)
    assert plan.price() == pytest.approx(three, rel=1e-9)
    assert plan.price() >= three
    plan, surprise = plan_of(60, "labels", noise_multiplier=3.0), norm.sf(13 / 3)
    parts = [events.GaussianDpEvent(3.0), events.EpsilonDeltaDpEvent(0.0, surprise)]
    delta = 2 * surprise
    assert plan.price(delta) == pytest.approx(epsilon(events.ComposedDpEvent(parts), delta=delta))


def test_choices_are_refused_where_no_theorem_covers_them():
    for kind in ("labels", "selection"):
        with pytest.raises(UnsupportedEvent, match="for neighboring_relation 'add-or-"):
            plan_of(60, kind, relation="replace-one")
        with pytest.raises(UnsupportedEvent, match="an oracle is for sums"):
            oracle_for(*plan_of(N, kind).queries)
    with pytest.raises(UnsupportedEvent, match="got delta=1e-28"):
        PrivateChoices(np.zeros((60, 1)), plan_of(60, delta=1e-28))


def test_a_choice_is_asked_between_cuts_in_order():
    made = PrivateChoices(np.zeros((3, 1)), plan_of(3), seed=0)
    for cuts in ([1.0], [1.0, 0.0], [[0.0, 1.0]]):
        with pytest.raises(ValueError, match="cuts must be two or more nondecreasing numbers"):
            made.quantiles(0, cuts, "asked")
    assert made.ledger.entries == ()
