import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum

MOST_CLASSES: int

class SoftmaxClippedSum(ClippedSum):
    def __init__(
        self,
        X: NDArray[np.float64],
        labels: NDArray[np.intp],
        classes: int,
        *,
        norms: NDArray[np.float64],
        intercept: bool,
        class_weights: NDArray[np.float64] | None = None,
    ) -> None: ...
