"""A report of one number about persons, whose claims several files hold against something."""

import json

import numpy as np
import pytest

import dpcal
from dpcal import report


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    table = {"age": np.random.default_rng(0).uniform(20, 80, 2000)}
    table["who"] = [f"p{i // 2}" for i in range(2000)]
    columns = {"age": {"type": "number", "range": [0, 100]}, "who": {"type": "person"}}
    schema = {"group_size": 2, "columns": columns}
    found = dpcal.release(table, schema, ["mean age"], epsilon=1.0, delta=1e-6)
    return found.save(tmp_path_factory.mktemp("clinic") / "report")


@pytest.fixture
def too_small(folder, tmp_path):
    """A report that claims less than its ledger proves."""
    document = report.read(folder) | {"files": {}}
    document["everything"]["epsilon"]["upper"] = 0.1
    (tmp_path / "false").mkdir()
    (tmp_path / "false" / "report.json").write_text(json.dumps(document))
    return tmp_path / "false"
