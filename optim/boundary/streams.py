"""The noise of a matrix mechanism, row by row: C^-1 z in little memory, repeatable, restartable.

Row t of z is a function of the seed and t alone: numpy's counter-based Philox generator (Salmon et
al. 2011) with the step in its counter. A stream can so be opened at any step, and the rows of z
that a step reuses can be drawn again instead of being stored.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> stream = NoiseStream(LambdaCGD(100, 0.9), dimension=3, seed=0)
>>> first, second = next(stream), next(stream)
>>> bool((next(stream.at(1)) == second).all())
True
>>> again = NoiseStream.from_json(stream.to_json())
>>> bool((next(again) == next(stream)).all())
True

Conditions of the privacy claim: the seed is secret (None takes it from the
operating system), serves one run only, and no step's noise is skipped or used twice with other
data: a run that is resumed continues at the step where it stopped. Outside the claim are, as for
all noise here, attacks on the generator and on floating point (Mironov 2012).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate
from dpcal._files import fields_of, read_as
from dpcal.accountants.matrix import Strategy
from dpcal.accountants.matrix.recurrences import Recurrence
from dpcal.optim.boundary.seeds import Seed, sequence_of

__all__ = ["NoiseStream", "RoundedStream"]

Vector = NDArray[np.float64]
Key = NDArray[np.uint64]

# Columns that are drawn and used at once: they stay in a processor's second cache.
_CHUNK = 1 << 14
# Rows shorter than this share a position of the counter, because opening one takes as long as
# drawing about a thousand numbers.
_BLOCK = 1 << 12


class _Normals:
    """Rows of independent standard normals, each a function of the key and the row's number."""

    def __init__(self, key: Key, dimension: int) -> None:
        self._key, self._dimension = key, dimension
        self._together = max(1, _BLOCK // dimension)
        self._block, self._rows = -1, np.empty((0, 0))

    def row(self, step: int) -> _Row:
        """Return row ``step``, to be read from left to right."""
        drawn = self.whole(step)
        return _Row(self._generator(step) if drawn is None else None, drawn)

    def whole(self, step: int) -> Vector | None:
        """Return row ``step`` if it is so short that several are drawn at once; else None."""
        if self._together == 1:
            return None
        block, place = divmod(step, self._together)
        if block != self._block:
            shape = (self._together, self._dimension)
            self._block, self._rows = block, self._generator(block).standard_normal(shape)
        return np.asarray(self._rows[place])

    def _generator(self, block: int) -> np.random.Generator:
        # A block has 2^128 positions of the counter to itself.
        counter = np.array([0, 0, block, 0], dtype=np.uint64)
        return np.random.Generator(np.random.Philox(key=self._key, counter=counter))


class _Row:
    """One row of normals, read a chunk at a time."""

    def __init__(self, generator: np.random.Generator | None, drawn: Vector | None) -> None:
        self._generator, self._drawn, self._at = generator, drawn, 0

    def read(self, out: Vector) -> None:
        """Fill ``out`` with the next numbers."""
        if self._generator is not None:
            self._generator.standard_normal(out=out)
        elif self._drawn is not None:
            out[:] = self._drawn[self._at : self._at + len(out)]
        self._at += len(out)


class NoiseStream:
    """Rows of C^-1 z, one a step, for z with independent standard normal entries.

    An iterator over ``strategy.steps`` rows. The optimizer's noise at step t is the noise
    multiplier times the clipping norm times row t.

    Parameters
    ----------
    strategy, dimension
        The strategy C, and the length >= 1 of a row.
    seed
        That of :func:`dpcal.optim.run`.
    replay
        Draw the rows of z that a step reuses again instead of storing them: no memory beyond a
        chunk, and ``strategy.inverse_bands`` rows are drawn a step. Only for strategies whose
        inverse has few bands, such as ``LambdaCGD`` and ``BISR``; others raise a ValueError. The
        rows are the same, bit for bit.

    Attributes
    ----------
    step
        Number of the next row, from 0.
    """

    def __init__(
        self, strategy: Strategy, dimension: int, seed: Seed = None, *, replay: bool = False
    ) -> None:
        self._open(strategy, dimension, _key(seed), replay)

    def _open(self, strategy: Strategy, dimension: int, key: Key, replay: bool) -> None:
        if not isinstance(strategy, Strategy):
            raise TypeError(f"strategy must be a Strategy, got {strategy!r}.")
        if replay and strategy.inverse_bands is None:
            raise ValueError(
                "replay=True needs a strategy whose inverse has few bands, such as LambdaCGD or "
                f"BISR, got {strategy!r}."
            )
        self.strategy = strategy
        self.dimension = _validate.count(dimension=dimension)
        if self.dimension > 1 << 40:  # no machine holds a row
            raise ValueError(f"dimension must be at most 2^40, got {self.dimension:g}.")
        self.replay = bool(replay)
        self.step = 0
        self._key = key
        self._normals = _Normals(key, self.dimension)
        self._recurrence = self._fresh_recurrence()
        self._whole = True

    def _fresh_recurrence(self) -> Recurrence:
        # A replayed row passes through a recurrence that is a chunk wide.
        width = min(_CHUNK, self.dimension) if self.replay else self.dimension
        return self.strategy.recurrence(width)

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Vector:
        if self.step >= self.strategy.steps:
            raise StopIteration
        return self.read()

    def read(self, out: Vector | None = None) -> Vector:
        """Return the next row, shape (dimension,), in ``out`` or in a new array when omitted.

        ``out`` holds doubles in one block; another shape, or a read after the last row, raises a
        ValueError. If the read before was interrupted a RuntimeError is raised: rows kept for later
        ones may be half written, and noise from them would have another law.
        """
        if not self._whole:
            raise RuntimeError(
                f"Reading row {self.step} was interrupted. Open the stream anew with "
                f"at({self.step})."
            )
        if self.step >= self.strategy.steps:
            raise ValueError(f"The stream has {self.strategy.steps} rows, and all have been read.")
        row = np.empty(self.dimension) if out is None else out
        if row.shape != (self.dimension,):
            raise ValueError(f"out must have shape ({self.dimension},), got {row.shape}.")
        self._whole = False
        if self.replay:
            self._replay(row)
        else:
            self._advance(row)
        self.step += 1
        self._whole = True
        return row

    def _advance(self, out: Vector) -> None:
        whole = self._normals.whole(self.step)
        if whole is not None:
            self._recurrence.apply(self.step, whole, out, 0)
            return
        fresh = self._normals.row(self.step)
        for start in range(0, self.dimension, _CHUNK):
            part = out[start : start + _CHUNK]
            fresh.read(part)
            self._recurrence.apply(self.step, part, part, start)

    def _replay(self, out: Vector) -> None:
        """Compute the next row from the rows that it depends on, drawn again chunk by chunk."""
        first = max(0, self.step - (self.strategy.inverse_bands or 1) + 1)
        steps = range(first, self.step + 1)
        rows = [self._normals.row(step) for step in steps]
        for start in range(0, self.dimension, _CHUNK):
            part = out[start : start + _CHUNK]
            for step, row in zip(steps, rows, strict=True):
                row.read(part)
                self._recurrence.apply(step, part, part, 0)

    def at(self, step: int) -> NoiseStream:
        """Return a stream of the same rows whose next row is ``step``.

        A ValueError is raised for a step outside of [0, steps].

        Rows before it are drawn again where the recurrence needs them: the last few if C^-1 is
        banded, all of them otherwise.
        """
        if isinstance(step, bool) or not isinstance(step, int | np.integer):
            raise TypeError(f"step must be a whole number, got {step!r}.")
        if not 0 <= step <= self.strategy.steps:
            raise ValueError(f"step must be in [0, {self.strategy.steps}], got {step}.")
        made = object.__new__(NoiseStream)
        made._open(self.strategy, self.dimension, self._key, self.replay)
        reach = made._recurrence.reach
        if not self.replay:
            made.step = 0 if reach is None else max(0, int(step) - reach)
            scratch = np.empty(self.dimension)
            while made.step < step:
                made.read(scratch)
        made.step = int(step)
        return made

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON values: strategy, dimension, key and step, but no rows.

        The state is a secret: its key lets anyone subtract the noise.
        """
        return {
            "strategy": self.strategy.to_dict(),
            "dimension": self.dimension,
            "key": [f"{int(word):016x}" for word in self._key],
            "step": self.step,
            "replay": self.replay,
        }

    def to_json(self) -> str:
        """Return :meth:`to_dict` as a JSON document that :meth:`from_json` reads."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> NoiseStream:
        """Return the stream of a :meth:`to_dict`, at the same step; ValueError if it is not one."""
        names = ("strategy", "dimension", "key", "step", "replay")
        try:
            about, dimension, words, step, replay = (document[name] for name in names)
            strategy = Strategy.from_dict(about)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"document is not the state of a noise stream: {error!r}.") from error
        try:
            key = np.array([int(word, 16) for word in words], dtype=np.uint64).reshape(2)
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"key must be two words of 64 bits, got {words!r:.60}.") from None
        made = object.__new__(cls)
        made._open(strategy, dimension, key, replay)
        return made.at(step)

    @classmethod
    def from_json(cls, text: str) -> NoiseStream:
        """Return the stream that :meth:`to_json` wrote, at the same step."""
        must = "text must be the state of a noise stream in JSON"
        fields = fields_of(text, must)
        with read_as(must):
            return cls.from_dict(fields)

    def __repr__(self) -> str:
        return f"NoiseStream({self.strategy!r}, dimension={self.dimension}, step={self.step})"


class RoundedStream:
    """Rows of a :class:`NoiseStream` times ``sigma``, rounded to whole numbers: int64, (d,)."""

    digits = 0

    def __init__(self, stream: NoiseStream, sigma: float) -> None:
        self._stream, self._sigma = stream, sigma

    @property
    def step(self) -> int:
        """Number of the next row."""
        return self._stream.step

    def read(self, out: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return the next row in a new array; errors are those of :meth:`NoiseStream.read`."""
        return np.rint(self._sigma * self._stream.read()).astype(np.int64)

    def at(self, step: int) -> RoundedStream:
        """Return a stream of the same rows whose next row is ``step``."""
        return RoundedStream(self._stream.at(step), self._sigma)


# Separates the key from other streams that are seeded with the same number: "noise" in ASCII.
_PURPOSE = 0x6E6F697365


def _key(seed: Seed) -> Key:
    """Return 128 bits of the seed's entropy, as two words."""
    sequence = np.random.SeedSequence() if seed is None else sequence_of(seed)
    if isinstance(seed, np.random.Generator):
        sequence = sequence.spawn(1)[0]
    own = np.random.SeedSequence(sequence.entropy, spawn_key=(*sequence.spawn_key, _PURPOSE))
    return np.asarray(own.generate_state(2, np.uint64), dtype=np.uint64)
