import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intc]
_Law = tuple[_Floats, _Floats, _Ints, _Ints, _Floats]

def ar1_states(y: _Floats, decay: float) -> None: ...
def ar1_fields(x: _Floats, decay: float, variance: float) -> None: ...
def series_states(y: _Floats, decays: _Floats, scales: _Floats) -> None: ...
def series_fields(x: _Floats, decays: _Floats, scales: _Floats, variance: float) -> None: ...
def band_states(y: _Floats, column: _Floats) -> None: ...
def band_fields(x: _Floats, column: _Floats, variance: float) -> None: ...
def grid_log_ratio(
    a: _Floats,
    energies: _Floats,
    s: _Floats,
    W0: _Floats,
    W1: _Floats,
    decay: float,
    tables: _Law,
) -> _Floats: ...
def likelihood_log_ratio(
    a: _Floats,
    energies: _Floats,
    s: _Floats,
    halves: _Floats,
    tail: _Floats,
    decay: float,
    rounding: float,
    tolerance: float,
    tables: _Law,
) -> _Floats: ...
def vector_log_ratio(
    a: _Floats,
    energies: _Floats,
    couplings: _Floats,
    shape: _Ints,
    points: _Floats,
    W0: _Floats,
    W1: _Floats,
    origin: _Floats,
    tables: _Law,
) -> _Floats: ...
def counts_log_ratio(
    a: _Floats,
    energies: _Floats,
    s: _Floats,
    W: _Floats,
    decay: float,
    log_probabilities: _Floats,
) -> _Floats: ...
def bracket_log_ratio(
    a: _Floats,
    energies: _Floats,
    s: _Floats,
    cell0: _Ints,
    cell1: _Ints,
    share0: _Floats,
    share1: _Floats,
    decay: float,
    tables: _Law,
    upper: bool,
) -> _Floats: ...
def banded_log_ratio(
    a: _Floats,
    gram: _Floats,
    tables: _Law,
) -> _Floats: ...
def particle_log_ratio(
    a: _Floats,
    gram: _Floats,
    tables: _Law,
    particles: int,
    reference: _Floats,
    reference_start: _Ints,
    generator: np.random.Generator,
) -> _Floats: ...
def tilted_pair_states(
    ahead: _Floats,
    s: _Floats,
    barycentric: _Floats,
    decay: float,
    variance: float,
    rates: _Floats,
    draws: int,
    generator: np.random.Generator,
) -> _Floats: ...
