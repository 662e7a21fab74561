import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intc]
_Places = NDArray[np.intp]
_Cells = tuple[_Ints, _Floats]

def series_states(y: _Floats, decays: _Floats, scales: _Floats) -> None: ...
def series_fields(x: _Floats, decays: _Floats, scales: _Floats, variance: float) -> None: ...
def band_states(y: _Floats, column: _Floats) -> None: ...
def band_fields(x: _Floats, column: _Floats, variance: float) -> None: ...
def log_ratios(
    a: _Floats,
    half_energies: _Floats,
    idles: _Cells,
    joins: _Cells,
    costs: _Floats,
    kinds: _Places,
    tables: tuple[_Floats, _Floats, _Ints, _Ints, _Floats],
) -> _Floats: ...
