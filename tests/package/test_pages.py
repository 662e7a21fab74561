"""Printed commands run as they stand, from the wheel, and leave and print what the pages say.

In a block ``console`` a line ``$ dpcal ...`` is run in a folder that is empty when the page begins.
The lines below it are the output, with ``...`` for what is left out. A block that begins with the
comment ``# FILE`` is written to that file.
"""

import doctest
import json
import re
import shlex

import pytest
from _installed import Environment
from _patients import write_keys
from _tree import ROOT
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

BLOCK = re.compile(r"^```(?:console|toml|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.(?:toml|py))\n")
FIRST = re.compile(r"^\|.*\| `(dpcal .*?)` \|", re.MULTILINE)  # the front page's table of users
CLINIC = "docs/tutorials/table_to_model.md"
PAGES = [
    name
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    if (name := path.relative_to(ROOT).as_posix()) != CLINIC and "```console\n" in path.read_text()
]
EXTRAS = ("polars", "_polars_runtime_32", "matplotlib", "sklearn")


def follow(page, installed, folder):
    """Do what a page says in a folder, compare what is printed, and return the last of it."""
    text, out = (ROOT / page).read_text(), ""
    blocks = [f"$ {command}\n...\n" for command in FIRST.findall(text)] + BLOCK.findall(text)
    for block in blocks:
        if named := FILE.match(block):
            (folder / named[1]).write_text(block)
        for step in re.split(r"^\$ ", block.replace("\\\n", ""), flags=re.MULTILINE)[1:]:
            command, shown = step.split("\n", 1)
            _, *words = shlex.split(command, comments=True)
            done = installed.dpcal(*words, cwd=folder, check=False)
            out = done.stdout + done.stderr
            assert done.returncode == ("# status 1" in command), (page, command, out)
            same = doctest.OutputChecker().check_output(
                shown, out, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            )
            assert same or not shown.strip(), (page, command, out)
    return out


@pytest.fixture(scope="module")
def clinic(installed, tmp_path_factory):
    """The folder in which a data owner followed the tutorial, and what its last command printed."""
    folder = tmp_path_factory.mktemp("clinic")
    return folder, follow(CLINIC, installed, folder)


def labels(path, column):
    """Return a column of a table without its head."""
    return [line.split(",")[column] for line in path.read_text().splitlines()[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_the_commands_of_a_page_print_what_it_shows(page, installed, tmp_path):
    follow(page, installed, tmp_path)


@pytest.mark.slow
def test_a_data_owner_hands_over_what_can_be_verified(clinic, installed):
    folder, verified = clinic
    made = {path.name for path in (folder / "dpcal-report").iterdir()}
    pages = {"statement.html", "sp800-226.html", "what-an-attacker-can-find.svg"}
    assert made == {"report.json", "model.json", *pages}
    assert (folder / "counts" / "statement.html").exists()
    assert "holds" in verified
    assert "DOES NOT HOLD" not in verified
    spent = installed.dpcal("budget", "clinic.budget", cwd=folder).stdout
    for part in (
        "total    epsilon 2 at delta 1e-06",
        "by 3 runs",  # one about the norm of rows, the training and the counts
        "records  patients.csv",
        "planned answers",
        "left ",
    ):
        assert part in spent, part
    said, truth = labels(folder / "scores.csv", 0), labels(folder / "patients.csv", -1)
    right = sum(a == b for a, b in zip(said, truth, strict=True))
    assert right > 0.75 * len(truth)
    script = (
        "import dpcal;print(*dpcal.load_model('dpcal-report/model.json').predict('patients.csv'))"
    )
    assert installed.python("-c", script, cwd=folder).stdout.split() == said
    # What does not fit is refused, and leaves nothing.
    line = "release patients.csv 'mean age' --schema schema.toml --epsilon 1 --delta 1e-7 -o more"
    words = [*shlex.split(line), "--budget", "clinic.budget"]
    failed = installed.dpcal(*words, cwd=folder, check=False)
    assert failed.returncode == 2
    assert "no record was touched" in failed.stderr
    assert not (folder / "more").exists()


@pytest.mark.slow
def test_an_auditor_decides_and_proves_the_claims_without_retyping(clinic, installed):
    folder, _ = clinic

    def dpcal(*words, status=0):
        found = installed.dpcal(*words, cwd=folder, check=False)
        assert found.returncode == status, found
        return found.stdout

    assert dpcal("certify", "dpcal-report").count("proved") == 1
    dpcal("check", "dpcal-report/certificate.json")
    assert "run 2 of clinic.budget" in (folder / "dpcal-report" / "statement.html").read_text()
    # The training alone, priced from its sizes: the norm of rows takes a hundredth of the budget.
    (paid,) = json.loads((folder / "dpcal-report" / "report.json").read_text())["runs"]
    _, query = paid["plan"]["queries"]
    sizes = [
        *("--sampling-probability", query["sampling_probability"] or 1),
        *("--noise-multiplier", query["noise_multiplier"], "--steps", query["count"]),
        *("--neighboring-relation", paid["plan"]["neighboring_relation"], "--delta", "5e-7"),
    ]
    priced = json.loads(dpcal("epsilon", *sizes, "--json"))["epsilon"]["upper"]
    assert 0.98 < priced / paid["epsilon"]["upper"] < 1

    write_keys(folder, Ed25519PrivateKey.generate())
    dpcal("verify", "dpcal-report", "--sign", "own.pem")
    for most, status in (("1.0", 0), ("0.5", 1)):
        (folder / "clinic.toml").write_text(f"max_epsilon = {most}\n")
        words = ("--key", "public.pem", "--policy", "clinic.toml")
        dpcal("verify", "dpcal-report", *words, status=status)


@pytest.mark.slow
def test_without_extras_it_is_said_before_a_record_is_read(wheel, tmp_path):
    plain = Environment.create(tmp_path / "plain", wheel, leave_out=EXTRAS)
    (tmp_path / "patients.csv").write_text("no table at all")
    target = ["--target", "sick", "--epsilon", "1", "--delta", "1e-6"]
    refused = plain.dpcal("train", "patients.csv", *target, cwd=tmp_path, check=False)
    assert refused.returncode == 2
    assert "train needs polars and matplotlib: install it from its checkout" in refused.stderr
    assert "No record was read" in refused.stderr
    mechanism = ["--sampling-probability", "0.01", "--noise-multiplier", "1", "--steps", "10000"]
    found = plain.dpcal("epsilon", *mechanism, "--delta", "1e-6", cwd=tmp_path).stdout
    assert "6.90738449" in found  # in 140-bit arithmetic 6.90738449...
