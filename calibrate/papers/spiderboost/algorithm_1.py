"""Claims of the paper: algorithm 1."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

ALGORITHM_1 = (
    *claims_of(
        "Theorem 9, rounds T and rate",
        """
        S1: sqrt(F0*L1/T1) = L0*T1*abar**2; balance of T1  # T1 balances both errors
        S2: T1 = ((F0*L1)**(1/4)*n*epsilon/sqrt(L0*d*Lam))**(4*(1/3))  # T1 as Theorem 9 prints it
        S3: sqrt(F0*L1/T1) = (sqrt(F0*L1*L0)*abar)**(2*(1/3))
        S4: sqrt(F0*L1*L0)*sqrt(d*Lam)/(n*epsilon) = sqrt(F0*L1*L0*d*Lam)/(n*epsilon)
            # Theorems 1 and 9 print the same rate
        S5: L0*T*abar**2 = L0*abar at T = 1/abar; free T abar  # second branch
        S5.branch: sqrt(F0*L1/T) <= L0*abar where F0*L1 <= L0**2*abar; free abar
            # when the second branch is active it dominates
        S5.T1: T1 <= 1/abar where F0*L1 <= L0**2*abar; free abar  # switch
        S5.T: T1 <= T; free abar T1  # T is at least the balance
        S5.T2: 1/abar <= T; free abar T1  # T is at least 1/abar
        """,
    ),
    *claims_of(
        "Theorem 9, period q in its proof",
        """
        S6: L0*sqrt(T/q)*abar = sqrt(2)*L0*T*abar**2; free T  # refresh error with the period q
        S7: q <= T; free abar T1  # T >= q
        """,
    ),
    *claims_of(
        "Theorem 9, batches b1, b2 and their conditions",
        """
        S8: 1/(T1*abar**2) = (L0/(sqrt(F0*L1)*abar))**(2*(1/3)); free abar
        S9: 1/(T1*abar**2) = (L0*n*epsilon/sqrt(F0*L1*d*Lam))**(2*(1/3))  # first branch of b2
        S10: n/sqrt(T1) = (L0*n*d*Lam)**(1/3)/((L1*F0)**(1/6)*epsilon**(2*(1/3)))
            # second branch of b2
        S21: 1/(T1*abar**2) <= n where L0**2*epsilon**2/(F0*L1*d*Lam) <= n
            # first branch of b2 is at most n
        S22: n/sqrt(T1) <= n where L0**2*abar**4 <= F0*L1; free abar
            # second branch of b2 is at most n under its own condition
        S23: 1 <= 1/(T*abar**2), 1/T <= 1 where abar <= 1, sqrt(F0*L1)*abar <= L0; free abar
            # period and rounds are at least 1 (before the factor 2)
        S23.b2: b2 <= n, 1 <= b2 where abar <= 1, 1 <= n, 1/n <= T*abar**2, 1 <= T, T*abar**2 <= 1;
            free abar T  # 1 <= b2 <= n
        S23.second: b2 = n/(1 + u) at abar = sqrt((1 + x)/(n*sqrt(T))), T = (1 + u)**2; free T abar
            # b2 where the amplified branch decides
        S23.first: b2 = n/(1 + v) at abar = 1/sqrt((1 + x)*n*sqrt(T)), T = ((1 + x)*(1 + v))**2;
            free T abar  # b2 where the period decides
        """,
    ),
    *claims_of(
        "Theorem 8 and Algorithm 1, noise and errors tau1, tau2",
        """
        S11: d*L0**2*kappa**2*T/(q*n**2) = L0**2*T*abar**2/q at kappa = n*abar/sqrt(d); free T q
            abar  # squared refresh error when kappa = n abar/sqrt(d)
        S11.tau: tau1_sq = d*sigma1**2; definition; free sigma1  # isotropic noise
        S12: sigma2 = L1*kappa*sqrt(T)/n at b2 = n*(1 + x)/sqrt(T); free b2 T
            # difference noise per unit of movement when b2 >= n/sqrt(T)
        S13: cap2/sigma2 = 2*L0/L1; free b2 T  # constant multiplier
        S13.min: Min(sigma2*move, cap2) = sigma2/L1*Min(L1*move, 2*L0); free b2 T
            # noise and sensitivity are capped alike
        S14: n/sqrt(T) <= b2 where 1 <= T; free T abar  # branch of sigma2
        S15: (1 - r)/b2 <= 1/b2; free b2  # sampling variance, Poisson
        S15.wor: (n - u)/((n - 1)*u) <= 1/u where 1 <= u, 2 <= n, n in [2, oo], u in [1, oo]
            # sampling variance, without replacement
        S15.tau: tau2_sq = L1**2*(1 + x)/b2 - L1**2*x/b2 + d*sigma2**2; free b2 sigma2
            # variance of a batch mean, and isotropic noise
        """,
    ),
    *claims_of(
        "Lemma 3, descent and constants",
        """
        S16: u/2 - L1*u**2/2 - u**3*x*v/2 = (1 - x*v/(2*L1**2))/(8*L1) at u = 1/(2*L1)  # descent
        S16.eta: eta*L1 = 1/2; definition  # step size
        S17: u/2 - L1*u**2/2 - u**3*x*v/2 = 1/(16*L1) at u = 1/(2*L1), v = L1**2/x  # descent at q
        S17.zero: u/2 - L1*u**2/2 - u**3*x*v/2 = 0 at u = 1/(2*L1), v = 2*L1**2/x
            # no descent at twice q
        S18: 2*F0/(T*A)*(1 + x*u**2*v) + (u/A + 2 + x*u**3*v/A)*r = 40*F0*L1/T + 12*r at A =
            1/(16*L1), u = 1/(2*L1), v = L1**2/x; free T
            # explicit constants of Lemma 3, r = tau1^2
        """,
    ),
    *claims_of(
        "Theorem 1, oracle complexity",
        """
        S19: T1/(T1*abar**2) = n**2*epsilon**2/(d*Lam)  # cost, first
        S19.second: T1*n/sqrt(T1) = n**(5*(1/3))*epsilon**(2*(1/3))*d**(-(1/3)) at F0 = 1, L1 = 1,
            L0 = 1, Lam = 1  # cost, second
        S20: n/(sqrt(d)/(n*epsilon))**(2*(1/3)) = (n**5*epsilon**2/d)**(1/3)
            # both printings of the oracle complexity
        """,
    ),
    *claims_of(
        "Theorem 9, units",
        """
        S24.T: [T] = 1  # rounds are a number
        S24.q: [q] = 1  # the period is a number
        S24.b2: [b2] = 1  # the batch is a number
        S24.eta: [eta] = parameter/gradient  # step size
        S24.sigma1: [sigma1] = gradient  # refresh noise
        S24.sigma2: [sigma2] = gradient/parameter  # difference noise
        S24.abar: abar**2 = d*Lam/(n*epsilon)**2  # rate variable
        """,
    ),
    *claims_of(
        "Theorem 9, batch b1",
        """
        S24.b1: b1 = n; definition  # refreshes use all records
        """,
    ),
)
