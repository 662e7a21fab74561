from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.float64]
Complexes = NDArray[np.complex128]

def moments_of(
    tables: list[Reals], powers: Reals, excesses: Reals, plain: NDArray[np.uint8]
) -> Reals: ...
def tilted_moments(
    ell: Reals, log_base: Reals, powers: Reals, excesses: Reals | None = None
) -> Reals: ...
def prepared_moments(ell: Reals, log_base: Reals) -> Reals: ...
def second_order_sums(theta: Complexes, weights: Complexes, start: int, stop: int) -> Complexes: ...
def phase_sums(distances: Reals, sizes: Reals, errors: Reals, t: Reals) -> Reals: ...
def power_sums(theta: Complexes, weights: Complexes, start: int, stop: int) -> Complexes: ...
def tilted_line(
    x: Reals,
    q: float,
    sigma: float,
    angle: float,
    power: float,
    at: Reals,
    least: float,
    log_share: Complexes | None = None,
) -> tuple[Complexes, Complexes, Reals]: ...
def mixture_log_weights(x: Reals, q: float, sigma: float, angle: float) -> Any: ...
