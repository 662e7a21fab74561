r"""From a target to recursive regularization: how many rounds, how strong, how many inner steps?

For convex losses, rounds with ever stronger regularisers around the centers found so far bring the
gradient of population risk down to the level of the best minimiser of risk. Each round has a block
of records of its own, so that each may spend the whole budget:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0)
>>> plan = recursive_regularization(constants, n=10_000, dimension=5, epsilon=1.0, delta=1e-6,
...                                 distance=3.0, neighboring_relation="replace-special")
>>> plan.parameters["rounds"], plan.query("round 1").batch_size
(9, 1111)
>>> 0.999 < plan.price() <= 1.0
True

Round t minimises f + (1/2) sum_{k<t} lam_k ||w - c_k||^2, lam_k = 2^k lam, which is mu_t-strongly
convex with mu_t = (2^t - 1) lam, and c_0 = 0. If its minimiser is within e_t of the result,

    ||grad F(c_T)|| <= lam W + 2 sum_t lam_t e_t      where W bounds the norm of a minimiser of F.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpcal._internal import validate
from dpcal.calibrate.plan import Parameters, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.query import Query

SUBSOLVERS = ("noisy_gd", "phased_sgd")


@common.builder("replace-one")
def recursive_regularization(
    given: Given,
    *,
    distance: float | None = None,
    subsolver: str = "noisy_gd",
    max_norm: float | None = None,
) -> Plan:
    """Return the plan of recursive regularization that meets (epsilon, delta).

    lam is where its bias equals half the error of one round, and inner steps are as many as bring a
    round's initial error below its noise.

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``smoothness`` L1 and ``lipschitz`` L0 of a convex loss.
    distance
        Public bound W > 0 on the norm of a minimiser of population risk; ``sqrt(d)`` when omitted,
        one unit per parameter, which suits features of unit scale.
    subsolver
        ``"noisy_gd"``: projected gradient descent on the whole block, with a weighted mean of
        iterates. ``"phased_sgd"``: one pass over the block by stochastic gradient descent, in
        phases of half the records and a quarter of the step size each, which release their mean
        iterates (Feldman, Koren and Talwar 2020, without the restarts of their strongly convex
        version). Its epsilon rests on a theorem about linear models with convex losses; the
        optimizer refuses others.

    Returns
    -------
    Plan
        A query ``"round t"`` per round, with K_t answers about one block; or, for ``"phased_sgd"``,
        ``"round t phase i"``. ``parameters`` holds ``rounds``, ``regularization`` lam and, by
        round, ``learning_rate t`` and ``radius t``.

    Warns
    -----
    VacuousSchedule
        For ``"noisy_gd"``: DP-SGD ended lower.

    References
    ----------
    Arora, Bassily, Gonzalez, Guzman, Menart and Ullah 2022, Algorithm 3 and Theorem 5 (corrected:
    see the errata); Foster, Sekhari, Shamir, Srebro, Sridharan and Woodworth 2019 (the rounds).
    """
    validate.choice(SUBSOLVERS, subsolver=subsolver)
    problem = problem_of(given, distance, max_norm)
    lam = problem.noise_level(given.n) / (2 * problem.W)
    rounds = problem.rounds(lam, subsolver)
    if subsolver == "noisy_gd":
        common.warn_convex("recursive_regularization")
    return planned(problem, subsolver, lam, rounds, {"preset": "practical"})


def problem_of(given: Given, distance: float | None, max_norm: float | None = None) -> _Problem:
    """Return the checked constants of a problem with disjoint blocks."""
    common.replaced_in_place(given.target.relation)
    return _Problem(
        **vars(given),
        C=given.known("lipschitz", "max_norm", max_norm),
        L1=given.known("smoothness", "smoothness"),
        W=common.positive_or(math.sqrt(given.d), distance=distance),
    )


def planned(
    problem: _Problem, solver: str, lam: float, rounds: list[Round], parameters: Parameters
) -> Plan:
    """Return the plan of rounds that are settled, with the facts about its accuracy."""
    parameters |= {"subsolver": solver, "rounds": len(rounds)}
    parameters["regularization"] = min(lam, problem.L1 / 2)
    for t, chosen in enumerate(rounds, start=1):
        parameters |= {f"learning_rate {t}": chosen.learning_rate, f"radius {t}": chosen.radius}
    return problem.plan("recursive_regularization", problem.queries(rounds, solver), parameters)


@dataclass(frozen=True, kw_only=True)
class Round:
    """Inner steps K, step size, and radius of the ball, of one round."""

    steps: int
    learning_rate: float
    radius: float


@dataclass(frozen=True, kw_only=True)
class _Problem(Given):
    """Checked constants and target."""

    C: float
    L1: float
    W: float

    def noise_level(self, m: int) -> float:
        """Error of a mean gradient over m records: sampling, and one release's noise."""
        return self.C * (1 / math.sqrt(m) + self.z * math.sqrt(self.d) / m)

    def rounds(self, lam: float, solver: str) -> list[Round]:
        """Return the rounds for a strength lam, capped so that there is one at least."""
        lam = min(lam, self.L1 / 2)
        T = max(1, math.floor(math.log2(self.L1 / lam)))
        if self.n < 2 * T:
            raise ValueError(f"n must be at least {2 * T} for {T} rounds, got n={self.n}.")
        inner = self.inner if solver == "noisy_gd" else self.one_pass
        return [inner(t, (2**t - 1) * lam, self.n // T) for t in range(1, T + 1)]

    def inner(self, t: int, mu: float, m: int) -> Round:
        """Noisy descent with an initial error that falls below its noise.

        With Q = (1 - eta mu)^-K, the weighted mean's excess risk is at most mu D^2 / (Q - 1) from
        distance D, plus eta times the variance of the noise, where eta <= 1 / (2 (L1 + mu)).
        """
        radius = math.sqrt(t) * self.W
        Q = max(math.e, 1 + (mu * radius / self.noise_level(m)) ** 2)
        steps = math.ceil(2 * (self.L1 + mu) / mu * math.log(Q))
        return Round(steps=steps, learning_rate=math.log(Q) / (mu * steps), radius=radius)

    def one_pass(self, t: int, mu: float, m: int) -> Round:
        """Phased descent: the first step size, four times the first phase's.

        The distance to a round's minimiser is W at first, and then follows by strong convexity from
        the excess risk that one phase leaves.
        """
        before = mu * (2 ** (t - 1) - 1) / (2**t - 1)
        distance = min(self.W, 2 * self.noise_level(m) / before) if t > 1 else self.W
        best = distance / self.C * min(4 / math.sqrt(m), 1 / (self.z * math.sqrt(self.d)))
        rate = min(best, 4 / (self.L1 + mu))
        return Round(steps=1, learning_rate=rate, radius=math.sqrt(t) * self.W)

    def queries(self, rounds: list[Round], solver: str) -> tuple[Query, ...]:
        """Return a query a round, about its block, or one a phase, about records of its own."""
        m, made = self.n // len(rounds), []
        for t, chosen in enumerate(rounds, start=1):
            name, K = f"round {t}", chosen.steps
            if solver == "noisy_gd":
                # K answers with multiplier z sqrt(K) are as private as one with z.
                block = common.disjoint(m, "blocks") | {"answers_per_part": K}
                z = common.repeated(self.z, K)
                made.append(common.gradients(self.C, z, K, name=name, **block))
                continue
            for i in range(1, m.bit_length()):
                part = common.disjoint(m >> i, "blocks") | {"kind": "one pass"}
                C = self.C * chosen.learning_rate / 4**i
                made.append(common.gradients(C, self.z, 1, name=f"{name} phase {i}", **part))
        return tuple(made)
