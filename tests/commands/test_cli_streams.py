"""What commands write, and where: a reader that leaves, JSON alone, and odd command lines."""

import json
import os
import random
import shlex
import subprocess
import sys
import tomllib

import pytest
from _tree import DATA

from dpcal.commands import cli as door
from dpcal.commands._signature import Answer

# A command that prints some lines and ends with a status.
SCRIPT = """
import sys
from dpcal.commands import cli
from dpcal.commands._signature import Answer
lines, status = int(sys.argv[1]), int(sys.argv[2])
def verify():
    for _ in range(lines - 1):
        print("a line of text")
    return Answer({}, "a line of text", status)
cli.load = lambda name: verify
sys.exit(cli.main(["verify"]))
"""
BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def status_without_reader(*words, **options):
    """Run a program whose standard output nobody reads, and return its status."""
    read, write = os.pipe()
    os.close(read)
    try:
        command = [sys.executable, *map(str, words)]
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, **options)
    finally:
        os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done.returncode


# -- a reader that has left


@pytest.mark.slow
@pytest.mark.parametrize(("lines", "status"), [(1, 0), (1, 1), (100_000, 0), (100_000, 1)])
def test_a_failed_check_never_reads_as_passed(lines, status):
    # A command that had ended keeps its status; one that was cut off has that of a closed pipe.
    found = status_without_reader("-c", SCRIPT, lines, status, env=BUFFERED)
    assert found == (status if lines == 1 else 141)
    assert status_without_reader("-u", "-c", SCRIPT, lines, status) == 141


@pytest.mark.slow
def test_a_forged_certificate_into_a_closed_pipe(cli, tmp_path):
    proof = tmp_path / "proof.json"
    run = "--noise-multiplier 1 --steps 10 --delta 1e-6 --sampling-probability 1"
    cli("certify", run, "-o", proof)
    document = json.loads(proof.read_text())
    proof.write_text(json.dumps({**document, "upper": document["lower"]}))
    assert cli("check", proof, status=1)
    words = ("-m", "dpcal", "check", proof)
    assert status_without_reader(*words, env=BUFFERED) == 1


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no full device here")
def test_output_that_cannot_be_written_is_an_error():
    with open("/dev/full", "w") as full:
        command = [sys.executable, "-m", "dpcal", "optimizers"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("dpcal: ")


# -- JSON alone


@pytest.fixture
def verify(monkeypatch):
    """Put a command of its own in the place of every other, which warns first."""

    def put(outcome):
        def run():
            print("dpcal: warning: something is odd.", file=sys.stderr)
            if isinstance(outcome, BaseException):
                raise outcome
            return Answer({}, outcome)

        monkeypatch.setattr(door, "load", lambda name: run)

    return put


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ValueError("a number is wrong."), 2),
        (OverflowError("a number is too large."), 2),
        (FileNotFoundError(2, "No such file", "x"), 2),
        (MemoryError(), 2),
        (RecursionError(), 2),
        (KeyboardInterrupt(), 130),
    ],
)
def test_an_error_is_one_json_document_and_no_more(cli, verify, error, status):
    verify(error)
    found, out, err = cli.run("verify --json")
    document = json.loads(err)
    assert (found, out, document["status"]) == (status, "", status)
    assert document["error"].endswith(".")
    assert document["warnings"] == ["dpcal: warning: something is odd."]
    found, _, err = cli.run("verify")
    assert (found, err.splitlines()[-1]) == (status, f"dpcal: {document['error']}")


def test_warnings_of_an_answer_come_after_it(cli, verify):
    verify("{}")
    assert cli.run("verify --json") == (0, "{}\n", "dpcal: warning: something is odd.\n")


# -- odd command lines

LINES = tomllib.loads((DATA / "odd_lines.toml").read_text(encoding="utf-8"))
ODD = [*LINES["words"].split(), "", " ", "9" * 400, "\ud800"]


def said(rng, text):
    """Yield the words of a line: about one value of three is odd, and the others are small."""
    for word in shlex.split(text):
        if word.startswith("$"):
            yield from said(rng, rng.choice(LINES["parts"][word[1:]]))
        else:
            yield word
        if word in LINES["usual"]:
            yield rng.choice(ODD if rng.random() < 0.35 else LINES["usual"][word].split())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_odd_command_lines(cli, tmp_path, monkeypatch, seed):
    """What every command line promises of its status and its words."""
    monkeypatch.chdir(tmp_path)
    rng = random.Random(seed)
    for _ in range(60):
        words = [*said(rng, rng.choice(LINES["kinds"]))]
        status, out, err = cli.run(words)
        assert status in (0, 1, 2), words
        assert "Traceback" not in out + err, words
        if status != 2:
            if "--json" in words and "-h" not in words:
                json.loads(out)
            assert " nan" not in out, words
            continue
        sentence = err.splitlines()[-1]
        if "--json" in words:
            document = json.loads(err)
            assert (out, document["status"]) == ("", 2), words
            sentence = f"dpcal: {document['error']}"
        assert sentence.startswith("dpcal: "), words
        assert sentence.endswith((".", "?")), words
