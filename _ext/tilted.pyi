import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]

def state_table(
    factors: _Floats,
    decay: float,
    scale: float,
    variance: float,
    largest: float,
    cells: int,
) -> tuple[_Floats, NDArray[np.intp], _Floats]: ...
def state_draws(
    table: _Floats,
    places: NDArray[np.intp],
    norms: _Floats,
    factors: _Floats,
    decay: float,
    scale: float,
    variance: float,
    largest: float,
    draws: int,
    generator: np.random.Generator,
) -> tuple[_Floats, _Floats]: ...
def band_table(log_binomial: _Floats, gram: _Floats) -> _Floats: ...
def band_draws(
    table: _Floats,
    log_binomial: _Floats,
    gram: _Floats,
    draws: int,
    generator: np.random.Generator,
) -> _Floats: ...
def log_products(a: _Floats, energies: _Floats, rates: _Floats) -> _Floats: ...
