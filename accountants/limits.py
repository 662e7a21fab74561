"""The most memory and work that a question may take: larger ones are refused before they start.

Both are counted from the numbers in the question, never by a clock, so that a question is refused
on every machine or on none.

>>> hold(1e9, "steps=1e12")
Traceback (most recent call last):
    ...
dpcal.errors.TooLarge: steps=1e12 would take 7.5 GiB of memory, where a question may take 1: \
choose a smaller number.
"""

from __future__ import annotations

from dpcal.errors import TooLarge

__all__ = [
    "BYTES_OF_NOISE",
    "MOST_DISTINCT",
    "MOST_LEVELS",
    "MOST_OF_OTHER_NOISE",
    "MOST_PARTS",
    "MOST_SELECTIONS",
    "hold",
]

# Bytes that the arrays of a question may take, 1 GiB: small machines have a few times as much.
_MOST_BYTES = 1 << 30
# Most events inside each other that are priced one by the other, such as samples of compositions of
# samples. Each takes some ten calls inside each other, of the thousand that Python allows.
MOST_LEVELS = 50
# Most selections inside each other, the best of runs of which each is the best of runs: each level
# takes twice the work, and this many take four seconds.
MOST_SELECTIONS = 8
# Bytes of a whole number that discrete noise takes, and of what is computed from it.
BYTES_OF_NOISE = 200
# Events that a composition may hold, in all of its lists: some seconds of counting. Lists that hold
# one list twice double them at each level.
MOST_PARTS = 2_000_000
# Distinct mechanisms of a composition: so many Gaussian ones take some seconds and 300 MB.
MOST_DISTINCT = 200_000
# Those of other than Gaussian noise, which take ten seconds: each is a sum over points at a node.
MOST_OF_OTHER_NOISE = 2_000


def hold(numbers: float, what: str, size: int = 8) -> None:
    """Refuse an array of so many numbers, of ``size`` bytes each, if it would take too much memory.

    Parameters
    ----------
    numbers
        How many numbers are in memory at once, counted before they are allocated.
    what
        The argument that is too large, with its value.

    Raises
    ------
    TooLarge
        If they would take more than 1 GiB.
    """
    if numbers * size > _MOST_BYTES:
        raise TooLarge(
            f"{what} would take {numbers * size / 2**30:.2g} GiB of memory, where a question may "
            "take 1: choose a smaller number."
        )
