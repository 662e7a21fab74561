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

from dpcal import _validate
from dpcal.calibrate.plan import Parameter, Plan
from dpcal.calibrate.plans.common import Given, builder, gradients, repeated

__all__ = ["noisy_gd"]


@builder()
def noisy_gd(
    given: Given,
    *,
    steps: int | None = None,
    max_norm: float | None = None,
    learning_rate: float | None = None,
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
        1 / L1 when omitted.

    Returns
    -------
    Plan
        ``parameters`` holds ``steps``, ``learning_rate`` and, where the bound above holds because
        C >= L0 and the step size is at most 1 / L1, its square root as ``accuracy``, for a loss
        without a regulariser.

    References
    ----------
    Wang, Ye and Xu 2017, Theorem 5 (order of magnitude); the constants follow from the descent
    lemma, the noise from the composition of Gaussian mechanisms (Dong, Roth and Su 2022).
    """
    constants, n, d = given.constants, given.n, given.dimension
    C = given.known("lipschitz", "max_norm", max_norm)
    if learning_rate is None:
        learning_rate = 1 / given.known("smoothness", "learning_rate")
    eta, single = _validate.positive(learning_rate=learning_rate), given.single
    rate = math.sqrt(d) * single * C / n
    if steps is None:
        gap, L1 = given.known("gap", "steps"), given.known("smoothness", "steps")
        steps = max(1, math.ceil(math.sqrt(2 * L1 * gap) / rate))
    count = _validate.count(steps=steps)
    parameters: dict[str, Parameter] = {"steps": count, "learning_rate": eta}
    if constants.lipschitz <= C and eta * constants.smoothness <= 1 and constants.gap is not None:
        # Steps shorter than 1 / L1: F falls by eta / 2 ||grad F||^2 and the noise adds as much.
        bound = 2 * constants.gap / (eta * count) + count * rate**2
        parameters |= {"accuracy": math.sqrt(bound), "accuracy_kind": "guarantee"}
    query = gradients(C, repeated(single, count), count)
    return given.plan("noisy_gd", (query,), parameters)
