from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.sums import Sums

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
    refresh: tuple[Mapping[str, float], Sums],
    difference: tuple[Mapping[str, float], Sums],
    l2: float,
    penalized: int,
) -> int: ...
def one_pass(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    rows: NDArray[np.intp],
    scales: NDArray[np.float64],
    pull: NDArray[np.float64],
    target: NDArray[np.float64],
    *,
    learning_rate: float,
    max_norm: float,
    radius: float,
) -> NDArray[np.float64]: ...
