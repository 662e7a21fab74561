"""Samplers inside PyTorch's loader, and what its own samplers cost."""

import importlib
import pickle
from collections import Counter
from fractions import Fraction

import pytest

from dpcal import accountants, calibrate
from dpcal.accountants import events
from dpcal.accountants.samplers import Poisson, RandomAllocation
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
    ChainDataset,
    ConcatDataset,
    DataLoader,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)
from torch.utils.data.datapipes.map import SequenceWrapper  # noqa: E402

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


HALVES = Subset(DATA, range(50)), Subset(DATA, range(50, N))
TWICE = Subset(DATA, [0] * 10 + list(range(10, N)))
OTHER = TensorDataset(torch.arange(N), torch.randn(N, 4))
# Data sets of the classes that PyTorch has, as often as a record is in them at most.
DATASETS = {
    "tensors": (DATA, 1),
    "list": (list(range(N)), 1),
    "subset": (HALVES[0], 1),
    "subset, a row twice": (TWICE, 10),
    "subset, a row by two names": (Subset(DATA, [0, -N, 5]), 2),
    "subset of a subset": (Subset(HALVES[1], [3, 1, 2]), 1),
    "subset of a subset, twice": (Subset(Subset(DATA, [7, 8, 7]), [0, 2]), 2),
    "subset that leaves the second one out": (Subset(TWICE, range(9, 60)), 1),
    "split": (torch.utils.data.random_split(DATA, [60, 43])[0], 1),
    "concatenated": (ConcatDataset([DATA, OTHER]), 1),
    "concatenated halves": (ConcatDataset(HALVES), 1),
    "concatenated twice": (ConcatDataset([DATA, DATA]), 2),
    "concatenated with a part": (ConcatDataset([DATA, HALVES[0]]), 2),
    "concatenated, nested": (ConcatDataset([OTHER, ConcatDataset([HALVES[0], DATA])]), 2),
    "the same tensors": (ConcatDataset([DATA, TensorDataset(*DATA.tensors)]), 2),
    "slices that overlap": (
        ConcatDataset([TensorDataset(DATA.tensors[1][:60]), TensorDataset(DATA.tensors[1][59:])]),
        2,
    ),
    "slices that do not": (
        ConcatDataset([TensorDataset(DATA.tensors[1][:60]), TensorDataset(DATA.tensors[1][60:])]),
        1,
    ),
    "stacked": (StackDataset(DATA, OTHER), 1),
    "stacked by name": (StackDataset(x=DATA, y=DATA), 1),
    "stacked, a row twice": (StackDataset(OTHER, TWICE), 10),
    "stacked and concatenated": (
        ConcatDataset([StackDataset(DATA, OTHER), StackDataset(OTHER, DATA)]),
        2,
    ),
    "pipe": (SequenceWrapper(list(range(N))), None),
    "subset of a pipe": (Subset(SequenceWrapper([0, 0]).concat(SequenceWrapper([0])), [0]), None),
}


@pytest.mark.parametrize("name", DATASETS)
def test_a_data_set_with_a_record_twice_has_no_price(name):
    """With our sampler, PyTorch's and Opacus', and in a guard's own loader."""
    data, most = DATASETS[name]
    n = len(data)
    samplers = [
        {"batch_sampler": AllocationSampler(n, 9)},
        {"batch_size": 2, "shuffle": True},
        {"batch_size": 2, "sampler": SubsetRandomSampler(range(n))},
        {"batch_size": 2},
    ]
    found = [check(DataLoader(data, **options)) for options in samplers]
    assert [each.event is not None for each in found] == [most == 1] * len(samplers)
    if most != 1:
        words = "holds a record more than once" if most else "data pipes"
        assert all(words in each.sentence and each.law is None for each in found)
    plan = calibrate.dpsgd(n=n, batch_size=1, steps=2, epsilon=2.0, delta=1e-5)
    guard = Guard(torch.nn.Linear(4, 2), plan)
    if most == 1:
        guard.loader(data)
        return
    with pytest.raises(ValueError, match="dataset must have each record once, and it"):
        guard.loader(data)
    assert guard.ledger.answers == 0


def in_torch(base, package):
    """Return the public classes of a package that are derived from one of torch's."""
    found, waiting = set(), [base]
    while waiting:
        for each in waiting.pop().__subclasses__():
            waiting.append(each)
            if each.__module__.startswith(package) and ".datapipes." not in each.__module__:
                found.add(each.__name__)
    return found


def test_every_class_of_data_sets_is_in_the_table():
    """Iterable data sets have no rows, and so a sampler of their own, which is refused."""
    held = {type(data).__name__ for data, _ in DATASETS.values()} | {"IterableDataset", "Streamed"}
    assert in_torch(torch.utils.data.Dataset, "torch.") - held == {"ChainDataset"}
    assert issubclass(ChainDataset, IterableDataset)


ROWS = TensorDataset(torch.arange(N))
INNER = AllocationSampler, PoissonSampler, FixedSizeSampler
# Loaders by what they are made of; whether they have a price.
LOADERS = {
    "shuffle": ({"batch_size": 10, "shuffle": True}, True),
    "shuffle, drop_last": ({"batch_size": 10, "shuffle": True, "drop_last": True}, True),
    "shuffle, single records": ({"batch_size": None, "sampler": RandomSampler(ROWS)}, True),
    "RandomSampler": ({"batch_size": 10, "sampler": RandomSampler(ROWS)}, True),
    "RandomSampler, some": (
        {"batch_size": 9, "sampler": RandomSampler(ROWS, num_samples=9)},
        False,
    ),
    "RandomSampler, more": (
        {"batch_size": 200, "sampler": RandomSampler(ROWS, num_samples=2 * N)},
        False,
    ),
    "RandomSampler of others": ({"batch_size": 9, "sampler": RandomSampler(range(N - 1))}, False),
    "with replacement": (
        {"batch_size": 10, "sampler": RandomSampler(ROWS, replacement=True)},
        True,
    ),
    "SequentialSampler": ({"batch_size": 10, "sampler": SequentialSampler(ROWS)}, True),
    "SubsetRandomSampler": ({"batch_size": 10, "sampler": SubsetRandomSampler(range(50))}, True),
    "SubsetRandomSampler, twice": (
        {"batch_size": 10, "sampler": SubsetRandomSampler([0, -N, 1])},
        False,
    ),
    "WeightedRandomSampler": (
        {"batch_size": 10, "sampler": WeightedRandomSampler([1.0] * N, N)},
        False,
    ),
    "DistributedSampler": ({"batch_size": 10, "sampler": DistributedSampler(ROWS, 2, 0)}, False),
    "BatchSampler": ({"batch_sampler": BatchSampler(RandomSampler(ROWS), 10, False)}, True),
    "BatchSampler as a sampler": (
        {"sampler": BatchSampler(RandomSampler(ROWS), 10, True), "batch_size": None},
        True,
    ),
    "BatchSampler, nested": (
        {"batch_sampler": BatchSampler(BatchSampler(RandomSampler(ROWS), 9, False), 5, False)},
        False,
    ),
    "rows in a list": ({"batch_size": 10, "sampler": list(range(N))}, False),
    "batches in a list": ({"batch_sampler": [[0, 1], [0, 2]]}, False),
}
for each, size in zip(INNER, (9, 0.1, 10), strict=True):
    name = each.__name__
    LOADERS |= {
        name: ({"batch_sampler": each(N, size)}, True),
        f"{name} as a sampler": ({"sampler": each(N, size), "batch_size": None}, True),
        f"{name}, one by one": ({"sampler": each(N, size)}, True),
        f"{name}, merged": ({"sampler": each(N, size), "batch_size": 10}, False),
        f"{name}, merged by hand": ({"batch_sampler": BatchSampler(each(N, size), 4, True)}, False),
        f"{name} of others": ({"batch_sampler": each(N - 1, size)}, False),
    }


@pytest.mark.parametrize("name", LOADERS)
def test_in_a_loader_with_a_price_no_record_is_twice_in_a_batch(name):
    """Through PyTorch's own loader; draws with replacement alone are priced with repetitions."""
    options, priced = LOADERS[name]
    loader = DataLoader(ROWS, collate_fn=lambda rows: rows, **options)
    found = check(loader)
    assert (found.event is not None) is priced, found.sentence
    if not priced:
        assert found.law is None
        return
    event = found.event(SIGMA, 1)
    once_an_epoch = found.law is None or isinstance(found.law, RandomAllocation)
    for _ in range(30):
        epoch = Counter()
        for batch in loader:
            rows = batch if isinstance(batch, list) else [batch]
            counts = Counter(row for each in rows for row in each[0].reshape(-1).tolist())
            assert name == "with replacement" or set(counts.values()) <= {1}
            epoch += counts
        assert name == "with replacement" or not once_an_epoch or set(epoch.values()) == {1}
    if name == "with replacement":
        assert "SampledWithReplacementDpEvent" in repr(event)


def test_every_sampler_of_pytorch_is_in_the_table():
    held = " ".join(LOADERS) + " _InfiniteConstantSampler"
    assert {
        each for each in in_torch(torch.utils.data.Sampler, "torch.") if each not in held
    } == set()


def test_batches_that_a_loader_merges_are_refused_with_the_way_out():
    loader = DataLoader(ROWS, sampler=PoissonSampler(N, 0.1), batch_size=10)
    assert "puts 10 of its batches together" in check(loader).sentence
    assert "batch_size=None" in check(loader).sentence


class Again(PoissonSampler):
    def __iter__(self):
        return (2 * rows for rows in super().__iter__())


def test_a_sampler_that_is_derived_and_draws_otherwise_is_not_known():
    assert check(DataLoader(ROWS, batch_sampler=Again(N, 0.1))).event is None


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
