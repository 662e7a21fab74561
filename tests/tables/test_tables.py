"""Tables of any text become the records that their schema says, one record at a time."""

import bz2
import gzip
import json
import re
import tomllib
import zlib

import numpy as np
import polars as pl
import pytest
from _tree import DATA

from dpcal.tables import REACH, Coding, Column, Records, Schema, Source, draft, table_of
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


def rows_of(source):
    return source.frame(numbers=["age"]).rows()


def test_one_table_in_many_files(tmp_path):
    for name, content, options in (
        ("a.csv", TEXT, {}),
        ("a.csv", b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode(), {}),
        ("a.csv", TEXT.encode("utf-16"), {"encoding": "utf-16"}),
        ("a.csv", TEXT.encode("latin-1"), {"encoding": "latin-1"}),
        ("a.tsv", TEXT.replace(";", "\t"), {}),
        ("a.txt", TEXT.replace(";", "|"), {}),
        ("a.txt", TEXT.replace(";", "#"), {"separator": "#"}),
        ("a.csv.gz", gzip.compress(TEXT.encode(), mtime=0), {}),
    ):
        source = Source(write(tmp_path, content, name), decimal_comma=True, **options)
        assert source.columns == ("age", "city", "sick"), (name, content)
        found = [(41.5, "Köln", "no"), (None, "Bonn", "yes"), (97.0, None, "no")]
        assert rows_of(source) == found, (name, content)


def test_forms_that_polars_writes_and_tables_of_python(tmp_path):
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"age": [41.5, None], "city": ["Köln", "Bonn"]})
    frame.write_parquet(tmp_path / "a.parquet")
    assert rows_of(Source(tmp_path / "a.parquet")) == frame.rows()
    for table in (frame.to_dict(as_series=False), frame.to_dicts()):
        assert table_of(table)["age"].to_list() == [41.5, None], table


def test_what_polars_would_unpack_unasked_is_refused(tmp_path):
    pl = pytest.importorskip("polars")
    pl.LazyFrame({"age": [41.5]}).sink_csv(tmp_path / "a.csv.zst", compression="zstd")
    text = TEXT.encode()
    for pack in (gzip.compress, zlib.compress, bz2.compress):
        write(tmp_path, pack(text), f"{pack.__module__}.csv")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match="unpack it first"):
            Source(path)


# -- schemas


def test_schemas_that_are_refused():
    for text, sentence in json.loads((DATA / "schemas.json").read_text()):
        with pytest.raises(ValueError) as refused:
            Schema.from_toml(text)
        assert re.search(sentence, str(refused.value)), (text, refused.value)


def test_a_schema_is_read_as_it_was_written():
    odd = Column(
        name='odd "name"\n\x7f', type="category", categories=("ä\\", "b'\t"), unknown="ignore"
    )
    columns = (
        Column(**NUMBER, range=(-1.5, 2e30), missing="impute", impute=0, copied=("range",)),
        odd,
        Column(name="who", type="person"),
        Column(name="y", type="class", categories=("no", "yes"), missing="drop-row"),
    )
    schema = Schema(columns=columns, target="y", n=1000, group_size=3, missing_values=("NA", "?"))
    assert Schema.from_toml(schema.to_toml({"age": "a comment\non two lines"})) == schema
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.copied() == ["range of 'age'"]


# -- coding


def test_numbers_are_clamped_and_scaled_and_categories_are_indicators_or_places():
    for column, cells, expected in (
        ({**NUMBER, "range": (0, 80)}, [-5, 0, 20, 80, 1e300], [[-4], [-4], [-2], [4], [4]]),
        ({**NUMBER, "range": (-1.7e308, 1.7e308)}, [-1.7e308, 0.0, 1.7e308], [[-4], [0], [4]]),
        (CITY, [" Köln ", "Bonn"], [[0, 1], [1, 0]]),
        (
            {**CITY, "categories": ("low", "middle", "high"), "coding": "ordinal"},
            ["low", "middle", "high"],
            [[-4], [0], [4]],
        ),
    ):
        coding = Coding([Column(**column)])
        assert coding.numbers({column["name"]: cells}).tolist() == expected, column
    assert Coding([Column(**NUMBER, range=(0, 80))]).square_bound == REACH**2
    assert Coding([Column(**CITY)]).names == ["city=Bonn", "city=Köln"]


@pytest.mark.parametrize("feature", ["one-hot", "bins", "splines", "random"])
def test_no_coded_record_is_longer_than_its_bound_and_each_is_coded_alone(feature):
    """Whatever the others are: this is what makes the coding cost no privacy."""
    rng = np.random.default_rng(0)
    coding = Coding(
        [
            Column(**NUMBER, range=(0, 1), missing="impute", impute=7.0, coding=feature),
            Column(name="size", type="number", range=(-1, 1), coding=feature),
            Column(**CITY, missing="impute", impute="Bonn", unknown="ignore"),
            Column(name="grade", type="category", categories=("a", "b", "c"), coding="ordinal"),
        ]
    )
    table = {
        "age": [*rng.standard_cauchy(200), 150, None],
        "size": rng.uniform(-2, 2, 202),
        "city": [*rng.choice(["Bonn", "Köln", "Ulm"], 200), None, "Bonn"],
        "grade": [*rng.choice(["a", "b", "c"], 200), "b", "a"],
    }
    whole = coding.numbers(table)
    for row in (0, 1, 200, 201):
        alone = {name: [cells[row]] for name, cells in table.items()}
        assert np.array_equal(coding.numbers(alone)[0], whole[row])
    longest = np.square(whole).sum(axis=1).max()
    assert 16 < longest <= coding.square_bound * (1 + 1e-12)
    assert feature != "one-hot" or longest == coding.square_bound == 49.0


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
# Without rules for odd cells.
STRICT = SCHEMA.replace('missing = "drop-row"\n', "").replace('unknown = "drop-row"\n', "")


def read(path, text=SCHEMA, held_out=0.0):
    schema = Schema.from_toml(text)
    source = Source(path, missing_values=schema.missing_values)
    return Records(source, schema, target="sick", key=KEY, held_out=held_out)


def test_records_that_the_schema_leaves_out(tmp_path):
    text = "age,city,note,sick\n 50 ,Bonn,x,no\n\nNA,Köln,,yes\n3,Ulm,,no\n100,Köln,,yes\n"
    records = read(write(tmp_path, text))
    assert records.counts == {"rows": 4, "left_out": 2}
    assert records.X_train.tolist() == [[0, 1, 0], [4, 0, 1]]
    assert records.y_train.tolist() == [
        1.0,
        0.0,
    ]  # the schema's order of classes, not that of the alphabet
    assert records.labels == ("yes", "no")
    assert not records.labels_read


def test_tables_that_are_refused(tmp_path):
    tables = tomllib.loads((DATA / "tables.toml").read_text(encoding="utf-8"))["refused"]
    for text, sentence in tables.items():
        with pytest.raises(ValueError) as refused:
            read(write(tmp_path, text.encode("latin-1")), STRICT)
        assert re.search(sentence, str(refused.value)), (text, refused.value)


def test_classes_that_were_read_are_in_sort_order(tmp_path):
    text = SCHEMA.replace('type = "class"\nclasses = ["yes", "no"]', 'type = "number"')
    path = write(tmp_path, "age,city,note,sick\n1,Bonn,,1\n2,Bonn,,0\n")
    records = read(path, text)
    assert (records.labels, records.labels_read) == (("0", "1"), True)
    assert records.y_train.tolist() == [1.0, 0.0]
    for content, count in (("1,Bonn,,1\n", 1), ("1,Bonn,,1\n1,Bonn,,2\n1,Bonn,,3\n", 3)):
        path.write_text("age,city,note,sick\n" + content)
        with pytest.raises(ValueError, match=f"two classes for loss='logistic', got {count}"):
            read(path, text)


# -- splits


def test_one_record_more_moves_nobody_else():
    rng = np.random.default_rng(0)
    records = rng.integers(0, 3, (500, 2)).astype(float)  # nine values: most records have equals

    def sides(table):
        coins = coins_of(digests(table.T, KEY), KEY) < 0.2
        return sorted(zip(map(tuple, table.tolist()), coins.tolist(), strict=True))

    for place in rng.integers(0, 500, 20):
        # What is left is the whole without one record: nobody else changed sides.
        gone = sides(records)
        for each in sides(np.delete(records, place, axis=0)):
            gone.remove(each)
        assert [record for record, _ in gone] == [tuple(records[place])]
    assert digests(np.array([[0.0], [1.0]]), KEY) == digests(np.array([[-0.0], [1.0]]), KEY)


def test_coins_are_uniform_and_independent():
    """Chi-square over 16 cells of two neighbors' coins; false alarms once in a million."""
    for records in (np.zeros((20_000, 3)), np.arange(60_000.0).reshape(-1, 3)):
        coins = coins_of(digests(records.T, KEY), KEY)
        cells = (4 * coins[:-1:2]).astype(int) * 4 + (4 * coins[1::2]).astype(int)
        counts = np.bincount(cells, minlength=16)
        expected = len(cells) / 16
        assert ((counts - expected) ** 2 / expected).sum() < 56  # chi-square of 15: 1.2e-6
        assert coins.min() >= 0
        assert coins.max() < 1
    other = coins_of(digests(records.T, b"another"), b"another")
    assert abs(np.corrcoef(coins, other)[0, 1]) < 0.036  # five standard deviations


def test_rows_beyond_the_group_size_are_chosen_by_row_numbers_alone():
    people = np.repeat(np.arange(50), 7)
    kept = within_group_size(people, 3, KEY)
    assert np.bincount(people[kept]).tolist() == [3] * 50
    # Who the others are has no say in which of one person's rows stay.
    others = np.where(people == 7, 7, 1000 + np.arange(len(people)))
    assert np.array_equal(within_group_size(others, 3, KEY)[people == 7], kept[people == 7])
    assert within_group_size(people, 7, KEY).all()


def test_a_person_is_on_one_side(tmp_path):
    people = np.random.default_rng(0).integers(0, 100, 1000)
    lines = [f"{person},{person},Bonn,no" for person in people]
    text = SCHEMA.replace("missing_values", "group_size = 4\nmissing_values")
    text += '[columns.who]\ntype = "person"\n'
    records = read(write(tmp_path, "who,age,city,sick\n" + "\n".join(lines)), text, held_out=0.3)
    counts = np.bincount(people)
    assert records.counts["beyond_group_size"] == int(np.maximum(counts - 4, 0).sum())
    X_train, X_test = records.X_train, records.X_test
    assert len(X_train) + len(X_test) == int(np.minimum(counts, 4).sum())
    sides = [set(X[:, 0].tolist()) for X in (X_train, X_test)]
    assert not sides[0] & sides[1]
    assert len(sides[1]) > 10
    names = [str(person) for person in range(5)]
    alone = [coins_of_people([name], KEY)[0] for name in names]
    assert coins_of_people(names, KEY).tolist() == alone


# -- drafts


DATES = ("2024-05-{:02d} 08:15", "{:02d}.5.1987", "2024.5.{} 8:15")
DATES += ("2024/05/{:02d}", "202405{:02d}")


def hospital(n=1000):
    """Return columns of a hospital's export, each with the type and the words of a draft of it."""
    rng = np.random.default_rng(0)
    who, numbers = rng.integers(0, 400, n), np.arange(n)
    people = rng.permutation(np.arange(100_000, 1_000_000))[:400]
    dates = {
        f"day {place}": ([form.format(1 + i % 28) for i in numbers], "drop", "dates:")
        for place, form in enumerate(DATES)
    }
    return {
        "": (numbers, "drop", "numbers of rows"),
        "case": ([f"C{i:06d}" for i in rng.permutation(n)], "drop", "id:"),
        "name": ([f"name {i}" for i in numbers], "drop", "id:"),
        "patient_id": (people[who], "drop", "person?"),
        "personID": ([f"p{i}" for i in who], "drop", "person?"),
        "card": (people[who] + 7, "drop", "person?"),
        **dates,
        "age": (rng.integers(18, 95, n), "number", ""),
        "income": (rng.lognormal(10, 0.6, n).round().astype(int), "number", ""),
        "steps": (rng.integers(0, 20_000, n), "number", ""),
        "length_of_stay": (rng.exponential(4, n).round(2), "number", ""),
        "risk": (rng.standard_normal(n), "number", ""),
        "bp": (["", *rng.normal(120, 20, n - 1).round(1)], "number", "some cells are missing"),
        "count": ([i // 2 if i % 9 else "NA" for i in numbers], "number", "some cells are miss"),
        "same": (np.full(n, 7), "number", ""),
        "blood": (rng.choice(["A", "B"], n), "category", ""),
        "sick": (rng.choice(["no", "yes"], n), "category", ""),
    }


def test_a_draft_fits_its_table_and_takes_no_id_no_person_and_no_date_for_a_feature(tmp_path):
    table = hospital()
    lines = zip(*(cells for cells, *_ in table.values()), strict=True)
    text = "\n".join([",".join(table), *(",".join(map(str, line)) for line in lines)])
    path = write(tmp_path, "\ufeff" + text)
    schema, comments = draft(Source(path))
    for column in schema.columns:
        _, kind, words = table[column.name]
        told = comments.get(column.name, "")
        assert (column.type, told[: len(words)]) == (kind, words), column
        assert (kind == "drop") == (not column.copied), column
        # Comments hold nothing of the rows.
        assert kind != "drop" or not re.search(r"\d", told), told
        assert words or not told
    assert "a claim is about one row, not one person" in comments["patient_id"]
    assert schema.missing_values == ("NA",)
    # What is predicted is described, whatever it looks like.
    assert draft(Source(path), target="patient_id")[0].column("patient_id").type == "number"
    schema, comments = draft(Source(path), target="sick")
    assert schema.column("sick").type == "class"
    again = Schema.from_toml(schema.to_toml(comments))
    records = read(path, again.to_toml())
    assert (len(records.y_train), records.counts["left_out"]) == (1000, 0)
    for column in (each for each in again.columns if each.range):
        numbers = Source(path).frame()[column.name].cast(pl.Float64, strict=False)
        assert column.range[0] <= numbers.min() <= numbers.max() <= column.range[1], column


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
        assert [float(f"{end:.1e}") for end in column.range] == [*column.range]
        assert column.range[1] - column.range[0] < 1.5 * np.ptp(values) + 0.3 * abs(values).max()
