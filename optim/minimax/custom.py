"""Can I bring my own minimax problem? Yes, if it gives two gradients per record.

>>> import numpy as np
>>> a = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
>>> def gradients(x, y, rows):  # of F = <a, x> <a, y>, and a public -||y||^2 / 2
...     A = a[rows]
...     return (A @ y)[:, np.newaxis] * A, (A @ x)[:, np.newaxis] * A
>>> problem = Minimax(gradients, n=3, dimensions=(2, 2), dual_l2=1.0)
>>> problem.clipped_sum(np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2]), 1.0).round(6).tolist()
[0.5, 0.5, 1.5, 0.5]
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.minimax.base import MinimaxObjective
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.objectives.arrays import Rows, Vector
from dpcal.optim.objectives.contributions import shaped
from dpcal.optim.objectives.custom import UNKNOWN, check_functions

__all__ = ["Minimax"]

Pairs = Callable[[Vector, Vector, Rows], tuple[ArrayLike, ArrayLike]]
Losses = Callable[[Vector, Vector, Rows], ArrayLike]


class Minimax(MinimaxObjective):
    """A minimax problem given by a function that returns two gradients per record.

    Parameters
    ----------
    gradients
        ``gradients(x, y, rows)`` returns the gradients of ``F(x, y; record)`` in x, shape (m, d1),
        and in y, shape (m, d2), for ``rows`` (row numbers, shape (m,)). The privacy claim needs
        both to depend on that record, x and y alone: no statistics of a batch, no memory. A record
        with a gradient that is NaN or infinite contributes zero.
    n, dimensions, dual_set, primal_l2, dual_l2, block_shares
        See :class:`dpcal.optim.minimax.MinimaxObjective`.
    loss
        ``loss(x, y, rows)`` returns F of ``rows``, shape (m,); for diagnostics.
    constants
        Constants of one record's F; infinite when omitted. Privacy does not rest on them.
    """

    checked = False

    def __init__(
        self,
        gradients: Pairs,
        *,
        n: int,
        dimensions: tuple[int, int],
        dual_set: ConvexSet | None = None,
        loss: Losses | None = None,
        primal_l2: float = 0.0,
        dual_l2: float = 0.0,
        block_shares: tuple[float, float] | None = None,
        constants: Constants | None = None,
    ) -> None:
        check_functions(gradients, loss=loss)
        super().__init__(
            n=n,
            dimensions=dimensions,
            dual_set=dual_set,
            primal_l2=primal_l2,
            dual_l2=dual_l2,
            block_shares=block_shares,
        )
        self._gradients, self._loss = gradients, loss
        self.constants = validate.instance(Constants, constants=constants or UNKNOWN)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        x, y = self.split(w)
        pair = self._gradients(x.copy(), y.copy(), rows.copy())
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"gradients must return a pair of arrays, got {type(pair).__name__}.")
        tables = [
            shaped("gradients", part, (len(rows), size))
            for part, size in zip(pair, self.dimensions, strict=True)
        ]
        return np.concatenate(tables, axis=1)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`; a TypeError is raised without a ``loss``."""
        if self._loss is None:
            raise TypeError("loss must be given for losses to be asked for, got None.")
        x, y = self.split(w)
        return shaped("loss", self._loss(x.copy(), y.copy(), rows.copy()), (len(rows),))
