"""What is loaded by whom, beside what ``lint-imports`` checks; and public names are found."""

import importlib
import subprocess
import sys
import tomllib

import pytest
from _modules import imports_of, missing, names_imported, packages, paths
from _tree import DATA, ROOT

LOADS = tomllib.loads((DATA / "loads.toml").read_text())
ANNEXES = tuple(LOADS.pop("annexes"))
MOST_OF_OURS = 126


@pytest.mark.slow
@pytest.mark.parametrize("name", LOADS)
def test_a_question_loads_the_core_alone(name, tmp_path):
    case = LOADS[name]
    lines = ["import sys", "before = {*sys.modules}", case["script"], "print()"]
    lines += ["print(*sys.modules.keys() - before)"]
    words = [sys.executable, "-c", "\n".join(lines)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, cwd=tmp_path)
    loaded = done.stdout.splitlines()[-1].split()
    counted = [each for each in loaded if each.partition(".")[0] not in ("numpy", "scipy")]
    assert len(counted) <= case["most"]
    assert [each for each in case["never"] if each in loaded] == []
    if not case.get("annexes"):
        ours = [each for each in loaded if each.partition(".")[0] == "dpcal"]
        assert len(ours) <= MOST_OF_OURS
        assert [each for each in ours if each.startswith(ANNEXES)] == []


def test_no_module_hides_an_import_of_ours_in_a_function():
    """What is optional or slow may be imported when it is needed; our own modules need not be."""
    hidden = [
        f"{name}, line {line}: {target}"
        for name, path in paths().items()
        if path.suffix == ".py"
        for target, line, inside in imports_of(path.read_text())
        if inside and target.partition(".")[0] == "dpcal"
    ]
    assert hidden == []


@pytest.mark.slow
def test_names_that_benchmarks_import_from_the_package_exist():
    """A function would import them hours later."""
    wrong = []
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for module, name in names_imported(path.read_text()):
            if module.partition(".")[0] != "dpcal" or module.startswith("dpcal._ext"):
                continue
            if missing(module) or missing(f"{module}.{name}"):
                continue
            found = importlib.import_module(module)
            if not hasattr(found, name) and f"{module}.{name}" not in paths():
                wrong.append(f"{path.relative_to(ROOT)}: from {module} import {name}")
    assert wrong == []


# -- public names

PACKAGES = packages()


@pytest.mark.parametrize("package", PACKAGES)
def test_dir_lists_every_public_name_and_each_is_found(package):
    module = importlib.import_module(package)
    assert module.__all__
    assert dir(module) == sorted(module.__all__)
    for name in module.__all__:
        if package != "dpcal.adapters":  # these stand on packages of extras
            getattr(module, name)


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_hides_a_module(package):
    taken = [
        f"{package}.{name}"
        for module, name in names_imported(paths()[package].read_text())
        if module != package and f"{package}.{name}" in paths()
    ]
    assert taken == []


def test_every_package_lists_its_names():
    """For type checkers, or in ``__all__``, which is empty where a folder only holds modules."""
    bare = [
        name
        for name, path in paths().items()
        if path.name == "__init__.py" and "__all__" not in path.read_text()
    ]
    assert bare == []
