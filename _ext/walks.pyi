from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

GOING: int
SMALL: int
ESCAPED: int
OVERFLOW: int
ASIDE: int

_State = tuple[NDArray[np.float64], NDArray[np.float64], float]

class TrigonometricClippedSum(ClippedSum):
    def __init__(self, Z: NDArray[np.float64]) -> None: ...

def distance(w: NDArray[np.float64], v: NDArray[np.float64]) -> float: ...
def norm(w: NDArray[np.float64]) -> float: ...
def walk(
    kernel: ClippedSum,
    w: NDArray[np.float64],
    state: _State | None,
    *,
    rows: NDArray[np.intp],
    fresh: Mapping[str, float],
    change: Mapping[str, float],
    most: int,
    calls: int,
    period: int,
    kappa: float,
    learning_rate: float,
    threshold: float,
    start: NDArray[np.float64],
    radius: float,
    noise: np.random.Generator,
    l2: float,
    penalized: int,
) -> tuple[int, NDArray[np.uint8], int, _State | None, _State | None]: ...
