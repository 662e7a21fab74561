"""Records in partitions on clusters of several sizes, one at a time, whose workers are threads.

While another cluster is open in the same process, Dask may ask the worker of the wrong one.
"""

import numpy as np
import pytest
from _cluster import N, made, part, partitioned, spans, table, two_workers
from _tree import program

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.optim.objectives.contributions import gradients, losses
from dpcal.optim.silos import PartitionsLost

TARGET = {"n": N, "batch_size": 60, "epsilon": 2.0, "delta": 1e-6, "max_norm": 1.0}
PLAN = calibrate.dpsgd(steps=12, **TARGET)
CORRELATED = calibrate.correlated_dpsgd(
    LambdaCGD(6, 0.5), sampler="full", **{**TARGET, "batch_size": N, "epsilon": 30.0}
)
PLANS = (PLAN, CORRELATED, calibrate.dpsgd(epochs=1, sampler="random-allocation", **TARGET))


@pytest.mark.slow
def test_runs_have_the_same_bits_on_any_workers_and_in_any_partitions():
    here, found = part(0, N), []
    w, v, rows = np.array([0.3, -1, 2, 0.1]), np.zeros(4), np.array([7, 899, 0, 450, 100, 450])
    for workers, ends in ((1, ()), (2, (1, 450)), (8, (100, 101, *range(200, 900, 100)))):
        with (
            two_workers(__name__, processes=False, number=workers) as client,
            optim.replaying(),  # the same runs, several times
        ):
            assert len(client.scheduler_info(n_workers=-1)["workers"]) == workers
            each = partitioned(*ends)
            assert (each.n, each.dimension, each.l2) == (N, 4, 0.01)
            assert each.loss(w) == pytest.approx(here.loss(w))
            assert each.gradient(w) == pytest.approx(here.gradient(w))
            for of, at in ((gradients, (w,)), (gradients, (w, v)), (losses, (w,))):
                for some in (rows, np.arange(N), rows[:0], np.resize(rows, N)):
                    first, second = (of(held, some, *at).whole(0.7) for held in (each, here))
                    assert (first == second).all()
            assert sorted(each.fingerprints(b"key")) == sorted(here.fingerprints(b"key"))
            found.append([optim.run(each, plan, seed=3) for plan in PLANS])
            other = optim.run(each, PLAN, seed=4)
            assert (other.w != found[0][0].w).any()
    for several in zip(*found, strict=True):
        for each in several:
            assert each.noise == "discrete"
            assert (each.w == several[0].w).all()
            assert each.ledger == several[0].ledger
        assert np.abs(several[0].w).max() > 0.1


def test_partitions_must_be_alike_and_each_be_given_once():
    array = pytest.importorskip("dask.array")
    with two_workers(__name__, processes=False):
        X, y = table()
        with pytest.raises(ValueError, match="the same dimension, l2"):
            optim.Partitioned(lambda span: part(*span[0], l2=float(span[0, 1])), spans(450))
        with pytest.raises(ValueError, match="must be Dask data frames, series or arrays"):
            optim.Partitioned(optim.Squared, X, y)
        with pytest.raises(ValueError, match="overlap must be one of"):
            optim.Partitioned(made, spans(), overlap="all")
        with pytest.raises(ValueError, match="partition 2 is partition 0 again"):
            optim.Partitioned(made, array.concatenate([spans(300), spans(300)[:1]]))
        # The same records by another way: other rows, and other makers of them.
        twice = array.from_array(np.concatenate([X[:300], X[:300]]), chunks=(300, 3))
        names = array.from_array(np.array([0, 1]), chunks=1)

        def of_rows(rows):
            return optim.Logistic(rows, rows[:, 0] > 0, l2=0.01, classes=[0, 1])

        def of_name(name):
            return part(0, 300) if name[0] else part(*[0, 300], 0.01)

        for make, records in ((of_rows, twice), (of_name, names)):
            with pytest.raises(ValueError, match="partition 1 is partition 0 again"):
                optim.Partitioned(make, records)
            assert optim.Partitioned(make, records, overlap="ignore").n == 600


def test_a_cluster_that_is_gone_ends_the_run_with_a_true_ledger():
    with two_workers(__name__, processes=False) as client:
        whole = partitioned(300, 600, timeout=5)

        def close(progress):
            if progress.step == 2:
                client.cluster.close()

        # Whether the client sees the workers or only their answers go is a matter of time.
        lost = "cannot be read again"
        with pytest.raises(PartitionsLost, match=lost) as caught:
            optim.run(whole, PLAN, callback=close, callback_every=1)
    # The third was asked, and not answered.
    assert optim.released(caught.value).count("gradient") == 3


@pytest.mark.slow
def test_the_program_of_the_page_runs():
    names = {"__name__": "__main__"}
    exec(program("how_to/many_machines.md", "One data set on a Dask cluster"), names)
    try:
        assert names["result"].complete
        assert names["result"].epsilon(1e-8) <= 2.0
        exec(program("how_to/many_machines.md", "One data set on a Dask cluster", 1), names)
        assert names["model"].epsilon_spent_ <= 1.0
    finally:
        names["client"].cluster.close()
        names["client"].close()
