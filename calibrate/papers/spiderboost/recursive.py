"""Claims of the paper: recursive."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, claims_of


def _geometric_sum(case: tuple[Fraction, int]) -> bool:
    """Sum (1 - x)^-k = ((1 - x)^-K - 1)/x."""
    step, count = case
    total = sum((1 - step) ** -k for k in range(1, count + 1))
    return total == ((1 - step) ** -count - 1) / step


def _modulus(rounds: int) -> bool:
    """The weights lam_t = 2^t lam add up to (2^t - 1) lam, between lam_t/2 and lam_t."""
    total = sum(2**k for k in range(rounds))
    return bool(total == 2**rounds - 1 and total < 2**rounds <= 2 * total)


RECURSIVE = (
    *claims_of(
        "Algorithm 3, strong convexity, selector and step",
        Enumeration("S47", _modulus, list(range(1, 30)), statement="strong convexity of a round"),
        Enumeration(
            "S48",
            _geometric_sum,
            [(Fraction(a, 7), k) for a in (1, 2, 5) for k in (1, 4, 9)],
            statement="selector weights",
        ),
    ),
    *claims_of(
        "Theorem 5.1, noise of a round",
        """
        S51: K_t*(2*L0*rounds/n)**2/(2*sigma_t**2) = epsilon**2/(32*Lam)  # budget of a round, zCDP
        S51.budget: epsilon**2/(32*Lam) + epsilon/sqrt(8) <= epsilon where epsilon <= 20*Lam
            # the zCDP budget gives (epsilon, delta) for epsilon <= 20 Lam
        S52: K_t*(2*L0*rounds/n)**2/(2*sigma_t**2) = rounds**2*epsilon**2/(32*K_t*Lam); printed
            sigma_t  # printed noise: private only for K of the order of rounds^2
        S53: d*sigma_t**2/K_t = 64*d*L0**2*rounds**2*Lam/(n*epsilon)**2
            # noise part of the excess does not depend on K
        """,
    ),
    *claims_of(
        "Theorem 5.1, inner steps K_t",
        """
        S54: (2**j*u)**2*(2**(j/2)*W)**2 = 8**j*u**2*W**2  # bias
        S54.last: 8**j*u**2*W**2 = L1**3*W**2/u at L1 = 2**j*u
        S55: (L0**2 + L1**3*W**2/u)/v = d*L0**2*rounds**2*Lam/(n*epsilon)**2 at v =
            n**2*epsilon**2*(L0**2*u + L1**3*W**2)/(rounds**2*u*d*L0**2*Lam)
            # inner steps balance bias and noise
        S56: [L0**2*lam] = gradient**3/parameter  # unit of S55
        S56.second: [L1**3*W**2] = gradient**3/parameter  # unit of S55
        """,
    ),
    *claims_of(
        "Theorem 5, proof: radii, gradient and bias",
        """
        S57: W**2 + v*W**2 <= 2*v*W**2 where 1 <= v
            # radii sqrt(2^t) W satisfy the recursion, v = 2^t
        S57.root: W**2 + j*W**2 = (j + 1)*W**2  # so do radii sqrt(t) W
        S58: u*W + L1*v <= u*W + 4*u*v where L1 <= 4*u
            # gradient of the last center, one round (u = lam, v = its error)
        S59: u*x <= 2*sqrt(u*v) where u*x**2/4 <= v  # distance from excess, modulus at least lam/2
        S60: lam*W = L0**2/(L1*W)*Min(1/n, d/(n*epsilon)**2); definition
            # bias of the regularization
        """,
    ),
)
