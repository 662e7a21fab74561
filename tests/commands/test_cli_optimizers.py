"""Every registered optimizer trains from the command line, and its row says what is true of it."""

import importlib
import inspect
import json

import pytest
from _built_plans import BUILT, built
from _tree import ROOT

from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.errors import UnsupportedEvent
from dpcal.optim.registry import OPTIMIZERS, SELECTIONS
from dpcal.report import verify

pytestmark = pytest.mark.usefixtures("without_pictures")

# What an optimizer cannot do without, where ranges do not imply it.
NEEDED = {
    "kl_spider": "--l2 0.2 --no-intercept",
    "proximal_point": "--set gamma=1.5 inner_steps=20",
}
# Those that take an objective of two players, or a plan that is made before.
ELSEWHERE = ("correlated_dpsgd", "dp_rgda", "dp_sgda", "privatediff")
TRAINED = [name for name in OPTIMIZERS if name not in ELSEWHERE]
TARGET = "--target answer --epsilon 2 --delta 1e-5 --seed 1 --force --optimizer"


@pytest.fixture
def train(cli, table, tmp_path):
    """Return what trains, and returns the report and what is printed."""

    def run(name, *more):
        schema = ["--schema", table.with_suffix(".toml")]
        text = cli("train", table, *schema, TARGET, name, *more, "-o", tmp_path / "report")
        return json.loads((tmp_path / "report" / "report.json").read_text()), text

    return run


# With so few records some runs take no step, and say so; what they claim must hold all the same.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::dpcal.errors.VacuousSchedule")
@pytest.mark.parametrize("name", TRAINED)
def test_train_and_verify(cli, table, train, tmp_path, name):
    document, text = train(name, NEEDED.get(name, ""))
    (run,) = document["runs"]
    relation = run["plan"]["neighboring_relation"]
    assert run["plan"]["optimizer"] == document["training"]["optimizer"] == name
    assert relation in OPTIMIZERS[name].relations
    # Everything that was calibrated is spent, to the calibration's accuracy, and no more.
    assert 2.0 * (1 - 3e-3) < run["epsilon"]["upper"] <= 2.0
    assert f"neighboring relation {relation}" in text
    assert cli("verify", tmp_path / "report")
    # A claim below what the ledger proves does not pass.
    run["epsilon"]["upper"] = run["epsilon"]["lower"] * 0.99
    assert not all(row["holds"] for row in verify(document))
    # A public number of records is taken, or refused by its option: the plan's names are none.
    public = [NEEDED.get(name, ""), "--n 220"]
    if "add-or-remove-one" in OPTIMIZERS[name].relations:
        document, text = train(name, *public)
        (run,) = document["runs"]
        plan = run["plan"]
        assert (plan["public_n"], plan["neighboring_relation"]) == (True, "add-or-remove-one")
        assert run["epsilon"]["upper"] <= 2.0
        assert all(row["holds"] for row in verify(document))
    else:
        told = cli.refused("train", table, TARGET, name, *public, "-o", tmp_path / "other")
        assert told.startswith("--neighboring-relation must be replace-one or replace-special")
        assert f"for optimizer {name}, got 'add-or-remove-one', which n is for" in told
        assert "public_n" not in told


@pytest.mark.parametrize("name", ["kl_spider", "adaptive_gd"])
def test_the_summary_tells_the_noise_that_was_added(train, name):
    document, text = train(name, NEEDED.get(name, ""))
    ledger = document["runs"][0]["ledger"]["entries"]
    budget = ledger[0]["budget"]
    assert f"charged as a single one with noise multiplier {budget:.5f}" in text
    for kind in {entry["kind"] for entry in ledger}:
        entries = [entry for entry in ledger if entry["kind"] == kind]
        (line,) = [line for line in text.splitlines() if line.startswith(f"{kind}: ")]
        noises = [entry["noise_multiplier"] for entry in entries]
        # No answer can have had the noise of the budget itself, if there were several.
        assert min(noises) > budget
        for part in (f"{kind}: {sum(entry['count'] for entry in entries)} answer", min(noises)):
            assert (part if isinstance(part, str) else f"{part:.5f}") in line


def test_options_reach_the_plan(cli, train, table, tmp_path):
    given = "--max-grad-norm 1 --set gamma=2 kappa=1.5 beta=0.2 smoothness=9"
    plan = train("kl_spider", given)[0]["runs"][0]["plan"]
    told = [plan["parameters"][name] for name in ("gamma", "kappa", "lipschitz", "smoothness")]
    assert told == [2.0, 1.5, 1.0, 9.0]
    assert plan["queries"][0]["max_norm"] == 1.0
    # With l2 and no intercept a loss is strongly convex: ||x||^2 <= 3 * 16; mu = 0.5, and
    # gamma = (2 mu)^(-1/2).
    document, _ = train("kl_spider", "--l2 0.5 --no-intercept")
    parameters = document["runs"][0]["plan"]["parameters"]
    told = [parameters[name] for name in ("gamma", "per_distance", "smoothness")]
    assert told == pytest.approx([1.0, 12.0, 12.5])
    assert document["model"]["intercept"] == 0.0
    # Three features in [-4, 4] and an intercept: ||x||^2 <= 49, so L0 = 7 and L1 = 49 / 4.
    for words, bound, rate in (
        ("--neighboring-relation replace-one", 7.0, 4 / 49),
        ("--n 200 --set max_norm=1 --set learning_rate=0.5 --set steps=7", 1.0, 0.5),
    ):
        plan = train("noisy_gd", words)[0]["runs"][0]["plan"]
        (query,) = plan["queries"]
        assert query["max_norm"] == pytest.approx(bound)
        assert plan["parameters"]["learning_rate"] == pytest.approx(rate)
    assert query["count"] == 7
    # Constants can be given instead of ranges; and a vacuous theorem is a warning.
    given = "spiderboost --set max_norm=1 --set smoothness=50 -o"
    assert cli("train", table, TARGET, given, tmp_path / "report")
    given = "kl_spider --set gamma=1 kappa=1 --n 20 -o"
    schema = ["--schema", table.with_suffix(".toml")]
    status, _, err = cli.run("train", table, *schema, TARGET, given, tmp_path / "report")
    assert status == 0
    assert "dpcal: warning: " in err


# -- the table


@pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=lambda row: row.name)
def test_a_row_is_about_what_is_there(row, monkeypatch):
    assert row.optimizer() is getattr(optim, row.name)
    assert row.name in {*calibrate.__all__} & {*optim.__all__}
    keywords = set(inspect.signature(row.build()).parameters)
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
    assert all((row.summary, row.problem, row.rate, row.measure, row.theorem))
    monkeypatch.syspath_prepend(ROOT / "docs")
    page = importlib.import_module("reference").optimizers()
    section = page.split(f"\n## {row.name}\n")[1].split("\n## ")[0]
    assert f"`dpcal.calibrate.{row.name}`" in section
    assert f"`dpcal.optim.{row.name}`" in section
    assert f"[`{row.name}`](#" in page
    assert f"{row.name}(" in section or row.name == "ada_dp_spider"  # sto_spider's is also its


@pytest.mark.parametrize("row", OPTIMIZERS.values(), ids=lambda row: row.name)
def test_relations_are_those_that_can_be_calibrated(row):
    """Of those that can, every plan is built, priced and run in ``tests/contracts``."""
    for relation in {"add-or-remove-one", "replace-one", "replace-special"} - {*row.relations}:
        with pytest.raises((ValueError, UnsupportedEvent)):
            built(row.name, BUILT[row.name][0], relation)


def test_listed(cli):
    rows = cli.json("optimizers")["optimizers"]
    assert {row["name"] for row in rows} == {*OPTIMIZERS, *SELECTIONS}
    # What others are compared with comes last, and says so.
    comparators = ["dp_sgda", "privatediff", "sto_spider", "ada_dp_spider"]
    assert [row["name"] for row in rows][-4:] == comparators
    lines = cli("optimizers").splitlines()
    assert sum(not line.startswith(" ") for line in lines) == len(rows) + 1
    assert max(map(len, lines)) <= 80
    for row in OPTIMIZERS.values():
        assert row.comparator == (row.name in comparators)
        (line,) = [line for line in lines if line.split()[0] == row.name]
        assert (line.split()[1] == "comparator:") == row.comparator
        text = cli("optimizers", row.name)
        assert all(part in text for part in (f"{row.name}: {row.summary}", row.rate, row.theorem))
    (row,) = SELECTIONS.values()
    assert (row.build(), row.optimizer()) == (calibrate.select_point, optim.select_point)
    assert set(row.options) <= set(inspect.signature(row.build()).parameters)
