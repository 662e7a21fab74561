from threading import Lock
from typing import Any

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
def in_steps(sums: NDArray[np.float64]) -> NDArray[np.int64]: ...
def add_scaled(
    table: NDArray[np.floating[Any]], factors: NDArray[np.float64], total: NDArray[np.float64]
) -> None: ...
def squares_of(table: NDArray[np.floating[Any]]) -> NDArray[np.float64]: ...
def in_units(
    total: NDArray[np.int64], noise: NDArray[np.int64] | None, step: float, size: float
) -> NDArray[np.float64]: ...
def grid_step(max_norm: float) -> float: ...
def whole_norm(total: NDArray[np.int64], steps: NDArray[np.float64]) -> int: ...
