"""A paper's audit as one HTML page that needs no network: formulas in MathML, with their LaTeX.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> mathml(parse("x/2 + sqrt(y)"))
'<mfrac><mi>x</mi><mn>2</mn></mfrac><mo>+</mo><msqrt><mi>y</mi></msqrt>'
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from dpcal.calibrate.papers.claims.verdicts import STATUSES
from dpcal.calibrate.papers.kernel.terms import Term, number, power

if TYPE_CHECKING:
    from dpcal.calibrate.papers.claims.errata import Erratum
    from dpcal.calibrate.papers.report import Finding

__all__ = ["mathml", "page_of"]

_GREEK = (
    *("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "kappa", "lambda"),
    *("mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "chi", "psi", "omega"),
    *("Gamma", "Delta", "Theta", "Lambda", "Sigma", "Phi", "Psi", "Omega"),
)
_NAMES = {**{name: f"&{name};" for name in _GREEK}, "lam": "&lambda;", "Lam": "&Lambda;"}
_RELATIONS = {"=": "=", "<=": "&le;", "<": "&lt;", "=O": "= O", "=O~": "= &Otilde;"}
_BRACKETS = {"abs": "||", "floor": "⌊⌋", "ceiling": "⌈⌉"}
_SUM, _PRODUCT, _ATOM = range(3)
_STYLE = """
body { font-family: sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em }
table { border-collapse: collapse } th, td { text-align: left; padding: .3em .7em }
td, th { border-bottom: 1px solid #ccc; vertical-align: top } section { margin: 2em 0 }
.REFUTED, .OPEN { color: #a00 } .LOOSE, .SAMPLED { color: #960 } .PROVED { color: #070 }
"""


# ------------------------------------------------------------------------------------------- terms


def mathml(term: Term) -> str:
    """Return a term as presentation MathML, as it is written."""
    return _written(term)[0]


def _written(term: Term) -> tuple[str, int]:
    """Return MathML and how tightly its parts are bound."""
    head, *parts = term
    if head == "num":
        return _number(parts[0])
    if head in ("sym", "pi"):
        return _symbol(str(parts[0]) if parts else "pi"), _ATOM
    if head == "add":
        return _sum(parts), _SUM
    if head == "mul":
        return _product(parts)
    if head == "pow":
        return _power(*parts)
    if head == "exp":
        return f"<msup><mi>e</mi><mrow>{mathml(parts[0])}</mrow></msup>", _ATOM
    inside = "<mo>,</mo>".join(map(mathml, parts))
    brackets = _BRACKETS.get(head, "()")
    name = "" if head in _BRACKETS else f"<mi>{head}</mi>"
    return f"{name}<mo>{brackets[0]}</mo>{inside}<mo>{brackets[1]}</mo>", _ATOM


def _number(value: Any) -> tuple[str, int]:
    size = f"<mn>{abs(value.numerator)}</mn>"
    if value.denominator != 1:
        size = f"<mfrac>{size}<mn>{value.denominator}</mn></mfrac>"
    return (f"<mo>-</mo>{size}", _SUM) if value < 0 else (size, _ATOM)


def _symbol(name: str) -> str:
    """Return a name; what follows an underscore, and digits at the end, are an index."""
    stem = re.split(r"_|\d+$", name)[0] or name
    index = name[len(stem) :].strip("_")
    first = f"<mi>{_NAMES.get(stem, html.escape(stem))}</mi>"
    return f"<msub>{first}<mi>{html.escape(index)}</mi></msub>" if index else first


def _sum(parts: Sequence[Term]) -> str:
    text = ""
    for part in parts:
        piece = mathml(part)
        text += piece if not text or piece.startswith("<mo>-</mo>") else f"<mo>+</mo>{piece}"
    return text


def _product(parts: Sequence[Term]) -> tuple[str, int]:
    sign, tops, bottoms = "", list[Term](), list[Term]()
    for part in parts:
        if part == number(-1):
            sign = "" if sign else "<mo>-</mo>"
        elif part[0] == "pow" and part[2][0] == "num" and part[2][1] < 0:
            bottoms.append(power(part[1], number(-part[2][1])))
        else:
            tops.append(part)
    text = _row(tops) or "<mn>1</mn>"
    if bottoms:
        text = f"<mfrac>{_group(text, tops)}{_group(_row(bottoms), bottoms)}</mfrac>"
    return sign + text, _SUM if sign else _PRODUCT


def _row(parts: Sequence[Term]) -> str:
    alone = len(parts) == 1
    return "<mo>&sdot;</mo>".join(mathml(p) if alone else _bracketed(p, _PRODUCT) for p in parts)


def _group(text: str, parts: Sequence[Term]) -> str:
    plain = len(parts) <= 1 and text.count("<mo>") == 0
    return text if plain else f"<mrow>{text}</mrow>"


def _power(base: Term, exponent: Term) -> tuple[str, int]:
    if exponent == number("1/2"):
        return f"<msqrt>{mathml(base)}</msqrt>", _ATOM
    if exponent[0] == "num" and exponent[1] < 0:
        return _product([("pow", base, exponent)])
    above = f"<mrow>{mathml(exponent)}</mrow>"
    return f"<msup><mrow>{_bracketed(base, _ATOM)}</mrow>{above}</msup>", _ATOM


def _bracketed(term: Term, least: int) -> str:
    text, level = _written(term)
    return text if level >= least else f"<mo>(</mo>{text}<mo>)</mo>"


# ------------------------------------------------------------------------------------------- pages


def _formula(claim: Any) -> str:
    """Return a claim as MathML that carries its LaTeX, or as text where it has no sides."""
    if hasattr(claim, "left"):
        rows = [(claim.left, claim.relation, claim.right)]
    else:
        conditions = getattr(claim, "conditions", ())
        rows = [(a, "<" if strict else "<=", b) for a, b, strict in conditions]
    if not rows:
        return f"<code>{html.escape(claim.formula())}</code>"
    sides = (f"{mathml(a)}<mo>{_RELATIONS[sign]}</mo>{mathml(b)}" for a, sign, b in rows)
    latex = html.escape(claim.latex())
    note = f'<annotation encoding="application/x-tex">{latex}</annotation>'
    shown = "<mo>,</mo>".join(sides)
    return f"<math><semantics><mrow>{shown}</mrow>{note}</semantics></math>"


def _finding(finding: Finding) -> str:
    status, claim = finding.verdict.status, finding.written or finding.claim
    side = "Printed" if finding.printed else "Corrected" if finding.erratum else ""
    details = {
        **{name: text for name, text in finding.details().items() if name != "written"},
        "because": finding.verdict.reason,
        "price": finding.price(),
    }
    rows = "".join(
        f"<tr><th>{name}</th><td>{html.escape(text)}</td></tr>"
        for name, text in details.items()
        if text
    )
    head = f"{side} <b class={status}>{status}</b> {html.escape(finding.claim.name)}"
    folded = f"<details><summary>How it was decided</summary><table>{rows}</table></details>"
    return f"<div><p>{head}</p><p>{_formula(claim)}</p>{folded}</div>"


def _erratum(wrong: Erratum, findings: Iterable[Finding]) -> str:
    sides = [finding for finding in findings if finding.erratum is wrong]
    prices = [finding.price() for finding in sides if finding.printed and finding.price()]
    lines = [f"<h3>{html.escape(f'{wrong.name}: {wrong.title}')}</h3>"]
    lines.append(f"<p>{html.escape(wrong.source)}. Severity: {html.escape(wrong.severity)}.</p>")
    if prices:
        lines.append(f"<p>Price: {html.escape(prices[0])}.</p>")
    lines += [*map(_finding, sides), f"<p>Use: {html.escape(wrong.use)}</p>"]
    return f'<section id="{html.escape(wrong.name)}">' + "\n".join(lines) + "</section>"


def page_of(findings: Sequence[Finding]) -> str:
    """Return the findings of one or more papers as an HTML document."""
    body = []
    for schedule in dict.fromkeys(finding.schedule.name for finding in findings):
        rows = [finding for finding in findings if finding.schedule.name == schedule]
        one = rows[0].schedule
        body.append(f"<h1>{html.escape(one.title)}</h1><p>{html.escape(one.citation)}</p>")
        counts = [(s, sum(f.verdict.status == s for f in rows)) for s in STATUSES]
        cells = "".join(f"<tr><th class={s}>{s}</th><td>{n}</td></tr>" for s, n in counts)
        body.append(f"<table>{cells}</table>")
        errata = [wrong for wrong in one.errata if any(f.erratum is wrong for f in rows)]
        body += ["<h2>Errata</h2>" if errata else "", *(_erratum(e, rows) for e in errata)]
        claims = [finding for finding in rows if finding.erratum is None]
        body.append("<h2>Claims</h2>" if claims else "")
        for finding in claims:
            title = html.escape(f"{finding.claim.name}: {finding.title()}")
            place = html.escape(finding.source)
            body.append(f"<section><h3>{title}</h3><p>{place}</p>{_finding(finding)}</section>")
    return (
        '<!DOCTYPE html>\n<html lang="en"><meta charset="utf-8"><title>Audit</title>\n'
        f"<style>{_STYLE}</style>\n" + "\n".join(body) + "\n</html>\n"
    )
