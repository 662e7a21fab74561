"""Losses with known KL constants and minima.

One record's loss is ``H(w) - <x, w>``: a potential that all records share, tilted by each. The mean
loss is the potential itself, up to the mean of the records, so that excess risks are exact:

>>> import numpy as np
>>> problem = PowerNorm(balanced(100, 3, seed=0), power=3.0)
>>> w = np.array([0.5, 0.0, 0.0])
>>> print(f"{problem.loss(w):.6f}")  # |w|^3 / 3
0.041667
>>> gamma, kappa = problem.kl
>>> bool(np.isclose(problem.loss(w), (gamma * np.linalg.norm(problem.gradient(w))) ** kappa))
True
"""

from __future__ import annotations

import math
from abc import abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import (
    Rows,
    Vector,
    digest_of,
    parameters,
    prints_of_rows,
    records,
)
from dpcal.optim.objectives.base import Objective


def balanced(n: int, dimension: int, *, norm: float = 1.0, seed: int | None = None) -> Vector:
    """Return records in opposite pairs, so that their mean is zero.

    Parameters
    ----------
    n
        Even number >= 2.
    dimension
        Number >= 1.
    norm
        L2 norm > 0 of every record.
    seed
        Whole number >= 0, or None for fresh entropy.

    Returns
    -------
    numpy.ndarray
        Shape (n, dimension).
    """
    if validate.count(n=n) % 2:
        raise ValueError(f"n must be even, got {n}.")
    half = np.random.default_rng(seed).standard_normal((n // 2, validate.count(d=dimension)))
    half *= validate.positive(norm=norm) / np.linalg.norm(half, axis=1, keepdims=True)
    return np.concatenate([half, -half])


class Tilted(Objective):
    """Mean of ``H(w) - <x, w>`` over the records x."""

    def __init__(self, X: ArrayLike) -> None:
        self._X = records(X)
        self.n, self.dimension = self._X.shape
        self.penalized = self.dimension
        self._largest = float(np.linalg.norm(self._X, axis=1).max())
        self._everyone = np.arange(self.n, dtype=np.intp)
        self._whole = self._X.sum(axis=0)

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        return digest_of(self._X)

    def fingerprints(self, key: bytes) -> list[bytes]:
        """See :meth:`Objective.fingerprints`."""
        return prints_of_rows(key, self._X)

    @abstractmethod
    def potential(self, w: Vector) -> float:
        """Return H(w)."""

    @abstractmethod
    def slope(self, w: Vector) -> Vector:
        """Return the gradient of H, shape (dimension,)."""

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        return np.asarray(self.slope(w) - self._X[rows])

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`."""
        return np.asarray(self.potential(w) - self._X[rows] @ w)

    def loss(self, w: ArrayLike) -> float:
        """Return the mean loss at ``w``, shape (dimension,). Not private."""
        w = parameters(w, self.dimension)
        return self.potential(w) - float(self._whole @ w) / self.n


class PowerNorm(Tilted):
    """``|w|^p / p - <x, w>``, and linear beyond a radius: KL with exponent p / (p - 1).

    Parameters
    ----------
    X
        Records, shape (n, d), finite. The constants hold if the mean of the records is zero, as for
        :func:`balanced` records; then the minimum is 0, at the origin.
    power
        p > 1: kappa = p / (p - 1) is at most 2 for p >= 2, where the loss is smooth, and at least 2
        for p <= 2, where it is not.
    radius
        Norm > 0 of w beyond which the potential goes on as a line, which makes it Lipschitz.
    """

    def __init__(self, X: ArrayLike, *, power: float, radius: float = 1.0) -> None:
        if not validate.positive(power=power) > 1:
            raise ValueError(f"power must be greater than 1, got {power!r}.")
        super().__init__(X)
        self.power, self.radius = float(power), validate.positive(radius=radius)

    @property
    def kl(self) -> tuple[float, float]:
        """(gamma, kappa) within the radius, where the condition holds with equality."""
        p = self.power
        return float(p ** (-(p - 1) / p)), p / (p - 1)

    @property
    def constants(self) -> Constants:
        """L0 = radius^(p - 1) + max |x|, L1 = (p - 1) radius^(p - 2) for p >= 2. Not private."""
        p, r = self.power, self.radius
        return Constants(
            lipschitz=(r ** (p - 1) + self._largest) * (1 + 1e-9),
            smoothness=(p - 1) * r ** (p - 2) * (1 + 1e-9) if p >= 2 else math.inf,
            gap=r**p / p,
            measured=True,
        )

    def potential(self, w: Vector) -> float:
        """Return H(w)."""
        p, norm = self.power, float(np.linalg.norm(w))
        inside = min(norm, self.radius)
        beyond = self.radius ** (p - 1) * (norm - inside)
        return float(inside**p / p + beyond)

    def slope(self, w: Vector) -> Vector:
        """Return the gradient of H, shape (dimension,)."""
        norm = float(np.linalg.norm(w))
        if norm == 0:
            return np.zeros(self.dimension)
        slope: Vector = w * (min(norm, self.radius) ** (self.power - 1) / norm)
        return slope


class Softplus(Tilted):
    """``log(1 + exp(-w_1)) + |others|^2 / 2 - <x, w>``: KL with kappa = 1, infimum 0, no minimum.

    The others are kept at norm 1 at most, beyond which their part is linear. With r their norm,
    ``log(1 + exp(-w_1)) <= 2 log 2 |F_1'|`` for w_1 >= 0 and ``r^2 / 2 <= |F_2'| / 2``.
    """

    kl = (math.hypot(2 * math.log(2), 0.5), 1.0)

    @property
    def constants(self) -> Constants:
        """Return L0, L1 and the gap at the origin."""
        lipschitz = math.hypot(1.0, 1.0) + self._largest
        return Constants(lipschitz=lipschitz * (1 + 1e-9), smoothness=1.0, gap=math.log(2))

    def potential(self, w: Vector) -> float:
        """Return H(w)."""
        r = float(np.linalg.norm(w[1:]))
        return float(np.logaddexp(0.0, -w[0])) + (r * r / 2 if r <= 1 else r - 0.5)

    def slope(self, w: Vector) -> Vector:
        """Return the gradient of H."""
        slope: Vector = w / max(1.0, float(np.linalg.norm(w[1:])))
        slope[0] = -1 / (1 + np.exp(w[0]))
        return slope
