"""Tables of any text become the records that their schema says, one record at a time."""

import bz2
import gzip
import json
import lzma
import re

import numpy as np
import pytest
from _tree import DATA

from dpcal.tables import (
    REACH,
    Coding,
    Column,
    Schema,
    Source,
    draft,
    likely_target,
    load,
    table_of,
)
from dpcal.tables.splitting import coins_of, coins_of_people, digests, within_group_size

KEY = b"a key of the tests"
TEXT = "age;city;sick\n41,5;Köln;no\n;Bonn;yes\n97;;no\n"
NUMBER = {"name": "age", "type": "number"}
CITY = {"name": "city", "type": "category", "categories": ("Bonn", "Köln")}


def write(tmp_path, content, name="table.csv"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# -- reading


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.csv", TEXT.encode(), {}),
        ("a.csv", b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(), {}),
        ("a.csv", TEXT.encode("utf-16"), {}),
        ("a.csv", TEXT.encode("latin-1"), {"encoding": "latin-1"}),
        ("a.tsv", TEXT.replace(";", "\t").encode(), {}),
        ("a.txt", TEXT.replace(";", "|").encode(), {}),
        ("a.txt", TEXT.replace(";", "#").encode(), {"separator": "#"}),
        ("a.csv.gz", gzip.compress(TEXT.encode(), mtime=0), {}),
        ("a.csv.bz2", bz2.compress(TEXT.encode()), {}),
        ("a.csv.xz", lzma.compress(TEXT.encode()), {}),
    ],
    ids=lambda item: repr(item)[:20],
)
def test_one_table_in_many_files(tmp_path, name, content, options):
    source = Source(write(tmp_path, content, name), decimal_comma=True, **options)
    assert source.columns == ("age", "city", "sick")
    rows = [row for batch in source.batches(numbers=["age"]) for row in batch.rows()]
    assert rows == [(41.5, "Köln", "no"), (None, "Bonn", "yes"), (97.0, None, "no")]


@pytest.mark.parametrize("form", ["parquet", "zst"])
def test_forms_that_polars_writes(tmp_path, form):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"age": [41.5, None], "city": ["Köln", "Bonn"]})
    if form == "parquet":
        path = tmp_path / "a.parquet"
        frame.write_parquet(path)
    else:
        path = tmp_path / "a.csv.zst"
        frame.lazy().sink_csv(path, compression="zstd")
    batches = list(Source(path).batches(numbers=["age"]))
    assert [row for batch in batches for row in batch.rows()] == [(41.5, "Köln"), (None, "Bonn")]


def test_a_table_is_read_a_part_at_a_time(tmp_path):
    path = write(tmp_path, "a\n" + "\n".join(map(str, range(100_000))))
    parts = [batch["a"].to_list() for batch in Source(path).batches(numbers=["a"], rows=10_000)]
    assert len(parts) >= 5
    assert [value for part in parts for value in part] == list(range(100_000))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "at least one record"),
        (b"a,b\n", "at least one record"),
        (b"a,a\n1,2\n", "distinctly"),
        (b"a,b\n1,2,3\n", "another number of cells"),
        (b"a,b\n1\n", "another number of cells"),
        (b"a,b\n1,2\n3,4,5\n", "another number of cells"),
        (b"a,b\n1,\xe9\n", "--encoding"),
    ],
)
def test_files_that_are_refused(tmp_path, content, sentence):
    with pytest.raises(ValueError, match=sentence):
        list(Source(write(tmp_path, content)).batches())


@pytest.mark.parametrize(
    "table",
    [
        {"age": [3.0, None]},
        [{"age": 3.0}, {"age": None}],
    ],
)
def test_tables_of_python(table):
    assert table_of(table)["age"].to_list() == [3.0, None]


def test_what_is_no_table():
    with pytest.raises(TypeError, match="got int"):
        table_of(3)


# -- schemas


def test_schemas_that_are_refused():
    for text, sentence in json.loads((DATA / "schemas.json").read_text()):
        with pytest.raises(ValueError) as refused:
            Schema.from_toml(text)
        assert re.search(sentence, str(refused.value)), (text, refused.value)


def test_a_schema_is_read_as_it_was_written():
    schema = Schema(
        columns=(
            Column(**NUMBER, range=(-1.5, 2e30), missing="impute", impute=0, copied=("range",)),
            Column(
                name='odd "name"\n\x7f',
                type="category",
                categories=("ä\\", "b'\t"),
                unknown="ignore",
            ),
            Column(name="who", type="person"),
            Column(name="y", type="class", categories=("no", "yes"), missing="drop-row"),
        ),
        target="y",
        n=1000,
        group_size=3,
        missing_values=("NA", "?"),
    )
    assert Schema.from_toml(schema.to_toml({"age": "a comment\non two lines"})) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.copied() == ["range of 'age'"]


# -- coding


def test_numbers_are_clamped_and_scaled():
    coding = Coding([Column(**NUMBER, range=(0, 80))])
    assert coding.numbers({"age": [-5, 0, 20, 80, 1e300]}).ravel().tolist() == [-4, -4, -2, 4, 4]
    assert coding.square_bound == REACH**2
    huge = Coding([Column(**NUMBER, range=(-1.7e308, 1.7e308))])
    assert huge.numbers({"age": [-1.7e308, 0.0, 1.7e308]}).ravel().tolist() == [-4, 0, 4]


def test_categories_are_indicators_or_places():
    onehot = Coding([Column(**CITY)])
    assert onehot.names == ["city=Bonn", "city=Köln"]
    assert onehot.numbers({"city": [" Köln ", "Bonn"]}).tolist() == [[0, 1], [1, 0]]
    three = {**CITY, "categories": ("low", "middle", "high")}
    ordinal = Coding([Column(**three, coding="ordinal")])
    assert ordinal.numbers({"city": ["low", "middle", "high"]}).ravel().tolist() == [-4, 0, 4]


def test_no_coded_record_is_longer_than_its_bound():
    rng = np.random.default_rng(0)
    columns = [
        Column(**NUMBER, range=(0, 1), missing="impute", impute=7.0),
        Column(**CITY, unknown="ignore"),
        Column(name="grade", type="category", categories=("a", "b", "c"), coding="ordinal"),
    ]
    coding = Coding(columns)
    table = {
        "age": [*rng.standard_cauchy(200), None],
        "city": [*rng.choice(["Bonn", "Köln", "Ulm"], 200), "Bonn"],
        "grade": [*rng.choice(["a", "b", "c"], 200), "a"],
    }
    norms = np.square(coding.numbers(table)).sum(axis=1)
    assert norms.max() <= coding.square_bound == 33.0


@pytest.mark.parametrize(
    ("column", "cells", "sentence"),
    [
        (NUMBER, ["1", "x"], "column 'age' must be a finite number, got one that is none.$"),
        (NUMBER, ["1", ""], "column 'age' must be a finite number, got an empty one; missing ="),
        (NUMBER, [1.0, np.inf], "column 'age' .* got one that is none.$"),
        (NUMBER, [1.0, np.nan], "column 'age' .* got one that is none.$"),
        (
            CITY,
            ["Bonn", "Ulm"],
            "column 'city' .* its 2 declared categories, got another; unknown =",
        ),
        (CITY, ["Bonn", None], "column 'city' .* got an empty one; missing ="),
    ],
)
def test_cells_that_are_refused(column, cells, sentence):
    with pytest.raises(ValueError, match=sentence):
        Coding([Column(**column)]).numbers({column["name"]: cells})


def test_a_record_is_coded_alone():
    """Whatever the others are: this is what makes the coding cost no privacy."""
    columns = [
        Column(**NUMBER, range=(0, 100), missing="impute", impute=50),
        Column(**CITY, missing="impute", impute="Bonn", unknown="ignore"),
    ]
    table = {"age": [3, None, 150, 77], "city": ["Köln", None, "Ulm", "Bonn"]}
    whole = Coding(columns).numbers(table)
    for row in range(4):
        alone = {name: [cells[row]] for name, cells in table.items()}
        assert np.array_equal(Coding(columns).numbers(alone)[0], whole[row])


# -- records


SCHEMA = """
missing_values = ["NA"]
[columns.age]
type = "number"
range = [0, 100]
missing = "drop-row"
[columns.city]
type = "category"
categories = ["Bonn", "Köln"]
unknown = "drop-row"
[columns.note]
type = "drop"
[columns.sick]
type = "class"
classes = ["yes", "no"]
"""


def read(path, text=SCHEMA, **options):
    schema = Schema.from_toml(text)
    source = Source(path, missing_values=schema.missing_values)
    return load(source, schema, target="sick", key=KEY, **options)


def test_records_that_the_schema_leaves_out(tmp_path):
    text = "age,city,note,sick\n 50 ,Bonn,x,no\n\nNA,Köln,,yes\n3,Ulm,,no\n100,Köln,,yes\n"
    records = read(write(tmp_path, text))
    assert (records.read, records.left_out, records.n) == (4, 2, 2)
    X, y, *_ = records.split(0.0)
    assert X.tolist() == [[0, 1, 0], [4, 0, 1]]
    assert y.tolist() == [1.0, 0.0]  # the schema's order of classes, not that of the alphabet
    assert records.labels == ("yes", "no")
    assert not records.labels_read
    assert records.reached["age"].tolist() == [3.0, 100.0]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("age,city,sick,more\n1,Bonn,no,2\n", "not in the schema, got 'more'"),
        ("age,sick\n1,no\n", "must have a column 'city'"),
        (
            "age,city,sick\n1,Bonn,no\n2,Bonn,perhaps\n",
            "column 'sick' must be one of its 2 declared classes, got another",
        ),
        ("age,city,sick\n1,Bonn,no\n\n\n2,Bonn,\n", "must have a label, column 'sick' lacks one.$"),
        (
            "age,city,sick\n1,Bonn,no\nold,Bonn,no\n",
            "column 'age' must be a finite number, got one that is none.$",
        ),
    ],
)
def test_tables_that_do_not_meet_their_schema(tmp_path, text, sentence):
    with pytest.raises(ValueError, match=sentence):
        read(write(tmp_path, text))


def test_classes_that_were_read_are_in_sort_order(tmp_path):
    text = SCHEMA.replace('type = "class"\nclasses = ["yes", "no"]', 'type = "number"')
    path = write(tmp_path, "age,city,note,sick\n1,Bonn,,1\n2,Bonn,,0\n")
    records = read(path, text)
    assert (records.labels, records.labels_read) == (("0", "1"), True)
    assert records.split(0.0)[1].tolist() == [1.0, 0.0]
    for content, count in (("1,Bonn,,1\n", 1), ("1,Bonn,,1\n1,Bonn,,2\n1,Bonn,,3\n", 3)):
        path.write_text("age,city,note,sick\n" + content)
        with pytest.raises(ValueError, match=f"two classes for --loss logistic, got {count}"):
            read(path, text)


# -- splits


def test_one_record_more_moves_nobody_else():
    rng = np.random.default_rng(0)
    records = rng.integers(0, 3, (500, 2)).astype(float)  # nine values: most records have equals
    coins = coins_of(digests(records, KEY), KEY)

    def sides(table, drawn):
        return sorted(
            (tuple(row), coin < 0.2) for row, coin in zip(table.tolist(), drawn, strict=True)
        )

    whole = sides(records, coins)
    for place in rng.integers(0, 500, 20):
        fewer = np.delete(records, place, axis=0)
        left = sides(fewer, coins_of(digests(fewer, KEY), KEY))
        # What is left is the whole without one record: nobody else changed sides.
        gone = whole.copy()
        for each in left:
            gone.remove(each)
        assert [record for record, _ in gone] == [tuple(records[place])]


def test_coins_are_uniform_and_independent():
    """Chi-square over 16 cells of two neighbors' coins; false alarms once in a million."""
    for records in (np.zeros((20_000, 3)), np.arange(60_000.0).reshape(-1, 3)):
        coins = coins_of(digests(records, KEY), KEY)
        cells = (4 * coins[:-1:2]).astype(int) * 4 + (4 * coins[1::2]).astype(int)
        counts = np.bincount(cells, minlength=16)
        expected = len(cells) / 16
        assert ((counts - expected) ** 2 / expected).sum() < 56  # chi-square of 15: 1.2e-6
        assert coins.min() >= 0
        assert coins.max() < 1
    other = coins_of(digests(records, b"another"), b"another")
    assert abs(np.corrcoef(coins, other)[0, 1]) < 0.036  # five standard deviations


def test_minus_zero_is_zero():
    assert digests(np.array([[0.0, 1.0]]), KEY) == digests(np.array([[-0.0, 1.0]]), KEY)


def test_rows_beyond_the_group_size_are_chosen_by_row_numbers_alone():
    people = np.repeat(np.arange(50), 7)
    kept = within_group_size(people, 3, KEY)
    assert np.bincount(people[kept]).tolist() == [3] * 50
    # Who the others are has no say in which of one person's rows stay.
    others = np.where(people == 7, 7, 1000 + np.arange(len(people)))
    assert np.array_equal(within_group_size(others, 3, KEY)[people == 7], kept[people == 7])
    assert within_group_size(people, 7, KEY).all()


def test_a_person_is_on_one_side(tmp_path):
    rng = np.random.default_rng(0)
    people = rng.integers(0, 100, 1000)
    lines = [f"{person},{person},Bonn,no" for person in people]
    text = SCHEMA.replace("missing_values", "group_size = 4\nmissing_values")
    text += '[columns.who]\ntype = "person"\n'
    records = read(write(tmp_path, "who,age,city,sick\n" + "\n".join(lines)), text)
    counts = np.bincount(people)
    assert records.beyond == int(np.maximum(counts - 4, 0).sum())
    X_train, _, X_test, _ = records.split(0.3)
    assert len(X_train) + len(X_test) == records.n == int(np.minimum(counts, 4).sum())
    sides = [set(X[:, 0].tolist()) for X in (X_train, X_test)]
    assert not sides[0] & sides[1]
    assert len(sides[1]) > 10
    names = [str(person) for person in range(5)]
    alone = [coins_of_people([name], KEY)[0] for name in names]
    assert coins_of_people(names, KEY).tolist() == alone


# -- drafts


def test_a_draft_fits_its_table_and_says_what_it_copied(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.normal(120, 20):.1f};{rng.choice(['A', 'B'])};{i // 2 if i % 9 else 'NA'};"
        f"name {i};7;{rng.choice(['ja', 'nein'])}"
        for i in range(200)
    ]
    rows[5] = ";" + rows[5].split(";", 1)[1]
    path = write(tmp_path, "\ufeffbp;blood;count;name;same;sick\n" + "\n".join(rows))
    schema, comments = draft(Source(path), target="sick")
    kinds = {column.name: column.type for column in schema.columns}
    assert kinds == {
        "bp": "number",
        "blood": "category",
        "count": "number",
        "name": "drop",
        "same": "number",
        "sick": "class",
    }
    assert schema.missing_values == ("NA",)
    assert set(comments) == {"bp", "count", "name"}
    for column in schema.columns:
        assert (column.type == "drop") == (not column.copied)
    low, high = schema.column("count").range
    assert low <= 0 < 99 <= high
    again = Schema.from_toml(schema.to_toml(comments))
    records = load(Source(path, missing_values=again.missing_values), again, target="sick", key=KEY)
    assert (records.n, records.left_out) == (200, 0)
    for ends, reached in (
        (again.column(name).range, records.reached[name]) for name in records.reached
    ):
        assert ends[0] <= reached[0] <= reached[1] <= ends[1]


def test_a_draft_takes_no_id_no_person_and_no_date_for_a_feature(tmp_path):
    """The columns of a hospital's export, beside numbers that look like them."""
    rng, n = np.random.default_rng(0), 1000
    who = rng.integers(0, 400, n)
    people = rng.permutation(np.arange(100_000, 1_000_000))[:400]
    columns = {
        "": np.arange(n),
        "case": [f"C{i:06d}" for i in rng.permutation(n)],
        "patient_id": people[who],
        "personID": [f"p{i}" for i in who],
        "card": people[who] + 7,
        "admitted": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d} 08:15" for i in range(n)],
        "born": [f"{1 + i % 28}.{1 + i % 12}.19{20 + i % 70}" for i in range(n)],
        "age": rng.integers(18, 95, n),
        "income": rng.lognormal(10, 0.6, n).round().astype(int),
        "steps": rng.integers(0, 20_000, n),
        "length_of_stay": rng.exponential(4, n).round(2),
        "risk": rng.standard_normal(n),
        "sick": rng.choice(["no", "yes"], n),
    }
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    source = Source(write(tmp_path, "\n".join([",".join(columns), *lines]) + "\n"))
    schema, comments = draft(source)
    dropped = {
        column.name: comments[column.name] for column in schema.columns if column.type == "drop"
    }
    words = {name: comment.split()[0].rstrip(":") for name, comment in dropped.items()}
    assert words == {
        "": "numbers",
        "case": "id",
        "patient_id": "person?",
        "personID": "person?",
        "card": "person?",
        "admitted": "dates",
        "born": "dates",
    }
    assert "a claim is about one row, not one person" in comments["patient_id"]
    assert "new row" in comments["length_of_stay"]
    assert "--target sick" in comments["sick"]
    assert likely_target(schema) == "sick"
    # What is predicted is described, whatever it looks like, and comments hold nothing of the rows.
    assert draft(source, target="patient_id")[0].column("patient_id").type == "number"
    assert not any(character.isdigit() for character in "".join(dropped.values()))


@pytest.mark.parametrize("cell", ["2024/05/{:02d}", "202405{:02d}", "2024.5.{} 08:15"])
def test_a_draft_reads_no_dates_however_they_are_written(tmp_path, cell):
    lines = [f"{cell.format(1 + row % 28)},{row % 7}" for row in range(60)]
    source = Source(write(tmp_path, "\n".join(["day,size", *lines])))
    schema, comments = draft(source)
    assert [column.type for column in schema.columns] == ["drop", "number"]
    assert comments["day"].startswith("dates:")


@pytest.mark.parametrize("name", ["", "Unnamed: 0"])
def test_row_numbers_of_a_data_frame_are_no_feature_even_if_rows_are_few_or_repeat(tmp_path, name):
    schema, comments = draft(Source(write(tmp_path, f"{name},size\n0,2.5\n0,3\n1,4\n")))
    assert schema.columns[0].type == "drop"
    assert comments[name].startswith("numbers of rows")


def test_ranges_of_drafts_are_rounded_outward(tmp_path):
    rng = np.random.default_rng(0)
    for scale in 10.0 ** rng.uniform(-12, 12, 30):
        values = scale * rng.standard_normal(3)
        path = write(tmp_path, "a\n" + "\n".join(map(repr, values.tolist())))
        (column,) = draft(Source(path))[0].columns
        assert column.range[0] <= values.min()
        assert values.max() <= column.range[1]
        assert column.range[1] - column.range[0] < 1.5 * np.ptp(values) + 0.3 * abs(values).max()


def test_draft_of_an_unknown_target(tmp_path):
    with pytest.raises(ValueError, match="target must be one of the columns 'a', got 'b'"):
        draft(Source(write(tmp_path, "a\n1\n")), target="b")
