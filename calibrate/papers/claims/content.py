"""Does a claim have content? It has none if it holds for any numbers or repeats its hypotheses.

Numbers are not calculated here: that 2*16*(1 + 1/4) is 40 is content.

>>> from dpcal.calibrate.papers.claims.notation import line
>>> restated(line("3*(x + y)/3 = y + x"))
'both sides are the same as they are written'
>>> restated(line("a*x/b <= a*y/b where x <= y"), positive=frozenset("abxy"))
'it restates the hypothesis x <= y'
>>> restated(line("a*x/b <= a*y/b where x <= y"))  # false where a is negative
''
>>> restated(line("(x + y)**2 = x**2 + 2*x*y + y**2"))
''
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Container, Mapping
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.privacy import squared_mu
from dpcal.calibrate.papers.claims.ranges import Range, Relation
from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.normal import Normal

_Form = frozenset[tuple[Any, Any]]
_Row = tuple[Any, Fraction]
_SIGN = ("sign",)


def known_positive(
    ranges: Mapping[str, Range], settings: Mapping[str, tuple[t.Term, ...]]
) -> frozenset[str]:
    """Return the symbols that are positive by their range, or by the formulas of their setting."""
    known = frozenset(name for name, values in ranges.items() if values.excludes_zero)
    while True:
        more = {s for s, row in settings.items() if all(_is_positive(f, known) for f in row)}
        if more <= known:
            return known
        known |= more


def restated(
    claim: Claim,
    settings: Mapping[str, tuple[t.Term, ...]] | None = None,
    positive: frozenset[str] = frozenset(),
) -> str:
    """Return the reason why a claim has no content; empty if it has content.

    Parameters
    ----------
    settings
        Formulas of each setting, as corrected and as printed.
    positive
        Symbols that are positive wherever the claim is about; see :func:`known_positive`.
    """
    positive |= known_positive({**claim.domain, **claim.on}, {})
    if claim.kind == "private":
        return _restated_cost(claim, settings or {}, positive)
    if claim.kind not in ("identity", "bound", "loose"):
        return ""
    left, right = claim.pairs[0][::2]
    special = [t.substitute(side, claim.at) for side in (left, right)]
    if special[0] == special[1] or same_as_written(left, right, positive):
        return "both sides are the same as they are written"
    if claim.kind == "identity":
        return _restated_settings(claim, special, settings or {}, positive)
    told = [pair for pair in claim.where if _restates(claim.pairs[0], pair, positive)]
    return f"it restates the hypothesis {told[0].text()}" if told else ""


def _restates(claimed: Relation, pair: Relation, positive: frozenset[str]) -> bool:
    """Return whether a bound is a condition, or a multiple of one with a positive larger side."""
    if claimed.strict and not pair.strict:
        return False
    if all(
        same_as_written(*sides, positive) for sides in zip(claimed[::2], pair[::2], strict=True)
    ):
        return True
    same = same_as_written(
        t.over(claimed.left, claimed.right), t.over(pair.left, pair.right), positive
    )
    return same and all(_is_positive(side, positive) for side in (claimed.right, pair.right))


def _restated_settings(
    claim: Claim,
    special: list[t.Term],
    settings: Mapping[str, tuple[t.Term, ...]],
    positive: frozenset[str],
) -> str:
    """Return the reason why an identity only repeats a setting or a value, or holds for any."""
    left, right = claim.pairs[0][::2]
    known = {name: row for name, row in settings.items() if name not in claim.free}
    stated = {**known, **{name: (value,) for name, value in claim.at.items()}}
    occur = t.symbols(left) | t.symbols(right) | t.symbols(special[0]) | t.symbols(special[1])
    for name, row in stated.items():
        if name not in occur:
            continue
        ratios = [t.over(t.symbol(name), formula) for formula in row]
        told = {_form(part, positive) for ratio in ratios for part in (ratio, t.over(t.ONE, ratio))}
        if told & {_form(t.over(*sides), positive) for sides in ((left, right), special)}:
            kind = "value" if name in claim.at else "setting"
            return f"it restates the {kind} of {name}; declare it as a Definition"
    used = known.keys() & (t.symbols(special[0]) | t.symbols(special[1]))
    if len(used) == 1:
        (name,) = used
        for formula in known[name]:
            sides = [t.substitute(side, {name: formula}) for side in special]
            if same_as_written(sides[0], sides[1], positive):
                return f"it restates the setting of {name}; declare it as a Definition"
    if known.keys() & (t.symbols(left) | t.symbols(right)):
        forms = Normal({s: "+" if s in positive else "?" for s in occur})
        try:
            return "it holds whatever its settings are" if forms.is_zero(t.minus(*special)) else ""
        except t.Undecided:
            return ""
    return ""


def _restated_cost(claim: Claim, settings: Container[str], positive: frozenset[str]) -> str:
    """Return the reason why releases have no content: their cost is the budget as it is written."""
    if "rho" not in claim.parts or claim.parts["definition"]:
        return ""
    cost, rho = (
        t.substitute(part, claim.at)
        for part in (t.over(squared_mu(claim), t.number(2)), claim.parts["rho"])
    )
    used = {name for name in t.symbols(cost) | t.symbols(rho) if name in settings}
    if used - {*claim.free} or not same_as_written(cost, rho, positive):
        return ""
    return "it restates the cost of Gaussian noise; declare it as a definition"


def same_as_written(left: t.Term, right: t.Term, positive: frozenset[str]) -> bool:
    """Return whether two terms differ only in the order and the grouping of their parts.

    Factors cancel where these symbols are positive; ``sqrt(x**2)`` is then x.
    """
    return _form(left, positive) == _form(right, positive)


@functools.lru_cache(maxsize=8192)
def _form(term: t.Term, positive: frozenset[str]) -> _Form:
    """Return a product as its factors, in which equal factors are put together.

    Only facts on the stated ranges are used: ``x/x`` is 1 and ``sqrt(x**2)`` is x for a positive x.
    """
    head = term[0]
    if head == "num":
        ends = ((abs(term[1].numerator), 1), (term[1].denominator, -1))
        rows: list[_Row] = [(("num", n), Fraction(e)) for n, e in ends if n != 1]
        return _gathered([*rows, (_SIGN, Fraction(1))] if term[1] < 0 else rows)
    if head == "mul":
        return _gathered([row for part in term[1:] for row in _rows(part, positive)])
    if head == "pow" and term[2][0] == "num":
        inner, exponent = _rows(term[1], positive), term[2][1]
        whole, is_positive = exponent.denominator == 1, _is_positive(term[1], positive)
        upright = is_positive or exponent > 0 or all(e > 0 for _, e in inner)
        if (whole and upright) or (is_positive and len(inner) == 1):
            return _gathered([(atom, e * exponent) for atom, e in inner])
        content: Any = ("root", frozenset(inner), exponent)
    elif head == "add":
        content = ("add", frozenset(Counter(_form(part, positive) for part in term[1:]).items()))
    else:
        arguments = [part if head == "sym" else _form(part, positive) for part in term[1:]]
        content = (head, frozenset(arguments) if head in ("max", "min") else tuple(arguments))
    return _gathered([((*content, _is_positive(term, positive)), Fraction(1))])


def _rows(term: t.Term, positive: frozenset[str]) -> list[_Row]:
    """Return the factors of a term; one that may be negative has several powers."""
    return [(atom, exponent) for (atom, *_), exponent in _form(term, positive)]


def _gathered(rows: list[_Row]) -> _Form:
    """Return factors with their powers; one that may be zero or negative has several.

    Its powers above and below zero stay apart, and so do whole ones and others.
    """
    powers: dict[tuple[Any, ...], Fraction] = {}
    for atom, exponent in rows:
        free = atom[0] == "num" or atom == _SIGN or atom[-1] is True
        key = (atom,) if free else (atom, exponent > 0, exponent.denominator == 1)
        powers[key] = powers.get(key, Fraction(0)) + exponent
    if (_SIGN,) in powers:
        powers[(_SIGN,)] %= 2
    return frozenset((key, exponent) for key, exponent in powers.items() if exponent)


def _is_positive(term: t.Term, positive: frozenset[str]) -> bool:
    """Return whether a term is positive by its parts, where these symbols are."""
    head, *parts = term
    if head == "num":
        return bool(parts[0] > 0)
    if head == "sym":
        return parts[0] in positive
    if head in ("add", "mul", "max", "min"):
        return all(_is_positive(part, positive) for part in parts)
    return head in ("exp", "pi") or (head == "pow" and _is_positive(parts[0], positive))
