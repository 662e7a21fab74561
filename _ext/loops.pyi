from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.answers import Slot

class Steps:
    step: int
    def __init__(
        self,
        refresh: Slot | Callable[[NDArray[np.float64]], Any],
        difference: Slot | Callable[[NDArray[np.float64], NDArray[np.float64]], Any] | None,
        w: NDArray[np.float64],
        *,
        rates: NDArray[np.float64],
        period: int = 1,
        step: int = 0,
        radius: float = ...,
        reach: float = ...,
        averaged_from: int | None = None,
        growth: float = 0.0,
        fixed: int = 0,
        project: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None,
    ) -> None: ...
    def start(
        self,
        w: NDArray[np.float64],
        previous: NDArray[np.float64],
        gradient: NDArray[np.float64],
        step: int,
    ) -> None: ...
    @property
    def w(self) -> NDArray[np.float64]: ...
    @property
    def previous(self) -> NDArray[np.float64]: ...
    @property
    def gradient(self) -> NDArray[np.float64]: ...
    @property
    def mean(self) -> NDArray[np.float64]: ...
    def take(self, count: int) -> int: ...
