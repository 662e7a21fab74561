"""The law of Poisson samples and of noise, and their agreement with numpy's own streams.

Statistical tests fix their seed, so they pass or fail for good; each states how often a correct
sampler would fail it under a random seed.
"""

import math

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dpcal._ext.noise import add_gaussian, poisson_sample


def plain_poisson_sample(n, q, generator):
    """The sample by skips, in plain Python, from the same stream."""
    rows, at = [], 0
    while at < n:
        if q < 1:
            gap = generator.standard_exponential() / -math.log1p(-q)
            if gap >= n - at:
                break
            at += math.floor(gap)
        rows.append(at)
        at += 1
    return rows


@given(st.integers(0, 5000), st.floats(1e-300, 1.0), st.integers(0, 2**32))
def test_sample_reads_the_stream_like_plain_python(n, q, seed):
    a, b = np.random.default_rng(seed), np.random.default_rng(seed)
    assert poisson_sample(n, q, a).tolist() == plain_poisson_sample(n, q, b)
    assert a.bit_generator.state == b.bit_generator.state


def test_probability_one_samples_everything_and_draws_nothing():
    generator = np.random.default_rng(5)
    before = generator.bit_generator.state
    assert (poisson_sample(3_000, 1.0, generator) == np.arange(3_000)).all()
    assert generator.bit_generator.state == before


def test_tiny_probability_skips_past_any_number_of_records():
    # The gap does not fit an integer; the chance of any record at all is below 1e-8.
    generator = np.random.default_rng(6)
    for q in (5e-324, 1e-300, 1e-18):
        assert all(len(poisson_sample(10**6, q, generator)) == 0 for _ in range(1_000)), q


def test_probabilities_out_of_range_and_other_generators_are_refused():
    for q in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"sampling_probability must be a number in \(0, 1\]"):
            poisson_sample(3, q, np.random.default_rng(0))
    for generator in (None, 0, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"generator must be a numpy.random.Generator"):
            poisson_sample(3, 0.5, generator)


@given(st.integers(0, 50), st.floats(0, 1e6), st.integers(0, 2**32))
def test_noise_is_the_generator_s_own(size, scale, seed):
    out = np.arange(size, dtype=float)
    a, b = np.random.default_rng(seed), np.random.default_rng(seed)
    add_gaussian(out, scale, a)
    assert (out == np.arange(size) + scale * b.standard_normal(size)).all()
    assert a.bit_generator.state == b.bit_generator.state
