"""What does discrete noise cost? Whole runs beside the same runs with Gaussian noise in doubles.

    python -m benchmarks.steps.noise [--records N] [--rounds R]
        [--only optimizers estimators objectives sizes]

Processor time of a run, the least of interleaved rounds, as milliseconds with Gaussian noise and as
the ratio of both kinds. Optimizers are those of ``benchmarks.steps.overhead``, on N records of 20
features; estimators have N records of 10; ``objectives`` are answers about batches of 300 of N
records, of networks too and of Hessians; ``sizes`` are runs of DP-SGD whose batches and parameters
are few and many. A kind of noise that a plan refuses has no ratio.
"""

import argparse
import contextlib
import json
import math
import time
import warnings
from functools import partial

import numpy as np

from benchmarks.sklearn_releases import ESTIMATORS
from benchmarks.steps import overhead
from dpcal import calibrate, optim
from dpcal.calibrate import Plan, Query
from dpcal.errors import UnsupportedEvent
from dpcal.optim.second_order.oracle import SecondOrderOracle

KINDS = ("gaussian", "discrete")
EVERYONE = overhead.N
# Records, features and batches of runs of DP-SGD.
SIZES = (
    (20_000, 20, 50),
    (20_000, 20, 300),
    (100_000, 50, 1_000),
    (20_000, 500, 300),
    (2_000, 5_000, 200),
)


def least(run, rounds):
    """Return the least CPU seconds of both kinds of noise, interleaved; NaN where it is refused."""
    best = dict.fromkeys(KINDS, math.inf)
    for _ in range(rounds):
        for noise in KINDS:
            start = time.process_time()
            try:
                with optim.replaying(), warnings.catch_warnings(action="ignore"):
                    run(noise)
            except UnsupportedEvent:
                best[noise] = math.nan
                continue
            best[noise] = min(best[noise], time.process_time() - start)
    return best


def optimizers(records):
    """Yield runs of every optimizer."""
    overhead.N = records
    for case, (name, options, changes) in overhead.CASES.items():
        everyone = options.get("batch_size") == EVERYONE
        arguments = {**options, "batch_size": records} if everyone else options
        with contextlib.suppress(ValueError):
            _, objective, plan, optimizer = overhead.prepared(name, arguments, changes)
            yield case, lambda noise, o=objective, p=plan, f=optimizer: f(o, p, seed=1, noise=noise)


def estimators(records):
    """Yield fits of every estimator."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (records, 10))
    y = (X[:, 0] > 0).astype(int)
    for make, _ in ESTIMATORS:
        model = make().set_params(epsilon=1.0, delta=1e-6)
        if getattr(model, "bounds", None) is not None:
            model.set_params(bounds=(-1.0, 1.0))
        if "classes" in model.get_params():
            model.set_params(classes=[0, 1])
        yield (
            type(model).__name__,
            lambda noise, each=model: each.set_params(noise=noise).fit(X, y),
        )


def objectives(records):
    """Yield ten answers about objectives that have no kernel, and of kinds that few runs ask."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((records, 20)) / math.sqrt(20)
    y = (X[:, 0] > 0).astype(int)
    logistic = optim.Logistic(X, y, classes=[0, 1])
    mlp, kan = (made(X, y, width=16, classes=[0, 1]) for made in (optim.MLP, optim.KAN))
    given = optim.FromGradients(lambda w, rows: 0.5 * X[rows] + w, n=records, dimension=20)
    for objective, kind in (
        (logistic, "scalar"),
        (logistic, "hessian"),
        (logistic, "hessian vector"),
        (mlp, "gradient"),
        (mlp, "scalar"),
        (mlp, "gradient norm"),
        (mlp, "gradient difference"),
        (kan, "gradient"),
        (given, "gradient"),
    ):
        query = Query(
            name="asked",
            kind=kind,
            sampler="poisson",
            sampling_probability=min(1.0, 300 / records),
            max_norm=1.0,
            noise_multiplier=4.0,
            count=10,
        )
        plan = Plan(optimizer="any", n=records, queries=(query,), epsilon=1e3, delta=1e-6)
        yield (
            f"{type(objective).__name__}, {kind}",
            lambda noise, o=objective, p=plan, k=kind: asked(o, p, k, noise),
        )


def asked(objective, plan, kind, noise):
    """Ask a plan's only query ten times."""
    oracle = SecondOrderOracle(objective, plan, seed=1, noise=noise)
    w = np.full(objective.dimension, 0.1)
    ask, points = {
        "gradient": (oracle.gradient, (w,)),
        "gradient difference": (oracle.difference, (w, 2 * w)),
        "gradient norm": (oracle.norm, (w,)),
        "scalar": (oracle.scalar, (w,)),
        "hessian": (oracle.hessian, (w,)),
        "hessian vector": (oracle.hessian_vector, (w, w)),
    }[kind]
    for _ in range(10):
        ask(*points, "asked")


def sizes(records):
    """Yield runs of DP-SGD."""
    rng = np.random.default_rng(0)
    for n, d, batch in SIZES:
        X = rng.standard_normal((n, d)) / math.sqrt(d)
        objective = optim.Logistic(X, X[:, 0] > 0, classes=[False, True])
        plan = calibrate.dpsgd(n=n, batch_size=batch, steps=300, epsilon=2.0, delta=1e-6)
        yield (
            f"dpsgd, n = {n}, d = {d}, batches of {batch}",
            partial(optim.dpsgd, objective, plan),
        )


PARTS = {
    "optimizers": optimizers,
    "estimators": estimators,
    "objectives": objectives,
    "sizes": sizes,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--records", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    found = {}
    for part in options.only:
        for name, run in PARTS[part](options.records):
            taken = least(
                (lambda noise, go=run: go(noise=noise)) if part == "sizes" else run, options.rounds
            )
            found[name] = {
                "gaussian_ms": 1e3 * taken["gaussian"],
                "ratio": taken["discrete"] / taken["gaussian"],
            }
            if not options.json:
                print(f"{name:44s}{1e3 * taken['gaussian']:10.2f} ms{found[name]['ratio']:8.2f}")
    if options.json:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
