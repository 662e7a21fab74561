from threading import Lock

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.discrete import DiscreteTable
from dpcal._ext.gradients import ClippedSum

MOST_RECORDS: int

class Sums:
    lock: Lock
    noise_multiplier: float
    def __init__(
        self,
        generator: np.random.Generator,
        noise_multiplier: float,
        size: int,
        table: DiscreteTable,
    ) -> None: ...

def whole_sum(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    v: NDArray[np.float64] | None,
    rows: NDArray[np.intp],
    *,
    max_norm: float,
) -> NDArray[np.int64]: ...
def in_units(total: NDArray[np.int64], step: float, size: float) -> NDArray[np.float64]: ...
def grid_step(max_norm: float) -> float: ...
def whole_norm(total: NDArray[np.int64], steps: NDArray[np.float64]) -> int: ...
