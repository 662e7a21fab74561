"""The switches of the documents run in an environment that holds a wheel, and no tree."""

import importlib.util

import pytest

PROGRAMS = {
    "sklearn": """
import numpy as np, dpcal
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from dpcal.estimators import LogisticRegression, LinearRegression, Ridge, StandardScaler
from dpcal.estimators import QuantileTransformer, PCA, KMeans
rng = np.random.default_rng(0)
X = rng.normal(0.0, 1.0, (2000, 3)); y = (X[:, 0] > 0).astype(int)
model = make_pipeline(StandardScaler(bounds=(-3, 3), epsilon=.2),
                      LogisticRegression(epsilon=.8, delta=1e-6, classes=[0, 1])).fit(X, y)
last = model[-1]
assert model.score(X, y) > 0.8 and last.epsilon_spent_ <= 0.8
assert last.ledger_.answers == 121 and last.report_["epsilon"]["upper"] <= 0.8
with dpcal.budget(epsilon=2.0, delta=1e-6) as shared:
    cross_val_score(LogisticRegression(epsilon=.3, classes=[0, 1]), X, y, cv=3)
    GridSearchCV(LogisticRegression(epsilon=.3, classes=[0, 1]), {"steps": [9, 20]}, cv=2).fit(X, y)
    assert 0.5 < shared.spent <= 2.0
    try:
        LogisticRegression(epsilon=2.0, classes=[0, 1]).fit(X, y)
    except dpcal.errors.BudgetExceeded as refused:
        print(refused)
""",
    "opacus": """
import torch, dpcal.adapters.opacus
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset
X = torch.randn(400, 4); model = torch.nn.Linear(4, 2)
loader = DataLoader(TensorDataset(X, (X[:, 0] > 0).long()), batch_size=40)
engine = PrivacyEngine(accountant="dpcal")
model, optimizer, loader = engine.make_private_with_epsilon(
    module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1), data_loader=loader,
    target_epsilon=2.0, target_delta=1e-5, epochs=1, max_grad_norm=1.0)
for inputs, targets in loader:
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), targets).backward()
    optimizer.step()
assert 0 < engine.get_epsilon(1e-5) <= 2.0
""",
    "flower": """
import dpcal.adapters.flower
from flwr.supercore.privacy_accounting import GaussianPrivacyEvent
accountant = dpcal.adapters.flower.Accountant(
    target_delta=1e-6, population_size=500, neighboring_relation="add-or-remove-one",
    sampling_method="poisson", max_epsilon=4.0)
accountant.compose(GaussianPrivacyEvent(3.0, 20, 500), 10)
assert 0 < accountant.get_epsilon(1e-6) < 4.0
""",
    "torch": """
import torch
from dpcal import calibrate
import dpcal.adapters.torch
X = torch.randn(400, 4); dataset = torch.utils.data.TensorDataset(X, (X[:, 0] > 0).long())
model = torch.nn.Linear(4, 2); optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
plan = calibrate.dpsgd(n=400, batch_size=40, epochs=1, epsilon=2.0, delta=1e-5, max_norm=1.0)
guard = dpcal.adapters.torch.Guard(model, plan)
for inputs, targets in guard.loader(dataset):
    if guard.backward(inputs, targets):
        optimizer.step()
assert guard.remaining == 0 and 0 < guard.epsilon(1e-5) <= 2.0
""",
}
NEEDS = {"sklearn": "sklearn", "opacus": "opacus", "flower": "flwr", "torch": "torch"}


@pytest.mark.slow
@pytest.mark.parametrize("door", PROGRAMS)
def test_the_lines_of_a_door_run_from_a_wheel(installed, tmp_path, door):
    if importlib.util.find_spec(NEEDS[door]) is None:
        pytest.skip(f"{NEEDS[door]} is not installed; `python -m benchmarks adapters` installs it")
    source = tmp_path / "door.py"
    source.write_text(PROGRAMS[door])
    told = installed.python("-W", "ignore", source, cwd=tmp_path).stdout
    assert "is all there is" in told or door != "sklearn"
