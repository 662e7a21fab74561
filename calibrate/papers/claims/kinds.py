"""The kinds of claims: the goals that a claim of each kind is equivalent to.

===========  ======================================================================================
kind         statement
===========  ======================================================================================
identity     both sides are equal for all values of the symbols
definition   an identity that repeats a definition on purpose: it locks a formula against changes
balance      a setting equates two errors: one falls as the other rises
bound        the left side is at most the right one, or less, on the domain
loose        a bound that holds with a factor times its left side as well
feasible     several conditions hold
rate         the left side is at most of the order of the right one
units        an expression has a unit
recursion    conditions hold for every value of a sequence, by induction
private      Gaussian releases cost at most a budget
enumeration  a program confirms every case
prose        a statement that no program decides
===========  ======================================================================================

>>> from dpcal.calibrate.papers.claims.notation import line
>>> [goal.text() for goal in line("x <= y; loose 2").goals()]
['1 < 2', '0 <= x', '2*x <= y']
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from dpcal.calibrate.papers.claims import growth, privacy
from dpcal.calibrate.papers.claims.formulas import as_number, show
from dpcal.calibrate.papers.claims.ranges import Range, Relation
from dpcal.calibrate.papers.kernel import terms as t
from dpcal.calibrate.papers.kernel.context import Context

if TYPE_CHECKING:
    from dpcal.calibrate.papers.claims.claim import Claim

UNROLLED = 6  # first values at which a point may refute a claim; terms grow with each value
Goals = Callable[["Claim", Sequence[t.Term], Context | None], list[Relation]]


class Kind(NamedTuple):
    """Functions of the claims of a kind.

    Parameters
    ----------
    goals
        Relations that are equivalent to the claim, from terms that a proof may choose.
    necessary
        Relations that hold for any choice of a proof; a point refutes them.
    text
        The claim as one line, without its conditions.
    ranges
        Ranges of the symbols of the goals, from the domain's.
    """

    goals: Goals
    necessary: Callable[[Claim], list[Relation]] | None = None
    text: Callable[[Claim], str] | None = None
    ranges: Callable[[Claim, dict[str, Range]], dict[str, Range]] | None = None


def _pairs(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    return list(claim.pairs)


def _undecided(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    raise t.Undecided(f"a {claim.kind} is not decided by goals.")


def _loose(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    ((left, sign, right),), factor = claim.pairs, claim.parts["factor"]
    smaller = Relation(t.times(factor, left), sign, right)
    return [Relation(t.ONE, "<", factor), Relation(t.ZERO, "<=", left), smaller]


def _powers(term: t.Term, units: Mapping[str, Any], same: list[Relation]) -> dict[str, t.Term]:
    """Return the exponents of base units in a term; add the conditions for it to have a unit."""
    head, *parts = term
    if head in ("num", "pi"):
        return {}
    if head == "sym":
        t.require(term[1] in units, f"units of {term[1]}.")
        return dict(units[term[1]])
    if head == "pow":
        same += _equal(_powers(parts[1], units, same), {})
        base = _powers(parts[0], units, same)
        return {name: as_number(t.times(power, parts[1])) for name, power in base.items()}
    rows = [_powers(part, units, same) for part in parts if part != t.ZERO]
    if head == "mul":
        names = dict.fromkeys(name for row in rows for name in row)
        return {s: as_number(t.plus(*(row[s] for row in rows if s in row))) for s in names}
    first = rows[0] if rows and head in ("add", "max", "min", "abs") else {}
    same += [pair for row in rows for pair in _equal(row, first)]
    return first


def _equal(left: Mapping[str, t.Term], right: Mapping[str, t.Term]) -> list[Relation]:
    rows = ((left.get(name, t.ZERO), right.get(name, t.ZERO)) for name in {**left, **right})
    return [Relation(a, "=", b) for a, b in rows if a != b]


def _units(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    """Return the goals that parts of sums have one unit, and the whole has the one it should."""
    same: list[Relation] = []
    found = _powers(claim.parts["expression"], claim.parts["scales"], same)
    same += _equal(found, claim.parts["unit"])
    return list(dict.fromkeys(same)) or [Relation(t.ZERO, "=", t.ZERO)]


def _unit_text(claim: Claim) -> str:
    rows = ((name, power) for name, power in claim.parts["unit"].items() if power != t.ZERO)
    unit = " ".join(f"{name}^({show(power)})" for name, power in rows)
    return f"[{show(claim.parts['expression'])}] = {unit or '1'}"


def _balance(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    """Return the goals that both sides are equal, and go as opposite powers of the parameter."""
    of, same = claim.parts["of"], list[Relation]()
    raw = claim.parts["raw"]
    units = {name: {of: t.ONE} if name == of else {} for side in raw for name in t.symbols(side)}
    powers = [_powers(side, units, same).get(of, t.ZERO) for side in raw]
    return [*claim.pairs, *same, Relation(t.times(*powers), "<", t.ZERO)]


def _at(claim: Claim, index: t.Term, value: t.Term) -> list[Relation]:
    """Return the conditions of a recursion at an index, about a value."""
    table = {claim.parts["of"]: value, claim.parts["over"]: index}
    if claim.pairs[0].sign == "=":
        return [Relation(value, "=", t.substitute(claim.pairs[0].right, table))]
    return [
        Relation(t.substitute(a, table), sign, t.substitute(b, table)) for a, sign, b in claim.pairs
    ]


def _recursion(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    """Return the conditions about the first value, and about the next value given one."""
    parts = claim.parts
    value, first = parts["next"], claim.pairs[0]
    if first.sign == "=":
        value = t.substitute(value, {parts["of"]: first.right})
    begin = _at(claim, t.number(parts["start"]), parts["first"])
    return [*begin, *_at(claim, t.plus(t.symbol(parts["over"]), t.ONE), value)]


def _first_values(claim: Claim) -> list[Relation]:
    found, parts = [], claim.parts
    value = parts["first"]
    for index in map(t.number, range(parts["start"], parts["start"] + UNROLLED)):
        found += _at(claim, index, value)
        value = t.substitute(parts["next"], {parts["of"]: value, parts["over"]: index})
    return found


def _sequence_ranges(claim: Claim, found: dict[str, Range]) -> dict[str, Range]:
    """Return the ranges: the value may be any number, and the index begins at its start."""
    parts, own = claim.parts, {claim.parts["of"], claim.parts["over"]}
    t.require(own <= found.keys() and len(own) == 2, "a value and an index that stay.")
    others = [pair for pair in claim.where if pair not in claim.pairs]
    named = {s for pair in others for side in pair[::2] for s in t.symbols(side)}
    t.require(
        not own & (named | t.symbols(parts["first"]) | claim.on.keys()), "conditions on no value."
    )
    index = Range(Fraction(parts["start"]), whole=True)
    return {**found, parts["of"]: Range(), parts["over"]: index}


def _sequence_text(claim: Claim) -> str:
    said, parts = ", ".join(pair.text() for pair in claim.pairs), claim.parts
    begin = f"{parts['over']} = {parts['start']}, {parts['start'] + 1}, ..."
    return f"{said} for {begin}: first {show(parts['first'])}, next {show(parts['next'])}"


@dataclass(frozen=True)
class Enumeration:
    """A property of whole numbers that a program checks case by case, in exact arithmetic.

    Parameters
    ----------
    holds
        Function of one case, returning whether the property holds. It must not use floating point.
    cases
        The cases to check; at least one.
    complete
        Whether ``cases`` holds every case, so that checking them is a proof.
    """

    holds: Callable[..., bool]
    cases: Sequence[Any]
    complete: bool = False

    def __post_init__(self) -> None:
        if not self.cases:
            raise ValueError("cases must have at least one case, got none.")


def _cases(claim: Claim, given: Sequence[t.Term] = (), context: Any = None) -> list[Relation]:
    """Return the goal that no case fails, if the list of cases is complete."""
    program = claim.parts["program"]
    t.require(program.complete, "cases that are all there is.")
    failed = sum(program.holds(case) is not True for case in program.cases)
    return [Relation(t.number(failed), "<=", t.ZERO)]


def _cases_text(claim: Claim) -> str:
    program = claim.parts["program"]
    return f"{program.holds.__name__.lstrip('_')}, {len(program.cases)} cases"


KINDS: Mapping[str, Kind] = {
    **dict.fromkeys(("identity", "definition", "bound", "feasible"), Kind(_pairs)),
    "balance": Kind(_balance, _pairs),
    "loose": Kind(_loose),
    "units": Kind(_units, text=_unit_text),
    "rate": Kind(growth.goals, _undecided),
    "recursion": Kind(_recursion, _first_values, _sequence_text, _sequence_ranges),
    "private": Kind(privacy.goals, privacy.necessary, privacy.text),
    "enumeration": Kind(_cases, text=_cases_text),
    "prose": Kind(_undecided, text=lambda claim: str(claim.parts["reason"])),
}
