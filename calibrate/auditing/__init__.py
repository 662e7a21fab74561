"""Claims about parameter schedules, proved or refuted, and a checker apart from the prover."""

from typing import TYPE_CHECKING

from dpcal import _lazy

if TYPE_CHECKING:
    from dpcal.calibrate.auditing.report import FORMATS, Audit, Finding, audit

__all__ = ["FORMATS", "Audit", "Finding", "audit"]

# The report needs sympy, which is slow to import.
__getattr__, __dir__ = _lazy.attributes(
    __name__, dict.fromkeys(__all__, "dpcal.calibrate.auditing.report")
)
