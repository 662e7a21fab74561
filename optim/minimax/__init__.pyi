from dpcal.optim.minimax.auc import AUCMaximization as AUCMaximization
from dpcal.optim.minimax.base import MinimaxObjective as MinimaxObjective
from dpcal.optim.minimax.custom import Minimax as Minimax
from dpcal.optim.minimax.result import Anchor as Anchor, MinimaxResult as MinimaxResult
from dpcal.optim.minimax.reweighted import (
    CovariateShift as CovariateShift,
    FairClassification as FairClassification,
)
from dpcal.optim.minimax.sets import (
    Ball as Ball,
    Box as Box,
    ConvexSet as ConvexSet,
    Everywhere as Everywhere,
    Simplex as Simplex,
)
