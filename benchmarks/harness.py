"""Studies as lists of records: a run, the numbers that are kept of each run, and a report.

Rows are appended to ``STUDY.jsonl`` in a folder, so that you can interrupt a study and continue it.
To start over, delete the file.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Series:
    """Runs at several sizes (or targets) and seeds, and the numbers that are kept of each.

    ``run(size, seed)`` returns numbers by name. ``x(size)`` is the variable of the theorem's
    exponent.
    """

    panel: str
    label: str
    sizes: tuple[float, ...]
    run: Callable[..., dict[str, float]]
    seeds: int = 5
    theorem: float | None = None
    x: Callable[..., float] = float


def measured(series, path):
    """Yield each series with its rows by size; rows that the file has are not made again."""
    lines = path.read_text().splitlines() if path.exists() else []
    known = {tuple(row["key"]): row["found"] for row in map(json.loads, lines)}
    for each in series:
        rows: dict[float, list[dict[str, float]]] = {}
        for size in each.sizes:
            for seed in range(each.seeds):
                key = (each.panel, each.label, size, seed)
                if key not in known:
                    known[key] = {k: float(v) for k, v in each.run(size, seed).items()}
                    with path.open("a") as file:
                        file.write(json.dumps({"key": key, "found": known[key]}) + "\n")
                rows.setdefault(size, []).append(known[key])
        yield each, rows


def run_studies(studies, name):
    """Run the studies that the command line names: pairs of a maker of series and a report."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks {name}")
    parser.add_argument("studies", nargs="*", choices=[*studies, []], metavar="STUDY")
    parser.add_argument("--only", default="", help="series whose panel or label has this word")
    parser.add_argument("--output", type=Path, default=Path("build", name))
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    for study in options.studies or studies:
        make, report = studies[study]
        series = [each for each in make() if options.only in f"{each.panel} {each.label}"]
        report(list(measured(series, options.output / f"{study}.jsonl")), options.output)
