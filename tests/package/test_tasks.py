"""The lines of each user's page run from first to last, and leave what the page promises."""

import re
import shlex

import pytest
from _patients import write_patients
from _tree import ROOT
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from dpcal import cli

TASKS = ROOT / "docs" / "tasks"
COMMAND = re.compile(r"^ {4}dpcal (.*)$", re.MULTILINE)
# Data owner, engineer, auditor, federated engineer; researchers on accounting, on optimizers.
USERS = 6


def run(page, most=None):
    """Run the first commands of a page in the working folder, and return the status of each."""
    commands = COMMAND.findall((TASKS / page).read_text())
    assert commands
    return [cli.main(shlex.split(command)) for command in commands[:most]]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A working folder with a table, whose categories are complete."""
    monkeypatch.chdir(tmp_path)
    write_patients(tmp_path / "patients.csv")
    return tmp_path


def test_each_user_has_a_page_that_ends_with_the_task_done():
    pages = list(TASKS.glob("*.md"))
    assert len(pages) == USERS
    for page in pages:
        *_, end = page.read_text().split("\n\n**Done:** ")
        assert len(end.split("\n\n")) == 2, f"{page.name}: the end, and where to read more"
    index = (ROOT / "docs" / "index.md").read_text()
    assert [page.name for page in pages if f"](tasks/{page.name})" not in index] == []


@pytest.mark.slow
def test_a_data_owner_hands_over_what_can_be_verified(folder, capsys):
    assert set(run("data_owner.md")) == {0}
    assert "holds" in capsys.readouterr().out.split("clinic.budget: ")[-1]
    made = {path.relative_to(folder).as_posix() for path in folder.glob("*/statement.html")}
    assert made == {"dpcal-report/statement.html", "counts/statement.html"}


@pytest.mark.slow
def test_an_auditor_decides(folder):
    cli.main(["schema", "patients.csv", "-o", "schema.toml"])
    target = ["--target", "sick", "--epsilon", "1", "--delta", "1e-6"]
    cli.main(["train", "patients.csv", "--schema", "schema.toml", *target])
    key = ed25519.Ed25519PrivateKey.generate()
    (folder / "own.pem").touch(mode=0o600)
    (folder / "own.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    (folder / "public.pem").write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    cli.main(["verify", "dpcal-report", "--sign", "own.pem"])
    policy = folder / "clinic.toml"
    policy.write_text("max_epsilon = 1.0\n")
    assert set(run("auditor.md")) == {0}
    policy.write_text("max_epsilon = 0.5\n")
    assert run("auditor.md", most=1) == [1]


@pytest.mark.slow
def test_a_federated_engineer_has_a_claim_for_each_owner(folder, capsys):
    cli.main(["schema", "patients.csv", "-o", "schema.toml"])
    schema = folder / "schema.toml"
    before, name, after = schema.read_text().partition('[columns."blood"]')
    schema.write_text(before + name + after.replace('"ignore"', '"refuse"', 1))
    capsys.readouterr()
    assert set(run("federated_engineer.md")) == {0}
    assert len(re.findall(r"silo \d .* holds", capsys.readouterr().out)) == 4
