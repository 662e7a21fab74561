"""How long does it take to decide every claim of the six papers, and to check the proofs again?

    python -m benchmarks.audit [--slowest 10] [PAPER ...]

A claim should take less than five seconds, and all of them together less than a minute: a reader
waits for the answer of ``dpcal audit``. Times are of the processor.
"""

import argparse
import time

from dpcal.calibrate.papers import PAPERS, audit


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("papers", nargs="*", metavar="PAPER", help=f"of {', '.join(PAPERS)}")
    parser.add_argument("--slowest", type=int, default=10, help="how many claims to list")
    given = parser.parse_args()
    rows, total = [], 0.0
    print(f"{'paper':16}{'claims':>8}{'seconds':>10}{'slowest':>10}")
    for paper in given.papers or PAPERS:
        start = time.process_time()
        findings = audit(paper).findings
        taken = time.process_time() - start
        slowest = max(finding.verdict.seconds for finding in findings)
        print(f"{paper:16}{len(findings):8}{taken:10.1f}{slowest:10.2f}")
        rows += [(finding.verdict.seconds, paper, finding.claim.name) for finding in findings]
        total += taken
    print(f"{'all':16}{len(rows):8}{total:10.1f}")
    for seconds, paper, claim in sorted(rows, reverse=True)[: given.slowest]:
        print(f"{seconds:8.2f} s  {paper} {claim}")


if __name__ == "__main__":
    main()
