"""Bad neighbours are looked for wherever records are used: nothing is found that one decides."""

import contextlib
import importlib
import io
from unittest import mock

import numpy as np
import pytest
from _answers import plan_for, query
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import dpcal
from dpcal import calibrate, estimators, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.commands.cli import main
from dpcal.optim import attacks
from dpcal.optim.boundary import choices as choices_module
from dpcal.optim.boundary.choices import PrivateChoices
from dpcal.optim.boundary.ledger import Admits

N, D = 120, 3
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((N, D)), -3, 3)
Y = (X[:, 0] > 0).astype(int)


def check_search(run, targets, trials):
    """Refuse a run in which a search finds a bad neighbour, or in which no record moves a sum."""
    shown = attacks.replay_table(run, X, targets, price=False, seed=1, trials=trials)
    assert len(shown) > 7 + trials
    for found in shown:
        assert found.holds, str(found)
    assert any(found.moved for found in shown)


# -- estimators

WIDE = {"bounds": (-4, 4), "epsilon": 4.0}
LEARNED = {"bounds": "learn", "epsilon": 40.0}
TARGETS = {**WIDE, "target_bounds": (-9, 9)}
FEW = {"classes": [0, 1], "steps": 5}
WHOLE = FunctionTransformer(np.round)

ALONE = {
    "scaler": estimators.StandardScaler(**WIDE),
    "scaler, learned": estimators.StandardScaler(**LEARNED),
    "quantiles": estimators.QuantileTransformer(n_quantiles=3, **WIDE),
    "clipper": estimators.Clipper(quantiles=(0.1, 0.8), **WIDE),
    "clipper, learned": estimators.Clipper(**LEARNED),
    "clipper, declared": make_pipeline(
        estimators.Clipper(quantiles=None, bounds=(-1, 1)), estimators.StandardScaler(**WIDE)
    ),
    "imputer": estimators.SimpleImputer(**WIDE),
    "imputer, learned": estimators.SimpleImputer(**LEARNED),
    "imputer, median": estimators.SimpleImputer(strategy="median", **WIDE),
    "imputer, marked": estimators.SimpleImputer(missing_values=X[3, 0], **WIDE),
    "imputer, constant": make_pipeline(
        estimators.SimpleImputer(strategy="constant"), estimators.StandardScaler(**WIDE)
    ),
    "categories": make_pipeline(WHOLE, estimators.OneHotEncoder(epsilon=9.0)),
    "pca": estimators.PCA(**WIDE),
    "kmeans": estimators.KMeans(3, **WIDE),
}
OF_NUMBERS = {
    "line": estimators.LinearRegression(solver="statistics", **TARGETS),
    "line, gradient": estimators.LinearRegression(solver="gradient", **TARGETS),
    "line, learned": estimators.LinearRegression(target_bounds="learn", **LEARNED),
    "ridge": estimators.Ridge(solver="statistics", **TARGETS),
}
OF_LABELS = {
    "categories, declared": make_pipeline(
        WHOLE,
        estimators.OneHotEncoder(categories=[[-1, 0, 1]] * D),
        estimators.LogisticRegression(**FEW),
    ),
    "logistic": estimators.LogisticRegression(**FEW),
    "logistic, learned": estimators.LogisticRegression(epsilon=20.0, steps=5),
    "logistic, bounds learned": estimators.LogisticRegression(**LEARNED, **FEW),
    "search": estimators.PrivateSearch(estimators.LogisticRegression(**FEW), {"steps": [5, 10]}),
}
OF_NAMES = {"logistic, names": estimators.LogisticRegression(classes=["no", "yes"], steps=5)}
CASES = {
    name: (model, targets)
    for models, targets in (
        (ALONE, None),
        (OF_NUMBERS, np.clip(2 * X[:, 0], -4, 4)),
        (OF_LABELS, Y),
        (OF_NAMES, np.where(Y == 1, "yes", "no")),
    )
    for name, model in models.items()
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_search_finds_nothing_in_an_estimator(name):
    model, targets = CASES[name]

    def fit(table):
        made = clone(model)
        if name == "search":
            made._seed = 0
        return made.fit(*table)

    # Each kind of neighbour, and few mixtures of them by default.
    check_search(fit, targets, trials=2)


# -- where there is neither an optimizer nor an estimator

SAMPLED = calibrate.dpsgd(n=N, batch_size=40, steps=10, epsilon=2.0, delta=1e-4)
CORRELATED = calibrate.correlated_dpsgd(
    LambdaCGD(10, 0.5), n=N, batch_size=N, sampler="full", epsilon=2.0, delta=1e-4
)
LABELS = query("labels", "labels", max_norm=1.0, threshold=12.0)
MEDIANS = query("medians", "selection")
CUTS = [-4.0, 0.0, 4.0]


def guarded(plan):
    """A training loop of one's own, whose gradients go through a guard."""

    def run(table):
        rows = np.clip(np.nan_to_num(table[0], posinf=0, neginf=0), -1e6, 1e6)
        signs = np.where(table[1] == 1, 1.0, -1.0)
        guard, w = StepwiseOracle(plan, dimension=D), np.zeros(D)
        while guard.remaining("gradient"):
            batch = guard.draw()
            slopes = -signs[batch] / (1 + np.exp(np.clip(signs[batch] * (rows[batch] @ w), -9, 9)))
            for piece in np.array_split(np.arange(len(batch)), 2):
                guard.add(slopes[piece, np.newaxis] * rows[batch][piece])
            w = w - 0.5 * guard.answer()
        return w, guard.ledger

    return run


def opened(records, asked):
    return PrivateChoices(records, plan_for(asked, n=N, epsilon=99.0, delta=1e-6))


def chosen(asked):
    """Labels that are frequent, or medians between cuts."""

    def run(table):
        if asked is LABELS:
            return opened(table[1], asked).labels("labels")
        rows = np.nan_to_num(table[0], posinf=1e300, neginf=-1e300)
        made = opened(rows, asked)
        return [made.quantiles(j, CUTS, "medians") for j in range(D)]

    return run


def trained(loss):
    """Everything that ``dpcal train`` shows and writes, but the keyed digest and the date."""
    number = {"type": "number", "missing": "blank"}
    columns = {f"x{j}": {**number, "range": [-4, 4]} for j in range(D)}
    columns["y"] = {**number, "range": [-2, 2]}
    if loss == "logistic":
        columns["y"] = {"type": "class", "categories": ["0", "1"], "unknown": "blank"}
        columns["y"]["missing"] = "blank"

    def run(table):
        frame = {f"x{j}": table[0][:, j] for j in range(D)} | {"y": table[1]}
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            given = {"epsilon": 4.0, "delta": 1e-4, "settings": {"epochs": 2}, "test_fraction": 0.0}
            found = dpcal.train(frame, {"columns": columns}, target="y", loss=loss, **given)
            print(found)
        told = {**found.document, "data": {**found.document["data"], "fingerprint": None}}
        return {**told, "written": None}, found.model.weights, said.getvalue()

    return run


DOORS = {
    "guard": guarded(SAMPLED),
    "guard, correlated": guarded(CORRELATED),
    "labels": chosen(LABELS),
    "medians": chosen(MEDIANS),
    "train, classes": trained("logistic"),
    "train, numbers": trained("squared"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DOORS)
def test_a_search_finds_nothing(name):
    check_search(DOORS[name], Y, trials=8)


@pytest.mark.filterwarnings("ignore")
def test_a_guard_of_torch_betrays_nobody():
    torch = pytest.importorskip("torch")
    guards = importlib.import_module("dpcal.adapters.torch")

    def loss(said, label):
        return torch.nn.functional.binary_cross_entropy_with_logits(said[:, 0], label)

    def run(table):
        torch.manual_seed(0)
        model = torch.nn.Linear(D, 1)
        rows = torch.tensor(np.clip(np.nan_to_num(table[0]), -9, 9), dtype=torch.float32)
        data = torch.utils.data.TensorDataset(rows, torch.tensor(table[1] == 1).float())
        guard = guards.Guard(model, SAMPLED, loss=loss)
        steps = torch.optim.SGD(model.parameters(), lr=0.5)
        for inputs, targets in guard.loader(data):
            if guard.backward(inputs, targets):
                steps.step()
        return model.weight.detach().numpy()

    check_search(run, Y, trials=8)


def test_a_search_has_as_many_mixtures_as_it_is_given(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    plan.write_text(SAMPLED.to_json())
    words = ["attack", "replay", "--plan", str(plan), "--seed", "1"]
    for given, mixtures in (([], 8), (["--trials", "18"], 18)):
        assert main([*words, *given]) == 0
        assert capsys.readouterr().out.count("mixture") == mixtures
    assert main([*words, "--trials", "0"]) == 2
    assert "trials must be" in capsys.readouterr().err


def test_a_value_beyond_all_others_is_tried_wherever_the_largest_one_is():
    """A run that tells the largest values is found by the neighbour that is made for it."""

    def run(table):
        return optim.dpsgd(optim.Logistic(*table, classes=[0, 1]), SAMPLED), table[0].max(axis=0)

    row = int(X[:, 0].argmin())  # which holds no largest value
    shown = attacks.replay_table(run, X, Y, row=row, price=False, seed=1, trials=1)
    (beyond,) = (each for each in shown if each.label.startswith("beyond"))
    assert beyond.violations == {"release"}


def test_labels_differ_in_the_pairs_that_are_made_for_it_alone():
    for pair in attacks.neighbours(X, Y):
        (_, first), (_, second) = pair.first, pair.second
        assert (first != second).any() == (pair.label in ("relabelled", "short", "empty group")), (
            pair.label
        )


def test_what_is_found_is_shrunk_to_the_cell_that_does_it():
    def refusing(table):
        if np.isnan(table[0][:, 1]).any():
            raise ValueError("column 1 must be known.")
        return optim.dpsgd(
            optim.Logistic(np.clip(table[0], -9, 9), table[1], classes=[0, 1]), SAMPLED
        )

    shown = attacks.replay_table(refusing, X, Y, price=False, seed=1, trials=20)
    mixtures = [each for each in shown if each.label.startswith("mixture") and not each.holds]
    assert mixtures
    assert all(each.label.count("column") == 1 for each in mixtures)
    assert not any("column 1" not in each.label or "label" in each.label for each in mixtures)


# -- choices, and mistakes of choices


FAR, RELABELLED = X.copy(), np.where(np.arange(N) == 7, 2, Y)
FAR[7] = [3, -3, 3]


def test_choices_are_seen_and_move_by_what_their_query_allows():
    labels, medians = (
        attacks.replay(run, *tables, price=False)
        for run, *tables in (
            (lambda y: opened(y, LABELS).labels("labels"), Y, RELABELLED),
            (lambda x: opened(x, MEDIANS).quantiles(0, CUTS, "medians"), X, FAR),
        )
    )
    assert labels.holds, str(labels)
    # One count less and another more, of two that a bound of 1 allows.
    assert labels.largest == pytest.approx(np.sqrt(2) / 2)
    assert medians.holds, str(medians)
    assert medians.moved == 1
    assert 0.4 < medians.largest <= 1


def by_the_range(rows):
    return opened(rows, MEDIANS).quantiles(0, [rows[:, 0].min(), rows[:, 0].max()], "medians")


def all_labels(y):
    opened(y, LABELS).labels("labels")
    return np.unique(y)


def unwritten(y):
    with mock.patch.object(Admits, "_admit"):
        return opened(y, LABELS).labels("labels")


def counted_thrice(y):
    def tripled(labels):
        found, counts = np.unique(labels, return_counts=True)
        return found, counts * 3

    with mock.patch.object(choices_module, "counted", tripled):
        return opened(y, LABELS).labels("labels")


def test_mistakes_of_choices_are_found_by_name():
    longer = X.copy()
    longer[int(X[:, 0].argmax()), 0] = 50.0
    for run, violation, tables in (
        (by_the_range, "parameters", (X, longer)),
        (all_labels, "release", (Y, RELABELLED)),
        (unwritten, "ledger", (Y, RELABELLED)),
        (counted_thrice, "sensitivity", (Y, RELABELLED)),
    ):
        found = attacks.replay(run, *tables, price=False)
        assert found.violations == {violation}, str(found)
