"""``dpcal certify``, ``check`` and ``audit``: proofs of bounds, and of the settings of papers.

Bounds are proved in ball arithmetic, about a run given by options, or about a report. The
certificate of a report is written next to it, and ``report.json`` holds its checksum.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal
from zipfile import is_zipfile

import dpcal
from dpcal._internal.files import text_of
from dpcal.calibrate.runs import SampledRun, run_of_values, values_of_run
from dpcal.commands._shared import bar, one_or_all
from dpcal.commands._signature import Answer, extends
from dpcal.errors import CertificateRejected, TargetUnreachable, UnsupportedEvent
from dpcal.report.output import at_least, at_most, dump

if TYPE_CHECKING:
    from dpcal.accountants import Certificate

# Relative: width of the bounds that prove a report's epsilon, and rounding.
_NARROW, _ROUNDING = 1e-9, 1e-6
_FILES = {"held-out scores": "certificate-scores.json"}


@extends(SampledRun)
def certify(
    report: Path | None = None,
    *,
    epsilon: Sequence[float] | None = None,
    delta: Sequence[float] | None = None,
    width: float | None = None,
    method: Literal["auto", "contour", "convex-order"] | None = None,
    output: Path | None = None,
    **run: Any,
) -> Answer:
    """Prove bounds on delta or epsilon of a run in ball arithmetic, or the claims of a report.

    The exit status is 1 if a claim of the report is wrong.

    Parameters
    ----------
    report
        Folder with a report whose claims you want to prove, in place of a run.
    epsilon
        Epsilons >= 0, one or more, at which delta is bounded.
    delta
        Deltas in (0, 1), one or more, at which epsilon is bounded.
    width
        Largest relative width of the bounds (default: as narrow as can be proved, to 1e-3).
    method
        Method of proof. convex-order shares only ball arithmetic with contour (default: auto, the
        narrowest bounds).
    output
        File for the certificate; several certificates go to FILE-1, FILE-2, ... before the suffix.

    Examples
    --------
    dpcal certify --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --epsilon 8 -o
        proof.json
    dpcal certify dpcal-report
    """
    if report is not None:
        given = {"epsilon": epsilon, "delta": delta, "output": output, "method": method}
        for name, value in {**given, "width": width}.items():
            if value is not None:
                raise ValueError(f"{name} is for a run given by options: a report has its own.")
        return _of_report(report)
    if (epsilon is None) == (delta is None):
        raise ValueError("epsilon and delta: exactly one must be given.")
    told = SampledRun(**run)
    event, subject = told.certified()
    name, values = ("epsilon", epsilon) if delta is None else ("delta", delta)
    documents, texts = [], []
    how: dict[str, Any] = {"neighboring_relation": told.relation, "width": width}
    for point in values or ():
        how[name] = point
        certificate = dpcal.certify(event, method=method or "auto", **how)
        about = _about(certificate, subject, run=values_of_run(told))
        documents.append({**certificate.to_dict(), "about": about})
        texts.append(f"{fill(about['sentence'], 80)}\n{_proofs(certificate)}")
    if output is not None:
        for place, document in enumerate(documents, start=1):
            stem = output.stem if len(documents) == 1 else f"{output.stem}-{place}"
            _write(output.with_stem(stem), document)
    return Answer(one_or_all("certificates", documents), "\n\n".join(texts))


def _about(certificate: Certificate, subject: str, **what: Any) -> dict[str, Any]:
    """Return the description that a certificate holds in addition to its proof."""
    return {
        "software": f"dpcal {dpcal.report.software()['dpcal']}",
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "sentence": f"{_claim(certificate)}, for {subject}.",
        **what,
    }


def _of_report(path: Path) -> Answer:
    """Prove delta at each claimed epsilon of a report; the exit status is 1 if a claim is wrong."""
    document = dpcal.report.read(path)
    folder = path if path.is_dir() else path.absolute().parent
    problems = dpcal.report.file_problems(folder, document)
    if problems:
        raise ValueError(f"report must hold its files as they were written, got {problems[0]}.")
    rows, lines = {}, []
    for name, runs in dpcal.report.claims_of(document).items():
        file = _FILES.get(name, "certificate.json")
        rows[name] = row = _proved(document, name, runs)
        proof = row["proof"]
        lines.append(
            f"{name}: epsilon {row['epsilon']:.9f} at delta {row['delta']:g}, {row['verdict']}: "
            f"delta there is in [{float(proof['lower']):.10g}, {float(proof['upper']):.10g}], "
            f"by {file}"
        )
    for name, row in rows.items():
        _write(folder / _FILES.get(name, "certificate.json"), row["proof"])
    dpcal.report.bind(folder)
    proved = all(row["verdict"] == "proved" for row in rows.values())
    return Answer(rows, "\n".join(lines), 0 if proved else 1)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    dpcal.report.replace_file(path, (dump(document) + "\n").encode())


def _proved(document: Any, name: str, runs: Any) -> dict[str, Any]:
    """Return a claim of a report, its certificate and the verdict.

    A computed epsilon is a point at which delta is reached, to the last digits. Where bounds that
    narrow cannot be proved, the slightly larger target of the run is proved in its place.
    """
    claim = document["evaluation" if name in _FILES else "everything"]
    epsilon, delta = float(claim["epsilon"]["upper"]), float(claim["delta"])
    event, relation = dpcal.report.event_of(runs)
    targets = [float(run["plan"]["epsilon"]) for run in runs] if len(runs) == 1 else []
    for value in (epsilon, *(target for target in targets if target > epsilon)):
        certificate = _narrow(event, relation, value)
        verdict = "proved" if float(certificate.upper) <= delta * (1 + _ROUNDING) else "open"
        if float(certificate.lower) > delta * (1 + _ROUNDING):
            verdict = "DOES NOT HOLD"
        if verdict != "open":
            break
    told = [{part: run[part] for part in ("plan", "ledger")} for run in runs]
    about = _about(certificate, f"{name} of the report on {document['data']['name']}", runs=told)
    proof = {**certificate.to_dict(), "about": about}
    return {"epsilon": value, "delta": delta, "verdict": verdict, "proof": proof}


def _narrow(event: Any, relation: str, epsilon: float) -> Certificate:
    """Return a certificate of delta that is as narrow as possible."""
    how: dict[str, Any] = {"epsilon": epsilon, "neighboring_relation": relation}
    with suppress(TargetUnreachable):
        return dpcal.accountants.certify(event, width=_NARROW, **how)
    return dpcal.accountants.certify(event, **how)


def check(certificate: Path, *, delta: float | None = None) -> Answer:
    """Prove the bounds of a certificate again; the exit status is 1 if the proof fails.

    For a checkpoint of Opacus, compute epsilon of its steps instead.

    Parameters
    ----------
    certificate
        File that 'dpcal certify -o' wrote, or a checkpoint that Opacus' save_checkpoint wrote.
    delta
        Delta in (0, 1) for epsilon of a checkpoint (default: 1e-5).

    Examples
    --------
    dpcal check proof.json
    dpcal check proof.json --json
    """
    if certificate.is_file() and is_zipfile(certificate):
        return _worth(certificate, 1e-5 if delta is None else delta)
    if delta is not None:
        raise ValueError("delta is for checkpoints of Opacus: a certificate has its own.")
    text = text_of(certificate, "certificate must be a readable file", encoding=None)
    try:
        proved = dpcal.accountants.verify_certificate(text)
        about = {name: told for name, told in json.loads(text).items() if name == "about"}
        if about and not _says(about["about"], proved):
            raise CertificateRejected("its sentence differs from the proved claim")
    except CertificateRejected as error:
        return Answer({"holds": False, "reason": str(error)}, f"DOES NOT HOLD: {error}", 1)
    document = {"holds": True, "certificate": {**proved.to_dict(), **about}}
    told = fill(f"holds: {_claim(proved)}.", 80)
    return Answer(document, f"{told}\n{_proofs(proved)}")


def _worth(checkpoint: Path, delta: float) -> Answer:
    """Return the epsilon of a file of torch.save, which is a ZIP file."""
    found = dpcal.adapters.opacus.check(checkpoint, delta=delta)
    document = {"steps": found.steps, "delta": delta, "epsilon_if_shuffled": found.shuffled}
    document["epsilon_if_poisson"] = found.poisson.upper
    return Answer(document, "\n".join(found.sentences))


def _says(about: Any, certificate: Certificate) -> bool:
    """Return whether the sentence of a certificate states its proved bounds, for its runs."""
    claim = f"{_claim(certificate)}, for "
    try:
        if "runs" in about:
            event, relation = dpcal.report.event_of(about["runs"])
            stated = about["sentence"].startswith(claim)
        else:
            told = run_of_values(about["run"])
            (event, subject), relation = told.certified(), told.relation
            stated = about["sentence"] == f"{claim}{subject}."
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, UnsupportedEvent):
        return False
    return stated and certificate.covers(event) and relation == certificate.neighboring_relation


def _claim(certificate: Certificate) -> str:
    """Return the claim in words."""
    lower, upper = str(certificate.lower), str(certificate.upper)
    at = f"epsilon = {certificate.proofs[0].epsilon:g}"
    if certificate.delta is not None:
        at = f"delta = {certificate.delta:g}"
        # Bounds on epsilon are doubles, with up to a thousand decimals.
        lower = at_least(float(certificate.lower), digits=10)
        upper = at_most(float(certificate.upper), digits=10)
    # A run bounded through a dominating run has lower bound 0.
    least = f"at least {lower} and " if certificate.lower > 0 else ""
    return (
        f"{certificate.quantity} is {least}at most {upper} at {at} for data sets that are "
        f"neighbors under {certificate.neighboring_relation}"
    )


def _proofs(certificate: Certificate) -> str:
    """Return the text of the proofs, a line each, and of the mechanisms."""
    lines = [
        f"direction {item.direction}: delta({proof.epsilon:g}) in [{item.lower}, {item.upper}], "
        f"by {item.method}"
        for proof in certificate.proofs
        for item in proof.directions
    ]
    lines += [f"{item.event!r}, {item.count} times" for item in certificate.mechanisms]
    return "\n".join(lines)


def audit(
    paper: str | None = None,
    *,
    explain: str | None = None,
    format: Literal["table", "json", "markdown", "latex"] = "table",  # noqa: A002
    output: Path | None = None,
    processes: int = 2,
    fresh: bool = False,
) -> Answer:
    """Prove or refute the printed settings of six papers.

    The exit status is 1 if a verdict differs from the expected verdict.

    Parameters
    ----------
    paper
        kl_condition, spiderboost, gauss_psgd, dp_rgda, kan or moments (default: all six), a file
        my_paper.py or a module package.module that defines SCHEDULE, or a name that an installed
        package offers.
    explain
        Show one claim or erratum, with formula and evidence.
    format
        Format of the report.
    output
        File for the report.
    processes
        Number of child processes that decide claims, each with limits of time and memory; 0 uses
        this process.
    fresh
        Decide all claims again, and use no stored verdict.

    Examples
    --------
    dpcal audit kl_condition --explain EP1
    dpcal audit spiderboost --format markdown -o spiderboost.md
    """
    if explain and not paper:
        raise ValueError("explain needs a paper, as in: dpcal audit kl_condition --explain EP1.")
    report = dpcal.calibrate.audit(
        paper,
        only=explain,
        progress=bar("dpcal audit", "claim"),
        processes=processes,
        store=None if fresh else dpcal.calibrate.papers.default_store(),
    )
    text = report.explain(explain) if explain else report.render(format)
    document = json.loads(report.render("json"))
    if output is not None:
        dpcal.report.replace_file(output, (text.rstrip("\n") + "\n").encode())
        text = f"written to {output}"
    return Answer(document, text.rstrip("\n"), 0 if report.ok else 1)
