"""Several processes start one new run on one file: one run comes of it, and nothing is lost."""

import multiprocessing
import os

import numpy as np
import pytest

from dpcal import calibrate, optim
from dpcal.adapters import ranks
from dpcal.adapters.ranks import Alone, RankedOracle
from dpcal.errors import LedgerMismatch
from dpcal.optim.boundary import store
from dpcal.optim.boundary.store import StoredOracle, read_ledger

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

STEPS, WAIT = 6, 60
OBJECTIVE = optim.Logistic(np.eye(40)[:, :3], [0, 1] * 20, classes=[0, 1])
PLAN = calibrate.dpsgd(n=40, batch_size=20, steps=STEPS, epsilon=1.0, delta=1e-6)


def at_once(count, work):
    """Return what ``work(meet)`` returns or raises in forked processes, which ``meet`` there."""
    context = multiprocessing.get_context("fork")
    barrier, found = context.Barrier(count), context.SimpleQueue()

    def child():
        try:
            found.put(work(lambda: barrier.wait(WAIT)))
        except Exception as error:
            barrier.abort()  # nobody waits for a process that has ended
            found.put(f"{type(error).__name__}: {error}")

    children = [context.Process(target=child) for _ in range(count)]
    for each in children:
        each.start()
    ends = [found.get() for _ in children]
    for each in children:
        each.join()
    return ends


def meeting(meet, function):
    """Return a function that first waits, once, for the other processes at its place."""
    waits = [meet]

    def met(*given, **options):
        if waits:
            waits.pop()()
        return function(*given, **options)

    return met


# Between a look for the file and its making; between its making and the row of the run; between
# the row and the claim to own the file.
PLACES = {
    "file": (store, "opened"),
    "row": (StoredOracle, "_entered"),
    "owner": (StoredOracle, "_own"),
}


@pytest.mark.parametrize("booked", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_one_run_is_released_and_its_file_holds_all_of_it(tmp_path, place, booked):
    path, book = tmp_path / "run.db", tmp_path / "clinic.budget"
    if booked:
        optim.BudgetBook(book, epsilon=1.5, delta=1e-6)

    def work(meet):
        where, name = PLACES[place]
        setattr(where, name, meeting(meet, getattr(where, name)))
        kept = optim.BudgetBook(book).with_store(path) if booked else path
        return optim.dpsgd(OBJECTIVE, PLAN, store=kept).w.tobytes()

    ends = at_once(3, work)
    released = [end for end in ends if isinstance(end, bytes)]
    refused = [end for end in ends if isinstance(end, str)]
    assert released
    assert len(set(released)) == 1
    # In a book, all but the one that writes the row go on in it; none of them is charged again.
    assert all(end.startswith(LedgerMismatch.__name__) for end in refused), refused
    assert read_ledger(path).answers == STEPS
    if booked:
        assert [run.charged for run in optim.BudgetBook(book).runs] == [True]


def test_ranked_runs_are_released_and_their_file_holds_them(tmp_path):
    path = tmp_path / "run.db"

    def work(meet):
        ranks.opened = meeting(meet, ranks.opened)
        oracle = RankedOracle(PLAN, Alone(), {"w": (2,)}, lambda: b"w", store=path)
        answers = []
        for _ in range(STEPS):
            oracle.add(np.ones((len(oracle.draw()), 2)))
            answers.append(oracle.answer().tobytes())
        return b"".join(answers)

    ends = at_once(3, work)
    released = {end for end in ends if isinstance(end, bytes)}
    assert len(released) == 1, ends
    refused = [end for end in ends if isinstance(end, str)]
    assert all(end.startswith(LedgerMismatch.__name__) for end in refused), refused
    assert read_ledger(path).answers == STEPS


def test_a_file_that_holds_a_run_survives_whatever_is_refused(tmp_path):
    """Also where it came into being after a second process had looked for it."""
    path = tmp_path / "run.db"
    optim.dpsgd(OBJECTIVE, PLAN, store=path)
    other = calibrate.dpsgd(n=40, batch_size=20, steps=STEPS + 1, epsilon=1.0, delta=1e-6)
    for looked in (True, False):
        with pytest.MonkeyPatch.context() as patched:
            if not looked:
                patched.setattr("pathlib.Path.exists", lambda self: False)
            with pytest.raises(ValueError, match="holds a run with other plan"):
                optim.dpsgd(OBJECTIVE, other, store=path)
        assert read_ledger(path).answers == STEPS
