"""What a user sees of each command: its help, what an example prints, and a line that it refuses.

The screens are in ``__snapshots__``; pytest's option ``--snapshot-update`` writes them again. They
hold no time and no path, and of a number the digits that are the same on any processor: none where
noise was added.
"""

import contextlib
import json
import random
import re
import secrets
import shutil
import tomllib
from string import Template

import pytest
from _patients import as_csv, patients
from _tree import DATA

from dpcal.commands import COMMANDS, load
from dpcal.commands._signature import examples_of

LINES = {
    name: [line.removeprefix(f"dpcal {name} ") for line in examples_of(load(name))]
    for name in COMMANDS
}
# Those of others take minutes, or need the network, and are tested elsewhere.
QUICK = LINES | {
    "attack": ("replay --records 60 --batch-size 12 --steps 4 --epsilon 2 --delta 1e-3 --seed 1",),
}
# As a reader would meet them: a table, its schema, a model, and what is made of them.
ORDER = ("budget", "schema", "train", "predict", "verify", "certify", "check")
# Significant digits of decimal numbers: what is noisy has none, and a fit of strategies two.
DIGITS = {"attack": 0, "train": 0, "release": 0, "recommend": 2, "strategies": 2}
# Seconds, measured or predicted, and how far answers of an attack happened to move.
CHANCE = r"[\d.]+ m?s\b|[\d.]+(?= +(?:fitted law|theorem))|\d+ moved, by at most \S+"
REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folder(cli, tmp_path_factory):
    """A folder with the tables that the examples name, and what examples of ``ORDER`` printed."""
    pytest.importorskip("polars")
    folder = tmp_path_factory.mktemp("clinic")
    table = patients()
    del table["clinic"]
    (folder / "patients.csv").write_text(as_csv(table))
    shutil.copy(folder / "patients.csv", folder / "new.csv")
    with contextlib.chdir(folder), pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_bytes", random.Random(0).randbytes)
        shown = {name: [cli(name, line) for line in LINES[name]] for name in ORDER}
    return folder, shown


def help_of(cli, name):
    """Return the help of a command as every version of Python would print it."""
    text = cli(name, "--help").partition("\n\n")[2]
    text = re.sub(r"\n {20,}", "  ", text)
    text = re.sub(r"(?<=\S) {2,}", "  ", text)
    return re.sub(r"(--?[\w-]+) (\S+), (--[\w-]+ \2)", r"\1, \3", text)


def masked(text, digits=3):
    """Return a text with no time, and so many significant digits of its decimal numbers."""

    def shorter(number):
        return f"{float(f'{float(number[0]):.{digits - 1}e}'):g}" if digits else "#"

    text = re.sub(r"\d+\.\d+(?:[eE][-+]?\d+)?|\d+[eE]-\d+", shorter, re.sub(CHANCE, "#", text))
    # Columns are as wide as the digits that are left out.
    return re.sub(r" +$", "", re.sub(r"(?<=\S) {2,}", "  ", text), flags=re.MULTILINE)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_screens(cli, folder, monkeypatch, snapshot, name):
    path, shown = folder
    monkeypatch.setenv("COLUMNS", "1000")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(path)
    printed = shown.get(name) or [cli(name, line) for line in QUICK[name]]
    assert all(printed)
    wrong = Template(next(iter(REFUSALS["lines"][name]))).substitute(REFUSALS["words"])
    screens = [(f"{name} --help", help_of(cli, name))]
    for line, text in zip(QUICK[name][:1], printed, strict=False):
        screens.append((f"{name} {line}", masked(text, DIGITS.get(name, 3))))
    screens.append((f"{name} {wrong}", cli.refused(name, wrong)))
    assert "\n\n".join(f"$ dpcal {line}\n{text}" for line, text in screens) == snapshot


def test_every_command_has_two_examples():
    assert all(len(set(lines)) == 2 for lines in LINES.values())


@pytest.mark.slow
def test_reports_of_one_relation_are_composed(cli, folder, tmp_path):
    """Both runs are in one budget book's table too: two prices of one composition agree."""
    first, second = (folder[0] / name for name in ("dpcal-report", "second-report"))
    told = cli.json("verify", first, second)["together"]
    documents = [json.loads((each / "report.json").read_text()) for each in (first, second)]
    alone = [each["runs"][0]["epsilon"]["upper"] for each in documents]
    assert told["runs"] == 2
    assert max(alone) < told["epsilon"]["upper"] < sum(alone) * 1.6
    assert "same records" in told["notes"][0]
    other = documents[0]
    for run in (*other["runs"], other["evaluation"]):
        for part in {"plan", "ledger"} & {*run}:
            run[part]["neighboring_relation"] = "replace-one"
    (tmp_path / "report.json").write_text(json.dumps({**other, "files": {}}))
    assert "share one neighboring relation" in cli.refused("verify", first, tmp_path)
