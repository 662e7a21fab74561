"""Two users' tasks from the wheel: an engineer with a table, a privacy engineer with a claim."""

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from _installed import Environment
from _patients import write_patients

pytestmark = pytest.mark.slow

EXTRAS = ("polars", "_polars_runtime_32", "matplotlib", "sklearn")


@pytest.fixture(scope="module")
def clinic(installed, tmp_path_factory):
    """The folder in which the engineer's lines were run, each as a shell would run it."""
    folder = tmp_path_factory.mktemp("clinic")
    write_patients(folder / "patients.csv")
    new = (folder / "patients.csv").read_text("utf-8-sig").splitlines()[:101]
    (folder / "new.csv").write_text("\ufeff" + "\n".join(new), encoding="utf-8")
    target = ["--target", "sick", "--epsilon", "1", "--delta", "1e-6"]
    for words in (
        ["schema", "patients.csv", "-o", "schema.toml"],
        ["train", "patients.csv", "--schema", "schema.toml", *target, "--budget", "clinic.budget"],
        ["predict", "dpcal-report/model.json", "new.csv", "-o", "scores.csv"],
    ):
        installed.dpcal(*words, cwd=folder)
    return folder


def test_the_engineer_has_a_schema_a_report_and_scores(clinic):
    schema = (clinic / "schema.toml").read_text()
    assert "copied = [" in schema
    assert '"AB"' in schema
    made = {path.name for path in (clinic / "dpcal-report").iterdir()}
    pages = {"statement.html", "sp800-226.html", "privacy-profile.svg"}
    assert made == {"report.json", "model.json", *pages}
    said = [line.split(",")[0] for line in (clinic / "scores.csv").read_text().splitlines()[1:]]
    truth = [line.split(";")[-1] for line in (clinic / "new.csv").read_text().splitlines()[1:]]
    # The best rule has an accuracy of 0.87: of 100 records it misses 65 once in a million.
    assert sum(a == b for a, b in zip(said, truth, strict=True)) > 65


def test_the_engineer_sees_what_was_spent_and_what_is_left(clinic, installed):
    text = installed.dpcal("budget", "clinic.budget", cwd=clinic).stdout
    for part in (
        "total    epsilon 1 at delta 1e-06",
        "by 2 runs",  # one about the norm of rows, and the training
        "records  patients.csv",
        "planned answers",
        "left ",
    ):
        assert part in text, part


def test_a_model_is_loaded_in_python(clinic, installed):
    script = "import dpcal; print(*dpcal.load_model('dpcal-report/model.json').predict('new.csv'))"
    said = [line.split(",")[0] for line in (clinic / "scores.csv").read_text().splitlines()[1:]]
    assert installed.python("-c", script, cwd=clinic).stdout.split() == said


def test_the_engineer_counts_and_averages_before_a_model_is_made(clinic, installed):
    """From the same schema and book: what a hospital asks first, charged, verified and proved."""
    asked = ["--count", "age > 65", "--mean", "pressure", "--histogram", "blood"]
    target = ["--epsilon", "0.5", "--delta", "1e-6", "--schema", "schema.toml", "-o", "counts"]
    refused = ["release", "patients.csv", *asked, *target, "--budget", "clinic.budget"]
    failed = installed.dpcal(*refused, cwd=clinic, check=False)
    assert failed.returncode == 2
    assert "no record was touched" in failed.stderr
    assert not (clinic / "counts").exists()
    shown = installed.dpcal("release", "patients.csv", *asked, *target, cwd=clinic).stdout
    assert "count where age > 65" in shown
    told = json.loads((clinic / "counts" / "report.json").read_text())["release"]["statistics"]
    ages = [
        int(line.split(";")[0])
        for line in (clinic / "patients.csv").read_text("utf-8-sig").splitlines()[1:]
    ]
    low, high = (told[0][end] for end in ("low", "high"))
    # An interval that misses by its own width has been missed once in a million.
    assert 2 * low - high < sum(age > 65 for age in ages) < 2 * high - low
    assert "DOES NOT HOLD" not in installed.dpcal("verify", "counts", cwd=clinic).stdout
    assert "proved" in installed.dpcal("certify", "counts", cwd=clinic).stdout


def test_an_auditor_proves_the_claims_of_a_model_without_retyping(clinic, installed):
    said = installed.dpcal("certify", "dpcal-report", cwd=clinic).stdout
    assert said.count("proved") == 1
    installed.dpcal("certify", "--check", "dpcal-report/certificate.json", cwd=clinic)
    entry = ["verify", "dpcal-report", "--registry", "entry.yaml"]
    assert "DOES NOT HOLD" not in installed.dpcal(*entry, cwd=clinic).stdout
    told = json.loads((clinic / "entry.yaml").read_text())["deployment"]
    assert told["privacy_loss"]["privacy_parameters"]["delta"] == 1e-6
    page = (clinic / "dpcal-report" / "statement.html").read_text()
    assert "run 2 of clinic.budget" in page


RARE = """
import numpy as np, dpcal
rng = np.random.default_rng(0)
X = rng.standard_normal((9000, 6))
y = rng.random(9000) < 1 / (1 + np.exp(3.2 - X @ [1.0, -1.0, 0.5, 0, 0, 0]))
names = [f"x{j}" for j in range(6)]
columns = {name: {"type": "number", "range": [-4, 4]} for name in names}
columns["y"] = {"type": "class", "categories": ["no", "yes"]}
table = {**dict(zip(names, X.T)), "y": np.where(y, "yes", "no")}
def said(found):
    return 1 / (1 + np.exp(-(X @ found.model.weights + found.model.intercept)))
alone = dpcal.train(table, {"columns": columns}, target="y", epsilon=1.0, delta=1e-6)
assert 0.75 < said(alone).mean() / y.mean() < 1.3, said(alone).mean() / y.mean()
auc = alone.document["evaluation"]
assert auc["auc"] is None or abs(auc["auc"] - 0.8) < 4 * auc["auc_standard_error"], auc
columns["who"] = {"type": "person"}
table["who"] = [f"p{i // 3}" for i in range(9000)]
persons = dpcal.train(
    table, {"columns": columns, "group_size": 3}, target="y", epsilon=1.0, delta=1e-6)
assert "at most 3" in persons.document["privacy"]["unit"]
assert persons.result.epsilon(1e-6) <= 1.0
"""
NESTED = """
import numpy as np, dpcal
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline
from dpcal.estimators import LogisticRegression, SimpleImputer, StandardScaler, split_budget
rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (3000, 4))
X[::9, 0] = -5.0
y = (X[:, 1] > 0).astype(int)
filled = SimpleImputer(missing_values=-5.0, bounds=(-1, 1))
inner = make_pipeline(filled, StandardScaler(bounds=(-1, 1)))
columns = ColumnTransformer([("first", inner, [0, 1]), ("rest", "passthrough", [2, 3])])
model = make_pipeline(columns, LogisticRegression(classes=[0, 1], row_norm=2.0))
model = split_budget(model, epsilon=2.0, delta=1e-6)
with dpcal.budget(epsilon=2.0, delta=1e-6) as shared:
    model.fit(X, y)
assert 0.5 < shared.spent <= 2.0, shared.spent
folder = dpcal.report.save("nested", model)
assert all(row["holds"] for row in dpcal.report.verify(dpcal.report.read(folder)))
assert np.mean(model.predict(X) == y) > 0.8
"""


@pytest.mark.parametrize("script", [RARE, NESTED], ids=["rare classes and persons", "nested"])
def test_a_data_scientist_s_lines_hold(installed, tmp_path, script):
    installed.python("-W", "ignore", "-c", script, cwd=tmp_path)


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


def test_a_privacy_engineer_checks_a_claim(clinic, installed):
    """A colleague's report says epsilon 1: verify, price, prove, ask what was assumed, draw."""

    def run(*words):
        return installed.dpcal(*words, cwd=clinic).stdout

    assert "DOES NOT HOLD" not in run("verify", "dpcal-report")
    (paid,) = json.loads((clinic / "dpcal-report" / "report.json").read_text())["runs"]
    scale, query = paid["plan"]["queries"]
    told = [
        *("--sampling-probability", query["sampling_probability"] or 1),
        *("--noise-multiplier", query["noise_multiplier"], "--steps", query["count"]),
        *("--neighboring-relation", paid["plan"]["neighboring_relation"], "--delta", "1e-6"),
    ]
    priced = json.loads(run("epsilon", *told, "--json"))["epsilon"]
    # The norm of rows takes a hundredth of the budget.
    assert scale["count"] == 1
    assert 0.98 < priced["upper"] / paid["epsilon"]["upper"] < 1
    made = run("certify", *told, "--width", "0.1", "-o", "proof.json")
    assert "replace-special" in made
    proof = json.loads((clinic / "proof.json").read_text())
    assert float(proof["lower"]) <= priced["upper"]
    assert float(proof["upper"]) >= priced["lower"]
    assert float(proof["upper"]) <= 1.1
    run("certify", "--check", "proof.json")
    sizes = ["--n", paid["plan"]["n"], "--batch-size", 100, "--epochs", 2]
    samplers = ["--noise-multiplier", 2, "--delta", "1e-6", "--samplers", "poisson,shuffled-epochs"]
    table = run("compare", *sizes, *samplers)
    rows = re.findall(r"(\S+) +\S+ +(?:\[[\d.]+, )?([\d.]+)\]?   ", table)
    found = {name: float(upper) for name, upper in rows}
    assert found["poisson"] < found["shuffled-epochs"]
    # A picture that carries its mechanism, relation and version.
    run("plot", "profile", *told, "-o", "profile.svg")
    root = ElementTree.parse(clinic / "profile.svg").getroot()
    (about,) = root.iter("{http://purl.org/dc/elements/1.1/}description")
    for part in (
        repr(query["noise_multiplier"]),
        f"{query['count']} Poisson",
        "replace-special",
        "dpcal ",
    ):
        assert part in about.text
