"""A table that several files train on, and reports without pictures that nobody looks at."""

import numpy as np
import pytest

from dpcal.tables import Column, Schema, fit


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A table of 200 rows, three features in [0, 10], two classes; its schema is beside it."""
    X = np.random.default_rng(0).uniform(0, 10, (200, 3))
    labels = np.where(X @ [1.0, -1.0, 0.5] > 2.5, "yes", "no")
    rows = [",".join([*map(repr, row), y]) for row, y in zip(X.tolist(), labels, strict=True)]
    path = tmp_path_factory.mktemp("data") / "table.csv"
    path.write_text("\n".join(["a,b,c,answer", *rows]) + "\n")
    columns = {name: Column(name=name, type="number", range=(0, 10)) for name in "abc"}
    schema = Schema(columns=(*columns.values(), Column(name="answer", type="number")))
    path.with_suffix(".toml").write_text(schema.to_toml())
    return path


@pytest.fixture
def without_pictures(monkeypatch):
    """Let reports of ``dpcal train`` have no pictures, which take longer than a small run does."""
    monkeypatch.setattr(fit, "_pictures", lambda plan, model: {})
