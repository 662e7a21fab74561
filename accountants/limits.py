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

# Bytes that the arrays of a question may take, 1 GiB.
_MOST_BYTES = 1 << 30
# Bytes for each whole number that discrete noise draws, with all that is computed from it.
BYTES_OF_NOISE = 200


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
