"""A guarded PyTorch loop: gradients of single records, Poisson batches, the plan's end."""

import json

import numpy as np
import pytest

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.errors import BudgetExceeded

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from dpcal.adapters.stepwise import OutOfTurn  # noqa: E402
from dpcal.adapters.torch import Guard  # noqa: E402


def task(n=600, d=6, seed=0):
    """Return two classes that a plane tells apart."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X[:, 0] - X[:, 1] > 0).astype(np.int64)
    return TensorDataset(torch.tensor(X, dtype=torch.float32), torch.tensor(y))


def network(d=6, seed=0):
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(d, 8), nn.Tanh(), nn.Linear(8, 2))


def trained(guard, dataset, rate=0.5, **options):
    optimizer = torch.optim.SGD(guard.model.parameters(), lr=rate)
    for inputs, targets in guard.loader(dataset, **options):
        if guard.backward(inputs, targets):
            optimizer.step()
    X, y = dataset.tensors
    return float((guard.model(X).argmax(dim=1) == y).float().mean())


def planned(n=600, **changes):
    return calibrate.dpsgd(
        **{"n": n, "batch_size": 100, "steps": 60, "epsilon": 3.0, "delta": 1e-5, **changes}
    )


def test_without_noise_a_gradient_is_the_sum_of_clipped_gradients_of_single_records():
    """By one backward pass a record, which needs no torch.func."""
    dataset, model = task(n=40), network()
    plan = planned(n=40, batch_size=20, steps=1, epsilon=1e5, delta=1e-3, max_norm=0.3)
    guard = Guard(model, plan, seed=0)
    ((inputs, targets),) = list(_first(guard, dataset))
    expected = [torch.zeros_like(each) for each in model.parameters()]
    for x, y in zip(inputs, targets, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[None]), y[None]).backward()
        norm = torch.sqrt(sum((each.grad**2).sum() for each in model.parameters()))
        for total, each in zip(expected, model.parameters(), strict=True):
            total += each.grad * min(1.0, 0.3 / float(norm)) / 20
    noise = plan.queries[0].noise_multiplier * 0.3 / 20
    for total, each in zip(expected, _gradients(guard, inputs, targets), strict=True):
        assert (each - total).abs().max() < 6 * noise + 1e-6
    assert noise < 2e-3


def _first(guard, dataset):
    yield next(guard.loader(dataset))


def _gradients(guard, inputs, targets):
    assert guard.backward(inputs, targets)
    return [each.grad for each in guard.model.parameters()]


def test_a_network_learns_within_its_plan_and_stops_at_its_end():
    dataset = task()
    guard = Guard(network(), planned(), seed=1)
    assert trained(guard, dataset) > 0.8
    assert guard.remaining == 0
    assert 2.9 < guard.epsilon(1e-5) <= 3.0
    assert list(guard.loader(dataset)) == []
    with pytest.raises(BudgetExceeded, match="steps are spent"):
        guard.backward(*dataset[:10])


@pytest.mark.parametrize("noise", ["gaussian", "discrete"])
def test_pieces_change_nothing_but_memory(noise):
    dataset, ends = task(), []
    for at_most in (None, 7):
        guard = Guard(network(), planned(steps=4), seed=2, noise=noise)
        trained(guard, dataset, at_most=at_most)
        ends.append(torch.cat([each.detach().ravel() for each in guard.model.parameters()]))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)


def test_correlated_noise_of_a_plan_trains_and_resumes():
    dataset = task()
    strategy = LambdaCGD(12, 0.5)
    plan = calibrate.correlated_dpsgd(
        strategy, n=600, batch_size=150, epsilon=4.0, delta=1e-5, max_norm=1.0,
        sampler="balls-in-bins",
    )  # fmt: skip
    guard = Guard(network(), plan, seed=3)
    batches = guard.loader(dataset)
    for _ in range(5):
        guard.backward(*next(batches))
    again = Guard(network(), plan, seed=3)
    again.load_state_dict(json.loads(json.dumps(guard.state_dict())))
    assert again.remaining == 7
    trained(again, dataset)
    assert again.remaining == 0
    assert again.epsilon(1e-5) <= 4.0


def test_batches_are_poisson_samples_empty_ones_included():
    """Sizes of 60 batches: mean 100 and variance 100 (5 / 6) within five standard errors."""
    guard = Guard(network(), planned(), seed=4)
    sizes = [len(y) for x, y in guard.loader(task()) if guard.backward(x, y)]
    assert abs(np.mean(sizes) - 100) < 5 * np.sqrt(100 * 5 / 6 / 60)
    rare = Guard(network(), planned(batch_size=1, steps=20, epsilon=5.0), seed=4)
    sizes = [len(y) for x, y in rare.loader(task()) if rare.backward(x, y)]
    assert len(sizes) == 20
    assert 0 in sizes


def test_a_callback_takes_the_place_of_torch_func():
    def gradients(model, inputs, targets):
        found = {name: [] for name, _ in model.named_parameters()}
        for x, y in zip(inputs, targets, strict=True):
            model.zero_grad()
            nn.functional.cross_entropy(model(x[None]), y[None]).backward()
            for name, each in model.named_parameters():
                found[name].append(each.grad.clone())
        return {name: torch.stack(rows) for name, rows in found.items()}

    dataset, ends = task(), []
    for given in (None, gradients):
        guard = Guard(network(), planned(steps=3), gradients=given, seed=5)
        trained(guard, dataset)
        ends.append(torch.cat([each.detach().ravel() for each in guard.model.parameters()]))
    np.testing.assert_allclose(ends[0], ends[1], atol=1e-5)


def test_bad_input_is_a_sentence():
    dataset, plan = task(), planned()
    with pytest.raises(ValueError, match=r"mix the records.*'1' \(BatchNorm1d\)"):
        Guard(nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4)), plan)
    with pytest.raises(ValueError, match="require gradients, got none"):
        Guard(nn.Sequential(nn.Tanh()), plan)
    guard = Guard(network(), plan)
    with pytest.raises(ValueError, match="n=600 items, got 599"):
        guard.loader(TensorDataset(*dataset[:599]))
    with pytest.raises(OutOfTurn, match=r"that guard.loader\(dataset\) gave"):
        guard.backward(*dataset[:5])
    batches = guard.loader(dataset)
    next(batches)
    with pytest.raises(OutOfTurn, match="must be called for every batch"):
        next(batches)
    wrong = Guard(network(), plan, gradients=lambda model, x, y: dict(model.named_parameters()))
    batch = next(wrong.loader(dataset))
    with pytest.raises(ValueError, match="one a record"):
        wrong.backward(*batch)
    with pytest.raises(ValueError, match="same plan"):
        Guard(network(), planned(steps=9)).load_state_dict(guard.state_dict())
