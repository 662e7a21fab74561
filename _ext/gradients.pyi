from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._ext.losses import Loss

def sealed(array: NDArray[Any]) -> NDArray[Any]: ...

class ClippedSum:
    loss: Loss
    n: int
    dimension: int
    stride: int
    weights: NDArray[np.float64] | None
    def __init__(
        self,
        loss: Loss,
        X: Any,
        targets: NDArray[Any],
        *,
        intercept: bool,
        weights: ArrayLike | None = ...,
        shares: tuple[float, float] | None = ...,
        dual: int = ...,
    ) -> None: ...
    def __call__(
        self,
        w: ArrayLike,
        rows: ArrayLike | None = None,
        *,
        v: ArrayLike | None = ...,
        max_norm: float = ...,
    ) -> NDArray[np.float64]: ...
    def losses(
        self, w: ArrayLike, rows: ArrayLike | None = None, *, max_loss: float = ...
    ) -> float: ...
    def checked(self, rows: ArrayLike | None) -> NDArray[np.intp]: ...
    def padded(self, w: ArrayLike) -> NDArray[np.float64]: ...
    def digest(self) -> bytes: ...
    @property
    def curvature(self) -> float: ...
    @property
    def norms(self) -> NDArray[np.float64]: ...
    @property
    def features(self) -> NDArray[np.float64]: ...
    @property
    def targets(self) -> NDArray[np.float64]: ...

def aligned_zeros(size: int) -> NDArray[np.float64]: ...
