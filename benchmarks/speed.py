"""Times of questions, starts, plans and runs, next to other packages and next to numpy.

    python -m benchmarks.speed [--seconds 6] [--peers NAME ...]

Each accountant of :mod:`benchmarks.peers` answers in
one process of its own, on one thread, after a small question that pays for imports; a package that
this interpreter lacks gets a virtual environment under ``build/corpus/environments``. Times are of
the processor, medians of several calls, and the tables show them as ratios: to dpcal's in the same
run, and to the complex exponentials of 60 x 60 numbers by numpy. A question that takes more than
``--seconds`` ends there.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

from benchmarks.limits import TooSlow, at_most
from benchmarks.peers import PEERS

DELTA = 1e-6
COMMON = (0.013, 1.07, 9_000)
DISTINCT = [(0.002 + 0.0001 * i, 0.8 + 0.005 * i) for i in range(200)]
ON_PYPI = {
    "dp_accounting": "dp-accounting",
    "jax_privacy": "jax-privacy",
    "prv_accountant": "prv-accountant",
}

# Steps (q, sigma, count) and delta.
EPSILONS = {
    "epsilon: q = .013, sigma = 1.07, T = 9000, delta = 1e-6": ([COMMON], DELTA),
    "the same, delta = 1e-15": ([COMMON], 1e-15),
    "sigma = 100, T = 10^8": ([(0.01, 100.0, 10**8)], DELTA),
    "200 distinct steps": ([(q, sigma, 1) for q, sigma in DISTINCT], DELTA),
    "200 distinct steps, 50 times each": ([(q, sigma, 50) for q, sigma in DISTINCT], DELTA),
}
NOISE = "sigma for epsilon = 2, q = .013, T = 9000"
FEWEST_SECONDS = 0.25

TEXT = """\
Made on {date}. One unit is the time of numpy's complex exponentials of 60 x 60 numbers, {unit} in
this run.

{rows}

{starts}

{runs}"""


def timed(call):
    """Return the median processor seconds of a call, and its answer.

    Short calls are timed many at once, for the clock of a process under an alarm ticks every 4 ms.
    """
    start = time.process_time()
    answer = call()
    first = time.process_time() - start
    seconds, together = [first], 1
    while first < FEWEST_SECONDS and sum(seconds) * together < FEWEST_SECONDS:
        start = time.process_time()
        for _ in range(together):
            call()
        took = time.process_time() - start
        if took < FEWEST_SECONDS / 2:
            seconds, together = [], 2 * together
        else:
            seconds.append(took / together)
    return statistics.median(seconds), answer


def tried(call, seconds):
    """Return seconds and the answer as JSON values, or how the call failed."""
    try:
        with at_most(seconds):
            found, answer = timed(call)
    except TooSlow:
        return {"failed": f"over {seconds:g} s"}
    except NotImplementedError:
        return {"failed": "not offered"}
    # A package's refusal may be any exception.
    except Exception as error:
        return {"failed": type(error).__name__}
    return {"seconds": found, "answer": None if answer is None else float(answer)}


def child(name, seconds):
    """Print the answers of one accountant as JSON."""
    import numpy as np

    warnings.simplefilter("ignore")
    peer, ((q, _, count),) = PEERS[name], [COMMON]
    out, sys.stdout = sys.stdout, sys.stderr
    numbers = np.random.default_rng(0).standard_normal((60, 60)) + 1j
    found = {"numpy": timed(lambda: np.exp(numbers) is None)[0]}
    peer.epsilon([(0.01, 1.0, 10)], DELTA)
    for text, (steps, delta) in EPSILONS.items():
        found[text] = tried(lambda s=steps, d=delta: peer.epsilon(s, d)[1], seconds)
    if peer.noise_multiplier:
        found[NOISE] = tried(lambda: peer.noise_multiplier(q, count, 2.0, DELTA), seconds)
    print(json.dumps(found), file=out)


def processor_of(*words):
    """Return the least processor seconds of three runs of Python with these words."""
    # An installed package has its byte code, whatever this process was told.
    kept = os.environ | {"PYTHONDONTWRITEBYTECODE": ""}

    def once():
        before = _children()
        subprocess.run([sys.executable, *words], check=True, capture_output=True, env=kept)
        return _children() - before

    return min(once() for _ in range(3))


def _children():
    """Return the processor seconds of all processes that were started and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def starts():
    """Return processor seconds of the starts of Python with numpy and with this package."""
    question = ("--sampling-probability", ".01", "--noise-multiplier", "1", "--steps", "9000")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        _write_table(path)
        schema = str(path.with_suffix(".toml"))
        train = ("train", str(path), "--schema", schema, "--target", "y", "--epsilon", "1")
        report = ("--delta", "1e-6", "--output", str(Path(folder) / "report"), "--force")
        return {
            "`import numpy`": processor_of("-c", "import numpy"),
            "`dpcal --help`": processor_of("-m", "dpcal", "--help"),
            "`from dpcal.accountants import epsilon, events`": processor_of(
                "-c", "from dpcal.accountants import epsilon, events"
            ),
            "`dpcal epsilon ...`": processor_of(
                "-m", "dpcal", "epsilon", *question, "--delta", "1e-6"
            ),
            "`dpcal train`, 30,000 rows of 20 columns, all in all": processor_of(
                "-m", "dpcal", *train, *report
            ),
        }


def _write_table(path):
    import numpy as np

    rng = np.random.default_rng(0)
    X = rng.standard_normal((30_000, 20)).clip(-3, 3)
    y = X @ rng.standard_normal(20) + rng.standard_normal(30_000) > 0
    names = ",".join([*(f"x{i}" for i in range(20)), "y"])
    rows = np.column_stack([X, y])
    np.savetxt(path, rows, delimiter=",", fmt="%.4f", header=names, comments="")
    columns = [f"[columns.x{i}]\ntype = 'number'\nrange = [-3, 3]\n" for i in range(20)]
    path.with_suffix(".toml").write_text("".join(columns) + "[columns.y]\ntype = 'number'\n")


def plans_and_runs():
    """Return seconds of each optimizer's plan with its objective, its epsilon, a run's opening."""
    from benchmarks.overhead import CASES, prepared

    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CASES.values():
            _, objective, plan, run = prepared(*case)

            def opening(objective=objective, plan=plan, run=run):
                run(objective, plan, callback=lambda _: True, callback_every=1)

            made = timed(lambda case=case: prepared(*case) is None)[0]
            rows.setdefault(case[0], (made, timed(plan.price)[0], timed(opening)[0]))
    return rows


def ours():
    """Print the measurements of this package only, as JSON."""
    print(json.dumps({"runs": plans_and_runs()}))


def python_of(peer):
    """Return an interpreter that has a peer's package, perhaps of an environment made for it."""
    from benchmarks.corpus.scoring import interpreter

    return (
        sys.executable if peer.installed else interpreter(ON_PYPI.get(peer.package, peer.package))
    )


def in_process(python, *words):
    """Return the JSON values that a process on one thread prints."""
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    done = subprocess.run(
        [python, "-m", "benchmarks.speed", *words],
        text=True,
        stdout=subprocess.PIPE,
        env=os.environ | dict.fromkeys(threads, "1"),
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def measured(options):
    """Return everything that the tables show."""
    found = {"answers": {}, "started": time.strftime("%Y-%m-%d")}
    for name in options.peers:
        start = _children()
        words = ("--child", name, "--seconds", str(options.seconds))
        found["answers"][name] = in_process(python_of(PEERS[name]), *words)
        spent = f"{_children() - start:.0f} s of the processor"
        print(f"{PEERS[name].text}: {spent}", file=sys.stderr, flush=True)
    return found | in_process(sys.executable, "--ours") | {"starts": starts()}


def duration(seconds):
    """Return a time with its unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} us"


def cell(answer, own):
    """Return a peer's time over ours, and how far its answer lies above ours."""
    if answer is None:
        return ""
    if "failed" in answer:
        return answer["failed"]
    ratio = f"{answer['seconds'] / own['seconds']:.3g}"
    if abs(answer["answer"]) == float("inf"):
        return f"{ratio}, infinite"
    return f"{ratio}, {answer['answer'] / own['answer'] - 1:+.0e}"


def lines_of(rows):
    """Return rows as a table in Markdown, the first of them its head."""
    head, *rest = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *rest])


def page(found):
    """Return the tables."""
    own = found["answers"]["dpcal"]
    others = [name for name in found["answers"] if name != "dpcal"]
    rows = [["", "dpcal", "in numpy's", *(PEERS[name].text for name in others)]]
    for question in (*EPSILONS, NOISE):
        mine = own[question]
        cells = [cell(found["answers"][name].get(question), mine) for name in others]
        units = f"{mine['seconds'] / own['numpy']:.3g}"
        rows.append([question, duration(mine["seconds"]), units, *cells])
    first = found["starts"]["`import numpy`"]
    begun = [["start", "processor time", "over `import numpy`"]]
    begun += [[name, duration(t), f"{t / first:.2f}"] for name, t in found["starts"].items()]
    run = [["optimizer", "plan and objective", "its price", "opening and first step of a run"]]
    run += [[f"`{name}`", *map(duration, each)] for name, each in found["runs"].items()]
    return TEXT.format(
        date=found["started"],
        unit=duration(own["numpy"]),
        rows=lines_of(rows),
        starts=lines_of(begun),
        runs=lines_of(run),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=6.0, help="most seconds of a question")
    parser.add_argument("--peers", nargs="+", choices=tuple(PEERS), default=tuple(PEERS))
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--ours", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.child, options.seconds)
    elif options.ours:
        ours()
    else:
        options.peers = dict.fromkeys(["dpcal", *options.peers])
        print(page(measured(options)))


if __name__ == "__main__":
    main()
