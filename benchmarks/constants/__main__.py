"""What changes if a numeric constant is halved or doubled? Each in turn, in a process of its own.

    python -m benchmarks.constants [--only WORD ...] [--file FILE] [--page PAGE]

Constants are the numbers (tuples and arrays of numbers) that modules of ``dpcal.accountants``, and
those of ``dpcal.calibrate`` that make plans, give an upper-case name. The questions are those of
:mod:`benchmarks.constants.questions`. A first pass asks each of them once and notes which functions
it runs; so a constant is only tried on questions that run a function that reads it, or that reads a
constant derived from it. Of these some cheap ones are asked (``FEW``); where nothing changes, also
dearer ones (``MORE``).

A child process changes the source of one module while it is imported, so that derived constants,
defaults of arguments and imports from other modules follow. It has a limit of memory and of
processor time, and sends each answer as it comes: a child that dies leaves the answers before. Each
row is appended to ``--file`` at once, and constants that stand there are not asked again.

* ``wrong``: answers that raise, do not come, or are on the wrong side of an independent bound;
* ``apart``: answers that share no point with the answer before, of which one must be wrong; a
  calibrated number counts where it moved by more than a thousandth;
* ``lost``: answers that lost an end, less those that gained one;
* ``wider``: answers more than twice as wide as before (and wider than 1e-13), less those half as
  wide;
* ``changed``: answers that changed at all;
* ``moved``: the largest relative change of an upper end;
* ``time``: the total processor time, relative to that before.
"""

import argparse
import ast
import copy
import dataclasses
import importlib.machinery
import importlib.util
import json
import math
import multiprocessing
import pickle
import resource
import sys
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.constants.readers import assigned, readers, sources

# A question that takes longer, in seconds of processor, is not asked again.
SLOWEST = 2.0
# Seconds of questions for a constant, and of each; and those where none of these answers changed.
FEW, MORE = (0.8, 0.08), (2.0, SLOWEST)
# Limits of a child: bytes of address space, and seconds of processor beside those of its questions.
MEMORY, SPARE = 6 << 30, 20
_NARROW, _CLOSE = 1e-13, 1e-3
COUNTED = ("wrong", "apart", "lost", "wider", "changed")
HEAD = "{:58}{:>6}{:>8}" + "{:>8}" * len(COUNTED) + "{:>10}{:>8}"
ROW = "{:58}{:>6g}{:>8}" + "{:>8}" * len(COUNTED) + "{:>10.1e}{:>8.2f}"


def is_numeric(value):
    """Return whether a value is a number, an array, or a tuple of numbers or of tuples of them."""
    if isinstance(value, tuple):
        return bool(value) and all(map(is_numeric, value))
    if isinstance(value, np.ndarray):
        return value.size > 0 and value.dtype.kind in "if"
    return isinstance(value, int | float) and not isinstance(value, bool)


def scaled(value, factor):
    """Return a constant times a factor, a whole number where it was one."""
    if isinstance(value, tuple):
        return tuple(scaled(part, factor) for part in value)
    if isinstance(value, int):
        return max(1, round(value * factor))
    return value * factor


def changed(factor, value, field):
    """Return a constant times a factor; of a record, the one with this field times the factor."""
    if not field:
        return scaled(value, factor)
    number = scaled(getattr(value, field), factor)
    if dataclasses.is_dataclass(value):
        return dataclasses.replace(value, **{field: number})
    other = copy.copy(value)
    setattr(other, field, number)
    return other


def fields_of(value):
    """Return the names of a record's fields: of a dataclass, or of a class of plain numbers."""
    if isinstance(value, type):
        return []
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value)]
    return [
        name for name in vars(type(value)).get("__annotations__", ()) if name in vars(type(value))
    ]


# -- a child process


class Changed(importlib.machinery.SourceFileLoader):
    """Loads a module whose constant is scaled where it is assigned."""

    def __init__(self, fullname, path, constant, factor):
        super().__init__(fullname, path)
        self.constant, self.factor = constant, factor

    def get_code(self, fullname):
        """Return the module's code, compiled from the changed source whatever is cached."""
        tree = ast.parse(self.get_data(self.path))
        name, _, field = self.constant.partition(".")
        text = f"{name} = __import__('builtins').__scaled__({name}, {field!r})"
        for index, node in enumerate(tree.body):
            if name in assigned(ast.Module([node], [])):
                inserted = ast.parse(text).body[0]
                for each in ast.walk(inserted):
                    ast.copy_location(each, node)
                tree.body.insert(index + 1, inserted)
                break
        sys.modules["builtins"].__scaled__ = partial(changed, self.factor)
        return compile(tree, self.path, "exec", dont_inherit=True)


class Finder:
    """Finds the module whose constant is scaled, before other finders do."""

    def __init__(self, module, constant, factor):
        self.module, self.change = module, (constant, factor)

    def find_spec(self, fullname, path=None, target=None):
        """Return the spec of the one module, and leave the others to other finders."""
        if fullname != self.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        loader = Changed(fullname, spec.origin, *self.change)
        return importlib.util.spec_from_file_location(fullname, spec.origin, loader=loader)


def in_a_child(task, seconds):
    """Return what a task yields in a fork of this process, up to where it ended or died."""

    def work():
        warnings.simplefilter("ignore")
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        most = math.ceil(seconds) + SPARE
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
        for item in task():
            ours.send_bytes(pickle.dumps(item))

    context = multiprocessing.get_context("fork")
    theirs, ours = context.Pipe(duplex=False)
    process = context.Process(target=work)
    process.start()
    ours.close()
    found, last = [], time.monotonic() + 4 * (seconds + SPARE)
    try:
        while theirs.poll(max(0.0, last - time.monotonic())):
            found.append(pickle.loads(theirs.recv_bytes()))
    except (EOFError, OSError):
        pass
    finally:
        process.kill()
        process.join()
    return found


def asked(names, change=None):
    """Return the task that asks questions: for each name, intervals and seconds, or None."""

    def task():
        if change is not None:
            sys.meta_path.insert(0, Finder(*change))
        from benchmarks.constants.questions import questions, sweep

        table = questions()
        for name in names:
            start = time.process_time()
            try:
                with sweep.at_most(3 * SLOWEST):
                    found = table[name]()
            # Whatever is raised counts as wrong; what was raised is not needed.
            except Exception:
                found = None
            yield name, found, time.process_time() - start

    return task


def traced():
    """Yield each question's time and the functions that it runs, each in forks of one process.

    A question is asked once in a fork, since answers that are kept from the first time hide which
    functions they take.
    """
    from benchmarks.constants.questions import questions, sweep

    def timed(ask):
        def task():
            start = time.process_time()
            try:
                with sweep.at_most(SLOWEST):
                    ask()
            # A question that raises is not asked.
            except Exception:
                return
            yield time.process_time() - start

        return task

    def followed(ask):
        def task():
            seen = set()

            def note(frame, kind, _):
                if kind == "call":
                    code = frame.f_code
                    seen.add((code.co_filename, code.co_firstlineno))

            sys.setprofile(note)
            try:
                ask()
            finally:
                sys.setprofile(None)
            yield {each for each in seen if "dpcal" in each[0]}

        return task

    for name, ask in questions().items():
        for taken in in_a_child(timed(ask), SLOWEST):
            for seen in in_a_child(followed(ask), 10 * SLOWEST):
                yield name, taken, seen


# -- comparisons


def compared(before, after):
    """Return the numbers of a row."""
    counts = dict.fromkeys(COUNTED, 0)
    moved, spent = 0.0, [0.0, 0.0]
    later = {name: (found, taken) for name, found, taken in after}
    answers = 0
    for name, olds, old_taken in before:
        if olds is None:
            continue
        answers += 1
        news, taken = later.get(name, (None, 0.0))
        if news is None or len(news) != len(olds):
            counts["wrong"] += 1
            continue
        spent[0] += old_taken
        spent[1] += taken
        pairs = list(zip(olds, news, strict=True))
        counts["changed"] += any(tuple(old) != tuple(new) for old, new in pairs)
        for key, of_pair in (("apart", apart), ("lost", lost), ("wider", wider)):
            found = [of_pair(old, new) for old, new in pairs]
            counts[key] += max(found) if max(found) > 0 else min(found)
        moved = max(moved, *(change(old[1], new[1]) for old, new in pairs))
    return {"answers": answers, **counts, "moved": moved, "time": spent[1] / max(spent[0], 1e-9)}


def change(old, new):
    """Return the relative change of an end."""
    if old == new or not (math.isfinite(old) and math.isfinite(new)):
        return 0.0
    return abs(new - old) / max(abs(old), 1e-300)


def apart(old, new):
    """Return 1 where two intervals share no point; numbers without bounds may differ a little."""
    if old[0] == old[1] and new[0] == new[1]:
        return int(change(old[0], new[0]) > _CLOSE)
    return int(new[1] < old[0] or old[1] < new[0])


def lost(old, new):
    """Return how many ends an interval lost."""
    return sum(map(math.isfinite, old)) - sum(map(math.isfinite, new))


def wider(old, new):
    """Return 1 where an interval became twice as wide, and -1 where half as wide."""
    if not all(map(math.isfinite, (*old, *new))):
        return 0
    widths = [max(float(high - low), _NARROW) for low, high in (old, new)]
    return (widths[1] > 2 * widths[0]) - (widths[0] > 2 * widths[1])


def some(relevant, seconds, dearest):
    """Return questions of about so many seconds in all, cheap ones and up to the dearest."""
    ordered = sorted((taken, name) for name, taken in relevant.items())
    ordered = [each for each in ordered if each[0] <= dearest] or ordered[:1]
    for count in range(len(ordered), 0, -1):
        chosen = {ordered[int(i)] for i in np.linspace(0, len(ordered) - 1, count)}
        if sum(taken for taken, _ in chosen) <= seconds:
            return [name for _, name in sorted(chosen)]
    return [name for _, name in ordered[:1]]


class Study:
    """Asks questions before and after, and remembers those before."""

    def __init__(self, file):
        self.file, self.befores, self.rows = file, {}, []
        if file.exists():
            self.rows = [json.loads(line) for line in file.read_text().splitlines()]

    def row(self, label, factor, **numbers):
        """Keep and print a row."""
        self.rows.append({"constant": label, "times": factor, **numbers})
        with self.file.open("a", encoding="utf-8") as file:
            print(json.dumps(self.rows[-1]), file=file)
        print(ROW.format(label, factor, *numbers.values()), flush=True)

    def traced(self):
        """Return the questions' times and functions, from a file beside the rows if it is there."""
        file = self.file.with_suffix(".traced")
        if not file.exists():
            file.write_bytes(pickle.dumps(in_a_child(traced, 3000.0)))
        return pickle.loads(file.read_bytes())

    def before(self, names):
        """Return the answers with the constants as they are, each asked once."""
        left = [name for name in names if name not in self.befores]
        if left:
            found = in_a_child(asked(left), 3 * sum(MORE))
            self.befores.update((each[0], each) for each in found)
        return [self.befores[name] for name in names if name in self.befores]

    def constant(self, module, name, relevant):
        """Ask with half and with twice of a constant."""
        label = f"{module.removeprefix('dpcal.').removeprefix('accountants.')}.{name}"
        for factor in (0.5, 2.0):
            if any((row["constant"], row["times"]) == (label, factor) for row in self.rows):
                continue
            numbers, asked_before = None, None
            for seconds, dearest in (FEW, MORE):
                names = some(relevant, seconds, dearest)
                if names == asked_before:
                    break
                asked_before = names
                before = self.before(names)
                after = in_a_child(asked(names, (module, name, factor)), 3 * seconds)
                numbers = compared(before, after)
                if numbers["changed"] or numbers["wrong"]:
                    break
            if numbers is None:
                numbers = compared([], [])
            self.row(label, factor, **numbers)


# -- the page

HEADING = "## Each constant\n"
EFFECTS = (
    ("wrong", "fail"),
    ("apart", "share no point with the answer before"),
    ("lost", "lose an end"),
    ("wider", "become wider"),
)


def effect(row):
    """Return what a row says, in words."""
    if not row["answers"]:
        return "not asked"
    found = [f"{row[key]} {words}" for key, words in EFFECTS if row[key] > 0]
    if not found and row["changed"]:
        found = [f"{row['changed']} change by up to {row['moved']:.0e}"]
    return f"of {row['answers']}: {', '.join(found)}" if found else "nothing changes"


def effects(rows):
    """Return for each constant what half and twice of it do, and on how many answers."""
    found = {}
    for row in rows:
        half, twice, answers = found.get(row["constant"], ("", "", 0))
        half, twice = (effect(row), twice) if row["times"] < 1 else (half, effect(row))
        found[row["constant"]] = half, twice, max(answers, row["answers"])
    return found


def page(found):
    """Return the part of the page below its heading: those that change answers, and the others."""
    nothing = ("nothing changes", "not asked", "")
    quiet = {label: each for label, each in found.items() if {*each[:2]} <= {*nothing}}
    lines = ["| constant | half of it | twice of it |", "|---|---|---|"]
    for label, (half, twice, _) in sorted(found.items()):
        if label not in quiet:
            lines.append(f"| `{label}` | {half} | {twice} |")
    lines += ["", "Those that change nothing (in brackets: of how many answers):", ""]
    rooms = {}
    for label, (*_, answers) in sorted(quiet.items()):
        module, _, name = label.rpartition(".")
        rooms.setdefault(module, []).append(f"`{name}` ({answers})")
    lines += [f"* `{module}`: {', '.join(names)}" for module, names in rooms.items()]
    return "\n".join([*lines, ""])


def write(path, rows):
    """Write the rows into a page, below the heading that it has or gets."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    above = text.partition(HEADING)[0]
    path.write_text(f"{above}{HEADING}\n{page(effects(rows))}", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.constants", description=__doc__)
    parser.add_argument("--only", nargs="*", metavar="WORD", help="parts of names to be asked")
    parser.add_argument("--file", default="constants.jsonl", help="rows, one a line; to go on")
    parser.add_argument("--page", metavar="PAGE", help="write the rows of the file into a page")
    given = parser.parse_args()
    study = Study(Path(given.file))
    if given.page:
        write(Path(given.page), study.rows)
        return
    # Libraries are loaded once; a child loads dpcal itself.
    for name in ("scipy.special", "scipy.optimize", "scipy.signal", "scipy.stats", "scipy.linalg",
                 "scipy.fft", "attr", "flint", "dp_accounting"):  # fmt: skip
        importlib.import_module(name)
    modules = sources()
    reads = readers(modules)
    seen = study.traced()
    print(f"{len(seen)} questions, {sum(taken for _, taken, _ in seen):.1f} s", flush=True)
    print(HEAD.format("constant", "times", "answers", *COUNTED, "moved", "time"), flush=True)
    for module, name in numeric(modules):
        if given.only and not any(word in f"{module}.{name}" for word in given.only):
            continue
        relevant = {
            each: taken for each, taken, ran in seen if ran & reads[module, name.partition(".")[0]]
        }
        study.constant(module, name, relevant)


def numeric(modules):
    """Return the modules and names of constants that are numbers, read in one child process."""

    def task():
        for module, (_, tree) in modules.items():
            loaded = importlib.import_module(module)
            for name in assigned(tree):
                value = getattr(loaded, name, None)
                if is_numeric(value):
                    yield module, name
                else:
                    for field in fields_of(value):
                        if is_numeric(getattr(value, field)):
                            yield module, f"{name}.{field}"

    return in_a_child(task, 60.0)


if __name__ == "__main__":
    main()
