"""How many inequalities of the field's textbooks are proved, and in how many seconds?

    python -m benchmarks.claims.textbook [--seconds 10] [NAME ...]

The 48 claims of ``textbook.txt`` are written as a researcher would write them: about logarithms,
means, divergences, tails, composition, conversions, sampling and rates. Times are of the processor.
"""

import argparse
from pathlib import Path

from dpcal.calibrate.papers import Quantity, Schedule, auxiliary, theorems_of
from dpcal.calibrate.papers.prover import prove

WHOLE = {"whole": True, "range": "[1, oo)"}
QUANTITIES = (
    *auxiliary("u v w z", range="(-oo, oo)"),
    *auxiliary("x y a b c rho epsilon sigma mu L gap"),
    *auxiliary("p q delta", range="(0, 1)"),
    *auxiliary("r", range="[1, oo)"),
    Quantity("alpha", "order of a Renyi divergence", range="(1, oo)"),
    Quantity("k", "mechanisms", **WHOLE),
    Quantity("n", "records", **WHOLE),
    Quantity("T", "steps", **WHOLE),
)
TEXTBOOK = Schedule(
    name="textbook",
    title="Inequalities of the field",
    citation="textbooks",
    quantities=QUANTITIES,
    claims=theorems_of(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")),
)

WITHOUT_PROOF = ("gauss.textbook", "advanced")


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.claims.textbook")
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
