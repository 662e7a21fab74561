"""What is loaded by whom: beside the contracts in pyproject.toml, which ``lint-imports`` checks."""

import importlib
import subprocess
import sys

import pytest
from _modules import imports_of, missing, names_imported, paths
from _tree import ROOT

# One private run is what a newcomer must hold in mind.
MOST_FOR_A_RUN = 124
RUN = """
import numpy as np
from dpcal import calibrate, optim
X = np.random.default_rng(0).standard_normal((1000, 3))
plan = calibrate.dpsgd(n=1000, batch_size=100, epochs=2, epsilon=1.0, delta=1e-5)
result = optim.dpsgd(optim.Logistic(X, X[:, 0] > 0, classes_from_data=True), plan, seed=0)
assert result.epsilon(1e-5) <= 1.0
"""
EPSILON = """
import dpcal
event = dpcal.events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
assert 6.9 < dpcal.epsilon(event, delta=1e-6) < 6.91
"""
CORRELATED = """
from dpcal import accountants, calibrate
strategy = accountants.matrix.LambdaCGD(200, 0.5)
plan = calibrate.correlated_dpsgd(
    strategy, n=100, batch_size=100, sampler="full", epsilon=1.0, delta=1e-5
)
assert 0.999 < plan.price() <= 1.0
for kind in ("renyi", "zcdp"):
    assert accountants.PrivacyFilter(epsilon=1.0, delta=1e-6, kind=kind).budget > 0
"""
SLOW = ("dp_accounting", "flint", "prv_accountant", "scipy.optimize", "scipy.stats", "sympy")
ANNEXES = (
    "accountants.certificates",
    "accountants.correlated",
    "accountants.matrix",
    "adapters",
    "calibrate.correlated",
    "calibrate.papers",
    "optim.attacks",
    "optim.comparators",
    "optim.minimax",
    "optim.second_order",
    "optim.silos",
)


def loaded_by(script):
    """Return the modules that are loaded once a script has run in a new interpreter."""
    script += "\nimport sys\nprint(*sys.modules, sep='\\n')"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("script", "slow"),
    [(RUN, SLOW), (EPSILON, ("scipy", "pathlib", *SLOW))],
    ids=["one run", "one epsilon"],
)
def test_a_question_loads_the_core_alone(script, slow):
    loaded = loaded_by(script)
    ours = [name for name in loaded if name == "dpcal" or name.startswith("dpcal.")]
    assert len(ours) <= MOST_FOR_A_RUN
    annexes = tuple(f"dpcal.{name}" for name in ANNEXES)
    assert [name for name in ours if name.startswith(annexes)] == []
    assert [name for name in slow if name in loaded] == []


@pytest.mark.slow
def test_a_plan_of_correlated_noise_loads_no_statistics():
    loaded = loaded_by(CORRELATED)
    assert [name for name in ("scipy.signal", *SLOW) if name in loaded] == []


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
@pytest.mark.parametrize("folder", ["benchmarks", "tests"])
def test_names_that_are_imported_from_the_package_exist(folder):
    """Also those that a function of a benchmark would import hours later."""
    wrong = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for module, name in names_imported(path.read_text()):
            if module.partition(".")[0] != "dpcal" or module.startswith("dpcal._ext"):
                continue
            if missing(module) or missing(f"{module}.{name}"):
                continue
            found = importlib.import_module(module)
            if not hasattr(found, name) and f"{module}.{name}" not in paths():
                wrong.append(f"{path.relative_to(ROOT)}: from {module} import {name}")
    assert wrong == []
