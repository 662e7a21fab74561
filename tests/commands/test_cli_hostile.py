"""Damaged, hostile and huge files: one sentence, exit status 2, nothing left, in little memory."""

import gzip
import os
import subprocess
import sys

import pytest

GIB = 1 << 30
TARGET = ["--target", "y", "--epsilon", "1", "--delta", "1e-5", "--output", "out"]
COMMANDS = {
    "table": ["train", "bad", *TARGET],
    "schema": ["train", "good.csv", "--schema", "bad", *TARGET],
    "report": ["verify", "bad"],
    "model": ["predict", "bad", "good.csv"],
    "book": ["budget", "bad"],
    "charged": ["train", "good.csv", "--budget", "bad", *TARGET],
    "plan": ["attack", "replay", "--plan", "bad"],
    "bounds": ["train", "good.csv", "--bounds", "bad", *TARGET],
    "candidates": ["select", "good.csv", "--candidates", "bad", "--accuracy", "0.1", *TARGET],
}


# Runs a command, and prints the memory that it took at most. A process that is forked from one
# with much memory is counted with that, so a small one stands between.
MEASURED = """
import resource, subprocess, sys
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(done.returncode)
"""


def ask(folder, words, kind="bad"):
    """Run a command on a file in a process of its own; return its sentence."""
    words = [kind if word == "bad" else word for word in words]
    before = sorted(path.name for path in folder.iterdir())
    command = [sys.executable, "-c", MEASURED, sys.executable, "-m", "dpcal", *words]
    done = subprocess.run(command, cwd=folder, timeout=60, capture_output=True, text=True)
    errors = done.stderr
    assert done.returncode == 2, errors[-500:]
    assert int(done.stdout) * 1024 < GIB
    # Lines above it tell of the progress, on a slow machine.
    said = errors.splitlines()[-1]
    assert said.startswith("dpcal: ")
    assert "Traceback" not in errors
    assert sorted(path.name for path in folder.iterdir()) == before
    return said


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "good.csv").write_text("x,y\n" + "1,no\n2,yes\n" * 50)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_pipe_never_blocks(folder, kind):
    os.mkfifo(folder / "bad")
    assert "regular file" in ask(folder, COMMANDS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", [name for name in COMMANDS if name != "charged"])
@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe\0\0", b"\0"])
def test_documents_that_are_none(folder, kind, content):
    (folder / "bad").write_bytes(content)
    ask(folder, COMMANDS[kind])


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["schema", "report", "model", "plan"])
def test_a_document_without_end(folder, kind):
    with open(folder / "bad", "wb") as file:
        file.truncate(40 * GIB)
    assert "more than 32 MiB" in ask(folder, COMMANDS[kind])


@pytest.mark.slow
def test_tables_that_would_take_the_memory(folder):
    (folder / "long.csv").write_bytes(b"x,y\n1," + b"n" * 200_000_000 + b"\n")
    assert "a line has more than 16 MiB" in ask(folder, COMMANDS["table"], "long.csv")
    with gzip.open(folder / "many.csv.gz", "wb", compresslevel=9) as file:
        file.write(b"x,y\n")
        for _ in range(40):
            file.write(b"1,0\n" * 1_000_000)
    assert "times as large as the file" in ask(folder, COMMANDS["table"], "many.csv.gz")


@pytest.mark.slow
def test_small_files_of_large_tables(folder):
    import polars

    rows = polars.LazyFrame().select(x=polars.repeat(1, 40_000_000), y=polars.repeat(0, 40_000_000))
    rows.sink_csv(folder / "many.csv.zst", compression="zstd", compression_level=19)
    rows.sink_parquet(folder / "many.parquet")
    for name in ("many.csv.zst", "many.parquet"):
        assert (folder / name).stat().st_size < 1_000_000
        assert "times as large as the file" in ask(folder, COMMANDS["table"], name)
    (folder / "cut.csv.zst").write_bytes((folder / "many.csv.zst").read_bytes()[:999])
    assert "damaged" in ask(folder, COMMANDS["table"], "cut.csv.zst")


@pytest.mark.slow
def test_damaged_tables(folder):
    import polars

    whole = gzip.compress(b"x,y\n" + b"1,no\n" * 10_000)
    (folder / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "flipped.csv.gz").write_bytes(whole[:20] + b"\xff" * 8 + whole[28:])
    polars.DataFrame({"x": range(1000), "y": ["no", "yes"] * 500}).write_parquet(folder / "p")
    whole = (folder / "p").read_bytes()
    (folder / "cut.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "flipped.parquet").write_bytes(whole[:-60] + b"\xff" * 40 + whole[-20:])
    (folder / "nul.csv").write_bytes(b"x,y\n" + b"\0" * 1000)
    (folder / "folder.csv").mkdir()
    for name in ("cut.csv.gz", "flipped.csv.gz", "cut.parquet", "flipped.parquet", "nul.csv"):
        ask(folder, COMMANDS["table"], name)
    ask(folder, COMMANDS["table"], "folder.csv")
