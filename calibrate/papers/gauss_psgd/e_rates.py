"""Claims of the paper: e rates."""

from __future__ import annotations

from fractions import Fraction

from dpcal.calibrate.papers.claims.language import Enumeration, claims_of


def _crossings_are_optimal(a: Fraction) -> bool:
    """With unit constants and p = n^-a, the best kappa gives the largest crossing."""
    lines = [  # exponent of e_i as intercept + slope * (exponent of kappa)
        (Fraction(-2, 3), Fraction(-2, 3)),
        (-2 * a, Fraction(-2)),
        (Fraction(-2, 9), Fraction(2, 9)),
        (-2 * a / 7, Fraction(1, 7)),
    ]
    crossings = [(b - a_) / (i - j) for a_, i in lines[:2] for b, j in lines[2:]]
    best = min(max(c0 + c1 * k for c0, c1 in lines) for k in crossings)
    claimed = max(Fraction(-1, 3), -2 * a / 5, -2 * (2 * a + 1) / 17, -(a + 1) / 5)
    return best == claimed


E_RATES = (
    *claims_of(
        "Theorem 2, b1 and b2, records",
        """
        B1: b1*(U*eta/kappa) + b2*(U/(eta*chi**2)) = n; free eta chi  # budget
        """,
    ),
    *claims_of(
        "Theorem 2, (98)-(101), four error terms",
        """
        B2.1: G**2/(m*b1) = 2*G**2*U*eta/(m*n*kappa); free eta; definition
            # sampling error of a refresh
        B2.2: G**2*d/(m*b1**2*epsilon**2) = 4*G**2*d*U**2*eta**2/(m*n**2*epsilon**2*kappa**2); free
            eta  # privacy error of a refresh
        B2.3: M**2*kappa/(m*b2) = 2*M**2*U*kappa/(m*n*eta*chi**2); free eta chi; definition
            # sampling error of the differences
        B2.4: M**2*d*kappa/(m*b2**2*epsilon**2) =
            4*M**2*d*U**2*kappa/(m*n**2*epsilon**2*eta**2*chi**4); free eta chi
            # privacy error of the differences
        B3.1: G**2*U*u/(m*n*kappa) = G**2*U*sqrt(rho*alpha)/(m*M**2*n*kappa) at u =
            sqrt(rho*alpha)/M**2; free alpha; definition  # first error with the step size put in
        B3.4: M**2*d*U**2*kappa/(m*n**2*epsilon**2*u**2*alpha**4) =
            M**6*d*U**2*kappa/(m*rho*n**2*epsilon**2*alpha**5) at u = sqrt(rho*alpha)/M**2; free
            alpha  # fourth error with the step size put in
        """,
    ),
    *claims_of(
        "Theorem 2, proof, balance in kappa",
        """
        B4.1: e1**2 = G**2*U*sqrt(rho*e1)/(m*M**2*n*kappa)
        B4.2: e2**2 = G**2*d*U**2*rho*e2/(m*M**4*n**2*epsilon**2*kappa**2); definition
        B4.3: e3**2 = M**4*U*kappa/(m*sqrt(rho)*n*e3**(5/2))
        B4.4: e4**2 = M**6*d*U**2*kappa/(m*rho*n**2*epsilon**2*e4**5)
        B5: e1 = e3 at kappa = k13  # where e1 and e3 cross
        B5.alpha: e1 = a13 at kappa = k13  # accuracy there
        B6: e2 = e4 at kappa = k24  # where e2 and e4 cross
        B7: e1 = e4 at kappa = k14  # where e1 and e4 cross
        B7.alpha: e1 = a14 at kappa = k14  # accuracy there
        B8: e2 = e3 at kappa = k23  # where e2 and e3 cross
        B8.alpha: e2 = a23 at kappa = k23  # accuracy there
        """,
        Enumeration(
            "B9",
            _crossings_are_optimal,
            [Fraction(k, 24) for k in range(1, 48)],
            statement="the best kappa gives the largest of the four crossings",
        ),
        """
        B10: u**(1/5)*n**(-2/5) <= Max(n**(-1/3), (u/n)**(2/5)) where 1 <= u, 1 <= n
            # the crossing of e2 and e3 never dominates (unit constants, u = sqrt(d)/epsilon)
        B12: e4 = n**(-13/42) at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, kappa = k13, d =
            n**(1/3)
        B12.best: a14 = n**(-16/51) at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, d =
            n**(1/3)
        """,
    ),
    *claims_of(
        "Theorem 2, batches b1 and b2",
        """
        B13.b1: n*k13/u = n**(2/3) at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, u =
            n**(-1/6)  # refresh batch where sampling dominates
        B13.b2: n*u*a24**2 = n*x at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, u = x**(1/5),
            d = (n*x)**2  # difference batch where privacy dominates (x = p)
        B14: b1 <= n, 1 <= b1 where kappa <= 2*U*eta, 2*U*eta/kappa <= n; free eta  # 1 <= b1 <= n
        B14.b2: b2 <= n, 1 <= b2 where eta*chi**2 <= 2*U, 2*U/(eta*chi**2) <= n; free eta chi
            # 1 <= b2 <= n
        """,
    ),
    *claims_of(
        "Lemma 8, proof, one step",
        """
        B15: x*g - g**2/2 + g**2/6 <= 3/4*x**2  # rise of a call, x = chi
        """,
    ),
    *claims_of(
        "Lemma 8, number of refreshes",
        """
        B16: u*(A*U/(eta*chi**2)) = A/2*n at u = n*eta*chi**2/(2*U); free eta chi
            # records used by the differences
        B16.refresh: u*6*eta/kappa*(U + 3/4*A*U) = 3*(1 + 3/4*A)*n at u = n*kappa/(2*U*eta); free
            eta  # records used by the refreshes
        """,
    ),
    *claims_of(
        "introduction, earlier rates",
        """
        B18: (u/(n*v))**(1/2) = n**(-1/3) at u = 1, v = n**(-1/3)
            # earlier exponent with eta = 1/M, unit constants
        """,
    ),
    *claims_of(
        "Theorems 2 and 3, units",
        """
        B19.k13: [k13] = parameter**2
        B19.k24: [k24] = parameter**2
        B19.k14: [k14] = parameter**2
        B19.k23: [k23] = parameter**2
        B19.a13: [a13] = loss/parameter
        B19.a24: [a24] = loss/parameter
        B19.a14: [a14] = loss/parameter
        B19.a23: [a23] = loss/parameter
        """,
    ),
    *claims_of(
        "Theorem 3, rates for m clients",
        """
        X9: a14/u = m**(-4/17) at u = (G**2*M**4*U**3*d/(sqrt(rho)*n**3*epsilon**2))**(2/17)
            # gain from m clients in the mixed regime
        """,
    ),
)
