"""Every public callable with a call of it that passes: what contracts of arguments change."""

import copy
import dataclasses
import functools
import importlib
import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from types import GenericAlias

import attr
import numpy as np
from _built_plans import BUILT, CONSTANTS, built, logistic, target
from _modules import packages
from _tree import DATA
from contracts._events import EXAMPLES, answered, verdict
from saddles import ToySaddle

import dpcal
from dpcal import accountants, calibrate, estimators, events, optim
from dpcal.accountants import correlated, matrix
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.mechanisms.row import rows as mechanisms
from dpcal.optim import attacks
from dpcal.optim.registry import OPTIMIZERS

TABLES = tomllib.loads((DATA / "good_calls.toml").read_text(encoding="utf-8"))
# What is not called, and why is said in the file.
APART = {name for names in TABLES["apart"].values() for name in names.split()}


def public():
    """Return every public function and class by its shortest name, such as ``optim.run``."""
    kept = [
        name
        for name in packages()
        if not name.startswith(tuple(TABLES["inner"])) and name != "dpcal.adapters"
    ]
    found = {}
    for home in sorted([*kept, *TABLES["modules"]], key=lambda name: (name.count("."), name)):
        module = importlib.import_module(home)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isroutine(value) or (
                inspect.isclass(value) and type(value) is not GenericAlias
            ):
                found.setdefault(value, f"{home}.{name}".removeprefix("dpcal."))
    for event in mechanisms():
        found.setdefault(event, f"accountants.events.{event.__name__}")
    return {name: value for value, name in found.items()}


@functools.cache
def plan():
    return calibrate.dpsgd(**target(200), batch_size=20, steps=4)


@functools.cache
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    return X


def linear(X, y):
    return optim.Logistic(X, y, classes=[0, 1], fit_intercept=False)


def labels():
    return (rows()[:, 0] > 0).astype(int)


def objective():
    return logistic(200, 3)


@functools.cache
def fitted():
    model = estimators.LogisticRegression(epsilon=8.0, classes=[0, 1])
    return model.fit(rows(), labels())


def per_step(count):
    return events.SelfComposedDpEvent(events.GaussianDpEvent(8.0), count)


def sampled(probability):
    return events.PoissonSampledDpEvent(probability, events.GaussianDpEvent(2.0))


def fresh(values):
    """Return functions that make the values of a table of the file, each time anew."""
    return {name: functools.partial(copy.deepcopy, value) for name, value in values.items()}


# By the name of an argument: what makes a good value of it, for nearly every callable.
GOOD = {
    **fresh(TABLES["arguments"]),
    "C": lambda: np.eye(4),
    "X": rows,
    "constants": lambda: CONSTANTS,
    "event": lambda: events.GaussianDpEvent(2.0),
    "event_of": lambda: events.GaussianDpEvent,
    "event_of_batch_size": lambda: lambda size: sampled(size / 2000),
    "event_of_probability": lambda: sampled,
    "event_of_sigma": lambda: events.GaussianDpEvent,
    "event_of_steps": lambda: per_step,
    "labels": labels,
    "mechanism": lambda: events.GaussianDpEvent(2.0),
    "objective": objective,
    "owners": lambda: np.arange(200) // 2,
    "participation": lambda: matrix.Single(),
    "plan": plan,
    "query": lambda: plan().queries[0],
    "schema": lambda: TABLES["schema"],
    "sampler": lambda: correlated.Poisson(0.1),
    "strategy": lambda: matrix.Banded(20, 2, [1.0, 0.4]),
    "targets": labels,
    "v": lambda: np.ones(3),
    "w": lambda: np.zeros(3),
    "workload": lambda: matrix.Workload(),
    "y": labels,
}
SCORES = [f"estimators.noisy_{score}" for score in ("accuracy", "roc_auc", "r2")]
FLAGS = np.arange(100) % 2 == 0


@functools.cache
def built_for(name):
    return built(name, BUILT[name][0], OPTIMIZERS[name].relations[0])


def run_of(name):
    """Return the arguments of an optimizer's run."""
    plan, objective = built_for(name)
    return {"objective": objective, "plan": plan, "seed": 1}


def saddle():
    return {"constants": ToySaddle(n=2000, seed=7).constants}


def selection_of():
    plan = calibrate.select_point(
        CONSTANTS, **target(2000), dimension=3, candidates=2, accuracy=0.5
    )
    return {"plan": plan, "holdout": logistic(2000, 3), "candidates": [np.zeros(3), np.ones(3)]}


class OwnSampler(correlated.Poisson):
    """A sampler of another package."""

    name = "own"


def small():
    """Return a plan that a small budget pays for."""
    return calibrate.dpsgd(**target(200, epsilon=0.5), batch_size=20, steps=4)


@functools.cache
def ledger():
    return optim.run(objective(), plan(), seed=1).ledger


def arguments(event):
    """Return the arguments without a default of an event."""
    needed = [each.name for each in attr.fields(type(event)) if each.default is attr.NOTHING]
    return {name: getattr(event, name) for name in needed}


# Callables that take more, or other, arguments than these names say.
CALLS = {
    **fresh(TABLES["calls"]),
    **{
        f"accountants.events.{type(event).__name__}": functools.partial(arguments, event)
        for event in EXAMPLES
    },
    "FromGradients": lambda: {"gradients": lambda w, rows: np.ones((len(rows), 3))},
    "optim.Minimax": lambda: {"gradients": lambda w, rows: np.ones((len(rows), 4))},
    "optim.minimax.CovariateShift": lambda: {"tilts": rows()},
    "optim.minimax.FairClassification": lambda: {
        "groups": labels(),
        "shares": [0.5, 0.5],
        "classes": (0, 1),
    },
    "optim.Run": lambda: {"oracle": optim.PrivateOracle(objective(), plan()), "steps": 4},
    "Plan": lambda: {"optimizer": "dpsgd", "queries": plan().queries, "n": 200},
    "train": lambda: {
        "table": {"a": np.linspace(-1, 1, 200), "sick": ["no", "yes"] * 100},
        "target": "sick",
    },
    "accountants.events.CorrelatedGaussianDpEvent": lambda: {
        "strategy": matrix.LambdaCGD(4, 0.5),
        "draws": 2000,
        "seed": 0,
    },
    "calibrate.correlated_dpsgd": lambda: {"statistics": False, "strategy": matrix.Identity(4)},
    **dict.fromkeys(("calibrate.dp_rgda", "calibrate.dp_sgda", "calibrate.privatediff"), saddle),
    "calibrate.compare_samplers": lambda: {
        "run": calibrate.SampledRun(n=200, batch_size=20, steps=4),
        "epsilon": 2.0,
        "samplers": ["poisson"],
    },
    "calibrate.theory": lambda: {"name": "moments", "q": 0.05, "T": 20},
    "calibrate.noise_multiplier_for_risk": lambda: {"risk": accountants.advantage, "at_most": 0.5},
    "calibrate.releases": lambda: {"asked": [calibrate.Release("mean")]},
    "optim.attacks.Canaries": lambda: {"included": FLAGS},
    "optim.attacks.many_runs": lambda: {"present": np.arange(20.0), "absent": np.arange(20.0) - 9},
    "optim.attacks.one_run": lambda: {"included": FLAGS, "scores": np.arange(100.0)},
    "optim.attacks.replay": lambda: {
        "run": lambda held: optim.dpsgd(held, plan(), seed=1),
        "data": objective(),
        "neighbour": attacks.without(objective(), 0),
    },
    "optim.attacks.replay_table": lambda: {
        "run": lambda held: optim.dpsgd(linear(*held), plan(), seed=1),
        "y": labels(),
        "trials": 1,
    },
    "estimators.PrivateSearch": lambda: {
        "estimator": estimators.LogisticRegression(classes=[0, 1]),
        "param_grid": {"l2": [0.0, 0.1]},
        "epsilon": 4.0,
        "trials": 2,
    },
    **dict.fromkeys(SCORES, lambda: {"estimator": fitted()}),
    **{f"optim.{name}": functools.partial(run_of, name) for name in OPTIMIZERS},
    "optim.select_point": selection_of,
    "optim.fit_linear": lambda: {"loss": "squared", "row_norm": 2.0, "epsilon": 2.0, "delta": 1e-5},
    "report.composed_epsilon": lambda: {"runs": [ledger()]},
    "Ledger.within": lambda: {"plan": dataclasses.replace(plan(), n=2000)},
    **dict.fromkeys(("BudgetBook.check", "BudgetBook.oracle"), lambda: {"plan": small()}),
    "accountants.PrivacyFilter.spend": lambda: {"event": events.GaussianDpEvent(9.0), "count": 1},
    "calibrate.register_sampler": lambda: {"sampler": OwnSampler},
}


@dataclass(frozen=True)
class Call:
    """A call that passes: its function, its signature, and what makes its good arguments."""

    function: Callable
    signature: inspect.Signature
    name: str

    def given(self):
        """Return good arguments, made afresh."""
        more = CALLS.get(self.name, dict)()
        # A plan builder takes epsilon, or noise in its place; training a target, or a plan.
        takes = self.signature.parameters
        if takes.keys() & {"noise_multiplier", "use_plan"} and takes.keys() >= {"epsilon", "delta"}:
            more = {name: GOOD[name]() for name in ("epsilon", "delta")} | more
        needed = [
            each.name
            for each in self.signature.parameters.values()
            if each.default is each.empty
            and each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
            and each.name not in more
        ]
        lacking = [each for each in needed if each not in GOOD]
        if lacking:
            raise LookupError(f"no good value of {', '.join(lacking)} for {self.name}")
        return {**{each: GOOD[each]() for each in needed}, **more}

    def __call__(self, **changed):
        return self.function(**{**self.given(), **changed})


def priced(cls, **given):
    """Return the price of an event, which checks what events hold."""
    place = [type(example) for example in EXAMPLES].index(cls)
    relation = next(each for each in RELATIONS if verdict(answered(place, each)) != "refused")
    return dpcal.epsilon(cls(**given), delta=1e-5, neighboring_relation=relation)


def listed(function, **given):
    """Return all that a generator yields."""
    return list(function(**given))


def fit(cls, **given):
    """Return a fitted estimator: its fit checks what scikit-learn's constructors hold."""
    return cls(**given).fit(rows(), labels())


def asked(call, method, **given):
    """Return the answer of a method of an object that a call makes."""
    return getattr(call(), method)(**given)


@functools.cache
def calls():
    """Return a call of every public function, class and method, by its name."""
    found = {}
    for name, value in public().items():
        if isinstance(value, type) and issubclass(value, Exception):
            continue
        signature = inspect.signature(value)
        function = value
        if isinstance(value, type) and issubclass(value, events.DpEvent):
            function = functools.partial(priced, value)
        if hasattr(value, "get_params"):
            function = functools.partial(fit, value)
        if inspect.isgeneratorfunction(value):
            function = functools.partial(listed, value)
        call = found[name] = Call(function, signature, name)
        for method in TABLES["methods"].get(name, ()):
            path, held = f"{name}.{method}", inspect.getattr_static(value, method)
            bound = isinstance(held, staticmethod | classmethod)
            of = inspect.signature(getattr(value, method))
            if not bound:
                of = of.replace(parameters=list(of.parameters.values())[1:])
            ask = getattr(value, method) if bound else functools.partial(asked, call, method)
            found[path] = Call(ask, of, path)
    return {name: call for name, call in found.items() if name not in APART}
