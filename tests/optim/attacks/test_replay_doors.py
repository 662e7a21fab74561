"""A search for bad neighbours finds nothing at the doors beside optimizers and estimators."""

import contextlib
import importlib
import io

import numpy as np
import pytest

import dpcal
from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.calibrate import Plan, Query
from dpcal.cli import main
from dpcal.optim import attacks
from dpcal.optim.boundary.choices import PrivateChoices

N, D = 120, 3
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((N, D)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
SAMPLED = calibrate.dpsgd(n=N, batch_size=40, steps=10, epsilon=2.0, delta=1e-4)
CORRELATED = calibrate.correlated_dpsgd(
    LambdaCGD(10, 0.5), n=N, batch_size=N, sampler="full", epsilon=2.0, delta=1e-4
)
SHARED = {"sampler": "full", "noise_multiplier": 2.0, "count": D}
LABELS = Query(name="labels", kind="labels", max_norm=1.0, threshold=12.0, **SHARED)
MEDIANS = Query(name="medians", kind="selection", max_norm=0.5, **SHARED)


def guarded(plan, noise):
    """A training loop of one's own, whose gradients go through a guard."""

    def run(table):
        rows = np.clip(np.nan_to_num(table[0], posinf=0, neginf=0), -1e6, 1e6)
        signs = np.where(table[1] == 1, 1.0, -1.0)
        guard, w = StepwiseOracle(plan, dimension=D, noise=noise), np.zeros(D)
        while guard.remaining("gradient"):
            batch = guard.draw()
            slopes = -signs[batch] / (1 + np.exp(np.clip(signs[batch] * (rows[batch] @ w), -9, 9)))
            for piece in np.array_split(np.arange(len(batch)), 2):
                guard.add(slopes[piece, np.newaxis] * rows[batch][piece])
            w = w - 0.5 * guard.answer()
        return w, guard.ledger

    return run


def chosen(query, noise):
    """Labels that are frequent, or medians between cuts."""

    def run(table):
        plan = Plan(optimizer="choices", n=N, queries=(query,), epsilon=99.0, delta=1e-6)
        if query is LABELS:
            return PrivateChoices(table[1], plan, noise=noise).labels("labels")
        rows = np.nan_to_num(table[0], posinf=1e300, neginf=-1e300)
        choices = PrivateChoices(rows, plan, noise=noise)
        return [choices.medians(j, [-4.0, 0.0, 4.0], "medians") for j in range(D)]

    return run


def trained(loss):
    """Everything that ``dpcal train`` shows and writes, but the keyed digest and the date."""
    numbers = {f"x{j}": {"type": "number", "range": [-4, 4]} for j in range(D)}
    columns = {name: {**column, "missing": "blank"} for name, column in numbers.items()}
    if loss == "logistic":
        columns["y"] = {"type": "class", "categories": ["0", "1"]}
    else:
        columns["y"] = {"type": "number", "range": [-2, 2]}
    columns["y"] |= {"missing": "blank"}
    if loss == "logistic":
        columns["y"]["unknown"] = "blank"

    def run(table):
        frame = {f"x{j}": table[0][:, j] for j in range(D)} | {"y": table[1]}
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            found = dpcal.train(
                frame,
                {"columns": columns},
                target="y",
                loss=loss,
                epsilon=4.0,
                delta=1e-4,
                epochs=2,
                test_fraction=0.0,
            )
            print(found)
        told = {**found.document, "data": {**found.document["data"], "fingerprint": None}}
        return {**told, "written": None}, found.model.weights, said.getvalue()

    return run


DOORS = {
    **{f"guard, {noise}": guarded(SAMPLED, noise) for noise in ("discrete", "gaussian")},
    "guard, correlated": guarded(CORRELATED, None),
    **{f"labels, {noise}": chosen(LABELS, noise) for noise in ("discrete", "gaussian")},
    **{f"medians, {noise}": chosen(MEDIANS, noise) for noise in ("discrete", "gaussian")},
    "train, classes": trained("logistic"),
    "train, numbers": trained("squared"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", DOORS)
def test_a_search_finds_nothing(name):
    shown = attacks.replay_table(DOORS[name], X, Y, price=False, seed=1)
    assert len(shown) > 15
    for found in shown:
        assert found.holds, str(found)
    assert any(found.moved for found in shown)


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

    shown = attacks.replay_table(run, X, Y, price=False, seed=1)
    assert all(found.holds for found in shown), [str(each) for each in shown]


def test_a_row_more_or_less_is_no_neighbour_but_another_plan():
    """The number of records is public: in place of a record that goes, one is blank."""
    with pytest.raises(ValueError, match="n=119 records, got one for n=120"):
        optim.dpsgd(optim.Logistic(X[1:], Y[1:], classes=[0, 1]), SAMPLED)


def test_a_search_goes_on_for_the_seconds_that_it_is_given(tmp_path, capsys):
    plan = tmp_path / "plan.json"
    plan.write_text(SAMPLED.to_json())
    counts = []
    for seconds in ("0", "0.8"):
        words = ["attack", "replay", "--plan", str(plan), "--seed", "1", "--seconds", seconds]
        assert main(words) == 0
        counts.append(capsys.readouterr().out.count("mixture"))
    assert counts[0] == 8 < counts[1]
    assert main([*words[:-1], "-1"]) == 2
    assert "seconds must be" in capsys.readouterr().err
