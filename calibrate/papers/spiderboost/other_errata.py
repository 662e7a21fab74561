"""Errata of the paper: other."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

OTHER_ERRATA = errata_of(
    """
        E28 (minor; introduction): 'Faster than sqrt(d/n)' holds only for d >= n^(1/3).
            claim: n**(-(1/3)) <= sqrt(d/n) where n**(1/3) <= d
            printed: n**(-(1/3)) <= sqrt(d/n) where 1 <= n, 1 <= d; points n = 1000000, d = 1
            about: the comparison of two rates
            use: State the condition.
        E29 (minor; Section 1.3): sqrt(d epsilon) is printed for sqrt(d) epsilon.
            claim: sqrt(d)*epsilon = (d/n)**(1/3) at epsilon = d**(-1/6)*n**(-(1/3))
            printed: sqrt(d*epsilon) = (d/n)**(1/3) at epsilon = d**(-1/6)*n**(-(1/3))
            about: the comparison of two rates
            use: sqrt(d) epsilon.
        E45 (minor; Theorems 2 and 7, order of quantifiers): Theorems 2 and 7 fix the instance
            before the algorithm.
            open: the order of quantifiers over algorithms
            use: For every algorithm there is an instance.
        E46 (minor; Theorem 2, proof): The proof of Theorem 2 conditions on an event that
            depends on the algorithm.
            open: a conditioning step inside a proof
            use: ||grad F|| >= (L1/2)||Proj(w) - mean|| for every w.
        E47 (minor; Lemma 2): The proof of Lemma 2 has '> 0' for '>= 0' by monotonicity.
            claim: 0 <= (x - u)*(x - u)  # monotonicity of the identity map
            printed: u <= (x - x)*u  # strict at equal points
            about: monotonicity of an operator, for any points
            use: >= 0.
        E48 (minor; Theorem 7, statement): Theorem 7 takes L0 and L1 in N and speaks of R^d.
            open: the set of admissible constants, in prose
            use: Positive reals, d = 1.
        E49 (minor; Lemma 4): Lemma 4 omits that the oracle is private; the exact oracle has
            tau1 = 0.
            printed: L0*abar <= v at v = 0  # tau1 >= Omega(L0 abar) for the exact oracle
            use: (epsilon, delta)-DP per answer as a hypothesis.
        E50 (minor; Theorem 10, B.2): L(0) - argmin for L(0) - min.
            open: a misprint of an operator's name
            use: min.
    """,
)
