"""Small runs of every optimizer: its plan, its problem on a table, and what contracts watch."""

import dataclasses
import functools
import sys
import threading
import tomllib
from collections import Counter

import numpy as np
from _built_plans import _read
from _tree import DATA

from dpcal import calibrate, optim
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


class Run:
    """A small run: an optimizer's plan, made once, its problem, and how it is run."""

    def __init__(self, name, run=None, **options):
        self.name, self.options, self.chosen = name, _read(options), run or {}

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


TABLE = tomllib.loads((DATA / "small_runs.toml").read_text(encoding="utf-8"))
SMALL = {name: [Run(name, **row) for row in TABLE[name]] for name in OPTIMIZERS}


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


def together(count, work):
    """Run a function in threads that begin together and switch often, and wait for all."""
    gate, interval = threading.Barrier(count), sys.getswitchinterval()

    def begin():
        gate.wait()
        work()

    threads = [threading.Thread(target=begin) for _ in range(count)]
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(interval)
