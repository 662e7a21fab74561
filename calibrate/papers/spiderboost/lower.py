"""Claims of the paper: lower."""

from __future__ import annotations

from fractions import Fraction
from math import comb

from dpcal.calibrate.papers.claims.language import Enumeration, Prose, claims_of
from dpcal.calibrate.papers.spiderboost.quantities import FRACTION_HALF


def _total_variation_is_small(size: int) -> bool:
    """Total variation of Binomial(n, 1/2 -+ p/2), p = 1/(4 sqrt n), is at most 1/4."""
    root = int(size**0.5)
    shift = Fraction(1, 8 * root)
    low, high = FRACTION_HALF - shift, FRACTION_HALF + shift

    def mass(chance: Fraction, k: int) -> Fraction:
        return comb(size, k) * chance**k * (1 - chance) ** (size - k)

    return sum(abs(mass(low, k) - mass(high, k)) for k in range(size + 1)) / 2 <= Fraction(1, 4)


LOWER = (
    *claims_of(
        "Theorem 2, instance, and Lemma 2",
        """
        S70: L1*u = L0 at u = L0/L1  # Huber slope at the switch
        S71: L1*(B/2)**2/(B/2) = L0/2 at B = L0/L1  # sphere
        """,
        Prose(
            "S72",
            "a bound over all vectors and data sets; it repairs E46 and was derived on paper",
            statement="||grad F(w)|| >= (L1/2) ||Proj(w) - mean|| for every w",
        ),
    ),
    *claims_of(
        "Theorem 7, instance and cases",
        """
        S73: L1*u + L0/2 = L0 at u = L0/(2*L1)  # total slope
        S74: 1/8 <= 1/4 - 1/(8*sqrt(n)) where n in [1, oo]  # case 1 of Theorem 7
        S74.second: (L0*v*r/2 + L1*u)**2 = L0**2/4*(v*r - x)**2 at u = -L0*x/(2*L1)
            # case 2 of Theorem 7
        S75: L0/2*r*(1 - 1/4)/2 = 3*L0/(64*sqrt(n)) at r = 1/(4*sqrt(n))  # two-point constant
        """,
        Enumeration(
            "S75.tv", _total_variation_is_small, [1, 4, 9, 16, 25, 64, 100], statement="binomials"
        ),
    ),
    *claims_of(
        "Theorem 10 and Lemma 4, optimality of Theorem 1",
        """
        S76: (F0*tau2*tau1/G)**(1/3) = (F0*L1*L0)**(1/3)*abar**(2*(1/3)) at tau1 = L0*sqrt(G)*abar,
            tau2 = L1*sqrt(G)*abar; free abar  # Theorem 10: G cancels
        S77: (F0*L1*L0)**(1/3)*abar**(2*(1/3)) <= L0*abar where L1 <= L0**2*abar/F0; free abar
            # window in which Theorem 1 is optimal
        """,
    ),
    *claims_of(
        "Section 1.3 and Table 1, comparisons",
        """
        S78: 2*F0*L1/u = L0**2*u*abar**2 at u = sqrt(2*F0*L1)/(L0*abar); balance of u; free abar
            # steps of plain noisy gradient descent
        S79: sqrt(d)*epsilon = (sqrt(d)/(n*epsilon))**(1/2) at epsilon = d**(-1/6)*n**(-(1/3))
            # comparison with an earlier rate
        S80: x**(2*(1/3)) <= sqrt(x), sqrt(x) <= x**(2/5) where x <= 1  # order of the exponents
        """,
    ),
)
