"""Errata of the paper: all of them."""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import Any

from sympy import Ge, Le, erfc, exp, log, sqrt

from dpcal.accountants.events import DpEvent, dpsgd
from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Erratum,
    Identity,
    Priced,
    Private,
    Prose,
    Rate,
    Release,
    erratum,
)
from dpcal.calibrate.schedules.kan.quantities import (
    B55,
    HALF,
    PARTS,
    SMALL,
    T53,
    T55,
    T56,
    C,
    G,
    Lam,
    R,
    T,
    _q,
    d,
    delta56,
    ell,
    epsilon,
    eta,
    eta56,
    gamma,
    kappa,
    lam,
    m53,
    n,
    order,
    p,
    q,
    r,
    relation,
    sensitivity_squared,
    t,
    u,
    within,
    x,
)


def _bound_is_tight(case: tuple[int, Fraction, int]) -> bool:
    """g_N sqrt(k) is the sensitivity of k participations."""
    size, rate, count = case
    bound = ((1 - rate**size) / (1 - rate)) ** 2 * count
    return sensitivity_squared(size, rate, tuple(range(count))) == bound


def _bound_holds(case: tuple[int, Fraction, int]) -> bool:
    """g_N sqrt(k) is at least the sensitivity of k participations."""
    size, rate, count = case
    bound = ((1 - rate**size) / (1 - rate)) ** 2 * count
    return sensitivity_squared(size, rate, tuple(range(count))) <= bound


def _binomial_tail(steps: int, rate: Fraction, above: int) -> Fraction:
    """P(Bin(steps, rate) > above)."""
    below = sum(comb(steps, k) * rate**k * (1 - rate) ** (steps - k) for k in range(above + 1))
    return Fraction(1 - below)


def _chernoff_count(case: tuple[int, Fraction, int, Fraction]) -> bool:
    """P(participations > tau) <= delta/2 for the tau of Lemma F.10, rounded down."""
    steps, rate, above, half_delta = case
    return _binomial_tail(steps, rate, above) <= half_delta


def _signed_pair(absolute: bool) -> bool:
    """For C = [[1, 0], [-1, 1]] the pair covers rows g2 = -g1, squared norm 5."""
    matrix = [[1, 0], [-1, 1]]
    rows = [[abs(x) if absolute else x for x in row] for row in matrix]
    return sum(sum(row) ** 2 for row in rows) >= 5


def _noisy_steps(case: tuple[int, bool]) -> bool:
    """The loop t = 1..T-1 releases as many answers as are accounted for."""
    steps, literal = case
    return len(range(1, steps)) == (steps if literal else steps - 1)


def _steps(noise_multiplier: float) -> DpEvent:
    """100 Poisson-sampled Gaussian releases at rate 0.1."""
    return dpsgd(sampling_probability=0.1, noise_multiplier=noise_multiplier, steps=100)


def _tail(x: Any, mean: Any, std: Any) -> Any:
    """P(N(mean, std^2) > x)."""
    return erfc((x - mean) / (std * sqrt(2))) / 2


_r, _e = R(1, 10), exp(1)

_ATTACK = (
    _r * _tail(t, 2, 1)
    + (1 - _r) * _tail(t, 0, 1)
    - _e * (_r * _tail(t, 1, 1) + (1 - _r) * _tail(t, 0, 1))
)

_CUT = log((_e - 1 + _r) / _r) + HALF

_PAIR = _r * _tail(_CUT, 1, 1) + (1 - _r) * _tail(_CUT, 0, 1) - _e * _tail(_CUT, 0, 1)

_REVEALED = _r * (_tail(HALF, 0, 1) - _e * _tail(3 * HALF, 0, 1))

_D9 = sqrt(16 * _r**2 + 32 * _r**2 * log(10**5))

_D9_ATTACK = _r * _tail(t, 2, _D9) + (1 - _r) * _tail(t, 0, _D9) - _e * _tail(t, 0, _D9)

ERRATA = (
    erratum(
        "E01",
        "The pair of Theorem F.8 does not dominate fixed-size batches.",
        Bound(
            "",
            _ATTACK,
            _REVEALED,
            on={t: (1, 6)},
            statement="attack is at most the participation-revealed bound (r times a "
            "Gaussian delta)",
        ),
        printed=Bound(
            "",
            _ATTACK,
            _PAIR,
            on={t: (1, 6)},
            points=({t: R(29, 10)},),
            statement="one step, r = 0.1, kappa = 1, epsilon = 1: event x > t within F.8's delta",
        ),
        use="Poisson sampling with F.8, or fixed-size batches with participation revealed.",
        severity="privacy",
        source="Theorem F.8",
    ),
    erratum(
        "E02",
        "c = 8 is an asymptotic coefficient, not a bound: the multiplier of Theorem 5.4 is "
        "too small.",
        Private(
            "",
            (Release(2, sqrt(4 / epsilon + 8 * Lam / epsilon**2) * sqrt(T), T),),
            rho=epsilon**2 / (2 * epsilon + 4 * Lam),
            statement="full batch (r = 1): a plain Gaussian, a quarter of the printed variance",
        ),
        printed=Bound(
            "",
            _D9_ATTACK,
            R(1, 10**5),
            on={t: (1, 20)},
            points=({t: 8},),
            statement="one step, r = 0.1, epsilon = 1, delta = 1e-5: event x > t stays below delta",
        ),
        use="Exact accounting, or F.12 with lambda = 0.",
        severity="privacy",
        source="Lemma D.7, Theorem 5.4",
    ),
    erratum(
        "E03",
        "The schedule of Corollary 5.5 drives the noise multiplier to 0.",
        Bound(
            "",
            epsilon,
            B55**2 * T55 / n**2,
            where=(Le(epsilon, T55), Ge(n, 1)),
            free=(T55,),
            statement="r^2 T >= epsilon keeps kappa^2 above 16",
        ),
        printed=Rate(
            "",
            1,
            B55**2 * T55 / n**2 * (16 / epsilon + 32 * Lam / epsilon**2),
            growth={n: 1},
            printed=(B55,),
            statement="kappa^2 stays bounded away from 0 as n grows",
        ),
        use="B = min(n, max(gamma sqrt(n), n sqrt(epsilon/T))).",
        severity="privacy",
        source="Corollary 5.5",
    ),
    erratum(
        "E04",
        "F.8 divides the noise by the clip, although Algorithm 1 multiplies it by the clip.",
        Identity(
            "", C * kappa / C, kappa, statement="noise on the clipped sum over its sensitivity"
        ),
        printed=Identity("", C * kappa / C, kappa / C, statement="noise over sensitivity"),
        use="kappa; accountants never see the clip.",
        severity="privacy",
        source="appendix F.1, Theorem F.8",
    ),
    erratum(
        "E04.priced",
        "Dividing by the clip reports an epsilon of 0.35 where 7.05 is spent.",
        Priced(
            "",
            lambda: _steps(1.0),
            epsilon=7.06,
            delta=1e-5,
            statement="r = 0.1, T = 100, kappa = 1, whatever the clip",
        ),
        printed=Priced(
            "",
            lambda: _steps(1.0),
            epsilon=0.347,
            delta=1e-5,
            statement="the same run priced at kappa/C = 10 for a clip of 0.1",
        ),
        use="kappa; accountants never see the clip.",
        severity="privacy",
        source="Theorem F.8",
    ),
    erratum(
        "E05",
        "Theorem 5.4 is for replace-one, Theorem 5.1 for zero-out; the constants 8 and 2 "
        "differ for that.",
        Identity("", 2 * relation**2, 8, at={relation: 2}, statement="constant, replace-one"),
        printed=Identity("", 2 * relation**2, 8, at={relation: 1}, statement="constant, zero-out"),
        use="2 under zero-out, 8 under replace-one.",
        severity="privacy",
        source="appendix D.1 against appendix F",
    ),
    erratum(
        "E06",
        "The sensitivity bound of F.12 is 3.5 to 18 times too large.",
        Enumeration("", _bound_holds, PARTS, statement="an upper bound it is"),
        printed=Enumeration("", _bound_is_tight, PARTS, statement="the bound is attained"),
        use="The exact sensitivity of the first k steps.",
        severity="rate",
        source="Theorem F.12",
    ),
    erratum(
        "E07",
        "Theorem 5.1 omits r T >= 3 log(2/delta), without which Lemma F.10 is false.",
        Enumeration(
            "",
            _chernoff_count,
            [(1000, Fraction(1, 1000), 8, Fraction(1, 200_000))],
            statement="with the exact binomial quantile 8",
        ),
        printed=Enumeration(
            "",
            _chernoff_count,
            [(1000, Fraction(1, 1000), 7, Fraction(1, 200_000))],
            statement="T = 1000, r = 1e-3, delta = 1e-5: at most tau = 7.05 participations",
        ),
        use="The exact binomial quantile, capped at T.",
        severity="privacy",
        source="Theorem 5.1, Lemma F.10",
    ),
    erratum(
        "E08",
        "Algorithm 1 makes T - 1 noisy steps; the appendices count T.",
        Enumeration("", _noisy_steps, [(k, False) for k in (2, 5, 9)]),
        printed=Enumeration("", _noisy_steps, [(k, True) for k in (2, 5, 9)]),
        use="T - 1; counting T is on the safe side.",
        source="Algorithm 1",
    ),
    erratum(
        "E09",
        "F.8 writes C y where its proof gives |C| y.",
        Enumeration("", _signed_pair, [True], complete=True),
        printed=Enumeration("", _signed_pair, [False]),
        use="|C| y.",
        severity="privacy",
        source="Theorem F.8",
    ),
    erratum(
        "E10",
        "Terms j >= 3 of the amplification bound do not vanish with more noise.",
        Rate("", q * (order - 2) * kappa**2, kappa**2, growth={kappa: 1}, at={order: 3}),
        printed=Rate(
            "",
            q * u * kappa**2 / 24,
            1,
            growth={kappa: 1},
            statement="the ratio of the third to the second term stays bounded",
        ),
        use="The full sum, at whole orders, interpolated.",
        severity="privacy",
        source="Lemma D.7, (19)",
    ),
    erratum(
        "E11",
        "F.12 has no amplification: it does not meet D.9 at lambda = 0.",
        Identity("", 8 * r * T * Lam / (32 * r**2 * T * Lam), 1 / (4 * r), statement="ratio"),
        printed=Identity("", 8 * r * T * Lam / (32 * r**2 * T * Lam), 1, statement="ratio"),
        use="B of order n, or exact accounting.",
        severity="rate",
        source="Theorems 5.1, 5.4",
    ),
    erratum(
        "E12",
        "The noise factor is not monotone in lambda.",
        Bound("", eta / (1 + eta), _q, on={lam: (0, 1)}, statement="smallest at 1/(1 + eta)"),
        printed=Bound(
            "",
            eta,
            _q,
            on={lam: (0, 1)},
            points=({eta: R(1, 10), lam: R(10, 11)},),
            statement="smallest at full correlation",
        ),
        use="lambda at most 1/(1 + eta); with the calibrated noise lambda = 0.",
        severity="rate",
        source="Remark 4.2, Section 5.1",
    ),
    erratum(
        "E13",
        "A factor R^2 in the width has no use in the proof and costs a factor 1/gamma in the rate.",
        within("", m53 * T53 * d / (n**2 * epsilon**2), "width gamma^-4"),
        printed=Bound(
            "",
            sqrt(d) / (gamma**4 * n * epsilon),
            sqrt(d) / (gamma**3 * n * epsilon),
            where=SMALL,
            points=({gamma: R(1, 10)},),
            statement="the printed rate is as good as the one without R^2",
        ),
        use="m = gamma^-4 and T = min(sqrt(n)/gamma, n epsilon gamma/sqrt(d)).",
        severity="rate",
        source="Theorem 5.2, Corollary 5.3",
    ),
    erratum(
        "E14",
        "On the second branch of T the width exceeds its upper limit by logarithms.",
        Bound(
            "",
            gamma**-6,
            n**2 * epsilon**2 / (gamma**2 * d * T**2),
            where=(Le(T, n * epsilon * gamma**2 / sqrt(d)),),
            statement="without logarithms the window is a point",
        ),
        printed=Bound(
            "",
            ell * gamma**-6,
            gamma**-6,
            where=(Ge(ell, 1),),
            points=({ell: 2},),
            statement="polylog gamma^-6 is at most gamma^-6",
        ),
        use="A logarithm in T.",
        severity="rate",
        source="Corollary 5.3",
    ),
    erratum(
        "E15",
        "delta <= 1/(gamma n) is too weak by 1/gamma.",
        Rate(
            "",
            (1 + eta56 * T56 / n) * delta56,
            1 / (gamma**2 * n),
            growth={gamma: -1, n: 1},
        ),
        settings=(delta56,),
        use="delta <= 1/n.",
        severity="rate",
        source="Corollary 5.6, Theorem E.1",
    ),
    erratum(
        "E16",
        "The bound on the loss drops the radius, of order 1/gamma.",
        Rate("", sqrt(p) + p ** R(3, 2) / gamma, 1 / gamma, growth={gamma: -1}),
        printed=Rate("", sqrt(p) + p ** R(3, 2) / gamma, 1, growth={gamma: -1}),
        use="R^2 in the fluctuation part of the width.",
        severity="rate",
        source="D.3, E.1",
    ),
    erratum(
        "E17",
        "C <= G is used where C >= G is assumed.",
        None,
        printed=Bound("", C, G, where=(Ge(C, G),)),
        use="C of the order of G.",
        source="Theorem D.14, Corollary 5.5",
    ),
    Erratum(
        "E18",
        "An unconditional failure probability is used as a conditional one.",
        Prose("E18.printed", "a conditioning step inside a proof"),
        use="Events at level delta^2 and Markov's inequality.",
    ),
    Erratum(
        "E19",
        "One delta stands for privacy and for failure.",
        Prose("E19.printed", "two meanings of one symbol"),
        use="delta_dp and delta_fail.",
        severity="privacy",
    ),
    Erratum(
        "E20",
        "The margin is a function of the private sample, and every setting depends on it.",
        Prose("E20.printed", "whether an input is public is not a formula"),
        use="A public margin.",
        severity="privacy",
    ),
    erratum(
        "E21",
        "The cross term of the risk bound is redundant.",
        Bound("", 2 * sqrt(x * u), x + u, statement="twice a geometric mean is at most the sum"),
        printed=Bound("", x + u, 2 * sqrt(x * u), points=({x: 2, u: 1},), statement="dominates"),
        use="Leave it out.",
        source="Theorem 4.1",
    ),
    erratum(
        "E22",
        "The full-batch specialization uses T = n without saying so.",
        Identity("", T / epsilon**2, n / epsilon**2, at={T: n}, statement="noise at T = n"),
        printed=Identity("", T / epsilon**2, n / epsilon**2, statement="noise for any T"),
        use="State T = n.",
        source="D.3",
    ),
    Erratum(
        "E23",
        "A list of misprints.",
        Prose("E23.printed", "names and indices"),
        use="12 beta in C.13 (ii); c_priv in C.3 and C.11; c_2 <= 1 in F.10.",
    ),
    Erratum(
        "E24",
        "F.12 outside its condition: the certificate fails, no attack is known.",
        Prose("E24.printed", "neither a proof nor a counterexample is known"),
        use="Treat it as unsupported.",
        severity="privacy",
    ),
    Erratum(
        "E25",
        "Lemma F.7 is quoted from other papers.",
        Prose("E25.printed", "an external theorem about adaptive mixtures"),
        use="Participation revealed, which needs one component only.",
        severity="privacy",
    ),
    erratum(
        "E26",
        "Theorem-compliant widths are out of reach at measured margins.",
        Bound("", gamma**-4, 10**6, on={gamma: (R(1, 30), 1)}, statement="width at margin 1/30"),
        printed=Bound(
            "",
            gamma**-4,
            10**4,
            on={gamma: (R(28, 1000), 1)},
            points=({gamma: R(28, 1000)},),
            statement="a width of 10^4 suffices at margin 0.028",
        ),
        use="Schedules as scaling laws.",
        source="width conditions",
    ),
)
