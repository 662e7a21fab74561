"""How long is a private step of a network, beside the same step without privacy?

Task: an MLP of 784 inputs, 128 hidden units and 10 classes, expected batch 256.

    python -m benchmarks.mlp_step [--json]

Medians of process time over interleaved rounds, on one thread, in milliseconds a step:

* ``ours``: sample, gather, clip every record, sum, add noise, update.
* ``yardstick``: forward and backward pass of a gathered batch in BLAS, its update, and drawing as
  many normals; nothing is clipped.
"""

import argparse
import json
import os
import statistics
import sys
import time

N, D, WIDTH, CLASSES, BATCH = 20_000, 784, 128, 10, 256


def restart_with_one_thread():
    """Restart with one BLAS thread, so that process time is that of one processor."""
    if os.environ.get("OPENBLAS_NUM_THREADS") != "1":
        os.environ["OPENBLAS_NUM_THREADS"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "benchmarks.mlp_step", *sys.argv[1:]])


def contestants(steps):
    """Return functions that take ``steps`` steps each."""
    import numpy as np

    from dpcal.calibrate import Plan, Query
    from dpcal.optim import MLP, PrivateOracle

    rng = np.random.default_rng(0)
    X, y = rng.random((N, D)), rng.integers(CLASSES, size=N)
    network = MLP(X, y, width=WIDTH)
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
    oracle = PrivateOracle(network, plan, seed=0)
    start = network.initial(seed=0)
    rates = np.full(steps, 0.1)

    def ours():
        oracle.descend(start, "gradient", learning_rates=rates)

    W1, W2 = rng.standard_normal((WIDTH, D)) / 28, rng.standard_normal((CLASSES, WIDTH)) / 11
    b1, b2 = np.zeros(WIDTH), np.zeros(CLASSES)

    def yardstick():
        for step in range(steps):
            rows = slice(step % 50 * BATCH, (step % 50 + 1) * BATCH)
            batch = X[rows]
            hidden = np.tanh(batch @ W1.T + b1)
            scores = hidden @ W2.T + b2
            out = np.exp(scores - scores.max(axis=1, keepdims=True))
            out /= out.sum(axis=1, keepdims=True)
            out[np.arange(BATCH), y[rows]] -= 1
            back = (out @ W2) * (1 - hidden * hidden)
            for weights, gradient in (
                (W1, back.T @ batch),
                (W2, out.T @ hidden),
                (b1, back.sum(axis=0)),
                (b2, out.sum(axis=0)),
            ):
                weights -= 0.1 / BATCH * gradient
            rng.standard_normal(network.dimension)

    return {"ours": ours, "yardstick": yardstick}


def measure(*, steps=20, rounds=7):
    runs = contestants(steps)
    times = {name: [] for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            start = time.process_time()
            run()
            if turn:
                times[name].append((time.process_time() - start) / steps * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description="Time private steps of a network.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    restart_with_one_thread()
    found = measure()
    found["ratio"] = found["ours"] / found["yardstick"]
    if options.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(f"{name:<12}{value:8.2f}{'' if name == 'ratio' else ' ms a step'}")


if __name__ == "__main__":
    main()
