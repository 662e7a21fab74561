import numpy as np
from numpy.typing import NDArray

def add_gaussian(
    out: NDArray[np.int64], standard_deviation: float, generator: np.random.Generator
) -> None: ...
