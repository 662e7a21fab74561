"""Problems whose constants and optima are known, for tests that hold a run against them."""

import math

import numpy as np

from dpcal.calibrate import Constants
from dpcal.optim import FromGradients


class Tilted(FromGradients):
    """Mean of ``H(w) - <x, w>`` over records x of norm one, in opposite pairs: H itself."""

    def __init__(self, n, d, seed, potential, slope):
        half = np.random.default_rng(seed).standard_normal((n // 2, d))
        half /= np.linalg.norm(half, axis=1, keepdims=True)
        self.X, self.slope = np.concatenate([half, -half]), slope
        super().__init__(
            lambda w, rows: slope(w) - self.X[rows],
            n=n,
            dimension=d,
            loss=lambda w, rows: potential(w) - self.X[rows] @ w,
        )

    def known(self, gamma, kappa, **constants):
        """Note the KL constants of H, and those of one record's loss."""
        self.kl, self.constants = (gamma, kappa), Constants(**constants, measured=True)
        return self


def power(p, n=2_000, d=5, seed=1):
    """Return ``|w|^p / p``, a line beyond norm one: KL with equality, with exponent p / (p - 1)."""

    def potential(w):
        norm = np.linalg.norm(w)
        return min(norm, 1.0) ** p / p + max(norm - 1.0, 0.0)

    def slope(w):
        norm = np.linalg.norm(w)
        return w * (min(norm, 1.0) ** (p - 1) / norm) if norm else 0.0 * w

    smoothness = (p - 1) * (1 + 1e-9) if p >= 2 else math.inf
    return Tilted(n, d, seed, potential, slope).known(
        p ** ((1 - p) / p), p / (p - 1), lipschitz=2 + 1e-8, smoothness=smoothness, gap=1 / p
    )


def ripples(n, d, radius=2.0):
    """Return ``sum_j (w_j^2 + 3 sin^2 w_j)``: not convex, and KL with exponent 2, within a ball."""

    def potential(w):
        return w @ w + 3 * (np.sin(w) ** 2).sum()

    # The largest value of (t^2 + 3 sin^2 t) / (2 t + 3 sin 2t)^2 is 2.8486.
    return Tilted(n, d, 0, potential, lambda w: 2 * w + 3 * np.sin(2 * w)).known(
        math.sqrt(2.8486),
        2.0,
        lipschitz=min(8 * radius, 2 * radius + 3 * math.sqrt(d)) + 1 + 1e-8,
        smoothness=8.0,
        gap=min(4 * radius**2, radius**2 + 3 * d),
    )
