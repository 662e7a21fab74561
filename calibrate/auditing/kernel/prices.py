"""The check of a price: an event is priced again, by another accountant than the search used.

>>> from dpcal.accountants.events import GaussianDpEvent
>>> from dpcal.calibrate.auditing.claims import Priced
>>> from dpcal.calibrate.auditing.verdicts import Verdict
>>> claim = Priced("p", lambda: GaussianDpEvent(5.0), epsilon=0.9, delta=1e-6)
>>> check_price(claim, Verdict("SAMPLED", "price"))
"""

from __future__ import annotations

from dpcal.accountants import epsilon
from dpcal.calibrate.auditing.claims import Priced
from dpcal.calibrate.auditing.kernel.rules import require
from dpcal.calibrate.auditing.verdicts import Verdict

__all__ = ["check_price"]


def check_price(claim: Priced, verdict: Verdict) -> None:
    """Price the event by convolving privacy loss random variables; raise where it disagrees."""
    require(verdict.status in ("REFUTED", "SAMPLED"), "a price is never a proof.")
    price = epsilon(
        claim.event(),
        delta=claim.delta,
        neighboring_relation=claim.neighboring_relation,
        accountant="prv",
    )
    refuted = price.lower > claim.epsilon
    require(refuted == (verdict.status == "REFUTED"), "the price that the verdict says.")
    if verdict.status == "SAMPLED":
        require(price.lower <= claim.epsilon, "a price within the claim.")
