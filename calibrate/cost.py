"""How long does a plan take on this machine? A model of time, from one timed sum.

A linear model's gradients are timed on made-up records of the dimension that is asked about.
Answers add what does not depend on their records: sampling, noise and bookkeeping.

>>> query = Query(name="gradient", kind="gradient", sampler="full", max_norm=1.0,
...               noise_multiplier=5.0, count=60)
>>> 1e-3 < predicted_seconds([query], n=20_000, dimension=10) < 10
True
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Iterable

import numpy as np

from dpcal import _validate
from dpcal._ext.gradients import LinearClippedSum, LogisticLoss
from dpcal.calibrate.query import Query

__all__ = ["predicted_seconds"]

# Numbers of a timed table at most: it is larger than caches, as tables are that take long.
_MOST_NUMBERS = 2**21
# Seconds of opening a run; of an answer in a compiled loop, for itself and for each parameter; and
# of an answer with correlated noise, which such loops do not take.
_OPENING, _ANSWER, _COORDINATE, _CORRELATED = 1.5e-3, 8e-6, 3e-8, 6e-5
# A record in a sample beside one in a full pass: its time, and seconds of finding it; and a
# difference of two gradients beside one gradient.
_SAMPLED, _FOUND, _DIFFERENCE = 1.6, 3e-8, 1.3


def predicted_seconds(queries: Iterable[Query], *, n: int, dimension: int) -> float:
    """Return the processor seconds that a run on a linear model takes on this machine.

    Half to twice as long on an idle machine, for most plans whose answers are all asked; a run
    that ends by a rule of its own takes less, and other models have gradients of their own.

    Parameters
    ----------
    queries
        Those of a plan.
    n, dimension
        Number of records of the table, and of parameters.
    """
    rows = min(_validate.count(n=n), max(1, _MOST_NUMBERS // _validate.count(dimension=dimension)))
    each = _seconds_a_record(dimension, 2 ** math.floor(math.log2(rows)))
    total = _OPENING
    for query in queries:
        gradients = query.sums * query.expected_batch_size(n)
        gradients *= _DIFFERENCE if query.kind == "gradient difference" else 1.0
        sampled = query.sampler != "full"
        total += gradients * (_SAMPLED * each + _FOUND if sampled else each)
        answer = _ANSWER if query.correlation is None else _CORRELATED
        total += query.sums * (answer + _COORDINATE * dimension)
    return total


@functools.cache
def _seconds_a_record(dimension: int, rows: int) -> float:
    """Return the least processor seconds of a clipped gradient in a few sums over a table."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, dimension)) / math.sqrt(dimension)
    kernel = LinearClippedSum(LogisticLoss(), X, np.where(X[:, 0] > 0, 1.0, -1.0), intercept=False)
    everyone, w = np.arange(rows, dtype=np.intp), np.full(dimension, 0.5)
    taken, repeats = [], max(1, 2**16 // rows)
    for _ in range(5):
        began = time.thread_time()
        for _ in range(repeats):
            kernel(w, everyone, max_norm=1.0)
        taken.append((time.thread_time() - began) / (repeats * rows))
    return min(taken)
