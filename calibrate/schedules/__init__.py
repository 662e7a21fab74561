"""The papers' parameter schedules as symbolic claims, one module per paper.

>>> load("kl_condition").citation.split(":")[0]
'Menart, Ullah, Arora, Bassily, Guzman'
>>> load("kl_conditon")
Traceback (most recent call last):
    ...
ValueError: schedule must be one of 5 known names, got 'kl_conditon'; did you mean 'kl_condition'?
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcal.calibrate.auditing.language import Schedule

PAPERS = ("kl_condition", "spiderboost", "gauss_psgd", "dp_rgda", "kan")
_LANGUAGE = (
    "Balance",
    "Bound",
    "Claim",
    "Enumeration",
    "Erratum",
    "Feasible",
    "Identity",
    "Priced",
    "Private",
    "Prose",
    "Quantity",
    "Rate",
    "Release",
    "Schedule",
    "Setting",
    "Units",
    "erratum",
    "positive",
    "real",
)

__all__ = ["PAPERS", "load", *PAPERS, *_LANGUAGE]


def load(name: str) -> "Schedule":
    """Return the schedule of a paper.

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
        from dpcal.calibrate.auditing.language import nearest

        raise ValueError(f"schedule {nearest(name, PAPERS)}")
    schedule: Schedule = import_module(f"dpcal.calibrate.schedules.{name}").SCHEDULE
    return schedule


def __getattr__(name: str) -> Any:
    if name in PAPERS:
        return import_module(f"dpcal.calibrate.schedules.{name}")
    if name in _LANGUAGE:
        return getattr(import_module("dpcal.calibrate.auditing.language"), name)
    raise AttributeError(f"module 'dpcal.calibrate.schedules' has no attribute {name!r}")
