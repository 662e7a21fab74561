"""Checks of estimators and adapters with releases of other packages, in new environments.

``python -m benchmarks.sklearn_releases [RELEASE ...]`` makes a virtual environment for each release
of scikit-learn, which borrows everything else from the one that runs it, runs ``check_estimator``,
and prints a line an estimator.

``python -m benchmarks.sklearn_releases --adapters [FOLDER]`` makes one with PyTorch, Opacus,
Flower, JAX and optax, and runs ``tests/adapters`` and the notebook ``05_torch`` there. If the
folder exists, it is the environment of an earlier run. Where pip's own index would give PyTorch for
a graphics card, set ``PIP_EXTRA_INDEX_URL=https://download.pytorch.org/whl/cpu``.
"""

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
import venv
from functools import partial
from pathlib import Path

import dpcal
from dpcal import estimators

# These checks cannot hold for a private estimator.
TWO = "two fits of one table differ by their noise"
# Whether a fit fails must not depend on one record.
BLANK = "a record with a cell or a target that is no finite number is blank, and nobody is told"
OF_ALL = {"check_fit_idempotent": TWO, "check_dtype_object": BLANK}
OF_MODELS = {
    **OF_ALL,
    "check_supervised_y_2d": TWO,
    "check_estimators_nan_inf": BLANK,
    "check_supervised_y_no_nan": BLANK,
}
OF_CLASSES = {
    **OF_MODELS,
    "check_classifiers_regression_target": "whether targets are classes is told by noisy counts",
    "check_class_weight_classifiers": "120 passes do not reach weights of 10^7 to 1, for records "
    "that are many times longer than the declared norm",
}
OF_NUMBERS = {
    **OF_MODELS,
    "check_regressor_data_not_an_array": TWO,
    "check_regressors_int": TWO,
    "check_fit_score_takes_y": "partial_fit adds to moments, and a fit by gradients keeps none",
}
OF_CLUSTERS = {
    **OF_ALL,
    "check_clustering": "labels_ are exact functions of records, and are not kept",
}
# Noise hides nothing that is checked, and bounds hold records of any kind.
SURE, WIDE = {"epsilon": 1e3}, {"bounds": (-100.0, 100.0)}
LINES = {**SURE, "bounds": (-10.0, 10.0), "target_bounds": (-10.0, 10.0)}
ESTIMATORS = tuple(
    (partial(getattr(estimators, name), **options), skipped)
    for name, options, skipped in (
        ("KMeans", {**SURE, "n_clusters": 3, "bounds": (-20.0, 20.0)}, OF_CLUSTERS),
        ("LinearRegression", LINES, OF_NUMBERS),
        ("Ridge", LINES, OF_NUMBERS),
        ("LogisticRegression", SURE, OF_CLASSES),
        ("PCA", {**SURE, **WIDE}, OF_ALL),
        ("StandardScaler", {**SURE, **WIDE}, OF_ALL),
        ("QuantileTransformer", {**WIDE, "epsilon": 50.0}, OF_ALL),
        ("Clipper", {**WIDE, "epsilon": 50.0}, OF_ALL),
        ("OneHotEncoder", SURE, OF_ALL),
        ("SimpleImputer", {**SURE, **WIDE}, OF_ALL),
        ("SimpleImputer", {**WIDE, "strategy": "median", "epsilon": 50.0}, OF_ALL),
    )
)

RELEASES = ("1.6.1", "1.7.2", "1.8.0", "1.9.1")

CHECKS = """
import warnings; warnings.simplefilter("ignore")
import sklearn
from sklearn.utils.estimator_checks import check_estimator
from dpcal.benchmarks.sklearn_releases import ESTIMATORS
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


def environment(place, *words):
    """Make an environment with pip's words, borrow all else from this one, and return its Python.

    Its own packages come before the borrowed ones.
    """
    venv.create(place, with_pip=True)
    python = Path(place, "bin", "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *words], check=True)
    (site,) = Path(place).glob("lib/python*/site-packages")
    # For an editable installation the links count, not their targets.
    borrowed = [sysconfig.get_path("purelib"), str(Path(dpcal.__file__).parents[1])]
    Path(site, "borrowed.pth").write_text("\n".join(borrowed))
    return python


def adapters(place):
    """Run the adapters' tests, in an environment that is made where there is none."""
    python = place / "bin" / "python" if place.exists() else environment(place, *PACKAGES)
    words = ("-q", "-rs", "-p", "no:cacheprovider", *TESTS)
    paths = os.pathsep.join([str(ROOT.parent), os.environ.get("PYTHONPATH", "")])
    variables = {**os.environ, "PYTHONPATH": paths}
    return subprocess.run([python, "-m", "pytest", *words], cwd=ROOT, env=variables).returncode


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
            python = environment(folder, "--no-deps", f"scikit-learn=={release}")
            done = subprocess.run([python, "-c", CHECKS], cwd=folder)
            failed += [release] * (done.returncode != 0)
    sys.exit(f"not kept on {', '.join(failed)}" if failed else 0)


if __name__ == "__main__":
    main()
