"""How much noise does a target need? Noise levels, and one plan builder per optimizer.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.query('gradient').noise_multiplier:.4f}")
1.0290
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.compare import Needed, Needs, compare
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.dpsgd import dpsgd
from dpcal.calibrate.jl_glm import jl_glm
from dpcal.calibrate.noise import batch_size, noise_multiplier, sampling_probability, steps
from dpcal.calibrate.noisy_gd import noisy_gd
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.recursive_regularization import recursive_regularization
from dpcal.calibrate.risk import noise_multiplier_for_risk
from dpcal.calibrate.spiderboost import spiderboost
from dpcal.calibrate.tree_spider import tree_spider

__all__ = [
    "Constants",
    "Needed",
    "Needs",
    "Plan",
    "Query",
    "audit",
    "batch_size",
    "compare",
    "dpsgd",
    "jl_glm",
    "noise_multiplier",
    "noise_multiplier_for_risk",
    "noisy_gd",
    "recursive_regularization",
    "sampling_probability",
    "schedules",
    "spiderboost",
    "steps",
    "tree_spider",
]


if TYPE_CHECKING:
    from dpcal.calibrate import schedules
    from dpcal.calibrate.auditing import audit


def __getattr__(name: str) -> Any:
    # The audit needs sympy, which calibration does not.
    if name == "audit":
        return import_module("dpcal.calibrate.auditing").audit
    if name == "schedules":
        return import_module("dpcal.calibrate.schedules")
    raise AttributeError(f"module 'dpcal.calibrate' has no attribute {name!r}")
