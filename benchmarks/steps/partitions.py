"""Exact sums of partitions on two workers of a Dask cluster, beside one process.

``python -m benchmarks partitions --records 10000000`` takes a minute and 10 GB.
"""

import argparse
import time

import distributed
import numpy as np

from dpcal import optim
from dpcal.optim.boundary.noise import Mechanism

FEATURES, PARTS, BATCH = 50, 8, 1_000


def made(seed, n):
    X = np.random.default_rng(seed).standard_normal((n, FEATURES))
    return optim.Logistic(X, (X[:, 0] > 0).astype(int), classes=[0, 1])


def seconds(ask, times):
    """The mean time of a call, after a first one."""
    ask()
    start = time.perf_counter()
    for _ in range(times):
        ask()
    return (time.perf_counter() - start) / times


def echo(answer):
    return answer


def bare(client):
    """The mean time of messages alone: rows of a batch to every partition, and numbers back."""
    given = [np.zeros(BATCH // PARTS)] * PARTS
    return seconds(lambda: client.gather(client.map(echo, given, pure=False)), 20)


def compared(objective):
    """Return the times of a sum over everybody and over a batch."""
    w, n = np.zeros(FEATURES + 1), objective.n
    batch = np.sort(np.random.default_rng(0).choice(n, BATCH, replace=False))
    asked = ((objective.everyone(n), 5), (batch, 20))
    return [
        seconds(lambda rows=rows: Mechanism.gradient_sum(objective, w, rows, 1.0), times)
        for rows, times in asked
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=1_000_000)
    size = parser.parse_args().records // PARTS
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        spans = [(seed, size) for seed in range(PARTS)]
        apart = compared(optim.Partitioned(client, [made] * PARTS, arguments=spans))
        messages = bare(client)
    alone = compared(made(0, PARTS * size))
    for name, there, here in zip(("everybody", f"{BATCH} records"), apart, alone, strict=True):
        print(f"{name:<14}{there * 1e3:9.1f} ms apart {here * 1e3:9.1f} ms in one process")
    print(f"messages alone {messages * 1e3:8.1f} ms")


if __name__ == "__main__":
    main()
