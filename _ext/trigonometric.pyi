import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

class TrigonometricClippedSum(ClippedSum):
    def __init__(self, Z: NDArray[np.float64]) -> None: ...
