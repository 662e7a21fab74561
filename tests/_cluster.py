"""A Dask cluster of two workers in processes of their own, or of so many in threads."""

import sys
from contextlib import contextmanager

import pytest


@contextmanager
def two_workers(module, processes=True, number=2):
    """Yield a client; what a test module defines is sent to the workers by value.

    Without processes of their own the workers are threads, which start at once.
    """
    distributed = pytest.importorskip("distributed")
    cloudpickle = pytest.importorskip("cloudpickle")
    cloudpickle.register_pickle_by_value(sys.modules[module])
    with (
        distributed.LocalCluster(
            n_workers=number,
            threads_per_worker=1,
            processes=processes,
            dashboard_address=None,
            silence_logs=50,
        ) as made,
        distributed.Client(made) as client,
    ):
        yield client
