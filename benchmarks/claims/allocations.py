"""Is every random allocation priced closely and fast? Random settings from a wide box.

    python -m benchmarks.claims.allocations [--points 100] [--seed 0] [--limit 20] [--order]
                                           [--file FILE]

Noise multipliers from 0.05 to 100, up to a million batches and 10,000 epochs, delta from 1e-12 to
1e-3, all uniform in their logarithms. The report says how many answers are within 1e-6 of their
own size, how many take more than a second, and which methods answer. With ``--order`` it also asks
for more batches, fewer epochs, more noise and a larger delta at every setting, which must not cost
more: no lower end may lie above the setting's upper end.

Times are processor times of one core. With ``--file``, answers are kept as lines of JSON, and those
that are there are not asked again, nor are their neighbors: a long run may be stopped and resumed.
"""

import argparse
import json
import math
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np

from dpcal.accountants import epsilon as epsilon_of, events

SECONDS, WIDTH = 1.0, 1e-6


def settings(points, seed):
    """Return tuples (sigma, batches, epochs, delta); the first ones do not depend on how many."""
    rng = np.random.default_rng(seed)
    low, high = np.log([0.05, 1, 1, 1e-12]), np.log([100, 1e6, 1e4, 1e-3])
    for row in np.exp(rng.uniform(low, high, size=(points, 4))):
        yield float(row[0]), round(row[1]), round(row[2]), float(row[3])


def answer(setting, limit):
    """Return lower end, upper end, method and seconds of one setting."""
    sigma, batches, epochs, delta = setting
    event = events.SelfComposedDpEvent(events.RandomAllocationDpEvent(sigma, batches), epochs)
    begin = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, limit)
    try:
        found = epsilon_of(event, delta=delta)
        ends = found.lower, found.upper, found.method
    except TimeoutError:
        ends = 0.0, math.inf, "stopped"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return *ends, time.process_time() - begin


def stop(*_):
    """End a question that takes too long."""
    raise TimeoutError


def disorder(setting, ends, limit):
    """Return the names of arguments along which bounds contradict monotonicity."""
    sigma, batches, epochs, delta = setting
    cheaper = {
        "batches": (sigma, batches + 1 + batches // 50, epochs, delta),
        "noise": (1.02 * sigma, batches, epochs, delta),
        "delta": (sigma, batches, epochs, min(1.1 * delta, 0.5)),
        "epochs": (sigma, batches, max(1, epochs - 1 - epochs // 50), delta),
    }
    return [name for name, near in cheaper.items() if answer(near, limit)[0] > ends[1]]


def width(ends):
    """Return the width relative to the upper end."""
    return (ends[1] - ends[0]) / ends[1] if 0 < ends[1] < math.inf else float(ends[1] > 0)


def measured(setting, limit):
    """Return the row of a setting: its answer, width and seconds."""
    *ends, seconds = answer(setting, limit)
    return {"setting": setting, "ends": ends, "width": width(ends), "seconds": seconds}


def kept_in(path):
    """Return the rows of a file by their settings; the last one of a setting counts.

    A line that a stopped run left unfinished is left out, and ended.
    """
    if path is None or not path.exists():
        return {}
    *lines, last = path.read_text().split("\n")
    if last:
        path.write_text("".join(f"{line}\n" for line in lines))
    return {tuple(row["setting"]): row for row in map(json.loads, lines)}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims.allocations")
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--limit", type=float, default=20.0, help="seconds of processor a setting")
    parser.add_argument("--order", action="store_true", help="ask neighboring settings, too")
    parser.add_argument("--file", type=Path)
    args = parser.parse_args()
    signal.signal(signal.SIGPROF, stop)
    answer((1.0, 2, 1, 1e-5), args.limit)
    methods, wide, slow, wrong = Counter(), [], [], []
    known = kept_in(args.file)
    for setting in settings(args.points, args.seed):
        row = known.get(setting)
        if row is None or (args.order and "disorder" not in row):
            row = row or measured(setting, args.limit)
            if args.order:
                row["disorder"] = disorder(setting, row["ends"], args.limit)
            if args.file:
                with args.file.open("a") as file:
                    file.write(json.dumps(row) + "\n")
        ends, seconds = row["ends"], row["seconds"]
        methods[ends[2].split(", relative")[0]] += 1
        text = "sigma {:.4g}, M {}, E {}, delta {:.2e}: ".format(*setting)
        text += f"{ends[2]}, {row['width']:.0e}, {seconds:.2f} s"
        if row["width"] > WIDTH:
            wide.append(text)
        elif seconds > SECONDS:
            slow.append(text)
        for name in row["disorder"] if args.order else ():
            wrong.append(f"{name}: {text}")
    reports = [("wider than 1e-6", wide), ("close, but slow", slow)]
    for name, rows in [*reports, *([("out of order", wrong)] if args.order else [])]:
        print(f"{name}: {len(rows)} of {args.points}")
        print(*(f"  {row}" for row in rows), sep="\n")
    print(*(f"{count} {name}" for name, count in methods.most_common()), sep="; ")


if __name__ == "__main__":
    main()
