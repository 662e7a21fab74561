"""Claims of the paper: selection."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Private, Release, claims_of

SELECTION = (
    *claims_of(
        "Theorem 4, (143), curvature error",
        """
        C1: (sqrt(rho*alpha) + M/sqrt(m*n) + M*d*alpha**(-5/4)/(sqrt(m)*n*epsilon))**2/rho = alpha +
            M**2/(rho*m*n) + M**2*d**2/(rho*m*n**2*epsilon**2*alpha**(5/2)) +
            2*M*sqrt(alpha)/(sqrt(rho)*sqrt(m*n)) + 2*M*d/(sqrt(rho)*sqrt(m)*n*epsilon*alpha**(3/4))
            + 2*M**2*d/(rho*m*n**(3/2)*epsilon*alpha**(5/4)); free alpha
            # square of the curvature error
        C3: 2*sqrt(x*u) <= x + u  # cross terms are absorbed by the squares
        """,
    ),
    *claims_of(
        "Remark 4, conditions",
        """
        C4: sqrt(d)/(N*u**(5/4))/u = d**(1/20)*N**(-1/10) at u = (sqrt(d)/N)**(2/5)
            # first condition of Remark 4
        C4.second: d/(N*u**(3/4))/u = d**(13/20)*N**(-3/10) at u = (sqrt(d)/N)**(2/5)
            # second condition of Remark 4
        """,
    ),
    *claims_of(
        "Theorem 4, matrix Bernstein, Lemma 14",
        """
        C5: t**2/(2*(4*M**2/x + 2*M/x*t/3)) = L at t = 4*M*sqrt(L/x), x = 4/9*L
            # matrix Bernstein at m n = (4/9) L
        """,
    ),
    *claims_of(
        "Algorithm 4, (123)-(126), tails",
        """
        C6: 4*exp(-t**2) = omega/8 where omega <= 1 at t = sqrt(log(32/omega))  # tail
        """,
    ),
    *claims_of(
        "Theorem 4, privacy of Algorithm 4",
        Private(
            "C7",
            (
                Release("2*G/n", "sqrt(2*T)*z*2*G/n", "T"),
                Release("2*M*sqrt(d)/n", "sqrt(2*T)*z*2*M*sqrt(d)/n", "T"),
            ),
            rho="1/(2*z**2)",
            statement="gradients and Hessians compose to one release at multiplier z",
        ),
    ),
    *claims_of(
        "Lemma 7, constants c1 and c2",
        """
        X1: (2*z*G/u)**2 = v*G**2*Lam/(u**2*epsilon**2) at v = 4*z**2*epsilon**2/Lam
        X2: (2*z*M*x/u)**2 = v*M**2*Lam*x**2/(u**2*epsilon**2) at v = 4*z**2*epsilon**2/Lam
            # c2 equals c1
        X3: 4*z**2*epsilon**2/Lam = 8*L/Lam at z = sqrt(2*L)/epsilon
            # c1 of the textbook formula, L = log(1.25/delta)
        """,
    ),
    *claims_of(
        "Theorem 2, privacy, several passes",
        Private(
            "X5",
            (Release(1, "sqrt(u)*z", "u"),),
            rho="1/(2*z**2)",
            statement="u passes at sqrt(u) z cost one release at z",
        ),
    ),
    *claims_of(
        "Lemma 7, noise of a difference",
        """
        X6: (2*z*M*eta/u)**2*d/m = 4*d*z**2*M**2*eta**2/(u**2*m); free eta
        """,
    ),
)
