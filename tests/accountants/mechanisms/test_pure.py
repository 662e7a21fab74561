"""delta = 0: the largest loss, against closed forms in 60 digits, at every door; and monotone."""

import itertools
import math

import mpmath
import numpy as np
import pytest
from contracts._events import WRITTEN, made

import dpcal
from dpcal import accountants, calibrate
from dpcal.accountants import PrivacyFilter, events
from dpcal.accountants.mechanisms.pure import largest_losses
from dpcal.calibrate.persons import for_group
from dpcal.errors import BudgetExceeded, UnsupportedEvent

ADD, REPLACE, BLANK = RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")
mp = mpmath.mp.clone()
mp.dps = 60
LAPLACE = events.LaplaceDpEvent(0.7)


def log_mean(q, loss):
    """Return log(1 - q + q e^loss) in 60 digits."""
    return mp.log1p(mp.mpf(q) * mp.expm1(loss))


def on_sample(q, loss):
    """Return the largest loss of a removed or added record, whose loss has both signs."""
    return max(log_mean(q, loss), -log_mean(q, -loss))


# Names in the closed forms of the file; every number in them is a double.
FORMS = {"one": 1 / mp.mpf(0.7), "log_mean": log_mean, "on_sample": on_sample, "mp": mp}


@pytest.mark.parametrize(("event", "relation", "truth"), WRITTEN["largest_losses"])
def test_the_largest_loss_is_the_closed_form_rounded_outward(event, relation, truth):
    event, truth = made(event), eval(truth, FORMS)
    answer = dpcal.epsilon(event, delta=0, neighboring_relation=relation)
    assert answer.lower <= truth <= answer.upper
    assert answer.upper - answer.lower <= 1e-13 * truth
    for name in ("characteristic", "renyi"):
        same = dpcal.epsilon(event, delta=0.0, neighboring_relation=relation, accountant=name)
        assert same == answer


@pytest.mark.parametrize("event", [made(each) for each in WRITTEN["unbounded"]])
@pytest.mark.parametrize("relation", RELATIONS)
def test_a_loss_without_bound_is_refused_with_the_reason(event, relation):
    with pytest.raises(UnsupportedEvent, match=r"^(delta must be a number in \(0, 1\)|No theorem)"):
        dpcal.epsilon(event, delta=0, neighboring_relation=relation)
    if relation == ADD:
        assert accountants.RenyiAccountant().compose(event).get_epsilon(0) == math.inf


def test_no_answer_at_a_positive_delta_is_above_the_pure_one():
    generator = np.random.default_rng(1)
    bases = [
        lambda x: events.LaplaceDpEvent(1 / x),
        lambda x: events.DiscreteLaplaceDpEvent(x, 2),
        events.ExponentialMechanismDpEvent,
        lambda x: events.ReportNoisyMaxDpEvent(1 / x),
        lambda x: events.PermuteAndFlipDpEvent(x, monotone=True),
        lambda x: events.RepeatAndSelectDpEvent(events.LaplaceDpEvent(1 / x), 4.0, 0.5),
    ]
    wraps = [
        lambda event, q: events.SelfComposedDpEvent(event, int(1 / q)),
        events.PoissonSampledDpEvent,
        lambda event, q: event,
    ]
    for _ in range(40):
        x, q = np.exp(generator.uniform(-3, 1)), float(generator.uniform(0.05, 0.9))
        base = bases[generator.integers(len(bases))](float(x))
        wrap = wraps[generator.integers(len(wraps))]
        event = wrap(q, base) if wrap is events.PoissonSampledDpEvent else wrap(base, q)
        if isinstance(base, events.RepeatAndSelectDpEvent) and wrap is wraps[1]:
            continue
        how = {"neighboring_relation": RELATIONS[generator.integers(3)]}
        pure = dpcal.epsilon(event, delta=0, **how)
        for delta in (1e-299, 1e-50, 1e-9, 0.01):
            answer = dpcal.epsilon(event, delta=delta, **how)
            assert answer.lower <= pure.upper, (event, how)
        assert accountants.log_delta(event, epsilon=pure.upper, **how).lower == -math.inf


def test_noise_steps_and_releases_are_solved_at_delta_0():
    def sampled(noise):
        step = events.PoissonSampledDpEvent(0.1, events.LaplaceDpEvent(noise))
        return events.SelfComposedDpEvent(step, 10)

    def allocated(noise):
        return events.AllocatedDpEvent(events.LaplaceDpEvent(noise), 20)

    truth = 1 / mp.log1p(mp.expm1(mp.mpf(1) / 10) * 10)
    for event, relation, least in (
        (events.LaplaceDpEvent, ADD, 1),
        (sampled, ADD, truth),
        (allocated, REPLACE, 2),
    ):
        how = {"epsilon": 1.0, "delta": 0, "neighboring_relation": relation}
        assert least <= dpcal.noise_multiplier(event, **how) <= least * (1 + 1e-6), event
    steps = dpcal.steps(
        lambda n: events.SelfComposedDpEvent(events.LaplaceDpEvent(8.0), n), epsilon=1.0, delta=0
    )
    assert steps == 8
    asked = [
        calibrate.Release("visits", mechanism="laplace"),
        calibrate.Release("stays", mechanism="discrete-laplace", count=3),
    ]
    found = calibrate.releases(asked, epsilon=1.0, delta=0)
    assert [noise.scale for noise in found.noises] == pytest.approx([4.0, 4.0], rel=1e-6)
    assert found.epsilon <= 1.0


def test_a_filter_with_delta_0_adds_up_epsilons():
    budget = PrivacyFilter(epsilon=1.0, delta=0)
    budget.spend(events.LaplaceDpEvent(4.0), 2)
    budget.spend(events.ReportNoisyMaxDpEvent(16.0, monotone=True))
    assert budget.would_exceed(events.LaplaceDpEvent(2.0))
    budget.spend(events.DiscreteLaplaceDpEvent(0.375, 1))
    assert 0 <= budget.remaining < 0.0625
    fresh = PrivacyFilter(epsilon=1.0, delta=0)
    fresh.spend(events.LaplaceDpEvent(1.0))
    assert (fresh.remaining, fresh.order, fresh.delta) == (0.0, math.inf, 0.0)
    with pytest.raises(BudgetExceeded):
        fresh.spend(events.LaplaceDpEvent(1e9))


def test_an_account_is_asked_at_delta_0():
    account = accountants.Account().compose(LAPLACE, 3).compose(events.NoOpDpEvent())
    assert account.epsilon(0) == dpcal.epsilon(events.SelfComposedDpEvent(LAPLACE, 3), delta=0)
    for adapter in (accountants.CharacteristicAccountant, accountants.RenyiAccountant):
        assert adapter().compose(LAPLACE, 3).get_epsilon(0) == account.epsilon(0)


# -- selections whose scores all move the same way


def noisy_max_losses(moves, tail, points):
    """Return losses of the first of two candidates, which leads by a point before scores move."""
    return [abs(math.log(tail(x) / tail(x + moves[1] - moves[0]))) for x in points]


def laplace_difference_tail(x):
    """Return the chance that the difference of two Laplace variables of scale 1 exceeds x."""
    return (2 + x) / 4 * math.exp(-x) if x >= 0 else 1 - (2 - x) / 4 * math.exp(x)


@pytest.mark.parametrize(("monotone", "price"), [(False, 2.0), (True, 1.0)])
def test_noisy_max_costs_at_most_its_price_and_nearly_as_much(monotone, price):
    event = events.ReportNoisyMaxDpEvent(1.0, monotone)
    assert dpcal.epsilon(event, delta=0) == pytest.approx(price, rel=1e-12)
    assert dpcal.epsilon(event, delta=0, neighboring_relation=REPLACE) == pytest.approx(2 * price)
    assert dpcal.epsilon(event, delta=0, neighboring_relation=BLANK) == pytest.approx(price)
    moves = [(1, 0), (0, 1), (1, 1)] if monotone else [(1, -1), (-1, 1)]
    points = np.linspace(-20, 60, 400)
    worst = max(max(noisy_max_losses(each, laplace_difference_tail, points)) for each in moves)
    assert 0.97 * price < worst <= price


def permute_and_flip(scores, epsilon):
    """Return the law of permute and flip for scores of sensitivity 1, over all permutations."""
    law = np.zeros(len(scores))
    orders = list(itertools.permutations(range(len(scores))))
    flips = np.exp(epsilon / 2 * (np.array(scores) - max(scores)))
    for order in orders:
        left = 1.0
        for candidate in order:
            law[candidate] += left * flips[candidate] / len(orders)
            left *= 1 - flips[candidate]
    return law


def exponential_mechanism(scores, epsilon):
    weights = np.exp(epsilon / 2 * np.array(scores, dtype=float))
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("cls", "mechanism"),
    [
        (events.PermuteAndFlipDpEvent, permute_and_flip),
        (events.ExponentialMechanismDpEvent, exponential_mechanism),
    ],
)
def test_monotone_selections_cost_half(cls, mechanism):
    epsilon = 1.6
    half = [dpcal.epsilon(cls(epsilon, True), delta=0, neighboring_relation=r) for r in RELATIONS]
    assert half == pytest.approx([epsilon / 2, epsilon, epsilon / 2])
    generator = np.random.default_rng(0)
    worst = {"same way": 0.0, "both ways": 0.0}
    for _ in range(400):
        scores = generator.integers(0, 9, 4)
        for name, low in (("same way", 0), ("both ways", -1)):
            moves = generator.integers(low, 2, 4)
            before, after = mechanism(scores, epsilon), mechanism(scores + moves, epsilon)
            losses = np.log(after / before)
            size = np.ptp(losses) if mechanism is exponential_mechanism else np.abs(losses).max()
            worst[name] = max(worst[name], float(size))
    assert 0.9 * epsilon / 2 < worst["same way"] <= epsilon / 2 * (1 + 1e-12)
    assert epsilon / 2 < worst["both ways"] <= epsilon * (1 + 1e-12)


def test_monotone_is_a_flag_that_a_group_and_a_certificate_keep():
    for cls in (events.ExponentialMechanismDpEvent, events.ReportNoisyMaxDpEvent):
        assert cls(1.0, monotone=np.True_) == cls(1.0, True)
        assert for_group(cls(1.0, True), 3).monotone
    certificates = [
        accountants.certify(events.PermuteAndFlipDpEvent(*arguments), delta=1e-3)
        for arguments in ((1.0,), (1.0, True), (0.5,))
    ]
    plain, monotone, half = certificates
    assert (monotone.lower, monotone.upper) == (half.lower, half.upper)
    assert "monotone" not in plain.to_json()
    for certificate in certificates:
        assert accountants.verify_certificate(certificate.to_json()) == certificate


def test_the_largest_loss_of_an_added_record_is_rounded_up():
    for inner in (events.PermuteAndFlipDpEvent(1.0), events.ReportNoisyMaxDpEvent(2.0)):
        _, added = largest_losses(events.PoissonSampledDpEvent(0.1, inner), ADD)
        truth = -log_mean(0.1, -1)
        assert added.lower <= truth <= added.upper <= truth * (1 + 1e-13)
