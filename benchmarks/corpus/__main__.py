"""Verify the corpus, or score a package on it.

``verify [ID ...] [-o FILE]`` proves brackets again, or writes the certificate of one row. ``score
PACKAGE ... [-o FOLDER]`` runs accountants on the corpus, and writes their verdicts and one page of
tables.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.corpus import page, rows, scoring
from benchmarks.corpus.adapters import PACKAGES
from benchmarks.corpus.checking import problem


def _checked(item: tuple[dict[str, Any], dict[str, Any] | None]) -> tuple[str, str | None]:
    row, certificate = item
    return row["id"], problem(row, certificate)


def verify(options: argparse.Namespace) -> int:
    """Prove brackets again; the exit status is 1 if one does not hold."""
    certificates = {
        each["id"]: each["certificate"] for each in rows.read(rows.FOLDER / rows.PROOFS)
    }
    chosen = [row for row in corpus() if not options.names or row["id"] in options.names]
    missing = set(options.names) - {row["id"] for row in chosen}
    if missing:
        raise SystemExit(f"the corpus has no row {', '.join(sorted(missing))}.")
    if options.output is not None:
        return _export(chosen, certificates, options.output)
    with ProcessPoolExecutor(options.jobs) as pool:
        items = [(row, certificates.get(row["id"])) for row in chosen]
        wrong = {name: what for name, what in pool.map(_checked, items, chunksize=4) if what}
    for name, what in wrong.items():
        print(f"{name}: DOES NOT HOLD: {what}")
    print(f"{len(chosen) - len(wrong)} of {len(chosen)} brackets hold")
    return 1 if wrong else 0


def _export(chosen: list[dict[str, Any]], certificates: dict[str, Any], path: Path) -> int:
    """Write the certificate of one row, for ``dpcal check``."""
    if len(chosen) != 1:
        raise SystemExit("-o takes the id of one row.")
    name = chosen[0]["id"]
    if name not in certificates:
        raise SystemExit(f"no certificate proves {name}: verify it without -o.")
    path.write_text(json.dumps(certificates[name]) + "\n")
    return 0


def corpus(count: int | None = None) -> list[dict[str, Any]]:
    """Return all rows, or about ``count`` of them, in equal shares of the families."""
    found = list(rows.read(rows.FOLDER / rows.QUESTIONS))
    families: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        families.setdefault(row["family"], []).append(row)
    share = len(found) if count is None else math.ceil(count / len(families))
    sizes = {name: min(share, len(group)) for name, group in families.items()}
    return [
        families[name][i * len(families[name]) // size]
        for name, size in sizes.items()
        for i in range(size)
    ]


def score(options: argparse.Namespace) -> int:
    """Score packages; write a JSON file for each accountant, and one page of tables."""
    unknown = [name for name in options.names if name not in PACKAGES]
    if unknown or not options.names:
        raise SystemExit(f"PACKAGE must be among {', '.join(PACKAGES)}, got {unknown}.")
    folder = options.output or Path("build/corpus/scores")
    folder.mkdir(parents=True, exist_ok=True)
    asked = corpus(options.rows)
    for package in options.names:
        for found in scoring.score(package, asked, folder):
            path = folder / f"{found['accountant'].replace(' ', '-')}.json"
            path.write_text(json.dumps(found) + "\n")
            print(line(found), flush=True)
    every = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    (folder / "scores.md").write_text(page.markdown(every) + "\n")
    print(f"page: {folder / 'scores.md'}")
    return 0


def line(found: dict[str, Any]) -> str:
    """Return the totals of one accountant in a line."""
    totals = found["totals"]
    counts = ", ".join(f"{totals[name]} {name}" for name in scoring.VERDICTS if totals[name])
    return f"{found['accountant']} {found['version']}, {found['rows']} rows: {counts}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus")
    parser.add_argument("action", choices=("verify", "score"))
    parser.add_argument("names", nargs="*", help="rows or packages (default: all rows)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--rows", type=int, help="score so many rows, as many of each family (default: all)"
    )
    parser.add_argument("-o", "--output", type=Path, help="folder of scores, or file of a proof")
    options = parser.parse_args()
    return verify(options) if options.action == "verify" else score(options)


if __name__ == "__main__":
    sys.exit(main())
