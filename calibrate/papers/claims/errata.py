"""Errata: printed statements that do not hold, and their corrections.

A text of errata has one paragraph each, with indented parts:

>>> (wrong,) = errata_of('''
...     E1 (rate; Theorem 1): The period lacks a square.
...         claim: q*T*eb**2 <= 1    # increments within the budget
...         printed: q*T*eb <= 1
...         use: q = 1/(T eb^2).
... ''')
>>> wrong.severity, wrong.source, wrong.printed.name, wrong.corrected.statement
('rate', 'Theorem 1', 'E1.printed', 'increments within the budget')

``claim`` is the line that holds with the corrected settings; ``settings`` names the settings that
the refuted version takes as printed, or ``printed`` is another line; ``about`` names the subject of
the printed line where it uses no setting; ``open`` gives the reason why no program can decide it.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Any

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.notation import Checks, indented, line

_HEAD = re.compile(r"([\w.\-]+) \((\w+); (.*?)\): (.+)$")
_PARTS = ("about", "claim", "open", "printed", "settings", "use")
_PART = re.compile(rf"\n(?=\s+(?:{'|'.join(_PARTS)}): )")


@dataclass(frozen=True)
class Erratum:
    """A printed statement that does not hold, and its correction.

    Parameters
    ----------
    name
        Identifier.
    title
        The mistake, in one sentence.
    printed
        A claim that the printed text makes; it must be refuted. One of prose when
        nothing can be executed.
    corrected
        The claim that holds instead.
    use
        The correction, in one sentence.
    severity
        ``"privacy"``, ``"rate"``, ``"algorithm"`` or ``"minor"``.
    source
        Theorem, equation, and part of the page.
    about
        Subject of a printed side that uses no setting: a step of a proof, a loop, a unit.
    """

    name: str
    title: str
    printed: Claim
    corrected: Claim | None = None
    use: str = ""
    severity: str = "minor"
    source: str = ""
    about: str = ""

    @property
    def sides(self) -> tuple[Claim, Claim | None]:
        """The printed and the corrected claim."""
        return self.printed, self.corrected

    def record(self, schedule: str) -> dict[str, Any]:
        """Return the erratum of a schedule as JSON-able fields."""
        fields = ("title", "severity", "source", "use", "about")
        sides = dict(zip(("printed", "corrected"), self.sides, strict=True))
        return {
            "schedule": schedule,
            "erratum": self.name,
            **{field: getattr(self, field) for field in fields},
            **{side: claim.name if claim else None for side, claim in sides.items()},
        }


def errata_of(text: str, checks: Checks | None = None) -> tuple[Erratum, ...]:
    """Return the errata of a text.

    Parameters
    ----------
    text
        Paragraphs, each with its indented parts.
    checks
        Programs that lines ``claim: check NAME`` and ``printed: check NAME`` refer to.
    """
    return tuple(_erratum(paragraph, checks) for paragraph in indented(text))


def _erratum(paragraph: str, checks: Checks | None) -> Erratum:
    first, *rest = _PART.split(paragraph, 1)
    head = _HEAD.match(" ".join(first.split()))
    if head is None:
        raise ValueError(
            f"erratum must begin with 'NAME (severity; source): title', got {first!r}."
        )
    name, severity, source, title = head.groups()
    rows = (" ".join(row.split()).partition(": ") for row in indented("".join(rest)))
    given = {word: value for word, _, value in rows}
    for word in given:
        if word not in _PARTS:
            raise ValueError(f"part of erratum {name} must be one of {_PARTS}, got {word!r}.")
    claim, wrong = (
        line(given[key], name, checks) if key in given else None for key in ("claim", "printed")
    )
    if "open" in given:
        wrong = line(f"open {given['open']}", name)
    wrong = wrong or (claim and claim.as_printed(*given.get("settings", "").split()))
    if wrong is None:
        raise ValueError(f"erratum {name} must have a claim or a printed claim, got neither.")
    wrong = dataclasses.replace(wrong, name=f"{name}.printed", source=source)
    right = claim and dataclasses.replace(claim, name=f"{name}.corrected", source=source)
    use, about = given.get("use", ""), given.get("about", "")
    return Erratum(name, title, wrong, right, use, severity, source, about)
