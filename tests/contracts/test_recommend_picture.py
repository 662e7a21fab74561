"""Errors against the number of records: lines, and the points where the first row changes."""

import json

import pytest

from dpcal import calibrate, plot
from dpcal.calibrate.recommendation import Recommended
from dpcal.cli import main


def made_up(n):
    """Return rows whose errors are 1 / n and 100 / n^2."""
    plan = calibrate.dpsgd(n=10, batch_size=10, steps=1, epsilon=1.0, delta=1e-6)
    about = {"plan": plan, "passes": 1.0, "evaluations": 10.0, "seconds": 1.0, "needs": ""}
    rows = [
        Recommended(optimizer=name, error=error, low=error / 2, high=2 * error, **about)
        for name, error in (("dpsgd", 1 / n), ("noisy_gd", 100 / n**2))
    ]
    rows = tuple(sorted(rows, key=lambda row: row.error))
    return calibrate.Recommendation(
        rows=rows, bounds=(), lower_bound=0.0, statistical=1 / n, note=""
    )


def test_lines_cross_where_they_are_drawn_to_cross():
    """Errors of 1/n and of 100/n^2 are the same at n = 100, on straight lines."""
    pytest.importorskip("matplotlib")
    n = (10, 40, 700, 5_000)
    tables = [made_up(each) for each in n]
    ((where, before, after),) = plot.crossings(n, tables)
    assert where == pytest.approx(100.0)
    assert (before, after) == ("dpsgd", "noisy_gd")
    axes = plot.errors(n, tables).axes[0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines}
    assert drawn["noisy_gd"] == [100 / each**2 for each in n]
    assert plot.crossings(n[:2], tables[:2]) == []


@pytest.mark.study
def test_the_command_draws_and_tells_the_crossings(tmp_path, capsys):
    pytest.importorskip("matplotlib")
    words = "recommend --loss squared --n 900 --dimension 2 --epsilon 1 --delta 1e-5 --passes 5"
    picture = tmp_path / "errors.svg"
    assert main([*words.split(), "--json", "--picture", str(picture)]) == 0
    assert isinstance(json.loads(capsys.readouterr().out)["crossings"], list)
    assert picture.read_text().startswith("<?xml")
    assert main([*words.split(), "--picture", str(tmp_path / "errors.txt")]) == 2
    assert not (tmp_path / "errors.txt").exists()
