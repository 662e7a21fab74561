"""Claims of the paper: correlated."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

CORRELATED = (
    *claims_of(
        "Corollary 5.3, each term within the rate",
        """
        I32.1: 1/(gamma**2*T53) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where gamma
            <= 1, epsilon <= 1, 1 <= d, 1 <= n  # optimization term
        I32.2: 1/(gamma*sqrt(n*T53)) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # sampling term, B = n
        I32.4: 1/(gamma*n*epsilon) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # linear noise term
        I32.width: m53 <= n**2*epsilon**2/(gamma**2*d*T53**2) where gamma <= 1, epsilon <= 1, 1 <=
            d, 1 <= n  # width below its upper limit
        I32.small: 10**6 <= m53 where gamma <= 28/1000
            # at a measured margin of 0.028 the width is above a million
        I32.lower: m53 = gamma**(-4); definition  # width at its lower limit
        I32.early: T53 = sqrt(n)/gamma at d = n*epsilon**2*gamma**4/(1 + x)**2
            # steps where sampling decides
        I32.late: T53 = sqrt(n)/(gamma*(1 + x)) at d = n*epsilon**2*gamma**4*(1 + x)**2
            # steps where privacy decides
        """,
    ),
    *claims_of(
        "Corollary 5.3, upper limit of the width",
        """
        I31: n**2*epsilon**2/(gamma**2*d*T**2) = gamma**(-6) at T = n*epsilon*gamma**2/sqrt(d)
            # upper limit of the width on the printed branch
        """,
    ),
    *claims_of(
        "Corollary 5.5, table of terms",
        """
        I29.1: 1/(gamma**2*T55) = 1/(gamma*sqrt(n)); definition  # table 3.3
        I29.2: 1/(gamma**2*u*T55) = sqrt(d)/(gamma**3*n*epsilon) at u =
            gamma**2*sqrt(n)*epsilon/sqrt(d); definition  # table 3.3, small step
        I29.3: 1/(gamma*sqrt(u*T55)) = 1/(gamma*sqrt(n)) at u = gamma*sqrt(n); definition
        I29.4: T55*d/(gamma**4*n**2*epsilon**2) = d/(gamma**5*n**(3/2)*epsilon**2); definition
        I29.5: 1/(gamma**2*T) = 1/(gamma*sqrt(n)) at T = sqrt(n)/gamma
        I29.6: T*d/(rho**2*gamma**6*n**2*epsilon**2) = sqrt(d)/(rho**2*gamma**4*n*epsilon) at T =
            n*epsilon*gamma**2/sqrt(d)  # table 3.2
        I29.m: m55 = gamma**(-4); definition  # width of Corollary 5.5
        I29.T: T55*gamma = sqrt(n); definition  # one epoch at B = gamma sqrt(n)
        I29.eta: eta55/(sqrt(n)*epsilon) = Min(1/(sqrt(n)*epsilon), gamma**2/sqrt(d))
        """,
    ),
    *claims_of(
        "Corollary 5.5, each term within the rate",
        """
        I30.1: 1/(gamma**2*eta55*T55) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # Corollary 5.5, optimization
        I30.2: 1/(gamma*sqrt(B55*T55)) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # Corollary 5.5, sampling
        I30.4: eta55/B55 <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where gamma <= 1,
            epsilon <= 1, 1 <= d, 1 <= n  # Corollary 5.5, variance
        I30.5: eta55*m55*d*T55/(n**2*epsilon**2) <= Max(1/(gamma*sqrt(n)),
            sqrt(d)/(gamma**3*n*epsilon)) where gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n
            # Corollary 5.5, quadratic noise
        I30.gap: eta55*T55/n <= 1/(gamma*sqrt(n))
            # Corollary 5.5: generalization factor stays bounded
        """,
    ),
    *claims_of(
        "Corollary 5.5, batch size and noise multiplier",
        """
        I33.kappa: 16*u**2*T/(n**2*epsilon) + 32*u**2*T*Lam/(n**2*epsilon**2) = 16 + 32*Lam/epsilon
            at u = n*sqrt(epsilon/T)  # D.9 with that batch
        I33.small: B55 = n/(1 + u) at T55 = epsilon*n*(1 + x)**2/gamma**2, gamma = sqrt(n)/(1 + u);
            free T55  # batch where the utility branch decides
        I33.batch: B55 <= n, 1 <= B55 where 1 <= n, 1 <= gamma*sqrt(n); free T55  # 1 <= B <= n
        """,
    ),
    *claims_of(
        "Corollary 5.6, terms",
        """
        I37: eta56*T56 = n/gamma**2  # Corollary 5.6: total step
        I37.1: 1/(gamma**2*eta56*T56) = 1/n  # Corollary 5.6
        I37.2: 1/(gamma*sqrt(B*T56)) = 1/n  # Corollary 5.6
        I37.3: eta56/B = 1/n; definition  # Corollary 5.6
        """,
    ),
    *claims_of(
        "Theorem E.1 and Corollary 5.6, failure probability",
        """
        I35.delta: delta56*n = 1; definition  # failure probability of Corollary 5.6
        """,
    ),
)
