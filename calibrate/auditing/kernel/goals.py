"""What a claim amounts to: goals, which are inequalities and equations, on a domain.

>>> from dpcal.calibrate.auditing.claims import Bound
>>> goals(Bound("c", "x <= x + 1"))
[Goal(left=('sym', 'x'), relation='<=', right=('add', ('sym', 'x'), ('num', Fraction(1, 1))))]
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from dpcal.calibrate.auditing import claims
from dpcal.calibrate.auditing.kernel import balls
from dpcal.calibrate.auditing.kernel.rules import Context, Fact, require
from dpcal.calibrate.auditing.kernel.terms import (
    ONE,
    ZERO,
    Term,
    Undecided,
    minus,
    number,
    over,
    plus,
    power,
    substitute,
    symbol,
    symbols,
    times,
)
from dpcal.calibrate.auditing.ranges import Range

__all__ = ["Goal", "contains", "context_of", "domain_of", "gaussian_delta", "goals"]


class Goal(NamedTuple):
    """``left relation right``, where the relation is ``<=``, ``<`` or ``=``."""

    left: Term
    relation: str
    right: Term


def goals(claim: claims.Claim) -> list[Goal]:
    """Return the inequalities and equations that a claim amounts to."""
    if isinstance(claim, claims.Loose):
        smaller = Goal(times(claim.factor, claim.left), "<=", claim.right)
        return [Goal(ONE, "<", claim.factor), Goal(ZERO, "<=", claim.left), smaller]
    if isinstance(claim, claims.Bound):
        return [Goal(claim.left, claim.relation, claim.right)]
    if isinstance(claim, (claims.Identity, claims.Balance)):
        return [Goal(claim.left, "=", claim.right)]
    if isinstance(claim, claims.Feasible):
        return [Goal(a, "<" if strict else "<=", b) for a, b, strict in claim.conditions]
    if isinstance(claim, claims.Units):
        return [_rescaled(claim)]
    if isinstance(claim, claims.Private):
        return _private(claim)
    raise Undecided(f"a {claim.kind} is not decided by goals.")


def _private(claim: claims.Private) -> list[Goal]:
    """Return that deviations are positive, counts are not negative, and the cost is in budget."""
    found = []
    for release in claim.releases:
        found += [Goal(ZERO, "<", release.std), Goal(ZERO, "<=", release.count)]
    if claim.rho is not None:
        return [*found, Goal(over(claim.squared_mu, number(2)), "<=", claim.rho)]
    spent = gaussian_delta(claim.epsilon, power(claim.squared_mu, number(Fraction(1, 2))))
    return [*found, Goal(ZERO, "<=", claim.epsilon), Goal(spent, "<=", claim.delta)]


def gaussian_delta(epsilon: Term, mu: Term) -> Term:
    """Return the delta of mu-Gaussian-DP at epsilon (Dong, Roth and Su 2022, Corollary 2.13)."""
    half, ratio = over(mu, number(2)), over(epsilon, mu)
    first = _normal_tail(minus(ratio, half))
    return minus(first, times(("exp", epsilon), _normal_tail(plus(ratio, half))))


def _normal_tail(x: Term) -> Term:
    root = power(number(2), number(Fraction(-1, 2)))
    return times(number(Fraction(1, 2)), ("erfc", times(x, root)))


def _rescaled(claim: claims.Units) -> Goal:
    """Return that the expression, its symbols rescaled, is rescaled as its unit says."""
    missing = symbols(claim.expression) - claim.scales.keys()
    require(not missing, f"units of {', '.join(sorted(missing))}.")
    table = {
        name: times(symbol(name), _scale(claim.scales[name])) for name in symbols(claim.expression)
    }
    moved = substitute(claim.expression, table)
    return Goal(moved, "=", times(claim.expression, _scale(claim.unit)))


def _scale(unit: Mapping[str, Term]) -> Term:
    return times(*(power(symbol(f"scale_{base}"), exponent) for base, exponent in unit.items()))


def domain_of(claim: claims.Claim) -> dict[str, Range]:
    """Return the ranges of all symbols of a claim's goals."""
    domain = dict(claim.domain)
    if isinstance(claim, claims.Units):
        bases = {base for unit in (claim.unit, *claim.scales.values()) for base in unit}
        domain.update({f"scale_{base}": Range(Fraction(0), None, True) for base in bases})
    missing = claims.used_symbols(claim) - domain.keys()
    require(not missing, f"ranges of {', '.join(sorted(missing))}.")
    return domain


def context_of(claim: claims.Claim, deadline: float = math.inf) -> Context:
    """Return the facts of a claim's domain."""
    domain = domain_of(claim)
    facts: list[Fact] = []
    for name, values in domain.items():
        x = symbol(name)
        if values.low is not None:
            facts.append((minus(x, number(values.low)), values.open_low))
            if values.low > 0:
                facts.append((x, True))
        if values.high is not None:
            facts.append((minus(number(values.high), x), values.open_high))
    facts += [(minus(large, small), strict) for small, large, strict in claim.where]
    return Context(domain, facts, deadline)


def contains(claim: claims.Claim, point: Mapping[str, Fraction]) -> bool:
    """Return whether an exact point certainly lies in a claim's domain."""
    domain = domain_of(claim)
    if not domain.keys() <= point.keys():
        return False
    whole = all(point[name].denominator == 1 for name, values in domain.items() if values.whole)
    return whole and all(
        balls.sign_at(fact, point) in ((1,) if strict else (0, 1))
        for fact, strict in context_of(claim).facts.items()
    )
