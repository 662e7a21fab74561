"""Errata of the paper: utility."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

UTILITY_ERRATA = errata_of(
    """
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
    """,
)
