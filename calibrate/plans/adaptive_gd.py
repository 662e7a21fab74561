"""From a target to adaptive gradient descent: what must a norm cost, and what may a gradient?

Each step asks for the norm of the gradient first, with little privacy, and then for the gradient
with noise in proportion to that norm: large gradients are cheap, and small ones are where the
budget goes. Nothing needs to be known of the loss but its smoothness.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0)
>>> plan = adaptive_gd(constants, n=10_000, dimension=20, epsilon=1.0, delta=1e-6)
>>> plan.query("norm").count, plan.query("norm").budget == plan.query("gradient").budget
(141, True)
>>> 1.0 - 1e-5 < plan.price() <= 1.0
True
"""

from __future__ import annotations

import dataclasses
import math

from scipy.special import ndtri

from dpcal import _validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import (
    PRESETS,
    Given,
    builder,
    gradients,
    practical_only,
    warn_convex,
    warn_no_step,
)
from dpcal.calibrate.plans.kl_problem import Problem, chi_quantile, number
from dpcal.calibrate.query import Query

__all__ = ["adaptive_gd"]


@builder()
def adaptive_gd(
    given: Given,
    *,
    steps: int | None = None,
    gamma: float | None = None,
    kappa: float = 2.0,
    beta: float = 0.05,
    l2: float = 0.0,
    preset: str = "practical",
) -> Plan:
    r"""Return the plan of adaptive gradient descent that meets (epsilon, delta).

    Menart et al. 2024, Algorithm 3, with every release charged for the noise that it gets. In step
    t the norm is released with a fixed multiplier z_norm, as N_t, and then the gradient with noise
    of standard deviation ``sigma_t = N_t / (C q)`` on each coordinate of the mean; q is about
    sqrt(d), so that the noise is about as large as the gradient, or half as large for C = 2.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``lipschitz`` L0, to which gradients are clipped, and ``smoothness`` L1, which gives steps
        of 1 / (2 L1).
    steps
        For the preset ``"practical"``: the most steps; ``(n sqrt(rho))^(2/3)`` when omitted, the
        number that the theorem's rate needs at kappa = 1, where it needs most.
    gamma, kappa
        KL constant > 0 and exponent in [1, 2] for ``parameters["accuracy"]`` of the theory alone:
        the algorithm does not use them.
    preset
        ``"theory"``: z_norm = sqrt(n) / rho^(1/4), as printed, C = 2 and q the chi quantile of d
        dimensions, which make every step descend with probability 1 - beta. ``"practical"``: half
        of the budget would pay for all norms, C = 1 and q = sqrt(d): steps descend on average.

    Warns
    -----
    VacuousSchedule
        If gamma is given and the theorem promises nothing at these sizes; for the preset
        ``"theory"``, if the budget pays for no step; for ``"practical"``, if
        ``constants.strong_convexity`` is above 0: on convex losses DP-SGD ended lower.

    Notes
    -----
    The printed charge of a gradient, L0^2 d ell / (n^2 N_t^2), is far below its cost where N_t is
    negative; and the printed test looks at what was spent, not at what will be.
    """
    theory = _validate.choice(PRESETS, preset=preset) == "theory"
    if not 1 <= _validate.positive(kappa=kappa) <= 2:
        raise ValueError(f"kappa must be in [1, 2] for adaptive gradient descent, got {kappa!r}.")
    asked = 1.0 if gamma is None else gamma
    problem = Problem.of(given, gamma=asked, kappa=kappa, beta=beta)
    L1 = given.known("smoothness") + _validate.non_negative(l2=l2)
    problem = dataclasses.replace(problem, L1=L1)
    practical_only(preset, steps=steps)
    if theory:
        count = _norms(problem)
    else:
        count = _validate.count(steps=_default_steps(problem) if steps is None else steps)
    printed = math.sqrt(problem.n) / problem.rho**0.25
    # Up, so that shares of the budget sum to no more than was set aside.
    least = problem.z * math.sqrt(1 if theory else 2 * count) * (1 + 1e-11)
    z_norm = max(printed, least) if theory else least
    parameters: dict[str, Parameter] = {
        "preset": preset,
        "steps": count,
        "learning_rate": 1 / (2 * L1),
        "norm_multiplier": z_norm,
        "shrink": 2.0 if theory else 1.0,
        "quantile": chi_quantile(problem.d, beta / count) if theory else math.sqrt(problem.d),
    }
    if theory and gamma is not None:
        parameters |= problem.promise("adaptive_gd", _accuracy)
    if not theory and given.constants.strong_convexity > 0:
        warn_convex("adaptive_gd")
    longest = problem.n / (2.0 * number(parameters, "quantile"))
    if theory and (problem.z / longest) ** 2 + (problem.z / z_norm) ** 2 > 1:
        why = f"the budget pays for no gradient, whose norm is at most L0={problem.L0:.3g}"
        warn_no_step("adaptive_gd", problem.n, why)
    return problem.plan("adaptive_gd", _queries(problem, count, z_norm), parameters)


def _queries(problem: Problem, count: int, z_norm: float) -> tuple[Query, ...]:
    gradient = gradients(problem.L0, problem.z, count, budget=problem.z)
    norm = dataclasses.replace(gradient, name="norm", kind="gradient norm", noise_multiplier=z_norm)
    return norm, gradient


def _norms(problem: Problem) -> int:
    """Return the number of norms that the budget pays for at L0 / (sqrt(n) rho^(1/4))."""
    return max(1, math.floor(problem.n / (math.sqrt(problem.rho) * problem.z**2)))


def _default_steps(problem: Problem) -> int:
    return max(1, math.ceil(math.pow(problem.n * math.sqrt(problem.rho), 2 / 3)))


def _accuracy(p: Problem) -> float:
    """Theorem 4 in a form that keeps its units, with the constants of its corrected proof."""
    N = p.n * math.sqrt(p.rho)
    if p.room <= 1:
        return p.F0
    norms = _norms(p)
    a = p.F0 ** (-(2 - p.kappa) / p.kappa) * p.gamma**2 * p.L1
    c = 1 + 3 / (32 * a)
    phases = (1 + 32 / 3 * a) * math.log(p.room)
    q = math.sqrt(p.d) + math.sqrt(2 * math.log(norms / p.beta))
    s = float(ndtri(1 - p.beta / (2 * norms))) * p.L0 / math.sqrt(N)
    gradients = math.sqrt(128) * c ** ((4 - p.kappa) / (2 * p.kappa))
    gradients *= p.gamma * p.L0 * q * math.sqrt(phases) / N
    first = p.F0 ** ((2 - p.kappa) / (4 - p.kappa)) * gradients ** (2 * p.kappa / (4 - p.kappa))
    second = (2 * p.gamma * s) ** p.kappa + s**2 / (8 * p.L1)
    many = 8 * phases / N
    third = c * p.F0 * many ** (p.kappa / (2 - p.kappa)) if p.kappa < 2 else 0.0
    return min(p.F0, first + second + third) if many < 1 else p.F0
