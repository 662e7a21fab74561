"""Correlated noise in whole numbers: rows, their price by exact enumeration, and the doors."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from _answers import plan_for, query
from _integrals import divergence

from dpcal.accountants.matrix import BIFR, BISR, BLT, Banded, Dense, LambdaCGD, SquareRoot, Tree
from dpcal.calibrate import Correlation
from dpcal.errors import NoiseReused, UnsupportedEvent
from dpcal.optim import FromGradients, PrivateOracle, replaying
from dpcal.optim.boundary import lattice
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.lattice import Grid, LatticeStream
from dpcal.optim.boundary.seeds import keyed_generator
from dpcal.optim.boundary.store import stored

T = 6
STRATEGIES = [
    LambdaCGD(T, 0.9),
    BLT(T, (0.9, 0.5), (0.3, 0.1)),
    Banded(T, 3, [0.7, 0.4, 0.2]),
    Banded(T, 2, [1.0, -0.5]),
    BISR(T, 4),
    BIFR(T, 3, 0.7),
    SquareRoot(T),
    Tree(T),
    Tree(T, True),
    Dense(SquareRoot(T).matrix() * np.linspace(1, 2, T)[:, np.newaxis]),
    # No entry one below the diagonal: a row is pulled by the one two before it.
    Dense(np.eye(T) + 0.5 * np.eye(T, k=-2)),
    # With an odd number of kept rows, places ahead and behind are not the same.
    Dense(np.eye(T) + 0.5 * np.eye(T, k=-2) + 0.25 * np.eye(T, k=-3)),
]
SAMPLERS = [
    {"sampler": "full"},
    {"sampler": "poisson", "sampling_probability": 0.3},
    {"sampler": "cyclic-poisson", "separation": 3, "sampling_probability": 0.5},
    {"sampler": "min-separation", "separation": 3, "sampling_probability": 0.3},
    {"sampler": "balls-in-bins", "separation": 3},
    {"sampler": "random-allocation", "participations": 2},
]


def words():
    return keyed_generator(bytes(32))


def correlated(strategy, **sampler):
    noise = {
        "max_norm": 1.3,
        "count": strategy.steps,
        "correlation": Correlation(strategy=strategy),
    }
    return plan_for(query(**noise, **sampler), n=24, relation="add-or-remove-one", delta=1e-6)


def zeros(dimension=3):
    return FromGradients(
        lambda w, rows: np.zeros((len(rows), dimension)), n=24, dimension=dimension
    )


def answers_of(oracle, count, dimension=3):
    """Return answers at the origin, shape (count, dimension)."""
    return np.array([oracle.gradient(np.zeros(dimension), "q") for _ in range(count)])


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_rows_are_those_of_the_inverse_up_to_half_a_step_of_each_row_of_noise(strategy):
    grid = Grid.of(strategy, 3, sigma=2.0 * 2**20, bound=2.0**20, signs=True)
    stream, bits = LatticeStream(grid, words), words()
    rows = np.array([stream.read() for _ in range(T)])
    C = strategy.matrix()
    D = np.diag(C)
    normals = [DiscreteNormals.covering(grid.sigma / each, bits) for each in D]
    z = np.array([each.draw(3) for each in normals])
    assert rows.dtype == np.int64
    assert np.abs(C / D[:, np.newaxis] @ rows - z).max() < 0.5 + 1e-6
    halves = 0.5 * np.abs(strategy.inverse() * D).sum(axis=1, keepdims=True)
    assert (np.abs(rows - strategy.inverse() @ (D[:, np.newaxis] * z)) <= halves + 1e-6).all()
    assert (stream.at(3).read() == rows[3]).all()


@pytest.mark.parametrize("strategy", STRATEGIES, ids=repr)
def test_rows_are_no_longer_than_the_bound_on_them(strategy):
    """Each row of noise is as long as it may be, with the signs that one row adds up most of."""
    C, inverse, widest = strategy.matrix(), strategy.inverse(), 2.0**30
    longest, error = lattice._pull_of(strategy).most(widest)
    D = np.diag(C)
    whole = np.rint((widest / np.abs(D) - 2)[:, np.newaxis] * np.sign(inverse * D).T)
    sums = np.abs(((inverse * D) @ whole).diagonal())
    assert sums.max() <= longest <= 40 * sums.max()
    assert 2.0**-53 * longest <= error < 1


def pattern_weights(rate, steps):
    for pattern in itertools.product((0, 1), repeat=steps):
        yield np.array(pattern), rate ** sum(pattern) * (1 - rate) ** (steps - sum(pattern))


def whole_law(C, pattern, contributions, *, deviation, reach):
    """Probabilities of all answers y when a record adds ``contributions(t, y)`` to zero sums."""
    axes = [np.arange(-reach, reach + 1)] * len(C)
    answers = np.meshgrid(*axes, indexing="ij", sparse=True)
    law, rows = np.ones(()), []
    support = np.arange(-10 * reach, 10 * reach + 1)
    for t, answer in enumerate(answers):
        pulled = sum(C[t, j] / C[t, t] * row for j, row in enumerate(rows))
        rows.append(answer - pattern[t] * contributions(t, answers[:t]))
        width = deviation / C[t, t]
        total = np.exp(-(support**2) / (2 * width**2)).sum()
        normal = rows[t] + np.rint(pulled)
        law = law * np.exp(-(normal**2) / (2 * width**2)) / total
    return law


def real_laws(C, rate, deviation):
    """Return the laws with and without a record that prices are computed from, in three steps."""
    line = (np.arange(120) - 59.5) * deviation / 8
    laws = [0.0, 0.0]
    for number, share in enumerate((rate, 0.0)):
        for pattern, weight in pattern_weights(share, 3):
            if weight:
                squares = [(line - mean) ** 2 for mean in C @ pattern]
                first, second, third = (np.exp(-each / (2 * deviation**2)) for each in squares)
                laws[number] = laws[number] + weight * np.einsum("i,j,k->ijk", first, second, third)
    return [law / laws[1].sum() for law in laws]


@pytest.mark.parametrize("rate", [0.4, 1.0])
@pytest.mark.parametrize(
    "strategy",
    [
        LambdaCGD(3, 0.5),
        LambdaCGD(3, 0.05),
        Banded(3, 2, [1.0, 0.6]),
        SquareRoot(3),
        Tree(3),
        BISR(3, 3),
    ],
    ids=repr,
)
def test_all_answers_enumerated_never_exceed_the_price_of_real_noise(strategy, rate, monkeypatch):
    # A bound of four steps: rounding is large, and so is the widening.
    bound, sigma, reach = 4, 1.0, 40
    monkeypatch.setattr(lattice, "_FINEST", 0)
    monkeypatch.setattr(lattice, "_MOST", 2.0)
    grid = Grid.of(strategy, 1, sigma=sigma * bound, bound=bound, signs=False)
    assert grid.widened > 1.1
    C = strategy.matrix()
    law_of = partial(whole_law, C, deviation=grid.sigma, reach=reach)

    def towards(t, answers):
        return bound

    def adaptively(t, answers):
        return bound * np.where(answers[-1] > 0, 1, -1) if t else bound

    def tighter(t, answers):
        return bound - 1 if t % 2 else bound

    without, pairs = law_of(np.zeros(3), towards), []
    for contributions in (towards, adaptively, tighter):
        law = sum(
            weight * law_of(pattern, contributions)
            for pattern, weight in pattern_weights(rate, 3)
            if weight
        )
        pairs.append(((law, without), (without, law)))
    real = real_laws(C, rate, sigma)
    for epsilon in (0.0, 0.5, 1.5):
        prices = divergence(*real, epsilon), divergence(*real[::-1], epsilon)
        for both in pairs:
            for price, pair in zip(prices, both, strict=True):
                assert divergence(*pair, epsilon) <= price * (1 + 1e-3) + 1e-7


def test_the_widening_is_the_same_for_a_strategy_in_other_units(monkeypatch):
    monkeypatch.setattr(lattice, "_FINEST", 0)
    monkeypatch.setattr(lattice, "_MOST", 2.0)
    wide, small = (
        Grid.of(Banded(T, 2, [c, -0.5 * c]), 1, sigma=4 * c, bound=16, signs=True)
        for c in (1.0, 0.25)
    )
    assert small.widened == pytest.approx(wide.widened, rel=1e-9)
    assert wide.widened > 1.05


def test_without_the_widening_rounding_would_exceed_the_price():
    strategy, bound, sigma = LambdaCGD(3, 0.05), 1, 1.0
    laws = [
        whole_law(strategy.matrix(), pattern, lambda t, _: bound, deviation=sigma, reach=12)
        for pattern in (np.array([1, 0, 0]), np.zeros(3))
    ]
    longest = np.linalg.norm(strategy.matrix() @ np.array([1, 0, 0]))
    gaussian = math.erf(longest / (2 * math.sqrt(2) * sigma))
    assert divergence(*laws, 0.0) > gaussian


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda each: each["sampler"])
@pytest.mark.parametrize(
    "strategy", [each for each in STRATEGIES if each.nonnegative], ids=lambda each: each.kind
)
def test_runs_go_on_exactly_and_the_same_noise_is_refused(strategy, sampler, tmp_path):
    plan, objective = correlated(strategy, **sampler), zeros()
    whole = answers_of(PrivateOracle(objective, plan, seed=1), T)
    with pytest.raises(NoiseReused):
        answers_of(stored(tmp_path / "refused", objective, plan, seed=1), 1)
    with replaying():
        part = stored(tmp_path / "run", objective, plan, seed=1)
        answers_of(part, 2)
    part.close()
    assert np.array_equal(answers_of(stored(tmp_path / "run", objective, plan), T), whole)
    size = plan.queries[0].expected_batch_size(plan.n)
    steps = whole * size / 2.0**-20
    assert np.abs(steps - np.rint(steps)).max() < 1e-4
    assert np.abs(steps).max() > 1e5


@pytest.mark.parametrize("sampler", SAMPLERS[1:], ids=lambda each: each["sampler"])
def test_signs_without_proof_are_refused_by_name(sampler):
    plan = correlated(Banded(T, 2, [1.0, -0.5]), **sampler)
    with pytest.raises(UnsupportedEvent, match=r"negative entries, got query 'q' with Band"):
        PrivateOracle(zeros(), plan)


@pytest.mark.parametrize("strategy", [LambdaCGD(1000, 0.95), BISR(1000, 8), Tree(1000, True)])
def test_noise_is_wider_by_a_thousandth_at_most_for_a_million_parameters(strategy):
    grid = Grid.of(strategy, 10**6, sigma=2.0**20, bound=2.0**20, signs=False)
    assert 1 < grid.widened < 1.001
    # Where rounding would need much wider noise, there is none.
    strategy = Banded(2000, 2, [1.0, 0.99999])
    assert Grid.of(strategy, 10**11, sigma=2.0**20, bound=2.0**20, signs=False) is None


@pytest.mark.parametrize("strategy", [LambdaCGD(T, 0.9), BLT(T, (0.9, 0.5), (0.3, 0.1)), Tree(T)])
def test_the_best_statistic_of_a_record_has_the_noise_that_is_priced(strategy):
    d, plan = 20_000, correlated(strategy, sampler="full")
    answers = answers_of(PrivateOracle(zeros(d), plan), T, d)
    means = strategy.matrix() @ np.ones(T)
    ratios = means @ strategy.matrix() @ answers * plan.n / (1.3 * 2.0 * np.linalg.norm(means))
    assert 0.98 < ratios.std() < 1.02
