"""What does this cost? Privacy accountants that share one reading of the privacy loss.

>>> from dpcal.accountants import epsilon, events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> answer = epsilon(event, delta=1e-6)
>>> print(f"epsilon is between {answer.lower:.10f} and {answer.upper:.10f}")
epsilon is between 6.9073844950 and 6.9073844950
"""

from typing import TYPE_CHECKING

from dpcal import _lazy
from dpcal.accountants import events
from dpcal.accountants.adaptive.filters import Odometer, PrivacyFilter, renyi_order
from dpcal.accountants.answers import Delta, Epsilon, LogDelta, Risk
from dpcal.accountants.certificates.certify import Certificate, certify, verify_certificate
from dpcal.accountants.curves.profile import (
    EpsilonProfile,
    PrivacyProfile,
    epsilon_profile,
    privacy_profile,
)
from dpcal.accountants.curves.tradeoff import (
    TradeOff,
    advantage,
    bayes_success,
    gdp_mu,
    trade_off,
    trade_off_from_deltas,
    true_positive_rate,
)
from dpcal.accountants.interface import (
    ACCOUNTANTS,
    Comparison,
    compare,
    delta,
    delta_bounds,
    epsilon,
    epsilon_bounds,
    log_delta,
)
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.losses.sampled_gaussian import SampledGaussian
from dpcal.errors import BudgetExceeded

__all__ = [
    "ACCOUNTANTS",
    "Account",
    "BudgetExceeded",
    "Certificate",
    "CharacteristicAccountant",
    "Comparison",
    "Delta",
    "Epsilon",
    "EpsilonProfile",
    "Gaussian",
    "LogDelta",
    "Odometer",
    "PrivacyFilter",
    "PrivacyLoss",
    "PrivacyProfile",
    "RenyiAccountant",
    "Risk",
    "SampledGaussian",
    "TradeOff",
    "advantage",
    "bayes_success",
    "certify",
    "compare",
    "correlated",
    "delta",
    "delta_bounds",
    "dominating_draws",
    "epsilon",
    "epsilon_bounds",
    "epsilon_profile",
    "events",
    "gdp_mu",
    "log_delta",
    "matrix",
    "privacy_profile",
    "renyi_order",
    "trade_off",
    "trade_off_from_deltas",
    "true_positive_rate",
    "verify_certificate",
]

if TYPE_CHECKING:
    from dpcal.accountants import correlated, matrix
    from dpcal.accountants.adaptive.account import (
        Account,
        CharacteristicAccountant,
        RenyiAccountant,
    )
    from dpcal.accountants.certificates.draws import dominating_draws


# The accounts subclass dp-accounting's accountant, whose package is slow to import.
_ACCOUNT = "dpcal.accountants.adaptive.account"
__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        "Account": _ACCOUNT,
        "CharacteristicAccountant": _ACCOUNT,
        "RenyiAccountant": _ACCOUNT,
        "correlated": "dpcal.accountants.correlated",
        "dominating_draws": "dpcal.accountants.certificates.draws",
        "matrix": "dpcal.accountants.matrix",
    },
)
