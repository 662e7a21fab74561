"""What the oracle answers and charges: differences, norms, losses, parts."""

import dataclasses
import math

import numpy as np
import pytest
from _answers import (
    FIXED,
    FULL,
    POISSON,
    QUIET,
    D,
    N,
    V,
    W,
    Watched,
    X,
    Y,
    adaptive_plan,
    oracle_for,
    parted,
    plan_for,
    query,
    result_of,
    untouchable,
)
from _recording import check_promises
from hypothesis import given, settings, strategies as st

from dpcal import accountants
from dpcal.accountants import events
from dpcal.calibrate import Plan
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim import Ledger, Logistic, PrivateOracle, Softmax, minimax
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.driver import Run
from dpcal.optim.first_order.descent import projected_descent

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

# -- differences


def test_difference_without_noise_or_clipping_is_the_difference_of_gradients():
    asked = query(kind="gradient difference", max_norm=1e6, noise_multiplier=QUIET / 1e6)
    oracle = oracle_for(asked)
    objective = oracle.objective
    expected = objective.gradient(W) - objective.gradient(V)
    np.testing.assert_allclose(oracle.difference(W, V, "q"), expected, atol=1e-12)


@pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED])
@pytest.mark.parametrize(
    ("scale", "bound"),
    [
        ({}, 0.1),
        ({"proportional": True}, 0.1 * np.linalg.norm(W - V)),
        ({"proportional": True, "cap": 0.13}, 0.13),
        ({"proportional": True, "cap": 1e3}, 0.1 * np.linalg.norm(W - V)),
    ],
)
def test_difference_is_on_one_sample_with_noise_in_proportion(sampling, scale, bound):
    asked = query(kind="gradient difference", max_norm=0.1, **scale, **sampling)
    objective = Watched()
    answer = oracle_for(asked, objective=objective, seed=5).difference(W, V, "q")
    (rows,) = objective.seen
    noise = Streams(5, plan_for(asked), objective.digest).noise.normal(0.0, 2.0 * bound, D)
    size = {"poisson": 0.3 * N, "fixed-size": 12, "full": N}[asked.sampler]
    exact = Logistic(X, Y, classes_from_data=True).clipped_difference_sum(W, V, rows, bound)
    penalty = 0.2 * np.append((W - V)[:-1], 0.0)
    np.testing.assert_allclose(answer, (exact + noise) / size + penalty, rtol=1e-12)
    assert len(set(rows)) == len(rows)


@pytest.mark.parametrize("v", [W, W + 1e-300 * np.array([0, 0, 0, 1.0])])
def test_no_distance_means_no_noise_no_record_and_one_entry(v):
    asked = query(kind="gradient difference", proportional=True, max_norm=3.0)
    oracle = oracle_for(asked, objective=untouchable(), seed=None)
    assert not oracle.difference(W, v, "q").any()
    assert oracle.ledger.entries == (dataclasses.replace(asked, count=1),)


def test_equal_parameters_of_an_absolute_bound_get_noise():
    assert oracle_for(query(kind="gradient difference")).difference(W, W, "q").all()


def test_distance_that_overflows_is_refused_before_the_ledger():
    asked = query(kind="gradient difference", proportional=True)
    oracle = oracle_for(asked)
    with pytest.raises(ValueError, match="w and v must be at a finite distance"):
        oracle.difference(np.full(D, 1e308), np.full(D, -1e308), "q")
    assert oracle.ledger.entries == ()


# -- norms and losses


@pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED])
def test_norm_and_scalar_are_noisy_numbers_over_the_public_size(sampling):
    asked = (
        query("norm", "gradient norm", **sampling),
        query("loss", "scalar", max_norm=0.4, **sampling),
    )
    objective = Watched()
    oracle = oracle_for(*asked, objective=objective, seed=3)
    norm, loss = oracle.norm(W, "norm"), oracle.scalar(W, "loss")
    first, second = objective.seen
    z = Streams(3, plan_for(*asked), objective.digest).noise.standard_normal(2)
    size = {"poisson": 0.3 * N, "fixed-size": 12, "full": N}[asked[0].sampler]
    total = Logistic(X, Y, classes_from_data=True).clipped_sum(
        W, first, 0.5
    ) / size + objective.regularizer_gradient(W)
    assert norm == pytest.approx(np.linalg.norm(total) + 2.0 * 0.5 * z[0] / size, rel=1e-12)
    losses = [
        Logistic(X, Y, classes_from_data=True).clipped_loss_sum(W, np.array([row]), math.inf)
        for row in second
    ]
    expected = (np.minimum(losses, 0.4).sum() + 2.0 * 0.4 * z[1]) / size
    assert loss == pytest.approx(expected + objective.regularizer(W), rel=1e-12)
    assert [entry.name for entry in oracle.ledger.entries] == ["norm", "loss"]


@pytest.mark.slow
@settings(deadline=None, max_examples=50)
@given(st.integers(0, N - 1), st.integers(0, 2**32), st.floats(-3, 3))
def test_one_record_moves_each_answer_by_at_most_its_share(gone, seed, scale):
    # Same noise, every record: b times the answers of neighbors differ by at most the bound.
    asked = (
        query("g", max_norm=0.3),
        query("d", "gradient difference", max_norm=0.2, proportional=True),
        query("n", "gradient norm", max_norm=0.3),
        query("s", "scalar", max_norm=0.6),
    )
    rest = np.delete(np.arange(N), gone)
    bounds = [0.3, 0.2 * np.linalg.norm(scale * (W - V)), 0.3, 0.6]

    def answers(rows):
        objective = (
            Logistic(X[rows], Y[rows], classes_from_data=True) if len(rows) == N else Part(rows)
        )
        oracle = oracle_for(*asked, objective=objective, seed=seed)
        return [
            oracle.gradient(scale * W, "g"),
            oracle.difference(scale * W, scale * V, "d"),
            oracle.norm(scale * W, "n"),
            oracle.scalar(scale * W, "s"),
        ]

    for mine, theirs, bound in zip(answers(np.arange(N)), answers(rest), bounds, strict=True):
        moved = N * np.linalg.norm(np.subtract(mine, theirs))
        assert moved <= bound * (1 + 1e-9) + 1e-9


class Part(Logistic):
    """One record zeroed out: it contributes nothing to any sum."""

    def __init__(self, rows):
        super().__init__(X, Y, classes=[0, 1])
        self.rows = rows

    def clipped_sum(self, w, rows, max_norm):
        return super().clipped_sum(w, np.intersect1d(rows, self.rows), max_norm)

    def clipped_difference_sum(self, w, v, rows, max_norm):
        return super().clipped_difference_sum(w, v, np.intersect1d(rows, self.rows), max_norm)

    def clipped_loss_sum(self, w, rows, max_loss):
        return super().clipped_loss_sum(w, np.intersect1d(rows, self.rows), max_loss)


@pytest.mark.parametrize("kind", ["gradient", "gradient difference", "gradient norm", "scalar"])
def test_each_method_answers_its_own_kind_before_touching_anything(kind):
    oracle = oracle_for(query(kind=kind), objective=untouchable())
    ask = {
        "gradient": lambda: oracle.gradient(W, "q"),
        "gradient difference": lambda: oracle.difference(W, V, "q"),
        "gradient norm": lambda: oracle.norm(W, "q"),
        "scalar": lambda: oracle.scalar(W, "q"),
    }
    for other, method in ask.items():
        if other != kind:
            with pytest.raises(ValueError, match=f"query must be of kind '{other}'"):
                method()
    assert oracle.ledger.entries == ()
    with pytest.raises(AssertionError, match="a record was touched"):
        ask[kind]()
    assert oracle.ledger.count("q") == 1


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_records_that_are_not_finite_contribute_zero_to_every_answer(bad):
    class Careless(Logistic):
        """An objective of a user's own, whose record 3 spoils every sum that it is in."""

        def spoil(self, total, rows):
            return total * bad if 3 in rows else total

        def clipped_sum(self, w, rows, max_norm):
            return self.spoil(super().clipped_sum(w, rows, max_norm), rows)

        def clipped_difference_sum(self, w, v, rows, max_norm):
            return self.spoil(super().clipped_difference_sum(w, v, rows, max_norm), rows)

        def clipped_loss_sum(self, w, rows, max_loss):
            return float(self.spoil(np.array(super().clipped_loss_sum(w, rows, max_loss)), rows))

    bare = {**FULL, "noise_multiplier": 1e-18}
    asked = (
        query("q", **bare),
        query("d", "gradient difference", **bare),
        query("n", "gradient norm", **bare),
        query("s", "scalar", **bare),
    )
    spoiled = oracle_for(*asked, objective=Careless(X, Y, classes=[0, 1]))
    rest = Logistic(X, Y, classes_from_data=True)
    others = np.delete(np.arange(N), 3)
    total = rest.clipped_sum(W, others, 0.5)
    close = {"rtol": 1e-10, "atol": 1e-12}
    np.testing.assert_allclose(spoiled.gradient(W, "q"), total / N, **close)
    change = rest.clipped_difference_sum(W, V, others, 0.5)
    np.testing.assert_allclose(spoiled.difference(W, V, "d"), change / N, **close)
    assert spoiled.norm(W, "n") == pytest.approx(np.linalg.norm(total) / N, rel=1e-10)
    losses = rest.clipped_loss_sum(W, others, 0.5)
    assert spoiled.scalar(W, "s") == pytest.approx(losses / N, rel=1e-10)


# -- disjoint parts


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from("abc"), max_size=40), st.integers(0, 2**32))
def test_no_record_is_in_two_parts_of_a_partition(order, seed):
    # Three queries, interleaved anyhow; c asks three times about each part.
    asked = {
        "a": parted("a", 5, 99),
        "b": parted("b", 3, 99, kind="gradient difference"),
        "c": parted("c", 7, 99, kind="scalar", each=3),
    }
    objective = Watched()
    oracle = oracle_for(*asked.values(), objective=objective, seed=seed)
    ask = {
        "a": lambda: oracle.gradient(W, "a"),
        "b": lambda: oracle.difference(W, V, "b"),
        "c": lambda: oracle.scalar(W, "c"),
    }
    parts, used, latest = [], 0, {}
    for name in order:
        new = asked[name].batch_size * (name != "c" or oracle.ledger.count("c") % 3 == 0)
        if used + new > N:
            before = oracle.ledger.to_json()
            with pytest.raises(BudgetExceeded, match=f"partition 'p' of n=60 has {N - used} left"):
                ask[name]()
            assert oracle.ledger.to_json() == before
            continue
        ask[name]()
        rows = objective.seen[-1]
        assert len(rows) == asked[name].batch_size
        used += new
        if new:
            parts.append(rows)
            latest[name] = rows
        assert (rows == latest[name]).all()
    everything = np.concatenate(parts) if parts else np.empty(0)
    assert len(np.unique(everything)) == len(everything) == used


def test_partitions_are_random_reproducible_and_of_their_own():
    def rows(seed):
        objective = Watched()
        oracle = oracle_for(
            parted("a", 30, 2),
            parted("b", 60, 1, partition="other"),
            objective=objective,
            seed=seed,
        )
        oracle.gradient(W, "a")
        oracle.gradient(W, "a")
        oracle.gradient(W, "b")
        return objective.seen

    first, again, other = rows(1), rows(1), rows(2)
    assert all((a == b).all() for a, b in zip(first, again, strict=True))
    assert set(first[0]) != set(other[0])
    assert set(np.concatenate(first[:2])) == set(first[2]) == set(range(N))
    assert (np.concatenate(first[:2]) != first[2]).any()


def test_steps_go_through_the_parts_in_turn():
    objective = Watched()
    oracle = oracle_for(parted("a", 20, 6, each=2), objective=objective)
    projected_descent(Run(oracle, steps=6), "a", np.full(6, 0.1))
    pairs = objective.seen[::2], objective.seen[1::2]
    assert all((a == b).all() for a, b in zip(*pairs, strict=True))
    assert set(np.concatenate(pairs[0])) == set(range(N))


@pytest.mark.parametrize("relation", ["replace-one", "replace-special"])
def test_a_partition_costs_its_worst_part(relation):
    # Parts are as informative as k / z^2 says: 4/3^2 beats 1/2^2 and 3/3^2.
    asked = (
        parted("a", 5, 3, noise_multiplier=2.0),
        parted("b", 5, 8, noise_multiplier=3.0, each=4),
        parted("c", 5, 2, noise_multiplier=3.0, each=3),
    )
    worst = events.SelfComposedDpEvent(events.GaussianDpEvent(3.0), 4)
    plan = plan_for(*asked, relation=relation)
    assert plan.event == worst
    single = events.GaussianDpEvent(3.0 / 2)
    exact = accountants.epsilon(single, delta=1e-5, neighboring_relation=relation)
    assert plan.price() == pytest.approx(float(exact), rel=1e-9)
    ledger = Ledger(N, relation)
    ledger.record(asked[1], 2)
    assert ledger.event == events.SelfComposedDpEvent(events.GaussianDpEvent(3.0), 2)
    ledger.record(asked[0], 3)  # 1/4 is more than 2/9
    assert ledger.event == events.GaussianDpEvent(2.0)
    ledger.record(asked[1], 1)  # and less than 3/9
    assert ledger.event == events.SelfComposedDpEvent(events.GaussianDpEvent(3.0), 3)


def test_partitions_and_sequential_queries_add_up():
    asked = (
        parted("a", 5, 3, noise_multiplier=2.0),
        query("g", noise_multiplier=5.0, count=7),
        parted("b", 5, 3, noise_multiplier=4.0, partition="other"),
        parted("c", 5, 3, noise_multiplier=6.0, partition=None),
    )
    gaussian = events.GaussianDpEvent
    assert plan_for(*asked).event == events.ComposedDpEvent(
        [gaussian(2.0), events.SelfComposedDpEvent(gaussian(5.0), 7), gaussian(4.0), gaussian(6.0)]
    )
    with pytest.raises(UnsupportedEvent, match="composes over disjoint parts, which needs"):
        _ = plan_for(*asked, relation="add-or-remove-one").event
    oracle = oracle_for(*asked, relation="add-or-remove-one", objective=untouchable())
    with pytest.raises(ValueError, match="under 'replace-one' or 'replace-special'"):
        oracle.gradient(W, "a")


# -- the price of each relation


@pytest.mark.parametrize(
    ("relation", "divisor"),
    [("add-or-remove-one", 1), ("replace-special", 1), ("replace-one", 2)],
)
def test_prices_know_how_far_a_record_moves_a_sum(relation, divisor):
    # One Gaussian is 1/z-GDP in units of its sensitivity: C, or 2 C when a record is replaced.
    plan = plan_for(query(noise_multiplier=3.0, count=4), relation=relation)
    exact = accountants.epsilon(events.GaussianDpEvent(3.0 / (2 * divisor)), delta=1e-5)
    assert plan.price() == pytest.approx(float(exact), rel=1e-9)


def test_fixed_size_samples_are_priced_as_what_they_are():
    plan = plan_for(query(**FIXED), relation="replace-one")
    sampled = events.SampledWithoutReplacementDpEvent(N, 12, events.GaussianDpEvent(2.0))
    assert plan.event == events.SelfComposedDpEvent(sampled, 10)


# -- what queries may say


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"cap": 1.0}, "cap is for proportional queries"),
        ({"partition": "p"}, "partition and answers_per_part are for composition='disjoint'"),
        ({"answers_per_part": 2}, "partition and answers_per_part are for composition='disjoint'"),
        ({"answers_per_part": 0}, "answers_per_part must be a whole number >= 1"),
        ({"composition": "disjoint", "partition": ""}, "partition must be a non-empty string"),
        ({"budget": 3.0}, "noise_multiplier must be at least budget=3.0"),
        ({"budget": -1.0}, "budget must be a finite number > 0"),
        ({"budget": 1.0, **POISSON}, "budget is for sampler='full'"),
        ({"budget": 1.0, "composition": "disjoint"}, "budget is for sampler='full'"),
    ],
)
def test_queries_that_make_no_sense_are_refused(changes, sentence):
    with pytest.raises(ValueError, match=sentence):
        query(**changes)


def test_plans_do_not_mix_adaptive_and_planned_noise():
    with pytest.raises(ValueError, match="queries must all be adaptive, with one budget, or none"):
        plan_for(query("a"), query("b", budget=1.0))
    with pytest.raises(ValueError, match="distance must be given"):
        query(kind="gradient difference", proportional=True).bound()


def test_plans_with_every_field_survive_json():
    plan = plan_for(
        parted("a", 5, 8, each=4),
        query("d", "gradient difference", proportional=True, cap=2.0),
        relation="replace-one",
    )
    assert Plan.from_json(plan.to_json()) == plan
    assert Plan.from_json(adaptive_plan().to_json()) == adaptive_plan()


# -- any optimizer, recorded


def spider(objective, plan, *, seed):
    """Refresh, follow by differences, stand still once, test a loss: every kind of answer."""
    oracle = PrivateOracle(objective, plan, seed=seed)
    w = np.zeros(D)
    for _ in range(2):
        v, estimate = w, oracle.gradient(w, "refresh")
        for step in range(4):
            w = w if step == 2 else w - 0.1 * estimate
            estimate = estimate + oracle.difference(w, v, "difference")
            v = w
        oracle.scalar(w, "loss")
    return result_of(oracle)


def normed(objective, plan, *, seed):
    """Choose each gradient's noise from a noisy norm until the budget is gone."""
    oracle = PrivateOracle(objective, plan, seed=seed)
    w = np.zeros(D)
    while oracle.affords("n", 20.0):
        z = 8.0 + abs(oracle.norm(w, "n", noise_multiplier=20.0))
        if not oracle.affords("g", z):
            break
        w = w - 0.1 * oracle.gradient(w, "g", noise_multiplier=z)
    return result_of(oracle)


@pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED, "parts"])
def test_the_recorder_follows_every_kind_of_answer(sampling):
    parts = {**FIXED, "batch_size": 5, "composition": "disjoint", "partition": "p"}
    sampling = parts if sampling == "parts" else sampling
    plan = plan_for(
        query("refresh", count=2, **sampling),
        query("difference", "gradient difference", proportional=True, count=8, **sampling),
        query("loss", "scalar", count=2, **sampling),
        relation="replace-one",
    )
    check_promises(spider, Logistic(X, Y, l2=0.2, classes_from_data=True), plan, seed=1)


def test_the_recorder_follows_adaptive_noise():
    result = check_promises(
        normed, Logistic(X, Y, l2=0.2, classes_from_data=True), adaptive_plan(), seed=1
    )
    assert result.ledger.count("g") > 5
    assert result.ledger.share(2.0) > 0.9


# -- answers in compiled code


def asked_both_ways(objective, sampling):
    """Return answers in compiled code, and those of the same oracle without it."""
    plan = plan_for(
        query(**sampling),
        query(name="move", kind="gradient difference", proportional=True, **sampling),
    )
    w, v = np.random.default_rng(5).standard_normal((2, objective.dimension))
    found = []
    for compiled in (True, False):
        oracle = PrivateOracle(objective, plan, seed=7)
        assert (oracle._answers is not None) or not compiled
        if not compiled:
            oracle._answers = None
        answers = [
            oracle.gradient(w, "q"),
            oracle.difference(w, v, "move"),
            oracle.gradient(v, "q"),
        ]
        found.append(np.array(answers))
        assert oracle.ledger.answers == 3
    return found


@pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED])
@pytest.mark.parametrize(
    "made",
    [
        lambda: Logistic(X, Y, l2=0.3, classes_from_data=True),
        lambda: Softmax(X, np.arange(N) % 3, l2=0.3, classes_from_data=True),
        lambda: minimax.AUCMaximization(
            X, Y, positive_share=0.5, primal_l2=0.1, classes_from_data=True
        ),
    ],
)
def test_compiled_answers_are_the_same_to_the_bit(made, sampling):
    compiled, interpreted = asked_both_ways(made(), sampling)
    assert (compiled == interpreted).all()


class Leaning(Logistic):
    """Has a regulariser of its own, which no compiled code knows."""

    checked = True

    def regularizer_gradient(self, w):
        return super().regularizer_gradient(w) + 1.0


def test_what_a_class_of_a_users_overrides_is_not_passed_over():
    def end(made):
        plan = plan_for(query(count=4, max_norm=1.0), n=N)
        run = Run(PrivateOracle(made(X, Y, classes=[0, 1]), plan, seed=3), steps=4)
        return projected_descent(run, "q", np.full(4, 0.01))

    # Four steps of 0.01 against a slope that is longer by one, and slopes that differ little there.
    moved = end(Logistic) - end(Leaning)
    assert ((moved > 0.02) & (moved < 0.06)).all()
