import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.sums import Sums

def descend(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    *,
    learning_rates: NDArray[np.float64],
    sampling: np.random.Generator,
    sums: Sums,
    sampling_probability: float,
    max_norm: float,
    expected_batch_size: float,
    l2: float,
    penalized: int,
    radius: float,
    average: NDArray[np.float64] | None = None,
    averaged: int = 0,
    growth: float = 0.0,
    reach: float = ...,
    squares: NDArray[np.float64] | None = None,
) -> None: ...
