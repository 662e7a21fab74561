"""How long is one DP-SGD step, beside what linear algebra alone would take, and beside Opacus?

Task: logistic regression, 100,000 records of 100 features and an intercept, expected batch 1,000.

    python -m benchmarks.steps.dpsgd [--opacus-python PATH] [--json]

All timings are microseconds per step on one thread: medians over interleaved rounds, in each of
which a contestant first runs untimed, until the caches hold what they can of its data. The
yardstick is two BLAS passes over a batch that somebody else has gathered, ``X_b @ w`` and ``X_b.T @
c``, plus drawing the same normals:

* ``fresh``: another gathered batch at each step, as in training; they follow one another in memory.
* ``hot``: the same batch at all steps, so that it never leaves the nearest caches.
* ``gather``: as ``fresh``, but numpy gathers the batch from the records at each step.

Our step does more than the first two: it samples, reads scattered rows, takes exponentials, clips
and updates. Reading a thousand scattered rows from memory alone takes longer than ``hot``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time

N, D, BATCH = 100_000, 100, 1_000


def restart_with_one_thread():
    """Restart with one BLAS thread, because our step uses one."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.steps.dpsgd", *sys.argv[1:]])


def problem():
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    y = rng.random(N) < 1 / (1 + np.exp(-X @ rng.standard_normal(D) / 10))
    return X, y


def contestants(steps):
    """Return functions that take ``steps`` steps each."""
    import numpy as np

    from dpcal.calibrate import Plan, Query
    from dpcal.optim import Logistic, PrivateOracle
    from dpcal.optim.boundary.walk import walk_of

    X, y = problem()
    query = Query(
        name="gradient",
        kind="gradient",
        sampler="poisson",
        sampling_probability=BATCH / N,
        max_norm=1.0,
        noise_multiplier=1.0,
        count=10**9,
    )
    plan = Plan(optimizer="dpsgd", n=N, queries=(query,), epsilon=1.0, delta=1e-6)
    oracle = PrivateOracle(Logistic(X, y, classes_from_data=True), plan, seed=0)
    records = np.hstack([X, np.ones((N, 1))])
    w, coefficients = np.zeros(D + 1), np.full(BATCH, 1e-3)
    rng = np.random.default_rng(1)

    def ours():
        walk = walk_of(oracle, w, "gradient", rates=np.full(steps, 0.1))
        while walk.step < steps:
            walk.take(steps - walk.step)

    def yardstick(batch_at):
        def run():
            for step in range(steps):
                batch = batch_at(step)
                _ = batch @ w
                _ = batch.T @ coefficients
                rng.standard_normal(D + 1)

        return run

    shuffled = [np.sort(rng.choice(N, BATCH, replace=False)) for _ in range(100)]
    return {
        "ours": ours,
        "fresh": yardstick(lambda step: records[step % 100 * BATCH :][:BATCH]),
        "hot": yardstick(lambda step: records[:BATCH]),
        "gather": yardstick(lambda step: records[shuffled[step % 100]]),
    }


def measure(*, rounds, steps):
    """Return median microseconds per step of each contestant."""
    runs = contestants(steps)
    times = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            for timed in (False, False, False, True, True, True):
                start = time.perf_counter()
                run()
                if timed:
                    times[name].append((time.perf_counter() - start) / steps * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def opacus(python, *, threads):
    """Return Opacus's microseconds per step, measured by its own interpreter right now."""
    command = [python, "-m", "benchmarks.steps.opacus"]
    command += [f"--threads={threads}"] if threads else []
    answer = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(answer.stdout.splitlines()[-1])


def report(times):
    ours = times["ours"]
    print(f"our step (sample, clip, sum, noise, update)   {ours:10.1f} us")
    for name, text in (
        ("fresh", "two BLAS passes + normals, fresh batches"),
        ("hot", "two BLAS passes + normals, one hot batch"),
        ("gather", "numpy gather + two BLAS passes + normals"),
    ):
        print(f"{text:45} {times[name]:10.1f} us   ours / theirs = {ours / times[name]:.2f}")
    for label, rows in times.get("opacus", {}).items():
        for name, value in rows.items():
            text = f"Opacus, {name} ({label})"
            print(f"{text:45} {value:10.1f} us   theirs / ours = {value / ours:.1f}")


def main():
    parser = argparse.ArgumentParser(description="Time one DP-SGD step against BLAS and Opacus.")
    parser.add_argument("--opacus-python", help="interpreter with torch and opacus installed")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    times = measure(rounds=options.rounds, steps=options.steps)
    if options.opacus_python:
        times["opacus"] = {
            "1 thread": opacus(options.opacus_python, threads=1),
            "default threads": opacus(options.opacus_python, threads=None),
        }
    if options.json:
        print(json.dumps(times))
    else:
        report(times)


if __name__ == "__main__":
    restart_with_one_thread()
    main()
