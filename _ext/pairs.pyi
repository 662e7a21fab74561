import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum, PointLoss

class PairSum(ClippedSum):
    d1: int
    d2: int

class TiltedPairs(PairSum):
    def __init__(
        self,
        loss: PointLoss,
        X: NDArray[np.float64],
        targets: NDArray[np.float64],
        tilts: NDArray[np.float64],
        *,
        base: float,
        shares: tuple[float, float] | None = None,
    ) -> None: ...

class AreaPairs(PairSum):
    def __init__(
        self,
        X: NDArray[np.float64],
        positive: NDArray[np.bool_],
        *,
        share: float,
        shares: tuple[float, float] | None = None,
    ) -> None: ...
