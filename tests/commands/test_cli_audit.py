"""The commands ``audit`` and ``schedule``."""

import inspect
import json
import tomllib
from importlib.metadata import EntryPoint

import pytest
from _tree import DATA, ROOT

from dpcal.calibrate.papers import ALGORITHMS, PAPERS, sources
from dpcal.calibrate.papers.from_schedule import PLANNERS
from dpcal.commands.schedule import CONSTANTS, SCHEDULES

SIZES = "--n 1000000 --epsilon 1 --delta 1e-6"
BALL = "--L0 1 --L1 1 --F0 1"
SCHEDULED = tomllib.loads((DATA / "schedules.toml").read_text(encoding="utf-8"))
GUARANTEED = {
    *("spiderboost", "tree_spider", "kl_condition", "proximal_point", "adaptive_gd"),
    "select_point",
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_schedule_that_help_names_prints_a_plan(cli, name):
    dimension = "--d 20" if "d" in SCHEDULES[name][1].split() else ""
    document = json.loads(cli("schedule", name, SIZES, dimension, SCHEDULED[name]))
    assert 0 < document["priced_epsilon"] <= 1
    # What a plan promises is a bound or an order, and the two are told apart.
    promised = {"accuracy", "vacuous"} & {*document["parameters"]}
    assert document["accuracy_kind"] in (("guarantee", "order") if promised else (None,))
    assert (document["accuracy_kind"] == "guarantee") == (name in GUARANTEED)


def test_a_schedule_meets_its_target_or_is_vacuous_and_says_from_which_size_on_it_is_not(cli):
    sizes = "schedule spiderboost --d 784 --epsilon 1 --delta 1e-6"
    status, out, err = cli.run(sizes, "--n 60000", BALL)
    assert (status, err) == (0, "")
    assert 0.999 < json.loads(out)["priced_epsilon"] <= 1
    _, out, err = cli.run(sizes, "--n 400", BALL)
    assert "vacuous at n=400" in err
    assert json.loads(out)["parameters"]["informative_from_n"] > 400


def test_help_names_each_schedule_with_the_constants_that_it_takes():
    assert set(SCHEDULES) == {*PLANNERS, *ALGORITHMS}
    assert set(PLANNERS) == set(PAPERS)
    given = {"schedule", "n", "epsilon", "delta", "neighboring_relation"}
    for name, (_, needs) in SCHEDULES.items():
        named, optional = needs.replace("]", "").partition("[")[::2]
        if name in PLANNERS:
            parameters = inspect.signature(PLANNERS[name]).parameters
            known = {*parameters} - given
            free = {k for k in known if parameters[k].default is not inspect.Parameter.empty}
        else:
            algorithm = ALGORITHMS[name]
            known = {"d", *algorithm.constants, *algorithm.options}
            free = {*algorithm.optional}
        assert {*named.split(), *optional.split()} == known <= {*CONSTANTS}
        assert {*optional.split()} == free


@pytest.mark.slow
def test_a_sixth_paper_is_audited_from_its_file(cli, tmp_path):
    path = tmp_path / "paper.json"
    sixth = ROOT / "notebooks" / "dpsgd_2014.py"
    assert cli("audit", sixth, "--format json -o", path) == ""
    document = json.loads(path.read_text(encoding="utf-8"))
    found = {finding["claim"]: finding["status"] for finding in document["findings"]}
    told = ("textbook", "beyond.printed", "excess.exact", "logarithm.printed")
    assert [found[name] for name in told] == ["PROVED", "REFUTED", "PROVED", "REFUTED"]
    assert document["counts"]["dpsgd_2014"]["REFUTED"] == [*found.values()].count("REFUTED")
    assert all(finding["source"] for finding in document["findings"])
    assert {wrong["erratum"] for wrong in document["errata"]} == {"beyond", "logarithm"}


def test_an_installed_schedule_is_found_by_its_name(cli, monkeypatch, tmp_path):
    (tmp_path / "outside_paper.py").write_text(
        "from dpcal.calibrate.papers import Schedule\n"
        "SCHEDULE = Schedule(name='outside', quantities='n: size',"
        " claims='Lemma 1:\\n  c: 0 < n')\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    point = EntryPoint("outside", "outside_paper:SCHEDULE", sources.GROUP)
    monkeypatch.setattr(sources, "entry_points", lambda group: [point])
    assert cli("audit outside")
    assert r"\begin{longtable}" in cli("audit outside --format latex")
    monkeypatch.setattr(sources, "entry_points", lambda group: [])
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "outside_paper.py").rename(tmp_path / "package" / "paper.py")
    assert cli("audit package.paper")
