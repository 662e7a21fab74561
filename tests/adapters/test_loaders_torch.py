"""Samplers inside PyTorch's loader, and what its own samplers cost."""

import importlib
import pickle
import re
from collections import Counter
from fractions import Fraction

import pytest
from _tree import ROOT

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.accountants.samplers import Poisson
from dpcal.adapters.loaders import (
    AllocationSampler,
    FixedSizeSampler,
    PoissonSampler,
    check,
    drawn_probability,
)
from dpcal.errors import UnsupportedEvent

torch = pytest.importorskip("torch")

from torch.utils.data import (  # noqa: E402
    BatchSampler,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

from dpcal.adapters.torch import Guard, collate  # noqa: E402

N = 103
DATA = TensorDataset(torch.arange(N), torch.randn(N, 4))
SIGMA, EPOCHS = 1.5, 3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize(
    ("kind", "size"),
    [(AllocationSampler, 9), (PoissonSampler, 0.1), (FixedSizeSampler, 10)],
    ids=["allocation", "poisson", "fixed-size"],
)
def test_a_loader_gives_the_sampled_records_with_workers_too(kind, size, workers):
    sampler, twin = kind(N, size), kind(N, size)
    twin.load_state_dict(sampler.state_dict())
    loader = DataLoader(DATA, batch_sampler=sampler, collate_fn=collate(DATA), num_workers=workers)
    assert len(loader) == len(sampler)
    for _ in range(2):
        assert [rows.tolist() for rows, _ in loader] == list(twin)


def test_workers_run_ahead_and_a_loop_that_counts_goes_on_where_it_was():
    sampler = AllocationSampler(N, 9)
    batches = iter(DataLoader(DATA, batch_sampler=sampler, num_workers=2, collate_fn=collate(DATA)))
    for _ in range(3):
        next(batches)
    assert sampler.state_dict()["batches"] > 3
    again = AllocationSampler(N, 9)
    again.load_state_dict(sampler.state_dict(batches=3))
    rest = [rows.tolist() for rows, _ in batches]
    assert len(rest) == 6
    assert list(again) == rest


class Named(torch.utils.data.Dataset):
    """Records with a number, a text, and a table in a mapping."""

    def __len__(self):
        return 2

    def __getitem__(self, row):
        return {"name": f"record {row}", "parts": (row, torch.full((3, 2), float(row)))}


def test_empty_batches_keep_the_form_of_batches_and_hold_no_record():
    data = Named()
    loader = DataLoader(data, batch_sampler=AllocationSampler(2, 8), collate_fn=collate(data))
    sizes = Counter()
    for batch in loader:
        numbers, tables = batch["parts"]
        sizes[len(numbers)] += 1
        assert tables.shape == (len(numbers), 3, 2)
        assert (numbers.dtype, tables.dtype) == (torch.int64, torch.float32)
        assert batch["name"] == [f"record {row}" for row in numbers.tolist()]
    assert sizes[0] >= 6
    assert pickle.loads(pickle.dumps(collate(data)))([])["name"] == []
    with pytest.raises(IndexError):
        default_collate([])
    with pytest.raises(TypeError, match="got a set: give the loader a collate_fn"):
        collate(data, lambda items: set(items[0]))


def verdict(**options):
    return check(DataLoader(DATA, **options))


def bracket(event):
    return accountants.epsilon(event, delta=1e-5, neighboring_relation="replace-special")


@pytest.mark.parametrize(
    ("options", "batches"),
    [
        ({"batch_size": 10, "shuffle": True}, 10),
        ({"batch_size": 10, "shuffle": True, "drop_last": True}, 10),
        ({"batch_size": 200, "shuffle": True}, 1),
        ({"batch_size": None, "sampler": RandomSampler(DATA)}, N),
        ({"batch_size": None, "sampler": BatchSampler(RandomSampler(DATA), 10, False)}, 10),
        ({"batch_size": 5, "sampler": SubsetRandomSampler(range(20))}, 4),
    ],
)
def test_shuffles_have_the_bracket_of_their_number_of_whole_batches(options, batches):
    found = verdict(**options)
    assert found.event(SIGMA, EPOCHS) == events.ShuffledEpochsDpEvent(SIGMA, batches, EPOCHS)
    assert found.law is None
    assert "shuffles" in found.sentence


def test_an_even_shuffle_has_both_ends():
    even = TensorDataset(torch.arange(100))
    found = check(DataLoader(even, batch_size=10, shuffle=True))
    assert "upper end" not in found.sentence
    assert "upper end" not in verdict(batch_size=200, shuffle=True).sentence
    assert "upper end" in verdict(batch_size=10, shuffle=True).sentence


def test_a_known_order_costs_a_gaussian_answer_an_epoch():
    found = verdict(batch_size=10)
    assert found.name == "SequentialSampler"
    assert found.event(SIGMA, 4) == events.SelfComposedDpEvent(events.GaussianDpEvent(SIGMA), 4)


@pytest.mark.parametrize("drop_last", [False, True])
def test_draws_with_replacement_cost_more_than_poisson_batches(drop_last):
    found = verdict(
        batch_size=10, sampler=RandomSampler(DATA, replacement=True), drop_last=drop_last
    )
    gaussian = events.GaussianDpEvent(SIGMA)
    parts = [events.SelfComposedDpEvent(events.SampledWithReplacementDpEvent(N, 10, gaussian), 30)]
    if not drop_last:
        short = events.SampledWithReplacementDpEvent(N, 3, gaussian)
        parts.append(events.SelfComposedDpEvent(short, 3))
    event = found.event(SIGMA, EPOCHS)
    assert event == events.ComposedDpEvent(parts)
    poisson = events.dpsgd(sampling_probability=10 / N, noise_multiplier=SIGMA, steps=30)
    assert bracket(poisson) < bracket(event)


class Streamed(IterableDataset):
    def __iter__(self):
        return iter(range(N))


class Sorted(RandomSampler):
    def __iter__(self):
        return iter(range(N))


@pytest.mark.parametrize(
    ("loader", "name", "words"),
    [
        (
            DataLoader(DATA, batch_size=10, sampler=WeightedRandomSampler([1.0] * N, N)),
            "WeightedRandomSampler",
            "probabilities that differ",
        ),
        (
            DataLoader(DATA, batch_size=10, sampler=DistributedSampler(DATA, 2, 0)),
            "DistributedSampler",
            "public seed",
        ),
        (DataLoader(Streamed(), batch_size=10), "_InfiniteConstantSampler", "order of its own"),
        (
            DataLoader(DATA, batch_size=10, sampler=SubsetRandomSampler([1, 2, 1])),
            "SubsetRandomSampler",
            "more than once",
        ),
        (
            DataLoader(DATA, batch_size=10, sampler=RandomSampler(DATA, num_samples=50)),
            "RandomSampler",
            "50 draws without replacement of 103",
        ),
        (DataLoader(DATA, batch_size=10, sampler=Sorted(DATA)), "Sorted", "not known here"),
        (DataLoader(DATA, batch_sampler=[[0, 1], [2]]), "list", "not known here"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_loaders_without_a_price_are_named(loader, name, words):
    found = check(loader)
    assert (found.name, found.law, found.event) == (name, None, None)
    assert words in found.sentence


def test_own_samplers_pass_inside_a_loader():
    sampler = AllocationSampler(N, 9)
    found = check(DataLoader(DATA, batch_sampler=sampler))
    assert found.event(SIGMA, EPOCHS) == sampler.event(SIGMA, EPOCHS)


def test_a_guard_takes_no_loader():
    plan = calibrate.dpsgd(n=N, batch_size=10, steps=2, epsilon=2.0, delta=1e-5)
    guard = Guard(torch.nn.Linear(4, 2), plan)
    with pytest.raises(ValueError, match=r"give loader\.dataset.*RandomSampler\. It shuffles"):
        guard.loader(DataLoader(DATA, batch_size=10, shuffle=True))
    assert guard.ledger.answers == 0


def test_opacus_coins_are_counted_one_by_one():
    """All 2^24 numbers that ``torch.rand`` gives, in the comparison that Opacus makes."""
    draws = torch.rand(10_000) * 2**24
    assert bool((draws == draws.floor()).all())
    numbers = torch.arange(2**24, dtype=torch.float32) / 2**24
    for rate in (1e-8, 1e-6, 512 / 60_000, 0.02, 1 / 117, 0.3, 0.7, 1 - 2.0**-30):
        share = Fraction(int((numbers < rate).sum()), 2**24)
        bound = Fraction(drawn_probability(rate))
        assert max(share, Fraction(rate)) <= bound <= share + Fraction(1, 2**24)


def test_opacus_loaders_are_poisson_samples_at_the_rate_that_is_drawn():
    opacus = pytest.importorskip("opacus")
    loader = opacus.data_loader.DPDataLoader.from_data_loader(DataLoader(DATA, batch_size=10))
    found = check(loader)
    assert found.name == "UniformWithReplacementSampler"
    assert found.law == Poisson(drawn_probability(1 / 11))
    assert found.event(SIGMA, EPOCHS) == events.dpsgd(
        sampling_probability=drawn_probability(1 / 11), noise_multiplier=SIGMA, steps=33
    )


@pytest.mark.filterwarnings("ignore")
def test_opacus_accountant_refuses_a_loader_that_its_steps_are_not_about():
    opacus = pytest.importorskip("opacus")
    importlib.import_module("dpcal.adapters.opacus")  # registers the accountant

    def prepared(poisson_sampling, **options):
        engine = opacus.PrivacyEngine(accountant="dpcal")
        model = torch.nn.Linear(4, 2)
        _, _, loader = engine.make_private(
            module=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(DATA, **options), noise_multiplier=1.0, max_grad_norm=1.0,
            poisson_sampling=poisson_sampling,
        )  # fmt: skip
        return engine.accountant, loader

    accountant, loader = prepared(True, batch_size=10, shuffle=True)
    accountant.step(noise_multiplier=1.0, sample_rate=1 / len(loader))
    assert isinstance(accountant.check(loader).law, Poisson)
    accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    with pytest.raises(UnsupportedEvent, match=r"priced at a rate of 0\.01"):
        accountant.check(loader)
    accountant, loader = prepared(False, batch_size=10, shuffle=True)
    with pytest.raises(UnsupportedEvent, match=r"has RandomSampler\. It shuffles"):
        accountant.check(loader)
    own = PoissonSampler(N, 0.1)
    accountant, loader = prepared(False, batch_sampler=own, collate_fn=collate(DATA))
    accountant.step(noise_multiplier=1.0, sample_rate=1 / len(loader))
    assert accountant.check(loader).law == own.law


def test_the_lines_of_the_page_run(capsys):
    page = (ROOT / "docs" / "other_libraries.md").read_text()
    section = page.partition("### A loader in place of `shuffle=True`")[2]
    lines = re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]
    exec(lines, {"dataset": DATA})
    told = capsys.readouterr().out.split()
    event = AllocationSampler(N, 10).event(1.1, 5)
    assert float(told[0]) == accountants.epsilon(event, delta=1e-6)
    assert told[1] == "RandomSampler"
