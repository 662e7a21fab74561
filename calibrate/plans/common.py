"""What do plan builders share? Checked constants, one release's noise, and what a theorem promises.

>>> from dpcal.calibrate import Constants
>>> known(Constants(lipschitz=2.0, smoothness=1.0), "lipschitz", "max_norm")
2.0
>>> known(Constants(lipschitz=float("inf"), smoothness=1.0), "lipschitz", "max_norm")
Traceback (most recent call last):
    ...
ValueError: max_norm must be given where constants.lipschitz is no number > 0, got inf.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

from dpcal import _validate
from dpcal.accountants import events
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.noise import noise_multiplier
from dpcal.calibrate.plan import Parameter
from dpcal.errors import VacuousSchedule

__all__ = [
    "PRESETS",
    "informative_from",
    "known",
    "promise",
    "repeated",
    "replaced_in_place",
    "rounded_down",
    "rounded_up",
    "single_release",
]

PRESETS = ("practical", "theory")

# Relative: a setting that is a whole number but for rounding errors, which are near 1e-15, is taken
# for that number. A larger value would take other numbers for whole ones. Neither half nor twice of
# it changes any of 2 plans.
_WHOLE = 1e-12

# Relative: by so much more noise than sqrt(count) asks for, the sum of the answers' shares of the
# budget stays at most one however it is rounded. A value below 1e-15 would not reach that. With
# half of it all 5 plans change by up to 6e-13; with twice all 5 plans change by up to 1e-12.
_ABOVE_ROUNDING = 1e-12

# Sizes n at which a theorem is asked for its promise end here, for a promise that never comes.
# Neither half nor twice of it changes the one plan that reads it.
_LARGEST_SIZE = 1e30

# The size from which a theorem promises something is found to this ratio, so that two digits hold.
# Half of it is no ratio above 1, and the search does not end; with twice the one plan that reads it
# does not change.
_SIZE_RATIO = 1.02


def known(
    constants: Constants, field: str, argument: str | None = None, given: float | None = None
) -> float:
    """Return the value that was given for an argument, or else the constant in its place.

    Parameters
    ----------
    constants
        Of the problem.
    field
        Name of the constant, which must be a finite number > 0 where nothing was given.
    argument
        Name of the argument that may be given instead; None where only the constant will do.
    given
        Its value > 0, or None.
    """
    if argument is not None and given is not None:
        return _validate.positive(**{argument: given})
    value = getattr(constants, field)
    if value is None or not 0 < value < math.inf:
        needed = f"{argument} must be given where constants.{field} is no number > 0"
        if argument is None:
            needed = f"constants.{field} must be a finite number > 0"
        raise ValueError(f"{needed}, got {value!r}.")
    return float(value)


def single_release(epsilon: float, delta: float, neighboring_relation: str) -> float:
    """Return the noise multiplier of one Gaussian release that spends the whole target."""
    return noise_multiplier(
        events.GaussianDpEvent,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=neighboring_relation,
    )


def repeated(multiplier: float, count: int) -> float:
    """Return the noise multiplier of ``count`` releases that are as private as a single one."""
    return multiplier * math.sqrt(count) * (1 + _ABOVE_ROUNDING)


def replaced_in_place(neighboring_relation: str) -> None:
    """Refuse a relation under which disjoint parts do not compose in parallel."""
    allowed = ("replace-one", "replace-special")
    _validate.choice(allowed, neighboring_relation=neighboring_relation)


def rounded_up(number: float) -> int:
    """Return the least whole number >= 1 that is not below ``number``, but for rounding errors."""
    return max(1, math.ceil(number * (1 - _WHOLE)))


def rounded_down(number: float) -> int:
    """Return the largest whole number not above ``number``, but for rounding errors; 1 at least."""
    return max(1, math.floor(number * (1 + _WHOLE)))


def informative_from(accuracy: Callable[[float], float], trivial: float, n: int) -> int:
    """Return the number of records, to two digits, from which a theorem promises something.

    Parameters
    ----------
    accuracy
        What the theorem promises, as a function of the number of records.
    trivial
        What holds without an optimizer: the promise says something where it is smaller.
    n
        A number of records at which it is not smaller.
    """
    high = float(n)
    while accuracy(high) >= trivial and high < _LARGEST_SIZE:
        high *= 2
    low = high / 2
    while high / low > _SIZE_RATIO:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if accuracy(middle) < trivial else (middle, high)
    digits = 10 ** max(0, math.floor(math.log10(high)) - 1)
    return int(math.ceil(high / digits) * digits)


_SAYS = {"guarantee": "it promises", "order": "it promises the order"}


def promise(
    name: str,
    value: float,
    trivial: tuple[str, float],
    accuracy: Callable[[float], float],
    n: int,
    *,
    kind: str = "order",
) -> dict[str, Parameter]:
    """Return what a plan records of its theorem's accuracy, and warn where that says nothing.

    ``accuracy`` and ``vacuous`` are of the kind ``accuracy_kind``: a ``"guarantee"`` is a bound
    with all its constants, an ``"order"`` has the theorem's hidden constants and logarithms taken
    as 1.

    Parameters
    ----------
    name
        Of the optimizer.
    value
        The accuracy that is promised at n.
    trivial
        Name and value of a bound that holds without an optimizer.
    accuracy
        About what is promised at other numbers of records.
    n
        Number of records.
    kind
        ``"guarantee"`` or ``"order"``.

    Warns
    -----
    VacuousSchedule
        If the accuracy is no better than the trivial bound.
    """
    meaning, bound = trivial
    record: dict[str, Parameter] = {"accuracy": value, "accuracy_kind": kind}
    if value < bound:
        return {**record, "vacuous": False}
    start = informative_from(accuracy, bound, n)
    warnings.warn(
        f"the theorem of {name} is vacuous at n={n}: {_SAYS[kind]} {value:.3g}, no better than the "
        f"{meaning} {bound:.3g}; it is informative from about n={start:.2g}.",
        VacuousSchedule,
        stacklevel=4,
    )
    return {**record, "vacuous": True, "informative_from_n": start}


def warn_no_step(name: str, n: int, why: str) -> None:
    """Warn, for the caller of a plan's builder, of a run that spends its budget and goes nowhere.

    Parameters
    ----------
    name
        Of the optimizer.
    n
        Number of records.
    why
        A clause.

    Warns
    -----
    VacuousSchedule
        Always.
    """
    warnings.warn(
        f"{name} takes no step at n={n} but by chance, and spends its budget: {why}.",
        VacuousSchedule,
        stacklevel=4,
    )
