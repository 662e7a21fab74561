"""Statistics of a table at the user's door: true, priced, in the book, verified, and refused."""

import json
import re
import tomllib

import numpy as np
import polars as pl
import pytest
from _tree import DATA

import dpcal
from dpcal import report
from dpcal.errors import BudgetExceeded

RNG = np.random.default_rng(7)
N = 6000
TABLE = {
    "age": RNG.uniform(20, 80, N).round(1),
    "stay": np.minimum(RNG.exponential(4, N), 60).round(2),
    "clinic": RNG.choice(["north", "south", "west"], N, p=[0.5, 0.3, 0.2]),
    "length of stay": RNG.integers(0, 10, N),
}
REFUSALS = tomllib.loads((DATA / "refusals.toml").read_text(encoding="utf-8"))["statistics"]
TOML = (DATA / "stays.toml").read_text(encoding="utf-8")
SCHEMA = dpcal.tables.Schema.from_toml(TOML)
# By a statistic's words, the same question in SQL.
QUERIES = tomllib.loads((DATA / "stays_asked.toml").read_text(encoding="utf-8"))


def released(*asked, table=TABLE, schema=SCHEMA, epsilon=1.0, **options):
    return dpcal.release(table, schema, asked, epsilon=epsilon, delta=1e-6, **options)


def truths(asked):
    """Return what another engine answers, for each clinic where the statistic is by clinic."""
    groups = " GROUP BY clinic ORDER BY clinic" if "clinic" in asked.split()[-1] else ""
    clipped = pl.DataFrame({**TABLE, "stay": np.clip(TABLE["stay"], 0, 30)})
    return clipped.sql(f"SELECT {QUERIES[asked]} AS due FROM self{groups}")["due"].to_list()


@pytest.mark.slow
def test_with_little_noise_a_statistic_is_the_tables_own():
    due = [truth for each in QUERIES for truth in truths(each)]
    found = released(*QUERIES, epsilon=9000.0)
    assert found.frame().height == len(found.rows)
    assert 8990 < found.result.epsilon(1e-6) <= 9000.0
    for row, truth in zip(found.rows, due, strict=True):
        assert row["value"] == pytest.approx(truth, rel=2e-3), row
        # Of a quantile the interval ends at drawn points, which stand beside one of 6,000 values.
        assert row["low"] - 0.05 <= truth <= row["high"] + 0.05, row


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "epsilon"), [("laplace total", 1.0), ("total", 0.3)])
def test_intervals_hold_the_truth_in_95_of_100_releases(kind, epsilon):
    """Alone a statistic has Laplace noise, and all of them together Gaussian noise."""
    batches = [[*QUERIES]] * 20
    if kind == "laplace total":
        alone = [[each] for each in QUERIES if not each.startswith("quantile")]
        batches = alone * 7
    inside, within = [], []
    for batch in batches:
        found = released(*batch, epsilon=epsilon)
        assert 0.999 * epsilon < found.result.epsilon(1e-6) <= epsilon
        assert found.document["everything"]["epsilon"]["upper"] <= epsilon
        kinds = {query.kind for query in found.result.plan.queries}
        assert ("laplace total" in kinds) == (kind == "laplace total")
        due = [truth for each in batch for truth in truths(each)]
        for row, truth in zip(found.rows, due, strict=True):
            inside.append(row["low"] <= truth <= row["high"])
            if row["standard_error"]:
                within.append((row["value"] - truth) / row["standard_error"])
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(inside))
    # Standard errors are neither too small nor much too large.
    assert 0.85 < np.sqrt(np.mean(np.clip(within, -6, 6) ** 2)) < 1.2


def names(*asked):
    return {query.name for query in released(*asked).result.plan.queries}


def test_means_share_their_count_and_variances_their_sum():
    shared = names("mean age by clinic", "variance age by clinic", "histogram clinic")
    assert shared == {"count by clinic", "sum of age by clinic", "squares of age by clinic"}
    # Every row has an age, and how many rows there are is told; not so where cells may be missing.
    assert names("mean age") == {"sum of age"}
    assert names("mean stay") == {"sum of stay", "count of stay"}


def test_missing_cells_and_blank_lines_do_not_count(tmp_path):
    path = tmp_path / "table.csv"
    lines = ["40,2,north,1", "", "41,,south,2", "42,4,west,3"] * 400
    path.write_text("\n".join(["age,stay,clinic,length of stay", *lines]) + "\n")
    found = released("mean stay", "count stay > 1", "count not stay > 1", table=path, epsilon=300.0)
    values = [row["value"] for row in found.rows]
    assert values == pytest.approx([3.0, 800.0, 0.0], abs=0.5)
    assert found.document["data"]["rows"] == 1200


def test_a_person_with_several_rows_is_the_unit():
    schema = dpcal.tables.Schema.from_toml(TOML + '[columns.who]\ntype = "person"\n')
    who = [f"p{i}" for i in np.random.default_rng(1).integers(0, 1500, N)]
    asked = ("count age > 65", "mean stay")
    found = released(*asked, table={**TABLE, "who": who}, schema=schema, group_size=2)
    assert found.result.group_size == 2
    assert "2 training records" in found.document["privacy"]["unit"]
    data = found.document["data"]
    assert data["beyond_group_size"] == N - data["rows"] > 100
    # Twice the noise multiplier pays for two rows.
    both = (found, released(*asked))
    two, one = (each.result.plan.queries[0].noise_multiplier for each in both)
    assert two == pytest.approx(2 * one, rel=1e-3)
    with pytest.raises(ValueError, match="person"):
        released("mean age", group_size=2)


def test_a_public_number_of_rows_stands_for_the_tables_own():
    found = released("count", "mean age", n=5000)
    plan = found.result.plan
    assert (plan.n, plan.public_n, plan.neighboring_relation) == (5000, True, "add-or-remove-one")
    for row, truth, error in zip(found.rows, (N, TABLE["age"].mean()), (200, 9), strict=True):
        assert abs(row["value"] - truth) < 8 * row["standard_error"] < error
    assert str(N) not in json.dumps(found.document["data"])


WITH_TOWN = dpcal.tables.Schema.from_toml(TOML + '[columns.town]\ntype = "drop"\n')


@pytest.mark.parametrize("given", [{}, {"schema": WITH_TOWN}, {"by": "town"}])
def test_groups_that_are_found_hide_those_of_a_few(given):
    """Also of a column that the schema does not describe, at the same price."""
    lonely = np.where(np.arange(N) % 3, "big", "small")
    table = {**TABLE, "town": np.where(np.arange(N) < 3, "lonely", lonely)}
    by = "" if "by" in given else " by town"
    asked = (f"count{by}", f"mean age{by}")
    found = released(*asked, table=table, find_groups=True, **given)
    assert [row["town"] for row in found.rows] == ["big", "small"] * 2
    assert found.document["release"]["groups_found"] == {"town": ["big", "small"]}
    assert found.rows[0]["value"] == pytest.approx((table["town"] == "big").sum(), abs=100)
    described = released(*asked, table=table, find_groups=True, **{**given, "schema": WITH_TOWN})
    assert found.result.plan.queries == described.result.plan.queries


def test_groups_are_found_where_that_is_asked_for_and_there_are_some():
    table = {**TABLE, "town": [f"t{i}" for i in range(N)]}
    for words, options in (
        ("find_groups=True", {"schema": WITH_TOWN}),
        ("column", {"find_groups": True, "by": "toun"}),
    ):
        with pytest.raises(ValueError, match=words):
            released("count by town" if "by" not in options else "count", table=table, **options)
    asked = ["count by town", "mean age by town", "quantile age 0.5 by town", "mean age"]
    found = released(*asked, table=table, schema=WITH_TOWN, find_groups=True)
    assert [row["statistic"] for row in found.rows] == ["mean of age"]
    assert found.result.epsilon(1e-6) <= 1.0
    assert "mean of age" in str(found)


def test_a_noisy_count_of_nothing_says_nothing():
    (row,) = released("mean age where stay > 29.99 and age > 79.9 and clinic == 'west'").rows
    assert (row["value"], row["standard_error"]) == (None, None)
    assert (row["low"], row["high"]) == (0, 100)


def test_a_report_is_verified_and_bound(cli, tmp_path):
    folder = released("mean stay by clinic", "count age > 65").save(tmp_path / "report")
    assert all(row["holds"] for row in report.verify(report.read(folder)))
    assert pl.read_csv(folder / "release.csv").height == 4
    page = (folder / "statement.html").read_text()
    assert "What was released" in page
    assert "mean of stay" in page
    assert "trained model" not in page
    (folder / "release.csv").write_text("statistic,value\n")
    assert "release.csv" in cli("verify", folder, status=1)


def test_a_book_or_a_budget_is_charged_once_and_refuses_what_does_not_fit(tmp_path):
    asked = ("mean age", "histogram clinic")
    target = {"epsilon": 1.5, "delta": 1e-6}
    book, path = tmp_path / "clinic.budget", tmp_path / "table.csv"
    shared = dpcal.BudgetBook(book, neighboring_relation="replace-special", **target)
    pl.DataFrame(TABLE).write_csv(path)
    released(*asked, table=path, budget=book)
    assert [run.label for run in shared.runs] == ["release"]
    assert 0.98 < shared.spent() <= 1.0
    with pytest.raises(BudgetExceeded):
        released("mean stay", table=path, budget=book)
    assert len(shared.runs) == 1
    with dpcal.budget(**target) as shared:
        released(*asked)
        assert 0.98 < shared.spent <= 1.0
        with pytest.raises(BudgetExceeded):
            released("mean age")


WRONG = {
    **REFUSALS,
    f"count {'(' * 300}age > 1{')' * 300}": "compare columns with constants",
    f"count {' or '.join(['age > 1'] * 200)}": "at most 1000 characters",
}


def test_what_is_no_statistic_is_refused_before_a_row_is_read():
    for asked, words in WRONG.items():
        with pytest.raises(ValueError, match=re.escape(words)):
            released(asked, table={**TABLE, "age": ["no number"] * N})


@pytest.mark.slow
def test_the_command_is_the_function(cli, tmp_path):
    table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
    pl.DataFrame(TABLE).write_csv(table)
    schema.write_text(TOML)
    words = ["release", table, "--schema", schema, "--epsilon 1 --delta 1e-6 -o", tmp_path / "out"]
    words += ["'count age > 65' 'mean stay' 'quantile age 0.1 0.9' count --by clinic"]
    shown = cli.json(*words)["release"]["statistics"]
    named = [("count where age > 65", None), ("mean of stay", None)]
    named += [("quantile of age", 0.1), ("quantile of age", 0.9), ("count", None)]
    found = {(row["statistic"], row.get("share"), row["clinic"]) for row in shown}
    assert found == {(*name, clinic) for name in named for clinic in ("north", "south", "west")}
    assert cli("verify", tmp_path / "out")
    assert "--force" in cli.refused(*words)
