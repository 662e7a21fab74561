"""Verdicts on claims: a status, a method, and the evidence.

>>> verdict = Verdict("OPEN", "none", "needs data")
>>> Verdict.from_json(verdict.to_json()) == verdict
True
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

STATUSES = ("PROVED", "REFUTED", "LOOSE", "SAMPLED", "OPEN", "DEFINITION")


@dataclass(frozen=True)
class Verdict:
    """A verdict on a claim.

    Parameters
    ----------
    status
        ``"PROVED"``: the checker accepted a proof. ``"REFUTED"``: false at an exact point of the
        paper's domain, or by its order of growth. ``"LOOSE"``: proved, and so is a smaller bound.
        ``"SAMPLED"``: true in the listed cases, or by an accountant's answer; never of a formula.
        ``"OPEN"``: not decided. ``"DEFINITION"``: proved, and true by the definition that it
        repeats on purpose.
    method
        How it was decided.
    reason
        One line for the reader.
    evidence
        JSON-able witness that the checker reads.
    seconds
        Processor time spent.
    """

    status: str
    method: str
    reason: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict, hash=False)
    seconds: float = field(default=0.0, compare=False)

    def fields(self) -> dict[str, Any]:
        """Return the verdict as JSON-able fields, without its time."""
        names = ("status", "method", "reason", "evidence")
        return {name: getattr(self, name) for name in names}

    def to_json(self) -> str:
        """Return the verdict as a JSON document."""
        return json.dumps(self.fields())

    @classmethod
    def from_json(cls, document: str) -> Verdict:
        """Read a verdict written by :meth:`to_json`."""
        try:
            return cls(**json.loads(document))
        except (json.JSONDecodeError, TypeError, RecursionError) as error:
            raise ValueError(f"document must be a verdict in JSON, got {error}.") from error
