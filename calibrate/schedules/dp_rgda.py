"""Second-order stationary points of stochastic minimax problems: DP-RGDA (arXiv 2602.01339).

``eb = sqrt(d ell)/(n epsilon)`` with ``ell = log(1/delta)``, ``rr = n eb``, and ``ell1 =
log(4/delta1)``.

>>> from dpcal.calibrate.auditing.prover import prove
>>> prove(SCHEDULE.resolve(SCHEDULE.claim("ER-33.printed"))).status
'REFUTED'
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from sympy import Ge, Le, Max, Min, Rational, exp, log, pi, sqrt
from sympy import gamma as gamma_function

from dpcal.calibrate.auditing.language import (
    Balance,
    Bound,
    Claim,
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
    Units,
    erratum,
    positive,
    real,
)

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

__all__ = ["SCHEDULE"]

n, d, epsilon, ell, ell1, F0, L, M, mu, rho, K = positive("n d epsilon ell ell1 F0 L M mu rho K")
eb, rr, T1, T, q, S1, S2, eta, B1_sq, B2_sq = positive("eb rr T1 T q S1 S2 eta B1_sq B2_sq")
sigma_v, sigma_u, C1, C2, z, z1, z2, multiplier = positive(
    "sigma_v sigma_u C1 C2 z z1 z2 multiplier"
)
alpha, alpha_h, eta_h, iota, R, r, r0, t_thres, D_bar = positive(
    "alpha alpha_h eta_h iota R r r0 t_thres D_bar"
)
L_Phi, rho_phi, delta2, kappa, C, lam, m = positive("L_Phi rho_phi delta2 kappa C lam m")
T_pop, q_pop, S1_pop, S2_pop = positive("T_pop q_pop S1_pop S2_pop")
x, u, v, w, g, k, th, dx, ga, t, nu, D = positive("x u v w g k th dx ga t nu D")
p, y = real("p y")
_HALF = Rational(1, 2)
_R = Rational
_GRADIENT = {"loss": 1, "parameter": -1}

QUANTITIES = (
    Quantity(n, "number of records"),
    Quantity(d, "dimension of the joint release, d1 + d2"),
    Quantity(epsilon, "target epsilon"),
    Quantity(ell, "log(1/delta)"),
    Quantity(F0, "initial gap of the value function", {"loss": 1}),
    Quantity(L, "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity(M, "Lipschitz constant", _GRADIENT),
    Quantity(L_Phi, "smoothness of the value function", {"loss": 1, "parameter": -2}),
    Quantity(rho_phi, "Hessian Lipschitz constant", {"loss": 1, "parameter": -3}),
    Quantity(alpha, "target accuracy", _GRADIENT),
    Quantity(K, "inner steps"),
    Quantity(iota, "logarithmic factor"),
    Quantity(multiplier, "noise multiplier"),
    Quantity(eb, "rate variable"),
    Quantity(T, "outer iterations"),
    Quantity(q, "refresh period"),
)

SETTINGS = (
    Setting(eb, sqrt(d * ell) / (n * epsilon), source="rate variable"),
    Setting(T1, ((L * F0) ** _R(1, 4) / (sqrt(M) * eb)) ** _R(4, 3), source="Lemma 5"),
    Setting(
        T,
        Max(T1, 1 / eb),
        printed=Max(T1, n * epsilon / (sqrt(d) * ell)),
        source="Lemma 5",
        rounding="up",
    ),
    Setting(
        q,
        1 / (T * eb**2),
        printed=n**2 * epsilon**2 / (L**2 * T * d * ell),
        source="Lemma 5",
        rounding="down",
    ),
    Setting(S1, n, source="Theorem 1", rounding="up"),
    Setting(
        S2,
        Min(n, Max(1 / (T * eb**2), n / sqrt(T * K))),
        printed=Max(
            (M * n * epsilon / sqrt(F0 * L * d * ell)) ** _R(2, 3),
            (M * n * d * ell) ** _R(1, 3) / (L * F0) ** _R(1, 6),
        ),
        source="Theorem 1",
        rounding="up",
    ),
    Setting(eta, alpha / (2 * L_Phi), printed=1 / (2 * L), source="Algorithm 2, step length"),
    Setting(B1_sq, M**2 * T * eb**2 / q, printed=T * eb**2 / q, source="Lemma 5, proof"),
    Setting(B2_sq, L**2 * T * eb**2, printed=T**2 * eb**4, source="Lemma 5, proof"),
    Setting(
        sigma_v,
        multiplier * 2 * C1 / S1,
        printed=C1 * sqrt(ell) / epsilon * Max(1 / S1, sqrt(T) / (sqrt(q) * n)),
        source="Algorithm 3, line 1",
    ),
    Setting(
        sigma_u,
        multiplier * 2 * C2 / S2,
        printed=C2 * sqrt(ell) / epsilon * Max(1 / S2, sqrt(T) / n),
        source="Algorithm 3, line 2",
    ),
    Setting(alpha_h, sqrt(rho_phi * alpha), source="Definition 4"),
    Setting(R, alpha_h / (24 * rho_phi * iota), printed=1 / (2 * L_Phi * eta_h), source="Lemma 7"),
    Setting(r, R / 2, printed=R, source="Lemma 6"),
    Setting(eta_h, 1 / L_Phi, source="escape step, at its cap", printed=r0 / (2 * alpha**2)),
    Setting(r0, delta2 * r / sqrt(d), source="Lemma 6"),
    Setting(
        t_thres,
        4 * iota / (eta_h * alpha_h),
        printed=2 * iota / eta_h,
        source="Lemma 6",
        rounding="up",
    ),
    Setting(D_bar, ((R - r) / t_thres) ** 2, printed=(R / t_thres) ** 2, source="Lemma 6"),
    Setting(T_pop, 4 * L_Phi * F0 / alpha**2, source="one-pass schedule", rounding="up"),
    Setting(S1_pop, rr / alpha, source="one-pass schedule, privacy dominates", rounding="up"),
    Setting(q_pop, (S1_pop / rr) ** _R(2, 3), source="one-pass schedule", rounding="down"),
    Setting(S2_pop, rr * sqrt(q_pop), source="one-pass schedule", rounding="up"),
)


def _corrected_inner_loop(steps: int) -> bool:
    """K inner steps let y move: the last candidate is K - 1 ascent steps away."""
    return steps - 1 >= 1


def _printed_inner_loop(steps: int) -> bool:
    """The selected candidate among k = 0..K-1 can differ from y_t."""
    return max(range(steps)) > 0


def _refresh_counts_once(literal: bool) -> bool:
    """After a refresh the new point has weight one, the old point zero."""
    at_new, at_old = 1, 0
    if literal:
        at_new, at_old = at_new + 1, at_old - 1
    return (at_new, at_old) == (1, 0)


def _releases(case: tuple[int, int, int, bool]) -> int:
    total, inner, period, skip = case
    refreshes = -(-total // period)
    return total * inner - (refreshes if skip else 0)


def _increments_fit_rounds(case: tuple[int, int, int]) -> bool:
    """The inner loop makes at most T increment releases."""
    return _releases((*case, False)) <= case[0]


def _increments_counted(case: tuple[int, int, int]) -> bool:
    """The corrected inner loop makes T K minus the number of refreshes."""
    total, inner, period = case
    made = sum(
        not (step == 0 and round_ % period == 0) for round_ in range(total) for step in range(inner)
    )
    return made == _releases((total, inner, period, True))


def _smallest_is_first(values: tuple[int, ...]) -> bool:
    """The smallest of the growing noise norms is not the first one."""
    return min(range(len(values)), key=values.__getitem__) != 0


def _cumulative_norms() -> list[tuple[int, ...]]:
    """Expected squared norms of cumulative sums of five independent noises, in units of one."""
    return [tuple(range(1, 6))]


def _last_is_kept(values: tuple[int, ...]) -> bool:
    """Taking the last candidate always moves."""
    return len(values) - 1 > 0


def _rounds(noise_multiplier: Fraction) -> DpEvent:
    """100 Poisson-sampled Gaussian releases at rate 0.05."""
    from dpcal.accountants.events import dpsgd

    sigma = float(noise_multiplier)
    return dpsgd(sampling_probability=0.05, noise_multiplier=sigma, steps=100)


_COUNTS = [(4, 5, 2), (6, 2, 3), (10, 5, 4)]
_A0 = u / 2 - L * u**2 / 2 - u**3 * v * w / 2  # u = eta, v = B2^2, w = q
_AT = {u: 1 / (2 * L)}

_ERM: tuple[Claim, ...] = (
    Identity(
        "E01",
        T1,
        (L * F0) ** _R(1, 3) * M ** _R(-2, 3) * eb ** _R(-4, 3),
        free=(eb,),
        statement="first branch of T",
    ),
    Balance("E02", sqrt(F0 * L / T1), M * T1 * eb**2, of=T1, statement="T1 balances both errors"),
    Identity("E03", sqrt(F0 * L / T1), (sqrt(F0 * L * M) * eb) ** _R(2, 3), statement="rate"),
    Identity("E04", sqrt(F0 * L * eb) / (M * eb), sqrt(F0 * L) / (M * sqrt(eb)), free=(eb,)),
    Bound("E04.T1", T1, T, free=(eb, T1), statement="T is at least the balance"),
    Bound("E04.T2", 1 / eb, T, free=(eb, T1), statement="T is at least 1/eb"),
    Bound(
        "E04.cap",
        T,
        x / eb,
        where=(Ge(x, 1), Le(T1 * eb, x)),
        free=(eb, T1),
        statement="T is no larger than its branches",
    ),
    Identity("E05", L**2 / B2_sq, q, free=(T, eb), statement="period from the increments' error"),
    Identity("E05.eta", 1 / (B2_sq / (2 * L) ** 2), 4 * q, free=(T, eb), statement="the same"),
    Identity("E05.B1", B1_sq, M**2 * (T * eb**2) ** 2, free=(T, eb), statement="refresh error"),
    Identity("E07", _A0, 1 / (16 * L), at={**_AT, v: L**2 * T * eb**2, w: q}, free=(T, eb)),
    Identity("E08", _A0, 0, at={**_AT, v: L**2 * T * eb**2, w: 2 / (T * eb**2)}, free=(T, eb)),
    Identity(
        "E09",
        2 / (T * v) * (1 + L**2 / q * q / (4 * L**2)) * T,
        40 * L,
        at={v: 1 / (16 * L)},
        free=(T, q),
        statement="first constant of the explicit bound",
    ),
    Identity("E09.B1", u / v + 2 + L**2 * u**3 / v, 12, at={u: 1 / (2 * L), v: 1 / (16 * L)}),
    Identity("E10", T / q, (T * eb) ** 2, free=(T, eb), statement="T >= q iff T >= 1/eb"),
    Bound("E10.order", q, T, free=(eb, T1), statement="a period is at most the whole run"),
    Identity("E12", 1 / (T1 * eb**2), (M / (sqrt(F0 * L) * eb)) ** _R(2, 3), free=(eb,)),
    Identity(
        "E12.sub",
        1 / (T1 * eb**2),
        (M * n * epsilon / sqrt(F0 * L * d * ell)) ** _R(2, 3),
        statement="first branch of S2",
    ),
    Identity(
        "E13", n / sqrt(T1), M ** _R(1, 3) * n * eb ** _R(2, 3) / (L * F0) ** _R(1, 6), free=(eb,)
    ),
    Identity(
        "E13.sub",
        n / sqrt(T1),
        (M * n * d * ell) ** _R(1, 3) / ((L * F0) ** _R(1, 6) * epsilon ** _R(2, 3)),
        statement="second branch of S2",
    ),
    Feasible(
        "E15",
        (Le(1, q),),
        where=(Le(eb, 1), Le(eb * sqrt(F0 * L), M)),
        free=(eb,),
        statement="a period is at least 1",
    ),
    Feasible(
        "E16",
        (Le(1 / (T1 * eb**2), n),),
        where=(Le(M**2 * epsilon**2 / (F0 * L * d * ell), n),),
        statement="first branch of S2 is at most n",
    ),
    Bound(
        "E17",
        n / sqrt(T1),
        n,
        where=(Le(eb, (L * F0) ** _R(1, 4) / sqrt(M)),),
        free=(eb,),
        statement="second branch of S2 is at most n",
    ),
    Feasible(
        "E17.S2",
        (Le(S2, n), Le(1, S2)),
        where=(Le(eb, 1), Ge(n, 1), Ge(T, 1), Le(T * eb**2, 1), Ge(K, 2)),
        free=(eb, T),
        statement="1 <= S2 <= n",
    ),
    Bound(
        "E17.branch",
        n / sqrt(T * K),
        S2,
        where=(Ge(T, 1), Ge(K, 1)),
        free=(T, eb),
        statement="amplified branch of the noise",
    ),
    Bound(
        "E17.period",
        Min(n, q),
        S2,
        free=(T, eb),
        statement="increments are at least as many as the period",
    ),
    Identity(
        "E17.value",
        S2,
        n / (1 + u),
        free=(T, eb),
        at={T: (1 + u) ** 2 / K, eb: sqrt((1 + x) * (1 + u) / (n * T))},
        statement="S2 where the amplified branch decides",
    ),
    Identity(
        "E18",
        T1 * eb,
        (sqrt(L * F0) / M) ** _R(2, 3) * eb ** _R(-1, 3),
        free=(eb,),
        statement="which branch of T is active",
    ),
    Identity("E19", T1 / (T1 * eb**2), eb**-2, free=(eb,), statement="gradient count"),
    Identity("E19.S1", S1, n, statement="a refresh uses all records"),
    Units("E24.T", T, {}, statement="rounds are a number"),
    Units("E24.q", q, {}, statement="the period is a number"),
    Units("E24.S2", S2, {}, statement="the batch is a number"),
    Units("E24.B1", B1_sq, {"loss": 2, "parameter": -2}, statement="squared refresh error"),
    Units("E24.B2", B2_sq, {"loss": 2, "parameter": -4}, statement="squared increment error"),
    Units("E24.eta", eta, {"parameter": 1}, statement="length of a normalized step"),
    Identity("E25", eb, rr / n, at={rr: sqrt(d * ell) / epsilon}, statement="rate variable"),
)

_POP: tuple[Claim, ...] = (
    Identity(
        "P04", eb ** _R(-1, 3) * n ** _R(2, 3) / n, rr ** _R(-1, 3), at={eb: rr / n}, free=(eb,)
    ),
    Identity(
        "P05",
        eb ** _R(-2, 3) * kappa * (ell1**2 * kappa * eb ** _R(-1, 3)) / n,
        kappa**2 * ell1**2 / rr,
        at={eb: rr / n},
        free=(eb,),
        statement="records used by the increments",
    ),
    Identity("P09", rr**2 / (n * rr) / (rr / n), 1, statement="repaired refresh batch"),
    Bound(
        "P10",
        eb ** _R(-2, 3),
        n ** _R(2, 3),
        where=(Le(1 / n, eb),),
        free=(eb,),
        statement="the amplified branch is never active",
    ),
    Identity(
        "P12", eb ** _R(-1, 3) * eb * eb**2, eb ** _R(8, 3), free=(eb,), statement="harmless noise"
    ),
    Identity("P13", S1_pop / q_pop / S2_pop, 1, statement="refreshes and increments cost alike"),
    Identity(
        "P13.rate",
        alpha**-2 * S2_pop,
        rr * alpha ** _R(-7, 3),
        statement="records of the one-pass schedule: alpha = (rr/n)^(3/7)",
    ),
    Identity("P13.S1", S1_pop * alpha, rr, statement="privacy error of a refresh is alpha"),
    Identity(
        "P13.T",
        T_pop * (alpha * u / 2),
        F0,
        at={u: alpha / (2 * L_Phi)},
        statement="rounds times descent is the gap",
    ),
    Identity("P13.q", q_pop ** _R(3, 2) * rr, S1_pop, statement="period"),
    Identity(
        "P14",
        alpha**-2 * (u / w + v),
        2 * alpha**-3,
        at={u: alpha**-2, w: 1 / alpha, v: 1 / alpha},
        statement="where sampling dominates: alpha = n^(-1/3)",
    ),
    Identity(
        "P15",
        alpha**-2 * 2 * rr * sqrt((alpha**-2 / rr) ** _R(2, 3)),
        2 * rr ** _R(2, 3) * alpha ** _R(-8, 3),
        statement="between the regimes",
    ),
)

_ESCAPE: tuple[Claim, ...] = (
    Identity(
        "X02",
        u * ((1 + u * g) ** 4 - 1) / (u * g),
        ((1 + u * g) ** 4 - 1) / g,
        statement="the escape step cancels in the accumulated error (four steps)",
    ),
    Identity(
        "X05",
        _R(3, 2) * eta_h * t_thres * rho_phi * R,
        _R(1, 4),
        free=(eta_h,),
        statement="Hessian drift of a phase",
    ),
    Identity("X10", alpha_h, sqrt(rho_phi) * sqrt(alpha), statement="curvature threshold"),
    Identity(
        "X11",
        D_bar,
        (eta_h * alpha / (192 * iota**2)) ** 2,
        free=(eta_h,),
        statement="allowed movement of a phase",
    ),
    Identity(
        "X12",
        F0 * sqrt(rho) / alpha ** _R(3, 2) * (L / sqrt(rho * alpha)),
        F0 * L / alpha**2,
        statement="escapes times length has the order of the descent",
    ),
    Identity(
        "X13",
        eta * (alpha - alpha / 4) - L_Phi * eta**2 / 2,
        eta * alpha / 2,
        statement="descent of a normalized step",
    ),
    Identity("X14", r0 * sqrt(d) / delta2, R / 2, statement="coupling gap and radius"),
    Bound("X15", eta_h * L_Phi, 1, statement="escape step is stable"),
    Identity("X15.cap", eta_h * L_Phi, 1, statement="escape step at its cap"),
    Identity("X16", t_thres * eta_h * alpha_h, 4 * iota, free=(eta_h,), statement="phase length"),
    Bound(
        "X17",
        x / 2,
        log(1 + x),
        on={x: (_R(1, 100), 1)},
        statement="log(1 + x) >= x/2, growth of a phase",
    ),
    Bound(
        "X08",
        gamma_function(D / 2 + 1) / (sqrt(pi) * gamma_function((D + 1) / 2) * sqrt(D)),
        1,
        on={D: (1, 64)},
        statement="volume ratio of neighboring dimensions, d up to 64",
    ),
    Units("X18.R", R, {"parameter": 1}, statement="escape radius"),
    Units("X18.eta", eta_h, {"parameter": 2, "loss": -1}, statement="escape step"),
    Units("X18.D", D_bar, {"parameter": 2}, statement="allowed squared movement"),
    Units("X18.t", t_thres, {}, statement="phase length"),
)

_U = 3 * th + 6 * L**2 * dx
_G = 2 * L**2 * dx + 2 * ga
_CONSTANTS: tuple[Claim, ...] = (
    Identity("C01", 3 * _U + 3 * L**2 * dx + 3 * ga, 9 * th + 21 * L**2 * dx + 3 * ga),
    Identity(
        "C02",
        144 * k / K * _G
        + (144 * k / K + 120 * ell1) * _U
        + 120 * ell1 * L**2 / w / (36 * L**2) * (9 * th + 21 * L**2 * dx + 3 * ga),
        (288 * k / K + 10 * ell1 / w) * ga
        + (432 * k / K + 360 * ell1 + 30 * ell1 / w) * th
        + (1152 * k / K + 720 * ell1 + 70 * ell1 / w) * L**2 * dx,
        statement="coefficients of (43), lambda = 1/(6 L)",
    ),
    Identity(
        "C03",
        x / (1 - x),
        3 * kappa + 2,
        at={x: 1 - 2 / (6 * L) * mu * L / (mu + L), L: kappa * mu},
        statement="contraction of an ascent step",
    ),
    Identity(
        "C03.kappa",
        1 - 2 / (6 * L) * mu * L / (mu + L),
        _R(36, 37),
        at={L: _R(34, 3) * mu},
        statement="where the contraction is 36/37",
    ),
    Bound(
        "C04",
        520,
        _R(4, 9) * (3 * kappa + 2) * (3 + 390 * ell1) / (kappa * ell1),
        statement="the induction factor exceeds 520 with the stated batches",
    ),
    Bound(
        "D04",
        2 * (exp(x) - 1),
        exp(2 * x) - 1,
        on={x: (_R(1, 100), 5)},
        statement="two blocks from one batch cost more than twice one",
    ),
    Identity(
        "D06",
        v**2 * u / (v * w**2) + g**2 * k / (g * w**2),
        (v * u + g * k) / w**2,
        statement="cost of a split noise budget",
    ),
    Identity("G01", rho * (1 + 2 * kappa + kappa**2) * (1 + kappa), rho * (1 + kappa) ** 3),
    Private(
        "D07",
        (Release(2 * C1 / S1, sigma_v, 1),),
        rho=1 / (2 * multiplier**2),
        free=(S1,),
        statement="a refresh costs what its multiplier says",
    ),
    Private(
        "D08",
        (Release(2 * C2 / S2, sigma_u, 1),),
        rho=1 / (2 * multiplier**2),
        free=(S2,),
        statement="an increment costs what its multiplier says",
    ),
    Identity("D07.std", sigma_v * S1 / (2 * C1), multiplier, statement="multiplier of a refresh"),
    Identity(
        "D08.std", sigma_u * S2 / (2 * C2), multiplier, free=(S2,), statement="of an increment"
    ),
)

_PRIVACY_ERRATA = (
    erratum(
        "ER-01",
        "The Gaussian variance of Definition 3 lacks a factor 2 and is insufficient.",
        Private(
            "",
            (Release(1, sqrt(2) * sqrt(log(_R(125, 100) * 10**5)) / u, 1),),
            epsilon=u,
            delta=_R(1, 10**5),
            on={u: (_R(1, 10), 1)},
            statement="the textbook variance, epsilon from 0.1 to 1, delta = 1e-5",
        ),
        printed=Private(
            "",
            (Release(1, sqrt(log(_R(125, 100) * 10**5)) / u, 1),),
            epsilon=u,
            delta=_R(1, 10**5),
            on={u: (_R(1, 10), 1)},
            points=({u: _R(9, 10)},),
            statement="half the textbook variance",
        ),
        use="Solve the exact Gaussian profile for the multiplier.",
        severity="privacy",
        source="Definition 3",
    ),
    erratum(
        "ER-02",
        "Clipping the averaged gradient has sensitivity 2C, not 2C/b.",
        Private(
            "",
            (Release(2 * C / u, z * 2 * C / u, 1),),
            rho=1 / (2 * z**2),
            statement="per-example clip, then average",
        ),
        printed=Private(
            "",
            (Release(2 * C, z * 2 * C / u, 1),),
            rho=1 / (2 * z**2),
            points=({u: 64},),
            statement="clip of the average of u gradients, noise for 2C/u",
        ),
        use="Clip each example, then average.",
        severity="privacy",
        source="Algorithm 3, lines 7, 8, 14, 15",
    ),
    erratum(
        "ER-03",
        "The inner loop makes T K increment releases; the noise is for T.",
        Enumeration("", _increments_counted, _COUNTS, statement="T K minus the refreshes"),
        printed=Enumeration("", _increments_fit_rounds, _COUNTS, statement="at most T increments"),
        use="Count T K releases (T K - R in the corrected listing).",
        severity="privacy",
        source="Algorithm 3, line 2",
    ),
    erratum(
        "ER-04",
        "The x and y estimators share a batch and each spends the whole budget.",
        Private(
            "",
            (Release(1, sqrt(2) * z, 2),),
            rho=1 / (2 * z**2),
            statement="two blocks at sqrt(2) z cost one release",
        ),
        printed=Private(
            "",
            (Release(1, z, 2),),
            rho=1 / (2 * z**2),
            statement="two blocks at z cost one release",
        ),
        use="Clip and release the concatenated vector.",
        severity="privacy",
        source="Algorithm 3, B.1, B.2",
    ),
    erratum(
        "ER-04.sampled",
        "From one sampled batch, two blocks counted apart hide most of their cost.",
        Priced(
            "",
            lambda: _rounds(Fraction(8, 10)),
            epsilon=8.88,
            delta=1e-6,
            statement="100 joint releases at rate 0.05 and multiplier 0.8 cost 8.87",
        ),
        printed=Priced(
            "",
            lambda: _rounds(Fraction(8, 10) / Fraction(14142, 10000)),
            epsilon=8.88,
            delta=1e-6,
            statement="two blocks of the same batches at multiplier 0.8 each cost as much as one",
        ),
        use="One release of the concatenated vector.",
        severity="privacy",
        source="Algorithm 3, B.1",
    ),
    erratum(
        "ER-05",
        "The population noise is scaled by S2/n without amplification or composition.",
        Private(
            "",
            (Release(2 * L * x / u, z * 2 * L * x / u, 1),),
            rho=1 / (2 * z**2),
            statement="one pass, noise at the scale of the batch",
        ),
        printed=Private(
            "",
            (
                Release(
                    2 * L * x / 22, 2 * L * x * sqrt(log(_R(125, 100) * 10**5)) / (10**4 * _HALF), 1
                ),
            ),
            epsilon=_HALF,
            delta=_R(1, 10**5),
            statement="one unsampled increment, n = 1e4, S2 = 22",
        ),
        use="Noise at 1/S2 over one pass, or exact accounting of several.",
        severity="privacy",
        source="Theorem 2, B.2",
    ),
    erratum(
        "ER-06",
        "At k = 0 the increment noise is 0 although x moved.",
        Bound("", L**2 * x**2, L**2 * (x**2 + u**2), statement="joint movement covers it"),
        printed=Bound("", L**2 * x**2, L**2 * u**2, statement="movement of y covers it"),
        use="Scale noise and clip by the joint movement of (x, y).",
        severity="privacy",
        source="B.1, B.2",
    ),
    erratum(
        "ER-07",
        "No constant c appears in the noise; with c = 1 the true epsilon is several times "
        "the target.",
        Private(
            "",
            (Release(2, 2 * _R(422469, 100000), 1),),
            epsilon=1,
            delta=_R(1, 10**6),
            statement="multiplier 4.22469 at (1, 1e-6)",
        ),
        printed=Private(
            "",
            (Release(2, sqrt(log(10**6)), 1),),
            epsilon=1,
            delta=_R(1, 10**6),
            statement="c = 1 at (1, 1e-6): noise sqrt(log(1/delta)) on a sensitivity of 2",
        ),
        use="Exact calibration; print the implied c as a diagnostic only.",
        severity="privacy",
        source="Algorithm 3, lines 1 and 2",
    ),
    erratum(
        "ER-08",
        "Noise of fixed size does not vanish with movement, as Lemma 1 needs.",
        Bound("", (z * 2 * L * x / u) ** 2, (2 * z * L / u) ** 2 * x**2, statement="scaled noise"),
        printed=Bound("", C**2, v * x**2, statement="fixed noise is at most B2^2 movement^2"),
        use="Movement-scaled clip and noise.",
        severity="rate",
        source="Lemma 1, Algorithm 3",
    ),
    erratum(
        "ER-09",
        "2 sqrt(2) L for a sensitivity of 2 L per unit of movement.",
        Bound("", 2 * L * x, 2 * sqrt(2) * L * x, statement="the printed value is an upper bound"),
        printed=Identity("", 2 * L * x, 2 * sqrt(2) * L * x, statement="the sensitivity"),
        use="2 L.",
        source="(31)",
    ),
    Erratum(
        "ER-10",
        "The warm start reads the data and is not paid for.",
        Prose("ER-10.printed", "a missing entry of the ledger, not a formula"),
        use="Charge it, or choose y0 independently of the data.",
        severity="privacy",
    ),
    Erratum(
        "ER-11",
        "How differences are clipped in the experiment is not said.",
        Prose("ER-11.printed", "the code of the experiment is not available"),
        use="Clip the per-example difference.",
        severity="privacy",
    ),
    Erratum(
        "ER-12",
        "Neighboring relation and sampling are not specified.",
        Prose("ER-12.printed", "a missing definition"),
        use="State both; default replace-one with fixed-size batches.",
        severity="privacy",
    ),
    erratum(
        "ER-13",
        "Read by coordinate, assumption 1 bounds the gradient by M sqrt(d), not M.",
        Bound(
            "",
            sqrt(d * u**2),
            M,
            at={u: M / sqrt(d)},
            statement="partials M/sqrt(d) give a gradient of norm M",
        ),
        printed=Bound("", M * sqrt(d), M, statement="a gradient with all partials M"),
        use="Read it block-wise, and enforce it by clipping.",
        severity="privacy",
        source="Assumption 1, (30)",
    ),
)

_ALGORITHM_ERRATA = (
    erratum(
        "ER-20",
        "A refresh is followed by the increment that leads to it: counted twice.",
        Enumeration("", _refresh_counts_once, [False], complete=True),
        printed=Enumeration("", _refresh_counts_once, [True]),
        use="Skip the k = 0 increment on refresh steps.",
        severity="algorithm",
        source="Algorithm 3",
    ),
    erratum(
        "ER-21",
        "K = 1 freezes y.",
        Enumeration("", _corrected_inner_loop, [2, 3, 5], statement="K >= 2"),
        printed=Enumeration("", _printed_inner_loop, [1], statement="K = 1"),
        use="K >= 2.",
        severity="algorithm",
        source="Algorithm 3, Theorem 1",
    ),
    erratum(
        "ER-22",
        "The argmin over accumulated noise picks k = 0.",
        Enumeration("", _last_is_kept, _cumulative_norms(), statement="take the last"),
        printed=Enumeration(
            "", _smallest_is_first, _cumulative_norms(), statement="take the argmin"
        ),
        use="The last candidate.",
        severity="algorithm",
        source="Algorithm 3, line 18",
    ),
    Erratum(
        "ER-23",
        "The surrogate gradient mapping is not defined.",
        Prose("ER-23.printed", "a missing definition"),
        use="(y - Proj(y + lambda u))/lambda.",
    ),
    erratum(
        "ER-24",
        "Rescaling the last step of a phase leaves earlier steps too long.",
        Bound(
            "",
            u**2 * v + u**2 * w,
            m * D,
            at={u: sqrt(m * D / (v + w))},
            statement="one step size for all steps of the phase",
        ),
        printed=Bound(
            "",
            g**2 * v + u**2 * w,
            m * D,
            at={u: sqrt(m * D / (v + w))},
            where=(Ge(g**2 * (v + w), m * D),),
            points=({g: 2, v: 1, w: 1, m: 1, D: 1},),
            statement="earlier steps at eta_h",
        ),
        use="Rescale the whole phase.",
        severity="algorithm",
        source="Algorithm 2, line 14",
    ),
    Erratum(
        "ER-25",
        "alpha, x_{-1} and the anchor are used before they are defined.",
        Prose("ER-25.printed", "undefined objects of a listing"),
        use="The corrected listing with a status flag.",
        severity="algorithm",
    ),
    erratum(
        "ER-26",
        "The analysed step 1/(2L) is used as the length of a normalized step.",
        Units("", eta, {"parameter": 1}, statement="step length"),
        printed=Units("", eta, {"parameter": 1}, printed=(eta,), statement="step length"),
        use="alpha/(2 L_Phi), normalized.",
        severity="algorithm",
        source="Lemmas 4 and 5, Algorithm 2",
    ),
    erratum(
        "ER-27",
        "No condition makes the noise floor of v small enough ever to certify.",
        None,
        printed=Bound("", u, x, statement="floor <= sqrt(D)/eta_h"),
        use="Check it, and refuse to certify otherwise.",
        severity="algorithm",
        source="Algorithm 2, line 13",
    ),
)

_ERM_ERRATA = (
    erratum(
        "ER-30",
        "The period of Lemma 4 has T where B2 belongs.",
        Bound("", 1, 4 * q, free=(eb,), where=(Le(eb, 1), Le(eb * sqrt(F0 * L), M))),
        printed=Bound("", 1, 4 * L**2 / T**2, free=(T,), points=({T: 100},), statement="q >= 1"),
        use="q = 1/(B2^2 eta^2).",
        severity="rate",
        source="Lemma 4",
    ),
    erratum(
        "ER-31",
        "The bound of Lemma 4 is sqrt(F0/(qT) + B1) for sqrt(F0/(eta T)) + B1.",
        Units("", sqrt(F0 * L / T) + M * T * eb**2, _GRADIENT, free=(T, eb)),
        printed=Rate(
            "",
            sqrt(T * eb**2),
            eb ** _R(2, 3),
            growth={eb: -1},
            at={T: eb ** _R(-4, 3)},
            free=(T, eb),
            statement="the printed bound gives the claimed rate",
        ),
        use="sqrt(F0/(eta T)) + B1.",
        severity="rate",
        source="(8)",
    ),
    erratum(
        "ER-32",
        "The second term of T has log(1/delta) for its square root.",
        Bound("", 1 / eb, T, free=(T1,), statement="T >= 1/eb"),
        printed=Bound(
            "",
            1 / eb,
            T,
            printed=(T,),
            free=(T1,),
            points=({ell: 14, n: 1000, epsilon: 1, d: 1, T1: 1},),
            statement="T >= 1/eb",
        ),
        use="n epsilon/sqrt(d log(1/delta)).",
        severity="rate",
        source="Lemma 5",
    ),
    erratum(
        "ER-33",
        "The period q carries a factor L^-2.",
        Units("", q, {}, statement="the period is a number"),
        settings=(q,),
        use="q = 1/(T eb^2).",
        severity="rate",
        source="Lemma 5",
    ),
    erratum(
        "ER-34",
        "The second term of S2 lacks epsilon^(-2/3).",
        Bound(
            "",
            n / sqrt(T * K),
            S2,
            where=(Ge(T, 1), Ge(K, 1)),
            free=(T, eb),
            statement="S2 >= n/sqrt(T K)",
        ),
        printed=Bound(
            "",
            n / sqrt(T1),
            S2,
            printed=(S2,),
            points=({n: 10**5, d: 100, epsilon: _HALF, ell: _R(138, 10), M: 1, L: 1, F0: 1},),
            statement="S2 >= n/sqrt(T1)",
        ),
        use="S2 from the actual T.",
        severity="rate",
        source="Theorem 1, Lemma 5",
    ),
    erratum(
        "ER-35",
        "B2 and B1 of the proof lack L and M.",
        Units("", B2_sq, {"loss": 2, "parameter": -4}),
        settings=(B2_sq,),
        use="B2^2 = L^2 T eb^2, B1^2 = M^2 T eb^2/q.",
        source="Lemma 5, proof",
    ),
    erratum(
        "ER-35.B1",
        "B1 of the proof lacks M.",
        Units("", B1_sq, {"loss": 2, "parameter": -2}),
        settings=(B1_sq,),
        use="B1^2 = M^2 T eb^2/q.",
        source="Lemma 5, proof",
    ),
    erratum(
        "ER-36",
        "Theorem 1 states no lower bound on n, without which q < 1.",
        Bound("", 1, q, free=(eb,), where=(Le(eb, 1), Le(eb * sqrt(F0 * L), M))),
        printed=Bound("", 1, q, free=(eb,), statement="q >= 1 for every n"),
        use="eb <= min(1, M/sqrt(L F0)).",
        severity="rate",
        source="Theorem 1",
    ),
    erratum(
        "ER-37",
        "F0 subtracts a minimum over y of a strongly concave function: infinite.",
        Bound(
            "", M * y - mu * y**2 / 2, M**2 / (2 * mu), statement="gap of the value function in y"
        ),
        printed=Bound(
            "", -C, M * y - mu * y**2 / 2, points=({y: 100},), statement="f(x, y) is bounded below"
        ),
        use="Phi(x0) - inf Phi.",
        severity="rate",
        source="Theorem 1",
    ),
    erratum(
        "ER-38",
        "(v, -u) is treated as the gradient of F; the y-part has the opposite sign.",
        Identity("", -y, -y, statement="F = -y^2/2: derivative in y"),
        printed=Identity(
            "", y, -y, points=({y: 1},), statement="estimate -u equals the derivative"
        ),
        use="Estimator error plus tracking error, through (7).",
        severity="rate",
        source="Lemmas 1 and 3 to 5",
    ),
    erratum(
        "ER-39",
        "A logarithm above 1 multiplies a bracket that may be negative.",
        Bound("", u, w * u, where=(Ge(w, 1),), statement="for a positive bracket"),
        printed=Bound("", p, w * p, where=(Ge(w, 1),), points=({p: -1, w: 2},), statement="any"),
        use="Logarithms on B1 and B2 only.",
        severity="rate",
        source="B.1",
    ),
    erratum(
        "ER-42",
        "The final rate drops M, L and the second branch.",
        Units(
            "",
            (sqrt(F0 * L * M) * eb) ** _R(2, 3) + M * eb,
            _GRADIENT,
            free=(eb,),
            statement="the rate has the unit of a gradient",
        ),
        printed=Units(
            "", (sqrt(F0) * eb) ** _R(2, 3), _GRADIENT, free=(eb,), statement="printed rate"
        ),
        use="(sqrt(F0 L M) eb)^(2/3) + M eb.",
        source="Lemma 5",
    ),
)

_POPULATION_ERRATA = (
    erratum(
        "ER-50",
        "q = eb^(1/3) is below 1 for every eb < 1.",
        Bound("", 1, eb ** _R(-1, 3), where=(Le(eb, 1),), free=(eb,), statement="q = eb^(-1/3)"),
        printed=Bound("", 1, eb ** _R(1, 3), on={eb: (_R(1, 10**6), _HALF)}, free=(eb,)),
        use="Exponent -1/3.",
        severity="algorithm",
        source="Lemma 8",
    ),
    erratum(
        "ER-51",
        "A refresh batch of n overruns the sample budget.",
        Bound(
            "",
            eb ** _R(-1, 3) * n ** _R(2, 3),
            n,
            where=(Le(1 / n, eb),),
            free=(eb,),
            statement="refreshes of n^(2/3) fit",
        ),
        printed=Bound("", eb ** _R(-1, 3) * n, n, on={eb: (_R(1, 10**6), _HALF)}, free=(eb,)),
        use="The batch of ER-54.",
        severity="privacy",
        source="Lemma 8",
    ),
    erratum(
        "ER-52",
        "Dropping kappa and the logarithms hides a condition of the sample budget.",
        Bound(
            "",
            kappa**2 * ell1**2 * n / rr,
            n,
            where=(Le(kappa**2 * ell1**2, rr),),
            statement="increments fit when rr >= kappa^2 ell1^2",
        ),
        printed=Bound("", kappa**2 * ell1**2 * n / rr, n, statement="increments fit"),
        use="Check the budget.",
        severity="privacy",
        source="Lemma 8",
    ),
    erratum(
        "ER-53",
        "T = eb^(-2/3) steps of length eb^(1/2) descend by eb^(1/3), which goes to 0.",
        Rate("", 1, T * alpha * alpha, growth={eb: -1}, at={T: alpha**-2}, free=(T,)),
        printed=Rate(
            "",
            1,
            eb ** _R(-2, 3) * eb**_HALF * eb**_HALF,
            growth={eb: -1},
            free=(eb,),
            statement="the total descent is of the order of the gap",
        ),
        use="T = 4 L_Phi F0/alpha^2.",
        severity="rate",
        source="B.2",
    ),
    erratum(
        "ER-54",
        "A refresh batch of n^(2/3) is too small when privacy dominates.",
        Bound("", rr**2 / u**2, rr / n, at={u: sqrt(n * rr)}, statement="S1 = sqrt(n rr)"),
        printed=Bound("", rr**2 / u**2, rr / n, at={u: n ** _R(2, 3)}, statement="S1 = n^(2/3)"),
        use="max(n^(2/3), sqrt(n rr)).",
        severity="rate",
        source="B.2",
    ),
    erratum(
        "ER-55",
        "With honest noise the exponent is 3/7, not 1/2.",
        Identity("", (rr / n) ** _R(3, 7), u, at={u: (rr / n) ** _R(3, 7)}, statement="one pass"),
        printed=Bound(
            "",
            eb ** _R(-1, 3) * eb * rr**2 / eb ** _R(-2, 3),
            eb,
            at={eb: rr / n},
            free=(eb,),
            where=(Ge(rr, 1), Ge(n, rr)),
            points=({rr: 1000, n: 10**6},),
            statement="accumulated noise q alpha^2 rr^2/S2^2 fits eb",
        ),
        use="The one-pass schedule, or a tree-structured estimator.",
        severity="rate",
        source="Theorem 2",
    ),
    erratum(
        "ER-56",
        "The squared norm of the noise lacks the dimension.",
        Identity("", d * u**2, u**2 * d, statement="E ||N(0, s^2 I_d)||^2"),
        printed=Identity("", d * u**2, u**2, statement="E ||N(0, s^2 I_d)||^2"),
        use="d sigma^2.",
        source="(33)-(37)",
    ),
    erratum(
        "ER-57",
        "The allowed movement lacks kappa.",
        Bound("", eb / (kappa * x) ** 2, eb / x**2, free=(eb,), where=(Ge(kappa, 1),)),
        printed=Bound("", eb / x**2, eb / (kappa * x) ** 2, free=(eb,), where=(Ge(kappa, 1),)),
        use="1/(kappa C_Phi).",
        source="Lemma 8, (44)",
    ),
    erratum(
        "ER-58",
        "The hidden constants make the induction factor exceed 520.",
        Bound("", 520, _R(4, 9) * (3 * kappa + 2) * (3 + 390 * ell1) / (kappa * ell1)),
        printed=Bound(
            "",
            _R(4, 9) * (3 * kappa + 2) * (3 + 390 * ell1) / (kappa * ell1),
            1,
            statement="the induction factor is below 1",
        ),
        use="Treat Theorem 2 as asymptotic only.",
        severity="rate",
        source="(37), (43)",
    ),
)

_ESCAPE_ERRATA = (
    erratum(
        "ER-70",
        "The phase length lacks 1/alpha_h.",
        Units("", t_thres, {}, statement="a phase length is a number"),
        settings=(t_thres,),
        use="4 iota/(eta_h alpha_h).",
        severity="rate",
        source="Lemmas 6, 7, 9, 10",
    ),
    erratum(
        "ER-71",
        "The Hessian drift is rho_phi R, not L_Phi R; the printed radius breaks the induction.",
        Bound(
            "",
            _R(3, 2) * eta_h * t_thres * rho_phi * R,
            _R(1, 4),
            free=(eta_h,),
            statement="drift of a phase",
        ),
        printed=Bound(
            "",
            L_Phi * eta_h * R + _R(1, 4),
            _HALF,
            free=(eta_h,),
            printed=(R,),
            statement="bracket of the induction step with the printed radius",
        ),
        use="R = alpha_h/(24 rho_phi iota).",
        severity="rate",
        source="(25)-(26), (61)-(62)",
    ),
    erratum(
        "ER-72",
        "The estimator's error cannot be absorbed by a small escape step.",
        None,
        printed=Bound(
            "",
            4 * C * sqrt(d) / delta2,
            1,
            where=(Ge(C, 1), Ge(d, 1), Le(delta2, 1)),
            statement="eta_h L_Phi <= 1 at the step that would absorb an error of size alpha",
        ),
        use="Do not claim it; measure lambda_min on synthetic data.",
        severity="rate",
        source="(25)-(26), (61)-(62)",
    ),
    erratum(
        "ER-73",
        "The escape step uses alpha^2 for alpha.",
        Units("", eta_h, {"parameter": 2, "loss": -1}),
        printed=Units("", u / (2 * alpha**2), {"parameter": 2, "loss": -1}, at={u: R}),
        use="eta_h <= 1/L_Phi.",
        severity="rate",
        source="Lemmas 7, 10",
    ),
    erratum(
        "ER-74",
        "The curvature threshold is alpha_h, of order eb^(1/3), not eb.",
        Identity(
            "",
            alpha_h**2,
            rho_phi * x ** _R(2, 3),
            at={alpha: x ** _R(2, 3)},
            statement="threshold",
        ),
        printed=Rate("", x ** _R(1, 3), x, growth={x: -1}, statement="alpha_h is of order eb"),
        use="lambda_min <= -alpha_h.",
        severity="rate",
        source="Lemmas 6, 7, 9, 10",
    ),
    erratum(
        "ER-75",
        "Distances are measured from the perturbed point: the radius available is R - r.",
        Bound(
            "",
            r + t_thres * sqrt(D_bar),
            R,
            free=(eta_h, alpha),
            statement="perturbation plus movement stay within R",
        ),
        printed=Bound(
            "",
            r + t_thres * sqrt(D_bar),
            R,
            free=(eta_h, alpha),
            printed=(D_bar,),
            statement="perturbation plus movement stay within R",
        ),
        use="r = R/2 and D = ((R - r)/t_thres)^2.",
        source="Lemmas 6, 9",
    ),
    erratum(
        "ER-76",
        "Lemma 10 drops log(1/delta).",
        Identity("", eb, sqrt(d * ell) / (n * epsilon), statement="rate variable"),
        printed=Identity("", eb, sqrt(d) / (n * epsilon), statement="rate variable"),
        use="eb.",
        source="Lemma 10",
    ),
    erratum(
        "ER-77",
        "No condition keeps eta_h L_Phi bounded.",
        Bound("", eta_h * L_Phi, 1),
        printed=Bound("", x * L_Phi, 2 + x * g, where=(Le(g, L_Phi),), statement="any step x"),
        use="eta_h L_Phi <= 1.",
        severity="rate",
        source="Lemmas 7, 10",
    ),
    Erratum(
        "ER-78",
        "The lemma that bounds the number of phases is missing.",
        Prose("ER-78.printed", "a missing lemma"),
        use="X13 for the descent phase.",
        severity="rate",
    ),
)

_OTHER_ERRATA = (
    erratum(
        "ER-80",
        "Lipschitz and strongly concave in y force a bounded Y.",
        Bound("", mu * x, 2 * M, where=(Le(x, 2 * M / mu),), statement="diameter at most 2M/mu"),
        printed=Bound("", mu * x, 2 * M, statement="any diameter x"),
        use="A bounded Y, or clipping.",
        severity="rate",
        source="Assumptions 1 and 4",
    ),
    erratum(
        "ER-81",
        "With a bounded Y the value function need not have a Lipschitz Hessian.",
        Bound("", Max(0, 2 * x * u), 1, on={u: (0, 1), x: (0, _R(1, 4))}, statement="interior"),
        printed=Bound("", 1, C * x, statement="jump of Huber's second derivative over distance x"),
        use="Interior y* on the visited region.",
        severity="rate",
        source="Definition 4",
    ),
    erratum(
        "ER-90",
        "y has one coordinate per record, so eb >= sqrt(log(1/delta)/n)/epsilon.",
        Identity("", eb, sqrt(ell / n) / epsilon, at={d: n}, statement="rate variable at d2 = n"),
        printed=Rate(
            "", sqrt(n * ell) / (n * epsilon), 1 / n, growth={n: 1}, statement="eb falls like 1/n"
        ),
        use="Keep y_i inside record i's gradient.",
        severity="privacy",
        source="Section 5.1",
    ),
    erratum(
        "ER-91",
        "The instance has unbounded gradients, and per-sample curvature only in one coordinate.",
        None,
        printed=Bound("", u * x, C, statement="|y_i U V| stays bounded"),
        use="Clip; report kappa.",
        severity="privacy",
        source="Section 5.1",
    ),
    Erratum(
        "ER-92",
        "Settings of the experiment are unspecified.",
        Prose("ER-92.printed", "missing settings"),
        use="A reproduction plan of one's own.",
    ),
    Erratum(
        "ER-93",
        "A baseline that is announced is absent from the table.",
        Prose("ER-93.printed", "a missing experiment"),
        use="Run it.",
    ),
    Erratum(
        "ER-94",
        "The table may reflect noise only.",
        Prose("ER-94.printed", "needs the experiment's data"),
        use="Report the start and a data-free control.",
    ),
    erratum(
        "ER-40",
        "A sign in the display after (9).",
        Bound("", u - v, u + v, statement="+ eta B1^2/2 is an upper bound"),
        printed=Bound("", u + v, u - v, statement="- eta B1^2/2 is an upper bound"),
        use="+ eta B1^2/2.",
        source="B.1",
    ),
    Erratum(
        "ER-41",
        "Increment and running estimate exchange names; delta for delta1.",
        Prose("ER-41.printed", "names"),
        use="Lemma 1 with the roles exchanged.",
    ),
    Erratum(
        "ER-43",
        "Injected noise is called the only randomness of the ERM case.",
        Prose("ER-43.printed", "a remark in prose"),
        use="Sampling of S2 < n also.",
    ),
    erratum(
        "ER-59a",
        "(9, 21, 3) becomes (3, 7, 1): a factor 3 is lost.",
        Identity("", 3 * _U + 3 * L**2 * dx + 3 * ga, 9 * th + 21 * L**2 * dx + 3 * ga),
        printed=Identity("", 3 * _U + 3 * L**2 * dx + 3 * ga, 3 * th + 7 * L**2 * dx + ga),
        use="9, 21, 3.",
        source="after (35)",
    ),
    erratum(
        "ER-59b",
        "7 becomes 8 only for kappa >= 34/3.",
        Bound(
            "",
            7,
            8 * (1 - 2 * L * mu / (6 * L * (mu + L))),
            on={x: (1, 2)},
            where=(Ge(L, mu * _R(34, 3)),),
        ),
        printed=Bound("", 7, 8 * (1 - 2 * L * mu / (6 * L * (mu + L))) - _HALF, where=(Ge(L, mu),)),
        use="State the condition.",
        source="(36)-(37)",
    ),
    erratum(
        "ER-59c",
        "F0/lambda^2 for F0/(L lambda^2).",
        Units("", F0 / (L * x**2), {"loss": 2, "parameter": -2}, at={x: 1 / L}),
        printed=Units("", F0 / x**2, {"loss": 2, "parameter": -2}, at={x: 1 / L}),
        use="F0/(L lambda^2).",
        source="(41)",
    ),
    Erratum(
        "ER-59d",
        "The privacy noise of u_{i,0} is missing in (35).",
        Prose("ER-59d.printed", "a missing term; its size depends on the listing chosen"),
        use="Add it.",
    ),
    Erratum(
        "ER-59e",
        "(36) and (37) disagree on noise factors and on norms or squared norms.",
        Prose("ER-59e.printed", "two displays that disagree"),
        use="Equal factors, squared norms.",
    ),
    Erratum(
        "ER-59f",
        "log(1/(2 delta1)), sigma_xi and [t/q] q are misprints.",
        Prose("ER-59f.printed", "misprints of symbols"),
        use="log(2/delta1), sigma_zeta, floor(t/q) q.",
    ),
    Erratum(
        "ER-60",
        "theta_t and gamma_t are defined twice, differently.",
        Prose("ER-60.printed", "two definitions"),
        use="(28)-(29).",
    ),
    Erratum(
        "ER-61",
        "d log(1/delta1) for d log(1/delta).",
        Prose("ER-61.printed", "a symbol's index"),
        use="delta.",
    ),
    erratum(
        "ER-62",
        "'For all t' without a union bound.",
        Bound("", u * (x / u), x, statement="failure x/u per event, u events"),
        printed=Bound("", u * x, x, points=({u: 2},), statement="failure x per event, u events"),
        use="log(4 T K/delta1).",
        source="Lemmas 2, 8",
    ),
    erratum(
        "ER-79",
        "Minor: stated 1 - delta1 - delta2 where 1 - 4 delta1 - delta2 is proved.",
        None,
        printed=Bound(
            "", 1 - u - v, 1 - 4 * u - v, statement="stated value follows from the proof"
        ),
        use="The proved value, and a union over phases.",
        source="Lemmas 6, 9, and misprints in (19), (24), (55), (60), Theorems 2, 3, Remark 2",
    ),
)

SCHEDULE = Schedule(
    name="dp_rgda",
    title="Second-order stationary points of stochastic minimax problems",
    citation=(
        "Xu, Tao, Ding, Fan, Wang: Finding Differentially Private Second Order Stationary Points "
        "in Stochastic Minimax Optimization, arXiv 2602.01339"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=(*_ERM, *_POP, *_ESCAPE, *_CONSTANTS),
    errata=(
        *_PRIVACY_ERRATA,
        *_ALGORITHM_ERRATA,
        *_ERM_ERRATA,
        *_POPULATION_ERRATA,
        *_ESCAPE_ERRATA,
        *_OTHER_ERRATA,
    ),
)
