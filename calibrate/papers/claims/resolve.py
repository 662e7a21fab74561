"""Put settings and special values into a claim, once each, and refuse unused values.

A special value (``at``) takes the place of a symbol's setting. The range of a symbol that is
replaced still holds for counterexamples: a count is at least 1 in each of them.

>>> from dpcal.calibrate.papers.claims.language import Schedule
>>> from dpcal.calibrate.papers.claims.notation import line
>>> toy = Schedule(name="toy", quantities="n: records; [1, oo)", settings="T: n**2  # Theorem 1")
>>> toy.resolve(line("T <= n**3 at n = 5", "c")).formula()
'5**2 <= 5**3'
>>> toy.resolve(line("T <= n at n = 2*n", "c"))
Traceback (most recent call last):
    ...
ValueError: claim 'c': settings and values must not define each other in a circle, got n.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from fractions import Fraction

from dpcal.calibrate.papers.claims.claim import Claim
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.notation import nearest
from dpcal.calibrate.papers.claims.ranges import POSITIVE, Range, Relation
from dpcal.calibrate.papers.kernel.context import context_of
from dpcal.calibrate.papers.kernel.normal import exact, sign_at
from dpcal.calibrate.papers.kernel.terms import ZERO, Term, substitute, symbol, symbols

_COUNT = Range(Fraction(1))


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
    units: Mapping[str, Mapping[str, Term]],
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
    units
        Exponents of the base units of the symbols.

    Raises
    ------
    ValueError
        If the claim has a value or a range for a symbol that does not occur in it, or a value
        outside of the symbol's range.
    """
    table = {name: term for name, term in settings.items() if name not in claim.free}
    table.update(claim.at)
    _check_names(claim, settings, table)
    moved = claim.substitute(lambda term: unfold(term, table))
    parts = dict(moved.parts)
    if claim.kind == "balance":
        others = {name: term for name, term in table.items() if name != parts["of"]}
        parts["raw"] = tuple(unfold(side, others) for side in claim.pairs[0][::2])
    if claim.kind == "units":
        used = symbols(parts["expression"]) & units.keys()
        parts["scales"] = {name: units[name] for name in sorted(used)}
    sizes, where = _limits(claim, table, ranges, rounded)
    kept = {name: values for name, values in claim.on.items() if name not in table}
    where = [*moved.where, *where]
    moved = replace(moved, parts=parts, sizes=tuple(sizes), where=tuple(where), on=kept)
    return replace(moved, at={}, free=(), printed=(), domain=_domain(moved, ranges, settings))


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
        narrow = claim.on.get(name, Range())
        if name in claim.at and not symbols(term):
            _check_value(name, term, values.meet(narrow))
            continue
        where += [
            Relation(ZERO, "<" if strict else "<=", fact) for fact, strict in narrow.facts(term)
        ]
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
    for name in claim.parts.get("growth", {}):
        if name in table:
            raise ValueError(f"growth must name symbols that stay, got {name}; let it be free.")
        if name not in _reached(claim.pairs[0][::2], table):
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
    pairs = (pair[::2] for pair in claim.pairs if pair.sign in ("<=", "<"))
    rows = [sorted(map(symbols, pair), key=len) for pair in pairs]
    return {name for none, one in rows if not none and len(one) == 1 for name in one}


def _domain(
    claim: Claim,
    ranges: Mapping[str, Range],
    settings: Mapping[str, Term],
) -> dict[str, Range]:
    found = {}
    for name in sorted(claim.used_symbols()):
        if name not in ranges and name not in settings:
            names = ", ".join(sorted(ranges)) or "none"
            raise ValueError(f"symbol {name} is not declared as a quantity; declared are {names}")
        declared = ranges[name] if name in ranges else _positive(name, settings, ranges)
        found[name] = declared.meet(claim.on.get(name, Range()))
    return found


def _positive(name: str, settings: Mapping[str, Term], ranges: Mapping[str, Range]) -> Range:
    """Return the range of a setting that stays a symbol, if its formula is plainly positive."""
    formula = unfold(symbol(name), settings)
    known = {part: ranges[part] for part in symbols(formula) & ranges.keys()}
    if not context_of(Claim(name, "prose", domain=known)).is_plainly(formula, ">"):
        raise ValueError(
            f"setting {name} must be declared as a quantity to stay free, since its formula may "
            f"be zero or negative: {show(formula)}."
        )
    return POSITIVE
