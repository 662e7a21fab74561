"""Proofs of rates: a constant, and a proof that the left side is below it times the right side.

Each monomial of the left side is bounded by a constant times a power of t and of log(t), and each
such bound by a monomial of the right side.

>>> from dpcal.calibrate.papers.claims.claims import Rate
>>> from dpcal.calibrate.papers.claims.language import standalone
>>> from dpcal.calibrate.papers.prover import prove
>>> from dpcal.calibrate.papers.claims.ranges import Range
>>> claim = Rate("c", "3*sqrt(n)*log(n) =O n", growth={"n": 1}, domain={"n": Range(Fraction(2))})
>>> verdict = prove(claim)
>>> verdict.status, verdict.evidence["given"][0]
('PROVED', ['mul', ['num', '3'], ['num', '2']])
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcal.calibrate.papers.claims.claims import Rate, SoftRate
from dpcal.calibrate.papers.kernel.checker import context_of as facts_of
from dpcal.calibrate.papers.kernel.terms import (
    ONE,
    ZERO,
    Term,
    Undecided,
    encode,
    minus,
    number,
    over,
    plus,
    power,
    require,
    substitute,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.papers.search.certificate import Step
from dpcal.calibrate.papers.search.context import Context, context_of
from dpcal.calibrate.papers.search.engine import Search
from dpcal.calibrate.papers.search.limits import LIMITS
from dpcal.calibrate.papers.search.renamings import image_of, renamed, under_name, value_of

__all__ = ["by_constant", "conjugated", "terms_of", "ways"]

Proof = dict[str, Any]


Show = Callable[[Step], Term]


def _nothing(step: Step) -> Term:
    return ZERO


@dataclass(frozen=True)
class _Bound:
    """A bound ``constant * t**power * log(t)**logs`` of a term, from above or from below.

    ``show`` adds what is needed to a step, and returns the gap as a term of plain sign.
    """

    constant: Term
    power: Term
    logs: Fraction
    show: Show = _nothing
    itself: bool = True


def by_constant(
    claim: Rate, lefts: Sequence[Term], search: Search, naming: Proof | None = None
) -> tuple[list[Term], list[Proof]]:
    """Return the terms that a proof of a rate chooses, and proofs of its goals.

    Parameters
    ----------
    claim
        The rate.
    lefts
        Terms that add up to the left side.
    search
        A search, for the order of powers that contain symbols.
    naming
        A new name for a symbol that does not grow, so that its logarithm has a sign.

    Raises
    ------
    Undecided
        If no constant is found.
    """
    t = symbol((claim.ranges().keys() - claim.domain.keys()).pop())
    table = {name: power(t, exponent) for name, exponent in claim.growth.items()}
    context, logs = context_of(claim), Fraction(0)
    images = {naming["symbol"]: image_of(naming)} if naming else {}
    names = {naming["fresh"]: value_of(naming)} if naming else {}
    if naming:
        context = renamed(context, naming)
    for _ in range(LIMITS.logarithms):
        one = _Rate(context, t, search, logs)
        *rows, right = (substitute(substitute(r, table), images) for r in (*lefts, claim.right))
        try:
            constant = substitute(one.constant(rows, right), names)
            break
        except _MoreLogarithms as more:
            require(isinstance(claim, SoftRate), "no more logarithms than the claim allows")
            logs = more.args[0]
    else:
        raise Undecided("no power of the logarithm is enough")
    given = [constant, ONE, number(logs)]
    goals = claim.goals(*given)
    proofs: list[Proof] = [{"rule": "plain"}]
    for sign, goal in ((1, goals[1]), (-1, goals[2])):
        step, gap = Step(context_of(claim), facts_of(claim)), minus(goal.right, goal.left)
        if naming:
            then = functools.partial(one.proof, sign=sign)
            proofs.append(step.closed(under_name(step, gap, naming, then)))
        else:
            proofs.append(step.closed(one.proof(step, gap, sign)))
    return given, proofs


class _MoreLogarithms(Undecided):
    """The right side needs this power of log(t)."""


class _Rate:
    def __init__(self, context: Context, t: Term, search: Search, logs: Fraction) -> None:
        self.context, self.t, self.search, self.logs = context, t, search, logs
        self.log = ("log", t)

    def constant(self, lefts: Sequence[Term], right: Term) -> Term:
        """Find for each monomial of the left side a larger or equal one of the right side."""
        self.rights = [(row, self.bound(row, False)) for row, _ in self.monomials(right)]
        require(all(sign > 0 for _, sign in self.monomials(right)), "a positive right side")
        self.rows: list[tuple[Term, int, _Bound, int, Term, Show]] = []
        for left in lefts:
            for row, sign in self.monomials(left):
                here = self.bound(row, True)
                self.rows.append((row, sign, here, *self.within(here)))
        return plus(*(self.share(here, index, most) for _, _, here, index, most, _ in self.rows))

    def monomials(self, term: Term) -> list[tuple[Term, int]]:
        """Return monomials without their signs, and the signs."""
        normal = self.context.normal
        total = normal.clear(normal.sum(term))
        return [(normal.term({m: abs(v)}), 1 if v > 0 else -1) for m, v in total.items()]

    def share(self, here: _Bound, index: int, most: Term) -> Term:
        """Return the constant for one monomial."""
        top, bottom = times(here.constant, most), self.rights[index][1].constant
        return top if bottom == ONE else over(top, bottom)

    def within(self, here: _Bound) -> tuple[int, Term, Show]:
        """Return the monomial of the right side above a bound, its factor, and the gap."""
        missing = []
        for index, (_, other) in enumerate(self.rights):
            try:
                return (index, *self.against(here, other, self.logs))
            except _MoreLogarithms as more:
                missing.append(more)
            except Undecided:
                continue
        raise missing[0] if missing else Undecided("a term that outgrows the right side")

    def rises(self, rise: Term) -> Any:
        """Return a proof that a difference of exponents is not negative."""
        return self.search.inequality(self.context, rise, False)

    def difference(self, left: Term, right: Term) -> Term:
        normal = self.context.normal
        return normal.term(normal.clear(normal.sum(minus(left, right))))

    def bound(self, term: Term, upper: bool) -> _Bound:
        """Return the growth of a monomial, with bounds for powers of sums that contain t."""
        normal = self.context.normal
        total = normal.clear(normal.sum(term))
        require(len(total) == 1, "one monomial")
        ((monomial, value),) = total.items()
        fixed, size, logs = [number(value)], ZERO, Fraction(0)
        bounded: list[tuple[Term, _Bound]] = []
        for atom, exponent in monomial:
            factor = normal.term({frozenset({(atom, exponent)}): Fraction(1)})
            if not symbols(factor) & {self.t[1]}:
                fixed.append(factor)
            elif atom == self.t:
                size = plus(size, normal.exponent_term(exponent))
            elif atom == ("logatom", self.t) and isinstance(exponent, Fraction):
                logs += exponent
            elif atom[0] == "sum" and isinstance(exponent, Fraction):
                bounded.append((factor, self.of_sum(dict(atom[1]), exponent, upper)))
            else:
                raise Undecided("a factor that is no power of a sum")
        rest = times(*fixed, self.size(size, logs))
        for _, inner in bounded:
            fixed.append(inner.constant)
            size, logs = plus(size, inner.power), logs + inner.logs

        def show(step: Step) -> Term:
            rows = []
            for k, (_, inner) in enumerate(bounded):
                before = [f if upper else self.term_of(b) for f, b in bounded[:k]]
                after = [self.term_of(b) if upper else f for f, b in bounded[k + 1 :]]
                rows.append(times(rest, *before, inner.show(step), *after))
            return plus(*rows)

        return _Bound(times(*fixed), self.difference(size, ZERO), logs, show, not bounded)

    def size(self, exponent: Term, logs: Fraction) -> Term:
        size = power(self.t, exponent) if exponent != ZERO else ONE
        return times(size, self.factor(logs))

    def term_of(self, bound: _Bound) -> Term:
        return times(bound.constant, self.size(bound.power, bound.logs))

    def of_sum(self, total: Any, exponent: Fraction, upper: bool) -> _Bound:
        """Bound a power of a sum of positive terms by its monomial of the largest order."""
        normal = self.context.normal
        whole, above = normal.term(total), upper == (exponent > 0)
        rows = self.monomials(whole)
        require(all(sign > 0 for _, sign in rows), "a sum of positive terms")
        inner = [self.bound(row, above) for row, _ in rows]
        require(all(b.power[0] == "num" for b in inner), "numeric powers to compare")
        # Among equal orders, the term itself is preferred to a bound: it needs no proof.
        top = max(inner, key=lambda b: (b.power[1], b.logs, b.itself))
        if above:
            ends = [(b, *self.against(b, top)) for b in inner]
            constant = plus(*(times(b.constant, most) for b, most, _ in ends))
        else:
            constant = top.constant
        base = _Bound(constant, top.power, top.logs)

        def show_base(step: Step) -> Term:
            if above:
                gaps = [times(b.constant, gap(step)) for b, _, gap in ends]
                return plus(*gaps, *(b.show(step) for b in inner))
            others = zip(rows, inner, strict=True)
            return plus(top.show(step), *(row for (row, _), b in others if b is not top))

        def show(step: Step) -> Term:
            low, high = (whole, self.term_of(base))[:: 1 if above else -1]
            gap = minus(high, low)
            step.defined(gap)
            step.have(gap, False, step.as_form(gap, show_base(step)))
            for side in (low, high):
                step.plainly(side, True)
            if exponent == 1:
                return gap
            count = number(abs(exponent))
            image = minus(power(high, count), power(low, count))
            if abs(exponent) != 1:
                ends_ = {"low": encode(low), "high": encode(high), "exponent": encode(count)}
                step.have(image, False, {"rule": "monotone", "function": "pow", **ends_})
            if exponent > 0:
                return image
            return times(image, power(low, number(exponent)), power(high, number(exponent)))

        raised = power(constant, number(exponent))
        return _Bound(raised, number(top.power[1] * exponent), top.logs * exponent, show)

    # --------------------------------------------------------------------------------- certificates

    def proof(self, step: Step, goal: Term, sign: int) -> Proof:
        """Return the last step for one of the two goals."""
        self._logarithm(step)
        whole = self.factor(self.logs)
        parts = []
        for row, own, here, index, most, gap in self.rows:
            share = times(self.share(here, index, most), whole)
            parts += [times(share, r) for k, (r, _) in enumerate(self.rights) if k != index]
            if own != sign:
                parts += [times(share, self.rights[index][0]), row]
            else:
                parts += [times(here.constant, gap(step)), here.show(step)]
                parts.append(times(share, self.rights[index][1].show(step)))
        return step.as_form(goal, plus(*parts))

    def _logarithm(self, step: Step) -> None:
        """Show that log(t) is above 1, from t >= 3."""
        three = ("log", number(3))
        ends = {"low": encode(number(3)), "high": encode(self.t)}
        rise = minus(self.log, three)
        step.have(rise, False, {"rule": "monotone", "function": "log", **ends})
        step.have(minus(three, ONE), True, {"rule": "balls", "box": {}, "tree": "."})
        form = plus(rise, minus(three, ONE))
        step.have(minus(self.log, ONE), True, step.as_form(minus(self.log, ONE), form))
        step.have(self.log, True, step.as_form(self.log, plus(minus(self.log, ONE), ONE)))

    def factor(self, logs: Fraction) -> Term:
        return power(self.log, number(logs)) if logs else ONE

    def against(self, here: _Bound, other: _Bound, logs: Fraction = Fraction(0)) -> Any:
        """Return the multiple of a bound's size that covers another bound, and the gap."""
        rise, more = self.difference(other.power, here.power), here.logs - other.logs - logs
        if rise == ZERO and more > 0:
            raise _MoreLogarithms(more + logs)
        if more <= 0 or rise == ZERO:
            require(rise[0] != "num" or rise[1] >= 0, "a term that does not outgrow the other")
            require(rise[0] == "num" or self.rises(rise), "exponents in order")
            return ONE, lambda step: self._plain_gap(step, here, rise, -more)
        require(rise[0] == "num" and rise[1] > 0, "a term that does not outgrow the other")
        ratio, count = number(more / rise[1]), number(more)
        return power(ratio, count), lambda step: self._logarithmic(
            step, here, other.logs + logs, rise
        )

    def _plain_gap(self, step: Step, here: _Bound, rise: Term, logs: Fraction) -> Term:
        grown = self._power(step, self.t, rise)
        more = self._power(step, self.log, number(logs))
        inside = plus(times(grown, self.factor(logs)), more)
        return times(self.size(here.power, here.logs), inside)

    def _logarithmic(self, step: Step, here: _Bound, logs: Fraction, rise: Term) -> Term:
        """Use log(t) <= (t**a - 1)/a, which is a tangent of the logarithm."""
        more = here.logs - logs
        ratio, root = number(more / rise[1]), power(self.t, number(rise[1] / more))
        tangent = minus(minus(root, ONE), ("log", root))
        step.defined(tangent)
        step.have(tangent, False, {"rule": "bound", "of": encode(("log", root))})
        high = times(ratio, root)
        order = minus(high, self.log)
        step.have(order, False, step.as_form(order, plus(times(ratio, tangent), ratio)))
        image = minus(power(high, number(more)), power(self.log, number(more)))
        if more != 1:
            rule = {"rule": "monotone", "function": "pow", "exponent": encode(number(more))}
            step.have(image, False, {**rule, "low": encode(self.log), "high": encode(high)})
        return times(self.size(here.power, logs), image)

    def _power(self, step: Step, base: Term, exponent: Term) -> Term:
        """Return base**exponent - 1, after a proof that it is not negative."""
        if exponent == ZERO:
            return ZERO
        if exponent[0] != "num":
            step.lemma(exponent, False, self.rises(exponent))
        step.have(minus(base, ONE), False, self._above_one(step, base))
        image = minus(("pow", base, exponent), ("pow", ONE, exponent))
        ends = {"low": encode(ONE), "high": encode(base), "exponent": encode(exponent)}
        step.defined(image)
        step.have(image, False, {"rule": "monotone", "function": "pow", **ends})
        return image

    def _above_one(self, step: Step, base: Term) -> Proof:
        if base == self.log:
            return {"rule": "plain"}
        return step.as_form(minus(base, ONE), plus(minus(base, number(3)), number(2)))


def terms_of(context: Context, side: Term) -> list[Term]:
    """Return the monomials of a side."""
    normal = context.normal
    return [normal.term({m: v}) for m, v in normal.clear(normal.sum(side)).items()]


def conjugated(context: Context, side: Term) -> list[Term]:
    """Return the terms of (P^2 - N^2)/(P + N), where the side is P - N with positive terms."""
    normal = context.normal
    total = normal.clear(normal.sum(side))
    rises = normal.term({m: v for m, v in total.items() if v > 0})
    falls = normal.term({m: -v for m, v in total.items() if v < 0})
    if falls == ZERO or rises == ZERO:
        return []
    squares = minus(power(rises, number(2)), power(falls, number(2)))
    return [over(term, plus(rises, falls)) for term in terms_of(context, squares)]


def ways(context: Context, side: Term) -> Iterable[list[Term]]:
    """Yield ways to write a side as a sum."""
    return filter(None, (terms_of(context, side), conjugated(context, side)))
