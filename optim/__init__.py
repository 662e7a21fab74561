"""Run it: private optimizers, the privacy boundary, and the ledger of all releases.

An ``Objective`` (``Logistic``, ``Softmax``, ``FromGradients``, ...) holds records,
``PrivateOracle`` answers queries about them with noise, and ``run`` spends a plan by the optimizer
that it names, such as ``dpsgd``, and returns a ``Result`` with a ``Ledger`` of all releases.
``registry.OPTIMIZERS`` is a table of the optimizers.
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.calibrate.constants import Constants as Constants
    from dpcal.optim import attacks as attacks, minimax as minimax, registry as registry
    from dpcal.optim.boundary.book import BudgetBook as BudgetBook
    from dpcal.optim.boundary.ledger import Ledger as Ledger
    from dpcal.optim.boundary.oracle import Oracle as Oracle, PrivateOracle as PrivateOracle
    from dpcal.optim.boundary.seeds import replaying as replaying
    from dpcal.optim.comparators import (
        ada_dp_spider as ada_dp_spider,
        dp_sgda as dp_sgda,
        privatediff as privatediff,
        sto_spider as sto_spider,
    )
    from dpcal.optim.driver import Progress as Progress, Run as Run
    from dpcal.optim.first_order.adaptive_gd import adaptive_gd as adaptive_gd
    from dpcal.optim.first_order.correlated_dpsgd import correlated_dpsgd as correlated_dpsgd
    from dpcal.optim.first_order.dpsgd import dpsgd as dpsgd
    from dpcal.optim.first_order.jl_glm import jl_glm as jl_glm
    from dpcal.optim.first_order.kl_spider import kl_spider as kl_spider
    from dpcal.optim.first_order.noisy_gd import noisy_gd as noisy_gd
    from dpcal.optim.first_order.proximal_point import proximal_point as proximal_point
    from dpcal.optim.first_order.recursive_regularization import (
        recursive_regularization as recursive_regularization,
    )
    from dpcal.optim.first_order.spiderboost import spiderboost as spiderboost
    from dpcal.optim.first_order.tree_spider import tree_spider as tree_spider
    from dpcal.optim.linear_fit import LinearSettings as LinearSettings, fit_linear as fit_linear
    from dpcal.optim.minimax.base import Minimax as Minimax
    from dpcal.optim.minimax.dp_rgda import dp_rgda as dp_rgda
    from dpcal.optim.objectives.base import Objective as Objective
    from dpcal.optim.objectives.check import check_objective as check_objective
    from dpcal.optim.objectives.custom import FromGradients as FromGradients, Users as Users
    from dpcal.optim.objectives.linear import Logistic as Logistic, Squared as Squared
    from dpcal.optim.objectives.networks import KAN as KAN, MLP as MLP
    from dpcal.optim.objectives.robust import (
        Cauchy as Cauchy,
        Huber as Huber,
        Sigmoid as Sigmoid,
        Welsch as Welsch,
    )
    from dpcal.optim.objectives.softmax import Softmax as Softmax
    from dpcal.optim.registry import algorithm as algorithm, released as released, run as run
    from dpcal.optim.result import Result as Result, Trace as Trace
    from dpcal.optim.second_order.curvature import Curvature as Curvature, curvature as curvature
    from dpcal.optim.second_order.distributed_psgd import (
        DistributedResult as DistributedResult,
        distributed_psgd as distributed_psgd,
    )
    from dpcal.optim.second_order.gauss_psgd import (
        SecondOrderResult as SecondOrderResult,
        gauss_psgd as gauss_psgd,
    )
    from dpcal.optim.second_order.select_point import (
        Selection as Selection,
        select_point as select_point,
    )
    from dpcal.optim.silos import Partitioned as Partitioned, Silo as Silo
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
