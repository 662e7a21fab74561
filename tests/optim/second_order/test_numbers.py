"""The paper's arithmetic: the price of a release, the fixed point of its settings, its records."""

import math

import numpy as np
import pytest
from _integrals import gaussian_delta

from dpcal import calibrate
from dpcal.calibrate.plans.common import single_release
from dpcal.calibrate.plans.theory import case_of, fixed_point
from dpcal.errors import VacuousSchedule

# epsilon, delta, z of one release where the bound itself moves an answer, c1 for replace-one.
TABLE = [
    (0.5, 1e-5, 7.03182667558, 4.2948759),
    (2.0, 1e-5, 1.99381244564, 5.5246262),
    (8.0, 1e-5, 0.600229072199, 8.0110294),
    (1.0, 1e-6, 4.22467888933, 5.1674997),
]


@pytest.mark.parametrize(("epsilon", "delta", "z", "c1"), TABLE)
def test_multipliers_of_one_release(epsilon, delta, z, c1):
    assert gaussian_delta(1 / z, epsilon) == pytest.approx(delta, rel=1e-9)
    for relation, moved in (("replace-one", 2), ("replace-special", 1)):
        # The calibration is on the safe side, by less than a millionth.
        multiplier = single_release(epsilon, delta, relation)
        assert moved * z * (1 - 1e-10) <= multiplier <= moved * z * (1 + 2e-6)
    assert 4 * z**2 * epsilon**2 / math.log(1 / delta) == pytest.approx(c1, rel=1e-7)


# -- the fixed point

UNIT = {"G": 1.0, "M": 1.0, "rho": 1.0, "U": 1.0, "m": 1}


def solved(*, z, n, **letters):
    """Return the settings of (5), (6) and Theorem 2 where they agree, at a noise multiplier."""
    case = case_of("gauss_psgd", n=10, epsilon=1.0, delta=1e-6, **letters)
    return fixed_point(case, n, z)


PROBLEM = {"G": 2.0, "M": 1.5, "rho": 0.7, "U": 3.0, "d": 10, "m": 4, "z": 8.45, "n": 1e30}


@pytest.mark.parametrize(
    ("changes", "largest"),
    [
        ({}, "growth"),
        ({"s": 2.0, "C": 3.0}, "growth"),
        ({"d": 10**9, "z": 1e3}, "escape"),
        ({"s": 0.5, "C": 2.0}, "escape"),
        ({"s": 1.3, "C": 1e9, "z": 1e9, "d": 1}, "noise"),
        ({"s": 0.8, "U": 1e9}, "saddles"),
    ],
)
def test_the_fixed_point_solves_the_equations_of_the_proof(changes, largest):
    """In the proof's own letters; which of its demands on mu is the largest depends on sizes."""
    given = {**PROBLEM, "s": 1.0, "C": 1.0, **changes}
    at = solved(**given)
    G, M, rho, U, d, m, z, n, s, C = given.values()
    mu, alpha, eta, Gamma, R = (at[name] for name in ("mu", "alpha", "eta", "Gamma", "R"))
    iota, chi, omega, b2 = s * mu, alpha / 4, 0.05 / 3, at["b_difference"]
    assert 1 <= min(at["b_refresh"], b2) <= max(at["b_refresh"], b2) <= n
    Phi = s / (8 * iota**4) * math.sqrt(alpha**3 / rho)

    def error(kappa):
        """Return the error of an estimate and the noise in it, with all records used."""
        b1 = n / 2 / (1 + 6 * eta / kappa * moved)
        r = z * math.sqrt((G**2 / b1**2 + kappa * M**2 / b2**2) / m)
        return math.sqrt(4 * (G**2 / b1 + M**2 * kappa / b2) / m + d * r**2), r

    moved = U + 0.75 * at["T"] * eta * chi**2
    psi, r = error(at["kappa"])
    # No kappa has an error that is much less: both parts are equal at this one.
    least = min(error(at["kappa"] * 1.1**power)[0] for power in range(-100, 100))
    assert least <= psi <= 1.2 * least
    demands = {
        "escape": math.log(36 * d * Gamma * mu**0.25 * math.log(2 * R * mu**0.25 / (eta * r))) / s,
        "growth": math.log2(40 * math.sqrt(2) * M * math.sqrt(alpha / rho) / r),
        "noise": (C * math.log(2 * at["T"] / omega) / (8 * s**3)) ** 0.2,
        "saddles": math.log(2 * U / Phi / omega) / s,
    }
    assert max(demands, key=demands.get) == largest
    rounds = math.log(U / Phi / omega) / math.log(8 / 7)
    calls = rounds * (U * s**3 * mu**5 / (2 * chi**2 * eta) + Gamma) + U / Phi + 1
    for found, expected in (
        (mu, demands[largest]),
        (at["psi"], psi),
        (chi, 4 * math.sqrt(C) * s**1.5 * mu**2.5 * psi),
        (eta, math.sqrt(rho * alpha) / (M**2 * iota**3)),
        (R**2 / (4 * eta * Gamma), 2 * Phi),
        (Phi / Gamma, 2 * chi**2 * eta / (s**3 * mu**5)),
        (at["Q_all"], rounds),
        (at["T"], calls),
        (at["b_refresh"] * at["refreshes"] + b2 * at["T"], n),
    ):
        assert found == pytest.approx(expected, rel=0.02)


def test_more_records_or_silos_promise_more():
    """With less noise it need not: the proof asks for more logarithms where there is little."""
    at = solved(**PROBLEM)
    assert solved(**{**PROBLEM, "n": 1e31})["alpha"] < at["alpha"]
    assert solved(**{**PROBLEM, "m": 16})["alpha"] < at["alpha"]


def test_the_slope_of_alpha_in_n():
    """Without logarithms -1/3 and -2/5; the solver's logarithms hold it back a little."""
    for d, z, slope in ((1, 1e-3, -1 / 3), (10**12, 1e6, -2 / 5)):
        one, two = (solved(**UNIT, d=d, z=z, n=n) for n in (1e40, 1e44))
        # alpha = 16 mu^(5/2) psi: what is left without mu is the error's own slope.
        measured = math.log(two["alpha"] / one["alpha"]) / math.log(1e4)
        assert measured == pytest.approx(slope, abs=0.04)


# -- plans


@pytest.mark.slow
def test_the_theorem_says_from_which_n_it_says_something():
    with pytest.warns(VacuousSchedule, match="informative from about n="):
        plan = calibrate.theory("gauss_psgd", n=10**9, epsilon=1.0, delta=1e-6, d=10, **UNIT)
    assert plan.parameters["vacuous"] is True
    assert all(np.isfinite(v) for v in plan.parameters.values() if isinstance(v, float))
    size = plan.parameters["informative_from_n"]
    assert size > 1e15
    problem = {**UNIT, "d": 10, "z": plan.queries[0].noise_multiplier}
    assert solved(**problem, n=size / 2)["alpha"] >= 1 > solved(**problem, n=size * 1.1)["alpha"]
