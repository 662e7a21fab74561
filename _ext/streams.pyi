import numpy as np
from numpy.typing import NDArray

FRESH: int
RESULT: int
OWN: int

def convolve(
    z: NDArray[np.float64],
    out: NDArray[np.float64],
    buffers: NDArray[np.float64],
    start: int,
    scale: float,
    weights: NDArray[np.float64],
    step: int,
    block: int,
    keep: int,
) -> None: ...
def mix(
    z: NDArray[np.float64],
    out: NDArray[np.float64],
    buffers: NDArray[np.float64],
    start: int,
    scale: float,
    weights: NDArray[np.float64],
    rows: NDArray[np.intp],
    slot: int,
    keep: int,
    keep_scale: float,
    keep_weights: NDArray[np.float64],
) -> None: ...
def lift(
    row: NDArray[np.int64],
    out: NDArray[np.float64],
    buffers: NDArray[np.float64],
    weights: NDArray[np.float64],
    rows: NDArray[np.intp],
) -> None: ...
def leak(
    z: NDArray[np.float64],
    out: NDArray[np.float64],
    buffers: NDArray[np.float64],
    start: int,
    scales: NDArray[np.float64],
    decays: NDArray[np.float64],
) -> None: ...
