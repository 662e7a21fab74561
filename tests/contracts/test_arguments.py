"""A bad value of any argument is refused in one sentence, wherever an argument of its name is."""

import math
import re

import numpy as np
import pytest
from contracts._good_calls import APART, calls, public

import dpcal

NAN = math.nan
POSITIVE = (NAN, 0.0, -1.0, "1.0")
NOT_NEGATIVE = (NAN, -1.0, "1.0")
SHARE = (NAN, -0.1, 1.5, "0.5")
COUNT = (0, -1, 1.5, NAN, "3")
FLAG = ("yes", 2)
CHOICE = ("wrong", 3)
SEED = (-1, 1.5, "seed")
FUNCTION = ("wrong", 3)
OBJECT = ("wrong", 3)
NOT_NUMBERS = ("wrong", [NAN], [[-1.0]])

# By names of arguments: values that no callable takes for one of that name.
BAD = {
    "epsilon other_epsilon": NOT_NEGATIVE,
    "delta failure failure_probability false_positive_rate prior confidence": SHARE,
    "sampling_probability sample_rate positive_share": SHARE,
    "noise_multiplier sigma noise_parameter radius": (NAN, -1.0, "1.0"),
    "max_norm row_norm difference_norm learning_rate ascent_rate": POSITIVE,
    "order gamma accuracy": POSITIVE,
    "width": POSITIVE,
    "l2 primal_l2 dual_l2 alpha rho mu divergence slack weak_convexity": NOT_NEGATIVE,
    "kappa beta shape mean momentum decay": (NAN, -1.0, "1.0"),
    "n steps dimension features batch_size refresh_size epochs period inner_steps": COUNT,
    "batches bins bands separation participations draws count trials samples canaries": COUNT,
    "n_bins n_clusters n_quantiles n_knots n_waves n_pair_bins queries sample_size": COUNT,
    "num_buckets source_dataset_size population_size rank silos": COUNT,
    "group_size rows_per_person store_every callback_every": COUNT,
    "dimensions": (3, (0, 1), (1, 2, 3), "xy"),
    "neighboring_relation accountant preset sides method null kind release reset": CHOICE,
    "output overlap statistics clipped noise inner subsolver solver on_lost": CHOICE,
    "sampling_method": CHOICE,
    "seed matrix_seed random_state": SEED,
    "fit_intercept public cross_check monotone equal_norms": FLAG,
    "random_shift remainder independent secret_draws": FLAG,
    "callback gradients": FUNCTION,
    "event mechanism strategy sampler plan objective constants": OBJECT,
    "workload participation dual_set": OBJECT,
    "budget store": (3, 1.5),
    "bounds target_bounds": (3, (1.0, -1.0), (0.0, NAN), "wide"),
    "classes": (3, "ab", [1], [1, 1]),
    "class_weight class_weights": ("balanced", [1, 2], {0: 1, 1: -1}, {0: 1, 1: NAN}),
    "quantiles": (0.1, (0.9, 0.1), (0, 1)),
    "categories": ("auto", 3, [["a"]], ["abc"] * 3, [[1], [1, 1], [1]], [[1], [], [1]]),
    "fill_value": ("x", NAN, [1, 2]),
    "pairs": (3, [(0, 7)]),
    "X": ("table.csv", 3, np.zeros((2, 2, 2))),
    "y labels targets": ("labels.csv", 3, np.zeros((2, 2, 2))),
    "w initial center": ("zeros", np.zeros((2, 7)), [NAN]),
    "deltas epsilons false_positive_rates": NOT_NUMBERS,
    "C": ("eye", np.zeros((2, 3)), [[NAN]]),
}
VALUES = {name: values for names, values in BAD.items() for name in names.split()}

# Names whose values may be records, or long: messages show their shapes, their types or a part.
ARRAYS = (
    "X y labels targets w initial center C classes deltas epsilons false_positive_rates "
    "class_weights categories pairs"
)

SKLEARN = "scikit-learn's own checks and sentences"
# Arguments that take such a value, or mean something else; and why.
OTHER = {
    ("Plan", "queries"): "a tuple of queries, and no count of them",
    ("Query", "budget"): "the noise multiplier of a budget",
    ("release", "statistics"): "a list of texts",
    ("train", "epsilon"): "read as a command reads it, from texts too",
    ("train", "delta"): "read as a command reads it, from texts too",
    ("estimators.PrivateSearch", "trials"): "a mean, which need not be whole",
    ("estimators.noisy_accuracy", "X"): SKLEARN,
    ("estimators.noisy_accuracy", "y"): SKLEARN,
    ("estimators.noisy_r2", "X"): SKLEARN,
    ("estimators.noisy_r2", "y"): SKLEARN,
    ("estimators.noisy_roc_auc", "X"): SKLEARN,
    ("estimators.noisy_roc_auc", "y"): SKLEARN,
    ("tables.Column", "categories"): "read from a schema, with sentences of its own",
    ("optim.Silo", "store"): "checked when a run opens it",
    ("optim.Silo", "seed"): "checked when a run opens it",
    ("optim.distributed_psgd", "objective"): "a sequence of silos too",
    ("accountants.events.ReportNoisyMaxDpEvent", "noise"): "the scale of noise",
    ("accountants.events.SelfComposedDpEvent", "count"): "0, for nothing",
}
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
        for value in () if (name, argument) in OTHER else VALUES.get(argument, ()):
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
    assert {name for names in APART.values() for name in names.split()} <= {*public()}
    assert all(argument in taken[name] for name, argument in OTHER)
    assert set().union(*taken.values()) >= VALUES.keys()
