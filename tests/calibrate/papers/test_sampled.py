"""Claims about Poisson samples: orders that the kernel checks, and certificates for numbers."""

import dataclasses
import math
from fractions import Fraction

import dp_accounting.rdp
import mpmath
import pytest
from _claims import alone, resolved

from dpcal.accountants import events
from dpcal.calibrate.papers.claims import sampled
from dpcal.calibrate.papers.claims.formulas import parse
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.kernel import balls
from dpcal.calibrate.papers.kernel.normal import sign_at
from dpcal.calibrate.papers.kernel.terms import number
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import verdict_of


def about(text):
    """Return a claim about added and removed records."""
    return resolved("sampled", f"{text}; relation add-or-remove-one")


@pytest.mark.parametrize(
    ("order", "q", "noise"), [(2, "1/3", "1"), (7, "1/100", "2"), (32, 1, "9")]
)
def test_the_divergence_of_a_whole_order_is_its_integral(order, q, noise):
    u = Fraction(1) / Fraction(noise) ** 2
    term = sampled.at_whole_order(order, number(q), number(u))
    found = float(balls.value(term, {}).mid())
    z, chance = float(Fraction(noise)), float(Fraction(q))

    def mass(x):
        ratio = 1 - chance + chance * mpmath.exp((2 * x - 1) / (2 * z * z))
        return mpmath.npdf(x, 0, z) * ratio**order

    integral = mpmath.quad(mass, [-12 * z, 0, order, order + 12 * z])
    assert found == pytest.approx(float(mpmath.log(integral) / (order - 1)), rel=1e-9)


def test_the_bound_on_a_divergence_holds_wherever_its_conditions_do():
    held = 0
    for k in range(120):
        q, z, order = Fraction(1, 5 + 37 * (k % 12)), 4 + k % 7, number(2 + 3 * (k // 12))
        chance, u = number(q), number(Fraction(1, z * z))
        goals = sampled.conditions(order, chance, u)
        if all(sign_at(goal.gap, {}) in (0, 1) for goal in goals):
            exact = sampled.at_whole_order(int(order[1]), chance, u)
            bound = sampled.upper_bound(order, chance, u)
            assert balls.value(exact, {}) <= balls.value(bound, {})
            held += 1
    assert 20 < held < 120


def test_a_divergence_at_one_order_costs_what_the_accountant_says():
    event = events.dpsgd(sampling_probability=0.01, noise_multiplier=2.0, steps=1000)
    cost = sampled.at_whole_order(8, parse("1/100"), parse("1/4"))
    term = sampled.converted(("mul", number(1000), cost), number(8), parse("1/10**6"))
    accountant = dp_accounting.rdp.RdpAccountant([8.0])
    accountant.compose(event)
    price = accountant.get_epsilon(1e-6)
    assert float(balls.value(term, {}).mid()) == pytest.approx(price, rel=1e-9)


def test_a_certificate_of_another_claim_is_refused():
    text = "release 1 with noise 4 times 10000 on a sample 1/100 within 1, 1/100000"
    claim = about(text)
    found = prove(claim)
    assert (found.status, found.method) == ("PROVED", "certificate")
    changes = [
        ("times 10000", "times 10001"),
        ("noise 4", "noise 3"),
        ("sample 1/100", "sample 2/100"),
        ("within 1", "within 1/4"),
        ("1, 1/100000", "1, 1/10**90"),
        ("noise 4", "noise x"),
    ]
    for old, new in changes:
        assert verdict_of(about(text.replace(old, new)), found), new
    assert verdict_of(claim, dataclasses.replace(found, status="REFUTED"))
    assert verdict_of(claim, dataclasses.replace(found, status="SAMPLED"))
    assert verdict_of(alone("x <= x + 1 where x in [0, 1]"), found)
    document = {**found.evidence["certificate"], "upper": "0"}
    assert verdict_of(claim, Verdict("PROVED", "certificate", evidence={"certificate": document}))


def test_an_order_of_a_proof_names_symbols_of_the_claim_only():
    claim = about("release 1 with noise s times T on a sample q within 1, 1/1000; order 8")
    for order in (["sym", "zz"], ["num", "1"], ["num", "5/2"], ["num", "1000"]):
        evidence = {"witness": {"T": "1", "q": "1/2", "x": "1"}, "given": [order], "proofs": []}
        sentence = verdict_of(claim, Verdict("PROVED", "", evidence=evidence))
        assert sentence.startswith(("an order in declared", "a whole order from 2 to 256"))


def test_numbers_are_rounded_to_the_side_that_costs_more():
    third = balls.value(parse("1/3"), {})
    assert sampled.rounded(third, up=True) > Fraction(1, 3) > sampled.rounded(third, up=False)
    rows = [(third, balls.value(parse("5/2"), {}), third)]
    dear, cheap = (sampled.event_of(rows, outward).events[0] for outward in (True, False))
    assert (dear.count, cheap.count) == (3, 2)
    assert dear.event.sampling_probability > cheap.event.sampling_probability
    assert dear.event.event.noise_multiplier < cheap.event.event.noise_multiplier
    assert math.isclose(dear.event.event.noise_multiplier, 1 / 3)
