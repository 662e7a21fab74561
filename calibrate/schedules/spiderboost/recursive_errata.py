"""Errata of the paper: recursive."""

from __future__ import annotations

from sympy import Ge, Min, Rational, log

from dpcal.calibrate.auditing.language import (
    Bound,
    Enumeration,
    Erratum,
    Private,
    Prose,
    Release,
    Units,
    erratum,
)
from dpcal.calibrate.schedules.spiderboost.quantities import (
    L0,
    L1,
    K_t,
    Lam,
    T,
    W,
    epsilon,
    j,
    kap,
    lam,
    n,
    sigma_t,
    u,
    v,
)


def _printed_blocks(rounds: int) -> bool:
    """The loop t = 1..T-1 uses all T blocks of n/T records."""
    return len(range(1, rounds)) == rounds


def _all_blocks(rounds: int) -> bool:
    """The loop t = 1..T uses all T blocks of n/T records."""
    return len(range(1, rounds + 1)) == rounds


_ROUNDS = list(range(2, 9))

RECURSIVE_ERRATA = (
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
            kap * log(2 * kap * log(kap)),
            2 * kap * log(kap),
            on={kap: (2, 1000)},
            statement="K = 2 kap log kap",
        ),
        printed=Bound(
            "",
            kap * log(kap * log(kap)),
            kap * log(kap),
            on={kap: (2, 1000)},
            points=({kap: 10},),
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
