"""Where does the randomness of a run come from? One seed, and an independent stream for each role.

Sampling, noise, partitions and public choices have a generator each, so that what one of them
draws tells nothing about another.

>>> streams = Streams(0)
>>> again = Streams.restored(streams.root)
>>> bool(streams.noise.standard_normal() == again.noise.standard_normal())
True
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

__all__ = ["Seed", "Streams"]

Seed = int | np.random.SeedSequence | np.random.Generator | None


class Streams:
    """The random streams of one run.

    Parameters
    ----------
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or a ``Generator`` (of which children are
        spawned), or None for fresh entropy from the operating system.

    Attributes
    ----------
    root
        JSON values from which :meth:`restored` makes the same streams. It is a secret.
    sampling, noise, parting, public
        Generators of batches, of noise, of partitions, and of choices that are no secret.
    """

    def __init__(self, seed: Seed) -> None:
        generator = _generator(seed)
        self.root = _root(generator)
        self.sampling, self.noise, self.parting, self.public = generator.spawn(4)

    @classmethod
    def restored(cls, root: Mapping[str, Any]) -> Self:
        """Return the streams that ``root`` describes."""
        sequence = np.random.SeedSequence(
            root["entropy"],
            spawn_key=tuple(root["spawn_key"]),
            n_children_spawned=root["children"],
        )
        return cls(sequence)


def _generator(seed: Seed) -> np.random.Generator:
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise type(error)(
            "seed must be an integer >= 0, a numpy SeedSequence or Generator, or None, "
            f"got {seed!r}."
        ) from error


def _root(generator: np.random.Generator) -> dict[str, Any]:
    """Return what a generator's next children grow from, as JSON values."""
    sequence: Any = generator.bit_generator.seed_seq
    return {
        "entropy": sequence.entropy,
        "spawn_key": [int(word) for word in sequence.spawn_key],
        "children": sequence.n_children_spawned,
    }
