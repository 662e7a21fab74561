"""How far from its minimum does noisy descent on a linear model end? A law, from sizes only.

Take noise of deviation s on each coordinate of a mean gradient, constant steps of size eta, and the
mean of iterates with weights 2 t / (T (T + 1)). On a quadratic of eigenvalues lam_i with a minimum
at distance w*_i, they leave the excess

    1/2 sum_i lam_i (w*_i^2 (sum_t weight_t r_i^t)^2 + (s^2 + g_i^2) sum_j a_ij^2),

where r_i is 1 - eta lam_i, a_ij the weight of the noise of step j in the mean, and g_i^2 the
variance of sampling. With correlated noise of matrix C, s^2 multiplies the squared norm of C^-T a_i
in place of a_i's. Spectra and distances are not known: the law is the geometric mean over six of
them.

>>> from dpcal.calibrate.defaults import Defaults
>>> tuned = Defaults.of(
...     "logistic", n=20_000, dimension=10, row_norm=1.0, release=4.22, passes=60)
>>> quiet, loud = (excess(tuned, tuned.learning_rate(noise), noise) for noise in (4.1, 8.2))
>>> 1e-5 < quiet < loud
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcal.accountants.matrix import Strategy
from dpcal.calibrate.defaults import Defaults

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Loss:
    """The facts about a loss before records are seen, for rows of norm 1.

    Attributes
    ----------
    curvatures
        Mean second derivative of a record's loss in its score, for each of the ``scores``.
    scores
        Deviations of scores at the optimum.
    residual
        Variance of a record's gradient at the optimum, in units of the curvature.
    cut
        Below this clip, in units of the typical norm, curvature falls in proportion to it.
    slope, smoothness
        Largest first and second derivative in the score.
    """

    curvatures: tuple[float, ...]
    scores: tuple[float, ...]
    residual: float
    cut: float
    slope: float
    smoothness: float


LOSSES = {
    "logistic": Loss(
        curvatures=(0.23, 0.18, 0.11),
        scores=(0.7, 1.5, 3.0),
        residual=1.0,
        cut=0.35,
        slope=1.0,
        smoothness=0.25,
    ),
    # Targets in [-1, 1].
    "squared": Loss(
        curvatures=(1.0, 1.0, 1.0),
        scores=(0.14, 0.3, 0.6),
        residual=0.05,
        cut=0.2,
        slope=2.0,
        smoothness=1.0,
    ),
}
# Excess that a clip leaves in a logistic model, by the clip in units of the typical norm.
_CLIPS = (0.2, 0.3, 0.5, 0.7, 0.9, 1.0)
_BIASES = (1e-1, 5.5e-2, 1.1e-2, 5e-4, 3e-6, 0.0)
_MOST_EIGENVALUES = 40


def excess(
    tuned: Defaults, rate: float, noise: float, *, l2: float = 0.0, strategy: Strategy | None = None
) -> float:
    """Return the excess that a run is expected to end with, without a fitted factor.

    Parameters
    ----------
    tuned, rate
        Sizes of the problem, with one of the ``LOSSES``; clip, steps and batch; and the step size.
    noise
        Noise multiplier of a step.
    l2
        Weight of the penalty.
    strategy
        Matrix of correlated noise.
    """
    known, norm = LOSSES[tuned.loss], tuned.row_norm
    # Rows are divided by their typical norm.
    eta, C, b = rate * norm**2, tuned.clip * tuned.unit, tuned.batch_size
    s, left = noise * C / b, 1 - b / tuned.n
    cut_off = float(np.interp(C, _CLIPS, _BIASES)) if tuned.loss == "logistic" else 0.0
    logs = []
    for power in (0.0, 1.0):
        lam, many = _spectrum(tuned.dimension, power)
        for h, score in zip(known.curvatures, known.scores, strict=True):
            curved = h * lam * min(1.0, C / known.cut) + l2 / norm**2
            sampling = known.residual * curved * left / b
            # Distances are equal in all directions, except that the penalty shortens some.
            shorter = 1 - l2 / norm**2 / curved
            bias, noisy = averaged(curved, eta, tuned.steps, strategy)
            own = noisy if strategy is None else averaged(curved, eta, tuned.steps, None)[1]
            start = (score * shorter * bias) ** 2
            each = curved * (start + s**2 * noisy + sampling * own)
            logs.append(math.log(0.5 * float(many @ each) + cut_off))
    return math.exp(float(np.mean(logs)))


def _spectrum(d: int, power: float) -> tuple[Floats, Floats]:
    """Return eigenvalues of rows of norm 1, falling as i^-power, and how many each stands for."""
    whole = np.arange(1, d + 1) ** -power
    whole /= whole.sum()
    groups = np.array_split(whole, min(d, _MOST_EIGENVALUES)) if power else [whole]
    return np.array([group.mean() for group in groups]), np.array([float(len(g)) for g in groups])


def averaged(
    curved: Floats, eta: float, steps: int, strategy: Strategy | None
) -> tuple[Floats, Floats]:
    """Return the rest of the distance, and the squared weight of noise, by eigenvalue."""
    t = np.arange(1, steps + 1)
    weights = 2.0 * t / (steps * (steps + 1.0))
    r = np.maximum(1 - eta * curved, -1.0)
    bias = (weights * r[:, np.newaxis] ** t).sum(axis=1)
    a = np.empty((len(curved), steps))
    rest = np.zeros(len(curved))
    for j in range(steps - 1, -1, -1):
        rest = weights[j] + r * rest
        a[:, j] = rest
    a *= eta
    if strategy is not None:
        a = transposed_inverse(strategy, a)
    return bias, (a**2).sum(axis=1)


def transposed_inverse(strategy: Strategy, a: Floats) -> Floats:
    """Return the rows of a times C^-1, of a banded Toeplitz matrix, by back substitution."""
    head = strategy.matrix()[: strategy.bands or strategy.steps, 0]
    found = np.zeros_like(a)
    for j in range(a.shape[1] - 1, -1, -1):
        later = found[:, j + 1 : j + len(head)]
        found[:, j] = (a[:, j] - later @ head[1 : 1 + later.shape[1]]) / head[0]
    return found
