"""A budget adds up what runs cost together, and refuses the one that it does not cover."""

import contextlib
import copy
import multiprocessing
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest
from _cluster import two_workers
from joblib import parallel_backend
from sklearn.base import clone
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline

import dpcal
from dpcal.accountants import epsilon, events
from dpcal.errors import BudgetExceeded
from dpcal.estimators import LogisticRegression, StandardScaler, noisy_accuracy

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (400, 3))
Y = (X[:, 0] > 0).astype(int)
CLASSES = np.digitize(X[:, 0], [-0.3, 0.3])
MODEL = LogisticRegression(classes=[0, 1])
BAGS = BaggingClassifier(MODEL, n_estimators=4, bootstrap=False)


def test_cross_validation_counts_every_fit_and_every_score():
    with dpcal.budget(epsilon=3.0, delta=1e-6) as shared:
        model = LogisticRegression(epsilon=1.0, classes=[0, 1])
        scores = cross_val_score(model, X, Y, cv=3)
    assert len(scores) == 3
    entries = model.fit(X, Y).ledger_.entries
    one = events.GaussianDpEvent(sum(e.count / e.noise_multiplier**2 for e in entries) ** -0.5)
    fits = epsilon(events.SelfComposedDpEvent(one, 3), delta=1e-6)
    assert fits < shared.spent < fits * 1.1


@pytest.mark.slow
def test_a_grid_search_that_is_not_covered_says_so():
    grid = {"l2": [0.0, 0.1, 1.0]}
    model = LogisticRegression(epsilon=1.0, classes=[0, 1])
    with dpcal.budget(epsilon=2.0, delta=1e-6) as shared, warnings.catch_warnings():
        warnings.simplefilter("ignore", FitFailedWarning)
        warnings.simplefilter("ignore", UserWarning)
        with pytest.raises(BudgetExceeded, match="the total is"):
            GridSearchCV(model, grid, cv=2).fit(X, Y)
        assert 1.5 < shared.spent <= 2.0
    with dpcal.budget(epsilon=6.0, delta=1e-6) as enough:
        search = GridSearchCV(model, grid, cv=2).fit(X, Y)
    assert search.best_estimator_.epsilon_spent_ <= 1.0
    assert 2.0 < enough.spent < 6.0


def test_copies_in_other_processes_are_refused_and_those_after_the_budget_are_not(monkeypatch):
    """What they release could not be charged to a budget here."""
    shared = dpcal.budget(epsilon=30.0, delta=1e-6)
    with shared:
        sent = pickle.dumps(MODEL)
        here = pickle.loads(sent).fit(X, Y)  # in this process a copy is charged as the model is
        assert 0.9 < shared.spent <= 1.0
        there = pickle.loads(sent)
    later = pickle.dumps(here)
    monkeypatch.setattr("os.getpid", lambda: -1)
    refused = [there, copy.deepcopy(there), pickle.loads(pickle.dumps(there)), clone(there)]
    for model in refused:
        with pytest.raises(BudgetExceeded, match="sent here from a process with a budget"):
            model.fit(X, Y)
    with shared, pytest.raises(BudgetExceeded, match="opened in another process"):
        MODEL.fit(X, Y)
    assert pickle.loads(later).fit(X, Y).score(X, Y) > 0.5


def folds(model):
    """Return noisy scores of three folds, in workers."""
    options = {"cv": KFold(3), "n_jobs": 2, "error_score": "raise", "scoring": noisy_accuracy}
    return cross_val_score(model, X, Y, **options)


WORKED = {
    "one against the rest": lambda: OneVsRestClassifier(MODEL, n_jobs=2).fit(X, CLASSES),
    "bagging": lambda: clone(BAGS).set_params(n_jobs=2).fit(X, Y),
    "folds of a wrapped model": lambda: folds(OneVsRestClassifier(MODEL)),
    "folds of bags": lambda: folds(BAGS),
}


@pytest.fixture(scope="module")
def workers():
    """Return a function that puts joblib onto a backend; Dask has two workers."""
    with contextlib.ExitStack() as stack:
        started = {}

        def enter(backend):
            if not backend.startswith("dask"):
                return parallel_backend(backend)
            if backend not in started:
                made = two_workers(__name__, processes=backend == "dask")
                started[backend] = stack.enter_context(made)
            return parallel_backend("dask", client=started[backend])

        yield enter


NAMES = [*WORKED, "folds of a cached pipeline"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "names"),
    [
        ("loky", NAMES[::2]),
        ("threading", NAMES),
        ("dask", NAMES[2:3]),
        ("dask in threads", NAMES[:1]),
    ],
)
def test_fits_of_meta_estimators_in_workers_are_charged_or_refused(
    backend, names, tmp_path, workers
):
    """A meta-estimator clones the estimator in its worker."""

    def cached():
        steps = StandardScaler(bounds=(-4, 4)), MODEL
        pipeline = make_pipeline(*steps, memory=str(tmp_path))
        return cross_val_score(pipeline, X, Y, cv=KFold(2), n_jobs=2, error_score="raise")

    for name in names:
        work = WORKED.get(name, cached)
        with dpcal.budget(epsilon=90.0, delta=1e-6) as shared, workers(backend):
            if "thread" in backend:
                work()
                assert len(shared.charges) >= 3, name
            else:
                with pytest.raises(BudgetExceeded, match=r"another process|process with a budget"):
                    work()
                assert shared.spent == 0, name
    assert not [*tmp_path.rglob("output.pkl")] or "thread" in backend


def refusal(model):
    """Return what a model that was sent to this process is refused with."""
    try:
        return f"fitted: {model.fit(X, Y)}"
    except BudgetExceeded as told:
        return str(told)


@pytest.mark.slow
def test_fits_in_forks_are_refused(tmp_path):
    """A pool that is joined: one that an error ends, as joblib's, can wait for ever."""
    cached = make_pipeline(StandardScaler(bounds=(-4, 4)), MODEL, memory=str(tmp_path))
    with dpcal.budget(epsilon=90.0, delta=1e-6) as shared:
        pool = multiprocessing.get_context("fork").Pool(2)
        told = pool.map(refusal, [MODEL, BAGS, OneVsRestClassifier(MODEL), cached])
        pool.close()
        pool.join()
        assert shared.spent == 0
    assert all("sent here from a process with a budget" in each for each in told), told
    assert not [*tmp_path.rglob("output.pkl")]


def test_a_process_of_another_machine_with_the_same_number_is_another():
    """In containers, numbers of processes are small and often the same."""
    with dpcal.budget(epsilon=9.0, delta=1e-6):
        sent = pickle.dumps(MODEL)
    script = (
        f"import os, pickle; os.getpid = lambda: {os.getpid()}\n"
        "from dpcal.errors import BudgetExceeded\n"
        f"model = pickle.loads({sent!r})\n"
        "try: model.fit([[0.0], [1.0]] * 9, [0, 1] * 9); print('paid')\n"
        "except BudgetExceeded: print('refused')\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["refused"]


def test_a_cached_pipeline_is_charged_once_for_what_it_keeps(tmp_path):
    """The second fit has the scaler of the first one, and releases a model alone."""
    pipeline = make_pipeline(StandardScaler(bounds=(-1, 1)), MODEL, memory=str(tmp_path))
    with dpcal.budget(epsilon=90.0, delta=1e-6) as shared:
        means = [clone(pipeline).fit(X, Y)[0].mean_ for _ in range(2)]
        assert len(shared.charges) == 3
    assert (means[0] == means[1]).all()
