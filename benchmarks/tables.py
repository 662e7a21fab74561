"""How long does a million rows by twenty take, and how much memory? From the file to the objective.

``python -m benchmarks.tables [--rows N] [--columns D]`` writes a table of numbers, a category and a
class, and measures reading, coding, splitting and the objective that is trained on, each time in a
process of its own. A copy is what the numbers take as doubles.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURED = """
import json, resource, sys, threading, time
from pathlib import Path
from dpcal.optim import Logistic
from dpcal.tables import Schema, Source, load
import polars, numpy as np
path, schema = Path(sys.argv[1]), Schema.read(Path(sys.argv[2]))
list(Source(Path(sys.argv[3])).batches())

def resident():
    return int(open('/proc/self/statm').read().split()[1]) * resource.getpagesize()

before, peak, going = resident(), [0], True

def watch():
    while going:
        peak[0] = max(peak[0], resident())
        time.sleep(0.002)

watcher = threading.Thread(target=watch)
watcher.start()
start, work = time.perf_counter(), time.process_time()
records = load(Source(path), schema, target="y", key=b"k" * 32)
read = time.perf_counter()
X, y, *held_out = records.split(0.2)
split = time.perf_counter()
task = Logistic(X, y, classes=(0, 1))
end = time.perf_counter()
work = time.process_time() - work
going = False
watcher.join()
print(json.dumps({
    "read": read - start, "split": split - read, "objective": end - split, "total": end - start,
    "processor": work, "peak": peak[0] - before, "n": len(y), "d": X.shape[1]}))
"""


def write(folder, rows, columns):
    """Write the table as text and as parquet, and its schema."""
    import numpy as np
    import polars as pl

    rng = np.random.default_rng(0)
    names = [f"x{i}" for i in range(columns - 1)]
    frame = pl.DataFrame({name: rng.standard_normal(rows).round(4) for name in names}).with_columns(
        pl.Series("kind", rng.choice(["a", "b", "c"], rows)),
        pl.Series("y", rng.choice(["no", "yes"], rows)),
    )
    frame.write_csv(folder / "table.csv")
    frame.write_parquet(folder / "table.parquet")
    frame.head(10).write_csv(folder / "small.csv")
    text = "".join(f"[columns.{name}]\ntype = 'number'\nrange = [-4, 4]\n" for name in names)
    text += "[columns.kind]\ntype = 'category'\ncategories = ['a', 'b', 'c']\n"
    text += "coding = 'ordinal'\n[columns.y]\ntype = 'class'\nclasses = ['no', 'yes']\n"
    (folder / "schema.toml").write_text(text)


def main():
    parser = argparse.ArgumentParser(description="Measure the way from a file to an objective.")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--columns", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, options.rows, options.columns)
        for file in ("table.csv", "table.parquet"):
            words = [folder / file, folder / "schema.toml", folder / "small.csv"]
            found = subprocess.run(
                [sys.executable, "-c", MEASURED, *map(str, words)],
                check=True,
                capture_output=True,
                text=True,
            )
            row = json.loads(found.stdout)
            copies = row["peak"] / (8 * options.rows * options.columns)
            megabytes = (folder / file).stat().st_size / 1e6
            print(
                f"{file} ({megabytes:.0f} MB): {row['total']:.1f} s (reading {row['read']:.1f}, "
                f"split {row['split']:.1f}, objective {row['objective']:.1f}; processor "
                f"{row['processor']:.1f}), peak {copies:.1f} copies"
            )


if __name__ == "__main__":
    main()
