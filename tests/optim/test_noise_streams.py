"""Noise streams: their exact law through known normals, restarts bit for bit, wrong input.

A stream of the identity strategy is z itself, so that every other stream with the same seed must
be C^-1 times it: the law is checked exactly, not by statistics.
"""

import tomllib
from types import SimpleNamespace

import numpy as np
import pytest
from _tree import DATA
from scipy import stats

from dpcal.accountants import matrix
from dpcal.optim import NoiseStream
from dpcal.optim.boundary import streams as noise

TABLE = tomllib.loads((DATA / "streams.toml").read_text(encoding="utf-8"))
STRATEGIES, RECURRENCES = (
    [getattr(matrix, name)(*values) for row in rows for name, values in row.items()]
    for rows in TABLE.values()
)
# Within a block of short rows, one row a block, and several chunks a row.
DIMENSIONS = (1, 700, 2 * noise._CHUNK + 17)


def rows(strategy, dimension=5, seed=1, **options):
    return np.array(list(NoiseStream(strategy, dimension, seed, **options)))


def check_rows(strategy, dimension):
    z = rows(matrix.Identity(strategy.steps), dimension)
    found = rows(strategy, dimension)
    expected = np.linalg.solve(strategy.matrix(), z)
    assert found.shape == (strategy.steps, dimension)
    assert np.allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.slow
@pytest.mark.parametrize("strategy", RECURRENCES, ids=repr)
def test_rows_are_the_inverse_times_the_normals_and_a_restart_is_bit_equal(strategy):
    # At every step where rows are short; else at every place within a reading of four: the first
    # ones, some of which have few rows before them, and the last ones.
    every = range(strategy.steps)
    for dimension in DIMENSIONS:
        check_rows(strategy, dimension)
        stored, stream = rows(strategy, dimension), NoiseStream(strategy, dimension, 1)
        for step in every if dimension < noise._CHUNK else [*every[:5], *every[-9:]]:
            opened = [stream.at(step), NoiseStream.from_json(stream.at(step).to_json())]
            if strategy.inverse_bands is not None:
                opened.append(NoiseStream(strategy, dimension, 1, replay=True).at(step))
            for each in opened:
                assert (each.step, each.strategy) == (step, strategy)
                assert (each.read(out := np.empty(dimension)) == stored[step]).all()
                assert all((next(each) == row).all() for row in stored[step + 1 : step + 5])
            assert (out == stored[step]).all()
        assert stream.step == 0
        assert list(stream.at(strategy.steps)) == []


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
    # Replayed, even fewer.
    dimension = 10 * noise._CHUNK
    stream = NoiseStream(matrix.LambdaCGD(9, 0.9), dimension, 1, replay=True)
    next(stream)
    assert stream._recurrence.buffers.nbytes < dimension * 8 / 5


@pytest.mark.parametrize("strategy", RECURRENCES[-3:], ids=repr)
def test_steps_that_share_a_reading_have_the_bits_of_single_ones(strategy, monkeypatch):
    shared = [rows(strategy, dimension) for dimension in DIMENSIONS]
    monkeypatch.setattr(matrix.recurrences, "_MANY", np.inf)
    for dimension, together in zip(DIMENSIONS, shared, strict=True):
        assert (rows(strategy, dimension) == together).all(), dimension


def test_no_normals_are_drawn_ahead(monkeypatch):
    # A shared reading looks four steps ahead in the kept rows, never in z.
    drawn = []
    generator = noise._Normals._generator

    def watched(self, block):
        drawn.append(block)
        return generator(self, block)

    monkeypatch.setattr(noise._Normals, "_generator", watched)
    stream = NoiseStream(matrix.SquareRoot(11, 10), noise._BLOCK, 1)
    for step in range(11):
        next(stream)
        assert drawn == list(range(step + 1))
    assert next(stream, None) is None
    assert drawn == list(range(11))


@pytest.mark.parametrize("dimension", [1, 1000, noise._BLOCK // 2])
def test_normals_may_be_read_from_any_step_on(dimension):
    together = noise._BLOCK // dimension
    rows = noise._Normals((1, 2), dimension)
    for step in (0, together - 1, together, 2 * together + 1):
        first = noise._Normals((1, 2), dimension).whole(step)
        assert (first == rows.whole(step)).all()


def test_rows_depend_on_seed_and_step_only():
    # Whatever else is read, or how many rows the run has.
    long, short = NoiseStream(matrix.Identity(50), 9, 3), NoiseStream(matrix.Identity(5), 9, 3)
    for _ in range(5):
        assert (next(long) == next(short)).all()
    assert (rows(matrix.Identity(5), seed=3) != rows(matrix.Identity(5), seed=4)).all()
    same = np.random.SeedSequence(3)
    assert (rows(matrix.Identity(5), seed=same) == rows(matrix.Identity(5), seed=3)).all()
    # A generator hands out children.
    generator = np.random.default_rng(5)
    first, second = (rows(matrix.Identity(3), seed=generator) for _ in range(2))
    assert (first != second).all()


def test_normals_do_not_repeat_between_steps_or_blocks():
    for dimension in DIMENSIONS:
        z = rows(matrix.Identity(40), dimension)
        assert len(np.unique(z)) == z.size


def test_normals_are_independent_standard_gaussians():
    # Kolmogorov-Smirnov on 120,000 values, and chi-squared on the lag-1 correlation over steps and
    # over columns; false alarm 1e-4 each.
    for dimension in (30, 6_000):
        z = rows(matrix.Identity(120_000 // dimension), dimension, seed=11)
        assert stats.kstest(z.ravel(), "norm").pvalue > 1e-4
        for lagged in (z[1:] * z[:-1], z[:, 1:] * z[:, :-1]):
            score = lagged.sum() / np.sqrt(lagged.size)
            assert 2 * stats.norm.sf(abs(score)) > 1e-4


def test_wrong_input_gets_a_sentence():
    stream = NoiseStream(matrix.Identity(3), 2)
    for ask, error, sentence in (
        (stream.at(3).read, ValueError, "all have been read"),
        (lambda: stream.read(np.empty(3)), ValueError, r"out must have shape \(2,\), got \(3,\)"),
        (lambda: NoiseStream.from_json("{}"), ValueError, "not the state of a noise stream"),
    ):
        with pytest.raises(error, match=sentence):
            ask()


def test_a_stream_whose_read_was_interrupted_is_opened_anew(monkeypatch):
    dimension = 40_000
    stream = NoiseStream(matrix.LambdaCGD(10, 0.9), dimension, seed=3)
    rows = [next(stream) for _ in range(2)]
    whole = stream._recurrence.apply

    def interrupted(step, fresh, out, start):
        if start:
            raise KeyboardInterrupt
        whole(step, fresh, out, start)

    monkeypatch.setattr(stream, "_recurrence", SimpleNamespace(apply=interrupted))
    with pytest.raises(KeyboardInterrupt):
        next(stream)
    assert stream.step == len(rows)
    with pytest.raises(RuntimeError, match=r"Open the stream anew with at\(2\)"):
        next(stream)
    again = NoiseStream(matrix.LambdaCGD(10, 0.9), dimension, seed=3)
    expected = [next(again) for _ in range(3)][-1]
    assert (next(stream.at(2)) == expected).all()
