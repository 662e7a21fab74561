"""Minimax problems and their optimizers: minimise over x what y in a convex set maximises.

``Minimax`` takes a user's own functions; the other problems are those that people solve this way.
"""

from dpcal.optim.minimax.auc import AUCMaximization
from dpcal.optim.minimax.base import MinimaxObjective
from dpcal.optim.minimax.custom import AveragedClip, Minimax
from dpcal.optim.minimax.result import Anchor, MinimaxResult
from dpcal.optim.minimax.reweighted import CovariateShift, FairClassification
from dpcal.optim.minimax.sensing import MatrixSensing
from dpcal.optim.minimax.sets import Ball, Box, ConvexSet, Everywhere, Simplex
from dpcal.optim.minimax.toy import ToySaddle

__all__ = [
    "AUCMaximization",
    "Anchor",
    "AveragedClip",
    "Ball",
    "Box",
    "ConvexSet",
    "CovariateShift",
    "Everywhere",
    "FairClassification",
    "MatrixSensing",
    "Minimax",
    "MinimaxObjective",
    "MinimaxResult",
    "Simplex",
    "ToySaddle",
]
