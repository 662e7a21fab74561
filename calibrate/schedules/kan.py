"""Two-layer Kolmogorov-Arnold networks by DP-SGD with correlated noise (2605.12648).

Noise ``Z_t - lambda Z_{t-1}`` on clipped batch sums; ``r = B/n`` is the sampling rate and
``kappa`` the noise on the clipped sum in units of the clip. ``gamma`` is the margin, at most 1.

>>> from dpcal.calibrate.auditing.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("E02.printed"))).status
'REFUTED'
"""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING, Any

from sympy import Ge, Le, Max, Min, Rational, diff, erfc, exp, log, sqrt

from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Erratum,
    Feasible,
    Identity,
    Priced,
    Private,
    Prose,
    Quantity,
    Rate,
    Release,
    Schedule,
    Setting,
    erratum,
    positive,
    real,
)

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

__all__ = ["SCHEDULE"]

n, d, B, T, epsilon, Lam, gamma, rho, r = positive("n d B T epsilon Lam gamma rho r")
lam, kappa_sq, growth_sq, taus, relation = positive("lam kappa_sq growth_sq taus relation")
B55, T55, eta55, m55, T53, m53, delta56, T56, eta56 = positive(
    "B55 T55 eta55 m55 T53 m53 delta56 T56 eta56"
)
eta, m, kappa, beta, c, C, G, p, x, u, v, w, t, ell = positive(
    "eta m kappa beta c C G p x u v w t ell"
)
order, q, L, nu, D = positive("order q L nu D")
U, Wt, Z, gr, De, Zp, Ws = real("U Wt Z gr De Zp Ws")
_HALF = Rational(1, 2)
_R = Rational
_SMALL = (Le(gamma, 1), Le(epsilon, 1), Ge(d, 1), Ge(n, 1))

QUANTITIES = (
    Quantity(n, "number of records"),
    Quantity(d, "input dimension"),
    Quantity(B, "batch size"),
    Quantity(T, "steps"),
    Quantity(epsilon, "target epsilon"),
    Quantity(Lam, "log(1/delta)"),
    Quantity(gamma, "margin, a public number"),
    Quantity(lam, "correlation of the noise", range="[0, 1)"),
    Quantity(r, "sampling rate B/n"),
    Quantity(relation, "1 for zero-out, 2 for replace-one"),
)

SETTINGS = (
    Setting(growth_sq, ((1 - lam**T) / (1 - lam)) ** 2, source="Lemma F.11, squared"),
    Setting(taus, r * T + sqrt(3 * r * T * log(2) + 3 * r * T * Lam), source="Lemma F.10"),
    Setting(
        kappa_sq,
        2 * relation**2 * growth_sq * taus * (log(_R(5, 2)) + Lam) / epsilon**2,
        printed=8 * growth_sq * taus * (log(_R(5, 2)) + Lam) / epsilon**2,
        source="Theorem F.12",
    ),
    Setting(T55, sqrt(n) / gamma, source="Corollary 5.5", rounding="up"),
    Setting(
        B55,
        Min(n, Max(gamma * sqrt(n), n * sqrt(epsilon / T55))),
        printed=gamma * sqrt(n),
        source="Corollary 5.5",
        rounding="up",
    ),
    Setting(eta55, Min(1, gamma**2 * sqrt(n) * epsilon / sqrt(d)), source="Corollary 5.5"),
    Setting(m55, gamma**-4, source="Corollary 5.5", rounding="up"),
    Setting(
        T53,
        Min(sqrt(n) / gamma, n * epsilon * gamma / sqrt(d)),
        printed=Min(sqrt(n) / gamma, n * epsilon * gamma**2 / sqrt(d)),
        source="Corollary 5.3",
        rounding="up",
    ),
    Setting(m53, gamma**-4, printed=gamma**-6, source="Corollary 5.3", rounding="up"),
    Setting(delta56, 1 / n, printed=1 / (gamma * n), source="Corollary 5.6"),
    Setting(T56, n**2 / (gamma**2 * B), source="Corollary 5.6", rounding="up"),
    Setting(eta56, B / n, source="Corollary 5.6"),
)

_RATES = [Fraction(1, 3), Fraction(7, 10), Fraction(19, 20)]


def _strategy(size: int, correlation: Fraction) -> list[list[Fraction]]:
    """Return C: powers of the correlation below the diagonal."""
    zero = Fraction(0)
    return [[correlation ** (t - k) if k <= t else zero for k in range(size)] for t in range(size)]


def _inverse(size: int, correlation: Fraction) -> list[list[Fraction]]:
    """Return the bidiagonal inverse of C."""
    entries = {0: Fraction(1), 1: -correlation}
    return [[entries.get(t - k, Fraction(0)) for k in range(size)] for t in range(size)]


def _product(left: list[list[Fraction]], right: list[list[Fraction]]) -> list[list[Fraction]]:
    columns = list(zip(*right, strict=True))
    return [[sum(a * b for a, b in zip(row, col, strict=True)) for col in columns] for row in left]


def _transposed(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    return [list(row) for row in zip(*matrix, strict=True)]


def _sensitivity_squared(size: int, correlation: Fraction, chosen: tuple[int, ...]) -> Fraction:
    matrix = _strategy(size, correlation)
    sums = (sum((row[k] for k in chosen), Fraction(0)) for row in matrix)
    return sum((total**2 for total in sums), Fraction(0))


def _inverse_pair(case: tuple[int, Fraction]) -> bool:
    """C times its bidiagonal inverse is the identity, on both sides."""
    size, rate = case
    unit = [[Fraction(t == k) for k in range(size)] for t in range(size)]
    a, b = _strategy(size, rate), _inverse(size, rate)
    return _product(a, b) == unit == _product(b, a)


def _row_sums(case: tuple[int, Fraction]) -> bool:
    """The last row and the first column of C sum to (1 - lam^N)/(1 - lam)."""
    size, rate = case
    matrix = _strategy(size, rate)
    expected = (1 - rate**size) / (1 - rate)
    return sum(matrix[-1]) == expected == sum(row[0] for row in matrix)


def _gram(case: tuple[int, Fraction]) -> bool:
    """Entries of C^T C in closed form."""
    size, rate = case
    matrix = _strategy(size, rate)
    gram = _product(_transposed(matrix), matrix)
    return all(
        gram[a][b] == rate ** abs(a - b) * (1 - rate ** (2 * (size - max(a, b)))) / (1 - rate**2)
        for a in range(size)
        for b in range(size)
    )


def _tridiagonal(case: tuple[int, Fraction]) -> bool:
    """(C C^T)^-1 is tridiagonal with 1 + lam^2 except for the last entry 1."""
    size, rate = case
    inverse = _inverse(size, rate)
    precision = _product(_transposed(inverse), inverse)
    return all(
        precision[a][b]
        == ((1 if a == size - 1 else 1 + rate**2) if a == b else -rate if abs(a - b) == 1 else 0)
        for a in range(size)
        for b in range(size)
    )


def _prefix_noise(case: tuple[int, Fraction]) -> bool:
    """Variance of prefix sums: 1 + (1 - lam)^2 (t - 1), and the total."""
    size, rate = case
    ones = [[Fraction(k <= t) for k in range(size)] for t in range(size)]
    rows = [sum(x**2 for x in row) for row in _product(ones, _inverse(size, rate))]
    total = size + (1 - rate) ** 2 * Fraction(size * (size - 1), 2)
    return rows == [1 + (1 - rate) ** 2 * k for k in range(size)] and sum(rows) == total


def _spectral(case: tuple[int, Fraction]) -> bool:
    """||C||_2 <= g_N by the Perron test: the row sums of C^T C are at most g_N^2."""
    size, rate = case
    matrix = _strategy(size, rate)
    bound = ((1 - rate**size) / (1 - rate)) ** 2
    return all(sum(row) <= bound for row in _product(_transposed(matrix), matrix))


def _first_is_worst(case: tuple[int, Fraction, int]) -> bool:
    """Taking part in the first k steps is the worst of all ways to take part k times."""
    size, rate, count = case
    worst = max(
        _sensitivity_squared(size, rate, chosen)
        for chosen in itertools.combinations(range(size), count)
    )
    return worst == _sensitivity_squared(size, rate, tuple(range(count)))


def _closed_sensitivity(case: tuple[int, Fraction, int]) -> bool:
    """Closed form of the squared sensitivity of the first k steps."""
    size, rate, count = case
    head = sum((((1 - rate**t) / (1 - rate)) ** 2 for t in range(1, count + 1)), Fraction(0))
    tail = ((1 - rate**count) / (1 - rate)) ** 2 * rate**2
    tail *= (1 - rate ** (2 * (size - count))) / (1 - rate**2)
    return _sensitivity_squared(size, rate, tuple(range(count))) == head + tail


def _bound_is_tight(case: tuple[int, Fraction, int]) -> bool:
    """g_N sqrt(k) is the sensitivity of k participations."""
    size, rate, count = case
    bound = ((1 - rate**size) / (1 - rate)) ** 2 * count
    return _sensitivity_squared(size, rate, tuple(range(count))) == bound


def _bound_holds(case: tuple[int, Fraction, int]) -> bool:
    """g_N sqrt(k) is at least the sensitivity of k participations."""
    size, rate, count = case
    bound = ((1 - rate**size) / (1 - rate)) ** 2 * count
    return _sensitivity_squared(size, rate, tuple(range(count))) <= bound


def _batch_variance(size: int) -> bool:
    """Variance of a batch mean without replacement, over all batches of five numbers."""
    values = [Fraction(k) for k in (3, -1, 4, 1, -5)]
    mean = sum(values) / 5
    spread = sum((x - mean) ** 2 for x in values) / 5
    means = [sum(batch) / size for batch in itertools.combinations(values, size)]
    variance = sum((x - mean) ** 2 for x in means) / len(means)
    return variance == Fraction(5 - size, size * 4) * spread


def _duality(a: Fraction) -> bool:
    """H_a(Q||P) = 1 - a + a H_{1/a}(P||Q) for two laws on four points."""
    first = [Fraction(k, 10) for k in (1, 2, 3, 4)]
    second = [Fraction(k, 10) for k in (4, 1, 3, 2)]

    def divergence(top: list[Fraction], bottom: list[Fraction], factor: Fraction) -> Fraction:
        gaps = [max(x - factor * y, Fraction(0)) for x, y in zip(top, bottom, strict=True)]
        return sum(gaps, Fraction(0))

    return divergence(second, first, a) == 1 - a + a * divergence(first, second, 1 / a)


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
    from dpcal.accountants.events import dpsgd

    return dpsgd(sampling_probability=0.1, noise_multiplier=noise_multiplier, steps=100)


_SIZES = [(size, rate) for size in (1, 2, 5) for rate in _RATES]
_PARTS = [(size, rate, k) for size in (4, 7) for rate in _RATES for k in (1, 2, 4)]

_q = (1 - lam) ** 2 + lam**2 * eta
_EFF = {"on": {lam: (0, _R(999, 1000))}}

_NOISE = (
    Enumeration("I01", _inverse_pair, _SIZES, statement="inverse pair"),
    Enumeration("I02", _row_sums, _SIZES, statement="row and column sums"),
    Enumeration("I03", _gram, _SIZES, statement="Gram matrix"),
    Enumeration("I04", _tridiagonal, _SIZES, statement="precision matrix"),
    Enumeration("I05", _prefix_noise, _SIZES, statement="noise of prefix sums"),
    Enumeration("I06", _spectral, _SIZES, statement="spectral norm"),
    Enumeration("I07", _first_is_worst, _PARTS, statement="the first k steps are worst"),
    Enumeration("I08", _closed_sensitivity, _PARTS, statement="sensitivity in closed form"),
    Identity(
        "I09",
        Wt - eta * (gr + De + c * Z - lam * c * Zp) + eta * c * Z,
        Wt + eta * c * Zp - eta * (gr + De + (1 - lam) * c * Zp),
        statement="shifted recursion: U_t = W_t + eta c Z_t",
    ),
    Identity(
        "I10",
        (U - eta * gr - Ws) ** 2,
        (U - Ws) ** 2 - 2 * eta * gr * (U - Ws) + eta**2 * gr**2,
        statement="expansion of a step's squared distance",
    ),
    Identity(
        "I16", diff(_q, lam), 0, at={lam: 1 / (1 + eta)}, statement="minimizer of the noise factor"
    ),
    Identity("I16.value", _q, eta / (1 + eta), at={lam: 1 / (1 + eta)}, statement="its minimum"),
    Identity("I16.one", _q, eta, at={lam: 1}, statement="full correlation"),
    Identity("I17", _q / (1 - lam) ** 2, 1 + eta * lam**2 / (1 - lam) ** 2, statement="calibrated"),
    Identity(
        "I17.slope",
        diff(1 + eta * lam**2 / (1 - lam) ** 2, lam),
        2 * eta * lam / (1 - lam) ** 3,
        statement="the calibrated factor grows with lambda",
    ),
    Identity(
        "I18",
        ((1 - lam) * kappa * eta * sqrt(m * d) / (B ** _R(3, 2) * sqrt(T))) ** 2,
        (1 - lam) ** 2 * eta * kappa**2 * m * d / B**2 * (eta / (B * T)),
        statement="cross term is a geometric mean",
    ),
    Identity(
        "I02.square",
        growth_sq * (1 - lam) ** 2,
        (1 - lam**T) ** 2,
        statement="squared bound on the row sums",
    ),
)

_ANALYSIS = (
    Bound(
        "I19",
        -4 * eta / 3 + 8 * beta * eta**2 + eta / 3,
        -eta / 3,
        where=(Le(eta, 1 / (12 * beta)),),
        statement="descent with eta <= 1/(12 beta)",
    ),
    Bound(
        "I19.young",
        2 * lam * eta**2 * c * u * v,
        eta / (12 * beta) * u**2 + 12 * beta * lam**2 * eta**3 * c**2 * v**2,
        statement="Young's inequality with weight 1/(12 beta)",
    ),
    Bound("I20", x / (2 - x), _R(1, 3), on={x: (0, _HALF)}, statement="curvature term"),
    Bound(
        "I21",
        eta / 2 * 8 * beta,
        _R(1, 3),
        where=(Le(eta, 1 / (12 * beta)),),
        statement="descent, independent noise",
    ),
    Bound(
        "I21.width",
        nu * (2 * u) ** 2,
        _HALF,
        at={nu: 8 * x / (64 * x * u**2)},
        statement="(21) implies the curvature condition",
    ),
    Enumeration("I22", _batch_variance, [2, 3], complete=True, statement="batch variance"),
    Bound("I23", 2 * sqrt(2), 4, statement="constants of C.8 and C.9"),
    Bound("I23.log", 1, 2 * log(2), statement="constant of C.6"),
    Bound(
        "I24",
        2 * ell * (v + L * x / 3),
        x**2,
        at={x: sqrt(2 * v * ell) + 2 * L * ell / 3},
        statement="Freedman: the closed form dominates the root",
    ),
    Identity("I25", x / 4 + x / 4 + 2 * x / 8 + 2 * x / 8, x, statement="failure budget"),
    Identity(
        "I26",
        diff(log(1 + exp(-v * (w * u) ** 3 / sqrt(m * d))), w),
        -3 * v * (w * u) ** 2 * u / (sqrt(m * d) * (1 + exp(v * (w * u) ** 3 / sqrt(m * d)))),
        statement="gradient of one unit, by the chain rule",
    ),
    Bound(
        "I27",
        1 / (1 + exp(x)),
        log(1 + exp(-x)),
        on={x: (0, 5)},
        statement="self-bounding logistic loss on [0, 5]",
    ),
    Bound("I27.second", x / (1 + x) ** 2, _R(1, 4), statement="second derivative, x = e^z"),
    Enumeration(
        "I28", _duality, [Fraction(k, 3) for k in (1, 2, 3, 4, 9)], statement="hockey-stick duality"
    ),
)

_order = 1 + 2 * Lam / epsilon
_PRIVACY = (
    Identity(
        "I11",
        8 * order * T * B**2 / (n**2 * u),
        epsilon / 2,
        at={
            order: _order,
            u: 16 * B**2 * T / (n**2 * epsilon) + 32 * B**2 * T * Lam / (n**2 * epsilon**2),
        },
        statement="algebra of D.9, given 8",
    ),
    Identity("I12", Lam / (order - 1), epsilon / 2, at={order: _order}, statement="conversion"),
    Identity(
        "I13",
        diff(4 * (exp(4 * x) - 1), x),
        16 * exp(4 * x),
        statement="first coefficient of the amplification bound at x = 1/kappa^2",
    ),
    Identity(
        "I13.eight",
        1 / (order - 1) * q**2 * order * (order - 1) / 2 * 16 / kappa**2,
        8 * order * q**2 / kappa**2,
        statement="where the 8 comes from",
    ),
    Identity(
        "I14",
        (u / (r * T)) * r * T / 3,
        Lam + log(2),
        at={u: 3 * (Lam + log(2))},
        statement="Chernoff exponent",
    ),
    Identity(
        "I14.tau",
        (taus - r * T) ** 2,
        3 * r * T * (Lam + log(2)),
        statement="deviation of the participations",
    ),
    Identity(
        "I15",
        kappa_sq,
        2 * (relation * growth_sq**_HALF) ** 2 * taus * (log(_R(5, 2)) + Lam) / epsilon**2,
        free=(growth_sq, taus),
        statement="classical Gaussian noise at sensitivity relation g sqrt(tau)",
    ),
    Identity(
        "I15.zero",
        kappa_sq * epsilon**2 / (growth_sq * taus * log(_R(5, 2)) + growth_sq * taus * Lam),
        2,
        at={relation: 1},
        free=(growth_sq, taus),
        statement="constant 2 under zero-out",
    ),
    Identity(
        "I15.replace",
        kappa_sq * epsilon**2 / (growth_sq * taus * log(_R(5, 2)) + growth_sq * taus * Lam),
        8,
        at={relation: 2},
        free=(growth_sq, taus),
        statement="constant 8 under replace-one",
    ),
    Identity("I36", 8 * r * T * Lam / (32 * r**2 * T * Lam), 1 / (4 * r), statement="no r^2"),
)

_A55 = 1 / (gamma * sqrt(n))
_B55 = sqrt(d) / (gamma**3 * n * epsilon)
_TARGET = Max(_A55, _B55)


def _within(name: str, term: Any, statement: str, **options: Any) -> Bound:
    """A term stays within the claimed rate for gamma, epsilon <= 1 <= d, n."""
    return Bound(name, term, _TARGET, where=_SMALL, statement=statement, **options)


_CORRELATED = (
    _within("I32.1", 1 / (gamma**2 * T53), "optimization term"),
    _within("I32.2", 1 / (gamma * sqrt(n * T53)), "sampling term, B = n"),
    _within("I32.4", 1 / (gamma * n * epsilon), "linear noise term"),
    _within("I32.5", m53 * T53 * d / (n**2 * epsilon**2), "quadratic noise term"),
    Bound(
        "I32.width",
        m53,
        n**2 * epsilon**2 / (gamma**2 * d * T53**2),
        where=_SMALL,
        statement="width below its upper limit",
    ),
    Bound("I32.lower", gamma**-4, m53, statement="width above its lower limit"),
    Identity(
        "I31",
        n**2 * epsilon**2 / (gamma**2 * d * T**2),
        gamma**-6,
        at={T: n * epsilon * gamma**2 / sqrt(d)},
        statement="upper limit of the width on the printed branch",
    ),
    Identity("I29.1", 1 / (gamma**2 * T55), 1 / (gamma * sqrt(n)), statement="table 3.3"),
    Identity(
        "I29.2",
        1 / (gamma**2 * u * T55),
        sqrt(d) / (gamma**3 * n * epsilon),
        at={u: gamma**2 * sqrt(n) * epsilon / sqrt(d)},
        statement="table 3.3, small step",
    ),
    Identity("I29.3", 1 / (gamma * sqrt(u * T55)), _A55, at={u: gamma * sqrt(n)}),
    Identity(
        "I29.4",
        T55 * d / (gamma**4 * n**2 * epsilon**2),
        d / (gamma**5 * n ** _R(3, 2) * epsilon**2),
    ),
    Identity("I29.5", 1 / (gamma**2 * T), 1 / (gamma * sqrt(n)), at={T: sqrt(n) / gamma}),
    Identity(
        "I29.6",
        T * d / (rho**2 * gamma**6 * n**2 * epsilon**2),
        sqrt(d) / (rho**2 * gamma**4 * n * epsilon),
        at={T: n * epsilon * gamma**2 / sqrt(d)},
        statement="table 3.2",
    ),
    _within("I30.1", 1 / (gamma**2 * eta55 * T55), "Corollary 5.5, optimization"),
    _within("I30.2", 1 / (gamma * sqrt(B55 * T55)), "Corollary 5.5, sampling"),
    _within("I30.3", 1 / (gamma * n * epsilon), "Corollary 5.5, linear noise"),
    _within("I30.4", eta55 / B55, "Corollary 5.5, variance"),
    _within("I30.5", eta55 * m55 * d * T55 / (n**2 * epsilon**2), "Corollary 5.5, quadratic noise"),
    Bound(
        "I30.gap",
        eta55 * T55 / n,
        1 / (gamma * sqrt(n)),
        statement="Corollary 5.5: generalization factor stays bounded",
    ),
    Identity("I29.m", m55, gamma**-4, statement="width of Corollary 5.5"),
    Identity("I29.T", T55 * gamma, sqrt(n), statement="one epoch at B = gamma sqrt(n)"),
    Identity(
        "I29.eta", eta55 / (sqrt(n) * epsilon), Min(1 / (sqrt(n) * epsilon), gamma**2 / sqrt(d))
    ),
    Bound(
        "I33",
        epsilon,
        B55**2 * T55 / n**2,
        where=(Le(epsilon, T55), Ge(n, 1)),
        free=(T55,),
        statement="with the larger batch r^2 T >= epsilon",
    ),
    Identity(
        "I33.kappa",
        16 * u**2 * T / (n**2 * epsilon) + 32 * u**2 * T * Lam / (n**2 * epsilon**2),
        16 + 32 * Lam / epsilon,
        at={u: n * sqrt(epsilon / T)},
        statement="D.9 with that batch",
    ),
    Identity(
        "I33.small",
        B55,
        n / (1 + u),
        free=(T55,),
        at={T55: epsilon * n * (1 + x) ** 2 / gamma**2, gamma: sqrt(n) / (1 + u)},
        statement="batch where the utility branch decides",
    ),
    Identity(
        "I32.early",
        T53,
        sqrt(n) / gamma,
        at={d: n * epsilon**2 * gamma**4 / (1 + x) ** 2},
        statement="steps where sampling decides",
    ),
    Identity(
        "I32.late",
        T53,
        sqrt(n) / (gamma * (1 + x)),
        at={d: n * epsilon**2 * gamma**4 * (1 + x) ** 2},
        statement="steps where privacy decides",
    ),
    Feasible(
        "I33.batch",
        (Le(B55, n), Le(1, B55)),
        where=(Ge(n, 1), Ge(gamma * sqrt(n), 1)),
        free=(T55,),
        statement="1 <= B <= n",
    ),
    Identity("I37", eta56 * T56, n / gamma**2, statement="Corollary 5.6: total step"),
    Identity("I37.1", 1 / (gamma**2 * eta56 * T56), 1 / n, statement="Corollary 5.6"),
    Identity("I37.2", 1 / (gamma * sqrt(B * T56)), 1 / n, statement="Corollary 5.6"),
    Identity("I37.3", eta56 / B, 1 / n, statement="Corollary 5.6"),
    Rate(
        "I35",
        (1 + eta56 * T56 / n) * delta56,
        1 / (gamma**2 * n),
        growth={gamma: -1, n: 1},
        statement="failure probability within the claimed population rate",
    ),
    Identity("I35.delta", delta56 * n, 1, statement="failure probability of Corollary 5.6"),
)


def _tail(x: Any, mean: Any, std: Any) -> Any:
    """P(N(mean, std^2) > x)."""
    return erfc((x - mean) / (std * sqrt(2))) / 2


_r, _e = _R(1, 10), exp(1)
_ATTACK = (
    _r * _tail(t, 2, 1)
    + (1 - _r) * _tail(t, 0, 1)
    - _e * (_r * _tail(t, 1, 1) + (1 - _r) * _tail(t, 0, 1))
)
_CUT = log((_e - 1 + _r) / _r) + _HALF
_PAIR = _r * _tail(_CUT, 1, 1) + (1 - _r) * _tail(_CUT, 0, 1) - _e * _tail(_CUT, 0, 1)
_REVEALED = _r * (_tail(_HALF, 0, 1) - _e * _tail(3 * _HALF, 0, 1))
_D9 = sqrt(16 * _r**2 + 32 * _r**2 * log(10**5))
_D9_ATTACK = _r * _tail(t, 2, _D9) + (1 - _r) * _tail(t, 0, _D9) - _e * _tail(t, 0, _D9)

_ERRATA = (
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
            points=({t: _R(29, 10)},),
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
            _R(1, 10**5),
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
        Enumeration("", _bound_holds, _PARTS, statement="an upper bound it is"),
        printed=Enumeration("", _bound_is_tight, _PARTS, statement="the bound is attained"),
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
            points=({eta: _R(1, 10), lam: _R(10, 11)},),
            statement="smallest at full correlation",
        ),
        use="lambda at most 1/(1 + eta); with the calibrated noise lambda = 0.",
        severity="rate",
        source="Remark 4.2, Section 5.1",
    ),
    erratum(
        "E13",
        "A factor R^2 in the width has no use in the proof and costs a factor 1/gamma in the rate.",
        _within("", m53 * T53 * d / (n**2 * epsilon**2), "width gamma^-4"),
        printed=Bound(
            "",
            sqrt(d) / (gamma**4 * n * epsilon),
            sqrt(d) / (gamma**3 * n * epsilon),
            where=_SMALL,
            points=({gamma: _R(1, 10)},),
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
        Rate("", sqrt(p) + p ** _R(3, 2) / gamma, 1 / gamma, growth={gamma: -1}),
        printed=Rate("", sqrt(p) + p ** _R(3, 2) / gamma, 1, growth={gamma: -1}),
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
        Bound("", gamma**-4, 10**6, on={gamma: (_R(1, 30), 1)}, statement="width at margin 1/30"),
        printed=Bound(
            "",
            gamma**-4,
            10**4,
            on={gamma: (_R(28, 1000), 1)},
            points=({gamma: _R(28, 1000)},),
            statement="a width of 10^4 suffices at margin 0.028",
        ),
        use="Schedules as scaling laws.",
        source="width conditions",
    ),
)

SCHEDULE = Schedule(
    name="kan",
    title="Kolmogorov-Arnold networks by DP-SGD with correlated noise",
    citation=(
        "Wang, Schuchardt, Kalinin, Zhou, Fellenz, Lampert, Kloft: Population Risk Bounds for "
        "Kolmogorov-Arnold Networks Trained by DP-SGD with Correlated Noise, arXiv 2605.12648"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=(*_NOISE, *_ANALYSIS, *_PRIVACY, *_CORRELATED),
    errata=_ERRATA,
)
