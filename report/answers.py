"""What does an auditor ask of a differential privacy claim? A page of answers, in a known order.

The order is that of NIST SP 800-226 (Near, Darais, Lefkovitz and Howarth 2025, Guidelines for
evaluating differential privacy guarantees): the guarantee and its unit, the algorithms and their
utility, and the deployment that they stand on. What plan and ledger do not know is marked.

>>> answered("Whose hands do the records pass through?", "")
('Whose hands do the records pass through?', '(not known to dpcal: to be answered by the owner)')
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from html import escape
from typing import Any

from dpcal.report.page import RELATIONS, STYLE, up

__all__ = ["answered", "answers_page"]

_UNKNOWN = "(not known to dpcal: to be answered by the owner)"


def answered(question: str, answer: Any) -> tuple[str, str]:
    """Return a question with its answer, or with the mark of what is not known."""
    return question, str(answer) or _UNKNOWN


def answers_page(document: Mapping[str, Any]) -> str:
    """Return the answers of a report as a page of HTML, which needs no network.

    Parameters
    ----------
    document
        What ``report.json`` says.
    """
    name = escape(str(document["data"]["name"]))
    body = [
        f"<h1>Answers in the order of NIST SP 800-226: {name}</h1>",
        f'<p class="quiet">Written {escape(document["written"])}, from report.json. Where the '
        "software does not know, the owner of the deployment has to answer.</p>",
    ]
    for heading, rows in (
        ("The guarantee", _guarantee(document)),
        ("Algorithms and utility", _algorithms(document)),
        ("The deployment", _deployment(document)),
    ):
        body.append(f"<h2>{heading}</h2>\n<table>")
        body += [f"<tr><th>{escape(ask)}</th><td>{escape(told)}</td></tr>" for ask, told in rows]
        body.append("</table>")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Answers: {name}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _guarantee(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    privacy, whole = document["privacy"], document["everything"]
    upper, delta = float(whole["epsilon"]["upper"]), float(whole["delta"])
    rows = int(document["data"].get("rows") or document["data"].get("training_records") or 0)
    small = ""
    if rows:
        small = f" It is {'below' if delta < 1 / rows else 'not below'} 1/n = {1 / rows:.2g}."
    factor = up(math.exp(upper), 3) if upper < 700 else "more than 1e300"
    budget, others = document.get("budget"), ""
    if budget:
        others = (
            f"This is run {budget['run']} of budget book {budget['name']}: all its runs together "
            f"spent at most epsilon {up(float(budget['spent']))} of {budget['epsilon']:g} at "
            f"delta {budget['delta']:g}."
        )
    promise = f"At most {up(upper, 6)}: a finding is at most {factor} times as likely in one data "
    return [
        answered("Which definition?", "(epsilon, delta)-differential privacy, central model."),
        answered("How large is epsilon?", f"{promise}set as in a neighbor."),
        answered("How large is delta?", f"{delta:g}.{small}"),
        answered("What is the unit of privacy?", f"{privacy['unit']}."),
        answered("What are neighbors?", f"{RELATIONS[privacy['neighboring_relation']]}."),
        answered("What else was released about these people?", others),
    ]


def _algorithms(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    privacy, runs = document["privacy"], document["runs"]
    price = document["everything"]["epsilon"]
    read = ", ".join(map(str, document["data"].get("read_from_data", [])))
    return [
        answered("Which mechanisms, with which sensitivity and noise?", privacy["mechanism"]),
        answered(
            "How are they composed?",
            f"{len(runs)} runs; exactly, by the {price['accountant']} accountant "
            f"({price['method']}), rounded up.",
        ),
        answered("What is covered?", f"{privacy['covered']}."),
        answered("What was read from the records without noise?", read or "Nothing."),
        answered("How useful is the result?", _utility(document)),
        answered("Whom may noise and clipping treat worse (bias)?", ""),
    ]


def _utility(document: Mapping[str, Any]) -> str:
    """Return the scores of a model, or the errors of statistics, with their own errors."""
    if "release" in document:
        share = document["release"]["confidence"]
        return f"Each statistic has a standard error and an interval of confidence {share:.0%}."
    found = document.get("evaluation", {})
    told = []
    for key in ("accuracy", "auc", "root_mean_squared_error"):
        off = "standard_error" if key == "accuracy" else f"{key}_standard_error"
        value, error = found.get(key), found.get(off)
        if value is not None and error is not None:
            told.append(f"{key.replace('_', ' ')} {value:.3g} with standard error {error:.2g}")
    for point in document.get("accuracy", ()):
        told.append(f"mean accuracy {point['mean']:.3g} at epsilon {point['epsilon']:g}")
    return "; ".join(told)


def _deployment(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    privacy = document["privacy"]
    outside = [str(each) for each in privacy["not_covered"]]
    beside = [each for each in outside if "machine tells" in each or "generators" in each]
    return [
        answered(
            "Who is trusted with the records?",
            "Whoever runs the software; nobody else sees records or sums without noise.",
        ),
        answered(
            "Is it one release, or are queries answered on and on?",
            "One release, from which anybody may compute anything.",
        ),
        answered("How is noise drawn, and is rounding safe?", "As the mechanisms above say."),
        answered("What do side channels tell?", " ".join(beside)),
        answered("What else does the claim leave out?", " ".join(outside)),
        answered("Who has access to the records, and how long are they kept?", ""),
        answered("How were the records collected, and who saw them then?", ""),
        answered(
            "Can the claim be checked?",
            "'dpcal verify' computes it again from plan and ledger, 'dpcal certify' proves it.",
        ),
    ]
