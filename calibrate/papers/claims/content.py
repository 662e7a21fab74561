"""Does a claim have content? It has none if it holds for any numbers or repeats its hypotheses.

Numbers are not calculated here: that 2*16*(1 + 1/4) is 40 is content.

>>> from dpcal.calibrate.papers.claims.notation import line
>>> restated(line("3*(x + y)/3 = y + x"))
'both sides are the same as they are written'
>>> restated(line("a*x/b <= a*y/b where x <= y"))
'it restates the hypothesis x <= y'
>>> restated(line("(x + y)**2 = x**2 + 2*x*y + y**2"))
''
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Container, Mapping
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.claims import Balance, Bound, Claim, Definition, Identity
from dpcal.calibrate.papers.claims.normal import Normal
from dpcal.calibrate.papers.claims.privacy import Private
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    Term,
    Undecided,
    minus,
    number,
    over,
    substitute,
    symbol,
    symbols,
)

__all__ = ["restated", "same_as_written"]

_Form = frozenset[tuple[Any, Any]]


def restated(claim: Claim, settings: Mapping[str, tuple[Term, ...]] | None = None) -> str:
    """Return the reason why a claim has no content; empty if it has content.

    Parameters
    ----------
    settings
        Formulas of each setting, as corrected and as printed.
    """
    if isinstance(claim, Private):
        return _restated_cost(claim, settings or {})
    if isinstance(claim, (Definition, Balance)) or not isinstance(claim, (Identity, Bound)):
        return ""
    left, right = claim.left, claim.right
    special = [substitute(side, claim.at) for side in (left, right)]
    if same_as_written(left, right) or _form(special[0], False) == _form(special[1], False):
        return "both sides are the same as they are written"
    for pair in claim.where if isinstance(claim, Bound) else ():
        if same_as_written(over(left, right), over(pair.small, pair.large)):
            return f"it restates the hypothesis {pair.text()}"
    return _restated_settings(claim, special, settings or {}) if isinstance(claim, Identity) else ""


def _restated_settings(
    claim: Identity, special: list[Term], settings: Mapping[str, tuple[Term, ...]]
) -> str:
    """Return the reason why an identity only repeats a setting or a value, or holds for any."""
    left, right = claim.left, claim.right
    known = {name: row for name, row in settings.items() if name not in claim.free}
    stated = {**known, **{name: (value,) for name, value in claim.at.items()}}
    occur = symbols(left) | symbols(right) | symbols(special[0]) | symbols(special[1])
    for name, row in stated.items():
        if name not in occur:
            continue
        ratios = [over(symbol(name), formula) for formula in row]
        told = {_form(part) for ratio in ratios for part in (ratio, over(ONE, ratio))}
        if told & {_form(over(left, right)), _form(over(*special))}:
            kind = "value" if name in claim.at else "setting"
            return f"it restates the {kind} of {name}; declare it as a Definition"
    used = known.keys() & (symbols(special[0]) | symbols(special[1]))
    if len(used) == 1:
        (name,) = used
        for formula in known[name]:
            sides = [substitute(side, {name: formula}) for side in special]
            if same_as_written(*sides):
                return f"it restates the setting of {name}; declare it as a Definition"
    if known.keys() & (symbols(left) | symbols(right)):
        forms = Normal(dict.fromkeys(symbols(left) | symbols(right), "+"))
        try:
            return "it holds whatever its settings are" if forms.is_zero(minus(*special)) else ""
        except Undecided:
            return ""
    return ""


def _restated_cost(claim: Private, settings: Container[str]) -> str:
    """Return the reason why releases have no content: their cost is the budget as it is written."""
    if claim.rho is None or claim.definition:
        return ""
    cost, rho = (
        substitute(part, claim.at) for part in (over(claim.squared_mu, number(2)), claim.rho)
    )
    used = {name for name in symbols(cost) | symbols(rho) if name in settings}
    if used - {*claim.free} or not same_as_written(cost, rho):
        return ""
    return "it restates the cost of Gaussian noise; declare it as a definition"


def same_as_written(left: Term, right: Term) -> bool:
    """Return whether two terms differ only in the order and the grouping of their parts."""
    return _form(left) == _form(right)


@functools.lru_cache(maxsize=8192)
def _form(term: Term, cancel: bool = True) -> _Form:
    """Return a product as its factors; with ``cancel``, equal factors are put together."""
    head = term[0]
    if head == "num":
        parts: list[tuple[Any, int]] = [
            (("num", abs(term[1].numerator)), 1),
            (("num", term[1].denominator), -1),
        ]
        parts += [(("sign",), 1)] if term[1] < 0 else []
        return _gathered([part for part in parts if part[0] != ("num", 1)], cancel)
    if head == "mul":
        return _gathered([row for part in term[1:] for row in _rows(part, cancel)], cancel)
    if head == "pow" and term[2][0] == "num":
        inner, exponent = _rows(term[1], cancel), term[2][1]
        if exponent.denominator == 1 or len(inner) == 1:
            return _gathered([(atom, e * exponent) for atom, e in inner], cancel)
        return _gathered([(("root", frozenset(inner), exponent), 1)], cancel)
    if head == "add":
        summands = Counter(_form(part, cancel) for part in term[1:])
        return _gathered([(("add", frozenset(summands.items())), 1)], cancel)
    arguments = [part if head == "sym" else _form(part, cancel) for part in term[1:]]
    unordered = frozenset(arguments) if head in ("max", "min") else tuple(arguments)
    return _gathered([((head, unordered), 1)], cancel)


def _rows(term: Term, cancel: bool) -> list[tuple[Any, Any]]:
    """Return the factors of a term, with repetitions."""
    if cancel:
        return list(_form(term))
    return [row for row, count in _form(term, cancel) for _ in range(count)]


def _gathered(rows: list[tuple[Any, Any]], cancel: bool) -> _Form:
    if not cancel:
        return frozenset(Counter(rows).items())
    powers: dict[Any, Fraction] = {}
    for atom, exponent in rows:
        powers[atom] = powers.get(atom, Fraction(0)) + exponent
    if powers.get(("sign",), 1) % 2 == 0:
        powers[("sign",)] = Fraction(0)
    return frozenset((atom, exponent) for atom, exponent in powers.items() if exponent)
