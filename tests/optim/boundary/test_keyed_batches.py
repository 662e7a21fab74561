"""Batches from cryptographic words: exact coins, numpy's methods, streams that are resumed."""

import tracemalloc

import mpmath
import numpy as np
import pytest
from _answers import N, X, Y, plan_for, query
from scipy.stats import binom, chi2

from dpcal import calibrate, optim
from dpcal._ext.keyed import KeyedBits, law_of_gaps
from dpcal._ext.noise import poisson_sample
from dpcal._ext.samples import drawn
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.optim.boundary.seeds import KeyStream, Streams, keyed_generator

UNIT = mpmath.mpf(2) ** -128


def generator(key=1):
    return keyed_generator(bytes([key] * 32))


@pytest.mark.parametrize("q", [2.0**-70, 1e-12, 1e-6, 0.013, 0.5, 0.999, 1 - 2.0**-53])
def test_gaps_are_made_of_the_probabilities_that_they_need(q):
    digits, table, powers = law_of_gaps(q)
    with mpmath.workdps(400):
        r = 1 - mpmath.mpf(q)
        for place, share in enumerate(table):
            below = 1 - r ** (2**digits * (place + 1))
            assert abs(share * UNIT - below) < 2.0 ** (digits - 118)
        for digit, power in enumerate(powers):
            assert abs(power * UNIT - r ** (2**digit)) < 2.0 ** (digits - 118)
        # The next record is a member with probability q: H and L are both zero.
        kept = sum(r**last for last in range(2**digits)) if digits < 10 else (1 - r**2**digits) / q
        assert abs(table[0] * UNIT / kept / q - 1) < 2.0**-40


@pytest.mark.parametrize(("n", "q"), [(7, 0.5), (10, 0.97), (5, 0.2)])
def test_samples_have_the_law_of_independent_coins(n, q):
    bits, draws = generator(), 20_000
    patterns = np.zeros(2**n)
    for _ in range(draws):
        patterns[(1 << poisson_sample(n, q, bits)).sum()] += 1
    members = np.array([pattern.bit_count() for pattern in range(2**n)])
    expected = draws * q**members * (1 - q) ** (n - members)
    likely = expected > 5
    distance = ((patterns - expected) ** 2 / expected)[likely].sum()
    assert chi2.sf(distance, likely.sum() - 1) > 1e-4


def test_large_samples_have_binomial_sizes_and_even_places():
    bits, n, q, draws = generator(), 5_000, 0.01, 2_000
    samples = [poisson_sample(n, q, bits) for _ in range(draws)]
    assert all((np.diff(rows) > 0).all() for rows in samples)
    sizes = np.bincount([len(rows) for rows in samples], minlength=120)[:120]
    expected = draws * binom.pmf(np.arange(120), n, q)
    likely = expected > 5
    assert chi2.sf(((sizes - expected) ** 2 / expected)[likely].sum(), likely.sum() - 1) > 1e-4
    places = np.bincount(np.concatenate(samples) // 500, minlength=10)
    assert chi2.sf(((places - places.mean()) ** 2 / places.mean()).sum(), 9) > 1e-4


def test_the_words_are_those_of_the_stream():
    raw = generator().integers(0, 2**64, 3_000, dtype=np.uint64)
    assert (raw == KeyStream(bytes([1] * 32)).words(3_000)).all()


def test_compiled_loops_draw_the_samples_of_single_answers():
    ours, theirs = generator(), generator()
    for size in (0, 3):
        for _ in range(50):
            alone = (
                theirs.choice(20_000, size, replace=False, shuffle=False)
                if size
                else poisson_sample(20_000, 0.2, theirs)
            )
            assert (drawn(20_000, 0.2, size, ours) == alone).all()


def test_a_stream_goes_on_at_its_state_within_a_block_and_across_blocks():
    for before in (0, 3, 1023, 1024, 2_000):
        bits = generator()
        bits.bytes(8 * before)
        state = bits.bit_generator.state
        after = bits.integers(0, 2**64, 1_500, dtype=np.uint64)
        again = generator()
        again.bit_generator.state = state
        assert (again.integers(0, 2**64, 1_500, dtype=np.uint64) == after).all()


def test_a_discrete_run_draws_nothing_secret_from_other_generators(monkeypatch):
    made = []
    stream = Streams._stream

    def watched(self, role):
        made.append(stream(self, role))
        return made[-1]

    monkeypatch.setattr(Streams, "_stream", watched)
    plan = calibrate.dpsgd(n=N, batch_size=20, steps=6, epsilon=2.0, delta=1e-5)
    optim.dpsgd(optim.Logistic(X, Y, classes=[0, 1]), plan, noise="discrete")
    assert made
    assert all(isinstance(each.bit_generator, KeyedBits) for each in made)


def test_the_memory_of_poisson_batches_does_not_grow_with_the_records():
    """Five batches of about a hundred of 5 10^8 records: row numbers of all would be 4 GB."""
    asked = query(sampler="poisson", sampling_probability=2e-7, count=5)
    plan = plan_for(asked, n=500_000_000, relation="add-or-remove-one")
    tracemalloc.start()
    try:
        oracle = StepwiseOracle(plan, dimension=2, seed=0)
        for _ in range(5):
            oracle.add(np.ones((len(oracle.draw()), 2)))
            oracle.answer()
        assert tracemalloc.get_traced_memory()[1] < 8_000_000
    finally:
        tracemalloc.stop()
