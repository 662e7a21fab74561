"""Errata of the paper: printed formulas that do not hold, and their corrections."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of
from dpcal.calibrate.papers.kl_condition.checks import CHECKS

ERRATA = errata_of(
    """
    EP1 (privacy; Theorem 1, Lemma 8): The printed noise of Algorithm 1 costs 17/8 of its budget
        under the paper's own relation.
        claim: release D0 with noise sigma_0 times K, D_k with noise sigma_1 times K*m within rho;
            free K  # exact split, M - 1 differences per round: rho-zCDP under replace-one
        printed: release D0 with noise sigma_hat times K, D_k with noise sigma_k times K*T_k within
            rho; free K T_k  # printed noise: rho-zCDP under replace-one
        use: The exact split of a round's budget: rho exactly, with the same utility constants.
    EP2 (privacy; Lemma 8, Theorem 3): Algorithms 1 and 3 use sensitivity L0/n, half of what
        replacing one record can do.
        claim: D0 = 2*L0/n; definition  # replacing a record moves the mean gradient by 2
            L0/n
        settings: D0
        use: An explicit neighboring relation everywhere; 2 L0/n for replace-one.
    EP3 (minor; Lemma 8): The sensitivity of a gradient difference lacks 1/gamma.
        claim: 2*L1*Phi**(1/kappa)/(4*gamma*L1*n) <= D_k  # difference sensitivity
        settings: D_k
        use: 2 L1 h/n with the actual step length h = Phi^(1/kappa)/(4 gamma L1).
    EP4 (minor; Lemma 8): The budget per release is printed as 1/K instead of rho/K.
        claim: D0_ar**2/sigma_hat**2 = rho/K; free K  # budget of a round start, as the
            paper charges it
        printed: D0_ar**2/sigma_hat**2 = 1/K; free K  # as printed
        use: rho/K.
    EP5 (minor; Lemma 8, Theorem 3): A Gaussian release is charged (D/s)^2 instead of
        (D/s)^2/2.
        claim: K*D0_ar**2/(2*sigma_hat**2) = rho/2; free K  # zCDP of all round starts
        printed: K*D0_ar**2/(2*sigma_hat**2) = rho; free K  # as charged
        use: (D/s)^2/2; it partly hides EP2.
    EP6 (privacy; Algorithm 1): The loop 'while t <= T_k' makes floor(T_k) + 1 releases; the privacy
        proof counts T_k.
        claim: check repaired_loop_count  # t < ceil(T)
        printed: check literal_loop_count  # 'while t <= T' makes at most T steps
        about: the count of a loop
        use: M = ceil(T_k), 't < M', and M - 1 difference releases.
    EP7 (privacy; Algorithm 3, Theorem 3): Algorithm 3 charges by the noisy norm even when
        it is negative and the noise is at its floor.
        claim: D0_ar**2/(2*sigma_t**2) <= charge  # charging D^2/(2 sigma_t^2) from the
            noise that was used covers its cost
        printed: D0_ar**2/(2*floor_t**2) <= Min(L0**2*d*ell/(n**2*N_t**2), rho/2) +
            sqrt(rho)/n; points L0 = 1, n = 10000, d = 1, rho = 1/2, ell = 12,
            N_t = 1/100  # charge at N_t < 0 (N_t stands for its size) covers the floor's
            cost
        use: Charge D^2/(2 sigma_t^2) from sigma_t, never from N_t, and test before
            spending.
    EP8 (privacy; Theorem 3, Lemmas 10 and 11): At its floor sigma_t costs rho/4 by the
        paper's own formula, not the rho/2 it equates.
        claim: (L0/(n*floor_t))**2 = rho/4
        printed: (L0/(n*floor_t))**2 = rho/2
        use: The cost of the noise that was used.
    EP9 (privacy; Algorithm 3): The stopping test of Algorithm 3 looks at past cost only, so the
        last step overshoots.
        claim: check strict_filter  # test including the coming release
        printed: check unbounded_filter  # test of past cost only
        about: the order of test and release in a loop
        use: A filter that refuses before spending.
    EP10 (privacy; Theorem 3): With EP7 repaired, releasing everything still costs up to 3/2 rho
        under replace-one.
        claim: release D0 with noise D0/sqrt(2*(rho - u)), D0 with noise D0/sqrt(2*u) within rho
            where u <= rho/2  # a filter that charges every release stays within rho
        printed: rho + 2*sqrt(rho)/n + D0**2/(2*floor_t**2) <= rho  # steps, last norm and last
            gradient fit rho
        use: The strict filter over norms and gradients.
    EP11 (minor; Algorithm 3): A vector of noise is added to a scalar norm.
        printed: d*u**2 = u**2  # squared size of a d-dimensional draw
        about: sizes of random vectors, for any dimension
        use: One scalar Gaussian.
    EP12 (privacy; Algorithm 3, its filter): rho_t depends on N_t, which is released in the
        same round.
        open: a statement about the order of conditioning, not a formula
        use: Norm and gradient as two rounds of the filter.
    EP13 (minor; Algorithm 3, budget of the last gradient): Half of the budget of Algorithm
        3 is kept for a gradient that no guarantee uses.
        printed: u <= rho where u <= rho/2; loose 2  # useful steps spend what is not
            reserved
        about: how a budget is divided, for any budget
        use: The strict filter spends all of rho on useful steps.
    EP14 (privacy; Theorem 5): Theorem 5 adds 2 rho by one formula; under replace-one the printed
        weights cost rho/2 to 2 rho.
        claim: release 2*L0/n with noise 2*L0/n/sqrt(2*rho_sel) within rho_sel  # selection within a
            budget reserved beforehand (Gaussian cost as a stand-in)
        printed: (2*sqrt(rho))**2/2 <= rho/2  # selection costs rho/2
        about: the cost of a selection, which no setting enters
        use: argmin of the released norms (free), or a budgeted exponential mechanism.
    EP15 (minor; Theorem 9): Algorithm 4's printed noise is twice as large as replace-one
        needs; its claim holds.
        claim: (T - 1)*D0**2/(2*sigma_in**2) = rho where 1 < T  # exact noise spends rho
        printed: (T - 1)*D0**2/(2*sigma_in**2) <= rho where 1 <= T; loose 2; printed
            sigma_in  # printed noise is within rho
        use: sigma^2 = 2 L0^2 (T - 1)/(n^2 rho).
    EP16 (minor; Theorem 5, sampling): Lemma 8 assumes regularity on a ball around the
        data-dependent minimizer.
        open: which ball is meant is a matter of wording
        use: The ball around w0.
    EP17 (privacy; neighboring relation, Section 1): Add-or-remove with sensitivity L0/n
        needs a public, fixed n.
        open: a convention about the normalizer
        use: A public n in every denominator.
    EA1 (algorithm; Algorithm 1, line 17): The next round starts at w_{k,t-1}, which is undefined
        when a round leaves at t = 0.
        claim: check repaired_restart  # start at the tested iterate
        printed: check printed_restart  # index t - 1 was tested
        about: the index at which a loop restarts
        use: w_{k,t}, the iterate whose gradient was just tested.
    EA2 (minor; Algorithm 1): w_{0,0} is initialized but the first round is k = 1.
        claim: check first_round_is_1  # w_{1,0} = w0
        printed: check first_round_is_0  # w_{0,0} starts round 1
        about: the index at which a loop starts
        use: w_{1,0} = w0.
    EA3 (minor; Algorithm 1, output): The stop test is printed with grad_{t,k} for
        grad_{k,t}.
        open: the order of two indices
        use: grad_{k,t}.
    EA4 (algorithm; Algorithm 1): When F0 is already small the printed number of rounds is
        negative.
        claim: 1 <= K at F0 = 3*(gamma*L0*X)**kappa; free X a  # at three times the target
            there is at least one round
        printed: 0 <= K at F0 = (gamma*L0*X)**kappa/3; free X a  # the number of rounds is
            not negative, whatever F0
        use: Return w0 when F0 <= (gamma L0 X)^kappa or beta' >= 1/6.
    EA5 (algorithm; Lemma 2): When the floor exceeds F0, nothing prevents the output from
        being worse than the start.
        claim: u <= Phi where u <= F0, Max(Phi_before, u) <= Phi  # Phi >= floor
        printed: u <= Max(Phi_before, Min(u, F0))  # Phi >= floor, capped at F0
        about: the order of any two risks and a floor
        use: Return w0 when the floor is at least F0.
    EA6 (minor; Algorithm 2, output): The budget sum of Algorithm 3 has rho_t inside a sum
        over j.
        open: an index inside a sum
        use: rho_j.
    EA7 (rate; Algorithm 4): The step 1/(Ltil t) of Algorithm 4 does not match the weights 2
        t/(T (T + 1)).
        claim: t*(1/(2*eta_in) - Ltil/2) - (t - 1)*Ltil*t/4 = 0  # weighted terms telescope;
            (t-1)/(2 eta_{t-1}) = (t-1) Ltil t/4
        printed: t*(1/(2*eta_in) - Ltil/2) - (t - 1)*Ltil*(t - 1)/2 = 0; printed eta_in  #
            weighted terms telescope with eta_t = 1/(Ltil t)
        use: eta_t = 2/(Ltil (t + 1)).
    EA8 (algorithm; Algorithm 2): A convex loss has Ltil = 0, for which Algorithms 2 and 4
        divide by zero.
        claim: Phi**((2 - kappa)/kappa)/(8*gamma**2) <= lam  # the staged weight stays
            positive as Ltil goes to 0
        settings: lam
        use: The stage-dependent weight, which accepts Ltil = 0.
    EU1 (rate; Theorem 2): For kappa > 2 a constant proximal weight misses the claimed rate.
        claim: Phi**(2/kappa)/(64*u*gamma**2) <= Phi**((2 -
            kappa)/kappa)/(32*u*gamma**2)*Phi/2  # allowed inner error with a
            stage-dependent weight
        printed: u <= (32*gamma**2*Ltil*u)**(kappa/2) where kappa in [3, 4]  # the inner
            solver's error is below the claimed floor
        about: the error of a solver of any floor
        use: lambda_t = max(Ltil, Phi^((2-kappa)/kappa)/(8 gamma^2)).
    EU2 (rate; Lemmas 5 and 12): The descent lemma of Algorithm 3 fails when the error
        cancels the gradient.
        claim: 3*G**2/(8*L1) + inner/(4*L1) - noise/(8*L1) = (G**2 - noise)/(4*L1) + (G**2 +
            2*inner + noise)/(8*L1)  # exact form: (G^2 - E^2)/(4 L1) + ||g||^2/(8 L1)
        printed: G**2/(4*L1) - noise/(8*L1) <= 3*G**2/(8*L1) + inner/(4*L1) - noise/(8*L1)
            at inner = -G**2, noise = G**2  # printed descent, at e = -grad F
        about: a descent inequality, for any gradient and error
        use: (G^2 - E^2)/(4 L1) + ||g||^2/(8 L1).
    EU3 (rate; Lemma 12): (G + s)^2 is bounded by G^2 + s^2.
        claim: (G + s)**2 <= 2*G**2 + 2*s**2
        printed: (G + s)**2 <= G**2 + s**2
        about: a step of the proof, for any numbers
        use: 2 G^2 + 2 s^2, and half the gradient noise.
    EU4 (rate; Lemma 13): With c = 1 + 1/(8 gamma^2 L1) the phase does not contract by 1/c.
        claim: 1 - (u - 1)/u = 1/u  # contraction by the exact decrease
        printed: 1 - 1/(2*u*gamma**2*L1) = 1/u at u = 1 + 1/(8*gamma**2*L1)  # printed
            contraction
        about: a contraction factor of a proof, for any condition number
        use: Threshold G >= 2 s, descent 3 G^2/(32 L1), c = 1 + 3/(32 a).
    EU5 (rate; Lemma 12): The threshold of Lemma 12 guarantees G^2 >= s^2/L1, not G^2 > s^2.
        claim: s <= G where 2*s <= G  # threshold G >= 2 s
        printed: s**2 <= G**2 where s**2/L1 <= G**2  # printed threshold
        about: a step of the proof, for any numbers
        use: Threshold (2 gamma s_n)^kappa.
    EU6 (rate; Lemma 10): A scalar Gaussian exceeds sqrt(ell) with probability about
        exp(-ell/2), not exp(-ell).
        claim: erfc(sqrt(x)) <= 2*exp(-x) where x in [1/2, 40]  # union bound at sqrt(2 x),
            x = log(2 Mit/beta): Mit P <= beta
        printed: 5000*erfc(sqrt(log(10**4/(1/20))/2)) <= 1/20  # union bound at sqrt(ell), N
            = 10^4, beta = 0.05, N/2 steps
        about: a Gaussian tail at fixed numbers
        use: sqrt(2 log(2 Mit/beta)) for norms, sqrt(d) + sqrt(2 log(Mit/beta)) for vectors.
    EU7 (minor; Lemma 10, appendix D): The error bound at the floor of sigma_t lacks a
        factor 2.
        claim: sqrt(d*ell)*floor_t = 2*L0*sqrt(d*ell)/(n*sqrt(rho)); definition
        printed: sqrt(d*ell)*floor_t = L0*sqrt(d*ell)/(n*sqrt(rho))
        use: 2 L0 sqrt(d ell)/(n sqrt(rho)).
    EU8 (rate; Theorem 4): K_j as the last index above the threshold gives the opposite of
        the inequality used.
        claim: Phi <= F0/u**2 where Phi <= Phi_before/u, Phi_before <= F0/u  # two phases
            with the first index contract twice
        printed: Phi <= Phi_before/u where Phi_before/u <= Phi
        about: a step of the proof, for any numbers
        use: The first index with Phi <= Phi_{K_{j-1}}/c.
    EU9 (minor; Theorem 4): 1/N_t^2 <= 2/G^2 does not follow from N_t >= G - s with G >= 2
        s.
        claim: 1/u**2 <= 4/G**2 where G/2 <= u
        printed: 1/u**2 <= 2/G**2 where G/2 <= u
        about: a step of the proof, for any numbers
        use: 4/G^2.
    EU10 (minor; Theorem 4): Stopping at rho/2 with N/2 norm releases leaves nothing for
        gradients.
        claim: D0**2/(2*sigma_norm**2)*u <= rho/2 at u = n*sqrt(rho)/4
        printed: D0**2/(2*sigma_norm**2)*u <= rho/2 at u = n*sqrt(rho)/2
        use: At most N/4 norm releases.
    EU11 (rate; Theorem 4): Theorem 4 is not covariant in the units of loss and parameter
        for kappa < 2.
        claim: [main_term] = loss where kappa < 4  # first term has the unit of a loss
        settings: main_term
        use: The factor F0^((2-kappa)/(4-kappa)), and a instead of gamma^2 L1 in p_max.
    EU11.phases (rate; Theorem 4): The number of phases in Theorem 4 has gamma^2 L1 where
        the condition number a belongs.
        claim: [1 + 32/3*a] = 1  # phases per factor e
        printed: [1 + 8*gamma**2*L1] = 1  # phases per factor e
        about: the unit of a count of phases, written out
        use: 1 + (32/3) a.
    EU12 (rate; Lemma 5): Lemma 5 prints gamma^(kappa/2) where the KL condition gives
        gamma^kappa.
        claim: (gamma**2*u**2)**(kappa/2) = (gamma*u)**kappa
        printed: (gamma*u**2)**(kappa/2) = (gamma*u)**kappa
        about: a step of the proof, for any numbers
        use: alpha = max(F(w0), F* + (gamma s)^kappa + 2 L0 s/L1).
    EU13 (rate; Theorem 5): Theorem 5 lacks the term L0 sqrt(d ell)/N of a run that stops
        early.
        claim: sqrt(d*ell)*floor_t + 1/sqrt(n) =O X + 1/sqrt(n); growth n = 1, d = 3
            # with the additive term
        printed: sqrt(d*ell)*floor_t + 1/sqrt(n) =O sqrt(X) + 1/sqrt(n); growth n = 1, d = 3
            # the early-stop error is within the stated terms (d = n^3)
        use: Add L0 sqrt(d ell)/(n sqrt(rho)).
    EU14 (rate; abstract, introduction): The headline rate omits N^(-kappa/2), which
        dominates for d < N^(kappa/2).
        claim: X**(2*kappa/(4 - kappa)) + n**(-kappa/2) =O n**(-kappa/2) where kappa in [1, 2];
            growth n = 1
        printed: X**(2*kappa/(4 - kappa)) + n**(-kappa/2) =O X**(2*kappa/(4 - kappa)) where
            kappa in [1, 2]; growth n = 1  #
            Theorem 4 is X^(2 kappa/(4 - kappa)) at fixed d
        use: Both terms.
    EU15 (minor; Theorem 1): The proof of Theorem 1 prints the exponent (kappa-2)/2 for T_k.
        claim: T_k*Phi**(2/kappa) = F0**((2 - kappa)/kappa)*Phi
        settings: T_k
        use: (F0/Phi)^((2-kappa)/kappa).
    EU16 (minor; remark after Lemma 1): The remark after Lemma 1 compares L1 with an
        expression in other units.
        claim: [L1*gamma**2/F0**((2 - kappa)/kappa)] = 1
        printed: [a] = 1; printed a
        use: L1 >= F0^((2-kappa)/kappa)/gamma^2.
    EU17 (minor; appendix B.3): The logarithm in appendix B.3 lacks gamma, so its argument
        has units.
        claim: [R**(1/kappa)] = 1
        settings: R
        use: gamma L0 in the logarithm.
    EU18 (minor; appendix C.2): Appendix C.2 prints L1 for Ltil and reuses the constant of
        Lemma 3.
        claim: (sqrt(32*A)*u)**2 = 32*A*u**2  # constant of the floor
        printed: (A*u)**2 = 32*A*u**2  # constant of the floor
        about: the constant of a floor, for any A
        use: sqrt(32 a) with the constant a of Lemma 3, and Ltil.
    EU19 (minor; Lemma 11): Lemma 11 is strictly faster than Theorem 4 only for kappa < 2.
        claim: 2*kappa/(4 - kappa) <= kappa where kappa in [1, 2]
        printed: 2*kappa/(4 - kappa) + 1/1000 <= kappa where kappa in [1, 2]
        about: exponents of two rates, for any kappa
        use: Not faster at kappa = 2.
    EU20 (minor; Theorem 9): rho is missing in the logarithm of Theorem 9.
        claim: 2*T_in/beta = 2*n**2*rho*ell_in**2/(d*beta); definition
        printed: 2*T_in/beta = 2*n**2*ell_in**2/(d*beta)
        use: n^2 rho log^2(2/beta)/(d beta).
    EL1 (rate; Theorem 7): The outer part 4 D ||w|| of H in Theorem 7 makes the slope jump
        down: H is not convex.
        claim: 2*u <= 8*D at u = 4*D  # slope at radius 4 D, inside and outside
        printed: 2*4*D <= 4*D  # slope inside is at most the slope outside
        about: the slopes of an instance of a lower bound
        use: H = 8 D ||w|| - 16 D^2 outside the ball of radius 4 D.
    EL2 (minor; Theorem 7): F(w) - F(w*) is printed without the factor 1/2.
        claim: u*w**2 + s*w + s**2/(4*u) = u*(w + s/(2*u))**2  # F(w) - F(w*) in one
            coordinate, u = Nz L0/(2 n D)
        printed: u*w**2 + s*w + s**2/(4*u) = 2*u*(w + s/(2*u))**2  # without the factor 1/2
        about: a step of the proof, for any numbers
        use: Nz L0/(2 n D) ||w - w*||^2.
    EL3 (minor; Theorem 6): Delta of Theorem 6 lacks the exponent tau/(tau - 1).
        claim: D*Delta**((tau - 1)/tau) = L0*D*sqrt(d)/(n*epsilon)
        printed: D*Delta**((tau - 1)/tau) = L0*D*sqrt(d)/(n*epsilon) where tau in [2, 6];
            printed Delta
        use: (L0 sqrt(d)/(n epsilon))^(tau/(tau-1)).
    EL4 (minor; Theorem 6): The first argument of D in Theorem 6 is inverted.
        claim: u*v/D = L1 at D = u*v/L1  # smoothness with u = c2 Delta^..
        printed: u*v/D = L1 at D = v*L1/u
        about: the size of an instance of a lower bound
        use: c2 Delta^(1/tau) L0^((tau-2)/(tau-1))/L1.
    EL5 (minor; Theorem 6): The growth constant of the regularized function is lam, not
        2^((tau-2)/tau) lam.
        claim: (w - 1)**4 <= 4*w**4 - 16*w + 12  # tau = 4, lam = s = 1
        printed: 4*(w - 1)**4 <= 4*w**4 - 16*w + 12; points w = -1
        about: the growth of an instance of a lower bound
        use: (lam, tau)-growth.
    EL6 (minor; Theorem 6): lambda_1 contributes a factor 1/2 that c2 omits.
        claim: (2**(-(tau - 1)/tau))**(tau/(tau - 1)) = 1/2
        printed: (2**(-(tau - 1)/tau))**(tau/(tau - 1)) = 1
        about: a constant of a lower bound, for any tau
        use: The constants with that factor; both printed ones are safe.
    EL7 (minor; Theorem 6): Theorem 6 needs sqrt(d) <= n epsilon, as Theorem 7 has
        min(sqrt(d)/(n epsilon), 1).
        claim: u <= Min(u, 1) where u <= 1  # u = sqrt(d)/(n epsilon)
        printed: u <= Min(u, 1)  # u = sqrt(d)/(n epsilon), any d
        about: the range of a lower bound, for any size u
        use: State the condition, and Omega~ for the logarithm.
    EL8 (rate; Theorem 6, Corollary 1): gamma and L1 are not free: smooth and PL force
        gamma^2 L1 >= 1/2.
        claim: 1/2 <= gamma**2*L1 where G**2/(2*L1) <= Phi, Phi <= gamma**2*G**2  # descent
            and the KL bound force it
        printed: 1/2 <= gamma**2*L1  # for all gamma and L1
        about: two constants that are not free of each other
        use: Evaluate the lower bound at feasible tuples only.
    EL9 (rate; Theorem 8): The growth of the Theorem 8 instance fails beyond distance 1.
        claim: u**tau <= (1 + r)/2*u**tau + (1 - r)/2*u where u in [1/20, 9/25], tau in
            [6/5, 2], r in [0, 1/10]  # growth on the restricted ball
        printed: u**tau <= (1 + r)/2*u**tau + (1 - r)/2*u where tau in [21/20, 2], r in [0,
            1/10]; points u = 2, tau = 2, r = 1/10  # growth everywhere
        about: the growth of an instance of a lower bound
        use: |w| <= 0.36 and 1/(n epsilon) <= 0.1.
    EL10 (minor; Theorem 8): F(-a; S') is (1 - r) a, not (1 + r) a; the constant 1/4 holds
        anyway.
        claim: 1/4 <= (1/2 - (1 - exp(-epsilon))/16*(exp(1/2) - 1)/(exp(epsilon) -
            1))*exp(-(1/2)) where epsilon in [1/1000, 7/10]  # constant of Theorem 8 from an
            independent derivation
        printed: (1 - r)*u = (1 + r)*u  # value at -a
        about: the value of an instance of a lower bound
        use: Needs 1/epsilon an even integer.
    """,
    checks=CHECKS,
)
