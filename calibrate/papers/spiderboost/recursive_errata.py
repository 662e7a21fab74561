"""Errata of the paper: recursive."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Enumeration, Private, Release, errata_of, erratum


def _printed_blocks(rounds: int) -> bool:
    """The loop t = 1..T-1 uses all T blocks of n/T records."""
    return len(range(1, rounds)) == rounds


def _all_blocks(rounds: int) -> bool:
    """The loop t = 1..T uses all T blocks of n/T records."""
    return len(range(1, rounds + 1)) == rounds


_ROUNDS = list(range(2, 9))

RECURSIVE_ERRATA = errata_of(
    erratum(
        "E30",
        "The loop t = 1..T-1 leaves w_T and one block of records unused.",
        Enumeration("", _all_blocks, _ROUNDS),
        printed=Enumeration("", _printed_blocks, _ROUNDS),
        about="the count of a loop",
        use="t = 1..T.",
        severity="algorithm",
        source="Algorithm 3",
    ),
    """
        E31 (rate; Theorem 5.1): lam of Theorem 5.1 has ||w*|| for ||w*||^2.
            claim: [lam] = gradient/parameter
            settings: lam
            use: L0^2/(L1 W^2) min(1/n, d/(n epsilon)^2).
        E32 (rate; Theorem 5.1): K_t adds L0^2 lam and L1^(3/2), which have different units.
            claim: [L0**2*lam + L1**3*W**2] = gradient**3/parameter
            printed: [L0**2*lam + L1**(3/2)] = gradient**3/parameter
            use: L1^3 W^2.
    """,
    erratum(
        "E33",
        "sigma_t^2 grows with K^2 instead of K T^2: the noise is too small for few steps.",
        Private(
            "",
            (Release("2*L0*rounds/n", "sigma_t", "K_t"),),
            rho="epsilon**2/(32*Lam)",
            free="T",
            statement="every round fits epsilon^2/(32 Lam)",
        ),
        printed=Private(
            "",
            (Release("2*L0*rounds/n", "sigma_t", "K_t"),),
            rho="epsilon**2/(32*Lam)",
            free="T",
            printed="sigma_t",
            points="K_t = 4, T = 9",
            statement="every round fits epsilon^2/(32 Lam)",
        ),
        use="sigma_t = 2 L0 T/n sqrt(K) z*, exactly calibrated.",
        severity="privacy",
        source="Theorem 5.1",
    ),
    """
        E34 (rate; Theorem 5.1): K = kap log kap does not give eta <= 1/(L1 + lam).
            claim: x*log(2*x*log(x)) <= 2*x*log(x) where x in [2, 1000]  # K = 2 kap log kap
            printed: x*log(x*log(x)) <= x*log(x) where x in [2, 1000]; points x = 10  # K = kap
                log kap
            about: a step length, for any condition number
            use: 2 kap log kap.
        E35 (minor; Theorem 5): Round t has modulus (2^t - 1) lam, below the lam_t that eta and
            the selector use.
            claim: v*u/2 <= (v - 1)*u where 2 <= v  # half of lam_t is a modulus (v = 2^t)
            printed: 2**j*u <= (2**j - 1)*u  # lam_t is a modulus
            about: the modulus of a sum, for any round
            use: mu_t = (2^t - 1) lam.
        E36 (minor; Theorem 5): T = floor(log2(L1/lam)) is 0 or negative for lam > L1/2.
            claim: 2 <= L1/Min(lam, L1/2)  # L1/lam >= 2 with lam capped
            printed: 2 <= L1/lam  # L1/lam >= 2
            use: lam = min(lam, L1/2).
        E37 (privacy; Theorem 5.2): The step of Theorem 5.2 breaks non-expansiveness, on which
            the noise rests.
            claim: log(n/T)/(2*log(n))*(1 + 2*T*log(n)/n) <= 2 where n in [1000, 100000000], T
                in [1, 22]; free T  # eta_1 (L1 + lam_1) with lam = L1 T log(n)/n
            printed: T*log(n/T)/(2*log(n))*(1 + 2*log(n)/n) <= 2 at n = 1000, T = 7  # eta_1 (L1
                + lam_1) with lam = L1 log(n)/n, n = 1000, T = 7
            use: Refuse steps above 2/(L1 + mu_t).
        E38 (privacy; Theorem 5): sigma_t has gradient units and is handed to an algorithm that
            perturbs iterates.
            claim: [L0/L1] = parameter  # noise on an iterate
            printed: [sigma_t] = parameter  # sigma_t as noise on an iterate
            use: z* times 2 L0 eta.
        E39 (privacy; Theorems 4 and 5, public inputs): F0 and ||w*|| are functions of the data,
            hence so are T, b2, lam and R_t.
            open: whether an input is public is not a formula
            use: Public bounds.
    """,
)
