"""Whether a run fails does not depend on one record: odd ones are blank, and nobody is told."""

import numpy as np
import pytest
from _built_plans import plan_of, query

from dpcal.optim import KAN, MLP, FromGradients, Logistic, PrivateOracle, Softmax, Squared, minimax
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.objectives.contributions import hessian_products, hessians
from dpcal.optim.objectives.robust import Cauchy, Huber, Sigmoid, Welsch
from tests._bad_records import CELLS, EXTREMES, LABELS, strict, with_cell, with_labels

N, D = 12, 3
RNG = np.random.default_rng(5)
X = RNG.standard_normal((N, D))
Y = np.tile([0, 1], N // 2)
T = RNG.standard_normal(N)
CLASSES = {"classes": [0, 1]}


def _fair(X, y, groups=Y, **options):
    return minimax.FairClassification(
        X, y, groups, dual_l2=0.5, shares=[0.5, 0.5], classes=(0, 1), **options
    )


def _area(X, y):
    return minimax.AUCMaximization(X, y, positive_share=0.4, classes=(0, 1))


def _many(X, y):
    """More classes than have a kernel."""
    return Softmax(X, y, classes=np.r_[0, 1, 10:90])


LABELLED = {
    "logistic": lambda X, y: Logistic(X, y, l2=0.1, **CLASSES),
    "weighted": lambda X, y: Logistic(X, y, class_weights={0: 1.0, 1: 3.0}),
    "sigmoid": lambda X, y: Sigmoid(X, y, fit_intercept=False, **CLASSES),
    "softmax": lambda X, y: Softmax(X, y, **CLASSES),
    "softmax of many": _many,
    "mlp": lambda X, y: MLP(X, y, width=3, **CLASSES),
    "kan": lambda X, y: KAN(X, y, width=3, **CLASSES),
    "fair": _fair,
    "fair, blocks": lambda X, y: _fair(X, y, block_shares=(1.0, 1.0)),
    "area": _area,
}
NUMBERED = {
    "squared": Squared,
    "huber": Huber,
    "cauchy": Cauchy,
    "welsch": Welsch,
    "shift": lambda X, y: minimax.CovariateShift(X, y, dual_l2=1.0),
    "custom": lambda X, y: FromGradients(
        lambda w, rows: [list(X[row]) for row in rows],
        n=N,
        dimension=D,
        loss=lambda w, rows: [np.nan if isinstance(c := X[r][r % D], list) else c for r in rows],
    ),
}


UNLABELLED = ("custom",)
ASKED = {"gradient": "gradient", "gradient difference": "difference", "scalar": "scalar"}
ASKED |= {"gradient norm": "norm"}
PLAN = plan_of(*(query(kind, max_norm=0.7) for kind in ASKED), n=N)


def _sums(objective, rows):
    """Return all sums about rows, as one vector."""
    w, v = np.random.default_rng(0).standard_normal((2, objective.dimension))
    asked = [
        lambda: objective.clipped_sum(w, rows, 0.7),
        lambda: objective.clipped_difference_sum(w, v, rows, 0.7),
        lambda: [objective.clipped_loss_sum(w, rows, 0.7)],
        lambda: hessian_products(objective, rows, w, v).clipped(np.inf),
        lambda: hessian_products(objective, rows, w, v).clipped(0.7),
    ]
    if hasattr(objective, "embedded") and not objective.l2:
        small = objective.embedded(np.ones((2, objective.dimension)))
        asked.append(lambda: small.clipped_sum(w[:2], rows, 0.7))
        asked.append(lambda: [small.clipped_loss_sum(w[:2], rows, 0.7)])
    if objective.dimension < 100:
        asked.append(lambda: hessians(objective, rows, w).clipped(0.7))
    found = []
    for ask in asked:
        try:
            found.append(np.ravel(ask()))
        except (TypeError, NotImplementedError):  # it has no such sums
            found.append(np.empty(0))
    return np.concatenate(found)


def _answers(objective):
    """Return an oracle's answers about all records."""
    w, v = np.random.default_rng(1).standard_normal((2, objective.dimension))
    given = []
    objective.checked = True
    oracle = PrivateOracle(objective, PLAN, seed=3)
    for kind, method in ASKED.items():
        at = (w, v) if method == "difference" else (w,)
        given.append(np.ravel(getattr(oracle, method)(*at, kind)))
    return np.concatenate(given)


def _same_as_blank(build, bad, row):
    """Hold that an objective of a bad record is that of a blank one."""

    with strict():
        objective = build(*bad)
        answers = _answers(objective)
    assert not _sums(objective, np.array([row])).any()
    others = np.delete(np.arange(N), row)
    np.testing.assert_allclose(
        _sums(objective, np.arange(N)), _sums(objective, others), rtol=1e-12, atol=1e-12
    )
    assert np.isfinite(objective.loss(np.zeros(objective.dimension)))
    return answers


def _all_blank(build, bad, row=4):
    """Hold that objectives of bad records are all the one of a blank record."""
    told = [_same_as_blank(build, each, row) for each in bad]
    assert all((each == told[0]).all() for each in told)


@pytest.mark.parametrize("name", [*LABELLED, *NUMBERED])
def test_a_record_with_a_cell_that_is_no_number_is_blank(name):
    y = Y if name in LABELLED else T
    for row, cells in ((0, CELLS[::2]), (7, CELLS[1::2])):
        tables = [with_cell(X, row, cell) for cell in (np.nan, *cells)]
        tables.append(with_cell(X, row, np.nan).tolist())
        _all_blank({**LABELLED, **NUMBERED}[name], [(table, y) for table in tables], row)


@pytest.mark.parametrize("name", LABELLED)
def test_a_record_with_a_label_of_no_class_is_blank(name):
    bad = [(X, y) for label in LABELS for y in with_labels(Y, 4, label)]
    _all_blank(LABELLED[name], [(with_cell(X, 4, np.nan), Y), *bad])


@pytest.mark.parametrize("name", [each for each in NUMBERED if each not in UNLABELLED])
def test_a_record_with_a_target_that_is_no_number_is_blank(name):
    bad = [(X, with_cell(T, 4, cell)) for cell in CELLS]
    _all_blank(NUMBERED[name], [(with_cell(X, 4, np.nan), T), *bad])


def test_a_record_of_a_group_that_there_is_not_is_blank():
    bad = [(X, Y, groups) for group in LABELS for groups in with_labels(Y, 4, group)]
    _all_blank(_fair, [(with_cell(X, 4, np.nan), Y, Y), *bad])


@pytest.mark.parametrize("value", EXTREMES)
@pytest.mark.parametrize("name", [*LABELLED, *NUMBERED])
def test_extreme_numbers_raise_no_warning(name, value):
    build, y = {**LABELLED, **NUMBERED}[name], Y if name in LABELLED else T
    huge = X.copy()
    huge[3] = value
    tables = [(huge, y), (with_cell(X, 3, value), y)]
    tables += [(X, with_cell(T, 3, value))] if name in NUMBERED else []
    for table in tables:
        with strict():
            told = _answers(build(*table))
        assert np.isfinite(told).all()
        assert told.shape == _answers(build(X, y)).shape


def test_labels_are_counted_whatever_one_record_says():
    plan = plan_of(query("labels", noise_multiplier=0.5, threshold=3.0), n=N, delta=1e-3)
    for usual in (Y, Y.astype(bool), np.array(["no", "yes"])[Y]):
        expected = np.unique(usual)
        for label in (*LABELS, "far longer than the others"):
            changed = usual.astype(object)
            changed[3] = label
            with strict():
                found = PrivateChoices(changed, plan, seed=0).labels("labels")
            assert found.tolist() == expected.tolist()
            assert found.dtype == expected.dtype
