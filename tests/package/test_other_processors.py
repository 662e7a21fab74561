"""What a page prints does not depend on the processor.

Sums and exponentials round otherwise where registers are narrower: numpy and OpenBLAS choose their
code by the processor, and can be told to take that of older ones. The kernels of this package can
be compiled so, too (``DPCAL_BASELINE=1``).
"""

import os
import platform
import re
import subprocess
import sys

import numpy as np
import pytest
from _tree import ROOT

FEATURES = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
OLDER = {
    "numpy": {"NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES)},
    "OpenBLAS": {"OPENBLAS_CORETYPE": "Nehalem" if platform.machine() == "x86_64" else "ARMV8"},
}
# Other packages round in ways of their own, and their error is not known to us.
PEERS = re.compile(r"^>>> (?:from|import) (?:dp_accounting|prv_accountant|scipy)\b", re.MULTILINE)
PAGES = sorted(page for page in (ROOT / "docs").rglob("*.md") if PEERS.search(page.read_text()))
RUN = "import doctest, sys; sys.exit(doctest.testfile(sys.argv[1], module_relative=False).failed)"


def run(words, older):
    command, environment = [sys.executable, *words], os.environ | OLDER[older]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stdout[-5_000:] + done.stderr[-1_000:]
    return done.stdout


@pytest.mark.skipif(not FEATURES, reason="numpy has one way for all processors here")
def test_an_older_processor_is_taken():
    """Else the tests below repeat what the others do."""
    seen = "from numpy._core._multiarray_umath import __cpu_features__ as f; print(f[{0!r}])"
    assert run(["-c", seen.format(FEATURES[0])], "numpy").strip() == "False"


@pytest.mark.slow
@pytest.mark.parametrize("older", OLDER)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_with_digits_of_other_packages(page, older):
    run(["-c", RUN, str(page)], older)


@pytest.mark.study
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("older", OLDER)
def test_all_tests_pass(older):
    run(["-m", "pytest", "-q", "--numprocesses", "2", "tests"], older)
