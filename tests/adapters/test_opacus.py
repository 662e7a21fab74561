"""Opacus with this accountant: its loop, its search for sigma, its state."""

import math
from itertools import chain

import numpy as np
import pytest
from _steps import network, task

from dpcal.accountants import epsilon, events

pytest.importorskip("torch")
pytest.importorskip("opacus")

import torch
from opacus import PrivacyEngine
from opacus.accountants import create_accountant
from opacus.data_loader import DPDataLoader
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.utils.uniform_sampler import UniformWithReplacementSampler
from scipy.optimize import brentq
from scipy.stats import binom, norm
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dpcal import calibrate
from dpcal.accountants.matrix import LambdaCGD
from dpcal.adapters.loaders import PoissonSampler, check
from dpcal.adapters.opacus import Accountant, check as opened, correlate
from dpcal.adapters.torch import collate
from dpcal.commands.cli import main
from dpcal.errors import BudgetExceeded, NoiseReused, UnsupportedEvent

pytestmark = pytest.mark.filterwarnings("ignore")


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


BOUND = 0.7
# What Opacus offers for clipping, and for gradients of single records, on one process.
MODES = [("flat", "hooks"), ("flat", "functorch"), ("flat", "ew"), ("flat", "ghost"),
         ("per_layer", "hooks"), ("per_layer", "functorch"), ("per_layer", "ew")]  # fmt: skip


class Played:
    """A model, made private by Opacus without noise, whose step is the sum that it releases."""

    def __init__(self, records, clipping="flat", mode="hooks", **options):
        self.model, self.engine = network(), PrivacyEngine(accountant="dpcal")
        bound = [BOUND / 2] * 4 if clipping == "per_layer" else BOUND
        made = self.engine.make_private(
            module=self.model, optimizer=torch.optim.SGD(self.model.parameters(), lr=1.0),
            noise_multiplier=0.0, max_grad_norm=bound, loss_reduction="sum", clipping=clipping,
            grad_sample_mode=mode, criterion=nn.CrossEntropyLoss(reduction="sum"),
            **{"data_loader": DataLoader(records, batch_size=len(records) // 2), **options},
        )  # fmt: skip
        self.private, self.optimizer, self.loader = made[0], made[1], made[-1]
        self.loss = made[2] if mode == "ghost" else nn.CrossEntropyLoss(reduction="sum")
        if isinstance(self.loader.batch_sampler, UniformWithReplacementSampler):
            self.loader.batch_sampler.generator = torch.Generator().manual_seed(3)

    def sum(self, loader, batches=1):
        """Return what the first step moves, on so many batches or physical parts of one."""
        assert self.engine.accountant.check(loader).law is not None
        start = [each.detach().clone() for each in self.model.parameters()]
        for number, (x, y) in enumerate(chain(loader, loader), 1):
            self.loss(self.private(x), y).backward()
            if number % batches:
                continue
            self.optimizer.step()
            if not self.optimizer._is_last_step_skipped:
                break
            self.optimizer.zero_grad()
        ends = zip(start, self.model.parameters(), strict=True)
        return torch.cat([(old - new).detach().ravel() for old, new in ends])


def neighbors(row=5):
    """Yield pairs of tables of which the second one has a blank for a record: it has no loss."""
    X, y = task(n=12).tensors
    for value in (0.1, 1.0, 1e4):
        one, labels = X.clone(), y.clone()
        one[row], labels[row] = value, -100
        yield TensorDataset(one, y), TensorDataset(one, labels)


def moved(sum_of):
    """Return how far one record moves a sum, at the most."""
    sums = [[sum_of(records) for records in pair] for pair in neighbors()]
    return max(float((one - other).norm()) for one, other in sums)


@pytest.mark.parametrize(("clipping", "mode"), MODES)
@pytest.mark.parametrize("manager", [False, True], ids=["whole", "in parts"])
def test_a_record_moves_a_sum_of_opacus_by_one_bound(clipping, mode, manager):
    def sum_of(records):
        played = Played(records, clipping, mode)
        loader = played.loader
        if manager:
            loader = BatchMemoryManager(
                data_loader=loader, max_physical_batch_size=2, optimizer=played.optimizer
            ).__enter__()
        found = played.sum(loader)
        assert played.engine.accountant.history == [(0.0, 0.5, 1)]
        return found

    assert 0.9 * BOUND < moved(sum_of) <= BOUND * (1 + 1e-5)


def test_batches_that_opacus_accumulates_are_priced_one_by_one():
    """A record is in two of two batches, and moves their sum by two bounds: noise is over both."""

    def sum_of(records):
        sampler = PoissonSampler(12, 0.9, seed=3)
        loader = DataLoader(records, batch_sampler=sampler, collate_fn=collate(records))
        played = Played(records, data_loader=loader, poisson_sampling=False)
        assert played.engine.accountant.check(played.loader).law == sampler.law
        return played.sum(played.loader, batches=2)

    assert moved(sum_of) == pytest.approx(2 * BOUND, rel=1e-4)


class Accumulated:
    """What an optimizer of Opacus tells about a step."""

    def __init__(self, noise_multiplier, batches):
        self.noise_multiplier, self.accumulated_iterations = noise_multiplier, batches


def test_a_step_on_accumulated_batches_costs_no_less_than_what_it_releases():
    """At rate 1 every record is in all k batches: one Gaussian answer, of k bounds."""
    for batches in (1, 2, 5):
        accountant = Accountant()
        accountant.get_optimizer_hook_fn(1.0)(Accumulated(6.0, batches))
        exact = epsilon(events.GaussianDpEvent(6.0 / batches), delta=1e-5)
        assert accountant.get_epsilon(1e-5) == pytest.approx(exact.upper, rel=1e-9)
        assert len(accountant) == batches


def test_the_sum_of_accumulated_batches_costs_more_than_one_batch_at_their_rates_together():
    """Four batches at rate 0.2, noise 2: the mixture of four coins is integrated on a line."""
    q, k, sigma, delta = 0.2, 4, 2.0, 1e-6
    x, dx = np.linspace(-20, 50, 140_001, retstep=True)
    record = sum(binom.pmf(m, k, q) * norm.pdf(x, m, sigma) for m in range(k + 1))
    blank = norm.pdf(x, 0, sigma)
    true = brentq(lambda e: np.maximum(record - np.exp(e) * blank, 0).sum() * dx - delta, 0.1, 20)
    accountant = Accountant()
    accountant.get_optimizer_hook_fn(q)(Accumulated(sigma, k))
    one = events.dpsgd(sampling_probability=k * q, noise_multiplier=sigma, steps=1)
    assert epsilon(one, delta=delta).upper < true - 1.5
    assert true < accountant.get_epsilon(delta) < true + 0.5


def test_before_the_first_step_a_loader_is_checked_against_the_rate_of_its_steps():
    records = task(n=120)
    played = Played(records, data_loader=DataLoader(records, batch_size=6))
    accountant = played.engine.accountant
    assert accountant.check(played.loader).law.sampling_probability == pytest.approx(
        0.05, abs=2**-23
    )
    with pytest.raises(UnsupportedEvent, match=r"priced at a rate of 0\.05.*draws at 0\.9"):
        accountant.check(DPDataLoader(records, sample_rate=0.9))
    accountant.step(noise_multiplier=1.0, sample_rate=0.05)
    assert accountant.check(played.loader).event is not None
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    with pytest.raises(UnsupportedEvent, match=r"priced at a rate of 0\.01"):
        accountant.check(played.loader)
    with pytest.raises(UnsupportedEvent, match="not known yet: check the loader after make_priv"):
        Accountant().check(played.loader)


def test_parts_of_a_batch_have_the_law_of_the_batch():
    records = task(n=120)
    for poisson in (True, False):
        played = Played(records, poisson_sampling=poisson)
        with BatchMemoryManager(
            data_loader=played.loader, max_physical_batch_size=7, optimizer=played.optimizer
        ) as parts:
            assert max(len(y) for _, y in parts) == 7
            if poisson:
                found, whole = played.engine.accountant.check(parts), check(played.loader)
                assert (found.law, found.event(1.0, 3)) == (whole.law, whole.event(1.0, 3))
                continue
            with pytest.raises(UnsupportedEvent, match="SequentialSampler"):
                played.engine.accountant.check(parts)


def test_adaptive_clipping_is_refused_before_the_model_moves():
    """Its count of unclipped records moves by 1 for one record, for which 1/2 is priced."""
    counts = []
    for records in list(neighbors())[-1]:
        played = Played(
            records, clipping="adaptive", target_unclipped_quantile=0.5, max_clipbound=9.0,
            clipbound_learning_rate=0.2, min_clipbound=0.1, unclipped_num_std=1e-9,
            data_loader=DataLoader(records, batch_size=12),
        )  # fmt: skip
        with pytest.raises(UnsupportedEvent, match="one record moves Opacus' count"):
            played.sum(played.loader)
        before = torch.cat([each.detach().ravel() for each in network().parameters()])
        after = torch.cat([each.detach().ravel() for each in played.model.parameters()])
        assert bool((before == after).all())
        counts.append(float(played.optimizer.unclipped_num))
    assert counts[1] - counts[0] == pytest.approx(1.0, abs=1e-6)


def test_random_numbers_for_an_empty_batch_have_no_price():
    records = task(n=120)
    with_numbers = DPDataLoader(records, sample_rate=0.01, rand_on_empty=True)
    assert "twice its bound" in check(with_numbers).sentence
    assert check(with_numbers).event is None
    assert check(DPDataLoader(records, sample_rate=0.01)).event is not None


def correlated(mode="hooks", bound=0.5, **options):
    """A model whose loss has no gradient: each step is a row of noise."""
    model, n = nn.Linear(40, 50), 200
    plan = calibrate.correlated_dpsgd(
        LambdaCGD(60, 0.5), n=n, batch_size=20, noise_multiplier=2.0, delta=1e-5, max_norm=0.5,
        statistics=False, draws=1000, seed=1,
    )  # fmt: skip
    data = TensorDataset(torch.randn(n, 40), torch.zeros(n, dtype=torch.long))
    made = PrivacyEngine(accountant="dpcal").make_private(
        module=model, optimizer=torch.optim.SGD(model.parameters(), lr=1.0),
        noise_multiplier=1.0, max_grad_norm=bound, loss_reduction="sum", grad_sample_mode=mode,
        criterion=nn.CrossEntropyLoss(reduction="sum"),
        data_loader=DataLoader(data, batch_sampler=PoissonSampler(n, 0.1)),
        poisson_sampling=False, **options,
    )  # fmt: skip
    return plan, *made[:2], made[-1]


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_opacus_adds_a_plans_correlated_noise(mode):
    plan, model, optimizer, loader = correlated(mode)
    correlate(optimizer, plan, loader, seed=3)
    query, rows = plan.queries[0], []

    def step():
        for each in optimizer.params:
            each.grad_sample, each.summed_grad = torch.zeros(1, *each.shape), None
            each.grad = torch.zeros_like(each)
        optimizer.step()

    for _ in range(query.count):
        before = torch.cat([each.detach().flatten().clone() for each in model.parameters()])
        step()
        now = torch.cat([each.detach().flatten() for each in model.parameters()])
        rows.append((before - now).double().numpy())
    white = query.correlation.strategy.matrix() @ np.array(rows)
    spread = query.noise_multiplier * query.max_norm
    assert abs(white.std() / spread - 1) < 0.01
    assert abs(np.corrcoef(white)[np.triu_indices(len(white), 1)]).max() < 0.12
    with pytest.raises(BudgetExceeded, match="60 steps are spent"):
        step()
    assert all(each.grad is None for each in optimizer.params)


def test_the_same_noise_is_refused_to_a_second_optimizer():
    """Two runs that share their noise differ by their gradients alone."""
    plan, _, optimizer, loader = correlated()
    correlate(optimizer, plan, loader, seed=4)
    _, _, other, _ = correlated()
    with pytest.raises(NoiseReused, match="Use another seed"):
        correlate(other, plan, loader, seed=4)


def test_what_cannot_be_correlated_is_a_sentence():
    plan, _, optimizer, loader = correlated()
    denser = DataLoader(loader.dataset, batch_sampler=PoissonSampler(200, 0.11))
    with pytest.raises(UnsupportedEvent, match="the loader has PoissonSampler"):
        correlate(optimizer, plan, denser)
    alone = calibrate.dpsgd(n=200, batch_size=20, steps=2, epsilon=2.0, delta=1e-5)
    with pytest.raises(UnsupportedEvent, match="with correlated noise"):
        correlate(optimizer, alone, loader)
    optimizer.max_grad_norm = 1.0
    with pytest.raises(ValueError, match=r"max_norm=0\.5, got 1\.0"):
        correlate(optimizer, plan, loader)
    _, _, layers, loader = correlated(bound=[0.3, 0.4], clipping="per_layer")
    with pytest.raises(UnsupportedEvent, match="got DPPerLayerOptimizer"):
        correlate(layers, plan, loader)


@pytest.mark.parametrize("accountant", ["dpcal", "rdp"])
def test_a_checkpoint_is_worth_what_its_loader_makes_of_it(accountant, tmp_path, capsys):
    path, model = tmp_path / "model.pt", network()
    engine = PrivacyEngine(accountant=accountant)
    engine.accountant.history = [(1.1, 0.05, 59)]
    engine.save_checkpoint(path=path, module=model)
    found = opened(path, delta=1e-6)
    ours = Accountant()
    ours.history = engine.accountant.history
    assert found.steps == 59
    assert found.poisson.upper == ours.get_epsilon(1e-6)
    assert 2 * found.poisson.upper < found.shuffled[0] < found.shuffled[1]
    priced = [events.ShuffledEpochsDpEvent(1.1, *each) for each in ((20, 2), (19, 3))]
    ends = [epsilon(each, delta=1e-6, neighboring_relation="replace-special") for each in priced]
    assert found.shuffled == (ends[0].lower, ends[1].upper)
    assert main(["check", str(path), "--delta", "1e-6"]) == 0
    assert f"[{found.shuffled[0]:.4g}, {found.shuffled[1]:.4g}]" in capsys.readouterr().out
    torch.save({"history": [(1.0, 0.1, 2), (1.0, 0.2, 2)]}, path)
    assert opened(path, delta=1e-6).shuffled is None
    for wrong in ({"history": []}, {"a": 1}, [1]):
        torch.save(wrong, path)
        with pytest.raises(ValueError, match="checkpoint must"):
            opened(path, delta=1e-6)
