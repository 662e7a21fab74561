"""Overhead of the privacy boundary: each optimizer's step next to the same answers in plain numpy.

    python -m benchmarks.overhead [--cases CASE ...] [--rounds 5]

The records have n = 500 and d = 20; the numpy (``benchmarks.plain``) has no plan, no ledger and no
checks. The result is the CPU time of one more answer: the time of a whole run, less the time of a
run that its callback ends at the first step, over the difference of their numbers of answers. The
opening is the remaining time of a run (making the oracle, digest, seeds, result).
"""

import argparse
import dataclasses
import math
import os
import sys
import time
import warnings

N, D = 500, 20
STEPS = 2_000


def restart_with_one_thread():
    """Restart with one BLAS thread, because our step uses one."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.overhead", *sys.argv[1:]])


# Seconds of the longest run of each round; shorter runs are repeated.
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

    # The number of answers of some runs depends on the noise, which is always the same here.
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    for case in options.cases:
        row = timed(case, options.rounds)
        print(
            f"{case:36} {row['answers']:6} answers {row['ours']:9.2f} us, numpy "
            f"{row['numpy']:9.2f} us, ratio {row['ours'] / row['numpy']:.2f}, opening "
            f"{row['opening']:7.0f} us"
        )


if __name__ == "__main__":
    restart_with_one_thread()
    main()
