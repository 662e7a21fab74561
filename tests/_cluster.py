"""Others' processes: a Dask cluster of two workers, and a silo whose owner trusts nobody."""

import sys
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing import get_context
from threading import Lock

import numpy as np
import pytest

from dpcal import optim
from dpcal.optim.silos import Silo, SiloLost

N = 900


def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    return X, (X[:, 0] + rng.normal(size=N) > 0).astype(int)


def part(first, last, l2=0.01):
    """Return the records of a partition."""
    X, y = table()
    return optim.Logistic(X[first:last], y[first:last], l2=l2, classes=[0, 1])


def array_in_parts(rows, size):
    """Return a Dask array with so many rows of an array in each partition."""
    array = pytest.importorskip("dask.array")
    return array.from_array(rows, chunks=(size, *rows.shape[1:]))


def spans(*ends):
    """Return the first and last records of partitions that end at some places."""
    return array_in_parts(np.column_stack([(0, *ends), (*ends, N)]), 1)


def made(span):
    return part(*span[0])


def partitioned(*ends, timeout=60):
    """Return all records in partitions that end at some places."""
    return optim.Partitioned(made, spans(*ends), timeout=timeout)


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
        distributed.LocalCluster(n_workers=number, processes=processes, **options) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


# What an owner's process forwards.
METHODS = ("describe", "open", "answer", "close", "ledger", "fingerprints")


def _served(make, pipe):
    """Make the silo here, and answer calls until the pipe ends."""
    made = make()
    silo = made if isinstance(made, Silo) else Silo(made, gives_digests=True)
    with suppress(EOFError):
        while True:
            name, given, options = pipe.recv()
            try:
                pipe.send((getattr(silo, name)(*given, **options), None))
            except Exception as error:
                pipe.send((None, error))


class Elsewhere:
    """The silo as its server sees it; ``make`` is called in the silo's process."""

    def __init__(self, make):
        processes = get_context("fork")
        self._turn = Lock()
        self._pipe, there = processes.Pipe()
        self.process = processes.Process(target=_served, args=(make, there), daemon=True)
        self.process.start()
        there.close()

    def __getattr__(self, name):
        if name not in METHODS:
            raise AttributeError(name)
        return partial(self._called, name)

    def _called(self, name, *given, **options):
        try:
            with self._turn:
                self._pipe.send((name, given, options))
                value, error = self._pipe.recv()
        except (EOFError, OSError) as lost:
            raise SiloLost from lost
        if error is not None:
            raise error
        return value
