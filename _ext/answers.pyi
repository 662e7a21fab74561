from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.gradients import ClippedSum
from dpcal._ext.sums import Sums

def copied(w: Any, dimension: int) -> NDArray[np.float64] | None: ...
def distance(w: NDArray[np.float64], v: NDArray[np.float64]) -> float: ...
def norm(w: NDArray[np.float64]) -> float: ...
def is_finite(w: NDArray[np.float64]) -> bool: ...

class Records:
    def __init__(self, kernel: ClippedSum, strengths: NDArray[np.float64]) -> None: ...

class Slot:
    sums: Sums
    def __init__(
        self,
        records: Records,
        sums: Sums,
        *,
        sampling: np.random.Generator | None,
        sampling_probability: float,
        batch_size: int,
        max_norm: float,
        size: float,
        everyone: bool = False,
        proportional: bool = False,
        cap: float = ...,
    ) -> None: ...
    def answer(
        self,
        w: NDArray[np.float64],
        v: NDArray[np.float64] | None = None,
        *,
        rows: NDArray[np.intp] | None = None,
        row: NDArray[np.int64] | None = None,
        digits: int = 0,
    ) -> NDArray[np.float64] | None: ...
    def norm(
        self, w: NDArray[np.float64], *, rows: NDArray[np.intp]
    ) -> NDArray[np.float64] | None: ...
