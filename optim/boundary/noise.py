"""How is noise added to a sum? Independent Gaussians, or a row of a matrix mechanism's noise.

>>> import numpy as np
>>> answer = np.zeros(3)
>>> add_gaussian(answer, 2.0, np.random.default_rng(0))
>>> bool((answer == 2.0 * np.random.default_rng(0).standard_normal(3)).all())
True
>>> add_correlated(answer, 1.0, -answer)
>>> answer.tolist()
[0.0, 0.0, 0.0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dpcal._ext.noise import add_gaussian

__all__ = ["add_correlated", "add_gaussian"]


def add_correlated(
    out: NDArray[np.float64], standard_deviation: float, row: NDArray[np.float64]
) -> None:
    """Add a row of C^-1 z, times the standard deviation of z, to ``out``, in place.

    Parameters
    ----------
    out, row
        Shape (d,).
    standard_deviation
        At least 0.
    """
    out += standard_deviation * row
