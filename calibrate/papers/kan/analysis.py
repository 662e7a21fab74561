"""Claims of the paper: analysis."""

from __future__ import annotations

import itertools
from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, claims_of


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


ANALYSIS = (
    *claims_of(
        "Lemma C.3",
        """
        I19: -4*eta/3 + 8*beta*eta**2 + eta/3 <= -eta/3 where eta <= 1/(12*beta)
            # descent with eta <= 1/(12 beta)
        I19.young: 2*lam*eta**2*c*u*v <= eta/(12*beta)*u**2 + 12*beta*lam**2*eta**3*c**2*v**2
            # Young's inequality with weight 1/(12 beta)
        """,
    ),
    *claims_of(
        "Lemma C.2",
        """
        I20: x/(2 - x) <= 1/3 where x in [0, 1/2]  # curvature term
        """,
    ),
    *claims_of(
        "Lemma D.11 and (21)",
        """
        I21: eta/2*8*beta <= 1/3 where eta <= 1/(12*beta)  # descent, independent noise
        I21.width: nu*(2*u)**2 <= 1/2 at nu = 8*x/(64*x*u**2)
            # (21) implies the curvature condition
        """,
    ),
    *claims_of(
        "Lemma B.2",
        Enumeration("I22", _batch_variance, [2, 3], complete=True, statement="batch variance"),
    ),
    *claims_of(
        "Lemmas C.6 to C.9, constants",
        """
        I23: 2*sqrt(2) <= 4  # constants of C.8 and C.9
        I23.log: 1 <= 2*log(2)  # constant of C.6
        """,
    ),
    *claims_of(
        "Lemma C.7, Freedman's inequality",
        """
        I24: 2*ell*(v + L*x/3) <= x**2 at x = sqrt(2*v*ell) + 2*L*ell/3
            # Freedman: the closed form dominates the root
        """,
    ),
    *claims_of(
        "Theorem C.13, failure budget",
        """
        I25: x/4 + x/4 + 2*x/8 + 2*x/8 = x  # failure budget
        """,
    ),
    *claims_of(
        "appendix A, gradients",
        """
        I26: -3*v*u**3*w**2*exp(-v*u**3*w**3/sqrt(d)/sqrt(m))/sqrt(d)/sqrt(m)/(1 +
            exp(-v*u**3*w**3/sqrt(d)/sqrt(m))) = -3*v*(w*u)**2*u/(sqrt(m*d)*(1 +
            exp(v*(w*u)**3/sqrt(m*d))))  # gradient of one unit, by the chain rule
        """,
    ),
    *claims_of(
        "Section 3, logistic loss",
        """
        I27: 1/(1 + exp(x)) <= log(1 + exp(-x)) where x in [0, 5]
            # self-bounding logistic loss on [0, 5]
        I27.second: x/(1 + x)**2 <= 1/4  # second derivative, x = e^z
        """,
    ),
    *claims_of(
        "Lemma F.6",
        Enumeration(
            "I28",
            _duality,
            [Fraction(k, 3) for k in (1, 2, 3, 4, 9)],
            statement="hockey-stick duality",
        ),
    ),
)
