import numpy as np
from numpy.typing import NDArray

_Floats = NDArray[np.float64]
_Ints = NDArray[np.intc]
_Places = NDArray[np.intp]
_Cells = tuple[_Ints, _Floats]

def log_ratios(
    a: _Floats,
    half_energies: _Floats,
    idles: _Cells,
    joins: _Cells,
    costs: _Floats,
    kinds: _Places,
    tables: tuple[_Floats, _Floats, _Ints, _Ints, _Floats],
) -> _Floats: ...
