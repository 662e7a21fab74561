"""How much noise does a run need, as commands are told the run?

>>> from fractions import Fraction
>>> from dpcal.commands.checking.mechanism import Mechanism
>>> run = Mechanism("shuffled-epochs", 60_000, 512, Fraction(512, 60_000), None, Fraction(1), None,
...                 "replace-special")
>>> round(noise_of(run, epsilon=4.377178, delta=1e-5), 5)  # one Gaussian answer: mu = 1
1.0
"""

from __future__ import annotations

from typing import Any

import dpcal
from dpcal.commands.checking.mechanism import Mechanism

__all__ = ["noise_of"]


def noise_of(told: Mechanism, *, epsilon: float, delta: float, accountant: str = "auto") -> float:
    """Return a noise multiplier at which a run costs no more than a target.

    Parameters
    ----------
    told
        The run, whose own noise multiplier has no say.
    epsilon, delta
        The target.
    accountant
        By whose epsilon the target is met.

    Raises
    ------
    DpcalError
        If no theorem prices the run under its neighboring relation.
    ValueError
        If the accountant gives no answer.
    """
    event = told.event(noise_multiplier=1.0)
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    if isinstance(event, dpcal.accountants.events.CorrelatedGaussianDpEvent):
        # The price comes first: a relation without one is refused by it, in words of its own.
        dpcal.accountants.epsilon(event, delta=delta, neighboring_relation=told.relation)
        found = dpcal.calibrate.correlated.noise_multiplier(event.strategy, event.sampler, **target)
        return float(found.noise_multiplier)
    target["neighboring_relation"] = told.relation

    def event_of(sigma: float) -> Any:
        return told.event(noise_multiplier=sigma)

    if accountant == "auto":
        return float(dpcal.calibrate.noise_multiplier(event_of, **target))
    (row,) = dpcal.calibrate.compare(event_of, accountants=(accountant,), **target).rows
    if row.noise_multiplier is None:
        raise ValueError(f"accountant {accountant!r} gives no answer: {row.note}.")
    return float(row.noise_multiplier)
