"""What spends counts every spend of eight threads, and a copy of it has nothing more to spend."""

import ast
import contextlib
import copy
import pickle
import re
import tomllib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from _built_plans import plan_of, query
from _modules import paths
from _tree import DATA
from contracts._runs import together
from saddles import Trigonometric

from dpcal import optim
from dpcal._internal.spending import Spender
from dpcal.accountants import Account, Odometer, PrivacyFilter, epsilon, events
from dpcal.adapters.ranks import Alone, RankedOracle
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.optim.account import Charge
from dpcal.optim.boundary.choices import Cells, PrivateChoices, PrivateTotals
from dpcal.optim.boundary.store import stored
from dpcal.optim.budget import Budget
from dpcal.optim.second_order.oracle import SecondOrderOracle

THREADS, ALLOWED = 8, 6
ONE = events.GaussianDpEvent(20.0)
OBJECTIVE = optim.Logistic(np.eye(4)[:, :2], [0, 1, 0, 1], classes=[0, 1])
ORIGIN = np.zeros(OBJECTIVE.dimension)
QUERY = query(noise_multiplier=20.0, count=ALLOWED)
PLAN = plan_of(QUERY, n=4, delta=1e-6, optimizer="noisy_gd")
LABELS = query("labels", noise_multiplier=2.0, threshold=12.0, count=ALLOWED)
TOTALS = replace(QUERY, name="stay", kind="total")
HESSIANS = replace(QUERY, name="products", kind="hessian vector")


@dataclass
class Driven:
    """An object that spends, how it spends once, and how many spends it has counted."""

    spender: Any
    spend: Any
    counted: Any
    allowed: float = ALLOWED


def asked(oracle, ask):
    """Return what asks an oracle; its ledger counts."""
    return Driven(oracle, lambda: ask(oracle), lambda: oracle.ledger.answers)


def a_gradient(oracle):
    oracle.gradient(ORIGIN, "gradient")


def a_batch(oracle):
    rows = oracle.draw()
    oracle.add(np.ones((len(rows), 2)))
    oracle.answer()


def filtered(kind):
    budget = PrivacyFilter(epsilon=1.0, delta=1e-6, kind=kind)
    cost = budget.cost(ONE)
    return Driven(
        budget, lambda: budget.spend(ONE), lambda: round(budget.spent / cost), budget.budget // cost
    )


def metered():
    odometer = Odometer(delta=1e-6, orders=[4.0])
    other = Odometer(delta=1e-6, orders=[4.0])
    other.spend(ONE)
    return Driven(
        odometer,
        lambda: odometer.spend(ONE),
        lambda: round(odometer.spent[4.0] / other.spent[4.0]),
        np.inf,
    )


def accounted():
    account = Account()
    return Driven(account, lambda: account.compose(ONE), account.__len__, np.inf)


def recorded():
    ledger = optim.Ledger.of(PLAN)
    return Driven(ledger, lambda: ledger.record(QUERY.with_count(1)), lambda: ledger.answers)


def budgeted(budget):
    """Six of these answers cost less than the budget, and seven more."""
    return Driven(
        budget,
        lambda: budget.pay(ONE, "replace-special"),
        lambda: len(budget.charges),
    )


def total():
    """Return an epsilon that so many answers cost, and one more does not."""
    return epsilon(events.SelfComposedDpEvent(ONE, ALLOWED), delta=1e-6).upper * (1 + 1e-9)


def book_in(folder):
    return optim.BudgetBook(folder / "book", epsilon=total(), delta=1e-6)


def charged(folder):
    book = book_in(folder)
    charge = Charge(
        optimizer="x", event=ONE, epsilon=0.3, delta=1e-6, neighboring_relation="replace-special"
    )
    return Driven(book, lambda: book.charge(charge), lambda: len(book.runs))


def chosen():
    choices = PrivateChoices(np.repeat(["a", "b"], 50), replace(PLAN, n=100, queries=(LABELS,)))
    return asked(choices, lambda it: it.labels("labels"))


def totalled():
    cells = {"stay": Cells(np.array([0, 1, 1, 0]), 2)}
    totals = PrivateTotals(replace(PLAN, queries=(TOTALS,)), cells)
    return asked(totals, lambda it: it.totals("stay"))


def curved():
    plan = replace(PLAN, optimizer="gauss_psgd", queries=(HESSIANS,), epsilon=99.0)
    oracle = SecondOrderOracle(Trigonometric(np.eye(4)[:, :2]), plan)
    return asked(oracle, lambda it: it.hessian_vector(np.zeros(2), np.ones(2), "products"))


SPENDERS = {
    "PrivacyFilter": lambda folder: filtered("gdp"),
    "PrivacyFilter, renyi": lambda folder: filtered("renyi"),
    "Odometer": lambda folder: metered(),
    "Account": lambda folder: accounted(),
    "Ledger": lambda folder: recorded(),
    "Budget": lambda folder: budgeted(Budget(epsilon=total(), delta=1e-6)),
    "Budget, in a book": lambda folder: budgeted(Budget(book=book_in(folder))),
    "BudgetBook": charged,
    "PrivateOracle": lambda folder: asked(optim.PrivateOracle(OBJECTIVE, PLAN), a_gradient),
    "SecondOrderOracle": lambda folder: curved(),
    "PrivateOracle, stored": lambda folder: asked(
        stored(folder / "run.db", OBJECTIVE, PLAN), a_gradient
    ),
    "PrivateOracle, booked": lambda folder: asked(
        book_in(folder).oracle(OBJECTIVE, PLAN), a_gradient
    ),
    "PrivateOracle, both": lambda folder: asked(
        book_in(folder).with_store(folder / "run.db").oracle(OBJECTIVE, PLAN), a_gradient
    ),
    "PrivateChoices": lambda folder: chosen(),
    "PrivateTotals": lambda folder: totalled(),
    "StepwiseOracle": lambda folder: asked(StepwiseOracle(PLAN, dimension=2), a_batch),
    "RankedOracle": lambda folder: asked(
        RankedOracle(PLAN, Alone(), {"w": (2,)}, lambda: b"w", store=folder / "run.db"), a_batch
    ),
}

METHODS = {"spend", "pay", "charge", "record", "compose", "ledger"}


def classes_of_the_package():
    """Yield the classes of the package, each with its bases and what it defines."""
    for path in paths().values():
        tree = ast.parse(path.read_text() if path.suffix == ".py" else "")
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                bases = " ".join(map(ast.unparse, node.bases))
                named = {*re.findall(r"\w+", bases)}
                yield node.name, named, {getattr(each, "name", "") for each in node.body}


def test_every_class_that_spends_is_driven_here():
    found = list(classes_of_the_package())
    spending = {name for name, _, own in found if own & METHODS} | {"Spender"}
    while more := {name for name, bases, _ in found if bases & spending} - spending:
        spending |= more
    driven = {name.split(",")[0] for name in SPENDERS}
    others = tomllib.loads((DATA / "other_spenders.toml").read_text(encoding="utf-8"))
    assert spending - {"Spender"} == driven | set(others)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPENDERS)
def test_eight_threads_spend_no_more_than_there_is_and_all_of_it_is_counted(name, tmp_path):
    for trial in range(4):
        (folder := tmp_path / str(trial)).mkdir()
        driven, given = SPENDERS[name](folder), []
        times = ALLOWED if np.isinf(driven.allowed) else int(driven.allowed)

        def work(spend=driven.spend, given=given, times=times):
            for _ in range(times):
                with contextlib.suppress(Exception):  # refused
                    spend()
                    given.append(1)

        together(THREADS, work)
        assert len(given) <= driven.counted() <= driven.allowed
        if np.isinf(driven.allowed):
            assert driven.counted() == THREADS * times


def copies(thing):
    """Yield what copies of an object are, or None for those that are refused."""
    for copied in (copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))):
        found = [None]
        with contextlib.suppress(TypeError):
            found = [copied(thing)]
        yield found[0]


@pytest.mark.parametrize("name", SPENDERS)
def test_a_copy_is_refused_or_shares_the_account(name, tmp_path):
    driven = SPENDERS[name](tmp_path)
    driven.spend()
    for other in copies(driven.spender):
        if isinstance(driven.spender, Spender):
            assert other is None
            with pytest.raises(TypeError, match="must not be copied or pickled"):
                copy.copy(driven.spender)
        elif isinstance(driven.spender, Account | optim.Ledger):
            # These are records and not budgets: a copy holds what was spent.
            assert other is not None
            assert other.event == driven.spender.event
        elif isinstance(driven.spender, optim.BudgetBook):
            assert len(other.runs) == len(driven.spender.runs) == 1
        else:
            assert other is driven.spender
    assert driven.counted() == 1
