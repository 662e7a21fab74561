"""Parameter schedules of five papers: claims, a prover, and a checker that shares nothing with it.

``schedules`` loads a paper's claims and its corrected plans, ``audit`` proves or refutes them.
"""

from typing import TYPE_CHECKING

from dpcal import _lazy

if TYPE_CHECKING:
    from dpcal.calibrate.papers import schedules
    from dpcal.calibrate.papers.report import FORMATS, Audit, Finding, audit

__all__ = ["FORMATS", "Audit", "Finding", "audit", "schedules"]

# Both need sympy, which is slow to import.
_REPORT = "dpcal.calibrate.papers.report"
__getattr__, __dir__ = _lazy.attributes(
    __name__,
    {
        **dict.fromkeys(("FORMATS", "Audit", "Finding", "audit"), _REPORT),
        "schedules": "dpcal.calibrate.papers.schedules",
    },
)
