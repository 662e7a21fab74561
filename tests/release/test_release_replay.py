"""A search for bad neighbours finds nothing in a release, and something where it is made wrong."""

import contextlib
import io

import numpy as np
import pytest

import dpcal
from dpcal.optim import attacks
from dpcal.tables.releasing.statistics import Total

N = 150
RNG = np.random.default_rng(0)
X = np.clip(RNG.standard_normal((N, 2)), -3, 3)
Y = (X[:, 0] > 0).astype(int)
NUMBER = {"type": "number", "range": [-4, 4], "missing": "blank"}
CLASS = {"type": "category", "categories": ["0", "1"], "missing": "blank", "unknown": "blank"}
SCHEMA = {"columns": {"a": NUMBER, "b": NUMBER, "y": CLASS, "town": {"type": "drop"}}}
ASKED = {
    "totals": ["count a > 0", "sum a", "mean a by y", "variance b", "histogram y, a:4"],
    "one total": ["mean a"],
    "quantiles": ["quantile a 0.1 0.5", "quantile b 0.7 where a > 0 by y"],
    "found": ["count by town", "mean a by town"],
}


def door(asked):
    def run(table):
        rows = table[0]
        frame = {"a": rows[:, 0], "b": rows[:, 1], "y": table[1]}
        frame["town"] = np.where(np.nan_to_num(rows[:, 1]) > 0, "up", "down")
        said = io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            found = dpcal.release(
                frame, SCHEMA, asked, epsilon=4.0, delta=1e-4, find_groups=asked is ASKED["found"]
            )
            print(found)
        return found.rows, {**found.document, "written": None}, said.getvalue()

    return run


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ASKED)
def test_a_search_finds_nothing(name):
    shown = attacks.replay_table(door(ASKED[name]), X, Y, price=False, seed=1)
    assert len(shown) > 15
    for found in shown:
        assert found.holds, str(found)
    assert any(found.moved for found in shown)


CELLS_OF = Total.cells


def less_the_largest(total, rows):
    """Numbers less the largest of the records, which a record moves for all others."""
    made = CELLS_OF(total, rows)
    if made.values is None:
        return made
    return type(made)(made.places, made.count, made.values - np.nanmax(made.values))


@pytest.mark.filterwarnings("ignore")
def test_a_hole_is_found(monkeypatch):
    monkeypatch.setattr(Total, "cells", less_the_largest)
    shown = attacks.replay_table(door(ASKED["one total"]), X, Y, price=False, seed=1)
    assert not all(found.holds for found in shown)
