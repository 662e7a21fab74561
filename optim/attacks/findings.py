"""Violations that a private run can show, and the findings of a replay.

>>> sorted(VIOLATIONS)[:3]
['bound', 'failure', 'isolation']
>>> Finding(violation="bound", place="answer 3 to 'gradient'", detail="clipped to 2, planned 1")
Finding(violation='bound', place="answer 3 to 'gradient'", detail='clipped to 2, planned 1')
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from dpcal._internal import validate

VIOLATIONS = {
    "sensitivity": "a record moves a sum farther than its bound",
    "isolation": "a record moves an answer about a batch that it is not in",
    "bound": "contributions are clipped to another bound than the plan's",
    "noise": "the noise has another size than the plan's",
    "reuse": "noise is used twice, or the noises of two answers go together",
    "sampler": "batches do not follow the law that is priced",
    "sampling": "who is sampled depends on the records",
    "questions": "what is asked, how often, or with how much noise, depends on the records",
    "parameters": "records have reached what is asked about, and not through an answer",
    "ledger": "the ledger does not hold the answers that were given, before they were given",
    "plan": "the plan depends on the records, or is not the one that the result names",
    "price": "what was released costs more than is claimed",
    "release": "what is returned depends on the records, and not through answers alone",
    "failure": "whether the run fails or warns, or what it says then, depends on the records",
}


@dataclass(frozen=True)
class Finding:
    """One violation: a key of :data:`VIOLATIONS`, its place, and the values found and due.

    The ``place`` names an answer, an oracle or a value.
    """

    violation: str
    place: str
    detail: str

    def __post_init__(self) -> None:
        validate.choice(tuple(VIOLATIONS), violation=self.violation)

    def __str__(self) -> str:
        return f"{self.violation} ({VIOLATIONS[self.violation]}): {self.place}: {self.detail}"


@dataclass(frozen=True, kw_only=True)
class Replay:
    """Outcome of a recorded run and its replay on neighbouring data.

    Parameters
    ----------
    findings
        The violations that were found. An empty list is not a proof of privacy.
    answers, moved
        Number of noisy answers of the run, and number of their sums that differ between the data
        sets. If none differs, the record was in no batch, or contributes nothing, and the replay
        shows little.
    largest
        The largest distance between two sums, in units of the allowed distance; at most 1 where
        every sensitivity is right, and near 1 for the worst neighbours.
    label
        Kind of the neighbours.
    """

    findings: tuple[Finding, ...]
    answers: int
    moved: int
    largest: float
    label: str = ""

    @property
    def holds(self) -> bool:
        """Whether no violation was found."""
        return not self.findings

    @property
    def violations(self) -> frozenset[str]:
        """Keys of :data:`VIOLATIONS` that were found."""
        return frozenset(finding.violation for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the replay as JSON values."""
        return asdict(self)

    def __str__(self) -> str:
        head = f"{self.label}: {self.answers}" if self.label else f"{self.answers}"
        head += f" answers, {self.moved} moved, by at most {self.largest:.3g} of what is allowed"
        return "\n  ".join([head, *map(str, self.findings)])
