"""Errata of the paper: printed formulas that do not hold, and their corrections."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of
from dpcal.calibrate.papers.kan.checks import CHECKS

ERRATA = errata_of(
    """
    E01 (privacy; Theorem F.8): The pair of Theorem F.8 does not dominate fixed-size
        batches.
        claim: 1/10*(1/2*erfc(1/2*sqrt(2)*(-2 + t))) + (1 - 1/10)*(1/2*erfc(1/2*t*sqrt(2)))
            - exp(1)*(1/10*(1/2*erfc(1/2*sqrt(2)*(-1 + t))) + (1 -
            1/10)*(1/2*erfc(1/2*t*sqrt(2)))) <= 1/10*(1/2*erfc(1/4*sqrt(2)) -
            exp(1)*(1/2*erfc(3/4*sqrt(2)))) where t in [1, 6]  # attack is at most the
            participation-revealed bound (r times a Gaussian delta)
        printed: 1/10*(1/2*erfc(1/2*sqrt(2)*(-2 + t))) + (1 -
            1/10)*(1/2*erfc(1/2*t*sqrt(2))) - exp(1)*(1/10*(1/2*erfc(1/2*sqrt(2)*(-1 + t)))
            + (1 - 1/10)*(1/2*erfc(1/2*t*sqrt(2)))) <= 1/10*(1/2*erfc(1/2*sqrt(2)*(-1/2 +
            log(-9 + 10*exp(1))))) + (1 - 1/10)*(1/2*erfc(1/2*sqrt(2)*(1/2 + log(-9 +
            10*exp(1))))) - exp(1)*(1/2*erfc(1/2*sqrt(2)*(1/2 + log(-9 + 10*exp(1))))) where
            t in [1, 6]; points t = 29/10  # one step, r = 0.1, kappa = 1, epsilon = 1:
            event x > t within F.8's delta
        about: an attack on one step at fixed numbers
        use: Poisson sampling with F.8, or fixed-size batches with participation revealed.
    E02 (privacy; Lemma D.7, Theorem 5.4): c = 8 is an asymptotic coefficient, not a bound: the
        multiplier of Theorem 5.4 is too small.
        claim: release 2 with noise sqrt(4/epsilon + 8*Lam/epsilon**2)*sqrt(T) times T within
            epsilon**2/(2*epsilon + 4*Lam)  # full batch (r = 1): a plain Gaussian, a quarter of the
            printed variance
        printed: 1/10*(1/2*erfc(1/2*sqrt(2)*(-2 + t)/sqrt(4/25 + 8/25*log(100000)))) + (1 -
            1/10)*(1/2*erfc(1/2*t*sqrt(2)/sqrt(4/25 + 8/25*log(100000)))) -
            exp(1)*(1/2*erfc(1/2*t*sqrt(2)/sqrt(4/25 + 8/25*log(100000)))) <= 1/10**5 where t in [1,
            20]; points t = 8  # one step, r = 0.1, epsilon = 1, delta = 1e-5: event x > t stays
            below delta
        about: an attack on one step at fixed numbers
        use: Exact accounting, or F.12 with lambda = 0.
    E03 (privacy; Corollary 5.5): The schedule of Corollary 5.5 drives the noise multiplier
        to 0.
        claim: epsilon <= B55**2*T55/n**2 where epsilon <= T55, 1 <= n; free T55  # r^2 T >=
            epsilon keeps kappa^2 above 16
        printed: 1 =O B55**2*T55/n**2*(16/epsilon + 32*Lam/epsilon**2); printed B55; growth
            n = 1  # kappa^2 stays bounded away from 0 as n grows
        use: B = min(n, max(gamma sqrt(n), n sqrt(epsilon/T))).
    E04 (privacy; appendix F.1, Theorem F.8): F.8 divides the noise by the clip, although Algorithm
        1 multiplies it by the clip.
        claim: release C with noise C*kappa within 1/(2*kappa**2)  # noise C kappa
        printed: C*kappa/C = kappa/C  # noise over sensitivity
        about: the noise of any clip
        use: kappa; accountants never see the clip.
    E04.priced (privacy; Theorem F.8): Dividing by the clip reports an epsilon of 0.35 where 7.05 is
        spent.
        claim: check price_at_kappa  # r = 0.1, T = 100, kappa = 1, whatever the clip
        printed: check price_at_kappa_over_clip  # the same run priced at kappa/C = 10 for a clip of
            0.1
        about: one run at fixed numbers
        use: kappa; accountants never see the clip.
    E05 (privacy; appendix D.1 against appendix F): Theorem 5.4 is for replace-one, Theorem
        5.1 for zero-out; the constants 8 and 2 differ for that.
        claim: 2*relation**2 = 8 at relation = 2  # constant, replace-one
        printed: kappa_sq*epsilon**2/(growth_sq*taus*(log(5/2) + Lam)) = 8 at relation = 1;
            free growth_sq taus  # constant, zero-out
        use: 2 under zero-out, 8 under replace-one.
    E06 (rate; Theorem F.12): The sensitivity bound of F.12 holds, and is several times too large.
        claim: check bound_holds  # an upper bound it is
        printed: (1 - lam**16)/(1 - lam**2) <= ((1 - lam**8)/(1 - lam))**2 where lam in [1/2,
            99/100]; loose 5/2  # squared sensitivity of one participation in eight steps
        about: a sensitivity of eight steps, for any lambda
        use: The exact sensitivity of the first k steps.
    E07 (privacy; Theorem 5.1, Lemma F.10): Theorem 5.1 omits r T >= 3 log(2/delta), without which
        Lemma F.10 is false.
        claim: check at_most_8  # T = 1000, r = 1e-3, delta = 1e-5: at most 8, the binomial quantile
        printed: check at_most_7  # T = 1000, r = 1e-3, delta = 1e-5: at most tau = 7.05
            participations
        about: a binomial tail at fixed numbers
        use: The exact binomial quantile, capped at T.
    E08 (minor; Algorithm 1): Algorithm 1 makes T - 1 noisy steps; the appendices count T.
        claim: check steps_made
        printed: check steps_claimed
        about: the count of a loop
        use: T - 1; counting T is on the safe side.
    E09 (privacy; Theorem F.8): F.8 writes C y where its proof gives |C| y.
        claim: check pair_of_sizes
        printed: check pair_with_signs
        about: a matrix of two rows
        use: |C| y.
    E10 (privacy; Lemma D.7, (19)): Terms j >= 3 of the amplification bound do not vanish
        with more noise.
        claim: q*(order - 2)*kappa**2 =O kappa**2 at order = 3; growth kappa = 1
        printed: q*u*kappa**2/24 =O 1; growth kappa = 1  # the ratio of the third to the
            second term stays bounded
        about: terms of a series, for any order
        use: The full sum, at whole orders, interpolated.
    E11 (rate; Theorems 5.1, 5.4): F.12 has no amplification: its noise is more than 1/(4 r)
        times what D.9 asks at lambda = 0.
        printed: 32*r**2*T*Lam <= 8*r*T*Lam where r <= 1/100; loose 25  # noise variance of
            D.9 within that of F.12
        about: two variances, for any rate and steps
        use: B of order n, or exact accounting.
    E12 (rate; Remark 4.2, Section 5.1): The noise factor is not monotone in lambda.
        claim: eta/(1 + eta) <= (1 - lam)**2 + lam**2*eta where lam in [0, 1]  # smallest at
            1/(1 + eta)
        printed: eta <= (1 - lam)**2 + lam**2*eta where lam in [0, 1]; points eta = 1/10,
            lam = 10/11  # smallest at full correlation
        about: the noise factor of any step length
        use: lambda at most 1/(1 + eta); with the calibrated noise lambda = 0.
    E13 (rate; Theorem 5.2, Corollary 5.3): A factor R^2 in the width has no use in the
        proof and costs a factor 1/gamma in the rate.
        claim: m53*T53*d/(n**2*epsilon**2) <= Max(1/(gamma*sqrt(n)),
            sqrt(d)/(gamma**3*n*epsilon)) where gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  #
            width gamma^-4
        printed: m53*T53*d/(n**2*epsilon**2) <= Max(1/(gamma*sqrt(n)),
            sqrt(d)/(gamma**3*n*epsilon)) where gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n;
            printed m53 T53; points gamma = 1/10  # the printed rate is as
            good as the one without R^2
        use: m = gamma^-4 and T = min(sqrt(n)/gamma, n epsilon gamma/sqrt(d)).
    E14 (rate; Corollary 5.3): On the second branch of T the width exceeds its upper limit
        by logarithms.
        claim: gamma**(-6) <= n**2*epsilon**2/(gamma**2*d*T**2) where T <=
            n*epsilon*gamma**2/sqrt(d)  # without logarithms the window is a point
        printed: ell*m53 <= gamma**(-6) where 1 <= ell; printed m53; points ell = 2  # polylog
            gamma^-6 is at most gamma^-6
        use: A logarithm in T.
    E15 (rate; Corollary 5.6, Theorem E.1): delta <= 1/(gamma n) is too weak by 1/gamma.
        claim: (1 + eta56*T56/n)*delta56 =O 1/(gamma**2*n); growth gamma = -1, n = 1
        settings: delta56
        use: delta <= 1/n.
    E16 (rate; D.3, E.1): The bound on the loss drops the radius, of order 1/gamma.
        claim: sqrt(p) + p**(3/2)/gamma =O 1/gamma; growth gamma = -1
        printed: sqrt(p) + p**(3/2)/gamma =O 1; growth gamma = -1
        about: a radius, for any p
        use: R^2 in the fluctuation part of the width.
    E17 (minor; Theorem D.14, Corollary 5.5): C <= G is used where C >= G is assumed.
        printed: C <= G where G <= C
        about: an assumption on the clip
        use: C of the order of G.
    E18 (minor; Theorem C.13, conditioning): An unconditional failure probability is used as
        a conditional one.
        open: a conditioning step inside a proof
        use: Events at level delta^2 and Markov's inequality.
    E19 (privacy; Theorems 4.1 and 5.1, delta): One delta stands for privacy and for
        failure.
        open: two meanings of one symbol
        use: delta_dp and delta_fail.
    E20 (privacy; Section 3, margin): The margin is a function of the private sample, and
        every setting depends on it.
        open: whether an input is public is not a formula
        use: A public margin.
    E22 (minor; D.3): The full-batch specialization uses T = n without saying so.
        open: an assumption that is not stated, not a wrong formula
        use: State T = n.
    E23 (minor; C.13, C.3, C.11, F.10 and F.11, misprints): A list of misprints.
        open: names and indices
        use: 12 beta in C.13 (ii); c_priv in C.3 and C.11; c_2 <= 1 in F.10.
    E24 (privacy; Theorem F.12, outside its condition): F.12 outside its condition: the
        certificate fails, no attack is known.
        open: neither a proof nor a counterexample is known
        use: Treat it as unsupported.
    E25 (privacy; Lemma F.7): Lemma F.7 is quoted from other papers.
        open: an external theorem about adaptive mixtures
        use: Participation revealed, which needs one component only.
    """,
    checks=CHECKS,
)
