"""A stream of random words that fails gives no draw, and refuses for ever; no signal breaks one."""

import ctypes
import itertools
import signal
import sys
from functools import partial

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal._ext import keyed
from dpcal._ext.discrete import DiscreteTable
from dpcal._ext.noise import poisson_sample
from dpcal._ext.samples import drawn
from dpcal.calibrate import Plan, Query
from dpcal.optim.boundary.seeds import keyed_generator

KEY = bytes(32)
REAL = keyed.counter_mode
N = 1_000
X = np.random.default_rng(0).standard_normal((N, 3))
OBJECTIVE = optim.Logistic(X, X[:, 0] > 0, classes=[0, 1])
COIN = DiscreteTable(1.0, np.array([1 << 63], dtype=np.uint64), np.zeros(1, dtype=np.uint64))

DRAWS = {
    "poisson": lambda bits: poisson_sample(N, 0.1, bits),
    "sample": lambda bits: drawn(N, 0.1, 0, bits),
    "noise": lambda bits: COIN.draw((1,), np.zeros(5_000, dtype=np.int64), bits),
    "permutation": lambda bits: bits.permutation(N),
    "integers": lambda bits: bits.integers(10, size=N),
    "choice": lambda bits: bits.choice(N, 50, replace=False),
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
    given = {
        "beta": (1.0, 1.0), "binomial": (5, 0.5), "bytes": (9,), "chisquare": (1.0,),
        "choice": (9,), "dirichlet": ([1.0, 1.0],), "exponential": (), "f": (1.0, 1.0),
        "gamma": (1.0,), "geometric": (0.5,), "gumbel": (), "hypergeometric": (5, 5, 5),
        "integers": (9,), "laplace": (), "logistic": (), "lognormal": (), "logseries": (0.5,),
        "multinomial": (5, [0.5, 0.5]), "multivariate_hypergeometric": ([5, 5], 5),
        "multivariate_normal": (np.zeros(2), np.eye(2)), "negative_binomial": (5, 0.5),
        "noncentral_chisquare": (1.0, 1.0), "noncentral_f": (1.0, 1.0, 1.0), "normal": (),
        "pareto": (1.0,), "permutation": (9,), "permuted": (np.arange(9),), "poisson": (),
        "power": (1.0,), "random": (), "rayleigh": (), "shuffle": (np.arange(9),),
        "standard_cauchy": (), "standard_exponential": (), "standard_gamma": (1.0,),
        "standard_normal": (), "standard_t": (1.0,), "triangular": (0.0, 0.5, 1.0),
        "uniform": (), "vonmises": (0.0, 1.0), "wald": (1.0, 1.0), "weibull": (1.0,),
        "zipf": (2.0,),
    }  # fmt: skip
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
    query = Query(
        name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.1,
        max_norm=1.0, noise_multiplier=2.0, count=1_000,
    )  # fmt: skip
    plan = Plan(optimizer="x", n=N, queries=(query,), epsilon=9.0, delta=1e-6)
    sizes = []

    def gradients(w, rows):
        sizes.append(len(rows))
        return X[rows]

    own = optim.FromGradients(gradients, n=N, dimension=3, block=N)
    own.checked = True
    objective = OBJECTIVE if compiled else own
    oracle = optim.PrivateOracle(objective, plan)
    with monkeypatch.context() as patched:
        patched.setattr(keyed, "counter_mode", lambda key, block: Failing(MemoryError(), at=2))
        getattr(oracle._streams, stream)
    at = np.zeros(objective.dimension)
    with pytest.raises(MemoryError):
        often(lambda: oracle.gradient(at, "gradient"))
    given = oracle.ledger.answers
    for _ in range(3):
        with pytest.raises(RuntimeError, match="failed before"):
            oracle.gradient(at, "gradient")
    # What was refused is in the ledger, which is written first.
    assert oracle.ledger.answers == given + 3
    # Sizes are binomial: each is within six standard deviations but once in 10^8 of them.
    assert all(abs(size - N / 10) < 6 * np.sqrt(N * 0.09) for size in sizes)


def test_a_run_whose_stream_fails_ends_with_its_error(monkeypatch):
    plan = calibrate.dpsgd(n=N, batch_size=100, steps=60, epsilon=2.0, delta=1e-6)
    for at in (1, 2, 5):
        with monkeypatch.context() as patched:
            patched.setattr(
                keyed, "counter_mode", lambda key, block, at=at: Failing(MemoryError(), at)
            )
            with pytest.raises(MemoryError) as raised:
                optim.run(OBJECTIVE, plan, learning_rate=0.1)
        assert optim.released(raised.value).answers <= 60


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
            poisson_sample(N, 0.1, bits)
        bits.random(20_000)
    finally:
        sys.setprofile(before)
    assert calls == []
    assert bits.bit_generator.state["words"] > 130_000


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
