"""A budget whose charges are in a file: what several processes fit adds up, or is refused."""

import dataclasses
import json
import sqlite3
import tomllib
from contextlib import closing

import numpy as np
import pytest
from _tree import DATA

import dpcal
from dpcal import calibrate, optim
from dpcal.accountants import epsilon, events
from dpcal.commands.cli import main
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.estimators import LogisticRegression, StandardScaler
from dpcal.optim import BudgetBook
from dpcal.optim.attacks import replay

X = np.random.default_rng(0).uniform(-1, 1, (300, 2))
Y = (X[:, 0] > 0).astype(int)
PLAN = calibrate.dpsgd(n=300, batch_size=100, steps=5, epsilon=0.3, delta=1e-7)
TABLE = {"age": np.linspace(20, 90, 300)}
SCHEMA = {"columns": {"age": {"type": "number", "range": [0, 120]}}}


def logistic(n=300):
    return optim.Logistic(X[:n], Y[:n], classes=[0, 1])


def gaussian(fitted):
    """The one Gaussian answer that costs as much as what a model was fitted from."""
    spent = sum(entry.count / entry.noise_multiplier**2 for entry in fitted.ledger_.entries)
    return events.GaussianDpEvent(spent**-0.5)


def test_fits_are_rows_of_the_book_and_cost_their_composition(tmp_path, capsys):
    path = tmp_path / "clinic.budget"
    with dpcal.budget(epsilon=1.0, delta=1e-6, book=path) as shared:
        scaler = StandardScaler(bounds=(-1, 1), epsilon=0.3).fit(X)
        model = LogisticRegression(epsilon=0.5, classes=[0, 1], steps=5).fit(X, Y)
        with pytest.raises(BudgetExceeded, match="no record was touched"):
            LogisticRegression(epsilon=0.9, classes=[0, 1], steps=5).fit(X, Y)
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
    assert told["runs"][0]["plan"]["optimizer"] == "StandardScaler"


def test_a_book_without_a_relation_takes_that_of_its_first_charged_run(tmp_path, capsys):
    """So the line of the page on the boundary makes a book for all that can be charged."""
    for relation in ("add-or-remove-one", "replace-special"):
        path, total = tmp_path / relation, {"epsilon": 3.0, "delta": 1e-6}
        book = BudgetBook(path, **total)
        assert book.neighboring_relation is None
        assert main(["budget", str(path)]) == 0
        assert "the relation of its first run" in capsys.readouterr().out
        plans = {
            "add-or-remove-one": PLAN,
            "replace-special": dataclasses.replace(PLAN, neighboring_relation="replace-special"),
        }
        plan, other = plans.pop(relation), *plans.values()
        # A run that ends without an answer decides nothing.
        book.oracle(logistic(), other).close()
        assert book.neighboring_relation is None
        optim.dpsgd(logistic(), plan, store=book)
        assert BudgetBook(path, **total).neighboring_relation == relation
        told = rf"neighboring_relation='{relation}'.*--neighboring-relation {relation}"
        with pytest.raises(UnsupportedEvent, match=told):
            optim.dpsgd(logistic(), other, store=book)
        with pytest.raises(ValueError, match="must be that of budget book"):
            BudgetBook(path, neighboring_relation=other.neighboring_relation)
        with dpcal.budget(book=path) as shared:
            if relation == "replace-special":
                StandardScaler(bounds=(-1, 1), epsilon=0.3).fit(X)
            else:
                with pytest.raises(UnsupportedEvent, match="'add-or-remove-one', and the run is"):
                    StandardScaler(bounds=(-1, 1), epsilon=0.3).fit(X)
        assert shared.spent == book.spent().upper


def test_a_refused_run_leaves_a_book_without_records(tmp_path):
    path = tmp_path / "clinic.budget"
    book = BudgetBook(path, epsilon=3.0, delta=1e-6)
    told = {"epsilon": 5.0, "delta": 1e-9, "budget": path}
    with pytest.raises(BudgetExceeded):
        dpcal.release(TABLE, SCHEMA, ["count age > 50"], **told)
    with pytest.raises(ValueError, match="n=300"):
        optim.dpsgd(logistic(200), PLAN, store=BudgetBook(path, records=X))
    BudgetBook(path, records=X).oracle(logistic(), PLAN).close()
    assert book.records == book.runs[1:] == ()
    dpcal.release(TABLE, SCHEMA, ["count age > 50"], **{**told, "epsilon": 0.5})
    assert len(book.records) == 1
    assert book.neighboring_relation == "replace-special"
    with pytest.raises(ValueError, match="records must be those that budget book"):
        BudgetBook(path, records=X)
    # The first answer, and not the opening, enters records where an optimizer has the book.
    other = BudgetBook(tmp_path / "other", epsilon=3.0, delta=1e-6)
    oracle = BudgetBook(other.path, records=X).oracle(logistic(), PLAN)
    assert other.records == ()
    oracle.gradient(np.zeros(3), "gradient")
    assert [name for name, _ in other.records] == ["arrays"]


def test_an_attack_costs_nothing_of_budgets_and_books(tmp_path):
    """The recorded run is not released; it was charged three times, and then called random."""
    Z = X.copy()
    Z[0] *= -1
    book = BudgetBook(tmp_path / "clinic.budget", epsilon=50.0, delta=1e-6)
    inside = []

    def run(table):
        own = optim.Logistic(table, Y, classes=[0, 1])
        with dpcal.budget(epsilon=9.0, delta=1e-6) as within:
            optim.dpsgd(own, PLAN, learning_rate=0.1)
        inside.append(within.spent)
        with dpcal.budget(book=book.path):
            optim.dpsgd(own, PLAN, learning_rate=0.1)
        return optim.dpsgd(own, PLAN, store=book, learning_rate=0.1).w

    with dpcal.budget(epsilon=3.0, delta=1e-6) as shared:
        found = replay(run, X, Z)
        assert found.holds
        assert found.answers == 15
        assert shared.spent == 0
        # Budgets that the run opens itself are charged as ever.
        assert inside == pytest.approx([PLAN.price(1e-6).upper] * len(inside))
        run(X)
    assert shared.spent > PLAN.price(1e-6).upper
    assert [each.state for each in book.runs] == ["charged whole", "all 5 planned answers"]
    # What does not fit is refused under attack too, as it is without.
    small = BudgetBook(tmp_path / "small", epsilon=0.1, delta=1e-6)
    with pytest.raises(BudgetExceeded):
        replay(lambda table: optim.dpsgd(logistic(), PLAN, store=small), X, Z)
    assert small.runs == ()


def test_a_run_that_no_theorem_covers_costs_nothing():
    with dpcal.budget(epsilon=2.0, delta=1e-31) as shared:
        plan = dataclasses.replace(PLAN, delta=1e-31)
        with pytest.raises(UnsupportedEvent):
            optim.dpsgd(logistic(), plan)
        with pytest.raises(UnsupportedEvent):
            StandardScaler(bounds=(-1, 1), delta=1e-31).fit(X)
        assert shared.spent == 0


def test_two_runs_that_are_open_at_once_spend_no_more_than_there_is():
    """Each would fit when it is opened; the second is refused at its first answer."""
    with dpcal.budget(epsilon=0.4, delta=1e-7) as shared:
        oracles = [optim.PrivateOracle(logistic(), PLAN) for _ in range(2)]
        with pytest.raises(ValueError, match="shape"):
            oracles[0].gradient(np.zeros(7), "gradient")
        assert shared.spent == 0
        oracles[0].gradient(np.zeros(3), "gradient")
        with pytest.raises(BudgetExceeded):
            oracles[1].gradient(np.zeros(3), "gradient")
        assert oracles[1].ledger.answers == 0
        assert shared.spent == pytest.approx(PLAN.price().upper)


DAMAGES = tomllib.loads((DATA / "damaged_books.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("statement", DAMAGES["statements"])
def test_a_damaged_book_is_one_sentence(tmp_path, statement, capsys):
    path = tmp_path / "clinic.budget"
    book = BudgetBook(path, epsilon=3.0, delta=1e-6)
    optim.dpsgd(logistic(), PLAN, store=book)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("PRAGMA ignore_check_constraints = 1")
        file.execute(statement)

    def use():
        found = BudgetBook(path)
        found.spent()
        found.to_dict()
        optim.dpsgd(logistic(), PLAN, store=found)

    with pytest.raises((ValueError, OSError)) as caught:
        use()
    assert str(path) in str(caught.value) or "budget book" in str(caught.value)
    assert str(caught.value).endswith(".")
    assert len(str(caught.value)) < 400
    assert main(["budget", str(path)]) in (0, 1, 2)
    assert "Traceback" not in capsys.readouterr().err


def test_what_a_book_cannot_hold_is_refused_before_it_is_written(tmp_path):
    path = tmp_path / "clinic.budget"
    with pytest.raises(ValueError, match="a new one needs its total"):
        dpcal.budget(book=path)
    assert not path.exists()
    with pytest.raises(TypeError, match="epsilon must be a finite number > 0, got None"):
        dpcal.budget(delta=1e-6)
    special = {"neighboring_relation": "replace-special"}
    shared = dpcal.budget(epsilon=1.0, delta=1e-6, book=path, **special)
    with pytest.raises(ValueError, match="epsilon must be that of budget book"):
        dpcal.budget(epsilon=2.0, book=path)
    with pytest.raises(UnsupportedEvent, match="'replace-special', and the run is for"):
        shared.pay(events.GaussianDpEvent(9.0), "add-or-remove-one")
    assert BudgetBook(path).runs == ()
