import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intc]

def replica_rounds(
    now: _Floats,
    to: _Ints,
    share: _Floats,
    gains: _Floats,
    chances: _Floats,
    free: _Ints,
    end: int,
    epoch: int,
    then: _Floats,
) -> _Floats: ...
def replica_draws(
    table: _Floats,
    places: NDArray[np.intp],
    norms: _Floats,
    chances: _Floats,
    chances_of: NDArray[np.intp],
    gains: _Floats,
    gains_of: NDArray[np.intp],
    to: _Ints,
    free: _Ints,
    sizes: tuple[int, int],
    walk: tuple[float, float, float, float],
    first: NDArray[np.intp],
    generator: np.random.Generator,
) -> tuple[_Floats, _Floats]: ...
