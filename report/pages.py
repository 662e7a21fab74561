"""Pages that need no network: the statement of a report, and answers to an auditor's questions.

The statement is for whoever the records are about, and for their lawyers. The answers are in the
order of NIST SP 800-226 (Near, Darais, Lefkovitz and Howarth 2025, Guidelines for evaluating
differential privacy guarantees): the guarantee and its unit, the algorithms and their utility, and
the deployment that they stand on. Fields that plan and ledger do not determine are marked.
Templates are in ``report/templates/``.

>>> price = {"upper": 1.0, "accountant": "characteristic", "method": "contour"}
>>> page = statement_page({
...     "written": "2026-01-01T00:00:00+00:00",
...     "privacy": {"unit": "one record",
...                 "neighboring_relation": "replace-special",
...                 "mechanism": "Noise <was> added.", "covered": "the model",
...                 "not_covered": ["x"]},
...     "data": {"name": "a.csv", "read_from_data": []},
...     "runs": [{"epsilon": price, "delta": 1e-6, "complete": True, "message": "done"}],
...     "risk": {"false_positive_rate": 0.01, "true_positive_rate": 0.03},
...     "software": {"dpcal": "0.1.0"},
... }, pictures={})
>>> "Noise &lt;was&gt; added." in page, "at most 3.0 percent" in page, "http" in page
(True, True, False)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from dpcal._internal import lazy
from dpcal.report.metrics import SHARES
from dpcal.report.output import at_most, with_interval

_jinja = lazy.Module("jinja2")


@cache
def _templates() -> Any:
    found = _jinja.Environment(
        loader=_jinja.FileSystemLoader(Path(__file__).parent / "templates"),
        autoescape=_jinja.select_autoescape(),
        undefined=_jinja.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["g"] = "{:g}".format
    found.globals |= {"up": at_most, "sentence": _sentence, "scored": _scored, "repr": repr}
    found.globals |= {"with_interval": with_interval}
    return found


def _rendered(template: str, parts: Mapping[str, Any]) -> str:
    """Return the text of a template of ``report/templates/`` with its parts, by name."""
    text: str = _templates().get_template(template).render(parts)
    return text


def sentences(template: str, parts: Mapping[str, Any]) -> list[str]:
    """Return the paragraphs of a template of ``report/templates/``, each on one line."""
    paragraphs = _rendered(template, parts).split("\n\n")
    return [" ".join(each.split()) for each in paragraphs if each.strip()]


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}".rstrip(".") + "."


def statement_page(document: Mapping[str, Any], *, pictures: Mapping[str, str]) -> str:
    """Return the statement of a report as a page of HTML.

    Parameters
    ----------
    document
        Content of ``report.json``. For several runs, the claim is about all of them together, or
        about the run with number ``published_run``; then the page also states the cost of all runs.
    pictures
        SVG texts, by their titles.
    """
    runs = document["runs"]
    by_silo = all("silo" in run for run in runs)
    what, whole = f"{len(runs)} trained models together are", "models"
    if by_silo or len(runs) == 1 or "published_run" in document:
        what, whole = "trained model is", "model"
    if "release" in document:
        what, whole = "released numbers together are", "numbers"
    return _page(
        "statement.html",
        document,
        what=what,
        whole=whole,
        by_silo=by_silo,
        models=_models(document) if len(runs) > 1 and not by_silo else (),
        # HTML embeds a picture without the XML declaration.
        pictures={what: svg[max(svg.find("<svg"), 0) :] for what, svg in pictures.items()},
    )


def answers_page(document: Mapping[str, Any]) -> str:
    """Return an auditor's questions, answered by a report, as a page of HTML.

    Parameters
    ----------
    document
        Content of ``report.json``.
    """
    return _page("answers.html", document)


def _page(template: str, document: Mapping[str, Any], **parts: Any) -> str:
    """Return a page about a cost: of a run by itself, or of all runs together."""
    runs, number = document["runs"], document.get("published_run")
    paid = document["everything"] if number is None and len(runs) > 1 else runs[number or 0]
    upper = float(paid["epsilon"]["upper"])
    factor = math.exp(upper) if upper < 700 else math.inf
    return _rendered(template, {**document, **parts, "paid": paid, "factor": factor})


def _models(document: Mapping[str, Any]) -> list[list[Mapping[str, Any]]]:
    """Return the runs of each target."""
    groups: dict[tuple[float, float], list[Mapping[str, Any]]] = {}
    for run in document["runs"]:
        groups.setdefault((float(run["plan"]["epsilon"]), float(run["delta"])), []).append(run)
    return [*groups.values()]


def _scored(found: Mapping[str, Any], name: str, error: str = "") -> str:
    """Return a score with its interval."""
    share = bool(error) or name in SHARES
    how: dict[str, Any] = {"digits": ".3f", "most": 1.0} if share else {"digits": ".4g"}
    return with_interval(found[name], found[error or f"{name}_standard_error"], **how)
