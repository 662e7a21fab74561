"""Are these the same records? Fingerprints that tell within a process, and nothing outside it.

>>> from dpcal.optim.problems import Trigonometric
>>> one, same, other = (Trigonometric.drawn(9, 2, seed=seed) for seed in (0, 0, 1))
>>> fingerprint(one) == fingerprint(same), fingerprint(one) == fingerprint(other)
(True, False)
"""

from __future__ import annotations

import hashlib
import secrets

from dpcal.optim.objectives.base import Objective

__all__ = ["fingerprint"]

# A digest of records is a secret: whoever guesses them could confirm the guess. Under a key that
# never leaves the process it says nothing to others.
_KEY = secrets.token_bytes(32)


def fingerprint(objective: Objective) -> bytes:
    """Return 16 bytes that are equal, in this process, for objectives with the same records.

    Parameters
    ----------
    objective
        Whose :meth:`~dpcal.optim.Objective.digest` is taken.
    """
    return hashlib.blake2b(objective.digest(), digest_size=16, key=_KEY).digest()
