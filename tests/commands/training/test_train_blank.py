"""A schema may ask that `dpcal train` counts odd records as blank, and tells nobody."""

import json

import numpy as np
import pytest
from _tree import DATA

pytestmark = pytest.mark.usefixtures("without_pictures")

SCHEMA = (DATA / "blank.toml").read_text(encoding="utf-8")
USUAL = {"age": "40", "city": "Bonn", "size": "M", "sick": "no"}
ODD = {
    "age": ("secret", "", "inf", "1e999"),
    "city": ("Secretville", ""),
    "size": ("XXL", ""),
    "sick": ("perhaps", ""),
}


def table(**odd):
    rng = np.random.default_rng(0)
    lines = [",".join(USUAL)]
    for row in range(400):
        age = rng.integers(0, 100)
        sick = "yes" if age + rng.normal(0, 10) > 50 else "no"
        record = {"age": str(age), "city": "Ulm", "size": "L", "sick": sick}
        lines.append(",".join((record if row != 7 else USUAL | odd).values()))
    return "\n".join(lines) + "\n"


@pytest.fixture
def trained(cli, tmp_path, monkeypatch):
    """Return what trains on a table with an odd record, and returns the report and all words."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    asked = "train t.csv --schema schema.toml --target sick --epsilon 5 --delta 1e-5 --seed 3"

    def train(words="", **odd):
        (tmp_path / "t.csv").write_text(table(**odd))
        status, out, err = cli.run(asked, "--force", words)
        assert status == 0, err
        report = (tmp_path / "dpcal-report" / "report.json").read_text()
        return json.loads(report), (report, out, err)

    return train


@pytest.mark.slow
@pytest.mark.parametrize(
    ("coding", "words"),
    [("", ""), ("", "--held-out unprotected --test-fraction 0.5"), ("splines", ""), ("random", "")],
)
def test_one_record_does_not_end_a_training(trained, tmp_path, coding, words):
    if coding:
        text = SCHEMA.replace("range =", f'coding = "{coding}"\nrange =')
        (tmp_path / "schema.toml").write_text(text)
    usual, _ = trained(words)
    sizes = {"rows": 400, "left_out": 0, "features": usual["data"]["features"]}
    for name, cell in [(name, cell) for name, cells in ODD.items() for cell in cells]:
        report, texts = trained(words, **{name: cell})
        assert report.keys() == usual.keys()
        assert {key: report["data"][key] for key in sizes} == sizes
        assert report["model"]["weights"].keys() == usual["model"]["weights"].keys()
        assert all(np.isfinite(list(report["model"]["weights"].values())))
        for text in texts:
            assert "secret" not in text.lower()
            assert "perhaps" not in text
        assert "blank" not in texts[-1]


@pytest.mark.slow
def test_a_number_is_blank_too(trained, tmp_path):
    text = SCHEMA.split("[columns.sick]")[0] + '[columns.sick]\ntype = "drop"\n'
    (tmp_path / "schema.toml").write_text(text)
    for cell in ("40", "", "secret"):
        _, texts = trained("--target age --loss squared", age=cell)
        assert "secret" not in "".join(texts)
