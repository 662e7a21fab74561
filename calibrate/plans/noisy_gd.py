"""From a target to noisy gradient descent: how many full passes, and how much noise in each?

More steps descend farther but need more noise each. For a smooth loss the best number has a closed
form:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
>>> plan = noisy_gd(constants, n=10_000, dimension=20, epsilon=1.0, delta=1e-6)
>>> print(f"{plan.parameters['steps']} steps, gradient norm {plan.parameters['accuracy']:.4f}")
749 steps, gradient norm 0.0731
>>> 1.0 - 1e-5 < plan.price() <= 1.0
True
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal.accountants.mechanisms.last_iterate import amplitude
from dpcal.calibrate.descent import Descent
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import Given, builder, gradients, repeated


@builder()
def noisy_gd(
    given: Given,
    *,
    steps: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
    release: str = "all",
    l2: float | None = None,
    radius: float | None = None,
) -> Plan:
    r"""Return the plan of noisy gradient descent on all records that meets (epsilon, delta).

    With step size 1 / L1, noise of variance s^2 on each of d coordinates of the mean gradient and
    clipping that never acts, the descent lemma gives

        mean over t of E ||grad F(w_t)||^2  <=  2 L1 F0 / T + d s^2.

    T releases with multiplier z sqrt(T) are together as private as one with z, so that s = z
    sqrt(T) C / n. The number of steps that minimises the bound is T = sqrt(2 L1 F0 / d) n / (z C).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``smoothness`` L1, ``lipschitz`` L0 and ``gap`` F0, used where ``learning_rate``,
        ``max_norm`` and ``steps`` are not given.
    steps
        Number of steps T; the best in the bound when omitted.
    learning_rate
        1 / L1 when omitted; with ``release="last"`` 2 / (L1 + l2 + m), or 1 / (L1 + l2) for m = 0.
    release
        ``"all"``: every iterate is released, or may be. ``"last"``: only the last one, for convex
        losses of linear models; epsilon need not grow with the steps then. The noise is the smaller
        of both ways.
    l2
        Strength >= 0 of the objective's regulariser, for ``release="last"``; when omitted, the
        constants' ``strong_convexity`` m, which is l2 or 0 as every parameter is regularised.
    radius
        Radius > 0 of a ball around the origin that iterates are projected onto, for
        ``release="last"``; None for no ball.

    Returns
    -------
    Plan
        ``parameters`` holds ``steps``, ``learning_rate`` and, where the bound above holds because
        C >= L0 and the step size is at most 1 / L1, its square root as ``accuracy``, for a loss
        without a regulariser.

    References
    ----------
    Wang, Ye and Xu 2017, Theorem 5 (order of magnitude); the constants follow from the descent
    lemma, the noise from the composition of Gaussian mechanisms (Dong, Roth and Su 2022); Bok, Su
    and Altschuler 2024, Shifted interpolation for differential privacy (a single released iterate).
    """
    validate.choice(("all", "last"), release=release)
    C = given.known("lipschitz", "max_norm", max_norm)
    if release == "last":
        return _last(given, steps, C, learning_rate, l2, radius)
    for name, value in (("l2", l2), ("radius", radius)):
        if value is not None:
            raise ValueError(f"{name} is for release='last', got {value!r} with release='all'.")
    constants, n, d = given.constants, given.n, given.d
    if learning_rate is None:
        learning_rate = 1 / given.known("smoothness", "learning_rate")
    eta, single = validate.positive(learning_rate=learning_rate), given.z
    rate = math.sqrt(d) * single * C / n
    if steps is None:
        gap, L1 = given.known("gap", "steps"), given.known("smoothness", "steps")
        steps = max(1, math.ceil(math.sqrt(2 * L1 * gap) / rate))
    count = validate.count(steps=steps)
    parameters: dict[str, Parameter] = {"steps": count, "learning_rate": eta}
    if constants.lipschitz <= C and eta * constants.smoothness <= 1 and constants.gap is not None:
        # Steps shorter than 1 / L1: F falls by eta / 2 ||grad F||^2 and the noise adds as much.
        bound = 2 * constants.gap / (eta * count) + count * rate**2
        parameters |= {"accuracy": math.sqrt(bound), "accuracy_kind": "guarantee"}
    query = gradients(C, repeated(single, count), count)
    return given.plan("noisy_gd", (query,), parameters)


_MOST_STEPS, _TRIED = 100_000, 400


def _last(
    given: Given,
    steps: int | None,
    max_norm: float,
    learning_rate: float | None,
    l2: float | None,
    radius: float | None,
) -> Plan:
    """Return the plan that releases only the last iterate.

    With step size eta, contraction c and noise of deviation s on each coordinate, steps end within

        c^(2 T) 2 F0 / m + eta^2 s^2 d (1 - c^(2 T)) / (1 - c^2)

    of the squared distance to the optimum, which the number of steps T minimises; for m = 0 it
    minimises the bound of :func:`noisy_gd`.
    """
    m, L1 = given.constants.strong_convexity, given.known("smoothness")
    l2 = m if l2 is None else l2
    whole = L1 + l2
    eta = learning_rate or (2 / (whole + m) if m else 1 / whole)

    losses: dict[str, Any] = {"smoothness": L1, "l2": l2, "strong_convexity": m, "radius": radius}
    descent = partial(Descent, learning_rate=eta, **losses)
    if steps is None:
        tried = np.unique(np.rint(np.geomspace(1, _MOST_STEPS, _TRIED))).astype(int).tolist()
        noise = given.z * max_norm / given.n
        steps = min(tried, key=lambda count: _bound(given, descent(steps=count), max_norm, noise))
    chosen, kind = descent(steps=validate.count(steps=steps)), "last iterate"
    sizes: dict[str, Any] = {"max_norm": max_norm, "n": given.n}
    sigma = given.target.noise(lambda sigma: chosen.event(noise_multiplier=sigma, **sizes))
    query = gradients(max_norm, sigma, 1, name=kind, kind=kind, descent=chosen)
    return given.plan("noisy_gd", (query,), {"steps": chosen.steps, "learning_rate": eta})


def _bound(given: Given, descent: Descent, max_norm: float, noise: float) -> float:
    """Return the bound of :func:`_last`, from the noise that a single step would need."""
    gap, d, eta = given.known("gap", "steps"), float(given.d), descent.learning_rate
    m, c, t = descent.strong_convexity, descent.contraction, descent.steps
    one = descent.event(noise_multiplier=1.0, max_norm=max_norm, n=given.n)
    grown = amplitude(t, c, one.diameter / given.target.group_size)
    variance = d * (grown * noise) ** 2
    if m and c < 1:
        left = math.pow(c, 2 * t)
        return left * 2 * gap / m + eta**2 * variance * (1 - left) / (1 - c * c)
    return 2 * gap / (eta * t) + variance
