"""Stationary points: SpiderBoost, tree Spider, recursive regularization, JL (2206.00846).

Arora, Bassily, Gonzalez, Guzman, Menart, Ullah, "Faster Rates of Convergence to Stationary Points
in Differentially Private Optimization". ``abar = sqrt(d log(1/delta)) / (n epsilon)`` is the rate
variable.

>>> from dpcal.calibrate.auditing.prover import prove
>>> verdict = prove(SCHEDULE.resolve(SCHEDULE.claim("E1.printed")))
>>> verdict.status
'REFUTED'
"""

from __future__ import annotations

from fractions import Fraction
from math import comb
from typing import TYPE_CHECKING

from sympy import Ge, Gt, Le, Max, Min, Rational, erfc, exp, log, oo, sqrt

from dpcal.calibrate.auditing.language import (
    Balance,
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
    Units,
    erratum,
    positive,
    real,
)

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

__all__ = ["SCHEDULE"]

n, d, epsilon, Lam, F0, L0, L1, W = positive("n d epsilon Lam F0 L0 L1 W")
abar, T1, T, q, b1, b2, eta = positive("abar T1 T q b1 b2 eta")
sigma1, sigma2, cap2, tau1_sq, tau2_sq = positive("sigma1 sigma2 cap2 tau1_sq tau2_sq")
kappa, move, x, u, v, r = positive("kappa move x u v r")
b, D, depth, beta, alpha, alphat, Ct, p, ell, z = positive("b D depth beta alpha alphat Ct p ell z")
m, k, K_t, lam, lam_1, eta_t, sigma_t, R_t, mu_t, j = positive(
    "m k K_t lam lam_1 eta_t sigma_t R_t mu_t j"
)
N, rank, Xn, B, G, tau1, tau2 = positive("N rank Xn B G tau1 tau2")
w, A = real("w A")
_HALF = Rational(1, 2)
_THIRD = Rational(1, 3)

QUANTITIES = (
    Quantity(n, "number of records"),
    Quantity(d, "dimension"),
    Quantity(epsilon, "target epsilon"),
    Quantity(Lam, "log(1/delta)"),
    Quantity(F0, "public bound on the initial gap", {"gradient": 1, "parameter": 1}),
    Quantity(L0, "Lipschitz constant", {"gradient": 1}),
    Quantity(L1, "smoothness constant", {"gradient": 1, "parameter": -1}),
    Quantity(W, "bound on the norm of the minimizer", {"parameter": 1}),
    Quantity(D, "depth of the tree"),
    Quantity(K_t, "inner steps"),
    Quantity(T, "rounds"),
    Quantity(k, "embedding dimension"),
    Quantity(kappa, "common scale of the noise multipliers"),
)

_T1 = (F0 * L1) ** _THIRD * L0 ** (-2 * _THIRD) * abar ** (-4 * _THIRD)

SETTINGS = (
    Setting(abar, sqrt(d * Lam) / (n * epsilon), source="rate variable"),
    Setting(
        T1,
        _T1,
        printed=((F0 * L1) ** Rational(1, 4) / sqrt(L0 * abar)) ** (4 * _THIRD),
        source="Theorem 9, first branch of T",
    ),
    Setting(T, Max(T1, 1 / abar), source="Theorem 9", rounding="up"),
    Setting(
        q,
        1 / (2 * T * abar**2),
        printed=n**2 * epsilon**2 / (L1**2 * T * d * Lam),
        source="Theorem 9",
        rounding="down",
    ),
    Setting(b1, n, source="Theorem 9", rounding="up"),
    Setting(
        b2,
        Min(n, Max(1 / (T * abar**2), n / sqrt(T))),
        printed=Max(
            (L0 * n * epsilon / sqrt(F0 * L1 * d * Lam)) ** (2 * _THIRD),
            (L0 * n * d * Lam) ** _THIRD / ((L1 * F0) ** Rational(1, 6) * epsilon ** (2 * _THIRD)),
        ),
        source="Theorem 9",
        rounding="up",
    ),
    Setting(eta, 1 / (2 * L1), source="Theorem 9"),
    Setting(
        sigma1,
        L0 / b1 * kappa * sqrt(Max(1, b1**2 * T / (q * n**2))),
        printed=L0 * kappa * Max(1 / b1, sqrt(T) / sqrt(q * n)),
        source="Algorithm 1, line 2",
    ),
    Setting(sigma2, L1 / b2 * kappa * Max(1, b2 * sqrt(T) / n), source="Algorithm 1, line 2"),
    Setting(cap2, 2 * L0 / b2 * kappa * Max(1, b2 * sqrt(T) / n), source="Algorithm 1, line 2"),
    Setting(tau1_sq, d * sigma1**2, printed=L0**2 / b1 + L0**2 * sigma1**2, source="Section 3.1"),
    Setting(
        tau2_sq, L1**2 / b2 + d * sigma2**2, printed=L1**2 / b2**2 + d * sigma2**2, source="Thm 9"
    ),
    Setting(
        b,
        sqrt(Max(n ** (4 * _THIRD), n * sqrt(d + 1) / epsilon)),
        printed=Max(n ** (2 * _THIRD), sqrt(n * d ** Rational(1, 4)) / sqrt(epsilon)),
        source="Theorem 4",
    ),
    Setting(
        alpha,
        L0 * sqrt(2 * Max(1 / b, (d + 1) / (b * epsilon) ** 2)),
        source="Lemma 5, as an equality",
    ),
    Setting(
        beta,
        alpha * sqrt(Min(1, b * epsilon**2 / (d + 1))),
        printed=alpha * Min(1, sqrt(b * epsilon) / sqrt(d)),
        source="Theorem 4",
    ),
    Setting(
        lam,
        L0**2 / (L1 * W**2) * Min(1 / n, d / (n * epsilon) ** 2),
        printed=L0**2 / (L1 * W) * Min(1 / n, d / (n * epsilon) ** 2),
        source="Theorem 5.1",
    ),
    Setting(
        sigma_t,
        8 * L0 * T * sqrt(K_t * Lam) / (n * epsilon),
        printed=8 * L0 * K_t * sqrt(Lam) / (n * epsilon),
        source="Theorem 5.1",
    ),
)


def _depth_first(depth: int) -> list[str]:
    """Return the labels of a binary tree in depth-first order, without the root."""

    def visit(label: str) -> list[str]:
        here = [label] if label else []
        return here if len(label) == depth else here + visit(label + "0") + visit(label + "1")

    return visit("")


def _tree_facts(depth: int) -> bool:
    """Counts of nodes, leaves and right children, and what follows each leaf."""
    order = _depth_first(depth)
    leaves = [k for k, label in enumerate(order) if len(label) == depth]
    right = [label for label in order if label.endswith("1")]
    follows = all(order[k + 1].endswith("1") for k in leaves[:-1])
    noise = max(1 + label.count("1") for label in order)
    return (
        len(order) == 2 ** (depth + 1) - 2
        and len(leaves) == 2**depth
        and len(right) == 2**depth - 1
        and follows
        and noise == depth + 1
    )


def _leaves(depth: int) -> int:
    return sum(len(label) == depth for label in _depth_first(depth))


def _printed_leaf_count(depth: int) -> bool:
    """A tree of this depth has 2^(D - 1) leaves."""
    return _leaves(depth) * 2 == 1 << depth


def _true_leaf_count(depth: int) -> bool:
    """A tree of this depth has 2^D leaves."""
    return _leaves(depth) == 1 << depth


def _steps_of_round(depth: int, carry: bool) -> int:
    """Count the leaf steps that reach a later iterate."""
    return _leaves(depth) if carry else _leaves(depth) - 1


def _printed_round(depth: int) -> bool:
    """Every leaf contributes a step when a round starts at the last leaf's point."""
    return _steps_of_round(depth, carry=False) == 1 << depth


def _carried_round(depth: int) -> bool:
    """Every leaf of a round contributes a step when its last step is carried over."""
    return _steps_of_round(depth, carry=True) == 1 << depth


def _records_of_round(depth: int) -> bool:
    """A round uses b (D/2 + 1) records."""
    right = [label for label in _depth_first(depth) if label.endswith("1")]
    used = 1 + sum(Fraction(1, 2 ** len(label)) for label in right)
    return used == 1 + Fraction(depth, 2)


def _printed_blocks(rounds: int) -> bool:
    """The loop t = 1..T-1 uses all T blocks of n/T records."""
    return len(range(1, rounds)) == rounds


def _all_blocks(rounds: int) -> bool:
    """The loop t = 1..T uses all T blocks of n/T records."""
    return len(range(1, rounds + 1)) == rounds


def _printed_releases(case: tuple[int, int]) -> bool:
    """The loop t = 0..T makes at most T/q refreshes."""
    total, period = case
    return sum(t % period == 0 for t in range(total + 1)) * period <= total


def _useful_releases(case: tuple[int, int]) -> bool:
    """The loop t = 0..T-1 makes ceil(T/q) refreshes, and every release reaches an output."""
    total, period = case
    refreshes = sum(t % period == 0 for t in range(total))
    return refreshes == -(-total // period)


def _integer_depth(size: int) -> bool:
    """D 2^(D + 1) = b has a whole solution D."""
    return any(k * 2 ** (k + 1) == size for k in range(1, 30))


def _floored_depth(size: int) -> bool:
    """The largest D with D 2^(D + 1) <= b keeps D 2^D/b <= 1/2."""
    depth = max(k for k in range(1, 30) if k * 2 ** (k + 1) <= size)
    return Fraction(depth * 2**depth, size) <= _FRACTION_HALF


_FRACTION_HALF = Fraction(1, 2)


def _total_variation_is_small(size: int) -> bool:
    """Total variation of Binomial(n, 1/2 -+ p/2), p = 1/(4 sqrt n), is at most 1/4."""
    root = int(size**0.5)
    shift = Fraction(1, 8 * root)
    low, high = _FRACTION_HALF - shift, _FRACTION_HALF + shift

    def mass(chance: Fraction, k: int) -> Fraction:
        return comb(size, k) * chance**k * (1 - chance) ** (size - k)

    return sum(abs(mass(low, k) - mass(high, k)) for k in range(size + 1)) / 2 <= Fraction(1, 4)


def _geometric_sum(case: tuple[Fraction, int]) -> bool:
    """Sum (1 - x)^-k = ((1 - x)^-K - 1)/x."""
    step, count = case
    total = sum((1 - step) ** -k for k in range(1, count + 1))
    return total == ((1 - step) ** -count - 1) / step


def _modulus(rounds: int) -> bool:
    """The weights lam_t = 2^t lam add up to (2^t - 1) lam, between lam_t/2 and lam_t."""
    total = sum(2**k for k in range(rounds))
    return bool(total == 2**rounds - 1 and total < 2**rounds <= 2 * total)


_A = u / 2 - L1 * u**2 / 2 - u**3 * x * v / 2  # u = eta, x = tau2^2, v = q
_A_AT = {u: 1 / (2 * L1)}
_FIRST = {T: T1}

_ALGORITHM_1 = (
    Balance(
        "S1", sqrt(F0 * L1 / T1), L0 * T1 * abar**2, of=T1, statement="T1 balances both errors"
    ),
    Identity(
        "S2",
        T1,
        ((F0 * L1) ** Rational(1, 4) * n * epsilon / sqrt(L0 * d * Lam)) ** (4 * _THIRD),
        statement="T1 as Theorem 9 prints it",
    ),
    Identity("S3", sqrt(F0 * L1 / T1), (sqrt(F0 * L1 * L0) * abar) ** (2 * _THIRD)),
    Identity(
        "S4",
        sqrt(F0 * L1 * L0) * sqrt(d * Lam) / (n * epsilon),
        sqrt(F0 * L1 * L0 * d * Lam) / (n * epsilon),
        statement="Theorems 1 and 9 print the same rate",
    ),
    Identity("S5", L0 * (1 / abar) * abar**2, L0 * abar, statement="second branch"),
    Bound(
        "S5.branch",
        sqrt(F0 * L1 / T),
        L0 * abar,
        where=(Le(F0 * L1, L0**2 * abar),),
        free=(abar,),
        statement="when the second branch is active it dominates",
    ),
    Bound(
        "S5.T1", T1, 1 / abar, where=(Le(F0 * L1, L0**2 * abar),), free=(abar,), statement="switch"
    ),
    Bound("S5.T", T1, T, free=(abar, T1), statement="T is at least the balance"),
    Bound("S5.T2", 1 / abar, T, free=(abar, T1), statement="T is at least 1/abar"),
    Identity(
        "S6",
        L0 * sqrt(T / q) * abar,
        sqrt(2) * L0 * T * abar**2,
        free=(T,),
        statement="refresh error with the period q",
    ),
    Bound("S7", q, T, free=(abar, T1), statement="T >= q"),
    Identity("S8", 1 / (T1 * abar**2), (L0 / (sqrt(F0 * L1) * abar)) ** (2 * _THIRD), free=(abar,)),
    Identity(
        "S9",
        1 / (T1 * abar**2),
        (L0 * n * epsilon / sqrt(F0 * L1 * d * Lam)) ** (2 * _THIRD),
        statement="first branch of b2",
    ),
    Identity(
        "S10",
        n / sqrt(T1),
        (L0 * n * d * Lam) ** _THIRD / ((L1 * F0) ** Rational(1, 6) * epsilon ** (2 * _THIRD)),
        statement="second branch of b2",
    ),
    Identity(
        "S11",
        d * L0**2 * kappa**2 * T / (q * n**2),
        L0**2 * T * abar**2 / q,
        free=(T, q, abar),
        at={kappa: n * abar / sqrt(d)},
        statement="squared refresh error when kappa = n abar/sqrt(d)",
    ),
    Identity("S11.tau", tau1_sq, d * sigma1**2, free=(sigma1,), statement="isotropic noise"),
    Identity(
        "S11.sigma",
        sigma1,
        L0 * kappa * sqrt(T / q) / n,
        free=(T, q),
        at={T: q * (1 + x)},
        statement="refresh noise when T >= q",
    ),
    Identity(
        "S12",
        sigma2,
        L1 * kappa * sqrt(T) / n,
        free=(b2, T),
        at={b2: n * (1 + x) / sqrt(T)},
        statement="difference noise per unit of movement when b2 >= n/sqrt(T)",
    ),
    Identity("S13", cap2 / sigma2, 2 * L0 / L1, free=(b2, T), statement="constant multiplier"),
    Identity(
        "S13.min",
        Min(sigma2 * move, cap2),
        sigma2 / L1 * Min(L1 * move, 2 * L0),
        free=(b2, T),
        statement="noise and sensitivity are capped alike",
    ),
    Bound("S14", n / sqrt(T), b2, free=(T, abar), where=(Ge(T, 1),), statement="branch of sigma2"),
    Bound("S15", (1 - r) / b2, 1 / b2, free=(b2,), statement="sampling variance, Poisson"),
    Bound(
        "S15.wor",
        (n - u) / ((n - 1) * u),
        1 / u,
        where=(Ge(u, 1), Ge(n, 2)),
        on={n: (2, oo), u: (1, oo)},
        statement="sampling variance, without replacement",
    ),
    Identity(
        "S15.tau",
        tau2_sq,
        L1**2 * (1 + x) / b2 - L1**2 * x / b2 + d * sigma2**2,
        free=(b2, sigma2),
        statement="variance of a batch mean, and isotropic noise",
    ),
    Identity("S16", _A, (1 - x * v / (2 * L1**2)) / (8 * L1), at=_A_AT, statement="descent"),
    Identity("S16.eta", eta * L1, _HALF, statement="step size"),
    Identity("S17", _A, 1 / (16 * L1), at={**_A_AT, v: L1**2 / x}, statement="descent at q"),
    Identity("S17.zero", _A, 0, at={**_A_AT, v: 2 * L1**2 / x}, statement="no descent at twice q"),
    Identity(
        "S18",
        2 * F0 / (T * A) * (1 + x * u**2 * v) + (u / A + 2 + x * u**3 * v / A) * r,
        40 * F0 * L1 / T + 12 * r,
        at={A: 1 / (16 * L1), u: 1 / (2 * L1), v: L1**2 / x},
        free=(T,),
        statement="explicit constants of Lemma 3, r = tau1^2",
    ),
    Identity("S19", T1 / (T1 * abar**2), n**2 * epsilon**2 / (d * Lam), statement="cost, first"),
    Identity(
        "S19.second",
        T1 * n / sqrt(T1),
        n ** (5 * _THIRD) * epsilon ** (2 * _THIRD) * d ** (-_THIRD),
        at={F0: 1, L1: 1, L0: 1, Lam: 1},
        statement="cost, second",
    ),
    Identity(
        "S20",
        n / (sqrt(d) / (n * epsilon)) ** (2 * _THIRD),
        (n**5 * epsilon**2 / d) ** _THIRD,
        statement="both printings of the oracle complexity",
    ),
    Bound(
        "S21",
        1 / (T1 * abar**2),
        n,
        where=(Le(L0**2 * epsilon**2 / (F0 * L1 * d * Lam), n),),
        statement="first branch of b2 is at most n",
    ),
    Bound(
        "S22",
        n / sqrt(T1),
        n,
        where=(Le(L0**2 * abar**4, F0 * L1),),
        free=(abar,),
        statement="second branch of b2 is at most n under its own condition",
    ),
    Feasible(
        "S23",
        (Le(1, 1 / (T * abar**2)), Le(1 / T, 1)),
        where=(Le(abar, 1), Le(sqrt(F0 * L1) * abar, L0)),
        free=(abar,),
        statement="period and rounds are at least 1 (before the factor 2)",
    ),
    Feasible(
        "S23.b2",
        (Le(b2, n), Le(1, b2)),
        where=(Le(abar, 1), Ge(n, 1), Le(1 / n, T * abar**2), Ge(T, 1), Le(T * abar**2, 1)),
        free=(abar, T),
        statement="1 <= b2 <= n",
    ),
    Identity(
        "S23.second",
        b2,
        n / (1 + u),
        free=(T, abar),
        at={abar: sqrt((1 + x) / (n * sqrt(T))), T: (1 + u) ** 2},
        statement="b2 where the amplified branch decides",
    ),
    Identity(
        "S23.first",
        b2,
        n / (1 + v),
        free=(T, abar),
        at={abar: 1 / sqrt((1 + x) * n * sqrt(T)), T: ((1 + x) * (1 + v)) ** 2},
        statement="b2 where the period decides",
    ),
    Units("S24.T", T, {}, statement="rounds are a number"),
    Units("S24.q", q, {}, statement="the period is a number"),
    Units("S24.b2", b2, {}, statement="the batch is a number"),
    Units("S24.eta", eta, {"gradient": -1, "parameter": 1}, statement="step size"),
    Units("S24.sigma1", sigma1, {"gradient": 1}, statement="refresh noise"),
    Units("S24.sigma2", sigma2, {"gradient": 1, "parameter": -1}, statement="difference noise"),
    Units("S24.lam", lam, {"gradient": 1, "parameter": -1}, statement="regularization"),
    Units("S24.tau1", tau1_sq, {"gradient": 2}, statement="squared refresh error"),
    Identity("S24.abar", abar**2, d * Lam / (n * epsilon) ** 2, statement="rate variable"),
    Identity("S24.b1", b1, n, statement="refreshes use all records"),
)


_LATE = {d: b * epsilon**2 * (1 + x) - 1}
_EARLY = {d: b * epsilon**2 / (1 + x) - 1}
_LEMMA5 = (L0**2 / b + beta**2 / 2) * Max(1, (d + 1) / (b * epsilon**2))

_TREE = (
    Identity(
        "S25",
        2 * 2 ** (D - j) * (2**j / u) * v / 2 ** (D / 2),
        2 * v * 2 ** (D / 2) / u,
        statement="right-child sensitivity does not depend on the depth",
    ),
    Identity("S26", 2 * ell * (2 * L0 / u) ** 2, 8 * L0**2 * ell / u**2, statement="root noise"),
    Identity(
        "S26.node",
        2 * ell * (2 * v * 2 ** (D / 2) / u) ** 2,
        8 * 2**D * v**2 * ell / u**2,
        statement="node noise",
    ),
    Enumeration("S27", _records_of_round, list(range(1, 9)), statement="records of a round"),
    Bound("S27.cost", 2 * (D + 1) / (D + 2), 2, statement="gradient evaluations per record"),
    Identity("S28", n / (u * (D / 2 + 1)) * u * (D / 2 + 1), n, statement="budget of T rounds"),
    Enumeration("S29", _tree_facts, list(range(1, 9)), statement="depth-first order"),
    Identity("S30", 2 ** (D / 2), sqrt(u / (2 * D)), at={u: D * 2 ** (D + 1)}),
    Bound(
        "S31",
        (d + 1) / (b * epsilon) ** 2,
        sqrt(d + 1) / (n * epsilon),
        at={d: x - 1},
        statement="privacy error of a round's root, x = d + 1",
    ),
    Bound("S31.b", 1 / b, n ** (-2 * _THIRD), statement="sampling error of a round's root"),
    Identity(
        "S32",
        n ** (2 * _THIRD),
        sqrt(n) * u ** Rational(1, 4) / sqrt(epsilon),
        at={u: n ** (2 * _THIRD) * epsilon**2},
        statement="the two batch sizes meet",
    ),
    Bound(
        "S33",
        b * (D / 2 + 1),
        n,
        where=(Le((D / 2 + 1) ** 3, n), Le(sqrt(d + 1) * (D / 2 + 1) ** 2 / epsilon, n)),
        at={D: 2 * u - 2},
        statement="at least one round fits (u = D/2 + 1)",
    ),
    Identity("S34", 8 * 32, 256, statement="tail constant"),
    Identity(
        "S35",
        4 * L0**2 / u + 4 * v**2 * 2**D / u,
        4 * (L0**2 / u + v**2 * 2**D / u),
        statement="variance proxy of a leaf",
    ),
    Identity("S36", 4 * 2 * u / p, 2 * T * 2 ** (D + 1) / p, at={u: T * 2 ** (D - 1)}, free=(T,)),
    Bound(
        "S37",
        64 * log(8 * x),
        256 * _THIRD * log(4 * x),
        on={x: (3, 10**6)},
        statement="with all leaves counted the martingale part fits (log(1.25/delta) >= 1/3)",
    ),
    Bound(
        "S38",
        log(16),
        4 * ell * log(8),
        where=(Ge(ell, _THIRD),),
        statement="the leaf count is absorbed when log(1.25/delta) >= 1/3",
    ),
    Identity("S39.late", _LEMMA5, alpha**2, free=(b,), at=_LATE, statement="Lemma 5 balance"),
    Identity("S39.early", _LEMMA5, alpha**2, free=(b,), at=_EARLY, statement="Lemma 5 balance"),
    Identity(
        "S39.alpha",
        alpha**2,
        2 * L0**2 * (1 + x) / b,
        free=(b,),
        at=_LATE,
        statement="accuracy where privacy dominates",
    ),
    Bound(
        "S40",
        -x / 2 + w / 4,
        -x / 4,
        at={w: u},
        where=(Le(u, x),),
        statement="descent of one leaf step (x = stopping level, u = accuracy)",
    ),
    Identity(
        "S41",
        F0 / (T * u * v / (2 * D) / (2 * 4 * sqrt(v / (2 * D)) * L1)),
        8 * L1 * F0 * sqrt(2 * D) * (D / 2 + 1) * sqrt(v) / (n * u),
        free=(T, b),
        at={T: n / (v * (D / 2 + 1))},
        statement="contradiction threshold, v = b",
    ),
    Bound(
        "S42",
        n ** (-_HALF) * x ** Rational(1, 4),
        x,
        where=(Le(n ** (-2 * _THIRD), x),),
        statement="last step of Theorem 4's proof, x = sqrt(d)/(n epsilon)",
    ),
    Identity(
        "S43",
        8 * L1 * F0 * sqrt(2 * D) * (D / 2 + 1) / (2 * L0**2) * (2 * L0**2),
        8 * L1 * F0 * sqrt(2 * D) * (D / 2 + 1),
        statement="second term of the constant",
    ),
    Bound("S44", 2 * x + sqrt(u * x), 3 * x, where=(Le(u, x),), statement="final accuracy"),
    Bound(
        "S45",
        64 * (D + 1),
        64 * 2 * D,
        on={D: (1, oo)},
        statement="a floored depth keeps the constant",
    ),
    Enumeration(
        "S45.depth", _floored_depth, [4, 5, 15, 16, 100, 1000, 12345], statement="floored depth"
    ),
    Private(
        "S46",
        (Release(2 * L0 / u, 2 * L0 / u * Rational(422469, 100000), 1),),
        epsilon=1,
        delta=Rational(1, 10**6),
        statement="one release at multiplier 4.22469 is (1, 1e-6)-DP",
    ),
)


def _joint_run(scale: float) -> DpEvent:
    """53 refreshes, 2621 sampled differences: n = 10^4, T = 2674, q = 51, b2 = 194."""
    from dpcal.accountants import events

    refresh = events.GaussianDpEvent(scale * (2674 / 51) ** 0.5)
    gaussian = events.GaussianDpEvent(scale * 194 * 2674**0.5 / 10_000)
    difference = events.PoissonSampledDpEvent(0.0194, gaussian)
    return events.ComposedDpEvent(
        [
            events.SelfComposedDpEvent(refresh, 53),
            events.SelfComposedDpEvent(difference, 2621),
        ]
    )


_kap = x  # condition number of a subproblem

_RECURSIVE = (
    Enumeration("S47", _modulus, list(range(1, 30)), statement="strong convexity of a round"),
    Enumeration(
        "S48",
        _geometric_sum,
        [(Fraction(a, 7), k) for a in (1, 2, 5) for k in (1, 4, 9)],
        statement="selector weights",
    ),
    Identity("S49", log(u) / (v * u) * v * u, log(u), statement="step times modulus times steps"),
    Bound(
        "S50",
        _kap * log(2 * _kap * log(_kap)),
        2 * _kap * log(_kap),
        on={_kap: (2, 1000)},
        statement="K = 2 kap log kap meets the step condition K/log K >= kap",
    ),
    Identity(
        "S51",
        K_t * (2 * L0 * T / n) ** 2 / (2 * sigma_t**2),
        epsilon**2 / (32 * Lam),
        free=(T,),
        statement="budget of a round, zCDP",
    ),
    Bound(
        "S51.budget",
        epsilon**2 / (32 * Lam) + epsilon / sqrt(8),
        epsilon,
        where=(Le(epsilon, 20 * Lam),),
        statement="the zCDP budget gives (epsilon, delta) for epsilon <= 20 Lam",
    ),
    Identity(
        "S52",
        K_t * (2 * L0 * T / n) ** 2 / (2 * sigma_t**2),
        T**2 * epsilon**2 / (32 * K_t * Lam),
        free=(T,),
        printed=(sigma_t,),
        statement="printed noise: private only for K of the order of T^2",
    ),
    Identity(
        "S53",
        d * sigma_t**2 / K_t,
        64 * d * L0**2 * T**2 * Lam / (n * epsilon) ** 2,
        free=(T,),
        statement="noise part of the excess does not depend on K",
    ),
    Identity(
        "S54", (2**j * u) ** 2 * (2 ** (j / 2) * W) ** 2, 8**j * u**2 * W**2, statement="bias"
    ),
    Identity("S54.last", 8**j * u**2 * W**2, L1**3 * W**2 / u, at={L1: 2**j * u}),
    Identity(
        "S55",
        (L0**2 + L1**3 * W**2 / u) / v,
        d * L0**2 * T**2 * Lam / (n * epsilon) ** 2,
        at={v: n**2 * epsilon**2 * (L0**2 * u + L1**3 * W**2) / (T**2 * u * d * L0**2 * Lam)},
        free=(T,),
        statement="inner steps balance bias and noise",
    ),
    Units("S56", L0**2 * lam, {"gradient": 3, "parameter": -1}, statement="unit of S55"),
    Units("S56.second", L1**3 * W**2, {"gradient": 3, "parameter": -1}, statement="unit of S55"),
    Bound(
        "S57",
        W**2 + v * W**2,
        2 * v * W**2,
        where=(Ge(v, 1),),
        statement="radii sqrt(2^t) W satisfy the recursion, v = 2^t",
    ),
    Identity("S57.root", W**2 + j * W**2, (j + 1) * W**2, statement="so do radii sqrt(t) W"),
    Bound(
        "S58",
        u * W + L1 * v,
        u * W + 4 * u * v,
        where=(Le(L1, 4 * u),),
        statement="gradient of the last center, one round (u = lam, v = its error)",
    ),
    Bound(
        "S59",
        u * x,
        2 * sqrt(u * v),
        where=(Le(u * x**2 / 4, v),),
        statement="distance from excess, modulus at least lam/2",
    ),
    Identity(
        "S60",
        lam * W,
        L0**2 / (L1 * W) * Min(1 / n, d / (n * epsilon) ** 2),
        statement="bias of the regularization",
    ),
    Identity(
        "S61",
        sqrt(K_t) * (2 * L0 / m) / (2 * L0 / m * sqrt(K_t) * z),
        1 / z,
        statement="exact noise of noisy gradient descent: K cancels",
    ),
    Identity(
        "S62",
        log(u) / (v * K_t) * 4 * d * L0**2 * K_t * z**2 / m**2,
        4 * d * L0**2 * z**2 * log(u) / (v * m**2),
        statement="noise part with the generalised step: K cancels",
    ),
)

_GLM = (
    Identity("S63", (sqrt(2) * Xn) ** 2 * L1, 2 * L1 * Xn**2, statement="projected smoothness"),
    Bound("S63.lipschitz", sqrt(2) * L0 * Xn, 2 * L0 * Xn, statement="projected Lipschitz"),
    Balance(
        "S64",
        k**_THIRD / N ** (2 * _THIRD),
        k ** (-_HALF),
        of=k,
        at={k: N ** Rational(4, 5)},
        statement="embedding dimension, nonconvex",
    ),
    Identity("S64.error", k ** (-_HALF), N ** Rational(-2, 5), at={k: N ** Rational(4, 5)}),
    Balance("S65", sqrt(k) / N, k ** (-_HALF), of=k, at={k: N}, statement="convex"),
    Identity(
        "S66",
        (sqrt(rank * ell) / N) ** (2 * _THIRD),
        (sqrt(rank) / N) ** (2 * _THIRD) * ell**_THIRD,
        statement="rank branch",
    ),
    Bound(
        "S67",
        (sqrt(rank) / N) ** (2 * _THIRD),
        N ** Rational(-2, 5),
        where=(Le(rank, N ** Rational(4, 5)),),
        statement="where the rank branch wins",
    ),
    Bound(
        "S68",
        2 / (1 - log(2)),
        Rational(6518, 1000),
        statement="chi-square tail: k >= 6.518 log(2n/delta) is enough",
    ),
    Identity(
        "S69", k**_THIRD / N ** (2 * _THIRD), k ** Rational(-1, 4), at={k: N ** Rational(8, 7)}
    ),
)

_LOWER = (
    Identity("S70", L1 * u, L0, at={u: L0 / L1}, statement="Huber slope at the switch"),
    Identity("S71", L1 * (B / 2) ** 2 / (B / 2), L0 / 2, at={B: L0 / L1}, statement="sphere"),
    Prose(
        "S72",
        "a bound over all vectors and data sets; it repairs E46 and was derived on paper",
        statement="||grad F(w)|| >= (L1/2) ||Proj(w) - mean|| for every w",
    ),
    Identity("S73", L1 * u + L0 / 2, L0, at={u: L0 / (2 * L1)}, statement="total slope"),
    Bound(
        "S74",
        Rational(1, 8),
        Rational(1, 4) - 1 / (8 * sqrt(n)),
        on={n: (1, oo)},
        statement="case 1 of Theorem 7",
    ),
    Identity(
        "S74.second",
        (L0 * v * r / 2 + L1 * u) ** 2,
        L0**2 / 4 * (v * r - x) ** 2,
        at={u: -L0 * x / (2 * L1)},
        statement="case 2 of Theorem 7",
    ),
    Identity(
        "S75",
        L0 / 2 * r * (1 - Rational(1, 4)) / 2,
        3 * L0 / (64 * sqrt(n)),
        at={r: 1 / (4 * sqrt(n))},
        statement="two-point constant",
    ),
    Enumeration(
        "S75.tv", _total_variation_is_small, [1, 4, 9, 16, 25, 64, 100], statement="binomials"
    ),
    Identity(
        "S76",
        (F0 * tau2 * tau1 / G) ** _THIRD,
        (F0 * L1 * L0) ** _THIRD * abar ** (2 * _THIRD),
        at={tau1: L0 * sqrt(G) * abar, tau2: L1 * sqrt(G) * abar},
        free=(abar,),
        statement="Theorem 10: G cancels",
    ),
    Bound(
        "S77",
        (F0 * L1 * L0) ** _THIRD * abar ** (2 * _THIRD),
        L0 * abar,
        where=(Le(L1, L0**2 * abar / F0),),
        free=(abar,),
        statement="window in which Theorem 1 is optimal",
    ),
    Balance(
        "S78",
        2 * F0 * L1 / u,
        L0**2 * u * abar**2,
        of=u,
        at={u: sqrt(2 * F0 * L1) / (L0 * abar)},
        free=(abar,),
        statement="steps of plain noisy gradient descent",
    ),
    Identity(
        "S79",
        sqrt(d) * epsilon,
        (sqrt(d) / (n * epsilon)) ** _HALF,
        at={epsilon: d ** Rational(-1, 6) * n ** (-_THIRD)},
        statement="comparison with an earlier rate",
    ),
    Feasible(
        "S80",
        (Le(x ** (2 * _THIRD), sqrt(x)), Le(sqrt(x), x ** Rational(2, 5))),
        where=(Le(x, 1),),
        statement="order of the exponents",
    ),
    Bound(
        "S81",
        n ** (-_THIRD),
        sqrt(d / n),
        where=(Le(n**_THIRD, d),),
        statement="faster than uniform convergence for d >= n^(1/3)",
    ),
)

_CASES = [(total, period) for total in (5, 6, 12) for period in (2, 3, 5)]
_TEXTBOOK = sqrt(2 * log(Rational(125, 100) * 10**5))

_ALGORITHM_1_ERRATA = (
    erratum(
        "E1",
        "The period q of Theorem 9 carries a factor L1^-2 that its proof does not.",
        Bound("", 2 * L1**2 * T * abar**2 * q, L1**2, free=(T,), statement="tau2^2 q <= L1^2"),
        settings=(q,),
        use="q = 1/(2 T abar^2), rounded down.",
        severity="rate",
        source="Theorem 9",
    ),
    erratum(
        "E2",
        "sqrt(T)/sqrt(q n) for sqrt(T)/(sqrt(q) n): the noise variance is n times too large.",
        Identity(
            "",
            sigma1,
            L0 * kappa * sqrt(T / q) / n,
            free=(T, q),
            at={T: q * (1 + x)},
            statement="refresh noise from Theorem 8 with T/q refreshes",
        ),
        settings=(sigma1,),
        use="sqrt(T/q)/n.",
        severity="rate",
        source="Algorithm 1, line 2",
    ),
    erratum(
        "E3",
        "tau1^2 adds the noise variance times L0^2 although it contains L0 and acts on d "
        "coordinates.",
        Units("", tau1_sq, {"gradient": 2}, statement="squared error has the unit of a gradient^2"),
        settings=(tau1_sq,),
        use="Sampling error (0 for b1 = n) plus d sigma1^2.",
        severity="rate",
        source="Section 3.1",
    ),
    erratum(
        "E4",
        "With q = 1/(T abar^2) the descent coefficient can vanish.",
        Bound("", 1 / (16 * L1), (1 - x) / (8 * L1), at={x: _HALF}, statement="q <= L1^2/tau2^2"),
        printed=Bound(
            "", 1 / (16 * L1), (1 - x) / (8 * L1), at={x: 1}, statement="A at tau2^2 q = 2 L1^2"
        ),
        use="The factor 2 in q.",
        severity="rate",
        source="Theorem 9",
    ),
    erratum(
        "E5",
        "The condition on n that should give q >= 1 lacks sqrt(log(1/delta)).",
        Bound("", 1, T, where=(Le(sqrt(d * Lam) / epsilon, n),), statement="T >= 1"),
        printed=Bound(
            "",
            1,
            T,
            where=(Le(sqrt(d) * Max(1, sqrt(L1 * F0) / L0) / epsilon, n),),
            points=({n: 1100, d: 10**6, epsilon: 1, Lam: 14, L0: 1, L1: 1, F0: 1},),
            statement="T >= 1 under the printed condition",
        ),
        use="n >= sqrt(d log(1/delta)) max(1, sqrt(L1 F0)/L0)/epsilon.",
        severity="rate",
        source="Theorems 1 and 9",
    ),
    erratum(
        "E6",
        "b2 <= n does not follow: it needs a lower bound on F0 L1.",
        Bound("", b2, n, statement="b2 from the actual T, capped, is at most n"),
        printed=Bound(
            "",
            b2,
            n,
            printed=(b2,),
            where=(
                Le(sqrt(d * Lam) / epsilon, n),
                Le(sqrt(d * Lam * L1 * F0) / (L0 * epsilon), n),
                Le(L0**2 * epsilon**2 / (F0 * L1 * d * Lam), n),
            ),
            points=(
                {
                    n: 10**4,
                    d: 10**6,
                    epsilon: 1,
                    Lam: Rational(115, 10),
                    L0: 1,
                    L1: 1,
                    F0: Rational(1, 10**4),
                },
            ),
            statement="printed b2 <= n under the stated conditions",
        ),
        use="b2 = min(n, max(1/(T abar^2), n/sqrt(T))) with the actual T.",
        severity="rate",
        source="Theorem 9",
    ),
    erratum(
        "E7",
        "T and b2 are rounded down although they enter as lower bounds.",
        Bound("", T, T + x, free=(T,), statement="rounding up keeps a lower bound (x < 1)"),
        printed=Bound("", T, T - x, free=(T,), statement="rounding down keeps a lower bound"),
        use="Round T and b2 up, q down.",
        source="Theorem 9",
    ),
    erratum(
        "E8",
        "tau2^2 = O(L1^2/b2^2): the variance of a batch mean is L1^2/b2.",
        Identity("", u * (L1 / u) ** 2, L1**2 / u, statement="variance of a mean of u terms"),
        printed=Identity("", u * (L1 / u) ** 2, L1**2 / u**2, statement="variance of the mean"),
        use="L1^2/b2.",
        source="Theorem 9",
    ),
    erratum(
        "E9",
        "The displays in the proof of Theorem 9 put abar under the root.",
        Identity(
            "",
            T1,
            ((F0 * L1) ** Rational(1, 4) / (sqrt(L0) * abar)) ** (4 * _THIRD),
            free=(abar,),
            statement="T1 with abar outside the root",
        ),
        settings=(T1,),
        use="abar outside the root.",
        source="Theorem 9",
    ),
    erratum(
        "E10",
        "Theorem 8 divides the sum over a batch of size b by n.",
        Identity("", u * (1 / u), 1, statement="mean of a constant over a batch of u"),
        printed=Identity("", u * (1 / n), 1, statement="mean of a constant as printed"),
        use="1/b, and exact accounting in place of Theorem 8.",
        severity="privacy",
        source="Theorem 8",
    ),
    erratum(
        "E11",
        "Refreshes and differences each get the whole budget; their union costs twice the zCDP.",
        Private(
            "",
            (Release(1, sqrt(2) * z, 1), Release(1, sqrt(2) * z, 1)),
            rho=1 / (2 * z**2),
            statement="both families at sqrt(2) z compose to one release at z",
        ),
        printed=Private(
            "",
            (
                Release(1, Rational(422468, 100000), 1),
                Release(1, Rational(422468, 100000), 1),
            ),
            epsilon=1,
            delta=Rational(1, 10**6),
            statement="two families, each calibrated to (1, 1e-6), are (1, 1e-6)-DP together",
        ),
        use="Joint calibration: multipliers near sqrt(2) z*.",
        severity="privacy",
        source="Theorem 9",
    ),
    erratum(
        "E11.priced",
        "A scale that suits each family alone overspends for both.",
        Priced(
            "",
            lambda: _joint_run(5.999),
            epsilon=1.0,
            delta=1e-6,
            statement="both families at the common scale 5.999",
        ),
        printed=Priced(
            "",
            lambda: _joint_run(4.2248),
            epsilon=1.0,
            delta=1e-6,
            statement="both families at the scale of one Gaussian release",
        ),
        use="Joint calibration: a scale near sqrt(2) z*.",
        severity="privacy",
        source="Theorem 9",
    ),
    erratum(
        "E12",
        "The loop t = 0..T makes one release more than is ever used.",
        Enumeration("", _useful_releases, _CASES, statement="t = 0..T-1 makes ceil(T/q) refreshes"),
        printed=Enumeration("", _printed_releases, _CASES, statement="t = 0..T: at most T/q"),
        use="t = 0..T-1.",
        severity="algorithm",
        source="Algorithm 1",
    ),
    erratum(
        "E13",
        "A sampled batch of size n leaves a term L0/sqrt(n) in the empirical rate.",
        Identity(
            "",
            (n - u) / ((n - 1) * u),
            0,
            at={u: n},
            statement="all records leave no variance",
            where=(Gt(n, 1),),
        ),
        printed=Rate(
            "",
            (sqrt(d) / n) ** (2 * _THIRD) + 1 / sqrt(n),
            (sqrt(d) / n) ** (2 * _THIRD),
            growth={n: 1},
            statement="empirical rate with a sampled refresh",
        ),
        use="All records, exactly once.",
        severity="rate",
        source="Theorem 9",
    ),
    Erratum(
        "E14",
        "Index slips in the proof of Lemma 3.",
        Prose("E14.printed", "names of indices in a proof that is otherwise right"),
        use="Sum of eta^2 ||V_k||^2 over k = s_t..t-1.",
    ),
    erratum(
        "E15",
        "delta = 1 is allowed, at which the printed noise is 0.",
        Bound(
            "",
            Rational(1, 1000),
            sqrt(log(1 / u)),
            on={u: (Rational(1, 10**9), Rational(99, 100))},
            statement="noise scale for delta up to 0.99",
        ),
        printed=Bound(
            "",
            Rational(1, 1000),
            sqrt(log(1 / u)),
            on={u: (Rational(1, 10**9), 1)},
            points=({u: 1},),
            statement="noise scale for delta up to 1",
        ),
        use="epsilon > 0 and 0 < delta < 1.",
        source="Theorem 9",
    ),
    erratum(
        "E51",
        "The sensitivity of a difference is printed as proportional to beta instead of L1.",
        Units("", L1 * W, {"gradient": 1}, statement="L1 times movement is a gradient"),
        printed=Units("", L0 * W, {"gradient": 1}, statement="beta (a gradient) times movement"),
        use="L1 ||w_t - w_{t-1}||.",
        source="Section 3.1",
    ),
)

_TREE_ERRATA = (
    erratum(
        "E16",
        "The textbook Gaussian formula is used for every epsilon; it fails above about 8.4.",
        Private(
            "",
            (Release(1, _TEXTBOOK / u, 1),),
            epsilon=u,
            delta=Rational(1, 10**5),
            on={u: (Rational(1, 100), 1)},
            statement="the textbook noise is enough for epsilon <= 1 (delta = 1e-5)",
        ),
        printed=Private(
            "",
            (Release(1, _TEXTBOOK / u, 1),),
            epsilon=u,
            delta=Rational(1, 10**5),
            on={u: (Rational(1, 100), 12)},
            points=({u: Rational(17, 2)},),
            statement="the textbook noise is enough for every epsilon (delta = 1e-5)",
        ),
        use="The smallest multiplier of the exact Gaussian profile.",
        severity="privacy",
        source="Theorems 3 and 4",
    ),
    erratum(
        "E17",
        "The batch size is printed as sqrt(n d^(1/4)) for sqrt(n) d^(1/4).",
        Bound("", (d + 1) / (b * epsilon) ** 2, sqrt(d + 1) / (n * epsilon), at={d: x - 1}),
        printed=Bound("", d / (b * epsilon) ** 2, sqrt(d) / (n * epsilon), printed=(b,)),
        use="sqrt(n) d^(1/4)/sqrt(epsilon).",
        severity="rate",
        source="Theorem 4",
    ),
    erratum(
        "E18",
        "beta is printed with sqrt(b epsilon) for sqrt(b) epsilon.",
        Identity(
            "",
            beta**2,
            alpha**2 * Min(1, b * epsilon**2 / (d + 1)),
            free=(b, alpha),
            statement="movement in proportion to the accuracy",
        ),
        settings=(beta,),
        use="alpha min(1, sqrt(b) epsilon/sqrt(d + 1)).",
        severity="rate",
        source="Theorem 4",
    ),
    erratum(
        "E19",
        "Lemma 5's condition involves d + 1 while alpha and beta use d.",
        Identity("", _LEMMA5, alpha**2, free=(b,), at=_LATE, statement="Lemma 5 with d + 1"),
        printed=Bound(
            "",
            (L0**2 / u + x**2 / 2 * u * epsilon**2 / d) * (d + 1) / (u * epsilon**2),
            x**2,
            at={x: L0 * sqrt(2 * d) / (u * epsilon)},
            statement="Lemma 5 with d, where privacy dominates",
        ),
        use="d + 1 in b, alpha and beta.",
        severity="rate",
        source="Theorem 4",
    ),
    erratum(
        "E20",
        "A depth-D tree has 2^D leaves, not 2^(D-1).",
        Enumeration("", _true_leaf_count, list(range(1, 9))),
        printed=Enumeration("", _printed_leaf_count, list(range(1, 9))),
        use="N = T 2^D leaves in the union bound.",
        source="Theorem 4",
    ),
    erratum(
        "E21",
        "The step of a round's last leaf is dropped.",
        Enumeration("", _carried_round, list(range(1, 7))),
        printed=Enumeration("", _printed_round, list(range(1, 7))),
        use="Carry the last iterate into the next round.",
        severity="algorithm",
        source="Algorithm 2",
    ),
    erratum(
        "E22",
        "D 2^(D+1) = b has a whole solution for few b.",
        Enumeration("", _floored_depth, [4, 5, 17, 100, 1001], statement="floored depth"),
        printed=Enumeration("", _integer_depth, [4, 16, 48, 100], statement="whole depth"),
        use="The largest D with D 2^(D+1) <= b, and b a multiple of 2^D.",
        severity="algorithm",
        source="Theorem 4",
    ),
    erratum(
        "E23",
        "The proof of Lemma 5 drops the factor D of the node variances.",
        Identity("", D * v**2, v**2 * D, statement="variance of D nodes"),
        printed=Identity("", D * v**2, v**2, statement="variance of D nodes"),
        use="beta^2 D 2^D/b, as in the statement.",
        source="Lemma 5",
    ),
    Erratum(
        "E24",
        "s in {0,1}^D for {0,1}^{<=D}, and an index in the proof of Theorem 3.",
        Prose("E24.printed", "index ranges in prose"),
        use="All labels of length at most D.",
    ),
    erratum(
        "E25",
        "Oracle complexity n counts records; gradients are up to twice as many.",
        Bound("", 2 * (D + 1) / (D + 2), 2),
        printed=Bound("", 2 * (D + 1) / (D + 2), 1),
        use="n 2 (D+1)/(D+2) gradient evaluations.",
        source="Theorem 4",
    ),
    erratum(
        "E26",
        "The stopping level exceeds the Lipschitz constant until n is about 10^16.7.",
        Bound(
            "",
            2 * 256 * log(Rational(5, 4) * 10**6) * log(2 * 10**17) * sqrt(2) * n ** (-_THIRD),
            1,
            on={n: (10**18, oo)},
            at={n: 10**18},
            statement="first part of the stopping level at n = 10^18, in units of L0",
        ),
        printed=Bound(
            "",
            2 * 256 * log(Rational(5, 4) * 10**6) * log(10) * sqrt(2) * n ** (-_THIRD),
            1,
            on={n: (10**3, 10**12)},
            statement="the stopping level is below L0 for n up to 10^12",
        ),
        use="The numerical schedule, or a stopping level of the user's.",
        severity="rate",
        source="Theorem 4",
    ),
)

_ROUNDS = list(range(2, 9))

_RECURSIVE_ERRATA = (
    erratum(
        "E30",
        "The loop t = 1..T-1 leaves w_T and one block of records unused.",
        Enumeration("", _all_blocks, _ROUNDS),
        printed=Enumeration("", _printed_blocks, _ROUNDS),
        use="t = 1..T.",
        severity="algorithm",
        source="Algorithm 3",
    ),
    erratum(
        "E31",
        "lam of Theorem 5.1 has ||w*|| for ||w*||^2.",
        Units("", lam, {"gradient": 1, "parameter": -1}),
        settings=(lam,),
        use="L0^2/(L1 W^2) min(1/n, d/(n epsilon)^2).",
        severity="rate",
        source="Theorem 5.1",
    ),
    erratum(
        "E32",
        "K_t adds L0^2 lam and L1^(3/2), which have different units.",
        Units("", L0**2 * lam + L1**3 * W**2, {"gradient": 3, "parameter": -1}),
        printed=Units("", L0**2 * lam + L1 ** Rational(3, 2), {"gradient": 3, "parameter": -1}),
        use="L1^3 W^2.",
        severity="rate",
        source="Theorem 5.1",
    ),
    erratum(
        "E33",
        "sigma_t^2 grows with K^2 instead of K T^2: the noise is too small for few steps.",
        Private(
            "",
            (Release(2 * L0 * T / n, sigma_t, K_t),),
            rho=epsilon**2 / (32 * Lam),
            free=(T,),
            statement="every round fits epsilon^2/(32 Lam)",
        ),
        printed=Private(
            "",
            (Release(2 * L0 * T / n, sigma_t, K_t),),
            rho=epsilon**2 / (32 * Lam),
            free=(T,),
            printed=(sigma_t,),
            points=({K_t: 4, T: 9},),
            statement="every round fits epsilon^2/(32 Lam)",
        ),
        use="sigma_t = 2 L0 T/n sqrt(K) z*, exactly calibrated.",
        severity="privacy",
        source="Theorem 5.1",
    ),
    erratum(
        "E34",
        "K = kap log kap does not give eta <= 1/(L1 + lam).",
        Bound(
            "",
            _kap * log(2 * _kap * log(_kap)),
            2 * _kap * log(_kap),
            on={_kap: (2, 1000)},
            statement="K = 2 kap log kap",
        ),
        printed=Bound(
            "",
            _kap * log(_kap * log(_kap)),
            _kap * log(_kap),
            on={_kap: (2, 1000)},
            points=({_kap: 10},),
            statement="K = kap log kap",
        ),
        use="2 kap log kap.",
        severity="rate",
        source="Theorem 5.1",
    ),
    erratum(
        "E35",
        "Round t has modulus (2^t - 1) lam, below the lam_t that eta and the selector use.",
        Bound(
            "",
            v * u / 2,
            (v - 1) * u,
            where=(Ge(v, 2),),
            statement="half of lam_t is a modulus (v = 2^t)",
        ),
        printed=Bound("", 2**j * u, (2**j - 1) * u, statement="lam_t is a modulus"),
        use="mu_t = (2^t - 1) lam.",
        source="Theorem 5",
    ),
    erratum(
        "E36",
        "T = floor(log2(L1/lam)) is 0 or negative for lam > L1/2.",
        Bound("", 2, L1 / Min(u, L1 / 2), statement="L1/lam >= 2 with lam capped"),
        printed=Bound("", 2, L1 / u, statement="L1/lam >= 2"),
        use="lam = min(lam, L1/2).",
        source="Theorem 5",
    ),
    erratum(
        "E37",
        "The step of Theorem 5.2 breaks non-expansiveness, on which the noise rests.",
        Bound(
            "",
            log(n / T) / (2 * log(n)) * (1 + 2 * T * log(n) / n),
            2,
            free=(T,),
            on={n: (10**3, 10**8), T: (1, 22)},
            statement="eta_1 (L1 + lam_1) with lam = L1 T log(n)/n",
        ),
        printed=Bound(
            "",
            T * log(n / T) / (2 * log(n)) * (1 + 2 * log(n) / n),
            2,
            at={n: 1000, T: 7},
            statement="eta_1 (L1 + lam_1) with lam = L1 log(n)/n, n = 1000, T = 7",
        ),
        use="Refuse steps above 2/(L1 + mu_t).",
        severity="privacy",
        source="Theorem 5.2",
    ),
    erratum(
        "E38",
        "sigma_t has gradient units and is handed to an algorithm that perturbs iterates.",
        Units("", L0 / L1, {"parameter": 1}, statement="noise on an iterate"),
        printed=Units("", sigma_t, {"parameter": 1}, statement="sigma_t as noise on an iterate"),
        use="z* times 2 L0 eta.",
        severity="privacy",
        source="Theorem 5",
    ),
    Erratum(
        "E39",
        "F0 and ||w*|| are functions of the data, hence so are T, b2, lam and R_t.",
        Prose("E39.printed", "whether an input is public is not a formula"),
        use="Public bounds.",
        severity="privacy",
    ),
)

_GLM_ERRATA = (
    erratum(
        "E40",
        "k may fall far below log(2n/delta), where the norm event behind delta/2 fails.",
        Bound(
            "",
            n * exp(-k * (1 - log(2)) / 2),
            u / 2,
            at={n: 10**3, u: Rational(1, 10**5), k: 125},
            statement="norm event at k >= 6.52 log(2n/delta), n = 1e3, delta = 1e-5",
        ),
        printed=Bound(
            "",
            erfc(1),
            Rational(1, 2 * 10**5),
            statement="k = 1: P(chi2_1 > 2) is below delta/2",
        ),
        use="Clip in the projected space.",
        severity="privacy",
        source="Algorithm 4",
    ),
    Erratum(
        "E41",
        "k depends on the rank of the private design matrix.",
        Prose("E41.printed", "whether an input is public is not a formula"),
        use="A public rank bound.",
        severity="privacy",
    ),
    Erratum(
        "E42",
        "g is declared and called with its arguments in different orders.",
        Prose("E42.printed", "the order of arguments of an unspecified function"),
        use="Keyword arguments.",
    ),
    Erratum(
        "E43",
        "Corollary 1.2 feeds a population guarantee to a theorem that asks for an empirical one.",
        Prose("E43.printed", "needs a uniform convergence theorem that the text does not contain"),
        use="Adds 1/sqrt(n), which leaves the rate unchanged.",
    ),
    erratum(
        "E44",
        "Definition 1 alone gives (log n/k)^(1/4), not k^(-1/2).",
        Identity(
            "",
            k**_THIRD / N ** (2 * _THIRD),
            N ** Rational(-2, 5),
            at={k: N ** Rational(4, 5)},
            statement="rate with k^(-1/2)",
        ),
        printed=Rate(
            "",
            N ** Rational(-2, 7),
            N ** Rational(-2, 5),
            growth={N: 1},
            statement="rate with k^(-1/4) is the claimed one",
        ),
        use="A Gaussian Phi, for which k^(-1/2) is provable.",
        severity="rate",
        source="Corollary 1",
    ),
)

_OTHER_ERRATA = (
    erratum(
        "E28",
        "'Faster than sqrt(d/n)' holds only for d >= n^(1/3).",
        Bound("", n ** (-_THIRD), sqrt(d / n), where=(Le(n**_THIRD, d),)),
        printed=Bound(
            "", n ** (-_THIRD), sqrt(d / n), where=(Ge(n, 1), Ge(d, 1)), points=({n: 10**6, d: 1},)
        ),
        use="State the condition.",
        source="introduction",
    ),
    erratum(
        "E29",
        "sqrt(d epsilon) is printed for sqrt(d) epsilon.",
        Identity(
            "",
            sqrt(d) * epsilon,
            (d / n) ** _THIRD,
            at={epsilon: d ** Rational(-1, 6) * n ** (-_THIRD)},
        ),
        printed=Identity(
            "",
            sqrt(d * epsilon),
            (d / n) ** _THIRD,
            at={epsilon: d ** Rational(-1, 6) * n ** (-_THIRD)},
        ),
        use="sqrt(d) epsilon.",
        source="Section 1.3",
    ),
    Erratum(
        "E45",
        "Theorems 2 and 7 fix the instance before the algorithm.",
        Prose("E45.printed", "the order of quantifiers over algorithms"),
        use="For every algorithm there is an instance.",
    ),
    Erratum(
        "E46",
        "The proof of Theorem 2 conditions on an event that depends on the algorithm.",
        Prose("E46.printed", "a conditioning step inside a proof"),
        use="||grad F|| >= (L1/2)||Proj(w) - mean|| for every w.",
    ),
    erratum(
        "E47",
        "The proof of Lemma 2 has '> 0' for '>= 0' by monotonicity.",
        Bound("", 0, (x - u) * (x - u), statement="monotonicity of the identity map"),
        printed=Bound("", u, (x - x) * u, statement="strict at equal points"),
        use=">= 0.",
        source="Lemma 2",
    ),
    Erratum(
        "E48",
        "Theorem 7 takes L0 and L1 in N and speaks of R^d.",
        Prose("E48.printed", "the set of admissible constants, in prose"),
        use="Positive reals, d = 1.",
    ),
    erratum(
        "E49",
        "Lemma 4 omits that the oracle is private; the exact oracle has tau1 = 0.",
        None,
        printed=Bound(
            "", L0 * u, v, at={v: 0}, statement="tau1 >= Omega(L0 abar) for the exact oracle"
        ),
        use="(epsilon, delta)-DP per answer as a hypothesis.",
        source="Lemma 4",
    ),
    Erratum(
        "E50",
        "L(0) - argmin for L(0) - min.",
        Prose("E50.printed", "a misprint of an operator's name"),
        use="min.",
    ),
)

SCHEDULE = Schedule(
    name="spiderboost",
    title="Stationary points by private SpiderBoost",
    citation=(
        "Arora, Bassily, Gonzalez, Guzman, Menart, Ullah: Faster Rates of Convergence to "
        "Stationary Points in Differentially Private Optimization, arXiv 2206.00846"
    ),
    quantities=QUANTITIES,
    settings=SETTINGS,
    claims=(*_ALGORITHM_1, *_TREE, *_RECURSIVE, *_GLM, *_LOWER),
    errata=(
        *_ALGORITHM_1_ERRATA,
        *_TREE_ERRATA,
        *_RECURSIVE_ERRATA,
        *_GLM_ERRATA,
        *_OTHER_ERRATA,
    ),
)
