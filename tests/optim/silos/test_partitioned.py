"""Records in partitions on a Dask cluster: equal bits, a killed worker, one ledger."""

import os
import signal

import numpy as np
import pytest
from _cluster import two_workers

from dpcal import calibrate, optim
from dpcal.optim.boundary.exact import DiscreteMechanism
from dpcal.optim.silos import PartitionsLost

N, DIMENSION = 900, 3


def table():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(N, DIMENSION))
    return X, (X[:, 0] + rng.normal(size=N) > 0).astype(int)


def part(first, last, changed=False):
    X, y = table()
    if changed:
        y = 1 - y
    return optim.Logistic(X[first:last], y[first:last], l2=0.01, classes=[0, 1])


def rotten(first, last, mark):
    """The second time other records."""
    changed = os.path.exists(mark)
    with open(mark, "w"):
        pass
    return part(first, last, changed)


@pytest.fixture(scope="module")
def client():
    with two_workers(__name__) as made:
        yield made


def partitioned(client, *ends, timeout=60):
    spans = list(zip((0, *ends), (*ends, N), strict=True))
    return optim.Partitioned(client, [part] * len(spans), arguments=spans, timeout=timeout)


def plans():
    target = {"epsilon": 2.0, "delta": 1e-6, "max_norm": 1.0}
    yield "poisson", calibrate.dpsgd(n=N, batch_size=60, steps=12, **target)
    yield (
        "allocation",
        calibrate.dpsgd(n=N, batch_size=60, epochs=1, sampler="random-allocation", **target),
    )


@pytest.mark.slow
def test_iterates_have_the_same_bits_in_any_partitions(client):
    here = part(0, N)
    several = [partitioned(client), partitioned(client, 1, 450), partitioned(client, 100, 101, 899)]
    w, v, rows = np.array([0.3, -1, 2, 0.1]), np.zeros(4), np.array([7, 899, 0, 450, 100, 450])
    for each in several:
        assert (each.n, each.dimension, each.l2) == (N, 4, 0.01)
        assert each.loss(w) == pytest.approx(here.loss(w))
        assert each.gradient(w) == pytest.approx(here.gradient(w))
        for kind, at in (("gradient_sum", (w,)), ("difference_sum", (w, v)), ("loss_sum", (w,))):
            for some in (rows, np.arange(N), rows[:0], np.resize(rows, N)):
                ask = getattr(DiscreteMechanism, kind)
                assert (ask(each, *at, some, 0.7) == ask(here, *at, some, 0.7)).all()
        assert sorted(each.fingerprints(b"key")) == sorted(here.fingerprints(b"key"))
    for name, plan in plans():
        results = [optim.run(each, plan, seed=3) for each in several]
        assert results[0].noise == "discrete", name
        for other in results[1:]:
            assert (results[0].w == other.w).all(), name
            assert other.ledger == results[0].ledger, name
        other = optim.run(several[0], plan, seed=4)
        assert (other.w != results[0].w).any(), name


@pytest.mark.slow
@pytest.mark.parametrize("number", [1, 2])
def test_killed_workers_change_no_bit_and_no_entry(client, number):
    """One of two workers, and both, which start again."""
    plan = dict(plans())["poisson"]
    client.wait_for_workers(2, timeout=60)
    with optim.replaying():
        whole = optim.run(partitioned(client, 300, 600), plan, seed=9)
    broken = partitioned(client, 300, 600)
    pids = client.run(os.getpid)
    victims = sorted(pids)[len(pids) - number :]

    def kill(progress):
        if progress.step == 3:
            for victim in victims:
                os.kill(pids[victim], signal.SIGKILL)

    with optim.replaying():  # the same seed and plan once more, to compare
        found = optim.run(broken, plan, seed=9, callback=kill, callback_every=1)
    assert found.complete
    assert (found.w == whole.w).all()
    assert found.ledger == whole.ledger
    assert found.ledger.count("gradient") == plan.query("gradient").count


@pytest.mark.slow
def test_other_records_than_before_end_the_run_with_a_true_ledger(client, tmp_path):
    mark = str(tmp_path / "read")
    arguments = [(0, 450, mark), (450, N, str(tmp_path / "other"))]
    client.wait_for_workers(2, timeout=60)  # another test may have killed one
    broken = optim.Partitioned(client, [rotten] * 2, arguments=arguments, timeout=60)
    pids = client.run(os.getpid)
    victim = sorted(pids)[0]
    plan = dict(plans())["poisson"]

    def kill(progress):
        if progress.step == 2:
            os.kill(pids[victim], signal.SIGKILL)

    with pytest.raises(PartitionsLost, match="with other records") as caught:
        optim.run(broken, plan, callback=kill, callback_every=1)
    # The third was asked, and not answered.
    assert optim.released(caught.value).count("gradient") == 3


def test_partitions_must_be_alike(client):
    arguments = [(0, 450, 0.1), (450, N, 0.2)]

    def made(first, last, l2):
        X, y = table()
        return optim.Logistic(X[first:last], y[first:last], l2=l2, classes=[0, 1])

    with pytest.raises(ValueError, match="the same dimension, l2"):
        optim.Partitioned(client, [made] * 2, arguments=arguments)
    with pytest.raises(ValueError, match="at least one"):
        optim.Partitioned(client, [])
    with pytest.raises(TypeError, match="client must be"):
        optim.Partitioned(None, [part])


def test_a_partition_that_is_given_twice_is_refused(client):
    with pytest.raises(ValueError, match="partition 2 is partition 0 again"):
        optim.Partitioned(client, [part] * 3, arguments=[(0, 300), (300, 900), (0, 300)])
    # The same records by another way: a chunk that is scattered twice, another maker, other words.
    X, y = table()
    twice = [client.scatter([(X[:300], y[:300])], hash=False)[0] for _ in range(2)]
    assert twice[0].key != twice[1].key

    def made(chunk):
        return optim.Logistic(*chunk, l2=0.01, classes=[0, 1])

    for makers, arguments in (
        ([made, made], [(each,) for each in twice]),
        ([part, lambda first, last: part(first, last)], [(0, 300)] * 2),
        ([part] * 2, [(0, 300), (0, 300, False)]),
    ):
        with pytest.raises(ValueError, match="partition 1 is partition 0 again"):
            optim.Partitioned(client, makers, arguments=arguments)
        both = optim.Partitioned(client, makers, arguments=arguments, overlap="ignore")
        assert both.n == 600
    with pytest.raises(ValueError, match="overlap must be one of"):
        optim.Partitioned(client, [part], arguments=[(0, N)], overlap="all")
