"""Put settings and special values into a claim, once each, and refuse values that say nothing.

A special value (``at``) takes the place of a symbol's setting. The range of a symbol that is
replaced still holds for counterexamples: a count is at least 1 in each of them.

>>> from dpcal.calibrate.papers.claims.language import Bound, Quantity, Schedule, Setting
>>> toy = Schedule(
...     name="toy", title="", citation="", quantities=(Quantity("n", "records", range="[1, oo)"),),
...     settings=(Setting("T", "n**2", source="Theorem 1"),))
>>> toy.resolve(Bound("c", "T <= n**3", at="n = 5")).formula()
'5**2 <= 5**3'
>>> toy.resolve(Bound("c", "T <= n", at="n = 2*n"))
Traceback (most recent call last):
    ...
ValueError: claim 'c': settings and values must not define each other in a circle, got n.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from fractions import Fraction

from dpcal.calibrate.papers.claims.base import Claim
from dpcal.calibrate.papers.claims.claims import Balance, Bound, Rate
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.notation import nearest
from dpcal.calibrate.papers.claims.ranges import POSITIVE, Range, Relation
from dpcal.calibrate.papers.kernel.context import context_of
from dpcal.calibrate.papers.kernel.normal import exact, sign_at
from dpcal.calibrate.papers.kernel.terms import ZERO, Term, substitute, symbol, symbols

__all__ = ["resolved", "settings_used", "unfold"]

_COUNT = Range(Fraction(1))  # of a setting that is rounded to a whole number


def unfold(term: Term, table: Mapping[str, Term]) -> Term:
    """Substitute settings until none is left."""
    for _ in range(len(table) + 1):
        used = symbols(term) & table.keys()
        if not used:
            return term
        term = substitute(term, {name: table[name] for name in used})
    names = ", ".join(sorted(used))
    raise ValueError(f"settings and values must not define each other in a circle, got {names}.")


def resolved(
    claim: Claim,
    settings: Mapping[str, Term],
    ranges: Mapping[str, Range],
    rounded: Container[str],
) -> Claim:
    """Return a claim with its settings and special values put in.

    Parameters
    ----------
    claim
        The claim.
    settings
        Formulas of all settings, as the claim takes them.
    ranges
        Ranges of the symbols that are declared, by quantities or by sympy's assumptions.
    rounded
        Names of the settings that are rounded to whole numbers.

    Raises
    ------
    ValueError
        If the claim says something about a symbol that does not occur in it, or has a value
        outside of the symbol's range.
    """
    table = {name: term for name, term in settings.items() if name not in claim.free}
    table.update(claim.at)
    _check_names(claim, settings, table)
    moved = claim.substitute(lambda term: unfold(term, table))
    if isinstance(claim, Balance):
        others = {name: term for name, term in table.items() if name != claim.of}
        moved = moved.changed(raw=tuple(unfold(side, others) for side in claim.expressions()))
    if isinstance(claim, Rate):
        growth = {name: unfold(exponent, table) for name, exponent in claim.growth.items()}
        moved = moved.changed(growth=growth)
    sizes, where = _limits(claim, table, ranges, rounded)
    kept = {name: ends for name, ends in claim.on.items() if name not in table}
    moved = moved.changed(sizes=tuple(sizes), where=(*moved.where, *where), on=kept)
    free = _reached(claim.all_terms(), table) & (settings.keys() - table.keys())
    free |= {claim.of} if isinstance(claim, Balance) else set()
    return moved.changed(at={}, free=(), printed=(), domain=_domain(moved, ranges, settings, free))


def _limits(
    claim: Claim,
    table: Mapping[str, Term],
    ranges: Mapping[str, Range],
    rounded: Container[str],
) -> tuple[list[tuple[Term, Range]], list[Relation]]:
    """Return the sizes of symbols that are replaced, and the conditions that ``on`` sets to them.

    A claim is about the formula of a setting before it is rounded, so that it need not be whole.
    """
    sizes, where = [], []
    for name in sorted(_reached(claim.all_terms(), table) & table.keys()):
        term, values = unfold(symbol(name), table), ranges.get(name, Range())
        narrow = Range(*claim.on[name]) if name in claim.on else Range()
        if name in claim.at and not symbols(term):
            _check_value(name, term, values.meet(narrow))
            continue
        where += [Relation(ZERO, fact, strict) for fact, strict in narrow.facts(term)]
        if name not in _stated(claim):
            values = values.meet(_COUNT if name in rounded and name not in claim.at else Range())
            sizes.append((term, values._replace(whole=False)))
    return sizes, where


def _reached(terms: Iterable[Term], table: Mapping[str, Term]) -> set[str]:
    """Return all symbols that occur in terms, before and after substitution."""
    found: set[str] = set()
    more = {name for term in terms for name in symbols(term)}
    while more:
        found |= more
        more = {s for name in more & table.keys() for s in symbols(table[name])} - found
    return found


def settings_used(claim: Claim, settings: Mapping[str, Term]) -> list[str]:
    """Return the names of the settings that are put into a claim."""
    table = {**{n: term for n, term in settings.items() if n not in claim.free}, **claim.at}
    reached = _reached(claim.all_terms(), table)
    return [name for name in settings if name in reached - {*claim.free, *claim.at}]


def _check_names(claim: Claim, settings: Mapping[str, Term], table: Mapping[str, Term]) -> None:
    """Refuse options about symbols that a claim does not have."""
    for name in claim.free:
        if name not in settings:
            raise ValueError(f"free {nearest(name, settings)}")
        if name in claim.printed:
            raise ValueError(f"setting {name} must be free or printed, got both.")
    for name in claim.at.keys() - _reached(claim.all_terms(), table):
        raise ValueError(f"at must give values to symbols that occur, got {name}.")
    for name in getattr(claim, "growth", {}):
        if name in table:
            raise ValueError(f"growth must name symbols that stay, got {name}; let it be free.")
        if name not in _reached(claim.expressions(), table):
            raise ValueError(f"growth must name symbols that occur on a side, got {name}.")


def _check_value(name: str, term: Term, values: Range) -> None:
    """Refuse a number outside of the range of its symbol."""
    signs = [(sign_at(fact, {}), strict) for fact, strict in values.facts(term)]
    inside = all(sign == 1 or (sign == 0 and not strict) for sign, strict in signs)
    value = exact(term, {})
    if not inside or (values.whole and (value is None or value.denominator != 1)):
        raise ValueError(f"value of {name} must lie in its range, got {show(term)}.")


def _stated(claim: Claim) -> set[str]:
    """Return the symbols that a claim itself compares with numbers, as in ``1 <= T``."""
    pairs = [pair[:2] for pair in getattr(claim, "conditions", ())]
    if isinstance(claim, Bound):
        pairs.append((claim.left, claim.right))
    rows = [sorted(map(symbols, pair), key=len) for pair in pairs]
    return {name for none, one in rows if not none and len(one) == 1 for name in one}


def _domain(
    claim: Claim, ranges: Mapping[str, Range], settings: Mapping[str, Term], free: set[str]
) -> dict[str, Range]:
    found = {}
    for name in sorted(claim.used_symbols() | free):
        declared, known = ranges.get(name), claim.domain.get(name)
        if declared is None and known is None:
            if name not in settings:
                names = ", ".join(sorted(ranges)) or "none"
                raise ValueError(
                    f"symbol {name} is not declared as a quantity; declared are {names}"
                )
            declared = _positive(name, settings, ranges)
        values = (declared or Range()).meet(known or Range())
        found[name] = values.meet(Range(*claim.on[name])) if name in claim.on else values
    return {name: values for name, values in found.items() if name in claim.used_symbols()}


def _positive(name: str, settings: Mapping[str, Term], ranges: Mapping[str, Range]) -> Range:
    """Return the range of a setting that stays a symbol, if its formula is plainly positive."""
    formula = unfold(symbol(name), settings)
    known = {part: ranges[part] for part in symbols(formula) & ranges.keys()}
    if not context_of(Claim(name).changed(domain=known)).is_plainly(formula, ">"):
        raise ValueError(
            f"setting {name} must be declared as a quantity to stay free, since its formula may "
            f"be zero or negative: {show(formula)}."
        )
    return POSITIVE
