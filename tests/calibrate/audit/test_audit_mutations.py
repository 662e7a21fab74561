"""Change what is true a little: a proof of the change must not be found where it is false.

Changed settings of the six papers must be refuted by some claim; changed claims may only be proved
where no point of the domain contradicts them.

Every sixth of the changed settings is tried, from another one on for each setting, and 120 changed
claims; with ``DPCAL_ALL_MUTANTS=1`` in the environment all changed settings.
"""

import copy
import dataclasses
import itertools
import os
import random
from fractions import Fraction

import pytest

from dpcal.calibrate.papers import PAPERS, load
from dpcal.calibrate.papers.claims.formulas import show
from dpcal.calibrate.papers.claims.resolve import unfold
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import Undecided, number, power, symbols, times
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.search.points import points

EVERY = 1 if os.environ.get("DPCAL_ALL_MUTANTS") == "1" else 6
MUTATIONS = 120


def mutants(term):
    """Yield each copy of a term with one number, symbol or factor changed."""
    yield times(number(2), term)
    for path, part in places(term):
        shift = -1 if part == number(-1) else 1
        other = power(part, number(2)) if part[0] == "sym" else number(part[1] + shift)
        changed = put(term, path, other)
        if differ(changed, term):
            yield changed


def places(term, path=()):
    """Yield the numbers and symbols of a term, each with its path."""
    if term[0] in ("num", "sym"):
        yield path, term
    else:
        for k, part in enumerate(term[1:], 1):
            yield from places(part, (*path, k))


def put(term, path, new):
    """Return a term with another part at a path."""
    if not path:
        return new
    k, *rest = path
    return (*term[:k], put(term[k], rest, new), *term[k + 1 :])


def differ(left, right, points=24):
    """Whether two formulas have other values at a point; one without a value differs too."""
    generator = random.Random(7)
    names = sorted(symbols(left) | symbols(right))
    for _ in range(points):
        drawn = [
            Fraction(generator.randint(100, 999), 10 ** generator.randint(0, 5)) for _ in names
        ]
        box = {name: (value, value) for name, value in zip(names, drawn, strict=True)}
        try:
            if not balls.value(left, box).overlaps(balls.value(right, box)):
                return True
        except Undecided:
            return True
    return False


def relevant(schedule, name):
    """The claims on corrected settings that depend on a setting, cheapest kinds first."""
    terms = {setting.name: setting.term() for setting in schedule.settings}
    order = ("definition", "identity", "units", "private", "feasible", "balance", "bound", "rate")
    found = []
    for claim in schedule.all_claims():
        if claim.kind not in order or claim.name.endswith(".printed") or name in claim.free:
            continue
        table = {s: e for s, e in terms.items() if s not in claim.free and s != name}
        parts = [unfold(part, table) for part in (*claim.all_terms(), *claim.at.values())]
        if any(name in symbols(part) for part in parts):
            found.append(claim)
    return sorted(found, key=lambda claim: order.index(claim.kind))


def survivors(schedule, setting):
    """The mutants of a setting that no claim refutes."""
    claims, alive = relevant(schedule, setting.name), []
    first = len(setting.name) % EVERY
    for mutant in itertools.islice(mutants(setting.term()), first, None, EVERY):
        changed = dataclasses.replace(setting, corrected=mutant)
        settings = tuple(changed if s is setting else s for s in schedule.settings)
        # A declaration would refuse claims that say nothing about the changed setting.
        other = copy.copy(schedule)
        object.__setattr__(other, "settings", settings)
        # A point refutes most mutants at once; only others are worth a search.
        if any(
            contradicted(other.resolve(claim), 0, 24) for claim in claims if claim.kind != "rate"
        ):
            continue
        resolved = [other.resolve(claim) for claim in claims]
        if not any(prove(claim, seconds=5.0).status == "REFUTED" for claim in resolved):
            alive.append(show(mutant))
    return alive


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_any_changed_exponent_or_constant_is_refuted(paper):
    schedule = load(paper)
    alive = {setting.name: survivors(schedule, setting) for setting in schedule.settings}
    assert {name: found for name, found in alive.items() if found} == {}


def mutated(term, generator):
    """Change one number of a term: by one, or by a millionth of it."""
    numbers = [(path, part[1]) for path, part in places(term) if part[0] == "num"]
    if not numbers:
        return times(term, number(Fraction(10**6 + 1, 10**6)))
    path, value = generator.choice(numbers)
    shift = generator.choice([1, -1, Fraction(1, 10**6), Fraction(-1, 10**6)])
    return put(term, path, number(value + (shift if abs(shift) == 1 else shift * (value or 1))))


def mutation(claim, generator):
    """Return a claim with a changed number, direction or strictness."""
    kind, (pair,) = generator.randrange(6), claim.pairs
    if kind == 0 and claim.kind == "bound":
        return dataclasses.replace(claim, pairs=(pair._replace(left=pair.right, right=pair.left),))
    if kind == 1 and claim.kind == "bound":
        return dataclasses.replace(claim, pairs=(pair._replace(sign="<=" if pair.strict else "<"),))
    side = generator.choice(["left", "right"])
    new = {side: mutated(getattr(pair, side), generator)}
    return dataclasses.replace(claim, pairs=(pair._replace(**new),))


def contradicted(claim, seed, count=60):
    """Return whether a point of the domain contradicts a claim."""
    goals = claim.necessary()
    return any(fails(goal, point) for point in points(claim, count, seed) for goal in goals)


def fails(goal, point):
    """Whether a goal fails at a point; exact arithmetic only where it may decide."""
    try:
        ball = balls.value(goal.gap, {name: (value, value) for name, value in point.items()})
    except Undecided:
        return False
    if ball < 0 or (goal.sign == "=" and ball > 0):
        return True
    return goal.strict and not ball > 0 and sign_at(goal.gap, point) == 0


@pytest.mark.slow
def test_no_mutation_that_a_point_contradicts_is_proved():
    generator = random.Random(2)
    claims = [
        schedule.resolve(claim)
        for schedule in map(load, PAPERS)
        for claim in schedule.all_claims()
        if claim.kind in ("identity", "bound") and not claim.name.endswith(".printed")
    ]
    statuses = {"PROVED": 0, "REFUTED": 0}
    for seed in range(MUTATIONS):
        claim = mutation(generator.choice(claims), generator)
        status = prove(claim, seconds=0.1).status
        statuses[status] = statuses.get(status, 0) + 1
        if status == "PROVED":
            assert not contradicted(claim, seed + 100), claim.formula()
    assert statuses["REFUTED"] > MUTATIONS / 2
