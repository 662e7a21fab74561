"""From a target to the private proximal point method: how many stages, and how strong a pull?

For losses that are Kurdyka-Lojasiewicz with kappa >= 2, which need not be smooth. Stage t minimises
F + lambda_t ||w - w_{t-1}||^2, which is strongly convex, by noisy gradient descent in a ball.

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=2.0, smoothness=float("inf"), gap=2 / 3)
>>> plan = proximal_point(constants, n=20_000, dimension=4, epsilon=1.0, delta=1e-6,
...                       gamma=1.5 ** (-1 / 3), kappa=3.0)
>>> plan.query("gradient").count == plan.parameters["stages"] * plan.parameters["inner_steps"]
True
>>> [round(weight, 3) for weight in stage_weights(plan)[:3]]  # as the excess risk falls, they grow
[0.187, 0.201, 0.215]
>>> 1.0 - 1e-5 < plan.price() <= 1.0
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpcal._internal import validate
from dpcal.calibrate.plan import Parameter, Parameters, Plan
from dpcal.calibrate.plans.common import Given, builder, gradients
from dpcal.calibrate.plans.kl_problem import Problem, multiplier, number, numbers
from dpcal.errors import warn_caller

# Most stages; each takes hundreds of passes over the records.
_MOST_STAGES = 400
_INNER_STEPS = (32, 64, 128, 256, 512)


@builder()
def proximal_point(
    given: Given,
    *,
    gamma: float | None = None,
    kappa: float = 2.0,
    weak_convexity: float = 0.0,
    beta: float = 0.05,
    inner_steps: int | None = None,
) -> Plan:
    r"""Return the plan of the private proximal point method that meets (epsilon, delta).

    Menart et al. 2024, Algorithm 2 around Algorithm 4, with weights that grow as the excess risk
    falls, without which the theorem's rate is not reached for kappa > 2:

        lambda_t = max(Ltil, Phi_t^((2 - kappa) / kappa) / (8 gamma^2)),
        y_t = Phi_t^((2 - kappa) / kappa) / (32 lambda_t gamma^2)  <= 1/4.

    An exact stage takes an excess risk of Phi_t to (1 - y_t) Phi_t; the inner solver adds its own
    error tau_t. With S noisy gradients of variance s^2 per coordinate in each stage it is at most

        tau_t <= 8 / (lambda_t S) (4 L0^2 + s^2 (d' + log(2 T / beta)))

    in all T stages with probability 1 - beta, d' = d + 2 sqrt(d l / S) + 2 l / S at l = log(2 T /
    beta): in the weighted regret, <noise, w* - w_t> is a Gaussian martingale with a variance that
    the strong convexity pays for, and the noise's own square is a chi square of d S degrees
    (Laurent and Massart 2000). The number of stages is that which brings Phi_t <- (1 - y_t) Phi_t +
    tau_t lowest with tau_t = (2 G_t^2 / S + d s^2 / (3 S)) / lambda_t: the error of the averaged
    iterate of a stage if gradients are as small as the KL condition allows, G_t = Phi_t^(1 / kappa)
    / gamma, and the pull gives all the curvature, 2 lambda_t.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``lipschitz`` L0, to which gradients are clipped; ``gap`` F0, or (gamma L0)^kappa.
    gamma
        KL constant > 0; ``(2 strong_convexity)^(-1/2)`` when omitted, for kappa = 2.
    kappa
        KL exponent >= 2.
    weak_convexity
        Ltil >= 0: F + Ltil / 2 ||w||^2 is convex; 0 for convex losses.
    inner_steps
        Gradients S >= 1 of a stage, each a pass over the records;
        when omitted, the fewest of 32 to 512 with which the last stage's error is mostly noise.

    Returns
    -------
    Plan
        ``parameters["predicted"]`` is the excess risk that the stages were chosen by, no promise.

    Warns
    -----
    VacuousSchedule
        If the loss is smooth, kappa = 2, and noisy gradient descent reaches less on average than
        the stages are predicted to.
    """
    if not validate.positive(kappa=kappa) >= 2:
        raise ValueError(f"kappa must be at least 2 for the proximal point method, got {kappa!r}.")
    Ltil = validate.non_negative(weak_convexity=weak_convexity)
    problem = Problem.of(given, gamma=gamma, kappa=kappa, beta=beta)
    asked = _INNER_STEPS if inner_steps is None else (validate.count(inner_steps=inner_steps),)
    for S in asked:
        settled = _practical(problem, Ltil, S)
        if _noisy(settled):
            break
    predicted = number(settled, "predicted")
    compared = kappa == 2 and 0 < problem.L1 < math.inf
    if compared and (plain := problem.descended()) < predicted:
        warn_caller(
            f"proximal_point is predicted to reach an excess risk of {predicted:.2g}, and does not "
            f"use that the loss is smooth; the mean of noisy_gd's is at most {plain:.2g} for the "
            "same budget."
        )
    return planned(problem, settled | {"preset": "practical"})


def planned(problem: Problem, settled: Parameters) -> Plan:
    """Return the plan of stages that are settled."""
    count = max(1, int(number(settled, "stages"))) * int(number(settled, "inner_steps"))
    query = gradients(problem.L0, multiplier(problem.z, 1 / count), count)
    return problem.plan("proximal_point", (query,), {**settled, "steps": count})


def stage_weights(plan: Plan) -> list[float]:
    """Return lambda_t of every stage of a plan; none where its theorem promises nothing."""
    return [weight for weight, _ in _stages(plan.parameters)]


def _stages(p: Mapping[str, Parameter]) -> list[tuple[float, float]]:
    """Weight of every stage, and the excess risk aimed at (lines 5 to 10 of Algorithm 2)."""
    kappa, gamma, Ltil, floor, level = numbers(p, "kappa gamma weak_convexity floor gap")
    theory, found = p.get("preset") == "theory", []
    for _ in range(int(number(p, "stages"))):
        pull = level ** ((2 - kappa) / kappa) / (8 * gamma**2)
        weight = max(Ltil, pull)  # 7
        y = pull / (4 * weight)  # 9
        if theory:
            level = max((1 - y / 2) * level, floor)  # 10
        else:
            G = min(number(p, "lipschitz"), level ** (1 / kappa) / gamma)
            error = 2 * G**2 / number(p, "inner_steps") + number(p, "noise") / 3
            level = (1 - y) * level + error / weight
        found.append((weight, level))
    return found


def _noisy(p: Mapping[str, Parameter]) -> bool:
    """Return whether more inner steps than these would leave the noise of the last stage."""
    level = _stages(p)[-1][1]
    L0, kappa, gamma, S, noise = numbers(p, "lipschitz kappa gamma inner_steps noise")
    return bool(2 * min(L0, level ** (1 / kappa) / gamma) ** 2 / S <= noise / 3)


def _practical(p: Problem, Ltil: float, S: int) -> Parameters:
    """Return the number of stages with the least predicted risk, and its settings."""

    def settled(T: int) -> Parameters:
        # Squared noise of a mean over d coordinates, per inner step, for T S releases in all.
        noise = p.d * p.sensitivity**2 * T / (2 * p.rho)
        stages = {"stages": T, "inner_steps": S, "floor": 0.0, "noise": noise}
        return {**stages, **p.told, "weak_convexity": Ltil}

    def reached(T: int) -> float:
        return _stages(settled(T))[-1][1]

    best, T = 1, 1
    while min(2 * best + 8, _MOST_STAGES) >= T:
        best = T if reached(T) < reached(best) else best
        T += 1
    return {**settled(best), "predicted": reached(best)}
