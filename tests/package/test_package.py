"""The wheel holds the package and nothing else, and runs where nothing else is."""

import re
import tarfile
import tomllib
import zipfile

import pytest
from _tree import ROOT

import dpcal


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "dpcal/setup.py" not in names
    assert {name.split("/")[0] for name in names} == {
        "dpcal",
        f"dpcal-{dpcal.__version__}.dist-info",
    }
    rooms = {name.split("/")[1] for name in names if name.count("/") > 1}
    assert not rooms & {"tests", "benchmarks", "docs", "build"}
    assert {"dpcal/py.typed", "dpcal/_ext/loops.pyi", "dpcal/_ext/keyed.pxd"} <= set(names)
    sources = [*ROOT.glob("commands/*.py"), *ROOT.glob("report/templates/*")]
    assert {f"dpcal/{path.relative_to(ROOT).as_posix()}" for path in sources} <= set(names)


@pytest.mark.slow
def test_the_source_distribution_holds_what_it_is_built_and_tested_from(source_distribution):
    with tarfile.open(source_distribution) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "CHANGELOG.md", "Makefile", "docs/index.md", "docs/conf.py"} <= names
    kernels = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("_ext/*.p[xy]*")}
    read = {".ambr", ".json", ".py", ".toml"}
    tests = {path for path in ROOT.glob("tests/**/*") if path.suffix in read}
    assert kernels | {path.relative_to(ROOT).as_posix() for path in tests} <= names
    made = re.compile(r"\.(so|c|pyc|html)$|^(build|\.venv|\.git|docs/reference/(api|errata))/")
    pages = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("report/templates/*")}
    assert pages <= names
    assert {name for name in names if made.search(name)} - pages == {"docs/site/index.html"}


def test_the_version_is_one():
    """That of ``pyproject.toml``, with a section of the changelog and in the citation."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"## {version} - " in (ROOT / "CHANGELOG.md").read_text()
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_environment(installed, tmp_path):
    (tmp_path / "README.md").write_text((ROOT / "README.md").read_text())
    script = (
        "import doctest, dpcal\n"
        f"assert dpcal.__file__.startswith({str(installed.site)!r}), dpcal.__file__\n"
        "failed, tried = doctest.testfile('README.md', module_relative=False)\n"
        "assert tried and not failed"
    )
    installed.python("-c", script, cwd=tmp_path)
