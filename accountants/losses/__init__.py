"""Privacy losses: one family of dominating pairs in each file.

The names here are the parts of a new mechanism: the class of a loss, and losses to build on.

>>> Gaussian(2.0).log_mgf_bound(1.0)                 # (c^2 + c) / (2 sigma^2) at c = 1
0.25
"""

from dpcal.accountants.losses.base import NO_LOSS, PrivacyLoss
from dpcal.accountants.losses.failure import LossWithFailure, MomentBound
from dpcal.accountants.losses.gaussian import Gaussian, log_gaussian_delta

__all__ = [
    "NO_LOSS",
    "Gaussian",
    "LossWithFailure",
    "MomentBound",
    "PrivacyLoss",
    "log_gaussian_delta",
]
