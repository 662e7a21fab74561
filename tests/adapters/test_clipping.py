"""Clipped sums of a module's gradients: of single records, in whole numbers, within a bound."""

import copy
import itertools
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.func import functional_call, grad, vmap  # noqa: E402
from torch.nn import functional  # noqa: E402

from dpcal._ext.sums import grid_step  # noqa: E402
from dpcal.adapters import clipping, terms  # noqa: E402
from dpcal.adapters.clipping import ClippedSums  # noqa: E402
from dpcal.adapters.stepwise import FRACTION  # noqa: E402

C = 0.5


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.middle = nn.Embedding(9, 6, padding_idx=2), nn.Linear(6, 6)
        self.out = nn.Linear(6, 9, bias=False)
        self.out.weight = self.words.weight

    def forward(self, x):
        return self.out(torch.tanh(self.middle(self.middle(self.words(x))))).mean(1)


class Bare(nn.Module):
    """Uses of parameters that are no layer's, and a weight and a bias with a second use."""

    def __init__(self):
        super().__init__()
        self.own, self.layer = nn.Parameter(torch.randn(3, 5)), nn.Linear(6, 5)
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x):
        hidden = self.layer(x) * self.scale
        return (
            hidden @ self.own.T + self.layer.bias[:3] + functional.linear(x, self.layer.weight[:3])
        )


class Changed(nn.Module):
    """Outputs of layers that are changed in place, the same for all, unused, or in a transform."""

    def __init__(self):
        super().__init__()
        self.nothing, self.attend = (
            nn.Parameter(torch.ones(3)),
            nn.MultiheadAttention(4, 2, batch_first=True),
        )
        self.convolve, self.places = nn.Conv1d(1, 4, 3, padding=1), nn.Embedding(5, 4)
        self.layer, self.inner, self.unused, self.last = (nn.Linear(4, 4) for _ in range(4))

    def forward(self, x):
        hidden = self.convolve(x).relu_().mT + self.places(torch.arange(5))
        hidden = self.layer(hidden).mul_(2).tanh_()
        self.unused(hidden)
        hidden = self.attend(hidden, 2 * hidden, hidden, need_weights=False)[0]
        attend = functional.scaled_dot_product_attention
        inner = vmap(lambda each: attend(self.inner(each), each, each))(hidden)
        return self.last(hidden + inner).mean(1)


class Mixing(nn.Linear):
    def forward(self, x):
        return super().forward(x - x.mean(0))


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.out = nn.Embedding(9, 8, padding_idx=0), nn.Linear(8, 3)
        self.layer = nn.TransformerEncoderLayer(8, 2, 12, dropout=0.0, batch_first=True)

    def forward(self, ids, mask):
        both, mask = (torch.cat([each, each.flip(1)]) for each in (self.words(ids), mask))
        return self.out(self.layer(both, src_key_padding_mask=mask)[:1, 0])


def images(*shape):
    return lambda n: torch.randn(n, *shape)


def words(n):
    return torch.randint(0, 9, (n, 5))


def texts(n):
    return {"ids": words(n), "mask": torch.arange(5) >= torch.randint(1, 6, (n, 1))}


MODELS = {
    "layers": (lambda: nn.Sequential(nn.Linear(6, 7), nn.Tanh(), nn.Linear(7, 3)), images(6)),
    "sequences": (
        lambda: nn.Sequential(nn.Linear(4, 30), nn.LayerNorm(30), nn.Flatten(), nn.Linear(90, 3)),
        images(3, 4),
    ),
    "odd convolutions": (
        lambda: nn.Sequential(
            nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=(1, 0), dilation=(1, 2), groups=2),
            nn.GroupNorm(2, 6),
            nn.Conv2d(6, 6, 2, groups=6, padding_mode="circular", padding=1),
            nn.Conv2d(6, 3, 3, padding="same"),
            nn.Flatten(),
            nn.Linear(90, 3),
        ),
        images(4, 7, 7),
    ),
    "one and three axes": (
        lambda: nn.Sequential(
            nn.Conv1d(2, 6, 3, padding="valid"),
            nn.Unflatten(1, (1, 6, 1)),
            nn.Conv3d(1, 2, (3, 1, 3), padding=(1, 0, 1)),
            nn.Flatten(),
            nn.Linear(84, 3),
        ),
        images(2, 9),
    ),
    "tied": (Tied, words),
    "bare": (Bare, images(6)),
    "changed": (Changed, images(1, 5)),
    "mixing": (lambda: Mixing(6, 3), images(6)),
    "bags": (
        lambda: nn.Sequential(nn.Embedding(9, 6), nn.Flatten(), nn.Linear(30, 3, bias=False)),
        words,
    ),
    "attention": (Text, texts),
}


def called(model, values, x):
    if isinstance(x, dict):
        return functional_call(model, values, (), x)
    return functional_call(model, values, (x,))


def sums_of(model, x, y, bound=C, loss=functional.cross_entropy, clipping="flat"):
    shapes = {name: tuple(each.shape) for name, each in model.named_parameters()}
    sums = ClippedSums(model, shapes, loss, clipping, records=1 << 10)
    return sums, sums(x, y, dict(model.named_parameters()), bound)


def released(steps, fractions, bound=C):
    return (steps + (fractions >> FRACTION)) * grid_step(bound)


def one_by_one(model, x, y):
    """Return gradients of single records, in doubles, shape (m, dimension)."""
    model = copy.deepcopy(model).double()
    values = {name: each.detach() for name, each in model.named_parameters()}
    x = {"x": x} if isinstance(x, torch.Tensor) else x
    x = {name: each.double() if each.is_floating_point() else each for name, each in x.items()}

    def loss(values, x, y):
        x = {name: each[None] for name, each in x.items()}
        return functional.cross_entropy(called(model, values, x.get("x", x)), y[None])

    found = vmap(grad(loss), in_dims=(None, 0, 0))(values, x, y)
    return torch.cat([each.reshape(len(y), -1) for each in found.values()], 1).numpy()


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("numbers", [1 << 23, 12], ids=["whole", "in blocks"])
def test_sums_are_those_of_gradients_of_single_records(name, numbers, monkeypatch):
    """Up to single precision, the bound's shortening and the last rounding."""
    monkeypatch.setattr(clipping, "_NUMBERS", numbers)
    torch.manual_seed(sum(name.encode()))
    make, inputs = MODELS[name]
    model, x, y = make(), inputs(23), torch.randint(0, 3, (23,))
    want = one_by_one(model, x, y)
    norms = np.linalg.norm(want, axis=1, keepdims=True)
    for bound in (0.6 * float(np.median(norms)), 1.1 * float(norms.max())):
        clipped = (want * np.minimum(1, bound / norms)).sum(0)
        off = np.linalg.norm(released(*sums_of(model, x, y, bound)[1], bound) - clipped)
        assert off <= 2e-4 * bound * math.sqrt(len(y))


def convolution(rng, axes):
    """Return a random convolution, with normalised channels, and its images."""
    size, groups, channels = rng.integers(3, 7), rng.integers(1, 3), 2 * rng.integers(1, 3)
    make = (nn.Conv1d, nn.Conv2d, nn.Conv3d)[axes - 1]
    kernel, stride, padding, dilation = (
        tuple(rng.integers(low, 3, axes).tolist()) for low in (1, 1, 0, 1)
    )
    layer = make(
        2, int(channels), kernel, stride, padding, dilation, int(groups), bias=bool(groups - 1)
    )
    shape = (2, *[int(size)] * axes)
    middle = [layer, nn.GroupNorm(int(channels) // 2, int(channels)), nn.Tanh(), nn.Flatten()]
    length = nn.Sequential(*middle)(torch.zeros(1, *shape)).shape[1]
    return nn.Sequential(*middle, nn.Linear(length, 3)), images(*shape)


def dense(rng):
    """Return random linear maps of single vectors, or of sequences with normalised positions."""
    sizes = rng.integers(1, 40, rng.integers(2, 5)).tolist()
    layers = []
    for inputs, outputs in itertools.pairwise(sizes):
        layers += [nn.Linear(inputs, outputs, bias=bool(rng.integers(2))), nn.Tanh()]
    T = int(rng.choice([1, 1, 2, 7, 60]))
    if T == 1:
        return nn.Sequential(*layers, nn.Linear(sizes[-1], 3)), images(sizes[0])
    last = [nn.LayerNorm(sizes[-1]), nn.Flatten(), nn.Linear(T * sizes[-1], 3)]
    return nn.Sequential(*layers, *last), images(T, sizes[0])


def drawn(rng):
    """Return a random model, and a function that draws its inputs."""
    kind = rng.choice(["dense", "convolution", *(name for name in MODELS if name != "mixing")])
    if kind == "dense":
        return dense(rng)
    if kind == "convolution":
        return convolution(rng, int(rng.integers(1, 4)))
    make, inputs = MODELS[kind]
    return make(), inputs


def taken(x, some):
    if isinstance(x, dict):
        return {name: each[some] for name, each in x.items()}
    return x[some]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("seeds", [range(15), pytest.param(range(1000), marks=pytest.mark.study)])
def test_sums_of_random_models_are_those_of_single_records(seeds, monkeypatch):
    """Of 1 to 64 records; and without one of them, sums are within the bound."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        model, inputs = drawn(rng)
        m, double = int(rng.integers(1, 65)), bool(rng.integers(2))
        monkeypatch.setattr(clipping, "_NUMBERS", int(rng.choice([1 << 23, 3000])))
        x, y = inputs(m), torch.randint(0, 3, (m,))
        if double:
            model = model.double()
            x = x.double() if torch.is_tensor(x) and x.is_floating_point() else x
        want = one_by_one(model, x, y)
        norms = np.linalg.norm(want, axis=1, keepdims=True)
        bound = float(np.median(norms) * rng.uniform(0.2, 2))
        found = released(*sums_of(model, x, y, bound)[1], bound)
        clipped = (want * np.minimum(1, bound / norms)).sum(0)
        assert np.linalg.norm(found - clipped) <= 2e-4 * bound * m, seed
        fewer, others = 0.0, np.arange(m) != rng.integers(m)
        if m > 1:
            fewer = released(*sums_of(model, taken(x, others), y[others], bound)[1], bound)
        # Where m - 1 records take other kernels, passes differ in the last digits of each record.
        assert np.linalg.norm(found - fewer) <= bound * (1 + 1e-5 * m), seed


@pytest.mark.parametrize("kind", ["per-layer", "automatic"])
def test_other_ways_of_clipping_keep_the_bound(kind, monkeypatch):
    """They are what they say, and no record moves a sum by more than the bound."""
    monkeypatch.setattr(clipping, "_NUMBERS", 12)
    torch.manual_seed(5)
    model = nn.Sequential(nn.Linear(6, 5), nn.Tanh(), nn.Linear(5, 3))
    x, y = 9 * torch.randn(17, 6), torch.randint(0, 3, (17,))
    x[3], x[4] = 0.0, torch.nan
    known = np.arange(17) != 4
    found = [sums_of(model, x[k : k + 1], y[k : k + 1], clipping=kind)[1] for k in range(17)]
    apart = np.array([released(*each) for each in found])
    assert np.linalg.norm(apart, axis=1).max() <= C
    assert not apart[4].any()
    want, layers = one_by_one(model, x, y)[known], [slice(35), slice(35, None)]
    if kind == "automatic":
        want *= C / (np.linalg.norm(want, axis=1, keepdims=True) + 0.01)
    else:
        most = C / math.sqrt(2)
        for part in layers:
            norms = np.linalg.norm(want[:, part], axis=1, keepdims=True)
            want[:, part] *= np.minimum(1, most / np.maximum(norms, 1e-300))
        sizes = [np.linalg.norm(apart[:, part], axis=1).max() for part in layers]
        assert 0.99 * most < min(sizes)
        assert max(sizes) <= most
    assert abs(apart[known] - want).max() <= 1e-5 * C
    together = released(*sums_of(model, x, y, clipping=kind)[1])
    assert abs(together - want.sum(0)).max() <= 1e-4 * C


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", ["layers", "odd convolutions", "attention"])
def test_pieces_of_a_batch_and_records_that_are_not_finite_change_nothing(name, monkeypatch):
    torch.manual_seed(3)
    make, inputs = MODELS[name]
    model, x, y = make().double(), inputs(12), torch.randint(0, 3, (12,))
    halves = [slice(None, 5), slice(5, None)]

    x = x if isinstance(x, dict) else x.double()
    whole = released(*sums_of(model, x, y)[1])
    parts = zip(*(sums_of(model, taken(x, part), y[part])[1] for part in halves), strict=True)
    np.testing.assert_allclose(released(*map(sum, parts)), whole, atol=2 * grid_step(C))
    if isinstance(x, dict):
        return
    x[3] = math.nan
    kept = released(*sums_of(model, x, y)[1])
    x = torch.cat([x[:3], x[4:]])
    y = torch.cat([y[:3], y[4:]])
    without = released(*sums_of(model, x, y)[1])
    np.testing.assert_allclose(kept, without, atol=2 * grid_step(C))


# Positions, groups, outputs, inputs.
SHAPES = [(1, 1, 3, 4), (1, 1, 40, 2), (2, 1, 3, 3), (7, 2, 3, 2), (40, 1, 2, 9), (300, 3, 1, 2)]


def extreme(seed, *shape):
    """Return numbers of which some are equal, cancel, vanish, or are huge beside others."""
    rng = np.random.default_rng(seed)
    made = rng.standard_normal(shape) * 2.0 ** rng.integers(-60, 60, (shape[0],) + (1,) * 3)
    made[rng.random(shape[:2]) < 0.2] = made[0, 0]
    made[:, 1::2][rng.random(made[:, 1::2].shape[:2]) < 0.5] *= -1
    made[rng.random(shape) < 0.1] = 0.0
    made[rng.random(shape) < 0.1] *= 1e-9
    return torch.tensor(made)


class Part:
    """Gradients by one parameter, of records that are kept."""

    def __init__(self, make, kept, shape, *arrays):
        self._make, self._arrays, self.shape = make, [each[kept] for each in arrays], shape
        self.positions = arrays[-1].shape[1] if arrays[1:] else 1
        self.numbers = sum(math.prod(each.shape[1:]) for each in arrays)

    def __getitem__(self, some):
        return self._make(*(each[some].clone() for each in self._arrays))


def parts(seed, kept):
    """Return parts of gradients of one module: products, rows, and tables in both precisions."""
    made = []
    for k, (T, groups, o, i) in enumerate(SHAPES):
        left, right = extreme(seed + k, 30, T, groups, o), extreme(seed - k, 30, T, groups, i)
        if k % 2:
            left[:, T // 2 :] = -left[:, : T - T // 2]
            right[:, T // 2 :] = right[:, : T - T // 2] * (1 + 1e-7)
        made.append(Part(terms.Products, kept, (groups, o, i), left, right))
    index = torch.tensor(np.random.default_rng(seed).integers(0, 3, (30, 6)))
    signal = extreme(seed, 30, 6, 2, 1).flatten(2)
    made.append(Part(terms.RowTerm, kept, (3, 2), signal, index))
    for table in (extreme(seed, 30, 1, 5, 2), extreme(seed + 1, 30, 1, 5, 2).float()):
        made.append(Part(terms.Table, kept, (10,), table.flatten(1)))
    return {(str(k),): each for k, each in enumerate(made)}


def whole(seed, bound, kind, kept, alone):
    """Return the sum that leaves, in whole steps of Python, of a batch of records."""
    given = parts(seed, torch.as_tensor(kept))
    shapes = {name: part.shape for (name,), part in given.items()}
    sums = ClippedSums(nn.Linear(1, 1), shapes, None, kind, records=1 << 10)
    steps, fractions = sums._total(given, len(kept), bound, torch.device("cpu"), None, alone)
    return (steps + (fractions >> FRACTION)).astype(object)


def moved(seed, kind, monkeypatch):
    """Return by how much single records move a sum, as shares of what they may."""
    monkeypatch.setattr(clipping, "_NUMBERS", 1 << 23 if seed % 2 else 1 << 15)
    rng = np.random.default_rng(seed)
    bound = float(rng.uniform(0.5, 1.0)) * 2.0 ** (seed % 7 - 3)
    alone = bool(seed % 3)
    together = whole(100 * seed + 50, bound, kind, range(30), alone)
    for k in rng.permutation(30)[:4]:
        others = [row for row in range(30) if row != k]
        change = together - whole(100 * seed + 50, bound, kind, others, alone)
        yield math.sqrt(sum(int(x) ** 2 for x in change)) * grid_step(bound) / bound


def test_a_record_moves_a_sum_by_at_most_the_bound(monkeypatch):
    """Of records that are equal, cancel, vanish or are huge: with and without each of them."""
    shares = [share for seed in range(8) for share in moved(seed, "flat", monkeypatch)]
    assert max(shares) <= 1
    assert np.median(shares) > 0.99
    for kind in clipping.CLIPPINGS[1:]:
        assert max(max(moved(seed, kind, monkeypatch)) for seed in range(2)) <= 1


@pytest.mark.parametrize("norm", [1e-3, 0.3, 40.0])
def test_a_record_and_its_count_move_a_sum_by_at_most_the_bound(norm):
    """Beside the sum, the records within the threshold less those beyond it."""
    torch.manual_seed(5)
    model, x, y = nn.Linear(6, 3), 3 * torch.randn(50, 6), torch.randint(0, 3, (50,))
    norms = np.linalg.norm(one_by_one(model, x, y), axis=1)
    sums, _ = sums_of(model, x, y)
    values, threshold = dict(model.named_parameters()), clipping.Threshold(norm, 0.5, 0.25)
    alone = [sums(x[k : k + 1], y[k : k + 1], values, C, threshold) for k in range(50)]
    fine = [steps.astype(object) * 2**FRACTION + rest for steps, rest in alone]
    most = (C / grid_step(C)) * 2**FRACTION
    longest = max(math.sqrt(sum(int(x) ** 2 for x in each)) for each in fine)
    assert longest <= most
    assert longest > 0.99 * most or norms.max() < norm
    steps, rest = sums(x, y, values, C, threshold)
    assert abs(steps.astype(object) * 2**FRACTION + rest - sum(fine)).max() <= 2**FRACTION
    within = np.count_nonzero(norms <= norm * (1 - 1e-5))
    assert steps[-1] == math.floor(0.25 * C / grid_step(C)) * (2 * within - 50)


def test_one_of_many_equal_records_moves_a_large_batch_by_at_most_the_bound():
    """Of 65,536 records, each of which is clipped to the bound along one coordinate."""
    x, y = torch.full((1 << 16, 1), 1e4), torch.full((1 << 16, 1), -1e9)
    model, shapes = nn.Linear(1, 1), {"weight": (1, 1), "bias": (1,)}
    sums = ClippedSums(model, shapes, functional.mse_loss, records=1 << 16)
    values = dict(model.named_parameters())
    for alone in (False, True):
        many, fewer = (
            sum(sums(x[:m], y[:m], values, C, alone=alone)[:1]) for m in (1 << 16, (1 << 16) - 1)
        )
        assert 0.49 < np.linalg.norm(many - fewer) * grid_step(C) <= C


def test_what_cannot_be_summed_is_a_sentence():
    model, x, y = nn.Linear(6, 3), torch.randn(4, 6), torch.randint(0, 3, (4,))
    sums, _ = sums_of(model, x, y)
    sums.dimension = 1 << 36
    with pytest.raises(ValueError, match="fewer parameters or positions, got 68719476736"):
        sums(x, y, dict(model.named_parameters()), C)
    model.forward = lambda x: functional.linear(x, model.weight, model.bias) + x.add_(1).sum()
    with pytest.raises(RuntimeError, match="must not change the input of a layer in place"):
        sums_of(model, x, y)
    model = nn.Sequential(nn.Linear(6, 3))
    sums, _ = sums_of(model, x, y)
    model.forward = lambda x: model[0](model[0](x).repeat(1, 2))
    with pytest.raises(RuntimeError, match="must use its parameters in the same way in each call"):
        sums(x, y, dict(model.named_parameters()), C)


def test_blocks_have_few_products_in_each_number():
    """A gradient that is formed counts once; products count at each of their positions."""
    for width, positions in ((6, 1), (300, 3)):
        model = nn.Linear(width, width)
        shapes = {name: tuple(each.shape) for name, each in model.named_parameters()}
        sums = ClippedSums(model, shapes, lambda out, _: out.square().sum(), records=1 << 10)
        given = torch.randn(4, 3, width), torch.zeros(4), dict(model.named_parameters())
        assert sums._gradients(*given, 4)["weight",].positions == positions


@pytest.mark.device
@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no device")
@pytest.mark.parametrize("name", MODELS)
def test_a_device_adds_the_same_sums(name):
    """Up to the order in which its threads add."""
    make, inputs = MODELS[name]
    model, x, y = make(), inputs(23), torch.randint(0, 3, (23,))
    on_host = released(*sums_of(model, x, y)[1])
    x = {k: v.cuda() for k, v in x.items()} if isinstance(x, dict) else x.cuda()
    on_device = released(*sums_of(model.cuda(), x, y.cuda())[1])
    np.testing.assert_allclose(on_device, on_host, atol=1e-3)
