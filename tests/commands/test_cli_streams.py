"""What commands write, and where: a reader that leaves, JSON alone, and odd command lines."""

import json
import os
import random
import subprocess
import sys
from types import SimpleNamespace

import pytest

from dpcal import cli

# A command that prints some lines and ends with a status.
SCRIPT = """
import sys, types
from dpcal import cli
lines, status = int(sys.argv[1]), int(sys.argv[2])
def run(options):
    for _ in range(lines):
        print("a line of text")
    return status
cli.load = lambda name: types.SimpleNamespace(
    EXAMPLES=(), add_arguments=lambda parser: None, run=run
)
sys.exit(cli.main(["verify"]))
"""


BUFFERED = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}


def status_without_reader(*words, **options):
    """Run a program whose standard output nobody reads, and return its status."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = subprocess.run(
            [sys.executable, *map(str, words)], stdout=write, stderr=subprocess.PIPE, **options
        )
    finally:
        os.close(write)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    return done.returncode


# -- a reader that has left


@pytest.mark.slow
@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("lines", [1, 100_000])
def test_a_failed_check_never_reads_as_passed(lines, status):
    # A command that had ended keeps its status; one that was cut off has that of a closed pipe.
    found = status_without_reader("-c", SCRIPT, lines, status, env=BUFFERED)
    assert found == (status if lines == 1 else 141)
    assert status_without_reader("-u", "-c", SCRIPT, lines, status) == 141


@pytest.mark.slow
def test_a_forged_certificate_into_a_closed_pipe(tmp_path, capsys):
    proof = tmp_path / "proof.json"
    words = ["certify", "--noise-multiplier", "1", "--steps", "10", "--delta", "1e-6"]
    assert cli.main([*words, "--sampling-probability", "1", "-o", str(proof)]) == 0
    document = json.loads(proof.read_text())
    document["upper"] = document["lower"]
    proof.write_text(json.dumps(document))
    assert cli.main(["certify", "--check", str(proof)]) == 1
    words = ("-m", "dpcal", "certify", "--check", proof)
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
def command(monkeypatch):
    """Return a function that puts a command of its own in the place of every other."""

    def put(run):
        module = SimpleNamespace(EXAMPLES=(), add_arguments=lambda parser: None, run=run)
        monkeypatch.setattr(cli, "load", lambda name: module)

    return put


def failing(error):
    def run(options):
        print("dpcal: warning: something is odd.", file=sys.stderr)
        raise error

    return run


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
def test_an_error_is_one_json_document_and_no_more(command, capsys, error, status):
    command(failing(error))
    assert cli.main(["verify", "--json"]) == status
    out, err = capsys.readouterr()
    document = json.loads(err)
    assert out == ""
    assert document["status"] == status
    assert document["error"].endswith(".")
    assert document["warnings"] == ["dpcal: warning: something is odd."]
    assert cli.main(["verify"]) == status
    assert capsys.readouterr().err.splitlines()[-1] == f"dpcal: {document['error']}"


def test_warnings_of_an_answer_come_after_it(command, capsys):
    def run(options):
        print("dpcal: warning: something is odd.", file=sys.stderr)
        print("{}")
        return 0

    command(run)
    assert cli.main(["verify", "--json"]) == 0
    assert capsys.readouterr() == ("{}\n", "dpcal: warning: something is odd.\n")


# -- odd command lines

WORDS = """
0 -1 nan inf -inf 1e400 1e-400 abc 1/3 1/0 0/0 -0 1_000 \uff11 0x10 1e5 1,5 1e-320 True -- - = *
1.0000000000000000000001 /dev/null é \ud800 $(id) ' 0.1.2 1e +1 .5 5.
"""
ODD = [*WORDS.split(), "", " ", "9" * 400, "1e999999999", "0e999999999"]
SAMPLERS = ["poisson", "random-allocation", "without-replacement", "shuffled-epochs", "x", ""]


def lines(seed, count):
    """Return command lines in which about one value of three is odd; the others are small."""
    rng = random.Random(seed)

    def given(name, *usual):
        return [name, rng.choice(ODD) if rng.random() < 0.35 else rng.choice(usual)]

    def run():
        sizes = rng.choice(
            [
                given("--sampling-probability", "0.01", "1", "1/3"),
                [*given("--n", "100", "1e3"), *given("--batch-size", "10", "50")],
            ]
        )
        length = rng.choice([given("--steps", "1", "20"), given("--epochs", "1", "0.5")])
        more = given("--sampler", *SAMPLERS) if rng.random() < 0.3 else []
        return [*sizes, *length, *more]

    def target():
        return rng.choice(
            [
                given("--delta", "1e-5", "0.1"),
                given("--epsilon", "1", "3"),
                [*given("--epsilon", "1", "3"), *given("--delta", "1e-5", "0.1")],
            ]
        )

    def noisy():
        return [*run(), *given("--noise-multiplier", "1", "5"), *target()]

    sizes = ["--n", "--epsilon", "--delta", "--d", "--L0", "--L1", "--F0"]
    kinds = [
        lambda: ["epsilon", *noisy()],
        lambda: ["calibrate", *run(), *target()],
        lambda: ["compare", *noisy(), *given("--accountants", "renyi", "a,b", ",")],
        lambda: [
            "certify",
            "--check",
            rng.choice(["/etc/passwd", "/dev/zero", ".", "nowhere", ""]),
        ],
        lambda: ["verify", rng.choice([".", "/etc/passwd", "nowhere", "", "/dev/zero", "\x00"])],
        lambda: ["optimizers", *rng.choice([[], ["dpsgd"], ["zzz"], [rng.choice(ODD)]])],
        lambda: ["schedule", "spiderboost", *(w for s in sizes for w in given(s, "1", "0.5", "9"))],
        lambda: ["budget", rng.choice(["b", "nowhere/b", "", "/etc/passwd", "."]), *target()],
        lambda: ["predict", rng.choice(["/etc/passwd", ".", "/dev/zero", "nowhere"]), "x.csv"],
        lambda: ["plot", rng.choice(["profile", "zzz"]), *noisy(), "-o", "/nowhere/x.png"],
        lambda: [rng.choice(["epsilonn", "trian", "", "\x00", "verify --help", "-h"]), *run()],
    ]
    for _ in range(count):
        yield [*rng.choice(kinds)(), *(["--json"] if rng.random() < 0.5 else [])]


def complain(words, status, out, err):
    """Assert what every command line promises of its status and its words."""
    assert status in (0, 1, 2), words
    assert "Traceback" not in out + err, words
    if status != 2:
        if "--json" in words and "-h" not in words:
            json.loads(out)
        assert " nan" not in out, words
    elif "--json" in words:
        assert out == "", words
        document = json.loads(err)
        assert document["status"] == 2
        assert document["error"].endswith((".", "?")), words
    else:
        # Lines above it are warnings, or tell on a slow machine what takes long.
        sentence = err.splitlines()[-1]
        assert sentence.startswith("dpcal: "), words
        assert sentence.endswith((".", "?")), words


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(4))
def test_odd_command_lines(capsys, tmp_path, monkeypatch, seed):
    monkeypatch.chdir(tmp_path)
    for words in lines(seed, 60):
        try:
            status = cli.main(words)
        except SystemExit as left:  # a help text
            status = left.code or 0
        complain(words, status, *capsys.readouterr())
