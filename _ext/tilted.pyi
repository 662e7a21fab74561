import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intc]

def state_table(
    factors: _Floats,
    runs: NDArray[np.intp],
    decay: float,
    scale: float,
    variance: float,
    largest: float,
    cells: int,
    most: int,
) -> tuple[_Floats, NDArray[np.intp], _Floats]: ...
def state_draws(
    table: _Floats,
    places: NDArray[np.intp],
    norms: _Floats,
    factors: _Floats,
    runs: NDArray[np.intp],
    decay: float,
    scale: float,
    variance: float,
    largest: float,
    draws: int,
    generator: np.random.Generator,
) -> tuple[_Floats, _Floats]: ...
def band_table(
    log_binomial: _Floats, gram: _Floats
) -> tuple[_Floats, _Floats, NDArray[np.intp], _Floats]: ...
def band_draws(
    table: _Floats,
    kept: _Floats,
    places: NDArray[np.intp],
    norms: _Floats,
    log_binomial: _Floats,
    gram: _Floats,
    draws: int,
    generator: np.random.Generator,
) -> _Floats: ...
def log_products(a: _Floats, energies: _Floats, rates: _Floats) -> _Floats: ...
def replica_round(
    now: _Floats,
    to: NDArray[np.intc],
    share: _Floats,
    gains: _Floats,
    chances: _Floats,
    free: NDArray[np.intc],
    counted: bool,
    last: bool,
    then: _Floats,
) -> None: ...
def energy_law(
    energies: _Floats,
    rates: _Floats,
    s: _Floats,
    idle_to: _Ints,
    join_to: _Ints,
    decay: float,
    cell: float,
    cells: int,
) -> _Floats: ...
