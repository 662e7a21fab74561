"""How are second moments released? By products of the entries of each record, one of each pair.

>>> import numpy as np
>>> pairs = Pairs(2)
>>> products = pairs.products(np.array([[3.0, 4.0]]))
>>> float(np.linalg.norm(products)), pairs.matrix(products[0]).tolist()
(25.0, [[9.0, 12.0], [12.0, 16.0]])
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["Pairs"]

Table = NDArray[np.float64]


class Pairs:
    """Pairs of the entries of rows, whose products have the norm of the matrix of all products.

    Parameters
    ----------
    d
        Number of entries of a row, at least 1.
    norm
        Rows are in units of it.

    Attributes
    ----------
    count
        Number of pairs.
    """

    def __init__(self, d: int, norm: float = 1.0) -> None:
        self._d, self._upper = d, np.triu_indices(d)
        # Off the diagonal an entry stands for two.
        self._weights = np.where(self._upper[0] == self._upper[1], 1.0, math.sqrt(2)) / norm**2
        self.count = len(self._weights)

    def products(self, rows: Table) -> Table:
        """Return the weighted products of the entries of each row, shape (n, count)."""
        products: Table = rows[:, self._upper[0]] * rows[:, self._upper[1]] * self._weights
        return products

    def matrix(self, products: Table) -> Table:
        """Return the symmetric matrix of such products, the first of a vector, shape (d, d)."""
        found = np.zeros((self._d, self._d))
        found[self._upper] = products[: self.count] / self._weights
        matrix: Table = found + found.T - np.diag(np.diag(found))
        return matrix
