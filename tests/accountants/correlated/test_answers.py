"""Correlated noise as users ask for it: exact ways, proofs, draws, and what each refuses.

Statistical statements here fail with probability below 1e-4 for a fresh seed.
"""

import itertools
import math
import tomllib

import numpy as np
import pytest
from _correlated_runs import price, revealed_delta
from _integrals import toeplitz, two_rounds
from _tree import DATA
from contracts._events import NAMES
from scipy.stats import norm

from dpcal import accountants
from dpcal.accountants import correlated, events, matrix
from dpcal.accountants.correlated.answers import CERTIFIED, EXACT, WITH_CONFIDENCE
from dpcal.accountants.correlated.price import Question
from dpcal.accountants.correlated.pricing import whole_run
from dpcal.accountants.matrix import BISR, Banded, Dense, Identity, LambdaCGD, LeastSeparation
from dpcal.calibrate import correlated_dpsgd
from dpcal.calibrate.correlated import noise_multiplier
from dpcal.errors import UnsupportedEvent

CONFIDENT = WITH_CONFIDENCE
T = 16
MIXED = np.eye(T)
MIXED[1, 0], MIXED[-1, 0] = -0.5, 0.5
WRITTEN = tomllib.loads((DATA / "strategies.toml").read_text(encoding="utf-8"))
SCOPE = NAMES | {"T": T, "MIXED": MIXED, "toeplitz": toeplitz}
STRATEGIES = {name: (eval(text, SCOPE), memory) for name, text, memory in WRITTEN["priced"]}
NOT_TOEPLITZ = ("tree", "efficient tree", "dense", "mixed signs")
SAMPLERS = [eval(text, SCOPE) for text in WRITTEN["samplers"]]
POISSON = SAMPLERS[0]


def pairs():
    """The first strategies with every sampler; the others with two samplers each, in turn."""
    first, others = list(STRATEGIES)[:5], list(STRATEGIES)[5:]
    yield from itertools.product(first, SAMPLERS)
    for place, name in enumerate(others):
        yield name, SAMPLERS[place % len(SAMPLERS)]
        # A matrix that is not Toeplitz has no group that is known to be the worst.
        yield name, SAMPLERS[1 + place % 2]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "sampler"), sorted(set(pairs()), key=repr), ids=repr)
def test_every_pair_answers_or_refuses_with_its_reason(name, sampler):
    strategy, memory = STRATEGIES[name]
    asked = {"noise_multiplier": 3.0, "epsilon": 0.5}
    mechanism = correlated.Mechanism.of(strategy, noise_multiplier=3.0)
    assert (mechanism.memory or "", mechanism.sigma) == (memory, 3.0)
    if isinstance(sampler, correlated.FixedSize):
        with pytest.raises(UnsupportedEvent, match=r"Poisson.*correlated.revealed"):
            price(strategy, sampler, **asked)
        assert 0 < revealed_delta(strategy, sampler, **asked) < 1
        return
    proved = price(strategy, sampler, **asked, statistics="none")
    fresh = "residues" in proved.method
    if not fresh or name == "lambda-CGD":
        back = price(
            strategy, sampler, noise_multiplier=3.0, delta=float(proved), statistics="none"
        )
        assert back.label == proved.label
        assert back >= 0.5 * (1 - 1e-9)
        # One proof answers both ways, but for rounds that are drawn afresh in each epoch: there
        # the bound on epsilon divides delta evenly, and another one may be smaller.
        assert fresh or float(back) == pytest.approx(0.5, rel=1e-5)
    quieter = {**asked, "noise_multiplier": 4.0, "statistics": "none"}
    assert price(strategy, sampler, **quieter) <= proved
    drawn = price(strategy, sampler, **asked, draws=1024, seed=0)
    fixed = isinstance(sampler, correlated.CyclicPoisson) and not sampler.random_shift
    if fixed and name in NOT_TOEPLITZ:
        assert "which group is the worst is not known" in drawn.note
        assert drawn == proved
        assert proved.label == CERTIFIED
        assert 0 < proved <= revealed_delta(strategy, sampler, **asked)
        return
    question = Question.of(strategy, sampler, 3.0)
    assert (proved.label == EXACT) == (drawn.label == EXACT) == (question.route == "product")
    assert drawn.label != CONFIDENT or question.route in ("bins", "automaton")
    # Whoever may join the first batch pays for those that wait, whose lower end is not known.
    assert drawn.lower == 0 or not question.dominated
    assert 0 <= drawn.lower <= drawn.estimate <= drawn <= proved == drawn.certified <= 1
    assert drawn.label != CERTIFIED or drawn == proved
    assert drawn > 0


# -- exact ways


BANDED = STRATEGIES["banded"][0]
RISING = matrix.Dense(np.diag(np.linspace(1.0, 2.0, 8)))


@pytest.mark.parametrize(
    ("run", "sampler", "rows"),
    [
        (Identity(40), POISSON, slice(None)),
        (matrix.Dense(3.0 * np.eye(T)), POISSON, slice(None)),
        # Eligible rounds of a record in the worst group; the last columns of C are shorter.
        (BANDED, correlated.CyclicPoisson(4, 0.3), slice(0, None, 4)),
        (Banded(320, 32), correlated.CyclicPoisson(32, 0.32), slice(0, None, 32)),
        # The worst group is not always the first.
        (RISING, correlated.CyclicPoisson(2, 0.3), slice(1, None, 2)),
    ],
)
def test_columns_that_do_not_meet_are_a_composition(run, sampler, rows):
    event = events.CorrelatedGaussianDpEvent(run, sampler, 2.0)
    norms = np.linalg.norm(run.matrix(), axis=0)[rows]
    steps = [
        events.PoissonSampledDpEvent(sampler.sampling_probability, events.GaussianDpEvent(2.0 / x))
        for x in norms
    ]
    for relation in ("replace-special", "replace-one"):
        how = {"delta": 1e-6, "neighboring_relation": relation}
        found = accountants.epsilon(event, **how)
        alone = accountants.epsilon(events.ComposedDpEvent(steps), **how)
        assert found.label == EXACT
        assert float(found) == pytest.approx(float(alone), rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("run", "sampler", "epoch", "epochs"),
    [
        (LambdaCGD(40, 0.0), correlated.RandomAllocation(1, epoch=10), (2.0, 10), 4),
        (Identity(40), correlated.BallsInBins(10), (1.0, 10), 1),
        # Columns that never meet cost no more than an allocation to a part of the rounds.
        (
            Banded(100, 4, [1.0, 0.5, 0.5, 0.5]),
            correlated.RandomAllocation(1, epoch=100),
            (2.0 / math.sqrt(1.75), 25),
            1,
        ),
    ],
)
def test_one_round_an_epoch_is_an_allocation(run, sampler, epoch, epochs):
    asked = {"noise_multiplier": 2.0, "statistics": "none"}
    event = whole_run(run, sampler, **asked)
    allocated = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(*epoch), epochs)
    for delta in (1e-3, 1e-30):
        found = price(run, sampler, delta=delta, **asked)
        exact = accountants.epsilon(allocated, delta=delta)
        assert (found.label, found.draws) == (CERTIFIED, 0)
        assert found.lower <= exact.upper
        for each in (found, accountants.epsilon(event, delta=delta)):
            assert each <= 1.0001 * exact
            assert exact.lower <= each or isinstance(run, Banded)
    # Whoever composes such a run with another answer has a law of it, and its noise rounded down.
    if isinstance(event, events.SelfComposedDpEvent):
        assert event.count == epochs
        assert event.event.noise_multiplier < epoch[0]
    with pytest.raises(ValueError, match="number of rounds"):
        whole_run(Identity(run.steps + 5), sampler, noise_multiplier=3.0)


@pytest.mark.parametrize("run", [LambdaCGD(T, 0.7), Banded(T, 3, [1.0, 0.5, 0.25]), BISR(T, 3)])
def test_every_record_at_every_round_is_the_event_without_sampling(run):
    # As q -> 1 all participate always: one Gaussian mechanism of sensitivity ||C 1||.
    asked = {"noise_multiplier": 8.0, "delta": 1e-5, "statistics": "none"}
    event = run.event(8.0, LeastSeparation(1))
    blank = {"neighboring_relation": "replace-special"}
    unsampled = accountants.epsilon(event, delta=1e-5, **blank)
    for rate in (1.0, 1 - 1e-9):
        sure = price(run, correlated.Poisson(rate), **asked)
        assert sure == pytest.approx(unsampled, rel=1e-6)
    drawn = price(
        run, correlated.Poisson(1.0), noise_multiplier=8.0, epsilon=1.0, draws=8_000, seed=5
    )
    exact = accountants.delta(event, epsilon=1.0, **blank)
    assert drawn.lower <= exact <= drawn < exact + 0.1


# -- what must not be understated


@pytest.mark.slow
def test_absolute_values_dominate_mixed_signs():
    # Contributions of any sign never beat those of abs(C): here all signs of two rounds with a
    # negative entry.
    C, sigma, rate, epsilon = np.array([[1.0, 0.0], [-0.6, 1.0]]), 1.3, 0.3, 0.4
    worst = two_rounds(np.abs(C), sigma, rate, epsilon)
    for signs in ((1, 1), (1, -1)):
        found = two_rounds(C * signs, sigma, rate, epsilon)
        assert all(a <= b + 1e-12 for a, b in zip(found, worst, strict=True))
    asked = {"noise_multiplier": sigma, "epsilon": epsilon, "draws": 30_000, "seed": 2}
    answer = price(Dense(C), correlated.Poisson(rate), **asked)
    assert answer.lower <= max(worst) <= answer


@pytest.mark.parametrize(
    ("rate", "attack", "claimed"), [(0.1, 7.717e-3, 2.071e-4), (0.01, 1.693e-4, 2.73e-9)]
)
def test_batches_of_fixed_size_beat_the_bernoulli_pair(rate, attack, claimed):
    # One round. Every other record contributes -1 and ours +1 (or 0): a batch that holds it holds
    # one other record less, so the sums differ by 2 against 1, which a Bernoulli mixture against
    # plain noise does not dominate.
    x, asked = np.linspace(-14, 16, 400_001), {"noise_multiplier": 1.0, "epsilon": 1.0}
    p, q = ((1 - rate) * norm.pdf(x) + rate * norm.pdf(x, far) for far in (2, 1))
    found = np.maximum(p - math.e * q, 0).sum() * (x[1] - x[0])
    bernoulli = price(Identity(1), correlated.Poisson(rate), **asked)
    assert found == pytest.approx(attack, rel=1e-3)
    assert bernoulli == pytest.approx(claimed, rel=2e-3)
    sampler = correlated.FixedSize(round(1000 * rate), 1000)
    with pytest.raises(UnsupportedEvent, match="Poisson"):
        price(Identity(1), sampler, **asked)
    revealed = revealed_delta(Identity(1), sampler, **asked)
    assert found <= revealed
    assert revealed == pytest.approx(rate * 0.1269367375, rel=1e-6)


def test_no_group_is_taken_for_the_worst_without_proof():
    # Records of the second group move five times as much as those of the first.
    C = np.diag([1.0, 5.0, 1.0, 5.0]) + 0.1 * np.eye(4, k=-1) + 0.1 * np.eye(4, k=-2)
    drawn = correlated.CyclicPoisson(2, 0.5, random_shift=True)
    asked = {"noise_multiplier": 5.0, "delta": 1e-3, "draws": 20_000, "seed": 0}
    answer = float(price(Dense(C), drawn, **asked))
    # All patterns of both groups, and outputs of a record that is in either.
    patterns = np.array([[a, 0, b, 0] for a in (0, 1) for b in (0, 1)])
    means = np.concatenate([patterns, np.roll(patterns, 1, axis=1)]) @ C.T
    rng = np.random.default_rng(5)
    x = means[rng.integers(0, 8, 400_000)] + 5.0 * rng.standard_normal((400_000, 4))
    ratio = np.exp(x @ means.T / 25 - (means * means).sum(axis=1) / 50).mean(axis=1)
    for epsilon, at_most in ((answer, True), (0.8 * answer, False)):
        delta = np.maximum(0.0, 1 - math.exp(epsilon) / ratio).mean()
        assert (delta <= 1e-3) == at_most


@pytest.mark.parametrize(("bands", "rate"), [(1, 0.3), (2, 0.3), (3, 1.0), (6, 0.3)])
def test_bounds_without_draws_hold_for_every_group(bands, rate):
    # Of each group every pattern, with its own norm: what an observer who knows it could tell.
    rng = np.random.default_rng(bands)
    C = np.tril(rng.uniform(0, 1, (7, 7))) * rng.uniform(0.8, 2.0, 7)
    sampler, sigma, level = correlated.CyclicPoisson(bands, rate), 3.0, 0.7
    asked = {"noise_multiplier": sigma, "statistics": "none"}
    bound = price(Dense(C), sampler, epsilon=level, **asked)
    assert (bound.label, bound.method) == (CERTIFIED, "participations revealed")
    found = []
    for group in range(bands):
        columns = C[:, group::bands].T
        total = 0.0
        for y in itertools.product([0, 1], repeat=len(columns)):
            mu = np.linalg.norm(y @ columns) / sigma
            chance = rate ** sum(y) * (1 - rate) ** (len(y) - sum(y))
            if mu > 0:
                tail = norm.cdf(-mu / 2 - level / mu)
                total += chance * (norm.cdf(mu / 2 - level / mu) - math.exp(level) * tail)
        found.append(total)
    assert max(found) <= bound <= 2 * max(found)


@pytest.mark.parametrize("sampler", SAMPLERS[:-1], ids=repr)
def test_facts_of_a_sampler_hold_in_its_law(sampler):
    """Bounds are chosen by these facts, so that a wrong one would prove a wrong epsilon."""
    law, rounds = sampler.automaton(T), T
    y, _ = law.sample(4000, np.random.default_rng(0))
    together = np.lib.stride_tricks.sliding_window_view(y, sampler.least_separation, axis=0)
    assert together.sum(axis=-1).max() == 1
    groups, epochs = sampler.groups(rounds), sampler.epochs(rounds)
    if groups is not None:
        covered = np.concatenate([np.arange(rounds)[rows] for rows in groups.rounds])
        assert sorted(covered) == list(range(rounds))
        share = len(groups.rounds) if groups.secret else 1
        np.testing.assert_allclose(law.rates[groups.rounds[0]], groups.rate / share)
    if epochs is not None:
        assert epochs.drawn * epochs.repeated * epochs.rounds == rounds
        taken = y.reshape(-1, epochs.rounds, y.shape[1]).sum(axis=1)
        assert (taken == epochs.times).all()
        np.testing.assert_allclose(law.rates, epochs.times / epochs.rounds)
    if (patterns := sampler.equally_likely(rounds)) is not None:
        np.testing.assert_allclose(patterns.mean(axis=1), law.rates)
        assert {tuple(column) for column in y.T} == {tuple(column) for column in patterns.T}


# -- draws


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "sampler"), [("lambda-CGD", POISSON), ("banded", SAMPLERS[6]), ("BLT", SAMPLERS[8])]
)
def test_confidence_is_part_of_delta_and_draws_answer_both_ways_alike(name, sampler):
    options = {"noise_multiplier": 1.2, "seed": 3, "draws": 8192}
    run, _ = STRATEGIES[name]
    answer = price(run, sampler, delta=1e-2, **options)
    assert answer.label == CONFIDENT
    assert answer.failure_probability == pytest.approx(1e-4)
    assert answer.lower < answer.estimate < answer < answer.certified
    back = price(run, sampler, epsilon=float(answer), failure_probability=1e-4, **options)
    # Epsilons are tested in steps of 0.15 percent.
    assert 0.985e-2 <= back <= 1e-2 * (1 + 1e-5)
    surer = price(run, sampler, delta=1e-2, failure_probability=1e-8, **options)
    assert surer > answer
    with pytest.raises(ValueError, match="failure_probability must be less than delta"):
        price(run, sampler, delta=1e-2, failure_probability=0.1, **options)


def test_a_past_without_a_small_memory_is_proved_and_says_why():
    run, _ = STRATEGIES["BLT"]
    found = price(run, POISSON, noise_multiplier=2.0, epsilon=0.5, draws=2048, seed=0)
    assert found.label == CERTIFIED
    assert "no small memory" in found.note


@pytest.mark.slow
def test_too_few_draws_name_enough():
    # Ten draws cannot bound this delta: the proof answers, and says what was missing.
    run, target = LambdaCGD(16, 0.5), {"delta": 1e-6}
    # A secret group has no tilted draws.
    sampler = correlated.CyclicPoisson(2, 0.05, random_shift=True)
    found = price(run, sampler, noise_multiplier=4.0, draws=10, seed=0, **target)
    proved = price(run, sampler, noise_multiplier=4.0, statistics="none", **target)
    assert (float(found), found.label) == (float(proved), CERTIFIED)
    assert found.note.startswith("draws=10 cannot")
    assert "choose draws >=" in found.note


# -- noise for a target


@pytest.mark.slow
def test_draws_need_less_noise_than_proofs_and_other_draws_confirm_it():
    run, sampler, asked = LambdaCGD(40, 0.75), correlated.Poisson(0.01), {"draws": 8192}
    target = {"epsilon": 1.0, "delta": 1e-3}
    found = noise_multiplier(run, sampler, seed=3, **asked, **target)
    assert found.label == CONFIDENT
    proved = noise_multiplier(run, sampler, statistics="none", **target).noise_multiplier
    assert found.noise_multiplier < 0.8 * proved
    assert found.confirmation <= 1e-3
    assert found.confirmation.failure_probability <= 1e-5
    assert found.confirmation.seed != 3
    less = 0.8 * found.noise_multiplier
    again = price(run, sampler, noise_multiplier=less, epsilon=1.0, seed=9, **asked)
    assert again > 1e-3


@pytest.mark.slow
def test_both_calibrators_are_one():
    run, target, sampler = LambdaCGD(50, 0.5), {"epsilon": 1.0, "delta": 1e-5}, POISSON
    proved = noise_multiplier(run, sampler, statistics="none", **target).noise_multiplier
    plan = correlated_dpsgd(run, n=100, batch_size=10, statistics=False, **target)
    assert plan.query("gradient").noise_multiplier == proved < 6.37
    # With draws, which take long to reach a small delta, of fewer rounds.
    run, target = LambdaCGD(16, 0.5), {"epsilon": 1.0, "delta": 1e-3, "draws": 2048, "seed": 3}
    drawn = noise_multiplier(run, sampler, **target)
    stored = {"n": 100, "batch_size": 10, **target}
    planned = correlated_dpsgd(run, **stored)
    assert planned.query("gradient").noise_multiplier == drawn.noise_multiplier
    assert planned.price() <= 1.0
    assert correlated_dpsgd(run, **stored) == planned


def test_the_former_name_of_a_schema_warns():
    with pytest.warns(DeprecationWarning, match="is now .*LeastSeparation"):
        assert matrix.MinSeparation is matrix.LeastSeparation
