"""How fast and how exact are accountants, and where does each give up? Beside four packages.

    python -m benchmarks.accountants [--seconds 90] [--megabytes 4096] [--peers NAME ...] [--json]

Every question is put to dpcal, dp-accounting (PLD and RDP), prv-accountant, Opacus (RDP and PRV)
and autodp, as :mod:`benchmarks.peers` says, each in a process of its own on one thread: a small
question first, which pays for imports, then the question itself until a second has passed, ten
times at most. The table has the median processor time, its ratio to dpcal's, the answer and its
error against :mod:`benchmarks.truth`, the width of the interval where there is one, and the peak
resident memory of the process with the interpreter and all imports. Upper ends are what is
compared: an error below zero is a privacy claim that does not hold.

A question that takes more than ``--seconds`` of processor time or ``--megabytes`` of address space
ends there, and the table says so. Packages that are not installed are left out with a line that
says so; the extra ``bench`` gets them all.
"""

import argparse
import contextlib
import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
import warnings

from benchmarks.peers import PEERS

DELTA = 1e-6
BASE = [(0.01, 1.0, 10_000)]
DISTINCT = [(0.002 + 0.0001 * i, 0.8 + 0.005 * i) for i in range(200)]

# The steps (q, sigma, count) and delta of each question after epsilon.
EPSILONS = {
    "q = 0.01, sigma = 1, T = 10^4, delta = 1e-6": (BASE, DELTA),
    "the same, delta = 1e-15": (BASE, 1e-15),
    "the same, delta = 1e-30": (BASE, 1e-30),
    "200 distinct steps": ([(q, sigma, 1) for q, sigma in DISTINCT], DELTA),
    "200 distinct steps, 50 times each": ([(q, sigma, 50) for q, sigma in DISTINCT], DELTA),
    "sigma = 0.3, T = 1000": ([(0.01, 0.3, 1000)], DELTA),
    "sigma = 100, T = 10^8": ([(0.01, 100.0, 10**8)], DELTA),
    "sigma = 1, T = 10^8": ([(0.01, 1.0, 10**8)], DELTA),
}
CALIBRATION = "sigma for epsilon = 2, T = 10^4"
PROFILE = "delta at 1000 epsilons, T = 10^4"
GRID = "sigma for 100 epsilons, T = 10^4"
STEPS = "epsilon at T = 10^2, ..., 10^8"
TARGET = 2.0
PROFILE_DELTAS = (1e-3, 1e-6, 1e-12)
STEP_COUNTS = tuple(10**k for k in range(2, 9))
SMALL = [(0.01, 1.0, 10)]
FEWEST_SECONDS, SLOW_SECONDS, MOST_REPEATS = 1.0, 5.0, 10


# -- in a process of its own


def timed(call, *, repeats=MOST_REPEATS):
    """Median processor seconds of a call, and its answer.

    Short calls are timed many at once, for some clocks of processor time tick in milliseconds.
    """
    start = time.process_time()
    answer = call()
    first = time.process_time() - start
    together = math.ceil(FEWEST_SECONDS / repeats / max(first, 1e-3))
    # A first call of a second or so may have had to import what it needs.
    if first >= SLOW_SECONDS:
        return first, answer
    seconds = []
    while sum(seconds) * together < FEWEST_SECONDS and len(seconds) < repeats:
        start = time.process_time()
        for _ in range(together):
            call()
        seconds.append((time.process_time() - start) / together)
    return statistics.median(seconds), answer


def profile_points():
    """A thousand epsilons, among them the true ones of :data:`PROFILE_DELTAS`, and those."""
    import numpy as np

    from benchmarks import truth

    known = [truth.epsilon(BASE, delta) for delta in PROFILE_DELTAS]
    return np.sort([*np.linspace(0.02, 20.0, 1000 - len(known)), *known]), known


def ask(peer, question, given):
    """Put one question to one peer; what it takes is ``given``."""
    import numpy as np

    if question in EPSILONS:
        seconds, (lower, upper) = timed(lambda: peer.epsilon(*EPSILONS[question]))
        upper = float(upper)
        lower = None if lower is None else float(lower)
        return {"seconds": seconds, "answer": upper, "lower": lower}
    if question == CALIBRATION:
        ((q, _, count),) = BASE
        seconds, sigma = timed(lambda: peer.noise_multiplier(q, count, TARGET, DELTA))
        return {"seconds": seconds, "answer": float(sigma)}
    points, known = (np.array(each) for each in given)
    seconds, deltas = timed(lambda: peer.deltas(BASE, points))
    found = np.asarray(deltas)[np.searchsorted(points, known)]
    return {"seconds": seconds, "relative": [float(x) for x in found / PROFILE_DELTAS - 1.0]}


def grid():
    """Seconds for the noise multipliers of 100 targets."""
    import numpy as np

    from dpcal.accountants import events
    from dpcal.calibrate import noise_multipliers

    ((q, _, count),) = BASE

    def event(sigma):
        return events.dpsgd(sampling_probability=q, noise_multiplier=sigma, steps=count)

    targets = np.geomspace(0.5, 8.0, 100)
    return timed(lambda: noise_multipliers(event, epsilon=targets, delta=DELTA))[0]


def over_steps():
    """Median seconds of our epsilon at each T: at sigma = 1, and at sigma = sqrt(T) / 100."""
    peer, rows = PEERS["dpcal"], []
    for count in STEP_COUNTS:
        row = {"steps": count}
        for name, sigma in (("fixed", 1.0), ("scaled", max(1.0, math.sqrt(count) / 100))):
            steps = [(0.01, sigma, count)]
            seconds, (_, upper) = timed(lambda steps=steps: peer.epsilon(steps, DELTA))
            row[name] = {"seconds": seconds, "epsilon": upper}
        rows.append(row)
    return rows


def truths():
    """The answers in long double, by question."""
    from scipy.optimize import brentq

    from benchmarks import truth

    ((q, _, count),) = BASE
    found = {name: truth.epsilon(*asked) for name, asked in EPSILONS.items()}
    found[CALIBRATION] = brentq(
        lambda sigma: truth.epsilon([(q, sigma, count)], DELTA) - TARGET, 2.0, 3.0, xtol=1e-13
    )
    found[PROFILE] = [list(points) for points in profile_points()]
    return found


def child(name, question, given):
    """What one process finds out, as JSON on its standard output."""
    warnings.simplefilter("ignore")
    answer = {}
    try:
        with contextlib.redirect_stdout(sys.stderr):
            if name == "truth":
                answer["found"] = truths()
            elif question == GRID:
                answer["seconds"] = grid()
            elif question == STEPS:
                answer["rows"] = over_steps()
            else:
                PEERS[name].epsilon(SMALL, DELTA)
                answer = ask(PEERS[name], question, given)
    except MemoryError:
        answer["failed"] = "out of memory"
    except Exception as error:
        answer["failed"] = type(error).__name__
    # Linux counts kilobytes, macOS bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    answer["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    print(json.dumps(answer))


# -- the process that asks


def limited(seconds, megabytes):
    """Return what sets a new process's limits, on processor time and on address space."""

    def limit():
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        # macOS has no such limit.
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (megabytes * 2**20, megabytes * 2**20))

    return limit


def in_process(name, question, options, given=None):
    """Answer of a fresh process on one thread, or how it failed."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.accountants", "--child", name, "--question", question],
        input=json.dumps(given),
        text=True,
        capture_output=True,
        env=os.environ | dict.fromkeys(threads, "1"),
        preexec_fn=limited(options.seconds, options.megabytes),
        check=False,
    )
    if done.returncode == 0:
        answer = json.loads(done.stdout.splitlines()[-1])
        if answer.get("failed") == "out of memory":
            answer["failed"] = f"over {options.megabytes / 1024:g} GB"
        return answer
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return {"failed": f"over {options.seconds} s"}
    return {"failed": f"ended by {done.returncode}"}


def measure(options):
    true = in_process("truth", "", options)["found"]
    present = {
        name: peer for name, peer in PEERS.items() if peer.installed and name in options.peers
    }
    answers = {}
    for question in (*EPSILONS, CALIBRATION, PROFILE):
        given = true[PROFILE] if question == PROFILE else None
        for name, peer in present.items():
            if question == CALIBRATION and not peer.noise_multiplier:
                continue
            if question == PROFILE and not peer.deltas:
                continue
            answer = in_process(name, question, options, given)
            answers.setdefault(question, {})[name] = answer
            print(f"{question}: {PEERS[name].text}", file=sys.stderr, flush=True)
    return {
        "truth": true,
        "answers": answers,
        "grid": in_process("dpcal", GRID, options),
        "steps": in_process("dpcal", STEPS, options),
        "missing": sorted({peer.package for peer in PEERS.values() if not peer.installed}),
    }


# -- tables


def duration(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def row(peer, answer, ours, true):
    """The cells of one peer's row: time, ratio, answer, error, width, memory."""
    memory = f"{answer['megabytes']:.0f} MB" if "megabytes" in answer else ""
    if "failed" in answer:
        return [peer.text, answer["failed"], "", "", "", "", memory]
    cells = [peer.text, duration(answer["seconds"]), f"{answer['seconds'] / ours['seconds']:.3g}"]
    if "relative" in answer:
        worst = max(answer["relative"], key=abs)
        return [*cells, "", f"{worst:+.1e} (relative)", "", memory]
    if not math.isfinite(answer["answer"]):
        return [*cells, "infinite", "", "", memory]
    error, lower = answer["answer"] - true, answer.get("lower")
    width = "" if lower is None else f"{answer['answer'] - lower:.1e}"
    return [*cells, f"{answer['answer']:.10g}", f"{error:+.1e}", width, memory]


def table(title, rows):
    """Rows in Markdown, aligned for reading as they are."""
    head = [title, "processor time", "over dpcal", "answer", "error", "width", "memory"]
    lines = [head, *rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    lines.insert(1, ["-" * width for width in widths])
    for line in lines:
        cells = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        print("| " + " | ".join(cells) + " |")
    print()


def goals(results):
    """What this package sets out to reach, and what it measured here."""
    answers, true = results["answers"], results["truth"]
    base, tiny, tiniest, once, often = (list(answers.values())[i] for i in range(5))
    mine = [asked["dpcal"] for asked in answers.values()]
    for text, asked in (("once", once), ("50 times each", often)):
        seconds = asked["dpcal"]["seconds"]
        yield f"200 distinct steps {text}", f"{seconds * 1e3:.0f} ms", seconds <= 0.3, "300 ms"
        theirs = asked.get("pld", {}).get("seconds")
        if theirs:
            ratio = theirs / seconds
            yield f"  beside dp-accounting's PLD, {text}", f"{ratio:.0f} x", ratio >= 100, "100 x"
    digits = [
        -math.log10(max(abs(asked["dpcal"]["answer"] / true[name] - 1), 1e-16))
        for name, asked in answers.items()
        if name in EPSILONS
    ]
    yield "fewest correct digits", f"{min(digits):.1f}", min(digits) >= 8, "8"
    for text, asked in (("1e-15", tiny), ("1e-30", tiniest)):
        ratio = asked["dpcal"]["seconds"] / base["dpcal"]["seconds"]
        yield f"delta = {text} over delta = 1e-6", f"{ratio:.2f}", ratio <= 1.5, "1.5"
    seconds = answers[PROFILE]["dpcal"]["seconds"]
    yield "delta at 1000 epsilons", f"{seconds * 1e3:.1f} ms", seconds <= 0.02, "20 ms"
    seconds = results["grid"]["seconds"]
    yield "noise multipliers of 100 targets", f"{seconds * 1e3:.0f} ms", seconds <= 0.5, "500 ms"
    peak = max(each["megabytes"] for each in (*mine, results["grid"], results["steps"]))
    yield "largest memory of a process", f"{peak:.0f} MB", peak < 200, "200 MB"


def report(results):
    for package in results["missing"]:
        print(f"{package} is not installed: skipped.")
    for question, asked in results["answers"].items():
        true = results["truth"][question]
        if "failed" in asked["dpcal"]:
            raise SystemExit(f"dpcal failed in {question!r}: {asked['dpcal']['failed']}")
        table(
            question, [row(PEERS[name], each, asked["dpcal"], true) for name, each in asked.items()]
        )
    print("epsilon by dpcal at other T: sigma = 1, and sigma = sqrt(T) / 100 above T = 10^4")
    rows = results["steps"]["rows"]
    for each in rows:
        cells = (
            f"{each[name]['seconds'] * 1e3:8.3f} ms (epsilon {each[name]['epsilon']:.6g})"
            for name in ("fixed", "scaled")
        )
        print(f"T = {each['steps']:<10}", *cells)
    for name in ("fixed", "scaled"):
        times = [each[name]["seconds"] for each in rows]
        print(f"slowest over fastest, {name} sigma: {max(times) / min(times):.2f}")
    print("\ngoals of dpcal on one core")
    for text, found, met, bound in goals(results):
        print(f"{text:40}{found:>10}   {'met' if met else 'missed'} ({bound})")


def main():
    parser = argparse.ArgumentParser(description="Time accountants and calibration.")
    parser.add_argument("--seconds", type=int, default=90, help="processor time of one question")
    parser.add_argument("--megabytes", type=int, default=4096, help="address space of one question")
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), default=tuple(PEERS))
    parser.add_argument("--json", action="store_true", help="print JSON only")
    parser.add_argument("--child", dest="peer", help=argparse.SUPPRESS)
    parser.add_argument("--question", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    # Every ratio is to dpcal.
    options.peers = {"dpcal", *options.peers}
    if options.peer:
        child(options.peer, options.question, json.load(sys.stdin))
        return
    results = measure(options)
    if options.json:
        print(json.dumps(results))
    else:
        report(results)


if __name__ == "__main__":
    main()
