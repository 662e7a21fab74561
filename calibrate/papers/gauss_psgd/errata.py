"""Errata of the paper: printed formulas that do not hold, and their corrections."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of
from dpcal.calibrate.papers.gauss_psgd.checks import CHECKS

ERRATA = errata_of(
    """
    E1 (rate; Lemma 4, (71)-(72), (5)): R^2/(4 eta Gamma) has iota^4, not iota^3: the
        decrease of an escape is overstated.
        claim: R**2/(4*eta*Gamma) = 2*Phi; free alpha eta
        settings: Phi
        use: Phi = (s/(8 iota^4)) sqrt(alpha^3/rho), chi = 4 sqrt(C) s^(3/2) mu^(5/2) psi.
    E1.chi (rate; (5)): alpha of (5) is too small by sqrt(iota) for the noise to take half
        of the decrease.
        claim: 16*C*s**3*mu**5*psi**2 <= alpha**2  # requirement A6 with c = C
        printed: 16*C*s**3*mu**5*psi**2 <= alpha**2; printed chi  # requirement A6 with c =
            C
        use: chi = 4 sqrt(C) s^(3/2) mu^(5/2) psi.
    E2 (rate; Lemma 20, (42)-(43)): The induction of Lemma 20 needs iota where sqrt(iota) is
        printed.
        claim: eta*M*sqrt(Gamma)*iota = 1/sqrt(s)
        settings: eta
        use: eta = sqrt(rho alpha)/(M^2 iota^3).
    E3 (rate; Lemmas 2 and 6): 26/5 rounds per unit of log(1/omega) are enough only for
        base-2 logarithms.
        claim: log(1/omega) <= Q*log(8/7)  # the failure probability is at most omega
        settings: Q
        use: Q = ceil(log(1/omega)/log(8/7)).
    E4 (rate; (52)-(53), (6)): (52) has sqrt(eta r) for sqrt(eta) r/sqrt(gamma): too
        optimistic when r < gamma.
        claim: v/sqrt(2*u*g)*u*r = v*sqrt(u)*r/sqrt(2*g)
        printed: v/sqrt(2*u*g)*u*r = v*sqrt(u*r)/sqrt(2)
        about: an argument of a logarithm, for any sizes
        use: log2(40 sqrt2 M sqrt(alpha/rho)/r).
    E4.units (rate; (6)): The second logarithm of (6) has an argument with units.
        claim: [M*sqrt(alpha/rho)/r] = 1  # argument of the logarithm
        printed: [sqrt(psi/rho)/sqrt(eta*r)] = 1  # printed argument
        use: log2(40 sqrt2 M sqrt(alpha/rho)/r).
    E5 (rate; Theorems 2 and 3): The larger of two kappas does not give the sum of two
        rates: a mixed regime lies between.
        claim: a13 + a24 + a14 =O a14; growth n = 1, d = 1/3  # with the mixed term, at p =
            n^(-5/6)
        printed: e4 =O a13 + a24; growth n = 1, d = 1/3, kappa = -(1/2)  # e4 at kappa_13 is
            within the claimed sum, at p = n^(-5/6)
        use: kappa at the crossing of max(e1, e2) and max(e3, e4).
    E6 (privacy; Theorems 2 and 3, (98), (115)): With the proved bounds the oracle may use
        more than n records.
        claim: b1*u + b2*v <= n where 2*b1*u <= n, 2*b2*v <= n; free b1 b2
        printed: b1*(6*(1 + 5*A)*U*eta/kappa) + b2*(A*U/(eta*chi**2)) <= n  # records used are
            at most n
        use: Hard caps on both kinds of call, b_i = floor(n/(2 N_i)).
    E7 (rate; Theorems 2 and 3, fixed point of (5)-(6)): Theorem 1 assumes fresh isotropic
        noise; the SPIDER oracle's errors are correlated in time.
        open: a property of a joint law that no formula of the paper states
        use: Treat the guarantee as empirical for Algorithms 2 and 3.
    E8 (rate; Algorithms 1 and 2): The jump back after a failed round is not counted,
        neither as drift nor in F.
        claim: 4*M*mu/sqrt(rho*alpha) = M*R**2/2/Phi; free alpha eta
        printed: M*R**2/2 <= Phi; free alpha eta  # the jump costs at most one decrease
        use: Rewind the estimator; measure true movements; cap the calls.
    E9 (algorithm; Algorithm 1): The pseudocode returns the last iterate of a failed round, not the
        certified anchor.
        claim: check one_step_later  # one step later, index t - 1
        printed: check several_steps_later  # index t - 1
        about: the index that a loop returns
        use: Return the anchor.
    E10 (privacy; Algorithm 3, privacy statement): Privacy needs at most n consumed records,
        which is shown only with high probability.
        open: whether a stopping rule exists is a matter of the listing
        use: Stop when the pool is exhausted.
    E11 (privacy; Theorem 4, Algorithm 4): Advanced composition needs two logarithms and log
        T more than the stated noise.
        printed: 16*2*T*log(2/w)*log(5*T/w) <= 16*T*log(1/w) where w in [1/100000000, 1/10],
            T in [10, 1000]  # Lemma 16 fits the stated variance
        about: noise of a selection, for any failure probability
        use: sigma_1 = sqrt(2T) z 2G/n, sigma_2 = sqrt(2T) z 2M sqrt(d)/n.
    E12 (rate; Algorithm 4): With exact noise the selection thresholds do not cover the
        noise they ignore.
        claim: 859/100 <= log(16/omega) where omega in [1/1000000, 29/10000]  # the gradient
            slack covers the noise for omega <= 0.0029
        printed: 859/100 <= log(16/omega) where omega in [1/100, 1/2]  # the gradient slack
            covers the noise for omega >= 0.01
        about: slack of a selection, for any failure probability
        use: Explicit thresholds, union over the T candidates.
    E13 (minor; (143), Theorem 4): The cross term of (143) is alpha/sqrt(mn) for
        sqrt(alpha/(mn)).
        claim: sqrt(u)*sqrt(1/(m*n)) = sqrt(u/(m*n))  # cross term
        printed: sqrt(alpha)*sqrt(1/(m*n)) = alpha/sqrt(m*n)  # cross term
        use: sqrt(alpha/(mn)); absorbed anyway.
    E14 (minor; introduction): The introduction prints epsilon m n where Theorem 3 proves
        sqrt(m) n epsilon.
        claim: e2 = a24 at kappa = k24
        settings: a24
        use: sqrt(m) n epsilon.
    E15 (minor; introduction): The earlier rate with exponent 3/7 is smaller, not larger,
        than the new one.
        claim: x**(3/7) <= x**(2/5) where x <= 1
        printed: x**(2/5) <= x**(3/7) where x <= 1
        about: the comparison of two rates
        use: The new rate is weaker and repairs an over-optimistic one.
    E16 (minor; (77)): The number of escapes is printed 8 times too large.
        claim: saddles = U/Phi; definition; free alpha iota  # escapes
        printed: saddles = U/Phi; free chi iota; printed saddles Phi  # escapes with the
            printed decrease
        use: U/Phi.
    E17 (minor; (75), (79)): A normal step decreases F by 3/2 eta chi^2, not 2 eta chi^2.
        claim: eta/2*(4*chi**2 - chi**2) = 3/2*eta*chi**2; free eta chi
        printed: eta/2*(4*chi**2 - chi**2) = 2*eta*chi**2
        use: 3/2 eta chi^2, and the calls of the last round.
    E18 (rate; Theorem 1): Nothing in (6) makes the failure probability of the escapes at
        most omega.
        claim: u*exp(-x) <= omega/2 at x = log(2*u/omega)  # iota >= log(2 N_saddle/omega)
        printed: 2*saddles*exp(-iota) <= omega  # N_saddle 2 exp(-iota) <= omega
        use: mu >= (1/s) log(2 N_saddle/omega).
    E19 (minor; Lemma 14): Lemma 14 states a tail for the norm with prefactor d; it needs 2
        d.
        claim: 1 <= 2*exp(-3/8)  # Rademacher at t = 1, prefactor 2 d
        printed: 1 <= exp(-3/8)  # Rademacher at t = 1, prefactor d
        about: a tail bound at fixed numbers
        use: 2 d.
    E20 (minor; Corollary 3): log(2d/w)/log(2/w) <= 2 log d fails for d <= 6.
        claim: log(2*d/w)/log(2/w) <= 101/100 + log(d)/log(2) where d in [2, 50], w in
            [1/10, 1]  # at most 1.01 + log2(d)
        printed: log(2*d/w)/log(2/w) <= 2*log(d) where d in [2, 1000], w in [1/100, 1];
            points d = 2, w = 1
        about: a ratio of two logarithms
        use: log(2 d) in place of log(d).
    E21 (privacy; Definition 8): Definition 8 states the textbook Gaussian formula for every sigma;
        it fails for large epsilon.
        claim: release 1 with noise sqrt(2*log(125/100*10**5))/u within u, 1/100000 where u in [1/2,
            2]  # in the experiments' range 0.5 to 2 it is enough
        printed: release 1 with noise sqrt(2*log(125/100*10**5))/u within u, 1/100000 where u in
            [1/2, 10]; points u = 17/2  # enough at every epsilon
        about: textbook noise at a fixed delta
        use: The exact Gaussian profile.
    E22 (privacy; Lemma 7): c1 and c2 depend on epsilon and delta; taken as 1 they double epsilon.
        claim: release 2*G/u with noise 2*(373064/100000)*G/u within 1, 1/100000  # multiplier
            3.73064 at (1, 1e-5)
        printed: release 2*G/u with noise G*sqrt(log(10**5))/u within 1, 1/100000  # c1 = 1 at (1,
            1e-5), replace-one
        about: noise at a fixed target
        use: Convert c1 to a multiplier and report the resulting epsilon.
    E23 (privacy; experiments): Results are plotted over epochs; the proof covers one use of each
        record.
        claim: release 1 with noise sqrt(2)*(703183/100000) times 2 within 1/2, 1/100000  # two
            epochs at sqrt(2) z*
        printed: release 1 with noise 703183/100000 times 2 within 1/2, 1/100000  # two epochs with
            noise for one
        about: noise of two epochs at a fixed target
        use: sqrt(E) z* for E epochs, per-example clipping.
    E24 (minor; (9), and (32), (34), (38), (45), (55)-(57), (72), (90)): Small items; (9) sums a
        movement that is not known when the drift is tested.
        claim: check drift_window
        printed: check printed_drift_window
        about: the index of a sum
        use: sum of ||x_{i-1} - x_{i-2}||^2.
    E25 (minor; Remark 4): min(N^2, N^(6/13)) is N^(6/13); the condition assumes that
        privacy dominates.
        claim: N**(6/13) <= N**2 where 1 <= N
        printed: N**2 <= N**(6/13) where 1 <= N  # N^2 can be smaller
        about: exponents of a condition
        use: sqrt(d)/N <= alpha^(9/4) and d/N <= alpha^(7/4) with the actual alpha.
    E26 (privacy; experiments): Definition 8 and Lemma 16 require epsilon < 1; the experiments use 1
        and 2.
        claim: release 1 with noise sqrt(2*log(125/100*10**5))/2 within 2, 1/100000  # the textbook
            noise at epsilon = 2 is enough all the same
        printed: 2 <= 1  # epsilon = 2 is within the stated range
        about: the range of a theorem
        use: Exact accounting, which has no such range.
    E27 (minor; Lemma 20): On the localization event the distance is at most 2 R, not R.
        claim: (2*R)**2 <= 4*R**2; free R  # squared distance
        printed: (2*R)**2 <= R**2  # squared distance
        use: log(2R/(eta r)).
    E28 (minor; misprints of several sections): Lemma 20 conditions martingale statements on
        a future event.
        open: the conditioning of a martingale inside a proof
        use: P(event and not bound).
    E29 (minor; remarks of several sections): A comparison relies on an external theorem.
        open: the external theorem is not part of the text
        use: Not used.
    """,
    checks=CHECKS,
)
