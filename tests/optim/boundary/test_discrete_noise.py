"""Discrete Gaussian noise has the law that it states, and reveals no more than a Gaussian."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from _answers import EVERYONE, LOGISTIC, N, W, check_law, oracle_for, plan_for, query
from flint import acb, arb, ctx, fmpz_poly
from scipy.stats import kstest, norm

from dpcal import calibrate, optim
from dpcal._ext import keyed
from dpcal._ext.discrete import DiscreteTable, factors_of
from dpcal._ext.sums import grid_step
from dpcal.accountants.matrix import Banded
from dpcal.calibrate import Correlation
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary import discrete
from dpcal.optim.boundary.discrete import DiscreteNormals, smoothing
from dpcal.optim.boundary.seeds import keyed_generator

KEY = bytes(range(32))
# Each statistical test fails once in a million keys if the law is right.
FALSE_ALARM = 1e-6


@pytest.fixture
def precise():
    before, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = before


def exact_law(normals):
    """The law of one number as whole numbers over 2^(128 terms), from its least value on."""
    high, low = normals._table.words()  # the table is what the law is made of
    below = [0, *((int(h) << 64) + int(w) for h, w in zip(high, low, strict=True)), 1 << 128]
    masses = [after - before for before, after in itertools.pairwise(below)]
    law = fmpz_poly([1])
    for factor in normals.factors:
        spread_out = [0] * ((len(masses) - 1) * factor + 1)
        spread_out[::factor] = masses
        law *= fmpz_poly(spread_out)
    least = -(discrete.TABLE // 2) * sum(normals.factors)
    return least, [int(mass) for mass in law.coeffs()], 1 << (128 * len(normals.factors))


@pytest.mark.parametrize("sigma", [0.4, 3.0, 78.0, 100.0, 1000.0])
def test_the_law_is_as_close_as_it_says(sigma, precise):
    normals = DiscreteNormals(sigma, KEY)
    least, masses, whole = exact_law(normals)
    S = arb(normals._narrow) * arb(sum(k * k for k in normals.factors)).sqrt()
    weights = [(-(arb(x) ** 2) / (2 * S**2)).exp() for x in range(least, least + len(masses))]
    total = sum(weights, arb(0))
    apart = sum(
        (
            abs(arb(mass) / whole - weight / total)
            for mass, weight in zip(masses, weights, strict=True)
        ),
        arb(0),
    )
    assert apart / 2 < arb(2) ** normals.log2_total_variation
    assert normals.log2_total_variation < -105
    assert arb(normals.standard_deviation) <= S
    assert normals.standard_deviation >= sigma * (1 - 1e-15)


@pytest.mark.parametrize("sigma", [1e4, 1e6, 1e9, 1e12, 1e15])
def test_wide_laws_are_as_close_and_take_few_terms(sigma):
    normals = DiscreteNormals(sigma, KEY)
    assert normals.log2_total_variation < -105
    assert len(normals.factors) <= 2 + math.log10(sigma) / 2


def test_sums_of_two_terms_are_smooth_and_hardly_wider_than_asked():
    for sigma in np.geomspace(1.01 * discrete.WIDEST, 0.99 * discrete.WIDE, 50):
        normals = DiscreteNormals(sigma, KEY)
        _, factor = normals.factors
        assert min(normals._widths()) >= discrete.SMOOTH
        assert math.hypot(1, factor - 1) * discrete.WIDEST < sigma
        assert normals.standard_deviation >= sigma * (1 - 1e-15)


@pytest.mark.slow
@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.study), 40])
def test_a_cover_is_a_gaussian_rounded_at_random(x, precise):
    sigma, shift = 9.5, 3
    normals = DiscreteNormals.covering(sigma, KEY)
    S, r = arb(normals.standard_deviation), arb(discrete.SMOOTH)
    spread = (S**2 - r**2).sqrt()
    assert spread >= arb(sigma)

    def density(y, _):
        kernel = (-((x - y) ** 2) / (2 * r**2)).exp()
        rounded = sum(((-((j - y) ** 2) / (2 * r**2)).exp() for j in range(x - 45, x + 46)), acb(0))
        return (-((y - shift) ** 2) / (2 * spread**2)).exp() * kernel / rounded

    law = acb.integral(density, x - 40, x + 40, rel_tol=2.0**-140).real
    law = law / (spread * (2 * arb.pi()).sqrt())
    weights = sum(((-(arb(j) ** 2) / (2 * S**2)).exp() for j in range(-700, 701)), arb(0))
    ratio = (-(arb(x - shift) ** 2) / (2 * S**2)).exp() / weights / law
    e = arb(smoothing(discrete.SMOOTH))
    assert ((1 - e) / (1 + e)) ** 2 - arb(2) ** -130 < ratio
    assert ratio < ((1 + e) / (1 - e)) ** 2 + arb(2) ** -130


@pytest.mark.parametrize("sigma", [0.7, 30.0, 5000.0, 2.0**30])
def test_draws_follow_the_law(sigma):
    draws = DiscreteNormals(sigma, KEY).draw(200_000)
    if sigma < 1:
        values = np.arange(-4, 5)
        chances = np.exp(-(values**2) / (2 * sigma**2))
        assert np.count_nonzero(abs(draws) > 4) < 10
        check_law(np.array([np.count_nonzero(draws == x) for x in values]), chances)
    else:
        # The normal law of x rounded is that of the discrete one, but for a relative 1 / sigma.
        uniform = norm.cdf((draws + 0.5 - np.random.default_rng(0).random(len(draws))) / sigma)
        check_law(np.histogram(uniform, bins=200, range=(0, 1))[0], np.ones(200))


def test_neighboring_draws_do_not_depend_on_each_other():
    draws = DiscreteNormals(40.0, KEY).draw(200_000).astype(float) / 40.0
    for lag in (1, 2, 8, 64, 256):
        correlation = np.mean(draws[lag:] * draws[:-lag]) * math.sqrt(len(draws) - lag)
        assert abs(correlation) < norm.isf(FALSE_ALARM)
    # Without a key, each has words of its own.
    assert (DiscreteNormals(50.0).draw(1000) != DiscreteNormals(50.0).draw(1000)).any()


def test_bits_are_those_of_the_standard():
    # AES-256 of a zero block under the zero key (NIST AESAVS, appendix C.1's key of all zeros).
    block = bytes.fromhex("dc95c078a2408989ad48a21492842087")
    words = {"low": 0, "high": 2**64, "dtype": np.uint64}
    assert keyed_generator(bytes(32)).integers(size=2, **words).astype("<u8").tobytes() == block
    whole, parts = keyed_generator(KEY).integers(size=5000, **words), keyed_generator(KEY)
    found = [parts.integers(size=n, **words) for n in (2, 1998, 3000)]
    assert (np.concatenate(found) == whole).all()


def test_ties_are_settled_by_the_bits_that_follow(monkeypatch):
    high = np.array([5, 5, 5], dtype=np.uint64)
    low = np.array([10, 20, 30], dtype=np.uint64)

    class Cipher:
        """Of which the first words are ties with the whole table."""

        def update_into(self, zeros, out):
            words = np.zeros(len(zeros) // 8, dtype="<u8")
            words[:10] = [5] * 5 + [9, 10, 20, 29, 30]
            out[: len(zeros)] = words.tobytes()

    monkeypatch.setattr(keyed, "counter_mode", lambda key, block: Cipher())
    out = np.zeros(5, dtype=np.int64)
    DiscreteTable(1.0, high, low).draw((1,), out, keyed_generator())
    assert (out + 1).tolist() == [0, 1, 2, 2, 3]


@pytest.mark.parametrize("spread", [0.4, 312.0])
def test_every_word_finds_its_place(spread, monkeypatch):
    """Words beside the entries and near both ends, in the order of a table's search and alone."""
    high, low = discrete.table_of(spread).words()
    powers = [(1 << k) + d for k in range(65) for d in (-1, 0, 1)]
    near = {int(h) + d for h in high for d in (-1, 1)} | {*powers, *(2**64 - p for p in powers)}
    words = np.array(sorted(near - set(high.tolist()) - {-1, 2**64, 2**64 + 1}), dtype="<u8")

    class Cipher:
        def update_into(self, zeros, out):
            out[: len(zeros)] = given[: len(zeros) // 8].tobytes().ljust(len(zeros), b"\1")

    monkeypatch.setattr(keyed, "counter_mode", lambda key, block: Cipher())
    for given in (*np.array_split(words, len(words) // 100), words[:1], words[-1:]):
        out = np.zeros(len(given), dtype=np.int64)
        DiscreteTable(1.0, high, low).draw((1,), out, keyed_generator())
        assert (out + len(high) // 2 == np.searchsorted(high, given, side="right")).all()


def test_wide_laws_are_hardly_wider_than_asked():
    for wanted in np.geomspace(discrete.WIDE, discrete.MOST, 100):
        spread = math.sqrt(sum(k * k for k in factors_of(wanted, discrete.WIDEST)))
        room = 4e-4 if wanted > 2**16 else 4e-3
        assert wanted <= spread * discrete.WIDEST <= wanted * (1 + room)
        widths = DiscreteNormals(wanted, KEY)._widths()
        assert min(widths) >= discrete.SMOOTH


def test_sums_with_clipped_records_fit_in_64_bits():
    widest = DiscreteNormals(discrete.MOST, KEY)
    assert (discrete.TABLE // 2 + 1) * sum(widest.factors) < 2**62


# -- answers


@pytest.mark.parametrize("kind", ["gradient", "gradient norm", "scalar"])
def test_answers_have_the_law_that_the_plan_prices(kind):
    """2,000 answers, seed 1; a right law is rejected for one seed in a million."""
    oracle = oracle_for(query(kind=kind, count=2_000), seed=1)
    slope = LOGISTIC.clipped_sum(W, EVERYONE, 0.5) / N + LOGISTIC.regularizer_gradient(W)
    loss = LOGISTIC.clipped_loss_sum(W, EVERYONE, 0.5) / N + LOGISTIC.regularizer(W)
    ask, mean = {
        "gradient": (oracle.gradient, slope),
        "gradient norm": (oracle.norm, np.linalg.norm(slope)),
        "scalar": (oracle.scalar, loss),
    }[kind]
    answers = np.array([ask(W, "q") for _ in range(2_000)])
    noise = (answers - mean).ravel() * N / (2.0 * 0.5)
    assert kstest(noise, norm.cdf).pvalue > 1e-6
    if kind == "gradient":
        steps = (answers - LOGISTIC.regularizer_gradient(W)) * N / grid_step(0.5)
        np.testing.assert_allclose(steps, np.rint(steps), atol=1e-4)


def test_what_is_released_is_a_whole_number_of_steps():
    """One step of descent without a regulariser: the iterate is a multiple of the grid's step."""
    objective = optim.Logistic(np.eye(4), [0, 1, 0, 1], fit_intercept=False, classes=[0, 1])
    plan = calibrate.dpsgd(n=4, batch_size=4, steps=1, epsilon=1.0, delta=1e-3)
    w = optim.dpsgd(objective, plan, learning_rate=4.0, seed=0).w
    steps = w / grid_step(plan.queries[0].max_norm)
    np.testing.assert_allclose(steps, np.rint(steps), atol=1e-6)


def test_noise_without_a_proof_is_refused_and_leaves_no_file(tmp_path):
    one = query(count=1)
    # Of mixed signs on samples, for which rows of whole numbers have no proof.
    signs = Correlation(strategy=Banded(5, 2, [1.0, -0.5]))
    sampled = query(count=5, sampler="poisson", sampling_probability=0.1, correlation=signs)
    for asked, changes, told in (
        (query(kind="selection", count=1), {}, "an oracle is for sums"),
        (query(count=10**23), {}, r"numbers within 2\^-\d+ of their law"),
        (one, {"delta": 1e-28}, "got delta=1e-28"),
        (sampled, {"neighboring_relation": "add-or-remove-one"}, "correlated noise"),
    ):
        plan = dataclasses.replace(plan_for(asked), **changes)
        with pytest.raises(UnsupportedEvent, match=told):
            optim.PrivateOracle(LOGISTIC, plan)
    plan = dataclasses.replace(plan, optimizer="correlated_dpsgd", parameters={"learning_rate": 1})
    with pytest.raises(UnsupportedEvent, match="correlated noise"):
        optim.correlated_dpsgd(LOGISTIC, plan, store=tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()
