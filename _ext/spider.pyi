from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

def follow(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    v: NDArray[np.float64],
    estimate: NDArray[np.float64],
    *,
    first: int,
    steps: int,
    period: int,
    learning_rate: float,
    sampling: np.random.Generator,
    noise: np.random.Generator,
    refresh: Mapping[str, float],
    difference: Mapping[str, float],
    l2: float,
    penalized: int,
) -> int: ...
