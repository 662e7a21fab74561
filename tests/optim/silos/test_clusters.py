"""Records in partitions on clusters of several sizes, one at a time, whose workers are threads.

While another cluster is open in the same process, Dask may ask the worker of the wrong one.
"""

import itertools

import numpy as np
import pytest
from _cluster import two_workers
from _pages import program

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.calibrate import Correlation, Plan, Query
from dpcal.optim.silos import PartitionsLost

N = 900


def part(first, last):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, 3))
    y = (X[:, 0] + rng.normal(size=N) > 0).astype(int)
    return optim.Logistic(X[first:last], y[first:last], l2=0.01, classes=[0, 1])


def partitioned(client, count):
    ends = np.linspace(0, N, count + 1).astype(int).tolist()
    spans = list(itertools.pairwise(ends))
    return optim.Partitioned(client, [part] * count, arguments=spans, timeout=20)


PLAN = calibrate.dpsgd(n=N, batch_size=60, steps=12, epsilon=2.0, delta=1e-6, max_norm=1.0)
EVERYBODY = Query(
    name="gradient",
    kind="gradient",
    sampler="full",
    max_norm=1.0,
    noise_multiplier=20.0,
    count=6,
    correlation=Correlation(strategy=LambdaCGD(6, 0.5)),
)
CORRELATED = Plan(optimizer="correlated_dpsgd", n=N, queries=(EVERYBODY,), epsilon=30.0, delta=1e-6)


@pytest.mark.slow
def test_one_two_and_eight_workers_have_the_same_bits():
    found = []
    with optim.replaying():  # two runs, several times
        for workers, parts in ((1, 1), (2, 3), (8, 9)):
            with two_workers(__name__, processes=False, number=workers) as client:
                known = client.scheduler_info(n_workers=-1)["workers"]
                assert len(known) == workers
                objective = partitioned(client, parts)
                found.append([optim.run(objective, plan, seed=3) for plan in (PLAN, CORRELATED)])
    for several in zip(*found, strict=True):
        for each in several:
            assert (each.w == several[0].w).all()
            assert each.ledger == several[0].ledger
        assert np.abs(several[0].w).max() > 0.1


def test_a_cluster_that_is_gone_ends_the_run_with_a_true_ledger():
    with two_workers(__name__, processes=False) as client:
        whole = partitioned(client, 3)

        def close(progress):
            if progress.step == 2:
                client.cluster.close()

        # Whether the client sees the workers or only their answers go is a matter of time.
        lost = "cannot be read again: client must have workers|was lost 3 times in a row"
        with pytest.raises(PartitionsLost, match=lost) as caught:
            optim.run(whole, PLAN, callback=close, callback_every=1)
    # The third was asked, and not answered.
    assert optim.released(caught.value).count("gradient") == 3


@pytest.mark.slow
def test_the_program_of_the_page_runs():
    names = {"__name__": "__main__"}
    exec(program("scale.md", "One data set on a Dask cluster"), names)
    try:
        assert names["result"].complete
        assert names["result"].epsilon(1e-8) <= 2.0
        exec(program("scale.md", "One data set on a Dask cluster", 1), names)
        assert names["model"].epsilon_spent_ <= 1.0
    finally:
        names["client"].cluster.close()
        names["client"].close()
