"""Mutants of the code, and the share of them that a test finds.

    python -m benchmarks mutants --cover [TESTS ...]  # run tests, and note which reach each line
    python -m benchmarks mutants [--count 200] [--seed 1] [--most 20] [--processes 2]
    python -m benchmarks mutants --table [--seed 1]  # the share that was found in each package

A mutant differs from the code in one operator, comparison, constant, sign, bound or returned end.
Mutants are drawn by a seed from functions of the packages that decide claims. Each runs against the
tests that reach its line, the quickest first, until one fails. For a line of a kernel or of its
header these are the tests that reach a module which imports the kernel. Everything is done in
copies of the tree that was covered (``build/mutants``), and results are kept there: you can stop a
run and continue it.
"""

import argparse
import ast
import importlib.util
import itertools
import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import xml.etree.ElementTree
from collections import Counter
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
HOME = ROOT / "build" / "mutants"
# The tree as it was covered; each process mutates a copy of its own.
TREE, RESULTS, REACHED = HOME / "dpcal", HOME / "results.jsonl", HOME / "reached.json"

# Patterns of files and shares of the mutants; the longest pattern that fits is the package of a
# file.
ROOMS = {
    "accountants/*": 0.15,
    "accountants/certificates/*": 0.06,
    "accountants/correlated/*": 0.06,
    "calibrate/*": 0.08,
    "calibrate/papers/*": 0.08,
    "_ext/*.h": 0.08,
    "_ext/*.pyx": 0.12,
    "optim/boundary/*": 0.25,
    "optim/first_order/*": 0.12,
}
# Kernels of the boundary (noise, batches, clipped sums), and the kernel that a header is part of.
KERNELS = {name: name for name in (
    "keyed", "discrete", "samples", "streams", "gradients", "grid", "sums", "answers", "loops",
)}  # fmt: skip
HEADERS = {
    "contour": "question",
    "law": "question",
    "loops": "question",
    "search": "discrete",
    "steps": "sums",
    "gaps": "samples",
}

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==",
    "+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "**": "*", "%": "*",
    "and": "or", "or": "and", "min": "max", "max": "min", "minimum": "maximum",
    "maximum": "minimum", "lower": "upper", "upper": "lower", "True": "False", "False": "True",
    "floor": "ceil", "ceil": "floor", "log1p": "log", "expm1": "exp",
}  # fmt: skip
_IN_KERNELS = re.compile(
    r" (<=|>=|==|!=|[-+*/<>]|and|or) |\b(min|max|True|False)\b"
    r"|(?<![\w.])(?<!e-)(\d+(?:\.\d+)?)(?![\w.])"
)


@dataclass(frozen=True, order=True)
class Mutant:
    """A place in a file, and the text that stands there instead."""

    path: str
    line: int
    column: int
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column} {self.old} -> {self.new}"

    def text(self) -> str:
        """Return the file's text, mutated."""
        lines = (TREE / self.path).read_text().splitlines(keepends=True)
        row = lines[self.line - 1].encode()
        end = self.column + len(self.old.encode())
        assert row[self.column : end].decode() == self.old, self
        lines[self.line - 1] = (row[: self.column] + self.new.encode() + row[end:]).decode()
        return "".join(lines)


def _number(text):
    """Return a different number for a number in the code."""
    value = ast.literal_eval(text)
    return str(value + 1) if isinstance(value, int) else repr(1.25 * value or 1e-3)


def _tokens(node):
    """Yield (line, column, end) of the parts of an expression that can be mutated."""
    if isinstance(node, ast.BinOp):
        yield node.left.end_lineno, node.left.end_col_offset, node.right.col_offset
    elif isinstance(node, ast.Compare | ast.BoolOp):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else node.values
        for one, other in itertools.pairwise(parts):
            yield one.end_lineno, one.end_col_offset, other.col_offset
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        yield node.lineno, node.col_offset, node.operand.col_offset
    elif isinstance(node, ast.Constant | ast.Name):
        yield node.lineno, node.col_offset, node.end_col_offset
    elif isinstance(node, ast.Attribute):
        yield node.end_lineno, node.end_col_offset - len(node.attr), node.end_col_offset


def _of_python(path):
    """Yield the mutants of a module, from the bodies of its functions."""
    text = (TREE / path).read_text()
    rows = [row.encode() for row in text.splitlines()]
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (each for part in function.body for each in ast.walk(part)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
                continue
            for line, start, end in _tokens(node):
                part = rows[line - 1][start:end].decode() if end > start else ""
                old = part.strip("() ")
                column = start + len(part[: part.find(old)].encode())
                if isinstance(node, ast.UnaryOp):
                    yield Mutant(path, line, column, "-", "+")
                elif old in SWAPS:
                    yield Mutant(path, line, column, old, SWAPS[old])
                elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
                    yield Mutant(path, line, column, old, _number(old))
            if isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple):
                yield from _swapped(path, node.value, rows)


def _swapped(path, pair, rows):
    """Yield the mutant that returns the two ends in the other order."""
    if len(pair.elts) == 2 and pair.elts[0].lineno == pair.elts[1].end_lineno:
        one, other = pair.elts
        row = rows[one.lineno - 1]
        first = row[one.col_offset : one.end_col_offset]
        second = row[other.col_offset : other.end_col_offset]
        old = row[one.col_offset : other.end_col_offset].decode()
        between = row[one.end_col_offset : other.col_offset]
        new = (second + between + first).decode()
        if new != old:
            yield Mutant(path, one.lineno, one.col_offset, old, new)


def _of_kernel(path):
    """Yield the mutants of a kernel's lines of code, outside of comments and texts."""
    quoted = False
    marked, begins, ends = ("#", '"""', '"""') if path.endswith("pyx") else ("//", "/*", "*/")
    for number, row in enumerate((TREE / path).read_text().splitlines(), 1):
        inside = quoted or begins in row
        if quoted and ends in row:
            quoted = False
        elif begins in row:
            quoted = ends not in row.partition(begins)[2]
        if inside or re.match(r"\s*(cimport|from|import|cdef extern|@|def |cdef enum|#)", row):
            continue
        for found in _IN_KERNELS.finditer(row.split(marked)[0]):
            group = found.lastindex
            old = found[group]
            new = SWAPS.get(old) or _number(old)
            yield Mutant(path, number, len(row[: found.start(group)].encode()), old, new)


def compiled_in(path):
    """Return the name of the kernel that a file of ``_ext`` is part of, or None."""
    return (KERNELS if path.endswith("pyx") else HEADERS).get(Path(path).stem)


def room_of(path):
    """Return the package of a file, or an empty text."""
    return max((room for room in ROOMS if fnmatch(path, room)), key=len, default="")


def chosen(count, seed):
    """Return mutants that are drawn by a seed; each package has its share of this number."""
    chance, found = random.Random(seed), []
    paths = sorted(path.relative_to(TREE).as_posix() for path in TREE.glob("*/**/*.*"))
    for room, share in ROOMS.items():
        kernel = room.startswith("_ext")
        here = [path for path in paths if room_of(path) == room]
        here = [path for path in here if (compiled_in(path) if kernel else path.endswith(".py"))]
        of = _of_kernel if kernel else _of_python
        sites = sorted({mutant for path in here for mutant in of(path)})
        found += chance.sample(sites, min(len(sites), round(share * count)))
    return found


def copy():
    """Copy the tree, with the compiled kernels of the installed package."""
    import dpcal

    shutil.rmtree(TREE, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    for name in listed.stdout.split("\n"):
        if name and (ROOT / name).is_file():
            (TREE / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, TREE / name)
    for kernel in (Path(dpcal.__file__).parent / "_ext").glob("*.so"):
        shutil.copy2(kernel, TREE / "_ext")
    # Wheels are built from the C that Cython wrote.
    shutil.copytree(ROOT / "build/cython", TREE / "build/cython")


def _python(tree, *words, **how):
    """Run Python in a copy of the tree."""
    environment = os.environ | {"PYTHONPATH": str(tree.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    return subprocess.run([sys.executable, *words], cwd=tree, env=environment, **how)


def cover(tests):
    """Run tests once, and write which of them reach each line, and how long each takes."""
    from coverage import CoverageData

    copy()
    options = ["--cov", "--cov-context=test", "--cov-report=", "--junit-xml=times.xml"]
    _python(TREE, "-m", "pytest", "-q", *options, *tests)
    data = CoverageData(str(TREE / ".coverage"))
    data.read()
    # A test that fails here, as one that needs the repository, finds nothing.
    seconds, failed = Counter(), {""}
    for case in xml.etree.ElementTree.parse(TREE / "times.xml").iter("testcase"):
        name = f"{case.get('classname').replace('.', '/')}.py::{case.get('name')}"
        seconds[name] += float(case.get("time"))
        if case.find("failure") is not None or case.find("error") is not None:
            failed.add(name)
    names, lines = {}, {}
    for path in data.measured_files():
        lines[Path(path).relative_to(TREE).as_posix()] = {
            line: [
                names.setdefault(test, len(names))
                for test in {context.rpartition("|")[0] for context in contexts} - failed
            ]
            for line, contexts in data.contexts_by_lineno(path).items()
        }
    REACHED.write_text(json.dumps({"tests": list(names), "lines": lines, "seconds": dict(seconds)}))


def reaching(mutant, reached):
    """Return the tests that reach a mutant's line: a case of each function, then all others.

    Tests of the mutant's package and quick tests come first.
    """
    if mutant.path.startswith("_ext"):
        kernel = re.compile(rf"\b_ext(\.| import .*\b){compiled_in(mutant.path)}\b")
        importing = [path for path in reached["lines"] if kernel.search((TREE / path).read_text())]
        numbers = {
            test
            for path in importing
            for tests in reached["lines"][path].values()
            for test in tests
        }
    else:
        numbers = set(reached["lines"].get(mutant.path, {}).get(str(mutant.line), ()))
    seconds, functions = reached["seconds"], set()
    room = f"tests/{mutant.path.partition('/')[0]}/"
    if mutant.path.endswith(".h"):
        contour = compiled_in(mutant.path) == "question"
        room = "tests/accountants/inversion/" if contour else "tests/optim/boundary/"
    names = sorted(
        (reached["tests"][number] for number in numbers),
        key=lambda name: (not name.startswith(room), seconds.get(name, 1.0), name),
    )
    further = {}
    for name in names:
        function = name.partition("[")[0]
        further[name] = function in functions
        functions.add(function)
    return sorted(names, key=further.get)


def outcome(tree, mutant, tests, limit):
    """Return "killed", "survived", "slow" or "unreached", and the test that failed."""
    if not tests:
        return "unreached", ""
    place = tree / mutant.path
    kernel = compiled_in(mutant.path) if mutant.path.startswith("_ext") else ""
    compiled = [*place.parent.glob(f"{kernel}.*.so")]
    place.write_text(mutant.text())
    Path(importlib.util.cache_from_source(str(place))).unlink(missing_ok=True)
    try:
        if kernel and not _built(tree):
            return "killed", "it does not compile"
        # A few tests are collected quickly, and find most mutants.
        for some in filter(None, (tests[:20], tests[20:])):
            code, told = _tested(tree, some, limit)
            if code == -signal.SIGXCPU:
                return "slow", ""
            if code:
                failed = re.search(r"^(?:FAILED|ERROR) (\S+)", told, re.MULTILINE)
                return "killed", failed[1] if failed else f"a crash, status {code}"
        return "survived", ""
    finally:
        shutil.copy2(TREE / mutant.path, place)
        # Newer than the mutant's C, from which the next build would otherwise make it again.
        for path in compiled:
            shutil.copy(TREE / path.relative_to(tree), path)


def _tested(tree, tests, limit):
    """Run tests in a child, which has all other packages already; return its status and words."""
    listed, told = tree.parent / "tests.txt", tree.parent / "told.txt"
    listed.write_text("\n".join(tests))
    options = ["-x", "-q", "-p", "no:cacheprovider", "--timeout=200", "--tb=no", f"@{listed}"]
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 10))
        with told.open("w") as file:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        os.chdir(tree)
        os.environ["PYTHONPATH"] = str(tree.parent)
        outside = [each for each in sys.path if each not in ("", str(ROOT))]
        sys.path[:] = [str(tree), str(tree.parent), *outside]
        try:
            code = int(pytest.main(options))
        finally:
            sys.stdout.flush()
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), told.read_text()


def _built(tree):
    built = _python(tree, "setup.py", "-q", "build_ext", "--inplace", capture_output=True)
    return built.returncode == 0


def run(count, seed, most, limit, processes):
    """Run mutants that have no result yet, at most this many."""
    known = {result["mutant"] for result in results(seed)}
    mutants = [each for each in chosen(count, seed) if str(each) not in known][:most]
    _python(TREE, "-m", "compileall", "-q", "-j", "2", ".", capture_output=True)
    for name in ("scipy.stats", "scipy.optimize", "sympy", "sklearn.pipeline", "hypothesis"):
        importlib.import_module(name)
    for name in [each for each in sys.modules if each.partition(".")[0] in ("benchmarks", "dpcal")]:
        del sys.modules[name]
    children = []
    for number in range(processes):
        if not (child := os.fork()):
            _run_some(HOME / str(number) / "dpcal", mutants[number::processes], limit, seed)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)


def _run_some(tree, mutants, limit, seed):
    """Run mutants one after another in a tree of their own."""
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(TREE, tree)
    reached = json.loads(REACHED.read_text())
    for mutant in mutants:
        became, test = outcome(tree, mutant, reaching(mutant, reached), limit)
        row = {"seed": seed, "mutant": str(mutant), "became": became, "test": test}
        with RESULTS.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(f"{became:9} {mutant}  {test}", flush=True)


def results(seed):
    """Return the results of a seed's mutants."""
    rows = [*map(json.loads, RESULTS.read_text().splitlines())] if RESULTS.exists() else []
    return [row for row in rows if row["seed"] == seed]


def table(seed):
    """Return how many mutants were found in each package, as a table, and all others."""
    rows, rooms = results(seed), {}
    for row in rows:
        room = room_of(row["mutant"].partition(":")[0])
        rooms.setdefault(f"`{room}`", Counter())[row["became"]] += 1
    rooms["all"] = sum(rooms.values(), Counter())
    lines = [
        "| package | found | survived | slow | unreached | share |",
        "|---|---|---|---|---|---|",
    ]
    for room, of in rooms.items():
        counts = " | ".join(str(of[each]) for each in ("killed", "survived", "slow", "unreached"))
        lines.append(f"| {room} | {counts} | {of['killed'] / max(1, of.total()):.0%} |")
    others = [f"- {row['mutant']} ({row['became']})" for row in rows if row["became"] != "killed"]
    return "\n".join([*lines, "", *others])


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks mutants", description="Mutants.")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--cover", nargs="*", metavar="TESTS", help="note which test reaches a line")
    what.add_argument("--table", action="store_true", help="print the share that was found")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=10**9, help="how many are run now")
    parser.add_argument("--limit", type=int, default=120, help="seconds of processor for one")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if not (given.cover is not None or REACHED.exists()):
        parser.error("no tests are covered yet; run with --cover first, which takes 15 minutes")
    if given.cover is not None:
        cover(given.cover or ["--numprocesses", "2", "tests"])
    elif given.table:
        print(table(given.seed))
    else:
        run(given.count, given.seed, given.most, given.limit, given.processes)


if __name__ == "__main__":
    main()
