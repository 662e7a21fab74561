"""Small runs of every optimizer: its plan, its problem on a table, and what the contract watches.

A row of ``RUNS`` has the arguments of a builder beside the constants and the target, and those of
the optimizer.
"""

import dataclasses
import functools
from collections import Counter

import numpy as np

from dpcal import calibrate, optim
from dpcal.accountants.matrix import Banded, LambdaCGD
from dpcal.optim.attacks.recording import Recorder, Tape
from dpcal.optim.minimax import AUCMaximization
from dpcal.optim.registry import OPTIMIZERS

N, D = 300, 3
RNG = np.random.default_rng(0)
X = RNG.standard_normal((N, D))
X /= np.linalg.norm(X, axis=1, keepdims=True)
Y = (X[:, 0] > 0).astype(int)
CONSTANTS = calibrate.Constants(
    lipschitz=1.0, smoothness=0.25, gap=0.7, hessian_lipschitz=0.1, strong_concavity=0.25
)
TARGET = {"n": N, "epsilon": 4.0, "delta": 1e-3}
PROBLEM = {"dimension": D}
POISSON = {"neighboring_relation": "add-or-remove-one"}
REPLACED = {"neighboring_relation": "replace-one"}
SPECIAL = {"neighboring_relation": "replace-special"}
BLOCKS = {"dimensions": (D + 2, 1), **POISSON}
KL = {**PROBLEM, "gamma": 2.0}
PARTS = {**PROBLEM, **REPLACED, "distance": 3.0}
MATRIX = {**PROBLEM, "embedding_dimension": 2}
WALK = {**PROBLEM, "batch_size": 60, "difference_batch_size": 20}
RUNS = {
    "dpsgd": [
        ({"batch_size": 60, "steps": 40}, {"output": "uniform"}),
        ({"batch_size": 60, "steps": 40, **REPLACED}, {"output": "tail"}),
        ({"batch_size": 60, "epochs": 8, "sampler": "random-allocation"}, {}),
        ({"batch_size": 100, "epochs": 3, "sampler": "shuffled-epochs", **SPECIAL}, {}),
    ],
    "noisy_gd": [
        ({**PROBLEM, "steps": 20}, {"output": "random"}),
        ({**PROBLEM, "steps": 20, **REPLACED}, {"output": "linear"}),
    ],
    "spiderboost": [
        ({**PROBLEM, "steps": 20, "batch_size": 100}, {}),
        ({**PROBLEM, **REPLACED, "steps": 20, "batch_size": 100}, {"output": "smallest-norm"}),
    ],
    "tree_spider": [({**PROBLEM, **REPLACED}, {})],
    "recursive_regularization": [(PARTS, {}), ({**PARTS, "subsolver": "phased_sgd"}, {})],
    "gauss_psgd": [(WALK, {}), ({**WALK, "drift": 0.0, "period": 3, "passes": 2}, {})],
    "distributed_psgd": [(WALK, {})],
    "jl_glm": [({**MATRIX, "inner": "noisy_gd", "steps": 10}, {})],
    "kl_spider": [(KL, {})],
    "adaptive_gd": [({**KL, "steps": 10}, {"output": "smallest-norm"})],
    "proximal_point": [({**KL, "kappa": 3.0, "inner_steps": 8}, {})],
    # Both rules of clipping, blocks that are clipped alone or together, samples and all records.
    "dp_rgda": [
        ({**BLOCKS, "steps": 12, "period": 4, "batch_size": N}, {"initial_dual": [0.5]}),
        ({**BLOCKS, "steps": 12, "period": 4, "batch_size": 60, "difference_norm": 0.3}, {}),
        ({**BLOCKS, "steps": 30, "period": 5, "accuracy": 9.0, "escape_steps": 3}, {}),
        ({**BLOCKS, "steps": 9, "period": 3, "algorithm": "literal", "inner_steps": 1}, {}),
    ],
    "dp_sgda": [({**BLOCKS, "steps": 20, "batch_size": 60}, {"output": "tail"})],
    "privatediff": [({**BLOCKS, "steps": 8}, {})],
    "sto_spider": [({**PROBLEM, **POISSON, "steps": 20}, {})],
    "ada_dp_spider": [({**PROBLEM, **POISSON, "steps": 60, "drift": 1e-3}, {})],
    "correlated_dpsgd": [
        ({"strategy": LambdaCGD(20, 0.5), "batch_size": N, "sampler": "full"}, {}),
        (
            {
                "strategy": Banded(20, 2, [1.0, 0.4]),
                "batch_size": 60,
                "sampler": "cyclic-poisson",
                "statistics": False,
            },
            {},
        ),
    ],
}


class Run:
    """A small run: an optimizer's plan, made once, its problem, and how it is run."""

    def __init__(self, name, options, chosen):
        self.name, self.options, self.chosen = name, options, chosen

    @functools.cached_property
    def plan(self):
        """The plan of the optimizer's own builder."""
        options = dict(self.options)
        first = [CONSTANTS] if OPTIMIZERS[self.name].constants else []
        if "strategy" in options:
            first = [options.pop("strategy")]
        plan = getattr(calibrate, self.name)(*first, **TARGET, **options)
        # The tree goes on until its pass is over: no estimate is small enough to stop it.
        return dataclasses.replace(plan, parameters={**plan.parameters, "threshold": 1e-300})

    @property
    def full(self):
        """Whether the first answer is about all records."""
        return self.plan.queries[0].sampler == "full"

    def objective(self, table=(X, Y)):
        """Return a problem that the optimizer is for, on a table."""
        if OPTIMIZERS[self.name].blocks:
            return AUCMaximization(*table, positive_share=0.4, classes=(0, 1))
        return optim.Logistic(*table, fit_intercept=False, classes=[0, 1])

    def __call__(self, records=None, **given):
        """Spend the plan, once more where it was spent; a seed by default."""
        records = self.objective() if records is None else records
        if isinstance(records, optim.Objective):
            given = {"seed": 5, **given}
        return getattr(optim, self.name)(records, self.plan, **self.chosen, **given)

    def __repr__(self):
        return f"{self.name} {self.options} {self.chosen}"


SMALL = {name: [Run(name, *each) for each in RUNS[name]] for name in OPTIMIZERS}


def answered(ledger):
    """Return how many answers a ledger holds, by the name of their query."""
    found = Counter()
    for entry in ledger.entries:
        found[entry.name] += entry.count
    return found


class Striking(Recorder):
    """Interrupts a run at an answer: records were read for it, and it is not released."""

    def __init__(self, at):
        super().__init__(Tape(salt=b""))
        self.at, self.asked = at, []

    def take(self, due, query, release, **about):
        """Release an answer, or raise what Ctrl-C raises."""
        self.asked.append(query.name)
        if len(self.asked) == self.at:
            raise KeyboardInterrupt
        return super().take(due, query, release, **about)
