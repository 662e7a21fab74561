"""Private non-convex optimization under the Kurdyka-Lojasiewicz condition (Menart et al.).

``F(w) - F* <= gamma^kappa ||grad F(w)||^kappa``, and four algorithms: KL Spider (1), private
proximal point (2), adaptive noisy gradient descent (3) and projected noisy descent for a
regularized loss (4).

>>> from dpcal.calibrate.auditing.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("EP1.printed"))).status
'REFUTED'
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from sympy import Ge, Gt, Le, Lt, Max, Min, Rational, erfc, exp, log, oo, sqrt

from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Erratum,
    Feasible,
    Identity,
    Private,
    Prose,
    Quantity,
    Rate,
    Release,
    Schedule,
    Setting,
    Units,
    erratum,
    positive,
    real,
)

__all__ = ["SCHEDULE"]

n, d, rho, beta, F0, gamma, kappa, L0, L1, Ltil = positive("n d rho beta F0 gamma kappa L0 L1 Ltil")
X, a, c, R, K, beta_k, level = positive("X a c R K beta_k level")
Phi, Phi_before, T_k, m, h = positive("Phi Phi_before T_k m h")
D0, D_k, D0_ar, D_k_ar = positive("D0 D_k D0_ar D_k_ar")
sigma_hat, sigma_k, sigma_0, sigma_1 = positive("sigma_hat sigma_k sigma_0 sigma_1")
T, t, T_prox, lam, y, level_prox, A, Lam = positive("T t T_prox lam y level_prox A Lam")
T_in, ell_in, sigma_in, eta_in = positive("T_in ell_in sigma_in eta_in")
N, ell, N_t, sigma_t, charge, sigma_norm = positive("N ell N_t sigma_t charge sigma_norm")
s_n, G, s, W, J, p_max, main_term = positive("s_n G s W J p_max main_term")
tau, x, r, D, Delta, epsilon, u, v, Nz, rho_sel = positive("tau x r D Delta epsilon u v Nz rho_sel")
noise, inner, w = real("noise inner w")

_HALF = Rational(1, 2)
_TO_TWO = {kappa: (1, 2)}
_FROM_TWO = {kappa: (2, oo)}
_ROOT = Phi ** (1 / kappa)
_START = F0 ** (1 / kappa)
_LOG = log(1 / beta_k)
_GAIN = F0 ** ((2 - kappa) / kappa)
_DRIFT = F0 ** ((kappa - 1) / kappa)

QUANTITIES = (
    Quantity(tau, "growth exponent of the lower bound", range="(1, oo)"),
    Quantity(n, "number of records"),
    Quantity(d, "dimension"),
    Quantity(rho, "zCDP budget"),
    Quantity(beta, "failure probability"),
    Quantity(beta_k, "failure probability of one answer", range="(0, 1)"),
    Quantity(kappa, "KL exponent"),
    Quantity(F0, "public bound on the initial excess risk", {"loss": 1}),
    Quantity(gamma, "KL constant", {"loss": 1 / kappa - 1, "parameter": 1}),
    Quantity(L0, "Lipschitz constant", {"loss": 1, "parameter": -1}),
    Quantity(L1, "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity(Ltil, "weak convexity constant", {"loss": 1, "parameter": -2}),
    Quantity(Phi, "target excess risk of a round", {"loss": 1}),
    Quantity(m, "gradient differences released in a round"),
    Quantity(K, "number of rounds"),
    Quantity(T, "number of steps"),
    Quantity(t, "index of a step"),
    Quantity(ell, "logarithmic factor"),
    Quantity(ell_in, "logarithmic factor"),
    Quantity(Lam, "logarithmic factor"),
    Quantity(A, "constant of the inner solver"),
    Quantity(N_t, "noisy gradient norm", {"loss": 1, "parameter": -1}),
    Quantity(s_n, "bound on the norm noise", {"loss": 1, "parameter": -1}),
    Quantity(p_max, "number of phases"),
)

SETTINGS = (
    Setting(X, sqrt(d) / (n * sqrt(rho)), source="rate variable"),
    Setting(a, F0 ** (-(2 - kappa) / kappa) * gamma**2 * L1, source="condition number"),
    Setting(c, 1 + 1 / (64 * a), source="Algorithm 1"),
    Setting(R, F0 / (gamma * L0 * X) ** kappa, source="Algorithm 1"),
    Setting(K, (1 + 64 * a) * log(R), source="Algorithm 1", rounding="up"),
    Setting(
        beta_k,
        beta / K * (gamma * L0 * sqrt(K) * X / _START) ** (2 - kappa),
        source="Algorithm 1, beta'",
    ),
    Setting(level, (32 * gamma * L0 * sqrt(K * _LOG) * X) ** kappa, source="Algorithm 1, floor"),
    Setting(
        T_k,
        (F0 / Phi) ** ((2 - kappa) / kappa),
        printed=(F0 / Phi) ** ((kappa - 2) / 2),
        source="Algorithm 1; the proof of Theorem 1 prints another exponent",
        rounding="up",
    ),
    Setting(h, _ROOT / (4 * gamma * L1), source="Algorithm 1, step length"),
    Setting(D0, 2 * L0 / n, printed=L0 / n, source="sensitivity of the mean gradient"),
    Setting(D_k, 2 * L1 * h / n, printed=_ROOT / n, source="Lemma 8, sensitivity of a difference"),
    Setting(D0_ar, L0 / n, source="the same, add or remove"),
    Setting(D_k_ar, L1 * h / n, source="the same, add or remove"),
    Setting(sigma_hat, L0 * sqrt(K) / (n * sqrt(rho)), source="Algorithm 1, printed noise"),
    Setting(
        sigma_k,
        _ROOT * sqrt(T_k * K) / (gamma * n * sqrt(rho)),
        source="Algorithm 1, printed noise",
    ),
    Setting(sigma_0, sqrt(D0 * (D0 + m * D_k) * K / (2 * rho)), source="exact split of a round"),
    Setting(sigma_1, sqrt(D_k * (D0 + m * D_k) * K / (2 * rho)), source="exact split of a round"),
    Setting(
        lam,
        Max(Ltil, Phi ** ((2 - kappa) / kappa) / (8 * gamma**2)),
        printed=Ltil,
        source="Algorithm 2, proximal weight",
    ),
    Setting(
        T_prox,
        Max(8, 64 * F0 ** ((kappa - 2) / kappa) * gamma**2 * Ltil) * log(R),
        printed=(1 + 32 * F0 ** ((kappa - 2) / kappa) * gamma**2 * Ltil) * log(R),
        source="Algorithm 2",
        rounding="up",
    ),
    Setting(y, Phi ** ((2 - kappa) / kappa) / (32 * lam * gamma**2), source="Algorithm 2"),
    Setting(
        level_prox,
        (8 * sqrt(A) * gamma * L0 * X * sqrt(T * Lam)) ** kappa,
        source="Algorithm 2, floor",
    ),
    Setting(T_in, n**2 * rho * ell_in**2 / d, source="Algorithm 4", rounding="up"),
    Setting(
        sigma_in,
        sqrt(2 * (T - 1) / rho) * L0 / n,
        printed=2 * L0 * sqrt(T / rho) / n,
        source="Algorithm 4, noise",
    ),
    Setting(eta_in, 2 / (Ltil * (t + 1)), printed=1 / (Ltil * t), source="Algorithm 4, step"),
    Setting(sigma_norm, L0 / (sqrt(n) * rho ** Rational(1, 4)), source="Algorithm 3, norm noise"),
    Setting(sigma_t, N_t / sqrt(d * ell), source="Algorithm 3, gradient noise above its floor"),
    Setting(
        charge,
        D0**2 / (2 * sigma_t**2),
        printed=L0**2 * d * ell / (n**2 * N_t**2),
        source="Algorithm 3, budget charged for a gradient",
    ),
    Setting(
        main_term,
        F0 ** ((2 - kappa) / (4 - kappa))
        * (gamma * L0 * sqrt(d * ell * p_max) / (n * sqrt(rho))) ** (2 * kappa / (4 - kappa)),
        printed=(gamma * L0 * sqrt(d * ell * p_max) / (n * sqrt(rho))) ** (2 * kappa / (4 - kappa)),
        source="Theorem 4, first term",
    ),
)


def _recursion_is_maximum(case: tuple[Fraction, int, int]) -> bool:
    """Phi_k = max(c^-k F0, floor) solves the recursion, for F0 = 1."""
    contraction, inverse, rounds = case
    lowest = Fraction(1, inverse)
    value = Fraction(1)
    for _ in range(rounds):
        value = max(value / contraction, lowest)
    return value == max(contraction**-rounds, lowest)


def _weights_sum_to_one(steps: int) -> bool:
    """The weights 2 t / (T (T + 1)) of Algorithm 4 sum to one."""
    return sum(Fraction(2 * k, steps * (steps + 1)) for k in range(1, steps + 1)) == 1


def _literal_loop_count(steps: Fraction) -> bool:
    """``while t <= T`` makes at most T steps."""
    taken = 0
    while taken <= steps:
        taken += 1
    return taken <= steps


def _repaired_loop_count(steps: Fraction) -> bool:
    """``while t < ceil(T)`` makes ceil(T) steps, and releases one difference less."""
    taken, releases, limit = 0, 0, max(1, ceil(steps))
    while taken < limit:
        taken += 1
        releases += taken < limit
    return taken == limit and releases == limit - 1


def _printed_restart(case: tuple[int, int]) -> bool:
    """The next round starts at a tested iterate: index t - 1 after leaving at t."""
    limit, leaves_at = case
    index = min(leaves_at, limit) - 1
    return index == min(leaves_at, limit)


def _repaired_restart(case: tuple[int, int]) -> bool:
    """Index t after leaving at t is defined and was tested, or ends a full round."""
    limit, leaves_at = case
    index = min(leaves_at, limit)
    return 0 <= index <= limit


def _first_round_is_defined(start: int) -> bool:
    """The loop over rounds begins with the round that was initialized."""
    return start == 1


def _unbounded_filter(costs: tuple[int, ...]) -> bool:
    """Testing past cost only keeps the total within a budget of 8."""
    total = 0
    for cost in costs:
        if total > 8:
            break
        total += cost
    return total <= 8


def _strict_filter(costs: tuple[int, ...]) -> bool:
    """Testing the total including the coming release keeps it within a budget of 8."""
    total = 0
    for cost in costs:
        if total + cost > 8:
            break
        total += cost
    return total <= 8


_COSTS = [(3, 3, 3, 3), (8, 1), (1,) * 12, (5, 2, 2, 9), (7, 8)]

_SCHEDULE = (
    Identity("A1", T_k * Phi ** (2 / kappa), _GAIN * Phi, statement="work of a round"),
    Identity("A2", T_k * _ROOT, _GAIN * Phi ** ((kappa - 1) / kappa), statement="path of a round"),
    Bound(
        "A2.cap",
        T_k * _ROOT,
        _START,
        where=(Le(Phi, F0),),
        on=_TO_TWO,
        statement="the path of a round is at most F0^(1/kappa)",
    ),
    Identity(
        "A3",
        sqrt(T_k) * sigma_k,
        sqrt(K) / (gamma * n * sqrt(rho)) * _GAIN * Phi ** ((kappa - 1) / kappa),
        free=(K,),
        statement="accumulated noise of a round's differences",
    ),
    Identity("A4", 4 * L1 * h, _ROOT / gamma, statement="step length, whatever the data"),
    Identity(
        "A4.eta", h / (Rational(7, 8) * _ROOT / gamma), 2 / (7 * L1), statement="largest step size"
    ),
    Bound("A5", Rational(1, 64), Rational(7, 8) / 16 - Rational(1, 256), statement="Lemma 9"),
    Identity("A6", 1 - (c - 1) / c, 1 / c, free=(c,), statement="contraction per round"),
    Bound(
        "A6.decrease",
        u / (1 + u) * Phi_before,
        u * Phi,
        where=(Le(Phi_before / (1 + u), Phi),),
        statement="the decrease of a round pays for its contraction (u = c - 1)",
    ),
    Identity(
        "A7",
        c / (c - 1),
        1 + 64 * F0 ** (-(2 - kappa) / kappa) * gamma**2 * L1,
        statement="rounds needed per factor e",
    ),
    Bound(
        "A8",
        u / (1 + u),
        log(1 + u),
        on={u: (Rational(1, 64), 64)},
        statement="log(1 + u) >= u/(1 + u) makes K sufficient",
    ),
    Identity(
        "A9",
        K / log(R),
        c / (c - 1),
        statement="K is the rounds per factor e times log R",
        where=(Gt(R, 1),),
    ),
    Identity(
        "A9.R",
        log(R),
        log(F0) + kappa * log(n * sqrt(rho) / (gamma * L0 * sqrt(d))),
        statement="the bracket of K as the paper prints it",
    ),
    Enumeration(
        "A10",
        _recursion_is_maximum,
        [(Fraction(p, 8), q, k) for p in (9, 12, 20) for q in (3, 50, 4000) for k in (1, 5, 17)],
        statement="Phi_k = max(c^-k F0, floor) solves the recursion",
    ),
    Identity(
        "A11",
        4 * L0 * sqrt(K * d * _LOG) / (n * sqrt(rho)),
        level ** (1 / kappa) / (8 * gamma),
        free=(K, beta_k),
        at={beta_k: exp(-ell)},
        statement="at the floor the gradient error bound meets the stop test",
    ),
    Identity(
        "A12",
        K * (F0 / (gamma * L0 * sqrt(K) * X) ** kappa) ** ((2 - kappa) / kappa) * beta_k,
        beta,
        free=(K,),
        statement="beta' times the number of estimates is beta",
    ),
    Identity(
        "A13",
        K * _START / (4 * gamma * L1),
        (_START / (4 * gamma * L1) + 16 * gamma * _DRIFT) * log(R),
        statement="radius of the trajectory, Lemma 1",
    ),
    Identity(
        "A14",
        a,
        gamma**kappa * L1 / L0 ** (2 - kappa),
        at={F0: (gamma * L0) ** kappa},
        statement="condition number when nothing better than Lipschitz is known of F0",
    ),
    Identity("A15.steps", T_k, 1, at={kappa: 2}, statement="kappa = 2: one step per round"),
    Identity("A15.c", c, 1 + 1 / (64 * gamma**2 * L1), at={kappa: 2}, statement="kappa = 2"),
    Identity(
        "A15.sigma",
        sigma_k,
        sqrt(Phi * K) / (gamma * n * sqrt(rho)),
        at={kappa: 2},
        free=(K,),
        statement="kappa = 2: noise of a difference",
    ),
    Identity("A15.one", T_k, F0 / Phi, at={kappa: 1}, statement="kappa = 1: F0/Phi steps"),
    Identity(
        "A15.beta",
        beta_k,
        beta * gamma * L0 * sqrt(K) * X / (K * F0),
        at={kappa: 1},
        free=(K, X),
        statement="kappa = 1: failure probability per estimate",
    ),
    Feasible(
        "A16",
        (Le(1, T_k), Le(h, _START / (4 * gamma * L1))),
        where=(Le(Phi, F0),),
        on=_TO_TWO,
        statement="a round makes at least one step, no longer than the first round's",
    ),
    Identity("A17", X, sqrt(d / rho) / n, statement="rate variable"),
)

_PRIVACY = (
    Identity("B1", D0**2 / (2 * sigma_hat**2), 2 * rho / K, free=(K,), statement="round start"),
    Identity(
        "B1.ar",
        D0_ar**2 / (2 * sigma_hat**2),
        rho / (2 * K),
        free=(K,),
        statement="round start, add or remove",
    ),
    Identity(
        "B2",
        D_k**2 / (2 * sigma_k**2),
        rho / (8 * K * T_k),
        free=(K, T_k),
        statement="one difference, printed noise",
    ),
    Identity(
        "B2.ar",
        D_k_ar**2 / (2 * sigma_k**2),
        rho / (32 * K * T_k),
        free=(K, T_k),
        statement="one difference, printed noise, add or remove",
    ),
    Identity(
        "B3",
        K * (D0**2 / (2 * sigma_hat**2) + T_k * D_k**2 / (2 * sigma_k**2)),
        Rational(17, 8) * rho,
        free=(K, T_k),
        statement="printed noise, replace-one: 17/8 of the budget",
    ),
    Private(
        "B3.ar",
        (Release(D0_ar, sigma_hat, K), Release(D_k_ar, sigma_k, K * T_k)),
        rho=Rational(17, 32) * rho,
        neighboring_relation="add-or-remove-one",
        free=(K, T_k),
        statement="printed noise, add or remove with a public n: 17/32 of the budget",
    ),
    Identity(
        "B3.loop",
        (K * D0**2 / (2 * sigma_hat**2) + K * (T_k + 1) * D_k**2 / (2 * sigma_k**2)) / rho,
        Rational(9, 4),
        at={kappa: 2},
        free=(K,),
        statement="printed loop at kappa = 2: 9/4 of the budget",
    ),
    Identity(
        "B5.total",
        K * (D0**2 / (2 * sigma_0**2) + m * D_k**2 / (2 * sigma_1**2)),
        rho,
        free=(K,),
        statement="the exact split costs exactly rho",
    ),
    Identity(
        "B5.ratio",
        sigma_0**2 / sigma_1**2,
        D0 / D_k,
        free=(K,),
        statement="stationarity of the split: variances in proportion to sensitivities",
    ),
    Identity(
        "B5.variance",
        sigma_0**2 + m * sigma_1**2,
        (D0 + m * D_k) ** 2 * K / (2 * rho),
        free=(K,),
        statement="accumulated variance of the exact split",
    ),
    Bound(
        "B6",
        T_k * D_k,
        L0 / (2 * n),
        where=(Le(Phi, F0), Le(F0, (gamma * L0) ** kappa)),
        on=_TO_TWO,
        statement="the differences of a round add at most L0/(2 n) of sensitivity",
    ),
    Bound("B6.constant", Rational(5, 2) / sqrt(2), 2, statement="so the floor constant 32 stays"),
    Identity("B7", D0**2 / (2 * (4 * L0**2 * T / (n**2 * rho))), rho / (2 * T), statement="Alg 4"),
    Private(
        "B7.total",
        (Release(D0, sigma_in, T - 1),),
        rho=rho,
        where=(Ge(T, 2),),
        statement="Algorithm 4 with exact noise is rho-zCDP under replace-one",
    ),
    Identity(
        "B7.exact",
        (T - 1) * D0**2 / (2 * sigma_in**2),
        rho,
        statement="Algorithm 4 with exact noise spends all of rho",
        where=(Gt(T, 1),),
    ),
    Identity("B8.norm", D0**2 / (2 * sigma_norm**2), 2 * sqrt(rho) / n, statement="cost of a norm"),
    Identity(
        "B8.norm.ar",
        D0_ar**2 / (2 * sigma_norm**2),
        sqrt(rho) / (2 * n),
        statement="cost of a norm, add or remove",
    ),
    Identity(
        "B8.gradient",
        charge,
        2 * L0**2 * d * ell / (n**2 * N_t**2),
        statement="cost of a gradient of Algorithm 3",
    ),
    Identity(
        "B8.switch",
        L0**2 * d * ell / (n**2 * N_t**2),
        rho / 4,
        at={N_t: 2 * L0 * sqrt(d * ell) / (n * sqrt(rho))},
        statement="where the two branches of sigma_t meet",
    ),
    Identity("B9", n * sqrt(rho) / (2 * L0) * 2 * D0_ar, sqrt(rho), statement="selection, AR"),
    Identity("B9.ro", n * sqrt(rho) / (2 * L0) * 2 * D0, 2 * sqrt(rho), statement="selection, RO"),
)

_Y = Phi ** ((2 - kappa) / kappa) / (32 * u * gamma**2)
_TAU = A * L0**2 * X**2 * T * Lam

_PROXIMAL = (
    Identity(
        "C1",
        (1 + x) / x,
        1 + 32 * F0 ** ((kappa - 2) / kappa) * gamma**2 * Ltil,
        at={x: F0 ** ((2 - kappa) / kappa) / (32 * gamma**2 * Ltil)},
        statement="stages per factor e of the printed Algorithm 2",
    ),
    Identity(
        "C2",
        Ltil / 4 * (_ROOT / (2 * gamma * Ltil)) ** 2,
        Phi ** (2 / kappa) / (16 * gamma**2 * Ltil),
        statement="decrease forced by the KL condition",
    ),
    Identity("C3", Phi ** (2 / kappa), Phi ** ((2 - kappa) / kappa) * Phi, statement="exponents"),
    Bound(
        "C3.contraction",
        1 / u,
        u ** (-2 / kappa),
        where=(Ge(u, 1),),
        on=_FROM_TWO,
        statement="c^(-2/kappa) >= 1/c for kappa >= 2",
    ),
    Identity("C4", L0 + 2 * u * L0 / (2 * u), 2 * L0, statement="Lipschitz constant on the ball"),
    Enumeration("C5", _weights_sum_to_one, list(range(1, 40)), statement="weights sum to 1"),
    Identity(
        "C6",
        t * (1 / (2 * eta_in) - Ltil / 2) - (t - 1) / (2 * eta_in.subs(t, t)) * t / (t + 1),
        0,
        statement="the weighted descent sum telescopes",
    ),
    Identity("C7.noise", u**2 / 2, 2 * L0**2 * ell_in**2 / d, at={u: 2 * L0 * ell_in / sqrt(d)}),
    Identity(
        "C7.rate",
        4 * L0**2 * ell_in**2 / (Ltil * T_in),
        4 * L0**2 * d / (Ltil * n**2 * rho),
        statement="noise term of Lemma 3",
    ),
    Identity(
        "C7.tail",
        L0**2 / (Ltil * T_in),
        L0**2 * d / (Ltil * n**2 * rho * ell_in**2),
        statement="deterministic term of Lemma 3",
    ),
    Identity("C8", Rational(2, 3) * -_HALF + Rational(1, 3), 0, statement="the distance cancels"),
    Identity(
        "C9",
        _Y,
        Rational(1, 4),
        at={u: Phi ** ((2 - kappa) / kappa) / (8 * gamma**2)},
        statement="largest contraction of a stage",
    ),
    Identity(
        "C9.weight",
        y,
        Rational(1, 4),
        at={Ltil: Phi ** ((2 - kappa) / kappa) / (8 * gamma**2 * (1 + x))},
        statement="the staged weight contracts by the most wherever Ltil is smaller",
    ),
    Bound("C9.cap", y, Rational(1, 4), on=_FROM_TWO, statement="y is at most 1/4"),
    Bound(
        "C9.half", Phi / 4, 4 ** (-2 / kappa) * Phi, on=_FROM_TWO, statement="splitting at Phi/4"
    ),
    Identity(
        "C10",
        _Y * Phi / 2,
        Phi ** (2 / kappa) / (64 * u * gamma**2),
        statement="allowed error of the inner solver",
    ),
    Identity(
        "C10.floor",
        Phi ** (2 / kappa) / (64 * gamma**2),
        _TAU,
        at={Phi: (8 * sqrt(A) * gamma * L0 * X * sqrt(T * Lam)) ** kappa},
        statement="the repaired floor is where the inner solver's error fits",
    ),
    Identity(
        "C10.level",
        level_prox ** (2 / kappa) / (64 * gamma**2),
        A * L0**2 * d * T * Lam / (n**2 * rho),
        statement="the floor setting is that value",
    ),
    Identity(
        "C11",
        (32 * gamma**2 * Ltil * u) ** (kappa / 2),
        u,
        at={u: (32 * gamma**2 * Ltil) ** (-kappa / (kappa - 2))},
        statement="where the printed floor falls below the inner error",
        where=(Gt(kappa, 2),),
    ),
    Bound(
        "C12",
        u / 2,
        -log(1 - u / 2),
        on={u: (Rational(1, 100), Rational(1, 4))},
        statement="log(1/(1 - y/2)) >= y/2",
    ),
    Identity(
        "C12.stages",
        T_prox / log(R),
        Max(8, 2 / (F0 ** ((2 - kappa) / kappa) / (32 * Ltil * gamma**2))),
        statement="stages are 2/y at the smallest y",
        where=(Gt(R, 1),),
    ),
    Identity(
        "C13",
        2 * (4 * L0**2 + d * 2 * L0**2 * T_in / (n**2 * rho)) / (u * T_in),
        (4 + 8 / ell_in**2) * L0**2 * d / (u * n**2 * rho),
        statement="Algorithm 4 in expectation",
    ),
)

_X05 = 3 * G**2 / (8 * L1) + inner / (4 * L1) - noise / (8 * L1)

_ADAPTIVE = (
    Identity(
        "D1",
        _X05,
        (G**2 - noise) / (4 * L1) + (G**2 + 2 * inner + noise) / (8 * L1),
        statement="exact descent with step 1/(2 L1); noise = ||e||^2, inner = <grad F, e>",
    ),
    Identity("D2", _X05, 0, at={inner: -(G**2), noise: G**2}, statement="no step, no descent"),
    Bound(
        "D3",
        (G**2 - s**2) / (8 * L1),
        (G**2 - v**2) / (4 * L1),
        at={v: sqrt((G**2 + s**2) / 2)},
        statement="halved noise gives the claimed descent",
    ),
    Bound("D3.square", (G + s) ** 2, 2 * G**2 + 2 * s**2, statement="square of a sum"),
    Identity(
        "D4",
        J * (Phi / u) ** (2 / kappa) / (16 * gamma**2 * L1),
        (u - 1) / u * Phi,
        at={
            J: (u * F0 / Phi) ** ((2 - kappa) / kappa),
            L1: _GAIN / (16 * gamma**2 * (u - 1)),
        },
        statement="steps per phase",
        where=(Gt(u, 1),),
    ),
    Identity(
        "D6", Phi ** ((kappa - 2) / kappa) * Phi ** (-2 / kappa), Phi ** ((kappa - 4) / kappa)
    ),
    Identity(
        "D7",
        Phi ** ((4 - kappa) / kappa),
        _GAIN * W**2,
        at={Phi: F0 ** ((2 - kappa) / (4 - kappa)) * W ** (2 * kappa / (4 - kappa))},
        statement="solving the privacy term for the excess risk",
        where=(Lt(kappa, 4),),
    ),
    Identity(
        "D7.main",
        main_term ** ((4 - kappa) / kappa),
        _GAIN * gamma**2 * L0**2 * d * ell * p_max / (n**2 * rho),
        statement="the main term solves it",
        where=(Lt(kappa, 4),),
    ),
    Identity("D8", (1 + x) / x, 1 + 8 * gamma**2 * L1, at={x: 1 / (8 * gamma**2 * L1)}),
    Identity(
        "D9",
        (sqrt(N ** (2 * (2 - kappa) / (4 - kappa))) / N) ** kappa,
        N ** (-2 * kappa / (4 - kappa)),
        statement="norm budget when kappa is known",
        where=(Lt(kappa, 4),),
    ),
    Identity("D10", sigma_t**2 * d * ell, N_t**2, statement="gradient noise follows the norm"),
)

_RATES = (
    Identity("E1.one", 2 * kappa / (4 - kappa), Rational(2, 3), at={kappa: 1}),
    Identity("E1.two", 2 * kappa / (4 - kappa), 2, at={kappa: 2}),
    Bound("E1.gap", 2 * kappa / (4 - kappa), kappa, on=_TO_TWO, statement="price of adaptivity"),
    Rate(
        "E2",
        (sqrt(d) / N) ** (2 * kappa / (4 - kappa)) + N ** (-kappa / 2),
        N ** (-kappa / 2),
        growth={N: 1},
        on=_TO_TWO,
        statement="at fixed d the second term of Theorem 4 dominates",
    ),
    Identity(
        "E2.switch",
        (sqrt(d) / N) ** (2 * kappa / (4 - kappa)),
        N ** (-kappa / 2),
        at={d: N ** (kappa / 2)},
        statement="the terms meet at d = N^(kappa/2)",
        where=(Lt(kappa, 4),),
    ),
    Bound(
        "E3", kappa / 2, kappa / (2 - kappa), on={kappa: (1, Rational(199, 100))}, statement="E3"
    ),
    Bound(
        "E3.third",
        2 * kappa / (4 - kappa),
        kappa / (2 - kappa),
        on={kappa: (1, Rational(199, 100))},
        statement="the third term never dominates",
    ),
    Identity("E4", tau / (tau - 1), kappa, at={tau: kappa / (kappa - 1)}, where=(Gt(kappa, 1),)),
    Identity(
        "E4.constant",
        tau ** (-1 / (tau - 1)),
        (kappa / (kappa - 1)) ** (1 - kappa),
        at={tau: kappa / (kappa - 1)},
        on={kappa: (1, oo)},
        statement="constant of Corollary 1",
        where=(Gt(kappa, 1),),
    ),
    Identity("E5", sqrt(d) / (u * N), u, at={u: sqrt(sqrt(d) / N)}, statement="Theorem 5, worst"),
)

_lam1 = (
    _HALF * 4 ** ((tau - 1) / tau) * (tau / (tau - 1)) ** (1 / tau) * Delta ** (1 / tau) / D
) ** ((tau - 1) / tau)
_c1 = tau ** (1 / (tau - 1)) * (tau - 1)

_LOWER = (
    Identity(
        "F1",
        (2 ** (-(tau - 1) / tau) * u) ** (tau / (tau - 1)),
        _HALF * 4 ** ((tau - 1) / tau) * (tau / (tau - 1)) ** (1 / tau) * Delta ** (1 / tau) / D,
        at={
            u: 4 ** ((tau - 1) ** 2 / tau**2)
            * (Delta * tau / (D**tau * (tau - 1))) ** ((tau - 1) / tau**2)
        },
        on={tau: (1, oo)},
        statement="growth constant of the first level",
    ),
    Identity(
        "F2",
        u**tau * 2 ** (tau - 2) * tau * (tau - 1) * v ** (tau - 2),
        u ** (tau / (tau - 1)) * L0 ** ((tau - 2) / (tau - 1)) * _c1,
        at={v: (L0 / (2 * tau * u**tau * 2 ** (tau - 2))) ** (1 / (tau - 1))},
        on={tau: (1, oo)},
        statement="smoothness of a level",
    ),
    Identity(
        "F3",
        (L0 / (2 * tau * u**tau * 2 ** (tau - 2))) ** (1 / (tau - 1)),
        2
        * (1 / (2 * tau ** (1 / (tau - 1))))
        * ((tau - 1) / tau) ** (1 / tau)
        * 4 ** (-(tau - 1) / tau)
        * L0 ** (1 / (tau - 1))
        * D
        / Delta ** (1 / tau),
        at={u: _lam1},
        on={tau: (1, oo)},
        statement="radius of a level",
    ),
    Identity(
        "F4",
        D * Delta ** ((tau - 1) / tau),
        L0 * D * sqrt(d) / (n * epsilon),
        at={Delta: (L0 * sqrt(d) / (n * epsilon)) ** (tau / (tau - 1))},
        statement="Delta of Theorem 6",
    ),
    Identity(
        "F5",
        (2 * u) ** (kappa / (kappa - 1)),
        2 * r * u,
        at={u: _HALF * r ** (kappa - 1)},
        statement="instance of Theorem 8",
        where=(Gt(kappa, 1),),
    ),
    Identity(
        "F5.value",
        2 * r * u,
        (1 / (n * epsilon)) ** kappa,
        at={u: _HALF * (n * epsilon) ** (1 - kappa), r: 1 / (n * epsilon)},
        statement="value of Theorem 8",
    ),
    Identity("F6.slope", 8 * u * D, 4 * Nz * L0 / n, at={u: Nz * L0 / (2 * n * D)}),
    Identity(
        "F6.margin",
        16 * u * D**2 - 4 * D * L0 * Nz / n,
        4 * Nz * L0 * D / n,
        at={u: Nz * L0 / (2 * n * D)},
        statement="margin outside the ball",
    ),
    Identity(
        "F7",
        ((kappa - 1) / (kappa * gamma) * u) ** (kappa / (kappa - 1)),
        u ** (kappa / (kappa - 1)) * (kappa - 1) / kappa,
        at={gamma: ((kappa - 1) / kappa) ** (1 / kappa)},
        on={kappa: (1, oo)},
        statement="Lemma 7 is tight on r^p/p",
        where=(Gt(kappa, 1),),
    ),
)

_UNITS = (
    Units("G.a", a, {}, statement="condition number"),
    Units("G.R", R, {}, statement="ratio of start to target"),
    Units("G.K", K, {}, statement="rounds"),
    Units("G.beta", beta_k, {}, statement="failure probability", free=(K,)),
    Units("G.T", T_k, {}, statement="steps of a round"),
    Units("G.prox", T_prox, {}, statement="stages of Algorithm 2"),
    Units(
        "G.floor",
        level,
        {"loss": 1},
        free=(K, beta_k),
        statement="floor",
    ),
    Units("G.h", h, {"parameter": 1}, statement="step length"),
    Units("G.sigma", sigma_0, {"loss": 1, "parameter": -1}, free=(K,), statement="noise"),
    Units("G.sigma1", sigma_1, {"loss": 1, "parameter": -1}, free=(K,), statement="noise"),
    Units("G.lam", lam, {"loss": 1, "parameter": -2}, statement="proximal weight"),
    Units("G.radius", K * _START / (gamma * L1), {"parameter": 1}, free=(K,), statement="radius"),
    Units("G.thm9", L0**2 * d / (Ltil * n**2 * rho), {"loss": 1}, statement="Lemma 3"),
    Units(
        "G.thm4", main_term, {"loss": 1}, statement="Theorem 4, first term", where=(Lt(kappa, 4),)
    ),
    Units(
        "G.thm5",
        sqrt(L0 * X * sqrt(F0 * L1)),
        {"loss": 1, "parameter": -1},
        statement="Theorem 5, worst case",
    ),
)

_S_AT = {sigma_t: 2 * L0 / (n * sqrt(rho))}

_PRIVACY_ERRATA = (
    erratum(
        "EP1",
        "The printed noise of Algorithm 1 costs 17/8 of its budget under the paper's own relation.",
        Private(
            "",
            (Release(D0, sigma_0, K), Release(D_k, sigma_1, K * m)),
            rho=rho,
            free=(K,),
            statement="exact split, M - 1 differences per round: rho-zCDP under replace-one",
        ),
        printed=Private(
            "",
            (Release(D0, sigma_hat, K), Release(D_k, sigma_k, K * T_k)),
            rho=rho,
            free=(K, T_k),
            statement="printed noise: rho-zCDP under replace-one",
        ),
        use="The exact split of a round's budget: rho exactly, with the same utility constants.",
        severity="privacy",
        source="Theorem 1, Lemma 8",
    ),
    erratum(
        "EP2",
        "Algorithms 1 and 3 use sensitivity L0/n, half of what replacing one record can do.",
        Bound("", 2 * L0 / n, D0, statement="replacing a record moves the mean gradient by 2 L0/n"),
        settings=(D0,),
        use="An explicit neighboring relation everywhere; 2 L0/n for replace-one.",
        severity="privacy",
        source="Lemma 8, Theorem 3",
    ),
    erratum(
        "EP3",
        "The sensitivity of a gradient difference lacks 1/gamma.",
        Bound("", 2 * L1 * _ROOT / (4 * gamma * L1 * n), D_k, statement="difference sensitivity"),
        settings=(D_k,),
        use="2 L1 h/n with the actual step length h = Phi^(1/kappa)/(4 gamma L1).",
        source="Lemma 8",
    ),
    erratum(
        "EP4",
        "The budget per release is printed as 1/K instead of rho/K.",
        Identity("", K * (rho / K), rho, free=(K,), statement="the rounds' budgets sum to rho"),
        printed=Identity("", K * (1 / K), rho, free=(K,), statement="rounds at 1/K sum to rho"),
        use="rho/K.",
        source="Lemma 8",
    ),
    erratum(
        "EP5",
        "A Gaussian release is charged (D/s)^2 instead of (D/s)^2/2.",
        Identity("", _HALF * (1 / s) ** 2, 1 / (2 * s**2), statement="zCDP of a Gaussian release"),
        printed=Identity("", (1 / s) ** 2, 1 / (2 * s**2), statement="zCDP as charged"),
        use="(D/s)^2/2; it partly hides EP2.",
        source="Lemma 8, Theorem 3",
    ),
    erratum(
        "EP6",
        "The loop 'while t <= T_k' makes floor(T_k) + 1 releases; the privacy proof counts T_k.",
        Enumeration(
            "",
            _repaired_loop_count,
            [Fraction(k, 4) for k in range(2, 30)],
            statement="t < ceil(T)",
        ),
        printed=Enumeration(
            "",
            _literal_loop_count,
            [Fraction(k, 4) for k in range(4, 30)],
            statement="'while t <= T' makes at most T steps",
        ),
        use="M = ceil(T_k), 't < M', and M - 1 difference releases.",
        severity="privacy",
        source="Algorithm 1",
    ),
    erratum(
        "EP7",
        "Algorithm 3 charges by the noisy norm even when it is negative and the noise is at "
        "its floor.",
        Bound(
            "",
            D0_ar**2 / (2 * sigma_t**2),
            charge,
            statement="charging D^2/(2 sigma_t^2) from the noise that was used covers its cost",
        ),
        printed=Bound(
            "",
            D0_ar**2 / (2 * u**2),
            Min(L0**2 * d * ell / (n**2 * N_t**2), rho / 2) + sqrt(rho) / n,
            at={u: 2 * L0 / (n * sqrt(rho))},
            points=({L0: 1, n: 10000, d: 1, rho: _HALF, ell: 12, N_t: Rational(1, 100)},),
            statement="charge at N_t < 0 (N_t stands for its size) covers the floor's cost",
        ),
        use="Charge D^2/(2 sigma_t^2) from sigma_t, never from N_t, and test before spending.",
        severity="privacy",
        source="Algorithm 3, Theorem 3",
    ),
    erratum(
        "EP8",
        "At its floor sigma_t costs rho/4 by the paper's own formula, not the rho/2 it equates.",
        Identity("", (L0 / (n * u)) ** 2, rho / 4, at={u: 2 * L0 / (n * sqrt(rho))}),
        printed=Identity("", (L0 / (n * u)) ** 2, rho / 2, at={u: 2 * L0 / (n * sqrt(rho))}),
        use="The cost of the noise that was used.",
        severity="privacy",
        source="Theorem 3, Lemmas 10 and 11",
    ),
    erratum(
        "EP9",
        "The stopping test of Algorithm 3 looks at past cost only, so the last step overshoots.",
        Enumeration("", _strict_filter, _COSTS, statement="test including the coming release"),
        printed=Enumeration("", _unbounded_filter, _COSTS, statement="test of past cost only"),
        use="A filter that refuses before spending.",
        severity="privacy",
        source="Algorithm 3",
    ),
    erratum(
        "EP10",
        "With EP7 repaired, releasing everything still costs up to 3/2 rho under replace-one.",
        Private(
            "",
            (Release(D0, D0 / sqrt(2 * (rho - u)), 1), Release(D0, D0 / sqrt(2 * u), 1)),
            rho=rho,
            where=(Le(u, rho / 2),),
            statement="a filter that charges every release stays within rho",
        ),
        printed=Bound(
            "",
            rho + 2 * sqrt(rho) / n + D0**2 / (2 * u**2),
            rho,
            at={u: 2 * L0 / (n * sqrt(rho))},
            statement="steps, last norm and last gradient fit rho",
        ),
        use="The strict filter over norms and gradients.",
        severity="privacy",
        source="Theorem 3",
    ),
    erratum(
        "EP11",
        "A vector of noise is added to a scalar norm.",
        Identity("", 1 * u**2, u**2, statement="variance of one scalar draw"),
        printed=Identity("", d * u**2, u**2, statement="squared size of a d-dimensional draw"),
        use="One scalar Gaussian.",
        source="Algorithm 3",
    ),
    Erratum(
        "EP12",
        "rho_t depends on N_t, which is released in the same round.",
        Prose("EP12.printed", "a statement about the order of conditioning, not a formula"),
        use="Norm and gradient as two rounds of the filter.",
        severity="privacy",
    ),
    erratum(
        "EP13",
        "Half of the budget of Algorithm 3 is kept for a gradient that no guarantee uses.",
        None,
        printed=Bound("", rho, rho / 2, statement="useful steps may spend rho"),
        use="The strict filter spends all of rho on useful steps.",
    ),
    erratum(
        "EP14",
        "Theorem 5 adds 2 rho by one formula; under replace-one the printed weights cost "
        "rho/2 to 2 rho.",
        Private(
            "",
            (Release(2 * L0 / n, 2 * L0 / n / sqrt(2 * rho_sel), 1),),
            rho=rho_sel,
            statement="selection within a budget reserved beforehand (Gaussian cost as a stand-in)",
        ),
        printed=Bound("", (2 * sqrt(rho)) ** 2 / 2, rho / 2, statement="selection costs rho/2"),
        use="argmin of the released norms (free), or a budgeted exponential mechanism.",
        severity="privacy",
        source="Theorem 5",
    ),
    erratum(
        "EP15",
        "Algorithm 4's printed noise is twice as large as replace-one needs.",
        Identity(
            "",
            (T - 1) * D0**2 / (2 * sigma_in**2),
            rho,
            statement="exact noise spends rho",
            where=(Gt(T, 1),),
        ),
        settings=(sigma_in,),
        use="sigma^2 = 2 L0^2 (T - 1)/(n^2 rho).",
        source="Theorem 9",
    ),
    Erratum(
        "EP16",
        "Lemma 8 assumes regularity on a ball around the data-dependent minimizer.",
        Prose("EP16.printed", "which ball is meant is a matter of wording"),
        use="The ball around w0.",
    ),
    Erratum(
        "EP17",
        "Add-or-remove with sensitivity L0/n needs a public, fixed n.",
        Prose("EP17.printed", "a convention about the normalizer"),
        use="A public n in every denominator.",
        severity="privacy",
    ),
)

_ROUNDS = [(limit, leave) for limit in (1, 3) for leave in (0, 1, 3)]

_ALGORITHM_ERRATA = (
    erratum(
        "EA1",
        "The next round starts at w_{k,t-1}, which is undefined when a round leaves at t = 0.",
        Enumeration("", _repaired_restart, _ROUNDS, statement="start at the tested iterate"),
        printed=Enumeration("", _printed_restart, _ROUNDS, statement="index t - 1 was tested"),
        use="w_{k,t}, the iterate whose gradient was just tested.",
        severity="algorithm",
        source="Algorithm 1, line 17",
    ),
    erratum(
        "EA2",
        "w_{0,0} is initialized but the first round is k = 1.",
        Enumeration("", _first_round_is_defined, [1], complete=True, statement="w_{1,0} = w0"),
        printed=Enumeration("", _first_round_is_defined, [0], statement="w_{0,0} starts round 1"),
        use="w_{1,0} = w0.",
        source="Algorithm 1",
    ),
    Erratum(
        "EA3",
        "The stop test is printed with grad_{t,k} for grad_{k,t}.",
        Prose("EA3.printed", "the order of two indices"),
        use="grad_{k,t}.",
    ),
    erratum(
        "EA4",
        "When F0 is already small the printed number of rounds is negative.",
        Bound(
            "",
            1,
            K,
            free=(X, a),
            at={F0: 3 * (gamma * L0 * X) ** kappa},
            statement="at three times the target there is at least one round",
        ),
        printed=Bound(
            "",
            0,
            K,
            free=(X, a),
            at={F0: (gamma * L0 * X) ** kappa / 3},
            statement="the number of rounds is not negative, whatever F0",
        ),
        use="Return w0 when F0 <= (gamma L0 X)^kappa or beta' >= 1/6.",
        severity="algorithm",
        source="Algorithm 1",
    ),
    erratum(
        "EA5",
        "When the floor exceeds F0, nothing prevents the output from being worse than the start.",
        Bound("", u, Phi, where=(Le(u, F0), Le(Max(Phi_before, u), Phi)), statement="Phi >= floor"),
        printed=Bound("", u, Max(Phi_before, Min(u, F0)), statement="Phi >= floor, capped at F0"),
        use="Return w0 when the floor is at least F0.",
        severity="algorithm",
        source="Lemma 2",
    ),
    Erratum(
        "EA6",
        "The budget sum of Algorithm 3 has rho_t inside a sum over j.",
        Prose("EA6.printed", "an index inside a sum"),
        use="rho_j.",
    ),
    erratum(
        "EA7",
        "The step 1/(Ltil t) of Algorithm 4 does not match the weights 2 t/(T (T + 1)).",
        Identity(
            "",
            t * (1 / (2 * eta_in) - Ltil / 2) - (t - 1) * Ltil * t / 4,
            0,
            statement="weighted terms telescope; (t-1)/(2 eta_{t-1}) = (t-1) Ltil t/4",
        ),
        printed=Identity(
            "",
            t * (1 / (2 * eta_in) - Ltil / 2) - (t - 1) * Ltil * (t - 1) / 2,
            0,
            printed=(eta_in,),
            statement="weighted terms telescope with eta_t = 1/(Ltil t)",
        ),
        use="eta_t = 2/(Ltil (t + 1)).",
        severity="rate",
        source="Algorithm 4",
    ),
    erratum(
        "EA8",
        "A convex loss has Ltil = 0, for which Algorithms 2 and 4 divide by zero.",
        Bound(
            "",
            Phi ** ((2 - kappa) / kappa) / (8 * gamma**2),
            lam,
            statement="the staged weight stays positive as Ltil goes to 0",
        ),
        settings=(lam,),
        use="The stage-dependent weight, which accepts Ltil = 0.",
        severity="algorithm",
        source="Algorithm 2",
    ),
)

_ELL4 = log(10**4 / Rational(1, 20))

_UTILITY_ERRATA = (
    erratum(
        "EU1",
        "For kappa > 2 a constant proximal weight misses the claimed rate.",
        Bound(
            "",
            Phi ** (2 / kappa) / (64 * u * gamma**2),
            _Y * Phi / 2,
            statement="allowed inner error with a stage-dependent weight",
        ),
        printed=Bound(
            "",
            u,
            (32 * gamma**2 * Ltil * u) ** (kappa / 2),
            on={kappa: (3, 4)},
            statement="the inner solver's error is below the claimed floor",
        ),
        use="lambda_t = max(Ltil, Phi^((2-kappa)/kappa)/(8 gamma^2)).",
        severity="rate",
        source="Theorem 2",
    ),
    erratum(
        "EU2",
        "The descent lemma of Algorithm 3 fails when the error cancels the gradient.",
        Identity(
            "",
            _X05,
            (G**2 - noise) / (4 * L1) + (G**2 + 2 * inner + noise) / (8 * L1),
            statement="exact form: (G^2 - E^2)/(4 L1) + ||g||^2/(8 L1)",
        ),
        printed=Bound(
            "",
            G**2 / (4 * L1) - noise / (8 * L1),
            _X05,
            at={inner: -(G**2), noise: G**2},
            statement="printed descent, at e = -grad F",
        ),
        use="(G^2 - E^2)/(4 L1) + ||g||^2/(8 L1).",
        severity="rate",
        source="Lemmas 5 and 12",
    ),
    erratum(
        "EU3",
        "(G + s)^2 is bounded by G^2 + s^2.",
        Bound("", (G + s) ** 2, 2 * G**2 + 2 * s**2),
        printed=Bound("", (G + s) ** 2, G**2 + s**2),
        use="2 G^2 + 2 s^2, and half the gradient noise.",
        severity="rate",
        source="Lemma 12",
    ),
    erratum(
        "EU4",
        "With c = 1 + 1/(8 gamma^2 L1) the phase does not contract by 1/c.",
        Identity("", 1 - (u - 1) / u, 1 / u, statement="contraction by the exact decrease"),
        printed=Identity(
            "",
            1 - 1 / (2 * u * gamma**2 * L1),
            1 / u,
            at={u: 1 + 1 / (8 * gamma**2 * L1)},
            statement="printed contraction",
        ),
        use="Threshold G >= 2 s, descent 3 G^2/(32 L1), c = 1 + 3/(32 a).",
        severity="rate",
        source="Lemma 13",
    ),
    erratum(
        "EU5",
        "The threshold of Lemma 12 guarantees G^2 >= s^2/L1, not G^2 > s^2.",
        Bound("", s, G, where=(Le(2 * s, G),), statement="threshold G >= 2 s"),
        printed=Bound("", s**2, G**2, where=(Le(s**2 / L1, G**2),), statement="printed threshold"),
        use="Threshold (2 gamma s_n)^kappa.",
        severity="rate",
        source="Lemma 12",
    ),
    erratum(
        "EU6",
        "A scalar Gaussian exceeds sqrt(ell) with probability about exp(-ell/2), not exp(-ell).",
        Bound(
            "",
            erfc(sqrt(x)),
            2 * exp(-x),
            on={x: (_HALF, 40)},
            statement="union bound at sqrt(2 x), x = log(2 Mit/beta): Mit P <= beta",
        ),
        printed=Bound(
            "",
            5000 * erfc(sqrt(_ELL4 / 2)),
            Rational(1, 20),
            statement="union bound at sqrt(ell), N = 10^4, beta = 0.05, N/2 steps",
        ),
        use="sqrt(2 log(2 Mit/beta)) for norms, sqrt(d) + sqrt(2 log(Mit/beta)) for vectors.",
        severity="rate",
        source="Lemma 10",
    ),
    erratum(
        "EU7",
        "The error bound at the floor of sigma_t lacks a factor 2.",
        Identity("", sqrt(d * ell) * u, 2 * L0 * sqrt(d * ell) / N, at={u: 2 * L0 / N}),
        printed=Identity("", sqrt(d * ell) * u, L0 * sqrt(d * ell) / N, at={u: 2 * L0 / N}),
        use="2 L0 sqrt(d ell)/N.",
        source="Lemma 10, appendix D",
    ),
    erratum(
        "EU8",
        "K_j as the last index above the threshold gives the opposite of the inequality used.",
        Bound(
            "",
            Phi,
            F0 / u**2,
            where=(Le(Phi, Phi_before / u), Le(Phi_before, F0 / u)),
            statement="two phases with the first index contract twice",
        ),
        printed=Bound("", Phi, Phi_before / u, where=(Ge(Phi, Phi_before / u),)),
        use="The first index with Phi <= Phi_{K_{j-1}}/c.",
        severity="rate",
        source="Theorem 4",
    ),
    erratum(
        "EU9",
        "1/N_t^2 <= 2/G^2 does not follow from N_t >= G - s with G >= 2 s.",
        Bound("", 1 / u**2, 4 / G**2, where=(Le(G / 2, u),)),
        printed=Bound("", 1 / u**2, 2 / G**2, where=(Le(G / 2, u),)),
        use="4/G^2.",
        source="Theorem 4",
    ),
    erratum(
        "EU10",
        "Stopping at rho/2 with N/2 norm releases leaves nothing for gradients.",
        Bound("", 2 * sqrt(rho) / n * u, rho / 2, at={u: n * sqrt(rho) / 4}),
        printed=Bound("", 2 * sqrt(rho) / n * u, rho / 2, at={u: n * sqrt(rho) / 2}),
        use="At most N/4 norm releases.",
        source="Theorem 4",
    ),
    erratum(
        "EU11",
        "Theorem 4 is not covariant in the units of loss and parameter for kappa < 2.",
        Units(
            "",
            main_term,
            {"loss": 1},
            statement="first term has the unit of a loss",
            where=(Lt(kappa, 4),),
        ),
        settings=(main_term,),
        use="The factor F0^((2-kappa)/(4-kappa)), and a instead of gamma^2 L1 in p_max.",
        severity="rate",
        source="Theorem 4",
    ),
    erratum(
        "EU11.phases",
        "The number of phases in Theorem 4 has gamma^2 L1 where the condition number a belongs.",
        Units("", 1 + Rational(32, 3) * a, {}, statement="phases per factor e"),
        printed=Units("", 1 + 8 * gamma**2 * L1, {}, statement="phases per factor e"),
        use="1 + (32/3) a.",
        severity="rate",
        source="Theorem 4",
    ),
    erratum(
        "EU12",
        "Lemma 5 prints gamma^(kappa/2) where the KL condition gives gamma^kappa.",
        Identity("", (gamma**2 * u**2) ** (kappa / 2), (gamma * u) ** kappa),
        printed=Identity("", (gamma * u**2) ** (kappa / 2), (gamma * u) ** kappa),
        use="alpha = max(F(w0), F* + (gamma s)^kappa + 2 L0 s/L1).",
        severity="rate",
        source="Lemma 5",
    ),
    erratum(
        "EU13",
        "Theorem 5 lacks the term L0 sqrt(d ell)/N of a run that stops early.",
        Rate(
            "",
            2 * L0 * sqrt(d * ell) / N + 1 / sqrt(N),
            sqrt(d) / N + 1 / sqrt(N),
            growth={N: 1, d: 3},
            statement="with the additive term",
        ),
        printed=Rate(
            "",
            2 * L0 * sqrt(d * ell) / N + 1 / sqrt(N),
            sqrt(sqrt(d) / N) + 1 / sqrt(N),
            growth={N: 1, d: 3},
            statement="the early-stop error is within the stated terms (d = N^3)",
        ),
        use="Add L0 sqrt(d ell)/(n sqrt(rho)).",
        severity="rate",
        source="Theorem 5",
    ),
    erratum(
        "EU14",
        "The headline rate omits N^(-kappa/2), which dominates for d < N^(kappa/2).",
        Rate(
            "",
            (sqrt(d) / N) ** (2 * kappa / (4 - kappa)) + N ** (-kappa / 2),
            N ** (-kappa / 2),
            growth={N: 1},
            on=_TO_TWO,
        ),
        printed=Rate(
            "",
            (sqrt(d) / N) ** (2 * kappa / (4 - kappa)) + N ** (-kappa / 2),
            (sqrt(d) / N) ** (2 * kappa / (4 - kappa)),
            growth={N: 1},
            on=_TO_TWO,
            statement="Theorem 4 is X^(2 kappa/(4 - kappa)) at fixed d",
        ),
        use="Both terms.",
        severity="rate",
        source="abstract, introduction",
    ),
    erratum(
        "EU15",
        "The proof of Theorem 1 prints the exponent (kappa-2)/2 for T_k.",
        Identity("", T_k * Phi ** (2 / kappa), _GAIN * Phi),
        settings=(T_k,),
        use="(F0/Phi)^((2-kappa)/kappa).",
        source="Theorem 1",
    ),
    erratum(
        "EU16",
        "The remark after Lemma 1 compares L1 with an expression in other units.",
        Units("", L1 * gamma**2 / F0 ** ((2 - kappa) / kappa), {}),
        printed=Units("", L1 * gamma / F0 ** ((2 - kappa) / 2), {}),
        use="L1 >= F0^((2-kappa)/kappa)/gamma^2.",
        source="remark after Lemma 1",
    ),
    erratum(
        "EU17",
        "The logarithm in appendix B.3 lacks gamma, so its argument has units.",
        Units("", F0 ** (1 / kappa) * n * sqrt(rho) / (gamma * L0 * sqrt(d)), {}),
        printed=Units("", F0 ** (1 / kappa) * n * sqrt(rho) / (L0 * sqrt(d)), {}),
        use="gamma L0 in the logarithm.",
        source="appendix B.3",
    ),
    erratum(
        "EU18",
        "Appendix C.2 prints L1 for Ltil and reuses the constant of Lemma 3.",
        Identity("", (sqrt(32 * A) * u) ** 2, 32 * A * u**2, statement="constant of the floor"),
        printed=Identity("", (A * u) ** 2, 32 * A * u**2, statement="constant of the floor"),
        use="sqrt(32 a) with the constant a of Lemma 3, and Ltil.",
        source="appendix C.2",
    ),
    erratum(
        "EU19",
        "Lemma 11 is strictly faster than Theorem 4 only for kappa < 2.",
        Bound("", 2 * kappa / (4 - kappa), kappa, on=_TO_TWO),
        printed=Bound("", 2 * kappa / (4 - kappa) + Rational(1, 1000), kappa, on=_TO_TWO),
        use="Not faster at kappa = 2.",
        source="Lemma 11",
    ),
    erratum(
        "EU20",
        "rho is missing in the logarithm of Theorem 9.",
        Identity("", 2 * T_in / beta, 2 * n**2 * rho * ell_in**2 / (d * beta)),
        printed=Identity("", 2 * T_in / beta, 2 * n**2 * ell_in**2 / (d * beta)),
        use="n^2 rho log^2(2/beta)/(d beta).",
        source="Theorem 9",
    ),
)

_LOWER_ERRATA = (
    erratum(
        "EL1",
        "The outer part 4 D ||w|| of H in Theorem 7 makes the slope jump down: H is not convex.",
        Bound("", 2 * u, 8 * D, at={u: 4 * D}, statement="slope at radius 4 D, inside and outside"),
        printed=Bound("", 2 * 4 * D, 4 * D, statement="slope inside is at most the slope outside"),
        use="H = 8 D ||w|| - 16 D^2 outside the ball of radius 4 D.",
        severity="rate",
        source="Theorem 7",
    ),
    erratum(
        "EL2",
        "F(w) - F(w*) is printed without the factor 1/2.",
        Identity("", u, Nz * L0 / (2 * n * D), at={u: Nz * L0 / (2 * n * D)}),
        printed=Identity("", u, Nz * L0 / (n * D), at={u: Nz * L0 / (2 * n * D)}),
        use="Nz L0/(2 n D) ||w - w*||^2.",
        source="Theorem 7",
    ),
    erratum(
        "EL3",
        "Delta of Theorem 6 lacks the exponent tau/(tau - 1).",
        Identity(
            "",
            D * Delta ** ((tau - 1) / tau),
            L0 * D * sqrt(d) / (n * epsilon),
            at={Delta: (L0 * sqrt(d) / (n * epsilon)) ** (tau / (tau - 1))},
        ),
        printed=Identity(
            "",
            D * Delta ** ((tau - 1) / tau),
            L0 * D * sqrt(d) / (n * epsilon),
            at={Delta: L0 * sqrt(d) / (n * epsilon)},
            on={tau: (2, 6)},
        ),
        use="(L0 sqrt(d)/(n epsilon))^(tau/(tau-1)).",
        source="Theorem 6",
    ),
    erratum(
        "EL4",
        "The first argument of D in Theorem 6 is inverted.",
        Identity(
            "", u * v / D, L1, at={D: u * v / L1}, statement="smoothness with u = c2 Delta^.."
        ),
        printed=Identity("", u * v / D, L1, at={D: v * L1 / u}),
        use="c2 Delta^(1/tau) L0^((tau-2)/(tau-1))/L1.",
        source="Theorem 6",
    ),
    erratum(
        "EL5",
        "The growth constant of the regularized function is lam, not 2^((tau-2)/tau) lam.",
        Bound("", (w - 1) ** 4, 4 * w**4 - 16 * w + 12, statement="tau = 4, lam = s = 1"),
        printed=Bound("", 4 * (w - 1) ** 4, 4 * w**4 - 16 * w + 12, points=({w: -1},)),
        use="(lam, tau)-growth.",
        source="Theorem 6",
    ),
    erratum(
        "EL6",
        "lambda_1 contributes a factor 1/2 that c2 omits.",
        Identity("", (2 ** (-(tau - 1) / tau)) ** (tau / (tau - 1)), _HALF),
        printed=Identity("", (2 ** (-(tau - 1) / tau)) ** (tau / (tau - 1)), 1),
        use="The constants with that factor; both printed ones are safe.",
        source="Theorem 6",
    ),
    erratum(
        "EL7",
        "Theorem 6 needs sqrt(d) <= n epsilon, as Theorem 7 has min(sqrt(d)/(n epsilon), 1).",
        Bound("", u, Min(u, 1), where=(Le(u, 1),), statement="u = sqrt(d)/(n epsilon)"),
        printed=Bound("", u, Min(u, 1), statement="u = sqrt(d)/(n epsilon), any d"),
        use="State the condition, and Omega~ for the logarithm.",
        source="Theorem 6",
    ),
    erratum(
        "EL8",
        "gamma and L1 are not free: smooth and PL force gamma^2 L1 >= 1/2.",
        Bound(
            "",
            _HALF,
            gamma**2 * L1,
            where=(Le(G**2 / (2 * L1), gamma**2 * G**2),),
            statement="descent G^2/(2 L1) within the KL bound gamma^2 G^2 forces it",
        ),
        printed=Bound("", _HALF, gamma**2 * L1, statement="for all gamma and L1"),
        use="Evaluate the lower bound at feasible tuples only.",
        severity="rate",
        source="Theorem 6, Corollary 1",
    ),
    erratum(
        "EL9",
        "The growth of the Theorem 8 instance fails beyond distance 1.",
        Bound(
            "",
            u**tau,
            (1 + r) / 2 * u**tau + (1 - r) / 2 * u,
            on={
                u: (Rational(1, 20), Rational(9, 25)),
                tau: (Rational(6, 5), 2),
                r: (0, Rational(1, 10)),
            },
            statement="growth on the restricted ball",
        ),
        printed=Bound(
            "",
            u**tau,
            (1 + r) / 2 * u**tau + (1 - r) / 2 * u,
            on={tau: (Rational(21, 20), 2), r: (0, Rational(1, 10))},
            points=({u: 2, tau: 2, r: Rational(1, 10)},),
            statement="growth everywhere",
        ),
        use="|w| <= 0.36 and 1/(n epsilon) <= 0.1.",
        severity="rate",
        source="Theorem 8",
    ),
    erratum(
        "EL10",
        "F(-a; S') is (1 - r) a, not (1 + r) a; the constant 1/4 holds anyway.",
        Bound(
            "",
            Rational(1, 4),
            (_HALF - (1 - exp(-epsilon)) / 16 * (exp(_HALF) - 1) / (exp(epsilon) - 1))
            * exp(-_HALF),
            on={epsilon: (Rational(1, 1000), Rational(7, 10))},
            statement="constant of Theorem 8 from an independent derivation",
        ),
        printed=Identity("", (1 - r) * u, (1 + r) * u, statement="value at -a"),
        use="Needs 1/epsilon an even integer.",
        source="Theorem 8",
    ),
)

SCHEDULE = Schedule(
    name="kl_condition",
    title="Non-convex optimization under the KL condition",
    citation=(
        "Menart, Ullah, Arora, Bassily, Guzman: Differentially Private Non-Convex Optimization "
        "under the KL Condition with Optimal Rates"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=(
        *_SCHEDULE,
        *_PRIVACY,
        *_PROXIMAL,
        *_ADAPTIVE,
        *_RATES,
        *_LOWER,
        *_UNITS,
    ),
    errata=(*_PRIVACY_ERRATA, *_ALGORITHM_ERRATA, *_UTILITY_ERRATA, *_LOWER_ERRATA),
)
