"""The package imports fast, from anywhere, and its wheel holds the package and nothing else."""

import os
import subprocess
import sys
import venv
import zipfile

import pytest
from _tree import ROOT

HEAVY = ("numpy", "scipy", "sympy", "dp_accounting", "prv_accountant", "matplotlib", "sklearn")


def python(*words, interpreter=sys.executable, **options):
    # Kernels without optimisation compile in a fraction of the time.
    environment = {**os.environ, "DPCAL_OPTIMISE": "0"}
    environment.pop("PYTHONPATH", None)
    return subprocess.run(
        [interpreter, *words],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
        **options,
    ).stdout


def test_import_loads_nothing_heavy(tmp_path):
    script = f"import sys, dpcal; print([name for name in {HEAVY!r} if name in sys.modules])"
    assert python("-c", script, cwd=tmp_path).strip() == "[]"


def test_import_is_fast(tmp_path):
    script = (
        "import time; start = time.perf_counter(); import dpcal; print(time.perf_counter() - start)"
    )
    assert min(float(python("-c", script, cwd=tmp_path)) for _ in range(3)) < 0.3


def test_rooms_and_version_are_found(tmp_path):
    script = (
        "import dpcal; print(dpcal.accountants.epsilon, dpcal.calibrate.dpsgd, "
        "dpcal.optim.dpsgd, dpcal.__version__)"
    )
    assert "function" in python("-c", script, cwd=tmp_path)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of a copy of the tree: building in place would disturb the editable install."""
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "any name"
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode:
        pytest.skip("not a git working tree")
    for name in listed.stdout.splitlines():
        if (ROOT / name).is_file():
            (source / name).parent.mkdir(parents=True, exist_ok=True)
            (source / name).write_bytes((ROOT / name).read_bytes())
    words = ["-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(source)]
    python(*words)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "dpcal/setup.py" not in names
    assert {name.split("/")[0] for name in names} == {"dpcal", "dpcal-0.1.0.dist-info"}
    rooms = {name.split("/")[1] for name in names if name.count("/") > 1}
    assert not rooms & {"tests", "benchmarks", "docs", "build"}
    assert {"dpcal/py.typed", "dpcal/_ext/loops.pyi", "dpcal/_ext/noise.pxd"} <= set(names)
    sources = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("commands/*.py")}
    assert {f"dpcal/{name}" for name in sources} <= set(names)


@pytest.mark.slow
def test_the_wheel_runs_in_an_empty_environment(wheel, tmp_path):
    # Dependencies come from this environment through a path file, which is quicker than a
    # download; dpcal itself can only come from the wheel, because editable hooks stay behind.
    venv.create(tmp_path / "environment", with_pip=True)
    interpreter = tmp_path / "environment" / "bin" / "python"
    python(
        "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", str(wheel),
        interpreter=interpreter,
    )  # fmt: skip
    query = "import sysconfig; print(sysconfig.get_path('purelib'))"
    ours, theirs = (
        python("-c", query, interpreter=each).strip() for each in (sys.executable, interpreter)
    )
    example = (ROOT / "README.md").read_text()
    (tmp_path / "README.md").write_text(example)
    script = (
        f"import sys; sys.path.append({ours!r})\n"
        "import doctest, dpcal\n"
        f"assert dpcal.__file__.startswith({theirs!r}), dpcal.__file__\n"
        "failed, tried = doctest.testfile('README.md', module_relative=False)\n"
        "assert tried and not failed"
    )
    python("-c", script, interpreter=interpreter, cwd=tmp_path)
