"""The paper's identities: proved by name in the audit, and with the corrected settings by sympy."""

import math
import warnings

import pytest
import sympy as sp

from dpcal import calibrate
from dpcal.calibrate import schedules
from dpcal.calibrate.papers.prover import prove
from dpcal.calibrate.plans.second_order.implicit import solved
from dpcal.errors import VacuousSchedule

SCHEDULE = schedules.load("gauss_psgd")

# Each identity and bound of the paper that holds, with the claims of the audit that say it.
HOLDS = {
    **{f"A{k}": [f"A{k}"] for k in (1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 18, 19, 20)},
    **{f"A{k}": [f"A{k}"] for k in (12, 22, 24, 25, 26, 27)},
    "A13": ["A13", "A13.corrected"],
    "A21": ["A21", "A21.rest"],
    "A23": ["A23", "A23.half"],
    "A28": ["A28.R", "A28.Phi", "A28.Gamma", "A28.eta", "A28.log"],
    "B1": ["B1"],
    "B2": ["B2.1", "B2.2", "B2.3", "B2.4"],
    "B3": ["B3.1", "B3.4"],
    "B4": ["B4.1", "B4.2", "B4.3", "B4.4"],
    "B5": ["B5", "B5.alpha"],
    "B6": ["B6"],
    "B7": ["B7", "B7.alpha"],
    "B8": ["B8", "B8.alpha"],
    "B10": ["B10"],
    "B12": ["B12", "B12.best"],
    "B13": ["B13.b1", "B13.b2"],
    "B14": ["B14", "B14.b2"],
    "B15": ["B15"],
    "B16": ["B16", "B16.refresh"],
    "B18": ["B18"],
    "B19": [f"B19.{name}" for name in ("k13", "k24", "k14", "k23", "a13", "a24", "a14", "a23")],
    "C1": ["C1"],
    "C3": ["C3"],
    "C4": ["C4", "C4.second"],
    "C5": ["C5"],
    "C6": ["C6"],
    "C7": ["C7"],
    "X1": ["X1"],
    "X2": ["X2"],
    "X3": ["X3"],
    "X5": ["X5"],
    "X6": ["X6"],
    "X9": ["X9"],
}

# Each formula that was printed and does not hold, with the erratum whose printed side says it.
FAILS = {
    "A4x": "E1",
    "A10x": "E16",
    "A12x": "E3",
    "A17x": "E2",
    "A18x": "E4",
    "A28x": "E4.units",
    "B11": "E5",
    "B17": "E6",
    "B20x": "E24",
    "C2": "E13",
    "C8": "E11",
    "D2": "E14",
    "X7": "E19",
    "X8": "E20",
}


@pytest.mark.slow
@pytest.mark.parametrize("row", HOLDS)
def test_what_holds_is_proved(row):
    for name in HOLDS[row]:
        verdict = prove(SCHEDULE.resolve(SCHEDULE.claim(name)))
        assert verdict.status in ("PROVED", "DEFINITION"), (name, verdict.status)


@pytest.mark.slow
@pytest.mark.parametrize("row", FAILS)
def test_what_fails_is_refuted(row):
    (erratum,) = (each for each in SCHEDULE.errata if each.name == FAILS[row])
    assert prove(SCHEDULE.resolve(erratum.printed)).status == "REFUTED"
    if erratum.corrected is not None:
        assert prove(SCHEDULE.resolve(erratum.corrected)).status != "REFUTED"


# -- by another prover, from the formulas themselves

names = "s mu psi alpha rho M U eta r d C c gamma chi T omega m n epsilon G kappa b1 b2 z"
S = {name: sp.Symbol(name, positive=True) for name in names.split()}
s, mu, psi, alpha, rho, M, U = (S[name] for name in ("s", "mu", "psi", "alpha", "rho", "M", "U"))
m, n, d, G, kappa, epsilon = (S[name] for name in ("m", "n", "d", "G", "kappa", "epsilon"))
C, r, gamma, eta, omega = (S[name] for name in ("C", "r", "gamma", "eta", "omega"))
iota = s * mu


def equal(left, right):
    """Whether a ratio of products of powers is 1."""
    ratio = sp.powsimp(sp.powdenest(sp.sympify(left) / right, force=True), force=True)
    return sp.simplify(ratio) == 1


def settings(corrected):
    """Return the settings of (5), printed or corrected, with alpha = 4 chi put in."""
    psi_of = (
        4
        * sp.sqrt(C)
        * (s ** sp.Rational(3, 2) * mu ** sp.Rational(5, 2) if corrected else s * mu**2)
    )
    chi = psi_of * psi
    alpha = 4 * chi
    eta = sp.sqrt(rho * alpha) / (M**2 * iota ** (3 if corrected else 2))
    Gamma = iota / (s * eta * sp.sqrt(rho * alpha))
    R = iota ** sp.Rational(-3, 2) * sp.sqrt(alpha / rho)
    Phi = s / (8 * iota ** (4 if corrected else 3)) * sp.sqrt(alpha**3 / rho)
    return chi, alpha, eta, Gamma, R, Phi


def test_the_corrected_settings_satisfy_each_identity():
    chi, alpha, eta, Gamma, R, Phi = settings(corrected=True)
    assert equal(R**2 / (4 * eta * Gamma), 2 * Phi)
    assert equal(Phi / Gamma, 2 * chi**2 * eta / (s**3 * mu**5))
    assert equal(U / Phi, iota**4 * U / s * sp.sqrt(rho / chi**3))
    assert equal(eta * M * sp.sqrt(Gamma) * iota, 1 / sp.sqrt(s))
    quarter = C ** sp.Rational(1, 4) * s ** sp.Rational(3, 4) * mu ** sp.Rational(1, 4)
    assert equal(36 * d * Gamma, 9 * d / (quarter * eta * sp.sqrt(rho * psi)))
    step = 4 * C ** sp.Rational(1, 4) * sp.sqrt(psi / rho)
    assert equal(R / (eta * r), step / ((quarter / C ** sp.Rational(1, 4)) * eta * r))
    c = S["c"]
    assert equal(alpha**2 / (16 * c * s**3 * mu**5 * psi**2), 16 * C / c)
    log = sp.Symbol("L", positive=True)  # ln(2 T / omega)
    third = (C * log / (8 * s**3)) ** sp.Rational(1, 5)
    left = (4 * sp.sqrt(C) * s ** sp.Rational(3, 2) * mu ** sp.Rational(5, 2)).subs(mu, third)
    assert equal(left, C * sp.sqrt(2 * log))
    growth = 160 * sp.sqrt(2) * C ** sp.Rational(1, 4) * s ** sp.Rational(3, 4)
    growth = growth * mu ** sp.Rational(5, 4) * M * sp.sqrt(psi / rho) / r
    assert equal(40 * sp.sqrt(2) * M * sp.sqrt(alpha / rho) / r, growth)


def test_the_printed_settings_miss_by_the_stated_ratios():
    chi, alpha, eta, Gamma, R, Phi = settings(corrected=False)
    printed = s / (4 * iota**3) * sp.sqrt(alpha**3 / rho)
    assert equal(R**2 / (4 * eta * Gamma) / printed, 1 / iota)  # A4x
    saddles = 8 * iota**3 * U / s * sp.sqrt(rho / chi**3)
    assert equal(saddles / (U / Phi), 8)  # A10x
    assert equal(eta * M * sp.sqrt(Gamma) * iota, sp.sqrt(mu))  # A17x: not 1 / sqrt(s)
    assert equal(eta * M * sp.sqrt(Gamma * iota), 1 / sp.sqrt(s))  # A17
    grown, u = sp.Symbol("v", positive=True), S["eta"]
    true = grown * u * r / (40 * sp.sqrt(2 * u * gamma))
    assert equal(true / (grown * sp.sqrt(u * r) / (40 * sp.sqrt(2))), sp.sqrt(r / gamma))  # A18x
    # A12: 26/5 rounds are enough for logarithms to base 2, and not for natural ones.
    assert 5.2 * math.log2(8 / 7) == pytest.approx(1.0017544, abs=1e-7)
    assert 5.2 * math.log(8 / 7) == pytest.approx(0.6943632, abs=1e-7)
    # Requirement A6, corrected and printed, beside the alpha of (5).
    corrected = 16 * S["c"] * s**3 * mu**5 * psi**2
    assert equal(alpha**2 / corrected, 16 * C / (S["c"] * iota))  # A7


def test_silos_enter_as_the_theorem_says_with_a_symbol_for_their_number():
    """B2 to B9 at m silos; D1: m n stands for n in sampling, sqrt(m) n epsilon in noise."""
    alone = {m: 1}
    t = {
        1: G**2 * U * sp.sqrt(rho * alpha) / (m * M**2 * n * kappa),
        2: G**2 * d * U**2 * rho * alpha / (m * M**4 * n**2 * epsilon**2 * kappa**2),
        3: M**4 * U * kappa / (m * sp.sqrt(rho) * n * alpha ** sp.Rational(5, 2)),
        4: M**6 * d * U**2 * kappa / (m * rho * n**2 * epsilon**2 * alpha**5),
    }
    eta, chi = sp.sqrt(rho * alpha) / M**2, alpha
    b1, b2 = n * kappa / (U * eta), n * eta * chi**2 / U
    assert equal(t[1], G**2 / (m * b1))
    assert equal(t[2], G**2 * d / (m * b1**2 * epsilon**2))
    assert equal(t[3], M**2 * kappa / (m * b2))
    assert equal(t[4], M**2 * d * kappa / (m * b2**2 * epsilon**2))
    e = {}
    for which, power in (
        (1, sp.Rational(2, 3)),
        (2, 1),
        (3, sp.Rational(2, 9)),
        (4, sp.Rational(1, 7)),
    ):
        e[which] = (t[which].subs(alpha, 1)) ** power  # alpha^2 = t_i
        assert equal(t[which].subs(alpha, e[which]), e[which] ** 2)
    private = sp.sqrt(m) * n * epsilon
    crossings = {
        (1, 3): (
            G ** sp.Rational(3, 2) * sp.sqrt(U * rho / (m * n)) / M ** sp.Rational(5, 2),
            sp.cbrt(G * U * M / (m * n)),
            sp.Rational(-1, 3),
        ),
        (2, 4): (
            G ** sp.Rational(14, 15)
            * d ** sp.Rational(2, 5)
            * U ** sp.Rational(4, 5)
            * rho ** sp.Rational(8, 15)
            / (M ** sp.Rational(34, 15) * private ** sp.Rational(4, 5)),
            G ** sp.Rational(2, 15)
            * U ** sp.Rational(2, 5)
            * M ** sp.Rational(8, 15)
            * rho ** sp.Rational(-1, 15)
            * (sp.sqrt(d) / private) ** sp.Rational(2, 5),
            sp.Rational(-1, 5),
        ),
        (1, 4): (
            G ** sp.Rational(28, 17)
            * U ** sp.Rational(8, 17)
            * rho ** sp.Rational(10, 17)
            * epsilon ** sp.Rational(6, 17)
            / (M ** sp.Rational(46, 17) * d ** sp.Rational(3, 17))
            / (m ** sp.Rational(11, 17) * n ** sp.Rational(8, 17)),
            (G**2 * M**4 * U**3 * d / (sp.sqrt(rho) * m**2 * n**3 * epsilon**2))
            ** sp.Rational(2, 17),
            sp.Rational(-4, 17),
        ),
        (2, 3): (
            G ** sp.Rational(9, 10)
            * U ** sp.Rational(4, 5)
            * sp.sqrt(rho)
            * d ** sp.Rational(9, 20)
            / (M ** sp.Rational(11, 5) * epsilon ** sp.Rational(9, 10))
            / (m ** sp.Rational(7, 20) * n ** sp.Rational(4, 5)),
            G ** sp.Rational(1, 5)
            * (M * U) ** sp.Rational(2, 5)
            * d ** sp.Rational(1, 10)
            / (epsilon ** sp.Rational(1, 5) * m ** sp.Rational(3, 10) * n ** sp.Rational(2, 5)),
            sp.Rational(-3, 10),
        ),
    }
    for (i, j), (at, accuracy, power) in crossings.items():
        assert equal(e[i].subs(kappa, at), accuracy), (i, j)
        assert equal(e[j].subs(kappa, at), accuracy), (i, j)
        assert equal(accuracy / accuracy.subs(alone), m**power)  # X9
    for which in t:
        replaced = t[which].subs(alone)
        more = {n: m * n} if which in (1, 3) else {epsilon: sp.sqrt(m) * epsilon}
        assert equal(t[which], replaced.subs(more, simultaneous=True))
    # D2: with m n epsilon in place of sqrt(m) n epsilon the rate is smaller by m^(-1/5).
    introduction = (sp.sqrt(d) / (epsilon * m * n)) ** sp.Rational(2, 5)
    theorem = (sp.sqrt(d) / private) ** sp.Rational(2, 5)
    assert equal(introduction / theorem, m ** sp.Rational(-1, 5))


# -- flags, and the records that a plan uses


def test_flags_say_what_is_vacuous_and_what_cannot_be():
    given = {"G": 1.0, "M": 1.0, "rho": 1.0, "U": 1.0, "d": 10, "m": 1, "z": 8.45}
    small, large = solved(**given, n=1e6), solved(**given, n=1e40)
    assert (small.vacuous_gradient, small.vacuous_hessian) == (True, True)
    assert not large.vacuous
    assert not large.infeasible
    # alpha < G, and rho alpha > M^2: only the test of Hessians is empty.
    steep = solved(**{**given, "G": 1e6, "rho": 1e9}, n=1e36)
    assert (steep.alpha < 1e6, steep.vacuous_gradient, steep.vacuous_hessian) == (True, False, True)
    # A thousand records are less than one for each fresh gradient that the theorem asks for.
    few = solved(**given, n=1e3)
    assert few.b1 < 1
    assert few.infeasible
    for at in (few, small, large, steep):
        assert at.converged
    # With hardly any record its settings have no solution.
    constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, hessian_lipschitz=1.0, gap=1.0)
    with pytest.raises(ValueError, match=r"n must be larger for the settings .* got 30"):
        calibrate.gauss_psgd(
            constants, n=30, dimension=10, epsilon=1.0, delta=1e-6, preset="theory"
        )


@pytest.mark.slow
@pytest.mark.parametrize(("n", "epsilon"), [(10**4, 8.0), (10**6, 1.0), (10**9, 0.1)])
def test_no_plan_uses_more_records_than_there_are(n, epsilon):
    constants = calibrate.Constants(lipschitz=2.0, smoothness=1.5, hessian_lipschitz=0.7, gap=3.0)
    given = {"n": n, "dimension": 10, "epsilon": epsilon, "delta": 1e-6}
    for options in ({}, {"passes": 3}, {"drift": 0.0}, {"preset": "theory"}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VacuousSchedule)
            plan = calibrate.gauss_psgd(constants, **given, **options)
        for query in plan.queries:
            assert 1 <= query.batch_size <= n
            assert query.batch_size * query.count <= n
        assert plan.price() <= epsilon
    at = solved(G=2.0, M=1.5, rho=0.7, U=3.0, d=10, m=1, z=8.45, n=float(n))
    refreshes = 1 + 6 * at.eta / at.kappa * (3.0 + 0.75 * at.calls * at.eta * (at.alpha / 4) ** 2)
    assert at.b1 * refreshes + at.b2 * at.calls <= n * (1 + 1e-6)
