"""Claims of the paper: erm."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

ERM = (
    *claims_of(
        "Theorem 1 and Lemma 5, rounds T and rate",
        """
        E01: T1 = (L*F0)**(1/3)*M**(-2/3)*eb**(-4/3); definition; free eb  # first branch of T
        E02: sqrt(F0*L/T1) = M*T1*eb**2; balance of T1  # T1 balances both errors
        E03: sqrt(F0*L/T1) = (sqrt(F0*L*M)*eb)**(2/3)  # rate
        E04: sqrt(F0*L*eb)/(M*eb) = sqrt(F0*L)/(M*sqrt(eb)); free eb
        E04.T1: T1 <= T; free eb T1  # T is at least the balance
        E04.T2: 1/eb <= T; free eb T1  # T is at least 1/eb
        E04.max: T = Max(T1, 1/eb); definition; free eb T1  # no larger than its branches
        E18: T1*eb = (sqrt(L*F0)/M)**(2/3)*eb**(-1/3); free eb  # which branch of T is active
        E25: eb = rr/n at rr = sqrt(d*ell)/epsilon; definition  # rate variable
        """,
    ),
    *claims_of(
        "Lemma 5, period q and errors B1, B2",
        """
        E05: L**2/B2_sq = q; free T eb  # period from the increments' error
        E05.eta: 1/(B2_sq/(2*L)**2) = 4*q; free T eb  # the same
        E05.B1: B1_sq = M**2*(T*eb**2)**2; free T eb  # refresh error
        E10: T/q = (T*eb)**2; free T eb; definition  # T >= q iff T >= 1/eb
        E10.order: q <= T; free eb T1  # a period is at most the whole run
        """,
    ),
    *claims_of(
        "Lemma 4, descent and constants (Lemma 3 of B.1)",
        """
        E07: u/2 - L*u**2/2 - u**3*v*w/2 = 1/(16*L) at u = 1/(2*L), v = L**2*T*eb**2, w = q; free T
            eb
        E08: u/2 - L*u**2/2 - u**3*v*w/2 = 0 at u = 1/(2*L), v = L**2*T*eb**2, w = 2/(T*eb**2); free
            T eb
        E09: 2/(T*v)*(1 + L**2/q*q/(4*L**2))*T = 40*L at v = 1/(16*L); free T q
            # first constant of the explicit bound
        E09.B1: u/v + 2 + L**2*u**3/v = 12 at u = 1/(2*L), v = 1/(16*L)
        """,
    ),
    *claims_of(
        "Theorem 1, batches S1 and S2",
        """
        E12: 1/(T1*eb**2) = (M/(sqrt(F0*L)*eb))**(2/3); free eb
        E12.sub: 1/(T1*eb**2) = (M*n*epsilon/sqrt(F0*L*d*ell))**(2/3)  # first branch of S2
        E13: n/sqrt(T1) = M**(1/3)*n*eb**(2/3)/(L*F0)**(1/6); free eb
        E13.sub: n/sqrt(T1) = (M*n*d*ell)**(1/3)/((L*F0)**(1/6)*epsilon**(2/3))
            # second branch of S2
        E16: 1/(T1*eb**2) <= n where M**2*epsilon**2/(F0*L*d*ell) <= n
            # first branch of S2 is at most n
        E17: n/sqrt(T1) <= n where eb <= (L*F0)**(1/4)/sqrt(M); free eb
            # second branch of S2 is at most n
        E17.S2: S2 <= n, 1 <= S2 where eb <= 1, 1 <= n, 1 <= T, T*eb**2 <= 1, 2 <= K; free eb T
            # 1 <= S2 <= n
        E17.period: Min(n, q) <= S2; free T eb  # increments are at least as many as the period
        E17.value: S2 = n/(1 + u) at T = (1 + u)**2/K, eb = sqrt((1 + x)*(1 + u)/(n*T)); free T eb
            # S2 where the amplified branch decides
        E19.S1: S1 = n; definition  # a refresh uses all records
        """,
    ),
    *claims_of(
        "Theorem 1, gradient complexity",
        """
        E19: T1/(T1*eb**2) = eb**(-2); free eb; definition  # gradient count
        """,
    ),
    *claims_of(
        "Theorem 1, units",
        """
        E24.T: [T] = 1  # rounds are a number
        E24.S2: [S2] = 1  # the batch is a number
        """,
    ),
)
