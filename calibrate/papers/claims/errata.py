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
the refuted version takes as printed, or ``printed`` is another line; ``about`` says what the
printed line speaks of where it uses no setting; ``open`` says why nothing can be executed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpcal.calibrate.papers.claims.claims import Claim, Prose
from dpcal.calibrate.papers.claims.notation import Checks, indented, line

__all__ = ["Erratum", "errata_of", "erratum"]

_HEAD = re.compile(r"([\w.\-]+) \((\w+); (.*?)\): (.+)$")
_PARTS = ("about", "claim", "open", "printed", "settings", "use")


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
        A claim that the printed text makes; it must be refuted. A :class:`Prose` claim when
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


def erratum(
    name: str,
    title: str,
    claim: Claim | str | None,
    *,
    settings: Sequence[Any] | str = (),
    printed: Claim | str | None = None,
    use: str = "",
    severity: str = "minor",
    source: str = "",
    about: str = "",
) -> Erratum:
    """Return the pair (printed, corrected) of one claim.

    Parameters
    ----------
    claim
        The claim that holds with the corrected settings, or its line of text; None where the
        remedy is not a formula.
    settings
        Settings that the refuted version takes as printed, as a sequence or separated by spaces.
    printed
        The refuted version, when it is not ``claim`` with other settings.
    source
        Theorem, equation, and part of the page.
    about
        Subject of a printed side that uses no setting.
    """
    claim = line(claim, name) if isinstance(claim, str) else claim
    printed = line(printed, name) if isinstance(printed, str) else printed
    names = settings.split() if isinstance(settings, str) else settings
    wrong = printed or (claim and claim.as_printed(*names))
    if wrong is None:
        raise ValueError(f"erratum {name} must have a claim or a printed claim, got neither.")
    return Erratum(
        name=name,
        title=title,
        printed=dataclasses.replace(wrong, name=f"{name}.printed", source=wrong.source or source),
        corrected=claim
        and dataclasses.replace(claim, name=f"{name}.corrected", source=claim.source or source),
        use=use,
        severity=severity,
        source=source,
        about=about,
    )


def errata_of(*parts: str | Erratum, checks: Checks | None = None) -> tuple[Erratum, ...]:
    """Return the given errata, and the errata of the given texts.

    Parameters
    ----------
    *parts
        Texts, or errata.
    checks
        Programs that lines ``claim: check NAME`` and ``printed: check NAME`` refer to.
    """
    found: list[Erratum] = []
    for part in parts:
        rows = indented(part) if isinstance(part, str) else [part]
        found += [_paragraph(row, checks) if isinstance(row, str) else row for row in rows]
    return tuple(found)


def _paragraph(paragraph: str, checks: Checks | None) -> Erratum:
    first, *rows = indented(paragraph, split=True)
    head = _HEAD.match(first)
    if head is None:
        raise ValueError(
            f"erratum must begin with 'NAME (severity; source): title', got {first!r}."
        )
    name, severity, source, title = head.groups()
    pairs = [" ".join(row.split()).partition(": ") for row in rows]
    given = {word: value for word, _, value in pairs}
    for word in given:
        if word not in _PARTS:
            raise ValueError(f"part of erratum {name} must be one of {_PARTS}, got {word!r}.")
    use = given.get("use", "")
    if "open" in given:
        wrong = Prose(f"{name}.printed", given["open"], source=source)
        return Erratum(name, title, wrong, use=use, severity=severity, source=source)
    sides = {key: line(given[key], name, checks) for key in ("claim", "printed") if key in given}
    return erratum(
        name,
        title,
        sides.get("claim"),
        settings=given.get("settings", ""),
        printed=sides.get("printed"),
        use=use,
        severity=severity,
        source=source,
        about=given.get("about", ""),
    )
