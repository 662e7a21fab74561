"""Errata of the paper: population."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

POPULATION_ERRATA = errata_of(
    """
        ER-50 (algorithm; Lemma 8): q = eb^(1/3) is below 1 for every eb < 1.
            claim: 1 <= eb**(-1/3) where eb <= 1; free eb  # q = eb^(-1/3)
            printed: 1 <= eb**(1/3) where eb in [1/1000000, 1/2]; free eb
            about: exponents of the rate variable, which stays a symbol
            use: Exponent -1/3.
        ER-51 (privacy; Lemma 8): A refresh batch of n overruns the sample budget.
            claim: eb**(-1/3)*n**(2/3) <= n where 1/n <= eb; free eb  # refreshes of n^(2/3) fit
            printed: eb**(-1/3)*n <= n where eb in [1/1000000, 1/2]; free eb
            about: exponents of the rate variable, which stays a symbol
            use: The batch of ER-54.
        ER-52 (privacy; Lemma 8): Dropping kappa and the logarithms hides a condition of the
            sample budget.
            claim: eb**(-2/3)*kappa*(ell1**2*kappa*eb**(-1/3)) <= n where kappa**2*ell1**2 <= rr
                at eb = rr/n; free eb  # increments fit when rr >= kappa^2 ell1^2
            printed: eb**(-2/3)*kappa*(ell1**2*kappa*eb**(-1/3)) <= n at eb = rr/n; free eb  #
                increments fit
            about: exponents of the rate variable, which stays a symbol
            use: Check the budget.
        ER-53 (rate; B.2): T = eb^(-2/3) steps of length eb^(1/2) descend by eb^(1/3), which
            goes to 0.
            claim: 1 =O T*alpha*alpha at T = alpha**(-2); free T; growth eb = -1
            printed: 1 =O eb**(-2/3)*eb**(1/2)*eb**(1/2); free eb; growth eb = -1  # the total
                descent is of the order of the gap
            about: exponents of the rate variable, which stays a symbol
            use: T = 4 L_Phi F0/alpha^2.
        ER-54 (rate; B.2): A refresh batch of n^(2/3) is too small when privacy dominates.
            claim: rr**2/u**2 <= rr/n at u = sqrt(n*rr)  # S1 = sqrt(n rr)
            printed: rr**2/u**2 <= rr/n at u = n**(2/3)  # S1 = n^(2/3)
            about: the size of a batch, for any noise
            use: max(n^(2/3), sqrt(n rr)).
        ER-55 (rate; Theorem 2): With honest noise the exponent is 3/7, not 1/2.
            claim: rr*u**(-7/3) <= n at u = (rr/n)**(3/7)  # records of the one-pass schedule at
                alpha = (rr/n)^(3/7)
            printed: eb**(-1/3)*eb*rr**2/eb**(-2/3) <= eb where 1 <= rr, rr <= n at eb = rr/n;
                free eb; points rr = 1000, n = 1000000  # accumulated noise q alpha^2 rr^2/S2^2
                fits eb
            about: exponents of the rate variable, which stays a symbol
            use: The one-pass schedule, or a tree-structured estimator.
        ER-56 (minor; (33)-(37)): The squared norm of the noise lacks the dimension.
            printed: d*u**2 = u**2  # E ||N(0, s^2 I_d)||^2
            about: sizes of random vectors, for any dimension
            use: d sigma^2.
        ER-57 (minor; Lemma 8, (44)): The allowed movement lacks kappa.
            claim: eb/(kappa*x)**2 <= eb/x**2 where 1 <= kappa; free eb
            printed: eb/x**2 <= eb/(kappa*x)**2 where 1 <= kappa; free eb
            about: an allowed movement, for any step
            use: 1/(kappa C_Phi).
        ER-58 (rate; (37), (43)): The hidden constants make the induction factor exceed 520.
            claim: 520 <= 4/9*(3*kappa + 2)*(3 + 390*ell1)/(kappa*ell1)
            printed: 4/9*(3*kappa + 2)*(3 + 390*ell1)/(kappa*ell1) <= 1  # the induction factor
                is below 1
            about: constants of an induction
            use: Treat Theorem 2 as asymptotic only.
    """,
)
