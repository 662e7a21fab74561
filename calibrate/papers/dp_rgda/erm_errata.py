"""Errata of the paper: erm."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

ERM_ERRATA = errata_of(
    """
        ER-30 (rate; Lemma 4): The period of Lemma 4 has T where B2 belongs.
            claim: 1 <= 4*q where eb <= 1, eb*sqrt(F0*L) <= M; free eb
            printed: 1 <= 4*L**2/T**2  # q >= 1
            use: q = 1/(B2^2 eta^2).
        ER-31 (rate; (8)): The bound of Lemma 4 is sqrt(F0/(qT) + B1) for sqrt(F0/(eta T)) + B1.
            claim: [sqrt(F0*L/T) + M*T*eb**2] = loss/parameter; free T eb
            printed: sqrt(T1*eb**2) =O eb**(2/3); growth n = 1  #
                the printed bound gives the claimed rate
            use: sqrt(F0/(eta T)) + B1.
        ER-32 (rate; Lemma 5): The second term of T has log(1/delta) for its square root.
            claim: 1/eb <= T; free T1  # T >= 1/eb
            printed: 1/eb <= T; free T1; printed T; points ell = 14, n = 1000, epsilon = 1, d =
                1, T1 = 1  # T >= 1/eb
            use: n epsilon/sqrt(d log(1/delta)).
        ER-33 (rate; Lemma 5): The period q carries a factor L^-2.
            claim: [q] = 1  # the period is a number
            settings: q
            use: q = 1/(T eb^2).
        ER-34 (rate; Theorem 1, Lemma 5): The second term of S2 lacks epsilon^(-2/3).
            claim: n/sqrt(T*K) <= S2 where 1 <= T, 1 <= K; free T eb  # S2 >= n/sqrt(T K)
            printed: n/sqrt(T1) <= S2; printed S2; points n = 100000, d = 100, epsilon = 1/2,
                ell = 69/5, M = 1, L = 1, F0 = 1  # S2 >= n/sqrt(T1)
            use: S2 from the actual T.
        ER-35 (minor; Lemma 5, proof): B2 and B1 of the proof lack L and M.
            claim: [B2_sq] = loss**2/parameter**4
            settings: B2_sq
            use: B2^2 = L^2 T eb^2, B1^2 = M^2 T eb^2/q.
        ER-35.B1 (minor; Lemma 5, proof): B1 of the proof lacks M.
            claim: [B1_sq] = loss**2/parameter**2
            settings: B1_sq
            use: B1^2 = M^2 T eb^2/q.
        ER-36 (rate; Theorem 1): Theorem 1 states no lower bound on n, without which q < 1.
            claim: 1 <= q where eb <= 1, eb*sqrt(F0*L) <= M; free eb
            printed: 1 <= q; free eb  # q >= 1 for every n
            use: eb <= min(1, M/sqrt(L F0)).
        ER-37 (rate; Theorem 1): F0 subtracts a minimum over y of a strongly concave function:
            infinite.
            claim: M*y - mu*y**2/2 <= M**2/(2*mu)  # gap of the value function in y
            printed: -C <= M*y - mu*y**2/2; points y = 100  # f(x, y) is bounded below
            about: an assumption on the loss
            use: Phi(x0) - inf Phi.
        ER-38 (rate; Lemmas 1 and 3 to 5): (v, -u) is treated as the gradient of F; the y-part
            has the opposite sign.
            printed: y = -y; points y = 1  # estimate -u equals the derivative
            about: the sign of a derivative
            use: Estimator error plus tracking error, through (7).
        ER-39 (rate; B.1): A logarithm above 1 multiplies a bracket that may be negative.
            printed: p <= w*p where 1 <= w; points p = -1, w = 2  # any
            about: a logarithm before a bracket of any sign
            use: Logarithms on B1 and B2 only.
        ER-42 (minor; Lemma 5): The final rate drops M, L and the second branch.
            claim: [(sqrt(F0*L*M)*eb)**(2/3) + M*eb] = loss/parameter; free eb  # the rate has
                the unit of a gradient
            printed: [(sqrt(F0)*eb)**(2/3)] = loss/parameter  # printed rate
            use: (sqrt(F0 L M) eb)^(2/3) + M eb.
    """,
)
