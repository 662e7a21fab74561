"""What the oracle answers and charges: differences, norms, losses, parts, adaptive noise."""

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from _recording import check_promises
from hypothesis import given, settings
from hypothesis import strategies as st

from dpcal import accountants
from dpcal.accountants import PrivacyFilter, events
from dpcal.calibrate import Plan, Query, noise_multiplier
from dpcal.errors import BudgetExceeded, LedgerMismatch, UnsupportedEvent
from dpcal.optim import FromGradients, Ledger, Logistic, PrivateOracle, Result, Trace
from dpcal.optim.boundary.admission import Admission
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.descent import projected_descent
from dpcal.optim.run import Run

RNG = np.random.default_rng(0)
N, D = 60, 4
X = RNG.standard_normal((N, D - 1))
Y = RNG.integers(0, 2, N)
W, V = RNG.standard_normal((2, D))
QUIET = 1e-13

FULL = {"sampler": "full"}
POISSON = {"sampler": "poisson", "sampling_probability": 0.3}
FIXED = {"sampler": "fixed-size", "batch_size": 12}


def query(name="q", kind="gradient", **changes):
    given = {"max_norm": 0.5, "noise_multiplier": 2.0, "count": 10, **FULL, **changes}
    return Query(name=name, kind=kind, **given)


def plan_for(*queries, relation="replace-special", n=N):
    return Plan(
        optimizer="test",
        n=n,
        queries=queries,
        epsilon=1.0,
        delta=1e-5,
        neighboring_relation=relation,
    )


def oracle_for(*queries, relation="replace-special", objective=None, **options):
    objective = Logistic(X, Y, l2=0.2) if objective is None else objective
    return PrivateOracle(objective, plan_for(*queries, relation=relation), **{"seed": 0, **options})


class Watched(Logistic):
    """Notes which rows each sum was over."""

    def __init__(self):
        super().__init__(X, Y, l2=0.2)
        self.kernel_used, self.seen, self.checked = self.kernel, [], True

    def clipped_sum(self, w, rows, max_norm):
        self.seen.append(rows.copy())
        return super().clipped_sum(w, rows, max_norm)

    def clipped_difference_sum(self, w, v, rows, max_norm):
        self.seen.append(rows.copy())
        return super().clipped_difference_sum(w, v, rows, max_norm)

    def clipped_loss_sum(self, w, rows, max_loss):
        self.seen.append(rows.copy())
        return super().clipped_loss_sum(w, rows, max_loss)


def untouchable():
    def fail(w, rows):
        raise AssertionError("a record was touched")

    return FromGradients(fail, n=N, dimension=D, loss=fail)


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
    exact = Logistic(X, Y).clipped_difference_sum(W, V, rows, bound)
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
    total = Logistic(X, Y).clipped_sum(W, first, 0.5) / size + objective.regularizer_gradient(W)
    assert norm == pytest.approx(np.linalg.norm(total) + 2.0 * 0.5 * z[0] / size, rel=1e-12)
    losses = [Logistic(X, Y).clipped_loss_sum(W, np.array([row]), math.inf) for row in second]
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
        objective = Logistic(X[rows], Y[rows]) if len(rows) == N else Part(rows)
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
        super().__init__(X, Y)
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
    spoiled = oracle_for(*asked, objective=Careless(X, Y))
    rest = Logistic(X, Y)
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


def parted(name, size, count, *, kind="gradient", partition="p", each=1, **changes):
    changes = {"noise_multiplier": 3.0, **changes}
    return query(
        name,
        kind,
        sampler="fixed-size",
        batch_size=size,
        count=count,
        composition="disjoint",
        partition=partition,
        answers_per_part=each,
        **changes,
    )


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


# -- adaptive noise


def adaptive_plan(budget=2.0, *, relation="replace-one", count=1000):
    asked = (
        query("g", budget=budget, noise_multiplier=budget, count=count),
        query("n", "gradient norm", budget=budget, noise_multiplier=2 * budget, count=count),
    )
    return plan_for(*asked, relation=relation)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.booleans(), st.floats(4.0, 60.0)), max_size=60))
def test_adaptive_answers_never_overrun_their_budget(choices):
    oracle = PrivateOracle(Logistic(X, Y), adaptive_plan(), seed=0)
    spent = Fraction(0)
    for is_norm, z in choices:
        ask, name = (oracle.norm, "n") if is_norm else (oracle.gradient, "g")
        cost = (2 / Fraction(z)) ** 2
        before = oracle.ledger.to_json()
        if oracle.affords(name, z):
            ask(W, name, noise_multiplier=z)
            spent += cost
        else:
            with pytest.raises(BudgetExceeded, match="of the adaptive budget"):
                ask(W, name, noise_multiplier=z)
            assert oracle.ledger.to_json() == before
            assert spent + cost > 1 - Fraction(1, 10**12)
    assert spent <= 1
    assert spent <= oracle.ledger.share(2.0) <= spent * (1 + Fraction(1, 10**14))
    again = Ledger.from_json(oracle.ledger.to_json())
    assert again.share(2.0) == oracle.ledger.share(2.0)
    if choices and spent:
        assert again.event == oracle.plan.event == events.GaussianDpEvent(2.0)


@pytest.mark.parametrize("kind", ["gdp", "zcdp"])
@pytest.mark.parametrize("relation", ["add-or-remove-one", "replace-one", "replace-special"])
def test_the_ledger_and_a_filter_agree_on_what_was_spent(kind, relation):
    budget = noise_multiplier(
        events.GaussianDpEvent, epsilon=1.0, delta=1e-5, neighboring_relation=relation
    )
    purse = PrivacyFilter(epsilon=2.0, delta=1e-5, kind=kind, neighboring_relation=relation)
    plan = adaptive_plan(budget, relation=relation)
    assert plan.price() <= 1.0
    oracle = PrivateOracle(Logistic(X, Y), plan, seed=0, filter=purse)
    for z in np.linspace(3 * budget, 20 * budget, 30):
        if oracle.affords("g", z):
            oracle.gradient(W, "g", noise_multiplier=z)
    whole = (2 if relation == "replace-one" else 1) ** 2 / budget**2
    share = float(oracle.ledger.share(budget)) * whole
    assert purse.spent == pytest.approx(share if kind == "gdp" else share / 2, rel=1e-12)
    repriced = sum(purse.cost(entry.event(N), entry.count) for entry in oracle.ledger.entries)
    assert repriced == pytest.approx(purse.spent, rel=1e-12)
    assert oracle.ledger.epsilon(1e-5) == plan.price()


def test_a_filter_refuses_before_anything_is_touched():
    purse = PrivacyFilter(epsilon=0.5, delta=1e-5, kind="zcdp", neighboring_relation="replace-one")
    asked = query(noise_multiplier=60.0, count=1000)
    oracle = oracle_for(asked, relation="replace-one", filter=purse)
    answered = 0
    while not purse.would_exceed(asked.event(N)):
        oracle.gradient(W, "q")
        answered += 1
    oracle.objective = untouchable()
    spent = purse.spent
    with pytest.raises(BudgetExceeded, match="would exceed the remaining"):
        oracle.gradient(W, "q")
    assert answered > 1
    assert (oracle.ledger.count("q"), purse.spent) == (answered, spent)
    with pytest.raises(ValueError, match="filter must be for the plan's relation"):
        oracle_for(asked, relation="replace-special", filter=purse)


def test_a_filter_is_not_paid_for_samples_where_parts_are_asked():
    # All answers are about one part: as one Gaussian release of multiplier 6 / sqrt(20) to it.
    purse = PrivacyFilter(epsilon=9.0, delta=1e-5, neighboring_relation="replace-one")
    asked = parted("q", 2, 20, each=20, noise_multiplier=6.0)
    oracle = oracle_for(asked, relation="replace-one", filter=purse)
    for _ in range(20):
        oracle.gradient(W, "q")
    paid = purse.order * (2 / (6.0 / math.sqrt(20))) ** 2 / 2
    assert purse.spent == pytest.approx(paid, rel=1e-12)
    assert asked.event(N) == events.GaussianDpEvent(6.0)
    many = parted("q", 2, 20, noise_multiplier=6.0)
    budget = PrivacyFilter(epsilon=9.0, delta=1e-5, neighboring_relation="replace-one")
    Admission(plan_for(many, relation="replace-one"), filter=budget).spend(many, 20)
    assert budget.spent == pytest.approx(budget.order * (2 / 6.0) ** 2 / 2, rel=1e-12)


def test_two_runs_may_share_a_filter():
    purse = PrivacyFilter(epsilon=1.0, delta=1e-5, kind="gdp", neighboring_relation="replace-one")
    asked = query(noise_multiplier=30.0, count=5)
    for _ in range(2):
        oracle = oracle_for(asked, relation="replace-one", filter=purse)
        Loops(oracle).descend(W, "q", learning_rates=[0.1] * 5)
    assert purse.spent == pytest.approx(10 * (2 / 30) ** 2, rel=1e-12)


def test_adaptive_noise_is_required_checked_and_used():
    plan = adaptive_plan(relation="replace-special")
    oracle = PrivateOracle(untouchable(), plan, seed=0)
    with pytest.raises(ValueError, match="noise_multiplier must be given for adaptive query 'g'"):
        oracle.gradient(W, "g")
    with pytest.raises(ValueError, match="noise_multiplier must be given for adaptive query 'g'"):
        Loops(PrivateOracle(Logistic(X, Y), plan)).descend(W, "g", learning_rates=[0.1])
    with pytest.raises(ValueError, match=r"at least the planned 2.0 for query 'g', got 1.9"):
        oracle.gradient(W, "g", noise_multiplier=1.9)
    assert oracle.ledger.entries == ()
    loud = PrivateOracle(Logistic(X, Y), plan, seed=4).gradient(W, "g", noise_multiplier=50.0)
    noise = Streams(4, plan, Logistic(X, Y).digest).noise.normal(0.0, 50.0 * 0.5, D)
    exact = Logistic(X, Y).clipped_sum(W, np.arange(N), 0.5)
    np.testing.assert_allclose(loud, (exact + noise) / N, rtol=1e-12)
    fixed = oracle_for(query(), objective=untouchable())
    with pytest.raises(ValueError, match="noise_multiplier is for adaptive queries"):
        fixed.gradient(W, "q", noise_multiplier=3.0)
    with pytest.raises(ValueError, match="query must be adaptive"):
        fixed.affords("q", 3.0)


def test_one_answer_may_spend_the_whole_budget():
    oracle = PrivateOracle(Logistic(X, Y), adaptive_plan(), seed=0)
    oracle.gradient(W, "g", noise_multiplier=2.0)
    assert oracle.ledger.share(2.0) == 1
    assert not oracle.affords("g", 1e6)


def result_of(oracle, **options):
    trace = Trace(step=np.array([1]), norm=np.array([0.0]), distance=np.array([0.0]))
    given = {"complete": True, "message": "done", **options}
    return Result(w=W, trace=trace, ledger=oracle.ledger, plan=oracle.plan, **given)


def test_a_run_that_chose_what_to_spend_costs_its_budget():
    oracle = PrivateOracle(Logistic(X, Y), adaptive_plan(), seed=0)
    oracle.gradient(W, "g", noise_multiplier=40.0)
    result = result_of(oracle)
    assert result.epsilon(1e-5) == oracle.plan.price(1e-5)
    entry = query("g", budget=2.0, noise_multiplier=2.5)
    overspent = Ledger(N, "replace-one")
    overspent.record(entry, 2)
    with pytest.raises(LedgerMismatch, match=r"spent 1.28 times their budget"):
        _ = overspent.event
    with pytest.raises(LedgerMismatch, match="spent more than the plan's budget"):
        dataclasses.replace(result, ledger=overspent).verify()
    quieter = Ledger(N, "replace-one")
    quieter.record(dataclasses.replace(entry, budget=1.0, noise_multiplier=1.5))
    with pytest.raises(LedgerMismatch, match="the plan holds no such query"):
        dataclasses.replace(result, ledger=quieter).verify()


def test_a_run_that_stopped_itself_costs_the_whole_plan():
    oracle = oracle_for(query(noise_multiplier=8.0))
    oracle.gradient(W, "q")
    with pytest.raises(LedgerMismatch, match="planned 10 times and answered 1 times"):
        result_of(oracle).verify()
    early = result_of(oracle, early=True)
    early.verify()
    assert early.epsilon(1e-5) == oracle.plan.price(1e-5) > oracle.ledger.epsilon(1e-5)


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
    check_promises(spider, Logistic(X, Y, l2=0.2), plan, seed=1)


def test_the_recorder_follows_adaptive_noise():
    result = check_promises(normed, Logistic(X, Y, l2=0.2), adaptive_plan(), seed=1)
    assert result.ledger.count("g") > 5
    assert result.ledger.share(2.0) > 0.9
