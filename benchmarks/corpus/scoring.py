"""Verdicts on the answers of an accountant to the corpus, in the package's own environment.

>>> row = {"id": "a", "lower": "1.0", "upper": "1.1"}
>>> [verdict(row, {"upper": text})["verdict"] for text in ("0.9", "1.05", "1.2", "inf")]
['below', 'inside', 'above', 'infinite']
"""

from __future__ import annotations

import json
import math
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.corpus.adapters import PACKAGES

Row = dict[str, Any]

VERDICTS = ("inside", "above", "infinite", "below", "refused", "failed", "slow")
ENVIRONMENTS = Path("build/corpus/environments")
# torch without CUDA takes a tenth of the space.
_INSTALLED = {
    "opacus": (
        ("torch", "--index-url", "https://download.pytorch.org/whl/cpu"),
        ("opacus",),
    )
}
# Processor seconds of one answer.
SECONDS = 10.0
# Address space of a worker.
_BYTES = 8 << 30
_WORKER = Path(__file__).with_name("adapters.py")


def interpreter(package: str) -> str:
    """Return the Python of a package's own environment, which is made if it is not there."""
    if package == "dpcal":
        return sys.executable
    folder = ENVIRONMENTS / package
    python = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if not (folder / "complete").exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
        for what in _INSTALLED.get(package, ((package,),)):
            subprocess.run([str(python), "-m", "pip", "install", "--quiet", *what], check=True)
        (folder / "complete").touch()
    return str(python)


def version(python: str, package: str) -> str:
    """Return the version of a package that an interpreter has."""
    text = f"import importlib.metadata as m; print(m.version({package!r}))"
    done = subprocess.run([python, "-c", text], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def answers(python: str, package: str, name: str, rows: list[Row]) -> Iterator[Row]:
    """Yield the answer of one accountant of a package to each row, by a process.

    A process that ends, or gives no answer for long, has no answer to its row, and the next one
    goes on with the row after it.
    """
    threads = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    how: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
    how["env"] = os.environ | dict.fromkeys(threads, "1") | {"PYTHONPATH": os.getcwd()}
    command, waiting = [python, str(_WORKER), package, name, str(SECONDS)], deque(rows)
    while waiting:
        with tempfile.TemporaryFile("w+") as asked:
            asked.writelines(json.dumps(row) + "\n" for row in waiting)
            asked.seek(0)
            process = subprocess.Popen(command, stdin=asked, preexec_fn=_limit, **how)
        with process:
            for line in process.stdout:
                waiting.popleft()
                yield json.loads(line)
        if waiting:
            slow = process.returncode == -signal.SIGALRM
            found = {"slow": "no answer"} if slow else {"failed": "the process ended"}
            yield {"id": waiting.popleft()["id"], "seconds": SECONDS, **found}


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))


def verdict(row: Row, answer: Row) -> Row:
    """Return an answer with its verdict: by how much its upper end is above or below the bracket.

    A lower end above the bracket has its own verdict: the interval misses the truth, and no claim
    about privacy is too small.
    """
    for name in ("refused", "failed", "slow"):
        if name in answer:
            return {**answer, "verdict": name}
    value, low, high = float(answer["upper"]), Decimal(row["lower"]), Decimal(row["upper"])
    if math.isnan(value):
        return {**answer, "verdict": "failed", "failed": "not a number"}
    if math.isinf(value):
        return {**answer, "verdict": "infinite"}
    exact = Decimal(value)
    found: Row = {**answer, "verdict": "inside", "by": 0.0}
    if exact < low:
        found |= {"verdict": "below", "by": float(1 - exact / low)}
    elif exact > high:
        found |= {"verdict": "above", "by": float(exact / high - 1)}
    if "lower" in answer and Decimal(float(answer["lower"])) > high:
        found["lower_end_above"] = True
    return found


def score(package: str, rows: list[Row], folder: Path) -> Iterator[dict[str, Any]]:
    """Yield the scores of every accountant of a package.

    Answers are kept in the folder, so that you can stop scoring and continue it.
    """
    program = interpreter(package)
    for name in PACKAGES[package]:
        title = package if len(PACKAGES[package]) == 1 else f"{package} {name}"
        path = folder / f"{title.replace(' ', '-')}.answers.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        kept = {each["id"]: each for each in map(json.loads, lines)}
        missing = [row for row in rows if row["id"] not in kept]
        with path.open("a") as stream:
            for each in answers(program, package, name, missing):
                kept[each["id"]] = each
                stream.write(json.dumps(each) + "\n")
                stream.flush()
        given = [verdict(row, kept[row["id"]]) for row in rows]
        yield {
            "accountant": title,
            "package": package,
            "version": version(program, package),
            "rows": len(rows),
            "totals": totals(given),
            "families": by_family(rows, given),
            "answers": given,
        }


def totals(given: list[Row]) -> Row:
    """Return the numbers of verdicts, the median looseness and the median seconds of answers."""
    counts = Counter(each["verdict"] for each in given)
    loose = [each["by"] for each in given if each["verdict"] in ("inside", "above")]
    times = [each["seconds"] for each in given if "by" in each]
    return {
        **{name: counts[name] for name in VERDICTS},
        "misses": sum(each.get("lower_end_above", False) for each in given),
        "median_excess": statistics.median(loose) if loose else None,
        "worst_shortfall": max(
            (each["by"] for each in given if each["verdict"] == "below"), default=None
        ),
        "median_seconds": statistics.median(times) if times else None,
    }


def by_family(rows: list[Row], given: list[Row]) -> dict[str, Row]:
    """Return the totals of every family of questions."""
    found: dict[str, list[Row]] = {}
    for row, each in zip(rows, given, strict=True):
        found.setdefault(row["family"], []).append(each)
    return {family: totals(each) for family, each in found.items()}
