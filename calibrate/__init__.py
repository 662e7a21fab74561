"""How much noise does a target need? Noise levels, and one plan builder per optimizer.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.query('gradient').noise_multiplier:.4f}")
1.0290
"""

from typing import TYPE_CHECKING

from dpcal import _lazy
from dpcal.calibrate.comparison import Needed, Needs, compare
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.correlation import Correlation
from dpcal.calibrate.noise import (
    batch_size,
    noise_multiplier,
    noise_multipliers,
    sampling_probability,
    steps,
)
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.adaptive_gd import adaptive_gd
from dpcal.calibrate.plans.comparators.ada_dp_spider import ada_dp_spider
from dpcal.calibrate.plans.comparators.dp_sgda import dp_sgda
from dpcal.calibrate.plans.comparators.privatediff import privatediff
from dpcal.calibrate.plans.comparators.sto_spider import sto_spider
from dpcal.calibrate.plans.correlated_dpsgd import correlated_dpsgd
from dpcal.calibrate.plans.dpsgd import dpsgd
from dpcal.calibrate.plans.jl_glm import jl_glm
from dpcal.calibrate.plans.kl_spider import kl_spider
from dpcal.calibrate.plans.minimax.dp_rgda import dp_rgda
from dpcal.calibrate.plans.noisy_gd import noisy_gd
from dpcal.calibrate.plans.proximal_point import proximal_point
from dpcal.calibrate.plans.recursive_regularization import recursive_regularization
from dpcal.calibrate.plans.second_order.distributed_psgd import distributed_psgd
from dpcal.calibrate.plans.second_order.gauss_psgd import gauss_psgd
from dpcal.calibrate.plans.second_order.select_point import select_point
from dpcal.calibrate.plans.spiderboost import spiderboost
from dpcal.calibrate.plans.tree_spider import tree_spider
from dpcal.calibrate.query import Query
from dpcal.calibrate.risk import noise_multiplier_for_risk
from dpcal.calibrate.selection import TuningPrice, tuning
from dpcal.errors import VacuousSchedule

__all__ = [
    "Constants",
    "Correlation",
    "Needed",
    "Needs",
    "Plan",
    "Query",
    "SampledBatches",
    "TuningPrice",
    "VacuousSchedule",
    "ada_dp_spider",
    "adaptive_gd",
    "audit",
    "batch_size",
    "compare",
    "compare_strategies",
    "correlated_dpsgd",
    "distributed_psgd",
    "dp_rgda",
    "dp_sgda",
    "dpsgd",
    "gauss_psgd",
    "jl_glm",
    "kl_spider",
    "noise_multiplier",
    "noise_multiplier_for_risk",
    "noise_multipliers",
    "noisy_gd",
    "privatediff",
    "proximal_point",
    "recursive_regularization",
    "sampling_probability",
    "schedules",
    "select_point",
    "spiderboost",
    "steps",
    "sto_spider",
    "tree_spider",
    "tuning",
]

if TYPE_CHECKING:
    from dpcal.calibrate.papers import schedules
    from dpcal.calibrate.papers.report import audit
    from dpcal.calibrate.strategies import SampledBatches, compare_strategies


# The audit needs sympy, and strategies scipy's signal processing; calibration needs neither.
__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "SampledBatches": "dpcal.calibrate.strategies",
        "audit": "dpcal.calibrate.papers.report",
        "compare_strategies": "dpcal.calibrate.strategies",
        "schedules": "dpcal.calibrate.papers",
    },
)
