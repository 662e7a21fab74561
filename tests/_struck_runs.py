"""Runs that SIGINT ends at moments that are counted, not timed: a process of its own, by name.

A moment is the k-th time that a function is entered or left. Prints one line a run, so that a crash
shows where it was. Signals while words are read for noise and batches are those of
``test_random_words.py``.
"""

import ctypes
import random
import signal
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "benchmarks" / "problems"))

from _built_plans import BUILT, built
from _stored_runs import struck

from dpcal import optim
from dpcal.errors import DpcalError
from dpcal.optim.boundary import batches
from dpcal.optim.boundary.ledger import check_ledger
from dpcal.optim.boundary.store import read_ledger
from dpcal.optim.registry import OPTIMIZERS

SEND = ctypes.CDLL(None)["raise"]  # sets Python's flag, and returns at once
SEED = 5
TAKE_NO_ORACLE = ("jl_glm", "distributed_psgd")
# Of 200 steps; the first of its plans takes thousands.
CASES = {"spiderboost": 1}
HAVE_NO_FILE = ("distributed_psgd",)
SAMPLE = batches.Batches.sample


def check_size(query, n, size):
    """Refuse a batch that is not of its query's law: false alarms, one in 10^8 batches."""
    if query.sampler == "poisson":
        q = query.sampling_probability
        assert abs(size - q * n) <= 6 * (n * q * (1 - q)) ** 0.5, (query.name, size)
    elif query.sampler == "full":
        assert size == n, (query.name, size)
    elif query.sampler == "fixed-size":
        assert size == query.batch_size, (query.name, size)


def watched(oracle):
    """Check each batch of an oracle, and that the ledger holds its answer before it is drawn."""
    drawn, oracle._records = Counter(), None  # compiled code draws unseen

    def sample(self, query):
        rows = SAMPLE(self, query)
        if self is oracle._batches:
            drawn[query.name] += 1
            assert oracle.ledger.count(query.name) >= drawn[query.name]
            check_size(query, oracle.objective.n, len(rows))
        return rows

    batches.Batches.sample = sample


def asked_again(oracle):
    """Ask an oracle that was interrupted for more: answers of the same law, or refusals."""
    at = [0.1] * oracle.dimension
    for query in oracle.plan.queries:
        for _ in range(3):
            try:
                if query.kind == "gradient" and query.budget is None:
                    oracle.gradient(at, query.name)
            except (DpcalError, RuntimeError):
                pass


def interrupted(name, records, plan, at, **more):
    """Return the ledger of a run that is struck, None if it has none, and its w if it ended."""
    ends = []
    try:
        struck(
            lambda: ends.append(getattr(optim, name)(records, plan, **more)),
            at,
            lambda: SEND(int(signal.SIGINT)),
        )
    except KeyboardInterrupt as error:
        return optim.released(error), None
    return ends[0].ledger, ends[0].w


def check_released(ledger, plan):
    """Refuse a ledger that is not within the plan, or does not compose."""
    if ledger is not None:
        check_ledger(ledger, plan, exact=False)
        assert ledger.event is not None


def struck_run(name, objective, plan, at):
    """Strike a run; check its batches, its ledger, and what its oracle answers afterwards."""
    oracle = None if name in TAKE_NO_ORACLE else optim.PrivateOracle(objective, plan)
    if oracle is not None and at % 2:
        watched(oracle)
    ledger, w = interrupted(name, oracle or objective, plan, at)
    check_released(ledger, plan)
    if oracle is not None:
        asked_again(oracle)
        check_released(oracle.ledger, plan)
    return "interrupted" if w is None else "finished"


def struck_with_file(name, objective, plan, at, path, every, whole):
    """Strike a run that has a file, and go on from the file, to the bits of a whole run."""
    kept = {"store": path, "store_every": every, "seed": SEED}
    with optim.replaying():
        ledger, w = interrupted(name, objective, plan, at, **kept)
        if ledger is not None:
            check_released(ledger, plan)
            # One answer may be paid for, and not made.
            assert ledger.answers - 1 <= read_ledger(path).answers <= ledger.answers
        result = getattr(optim, name)(objective, plan, **kept)
    # Words of an answer that was not made are not drawn again where others were written after it.
    assert every > 1 or result.w.tobytes() == whole
    assert read_ledger(path) == result.ledger
    return "interrupted" if w is None else "finished"


def main(name, seed, count):
    """Strike ``count`` runs of an optimizer, at moments that a seed draws."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    chance = random.Random(f"{name} {seed}")
    plan, objective = built(name, BUILT[name][CASES.get(name, 0)], OPTIMIZERS[name].relations[0])
    whole = getattr(optim, name)(objective, plan, seed=SEED).w.tobytes()
    moments = struck(lambda: getattr(optim, name)(objective, plan))
    with tempfile.TemporaryDirectory() as folder:
        for number in range(count):
            at = chance.randint(1, moments)
            print(name, number, at, "of", moments, flush=True)
            if number % 3 < 2 or name in HAVE_NO_FILE:
                print(struck_run(name, objective, plan, at), flush=True)
            else:
                kept = Path(folder) / f"{number}.db", 1 if number % 2 else 8
                print(struck_with_file(name, objective, plan, at, *kept, whole), flush=True)
    # Nothing of an interruption is left in the process: the same seed gives the same bits.
    with optim.replaying():
        assert getattr(optim, name)(objective, plan, seed=SEED).w.tobytes() == whole


if __name__ == "__main__":
    for given in sys.argv[3:]:
        main(given, sys.argv[1], int(sys.argv[2]))
