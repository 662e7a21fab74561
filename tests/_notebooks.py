"""Notebooks, run from their first cell to their last in the interpreter that runs the tests."""

import json

from _tree import ROOT


def run(name):
    """Run what a kernel would run, without the seconds that a kernel takes to start.

    The notebook's own assertions hold then. Its pictures are matplotlib's open figures.

    Returns
    -------
    dict
        What the notebook has defined.
    """
    notebook = json.loads((ROOT / "notebooks" / f"{name}.ipynb").read_text())
    assert all(not cell.get("outputs") for cell in notebook["cells"]), "commit it without outputs"
    names = {"__name__": "__main__"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), f"{name}, {cell['id']}", "exec"), names)
    return names
