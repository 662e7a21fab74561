"""SIGINT at any moment ends a run with an error, or comes too late; the ledger stays right.

The moments are counted, and drawn by a seed: :mod:`_struck_runs` says what is checked after each.
"""

import subprocess
import sys
from pathlib import Path

import _struck_runs
import pytest
from _built_plans import BUILT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals are those of POSIX")

NAMES = sorted(BUILT)
# Few processes, because each of them loads the package.
GROUPS = [NAMES[first::3] for first in range(3)]


def strike(seed, count, *names):
    """Return how many runs were interrupted, of ``count`` of each optimizer."""
    script = Path(_struck_runs.__file__)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", script, str(seed), str(count), *names],
        cwd=script.parent,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-400:] + done.stderr[-2_000:]
    outcomes = done.stdout.split()
    ended = outcomes.count("interrupted"), outcomes.count("finished")
    assert sum(ended) == count * len(names)
    return ended[0]


@pytest.mark.slow
@pytest.mark.parametrize("names", GROUPS, ids=lambda names: names[0])
def test_a_signal_ends_a_run_or_comes_too_late(names):
    # 102 moments in all.
    assert strike(1, 6, *names) > 3 * len(names)


@pytest.mark.study
@pytest.mark.parametrize("name", NAMES)
def test_signals_at_many_moments(name):
    assert strike(2, 200, name) > 100
