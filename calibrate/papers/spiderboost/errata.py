"""Errata of the paper: printed formulas that do not hold, and their corrections."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of
from dpcal.calibrate.papers.spiderboost.checks import CHECKS

ERRATA = errata_of(
    """
    E1 (rate; Theorem 9): The period q of Theorem 9 carries a factor L1^-2 that its proof
        does not.
        claim: 2*L1**2*T*abar**2*q <= L1**2; free T  # tau2^2 q <= L1^2
        settings: q
        use: q = 1/(2 T abar^2), rounded down.
    E2 (rate; Algorithm 1, line 2): sqrt(T)/sqrt(q n) for sqrt(T)/(sqrt(q) n): the noise
        variance is n times too large.
        claim: sigma1 = L0*kappa*sqrt(T/q)/n at T = q*(1 + x); free T q  # refresh noise
            from Theorem 8 with T/q refreshes
        settings: sigma1
        use: sqrt(T/q)/n.
    E3 (rate; Section 3.1): tau1^2 adds the noise variance times L0^2 although it contains
        L0 and acts on d coordinates.
        claim: [tau1_sq] = gradient**2  # squared error has the unit of a gradient^2
        settings: tau1_sq
        use: Sampling error (0 for b1 = n) plus d sigma1^2.
    E4 (rate; Theorem 9): With q = 1/(T abar^2) the descent coefficient can vanish.
        claim: 1/(16*L1) <= (1 - x)/(8*L1) at x = 1/2  # q <= L1^2/tau2^2
        printed: 1/(16*L1) <= (1 - x)/(8*L1) at x = 1  # A at tau2^2 q = 2 L1^2
        about: a descent coefficient, for any share x of its condition
        use: The factor 2 in q.
    E5 (rate; Theorems 1 and 9): The condition on n that should give q >= 1 lacks
        sqrt(log(1/delta)).
        claim: 1 <= T where sqrt(d*Lam)/epsilon <= n  # T >= 1
        printed: 1 <= T where sqrt(d)*Max(1, sqrt(L1*F0)/L0)/epsilon <= n; points n = 1100,
            d = 1000000, epsilon = 1, Lam = 14, L0 = 1, L1 = 1, F0 = 1  # T >= 1 under the
            printed condition
        use: n >= sqrt(d log(1/delta)) max(1, sqrt(L1 F0)/L0)/epsilon.
    E6 (rate; Theorem 9): b2 <= n does not follow: it needs a lower bound on F0 L1.
        claim: b2 <= n  # b2 from the actual T, capped, is at most n
        printed: b2 <= n where sqrt(d*Lam)/epsilon <= n, sqrt(d*Lam*L1*F0)/(L0*epsilon) <=
            n, L0**2*epsilon**2/(F0*L1*d*Lam) <= n; printed b2; points n = 10000, d =
            1000000, epsilon = 1, Lam = 23/2, L0 = 1, L1 = 1, F0 = 1/10000  # printed b2 <=
            n under the stated conditions
        use: b2 = min(n, max(1/(T abar^2), n/sqrt(T))) with the actual T.
    E7 (minor; Theorem 9): T and b2 are rounded down although they enter as lower bounds.
        claim: T <= T + x; free T  # rounding up keeps a lower bound (x < 1)
        printed: T <= T - x; free T  # rounding down keeps a lower bound
        about: the rounding of any number
        use: Round T and b2 up, q down.
    E8 (minor; Theorem 9): tau2^2 = O(L1^2/b2^2): the variance of a batch mean is L1^2/b2.
        claim: tau2_sq = b2*(L1/b2)**2 + d*sigma2**2; definition; free b2 sigma2  # variance of
            a mean of b2 terms, and noise
        settings: tau2_sq
        use: L1^2/b2.
    E9 (minor; Theorem 9): The displays in the proof of Theorem 9 put abar under the root.
        claim: T1 = ((F0*L1)**(1/4)/(sqrt(L0)*abar))**(4*(1/3)); free abar  # T1 with abar
            outside the root
        settings: T1
        use: abar outside the root.
    E10 (privacy; Theorem 8): Theorem 8 divides the sum over a batch of size b by n.
        printed: u*(1/n) = 1  # mean of a constant as printed
        about: the mean of a batch of any size
        use: 1/b, and exact accounting in place of Theorem 8.
    E11 (privacy; Theorem 9): Refreshes and differences each get the whole budget; their union costs
        twice the zCDP.
        claim: release 1 with noise sqrt(2)*z, 1 with noise sqrt(2)*z within 1/(2*z**2)  # both
            families at sqrt(2) z compose to one release at z
        printed: release 1 with noise 422468/100000, 1 with noise 422468/100000 within 1, 1/10**6  #
            two families, each calibrated to (1, 1e-6), are (1, 1e-6)-DP together
        about: noise of two families at fixed numbers
        use: Joint calibration: multipliers near sqrt(2) z*.
    E11.priced (privacy; Theorem 9): A scale that suits each family alone overspends for both.
        claim: check joint_run_of_both  # both families at the common scale 5.999
        printed: check joint_run_of_one  # both families at the scale of one Gaussian release
        about: one run at fixed numbers
        use: Joint calibration: a scale near sqrt(2) z*.
    E12 (algorithm; Algorithm 1): The loop t = 0..T makes one release more than is ever used.
        claim: check useful_releases  # t = 0..T-1 makes ceil(T/q) refreshes
        printed: check printed_releases  # t = 0..T: at most T/q
        about: the count of a loop
        use: t = 0..T-1.
    E13 (rate; Theorem 9): A sampled batch of size n leaves a term L0/sqrt(n) in the
        empirical rate.
        claim: (n - b1)/((n - 1)*b1) = 0 where 1 < n  # all records leave no variance
        printed: abar**(2*(1/3)) + 1/sqrt(b1) =O abar**(2*(1/3)); growth n = 1  # empirical
            rate with a sampled refresh
        use: All records, exactly once.
    E14 (minor; Lemma 3, proof, indices): Index slips in the proof of Lemma 3.
        open: names of indices in a proof that is otherwise right
        use: Sum of eta^2 ||V_k||^2 over k = s_t..t-1.
    E15 (minor; Theorem 9): delta = 1 is allowed, at which the printed noise is 0.
        claim: 1/1000 <= sqrt(log(1/u)) where u in [1/1000000000, 99/100]  # noise scale for
            delta up to 0.99
        printed: 1/1000 <= sqrt(log(1/u)) where u in [1/1000000000, 1]; points u = 1  #
            noise scale for delta up to 1
        about: the range of delta
        use: epsilon > 0 and 0 < delta < 1.
    E51 (minor; Section 3.1): The sensitivity of a difference is printed as proportional to
        beta instead of L1.
        claim: [L1*W] = gradient  # L1 times movement is a gradient
        printed: [L0*W] = gradient  # beta (a gradient) times movement
        about: the unit of a sensitivity
        use: L1 ||w_t - w_{t-1}||.
    E16 (privacy; Theorems 3 and 4): The textbook Gaussian formula is used for every epsilon; it
        fails above about 8.4.
        claim: release 1 with noise sqrt(2*log(125/100*10**5))/u within u, 1/10**5 where u in
            [1/100, 1]  # the textbook noise is enough for epsilon <= 1 (delta = 1e-5)
        printed: release 1 with noise sqrt(2*log(125/100*10**5))/u within u, 1/10**5 where u in
            [1/100, 12]; points u = 17/2  # the textbook noise is enough for every epsilon (delta =
            1e-5)
        about: textbook noise at a fixed delta
        use: The smallest multiplier of the exact Gaussian profile.
    E17 (rate; Theorem 4): The batch size is printed as sqrt(n d^(1/4)) for sqrt(n) d^(1/4).
        claim: (d + 1)/(b*epsilon)**2 <= sqrt(d + 1)/(n*epsilon) at d = x - 1
        printed: d/(b*epsilon)**2 <= sqrt(d)/(n*epsilon); printed b
        use: sqrt(n) d^(1/4)/sqrt(epsilon).
    E18 (rate; Theorem 4): beta is printed with sqrt(b epsilon) for sqrt(b) epsilon.
        claim: beta**2 = alpha**2*Min(1, b*epsilon**2/(d + 1)); definition; free b alpha  #
            movement in proportion to the accuracy
        settings: beta
        use: alpha min(1, sqrt(b) epsilon/sqrt(d + 1)).
    E19 (rate; Theorem 4): Lemma 5's condition involves d + 1 while alpha and beta use d.
        claim: (L0**2/b + beta**2/2)*Max(1, (d + 1)/(b*epsilon**2)) = alpha**2 at d =
            b*epsilon**2*(1 + x) - 1; free b  # Lemma 5 with d + 1
        printed: (L0**2/b + beta**2/2)*(d + 1)/(b*epsilon**2) <= alpha**2 where b*epsilon**2 <=
            d; free b; printed alpha beta  # Lemma 5 with d, where privacy dominates
        use: d + 1 in b, alpha and beta.
    E20 (minor; Theorem 4): A depth-D tree has 2^D leaves, not 2^(D-1).
        claim: check true_leaf_count
        printed: check printed_leaf_count
        about: the leaves of a tree of any depth
        use: N = T 2^D leaves in the union bound.
    E21 (algorithm; Algorithm 2): The step of a round's last leaf is dropped.
        claim: check carried_round
        printed: check printed_round
        about: the steps of a loop
        use: Carry the last iterate into the next round.
    E22 (algorithm; Theorem 4): D 2^(D+1) = b has a whole solution for few b.
        claim: check floored_depth_for_E22  # floored depth
        printed: check integer_depth  # whole depth
        about: the depth of a tree of a given size
        use: The largest D with D 2^(D+1) <= b, and b a multiple of 2^D.
    E23 (minor; Lemma 5): The proof of Lemma 5 drops the factor D of the node variances.
        printed: D*v**2 = v**2  # variance of D nodes
        about: the variance of any D nodes
        use: beta^2 D 2^D/b, as in the statement.
    E24 (minor; Algorithm 2, and Theorem 3, index ranges): s in {0,1}^D for {0,1}^{<=D}, and
        an index in the proof of Theorem 3.
        open: index ranges in prose
        use: All labels of length at most D.
    E25 (minor; Theorem 4): Oracle complexity n counts records; gradients are up to twice as
        many.
        claim: 2*(D + 1)/(D + 2) <= 2
        printed: 2*(D + 1)/(D + 2) <= 1
        about: calls of a tree of any depth
        use: n 2 (D+1)/(D+2) gradient evaluations.
    E26 (rate; Theorem 4): The stopping level exceeds the Lipschitz constant until n is
        about 10^16.7.
        claim: 2*256*log(5/4*10**6)*log(2*10**17)*sqrt(2)*n**(-(1/3)) <= 1 where n in
            [1000000000000000000, oo] at n = 10**18  # first part of the stopping level at n
            = 10^18, in units of L0
        printed: 2*256*log(5/4*10**6)*log(10)*sqrt(2)*n**(-(1/3)) <= 1 where n in [1000,
            1000000000000]  # the stopping level is below L0 for n up to 10^12
        about: a stopping level at fixed constants
        use: The numerical schedule, or a stopping level of the user's.
    E30 (algorithm; Algorithm 3): The loop t = 1..T-1 leaves w_T and one block of records unused.
        claim: check all_blocks
        printed: check printed_blocks
        about: the count of a loop
        use: t = 1..T.
    E31 (rate; Theorem 5.1): lam of Theorem 5.1 has ||w*|| for ||w*||^2.
        claim: [lam] = gradient/parameter
        settings: lam
        use: L0^2/(L1 W^2) min(1/n, d/(n epsilon)^2).
    E32 (rate; Theorem 5.1): K_t adds L0^2 lam and L1^(3/2), which have different units.
        claim: [L0**2*lam + L1**3*W**2] = gradient**3/parameter
        printed: [L0**2*lam + L1**(3/2)] = gradient**3/parameter
        use: L1^3 W^2.
    E33 (privacy; Theorem 5.1): sigma_t^2 grows with K^2 instead of K T^2: the noise is too small
        for few steps.
        claim: release 2*L0*rounds/n with noise sigma_t times K_t within epsilon**2/(32*Lam); free T
            # every round fits epsilon^2/(32 Lam)
        printed: release 2*L0*rounds/n with noise sigma_t times K_t within epsilon**2/(32*Lam); free
            T; printed sigma_t; points K_t = 4, T = 9  # every round fits epsilon^2/(32 Lam)
        use: sigma_t = 2 L0 T/n sqrt(K) z*, exactly calibrated.
    E34 (rate; Theorem 5.1): K = kap log kap does not give eta <= 1/(L1 + lam).
        claim: x*log(2*x*log(x)) <= 2*x*log(x) where x in [2, 1000]  # K = 2 kap log kap
        printed: x*log(x*log(x)) <= x*log(x) where x in [2, 1000]; points x = 10  # K = kap
            log kap
        about: a step length, for any condition number
        use: 2 kap log kap.
    E35 (minor; Theorem 5): Round t has modulus (2^t - 1) lam, below the lam_t that eta and
        the selector use.
        claim: v*u/2 <= (v - 1)*u where 2 <= v  # half of lam_t is a modulus (v = 2^t)
        printed: 2**j*u <= (2**j - 1)*u  # lam_t is a modulus
        about: the modulus of a sum, for any round
        use: mu_t = (2^t - 1) lam.
    E36 (minor; Theorem 5): T = floor(log2(L1/lam)) is 0 or negative for lam > L1/2.
        claim: 2 <= L1/Min(lam, L1/2)  # L1/lam >= 2 with lam capped
        printed: 2 <= L1/lam  # L1/lam >= 2
        use: lam = min(lam, L1/2).
    E37 (privacy; Theorem 5.2): The step of Theorem 5.2 breaks non-expansiveness, on which
        the noise rests.
        claim: log(n/T)/(2*log(n))*(1 + 2*T*log(n)/n) <= 2 where n in [1000, 100000000], T
            in [1, 22]; free T  # eta_1 (L1 + lam_1) with lam = L1 T log(n)/n
        printed: T*log(n/T)/(2*log(n))*(1 + 2*log(n)/n) <= 2 at n = 1000, T = 7  # eta_1 (L1
            + lam_1) with lam = L1 log(n)/n, n = 1000, T = 7
        use: Refuse steps above 2/(L1 + mu_t).
    E38 (privacy; Theorem 5): sigma_t has gradient units and is handed to an algorithm that
        perturbs iterates.
        claim: [L0/L1] = parameter  # noise on an iterate
        printed: [sigma_t] = parameter  # sigma_t as noise on an iterate
        use: z* times 2 L0 eta.
    E39 (privacy; Theorems 4 and 5, public inputs): F0 and ||w*|| are functions of the data,
        hence so are T, b2, lam and R_t.
        open: whether an input is public is not a formula
        use: Public bounds.
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
    checks=CHECKS,
)
