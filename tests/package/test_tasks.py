"""Users' tasks from the wheel: the lines of their pages run, and leave what the pages promise."""

import json
import re
import shlex

import pytest
from _installed import Environment
from _patients import write_keys, write_patients
from _tree import ROOT
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

TASKS = ROOT / "docs" / "tasks"
COMMAND = re.compile(r"^ {4}dpcal (.*)$", re.MULTILINE)
EXTRAS = ("polars", "_polars_runtime_32", "matplotlib", "sklearn")


def run(installed, folder, page):
    """Run the commands of a page as a shell would, and return what each of them printed."""
    lines = COMMAND.findall((TASKS / page).read_text())
    assert lines
    return [installed.dpcal(*shlex.split(line), cwd=folder).stdout for line in lines]


@pytest.fixture(scope="module")
def clinic(installed, tmp_path_factory):
    """The folder in which a data owner followed the page, and what the commands printed."""
    folder = tmp_path_factory.mktemp("clinic")
    write_patients(folder / "patients.csv")
    return folder, run(installed, folder, "data_owner.md")


def labels(path, separator, column):
    """Return a column of a table without its head."""
    lines = path.read_text("utf-8-sig").splitlines()[1:]
    return [line.split(separator)[column] for line in lines]


@pytest.mark.slow
def test_a_data_owner_hands_over_what_can_be_verified(clinic, installed):
    folder, (*_, spent, verified) = clinic
    schema = (folder / "schema.toml").read_text()
    assert "copied = [" in schema
    assert '"AB"' in schema
    made = {path.name for path in (folder / "dpcal-report").iterdir()}
    pages = {"statement.html", "sp800-226.html", "privacy-profile.svg"}
    assert made == {"report.json", "model.json", *pages}
    assert (folder / "counts" / "statement.html").exists()
    assert "holds" in verified
    assert "DOES NOT HOLD" not in verified
    for part in (
        "total    epsilon 2 at delta 1e-06",
        "by 3 runs",  # one about the norm of rows, the training and the counts
        "records  patients.csv",
        "planned answers",
        "left ",
    ):
        assert part in spent, part
    said = labels(folder / "scores.csv", ",", 0)
    truth = labels(folder / "patients.csv", ";", -1)
    right = sum(a == b for a, b in zip(said, truth, strict=True))
    assert right > 0.75 * len(truth)  # the best rule has 0.87
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
    (folder / "clinic.toml").write_text("max_epsilon = 1.0\n")
    run(installed, folder, "auditor.md")
    (folder / "clinic.toml").write_text("max_epsilon = 0.5\n")
    words = COMMAND.findall((TASKS / "auditor.md").read_text())[0]
    dpcal(*shlex.split(words), status=1)


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
