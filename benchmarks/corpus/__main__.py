"""Generate the corpus, verify it, or score a package on it.

    python -m benchmarks.corpus generate [FAMILY ...] [--jobs 2] [--record]
    python -m benchmarks.corpus verify [ID ...] [--jobs 2] [-o FILE]
    python -m benchmarks.corpus score PACKAGE ... [--rows N] [--seconds 10] [-o FOLDER]
    python -m benchmarks.corpus hardest [-o FOLDER]

Generation goes on where it was stopped: answered rows are kept in ``build/corpus`` until every
family of questions is complete. The questions that ``left_out.txt`` names are not asked; any other
question without a row is an error, so that each run has the same rows. ``--record`` writes the
names of the questions that find no narrow bracket in some seconds. Families that are named go to
``build/corpus`` alone.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.corpus import page, rows, scoring
from benchmarks.corpus.adapters import PACKAGES
from benchmarks.corpus.checking import problem
from benchmarks.corpus.proving import answered, certified
from benchmarks.corpus.questions import FAMILIES

SEED = 2026
# Rows that the tests ask every time.
HARDEST = 200
UNFINISHED = Path("build/corpus")


# -- generate


def grown(family: str, recording: bool) -> list[str]:
    """Answer the questions of a family that are not answered yet; return those without a row."""
    path, left_out = UNFINISHED / f"{family}.jsonl", set(recorded())
    found = list(rows.read(path)) if path.exists() else []
    last = int(found[-1]["row"]["id"].rpartition("-")[2]) if found else -1
    kept, without = len(found), []
    how: dict[str, Any] = {"seed": SEED, "start": last + 1, "recording": recording}
    asked = answered(family, left_out, **how)
    with path.open("a") as stream:
        while kept < FAMILIES[family][1]:
            name, answer = next(asked)
            if answer is None:
                without.append(name)
                if not recording:
                    break
                continue
            row, certificate = answer
            stream.write(json.dumps({"row": row, "certificate": certificate}) + "\n")
            stream.flush()
            kept += 1
    return without


def recorded() -> list[str]:
    """Return the ids of the questions that are left out."""
    path = rows.FOLDER / rows.LEFT_OUT
    return path.read_text().split() if path.exists() else []


def generate(options: argparse.Namespace) -> int:
    """Answer all questions, and write the corpus once every family is complete."""
    UNFINISHED.mkdir(parents=True, exist_ok=True)
    unknown = [name for name in options.names if name not in FAMILIES]
    if unknown:
        raise SystemExit(f"FAMILY must be among {', '.join(FAMILIES)}, got {unknown}.")
    chosen, without = options.names or list(FAMILIES), []
    with ProcessPoolExecutor(options.jobs) as pool:
        for family, names in zip(
            chosen, pool.map(grown, chosen, itertools.repeat(options.record)), strict=True
        ):
            print(f"{family}: {FAMILIES[family][1]} rows", flush=True)
            without += names
    if options.record:
        every = sorted({*recorded(), *without})
        (rows.FOLDER / rows.LEFT_OUT).write_text("\n".join(every) + "\n")
    elif without:
        print(
            f"NO ROW of {', '.join(without)}: too slow on this machine, or not proved. The corpus "
            "is unchanged; the rows that were found stay in build/corpus.",
            file=sys.stderr,
        )
        return 1
    if options.names:
        return 0
    found = [each for family in FAMILIES for each in rows.read(UNFINISHED / f"{family}.jsonl")]
    rows.write(rows.FOLDER / rows.QUESTIONS, (each["row"] for each in found))
    certificates = (
        {"id": each["row"]["id"], "certificate": each["certificate"]}
        for each in found
        if each["certificate"] is not None
    )
    rows.write(rows.FOLDER / rows.PROOFS, certificates)
    print(f"{len(found)} rows in {rows.FOLDER / rows.QUESTIONS}")
    return 0


# -- verify


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
    """Write a certificate of one row, its proof or one made now, for ``dpcal check``."""
    if len(chosen) != 1:
        raise SystemExit("-o takes the id of one row.")
    (row,) = chosen
    document = certificates.get(row["id"]) or certified(row)[0]
    if document is None:
        raise SystemExit(f"no certificate covers {row['id']}: verify it without -o.")
    path.write_text(json.dumps(document) + "\n")
    return 0


def corpus(count: int | None = None) -> list[dict[str, Any]]:
    """Return the rows, or at least so many of them, as many of each family as there are."""
    found = list(rows.read(rows.FOLDER / rows.QUESTIONS))
    families: dict[str, list[dict[str, Any]]] = {}
    for row in found:
        families.setdefault(row["family"], []).append(row)
    share = math.ceil((len(found) if count is None else count) / len(families))
    return [
        row
        for group in families.values()
        for row in (
            group
            if count is None or share >= len(group)
            else [group[i * len(group) // share] for i in range(share)]
        )
    ]


# -- score


def score(options: argparse.Namespace) -> int:
    """Score packages; write a JSON file for each accountant, and one page of tables."""
    unknown = [name for name in options.names if name not in PACKAGES]
    if unknown or not options.names:
        raise SystemExit(f"PACKAGE must be among {', '.join(PACKAGES)}, got {unknown}.")
    folder = options.output or Path("build/corpus/scores")
    folder.mkdir(parents=True, exist_ok=True)
    asked = corpus(options.rows)
    for package in options.names:
        how = {"seconds": options.seconds, "python": options.python}
        for found in scoring.score(package, asked, folder, **how):
            path = folder / f"{found['accountant'].replace(' ', '-')}.json"
            path.write_text(json.dumps(found) + "\n")
            print(line(found), flush=True)
    every = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    (folder / "scores.md").write_text(page.markdown(every) + "\n")
    print(f"page: {folder / 'scores.md'}")
    return 0


def hardest(options: argparse.Namespace) -> int:
    """Choose the rows of ``hardest.txt``, which the tests ask, from the scores of a folder."""
    folder = options.output or Path("build/corpus/scores")
    every = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]
    chosen = scoring.hardest(corpus(), every, HARDEST)
    (rows.FOLDER / "hardest.txt").write_text("\n".join(sorted(chosen)) + "\n")
    print(f"{len(chosen)} rows from the scores of {len(every)} accountants")
    return 0


def line(found: dict[str, Any]) -> str:
    """Return the totals of one accountant in a line."""
    totals = found["totals"]
    counts = ", ".join(f"{totals[name]} {name}" for name in scoring.VERDICTS if totals[name])
    return f"{found['accountant']} {found['version']}, {found['rows']} rows: {counts}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus")
    parser.add_argument("action", choices=("generate", "verify", "score", "hardest"))
    parser.add_argument("names", nargs="*", help="families, rows or packages (default: all)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (default: 2)")
    parser.add_argument(
        "--rows", type=int, help="score so many rows, as many of each family (default: all)"
    )
    parser.add_argument("--record", action="store_true", help="write which questions have no row")
    parser.add_argument("--seconds", type=float, default=10.0, help="of one row (default: 10)")
    parser.add_argument("--python", help="interpreter that has the package (default: a new one)")
    parser.add_argument("-o", "--output", type=Path, help="folder of scores, or file of a proof")
    options = parser.parse_args()
    actions = {"generate": generate, "verify": verify, "score": score, "hardest": hardest}
    return actions[options.action](options)


if __name__ == "__main__":
    sys.exit(main())
