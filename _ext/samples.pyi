import numpy as np
from numpy.typing import NDArray

class Sample:
    def __init__(
        self,
        n: int,
        sampling_probability: float,
        batch_size: int,
        generator: np.random.Generator | None,
    ) -> None: ...

def drawn(
    n: int, sampling_probability: float, batch_size: int, generator: np.random.Generator
) -> NDArray[np.intp]: ...
def law_of_gaps(sampling_probability: float) -> tuple[int, list[int], list[int]]: ...
