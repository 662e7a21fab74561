"""Claims about parameter schedules, proved or refuted, and a checker apart from the prover."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpcal.calibrate.auditing.report import Audit, Finding, audit

__all__ = ["Audit", "Finding", "audit"]


def __getattr__(name: str) -> Any:
    # The report needs sympy, which is slow to import.
    if name in __all__:
        return getattr(import_module("dpcal.calibrate.auditing.report"), name)
    raise AttributeError(f"module 'dpcal.calibrate.auditing' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
