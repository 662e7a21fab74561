import numpy as np
from numpy.typing import NDArray

_Words = NDArray[np.uint64]

def add_from_table(
    bits: _Words,
    reserve: _Words,
    high: _Words,
    low: _Words,
    least: int,
    factor: int,
    out: NDArray[np.int64],
) -> int: ...
