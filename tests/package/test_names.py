"""Every name that has ever been public can still be imported, from where it was."""

import importlib
import json
import subprocess
import sys

import pytest
from _tree import DATA, ROOT

from dpcal._moved import MOVED

# Names of each public module and of modules that have moved since, as of the first layout; without
# those that were the inner business of losses.
FORMER = json.loads((DATA / "public_names.json").read_text())
FOLDERS = ("accountants", "calibrate", "estimators", "optim", "plot", "report")


@pytest.mark.parametrize("module", FORMER)
@pytest.mark.filterwarnings("ignore:module dpcal:DeprecationWarning")
def test_former_names_are_found(module):
    found = importlib.import_module(module)
    assert [name for name in FORMER[module] if not hasattr(found, name)] == []


@pytest.mark.slow
def test_former_modules_warn_and_are_those_that_stand_now():
    """In a fresh interpreter, where nothing has imported them under their former names."""
    script = (
        "import importlib, json, warnings\n"
        f"for former, now in json.loads({json.dumps(MOVED)!r}).items():\n"
        "    with warnings.catch_warnings(record=True) as caught:\n"
        "        warnings.simplefilter('always')\n"
        "        found = importlib.import_module(former)\n"
        "    assert found is importlib.import_module(now), former\n"
        "    ours = [each for each in caught if f'module {former} is' in str(each.message)]\n"
        "    assert [each.category for each in ours] == [DeprecationWarning], former\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_former_module_hides_one_that_is_there():
    there = [name for name in MOVED if (ROOT / f"{name.replace('.', '/')[6:]}.py").exists()]
    assert there == []


@pytest.mark.parametrize("package", ["dpcal", *(f"dpcal.{name}" for name in FOLDERS)])
def test_dir_lists_every_public_name_and_each_is_found(package):
    module = importlib.import_module(package)
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        if name != "__version__":  # known to installed packages alone
            getattr(module, name)
    assert len(set(module.__all__)) == len(module.__all__)
