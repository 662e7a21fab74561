"""Run it: private optimizers, the privacy boundary, and the ledger of what was released.

An ``Objective`` (``Logistic``, ``Softmax``, ``FromGradients``, ...) holds records,
``PrivateOracle`` is the only thing that sees records and noise, and an optimizer such as ``dpsgd``
turns a plan into a ``Result``, whose ``Ledger`` says what was released. ``registry.OPTIMIZERS`` is
a table of the optimizers.
"""

from dpcal.optim.correlated_dpsgd import correlated_dpsgd
from dpcal.optim.custom import FromGradients
from dpcal.optim.dpsgd import dpsgd
from dpcal.optim.ledger import Ledger
from dpcal.optim.networks import KAN, MLP
from dpcal.optim.noise import NoiseStream
from dpcal.optim.noisy_gd import noisy_gd
from dpcal.optim.objectives import Constants, Logistic, Objective, Squared
from dpcal.optim.oracle import PrivateOracle
from dpcal.optim.result import Result, Trace
from dpcal.optim.robust import Cauchy, Huber, Sigmoid, Welsch
from dpcal.optim.softmax import Softmax

__all__ = [
    "KAN",
    "MLP",
    "Cauchy",
    "Constants",
    "FromGradients",
    "Huber",
    "Ledger",
    "Logistic",
    "NoiseStream",
    "Objective",
    "PrivateOracle",
    "Result",
    "Sigmoid",
    "Softmax",
    "Squared",
    "Trace",
    "Welsch",
    "correlated_dpsgd",
    "dpsgd",
    "noisy_gd",
]
