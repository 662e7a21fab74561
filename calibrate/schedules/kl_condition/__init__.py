"""Private non-convex optimization under the Kurdyka-Lojasiewicz condition (Menart et al.).

``F(w) - F* <= gamma^kappa ||grad F(w)||^kappa``, and four algorithms: KL Spider (1), private
proximal point (2), adaptive noisy gradient descent (3) and projected noisy descent for a
regularized loss (4).

>>> from dpcal.calibrate.auditing.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("EP1.printed"))).status
'REFUTED'
"""

from typing import Any

from dpcal.calibrate.auditing.language import Schedule
from dpcal.calibrate.schedules.kl_condition import quantities
from dpcal.calibrate.schedules.kl_condition.adaptive import ADAPTIVE
from dpcal.calibrate.schedules.kl_condition.algorithm_errata import ALGORITHM_ERRATA
from dpcal.calibrate.schedules.kl_condition.lower import LOWER
from dpcal.calibrate.schedules.kl_condition.lower_errata import LOWER_ERRATA
from dpcal.calibrate.schedules.kl_condition.privacy import PRIVACY
from dpcal.calibrate.schedules.kl_condition.privacy_errata import PRIVACY_ERRATA
from dpcal.calibrate.schedules.kl_condition.proximal import PROXIMAL
from dpcal.calibrate.schedules.kl_condition.quantities import QUANTITIES
from dpcal.calibrate.schedules.kl_condition.rates import RATES
from dpcal.calibrate.schedules.kl_condition.schedule import _SCHEDULE
from dpcal.calibrate.schedules.kl_condition.settings import SETTINGS
from dpcal.calibrate.schedules.kl_condition.units import UNITS
from dpcal.calibrate.schedules.kl_condition.utility_errata import UTILITY_ERRATA

__all__ = ["SCHEDULE"]


def __getattr__(name: str) -> Any:
    """Return a symbol of the paper."""
    return getattr(quantities, name)


SCHEDULE = Schedule(
    name="kl_condition",
    title="Non-convex optimization under the KL condition",
    citation=(
        "Menart, Ullah, Arora, Bassily, Guzman: Differentially Private Non-Convex Optimization "
        "under the KL Condition with Optimal Rates"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=(
        *_SCHEDULE,
        *PRIVACY,
        *PROXIMAL,
        *ADAPTIVE,
        *RATES,
        *LOWER,
        *UNITS,
    ),
    errata=(*PRIVACY_ERRATA, *ALGORITHM_ERRATA, *UTILITY_ERRATA, *LOWER_ERRATA),
)
