"""How long does a charge to a budget book take, beside the rows that it holds already?

    python -m benchmarks.budget_book [--rows N ...] [--kinds K ...]

Processor time and time on the clock of one charge, in milliseconds: medians of 15 charges of one
Gaussian answer, in a book of N rows of K different noises.
"""

import argparse
import statistics
import tempfile
import time
from contextlib import closing
from pathlib import Path


def filled(path, rows, kinds):
    """Return a book of so many rows of so many kinds, which are written without being priced."""
    import sqlite3

    from dpcal.accountants import events
    from dpcal.optim import BudgetBook
    from dpcal.optim.boundary.budget.charge import Charge

    relation = {"neighboring_relation": "replace-special"}
    book = BudgetBook(path, epsilon=90.0, delta=1e-6, **relation)
    charges = [
        Charge(
            optimizer="fit",
            event=events.GaussianDpEvent(900.0 + kind),
            epsilon=0.01,
            delta=1e-6,
            **relation,
        )
        for kind in range(kinds)
    ]
    with closing(sqlite3.connect(path)) as file, file:
        texts = [charge.to_json() for charge in charges]
        lines = [(row + 1, "fit", "then", texts[row % kinds], "then") for row in range(rows)]
        columns = "number, label, started, plan, ended"
        file.executemany(f"INSERT INTO runs ({columns}) VALUES (?, ?, ?, ?, ?)", lines)
    return book, charges[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--kinds", type=int, nargs="+", default=[1, 10, 100])
    options = parser.parse_args()
    print("   rows   kinds  processor    clock")
    for rows in options.rows:
        for kinds in options.kinds:
            with tempfile.TemporaryDirectory() as folder:
                book, charge = filled(Path(folder, "book"), rows, min(kinds, rows))
                book.charge(charge)
                taken = []
                for _ in range(15):
                    before = time.process_time(), time.perf_counter()
                    book.charge(charge)
                    after = time.process_time(), time.perf_counter()
                    taken.append([1e3 * (b - a) for a, b in zip(before, after, strict=True)])
                processor, clock = map(statistics.median, zip(*taken, strict=True))
            print(f"{rows:7d} {kinds:7d} {processor:10.1f} {clock:8.1f}")


if __name__ == "__main__":
    main()
