"""From a target to adaptive gradient descent: noise for norms, and noise for gradients.

Each step queries the norm of the gradient first, with little privacy, and then the gradient with
noise in proportion to that norm: large gradients are cheap, and small ones take most of the budget.
Nothing needs to be known of the loss but its smoothness.

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

from dpcal._internal import validate
from dpcal.calibrate.plan import Parameters, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.kl_problem import Problem, number, smooth


@common.builder()
def adaptive_gd(given: Given, *, steps: int | None = None, l2: float = 0.0) -> Plan:
    r"""Return the plan of adaptive gradient descent that meets (epsilon, delta).

    Menart et al. 2024, Algorithm 3, with every release charged for the noise that it gets. In step
    t the norm is released with a fixed multiplier z_norm, as N_t, and then the gradient with noise
    of standard deviation ``sigma_t = N_t / (C q)`` on each coordinate of the mean. Half of the
    budget would pay for all norms, C = 1 and q = sqrt(d), so that the noise is about as large as
    the gradient: steps descend on average.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``lipschitz`` L0, to which gradients are clipped, and ``smoothness`` L1, which gives steps
        of 1 / (2 L1).
    steps
        The most steps; ``(n sqrt(rho))^(2/3)`` when omitted, the
        number that the theorem's rate needs at kappa = 1, where it needs most.

    Warns
    -----
    VacuousSchedule
        If ``constants.strong_convexity`` is above 0: on convex losses DP-SGD ended lower; or if the
        budget pays for no step.

    Notes
    -----
    The printed charge of a gradient, L0^2 d ell / (n^2 N_t^2), is far below its cost where N_t is
    negative; and the printed test looks at the budget already spent, not at the next answer's.
    """
    problem = smooth(given, "adaptive gradient descent", gamma=1.0, kappa=2.0, l2=l2)
    default = math.ceil(math.pow(problem.n * math.sqrt(problem.rho), 2 / 3))
    count = validate.count(steps=max(1, default) if steps is None else steps)
    if given.constants.strong_convexity > 0:
        common.warn_convex("adaptive_gd")
    # Up, so that shares of the budget sum to no more than was set aside.
    z_norm = problem.z * math.sqrt(2 * count) * (1 + 1e-11)
    settled: Parameters = {"preset": "practical", "shrink": 1.0, "quantile": math.sqrt(problem.d)}
    return planned(problem, count, z_norm, settled)


def planned(problem: Problem, count: int, z_norm: float, settled: Parameters) -> Plan:
    """Return the plan of so many norms; warn if nothing is left for a gradient."""
    parameters = {
        "preset": settled["preset"],
        "steps": count,
        "learning_rate": 1 / (2 * problem.L1),
        "norm_multiplier": z_norm,
        **settled,
    }
    longest = problem.n / (2.0 * number(parameters, "quantile"))
    if settled["shrink"] == 2 and (problem.z / longest) ** 2 + (problem.z / z_norm) ** 2 > 1:
        why = f"the budget pays for no gradient, whose norm is at most L0={problem.L0:.3g}"
        common.warn_no_step("adaptive_gd", problem.n, why)
    gradient = common.gradients(problem.L0, problem.z, count, budget=problem.z)
    norm = dataclasses.replace(gradient, name="norm", kind="gradient norm", noise_multiplier=z_norm)
    return problem.plan("adaptive_gd", (norm, gradient), parameters)
