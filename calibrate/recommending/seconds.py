"""How long does a plan take on this machine? A model of time, from one timed sum.

A linear model's gradients are timed on made-up records of the given dimension. Answers add the
parts that do not depend on their records: sampling, noise and bookkeeping.

>>> query = Query(name="gradient", kind="gradient", sampler="full", max_norm=1.0,
...               noise_multiplier=5.0, count=60)
>>> 1e-3 < predicted_seconds([query], n=20_000, dimension=10) < 10
True
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.losses import LogisticLoss
from dpcal._internal import validate
from dpcal.calibrate.query import Query

# Most numbers of a timed table, which is larger than caches.
_MOST_NUMBERS = 2**21
# Seconds: opening a run; an answer in a compiled loop, and a parameter of it; correlated noise.
_OPENING, _ANSWER, _COORDINATE, _CORRELATED = 1.5e-3, 8e-6, 3e-8, 6e-5
# A sampled record over one of a full pass, seconds of finding it, and a difference over a gradient.
_SAMPLED, _FOUND, _DIFFERENCE = 1.6, 3e-8, 1.3


def predicted_seconds(queries: Iterable[Query], *, n: int, dimension: int) -> float:
    """Return the processor seconds that a run on a linear model takes on this machine.

    Half to twice as long on an idle machine, for most plans that use all answers; a run that ends
    by a rule of its own takes less, and other models have gradients of their own. For a single
    released iterate, rows are taken to need shortening, which copies the table once.

    Parameters
    ----------
    queries
        Constants of a plan.
    n, dimension
        Number of records of the table, and of parameters.
    """
    rows = min(validate.count(n=n), max(1, _MOST_NUMBERS // validate.count(dimension=dimension)))
    timed = dimension, 2 ** math.floor(math.log2(rows))
    each = _seconds_a_record(*timed)
    total = _OPENING
    for query in queries:
        gradients = query.sums * query.expected_batch_size(n)
        gradients *= _DIFFERENCE if query.kind == "gradient difference" else 1.0
        sampled = query.sampler != "full"
        total += gradients * (_SAMPLED * each + _FOUND if sampled else each)
        answer = _ANSWER if query.correlation is None else _CORRELATED
        total += query.sums * (answer + _COORDINATE * dimension)
        total += 0.0 if query.descent is None else n * _seconds_a_shorter_row(*timed)
    return total


def _least_seconds(run: Callable[[], Any], rows: int, repeats: int = 1) -> float:
    """Return the least processor seconds a row of a run, of five tries."""
    taken = []
    for _ in range(5):
        began = time.thread_time()
        for _ in range(repeats):
            run()
        taken.append((time.thread_time() - began) / (repeats * rows))
    return min(taken)


def _table(dimension: int, rows: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return made-up records and labels."""
    X = np.random.default_rng(0).standard_normal((rows, dimension)) / math.sqrt(dimension)
    return X, np.where(X[:, 0] > 0, 1.0, -1.0)


@functools.cache
def _seconds_a_record(dimension: int, rows: int) -> float:
    """Return the seconds of a clipped gradient in a few sums over a table."""
    kernel = ClippedSum(LogisticLoss(), *_table(dimension, rows), intercept=False)
    everyone, w = np.arange(rows, dtype=np.intp), np.full(dimension, 0.5)
    return _least_seconds(lambda: kernel(w, everyone, max_norm=1.0), rows, max(1, 2**16 // rows))


@functools.cache
def _seconds_a_shorter_row(dimension: int, rows: int) -> float:
    """Return the seconds of a row of a table that is shortened and read again."""
    X, y = _table(dimension, rows)
    factors = np.full((rows, 1), 0.5)
    return _least_seconds(lambda: ClippedSum(LogisticLoss(), X * factors, y, intercept=False), rows)
