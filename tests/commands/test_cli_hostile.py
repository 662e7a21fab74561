"""Damaged, hostile and huge files: one sentence, exit status 2, nothing left, in little memory."""

import gzip
import json
import os
import subprocess
import sys
import tomllib

import polars
import pytest
from _tree import DATA

pytestmark = pytest.mark.slow

GIB = 1 << 30
LINES = tomllib.loads((DATA / "odd_lines.toml").read_text(encoding="utf-8"))["reading"]
OWN = LINES.pop("own")
# Runs commands one after another, and prints their statuses and errors, and the largest memory that
# they took. A process that is forked from one with much memory is counted with that, so that a
# small one stands between.
MEASURED = """
import contextlib, io, json, resource, subprocess, sys
if len(sys.argv) == 2:
    again = [sys.executable, *sys.orig_argv[1:], "alone"]
    print(subprocess.run(again, check=True, capture_output=True, text=True).stdout)
    print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
    sys.exit()
from dpcal.commands.cli import main
told = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stderr(io.StringIO()) as err:
        told.append((main(words), err.getvalue()))
print(json.dumps(told))
"""


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Return what runs commands on files in a process of its own, and returns their sentences."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.csv").write_text("x,y\n" + "1,no\n2,yes\n" * 50)

    def ask(*asked):
        lines = [
            [file if word == "bad" else word for word in LINES[kind].replace("$own", OWN).split()]
            for kind, file in asked
        ]
        before = sorted(path.name for path in tmp_path.iterdir())
        command = [sys.executable, "-c", MEASURED, json.dumps(lines)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        told, memory = map(json.loads, done.stdout.split("\n\n"))
        assert memory * 1024 < GIB
        for line, (status, errors) in zip(lines, told, strict=True):
            assert status == 2, (line, errors)
            assert "Traceback" not in errors
            # Lines above it tell of the progress, on a slow machine.
            assert errors.splitlines()[-1].startswith("dpcal: "), line
        assert sorted(path.name for path in tmp_path.iterdir()) == before
        return [errors.splitlines()[-1] for _, errors in told]

    return ask


def test_a_pipe_never_blocks(refused):
    os.mkfifo("bad")
    assert all("regular file" in said for said in refused(*[(kind, "bad") for kind in LINES]))


def test_documents_that_are_none(refused):
    contents = [b"[" * 100_000, b'{"a":' * 100_000, b"\xff\xfe\0\0", b"\0"]
    for number, content in enumerate(contents):
        with open(f"bad-{number}", "wb") as file:
            file.write(content)
    kinds = [kind for kind in LINES if kind != "charged"]
    refused(*[(kind, f"bad-{number}") for kind in kinds for number in range(len(contents))])


def test_a_document_without_end(refused):
    with open("bad", "wb") as file:
        file.truncate(40 * GIB)
    found = refused(*[(kind, "bad") for kind in ("schema", "report", "model", "plan")])
    assert all("more than 32 MiB" in said for said in found)


def test_small_files_of_large_tables(refused, tmp_path):
    """Beyond 16 MiB of text, or as many cells."""
    (tmp_path / "long.csv").write_bytes(b"x,y\n1," + b"n" * 40_000_000 + b"\n")
    with gzip.open("many.csv.gz", "wb", compresslevel=1) as file:
        file.write(b"x,y\n" + b"1,0\n" * 10_000_000)
    rows = polars.LazyFrame().select(x=polars.repeat(1, 10_000_000), y=polars.repeat(0, 10_000_000))
    rows.sink_parquet("many.parquet")
    many = ("many.csv.gz", "many.parquet")
    assert all((tmp_path / name).stat().st_size < 1_000_000 for name in many)
    line, *found = refused(*[("table", each) for each in ("long.csv", *many)])
    assert "a line has more than 16 MiB" in line
    assert all("times as large as the file" in said for said in found), found


def test_damaged_tables(refused, tmp_path):
    polars.DataFrame({"x": range(1000), "y": ["no", "yes"] * 500}).write_parquet("whole")
    parquet = (tmp_path / "whole").read_bytes()
    gz = gzip.compress(b"x,y\n" + b"1,no\n" * 10_000)
    files = {
        "cut.csv.gz": gz[: len(gz) // 2],
        "cut.parquet": parquet[: len(parquet) // 2],
        "flipped.csv.gz": gz[:20] + b"\xff" * 8 + gz[28:],
        "flipped.parquet": parquet[:-60] + b"\xff" * 40 + parquet[-20:],
        "nul.csv": b"x,y\n" + b"\0" * 1000,
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    (tmp_path / "folder.csv").mkdir()
    refused(*[("table", name) for name in (*files, "folder.csv")])
