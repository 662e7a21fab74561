from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.sums import Sums

class Follower:
    def __init__(
        self,
        kernel: ClippedSum,
        *,
        d1: int,
        sampling: np.random.Generator,
        refresh: tuple[Mapping[str, float], Sums],
        difference: tuple[Mapping[str, float], Sums],
        primal_l2: float,
        dual_l2: float,
    ) -> None: ...
    def track(
        self,
        at: NDArray[np.float64],
        before: NDArray[np.float64],
        estimate: NDArray[np.float64],
        *,
        refreshed: bool,
        literal: bool,
        shortest: bool,
        inner_steps: int,
        ascent_rate: float,
        project: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        asking: Callable[[], None],
    ) -> NDArray[np.float64] | None: ...
