"""Every registered optimizer trains from the command line, and its row says what is true of it."""

import inspect
import json
import re

import numpy as np
import pytest
from _tree import ROOT

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.cli import main
from dpcal.commands.training.tuning import TUNING
from dpcal.errors import UnsupportedEvent
from dpcal.optim.registry import OPTIMIZERS, SELECTIONS
from dpcal.report import verify

pytestmark = pytest.mark.usefixtures("without_pictures")

# What an optimizer cannot do without, where --bounds does not imply it.
NEEDED = {
    "dp_rgda": ["--problem", "fair", "--group", "a", "--no-intercept"],
    "dp_sgda": ["--problem", "auc", "--steps", "30"],
    "privatediff": ["--problem", "fair", "--group", "b", "--steps", "10"],
    "kl_spider": ["--l2", "0.2", "--no-intercept"],
    "proximal_point": ["--gamma", "1.5", "--inner-steps", "20"],
    "correlated_dpsgd": ["--noise", "banded", "--sampler", "full", "--steps", "20"],
}


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Write 300 rows with three features in [0, 10] and two classes."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (300, 3))
    labels = np.where(X @ [1.0, -1.0, 0.5] > 2.5, "yes", "no")
    path = tmp_path_factory.mktemp("data") / "table.csv"
    lines = [
        ",".join([*map(repr, row), label]) for row, label in zip(X.tolist(), labels, strict=True)
    ]
    path.write_text("\n".join(["a,b,c,answer", *lines]) + "\n")
    return path


def words(table, name, folder, *more):
    asked = ["train", "--csv", table, "--target", "answer", "--bounds", "0:10", "--delta", "1e-5"]
    given = ["--epsilon", "2", "--optimizer", name, "--seed", "1", "-o", folder, *more]
    return [*map(str, [*asked, *given])]


# -- training


# With so few records some runs take no step, and say so; what they claim must hold all the same.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_train_and_verify(capsys, table, tmp_path, name):
    folder = tmp_path / "report"
    assert main(words(table, name, folder, *NEEDED.get(name, []))) == 0
    text = capsys.readouterr().out
    document = json.loads((folder / "report.json").read_text())
    (run,) = document["runs"]
    assert run["plan"]["optimizer"] == document["training"]["optimizer"] == name
    assert run["plan"]["neighboring_relation"] in OPTIMIZERS[name].relations
    # Everything that was calibrated is spent, to the calibration's accuracy, and no more.
    assert 2.0 * (1 - 3e-3) < run["epsilon"]["upper"] <= 2.0
    assert f"neighboring relation {run['plan']['neighboring_relation']}" in text
    assert all(row["holds"] for row in verify(document))
    assert main(["verify", str(folder)]) == 0
    # A claim below what the ledger proves does not pass.
    document["runs"][0]["epsilon"]["upper"] = run["epsilon"]["lower"] * 0.99
    assert not all(row["holds"] for row in verify(document))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_public_number_of_records_is_taken_or_refused_by_its_option(
    capsys, table, tmp_path, name
):
    asked = words(table, name, tmp_path / "report", *NEEDED.get(name, []), "--n", "320")
    status = main(asked)
    said = capsys.readouterr().err.splitlines()
    if "add-or-remove-one" in OPTIMIZERS[name].relations:
        assert status == 0
        document = json.loads((tmp_path / "report" / "report.json").read_text())
        plan = document["runs"][0]["plan"]
        assert (plan["public_n"], plan["neighboring_relation"]) == (True, "add-or-remove-one")
        assert document["runs"][0]["epsilon"]["upper"] <= 2.0
        assert all(row["holds"] for row in verify(document))
    else:
        assert status == 2
        assert said[-1].startswith(
            "dpcal: --n 320 is for --neighboring-relation add-or-remove-one,"
        )
        assert f"--optimizer {name} does not have" in said[-1]
    # The plan's own names are no options.
    assert "public_n" not in " ".join(said)


@pytest.mark.parametrize("name", ["kl_spider", "adaptive_gd"])
def test_the_summary_tells_the_noise_that_was_added(capsys, table, tmp_path, name):
    folder = tmp_path / "report"
    assert main(words(table, name, folder, *NEEDED.get(name, []))) == 0
    text = capsys.readouterr().out
    ledger = json.loads((folder / "report.json").read_text())["runs"][0]["ledger"]["entries"]
    kinds = {entry["kind"] for entry in ledger}
    for kind in kinds:
        entries = [entry for entry in ledger if entry["kind"] == kind]
        (line,) = [line for line in text.splitlines() if line.startswith(f"{kind}: ")]
        noises = [entry["noise_multiplier"] for entry in entries]
        assert f"{kind}: {sum(entry['count'] for entry in entries)} answer" in line
        assert f"{min(noises):.5f}" in line
        assert f"{max(noises):.5f}" in line
    budget = ledger[0]["budget"]
    assert f"charged as a single one with noise multiplier {budget:.5f}" in text
    # No answer can have had the noise of the budget itself, if there were several.
    assert all(entry["noise_multiplier"] > budget for entry in ledger)


def test_options_reach_the_plan(capsys, table, tmp_path):
    given = ["--gamma", "2", "--kappa", "1.5", "--beta", "0.2", "--max-norm", "1", "--json"]
    assert main(words(table, "kl_spider", tmp_path / "report", *given, "--smoothness", "9")) == 0
    plan = json.loads(capsys.readouterr().out)["runs"][0]["plan"]
    parameters = plan["parameters"]
    assert (parameters["gamma"], parameters["kappa"]) == (2.0, 1.5)
    assert (parameters["lipschitz"], parameters["smoothness"]) == (1.0, 9.0)
    assert plan["queries"][0]["max_norm"] == 1.0


def test_l2_without_intercept_is_strong_convexity(capsys, table, tmp_path):
    given = ["--l2", "0.5", "--no-intercept", "--json"]
    assert main(words(table, "kl_spider", tmp_path / "report", *given)) == 0
    document = json.loads(capsys.readouterr().out)
    parameters = document["runs"][0]["plan"]["parameters"]
    # ||x||^2 <= 3 * 16 without an intercept; mu = 0.5, gamma = (2 mu)^(-1/2).
    assert parameters["gamma"] == pytest.approx(1.0)
    assert parameters["per_distance"] == pytest.approx(12.0)
    assert parameters["smoothness"] == pytest.approx(12.5)
    assert document["model"]["intercept"] == 0.0


def test_a_vacuous_theorem_is_a_warning(capsys, table, tmp_path):
    given = ["--gamma", "1", "--preset", "theory"]
    assert main(words(table, "kl_spider", tmp_path / "report", *given)) == 0
    out, err = capsys.readouterr()
    assert "dpcal: warning: " in err
    assert "no record was asked about" in out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("kl_spider", [], "needs gamma: give --gamma, or --l2 > 0 with --no-intercept"),
        ("proximal_point", [], "needs gamma: give --gamma"),
        ("kl_spider", ["--gamma", "1", "--kappa", "3"], "kappa must be in [1, 2]"),
        ("proximal_point", ["--gamma", "1", "--kappa", "1"], "kappa must be at least 2"),
        ("kl_spider", ["--gamma", "0"], "gamma must be a finite number > 0"),
        ("noisy_gd", ["--gamma", "1"], "--gamma is not for --optimizer noisy_gd"),
        ("dpsgd", ["--smoothness", "1"], "--smoothness is not for --optimizer dpsgd"),
        ("adaptive_gd", ["--smoothness", "-1"], "smoothness must be"),
        ("noisy_gd", ["--gap", "0"], "gap must be"),
        ("spiderboost", ["--preset", "best"], "--preset: invalid choice: 'best'"),
        ("spiderboost", ["--learning-rate", "9"], "learning_rate must be below"),
        (
            "tree_spider",
            ["--neighboring-relation", "add-or-remove-one"],
            "must be replace-one or replace-special for --optimizer tree_spider",
        ),
        ("jl_glm", ["--embedding-dimension", "0"], "embedding_dimension"),
        ("jl_glm", ["--embedding-dimension", "2", "--l2", "1"], "l2"),
        ("recursive_regularization", ["--distance", "0"], "distance must be"),
        ("correlated_dpsgd", [], "needs --noise: one of"),
        ("proximal_point", ["--loss", "squared"], "needs lipschitz: give --max-norm"),
        ("dpsgd", ["--loss", "squared"], "column 'answer'"),
    ],
)
def test_wrong_input_is_one_sentence_and_leaves_nothing(
    capsys, table, tmp_path, name, given, sentence
):
    assert main(words(table, name, tmp_path / "report", *given)) == 2
    out, err = capsys.readouterr()
    message = err.split("\r")[-1]
    assert sentence in message
    assert message.startswith("dpcal: ")
    assert (out, message.count("\n")) == ("", 1)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([], "needs lipschitz: give --max-norm"),
        (["--max-norm", "1"], "needs smoothness: give --smoothness or --bounds"),
    ],
)
def test_constants_can_be_given_instead_of_bounds(capsys, table, tmp_path, given, sentence):
    asked = words(table, "spiderboost", tmp_path / "report")
    at = asked.index("--bounds")
    asked = [*asked[:at], *asked[at + 2 :]]
    assert main([*asked, *given]) == 2
    assert sentence in capsys.readouterr().err
    assert main([*asked, "--max-norm", "1", "--smoothness", "50"]) == 0


# -- the table


@pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=lambda row: row.name)
def test_a_row_is_about_what_is_there(row):
    builder, optimizer = getattr(calibrate, row.name), getattr(optim, row.name)
    assert row.build() is builder
    assert row.optimizer() is optimizer
    assert row.name in calibrate.__all__
    assert row.name in optim.__all__
    keywords = set(inspect.signature(builder).parameters)
    constants = set(inspect.signature(Constants).parameters)
    ways = {way for need in row.needs for way in need.split(" or ")}
    # Keywords of the inner builder are passed on; commands turn epochs into steps of a strategy.
    passed_on = {"jl_glm": {"max_norm"}, "correlated_dpsgd": {"epochs", "steps"}}
    keywords |= passed_on.get(row.name, set())
    assert ways <= keywords | constants
    assert set(row.options) <= keywords
    assert {"n", "epsilon", "delta", "neighboring_relation"} <= keywords
    assert row.constants == bool({"dimension", "dimensions"} & keywords)
    assert row.blocks == ("dimensions" in keywords)
    for text in (row.summary, row.problem, row.rate, row.measure, row.theorem):
        assert text
    # A year, and which part of the paper.
    assert any(year in row.theorem for year in map(str, range(2006, 2030)))
    assert set(row.options) <= {*TUNING, "l2"}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_documented(name):
    page = (ROOT / "docs" / "optimizers.md").read_text()
    _, section = page.split(f"\n## {name}\n")
    example = section.split("\n## ")[0]
    assert f">>> plan = calibrate.{name}(" in example
    assert f"optim.{name}(" in example
    assert f"[`{name}`](#{name})" in page
    assert "docs/optimizers.md" in (ROOT / "README.md").read_text()


def test_links_lead_somewhere():
    docs = ROOT / "docs"
    page = (docs / "optimizers.md").read_text()
    links = re.findall(r"\]\(([\w./-]*)(?:#([\w-]+))?\)", page)
    assert links
    for file, anchor in links:
        target = docs / (file or "optimizers.md")
        assert target.exists()
        if anchor:
            heads = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
            assert anchor in {head.lower().replace(" ", "-") for head in heads}


def test_every_option_is_somebodys():
    assert {*TUNING, "l2"} == {name for row in OPTIMIZERS.values() for name in row.options}


@pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=lambda row: row.name)
def test_relations_are_those_that_can_be_calibrated(row):
    """Of those that can, every plan is built, priced and run in ``tests/contracts``."""
    from dpcal.accountants.matrix import Banded

    constants = Constants(
        lipschitz=1.0, smoothness=1.0, strong_convexity=0.5, gap=0.5, hessian_lipschitz=0.1
    )
    first = [constants] if row.constants else []
    more = {"dimension": 3} if row.constants else {"batch_size": 40, "steps": 10}
    if row.blocks:
        first = [
            Constants(
                lipschitz=1.0,
                smoothness=1.0,
                strong_concavity=0.5,
                gap=0.5,
                hessian_lipschitz=0.1,
            )
        ]
        more = {"dimensions": (3, 1)}
    if row.name == "correlated_dpsgd":
        first = [Banded(10, 2)]
        more = {"batch_size": 40, "statistics": False}
    for relation in ("add-or-remove-one", "replace-one", "replace-special"):
        target = {"n": 400, "epsilon": 1.0, "delta": 1e-5, "neighboring_relation": relation}
        if relation not in row.relations:
            with pytest.raises((ValueError, UnsupportedEvent)):
                row.build()(*first, **more, **target)


def test_listed(capsys):
    assert main(["optimizers", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["optimizers"]
    assert {row["name"] for row in rows} == {*OPTIMIZERS, *SELECTIONS}
    # What others are compared with comes last, and says so.
    comparators = ["dp_sgda", "privatediff", "sto_spider", "ada_dp_spider"]
    assert [row["name"] for row in rows if row["comparator"]] == comparators
    assert [row["name"] for row in rows][-4:] == comparators
    assert main(["optimizers"]) == 0
    text = capsys.readouterr().out
    for row in OPTIMIZERS.values():
        assert f"{row.name}: {row.summary}" in text
        assert row.rate in text
        assert row.theorem in text
        said = f"{row.name}: {row.summary} (a comparator, not recommended)" in text
        assert said == row.comparator
    assert main(["optimizers", "kl_spider"]) == 0
    assert "--gamma" in capsys.readouterr().out


def test_the_table_knows_what_selects(capsys):
    assert main(["optimizers", "select_point"]) == 0
    assert "Algorithm 4" in capsys.readouterr().out
    (row,) = SELECTIONS.values()
    assert row.build() is calibrate.select_point
    assert row.optimizer() is optim.select_point
    keywords = set(inspect.signature(row.build()).parameters)
    assert set(row.options) <= keywords
