"""Characteristic functions of many atoms at equally spaced times, by one fast Fourier transform.

Each atom is spread as a Gaussian over the grid of a transform, whose result is divided by that of
the Gaussian (Dutt and Rokhlin 1993). For times j, abs(j) <= n / 8, on a grid of n points, and a
Gaussian exp(-u^2 / (2 s^2)), u in grid steps, this is exact (Poisson summation) but for

* aliases, relative to the mass of the atoms at most 2 exp(-2 pi^2 s^2 (1 - 1 / 4));
* the Gaussian beyond ``_REACH`` steps, which is at most a sum of exp(-u^2 / (2 s^2)) on both sides
  over s sqrt(2 pi), times what the division gains, exp(2 pi^2 s^2 / 64).

With s^2 = 2.7 and 15.5 steps these are below 1e-17 and 1e-19. A transform of n points rounds log2 n
times at each time, relative to the sum of absolute values on the grid.

>>> sums, _ = sums_over_atoms(np.array([0.1, 0.7]), np.array([0.25, 0.75]), 20, 22)
>>> exact = 0.25 * np.exp(0.1j * np.arange(20, 22)) + 0.75 * np.exp(0.7j * np.arange(20, 22))
>>> bool(np.abs(sums - exact).max() < 1e-14)
True
"""

from __future__ import annotations

import math

import numpy as np

from dpcal._lazy import fft
from dpcal.accountants.losses.base import Complexes, Reals

__all__ = ["sums_over_atoms"]

# Variance of the Gaussian, and steps of the grid on each side that it reaches.
_VARIANCE, _REACH = 2.7, 15
# What the division gains at the ends of the times, rounded up.
_GAIN = math.exp(2 * math.pi**2 * _VARIANCE / 64) + 1e-9


def sums_over_atoms(theta: Reals, weights: Reals, start: int, stop: int) -> tuple[Complexes, float]:
    """Return ``sum_j weights_j exp(i k theta_j)`` for k = start, ..., stop - 1, and its rounding.

    The rounding is in units, absolute, beyond that of a phase k theta off by four units of itself.
    """
    count = stop - start
    middle = start + count // 2
    size = fft.next_fast_len(4 * count + 8)
    places = theta * (size / (2 * math.pi))
    nearest = np.rint(places)
    steps = np.arange(-_REACH, _REACH + 1.0)[:, None]
    spread = np.exp(-((steps - (places - nearest)) ** 2) / (2 * _VARIANCE))
    spread = spread * (weights * np.exp(1j * middle * theta))
    cells = ((nearest + steps).astype(np.int64) % size).ravel()
    at = np.arange(start, stop) - middle
    grid = np.empty(size, dtype=complex)
    grid.real = np.bincount(cells, spread.real.ravel(), size)
    grid.imag = np.bincount(cells, spread.imag.ravel(), size)
    found = fft.ifft(grid, norm="forward", overwrite_x=True)[at]
    found *= np.exp(2 * math.pi**2 * _VARIANCE * (at / size) ** 2) / math.sqrt(
        2 * math.pi * _VARIANCE
    )
    # In units: 4 for each level of the transform, as a complex product has 2.5 and a sum of two 1;
    # one for each term of a cell; and less than 24 for weights, Gaussian and division.
    terms = 4 * math.log2(size) + float(np.bincount(cells).max()) + 24
    return found, _GAIN * terms * float(np.abs(weights).sum())
