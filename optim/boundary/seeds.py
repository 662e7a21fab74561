"""The randomness of a run: two roots, one public and one secret.

Public choices, such as the iterate to return, have their own root, so that an optimizer learns
nothing about the noise. The secret root of a given seed is a digest of the seed, the plan and the
records, so that runs of another plan, or about other records, share no noise. Sampling, noise and
partitions are independent streams of AES in counter mode, with keys from the secret root.

Two runs with the same seed, plan and records add equal noise. The difference of their answers to
different questions has no noise. So a second such run is refused within a process, unless it is
inside :func:`replaying`.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=4, queries=(query,), epsilon=3.0, delta=1e-6)
>>> first = Streams(0, plan, lambda: b"records")
>>> other = Streams(0, plan, lambda: b"other records")
>>> bool(first.noise.integers(1 << 60) == other.noise.integers(1 << 60))
False
>>> bool(first.public.random() == other.public.random())
True
>>> Streams(0, plan, lambda: b"records").noise  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
dpcal.errors.NoiseReused: this process has drawn the noise of this seed, plan and records already...
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock
from typing import Any, Self

import numpy as np

from dpcal._ext.keyed import KeyedBits
from dpcal.calibrate.plan import Plan
from dpcal.errors import NoiseReused

Seed = int | np.random.SeedSequence | np.random.Generator | None

# Bits of a root: roots of 2^64 runs do not collide, and guessing a root takes 2^255 trials.
_BITS = 256

# Separates digests of this library, and of this way of making roots, from others of equal bytes.
_DOMAIN = b"dpcal seeds 1"


# Digests of the roots from which this process has drawn noise; a digest does not reveal the root.
_DRAWN: set[str] = set()
_LOCK = Lock()
_REPLAYING: ContextVar[bool] = ContextVar("replaying", default=False)


def claim(root: str) -> None:
    """Refuse a root from which this process has drawn noise before, but inside replaying."""
    kept = _digest("drawn", root)
    with _LOCK:
        if kept in _DRAWN and not _REPLAYING.get():
            raise NoiseReused(
                "this process has drawn the noise of this seed, plan and records already: the "
                "difference of two runs that share their noise has none. Use another seed, or "
                "seed=None; where runs differ in a learning rate, one seed for each of them. "
                "To reproduce a run that was released, or in tests, run it inside "
                "dpcal.optim.replaying()."
            )
        _DRAWN.add(kept)


@contextmanager
def replaying() -> Iterator[None]:
    """Allow runs inside to draw noise that this process has drawn before, to reproduce a run.

    Other threads may not draw it again, nor threads that are started inside: each thread enters the
    context itself. Release at most one of several runs with the same seed, plan and records.
    """
    before = _REPLAYING.set(True)
    try:
        yield
    finally:
        _REPLAYING.reset(before)


class Streams:
    """The random streams of one run. Nothing is drawn and no record is read before it is needed.

    Parameters
    ----------
    seed, plan
        Seed and plan as in :func:`dpcal.optim.run`; both generators and seed sequences spawn a
        child. A seed of another type or out of range raises a TypeError or a ValueError.
    digest
        Function that returns bytes to distinguish the records; called only if a seed was given.

    Attributes
    ----------
    given
        Whether a seed was given: then the run is private only as long as the seed is secret.
    public
        Generator of public choices, from a root of its own.
    allotment
        Root of batches of whole epochs, from which no noise follows. Set it before the first draw
        to go on with the batches of an earlier run; otherwise it is made from the secret root.
    """

    def __init__(self, seed: Seed, plan: Plan, digest: Callable[[], bytes]) -> None:
        self.given = seed is not None
        self.allotment: str | None = None
        words = _words(seed)
        self._plan, self._digest = plan, digest
        self._seed = words
        self._root: str | None = None
        public = secrets.token_hex(_BITS // 8) if words is None else _digest("public", words)
        self.public = np.random.default_rng(int(public, 16))
        self._made: dict[str, np.random.Generator] = {}
        self._lock = Lock()

    @classmethod
    def restored(cls, root: Mapping[str, Any], plan: Plan) -> Self:
        """Return the streams that :attr:`root` described; they go on with the same noise."""
        made = cls(None, plan, bytes)
        made.adopt(root)
        return made

    def adopt(self, root: Mapping[str, Any]) -> None:
        """Become the streams that :attr:`root` described, before anything is drawn of these."""
        assert not self._made
        self.given, self._seed = bool(root["given"]), None
        self._root = str(root["secret"])
        self.public = np.random.default_rng(int(root["public"], 16))

    @property
    def root(self) -> dict[str, Any]:
        """JSON values from which :meth:`restored` makes the same streams: a secret."""
        sequence: Any = self.public.bit_generator.seed_seq
        return {
            "secret": self._secret(),
            "public": f"{sequence.entropy:x}",
            "given": self.given,
        }

    @property
    def sampling(self) -> np.random.Generator:
        """Generator of batches."""
        return self._stream("sampling")

    @property
    def noise(self) -> np.random.Generator:
        """Generator of noise."""
        return self._stream("noise")

    @property
    def parting(self) -> np.random.Generator:
        """Generator of partitions."""
        return self._stream("parting")

    def samplings(self, count: int) -> list[np.random.Generator]:
        """Return ``count`` generators of batches, independent of each other and of the rest."""
        return [self._keyed(f"sampling {number}") for number in range(count)]

    def allotting(self, role: str, name: str) -> np.random.Generator:
        """Return a generator at its start.

        The role is ``"epochs"`` for all batches of a query that hang together, and ``"order"`` for
        the order of one partition.
        """
        if self.allotment is None:
            self.allotment = _digest("allotment", self._secret())
        return keyed_generator(bytes.fromhex(_digest(role, name, self.allotment)))

    def rows(self, name: str) -> np.random.Generator:
        """Return a generator of cryptographic words for a query's rows of noise, at its start."""
        return self._keyed(f"rows {name}")

    def positions(self) -> dict[str, Any]:
        """Return the position of each stream that was used, as JSON values; a secret."""
        with self._lock:
            return {role: made.bit_generator.state for role, made in self._made.items()}

    def move_to(self, positions: Mapping[str, Any]) -> None:
        """Move each stream to its position in :meth:`positions`."""
        for role, position in positions.items():
            self._stream(role).bit_generator.state = position

    def _stream(self, role: str) -> np.random.Generator:
        with self._lock:
            if role not in self._made:
                self._made[role] = self._keyed(role)
            return self._made[role]

    def _keyed(self, role: str) -> np.random.Generator:
        return keyed_generator(key_of(self._secret(), role))

    def _secret(self) -> str:
        """Return the secret root, made when it is first needed."""
        if self._root is None and self._seed is None:
            self._root = secrets.token_hex(_BITS // 8)
        elif self._root is None and self._seed is not None:
            root = _digest("secret", self._seed, self._plan.to_json(), self._digest().hex())
            claim(root)
            self._root = root
        assert self._root is not None
        return self._root


def keyed_generator(key: bytes | None = None) -> np.random.Generator:
    """Return a generator over cryptographic words with this key, fresh when omitted."""
    bits: Any = KeyedBits(key)
    return np.random.Generator(bits)


def root_of(seed: Seed, *purpose: str) -> str:
    """Return a secret root, in hexadecimal: a digest of a seed and its purpose, or a fresh root.

    The seed is as in :func:`dpcal.optim.run`; None stands for a fresh root.
    """
    words = _words(seed)
    return secrets.token_hex(_BITS // 8) if words is None else _digest("secret", words, *purpose)


def key_of(root: str, role: str) -> bytes:
    """Return the key of one stream of words, 32 bytes, by its role; it keeps the root secret."""
    return bytes.fromhex(_digest("key", role, root))


def spawned(seed: Seed, count: int) -> list[Seed]:
    """Return a seed for each of ``count`` >= 1 oracles: the seed, or children of it for several.

    The seed is as in :func:`dpcal.optim.run`.
    """
    if count == 1 or seed is None:
        return [seed] * count
    return list(sequence_of(seed).spawn(count))


def sequence_of(seed: Seed) -> np.random.SeedSequence:
    """Return the seed sequence of a given seed; a generator that is given counts its children.

    Numpy's legacy generators have no sequence, because their seed cannot be recovered.
    """
    sequence, error = None, None
    try:
        if seed is not None and not isinstance(seed, np.random.RandomState):
            bits: Any = np.random.default_rng(seed).bit_generator
            sequence = getattr(bits, "seed_seq", None)
    except (TypeError, ValueError) as refused:
        error = refused
    if not isinstance(sequence, np.random.SeedSequence):
        raise (ValueError if isinstance(error, ValueError) else TypeError)(
            "seed must be an integer >= 0, a numpy SeedSequence or Generator, or None, "
            f"got {seed!r}."
        ) from error
    return sequence


def _words(seed: Seed) -> str | None:
    """Return the entropy of a given seed, as text; None without a seed."""
    if seed is None:
        return None
    sequence = sequence_of(seed)
    entropy, children = sequence.entropy, sequence.n_children_spawned
    sequence.spawn(1)
    words = [entropy] if isinstance(entropy, int | np.integer) else list(entropy or ())
    return json.dumps(
        [[int(word) for word in part] for part in (words, sequence.spawn_key)] + [children]
    )


def _digest(*parts: str) -> str:
    """Return 256 bits, in hexadecimal, from which no part can be computed."""
    state = hashlib.blake2b(_DOMAIN, digest_size=_BITS // 8)
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()
