"""The six papers by name.

>>> load("kl_condition").citation.split(":")[0]
'Menart, Ullah, Arora, Bassily, Guzman'
>>> load("kl_conditon")
Traceback (most recent call last):
    ...
ValueError: schedule must be one of 6 known names, got 'kl_conditon'; did you mean 'kl_condition'?
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

from dpcal.calibrate.papers.claims.language import Schedule
from dpcal.calibrate.papers.claims.notation import nearest

PAPERS = ("kl_condition", "spiderboost", "gauss_psgd", "dp_rgda", "kan", "moments")


@cache
def load(name: str) -> Schedule:
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
        raise ValueError(f"schedule {nearest(name, PAPERS)}")
    schedule: Schedule = import_module(f"dpcal.calibrate.papers.{name}").SCHEDULE
    return schedule
