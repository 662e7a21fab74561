"""Holes that were there once are planted back into the code, and what looks for them finds each.

A probe is a test of this package or a search for bad neighbours. It passes on the code as it is,
and fails on the code with the hole.
"""

import contextlib
import importlib.util
import inspect
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest
from flint import ctx

import dpcal
from dpcal import calibrate, optim
from dpcal._internal import precision
from dpcal.adapters import stepwise
from dpcal.estimators import KMeans, base as estimators_base, search
from dpcal.optim import attacks
from dpcal.optim.boundary import book, oracle, store
from dpcal.optim.boundary.ledger import Admits, Ledger
from dpcal.optim.objectives import base, domains
from dpcal.tables import coding

TESTS = Path(__file__).parents[2]
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((120, 3)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
PLAN = calibrate.dpsgd(n=120, batch_size=40, steps=10, epsilon=2.0, delta=1e-4)

# -- holes


def frees_by_the_open_ledger(runs, ledger):
    """Completes a row by the ledger of the run that is open, whatever the row says."""
    end = "UPDATE runs SET ended = '2026', ledger = ? WHERE number = ?"
    return [(end, (ledger.to_json(), runs[0]["number"]))]


def rolls_back(self, state):
    self._oracle = stepwise.StepwiseOracle.continued(state)


@contextlib.contextmanager
def without_a_lock(bits):
    with ctx.workprec(bits):
        yield


def finite_records_of(X):
    table = np.asarray(X, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ValueError("X must be finite.")
    return table, np.ones(len(table), dtype=bool)


def read_off(name, given, labels, *, from_data):
    return np.unique(labels if given is None else given)


def many(self):
    return np.zeros(99, dtype=np.intp)


def kept_labels(self, rows, *, first):
    made = LEARN(self, rows, first=first)
    made.labels = made.predict(rows)
    return made


def told_cells_of(series, column, missing):
    for place, cell in enumerate(series.to_list()):
        if column.name == "age" and isinstance(cell, str) and "secret" in cell:
            raise ValueError(f"age must be a number, got {cell!r} in row {place}.")
    return CELLS(series, column, missing)


LEARN, CELLS = KMeans._learn, coding.cells_of

# -- probes


def of_tests(place, **given):
    """Return a test function as a probe, with the fixtures that it asks for."""

    def probe(request, folder):
        file, _, name = place.partition("::")
        spec = importlib.util.spec_from_file_location("probe", TESTS / file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # A part of its name is enough: other facts may be tested beside this one.
        (test,) = [each for full, each in vars(module).items() if name in full]
        asked = set(inspect.signature(test).parameters) - set(given)
        fixtures = {
            each: folder if each == "tmp_path" else request.getfixturevalue(each) for each in asked
        }
        test(**given, **fixtures)

    return probe


def of_search(run, **options):
    """Return a search for bad neighbours as a probe."""

    def probe(request, folder):
        found = attacks.replay_table(run, X, Y, price=False, seed=1, **options)
        assert all(each.holds for each in found), [str(each) for each in found if not each.holds]

    return probe


def threads_keep_their_precision(request, folder):
    together = Barrier(4)

    def work(bits):
        for _ in range(20):
            with precision.workprec(bits):
                with contextlib.suppress(Exception):
                    together.wait(timeout=0.01)
                assert ctx.prec == bits
        return True

    try:
        with ThreadPoolExecutor(4) as pool:
            assert all(pool.map(work, [64, 128, 256, 512]))
        assert ctx.prec == 53
    finally:
        ctx.prec = 53


def errors_tell_nothing(request, folder):
    columns = {"age": {"type": "number", "range": [0, 99]}}
    columns["sick"] = {"type": "class", "categories": ["no", "yes"]}
    told = set()
    for place in (5, 50):
        ages = ["40"] * 60
        ages[place] = "secret-4711"
        table = {"age": ages, "sick": ["no", "yes"] * 30}
        with pytest.raises(ValueError, match="age") as caught:
            dpcal.train(table, {"columns": columns}, target="sick", epsilon=1.0, delta=1e-6)
        told.add(str(caught.value))
    assert len(told) == 1, told


def logistic(table):
    return optim.dpsgd(optim.Logistic(*table, classes=[0, 1]), PLAN)


BOUNDARY = "optim/boundary/"
THREADS = f"{BOUNDARY}test_store.py::test_"
# For each hole, what looks for it, and what is planted: an owner, its attribute, and a value.
HOLES = {
    "1 a book refunds": (
        of_tests(
            f"{BOUNDARY}budget/test_book_stays_charged.py::"
            "test_a_run_that_was_killed_is_charged_for_what_its_file_holds"
        ),
        (book, "_completed", frees_by_the_open_ledger),
        (book, "read_ledger", lambda store: Ledger(4)),
    ),
    "2 workers are not charged": (
        of_tests("optim/test_budget.py::in_other_processes_are_refused"),
        (estimators_base.PrivateEstimator, "_is_elsewhere", lambda self: False),
    ),
    "3 exact scores of meta-estimators": (
        of_tests("estimators/test_scores.py::test_exact_scores_of_clusters_are_refused"),
        (estimators_base.PrivateEstimator, "_refuse_unpaid", lambda self: None),
    ),
    "4 warnings of hidden trials": (
        of_tests("estimators/test_search.py::test_warnings_"),
        (search, "_quiet", contextlib.nullcontext),
    ),
    "5 a ledger is rolled back": (
        of_tests("adapters/test_stepwise.py::test_a_guard_does_not_forget_what_it_released"),
        (stepwise.Guarded, "load_state_dict", rolls_back),
    ),
    "6 threads ask a stored run": (
        of_tests(f"{THREADS}answers_to_threads_are_in_the_file_before_they_leave", every=8),
        (oracle, "Lock", contextlib.nullcontext),
        (store, "RLock", contextlib.nullcontext),
    ),
    "7 a fork repeats noise": (
        of_tests(f"{THREADS}an_oracle_answers_in_the_process_that_made_it"),
        (Admits, "_check_process", lambda self: None),
    ),
    "8 threads share a precision": (
        threads_keep_their_precision,
        (precision, "workprec", without_a_lock),
    ),
    "9 one record fails a run": (of_search(logistic), (base, "records_of", finite_records_of)),
    "10 classes are read off labels": (
        of_tests(
            "optim/test_declared_domains.py::test_classes_are_declared_or_read_off_the_records_on_request",
            name="softmax",
        ),
        (domains, "declared", read_off),
    ),
    "11 records are not counted": (
        of_tests("adapters/test_stepwise.py::test_no_more_records_are_summed_than_were_drawn"),
        (stepwise.StepwiseOracle, "_batch", property(many, lambda *_: None)),
    ),
    "12 labels of clusters are kept": (
        of_search(lambda table: KMeans(3, bounds=(-4, 4), epsilon=4.0).fit(table[0])),
        (KMeans, "_learn", kept_labels),
    ),
    "12 errors tell of cells": (errors_tell_nothing, (coding, "cells_of", told_cells_of)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOLES)
def test_a_hole_that_is_planted_again_is_found(name, request, monkeypatch, tmp_path):
    for folder in ("as it is", "with the hole"):
        (tmp_path / folder).mkdir()
    probe, *patches = HOLES[name]
    probe(request, tmp_path / "as it is")
    for owner, attribute, planted in patches:
        monkeypatch.setattr(owner, attribute, planted, raising=False)
    # A test that fails, or an error that was not there before.
    with pytest.raises((Exception, pytest.fail.Exception)):
        probe(request, tmp_path / "with the hole")
