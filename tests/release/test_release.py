"""Statistics of a table at the user's door: true, priced, in the book, verified, and refused."""

import json

import numpy as np
import polars as pl
import pytest

import dpcal
from dpcal import report
from dpcal.cli import main
from dpcal.errors import BudgetExceeded

RNG = np.random.default_rng(7)
N = 6000
TABLE = {
    "age": RNG.uniform(20, 80, N).round(1),
    "stay": np.minimum(RNG.exponential(4, N), 60).round(2),
    "clinic": RNG.choice(["north", "south", "west"], N, p=[0.5, 0.3, 0.2]),
    "length of stay": RNG.integers(0, 10, N),
}
TOML = """
[columns.age]
type = "number"
range = [0, 100]
[columns.stay]
type = "number"
range = [0, 30]
missing = "blank"
[columns.clinic]
type = "category"
categories = ["north", "south", "west"]
[columns."length of stay"]
type = "number"
range = [0, 9]
"""
SCHEMA = dpcal.tables.Schema.from_toml(TOML)
STAY = np.clip(TABLE["stay"], 0, 30)
TRUTH = {
    "count age > 65": (TABLE["age"] > 65).sum(),
    "count 30 <= age < 40 and not clinic == 'west'": (
        (TABLE["age"] >= 30) & (TABLE["age"] < 40) & (TABLE["clinic"] != "west")
    ).sum(),
    "count clinic in ['north', 'west'] or `length of stay` >= 8": (
        (TABLE["clinic"] != "south") | (TABLE["length of stay"] >= 8)
    ).sum(),
    "sum stay": STAY.sum(),
    "sum stay where clinic == 'west'": STAY[TABLE["clinic"] == "west"].sum(),
    "sum age": TABLE["age"].sum(),
    "mean age": TABLE["age"].mean(),
    "mean stay": STAY.mean(),
    "mean `length of stay`": TABLE["length of stay"].mean(),
    "variance stay": STAY.var(),
    "variance age where stay > 2": TABLE["age"][TABLE["stay"] > 2].var(),
    "quantile stay 0.9": np.quantile(STAY, 0.9, method="inverted_cdf"),
    "quantile age 0.5 where clinic != 'north'": np.quantile(
        TABLE["age"][TABLE["clinic"] != "north"], 0.5, method="inverted_cdf"
    ),
}
GROUPED = {
    "histogram clinic": lambda rows: rows.sum(),
    "mean age by clinic": lambda rows: TABLE["age"][rows].mean(),
    "sum stay by clinic": lambda rows: STAY[rows].sum(),
    "quantile age 0.25 by clinic": lambda rows: np.quantile(
        TABLE["age"][rows], 0.25, method="inverted_cdf"
    ),
}


def released(*asked, table=TABLE, schema=SCHEMA, epsilon=1.0, **options):
    return dpcal.release(table, schema, asked, epsilon=epsilon, delta=1e-6, **options)


def truths(asked):
    if asked in TRUTH:
        return [TRUTH[asked]]
    return [GROUPED[asked](TABLE["clinic"] == each) for each in ("north", "south", "west")]


@pytest.mark.parametrize("asked", [*TRUTH, *GROUPED])
def test_with_little_noise_a_statistic_is_the_tables_own(asked):
    for row, truth in zip(released(asked, epsilon=500.0).rows, truths(asked), strict=True):
        assert row["value"] == pytest.approx(truth, rel=2e-3), row
        # Of a quantile the interval ends at drawn points, which stand beside one of 6,000 values.
        assert row["low"] - 0.05 <= truth <= row["high"] + 0.05


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.3, 1.0])
@pytest.mark.parametrize("alone", [True, False])
def test_intervals_hold_the_truth_in_95_of_100_releases(alone, epsilon):
    """Alone a statistic has Laplace noise, and all of them together Gaussian noise."""
    asked = [*TRUTH, *GROUPED]
    batches = [asked]
    if alone:
        batches = [[each] for each in asked if not each.startswith("quantile")]
        batches = [*batches[::3] * 5, ["quantile stay 0.9"]]
    inside, within, errors = [], [], []
    for _ in range(8 if alone else 40):
        for batch in batches:
            found = released(*batch, epsilon=epsilon)
            kinds = {query.kind for query in found.result.plan.queries}
            assert ("laplace total" in kinds) == alone
            due = [truth for each in batch for truth in truths(each)]
            for row, truth in zip(found.rows, due, strict=True):
                inside.append(row["low"] <= truth <= row["high"])
                if row["standard_error"]:
                    within.append((row["value"] - truth) / row["standard_error"])
    assert np.mean(inside) >= 0.95 - 3 * np.sqrt(0.05 * 0.95 / len(inside))
    # Standard errors are neither too small nor much too large.
    errors = np.array(within)
    assert 0.85 < np.sqrt(np.mean(np.clip(errors, -6, 6) ** 2)) < 1.2


def test_all_statistics_meet_the_target_together_and_no_less():
    found = released(*TRUTH, *GROUPED)
    assert 0.999 < found.result.epsilon(1e-6) <= 1.0
    assert found.document["everything"]["epsilon"]["upper"] <= 1.0
    assert {row["statistic"] for row in found.rows} >= {"mean of stay", "quantile of stay"}
    assert found.frame().height == len(found.rows) == len(TRUTH) + 3 * len(GROUPED)


def test_means_share_their_count_and_variances_their_sum():
    queries = released(
        "mean age by clinic", "variance age by clinic", "histogram clinic"
    ).result.plan.queries
    assert {query.name for query in queries} == {
        "count by clinic",
        "sum of age by clinic",
        "squares of age by clinic",
    }
    # Every row has an age, and how many rows there are is told; not so where cells may be missing.
    assert [each.name for each in released("mean age").result.plan.queries] == ["sum of age"]
    names = {each.name for each in released("mean stay").result.plan.queries}
    assert names == {"sum of stay", "count of stay"}


def test_missing_cells_and_blank_lines_do_not_count(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(
        "age,stay,clinic,length of stay\n40,2,north,1\n\n41,,south,2\n42,4,west,3\n" * 400
    )
    text = path.read_text().replace("age,stay,clinic,length of stay\n", "")
    path.write_text("age,stay,clinic,length of stay\n" + text)
    found = released("mean stay", "count stay > 1", "count not stay > 1", table=path, epsilon=300.0)
    values = [row["value"] for row in found.rows]
    assert values == pytest.approx([3.0, 800.0, 0.0], abs=0.5)
    assert found.document["data"]["rows"] == 1200


def persons(rows=4, people=1500):
    rng = np.random.default_rng(1)
    table = {name: column[: rows * people] for name, column in TABLE.items()}
    return {**table, "who": [f"p{i}" for i in rng.integers(0, people, rows * people)]}


def test_a_person_with_several_rows_is_the_unit(tmp_path):
    schema = dpcal.tables.Schema.from_toml(TOML + '[columns.who]\ntype = "person"\n')
    found = released(
        "count age > 65", "quantile age 0.5", table=persons(), schema=schema, group_size=2
    )
    assert found.result.group_size == 2
    assert "2 training records" in found.document["privacy"]["unit"]
    data = found.document["data"]
    assert data["beyond_group_size"] == N - data["rows"] > 100
    # Twice the noise multiplier pays for two rows.
    noise = [
        next(each.noise_multiplier for each in one.result.plan.queries if each.kind != "selection")
        for one in (found, released("count age > 65", "quantile age 0.5"))
    ]
    assert noise[0] == pytest.approx(2 * noise[1], rel=1e-3)
    with pytest.raises(ValueError, match="person"):
        released("mean age", group_size=2)


def test_a_public_number_of_rows_stands_for_the_tables_own():
    found = released("count", "mean age", "quantile age 0.5", n=5000)
    plan = found.result.plan
    assert (plan.n, plan.public_n, plan.neighboring_relation) == (5000, True, "add-or-remove-one")
    count, mean, _ = found.rows
    assert abs(count["value"] - N) < 8 * count["standard_error"] < 200
    assert abs(mean["value"] - TABLE["age"].mean()) < 8 * mean["standard_error"]
    assert str(N) not in json.dumps(found.document["data"])


def test_groups_that_are_found_hide_those_of_a_few():
    towns = np.where(np.arange(N) < 3, "lonely", np.where(np.arange(N) % 3, "big", "small"))
    schema = dpcal.tables.Schema.from_toml(TOML + '[columns.town]\ntype = "drop"\n')
    table = {**TABLE, "town": towns}
    found = released(
        "count by town", "mean age by town", table=table, schema=schema, find_groups=True
    )
    assert [row["town"] for row in found.rows] == ["big", "small"] * 2
    assert found.document["release"]["groups_found"] == {"town": ["big", "small"]}
    assert found.rows[0]["value"] == pytest.approx((towns == "big").sum(), abs=100)
    with pytest.raises(ValueError, match="find-groups"):
        released("count by town", table=table, schema=schema)


@pytest.mark.parametrize(
    ("statistics", "by"), [(["count by town"], None), (["count", "mean age"], "town")]
)
def test_groups_of_a_column_that_the_schema_does_not_describe(statistics, by):
    table = {**TABLE, "town": np.where(np.arange(N) % 3, "big", "small")}
    found = released(*statistics, table=table, by=by, find_groups=True)
    assert found.document["release"]["groups_found"] == {"town": ["big", "small"]}
    assert found.rows[0]["value"] == pytest.approx((table["town"] == "big").sum(), abs=100)
    # Described as one to leave out, it has the same price.
    schema = dpcal.tables.Schema.from_toml(TOML + '[columns.town]\ntype = "drop"\n')
    dropped = released(*statistics, table=table, schema=schema, by=by, find_groups=True)
    assert found.result.plan.queries == dropped.result.plan.queries
    with pytest.raises(ValueError, match="column"):
        released("count by toun", table=table, find_groups=True)


def test_where_no_group_is_found_the_rest_is_released():
    schema = dpcal.tables.Schema.from_toml(TOML + '[columns.town]\ntype = "drop"\n')
    table = {**TABLE, "town": [f"t{i}" for i in range(N)]}
    asked = ["count by town", "mean age by town", "quantile age 0.5 by town", "mean age"]
    found = released(*asked, table=table, schema=schema, find_groups=True)
    assert [row["statistic"] for row in found.rows] == ["mean of age"]
    assert found.result.epsilon(1e-6) <= 1.0
    assert "mean of age" in str(found)


def test_a_noisy_count_of_nothing_says_nothing():
    (row,) = released("mean age where stay > 29.99 and age > 79.9 and clinic == 'west'").rows
    assert (row["value"], row["standard_error"]) == (None, None)
    assert (row["low"], row["high"]) == (0, 100)


def test_a_report_is_verified_and_bound(tmp_path, capsys):
    folder = released("mean stay by clinic", "count age > 65").save(tmp_path / "report")
    assert all(row["holds"] for row in report.verify(report.read(folder)))
    assert pl.read_csv(folder / "release.csv").height == 4
    page = (folder / "statement.html").read_text()
    assert "What was released" in page
    assert "mean of stay" in page
    assert "trained model" not in page
    (folder / "release.csv").write_text("statistic,value\n")
    assert main(["verify", str(folder)]) == 1
    assert "release.csv" in capsys.readouterr().out


def test_a_book_is_charged_once_and_refuses_what_does_not_fit(tmp_path):
    book = tmp_path / "clinic.budget"
    shared = dpcal.BudgetBook(book, epsilon=1.5, delta=1e-6, neighboring_relation="replace-special")
    path = tmp_path / "table.csv"
    pl.DataFrame(TABLE).write_csv(path)
    released("mean age", "quantile age 0.5", "histogram clinic", table=path, budget=book)
    assert [run.label for run in shared.runs] == ["release"]
    assert 0.98 < shared.spent() <= 1.0
    with pytest.raises(BudgetExceeded):
        released("mean stay", table=path, budget=book)
    assert len(shared.runs) == 1


def test_a_budget_in_use_is_charged_once():
    with dpcal.budget(epsilon=1.2, delta=1e-6) as shared:
        released("mean age", "quantile age 0.5", "histogram clinic")
        assert 0.98 < shared.spent <= 1.0
        with pytest.raises(BudgetExceeded):
            released("mean age")


HOSTILE = {
    "mean nope": "must name a column",
    "mean clinic": "public range",
    "median age": "must begin with",
    "mean": "needs a column",
    "mean age extra": "must name a column",
    "quantile age": r"shares in \(0, 1\)",
    "quantile age 1.5": r"shares in \(0, 1\)",
    "quantile age half": r"shares in \(0, 1\)",
    "histogram": "needs a column",
    "histogram age:1": "number >= 2",
    "histogram age:x": "number >= 2",
    "histogram clinic:3": "parts are for numbers",
    "histogram age:2000000": "at most 10",
    "mean age by clinic, clinic": "distinct",
    "count age": "compare columns with constants",
    "count age > stay": "compare columns with constants",
    "count age > max(age)": "compare columns with constants",
    "count age.mean() > 1": "compare columns with constants",
    "count __import__('os').system('true')": "compare columns with constants",
    "count age > 'old'": "finite numbers",
    "count age > 1e999": "finite numbers",
    "count clinic == 'east'": "3 categories",
    "count clinic > 'a'": "3 categories",
    "count nope > 1": "that the schema describes",
    "count 1 < 2": "compare columns with constants",
    "count age > 1 if age else 2": "compare columns with constants",
    "count (lambda: 1)()": "compare columns with constants",
    f"count {'(' * 300}age > 1{')' * 300}": "compare columns with constants",
    f"count {' or '.join(['age > 1'] * 200)}": "at most 1000 characters",
}


@pytest.mark.parametrize("asked", HOSTILE)
def test_what_is_no_statistic_is_refused_before_a_row_is_read(asked):
    with pytest.raises(ValueError, match=HOSTILE[asked]):
        released(asked, table={**TABLE, "age": ["no number"] * N})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"epsilon": 0.0}, ValueError),
        ({"epsilon": float("nan")}, ValueError),
        ({"n": 0}, ValueError),
        ({"n": 1.5}, (TypeError, ValueError)),
        ({"group_size": 0}, ValueError),
        ({"colour": "red"}, TypeError),
    ],
)
def test_options_out_of_range_are_refused(options, error):
    with pytest.raises(error):
        released("mean age", **options)


def test_the_command_is_the_function(tmp_path, capsys):
    table, schema = tmp_path / "table.csv", tmp_path / "schema.toml"
    pl.DataFrame(TABLE).write_csv(table)
    schema.write_text(TOML)
    shared = ["release", str(table), "--schema", str(schema), "--epsilon", "1", "--delta", "1e-6"]
    words = ["--count", "age > 65", "--mean", "stay", "--quantile", "age", "0.1", "0.9", "--count"]
    folder = str(tmp_path / "out")
    assert main([*shared, *words, "--by", "clinic", "-o", folder, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    asked = ["count age > 65", "mean stay", "quantile age 0.1 0.9", "count"]
    rows = released(*asked, by="clinic").rows
    shown = document["release"]["statistics"]
    assert [(r["statistic"], r["clinic"]) for r in shown] == [
        (r["statistic"], r["clinic"]) for r in rows
    ]
    assert main(["verify", folder]) == 0
    assert main([*shared, *words, "-o", folder]) == 2
    assert main([*shared, "-o", str(tmp_path / "other")]) == 2
    assert "one or more" in capsys.readouterr().err
    assert not (tmp_path / "other").exists()
