"""A budget whose charges are in a file: what several processes fit adds up, or is refused."""

import json
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

import dpcal
from dpcal.accountants import epsilon, events
from dpcal.cli import main
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.estimators import LogisticRegression, PrivateSearch, StandardScaler
from dpcal.optim import BudgetBook
from dpcal.optim.budget import charge

TOTAL = 1.15
SPEND = """
import sys
from dpcal.accountants import events
from dpcal.errors import BudgetExceeded
from dpcal.optim.boundary.budget.shared import budget
from dpcal.optim.budget import charge
print("ready", flush=True)
sys.stdin.readline()
done = 0
with budget(book=sys.argv[1]):
    for _ in range(4):
        try:
            charge(events.GaussianDpEvent(9.0), "replace-special")
        except BudgetExceeded:
            continue
        done += 1
print(done)
"""


def records(n=300):
    X = np.random.default_rng(0).uniform(-1, 1, (n, 2))
    return X, (X[:, 0] > 0).astype(int)


def gaussian(fitted):
    """The one Gaussian answer that costs as much as what a model was fitted from."""
    spent = sum(entry.count / entry.noise_multiplier**2 for entry in fitted.ledger_.entries)
    return events.GaussianDpEvent(spent**-0.5)


def test_fits_are_rows_of_the_book_and_cost_their_composition(tmp_path, capsys):
    path, (X, y) = tmp_path / "clinic.budget", records()
    with dpcal.budget(epsilon=1.0, delta=1e-6, book=path) as shared:
        scaler = StandardScaler(bounds=(-1, 1), epsilon=0.3).fit(X)
        model = LogisticRegression(epsilon=0.5, classes=[0, 1], steps=5).fit(X, y)
        with pytest.raises(BudgetExceeded, match="no record was touched"):
            LogisticRegression(epsilon=0.9, classes=[0, 1], steps=5).fit(X, y)
    book = BudgetBook(path)
    assert [run.label for run in book.runs] == ["StandardScaler", "LogisticRegression"]
    assert {run.state for run in book.runs} == {"charged whole"}
    assert book.unfinished() == ()
    together = events.ComposedDpEvent([gaussian(scaler), gaussian(model)])
    truth = epsilon(together, delta=1e-6, neighboring_relation="replace-special")
    assert shared.spent == book.spent().upper == pytest.approx(truth.upper, rel=1e-6)
    assert shared.spent >= truth.lower
    # A later process, or this one, goes on where the file stands.
    with dpcal.budget(book=path) as later, pytest.raises(BudgetExceeded):
        StandardScaler(bounds=(-1, 1), epsilon=0.8).fit(X)
    assert later.spent == shared.spent
    assert main(["budget", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert told["neighboring_relation"] == "replace-special"
    assert told["runs"][0]["plan"]["event"]["type"] == "GaussianDpEvent"


@pytest.mark.slow
def test_two_processes_spend_no_more_than_the_total(tmp_path):
    """Another process and this one try eight charges at once, of which five fit."""
    path = tmp_path / "clinic.budget"
    BudgetBook(path, epsilon=TOTAL, delta=1e-6, neighboring_relation="replace-special")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    other = subprocess.Popen([sys.executable, "-c", SPEND, str(path)], **pipes)
    assert other.stdout.readline() == "ready\n"
    other.stdin.write("\n")
    other.stdin.flush()
    done = 0
    with dpcal.budget(book=path):
        for _ in range(4):
            with suppress(BudgetExceeded):
                charge(events.GaussianDpEvent(9.0), "replace-special")
                done += 1
    done += int(other.communicate(timeout=60)[0])
    assert other.returncode == 0
    book = BudgetBook(path)
    assert len(book.runs) == done == 5
    # Five Gaussian answers are one of a fifth of the variance.
    exact = epsilon(events.GaussianDpEvent(9.0 / 5**0.5), delta=1e-6)
    assert book.spent().upper == pytest.approx(exact, rel=1e-9)
    assert exact < TOTAL < epsilon(events.GaussianDpEvent(9.0 / 6**0.5), delta=1e-6)


@pytest.mark.slow
def test_the_best_of_many_runs_is_charged_as_that(tmp_path):
    path, (X, y) = tmp_path / "clinic.budget", records()
    model = LogisticRegression(epsilon=0.5, classes=[0, 1])
    with dpcal.budget(epsilon=2.0, delta=1e-6, book=path) as shared:
        search = PrivateSearch(model, {"steps": [3, 6]}, trials=6).fit(X, y)
    (run,) = BudgetBook(path).runs
    assert run.label == "PrivateSearch"
    assert run.plan.event == search.ledger_.event
    assert shared.spent == pytest.approx(float(search.epsilon_spent_), rel=1e-9)


def test_what_a_book_cannot_hold_is_refused_before_it_is_written(tmp_path):
    path = tmp_path / "clinic.budget"
    with pytest.raises(ValueError, match="a new one needs its total"):
        dpcal.budget(book=path)
    assert not path.exists()
    with pytest.raises(ValueError, match="epsilon and delta must be numbers, got None and 1e-06"):
        dpcal.budget(delta=1e-6)
    special = {"neighboring_relation": "replace-special"}
    shared = dpcal.budget(epsilon=1.0, delta=1e-6, book=path, **special)
    with pytest.raises(ValueError, match="epsilon must be that of budget book"):
        dpcal.budget(epsilon=2.0, book=path)
    with pytest.raises(UnsupportedEvent, match="'replace-special', and the run is for"):
        shared.pay(events.GaussianDpEvent(9.0), "add-or-remove-one")
    assert BudgetBook(path).runs == ()
