"""Do other packages find what they expect? Environments of their own, for releases and adapters.

``python -m benchmarks.sklearn_releases [RELEASE ...]`` makes a virtual environment for each release
of scikit-learn, which borrows everything else from the one that runs it, runs ``check_estimator``,
and prints a line an estimator.

``python -m benchmarks.sklearn_releases --adapters [FOLDER]`` makes one with PyTorch, Opacus,
Flower, JAX and optax, and runs ``tests/adapters`` and the notebook ``05_torch`` there. A folder
that exists is an environment that is used as it is. Where pip's own index would give PyTorch for a
graphics card, set ``PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu``.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
import venv
from pathlib import Path

import dpcal

RELEASES = ("1.6.1", "1.7.2", "1.8.0", "1.9.1")

CHECKS = """
import warnings; warnings.simplefilter("ignore")
import sklearn
from sklearn.utils.estimator_checks import check_estimator
from dpcal.tests.estimators._checks import ESTIMATORS
bad = 0
for make, skipped in ESTIMATORS:
    rows = check_estimator(make(), on_fail=None, on_skip=None, expected_failed_checks=skipped)
    failed = [row for row in rows if row["status"] == "failed"]
    passed = sum(row["status"] == "passed" for row in rows)
    name = type(make()).__name__
    print(f"{sklearn.__version__}  {name:20s} {passed} passed, {len(failed)} failed")
    for row in failed:
        print("   ", row["check_name"], repr(row["exception"])[:200])
    bad += len(failed)
raise SystemExit(bad > 0)
"""

ROOT = Path(dpcal.__file__).resolve().parent
PACKAGES = ("torch", "opacus>=1.6", "flwr>=1.41", "pipeline-dp>=0.3.1", "jax", "optax")
TESTS = (
    "tests/adapters",
    "tests/package/test_notebooks.py::test_the_notebook_that_needs_an_extra_runs_where_that_is_installed",
)


def make(place):
    """Make the adapters' environment, in which a wheel of the tree can be built and used."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    needed = (
        *PACKAGES,
        *project["build-system"]["requires"],
        "build",
        *project["project"]["dependencies"],
        *extras["sklearn"],
    )
    venv.create(place, with_pip=True)
    subprocess.run(
        [place / "bin" / "python", "-m", "pip", "install", "--quiet", *needed], check=True
    )


def adapters(place):
    """Run the adapters' tests, in an environment that is made where there is none."""
    python = place / "bin" / "python"
    if not place.exists():
        make(place)
    # What the environment lacks (pytest, scipy, dp-accounting) comes after its own packages.
    begin = (
        f"import site, sys; site.addsitedir({sysconfig.get_path('purelib')!r}); import pytest; "
        "sys.exit(pytest.main(sys.argv[1:]))"
    )
    words = ("-q", "-rs", "-p", "no:cacheprovider", *TESTS)
    paths = os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([python, "-c", begin, *words], cwd=ROOT, env=variables).returncode


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--adapters", nargs="?", type=Path, const=Path(), metavar="FOLDER")
    options = parser.parse_args()
    if options.adapters is not None:
        with tempfile.TemporaryDirectory() as folder:
            given = options.adapters if options.adapters.name else Path(folder, "environment")
            sys.exit(adapters(given.absolute()))
    failed = []
    for release in options.releases:
        with tempfile.TemporaryDirectory() as folder:
            venv.create(folder, with_pip=True)
            python = Path(folder, "bin", "python")
            ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
            site = subprocess.run(
                [python, "-c", ask], capture_output=True, text=True, check=True
            ).stdout.strip()
            borrowed = [sysconfig.get_path("purelib"), str(Path(dpcal.__file__).parents[1])]
            Path(site, "borrowed.pth").write_text("\n".join(borrowed))
            install = [python, "-m", "pip", "install", "--quiet", "--no-deps"]
            subprocess.run([*install, f"scikit-learn=={release}"], check=True)
            done = subprocess.run([python, "-c", CHECKS], cwd=folder)
            failed += [release] * (done.returncode != 0)
    sys.exit(f"not kept on {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
