"""Objectives: a mean of losses over records, with gradients per record and constants."""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.calibrate.constants import Constants as Constants
    from dpcal.optim.objectives.base import Objective as Objective
    from dpcal.optim.objectives.custom import FromGradients as FromGradients
    from dpcal.optim.objectives.linear import (
        Linear as Linear,
        Logistic as Logistic,
        Squared as Squared,
        TwoClass as TwoClass,
    )
    from dpcal.optim.objectives.networks import KAN as KAN, MLP as MLP
    from dpcal.optim.objectives.robust import (
        Cauchy as Cauchy,
        Huber as Huber,
        Sigmoid as Sigmoid,
        Welsch as Welsch,
    )
    from dpcal.optim.objectives.softmax import Softmax as Softmax
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
