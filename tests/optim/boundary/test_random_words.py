"""Random words: batches that are made of them, streams that fail, seeds that none draws twice."""

import ctypes
import dataclasses
import itertools
import math
import signal
import sys
import threading
import tomllib
import tracemalloc
from bisect import bisect_left
from functools import partial
from itertools import product
from unittest import mock

import mpmath
import numpy as np
import pytest
from _answers import LOGISTIC, POISSON, D, N, X, Y, check_law, plan_for, query
from _tree import DATA
from hypothesis import given, strategies as st
from scipy.stats import binom

from dpcal import calibrate, optim
from dpcal._ext import keyed
from dpcal._ext.answers import Records, Slot
from dpcal._ext.discrete import DiscreteTable
from dpcal._ext.loops import Steps
from dpcal._ext.samples import drawn, law_of_gaps
from dpcal._ext.sums import Sums
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.calibrate import Correlation
from dpcal.errors import NoiseReused
from dpcal.optim import MLP, FromGradients, Logistic, PrivateOracle, Softmax, noisy_gd, replaying
from dpcal.optim.boundary.seeds import Streams, keyed_generator
from dpcal.optim.minimax import CovariateShift

KEY, MANY = bytes(32), 1_000
UNIT = mpmath.mpf(2) ** -128
ORIGIN = np.zeros(D)

# -- batches: exact coins, numpy's methods, streams that are resumed


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


@pytest.mark.parametrize(("n", "q"), [(7, 0.5), (10, 0.97), (5, 0.2), (4, 0.35)])
def test_samples_have_the_law_of_independent_coins(n, q):
    bits = np.random.default_rng(3) if n == 4 else keyed_generator(KEY)
    patterns = np.zeros(2**n)
    for _ in range(20_000):
        patterns[(1 << drawn(n, q, 0, bits)).sum()] += 1
    members = np.array([pattern.bit_count() for pattern in range(2**n)])
    check_law(patterns, q**members * (1 - q) ** (n - members))


def test_large_samples_have_binomial_sizes_and_even_places():
    bits, n, q = keyed_generator(KEY), 5_000, 0.01
    samples = [drawn(n, q, 0, bits) for _ in range(2_000)]
    assert all((np.diff(rows) > 0).all() for rows in samples)
    sizes = np.bincount([len(rows) for rows in samples], minlength=120)
    check_law(sizes, binom.pmf(np.arange(len(sizes)), n, q))
    check_law(np.bincount(np.concatenate(samples) // 500, minlength=10), np.ones(10))


@pytest.mark.parametrize("made", [np.random.default_rng, lambda _: keyed_generator(KEY)])
def test_batches_of_a_fixed_size_are_numpy_s(made):
    ours, theirs = made(4), made(4)
    for n, size in product((50, 12_000, 20_000), (3, 50, 3_000)):
        alone = theirs.choice(n, min(size, n), replace=False, shuffle=False)
        assert (drawn(n, 1.0, min(size, n), ours) == alone).all(), (n, size)


def test_a_stream_goes_on_at_its_state_within_a_block_and_across_blocks():
    for before in (0, 3, 1023, 1024, 2_000):
        bits = keyed_generator(KEY)
        bits.bytes(8 * before)
        state = bits.bit_generator.state
        after = bits.integers(0, 2**64, 1_500, dtype=np.uint64)
        again = keyed_generator(KEY)
        again.bit_generator.state = state
        assert (again.integers(0, 2**64, 1_500, dtype=np.uint64) == after).all()


def test_a_discrete_run_draws_nothing_secret_from_other_generators(monkeypatch):
    made, stream = [], Streams._stream

    def watched(self, role):
        made.append(stream(self, role))
        return made[-1]

    monkeypatch.setattr(Streams, "_stream", watched)
    plan = calibrate.dpsgd(n=N, batch_size=20, steps=6, epsilon=2.0, delta=1e-5)
    optim.dpsgd(LOGISTIC, plan)
    assert made
    assert all(isinstance(each.bit_generator, keyed.KeyedBits) for each in made)


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


# -- compiled draws against those of numpy's own generators


def plain_poisson_sample(n, q, generator):
    """The sample by skips, in plain Python, from the same words; rare ties are left out."""
    digits, table, powers = law_of_gaps(q) if q < 1 else (0, [], [])
    word, rows, at = generator.bit_generator.random_raw, [], 0
    while at < n:
        gap, place = 0, len(table)
        while q < 1 and place == len(table) and gap < n - at:
            place = bisect_left(table, word() << 64)
            gap += place << digits
        while digits:
            coin, last = divmod(word(), 1 << digits)
            shares = [power / 2**128 for i, power in enumerate(powers) if last >> i & 1]
            if coin < math.prod(shares) * 2 ** (64 - digits):
                gap += last
                break
        at += gap
        if at < n:
            rows.append(at)
        at += 1
    return rows


@given(st.integers(0, 5000), st.floats(1e-300, 1.0), st.integers(0, 2**32))
def test_sample_reads_the_stream_like_plain_python(n, q, seed):
    a, b = np.random.default_rng(seed), np.random.default_rng(seed)
    assert drawn(n, q, 0, a).tolist() == plain_poisson_sample(n, q, b)
    assert a.bit_generator.state == b.bit_generator.state


def test_probability_one_samples_everything_and_draws_nothing():
    generator = np.random.default_rng(5)
    before = generator.bit_generator.state
    assert (drawn(3_000, 1.0, 0, generator) == np.arange(3_000)).all()
    assert generator.bit_generator.state == before


def test_tiny_probability_skips_past_any_number_of_records():
    # The gap does not fit an integer; the chance of any record at all is below 1e-8.
    generator = np.random.default_rng(6)
    for q in (5e-324, 1e-300, 1e-18):
        assert all(len(drawn(10**6, q, 0, generator)) == 0 for _ in range(1_000)), q


def test_probabilities_out_of_range_and_other_generators_are_refused():
    for q in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ValueError, match=r"sampling_probability must be a number in \(0, 1\]"):
            drawn(3, q, 0, np.random.default_rng(0))
    for generator in (None, 0, np.random.RandomState(0)):
        with pytest.raises(TypeError, match=r"generator must be a numpy.random.Generator"):
            drawn(3, 0.5, 0, generator)


# -- streams that fail, and signals that break none

REAL = keyed.counter_mode
COIN = DiscreteTable(1.0, np.array([1 << 63], dtype=np.uint64), np.zeros(1, dtype=np.uint64))

KERNEL = Logistic(X, Y, classes=[0, 1]).kernel


RECORDS, SUMS = Records(KERNEL, ORIGIN), Sums(np.random.default_rng(0), 1.0, D, COIN)


def slot(**given):
    whole = {"sampling": None, "sampling_probability": 1.0, "batch_size": 0}
    return Slot(RECORDS, SUMS, max_norm=1.0, size=1.0, **{**whole, **given})


def steps_on(bits, count=100):
    """Return steps along differences, after one on all records, which draws nothing."""
    fresh, change = slot(everyone=True), slot(sampling=bits, sampling_probability=0.5)
    return Steps(fresh, change, ORIGIN, rates=np.full(count, 1e-9), period=count)


def stepping(refresh, w=ORIGIN, **how):
    return Steps(refresh, None, w, rates=np.ones(3), **how)


DRAWN, ALL = {"sampling": np.random.default_rng(1)}, {"everyone": True}
REFUSED = {
    "everyone is for batches of all": lambda: slot(**ALL, batch_size=1),
    r"everyone .* sampling_probability=0\.5": lambda: slot(**ALL, sampling_probability=0.5),
    rf"batch_size in \[0, n\], got 1\.0 and {N + 1}\.": lambda: slot(**DRAWN, batch_size=N + 1),
    r"in \(0, 1\].* got nan": lambda: slot(**DRAWN, sampling_probability=math.nan),
    "must draw their batches": lambda: stepping(slot(sampling_probability=0.5)),
    rf"w must have shape \({D},\)": lambda: stepping(slot(**ALL), np.zeros(D + 1)),
    "fixed in": lambda: stepping(slot(**ALL), fixed=-1),
    "step must be at least 0": lambda: stepping(slot(**ALL), step=-1),
    "an answer must have shape": lambda: stepping(lambda w: w[1:]).take(1),
}


@pytest.mark.parametrize("match", REFUSED)
def test_a_kernel_refuses_arguments_that_it_would_read_beyond_its_memory_for(match):
    with pytest.raises(ValueError, match=match):
        REFUSED[match]()


DRAWS = {
    "step": lambda bits: steps_on(bits).take(100),
    "poisson": lambda bits: drawn(MANY, 0.1, 0, bits),
    "noise": lambda bits: COIN.draw((1,), np.zeros(5_000, dtype=np.int64), bits),
    "permutation": lambda bits: bits.permutation(MANY),
    "integers": lambda bits: bits.integers(10, size=MANY),
    "choice": lambda bits: bits.choice(MANY, 50, replace=False),
}


class Failing:
    """A cipher that fails once, at some call, and works before and after it."""

    calls = 0

    def __init__(self, error, at):
        self.error, self.at, self.real = error, at, REAL(KEY, 0)

    def update_into(self, zeros, out):
        self.calls += 1
        if self.calls == self.at:
            raise self.error
        return self.real.update_into(zeros, out)


def often(draw):
    for _ in range(1_000):
        draw()


@pytest.mark.parametrize("error", [MemoryError(), KeyboardInterrupt(), TimeoutError("limit")])
@pytest.mark.parametrize("name", DRAWS)
def test_a_stream_that_failed_refuses_for_ever(monkeypatch, name, error):
    monkeypatch.setattr(keyed, "counter_mode", lambda key, block: Failing(error, at=3))
    bits = keyed_generator(KEY)
    with pytest.raises(type(error)) as raised:
        often(lambda: DRAWS[name](bits))
    assert raised.value is error
    for draw in DRAWS.values():
        with pytest.raises(RuntimeError, match="stream of random words failed before") as refused:
            draw(bits)
        assert refused.value.__cause__ is error
    with pytest.raises(RuntimeError, match="failed before"):
        bits.bit_generator.state = {"words": 0}


def test_every_method_of_a_generator_refuses_a_stream_that_failed(monkeypatch):
    monkeypatch.setattr(keyed, "counter_mode", lambda key, block: Failing(MemoryError(), at=1))
    bits = keyed_generator(KEY)
    with pytest.raises(MemoryError):
        bits.random()
    given = tomllib.loads((DATA / "generator_methods.toml").read_text())
    methods = {name for name in dir(bits) if not name.startswith("_")}
    assert methods - {"bit_generator", "spawn"} == given.keys()
    for name, arguments in given.items():
        with pytest.raises(RuntimeError, match="failed before"):
            getattr(bits, name)(*arguments)
    with pytest.raises((RuntimeError, TypeError, AttributeError)):
        bits.spawn(1)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("stream", ["sampling", "noise"])
def test_an_oracle_whose_stream_failed_refuses(monkeypatch, stream, compiled):
    sizes = []

    def gradients(w, rows):
        sizes.append(len(rows))
        return X[rows]

    own = FromGradients(gradients, n=N, dimension=D - 1, block=N)
    own.checked = True
    objective, asked = LOGISTIC if compiled else own, query(count=1_000, **POISSON)
    oracle = PrivateOracle(objective, plan_for(asked))
    with monkeypatch.context() as patched:
        patched.setattr(keyed, "counter_mode", lambda key, block: Failing(MemoryError(), at=2))
        getattr(oracle._streams, stream)
    at = np.zeros(objective.dimension)
    with pytest.raises(MemoryError):
        often(lambda: oracle.gradient(at, "q"))
    given = oracle.ledger.answers
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed before"):
            oracle.gradient(at, "q")
    # What was refused is in the ledger, which is written first.
    assert oracle.ledger.answers == given + 3
    # Sizes are binomial: each is within six standard deviations but once in 10^8 of them.
    assert all(abs(size - 0.3 * N) < 6 * np.sqrt(N * 0.21) for size in sizes)


@pytest.mark.parametrize("at", [1, 2, 5])
def test_a_run_whose_stream_fails_ends_with_its_error(monkeypatch, at):
    plan = calibrate.dpsgd(n=N, batch_size=20, steps=600, epsilon=2.0, delta=1e-6)
    monkeypatch.setattr(keyed, "counter_mode", lambda key, block: Failing(MemoryError(), at))
    with pytest.raises(MemoryError) as raised:
        optim.run(LOGISTIC, plan, learning_rate=0.1)
    assert optim.released(raised.value).answers <= 600


def test_no_python_runs_while_words_are_read():
    # A signal's handler runs between lines of Python: where there are none, none can raise.
    bits, calls = keyed_generator(KEY), []
    out = np.zeros(100_000, dtype=np.int64)

    def heard(frame, event, argument):
        if event == "call":
            calls.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(heard)
    try:
        COIN.draw((1,), out, bits)
        for _ in range(99):
            drawn(MANY, 0.1, 0, bits)
        bits.random(20_000)
    finally:
        sys.setprofile(before)
    assert calls == []
    assert bits.bit_generator.state["words"] > 130_000


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
def test_a_signal_ends_a_compiled_loop():
    steps, heard = steps_on(keyed_generator(KEY), 10**6), mock.Mock(side_effect=TimeoutError)
    before = signal.signal(signal.SIGVTALRM, heard)
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.02)
        with pytest.raises(TimeoutError):
            steps.take(10**6)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert 0 < steps.step < 10**6


@pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")
@pytest.mark.parametrize("name", DRAWS)
def test_a_signal_while_words_are_read_leaves_the_draw_whole(monkeypatch, name):
    send = ctypes.CDLL(None)["raise"]  # sets Python's flag, and returns at once
    wanted = [DRAWS[name](bits) for bits in [keyed_generator(KEY)] for _ in range(30)]

    def struck(key, block):
        # All in C: a signal comes at the third reading, then the cipher works.
        moments = itertools.chain([1, 1], map(send, [int(signal.SIGUSR1)]), itertools.repeat(1))
        works = itertools.compress(itertools.repeat(REAL(key, block).update_into), moments)
        return type("Struck", (), {"update_into": property(partial(next, works))})()

    monkeypatch.setattr(keyed, "counter_mode", struck)

    def handler(number, frame):
        raise TimeoutError

    before = signal.signal(signal.SIGUSR1, handler)
    got, struck_at = [], 0
    try:
        bits = keyed_generator(KEY)
        while len(got) < 30:
            try:
                got.append(DRAWS[name](bits))
            except TimeoutError:
                struck_at += 1
                got.append(None)  # made, and lost with the error
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert struck_at == (bits.bit_generator.state["words"] > 384)
    for ours, theirs in zip(got, wanted, strict=True):
        assert ours is None or np.array_equal(ours, theirs)


# -- seeds: public and secret roots, mixed with plan and records

ASKED = query(count=4)


def planned(epsilon=1.0, asked=ASKED, **fields):
    return plan_for(asked, epsilon=epsilon, parameters={"learning_rate": 0.1}, **fields)


def noise_in(plan, objective=LOGISTIC, seed=0):
    """The noise of a run's first answer, in units of its standard deviation."""
    exact = objective.clipped_sum(ORIGIN, np.arange(N), ASKED.max_norm)
    noisy = PrivateOracle(objective, plan, seed=seed).gradient(ORIGIN, "q") * N
    return (noisy - exact) / (ASKED.noise_multiplier * ASKED.max_norm)


def test_runs_of_other_plans_or_about_other_records_share_no_noise():
    # Two runs with one seed gave the clipped sum away to 6e-14: now noises differ as independent
    # ones do. Four differences of normals below 0.01 each, in one of 15 pairs: false alarm 2e-8.
    first, changed = noise_in(planned()), X.copy()
    changed[7, 2] = np.nextafter(changed[7, 2], 1.0)
    others = [noise_in(planned(0.5)), noise_in(planned(optimizer="spiderboost"))]
    others += [noise_in(planned(), Logistic(changed, Y, l2=0.2, classes=[0, 1]))]
    generator = np.random.default_rng(3)
    others += [noise_in(planned(0.7), seed=generator) for _ in range(2)]
    for number, other in enumerate(others):
        for earlier in [first, *others[:number]]:
            assert np.abs(earlier - other).max() > 0.01, number


def test_digests_tell_records_apart_and_nothing_else():
    changed = X.copy()
    changed[-1, -1] += 1e-9
    for family in (
        lambda table: Softmax(table, Y, classes=[0, 1]),
        lambda table: MLP(table, Y, width=2, classes=[0, 1]),
        lambda table: FromGradients(lambda w, rows: table[rows], n=N, dimension=D - 1),
        lambda table: Logistic(table, Y, classes=[0, 1]),
        lambda table: CovariateShift(table, Y, tilts=X[:, :1], dual_l2=1.0),
    ):
        assert family(X).digest() == family(X.copy()).digest() != family(changed).digest()


def test_the_public_generator_tells_nothing_of_the_noise():
    with replaying():
        noise = noise_in(planned(), seed=5)
    for seed in (0, 5, None, np.random.SeedSequence(3)):
        oracle = PrivateOracle(LOGISTIC, planned(0.6), seed=seed)
        assert oracle.seed_given == (seed is not None)
        oracle.gradient(ORIGIN, "q")
        sequence = oracle.public.bit_generator.seed_seq
        assert f"{sequence.entropy:x}" != oracle._streams.root["secret"]
        assert sequence.spawn_key == ()
        # What an adversary rebuilt the noise from: children of the public root.
        for child in np.random.SeedSequence(sequence.entropy).spawn(4):
            assert np.abs(noise - np.random.default_rng(child).standard_normal(D)).max() > 1e-3


def test_same_noise_is_refused_in_one_process():
    plan = planned(0.9, optimizer="noisy_gd")
    noisy_gd(LOGISTIC, plan, seed=99)
    sweep = "where runs differ in a learning rate, one seed for each of them"
    with pytest.raises(NoiseReused, match=f"drawn the noise of this seed, .* {sweep}"):
        noisy_gd(LOGISTIC, plan, seed=99, learning_rate=0.1)
    noisy_gd(LOGISTIC, plan, seed=100)
    noisy_gd(LOGISTIC, dataclasses.replace(plan, epsilon=0.91), seed=99)
    for _ in range(2):
        noisy_gd(LOGISTIC, plan)


def test_same_noise_is_refused_without_anything_released():
    correlated = dataclasses.replace(ASKED, correlation=Correlation(strategy=LambdaCGD(4, 0.5)))
    for asked in (ASKED, correlated):
        plan = planned(0.8, asked)
        first = PrivateOracle(LOGISTIC, plan, seed=1).gradient(ORIGIN, "q")
        with pytest.raises(NoiseReused):
            PrivateOracle(LOGISTIC, plan, seed=1).gradient(ORIGIN + 1, "q")
        with replaying():
            again = PrivateOracle(LOGISTIC, plan, seed=1).gradient(ORIGIN, "q")
        assert (first == again).all()


@pytest.mark.parametrize("inside", [False, True])
def test_same_noise_is_refused_in_a_thread_while_another_one_replays(inside):
    # A thread that is started inside is nobody's replay either.
    plan, said = planned(0.75 if inside else 0.875), []
    waits, ends = threading.Event(), threading.Event()

    def innocent():
        waits.wait()
        try:
            for _ in range(2):
                said.append(noise_in(plan, seed=9))
        except NoiseReused:
            said.append("refused")
        ends.set()

    thread = threading.Thread(target=innocent)
    if not inside:
        thread.start()
    with replaying():
        if inside:
            thread.start()
        noise_in(plan, seed=10)
        noise_in(plan, seed=10)
        waits.set()
        ends.wait()
    thread.join()
    assert len(said) == 2
    assert said[1] == "refused"
    with pytest.raises(NoiseReused):
        noise_in(plan, seed=10)


def test_seeds_of_every_kind_are_reproducible_and_none_is_fresh():
    def answer(seed):
        return PrivateOracle(LOGISTIC, planned(), seed=seed).gradient(ORIGIN, "q").tobytes()

    assert answer(5) == answer(np.random.SeedSequence(5)) == answer(np.random.default_rng(5))
    assert len({answer(5), answer(6), answer(None), answer(None)}) == 4
    # Legacy generators, and those of keys, have no seed sequence: what they are made of is unknown.
    legacy = np.random.RandomState(3)
    for seed in (legacy, np.random.Generator(legacy._bit_generator), keyed_generator()):
        with pytest.raises((TypeError, ValueError), match="seed must be an integer >= 0"):
            answer(seed)
