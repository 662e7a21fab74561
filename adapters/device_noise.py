"""Discrete Gaussian noise on a torch device, with the bits of the processor's.

:class:`dpcal.optim.boundary.discrete.DiscreteNormals` reads words of AES-256 in counter mode, and
searches each in a table of whole numbers. Both are arithmetic on integers, of which a tensor has
the same on any device: no logarithm and no cosine is taken, so that no device rounds in its own
way. The cipher is AES, and not the Philox counter that devices have, since nobody has shown that
Philox hides its key.

A word that equals an entry of the table, one in 2^50, takes more words; the processor draws the
numbers of its key.

>>> import torch  # doctest: +SKIP
>>> key = bytes(32)
>>> device = DeviceNormals(1000.0, "cpu")  # doctest: +SKIP
>>> device.draw([key], 5).tolist()  # doctest: +SKIP
[[-1241, -95, 280, -13, 1726]]
>>> from dpcal.optim.boundary.discrete import DiscreteNormals
>>> DiscreteNormals.covering(1000.0, key).draw(5).tolist()
[-1241, -95, 280, -13, 1726]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.errors import needing
from dpcal.optim.boundary.discrete import DiscreteNormals
from dpcal.optim.boundary.seeds import keyed_generator

with needing("torch"):
    import torch
    from torch import Tensor

__all__ = ["DeviceNormals", "drawing_on", "key_stream"]

Bytes = NDArray[np.uint8]

# Rounds of AES-256, and words of 32 bits of its key.
_ROUNDS, _KEY = 14, 8
# Numbers that the processor's sampler takes words for together.
_CHUNK = 256
# A key that is known, and numbers of it that a device is tried with: more than two chunks.
_PUBLIC, _TRIED = bytes(32), 1_000
# The byte of a state, column by column, that ShiftRows moves to each place.
_SHIFTED = [4 * ((column + row) % 4) + row for column in range(4) for row in range(4)]
# MixColumns.
_MIXED = np.array([[2, 3, 1, 1], [1, 2, 3, 1], [1, 1, 2, 3], [3, 1, 1, 2]])


class DeviceNormals:
    """Noise that reveals no more than a Gaussian's, drawn on a device: many keys at once.

    Parameters
    ----------
    standard_deviation
        Of the Gaussian, that of :meth:`DiscreteNormals.covering`, whose noise this is.
    device
        A ``torch.device`` with integers of 64 bits, or its name.

    Raises
    ------
    ValueError
        If the device draws other numbers for a public key than the processor does.
    """

    def __init__(self, standard_deviation: float, device: Any) -> None:
        self._device, self._sigma = torch.device(device), standard_deviation
        normals = DiscreteNormals.covering(standard_deviation)
        high, _ = normals.table.words()
        self._least = -(len(high) // 2)
        self._high = _signed(torch.from_numpy(high.view(np.int64)).to(self._device))
        self._factors = torch.tensor(normals.factors, device=self._device)
        known = DiscreteNormals.covering(standard_deviation, _PUBLIC).draw(_TRIED)
        if (self.draw([_PUBLIC], _TRIED) != known).any():
            raise ValueError(
                "noise_device must have the processor's arithmetic of whole numbers, got "
                f"{str(self._device)!r}, which draws other noise for a known key."
            )

    def draw(self, keys: Sequence[bytes], size: int) -> NDArray[np.int64]:
        """Return ``size`` numbers for each key of 32 bytes, shape (keys, size), dtype int64."""
        terms = len(self._factors)
        words = _signed(key_stream(keys, size * terms, self._device))
        places = torch.searchsorted(self._high, words, right=True)
        tied = (self._high[(places - 1).clamp_(0)] == words).any(dim=1)
        # The words of all first terms of a chunk come first, then those of the second ones.
        whole = size - size % _CHUNK
        parts = [
            part.reshape(len(keys), -1, terms, length)
            for part, length in (
                (places[:, : whole * terms], _CHUNK),
                (places[:, whole * terms :], size - whole),
            )
            if length and part.numel()
        ]
        made = [
            ((part + self._least) * self._factors[:, None]).sum(dim=2).reshape(len(keys), -1)
            for part in parts
        ]
        numbers: NDArray[np.int64] = torch.cat(made, dim=1).cpu().numpy()
        for number in tied.nonzero().ravel().tolist():
            alone = DiscreteNormals.covering(self._sigma, keyed_generator(keys[number]))
            numbers[number] = alone.draw(size)
        return numbers


def drawing_on(device: Any) -> Callable[[float, Sequence[bytes], int], NDArray[np.int64]]:
    """Return what :class:`dpcal.adapters.ranks.RankedOracle` draws noise with, on a device."""
    made = lru_cache(maxsize=8)(lambda sigma: DeviceNormals(sigma, device))
    return lambda sigma, keys, size: made(sigma).draw(keys, size)


def key_stream(keys: Sequence[bytes], count: int, device: Any) -> Tensor:
    """Return the first ``count`` words of each key, shape (keys, count), dtype int64.

    They are those of :class:`dpcal.optim.boundary.seeds.KeyStream`: AES-256 in counter mode from 0
    on (FIPS 197), as whole numbers of 64 bits, of which the highest is the sign.
    """
    tables, box = (torch.from_numpy(table).to(device) for table in _tables())
    shifted = torch.tensor(_SHIFTED, device=device)
    table_of = 256 * torch.arange(4, dtype=torch.int32, device=device).repeat(4)
    counters = np.zeros((-(-count // 2), 2), dtype=">u8")
    counters[:, 1] = np.arange(len(counters))
    state = torch.from_numpy(counters.view(np.int32)).to(device)[None]
    round_keys = torch.from_numpy(_round_keys(keys)).to(device)[:, :, None]
    state = state ^ round_keys[:, 0]
    for turn in range(1, _ROUNDS + 1):
        # Whole numbers of 32 bits hold a column; a view of them as bytes has its rows in order.
        read = state.contiguous().view(torch.uint8).index_select(-1, shifted).int()
        if turn < _ROUNDS:
            mixed = tables.index_select(0, (read + table_of).ravel()).view(*state.shape, 4)
            state = mixed[..., 0] ^ mixed[..., 1] ^ mixed[..., 2] ^ mixed[..., 3]
        else:
            state = box.index_select(0, read.ravel()).view(torch.int32).view(state.shape)
        state = state ^ round_keys[:, turn]
    return state.view(torch.int64).flatten(1)[:, :count]


def _signed(words: Tensor) -> Tensor:
    """Return words whose order as signed numbers is that of the unsigned ones."""
    return words ^ torch.iinfo(torch.int64).min


def _double(values: Any) -> Any:
    """Return products by x in GF(2^8), FIPS 197, section 4.2."""
    return (values << 1) ^ (0x11B * (values >> 7))


@lru_cache(maxsize=1)
def _box() -> Bytes:
    """Return SubBytes: inverses in GF(2^8), and an affine map (FIPS 197, section 5.1.1)."""
    powers = [1]
    for _ in range(254):
        powers.append(powers[-1] ^ _double(powers[-1]))
    inverse = np.zeros(256, dtype=np.uint8)
    inverse[powers] = [powers[-i % 255] for i in range(255)]
    turned = [inverse << k | inverse >> (8 - k) for k in range(1, 5)]
    made: Bytes = np.bitwise_xor.reduce([inverse, *turned]) ^ np.uint8(0x63)
    return made


@lru_cache(maxsize=1)
def _tables() -> tuple[NDArray[np.int32], Bytes]:
    """Return columns that a byte of each row becomes, shape (4 256,), and SubBytes."""
    once = _box().astype(np.int64)
    times = np.stack([once, once, _double(once), _double(once) ^ once])
    columns = times[_MIXED.T].transpose(0, 2, 1).astype(np.uint8)
    return np.ascontiguousarray(columns).view(np.int32).ravel(), _box()


def _round_keys(keys: Sequence[bytes]) -> NDArray[np.int32]:
    """Return the keys of all rounds, shape (keys, 15, 4) (FIPS 197, section 5.2)."""
    box, given = _box(), np.frombuffer(b"".join(keys), dtype=np.uint8)
    columns = list(given.reshape(len(keys), _KEY, 4).transpose(1, 0, 2))
    constant = 1
    for i in range(_KEY, 4 * (_ROUNDS + 1)):
        column = columns[-1]
        if i % _KEY == 0:
            column = box[np.roll(column, -1, axis=1)] ^ np.array([constant, 0, 0, 0], np.uint8)
            constant = int(_double(constant))
        elif i % _KEY == 4:
            column = box[column]
        columns.append(columns[-_KEY] ^ column)
    return np.stack(columns, axis=1).view(np.int32).reshape(len(keys), _ROUNDS + 1, 4)
