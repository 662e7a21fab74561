"""How many inequalities of the field's textbooks are proved, and in how many seconds?

    python -m benchmarks.textbook [--seconds 10] [NAME ...]

The 48 claims of the section ``textbook`` of ``tests/data/claims.toml`` are written as a researcher
would write them: about logarithms, means, divergences, tails, composition, conversions, sampling
and rates. Times are of the processor.
"""

import argparse
import tomllib
from pathlib import Path

from dpcal.calibrate.papers import Quantity, Schedule, theorems_of
from dpcal.calibrate.papers.prover import prove

CLAIMS = Path(__file__).parents[2] / "tests" / "data" / "claims.toml"
SECTION = tomllib.loads(CLAIMS.read_text(encoding="utf-8"))["textbook"]
TEXTBOOK = Schedule(
    name="textbook",
    title="Inequalities of the field",
    citation="textbooks",
    quantities=tuple(
        Quantity(name, "", range=values.removeprefix("whole "), whole=values.startswith("whole "))
        for names, values in SECTION["quantities"].items()
        for name in names.split()
    ),
    claims=theorems_of(SECTION["PROVED"] + SECTION["OPEN"]),
)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.textbook")
    parser.add_argument("names", nargs="*", metavar="NAME", help="claims (default: all)")
    parser.add_argument("--seconds", type=float, default=10.0, help="limit for each claim")
    given = parser.parse_args()
    proved, total, taken = 0, 0, 0.0
    for claim in TEXTBOOK.claims:
        if given.names and claim.name not in given.names:
            continue
        verdict = prove(TEXTBOOK.resolve(claim), seconds=given.seconds)
        print(f"{claim.name:20}{verdict.status:10}{verdict.seconds:8.2f} s  {verdict.reason:.90}")
        proved, total = proved + (verdict.status == "PROVED"), total + 1
        taken += verdict.seconds
    print(f"{proved} of {total} proved in {taken:.0f} seconds of one processor")


if __name__ == "__main__":
    main()
