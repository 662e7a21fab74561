"""A guarded PyTorch loop: gradients of single records, Poisson batches, the plan's end."""

import copy
import dataclasses
import functools

import numpy as np
import pytest
from _steps import network, task

from dpcal import calibrate, optim
from dpcal.accountants.matrix import LambdaCGD
from dpcal.errors import BudgetExceeded

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.utils.data import TensorDataset  # noqa: E402

from dpcal.adapters import ahead, clipping  # noqa: E402
from dpcal.adapters.clipping import ClippedSums  # noqa: E402
from dpcal.adapters.stepwise import OutOfTurn  # noqa: E402
from dpcal.adapters.torch import Guard  # noqa: E402
from dpcal.optim import attacks  # noqa: E402
from dpcal.optim.attacks import likelihood_ratio  # noqa: E402
from dpcal.optim.boundary import noise  # noqa: E402


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


def test_a_network_learns_within_its_plan_and_stops_at_its_end():
    dataset = task()
    guard = Guard(network(), planned(), seed=1)
    assert trained(guard, dataset) > 0.8
    assert guard.remaining == 0
    assert 2.9 < guard.epsilon(1e-5) <= 3.0
    assert list(guard.loader(dataset)) == []
    with pytest.raises(BudgetExceeded, match="steps are spent"):
        guard.backward(*dataset[:10])


def one_by_one(model, inputs, targets):
    """Return gradients of single records by a backward pass each."""
    found = {name: [] for name, _ in model.named_parameters()}
    for x, y in zip(inputs, targets, strict=True):
        model.zero_grad()
        nn.functional.cross_entropy(model(x[None]), y[None]).backward()
        for name, each in model.named_parameters():
            found[name].append(each.grad.clone())
    return {name: torch.stack(rows) for name, rows in found.items()}


def test_pieces_change_nothing_but_memory_and_a_callback_takes_the_place_of_torch_func():
    dataset, ends = task(), []
    for at_most, gradients in ((None, None), (7, None), (None, one_by_one)):
        guard = Guard(network(), planned(steps=4), gradients=gradients, seed=2)
        trained(guard, dataset, at_most=at_most)
        ends.append(torch.cat([each.detach().ravel() for each in guard.model.parameters()]))
    np.testing.assert_allclose(ends[1:], [ends[0]] * 2, atol=1e-5)


def test_bad_input_is_a_sentence():
    dataset, plan = task(), planned()
    with pytest.raises(ValueError, match="require gradients, got none"):
        Guard(nn.Sequential(nn.Tanh()), plan)
    guard = Guard(network(), plan)
    with pytest.raises(ValueError, match="n=600 items, got 599"):
        guard.loader(TensorDataset(*dataset[:599]))
    batches = guard.loader(dataset)
    next(batches)
    with pytest.raises(OutOfTurn, match="must be called for every batch"):
        next(batches)
    wrong = Guard(network(), plan, gradients=lambda model, x, y: dict(model.named_parameters()))
    batch = next(wrong.loader(dataset))
    with pytest.raises(ValueError, match="one a record"):
        wrong.backward(*batch)


# Layers that normalise, in training mode and in eval mode; whether they mix records of a batch, or
# keep their statistics, in each, by PyTorch's own code.
LAYERS = [
    (nn.BatchNorm1d(4), True, False),
    (nn.BatchNorm1d(4, track_running_stats=False), True, True),
    (nn.BatchNorm1d(4, affine=False), True, False),
    (nn.SyncBatchNorm(4), True, False),
    (nn.InstanceNorm1d(4), False, False),
    (nn.InstanceNorm1d(4, track_running_stats=True), True, False),
    (nn.GroupNorm(2, 4), False, False),
    (nn.LayerNorm(5), False, False),
    (nn.LocalResponseNorm(2), False, False),
    (nn.RMSNorm(5), False, False),
]


# Twenty records of four channels of five numbers.
INPUTS = torch.randn(20, 4, 5, generator=torch.Generator().manual_seed(0))
KEPT = TensorDataset(INPUTS, torch.arange(20) % 2)


def headed(norm):
    return nn.Sequential(copy.deepcopy(norm), nn.Flatten(), nn.Linear(20, 2))


@pytest.mark.parametrize("training", [True, False], ids=["training", "eval"])
@pytest.mark.parametrize(("norm", "mixes", "mixes_in_eval"), LAYERS, ids=str)
def test_layers_that_mix_records_or_keep_statistics_are_refused_and_no_other_ones(
    norm, mixes, mixes_in_eval, training
):
    """Whether they do is measured: the output for one record, and what the module then holds."""
    norm, mixes = norm.train(training), mixes if training else mixes_in_eval
    if not (isinstance(norm, nn.SyncBatchNorm) and norm.training):  # which needs a GPU
        held = copy.deepcopy(norm.state_dict())
        alone, beside = norm(INPUTS[:1]), norm(INPUTS)[:1]
        same = torch.allclose(alone, beside, atol=1e-6)
        kept = all(bool((held[key] == each).all()) for key, each in norm.state_dict().items())
        assert mixes is not (same and kept)
    plan = planned(n=20, batch_size=10, steps=3)
    if mixes:
        with pytest.raises(ValueError, match=rf"mix the records.*'0' \({type(norm).__name__}\)"):
            Guard(headed(norm), plan)
        return
    guard = Guard(headed(norm), plan)
    before = copy.deepcopy(dict(guard.model.named_buffers()))
    trained_steps = sum(guard.backward(*batch) for batch in guard.loader(KEPT))
    assert trained_steps == 3
    assert all(bool((before[key] == each).all()) for key, each in guard.model.named_buffers())


def test_every_layer_that_normalises_is_in_the_table():
    """Lazy layers become one of the others."""
    held = {type(norm).__name__ for norm, *_ in LAYERS}
    ours = {each for each in dir(nn) if each.endswith(("Norm", "Norm1d")) and "Lazy" not in each}
    assert ours <= held


def test_a_frozen_norm_that_is_set_to_training_is_refused_before_the_next_batch():
    guard = Guard(headed(nn.BatchNorm1d(4).eval()), planned(n=20, batch_size=10, steps=5))
    batches = guard.loader(KEPT)
    batch = next(batches)
    guard.model.train()
    with pytest.raises(ValueError, match="keep it in eval mode"):
        guard.backward(*batch)
    guard.model[0].eval()
    assert guard.backward(*batch)
    guard.model.train()
    with pytest.raises(ValueError, match="keep it in eval mode"):
        next(batches)
    assert guard.ledger.answers == 1


def test_memory_that_ends_between_two_blocks_of_a_batch_leaves_it_open(monkeypatch):
    """Few records fit at a time: the third block fails, and then all are taken."""
    dataset, ends = task(n=40), []
    plan = planned(n=40, batch_size=30, steps=1, epsilon=1e5, delta=1e-3, max_norm=0.3)
    monkeypatch.setattr(clipping, "_NUMBERS", 12)
    take, calls = ClippedSums._factors, []

    def factors(*given):
        calls.append(len(calls))
        if len(calls) == 3:
            raise MemoryError
        return take(*given)

    for fails in (False, True):
        guard = Guard(network(), plan, seed=0)
        inputs, targets = next(guard.loader(dataset))
        if fails:
            monkeypatch.setattr(ClippedSums, "_factors", factors)
            with pytest.raises(MemoryError):
                guard.backward(inputs, targets)
        assert guard.backward(inputs, targets)
        ends.append(torch.cat([each.grad.ravel() for each in guard.model.parameters()]))
    assert len(calls) > 6
    np.testing.assert_array_equal(*ends)


def test_a_batch_that_is_given_up_in_the_midst_of_its_pieces_ends_there():
    guard = Guard(network(), planned(steps=3), seed=1)
    batches = guard.loader(task(), at_most=20)
    assert not guard.backward(*next(batches))
    guard.give_up()
    steps = sum(guard.backward(*batch) for batch in batches)
    assert steps == 2
    assert guard.ledger.answers == 3
    assert guard.result().complete
    assert guard.result().w.shape == (guard._clipped.dimension,)


@pytest.mark.parametrize("kept", [False, True], ids=["alone", "with a store"])
def test_a_threshold_follows_a_quantile_and_goes_on_from_a_state(kept, tmp_path):
    """From far away, within a few steps, and at the price of the plan."""
    dataset, plan = task(), planned(epsilon=50.0, max_norm=30.0)
    found = one_by_one(network(), *dataset.tensors).values()
    norms = np.linalg.norm(torch.cat([each.flatten(1) for each in found], 1), axis=1)
    store = str(tmp_path / "run.dpcal") if kept else None
    guard = Guard(network(), plan, quantile=0.5, store=store)
    assert trained(guard, dataset, rate=0.0) > 0
    assert np.quantile(norms, 0.4) < guard.threshold.norm < np.quantile(norms, 0.6)
    assert guard.epsilon(1e-5) <= 50.0
    other = Guard(network(), plan, quantile=0.5)
    if not kept:
        other.load_state_dict(guard.state_dict())
        assert other.threshold.norm == guard.threshold.norm
        with pytest.raises(ValueError, match="with a quantile"):
            Guard(network(), plan).load_state_dict(guard.state_dict())


def test_a_quantile_is_for_independent_noise():
    plan = calibrate.correlated_dpsgd(
        LambdaCGD(4, 0.5), n=600, batch_size=100, noise_multiplier=2.0, delta=1e-5,
        statistics=False, draws=1000, seed=1,
    )  # fmt: skip
    with pytest.raises(ValueError, match="None for a plan with correlated noise"):
        Guard(network(), plan, quantile=0.5)
    with pytest.raises(ValueError, match="quantile must be"):
        Guard(network(), planned(), quantile=1.0)
    with pytest.raises(ValueError, match="clipping must be 'flat' with a quantile"):
        Guard(network(), planned(), clipping="automatic", quantile=0.5)
    with pytest.raises(ValueError, match="clipping must be one of"):
        Guard(network(), planned(), clipping="layers")


def test_noise_that_is_drawn_beside_the_passes_is_that_of_the_step_alone(monkeypatch):
    """The same bits as in one thread, none of them twice, and none of a step that is given up."""

    def released(many, left_out=None):
        monkeypatch.setattr(ahead, "MANY", many)
        guard, found = Guard(network(), planned(steps=5), seed=3), {}
        for step, batch in enumerate(guard.loader(task())):
            if step == left_out:
                guard.give_up()
            elif guard.backward(*batch):
                found[step] = torch.cat([each.grad.ravel() for each in guard.model.parameters()])
        return found

    with optim.replaying():
        beside, alone, fewer = released(1), released(1 << 40), released(1, left_out=2)
    for step, answer in alone.items():
        assert torch.equal(beside[step], answer)
        assert step == 2 or torch.equal(fewer[step], answer)
    assert 2 not in fewer


def test_noise_that_cannot_be_drawn_ends_its_step_alone(monkeypatch):
    monkeypatch.setattr(ahead, "MANY", 1)
    guard = Guard(network(), planned(steps=2), seed=3)
    batches = guard.loader(task())
    with monkeypatch.context() as patch:
        patch.setattr(noise.DiscreteNormals, "covering", lambda *given: 1 / 0)
        batch = next(batches)
        guard._oracle._noise.exception()
    with pytest.raises(ZeroDivisionError):
        guard.backward(*batch)
    assert all(each.grad is None for each in guard.model.parameters())
    assert [guard.backward(*batch) for batch in batches] == [True]
    assert guard.ledger.answers == 2


@pytest.mark.slow
def test_the_likelihood_of_a_guard_s_run_nearly_reaches_its_claim(monkeypatch):
    """Each record's gradient is along a parameter of its own; half of the noise is accused."""
    plan, opened = planned(n=1000, batch_size=500, steps=3, epsilon=2.0), []
    of = likelihood_ratio._Ratios.of
    # The records are held by the guard's oracle, not by the objective of the canaries.
    monkeypatch.setattr(likelihood_ratio._Ratios, "of", lambda self, _: of(self, opened.pop()))

    def loss(output, _):
        return 1e3 * output.sum()

    def run(factor, canaries, plan):
        noise = factor * plan.queries[0].noise_multiplier
        queries = (dataclasses.replace(plan.queries[0], noise_multiplier=noise),)
        model = nn.Linear(plan.n, 1, bias=False)
        guard = Guard(model, dataclasses.replace(plan, queries=queries), loss=loss)
        opened.append(guard._oracle._elsewhere)
        rows = torch.diag(torch.tensor(canaries._signs, dtype=torch.float32))
        trained(guard, TensorDataset(rows, torch.zeros(plan.n, dtype=torch.int64)))

    options = {"samples": 16_000, "confidence": 0.99, "seed": 4}
    honest, quiet = (
        attacks.likelihood(plan, run=functools.partial(run, factor), **options)
        for factor in (1.0, 0.5)
    )
    assert honest.holds, str(honest)
    assert honest.epsilon > 0.5 * plan.epsilon, str(honest)
    assert not quiet.holds, str(quiet)
