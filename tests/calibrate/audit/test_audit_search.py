"""What a search must find: dips, sides that touch, and no false support."""

import math
import random
from fractions import Fraction

import pytest
from _claims import alone

from dpcal.calibrate.papers.claims.notation import line
from dpcal.calibrate.papers.claims.verdicts import Verdict
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.papers.recheck import verdict_of
from dpcal.calibrate.papers.search.descent import lowest


def test_prose_is_open_and_tried_points_support_no_formula():
    said = prove(line("open because"))
    assert (said.status, bool(said.reason)) == ("OPEN", True)
    claim = alone("2*sqrt(x*y) < x + y where x in [1, 9], y in [1, 9]")
    rows = [{"x": str(k), "y": str(k + 1)} for k in range(1, 9) for _ in range(8)]
    for evidence in ({"points": rows}, {"cases": 3}, {}):
        assert verdict_of(claim, Verdict("SAMPLED", "points", evidence=evidence))
    with pytest.raises(ValueError, match="verdict in JSON"):
        Verdict.from_json("[1]")


def test_an_inequality_whose_sides_meet_inside_has_values_everywhere():
    # Where both numbers are equal, both sides are zero.
    pinsker = "2*(p - q)**2 <= p*log(p/q) + (1 - p)*log((1 - p)/(1 - q))"
    ranges = "p in [1/10, 9/10], q in [1/10, 9/10]"
    found = prove(alone(f"{pinsker} where {ranges}"), seconds=0.5)
    assert found.status in ("PROVED", "OPEN"), found.reason
    assert "undefined" not in found.reason


def anywhere(text):
    """Return a bound on any positive x and y."""
    return alone(f"{text} where x in (0, oo), y in (0, oo)")


def dips(seed):
    """Return a claim that fails at one place."""
    generator = random.Random(seed)
    at = [Fraction(f"{math.exp(generator.uniform(-6, 6)):.3g}") for _ in range(2)]
    return anywhere(f"1/10**6 <= (x/({at[0]}) - 1)**2 + (y/({at[1]}) - 1)**2")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_dip_anywhere_is_found(seed):
    verdict = prove(dips(seed), seconds=1.0)
    assert verdict.status == "REFUTED", verdict.reason
    assert not verdict_of(dips(seed), verdict)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_sides_that_touch_anywhere_are_found(seed):
    generator = random.Random(seed)
    p, c = Fraction(generator.randint(1, 9), 10), Fraction(generator.randint(1, 40), 12)
    text = f"({c}*x)**({p})*y**(1 - {p}) < {p}*{c}*x + (1 - {p})*y"
    assert prove(anywhere(text), seconds=1.0).status == "REFUTED", text


def test_descents_count_evaluations_and_look_at_no_clock(monkeypatch):
    def stopped():
        raise AssertionError("a clock")

    claim = dips(0)
    found = [list(lowest(claim, claim.goals()[0]))]
    for clock in ("time", "monotonic", "perf_counter", "process_time"):
        monkeypatch.setattr(f"time.{clock}", stopped)
    found.append(list(lowest(claim, claim.goals()[0])))
    assert found[0] == found[1] != []


def test_parts_without_floats_leave_the_corners():
    claim = alone("uppergamma(2, x) <= 1 where x in [0, 9]")
    assert {point["x"] for point in lowest(claim, claim.goals()[0])} >= {Fraction(9)}
