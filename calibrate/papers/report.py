"""Is a paper's schedule right? A report with a verdict on every claim, and the corrections.

>>> report = audit("gauss_psgd", only="E3")
>>> for finding in report.findings:
...     print(finding.claim.name, finding.verdict.status, finding.as_expected)
E3.printed REFUTED True
E3.corrected PROVED True
>>> report.ok
True
"""

from __future__ import annotations

import json
import math
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any

from dpcal._internal import validate
from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.errata import Erratum
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.language import Schedule
from dpcal.calibrate.papers.claims.notation import nearest
from dpcal.calibrate.papers.claims.resolve import settings_used
from dpcal.calibrate.papers.claims.verdicts import STATUSES, Verdict
from dpcal.calibrate.papers.deciding import Store, decided, uncollected
from dpcal.calibrate.papers.registry import PAPERS, load
from dpcal.calibrate.papers.sources import find, places

FORMATS = ("table", "json", "markdown", "latex")
_WIDTH = 80
_PRINTED = ("REFUTED", "LOOSE")
_CORRECTED = ("PROVED", "LOOSE", "SAMPLED", "DEFINITION")


@dataclass(frozen=True)
class Finding:
    """A claim, its verdict, and whether the registry expects this verdict.

    Parameters
    ----------
    schedule
        The schedule that the claim belongs to.
    claim
        The claim with its settings resolved.
    verdict
        The verdict of the prover.
    erratum
        The erratum that the claim is a side of, if any.
    written
        The claim before its settings were put in; the resolved one when omitted.
    """

    schedule: Schedule
    claim: Claim
    verdict: Verdict
    erratum: Erratum | None
    written: Claim | None = None

    @property
    def entry(self) -> str:
        """The name of the erratum, or else of the claim."""
        return self.erratum.name if self.erratum else self.claim.name

    @property
    def printed(self) -> bool:
        """Whether this is the printed side of an erratum, which must fail."""
        return self.erratum is not None and self.claim.name == self.erratum.printed.name

    @property
    def as_expected(self) -> bool:
        """Whether the verdict is the one that is expected of this side."""
        if self.claim.kind == "prose":
            return self.verdict.status == "OPEN"
        wanted = _PRINTED if self.printed else _CORRECTED
        return self.verdict.status in wanted

    @property
    def source(self) -> str:
        """The place in the paper: section, equation, line."""
        return self.claim.source or (self.erratum.source if self.erratum else "")

    def details(self) -> dict[str, str]:
        """Return how the claim was read: settings, values, free symbols and ranges."""
        written = self.written or self.claim
        terms = {s.name: s.term(s.name in written.printed) for s in self.schedule.settings}
        settings = [
            f"{name} = {show(terms[name])}" + (" (as printed)" if name in written.printed else "")
            for name in settings_used(written, terms)
        ]
        values = [f"{name} = {show(value)}" for name, value in written.at.items()]
        ranges = [f"{name} in {r.text()}" for name, r in sorted(self.claim.domain.items())]
        rows = {
            "written": written.formula(),
            "settings": ", ".join(settings),
            "values": ", ".join(values),
            "free": ", ".join(name for name in written.free),
            "decided": self.claim.formula(),
            "ranges": ", ".join(ranges),
        }
        return {name: text for name, text in rows.items() if text}

    def price(self) -> str:
        """Return the factor by which a refuted or loose side misses; empty without a number."""
        evidence = self.verdict.evidence
        if self.verdict.status == "LOOSE":
            return f"{show(self.claim.parts['factor'])} times too large"
        try:
            left, right = float(evidence["left"]), float(evidence["right"])
        except (KeyError, TypeError, ValueError):
            return ""
        ratio = left / right if right else 0.0
        return f"{ratio:.4g} times" if 0 < ratio < math.inf else ""

    def title(self) -> str:
        """Return the claim's description in one line."""
        wrong = self.erratum if self.printed else None
        return (wrong.title if wrong else self.claim.statement) or self.claim.formula()

    def record(self) -> dict[str, Any]:
        """Return the finding as JSON-able fields."""
        return {
            "schedule": self.schedule.name,
            "claim": self.claim.name,
            "kind": self.claim.kind,
            "source": self.source,
            "title": self.title(),
            "formula": self.claim.formula(),
            "read_as": self.details(),
            "status": self.verdict.status,
            "method": self.verdict.method,
            "reason": self.verdict.reason,
            "evidence": dict(self.verdict.evidence),
            "as_expected": self.as_expected,
            "use": self.erratum.use if self.erratum else "",
        }


@dataclass(frozen=True)
class Audit:
    """The findings of an audit, and ways to print them."""

    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """Whether every finding is as the registry expects."""
        return all(finding.as_expected for finding in self.findings)

    @property
    def counts(self) -> dict[str, dict[str, int]]:
        """Number of claims per schedule and status."""
        names = dict.fromkeys(finding.schedule.name for finding in self.findings)
        tally = Counter((f.schedule.name, f.verdict.status) for f in self.findings)
        return {name: {status: tally[name, status] for status in STATUSES} for name in names}

    def render(self, format: str = "table") -> str:  # noqa: A002
        """Return the report as text.

        Parameters
        ----------
        format
            ``"table"``, ``"json"``, ``"markdown"`` or ``"latex"``.
        """
        validate.choice(FORMATS, format=format)
        return str(getattr(self, f"_{format}")())

    def _table(self) -> str:
        lines: list[str] = []
        for name in self.counts:
            own = [f for f in self.findings if f.schedule.name == name]
            width = max(len(f.claim.name) for f in own)
            lines += [name, *(line for f in own for line in _row(f, width)), ""]
        every = [status for status in STATUSES if any(row[status] for row in self.counts.values())]
        head = f"{'paper':<14}" + "".join(f"{status:>11}" for status in every)
        rows = [
            f"{name:<14}" + "".join(f"{row[status]:>11}" for status in every)
            for name, row in self.counts.items()
        ]
        wrong = [f"{f.schedule.name} {f.claim.name}" for f in self.findings if not f.as_expected]
        last = "Every printed mistake is refuted or loose; the checker accepted all evidence."
        if wrong:
            last = f"Verdicts that are not what the registry says: {', '.join(wrong)}."
        sampled = sum(row["SAMPLED"] for row in self.counts.values())
        tried = f"SAMPLED ({sampled}) means true in the cases that a program ran; no more is said."
        end = [last, tried] if sampled else [last]
        return "\n".join([*lines, head, *rows, *end])

    def _json(self) -> str:
        schedules = {f.schedule.name: f.schedule for f in self.findings}
        document = {
            "ok": self.ok,
            "counts": self.counts,
            "errata": [w.record(name) for name, one in schedules.items() for w in one.errata],
            "findings": [f.record() for f in self.findings],
        }
        return json.dumps(document, indent=1)

    def _markdown(self) -> str:
        papers = {f.schedule.name: f.schedule for f in self.findings}
        ours = papers.keys() <= {*PAPERS}
        parts = [(_HEADER if ours else "# Claims, decided by machine\n") + _STATUSES]
        counts = [(name, *row.values()) for name, row in self.counts.items()]
        parts += [*_markdown_table(("paper", *map(str.lower, STATUSES)), counts), ""]
        for name, paper in papers.items():
            rows = {f.claim.name: f for f in self.findings if f.schedule.name == name}
            parts += _markdown_paper(paper, rows)
        return "\n".join(parts).rstrip() + "\n"

    def _latex(self) -> str:
        """Return a table of claims and errata for a document that loads longtable and amsmath."""
        lines = [r"\begin{longtable}{lllp{0.6\linewidth}}", r"paper & claim & verdict & formula \\"]
        for f in self.findings:
            cells = f"{f.schedule.name} & {f.claim.name} & {f.verdict.status}".replace("_", r"\_")
            lines.append(rf"{cells} & ${f.claim.latex()}$ \\")
        return "\n".join([*lines, r"\end{longtable}"]) + "\n"

    def explain(self, name: str) -> str:
        """Return the statement of a claim or erratum, its decision, and the correction.

        Parameters
        ----------
        name
            Sides of a claim, or of an erratum (both are shown).
        """
        chosen = _named(name, self.findings)
        blocks = [_explanation(finding) for finding in chosen]
        erratum = chosen[0].erratum
        if erratum is not None:
            where = f" ({erratum.source})" if erratum.source else ""
            blocks.insert(0, f"{erratum.name}{where}: {erratum.title}")
            blocks.append(f"Use: {erratum.use}")
        return "\n\n".join(blocks)


def audit(
    schedule: Schedule | ModuleType | str | Iterable[Schedule] | None = None,
    *,
    only: str | None = None,
    progress: Callable[[int, int], None] | None = None,
    processes: int = 0,
    store: Store | None = None,
) -> Audit:
    """Decide the claims of a schedule, by evidence that the checker accepts.

    Parameters
    ----------
    schedule
        A schedule; a paper's module, name or file; several schedules; or None for all papers.
    only
        Name of one claim or erratum; all when omitted.
    progress
        Called with the number of claims that are decided, and of all.
    processes
        Number of children in which claims are decided, each with limits of time and memory; 0
        decides them in this process.
    store
        Verdicts of earlier audits, which are not decided again; see
        :func:`dpcal.calibrate.papers.deciding.default_store`.

    Returns
    -------
    Audit
        Its ``findings`` hold claim, verdict and evidence.

    Raises
    ------
    ValueError
        For an unknown paper or claim, with the nearest names.
    """
    rows: list[Finding] = []
    with uncollected(), places(schedule):
        for one in _schedules(schedule):
            errata = {side.name: e for e in one.errata for side in e.sides if side}
            undecided = Verdict("OPEN", "none")
            found = [Finding(one, c, undecided, errata.get(c.name), c) for c in one.all_claims()]
            rows += found if only is None else _named(only, found)
        resolved = [row.schedule.resolve(row.claim) for row in rows]
    # prove returns OPEN if the checker rejects its evidence: no second check is needed.
    verdicts = decided(resolved, processes=processes, store=store, progress=progress)
    decisions = zip(rows, resolved, verdicts, strict=True)
    return Audit(tuple(replace(row, claim=c, verdict=verdict) for row, c, verdict in decisions))


def _named(name: str, findings: Sequence[Finding]) -> list[Finding]:
    """Return the claim, or both sides of the erratum, of a name."""
    found = [each for each in findings if name in (each.claim.name, each.entry)]
    if not found:
        raise ValueError(f"claim {nearest(name, sorted({each.entry for each in findings}))}")
    return found


def _schedules(schedule: Any) -> list[Schedule]:
    if schedule is None:
        return [load(name) for name in PAPERS]
    if isinstance(schedule, str):
        return [find(schedule)]
    schedule = getattr(schedule, "SCHEDULE", schedule)
    return [schedule] if isinstance(schedule, Schedule) else list(schedule)


def _row(finding: Finding, width: int) -> list[str]:
    """Return the lines of a finding: its claim, its status, and its title below each other."""
    mark = " " if finding.as_expected else "!"
    head = f"{mark} {finding.claim.name:<{width}}  {finding.verdict.status:<10}  "
    wrapped = textwrap.wrap(finding.title(), max(_WIDTH - len(head), _WIDTH // 2))
    return [f"{head if i == 0 else ' ' * len(head)}{part}" for i, part in enumerate(wrapped)]


def _explanation(finding: Finding) -> str:
    verdict = finding.verdict
    side = "as printed" if finding.printed else "as corrected" if finding.erratum else "claim"
    rows = {
        "source": finding.source,
        "says": finding.claim.statement or finding.title(),
        **finding.details(),
        "because": verdict.reason,
        "price": finding.price(),
        "method": verdict.method,
    }
    head = f"{finding.claim.name} [{side}, {finding.claim.kind}] {verdict.status}"
    return "\n".join([head, *(f"  {name + ':':<10}{text}" for name, text in rows.items() if text)])


_HEADER = "# Errata of six papers, decided by machine\n"
_STATUSES = """
*Printed* is the paper's version, *corrected* the version that holds. REFUTED comes with an exact
counterexample in the paper's domain or with orders of growth, PROVED with a proof that the checker
accepted, LOOSE with a factor by which a true bound can be improved, SAMPLED with the cases that a
program ran (no formula, and nothing more is said), OPEN with the reason, DEFINITION for a formula
that is restated on purpose.
`dpcal audit PAPER --explain NAME` shows formulas, counterexample and evidence.
"""


def _markdown_table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> list[str]:
    cells = ([str(cell).replace("|", r"\|") for cell in row] for row in rows)
    first, *others = ("| " + " | ".join(row) + " |" for row in (head, *cells))
    return [first, "|---" * len(head) + "|", *others]


def _markdown_paper(schedule: Schedule, findings: Mapping[str, Finding]) -> list[str]:
    rows, remarks = [], []
    for wrong in schedule.errata:
        if wrong.printed.kind == "prose":
            why = f"Not executable: {wrong.printed.formula()}. Use: {wrong.use}"
            remarks.append(f"* **{wrong.name}** {wrong.title} {why}")
            continue
        name = wrong.name + (" (privacy)" if wrong.severity == "privacy" else "")
        title = wrong.title + (f" *{wrong.source}.*" if wrong.source else "")
        sides = (side and findings[side.name].verdict.status for side in wrong.sides)
        rows.append((name, title, *(status or "" for status in sides), wrong.use))
    lines = [f"## {schedule.title} (`{schedule.name}`)", "", f"{schedule.citation}.", ""]
    lines += _markdown_table(("erratum", "what is wrong", "printed", "corrected", "use"), rows)
    if schedule.notes:
        lines += ["", "Notes:", "", *(f"* {note}" for note in schedule.notes)]
    if remarks:
        lines += ["", "Open, with the reason:", "", *remarks]
    claims = [findings[claim.name] for claim in schedule.claims if claim.name in findings]
    if claims:
        says = ((f.claim.name, f.verdict.status, " ".join(f.title().split())) for f in claims)
        lines += ["", "Claims:", "", *_markdown_table(("claim", "verdict", "says"), says)]
    return [*lines, ""]
