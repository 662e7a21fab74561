"""How long does correlated noise take, beside the independent normals that it is made from?

    python -m benchmarks.streams [--dimension D] [--json]

CPU time of a row, as a ratio to drawing the same normals with the same generator: medians over
interleaved rounds in one process, so that both see the same machine. ``replay`` draws again what
is otherwise stored, so it draws more normals and keeps no row.
"""

import argparse
import dataclasses
import json
import statistics
import time

ROUNDS = 15


def contestants(dimension):
    """Return streams by name, warmed up until they keep all the rows they ever will."""
    from dpcal.accountants.matrix import BISR, BLT, Banded, Identity, LambdaCGD, SquareRoot, Tree
    from dpcal.optim import NoiseStream

    # More rows than are read: a strategy's coefficients hardly depend on their number.
    steps = 20_000
    strategies = {
        "independent": (Identity(steps), {}),
        "lambda-CGD": (LambdaCGD(steps, 0.95), {}),
        "lambda-CGD, replay": (LambdaCGD(steps, 0.95), {"replay": True}),
        "BISR, 4 bands": (BISR(steps, 4), {}),
        "BISR, 4 bands, replay": (BISR(steps, 4), {"replay": True}),
        "banded, 4 bands": (Banded(steps, 4), {}),
        "banded, 16 bands": (Banded(steps, 16), {}),
        "square root, 32 bands": (SquareRoot(steps, 32), {}),
        "BLT, 4 buffers": (dataclasses.replace(BLT.optimised(2000, 4), steps=steps), {}),
        "tree": (Tree(steps), {}),
        "tree, efficient": (Tree(steps, efficient=True), {}),
    }
    streams = {
        name: NoiseStream(strategy, dimension, 0, **options)
        for name, (strategy, options) in strategies.items()
    }
    for stream in streams.values():
        # Past the first rows, whose memory is fresh and whose sums are short.
        for _ in range(33):
            next(stream)
    return streams


def measure(*, dimension):
    """Return CPU milliseconds of a row, by contestant, and of the bare normals."""
    import numpy as np

    streams = contestants(dimension)
    generator = np.random.Generator(np.random.Philox(0))
    out = np.empty(dimension)
    runs = {"normals": lambda: generator.standard_normal(out=out)}
    runs |= {name: lambda stream=stream: stream.read(out) for name, stream in streams.items()}
    # Wide bands read their rows once for four steps, so that steps are only alike by fours.
    repeats = 4 * min(300, max(1, 50_000 // dimension))
    times = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            start = time.process_time()
            for _ in range(repeats):
                run()
            times[name].append((time.process_time() - start) / repeats * 1e3)
    return {name: statistics.median(values) for name, values in times.items()}


def main():
    parser = argparse.ArgumentParser(description="Time noise streams against their normals.")
    parser.add_argument("--dimension", type=int, default=1_000_000)
    parser.add_argument("--json", action="store_true", help="print JSON only")
    options = parser.parse_args()
    times = measure(dimension=options.dimension)
    if options.json:
        print(json.dumps({"dimension": options.dimension, "milliseconds": times}))
        return
    print(f"rows of {options.dimension} numbers, CPU time")
    for name, value in times.items():
        print(f"{name:<24}{value:10.3f} ms   {value / times['normals']:6.2f} x normals")


if __name__ == "__main__":
    main()
