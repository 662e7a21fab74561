"""Rows of correlated noise: their exact law through known normals, restarts, interruptions."""

import tomllib
from functools import partial

import numpy as np
import pytest
from _tree import DATA

from dpcal.accountants import matrix
from dpcal.optim.boundary.lattice import Grid, LatticeStream
from dpcal.optim.boundary.seeds import keyed_generator

TABLE = tomllib.loads((DATA / "streams.toml").read_text(encoding="utf-8"))
STRATEGIES, RECURRENCES = (
    [getattr(matrix, name)(*values) for row in rows for name, values in row.items()]
    for rows in TABLE.values()
)
SIGMA = 2.0**21
WORDS = partial(keyed_generator, bytes(32))


def rows(strategy, dimension=5):
    z = np.random.default_rng(1).standard_normal((strategy.steps, dimension))
    return strategy.recurrence(dimension).solve(z), z


def check_rows(strategy, dimension):
    found, z = rows(strategy, dimension)
    assert np.allclose(strategy.matrix() @ found, z, rtol=1e-10, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", RECURRENCES, ids=repr)
def test_rows_are_the_inverse_times_the_normals_and_a_restart_is_bit_equal(strategy):
    for dimension in (1, 700, 33_000):
        check_rows(strategy, dimension)
        given = {"sigma": SIGMA, "bound": 2.0**20, "signs": True}
        stream = LatticeStream(Grid.of(strategy, dimension, **given), WORDS)
        kept = [stream.read().copy() for _ in range(strategy.steps)]
        for step in (0, 1, 4, strategy.steps - 1):
            opened, out = stream.at(step), np.empty(dimension, np.int64)
            assert opened.step == step
            assert (opened.read(out) == kept[step]).all()
            assert (out == kept[step]).all()


def test_every_strategy_gives_its_rows_and_its_exact_covariance_over_steps():
    lower = np.tril(np.random.default_rng(0).uniform(0.2, 1, (13, 13)))
    for strategy in (*STRATEGIES, matrix.Dense(lower)):
        check_rows(strategy, 5)
        # Unit rows of z in place of random ones: C^-1 comes out, so C^-1 C^-T is the law.
        weights = strategy.recurrence(strategy.steps).solve(np.eye(strategy.steps))
        C = strategy.matrix()
        assert np.allclose(C @ (weights @ weights.T) @ C.T, np.eye(strategy.steps), atol=1e-10)


def test_memory_is_a_few_rows():
    for strategy, kept in (
        (matrix.Identity(1000), 0),
        (matrix.LambdaCGD(1000, 0.9), 1),
        (matrix.Banded(1000, 32), 31),
        (matrix.BISR(1000, 4), 3),
        (matrix.BLT(1000, (0.9, 0.4), (0.4, 0.3)), 2),
        (matrix.Tree(1000, efficient=True), 10),
    ):
        assert strategy.recurrence(3).buffers.shape == (kept, 3), strategy


@pytest.mark.parametrize("strategy", RECURRENCES[-3:], ids=repr)
def test_steps_that_share_a_reading_have_the_bits_of_single_ones(strategy, monkeypatch):
    sizes = (1, 700, 33_000)
    shared = [rows(strategy, dimension)[0] for dimension in sizes]
    monkeypatch.setattr(matrix.recurrences, "_MANY", np.inf)
    for dimension, together in zip(sizes, shared, strict=True):
        assert (rows(strategy, dimension)[0] == together).all(), dimension
