"""Run it: private optimizers, the privacy boundary, and the ledger of what was released.

An ``Objective`` (``Logistic``, ``Softmax``, ``FromGradients``, ...) holds records,
``PrivateOracle`` is the only thing that sees records and noise, and an optimizer such as ``dpsgd``
turns a plan into a ``Result``, whose ``Ledger`` says what was released. ``registry.OPTIMIZERS`` is
a table of the optimizers.
"""

from dpcal.calibrate.constants import Constants
from dpcal.optim import attacks, minimax, registry
from dpcal.optim.boundary.access import released
from dpcal.optim.boundary.budget.book import BudgetBook
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import replaying
from dpcal.optim.boundary.streams import NoiseStream
from dpcal.optim.comparators.dp_sgda import dp_sgda
from dpcal.optim.comparators.explicit import ada_dp_spider, sto_spider
from dpcal.optim.comparators.privatediff import privatediff
from dpcal.optim.driver import Progress, Run
from dpcal.optim.first_order.adaptive_gd import adaptive_gd
from dpcal.optim.first_order.correlated_dpsgd import correlated_dpsgd
from dpcal.optim.first_order.dpsgd import dpsgd
from dpcal.optim.first_order.jl_glm import jl_glm
from dpcal.optim.first_order.kl_spider import kl_spider
from dpcal.optim.first_order.noisy_gd import noisy_gd
from dpcal.optim.first_order.proximal_point import proximal_point
from dpcal.optim.first_order.recursive_regularization import recursive_regularization
from dpcal.optim.first_order.spiderboost import spiderboost
from dpcal.optim.first_order.tree_spider import tree_spider
from dpcal.optim.minimax.custom import Minimax
from dpcal.optim.minimax.dp_rgda import dp_rgda
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.check import check_objective
from dpcal.optim.objectives.custom import FromGradients
from dpcal.optim.objectives.linear import Logistic, Squared
from dpcal.optim.objectives.networks import KAN, MLP
from dpcal.optim.objectives.robust import Cauchy, Huber, Sigmoid, Welsch
from dpcal.optim.objectives.softmax import Softmax
from dpcal.optim.result import Result, Trace
from dpcal.optim.second_order.curvature import Curvature, curvature
from dpcal.optim.second_order.distributed_psgd import DistributedResult, distributed_psgd
from dpcal.optim.second_order.gauss_psgd import SecondOrderResult, gauss_psgd
from dpcal.optim.second_order.select_point import Selection, select_point
from dpcal.optim.silos import DaskSilos, Silo

__all__ = [
    "KAN",
    "MLP",
    "BudgetBook",
    "Cauchy",
    "Constants",
    "Curvature",
    "DaskSilos",
    "DistributedResult",
    "FromGradients",
    "Huber",
    "Ledger",
    "Logistic",
    "Minimax",
    "NoiseStream",
    "Objective",
    "Oracle",
    "PrivateOracle",
    "Progress",
    "Result",
    "Run",
    "SecondOrderResult",
    "Selection",
    "Sigmoid",
    "Silo",
    "Softmax",
    "Squared",
    "Trace",
    "Welsch",
    "ada_dp_spider",
    "adaptive_gd",
    "attacks",
    "check_objective",
    "correlated_dpsgd",
    "curvature",
    "distributed_psgd",
    "dp_rgda",
    "dp_sgda",
    "dpsgd",
    "gauss_psgd",
    "jl_glm",
    "kl_spider",
    "minimax",
    "noisy_gd",
    "privatediff",
    "proximal_point",
    "recursive_regularization",
    "registry",
    "released",
    "replaying",
    "select_point",
    "spiderboost",
    "sto_spider",
    "tree_spider",
]
