"""What does the boundary cost? Every optimizer's step beside plain numpy, and other speeds.

    python -m benchmarks.overhead [--only steps blas draws ledger memory] [--json]

* ``steps``: every optimizer at n = 500 and d = 20, beside the same answers in plain numpy
  (``benchmarks.plain``), which has no plan, no ledger and no checks. CPU time of one more
  answer: of a whole run less one that its callback ends at the first step, over the answers that
  they differ by. What a run takes beside its answers (making the oracle, digest, seeds, result) is
  its opening.
* ``blas``: steps on all of 20,000 records of 100 features, beside the two products of a matrix and
  a vector that they cannot do without (three for differences), and the same normals.
* ``draws``: discrete Gaussian numbers a second.
* ``ledger``: writing one answer down.
* ``memory``: the largest room that objectives take while they are made, in units of the records.
"""

import argparse
import dataclasses
import json
import math
import os
import sys
import time
import tracemalloc
import warnings
from functools import partial

N, D = 500, 20
STEPS = 2_000
PARTS = ("steps", "blas", "draws", "ledger", "memory")


def restart_with_one_thread():
    """Restart with one BLAS thread, because our step uses one."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.overhead", *sys.argv[1:]])


# Seconds of the longest run for each round: runs that are shorter are repeated.
ROUND = 0.1


def least(runs, rounds):
    """Return the least CPU seconds of each run, over interleaved rounds."""
    best = dict.fromkeys(runs, math.inf)
    start = time.process_time()
    for run in runs.values():
        run()
    rounds *= max(1, min(100, round(ROUND / (time.process_time() - start))))
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], time.process_time() - start)
    return best


PROBLEM = {"dimension": D}
KL = {**PROBLEM, "gamma": 2.0}
IN_PLACE = {**PROBLEM, "neighboring_relation": "replace-one"}
WALK = {
    **PROBLEM,
    "batch_size": 50,
    "difference_batch_size": 5,
    "drift": 0.05,
    "passes": 40,
    "epsilon": 1e3,
}
BLOCKS = {"dimensions": (D + 2, 1), "neighboring_relation": "add-or-remove-one"}
SAMPLED = {**PROBLEM, "neighboring_relation": "add-or-remove-one"}

# The optimizer, its builder's arguments beside the target, and those of its constants.
CASES = {
    "dpsgd, batches of 50": ("dpsgd", {"batch_size": 50, "steps": STEPS}, {}),
    "dpsgd, all records": ("dpsgd", {"batch_size": N, "steps": STEPS}, {}),
    "noisy_gd": ("noisy_gd", {**PROBLEM, "steps": STEPS}, {}),
    "correlated_dpsgd": ("correlated_dpsgd", {"batch_size": N, "sampler": "full"}, {}),
    "kl_spider": ("kl_spider", {**KL, "epsilon": 1e4}, {}),
    "proximal_point": ("proximal_point", {**KL, "kappa": 3.0, "inner_steps": 400}, {}),
    "adaptive_gd": (
        "adaptive_gd",
        {**PROBLEM, "steps": STEPS, "epsilon": 4e3},
        {"smoothness": 1e4},
    ),
    "spiderboost": ("spiderboost", {**PROBLEM, "steps": STEPS, "batch_size": 100}, {}),
    "tree_spider": ("tree_spider", IN_PLACE, {}),
    "recursive_regularization, descent": (
        "recursive_regularization",
        {**IN_PLACE, "distance": 3.0},
        {},
    ),
    "recursive_regularization, passes": (
        "recursive_regularization",
        {**IN_PLACE, "distance": 3.0, "subsolver": "phased_sgd"},
        {},
    ),
    "jl_glm": (
        "jl_glm",
        {**PROBLEM, "inner": "noisy_gd", "embedding_dimension": 16, "steps": STEPS},
        {},
    ),
    "gauss_psgd": ("gauss_psgd", WALK, {}),
    "distributed_psgd, 2 silos": ("distributed_psgd", {**WALK, "silos": 2}, {}),
    "sto_spider": ("sto_spider", {**SAMPLED, "steps": STEPS}, {}),
    "ada_dp_spider": ("ada_dp_spider", {**SAMPLED, "steps": STEPS, "drift": 1e-3}, {}),
    "dp_sgda": ("dp_sgda", {**BLOCKS, "steps": STEPS, "batch_size": 60}, {}),
    "dp_rgda": ("dp_rgda", {**BLOCKS, "steps": 400, "period": 20, "batch_size": 60}, {}),
    "privatediff": ("privatediff", {**BLOCKS, "steps": 200}, {}),
}


def prepared(name, options, changes):
    """Return the objectives, the plan and the optimizer of a case."""
    from benchmarks.plain import Records
    from dpcal import calibrate, optim
    from dpcal.accountants.matrix import LambdaCGD

    known = {"lipschitz": 1.0, "smoothness": 0.25, "gap": 0.7, **changes}
    known |= {"hessian_lipschitz": 0.1, "strong_concavity": 0.25}
    first = [LambdaCGD(STEPS, 0.5)] if name == "correlated_dpsgd" else []
    if name not in ("dpsgd", "correlated_dpsgd"):
        first = [calibrate.Constants(**known)]
    target = {"n": N, "epsilon": 4.0, "delta": 1e-5, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plan = getattr(calibrate, name)(*first, **target)
    # The tree goes on until its pass is over: no estimate is small enough to end it.
    parameters = {**plan.parameters, "threshold": 1e-300}
    if name == "tree_spider":
        plan = dataclasses.replace(plan, parameters=parameters)
    rows = [Records(N, D, seed) for seed in range(options.get("silos", 1))]
    if "dimensions" in options:
        objective = optim.minimax.AUCMaximization(
            rows[0].X, rows[0].signs, positive_share=0.5, classes=(-1.0, 1.0)
        )
    else:
        made = [
            optim.Logistic(each.X, each.signs, fit_intercept=False, classes_from_data=True)
            for each in rows
        ]
        objective = made if len(made) > 1 else made[0]
    return rows, objective, plan, getattr(optim, name)


def timed(case, rounds):
    """Return answers of a run, microseconds of one more answer, those of numpy, and the opening."""
    import numpy as np

    from benchmarks.plain import Records, answered, ranked
    from dpcal import optim

    name, options, _ = CASES[case]
    rows, objective, plan, optimizer = prepared(*CASES[case])
    records = rows[0] if name != "jl_glm" else Records(N, options["embedding_dimension"])
    made = ranked if "dimensions" in options else answered

    # How many answers some runs take depends on the noise, which is one and the same here.
    def whole():
        with optim.replaying():
            return optimizer(objective, plan, seed=1)

    def short():
        with optim.replaying():
            return optimizer(
                objective, plan, seed=1, callback=lambda progress: True, callback_every=1
            )

    def counted(ledger):
        return {query.name: ledger.count(query.name) for query in plan.queries}

    def in_numpy():
        for step, count in plain:
            for _ in range(count * len(rows)):
                step()

    counts, first = counted(whole().ledger), counted(short().ledger)
    rng = np.random.default_rng(1)
    plain = [(made(query, records, rng), counts[query.name]) for query in plan.queries]
    taken = least({"whole": whole, "short": short, "numpy": in_numpy}, rounds)
    answers, few = (len(rows) * sum(each.values()) for each in (counts, first))
    slope = (taken["whole"] - taken["short"]) / (answers - few)
    return {
        "answers": answers,
        "ours": 1e6 * slope,
        "numpy": 1e6 * taken["numpy"] / answers,
        "opening": 1e6 * (taken["short"] - few * slope),
    }


def steps(rounds, cases=tuple(CASES)):
    """Return, for each optimizer that there is, what :func:`timed` does."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {case: timed(case, rounds) for case in cases}


def blas(rounds, n=20_000, d=100, count=20):
    """Return microseconds of steps on all records, and of what BLAS needs at least."""
    import numpy as np

    from benchmarks.plain import Records
    from dpcal.calibrate import Plan, Query
    from dpcal.optim import Logistic, PrivateOracle

    rows, rng = Records(n, d), np.random.default_rng(0)
    shared = {"sampler": "full", "max_norm": 1.0, "noise_multiplier": 1.0, "count": 10**9}
    queries = (
        Query(name="gradient", kind="gradient", **shared),
        Query(name="difference", kind="gradient difference", **shared),
    )
    plan = Plan(optimizer="any", n=n, queries=queries, epsilon=1.0, delta=1e-6)
    oracle = PrivateOracle(
        Logistic(rows.X, rows.signs, fit_intercept=False, classes_from_data=True), plan
    )
    w, v = rng.standard_normal((2, d)) * 0.1
    slopes = rng.standard_normal(n)

    def repeated(step):
        return lambda: [step() for _ in range(count)]

    def products(vectors):
        for vector in vectors:
            rows.X @ vector
        rows.X.T @ slopes
        rng.standard_normal(d)

    taken = least(
        {
            "gradient": repeated(lambda: oracle.gradient(w, "gradient")),
            "two products": repeated(lambda: products([w])),
            "difference": repeated(lambda: oracle.difference(w, v, "difference")),
            "three products": repeated(lambda: products([w, v])),
        },
        rounds,
    )
    return {name: 1e6 * value / count for name, value in taken.items()}


def draws(rounds, size=1 << 20):
    """Return millions of discrete Gaussian numbers a second, by their standard deviation."""
    from dpcal.optim.boundary.discrete import DiscreteNormals

    noises = {f"{scale:g}": DiscreteNormals(scale) for scale in (100.0, float(1 << 20))}
    runs = {name: partial(noise.draw, size) for name, noise in noises.items()}
    return {name: size / value / 1e6 for name, value in least(runs, rounds).items()}


def ledger(rounds, count=2_000):
    """Return microseconds of writing one answer to the ledger."""
    from dpcal import calibrate, optim

    plan = calibrate.dpsgd(n=N, batch_size=50, steps=10**6, epsilon=4.0, delta=1e-5)
    (query,) = plan.queries

    def written():
        held = optim.Ledger.of(plan)
        for _ in range(count):
            held.record(query, 1)

    return {"an answer": 1e6 * least({"written": written}, rounds)["written"] / count}


def makers(d, n=20_000):
    """Return what makes each objective, and the room of its records."""
    import numpy as np

    from benchmarks.plain import Records
    from dpcal.optim import Logistic, Softmax

    rows = Records(n, d)
    labels = np.arange(n) % 4

    def embedded(k):
        matrix = np.random.default_rng(0).standard_normal((k, d)) / math.sqrt(k)
        return lambda: Logistic(
            rows.X, rows.signs, fit_intercept=False, classes_from_data=True
        ).embedded(matrix)

    made = {
        f"softmax, d = {d}": lambda: Softmax(rows.X, labels, classes_from_data=True),
        f"linear, d = {d}": lambda: Logistic(rows.X, rows.signs, classes_from_data=True),
        f"embedded, d = {d}, k = {d // 2}": embedded(d // 2),
    }
    return made, rows.X.nbytes


def memory():
    """Return the peak room of each objective while it is made, in units of its records."""
    found = {}
    for d in (50, 64):
        made, room = makers(d)
        for name, make in made.items():
            tracemalloc.start()
            make()
            found[name] = tracemalloc.get_traced_memory()[1] / room
            tracemalloc.stop()
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    parts = {
        "steps": partial(steps, cases=options.cases),
        "blas": blas,
        "draws": draws,
        "ledger": ledger,
    }
    found = {name: parts[name](options.rounds) for name in options.only if name in parts}
    if "memory" in options.only:
        found["memory"] = memory()
    if options.json:
        print(json.dumps(found))
        return
    for case, row in found.pop("steps", {}).items():
        print(
            f"{case:36} {row['answers']:6} answers {row['ours']:9.2f} us, numpy "
            f"{row['numpy']:9.2f} us, ratio {row['ours'] / row['numpy']:.2f}, opening "
            f"{row['opening']:7.0f} us"
        )
    for part, values in found.items():
        for name, value in values.items():
            print(f"{part:8} {name:28} {value:10.3f}")


if __name__ == "__main__":
    restart_with_one_thread()
    main()
