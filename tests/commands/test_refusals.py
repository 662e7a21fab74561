"""What a command refuses is one sentence that names the option and its value, and leaves nothing.

The lines, and words of each sentence, are in ``tests/data/refusals.toml``.
"""

import json
import tomllib
from string import Template

import pytest
from _tree import DATA

from dpcal.commands import COMMANDS

REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in a folder with the files that the lines name."""
    for name, text in REFUSALS["files"].items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_command_refuses_something():
    assert {*COMMANDS, ""} == {*REFUSALS["lines"]}


@pytest.mark.slow
@pytest.mark.parametrize("command", REFUSALS["lines"])
def test_a_refusal_is_one_sentence_or_one_document(cli, folder, command):
    for line, words in REFUSALS["lines"][command].items():
        given = command, Template(line).substitute(REFUSALS["words"])
        sentence = cli.refused(*given)
        assert words in sentence, (line, sentence)
        status, out, err = cli.run(*given, "--json")
        assert (status, out) == (2, "")
        told = json.loads(err)
        assert told == {"error": sentence if command else told["error"], "status": 2}, line
        assert {path.name for path in folder.iterdir()} == {*REFUSALS["files"]}, line
