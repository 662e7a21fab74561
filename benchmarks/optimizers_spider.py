"""How do SpiderBoost, embedded models and their loops do? Slopes in n and d, and microseconds.

    python -m benchmarks.optimizers_spider [--quick] [--json] [--only STUDY ...]

* ``slopes``: gradient norms against n on a family of losses whose hardness follows n (a long ramp
  of slope g; the worst g counts), SpiderBoost and noisy gradient descent, with 95% intervals over
  seeds. Theory: -2/3 and -1/2.
* ``population``: population gradients against n, of tree Spider where the paper stops and at its
  end, and of recursive regularization where sampling limits it and where noise does. Theory: -1/3;
  -1/2 and -1.
* ``flatness``: gradient norms against d at rank 20, direct and embedded. Theory: 1/3 and 0.
* ``speed``: CPU microseconds per difference step of the fused loop, of numpy that scales a matrix
  of per-record differences, and of numpy that clips by norms of rank-one gradients.

Each study is a function that returns its data.
"""

import argparse
import json
import math
import os
import sys
import time


def restart_with_one_thread():
    """Restart with one BLAS thread, because our loops use one."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(
            sys.executable, [sys.executable, "-m", "benchmarks.optimizers_spider", *sys.argv[1:]]
        )


def hard_problem(n, slope, *, d=20):
    """A ramp of length F0 / slope in one coordinate, quadratics in the others; its gradient too."""
    import numpy as np

    from dpcal.optim import FromGradients

    rng = np.random.default_rng(n)
    curvature = rng.choice([0.5, 1.0], size=n)
    points = rng.standard_normal((n, d - 1))
    points *= 0.2 / np.linalg.norm(points, axis=1, keepdims=True)
    mean_curvature, mean_pull = curvature.mean(), curvature @ points / n

    def ramp(w):
        return min(0.0, max(-slope, w[0] - 1 / slope - slope))

    def gradients(w, rows):
        table = np.empty((len(rows), d))
        table[:, 0] = ramp(w)
        table[:, 1:] = curvature[rows, np.newaxis] * (w[1:] - points[rows])
        return table

    def norm(w):
        return math.hypot(ramp(w), np.linalg.norm(mean_curvature * w[1:] - mean_pull))

    return FromGradients(gradients, n=n, dimension=d, block=10**6), norm


def worst_norm(name, n, seed, *, hardnesses):
    """Mean gradient norm over the iterates of a run, at the worst slope of the ramp."""
    import numpy as np

    from dpcal import calibrate, optim

    constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
    plan = getattr(calibrate, name)(constants, n=n, dimension=20, epsilon=1.0, delta=1e-6)
    scale = math.sqrt(1 / (plan.parameters["learning_rate"] * plan.parameters["steps"]))
    found = []
    for factor in np.geomspace(0.5, 2.0, hardnesses):
        objective, norm = hard_problem(n, min(0.5, scale * factor))
        norms = []
        getattr(optim, name)(
            objective,
            plan,
            seed=seed,
            callback=lambda p, kept=norms, norm=norm: kept.append(norm(p.w)),
            callback_every=1,
        )
        found.append(np.mean(norms))
    return max(found)


def slopes(*, sizes=(1_000, 3_000, 10_000), seeds=4, hardnesses=4):
    """Return worst gradient norms by method, n and seed, and log-log slopes with 95% intervals."""
    return {
        name: fitted(
            sizes,
            [
                [worst_norm(name, n, seed, hardnesses=hardnesses) for n in sizes]
                for seed in range(seeds)
            ],
        )
        for name in ("spiderboost", "noisy_gd")
    }


def fitted(sizes, table):
    """Return the mean norms by n, and the mean log-log slope over seeds with its 95% interval."""
    import numpy as np
    from scipy import stats

    table = np.array(table)
    per_seed = np.array([np.polyfit(np.log(sizes), np.log(row), 1)[0] for row in table])
    half = stats.t.ppf(0.975, len(table) - 1) * stats.sem(per_seed)
    return {
        "sizes": list(sizes),
        "norms": table.tolist(),
        "slope": per_seed.mean(),
        "interval": [per_seed.mean() - half, per_seed.mean() + half],
    }


def leaves(n, seed):
    """Return population gradients of a run of tree Spider: where the paper stops, and at its end.

    The paper stops at the first leaf whose estimate is below the threshold, which is the first with
    a shorter step.
    """
    import numpy as np

    from dpcal import calibrate, optim

    def drawn(size, seed):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((size, 3))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        y = X @ [1.0, -2.0, 0.5] > 0
        return optim.Sigmoid(X, y, fit_intercept=False, classes=[0, 1])

    constants = calibrate.Constants(lipschitz=0.2963, smoothness=0.15406, gap=0.25)
    plan = calibrate.tree_spider(constants, n=n, dimension=3, epsilon=1.0, delta=1e-6)
    path = [np.zeros(3)]
    result = optim.tree_spider(
        drawn(n, seed),
        plan,
        seed=seed,
        callback=lambda progress: path.append(progress.w) and None,
        callback_every=1,
    )
    steps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    stop = np.flatnonzero(steps < plan.parameters["step_length"] * (1 - 1e-6))[0]
    fresh = drawn(200_000, 10**6 + seed)
    return [float(np.linalg.norm(fresh.gradient(w))) for w in (path[stop], result.w)]


def location(n, seed, *, d, epsilon):
    """Return the population gradient of recursive regularization on a Huber location problem."""
    import numpy as np

    from dpcal import calibrate, optim

    def gradients(w, points):
        moved = w - points
        return moved / np.maximum(1.0, np.linalg.norm(moved, axis=1, keepdims=True))

    center = np.full(d, 3 / math.sqrt(d))
    points, fresh = (
        center + np.random.default_rng(s).standard_normal((size, d)) / math.sqrt(d)
        for size, s in ((n, seed), (200_000, 10**6 + seed))
    )
    objective = optim.FromGradients(
        lambda w, rows: gradients(w, points[rows]), n=n, dimension=d, block=10**6
    )
    plan = calibrate.recursive_regularization(
        calibrate.Constants(lipschitz=1.0, smoothness=1.0),
        n=n,
        dimension=d,
        epsilon=epsilon,
        delta=1e-6,
        distance=3.0,
    )
    w = optim.recursive_regularization(objective, plan, seed=seed).w
    return float(np.linalg.norm(gradients(w, fresh).mean(axis=0)))


def population(
    *, trees=(100_000, 400_000, 1_600_000), sizes=(1_000, 3_000, 10_000, 30_000), seeds=4
):
    """Return population gradients by n, and log-log slopes with 95% intervals over seeds."""
    runs = [[leaves(n, seed) for n in trees] for seed in range(seeds)]
    data = {
        name: fitted(trees, [[pair[end] for pair in row] for row in runs])
        for end, name in enumerate(("tree_spider, the paper's end", "tree_spider"))
    }
    for name, d, epsilon in (("sampling", 5, 4.0), ("noise", 100, 0.5)):
        table = [[location(n, seed, d=d, epsilon=epsilon) for n in sizes] for seed in range(seeds)]
        data[f"recursive_regularization, {name}"] = fitted(sizes, table)
    return data


def flatness(*, dimensions=(400, 1_000, 2_000, 4_000), seeds=3, n=5_000):
    """Return mean gradient norms by method and d, and log-log slopes in d."""
    import numpy as np

    from dpcal import calibrate, optim

    constants = calibrate.Constants(lipschitz=0.2963, smoothness=0.15406, gap=0.25)
    data = {name: {"dimensions": list(dimensions), "norms": []} for name in ("direct", "embedded")}
    for d in dimensions:
        found = {"direct": [], "embedded": []}
        for seed in range(seeds):
            rng = np.random.default_rng(seed)
            span, _ = np.linalg.qr(rng.standard_normal((d, 20)))
            X = rng.standard_normal((n, 20)) @ span.T
            X /= np.linalg.norm(X, axis=1, keepdims=True)
            y = (X @ span[:, 0] > 0) ^ (rng.random(n) < 0.1)
            objective = optim.Sigmoid(X, y, fit_intercept=False, classes_from_data=True)
            target = {"n": n, "dimension": d, "epsilon": 1.0, "delta": 1e-6}
            direct = calibrate.spiderboost(constants, **target)
            embedded = calibrate.jl_glm(constants, **target)
            for name, w in (
                ("direct", optim.spiderboost(objective, direct, seed=seed).w),
                ("embedded", optim.jl_glm(objective, embedded, seed=seed).w),
            ):
                found[name].append(float(np.linalg.norm(objective.gradient(w))))
        for name, norms in found.items():
            data[name]["norms"].append(norms)
    for row in data.values():
        means = np.mean(row["norms"], axis=1)
        row["slope"] = float(np.polyfit(np.log(dimensions), np.log(means), 1)[0])
    return data


def speed(*, shapes=((10_000, 30, 50), (10_000, 1_000, 1_000)), rounds=5):
    """Return the least CPU microseconds per step of each contestant, by (n, d, batch)."""
    return [
        {
            "n": n,
            "d": d,
            "batch": b,
            **step_times(n, d, b, steps=max(100, 50_000 // b), rounds=rounds),
        }
        for n, d, b in shapes
    ]


def step_times(n, d, b, *, steps, rounds):
    """Time difference steps of logistic regression on Poisson samples."""
    import numpy as np

    from dpcal.calibrate import Plan, Query
    from dpcal.optim import Logistic, PrivateOracle
    from dpcal.optim.boundary.walk import walk_of

    rng = np.random.default_rng(0)
    X, signs = rng.standard_normal((n, d)) / math.sqrt(d), rng.choice([-1.0, 1.0], size=n)
    lengths = np.linalg.norm(X, axis=1)
    shared = {"noise_multiplier": 1.0, "count": 10**9}
    refresh = Query(name="refresh", kind="gradient", sampler="full", max_norm=1.0, **shared)
    difference = Query(
        name="difference",
        kind="gradient difference",
        sampler="poisson",
        sampling_probability=b / n,
        max_norm=0.25,
        proportional=True,
        cap=2.0,
        **shared,
    )
    plan = Plan(optimizer="spiderboost", n=n, queries=(refresh, difference), epsilon=1, delta=1e-6)
    oracle = PrivateOracle(
        Logistic(X, signs, fit_intercept=False, classes_from_data=True), plan, seed=0
    )
    how = {"period": 10**9, "rates": np.full(2 + steps, 1e-3)}
    state = walk_of(oracle, rng.standard_normal(d), "refresh", "difference", **how)
    while state.step < 2:
        state.take()
    begun = state.w, state.previous, state.gradient

    def ours():
        state.start(*begun, 2)
        while state.step < 2 + steps:
            state.take(2 + steps - state.step)

    def with_numpy(clipped):
        def run():
            w, v, estimate = begun
            for _ in range(steps):
                rows = np.flatnonzero(rng.random(n) < b / n)
                bound = min(0.25 * np.linalg.norm(w - v), 2.0)
                total = clipped(rows, w, v, bound) + bound * rng.standard_normal(d)
                estimate = estimate + total / b
                w, v = w - 1e-3 * estimate, w

        return run

    def slopes_at(w, records, targets):
        return -targets / (1 + np.exp(targets * (records @ w)))

    def per_record(rows, w, v, bound):
        records, targets = X[rows], signs[rows]
        at_w = slopes_at(w, records, targets)[:, np.newaxis] * records
        at_v = slopes_at(v, records, targets)[:, np.newaxis] * records
        change = at_w - at_v
        norms = np.linalg.norm(change, axis=1, keepdims=True)
        return (change * np.minimum(1, bound / np.maximum(norms, 1e-300))).sum(axis=0)

    def rank_one(rows, w, v, bound):
        records, targets = X[rows], signs[rows]
        change = slopes_at(w, records, targets) - slopes_at(v, records, targets)
        norms = np.abs(change) * lengths[rows]
        return (change * np.minimum(1, bound / np.maximum(norms, 1e-300))) @ records

    runs = {"ours": ours, "numpy": with_numpy(per_record), "numpy_rank_one": with_numpy(rank_one)}
    best = dict.fromkeys(runs, math.inf)
    for _ in range(rounds):
        for name, run in runs.items():
            start = time.process_time()
            run()
            best[name] = min(best[name], (time.process_time() - start) / steps * 1e6)
    return best


def main():
    parser = argparse.ArgumentParser(description="Slopes, flatness and speed.")
    parser.add_argument("--quick", action="store_true", help="fewer seeds and sizes")
    parser.add_argument("--only", nargs="*", metavar="STUDY", help="those of the list above")
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    small = {"sizes": (1_000, 3_000), "seeds": 2} if options.quick else {}
    studies = {
        "speed": speed,
        "flatness": flatness,
        "slopes": lambda: slopes(**small, **({"hardnesses": 2} if small else {})),
        "population": lambda: population(**small, **({"trees": (10**5, 10**6)} if small else {})),
    }
    data = {name: study() for name, study in studies.items() if name in (options.only or studies)}
    if options.json:
        print(json.dumps(data))
        return
    for row in data.get("speed", ()):
        print({k: round(v, 1) for k, v in row.items()})
    for name, row in data.get("flatness", {}).items():
        means = [sum(norms) / len(norms) for norms in row["norms"]]
        print(f"{name:10} {[f'{v:.4f}' for v in means]}, slope in d {row['slope']:+.3f}")
    for name, row in {**data.get("slopes", {}), **data.get("population", {})}.items():
        low, high = row["interval"]
        means = [f"{sum(norms) / len(norms):.4f}" for norms in zip(*row["norms"], strict=True)]
        print(f"{name:32} {means}, slope in n {row['slope']:.3f}, 95% [{low:.3f}, {high:.3f}]")


if __name__ == "__main__":
    restart_with_one_thread()
    # Runs are timed again, and compared, at equal seeds.
    from dpcal.optim import replaying

    with replaying():
        main()
