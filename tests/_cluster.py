"""A Dask cluster of two workers in processes of their own, or of so many in threads."""

import itertools
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from dpcal import optim

N = 900


def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    return X, (X[:, 0] + rng.normal(size=N) > 0).astype(int)


def part(first, last, l2=0.01):
    """Return the records of a partition."""
    X, y = table()
    return optim.Logistic(X[first:last], y[first:last], l2=l2, classes=[0, 1])


def partitioned(client, *ends, timeout=60):
    """Return all records in partitions that end at some places."""
    spans = list(itertools.pairwise((0, *ends, N)))
    return optim.Partitioned(client, [part] * len(spans), arguments=spans, timeout=timeout)


@contextmanager
def two_workers(module, processes=True, number=2):
    """Yield a client; what a test module defines is sent to the workers by value.

    Without processes of their own the workers are threads, which start at once.
    """
    distributed = pytest.importorskip("distributed")
    cloudpickle = pytest.importorskip("cloudpickle")
    for name in (module, __name__):
        cloudpickle.register_pickle_by_value(sys.modules[name])
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    with (
        distributed.LocalCluster(n_workers=number, processes=processes, **options) as made,
        distributed.Client(made) as client,
    ):
        yield client
