"""Errata of the paper: glm."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

GLM_ERRATA = errata_of(
    """
        E40 (privacy; Algorithm 4): k may fall far below log(2n/delta), where the norm event
            behind delta/2 fails.
            claim: n*exp(-k*(1 - log(2))/2) <= u/2 at n = 10**3, u = 1/10**5, k = 125  # norm
                event at k >= 6.52 log(2n/delta), n = 1e3, delta = 1e-5
            printed: erfc(1) <= 1/(2*10**5)  # k = 1: P(chi2_1 > 2) is below delta/2
            about: a norm event at fixed numbers
            use: Clip in the projected space.
        E41 (privacy; Algorithm 4, choice of k): k depends on the rank of the private design
            matrix.
            open: whether an input is public is not a formula
            use: A public rank bound.
        E42 (minor; Theorem 6, arguments of g): g is declared and called with its arguments in
            different orders.
            open: the order of arguments of an unspecified function
            use: Keyword arguments.
        E43 (minor; Corollary 1.2): Corollary 1.2 feeds a population guarantee to a theorem that
            asks for an empirical one.
            open: needs a uniform convergence theorem that the text does not contain
            use: Adds 1/sqrt(n), which leaves the rate unchanged.
        E44 (rate; Corollary 1): Definition 1 alone gives (log n/k)^(1/4), not k^(-1/2).
            claim: k**(1/3)/N**(2*(1/3)) = N**(-2/5) at k = N**(4/5)  # rate with k^(-1/2)
            printed: N**(-2/7) =O N**(-2/5); growth N = 1  # rate with k^(-1/4) is the claimed
                one
            about: exponents of two rates
            use: A Gaussian Phi, for which k^(-1/2) is provable.
    """,
)
