"""Run it: private optimizers, the privacy boundary, and the ledger of what was released.

``Objective`` (``Logistic``, ``Squared``) holds records, ``PrivateOracle`` is the only thing that
sees records and noise, and an optimizer such as ``dpsgd`` turns a plan into a ``Result``, whose
``Ledger`` says what was released.
"""

from dpcal.optim.dpsgd import dpsgd
from dpcal.optim.ledger import Ledger
from dpcal.optim.noise import NoiseStream
from dpcal.optim.objectives import Constants, Logistic, Objective, Squared
from dpcal.optim.oracle import PrivateOracle
from dpcal.optim.result import Result, Trace

__all__ = [
    "Constants",
    "Ledger",
    "Logistic",
    "NoiseStream",
    "Objective",
    "PrivateOracle",
    "Result",
    "Squared",
    "Trace",
    "dpsgd",
]
