"""Change any one exponent or constant of a corrected setting: some claim must fail."""

import dataclasses
import importlib

import pytest
import sympy

from dpcal.calibrate.auditing.language import unfold
from dpcal.calibrate.auditing.prover import prove

PAPERS = ("kl_condition", "spiderboost", "gauss_psgd", "dp_rgda", "kan")


def mutants(expression):
    """Each copy of the expression with one number, implicit exponent or factor changed."""
    yield 2 * expression
    for changed in _changed(expression):
        if sympy.simplify(changed - expression) != 0:
            yield changed


def _changed(node):
    if node.is_Rational:
        yield node + 1 if node != -1 else node - 1
        return
    if node.is_Symbol:
        yield node**2
        return
    for position, part in enumerate(node.args):
        for changed in _changed(part):
            arguments = list(node.args)
            arguments[position] = changed
            yield node.func(*arguments)


def relevant(schedule, symbol):
    """The claims on corrected settings that depend on a setting, cheapest kinds first."""
    names = {s.symbol: sympy.sympify(s.corrected) for s in schedule.settings}
    order = ("identity", "units", "private", "feasible", "balance", "bound", "rate")
    claims = [
        c for c in schedule.all_claims() if c.kind in order and not c.name.endswith(".printed")
    ]
    found = []
    for claim in claims:
        free = {str(f) for f in claim.free}
        table = {s: e for s, e in names.items() if str(s) not in free and s != symbol}
        extra = [sympy.sympify(v) for v in claim.at.values()]
        parts = [sympy.sympify(part) for part in (*claim.expressions(), *extra)]
        uses = any(symbol in unfold(part, table).free_symbols for part in parts)
        if uses and str(symbol) not in free:
            found.append(claim)
    return sorted(found, key=lambda claim: order.index(claim.kind))


def survivors(schedule, setting):
    """The mutants of a setting that no claim refutes."""
    claims = relevant(schedule, setting.symbol)
    alive = []
    for mutant in mutants(sympy.sympify(setting.corrected)):
        changed = dataclasses.replace(setting, corrected=mutant)
        settings = tuple(changed if s is setting else s for s in schedule.settings)
        other = dataclasses.replace(schedule, settings=settings)
        # A second, patient look, so that a busy machine changes nothing.
        if not any(
            prove(other.resolve(c), seconds=seconds).status == "REFUTED"
            for seconds in (0.7, 20.0)
            for c in claims
        ):
            alive.append(mutant)
    return alive


@pytest.mark.slow
@pytest.mark.parametrize("paper", PAPERS)
def test_any_changed_exponent_or_constant_is_refuted(paper):
    schedule = importlib.import_module(f"dpcal.calibrate.schedules.{paper}").SCHEDULE
    alive = {str(s.symbol): survivors(schedule, s) for s in schedule.settings}
    assert {name: found for name, found in alive.items() if found} == {}
