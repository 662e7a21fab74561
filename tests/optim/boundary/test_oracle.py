"""The privacy boundary: budgets, the ledger, and the algorithm replayed in plain numpy."""

import dataclasses
import threading

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcal._ext.noise import poisson_sample
from dpcal.accountants.matrix import Identity
from dpcal.calibrate import Plan, Query
from dpcal.errors import BudgetExceeded
from dpcal.optim import Logistic, Objective, PrivateOracle, Squared
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.boundary.seeds import Streams, keyed_generator
from dpcal.optim.boundary.streams import NoiseStream
from dpcal.optim.driver import Run
from dpcal.optim.first_order.descent import projected_descent

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")

RNG = np.random.default_rng(0)
X = 2 * RNG.standard_normal((40, 5))
Y = X @ RNG.standard_normal(5) > 0


def plan_for(n=40, *, count=10, sampler="poisson", **changes):
    rate = {"poisson": 0.3, "fixed-size": None, "full": None}[sampler]
    query = Query(
        name="gradient",
        kind="gradient",
        sampler=sampler,
        sampling_probability=rate,
        batch_size=12 if sampler == "fixed-size" else None,
        max_norm=0.5,
        noise_multiplier=1.5,
        count=count,
    )
    query = dataclasses.replace(query, **changes)
    return Plan(optimizer="dpsgd", n=n, queries=(query,), epsilon=1.0, delta=1e-5)


class Plain(Objective):
    """Logistic regression in a few lines of numpy: what a user without a compiler would write."""

    def __init__(self, *, l2=0.0):
        self.X = np.hstack([X, np.ones((len(X), 1))])
        self.signs = np.where(Y, 1.0, -1.0)
        self.n, self.dimension = self.X.shape
        self.l2, self.penalized = l2, self.dimension - 1

    def clipped_sum(self, w, rows, max_norm):
        total = np.zeros(self.dimension)
        for row in rows:
            gradient = -self.signs[row] * self.X[row]
            gradient /= 1 + np.exp(self.signs[row] * (self.X[row] @ w))
            total += gradient * min(1.0, max_norm / np.linalg.norm(gradient))
        return total

    def loss(self, w):
        return np.logaddexp(0, -self.signs * (self.X @ w)).mean() + self.regularizer(w)


class Untouchable(Plain):
    """Records that must not be read."""

    def clipped_sum(self, w, rows, max_norm):
        raise AssertionError("a record was touched")


def replay(objective, plan, streams, w, learning_rates, *, radius=np.inf):
    """Run Abadi et al. 2016, Algorithm 1, line by line on the oracle's own random streams."""
    query, sampling, noise = plan.query("gradient"), streams.sampling, streams.noise
    iterates = []
    for learning_rate in learning_rates:
        if query.sampler == "fixed-size":
            rows = sampling.choice(objective.n, query.batch_size, replace=False, shuffle=False)
            size = query.batch_size
        else:
            rate = query.sampling_probability or 1.0
            rows, size = poisson_sample(objective.n, rate, sampling), rate * objective.n
        total = objective.clipped_sum(w, rows, query.max_norm)
        total += noise.normal(0.0, query.noise_multiplier * query.max_norm, objective.dimension)
        penalty = objective.l2 * np.append(w[:-1], 0.0)
        w = w - learning_rate * (total / size + penalty)
        w = w * min(1.0, radius / np.linalg.norm(w))
        iterates.append(w)
    return iterates


@pytest.mark.parametrize("radius", [np.inf, 0.7])
@pytest.mark.parametrize("sampler", ["poisson", "full", "fixed-size"])
@pytest.mark.parametrize("kernel", [True, False])
def test_steps_are_the_textbook_algorithm(sampler, radius, kernel):
    plan = plan_for(count=30, sampler=sampler)
    objective = Logistic(X, Y, l2=0.2, classes_from_data=True) if kernel else Plain(l2=0.2)
    rates = np.linspace(0.5, 0.1, 30)
    streams = Streams(7, plan, objective.digest)
    iterates = replay(Plain(l2=0.2), plan, streams, np.ones(6), rates, radius=radius)
    run = Run(PrivateOracle(objective, plan, seed=7), steps=30, initial=np.ones(6), radius=radius)
    mean = projected_descent(run, "gradient", rates, mean=True)
    np.testing.assert_allclose(run.w, iterates[-1], rtol=1e-10)
    np.testing.assert_allclose(mean, np.mean(iterates, axis=0), rtol=1e-10)


def test_gradients_one_by_one_are_the_fused_steps():
    plan = plan_for(count=8)
    fused = PrivateOracle(Logistic(X, Y, l2=0.1, classes_from_data=True), plan, seed=3)
    single = PrivateOracle(Logistic(X, Y, l2=0.1, classes_from_data=True), plan, seed=3)
    w = np.zeros(6)
    for _ in range(8):
        w = w - 0.4 * single.gradient(w, "gradient")
    moved, mean = Loops(fused).descend(np.zeros(6), "gradient", learning_rates=[0.4] * 8)
    np.testing.assert_allclose(w, moved, rtol=1e-12)
    assert mean is None
    assert single.ledger == fused.ledger


def test_gradient_with_vanishing_noise_and_clipping_is_the_gradient():
    plan = plan_for(sampler="full", max_norm=1e6, noise_multiplier=1e-18)
    objective = Squared(X, Y, l2=0.3)
    w = np.linspace(-1, 1, 6)
    answer = PrivateOracle(objective, plan, seed=0).gradient(w, "gradient")
    np.testing.assert_allclose(answer, objective.gradient(w), rtol=1e-10)


def test_noise_has_the_planned_standard_deviation():
    # 6,000 normals: their mean square is within 7% of 1 unless a 4-sigma event happens (6e-5).
    plan = plan_for(count=1_000, sampler="full", max_norm=0.5, noise_multiplier=4.0)
    oracle = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan, seed=1)
    w = np.zeros(6)
    exact = oracle.objective.clipped_sum(w, np.arange(40), 0.5)
    noise = [40 * oracle.gradient(w, "gradient") - exact for _ in range(1_000)]
    assert np.mean(np.square(noise)) == pytest.approx((4.0 * 0.5) ** 2, rel=0.07)


@settings(deadline=None)
@given(st.integers(0, 39), st.integers(0, 2**32), st.floats(-3, 3))
def test_one_record_moves_an_answer_by_at_most_its_share(gone, seed, scale):
    # Almost no noise, every record sampled: neighbours differ by max_norm on the sum.
    w = scale * np.ones(6)
    rest = np.delete(np.arange(40), gone)
    bare = {"sampler": "full", "noise_multiplier": 1e-18}
    with_it = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for(**bare), seed=seed)
    without = PrivateOracle(
        Logistic(X[rest], Y[rest], classes_from_data=True), plan_for(39, **bare), seed=seed
    )
    difference = 40 * with_it.gradient(w, "gradient") - 39 * without.gradient(w, "gradient")
    assert np.linalg.norm(difference) <= 0.5 * (1 + 1e-12) + 1e-12


def test_the_budget_is_refused_before_any_record_is_touched():
    oracle = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for(count=4), seed=0)
    with pytest.raises(BudgetExceeded, match="may be asked 4 times, 0 are spent, 5 more asked for"):
        Loops(oracle).descend(np.zeros(6), "gradient", learning_rates=[0.1] * 5)
    assert oracle.ledger.entries == ()
    assert oracle.remaining("gradient") == 4


def test_the_ledger_is_written_before_a_record_is_touched():
    oracle = PrivateOracle(Untouchable(), plan_for(count=4), seed=0)
    with pytest.raises(AssertionError, match="a record was touched"):
        oracle.gradient(np.zeros(6), "gradient")
    assert oracle.ledger.count("gradient") == 1


def test_gradient_and_descend_share_one_budget():
    oracle = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for(count=4), seed=0)
    Loops(oracle).descend(np.zeros(6), "gradient", learning_rates=[0.1] * 3)
    oracle.gradient(np.zeros(6), "gradient")
    assert oracle.remaining("gradient") == 0
    with pytest.raises(BudgetExceeded):
        oracle.gradient(np.zeros(6), "gradient")
    assert oracle.ledger.event == oracle.plan.event


def test_threads_together_cannot_overspend():
    oracle = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for(count=50), seed=0)
    refused = []

    def ask():
        for _ in range(20):
            try:
                oracle.gradient(np.zeros(6), "gradient")
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (oracle.ledger.count("gradient"), len(refused)) == (50, 30)


def test_a_plan_for_another_number_of_records_is_refused():
    with pytest.raises(ValueError, match=r"objective's n=40 records, got one for n=41"):
        PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for(41))


@pytest.mark.parametrize(
    "changes", [{"kind": "scalar"}, {"kind": "gradient difference"}, {"composition": "disjoint"}]
)
def test_queries_that_are_no_sequential_gradients_are_refused(changes):
    oracle = PrivateOracle(Untouchable(), plan_for(**changes))
    with pytest.raises(ValueError, match="query must be of kind 'gradient'"):
        oracle.gradient(np.zeros(6), "gradient")
    with pytest.raises(ValueError, match="query must be one of 'gradient', got 'hessian'"):
        oracle.gradient(np.zeros(6), "hessian")
    assert oracle.ledger.entries == ()


@pytest.mark.parametrize("w", [np.zeros(5), np.full(6, np.nan), np.zeros((6, 1))])
def test_bad_parameters_spend_nothing(w):
    oracle = PrivateOracle(Untouchable(), plan_for())
    with pytest.raises(ValueError, match="w must"):
        oracle.gradient(w, "gradient")
    assert oracle.ledger.entries == ()
    oracle = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for())
    with pytest.raises(ValueError, match="w must"):
        Loops(oracle).descend(w, "gradient", learning_rates=[0.1])
    assert oracle.ledger.entries == ()


@pytest.mark.parametrize("rates", [[], [[0.1]], [-0.1], [np.nan]])
def test_bad_learning_rates_spend_nothing(rates):
    oracle = PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for())
    with pytest.raises(ValueError, match="learning_rates must be"):
        Loops(oracle).descend(np.zeros(6), "gradient", learning_rates=rates)
    assert oracle.ledger.entries == ()


# Legacy generators, and those of keys, have no seed sequence: what they are made of is unknown.
NO_SEEDS = [
    *(-1, "zero", 0.5, np.random.RandomState(3)),
    np.random.Generator(np.random.RandomState(3)._bit_generator),
    keyed_generator(),
]


@pytest.mark.parametrize("seed", NO_SEEDS, ids=lambda seed: type(seed).__name__)
def test_bad_seeds_are_refused_in_a_sentence(seed):
    with pytest.raises((TypeError, ValueError), match="seed must be an integer >= 0"):
        PrivateOracle(Logistic(X, Y, classes_from_data=True), plan_for(), seed=seed)
    with pytest.raises((TypeError, ValueError), match="seed must be an integer >= 0"):
        NoiseStream(Identity(3), 2, seed)


def test_seeds_of_every_kind_are_reproducible_and_none_is_fresh():
    def answer(seed):
        return PrivateOracle(
            Logistic(X, Y, classes_from_data=True), plan_for(), seed=seed
        ).gradient(np.zeros(6), "gradient")

    assert (answer(5) == answer(np.random.SeedSequence(5))).all()
    assert (answer(5) == answer(np.random.default_rng(5))).all()
    assert (answer(5) != answer(6)).all()
    assert (answer(None) != answer(None)).all()
