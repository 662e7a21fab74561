import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

def descend(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    *,
    learning_rates: NDArray[np.float64],
    sampling: np.random.Generator,
    noise: np.random.Generator,
    sampling_probability: float,
    max_norm: float,
    standard_deviation: float,
    expected_batch_size: float,
    l2: float,
    penalized: int,
    radius: float,
    average: NDArray[np.float64] | None = None,
    averaged: int = 0,
) -> None: ...
