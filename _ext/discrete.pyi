from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LEAST: float

class DiscreteTable:
    standard_deviation: float
    def __init__(
        self, standard_deviation: float, high: NDArray[np.uint64], low: NDArray[np.uint64]
    ) -> None: ...
    def words(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]: ...
    def draw(
        self, factors: Sequence[int], out: NDArray[np.int64], generator: np.random.Generator
    ) -> None: ...

def factors_of(standard_deviation: float, narrow: float) -> tuple[int, ...]: ...
def cover_of(sigma: float) -> float: ...
