"""How much noise keeps an attacker's success below a target? Calibration to a risk.

>>> from dpcal.accountants import events, true_positive_rate
>>> def event(noise_multiplier):
...     return events.dpsgd(
...         sampling_probability=0.01, noise_multiplier=noise_multiplier, steps=1000
...     )
>>> def risk(event):
...     return true_positive_rate(event, false_positive_rate=1e-3)
>>> print(f"{noise_multiplier_for_risk(event, risk, at_most=0.002):.4f}")
1.6839
"""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcal import _validate
from dpcal._roots import NoBracket, Stop, newton
from dpcal._validate import NoiseOutOfRange
from dpcal.accountants.events import DpEvent
from dpcal.errors import TargetUnreachable

__all__ = ["noise_multiplier_for_risk"]

# Relative to the noise multiplier: how near the answer is to one that misses the target, as the
# function's docstring says.
_RELATIVE_WIDTH = 1e-6

# Smallest and largest noise multiplier that is tried, relative to the first one.
_ENDS = 1e-12, 1e12


def noise_multiplier_for_risk(
    event_of_sigma: Callable[[float], DpEvent],
    risk: Callable[[DpEvent], float],
    *,
    at_most: float,
) -> float:
    """Return the smallest noise multiplier with a risk of at most the target, to a relative 1e-6.

    Parameters
    ----------
    event_of_sigma
        Maps a noise multiplier > 0 to an event whose risk falls as it grows.
    risk
        Maps an event to a number, such as :func:`~dpcal.accountants.advantage`,
        :func:`~dpcal.accountants.gdp_mu`, or a call of
        :func:`~dpcal.accountants.true_positive_rate` or :func:`~dpcal.accountants.bayes_success`
        with the attacker's false-positive rate or prior filled in. Their values are upper bounds,
        so the target is met by the true risk.
    at_most
        Target, > 0.

    Returns
    -------
    float
        sigma with risk(sigma) <= target and risk(sigma (1 - 1e-6)) > target.

    Raises
    ------
    TargetUnreachable
        If no value separates meeting the target from missing it.
    """
    target = math.log(_validate.positive(at_most=at_most))

    def excess(x: float) -> tuple[float, None]:
        value = float(risk(event_of_sigma(math.exp(x))))
        return (math.log(value) if value > 0 else -math.inf) - target, None

    def solved(first: float) -> float:
        def within(x: float) -> tuple[float, None]:
            try:
                return excess(x)
            except NoiseOutOfRange:
                if x == first:
                    raise
                raise NoBracket(x, meets=x < first) from None

        lowest, highest = (first + math.log(end) for end in _ENDS)
        stop = Stop(absolute=_RELATIVE_WIDTH / 2)
        return math.exp(newton(within, first, lowest, highest, stop).meet)

    try:
        try:
            return solved(0.0)
        except NoiseOutOfRange as refusal:
            # In units of incomes, or of money, a noise of 1 is next to nothing or too much.
            return solved(-math.log(refusal.number))
    except NoBracket as found:
        which = "Every noise multiplier down to" if found.meets else "No noise multiplier up to"
        raise TargetUnreachable(
            f"{which} {math.exp(found.at):.3g} has a risk of at most {at_most!r}."
        ) from None
