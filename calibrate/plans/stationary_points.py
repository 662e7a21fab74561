"""What do plans for private stationary points share? Checked constants, one release, a verdict.

>>> from dpcal.calibrate import Constants
>>> known(Constants(lipschitz=2.0, smoothness=1.0), "lipschitz", "max_norm", None)
2.0
>>> known(Constants(lipschitz=float("inf"), smoothness=1.0), "lipschitz", "max_norm", None)
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

__all__ = ["PRESETS", "known", "replaced_in_place", "single_release", "verdict"]

PRESETS = ("practical", "theory")


def known(constants: Constants, field: str, argument: str, given: float | None) -> float:
    """Return what was given, or else a constant; say which of them is needed."""
    if given is not None:
        return _validate.positive(**{argument: given})
    value = getattr(constants, field)
    if value is None or not 0 < value < math.inf:
        raise ValueError(
            f"{argument} must be given where constants.{field} is no number > 0, got {value!r}."
        )
    return float(value)


def single_release(epsilon: float, delta: float, neighboring_relation: str) -> float:
    """Return the noise multiplier of one Gaussian release that spends the whole target."""
    return noise_multiplier(
        events.GaussianDpEvent,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=neighboring_relation,
    )


def replaced_in_place(neighboring_relation: str) -> None:
    """Refuse a relation under which disjoint parts do not compose in parallel."""
    allowed = ("replace-one", "replace-special")
    _validate.choice(allowed, neighboring_relation=neighboring_relation)


def verdict(
    name: str, accuracy: float, trivial: float, promised: Callable[[float], float], n: int
) -> dict[str, Parameter]:
    """Return a theorem's accuracy for the plan's record, warning where it promises nothing.

    Parameters
    ----------
    name
        Of the optimizer.
    accuracy
        What is promised at n.
    trivial
        What holds without an optimizer.
    promised
        What is promised at other sizes, about.
    n
        Number of records.
    """
    from dpcal.calibrate.plans.from_schedule import VacuousSchedule, biting_size

    record: dict[str, Parameter] = {"accuracy": accuracy, "vacuous": not accuracy < trivial}
    if record["vacuous"]:
        record["bites_at"] = biting_size(promised, trivial, n)
        warnings.warn(
            f"the theorem of {name} is vacuous at n={n}: it promises {accuracy:.3g}, no better "
            f"than the Lipschitz constant {trivial:.3g}; it bites from about "
            f"n={record['bites_at']:.2g}.",
            VacuousSchedule,
            stacklevel=4,
        )
    return record
