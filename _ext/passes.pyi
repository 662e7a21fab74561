import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

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
