"""The privacy boundary: budgets, the ledger, and the algorithm replayed in plain numpy."""

import threading

import numpy as np
import pytest
from _answers import FIXED, FULL, POISSON, D, N, W, X, Y, oracle_for, plan_for, query, untouchable

from dpcal._ext.noise import poisson_sample
from dpcal.accountants.matrix import Identity
from dpcal.errors import BudgetExceeded
from dpcal.optim import Ledger, Logistic, Objective, PrivateOracle
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.boundary.seeds import Streams, keyed_generator
from dpcal.optim.boundary.streams import NoiseStream
from dpcal.optim.driver import Run
from dpcal.optim.first_order.descent import projected_descent

# The normals of runs are drawn here again, by numpy.
pytestmark = pytest.mark.usefixtures("in_doubles")


class Plain(Objective):
    """Logistic regression in a few lines of numpy: what a user without a compiler would write."""

    def __init__(self):
        self.X = np.hstack([X, np.ones((N, 1))])
        self.signs = np.where(Y, 1.0, -1.0)
        self.n, self.dimension, self.penalized, self.l2 = N, D, D - 1, 0.2

    def clipped_sum(self, w, rows, max_norm):
        total = np.zeros(D)
        for row in rows:
            gradient = -self.signs[row] * self.X[row]
            gradient /= 1 + np.exp(self.signs[row] * (self.X[row] @ w))
            total += gradient * min(1.0, max_norm / np.linalg.norm(gradient))
        return total

    def loss(self, w):
        return np.logaddexp(0, -self.signs * (self.X @ w)).mean() + self.regularizer(w)


def replay(objective, asked, streams, w, learning_rates, radius):
    """Run Abadi et al. 2016, Algorithm 1, line by line on the oracle's own random streams."""
    sampling, noise, iterates = streams.sampling, streams.noise, []
    for learning_rate in learning_rates:
        if asked.sampler == "fixed-size":
            rows = sampling.choice(N, asked.batch_size, replace=False, shuffle=False)
            size = asked.batch_size
        else:
            rate = asked.sampling_probability or 1.0
            rows, size = poisson_sample(N, rate, sampling), rate * N
        total = objective.clipped_sum(w, rows, asked.max_norm)
        total += noise.normal(0.0, asked.noise_multiplier * asked.max_norm, D)
        w = w - learning_rate * (total / size + objective.l2 * np.append(w[:-1], 0.0))
        w = w * min(1.0, radius / np.linalg.norm(w))
        iterates.append(w)
    return iterates


@pytest.mark.parametrize("sampling", [FULL, POISSON, FIXED])
@pytest.mark.parametrize("compiled", [True, False])
def test_steps_are_the_textbook_algorithm(sampling, compiled):
    asked, rates, start = query(count=30, **sampling), np.linspace(0.5, 0.1, 30), np.ones(D)
    plan = plan_for(asked)
    objective = Logistic(X, Y, l2=0.2, classes=[0, 1]) if compiled else Plain()
    for radius in (np.inf, 0.7):
        streams = Streams(7, plan, objective.digest)
        iterates = replay(Plain(), asked, streams, start, rates, radius)
        run = Run(PrivateOracle(objective, plan, seed=7), steps=30, initial=start, radius=radius)
        mean = projected_descent(run, "q", rates, mean=True)
        np.testing.assert_allclose(run.w, iterates[-1], rtol=1e-10)
        np.testing.assert_allclose(mean, np.mean(iterates, axis=0), rtol=1e-10)


def test_gradients_and_fused_steps_share_one_budget():
    oracle = oracle_for(query(count=4))
    with pytest.raises(BudgetExceeded, match="may be asked 4 times, 0 are spent, 5 more asked for"):
        Loops(oracle).descend(W, "q", learning_rates=[0.1] * 5)
    assert oracle.ledger.entries == ()
    Loops(oracle).descend(W, "q", learning_rates=[0.1] * 3)
    oracle.gradient(W, "q")
    assert oracle.remaining("q") == 0
    with pytest.raises(BudgetExceeded):
        oracle.gradient(W, "q")
    assert oracle.ledger.event == oracle.plan.event
    with pytest.raises(AttributeError):
        oracle.ledger = Ledger(N)


def test_threads_together_cannot_overspend():
    oracle, refused = oracle_for(query(count=50)), []

    def ask():
        for _ in range(20):
            try:
                oracle.gradient(W, "q")
            except BudgetExceeded:
                refused.append(1)

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (oracle.ledger.count("q"), len(refused)) == (50, 30)


def test_bad_points_and_rates_spend_nothing():
    compiled, users = oracle_for(query()), oracle_for(query(), objective=untouchable())
    for w in (np.zeros(D - 1), np.full(D, np.nan), np.zeros((D, 1))):
        with pytest.raises(ValueError, match="w must"):
            users.gradient(w, "q")
        with pytest.raises(ValueError, match="w must"):
            Loops(compiled).descend(w, "q", learning_rates=[0.1])
    for rates in ([], [0.1, -0.1], [np.nan], [[0.1]]):
        with pytest.raises(ValueError, match="learning_rates must be"):
            Loops(compiled).descend(W, "q", learning_rates=rates)
    assert compiled.ledger.entries == users.ledger.entries == ()


def test_seeds_of_every_kind_are_reproducible_and_none_is_fresh():
    def answer(seed):
        return oracle_for(query(), seed=seed).gradient(W, "q").tobytes()

    assert answer(5) == answer(np.random.SeedSequence(5)) == answer(np.random.default_rng(5))
    assert len({answer(5), answer(6), answer(None), answer(None)}) == 4
    # Legacy generators, and those of keys, have no seed sequence: what they are made of is unknown.
    legacy = np.random.RandomState(3)
    for seed in (legacy, np.random.Generator(legacy._bit_generator), keyed_generator()):
        for opened in (answer, lambda seed: NoiseStream(Identity(3), 2, seed)):
            with pytest.raises((TypeError, ValueError), match="seed must be an integer >= 0"):
                opened(seed)
