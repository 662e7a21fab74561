"""Noise that a torch device draws has the bits of the processor's; the device is the CPU here."""

import numpy as np
import pytest
from _steps import planned
from hypothesis import given, settings, strategies as st

pytest.importorskip("torch")

import torch
from torch import nn
from torch.utils.data import TensorDataset

from dpcal import optim
from dpcal.accountants.matrix import BISR, BLT, LambdaCGD
from dpcal.adapters import device_noise, ranks as module
from dpcal.adapters.device_noise import DeviceNormals, drawing_on, key_stream
from dpcal.adapters.ranks import Alone, RankedOracle
from dpcal.adapters.torch import Guard
from dpcal.errors import UnsupportedEvent
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.seeds import KeyStream

KEYS = [bytes(range(32)), bytes(32), b"\xff" * 32]


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(min_size=32, max_size=32), min_size=1, max_size=4), st.integers(1, 700))
def test_words_are_those_of_aes_256_in_counter_mode(keys, count):
    words = key_stream(keys, count, "cpu").numpy().view(np.uint64)
    assert words.tolist() == [KeyStream(key).words(count).tolist() for key in keys]


def test_a_block_of_the_standard():
    """AES-256 of a block of zeros under a key of zeros."""
    (words,) = key_stream([bytes(32)], 2, "cpu").numpy()
    assert words.tobytes().hex() == "dc95c078a2408989ad48a21492842087"


@pytest.mark.parametrize("sigma", [0.5, 30.0, 1e3, 2e4, 1.3 * 2**20, 2.0**40])
def test_numbers_are_those_of_the_processor(sigma):
    device = DeviceNormals(sigma, "cpu")
    for size in (1, 255, 256, 257, 1_300):
        numbers = device.draw(KEYS, size)
        assert numbers.dtype == np.int64
        for key, each in zip(KEYS, numbers, strict=True):
            assert each.tolist() == DiscreteNormals.covering(sigma, key).draw(size).tolist()


def test_a_word_that_equals_an_entry_of_the_table_is_settled_by_the_processor():
    device, terms = DeviceNormals(1e6, "cpu"), len(DiscreteNormals.covering(1e6).factors)
    word = key_stream(KEYS[:1], 300 * terms, "cpu")[0, 70] ^ torch.iinfo(torch.int64).min
    place = int(torch.searchsorted(device._high, word[None], right=True))
    device._high[place] = word  # the least entry above it is lowered: the search is off by one
    expected = DiscreteNormals.covering(1e6, KEYS[0]).draw(300).tolist()
    assert device.draw(KEYS[:1], 300).tolist() == [expected]


def test_a_device_with_other_arithmetic_is_refused(monkeypatch):
    tables, box = device_noise._tables()
    monkeypatch.setattr(device_noise, "_tables", lambda: (tables << 1, box))
    with pytest.raises(ValueError, match=r"noise_device must have .* got 'cpu'"):
        DeviceNormals(1e6, "cpu")


def plan_of(strategy=None):
    return planned(strategy, n=20, noise_multiplier=1.0, count=3)


@pytest.mark.parametrize("strategy", [None, LambdaCGD(3, 0.5), BISR(3, 2)], ids=repr)
@pytest.mark.parametrize("length", [4, 300])
def test_a_run_on_ranks_has_the_same_bits(monkeypatch, strategy, length):
    monkeypatch.setattr(module, "_BLOCK", length)
    monkeypatch.setattr(module, "_TOGETHER", 3)
    size = 7 * length + 1  # two runs of three blocks, one of one, and a shorter block
    plan, found = plan_of(strategy), []
    with optim.replaying():
        for draw in (None, drawing_on("cpu")):
            oracle = RankedOracle(plan, Alone(), {"w": (size,)}, lambda: b"", seed=0, draw=draw)
            for _ in range(3):
                for _, rows in oracle.pieces():
                    oracle.add(np.ones((len(rows), size)) / size)
                found.append(oracle.answer().tolist())
    assert found[:3] == found[3:]
    assert found[0] != found[1]
    assert len(set(found[0])) > size / 2


def test_rows_that_are_kept_are_refused():
    plan = plan_of(BLT(3, (0.9, 0.5), (0.3, 0.1)))
    with pytest.raises(
        UnsupportedEvent, match=r"noise_device is for independent noise, and .* BLT"
    ):
        RankedOracle(plan, Alone(), {"w": (5,)}, lambda: b"", seed=0, draw=drawing_on("cpu"))


@pytest.mark.slow
def test_a_guard_with_a_device_for_noise_has_the_bits_of_one_without(tmp_path):
    X = torch.linspace(-1, 1, 60).reshape(20, 3)
    records, ends = TensorDataset(X, (X[:, 0] > 0).long()), []
    with optim.replaying():
        for options in ({"store": tmp_path / "run.db"}, {"noise_device": "cpu"}):
            torch.manual_seed(0)
            model = nn.Linear(3, 2)
            guard = Guard(model, plan_of(), seed=0, **options)
            optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
            for inputs, targets in guard.loader(records):
                if guard.backward(inputs, targets):
                    optimizer.step()
            ends.append(torch.cat([each.ravel() for each in model.parameters()]).tolist())
    assert ends[0] == ends[1]
    with pytest.raises(ValueError, match=r"noise must be 'discrete' .* a noise_device"):
        Guard(nn.Linear(3, 2), plan_of(), noise="gaussian", noise_device="cpu")
