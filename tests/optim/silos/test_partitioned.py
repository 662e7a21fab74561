"""Records in partitions on a Dask cluster whose workers are killed: equal bits, one ledger."""

import os
import signal
from functools import partial

import pytest
from _cluster import N, part, partitioned, spans, two_workers

from dpcal import calibrate, optim
from dpcal.optim.silos import PartitionsLost

PLAN = calibrate.dpsgd(n=N, batch_size=60, steps=12, epsilon=2.0, delta=1e-6, max_norm=1.0)


def rotten(folder, span):
    """The second time other records."""
    first, last = span[0]
    mark = folder / str(first)
    changed = mark.exists()
    mark.touch()
    return part(first + (not changed), last - changed)


@pytest.fixture(scope="module")
def client():
    with two_workers(__name__) as made:
        yield made


def killing(client, number, step):
    """Return a callback that kills some of the workers after a step."""
    client.wait_for_workers(2, timeout=60)  # another test may have killed one
    pids = sorted(client.run(os.getpid).items())

    def kill(progress):
        if progress.step == step:
            for _, pid in pids[len(pids) - number :]:
                os.kill(pid, signal.SIGKILL)

    return {"callback": kill, "callback_every": 1}


@pytest.mark.slow
@pytest.mark.parametrize("number", [pytest.param(1, marks=pytest.mark.study), 2])
def test_killed_workers_change_no_bit_and_no_entry(client, number):
    """One of two workers, and both, which start again."""
    broken = partitioned(300, 600)
    with optim.replaying():  # the same seed and plan once more, to compare
        whole = optim.run(partitioned(450), PLAN, seed=9)
        found = optim.run(broken, PLAN, seed=9, **killing(client, number, 3))
    assert found.complete
    assert (found.w == whole.w).all()
    assert found.ledger == whole.ledger
    assert found.ledger.count("gradient") == PLAN.query("gradient").count


@pytest.mark.slow
def test_other_records_than_before_end_the_run_with_a_true_ledger(client, tmp_path):
    client.wait_for_workers(2, timeout=60)
    broken = optim.Partitioned(partial(rotten, tmp_path), spans(450), timeout=60)
    plan = calibrate.dpsgd(n=N - 2, batch_size=60, steps=12, epsilon=2.0, delta=1e-6)
    with pytest.raises(PartitionsLost, match="with other records") as caught:
        optim.run(broken, plan, **killing(client, 1, 2))
    # The third was asked, and not answered.
    assert optim.released(caught.value).count("gradient") == 3
