"""From the result of a search to a certificate with every step, so that the kernel only verifies.

The search argues with signs of normal forms and with compound steps. Here each of them is written
out in the kernel's rules: lemmas first, then a form of the goal whose parts have plain signs.

>>> from dpcal.calibrate.papers.claims.formulas import parse
>>> from dpcal.calibrate.papers.kernel.rules import Context as Facts, check
>>> from dpcal.calibrate.papers.search.context import Context
>>> goal, known = parse("x**2 - x"), parse("x - 1")
>>> step = written(
...     Context({"x": "+"}, ((known, False),)), Facts({"x"}, [(parse("x"), True), (known, False)]),
...     goal, False, {"rule": "product", "factors": [
...         [["sym", "x"], {"rule": "terms"}],
...         [["add", ["sym", "x"], ["num", "-1"]], {"rule": "terms"}]]})
>>> step["rule"], step["as"][0]
('plain', 'mul')
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.normal import Sum
from dpcal.calibrate.papers.kernel.rules import Context as Facts, is_zero_form, obligations
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    ZERO,
    Term,
    Undecided,
    decode,
    encode,
    minus,
    negative,
    number,
    over,
    plus,
    power,
    replace,
    subterms,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.context import Context, chosen_case
from dpcal.calibrate.papers.search.identities import equals
from dpcal.calibrate.papers.search.limits import LIMITS
from dpcal.calibrate.papers.search.reductions import (
    write_exponentials,
    write_logarithms,
    write_tangents,
)
from dpcal.calibrate.papers.search.renamings import write_renaming
from dpcal.calibrate.papers.search.slopes import by_slope

__all__ = ["equals", "equation", "written"]

Proof = dict[str, Any]
_WHOLE_HEADS = ("max", "min", "abs", "floor", "ceiling")


def written(context: Context, facts: Facts, goal: Term, strict: bool, found: Any) -> Proof:
    """Return the certificate for a goal, from the result of the search.

    Parameters
    ----------
    context, facts
        The facts that the search knows, and the same facts in the kernel's form.
    goal, strict
        The term that is nonnegative, or positive.
    found
        The step that the search returned.

    Raises
    ------
    Undecided
        If a step cannot be written in the kernel's rules.
    """
    step = Step(context, facts)
    return step.closed(step.by_rule(goal, strict, found))


def equation(context: Context, facts: Facts, gap: Term, found: Any) -> Proof:
    """Return certificates that a gap is nonnegative, and that it is not positive."""
    above, below = found.get("above", found), found.get("below", found)
    proof = {"below": written(context, facts, gap, False, below)}
    if not is_zero_form(proof["below"]):
        proof["above"] = written(context, facts, negative(gap), False, above)
    return proof


class Step:
    """One step of a growing certificate: its lemmas, and the facts after them."""

    def __init__(self, context: Context, facts: Facts, depth: int = 0) -> None:
        self.context, self.facts, self.depth = context, facts, depth
        self.rows: list[Any] = []
        if depth > LIMITS.depth_of_certificate:
            raise Undecided("a certificate that is less deep")

    def closed(self, step: Proof) -> Proof:
        """Return the step with its lemmas."""
        rows = [*self.rows, *step.get("have", ())]
        return {**step, "have": rows} if rows else step

    def have(self, term: Term, strict: bool, step: Proof) -> None:
        """Add a lemma, unless it is a fact."""
        if not self.facts.is_at_least(term, strict) or term not in self.facts.facts:
            self.rows.append([encode(term), strict, step])
            self.facts = self.facts.extended((term, strict))

    def lemma(self, term: Term, strict: bool, found: Any, context: Context | None = None) -> None:
        """Add a lemma that the search has proved."""
        inner = Step(context or self.context, self.facts, self.depth + 1)
        self.have(term, strict, inner.closed(inner.by_rule(term, strict, found)))

    def plainly(self, term: Term, strict: bool, context: Context | None = None) -> None:
        """Add a lemma that the search knows from signs."""
        if not self.facts.is_at_least(term, strict):
            self.lemma(term, strict, {"rule": "terms"}, context)

    def defined(self, *terms: Term) -> None:
        """Add the lemmas that make terms plainly defined."""
        for term in terms:
            for part, relation in reversed(obligations(term)):
                strict = relation != ">="
                if self.facts.is_at_least(part, strict):
                    continue
                if relation == "!=" and not self.context.holds(part, True):
                    part = negative(part)
                self.plainly(part, strict)

    def as_form(self, goal: Term, form: Term) -> Proof:
        """Return the last step: the goal equals a form whose parts have plain signs."""
        self.defined(goal, form)
        return equals(self.facts, goal, form)

    def child(self, context: Context, facts: Facts) -> Step:
        """Return a step inside of this one, with other facts."""
        return Step(context, facts, self.depth + 1)

    def whole(self, context: Context, facts: Facts, goal: Term, strict: bool, found: Any) -> Proof:
        """Return a whole step inside of this one."""
        inner = self.child(context, facts)
        return inner.closed(inner.by_rule(goal, strict, found))

    def by_rule(self, goal: Term, strict: bool, found: Any) -> Proof:
        """Return the last step for a goal; lemmas are added on the way."""
        rows = [*found.get("defined", ()), *found.get("sides_defined", ())]
        needed = dict(obligations(goal))
        for row in rows:
            part = decode(row[0])
            positive = True
            try:
                self.lemma(part, True, row[1])
            except Undecided:
                positive = needed.get(part, ">") != ">="
                self.lemma(part, positive, row[1])
            self.context = self.context.with_facts((part, positive))
        return _RULES[found["rule"]](self, goal, strict, found)

    # -------------------------------------------------------------------------- signs written out

    def form(self, total: Sum, strict: bool) -> Term:
        """Return a form of a sum whose parts have plain signs."""
        normal = self.context.normal
        wanted = ("+",) if strict else ("+", "0+", "0")
        if normal.sign(total) in wanted:
            return self._grouped(normal.clear(total))
        found: list[tuple[int, Term, Sum]] = []
        for fact, positive in self.context.facts:
            try:
                known = normal.sum(fact)
            except Undecided:
                continue
            for scale in normal._scales(total, known):
                rest = normal.sum(minus(normal.term(total), times(number(scale), fact)))
                sign = normal.sign(rest)
                if sign != "?" and (positive or sign == "+" or not strict):
                    cleared = normal.clear(rest)
                    found.append((len(cleared), times(number(scale), fact), cleared))
        if found:
            _, first, rest = min(found, key=lambda row: row[0])
            return plus(first, self._grouped(rest)) if rest else first
        raise Undecided("no form with plain signs")

    def _grouped(self, total: Sum) -> Term:
        normal = self.context.normal
        groups: dict[Any, Sum] = {}
        for monomial, value in total.items():
            outer = frozenset(pair for pair in monomial if not normal._is_number(*pair))
            groups.setdefault(outer, {})[monomial - outer] = value
        rows = []
        for outer, inner in groups.items():
            factors = (self._factor(atom, exponent) for atom, exponent in outer)
            rows.append(times(normal.term(inner), *factors))
        return plus(*rows)

    def _factor(self, atom: Any, exponent: Any) -> Term:
        normal = self.context.normal
        if atom == ("e",):
            return normal.factor_term(atom, exponent)
        known = normal.atom_sign(atom) != "?"
        return power(
            self._atom(atom) if known else self._plain_atom(atom), normal.exponent_term(exponent)
        )

    def _plain_atom(self, atom: Any) -> Term:
        """Return an atom of unknown sign, or the fact that is equal to it."""
        normal = self.context.normal
        whole = frozenset({(atom, Fraction(1))})
        for fact, _ in self.context.facts:
            try:
                total = normal.clear(normal.sum(fact))
            except Undecided:
                continue
            inner = dict(atom[1]) if atom[0] == "sum" else {whole: Fraction(1)}
            ratios = {total.get(m, Fraction(0)) / v for m, v in inner.items()}
            if total.keys() == inner.keys() and len(ratios) == 1 and min(ratios) > 0:
                return times(number(1 / ratios.pop()), fact)
        return normal.term({whole: Fraction(1)})

    def _atom(self, atom: Any) -> Term:
        normal = self.context.normal
        if atom[0] == "sum":
            inner = dict(atom[1])
            return self.form(inner, normal.known_sign(inner) == "+")
        if atom[0] in _WHOLE_HEADS:
            return self._whole(atom)
        return normal.term({frozenset({(atom, Fraction(1))}): Fraction(1)})

    def _whole(self, atom: Any) -> Term:
        """Return a function that no identity opens as it is written in the goal or a fact."""
        normal = self.context.normal
        terms = [term for term, _ in self.context.facts]
        for part in dict.fromkeys(p for term in (*self.seen, *terms) for p in subterms(term)):
            if part[0] != atom[0]:
                continue
            total = normal.sum(part)
            if len(total) != 1 or atom not in dict(next(iter(total))):
                continue
            for inner in part[1:]:
                sign = self.context.sign(inner)
                if sign in ("+", "0+", "0"):
                    self.plainly(inner, sign == "+")
            if part[0] == "ceiling":
                self.defined(part)
                gap = minus(part, part[1])
                self.have(gap, False, {"rule": "bound", "of": encode(part)})
                form = encode(plus(gap, part[1]))
                self.have(part, normal.atom_sign(atom) == "+", {"rule": "plain", "as": form})
            ((monomial, value),) = total.items()
            rest = normal.term({monomial - {(atom, Fraction(1))}: value})
            return over(part, rest) if rest != ONE else part
        raise Undecided(f"{atom[0]} is not written anywhere")

    seen: tuple[Term, ...] = ()


# ------------------------------------------------------------------------------------------- rules


def _terms(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    step.defined(goal)
    if step.facts.is_at_least(goal, strict):
        return {"rule": "plain"}
    step.seen = (goal,)
    return step.as_form(goal, step.form(step.context.normal.sum(goal), strict))


def _equal(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    return step.as_form(goal, ZERO)


def _sum(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    parts = [decode(row[0]) for row in found["parts"]]
    for k, (part, row) in enumerate(zip(parts, found["parts"], strict=True)):
        step.lemma(part, strict and k == 0, row[1])
    return step.as_form(goal, plus(*parts))


def _product(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    factors = [decode(row[0]) for row in found["factors"]]
    for factor, (_, row) in zip(factors, found["factors"], strict=True):
        if row["rule"] == "power":  # a fact about the base makes the product defined
            step.lemma(decode(row["base"]), True, row["positive"])
        step.lemma(factor, strict, row)
    return step.as_form(goal, times(*factors))


def _square(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    return step.as_form(goal, power(decode(found["root"]), number(2)))


def _monotone(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    low, high, name = decode(found["low"]), decode(found["high"]), found["function"]
    step.lemma(minus(high, low), strict, found["order"])
    image = minus((name, high), (name, low))
    step.defined(image)
    rule = {"rule": "monotone", "function": name, "low": found["low"], "high": found["high"]}
    step.have(image, strict, rule)
    return step.as_form(goal, image)


def _power(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    base = decode(found["base"])
    step.lemma(base, True, found["positive"])
    return step.as_form(goal, power(base, decode(found["exponent"])))


def _absurd(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    facts = step.context.facts
    fact, positive = facts[found["index"]]
    others = tuple(known for k, known in enumerate(facts) if k != found["index"])
    rest = Context(step.context.signs, others)
    step.lemma(negative(fact), not positive, found["against"], rest)
    return {"rule": "absurd", "fact": encode(fact)}


def _cases(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    on = decode(found["on"])
    step.defined(on)
    proof: Proof = {"rule": "cases", "on": found["on"]}
    for name, fact in (("nonnegative", on), ("nonpositive", negative(on))):
        context = step.context.with_facts((fact, False))
        facts = step.facts.extended((fact, False))
        proof[name] = step.whole(context, facts, goal, strict, found[name])
    return proof


def _extremum(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Split into cases until one argument is known to be the largest, or the smallest."""
    extremum = decode(found["of"])
    step.defined(extremum)
    turn: Callable[[Term, Term], Term] = minus
    if extremum[0] == "min":
        turn = lambda a, b: minus(b, a)  # noqa: E731
    order = list(dict.fromkeys(extremum[1:]))

    def split(inner: Step, best: Term, rest: list[Term], gaps: dict[Term, Term]) -> Proof:
        if not rest:
            return _chosen(inner, goal, strict, found, extremum, best, gaps, turn)
        other = rest[0]
        on = turn(best, other)
        proof: Proof = {"rule": "cases", "on": encode(on)}
        stays = Step(inner.context, inner.facts.extended((on, False)), inner.depth + 1)
        proof["nonnegative"] = stays.closed(split(stays, best, rest[1:], {**gaps, other: on}))
        moved = {key: plus(negative(on), gap) for key, gap in gaps.items()}
        moves = Step(inner.context, inner.facts.extended((negative(on), False)), inner.depth + 1)
        moved[best] = negative(on)
        proof["nonpositive"] = moves.closed(split(moves, other, rest[1:], moved))
        return proof

    return split(step, order[0], order[1:], {})


def _chosen(
    step: Step,
    goal: Term,
    strict: bool,
    found: Any,
    extremum: Term,
    best: Term,
    gaps: Mapping[Term, Term],
    turn: Callable[[Term, Term], Term],
) -> Proof:
    """Put one argument in place of the extremum that is known to equal it."""
    for other, form in {best: ZERO, **gaps}.items():
        gap = turn(best, other)
        step.have(gap, False, equals(step.facts, gap, form))
    for gap in (turn(extremum, best), turn(best, extremum)):
        step.have(gap, False, {"rule": "bound", "of": encode(extremum)})
    table = {extremum: best}
    case = found["cases"][list(extremum[1:]).index(best)]
    replaced = [(replace(fact, table), s) for fact, s in step.facts.facts.items()]
    context = chosen_case(step.context, extremum, best, found["rule"] == "extremum")
    then = step.whole(context, step.facts.extended(*replaced), replace(goal, table), strict, case)
    return {"rule": "replace", "of": encode(extremum), "by": encode(best), "then": then}


def _substitute(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Name the distance of a symbol from an end of its range, and substitute by it."""
    name, fresh, kind = found["symbol"], found["fresh"], found["kind"]
    x, t = symbol(name), symbol(fresh)
    low = decode(found["low"]) if "low" in found else ONE
    high = decode(found["high"]) if "high" in found else ONE
    if kind == "interval":
        return _interval(step, goal, strict, found, x, low, high)
    value = minus(x, low) if kind == "shift" else minus(high, x)
    by = plus(low, t) if kind == "shift" else minus(high, t)
    step.defined(value)
    step.plainly(value, False)
    return _named(step, goal, strict, found, value, by)


def _named(step: Step, goal: Term, strict: bool, found: Any, value: Term, by: Term) -> Proof:
    """Call a value by the fresh name, and replace the symbol by a term in it."""
    name, fresh = found["symbol"], found["fresh"]
    x, t = symbol(name), symbol(fresh)
    gap = minus(t, value)
    inner = Step(
        step.context,
        step.facts.extended((gap, False), (negative(gap), False), name=fresh),
        step.depth + 1,
    )
    inner.have(t, False, equals(inner.facts, t, plus(gap, value)))
    inner.defined(by)
    low = over(ONE, plus(ONE, t)) if found["kind"] == "interval" else ONE
    scale = times(minus(x, decode(found["low"])), low) if low != ONE else ONE
    for side in (minus(x, by), minus(by, x)):
        for form in (times(gap, scale), times(negative(gap), scale)):
            try:
                inner.have(side, False, inner.as_form(side, form))
                break
            except Undecided:
                continue
    table = {x: by}
    replaced = [(replace(fact, table), s) for fact, s in inner.facts.facts.items()]
    context = step.context.substituted(name, by, {fresh: "0+"})
    sign = step.context.signs[name]
    if sign != "?":
        context = context.with_facts((by, sign == "+"))
    facts = inner.facts.extended(*replaced)
    then = inner.whole(context, facts, replace(goal, table), strict, found["proof"])
    use: Proof = {"rule": "replace", "of": encode(x), "by": encode(by), "then": then}
    return {"rule": "let", "name": fresh, "value": encode(value), "then": inner.closed(use)}


def _interval(
    step: Step, goal: Term, strict: bool, found: Any, x: Term, low: Term, high: Term
) -> Proof:
    """Put x = low + (high - low)/(1 + t), where x = low is a case apart."""
    t = symbol(found["fresh"])
    on, value = minus(low, x), over(minus(high, x), minus(x, low))
    by = plus(low, over(minus(high, low), plus(ONE, t)))
    step.plainly(minus(x, low), False)
    step.plainly(minus(high, x), False)
    if step.facts.is_at_least(minus(x, low), True) or step.context.holds(minus(x, low), True):
        step.plainly(minus(x, low), True)
        step.defined(value)
        return _named(step, goal, strict, found, value, by)
    raise Undecided(f"an interval without its end, {on!r:.50}")


def _unit_powers(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Write 1 - u v as (1 - u) + u (1 - v), where u and v are powers of ratios below one."""
    rows: list[Term] = []
    before: list[Term] = []
    for base, exponent, positive, below, sign in found["factors"]:
        ratio, multiplier = decode(base), decode(exponent)
        step.lemma(ratio, True, positive)
        step.lemma(minus(ONE, ratio), False, below)
        step.lemma(multiplier, False, sign)
        value = ("pow", ratio, multiplier)
        image = minus(("pow", ONE, multiplier), value)
        step.defined(image)
        rule = {"rule": "monotone", "function": "pow", "low": base, "high": encode(ONE)}
        step.have(image, False, {**rule, "exponent": exponent})
        rows.append(times(*before, image))
        before.append(value)
    return step.as_form(goal, plus(*rows))


def _means(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    """Add up log(v/A) <= v/A - 1 with the weights, where A is the arithmetic mean."""
    weights = [decode(row[0]) for row in found["parts"]]
    values = [decode(row[1]) for row in found["parts"]]
    for row, weight, value in zip(found["parts"], weights, values, strict=True):
        step.lemma(weight, True, row[2])
        step.lemma(value, True, row[3])
    mean = plus(*map(times, weights, values))
    step.defined(mean)
    step.have(mean, True, {"rule": "plain"})
    gaps = []
    for value in values:
        ratio = over(value, mean)
        gap = minus(minus(ratio, ONE), ("log", ratio))
        step.have(gap, False, {"rule": "bound", "of": encode(("log", ratio))})
        gaps.append(gap)
    geometric = plus(*(times(w, ("log", v)) for w, v in zip(weights, values, strict=True)))
    low, high = geometric, ("log", mean)
    order = minus(high, low)
    step.have(order, False, step.as_form(order, plus(*map(times, weights, gaps))))
    image = minus(("exp", high), ("exp", low))
    rule = {"rule": "monotone", "function": "exp", "low": encode(low), "high": encode(high)}
    step.have(image, False, rule)
    return step.as_form(goal, image)


def _bound(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    step.defined(goal)
    return {"rule": "bound", "of": found["of"]}


def _balls(step: Step, goal: Term, strict: bool, found: Any) -> Proof:
    used = symbols(goal) | {name for fact, _ in step.context.facts for name in symbols(fact)}
    box = {}
    for name, (low, high) in step.context.box.items():
        if low is not None and high is not None and name in used:
            step.plainly(minus(symbol(name), number(low)), False)
            step.plainly(minus(number(high), symbol(name)), False)
            box[name] = [str(low), str(high)]
    return {"rule": "balls", "box": box, "tree": found["tree"]}


_RULES: dict[str, Callable[[Step, Term, bool, Any], Proof]] = {
    "terms": _terms,
    "equal": _equal,
    "equal cases": _extremum,
    "sum": _sum,
    "product": _product,
    "square": _square,
    "monotone": _monotone,
    "power": _power,
    "absurd": _absurd,
    "cases": _cases,
    "extremum": _extremum,
    "substitute": _substitute,
    "derivative": by_slope,
    "unit powers": _unit_powers,
    "means": _means,
    "bound": _bound,
    "balls": _balls,
    "logarithms": write_logarithms,
    "exponentials": write_exponentials,
    "tangents": write_tangents,
    "renaming": write_renaming,
}
