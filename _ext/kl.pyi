import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

GOING: int
NO_NORM: int
LOST: int
NO_GRADIENT: int
NOT_FINITE: int

def adaptive_descent(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    *,
    steps: int,
    noise: np.random.Generator,
    max_norm: float,
    l2: float,
    penalized: int,
    learning_rate: float,
    norm_multiplier: float,
    unit: float,
    least: float,
    budget: float,
    spent: float,
    norm_share: float,
    smallest: float,
    best: NDArray[np.float64],
    multipliers: NDArray[np.float64],
) -> tuple[int, int, float, int]: ...
def pulled_descent(
    kernel: ClippedSum,
    center: NDArray[np.float64],
    mean: NDArray[np.float64],
    *,
    steps: int,
    noise: np.random.Generator,
    max_norm: float,
    l2: float,
    penalized: int,
    standard_deviation: float,
    weight: float,
) -> None: ...
