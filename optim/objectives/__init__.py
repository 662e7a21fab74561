"""Objectives: a mean of losses over records, with gradients per record and constants."""

from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.custom import FromGradients
from dpcal.optim.objectives.linear import Linear, Logistic, Squared, TwoClass
from dpcal.optim.objectives.networks import KAN, MLP
from dpcal.optim.objectives.robust import Cauchy, Huber, Sigmoid, Welsch
from dpcal.optim.objectives.softmax import Softmax

__all__ = [
    "KAN",
    "MLP",
    "Cauchy",
    "Constants",
    "FromGradients",
    "Huber",
    "Linear",
    "Logistic",
    "Objective",
    "Sigmoid",
    "Softmax",
    "Squared",
    "TwoClass",
    "Welsch",
]
