"""Opacus with this accountant: its loop, its search for sigma, its state."""

import math

import numpy as np
import pytest

from dpcal import calibrate
from dpcal.accountants import epsilon, events

pytest.importorskip("torch")
pytest.importorskip("opacus")

import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.accountants.utils import get_noise_multiplier
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpcal.adapters.opacus import Accountant
from dpcal.adapters.torch import Guard

pytestmark = pytest.mark.filterwarnings("ignore")


def task(n=600, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    y = (X[:, 0] - X[:, 1] > 0).astype(np.int64)
    return TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))


def network(seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))


def accuracy(model, dataset):
    X, y = dataset.tensors
    return float((model(X).argmax(dim=1) == y).float().mean())


def test_epsilon_is_this_packages_and_below_what_opacus_says():
    ours, prv, rdp = (create_accountant(name) for name in ("dpcal", "prv", "rdp"))
    for accountant in (ours, prv, rdp):
        accountant.history = [(1.0, 0.02, 400), (1.5, 0.01, 300)]
    # Opacus' random numbers have 24 bits.
    rates = [math.ceil(rate * 2**24) / 2**24 for rate in (0.02, 0.01)]
    first = events.dpsgd(sampling_probability=rates[0], noise_multiplier=1.0, steps=400)
    then = events.dpsgd(sampling_probability=rates[1], noise_multiplier=1.5, steps=300)
    exact = epsilon(events.ComposedDpEvent([first, then]), delta=1e-5)
    assert ours.get_epsilon(1e-5) == exact.upper
    assert exact.upper <= prv.get_epsilon(1e-5) <= exact.upper + 0.02
    assert exact.upper < rdp.get_epsilon(1e-5)


def test_steps_are_gathered_counted_and_kept():
    accountant = Accountant()
    assert accountant.get_epsilon(1e-5) == 0.0
    for sigma in (1.0, 1.0, 2.0, 1.0):
        accountant.step(noise_multiplier=sigma, sample_rate=0.1)
    assert accountant.history == [(1.0, 0.1, 2), (2.0, 0.1, 1), (1.0, 0.1, 1)]
    assert len(accountant) == 4
    other = Accountant()
    other.load_state_dict(accountant.state_dict())
    assert other.history == accountant.history
    assert other.get_epsilon(1e-5) == accountant.get_epsilon(1e-5)
    with pytest.raises(ValueError, match="mechanism"):
        other.load_state_dict({"history": [], "mechanism": "rdp"})
    accountant.step(noise_multiplier=0.0, sample_rate=0.1)
    assert accountant.get_epsilon(1e-5) == float("inf")


def test_opacus_search_finds_the_solvers_sigma():
    found = get_noise_multiplier(
        target_epsilon=2.0, target_delta=1e-5, sample_rate=0.02, steps=500, accountant="dpcal",
        epsilon_tolerance=1e-4,
    )  # fmt: skip
    exact = calibrate.noise_multiplier(
        lambda s: events.dpsgd(sampling_probability=0.02, noise_multiplier=s, steps=500),
        epsilon=2.0,
        delta=1e-5,
    )
    assert exact <= found < exact * 1.001


@pytest.mark.slow
def test_opacus_and_the_guard_learn_alike_at_one_budget():
    """Five runs of each; means of accuracies within 0.05, a few standard errors of seeds."""
    dataset, steps, scores = task(), 60, {"opacus": [], "guard": []}
    plan = calibrate.dpsgd(n=600, batch_size=100, steps=steps, epsilon=2.0, delta=1e-5)
    for seed in range(5):
        guard = Guard(network(seed), plan, seed=seed)
        optimizer = torch.optim.SGD(guard.model.parameters(), lr=0.5)
        for x, y in guard.loader(dataset):
            if guard.backward(x, y):
                optimizer.step()
        scores["guard"].append(accuracy(guard.model, dataset))
        model = network(seed)
        engine = PrivacyEngine(accountant="dpcal")
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        model, optimizer, loader = engine.make_private_with_epsilon(
            module=model, optimizer=optimizer, data_loader=DataLoader(dataset, batch_size=100),
            target_epsilon=2.0, target_delta=1e-5, epochs=10, max_grad_norm=1.0,
        )  # fmt: skip
        for _ in range(10):
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
        scores["opacus"].append(accuracy(model, dataset))
    assert min(np.mean(each) for each in scores.values()) > 0.8
    assert abs(np.mean(scores["guard"]) - np.mean(scores["opacus"])) < 0.05
    assert engine.get_epsilon(1e-5) == pytest.approx(guard.epsilon(1e-5), abs=0.02)
    assert guard.epsilon(1e-5) <= 2.0
