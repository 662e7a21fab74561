"""Does scikit-learn's contract hold on four releases? ``check_estimator``, in one environment each.

``python -m benchmarks.sklearn_releases [RELEASE ...]`` makes a virtual environment for each
release, which borrows everything but scikit-learn from the one that runs it, and prints a line an
estimator.
"""

import argparse
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path

import dpcal

RELEASES = ("1.6.1", "1.7.2", "1.8.0", "1.9.1")

CHECKS = """
import warnings; warnings.simplefilter("ignore")
import sklearn
from sklearn.utils.estimator_checks import check_estimator
from dpcal.estimators.checks import ESTIMATORS
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    failed = []
    for release in parser.parse_args().releases:
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
