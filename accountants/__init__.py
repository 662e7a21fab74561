"""What does this cost? Privacy accountants that share one reading of the privacy loss.

>>> from dpcal.accountants import epsilon, events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> answer = epsilon(event, delta=1e-6)
>>> print(f"epsilon is between {answer.lower:.10f} and {answer.upper:.10f}")
epsilon is between 6.9073844950 and 6.9073844950
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.accountants import correlated as correlated, events as events, matrix as matrix
    from dpcal.accountants.adaptive.account import (
        Account as Account,
        CharacteristicAccountant as CharacteristicAccountant,
        RenyiAccountant as RenyiAccountant,
    )
    from dpcal.accountants.adaptive.filters import (
        Odometer as Odometer,
        PrivacyFilter as PrivacyFilter,
        renyi_order as renyi_order,
    )
    from dpcal.accountants.answers import (
        Delta as Delta,
        Epsilon as Epsilon,
        LogDelta as LogDelta,
        Risk as Risk,
    )
    from dpcal.accountants.certificates.certify import certify as certify
    from dpcal.accountants.certificates.document import Certificate as Certificate
    from dpcal.accountants.certificates.verify import verify_certificate as verify_certificate
    from dpcal.accountants.curves.profile import (
        EpsilonProfile as EpsilonProfile,
        Grid as Grid,
        PrivacyProfile as PrivacyProfile,
        epsilon_profile as epsilon_profile,
        grid as grid,
        privacy_profile as privacy_profile,
    )
    from dpcal.accountants.curves.tradeoff import (
        TradeOff as TradeOff,
        advantage as advantage,
        attack_risk as attack_risk,
        bayes_success as bayes_success,
        gdp_mu as gdp_mu,
        trade_off as trade_off,
        trade_off_from_deltas as trade_off_from_deltas,
        true_positive_rate as true_positive_rate,
    )
    from dpcal.accountants.interface import (
        ACCOUNTANTS as ACCOUNTANTS,
        Comparison as Comparison,
        compare as compare,
        delta as delta,
        epsilon as epsilon,
        log_delta as log_delta,
    )
    from dpcal.accountants.losses.base import PrivacyLoss as PrivacyLoss
    from dpcal.accountants.losses.gaussian import Gaussian as Gaussian
    from dpcal.accountants.losses.sampled_gaussian import SampledGaussian as SampledGaussian
    from dpcal.accountants.mechanisms.own import (
        from_pld as from_pld,
        from_pmf as from_pmf,
        from_profile as from_profile,
    )
    from dpcal.errors import BudgetExceeded as BudgetExceeded
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
