"""What the oracle answers and charges: gradients, differences, norms, losses, parts."""

import dataclasses
import itertools
import math
import tomllib
from unittest import mock

import numpy as np
import pytest
from _answers import (
    FIXED,
    FULL,
    LOGISTIC,
    POISSON,
    D,
    Hooked,
    N,
    V,
    W,
    Watched,
    X,
    Y,
    oracle_for,
    parted,
    plan_for,
    query,
    result_of,
    untouchable,
)
from _built_plans import noise_again, rounding
from _recording import check_promises
from _tree import DATA
from hypothesis import given, settings, strategies as st

from dpcal import accountants, calibrate, optim
from dpcal._ext.samples import drawn
from dpcal.accountants import events
from dpcal.accountants.matrix import LambdaCGD, SquareRoot, Tree
from dpcal.calibrate import Correlation
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim import Ledger, Logistic, PrivateOracle, Softmax, minimax
from dpcal.optim.attacks.recording import without
from dpcal.optim.boundary.oracle import Walk
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.driver import Run
from dpcal.optim.first_order.dpsgd import descend

SAMPLINGS = pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED])
SIZES = {"poisson": 0.3 * N, "fixed-size": 12, "full": N}

# -- gradients


def replay(asked, streams, w, learning_rates, radius):
    """Run Abadi et al. 2016, Algorithm 1, line by line on the oracle's own random streams."""
    sampling, noise, iterates = streams.sampling, streams.noise, []
    for learning_rate in learning_rates:
        if asked.sampler == "fixed-size":
            rows = sampling.choice(N, asked.batch_size, replace=False, shuffle=False)
        else:
            rows = drawn(N, asked.sampling_probability or 1.0, 0, sampling)
        total = np.zeros(D)
        for row in rows:
            slope = LOGISTIC.clipped_sum(w, np.array([row]), np.inf)
            total += slope * min(1.0, asked.max_norm / np.linalg.norm(slope))
        total += noise_again(noise, asked.noise_multiplier, asked.max_norm, D)
        w = w - learning_rate * (total / SIZES[asked.sampler] + 0.2 * np.append(w[:-1], 0.0))
        w = w * min(1.0, radius / np.linalg.norm(w))
        iterates.append(w)
    return iterates


@SAMPLINGS
@pytest.mark.parametrize("compiled", [True, False])
def test_steps_are_the_textbook_algorithm(sampling, compiled):
    asked, rates, start = query(count=30, **sampling), np.linspace(0.5, 0.1, 30), np.ones(D)
    objective = LOGISTIC if compiled else Watched()
    for radius in (np.inf, 0.7):
        streams = Streams(7, plan_for(asked), objective.digest)
        iterates = replay(asked, streams, start, rates, radius)
        oracle = oracle_for(asked, objective=objective, seed=7)
        run = Run(oracle, steps=30, initial=start, radius=radius)
        mean = descend(run, "q", rates, "uniform")
        off = rates.sum() * rounding(0.5, D, N, SIZES[asked.sampler])  # no step makes it larger
        np.testing.assert_allclose(run.w, iterates[-1], rtol=0, atol=off)
        np.testing.assert_allclose(mean, np.mean(iterates, axis=0), rtol=0, atol=off)


def test_gradients_and_steps_share_one_budget():
    oracle = oracle_for(query(count=5))
    walk = Walk(oracle, W, "q", rates=np.full(9, 0.1))
    assert walk.compiled
    with pytest.raises(BudgetExceeded, match="may be asked 5 times, 0 are spent, 6 more asked for"):
        walk.take(6)
    assert oracle.ledger.entries == ()
    walk.take(4)
    oracle.gradient(W, "q")
    assert oracle.remaining("q") == 0
    with pytest.raises(BudgetExceeded):
        oracle.gradient(W, "q")
    assert oracle.ledger.event == oracle.plan.event
    with pytest.raises(AttributeError):
        oracle.ledger = Ledger(N)


@pytest.mark.parametrize("n", [60, 140])
def test_answers_are_about_every_record_and_divided_by_the_public_number(n):
    """The records' own number may differ from the one that was given in public."""
    asked = query(max_norm=10.0, noise_multiplier=1e-9)
    plan = plan_for(asked, n=100, relation="add-or-remove-one", public_n=True)
    table = np.random.default_rng(0).standard_normal((n, 2))
    records = optim.Squared(table, np.ones(n), fit_intercept=False)
    answer = PrivateOracle(records, plan, seed=0).gradient(np.zeros(2), "q")
    total = records.clipped_sum(np.zeros(2), np.arange(n), 10.0)
    assert answer == pytest.approx(total / 100, rel=0, abs=rounding(10.0, 2, n, 100))
    with pytest.raises(ValueError, match=f"n={n} records, got one for n=100"):
        PrivateOracle(records, dataclasses.replace(plan, public_n=False), seed=0)
    plan = calibrate.dpsgd(n=100, batch_size=20, steps=30, epsilon=1.0, delta=1e-6)
    plan = dataclasses.replace(plan, public_n=True)
    fused = optim.dpsgd(records, plan, seed=3)
    plain = optim.dpsgd(records, plan, seed=3, callback_every=1, callback=lambda _: None)
    assert fused.w == pytest.approx(plain.w, rel=1e-12)
    assert fused.epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("n", [1500, 2500])
def test_samples_are_of_the_records_that_there_are(n):
    asked = query(max_norm=10.0, noise_multiplier=1e-9, count=100, **POISSON)
    plan = plan_for(asked, n=2000, relation="add-or-remove-one", public_n=True)
    records = optim.Squared(np.ones((n, 1)), np.ones(n), fit_intercept=False)
    oracle = PrivateOracle(records, plan, seed=0)
    sizes = [-600 * oracle.gradient(np.zeros(1), "q")[0] for _ in range(100)]
    # Each record adds -1: the mean of 100 sizes has a standard deviation of sqrt(n) / 21.8.
    assert np.mean(sizes) == pytest.approx(0.3 * n, abs=5 * np.sqrt(n) / 20)


# -- differences


@SAMPLINGS
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
    noise = noise_again(Streams(5, plan_for(asked), objective.digest).noise, 2.0, bound, D)
    exact = LOGISTIC.clipped_difference_sum(W, V, rows, bound)
    penalty = 0.2 * np.append((W - V)[:-1], 0.0)
    expected = (exact + noise) / SIZES[asked.sampler] + penalty
    off = rounding(bound, D, len(rows), SIZES[asked.sampler])
    np.testing.assert_allclose(answer, expected, rtol=1e-12, atol=off)
    assert len(set(rows)) == len(rows)


def test_no_distance_means_no_noise_no_record_and_one_entry():
    asked = query(kind="gradient difference", proportional=True, max_norm=3.0)
    for v in (W, W + 1e-300 * np.array([0, 0, 0, 1.0])):
        oracle = oracle_for(asked, objective=untouchable(), seed=None)
        assert not oracle.difference(W, v, "q").any()
        assert oracle.ledger.entries == (dataclasses.replace(asked, count=1),)
    with pytest.raises(ValueError, match="w and v must be at a finite distance"):
        oracle.difference(np.full(D, 1e308), np.full(D, -1e308), "q")
    assert oracle.ledger.answers == 1
    # A bound that is not in proportion has its noise there too.
    assert oracle_for(query(kind="gradient difference")).difference(W, W, "q").all()


# -- norms and losses


@SAMPLINGS
def test_norm_and_scalar_are_noisy_numbers_over_the_public_size(sampling):
    asked = (
        query("norm", "gradient norm", **sampling),
        query("loss", "scalar", max_norm=0.4, **sampling),
    )
    objective = Watched()
    oracle = oracle_for(*asked, objective=objective, seed=3)
    norm, loss = oracle.norm(W, "norm"), oracle.scalar(W, "loss")
    first, second = objective.seen
    stream = Streams(3, plan_for(*asked), objective.digest).noise
    z = [noise_again(stream, 2.0, bound, 1)[0] for bound in (0.5, 0.4)]
    size = SIZES[asked[0].sampler]
    total = LOGISTIC.clipped_sum(W, first, 0.5) / size + LOGISTIC.regularizer_gradient(W)
    wanted = np.linalg.norm(total) + z[0] / size
    assert norm == pytest.approx(wanted, rel=1e-12, abs=rounding(0.5, D, len(first), size))
    losses = [LOGISTIC.clipped_loss_sum(W, np.array([row]), math.inf) for row in second]
    expected = (np.minimum(losses, 0.4).sum() + z[1]) / size
    wanted, off = expected + LOGISTIC.regularizer(W), rounding(0.4, 1, len(second), size)
    assert loss == pytest.approx(wanted, rel=1e-12, abs=off)
    assert [entry.name for entry in oracle.ledger.entries] == ["norm", "loss"]


def four_kinds(**changes):
    """Return a query of each kind."""
    return (
        query("g", **changes),
        query("d", "gradient difference", proportional=True, **changes),
        query("n", "gradient norm", **changes),
        query("s", "scalar", **changes),
    )


def four_answers(oracle, scale=1.0):
    """Return the answers to a query of each kind."""
    w, v = scale * W, scale * V
    return (
        oracle.gradient(w, "g"),
        oracle.difference(w, v, "d"),
        oracle.norm(w, "n"),
        oracle.scalar(w, "s"),
    )


class Without(Hooked):
    """One record zeroed out: it contributes nothing to any sum."""

    def __init__(self, gone):
        super().__init__()
        self.gone = gone

    def chosen(self, rows):
        return rows[rows != self.gone]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, N - 1), st.integers(0, 2**32), st.floats(-3, 3))
def test_one_record_moves_each_answer_by_at_most_its_share(gone, seed, scale):
    # Same noise, every record: n times the answers of neighbors differ by at most the bound.
    bounds = [0.5, 0.5 * np.linalg.norm(scale * (W - V)), 0.5, 0.5]
    mine, theirs = (
        four_answers(oracle_for(*four_kinds(), objective=objective, seed=seed), scale)
        for objective in (LOGISTIC, Without(gone))
    )
    for ours, other, bound in zip(mine, theirs, bounds, strict=True):
        assert N * np.linalg.norm(np.subtract(ours, other)) <= bound * (1 + 1e-9) + 1e-9


def test_other_threads_wait_while_an_answer_is_written_and_summed():
    class Locked(Hooked):
        def told(self, total, rows):
            self.seen.append(oracle._lock.locked())
            return total

    oracle = oracle_for(*four_kinds(), objective=Locked())
    four_answers(oracle)
    assert oracle.objective.seen == [True] * 4


@pytest.mark.parametrize("kind", ["gradient", "gradient difference", "gradient norm", "scalar"])
def test_each_method_answers_its_own_kind_and_writes_it_before_a_record_is_touched(kind):
    oracle = oracle_for(query(kind=kind, count=1), objective=untouchable())
    ask = {
        "gradient": lambda: oracle.gradient(W, "q"),
        "gradient difference": lambda: oracle.difference(W, V, "q"),
        "gradient norm": lambda: oracle.norm(W, "q"),
        "scalar": lambda: oracle.scalar(W, "q"),
    }
    for other in ask.keys() - {kind}:
        with pytest.raises(ValueError, match=f"query must be of kind '{other}'"):
            ask[other]()
    with pytest.raises(ValueError, match="query must be one of 'q', got 'hessian'"):
        oracle.gradient(W, "hessian")
    assert oracle.ledger.entries == ()
    with pytest.raises(AssertionError, match="a record was touched"):
        ask[kind]()
    assert oracle.ledger.count("q") == 1
    with pytest.raises(BudgetExceeded):
        ask[kind]()
    assert oracle.ledger.count("q") == 1


# -- disjoint parts


@settings(deadline=None, max_examples=40)
@given(st.lists(st.sampled_from("abc"), min_size=10, max_size=40), st.integers(0, 2**32))
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
    everything = np.concatenate(parts)
    assert len(np.unique(everything)) == len(everything) == used


def test_partitions_are_random_and_of_their_own():
    found = []
    for seed in (1, 2):
        objective = Watched()
        asked = parted("a", 30, 2), parted("b", 60, 1, partition="other")
        oracle = oracle_for(*asked, objective=objective, seed=seed)
        for name in "aab":
            oracle.gradient(W, name)
        found.append(objective.seen)
    (first, second, whole), (other, _, _) = found
    assert set(first) != set(other)
    assert {*first, *second} == {*whole} == {*range(N)}
    assert (np.concatenate([first, second]) != whole).any()


@pytest.mark.parametrize("relation", ["replace-one", "replace-special"])
def test_a_partition_costs_its_worst_part(relation):
    # Parts are as informative as k / z^2 says: 4/3^2 beats 1/2^2 and 3/3^2.
    asked = (
        parted("a", 5, 3, noise_multiplier=2.0),
        parted("b", 5, 8, noise_multiplier=3.0, each=4),
        parted("c", 5, 2, noise_multiplier=3.0, each=3),
    )
    plan, answer = plan_for(*asked, relation=relation), events.GaussianDpEvent(3.0)
    assert plan.event == events.SelfComposedDpEvent(answer, 4)
    single = events.GaussianDpEvent(3.0 / 2)
    exact = accountants.epsilon(single, delta=1e-5, neighboring_relation=relation)
    assert plan.price() == pytest.approx(float(exact), rel=1e-9)
    ledger = Ledger(N, relation)
    for entry, count, worst in (
        (asked[1], 2, events.SelfComposedDpEvent(answer, 2)),
        (asked[0], 3, events.GaussianDpEvent(2.0)),  # 1/4 is more than 2/9
        (asked[1], 1, events.SelfComposedDpEvent(answer, 3)),  # and less than 3/9
    ):
        ledger.record(entry, count)
        assert ledger.event == worst


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
    with pytest.raises(UnsupportedEvent, match=r"needs .* 'replace-one' or 'replace-special'"):
        plan_for(*asked, relation="add-or-remove-one")


# -- the price of each relation


def test_prices_know_how_far_a_record_moves_a_sum():
    # One Gaussian is 1/z-GDP in units of its sensitivity: C, or 2 C when a record is replaced.
    for relation, moves in (("add-or-remove-one", 1), ("replace-special", 1), ("replace-one", 2)):
        plan = plan_for(query(noise_multiplier=3.0, count=4), relation=relation)
        exact = accountants.epsilon(events.GaussianDpEvent(3.0 / (2 * moves)), delta=1e-5)
        assert plan.price() == pytest.approx(float(exact), rel=1e-9), relation
    sampled = events.SampledWithoutReplacementDpEvent(N, 12, events.GaussianDpEvent(2.0))
    plan = plan_for(query(**FIXED), relation="replace-one")
    assert plan.event == events.SelfComposedDpEvent(sampled, 10)


# -- what queries may say


@pytest.mark.parametrize("fields", tomllib.loads((DATA / "queries.toml").read_text())["refused"])
def test_queries_that_make_no_sense_are_refused(fields):
    changed = {**fields}
    with pytest.raises(ValueError, match=changed.pop("says")):
        query(**changed)


def test_plans_that_make_no_sense_are_refused():
    public, mixed = "public_n is for", "queries must all be adaptive, with one budget, or none"
    own = {"relation": "add-or-remove-one", "public_n": True}
    for queries, fields, sentence in (
        ([query("a"), query("b", budget=1.0)], {}, mixed),
        ([query("a"), query("b", clipped="user")], {}, "must all have the same clipped"),
        ([query()], {**own, "relation": "replace-special"}, public),
        ([query(**FIXED)], own, public),
    ):
        with pytest.raises(ValueError, match=sentence):
            plan_for(*queries, **fields)
    with pytest.raises(ValueError, match="distance must be given"):
        query(kind="gradient difference", proportional=True).bound()


# -- any optimizer, recorded


PARTS = {**FIXED, "batch_size": 5, "composition": "disjoint", "partition": "p"}


def every_kind(objective, plan, *, seed):
    """Ask each query of a plan once, and stand still once."""
    oracle = PrivateOracle(objective, plan, seed=seed)
    four_answers(oracle)
    oracle.difference(W, W, "d")
    return result_of(oracle, early=True)


@pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED, PARTS])
def test_the_recorder_follows_every_kind_of_answer(sampling):
    plan = plan_for(*four_kinds(count=2, **sampling), relation="replace-one")
    check_promises(every_kind, LOGISTIC, plan, seed=1)


# -- answers in compiled code


def check_compiled(objective, queries, ask, **options):
    """Compare answers in compiled code with those of Python, to the bit."""
    found = []
    for compiled in (True, False):
        oracle = oracle_for(*queries, objective=objective, seed=7, **options)
        assert oracle._records is not None
        if not compiled:
            oracle._records = None
        found.append(np.hstack([*ask(oracle)]).tobytes())
    assert found[0] == found[1]


@SAMPLINGS
@pytest.mark.parametrize(
    "objective",
    [
        Logistic(X, Y, l2=0.3, classes=[0, 1]),
        Softmax(X, np.arange(N) % 3, l2=0.3, classes=[0, 1, 2]),
        minimax.AUCMaximization(X, Y, positive_share=0.5, primal_l2=0.1, classes=(0, 1)),
    ],
    ids=lambda each: type(each).__name__,
)
def test_compiled_answers_are_the_same_to_the_bit(objective, sampling):
    """From 2^50 steps on, doubles around M would not tell neighboring whole numbers apart."""
    moves = query("move", "gradient difference", proportional=True, **sampling)
    norms = query("norm", "gradient norm", **sampling)
    points = np.random.default_rng(5).standard_normal((8, objective.dimension))
    points *= np.repeat([1.0, 2.0**29, 2.0**33, 2.0**34], 2)[:, np.newaxis] / 60

    def ask(oracle):
        for w, v in itertools.pairwise(points):
            yield oracle.gradient(w, "q")
            yield oracle.difference(w, v, "move")
            yield oracle.norm(v, "norm")

    check_compiled(objective, (query(**sampling), moves, norms), ask)


@pytest.mark.parametrize("strategy", [LambdaCGD(6, 0.5), SquareRoot(6, 3), Tree(6)], ids=repr)
def test_compiled_answers_with_correlated_noise_are_the_same_to_the_bit(strategy):
    asked = [query(count=6, correlation=Correlation(strategy=strategy), **POISSON)]
    ask = lambda it: [it.gradient(W, "q") for _ in range(6)]  # noqa: E731
    check_compiled(LOGISTIC, asked, ask, relation="add-or-remove-one")


class Leaning(Logistic):
    """Has gradients of its own, which no compiled code knows."""

    def contributions(self, rows, *at):
        return np.full((len(rows), 4), 0.5)


def test_what_a_class_of_a_users_overrides_is_not_passed_over():
    def end(made):
        asked = query(count=4, max_norm=1.0)
        run = Run(oracle_for(asked, objective=made(X, Y, classes=[0, 1]), seed=3), steps=4)
        return descend(run, "q", np.full(4, 0.01), "last")

    # Four steps of 0.01 against a slope of a half, or of a quarter at most, with the same noise.
    assert (end(Logistic) - end(Leaning) > 4 * 0.01 * 0.2).all()


def test_an_array_that_is_handed_over_counts_where_a_record_is_left_out():
    found = without(Leaning(X, Y, classes=[0, 1]), 3).clipped_sum(W, np.arange(N), 1.0)
    np.testing.assert_allclose(found, np.full(4, (N - 1) / 2))


@pytest.mark.parametrize("sampling", [POISSON, PARTS])
def test_kept_answers_are_given_again_to_the_bit_and_no_record_is_touched(sampling):
    plan = plan_for(*four_kinds(count=2, **sampling), relation="replace-one")
    found, held, again = [], [], []
    kept = mock.Mock(
        again=lambda query, points: again.pop(0) if again else None,
        keep=lambda query, points, answer: held.append(answer),
    )
    for objective in (LOGISTIC, untouchable()):
        oracle = object.__new__(PrivateOracle)
        oracle._open(objective, plan, Streams(None, plan, bytes))
        oracle._kept = kept
        found.append((np.hstack(four_answers(oracle)).tobytes(), oracle.ledger.to_json()))
        again += held
    assert len(held) == 4
    assert found[0] == found[1]
