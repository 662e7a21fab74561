"""A checked problem under the Kurdyka-Lojasiewicz condition, in its letters.

A function is (gamma, kappa)-KL where ``F(w) - F* <= gamma^kappa ||grad F(w)||^kappa``: it is flat
nowhere but at the bottom. kappa = 2 is the Polyak-Lojasiewicz condition; mu-strongly convex
functions meet it with ``gamma^2 = 1 / (2 mu)``. Letters are as in Menart, Ullah, Arora, Bassily and
Guzman (2024):

=========== ====================================================================================
n, d        records, parameters
L0, L1      Lipschitz constant and smoothness of one record's loss
F0          public bound on the initial excess risk, at most (gamma L0)^kappa
z, rho      multiplier of the one Gaussian release that spends the budget, and its zCDP parameter
D0          how far one record moves the mean gradient: L0 / n, or 2 L0 / n when it is replaced
X           sqrt(d) / (n sqrt(rho)), the rate variable
=========== ====================================================================================

>>> from dpcal.calibrate import Constants
>>> given = Given.of(Constants(lipschitz=1.0, smoothness=2.0, gap=0.5), n=10_000, dimension=100,
...                  epsilon=1.0, delta=1e-6)
>>> problem = Problem.of(given, gamma=1.0, kappa=2.0)
>>> print(f"z = {problem.z:.4f}, rho = {problem.rho:.5f}, X = {problem.rate:.5f}")
z = 4.2247, rho = 0.02801, X = 0.00597
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from scipy.special import gammainccinv

from dpcal._internal import validate
from dpcal.calibrate.plan import Parameter, Parameters
from dpcal.calibrate.plans.common import Given, promise

# Most plain steps in a comparison, each a pass over the records.
MOST_PLAIN = 400


@dataclass(frozen=True, kw_only=True)
class Problem(Given):
    """A KL problem with its privacy target, every number checked; letters as in the module."""

    L0: float
    L1: float
    F0: float
    gamma: float
    kappa: float
    beta: float

    @classmethod
    def of(  # type: ignore[override]
        cls, given: Given, *, gamma: float | None = None, kappa: float = 2.0, beta: float = 0.05
    ) -> Problem:
        """Return the problem of a builder's arguments, with every number checked."""
        kappa, constants = validate.positive(kappa=kappa), given.constants
        if gamma is None:
            if kappa != 2 or not constants.strong_convexity > 0:
                raise ValueError(
                    "gamma must be given, unless kappa = 2 and constants.strong_convexity > 0, got "
                    f"gamma=None with {kappa=!r} and "
                    f"strong_convexity={constants.strong_convexity!r}."
                )
            gamma = math.sqrt(0.5 / constants.strong_convexity)
        gamma, L0 = validate.positive(gamma=gamma), given.known("lipschitz")
        F0 = (gamma * L0) ** kappa  # what the two conditions imply
        if constants.gap is not None:
            F0 = min(F0, validate.positive(gap=constants.gap))
        return cls(
            **vars(given),
            L0=L0,
            L1=constants.smoothness,
            F0=F0,
            gamma=gamma,
            kappa=kappa,
            beta=validate.probability(beta=beta),
        )

    @property
    def moved(self) -> int:
        """Number of clipping norms that one record moves a sum by: 2 when it is replaced."""
        return 2 if self.target.relation == "replace-one" else 1

    @property
    def rho(self) -> float:
        """The zCDP parameter of the whole budget."""
        return (self.moved / self.z) ** 2 / 2

    @property
    def sensitivity(self) -> float:
        """D0, the distance by which one record moves the mean gradient."""
        return self.moved * self.L0 / self.n

    @property
    def rate(self) -> float:
        """X, the rate variable."""
        return math.sqrt(self.d / self.rho) / self.n

    @property
    def told(self) -> Parameters:
        """The facts of the problem that a run needs, as parameters of a plan."""
        return {"gap": self.F0, "gamma": self.gamma, "kappa": self.kappa, "lipschitz": self.L0}

    def descended(self) -> float:
        """Return a bound on the mean excess risk of noisy gradient descent at its best length.

        The loss is smooth and kappa at most 2. A step of 1 / L1 with noise of variance s^2 on each
        of d coordinates changes a mean excess risk of Phi by at most ``d s^2 / (2 L1) - Phi^(2 /
        kappa) / (2 L1 gamma^2)``, by Jensen's inequality. The rest is concave in Phi: beyond its
        peak a smaller Phi may leave more.
        """
        power, fall = 2 / self.kappa, 1 / (2 * self.L1 * self.gamma**2)
        peak = math.inf if fall <= 1 else 0.0
        if power > 1:
            peak = (1 / (power * fall)) ** (1 / (power - 1))

        def reached(steps: int) -> float:
            noise, level = steps * self.d * self.sensitivity**2 / (2 * self.rho), self.F0
            for _ in range(steps):
                most = min(level, peak)
                level = most - fall * most**power + noise / (2 * self.L1)
            return level

        return min(reached(2**count) for count in range(MOST_PLAIN.bit_length()))

    def promise(self, name: str, accuracy: Callable[[Problem], float]) -> Parameters:
        """Record the excess risk that a theorem promises, and warn where it is vacuous."""

        def at(size: float) -> float:
            return min(self.F0, accuracy(dataclasses.replace(self, n=max(1, int(size)))))

        trivial = ("initial excess risk", self.F0)
        return promise(name, at(self.n), trivial, at, self.n, kind="guarantee")


def smooth(given: Given, name: str, *, kappa: float, l2: float = 0.0, **known: Any) -> Problem:
    """Return the problem of a smooth loss, every number checked; its L1 holds the regulariser too.

    ``name`` is the optimizer, and ``known`` holds other arguments of :meth:`Problem.of`.
    """
    if not 1 <= validate.positive(kappa=kappa) <= 2:
        raise ValueError(f"kappa must be in [1, 2] for {name}, got {kappa!r}.")
    problem = Problem.of(given, kappa=kappa, **known)
    L1 = given.known("smoothness") + validate.non_negative(l2=l2)
    return dataclasses.replace(problem, L1=L1)


def multiplier(z: float, share: float) -> float:
    """Return the multiplier that spends a share of the budget, up by more than sums can round."""
    return z / math.sqrt(share) * (1 + 1e-11)


def chi_quantile(d: int, tail: float) -> float:
    """Return the number that the norm of d standard normals exceeds with probability ``tail``."""
    return math.sqrt(2 * float(gammainccinv(d / 2, tail)))


def number(parameters: Mapping[str, Parameter], name: str) -> float:
    """Return a parameter of a plan that must be a number."""
    value = parameters.get(name)
    if not isinstance(value, int | float):
        raise ValueError(f"plan.parameters[{name!r}] must be a number, got {value!r}.")
    return float(value)


def numbers(parameters: Mapping[str, Parameter], names: str) -> list[float]:
    """Return parameters of a plan that must be numbers."""
    return [number(parameters, name) for name in names.split()]
