r"""The last iterate of noisy gradient descent, if no other iterate is released.

Steps are w_{k+1} = P(w_k - eta (grad F(w_k) + N(0, s^2 I))), k = 0, ..., t - 1, on all records,
from a start that no record enters. P projects onto a closed convex set, or does nothing. Let nu =
eta s, let D bound how far a record moves one step, and let w -> w - eta grad F(w) be c-Lipschitz.

*Theorem* (shifted interpolation; Bok, Su and Altschuler 2024). For all a_k >= 0 and a start tau
with r_{k+1} = c r_k + D - a_k >= 0, r_t = 0, and either tau = 0 and r_0 = 0, or tau > 0 and r_tau
the diameter of the set, w_t is mu-GDP with mu^2 = sum_{k >= tau} (a_k / nu)^2.

*Proof.* X and X' are the runs on both data sets, Z_k the noise of X. Y_tau = X_0 if tau = 0, and
else an independent copy of X'_tau, with X_tau known in both worlds. Put Y_{k+1} = P(Y_k - eta grad
F'(Y_k) + d_k + nu Z_k) with d_k = v_k a_k / (c r_k + D), v_k the distance of the two steps without
noise. If ||X_k - Y_k|| <= r_k, then ||v_k|| <= c r_k + D, so that ||d_k|| <= a_k and
||X_{k+1} - Y_{k+1}|| <= ||v_k - d_k|| <= r_{k+1}. At the end Y_t = X_t. Given the past of Y before
projections, which determines d_k, Y takes a step of X' with a mean that is moved by at most a_k:
that is an adaptive composition of Gaussian mechanisms (Dong, Roth and Su 2022), and X_t is a
function of it. The trade-off is symmetric, so that both directions follow although one data set
contracts. ∎

With m = t - tau, r = diameter / D, S = 1 + c + ... + c^(m-1) and Q = 1 + c^2 + ... + c^(2m-2), the
best a_k are in proportion to c^(t-1-k), and r_k >= 0 holds for them if c <= 1:

    mu^2 = (D / nu)^2 min( S^2 / Q at m = t,  min over m < t of (S + c^m r)^2 / Q ).

The first is (1 - c^t) (1 + c) / ((1 + c^t) (1 - c)), at most (1 + c) / (1 - c) and at most t, the
cost of t releases; for c = 1 it is t. A quadratic F attains it. For c = 1 the second is m + 2 r +
r^2 / m, about 4 r.

The theorem is not about means of iterates, random batches, or losses that are not convex.

>>> print(f"{amplitude(60, 0.99) ** 2:.4f} {amplitude(60, 1.0) ** 2:.4f}")
58.2461 60.0000
>>> print(f"{amplitude(10_000, 1.0, 50.0) ** 2:.4f}")
200.0000
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms.row import Row, distance, over

# Relative, and more than the rounding of all formulas here.
_ROUNDING = 1e-12
_TRIED = 256
_LEAST_NOISE, _MOST_NOISE = 5e-7, 2e12


def amplitude(steps: int, contraction: float, diameter: float = math.inf) -> float:
    """Return the GDP parameter of a last iterate, in units of a single step's, rounded up.

    Parameters
    ----------
    steps
        Number t >= 1 of steps.
    contraction
        Lipschitz constant c in [0, 1] of a step.
    diameter
        Diameter > 0 of the set that steps are projected onto, in units of the distance that a
        record moves a step.
    """
    count = validate.count(steps=steps)
    c = validate.within(0.0, 1.0, contraction=contraction)
    best = min(float(count), float(_squares(np.array([float(count)]), c, 0.0)[0]))
    if diameter < 1e100 and count > 1:
        tried = np.unique(np.rint(np.geomspace(1, float(count - 1), _TRIED)))
        values = _squares(tried, c, diameter)
        at = int(values.argmin())
        between = tried[max(0, at - 1)], tried[min(len(tried) - 1, at + 1)]
        values = _squares(np.unique(np.rint(np.linspace(*between, _TRIED))), c, diameter)
        best = min(best, float(values.min()))
    return math.sqrt(best) * (1 + _ROUNDING)


def _squares(m: NDArray[np.float64], c: float, start: float) -> NDArray[np.float64]:
    """Return (S + c^m start)^2 / Q for numbers m of steps."""
    if c == 1:
        return (m + start) * ((m + start) / m)
    # Below a half, 1 - c has fewer digits than c; below 1e-300 both powers are those of 0.
    logs = m * (math.log(max(c, 1e-300)) if c < 0.5 else math.log1p(c - 1))
    power, left = np.exp(logs), -np.expm1(logs)
    grown = (left + (1 - c) * power * start) ** 2
    return np.asarray(grown * (1 + c) / ((1 - c) * left * (1 + power)))


@Row(
    events.LastIterateDpEvent(8.0, 60, 0.9),
    "shifted interpolation (Bok, Su and Altschuler 2024), proved in "
    "`accountants/mechanisms/last_iterate.py`",
    group=over("noise_multiplier", "diameter"),
)
def _last_iterate(event: events.LastIterateDpEvent, relation: str) -> Gaussian:
    """Return the loss of the last iterate; a replaced record moves a step twice as far."""
    moved = distance(relation)
    sigma = validate.noise(noise_multiplier=event.noise_multiplier)
    diameter = validate.radius(diameter=event.diameter)
    grown = amplitude(event.steps, event.contraction, diameter / moved)
    noise = sigma / (moved * grown)
    if not _LEAST_NOISE <= noise <= _MOST_NOISE:
        raise ValueError(
            f"steps, contraction and diameter must leave a noise in [{_LEAST_NOISE:g}, "
            f"{_MOST_NOISE:g}] over what the last iterate tells of a record, got "
            f"{event.steps!r}, {event.contraction!r} and {event.diameter!r}, which leave {noise:g}."
        )
    return Gaussian(noise, Gaussian(noise * (1 + 3 * _ROUNDING)))
