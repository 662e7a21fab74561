r"""From a target to tree Spider: how deep a tree, how large batches, how long steps?

Every record is used once, in the batch of one node, so the whole run costs one Gaussian release and
descends on population risk:

>>> from dpcal.calibrate import Constants
>>> constants = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
>>> plan = tree_spider(constants, n=10**6, dimension=10, epsilon=1.0, delta=1e-6,
...                    failure_probability=0.05, neighboring_relation="replace-special")
>>> print(f"gradient norm {plan.parameters['accuracy']:.3f}, with probability 0.95")
gradient norm 0.357, with probability 0.95
>>> 0.999 < plan.price() <= 1.0
True

A round has a root with a batch of b records and a binary tree of depth D below it; its right
children at depth j query differences on b / 2^j records each. It makes 2^D steps, of length s =
beta / (2^(D/2) L1), along estimates that hold at most D + 1 noises. Let v bound the error of every
estimate. Steps are taken while estimates are longer than 2 v, so each lowers F by at least

    s (||V|| - v) - L1 s^2 / 2  >=  s v / 2    where beta <= 2^(D/2) v,

and after N = T 2^D > 2 F0 / (s v) of them F would be below its infimum: some estimate is not longer
than 2 v, and the gradient there not longer than 3 v.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammainccinv

from dpcal._internal import validate
from dpcal._internal.roots import Stop, bracket, brent
from dpcal.calibrate.plan import Parameters, Plan
from dpcal.calibrate.plans import common
from dpcal.calibrate.plans.common import Given
from dpcal.errors import warn_caller

# The smallest error of a tree is found to these digits, and rounded up by 1e-9.
_STOP = Stop(absolute=2e-12, relative=2.0**-50, evaluations=100)


@common.builder("replace-one")
def tree_spider(
    given: Given, *, failure_probability: float | None = None, max_norm: float | None = None
) -> Plan:
    """Return the plan of tree-based Private Spider that meets (epsilon, delta).

    Shared parameters are documented in :mod:`dpcal.calibrate.plans`.

    Parameters
    ----------
    constants
        ``smoothness`` L1, ``lipschitz`` L0 (unless ``max_norm`` is given) and ``gap`` F0, of the
        population risk.
    failure_probability
        In (0, 1): v bounds all errors at once but with this probability, and ``parameters`` holds 3
        v as ``accuracy``. When omitted, v is the root of the mean square error of one estimate,
        which makes steps several times as long and proves nothing.

    Returns
    -------
    Plan
        Queries ``"root"`` and ``"depth 1"``, ..., ``"depth D"``, about parts of one partition.
        ``parameters`` holds ``rounds``, ``depth``, ``batch_size`` b, ``step_length`` s and
        ``threshold``, the norm of estimates below which steps are in proportion to them.

    Warns
    -----
    VacuousSchedule
        If the bound on noisy gradient descent is below the errors of the estimates, where no
        ``failure_probability`` is given.

    References
    ----------
    Arora, Bassily, Gonzalez, Guzman, Menart and Ullah 2022, Algorithm 2 and Theorem 4 (corrected:
    see the errata).
    """
    p = failure_probability
    problem = problem_of(given, p, max_norm)
    parameters: Parameters = {"preset": "practical"}
    tree = problem.best()
    if p is None and (plain := problem.descended()) < tree.error:
        warn_caller(
            f"tree_spider reads each record once, and its gradients err by {tree.error:.2g}; the "
            "gradient of the training loss is on average at most "
            f"{plain:.2g} along noisy_gd's steps for the same budget."
        )
    if p is not None and given.constants.lipschitz <= problem.L0:
        parameters |= {"accuracy": 3 * tree.error, "accuracy_kind": "guarantee"}
    return planned(problem, tree, parameters)


def problem_of(given: Given, p: float | None, max_norm: float | None = None) -> _Problem:
    """Return the checked constants of a problem; p is the failure probability."""
    common.replaced_in_place(given.target.relation)
    return _Problem(
        **vars(given),
        L0=given.known("lipschitz", "max_norm", max_norm),
        L1=given.known("smoothness", "smoothness"),
        F0=given.known("gap", "gap"),
        p=None if p is None else validate.probability(failure_probability=p),
    )


def planned(problem: _Problem, tree: Tree, parameters: Parameters) -> Plan:
    """Return the plan of a tree, with the facts about its accuracy."""
    parameters |= {
        "rounds": tree.rounds,
        "depth": tree.depth,
        "batch_size": tree.batch,
        "step_length": tree.beta / (2 ** (tree.depth / 2) * problem.L1),
        "threshold": 2 * tree.error,
    }
    whole = common.disjoint(tree.batch, "tree")
    root = common.gradients(problem.L0, problem.z, tree.rounds, name="root", **whole)
    queries = [root]
    for j in range(1, tree.depth + 1):
        own = {"batch_size": tree.batch // 2**j, "count": tree.rounds * 2 ** (j - 1)}
        queries.append(common.differences(root, problem.L1, name=f"depth {j}", **own))
    return problem.plan("tree_spider", tuple(queries), parameters)


@dataclass(frozen=True)
class Tree:
    """One shape of tree, the length of its steps (as beta) and the error v of its estimates."""

    depth: int
    batch: int
    rounds: int
    beta: float
    error: float


@dataclass(frozen=True, kw_only=True)
class _Problem(Given):
    """Checked constants and target."""

    L0: float
    L1: float
    F0: float
    p: float | None

    def descended(self) -> float:
        """Return the bound on noisy gradient descent's mean gradient, at its best length."""
        noise = self.z * self.L0 / self.n
        return math.sqrt(2 * noise * math.sqrt(2 * self.L1 * self.F0 * self.d))

    def error(self, depth: int, batch: int, rounds: int, beta: float) -> float:
        """v: noises of D + 1 answers, and the sampling errors of their batches."""
        node = beta * 2 ** (depth / 2)
        noise = (self.z / batch) ** 2 * (self.L0**2 + depth * node**2)
        spread = (self.L0**2 + node**2) / batch
        if self.p is None:
            return math.sqrt(self.d * noise + spread)
        leaves = rounds * 2**depth
        # A chi-square tail for the noise; a vector Azuma inequality for the batches.
        quantile = 2 * float(gammainccinv(self.d / 2, self.p / (2 * leaves)))
        return math.sqrt(noise * quantile) + math.sqrt(16 * spread * math.log(8 * leaves / self.p))

    def tree(self, depth: int, batch: int) -> Tree:
        """The tree of this shape with the smallest error; its records are enough for a round."""
        rounds = 2 * self.n // (batch * (depth + 2))  # each takes b (D / 2 + 1) records
        enough = (1 + 1e-9) * 2 * self.L1 * self.F0 / (rounds * 2 ** (depth / 2))

        def excess(v: float) -> float:
            return self.error(depth, batch, rounds, enough / v) - v

        v = low = math.sqrt(enough / 2 ** (depth / 2))  # below it, steps are too long
        if excess(low) > 0:
            high = bracket(lambda v: excess(v) <= 0, miss=low, start=2 * low).meet
            v = brent(excess, low, high, _STOP).root * (1 + 1e-9)
        return Tree(depth, batch, rounds, beta=enough / v, error=v)

    def best(self) -> Tree:
        """The tree with the smallest error over depths and batch sizes."""
        found: list[Tree] = []
        for depth in range(1, 40):
            unit, most = 2**depth, 2 * self.n // (depth + 2)
            if most < unit:
                break
            sizes = {
                unit * max(1, round(most / unit * 2 ** (-step / 4)))
                for step in range(4 * math.ceil(math.log2(most / unit)) + 1)
            }
            found += [self.tree(depth, batch) for batch in sorted(sizes) if batch <= most]
        if not found:
            raise ValueError(f"n must be at least 3 for one round of a tree, got n={self.n}.")
        return min(found, key=lambda tree: tree.error)
