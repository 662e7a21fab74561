"""What is the noise of a whole run measured in? Linear workloads over the steps' gradients.

A workload A (steps x steps, lower triangular Toeplitz) maps the steps' gradients to the quantities
of interest: the iterates of SGD are prefix sums of gradients. The error of a strategy C is that of
A C^-1 z.

>>> Workload().coefficients(4).tolist()
[1.0, 1.0, 1.0, 1.0]
>>> Workload(momentum=0.5).coefficients(4).tolist()
[1.0, 1.5, 1.75, 1.875]
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal import _validate

__all__ = ["PREFIX_SUMS", "Workload"]


@dataclass(frozen=True)
class Workload:
    """Iterates of SGD with momentum and weight decay; prefix sums without either.

    The first column of A has the generating function 1 / ((1 - decay x) (1 - momentum x)).

    Parameters
    ----------
    momentum
        In [0, 1): velocity v <- momentum v + gradient.
    decay
        In (0, 1]: parameters w <- decay w - learning rate times v.
    """

    momentum: float = 0.0
    decay: float = 1.0

    def __post_init__(self) -> None:
        momentum = _validate.non_negative(momentum=self.momentum)
        if momentum >= 1:
            raise ValueError(f"momentum must be a number in [0, 1), got {self.momentum!r}.")
        object.__setattr__(self, "momentum", momentum)
        object.__setattr__(self, "decay", _validate.rate(decay=self.decay))

    def coefficients(self, steps: int) -> NDArray[np.float64]:
        """Return the first column of A, shape (steps,)."""
        impulse = np.zeros(steps)
        impulse[0] = 1.0
        return self.accumulate(impulse)

    def accumulate(self, column: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return A times a column, or a block of columns, of shape (steps, ...)."""
        # Not a filter of scipy.signal, which takes half a second to load.
        rows = column.tolist() if column.ndim == 1 else column
        for factor in (self.decay, self.momentum) if self.momentum else (self.decay,):
            rows = accumulate(rows, lambda total, row, factor=factor: factor * total + row)
        return np.array(list(rows))

    def to_dict(self) -> dict[str, Any]:
        """Return the workload as JSON values."""
        return dict(vars(self))

    def __str__(self) -> str:
        if self == PREFIX_SUMS:
            return "prefix sums"
        return f"momentum {self.momentum:g}, decay {self.decay:g}"


PREFIX_SUMS = Workload()
"""The iterates of plain SGD."""
