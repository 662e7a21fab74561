"""How long is a private step of a network, beside Opacus, and beside the step without privacy?

Task: an MLP of 784 inputs, 128 hidden units and 10 classes, expected batch 256.

    python -m benchmarks.steps.mlp [--json]

Medians over interleaved rounds, in milliseconds a step, on one thread and then on two: processor
time, and time on the clock, which is what a second thread can save.

* ``dpcal``: sample, gather, clip every record, sum, add noise, update; in double precision, with
  the noise that runs have by default (discrete), and with ``noise="gaussian"``.
* ``yardstick``: forward and backward pass of a gathered batch in BLAS, its update, and drawing as
  many normals, in double precision; nothing is clipped.
* ``Opacus``: what ``PrivacyEngine.make_private`` sets up, its Poisson data loader included; in
  single precision, as always. ``ghost`` is its ``grad_sample_mode="ghost"``, and ``batch in hand``
  leaves sampling and the loader out: batches are gathered beforehand.

Opacus is left out, with a line that says so, where it is not installed (extra ``bench``).
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
import warnings

N, D, WIDTH, CLASSES, BATCH = 20_000, 784, 128, 10, 256
THREADS = (1, 2)


def records():
    import numpy as np

    rng = np.random.default_rng(0)
    return rng.random((N, D)), rng.integers(CLASSES, size=N)


def ours(X, y, steps, noise=None):
    """Return a function that takes ``steps`` private steps, with the default noise or another."""
    import numpy as np

    from dpcal.calibrate import Plan, Query
    from dpcal.optim import MLP, PrivateOracle

    network = MLP(X, y, width=WIDTH, classes_from_data=True)
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
    oracle = PrivateOracle(network, plan, noise=noise)
    start, rates = network.initial(seed=0), np.full(steps, 0.1)

    def run():
        w = start
        for rate in rates:
            w = w - rate * oracle.gradient(w, "gradient")

    return run


def yardstick(X, y, steps):
    """Return a function that takes ``steps`` steps without privacy, and draws normals."""
    import numpy as np

    rng = np.random.default_rng(1)
    W1, W2 = rng.standard_normal((WIDTH, D)) / 28, rng.standard_normal((CLASSES, WIDTH)) / 11
    b1, b2 = np.zeros(WIDTH), np.zeros(CLASSES)
    parameters = sum(each.size for each in (W1, W2, b1, b2))

    def run():
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
            rng.standard_normal(parameters)

    return run


def opacus(X, y, steps, *, mode, loaded):
    """Return a function that takes ``steps`` steps of Opacus, through its loader or without."""
    from itertools import islice

    import torch
    from opacus import PrivacyEngine
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(0)
    X, y = torch.from_numpy(X).float(), torch.from_numpy(y)
    model = torch.nn.Sequential(
        torch.nn.Linear(D, WIDTH), torch.nn.Tanh(), torch.nn.Linear(WIDTH, CLASSES)
    )
    parts = PrivacyEngine(accountant="rdp").make_private(
        module=model,
        optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
        data_loader=DataLoader(TensorDataset(X, y), batch_size=BATCH),
        criterion=torch.nn.CrossEntropyLoss(),
        noise_multiplier=1.0,
        max_grad_norm=1.0,
        poisson_sampling=True,
        grad_sample_mode=mode,
    )
    if mode == "ghost":
        model, optimizer, criterion, loader = parts
    else:
        (model, optimizer, loader), criterion = parts, torch.nn.CrossEntropyLoss()
    batches = [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, steps * BATCH, BATCH)]

    def run():
        for features, labels in islice(loader, steps) if loaded else batches:
            optimizer.zero_grad()
            criterion(model(features), labels).backward()
            optimizer.step()

    return run


def contestants(steps):
    """Functions that take ``steps`` steps each, by name."""
    X, y = records()
    runs = {"dpcal": ours(X, y, steps), "dpcal, gaussian": ours(X, y, steps, "gaussian")}
    runs |= {"yardstick": yardstick(X, y, steps)}
    if importlib.util.find_spec("opacus"):
        for mode in ("hooks", "ghost"):
            ghost = ", ghost" if mode == "ghost" else ""
            runs[f"Opacus{ghost}"] = opacus(X, y, steps, mode=mode, loaded=True)
            runs[f"Opacus{ghost}, batch in hand"] = opacus(X, y, steps, mode=mode, loaded=False)
    return runs


def measure(threads, *, steps=10, rounds=5):
    """Median milliseconds a step of each contestant, by processor and by clock."""
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(threads)
    runs = contestants(steps)
    times = {name: ([], []) for name in runs}
    for turn in range(rounds + 1):
        for name, run in runs.items():
            starts = time.process_time(), time.perf_counter()
            run()
            ends = time.process_time(), time.perf_counter()
            if turn:
                for taken, start, end in zip(times[name], starts, ends, strict=True):
                    taken.append((end - start) / steps * 1e3)
    return {
        name: {"processor": statistics.median(processor), "clock": statistics.median(clock)}
        for name, (processor, clock) in times.items()
    }


def in_process(threads):
    """Measure in a process whose BLAS has so many threads."""
    command = [sys.executable, "-m", "benchmarks.steps.mlp", "--threads", str(threads)]
    names = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
    # A thread that waits must not count as one that works.
    waiting = {"OMP_WAIT_POLICY": "passive"}
    environment = os.environ | dict.fromkeys(names, str(threads)) | waiting
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def report(found):
    for threads, times in found.items():
        mine = times["dpcal"]
        title = f"{threads} thread{'s' if threads > 1 else ''}, ms a step"
        print(f"| {title:28} | processor | over dpcal |  clock | over dpcal |")
        print(f"| {'-' * 28} | --------: | ---------: | -----: | ---------: |")
        for name, time_of in times.items():
            ratios = [time_of[kind] / mine[kind] for kind in ("processor", "clock")]
            print(
                f"| {name:28} | {time_of['processor']:9.2f} | {ratios[0]:10.2f} "
                f"| {time_of['clock']:6.2f} | {ratios[1]:10.2f} |"
            )
        print()
    if not any(name.startswith("Opacus") for name in times):
        print("opacus is not installed: skipped.")


def main():
    parser = argparse.ArgumentParser(description="Time private steps of a network.")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--threads", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.threads:
        warnings.simplefilter("ignore")
        print(json.dumps(measure(options.threads)))
        return
    found = {threads: in_process(threads) for threads in THREADS}
    if options.json:
        print(json.dumps(found))
    else:
        report(found)


if __name__ == "__main__":
    main()
