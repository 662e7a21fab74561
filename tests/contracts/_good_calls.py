"""Every public callable with a call of it that passes: what contracts of arguments change."""

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import GenericAlias

import numpy as np
from _built_plans import BUILT, CONSTANTS, built, logistic, target
from _tree import ROOT

import dpcal
from dpcal import accountants, calibrate, estimators, events, optim
from dpcal.accountants import correlated, matrix
from dpcal.optim import attacks, minimax
from dpcal.optim.registry import OPTIMIZERS

# Packages whose names are public only to their own room.
INNER = (
    "dpcal.optim.objectives",
    "dpcal.commands",
    "dpcal.calibrate.papers",
    "dpcal.optim.boundary",
    "dpcal.optim.silos",
)
# Public modules that are no packages.
MODULES = (
    "dpcal.accountants.events",
    "dpcal.accountants.curves.conversions",
    "dpcal.adapters.loaders",
    "dpcal.adapters.rounds",
    "dpcal.adapters.stepwise",
)


def public():
    """Return every public function and class by its shortest name, such as ``optim.run``."""
    stubs = (stub.parent.relative_to(ROOT).parts for stub in ROOT.rglob("__init__.pyi"))
    packages = {".".join(("dpcal", *parts)) for parts in stubs if not {"build", ".venv"} & {*parts}}
    kept = [name for name in packages if not name.startswith(INNER) and name != "dpcal.adapters"]
    found = {}
    for home in sorted([*kept, *MODULES], key=lambda name: (name.count("."), name)):
        module = importlib.import_module(home)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isroutine(value) or (
                inspect.isclass(value) and type(value) is not GenericAlias
            ):
                found.setdefault(value, f"{home}.{name}".removeprefix("dpcal."))
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


SCHEMA = {
    "columns": {
        "a": {"type": "number", "range": [-1, 1]},
        "sick": {"type": "category", "categories": ["no", "yes"]},
    },
}

# By the name of an argument: what makes a good value of it, for nearly every callable.
GOOD = {
    "C": lambda: np.eye(4),
    "X": rows,
    "accuracy": lambda: 0.5,
    "bands": lambda: 2,
    "batch_size": lambda: 20,
    "batches": lambda: 10,
    "candidates": lambda: 3,
    "canaries": lambda: 100,
    "constants": lambda: CONSTANTS,
    "count": lambda: 2,
    "decay": lambda: 0.5,
    "delta": lambda: 1e-5,
    "deltas": lambda: [1e-5, 1e-3],
    "dimension": lambda: 3,
    "dimensions": lambda: (2, 2),
    "divergence": lambda: 0.5,
    "draws": lambda: 2000,
    "dual_l2": lambda: 0.1,
    "epochs": lambda: 1,
    "epsilon": lambda: 2.0,
    "epsilons": lambda: [1.0, 2.0],
    "event": lambda: events.GaussianDpEvent(2.0),
    "event_of": lambda: events.GaussianDpEvent,
    "event_of_batch_size": lambda: lambda size: sampled(size / 2000),
    "event_of_probability": lambda: sampled,
    "event_of_sigma": lambda: events.GaussianDpEvent,
    "event_of_steps": lambda: per_step,
    "false_positive_rate": lambda: 0.1,
    "false_positive_rates": lambda: [0.1, 0.5],
    "features": lambda: 3,
    "group_size": lambda: 1,
    "guesses": lambda: 5,
    "labels": labels,
    "learning_rate": lambda: 0.1,
    "max_norm": lambda: 1.0,
    "mechanism": lambda: events.GaussianDpEvent(2.0),
    "monotone": lambda: True,
    "mu": lambda: 0.5,
    "n": lambda: 2000,
    "name": lambda: "released",
    "neighboring_relation": lambda: "add-or-remove-one",
    "noise_multiplier": lambda: 2.0,
    "objective": objective,
    "order": lambda: 2.0,
    "orders": lambda: (2.0, 3.0),
    "other_epsilon": lambda: 3.0,
    "owners": lambda: np.arange(200) // 2,
    "participation": lambda: matrix.Single(),
    "population_size": lambda: 500,
    "sample_size": lambda: 20,
    "participations": lambda: 2,
    "path": lambda: "new.budget",
    "plan": plan,
    "prior": lambda: 0.5,
    "query": lambda: plan().queries[0],
    "radius": lambda: 1.0,
    "rho": lambda: 0.1,
    "row": lambda: 0,
    "sampler": lambda: correlated.Poisson(0.1),
    "sampling_probability": lambda: 0.1,
    "seed": lambda: 1,
    "separation": lambda: 5,
    "smoothness": lambda: 1.0,
    "lipschitz": lambda: 1.0,
    "steps": lambda: 20,
    "strategy": lambda: matrix.Banded(20, 2, [1.0, 0.4]),
    "target_bounds": lambda: (0.0, 1.0),
    "targets": labels,
    "v": lambda: np.ones(3),
    "w": lambda: np.zeros(3),
    "width": lambda: 2,
    "workload": lambda: matrix.Workload(),
    "y": labels,
}
SADDLE = {"constants": minimax.ToySaddle(n=2000, seed=7).constants}
FLAGS = np.arange(100) % 2 == 0

ADD = "add-or-remove-one"
RELATION_OF = {
    events.RandomizedResponseDpEvent: "replace-one",
    events.ShuffledEpochsDpEvent: "replace-special",
    events.SingleEpochTreeAggregationDpEvent: "replace-special",
}

EVENTS = {
    "AboveThresholdDpEvent": {"threshold_noise": 8.0, "query_noise": 16.0},
    "AllocatedDpEvent": {"event": events.LaplaceDpEvent(1.0), "batches": 3},
    "ComposedDpEvent": {"events": [events.LaplaceDpEvent(1.0)]},
    "CorrelatedGaussianDpEvent": {"strategy": matrix.LambdaCGD(4, 0.5), "draws": 2000, "seed": 0},
    "DiscreteGaussianDpEvent": {"sigma": 2.0},
    "DiscreteLaplaceDpEvent": {"noise_parameter": 0.5, "sensitivity": 1},
    "ExchangedRowsDpEvent": {
        "standard_deviation": 1.0,
        "sensitivities": (0.0, 2.0),
        "sampling_probs": (0.9, 0.1),
    },
    "GaussianAboveThresholdDpEvent": {"threshold_noise": 8.0, "query_noise": 16.0, "queries": 20},
    "MixtureOfGaussiansDpEvent": {
        "standard_deviation": 1.0,
        "sensitivities": (0.0, 1.0),
        "sampling_probs": (0.5, 0.5),
    },
    "RandomizedResponseDpEvent": {"noise_parameter": 0.5, "num_buckets": 3},
    "RepeatAndSelectDpEvent": {"mean": 3.0, "shape": 1.0},
    "ReportNoisyMaxDpEvent": {"noise": 8.0},
    "SampledWithReplacementDpEvent": {"source_dataset_size": 10, "sample_size": 2},
    "SampledWithoutReplacementDpEvent": {"source_dataset_size": 10, "sample_size": 2},
    "SingleEpochTreeAggregationDpEvent": {"step_counts": [3, 4]},
    "TruncatedSubsampledGaussianDpEvent": {"dataset_size": 100, "truncated_batch_size": 20},
    "UnequalAllocationDpEvent": {"groups": ((1.0, 3, 0.9), (2.0, 1, 0.1))},
    "ShuffledEpochsDpEvent": {"noise_multiplier": 10.0, "batches": 2},
}


@functools.cache
def built_for(name):
    return built(name, BUILT[name][0], OPTIMIZERS[name].relations[0])


def run_of(name):
    """Return the arguments of an optimizer's run."""
    plan, objective = built_for(name)
    return {"objective": objective, "plan": plan, "seed": 1}


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


# Callables that take more, or other, arguments than these names say.
CALLS = {
    "Logistic": lambda: {"classes": [0, 1]},
    "Softmax": lambda: {"classes": [0, 1]},
    "optim.Sigmoid": lambda: {"classes": [0, 1]},
    "optim.objectives.TwoClass": lambda: {"classes": [0, 1]},
    "optim.MLP": lambda: {"classes": [0, 1]},
    "optim.KAN": lambda: {"classes": [0, 1]},
    "FromGradients": lambda: {"gradients": lambda w, rows: np.ones((len(rows), 3))},
    "optim.Minimax": lambda: {"gradients": lambda w, rows: np.ones((len(rows), 4))},
    "optim.minimax.AUCMaximization": lambda: {"positive_share": 0.5, "classes": (0, 1)},
    "optim.minimax.CovariateShift": lambda: {"tilts": rows()},
    "optim.minimax.FairClassification": lambda: {
        "groups": labels(),
        "shares": [0.5, 0.5],
        "classes": (0, 1),
    },
    "optim.minimax.Box": lambda: {"low": -1.0, "high": 1.0},
    "optim.Users": lambda: {"group_size": 2},
    "optim.Run": lambda: {"oracle": optim.PrivateOracle(objective(), plan()), "steps": 4},
    "BudgetBook": lambda: {"epsilon": 2.0, "delta": 1e-5},
    "Plan": lambda: {"optimizer": "dpsgd", "queries": plan().queries, "n": 200},
    "Query": lambda: {"kind": "gradient", "sampler": "full"},
    "budget": lambda: {"epsilon": 2.0, "delta": 1e-5},
    "certify": lambda: {"delta": 1e-5},
    "attack_risk": lambda: {"false_positive_rate": 0.1},
    "release": lambda: {
        "table": {"a": [0.0, 0.5], "sick": ["no", "yes"]},
        "schema": SCHEMA,
        "statistics": ["mean a"],
    },
    "accountants.SampledGaussian": lambda: {"direction": "remove"},
    "accountants.dominating_draws": lambda: {"size": 20, "batch": 2, "failure": 1e-6},
    "accountants.from_density": lambda: {
        "log_p": lambda x: 0 * x,
        "log_q": lambda x: 0 * x,
        "support": (0.0, 1.0),
    },
    "accountants.from_pmf": lambda: {"with_record": [0.6, 0.4], "without_record": [0.4, 0.6]},
    "accountants.from_profile": lambda: {"epsilons": [0.0, 1.0], "deltas": [0.1, 0.0]},
    "accountants.grid": lambda: {"noise_multiplier": [2.0], "delta": 1e-5},
    "accountants.trade_off_from_deltas": lambda: {"epsilons": [0.0, 1.0], "deltas": [0.1, 0.0]},
    "calibrate.User": lambda: {"rows": 2},
    "calibrate.choose_examples": lambda: {"owners": [["a"], ["b"]], "rows": 1, "ids": [1, 2]},
    "calibrate.compare": lambda: {"accountants": ("renyi",)},
    "calibrate.correlated_dpsgd": lambda: {"statistics": False, "strategy": matrix.Identity(4)},
    "calibrate.correlated.noise_multiplier": lambda: {"statistics": "none"},
    "accountants.correlated.epsilon": lambda: {"statistics": "none"},
    "calibrate.dp_rgda": lambda: SADDLE,
    "calibrate.dp_sgda": lambda: SADDLE,
    "calibrate.privatediff": lambda: SADDLE,
    "calibrate.dpsgd": lambda: {"steps": 20},
    "calibrate.kl_spider": lambda: {"gamma": 2.0},
    "calibrate.proximal_point": lambda: {"gamma": 2.0},
    "calibrate.noise_multiplier_for_risk": lambda: {"risk": accountants.advantage, "at_most": 0.5},
    "calibrate.recommend": lambda: {"loss": "logistic"},
    "calibrate.releases": lambda: {"asked": [calibrate.Release("mean")]},
    "calibrate.silo_plans": lambda: {"epsilon": [2.0, 2.0], "n": 2000, "dimension": 3},
    "accountants.matrix.BIFR": lambda: {"inverse_bands": 2},
    "accountants.matrix.BISR": lambda: {"inverse_bands": 2},
    "accountants.matrix.BLT": lambda: {"decays": (0.5,), "scales": (0.3,)},
    "accountants.matrix.FixedEpochs": lambda: {"epochs": 2, "steps_per_epoch": 10},
    "accountants.correlated.BallsInBins": lambda: {"bins": 5},
    "accountants.correlated.pipeline_delta": lambda: {"base": 1e-6},
    "adapters.rounds.round_event": lambda: {"sampling_method": "no-amplification"},
    "adapters.loaders.drawn_probability": lambda: {"sample_rate": 0.1},
    "optim.attacks.likelihood": lambda: {"samples": 1000},
    "train": lambda: {
        "table": {"a": np.linspace(-1, 1, 200), "sick": ["no", "yes"] * 100},
        "schema": SCHEMA,
        "target": "sick",
    },
    "optim.attacks.Canaries": lambda: {"included": FLAGS},
    "optim.attacks.from_confusion_matrix": lambda: dict.fromkeys(
        ("true_positives", "false_negatives", "false_positives", "true_negatives"), 10
    ),
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
    "optim.attacks.power": lambda: {"canaries": 100},
    "optim.attacks.loader": lambda: {
        "sampler": "shuffled-epochs",
        "n": 100,
        "batch_size": 10,
        "samples": 1000,
    },
    "tables.Column": lambda: {"name": "a", "type": "number", "range": (0.0, 1.0)},
    "estimators.PrivateSearch": lambda: {
        "estimator": estimators.LogisticRegression(classes=[0, 1]),
        "param_grid": {"l2": [0.0, 0.1]},
        "epsilon": 4.0,
        "trials": 2,
    },
    "estimators.Clipper": lambda: {"bounds": (-1, 1), "noise": "gaussian"},
    "estimators.KMeans": lambda: {"n_clusters": 2, "bounds": (-1, 1)},
    "estimators.Bins": lambda: {"bounds": (-1, 1)},
    "estimators.Splines": lambda: {"bounds": (-1, 1)},
    "estimators.RandomFeatures": lambda: {"bounds": (-1, 1)},
    "estimators.PCA": lambda: {"bounds": (-1, 1)},
    "estimators.LinearRegression": lambda: {"bounds": (-1, 1), "target_bounds": (0, 1)},
    "estimators.Ridge": lambda: {"bounds": (-1, 1), "target_bounds": (0, 1)},
    "estimators.LogisticRegression": lambda: {"classes": [0, 1]},
    "estimators.StandardScaler": lambda: {"bounds": (-1, 1)},
    "estimators.SimpleImputer": lambda: {"bounds": (-1, 1)},
    "estimators.QuantileTransformer": lambda: {
        "bounds": (-1, 1),
        "n_quantiles": 3,
        "noise": "gaussian",
    },
    "estimators.noisy_accuracy": lambda: {"estimator": fitted()},
    "estimators.noisy_roc_auc": lambda: {"estimator": fitted()},
    "estimators.noisy_r2": lambda: {"estimator": fitted()},
    **{f"optim.{name}": functools.partial(run_of, name) for name in OPTIMIZERS},
    **{
        f"accountants.events.{name}": functools.partial(dict, **given)
        for name, given in EVENTS.items()
    },
    "optim.select_point": selection_of,
    "report.composed_epsilon": lambda: {"runs": [ledger()]},
    "Ledger.within": lambda: {"plan": dataclasses.replace(plan(), n=2000)},
    "BudgetBook.check": lambda: {"plan": small()},
    "BudgetBook.oracle": lambda: {"plan": small()},
    "PrivateOracle.gradient": lambda: {"query": "gradient"},
    "Plan.price": lambda: {"delta": 1e-5},
    "accountants.PrivacyFilter.spend": lambda: {"event": events.GaussianDpEvent(9.0), "count": 1},
    "optim.NoiseStream.at": lambda: {"step": 2},
    "calibrate.register_sampler": lambda: {"sampler": OwnSampler},
}

# Methods that users call, by class. An oracle calls those of objectives, and checks what it passes.
METHODS = {
    "BudgetBook": ("change_total", "check", "oracle", "spent"),
    "Ledger": ("allows", "check", "event_for", "of", "record", "within"),
    "Plan": ("event_for", "noise_norm", "price", "seconds"),
    "PrivateOracle": ("gradient",),
    "accountants.Account": ("compose", "delta", "epsilon"),
    "accountants.Odometer": ("spend",),
    "accountants.PrivacyFilter": ("cost", "spend", "would_exceed"),
    "accountants.matrix.Banded": (
        "error_profile",
        "event",
        "max_error",
        "mean_error",
        "sensitivity",
    ),
    "accountants.matrix.Dense": ("optimised", "sensitivity"),
    "adapters.loaders.AllocationSampler": ("event",),
    "calibrate.User": ("event",),
    "optim.NoiseStream": ("at",),
    "optim.Silo": ("open",),
}

# What is not called here, and why.
APART = {
    "the product makes them as its answers": (
        "Result accountants.Certificate accountants.Comparison accountants.Delta "
        "accountants.Epsilon accountants.EpsilonProfile accountants.Grid accountants.LogDelta "
        "accountants.PrivacyProfile accountants.Risk accountants.TradeOff calibrate.Calibrated "
        "calibrate.Needed calibrate.Needs calibrate.Noise calibrate.Recommendation "
        "calibrate.correlated.CalibratedNoise calibrate.correlated.Calibration "
        "accountants.correlated.CorrelatedDelta accountants.correlated.CorrelatedEpsilon "
        "accountants.matrix.Sensitivity adapters.loaders.Verdict optim.Curvature "
        "optim.DistributedResult optim.Progress optim.SecondOrderResult optim.Selection "
        "optim.minimax.MinimaxResult optim.attacks.Likelihood optim.attacks.LoaderAttack "
        "optim.attacks.ManyRuns optim.attacks.OneRun optim.attacks.Power plot.Line plot.Point"
    ),
    "classes to inherit from": (
        "accountants.correlated.Sampler accountants.matrix.Participation "
        "adapters.loaders.PricedSampler accountants.matrix.Strategy accountants.PrivacyLoss "
        "optim.Objective optim.Oracle "
        "optim.minimax.ConvexSet optim.minimax.MinimaxObjective"
    ),
    "an optimizer's author calls them, and a run checks what they hold": (
        "optim.Settings optim.algorithm adapters.stepwise.Elsewhere"
    ),
    "another package's object is their argument": (
        "optim.DaskSilos optim.Partitioned accountants.from_pld estimators.split_budget"
    ),
    "they read documents and draw pictures, of which the schema tells": (
        "verify verify_certificate load_model accountants.check_loss"
    ),
    "the builder that uses a constant names it": "calibrate.Constants",
    "it takes minutes": "calibrate.audit",
    "pictures and pages of what other calls have answered": (
        "plot.crossings plot.errors plot.renyi_curve plot.samplers report.composed_by_silo "
        "report.composed_reports report.facts_of"
    ),
    "a schema's own checks name its columns": "tables.Model tables.Records tables.Schema",
    "inner parts of a price by draws": (
        "accountants.correlated.Mechanism accountants.correlated.simulate "
        "accountants.events.DominatingPairDpEvent"
    ),
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
    return dpcal.epsilon(cls(**given), delta=1e-5, neighboring_relation=RELATION_OF.get(cls, ADD))


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
        for method in METHODS.get(name, ()):
            path, held = f"{name}.{method}", inspect.getattr_static(value, method)
            bound = isinstance(held, staticmethod | classmethod)
            of = inspect.signature(getattr(value, method))
            if not bound:
                of = of.replace(parameters=list(of.parameters.values())[1:])
            ask = getattr(value, method) if bound else functools.partial(asked, call, method)
            found[path] = Call(ask, of, path)
    apart = {name for names in APART.values() for name in names.split()}
    return {name: call for name, call in found.items() if name not in apart}
