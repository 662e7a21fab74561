"""A bad value of any argument is refused in one sentence, wherever an argument of its name is."""

import math
import re

import numpy as np
import pytest
from contracts._good_calls import APART, TABLES, calls, public

import dpcal

# By the name of an argument: values that no callable takes for it.
VALUES = {name: values for names, values in TABLES["bad"].items() for name in names.split()}
VALUES |= {
    "X": ("table.csv", 3, np.zeros((2, 2, 2))),
    **dict.fromkeys(("y", "labels", "targets"), ("labels.csv", 3, np.zeros((2, 2, 2)))),
    **dict.fromkeys(("w", "initial", "center"), ("zeros", np.zeros((2, 7)), [math.nan])),
    **dict.fromkeys(
        ("class_weight", "class_weights"), ("balanced", [1, 2], {0: 1, 1: -1}, {0: 1, 1: math.nan})
    ),
    "C": ("eye", np.zeros((2, 3)), [[math.nan]]),
}
# Names whose values may be records, or long: messages show their shapes, their types or a part.
ARRAYS = (
    "X y labels targets w initial center C classes deltas epsilons false_positive_rates "
    "class_weights categories"
)

# Arguments that take such a value, or mean something else; the file says why.
TAKEN = {tuple(each.split()) for each in TABLES["taken"]}
# Further arguments with which one of this name is looked at, for a callable or for all.
WITH = {
    "store_every": {"store": "run.store"},
    ("estimators.SimpleImputer", "fill_value"): {"strategy": "constant"},
    ("attack_risk", "prior"): {"false_positive_rate": None},
    ("accountants.grid", "epsilon"): {"delta": None},
    ("calibrate.correlated_dpsgd", "separation"): {"sampler": "min-separation"},
}
CALLS = calls()


def shown(argument, value, words):
    """Return whether a message shows a value, or need not because it may be a record."""
    if argument in ARRAYS.split():
        return True
    return repr(value)[:12] in words or type(value).__name__ in words or "NaN" in words


def refusal(call, argument, value):
    """Return what is wrong with the refusal of a bad value; None if it is one good sentence."""
    try:
        call(**{**WITH.get(argument, {}), **WITH.get((call.name, argument), {}), argument: value})
    except (ValueError, TypeError) as error:
        words = str(error)
        if not re.search(rf"\b{argument}\b", words):
            return f"its name is missing in {type(error).__name__}: {words}"
        if not words.endswith(".") or not re.search(r"\bmust\b|\bis for\b|\bgoes with\b", words):
            return f"what is allowed is missing: {words}"
        return None if shown(argument, value, words) else f"the value is missing: {words}"
    except Exception as error:
        return f"it raises {type(error).__name__}: {error}"
    return "it passes"


def faults(name):
    """Yield the bad arguments that a callable does not refuse as it should."""
    call = CALLS[name]
    for argument in call.signature.parameters:
        for value in () if (name, argument) in TAKEN else VALUES.get(argument, ()):
            found = refusal(call, argument, value)
            if found is not None:
                yield f"{argument}={value!r:.40}: {found:.300}"


COVERED = [name for name, call in CALLS.items() if VALUES.keys() & call.signature.parameters.keys()]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COVERED)
def test_a_bad_argument_is_refused_in_one_sentence(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    CALLS[name].given()  # what is made once and kept may cost
    with dpcal.budget(epsilon=1000.0, delta=1e-3) as budget:
        found = list(faults(name))
    assert not found, "\n".join(found)
    assert budget.spent == 0
    written = [path.name for path in tmp_path.iterdir()]
    assert written == (["new.budget"] if name.startswith("BudgetBook.") else [])
    assert not written or not dpcal.BudgetBook("new.budget").runs
    CALLS[name]()


def test_each_exception_and_each_name_is_one_of_a_public_callable():
    taken = {name: {*call.signature.parameters} for name, call in CALLS.items()}
    assert {*public()} >= APART
    assert all(argument in taken[name] for name, argument in TAKEN)
    assert set().union(*taken.values()) >= VALUES.keys()
