"""The six papers by name, and the plans of their schedules.

A paper's module is data. :func:`load` joins its schedule to the planner that turns it into a plan.

>>> load("kl_condition").citation.split(":")[0]
'Menart, Ullah, Arora, Bassily, Guzman'
>>> load("kl_conditon")
Traceback (most recent call last):
    ...
ValueError: schedule must be one of 6 known names, got 'kl_conditon'; did you mean 'kl_condition'?
"""

from __future__ import annotations

from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.claims.language import Schedule, nearest

if TYPE_CHECKING:
    from dpcal.calibrate.plan import Plan

__all__ = ["PAPERS", "load", "plan_of"]

PAPERS = ("kl_condition", "spiderboost", "gauss_psgd", "dp_rgda", "kan", "moments")


@cache
def load(name: str) -> Schedule:
    """Return the schedule of a paper, with the planner that turns it into a plan.

    Parameters
    ----------
    name
        One of ``PAPERS``.

    Raises
    ------
    ValueError
        For another name, with the nearest ones.
    """
    if name not in PAPERS:
        raise ValueError(f"schedule {nearest(name, PAPERS)}")
    schedule: Schedule = import_module(f"dpcal.calibrate.papers.{name}").SCHEDULE
    return schedule.planned_by(partial(_planned, schedule))


def _builders() -> Any:
    """Return the module that builds plans, which an audit does not load."""
    return import_module("dpcal.calibrate.papers.from_schedule")


def _planned(schedule: Schedule, **target: Any) -> Plan:
    plan: Plan = _builders().plan_from(schedule, **target)
    return plan


def plan_of(name: str, *, n: int, epsilon: float, delta: float, **constants: Any) -> Plan:
    """Return the calibrated plan of a paper's first algorithm, or of another algorithm.

    Parameters
    ----------
    name
        One of ``PAPERS``, for its first algorithm, or of ``ALGORITHMS``, such as
        ``"tree_spider"``.
    n
        Number of records, at least 1.
    epsilon, delta
        The target.
    **constants
        The dimension ``d`` and the paper's constants.

    Raises
    ------
    ValueError
        For another name, or a constant that is missing, unknown or out of range.

    Examples
    --------
    >>> plan_of("adaptive_gd", n=10**6, d=20, epsilon=1.0, delta=1e-6, L0=1, L1=1, F0=1, gamma=1)
    ...     # doctest: +ELLIPSIS
    Plan(...)
    """
    if name in PAPERS:
        return load(name).plan(n=n, epsilon=epsilon, delta=delta, **constants)
    builders = _builders()
    if name not in builders.ALGORITHMS:
        raise ValueError(f"schedule {nearest(name, (*PAPERS, *builders.ALGORITHMS))}")
    if "d" not in constants:
        raise ValueError(f"constants of {name} must include d, got none.")
    plan: Plan = builders.algorithm_plan(name, n=n, epsilon=epsilon, delta=delta, **constants)
    return plan
