"""How much noise does a target need? Noise levels, and one plan builder per optimizer.

>>> from dpcal import calibrate
>>> plan = calibrate.dpsgd(n=60_000, epochs=10, batch_size=600, epsilon=2.0, delta=1e-6)
>>> print(f"{plan.query('gradient').noise_multiplier:.4f}")
1.0290
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.accountants.selection import TuningPrice as TuningPrice, tuning as tuning
    from dpcal.calibrate import correlated as correlated
    from dpcal.calibrate.comparison import Needed as Needed, Needs as Needs, compare as compare
    from dpcal.calibrate.compute import (
        BatchRow as BatchRow,
        BatchTable as BatchTable,
        compare_batches as compare_batches,
    )
    from dpcal.calibrate.constants import Constants as Constants
    from dpcal.calibrate.correlated.correlation import Correlation as Correlation
    from dpcal.calibrate.correlated.strategies import (
        Batches as Batches,
        SampledBatches as SampledBatches,
        compare_strategies as compare_strategies,
    )
    from dpcal.calibrate.noise import (
        batch_size as batch_size,
        noise_multiplier as noise_multiplier,
        noise_multiplier_for_risk as noise_multiplier_for_risk,
        sampling_probability as sampling_probability,
        steps as steps,
    )
    from dpcal.calibrate.noise_grid import noise_multipliers as noise_multipliers
    from dpcal.calibrate.papers import audit as audit, schedules as schedules
    from dpcal.calibrate.persons import choose_examples as choose_examples
    from dpcal.calibrate.plan import Plan as Plan
    from dpcal.calibrate.plans.adaptive_gd import adaptive_gd as adaptive_gd
    from dpcal.calibrate.plans.comparators import (
        ada_dp_spider as ada_dp_spider,
        dp_sgda as dp_sgda,
        privatediff as privatediff,
        sto_spider as sto_spider,
    )
    from dpcal.calibrate.plans.correlated_dpsgd import correlated_dpsgd as correlated_dpsgd
    from dpcal.calibrate.plans.dpsgd import dpsgd as dpsgd
    from dpcal.calibrate.plans.jl_glm import jl_glm as jl_glm
    from dpcal.calibrate.plans.kl_spider import kl_spider as kl_spider
    from dpcal.calibrate.plans.minimax.dp_rgda import dp_rgda as dp_rgda
    from dpcal.calibrate.plans.noisy_gd import noisy_gd as noisy_gd
    from dpcal.calibrate.plans.proximal_point import proximal_point as proximal_point
    from dpcal.calibrate.plans.recursive_regularization import (
        recursive_regularization as recursive_regularization,
    )
    from dpcal.calibrate.plans.second_order.gauss_psgd import (
        distributed_psgd as distributed_psgd,
        gauss_psgd as gauss_psgd,
        silo_plans as silo_plans,
    )
    from dpcal.calibrate.plans.second_order.select_point import select_point as select_point
    from dpcal.calibrate.plans.spiderboost import spiderboost as spiderboost
    from dpcal.calibrate.plans.theory import theorem_at as theorem_at, theory as theory
    from dpcal.calibrate.plans.tree_spider import tree_spider as tree_spider
    from dpcal.calibrate.query import Query as Query
    from dpcal.calibrate.recommending.recommendation import (
        Recommendation as Recommendation,
        recommend as recommend,
    )
    from dpcal.calibrate.release_noise import (
        Calibrated as Calibrated,
        Noise as Noise,
        Release as Release,
        releases as releases,
    )
    from dpcal.calibrate.runs import (
        SampledRun as SampledRun,
        SamplerRow as SamplerRow,
        compare_samplers as compare_samplers,
    )
    from dpcal.calibrate.samplers import register_sampler as register_sampler
    from dpcal.errors import VacuousSchedule as VacuousSchedule
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
