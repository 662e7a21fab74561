"""What breaks if a numeric constant is halved or doubled? Each in turn, over points of the sweep.

    python -m benchmarks.constants [--points 100] [--seed 7] [--slowest 0.3] [--only NAME ...]

The points are those of ``benchmarks.sweep`` that take less than ``--slowest`` seconds of processor
time with the constants as they are. For every numeric constant of the inversion and of the laws
under it, the same points are asked again with half and with twice the constant, in a process of
their own, because modules keep what they have computed. A row says

* ``wrong``: answers that raise, or are on the wrong side of an independent bound;
* ``apart``: answers that share no point with the answer before, of which one must be wrong;
* ``one end``: answers that lost their lower end, less those that gained one;
* ``wider``: answers more than twice as wide as before (and wider than 1e-13), less those half as
  wide;
* ``time``: the total processor time, relative to that before.

A constant of a kind of loss that the sweep does not draw changes nothing here.
"""

import argparse
import ast
import importlib
import json
import math
import multiprocessing
import pkgutil
import sys
import time

from benchmarks import sweep
from dpcal import accountants
from dpcal.accountants import inversion, losses

ROOMS = (inversion, losses)
MODULES = (
    "dpcal.accountants.characteristic",
    "dpcal.accountants.renyi",
    *(
        f"{room.__name__}.{item.name}"
        for room in ROOMS
        for item in pkgutil.iter_modules(room.__path__)
    ),
)
_NARROW = 1e-13
COUNTED = ("wrong", "apart", "one end", "wider", "changed")
HEAD = "{:58}{:>6}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8}"
ROW = "{:58}{:>6g}{:>8}{:>8}{:>8}{:>8}{:>8}{:>8.2f}"


def constants(name):
    """Return the numeric constants of a module by name, but those that others are derived from.

    What is derived is computed when the module is loaded, and would not change with its source.
    """
    module = importlib.import_module(name)
    with open(module.__file__, encoding="utf-8") as file:
        tree = ast.parse(file.read())
    found = {}
    assigned = [node for node in tree.body if isinstance(node, ast.Assign)]
    sources = {n.id for node in assigned for n in ast.walk(node.value) if isinstance(n, ast.Name)}
    for node in assigned:
        targets = node.targets[0]
        for target in targets.elts if isinstance(targets, ast.Tuple) else [targets]:
            if isinstance(target, ast.Name) and target.id.lstrip("_").isupper():
                value = getattr(module, target.id)
                if is_numeric(value) and target.id not in sources:
                    found[target.id] = value
    return found


def is_numeric(value):
    """Return whether a value is a number, or a tuple of numbers or of tuples of them."""
    if isinstance(value, tuple):
        return bool(value) and all(map(is_numeric, value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def scaled(value, factor):
    """Return a constant times a factor, a whole number where it was one."""
    if isinstance(value, tuple):
        return tuple(scaled(part, factor) for part in value)
    return max(1, round(value * factor)) if isinstance(value, int) else value * factor


def change(module, name, factor):
    """Scale a constant in its module, and wherever it was imported."""
    old = getattr(sys.modules[module], name)
    new = scaled(old, factor)
    for other in [m for key, m in sys.modules.items() if key.startswith("dpcal.")]:
        if vars(other).get(name) is old:
            setattr(other, name, new)


def ask(points, seconds):
    """Return for each point its interval and time, or None where it raises or takes too long."""
    rows = []
    for point in points:
        start = time.process_time()
        try:
            with sweep.at_most(seconds):
                answer = sweep.ask(point)
                taken = time.process_time() - start
                wrong = bool(sweep.problems(point, answer)[0])
        except Exception:
            rows.append(None)
            continue
        rows.append((answer.lower, answer.upper, taken, wrong))
    return rows


def in_a_process(task):
    """Return what a task returns, computed in a fork of this process."""

    def work():
        ours.send(task())

    context = multiprocessing.get_context("fork")
    theirs, ours = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    ours.close()
    try:
        return theirs.recv()
    except EOFError:
        return None
    finally:
        process.join()


def compared(before, after):
    """Return the numbers of a row."""
    counts = dict.fromkeys(COUNTED, 0)
    spent = [0.0, 0.0]
    for old, new in zip(before, after, strict=True):
        if new is None or new[3]:
            counts["wrong"] += 1
            continue
        spent[0] += old[2]
        spent[1] += new[2]
        counts["changed"] += old[:2] != new[:2]
        counts["apart"] += new[1] < old[0] or old[1] < new[0]
        ends = math.isfinite(old[0]), math.isfinite(new[0])
        counts["one end"] += ends[0] - ends[1]
        if all(ends):
            widths = [max(high - low, _NARROW) for low, high, *_ in (old, new)]
            counts["wider"] += (widths[1] > 2 * widths[0]) - (widths[0] > 2 * widths[1])
    return {**counts, "time": spent[1] / max(spent[0], 1e-9)}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("--points", type=int, default=100)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--slowest", type=float, default=0.3)
    parser.add_argument("--only", nargs="*", metavar="NAME")
    parser.add_argument("--file", help="where to append each row as a line of JSON")
    given = parser.parse_args()
    assert accountants.epsilon  # All modules below are loaded before the first fork.
    table = {name: constants(name) for name in MODULES}
    points = [sweep.draw(given.seed, index) for index in range(2 * given.points)]
    timed = in_a_process(lambda: ask(points, given.slowest))
    chosen = [p for p, row in zip(points, timed, strict=True) if row and not row[3]]
    chosen = chosen[: given.points]
    before = in_a_process(lambda: ask(chosen, 10.0))
    print(f"{len(chosen)} points, {sum(row[2] for row in before):.1f} s")
    print(HEAD.format("constant", "times", *COUNTED, "time"))
    for module, names in table.items():
        for name in names:
            if given.only and name not in given.only:
                continue
            for factor in (0.5, 2.0):

                def task(module=module, name=name, factor=factor):
                    change(module, name, factor)
                    return ask(chosen, 10.0)

                after = in_a_process(task) or [None] * len(chosen)
                row = compared(before, after)
                label = f"{module.removeprefix('dpcal.accountants.')}.{name}"
                print(ROW.format(label, factor, *row.values()), flush=True)
                if given.file:
                    with open(given.file, "a", encoding="utf-8") as file:
                        print(json.dumps({"constant": label, "times": factor, **row}), file=file)


if __name__ == "__main__":
    main()
