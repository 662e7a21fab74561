"""The working precision of ball arithmetic, which python-flint keeps once for a whole process.

Two threads that set it in turn would compute with each other's precision, and leave the wrong one
behind. One lock holds it:

>>> with workprec(64):
...     third = __import__("flint").arb(1) / 3
>>> third.rad() < 2**-60
True
"""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_LOCK = RLock()


@contextmanager
def workprec(bits: int) -> Iterator[None]:
    """Compute with so many bits; other threads that use ball arithmetic wait.

    Parameters
    ----------
    bits
        A whole number >= 2.
    """
    from flint import ctx

    with _LOCK, ctx.workprec(bits):
        yield
