"""Samplers inside PyTorch's loader, and what its own samplers cost."""

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


def sliced(first, last):
    return TensorDataset(DATA.tensors[1][first:last])


OTHER = TensorDataset(torch.arange(N), torch.randn(N, 4))
HALVES = Subset(DATA, range(50)), Subset(DATA, range(50, N))
TWICE = Subset(DATA, [0] * 10 + list(range(10, N)))
# Data sets of the classes that PyTorch has, by what is said of those that have no price.
DATASETS = {
    "": {
        "tensors": DATA,
        "list": list(range(N)),
        "subset": HALVES[0],
        "subset of a subset": Subset(HALVES[1], [3, 1, 2]),
        "subset that leaves the second one out": Subset(TWICE, range(9, 60)),
        "split": torch.utils.data.random_split(DATA, [60, 43])[0],
        "concatenated": ConcatDataset([DATA, OTHER]),
        "concatenated halves": ConcatDataset(HALVES),
        "slices that do not overlap": ConcatDataset([sliced(0, 60), sliced(60, N)]),
        "stacked": StackDataset(DATA, OTHER),
        "stacked by name": StackDataset(x=DATA, y=DATA),
    },
    "holds a record more than once": {
        "subset, a row twice": TWICE,
        "subset, a row by two names": Subset(DATA, [0, -N, 5]),
        "subset of a subset, twice": Subset(Subset(DATA, [7, 8, 7]), [0, 2]),
        "concatenated twice": ConcatDataset([DATA, DATA]),
        "concatenated with a part": ConcatDataset([DATA, HALVES[0]]),
        "concatenated, nested": ConcatDataset([OTHER, ConcatDataset([HALVES[0], DATA])]),
        "the same tensors": ConcatDataset([DATA, TensorDataset(*DATA.tensors)]),
        "slices that overlap": ConcatDataset([sliced(0, 60), sliced(59, N)]),
        "stacked, a row twice": StackDataset(OTHER, TWICE),
        "stacked and concatenated": ConcatDataset(
            [StackDataset(DATA, OTHER), StackDataset(OTHER, DATA)]
        ),
    },
    "data pipes": {
        "pipe": SequenceWrapper(list(range(N))),
        "subset of a pipe": Subset(SequenceWrapper([0, 0]).concat(SequenceWrapper([0])), [0]),
    },
}
CASES = {name: (data, said) for said, found in DATASETS.items() for name, data in found.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_data_set_with_a_record_twice_has_no_price(name):
    """With our sampler, PyTorch's and Opacus', and in a guard's own loader."""
    data, said = CASES[name]
    n = len(data)
    for options in (
        {"batch_sampler": AllocationSampler(n, 9)},
        {"batch_size": 2, "shuffle": True},
        {"batch_size": 2, "sampler": SubsetRandomSampler(range(n))},
        {"batch_size": 2},
    ):
        found = check(DataLoader(data, **options))
        assert (found.event is None) is (said != ""), options
        assert not said or (said in found.sentence and found.law is None), options
    plan = calibrate.dpsgd(n=n, batch_size=1, steps=2, epsilon=2.0, delta=1e-5)
    guard = Guard(torch.nn.Linear(4, 2), plan)
    if not said:
        guard.loader(data)
        return
    with pytest.raises(ValueError, match="dataset must have each record once, and it"):
        guard.loader(data)
    assert guard.ledger.answers == 0


def in_torch(base, package="torch."):
    """Return the public classes of a package that are derived from one of torch's."""
    found, waiting = set(), [base]
    while waiting:
        for each in waiting.pop().__subclasses__():
            waiting.append(each)
            if each.__module__.startswith(package) and ".datapipes." not in each.__module__:
                found.add(each.__name__)
    return found


def test_every_class_of_data_sets_and_every_sampler_is_in_a_table():
    """Iterable data sets have no rows, and so a sampler of their own, which is refused."""
    held = {type(data).__name__ for data, _ in CASES.values()} | {"IterableDataset", "Streamed"}
    assert in_torch(torch.utils.data.Dataset) - held == {"ChainDataset"}
    assert issubclass(ChainDataset, IterableDataset)
    held = " ".join(LOADERS)
    assert {each for each in in_torch(torch.utils.data.Sampler) if each not in held} == set()


class Streamed(IterableDataset):
    def __iter__(self):
        return iter(range(N))


class Sorted(RandomSampler):
    def __iter__(self):
        return iter(range(N))


class Again(PoissonSampler):
    def __iter__(self):
        return (2 * rows for rows in super().__iter__())


NAMESAKE = type("PoissonSampler", (), {})
ROWS = TensorDataset(torch.arange(N))
SHUFFLED = RandomSampler(ROWS)
GAUSSIAN = events.GaussianDpEvent(SIGMA)


def shuffled(batches):
    return events.ShuffledEpochsDpEvent(SIGMA, batches, EPOCHS)


def replaced(size, steps):
    event = events.SampledWithReplacementDpEvent(N, size, GAUSSIAN)
    return events.SelfComposedDpEvent(event, steps)


def by(sampler, batch_size=10, **options):
    return {"sampler": sampler, "batch_size": batch_size, **options}


# Loaders by what they are made of; their event, or what is said of those that have no price.
LOADERS = {
    "shuffle": ({"batch_size": 10, "shuffle": True}, shuffled(10)),
    "shuffle, drop_last": ({"batch_size": 10, "shuffle": True, "drop_last": True}, shuffled(10)),
    "shuffle, in one batch": ({"batch_size": 200, "shuffle": True}, shuffled(1)),
    "shuffle, single records": (by(SHUFFLED, None), shuffled(N)),
    "RandomSampler": (by(SHUFFLED), shuffled(10)),
    "RandomSampler, some": (by(RandomSampler(ROWS, num_samples=9)), "9 draws without replacement"),
    "RandomSampler, more": (by(RandomSampler(ROWS, num_samples=2 * N), 200), "206 draws without"),
    "RandomSampler of others": (by(RandomSampler(range(N - 1))), ""),
    "with replacement": (
        by(RandomSampler(ROWS, replacement=True)),
        events.ComposedDpEvent([replaced(10, 30), replaced(3, 3)]),
    ),
    "with replacement, drop_last": (
        by(RandomSampler(ROWS, replacement=True), drop_last=True),
        events.ComposedDpEvent([replaced(10, 30)]),
    ),
    "SequentialSampler": (
        by(SequentialSampler(ROWS)),
        events.SelfComposedDpEvent(GAUSSIAN, EPOCHS),
    ),
    "SubsetRandomSampler": (by(SubsetRandomSampler(range(20)), 5), shuffled(4)),
    "SubsetRandomSampler, twice": (by(SubsetRandomSampler([0, -N, 1])), "more than once"),
    "WeightedRandomSampler": (by(WeightedRandomSampler([1.0] * N, N)), "probabilities that differ"),
    "DistributedSampler": (by(DistributedSampler(ROWS, 2, 0)), "public seed"),
    "_InfiniteConstantSampler": ({"dataset": Streamed(), "batch_size": 10}, "order of its own"),
    "BatchSampler": ({"batch_sampler": BatchSampler(SHUFFLED, 10, False)}, shuffled(10)),
    "BatchSampler as a sampler": (by(BatchSampler(SHUFFLED, 10, True), None), shuffled(10)),
    "BatchSampler, nested": (
        {"batch_sampler": BatchSampler(BatchSampler(SHUFFLED, 9, False), 5, False)},
        "",
    ),
    "rows in a list": (by(list(range(N))), "not known here"),
    "batches in a list": ({"batch_sampler": [[0, 1], [0, 2]]}, "not known here"),
    "a derived one": (by(Sorted(ROWS)), "not known here"),
    "a derived one of ours": ({"batch_sampler": Again(N, 0.1)}, "not known here"),
    "one with the name of ours": ({"batch_sampler": NAMESAKE()}, "not known here"),
}
OWN = [AllocationSampler(N, 9), PoissonSampler(N, 0.1), FixedSizeSampler(N, 10)]
for own in OWN:
    name, event = type(own).__name__, own.event(SIGMA, EPOCHS)
    others = type(own)(N - 1, 9 if own is not OWN[1] else 0.1)
    LOADERS |= {
        name: ({"batch_sampler": own}, event),
        f"{name} as a sampler": (by(own, None), event),
        f"{name}, one by one": ({"sampler": own}, event),
        f"{name}, merged": (by(own), "puts 10 of its batches together"),
        f"{name}, merged by hand": (
            {"batch_sampler": BatchSampler(own, 4, True)},
            "batch_size=None",
        ),
        f"{name} of others": ({"batch_sampler": others}, "n=102 records, and the data set has 103"),
    }


@pytest.mark.parametrize("name", LOADERS)
def test_a_loader_has_the_price_of_its_draws_and_no_record_is_twice_in_a_batch(name):
    """Through PyTorch's own loader; draws with replacement alone are priced with repetitions."""
    options, told = LOADERS[name]
    loader = DataLoader(**{"dataset": ROWS, "collate_fn": lambda rows: rows, **options})
    found = check(loader)
    if isinstance(told, str):
        assert "sampler" not in options or found.name == type(options["sampler"]).__name__
        assert (found.law, found.event) == (None, None)
        assert told in found.sentence
        return
    own = [each for each in OWN if name.startswith(type(each).__name__)]
    assert found.law == (own[0].law if own else None)
    assert found.event(SIGMA, EPOCHS) == told
    shuffles = isinstance(told, events.ShuffledEpochsDpEvent)
    assert ("shuffles" in found.sentence) is shuffles
    # Of ten batches and a short one, or one that is left out, one end is known.
    assert ("upper end" in found.sentence) is (shuffles and told.batches == 10)
    once_an_epoch = found.law is None or isinstance(found.law, RandomAllocation)
    for _ in range(30 if "replacement" not in name else 0):
        epoch = Counter()
        for batch in loader:
            rows = batch if isinstance(batch, list) else [batch]
            counts = Counter(row for each in rows for row in each[0].reshape(-1).tolist())
            assert set(counts.values()) <= {1}
            epoch += counts
        assert not once_an_epoch or set(epoch.values()) == {1}


def test_draws_with_replacement_cost_more_than_poisson_batches():
    poisson = events.dpsgd(sampling_probability=10 / N, noise_multiplier=SIGMA, steps=30)
    one, other = (
        accountants.epsilon(event, delta=1e-5, neighboring_relation="replace-special")
        for event in (poisson, LOADERS["with replacement, drop_last"][1])
    )
    assert one < other


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
