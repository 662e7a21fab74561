import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

MOST: int

_Floats = NDArray[np.float64]
_Integers = NDArray[np.int64]
_Rows = NDArray[np.intp]

def add_rows(table: _Floats, max_norm: float, bound: int, total: _Integers) -> None: ...
def clipped_loss_sum(
    kernel: ClippedSum, w: _Floats, rows: _Rows, *, max_loss: float, bound: int
) -> _Integers: ...
def whole_factors(
    left: NDArray[np.float64],
    right: NDArray[np.float64],
    squares: NDArray[np.float64],
    *,
    exponent: int,
    bits: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
