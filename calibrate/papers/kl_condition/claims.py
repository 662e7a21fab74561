"""Claims of the paper about its settings, theorem by theorem; open statements come last."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import theorems_of
from dpcal.calibrate.papers.kl_condition.checks import CHECKS

CLAIMS = theorems_of(
    """
    Theorem 1, Algorithm 1, steps and noise of a round:
        A2: T_k*Phi**(1/kappa) = F0**((2 - kappa)/kappa)*Phi**((kappa - 1)/kappa)  # path of a round
        A2.cap: T_k*Phi**(1/kappa) <= F0**(1/kappa) where Phi <= F0, kappa in [1, 2]
            # the path of a round is at most F0^(1/kappa)
        A3: sqrt(T_k)*sigma_k = sqrt(K)/(gamma*n*sqrt(rho))*F0**((2 - kappa)/kappa)*Phi**((kappa -
            1)/kappa); free K  # accumulated noise of a round's differences
        A15.steps: T_k = 1 at kappa = 2  # kappa = 2: one step per round
        A15.c: c = 1 + 1/(64*gamma**2*L1) at kappa = 2  # kappa = 2
        A15.sigma: sigma_k = sqrt(Phi*K)/(gamma*n*sqrt(rho)) at kappa = 2; free K
            # kappa = 2: noise of a difference
        A15.one: T_k = F0/Phi at kappa = 1  # kappa = 1: F0/Phi steps
        A15.beta: beta_k = beta*gamma*L0*sqrt(K)*X/(K*F0) at kappa = 1; free K X
            # kappa = 1: failure probability per estimate
        A16: 1 <= T_k, h <= F0**(1/kappa)/(4*gamma*L1) where Phi <= F0, kappa in [1, 2]
            # a round makes at least one step, no longer than the first round's
        A17: X = sqrt(d/rho)/n; definition  # rate variable
    Lemma 9, descent, and contraction of a round in the proof of Theorem 1:
        A4: 4*L1*h = Phi**(1/kappa)/gamma; definition  # step length, whatever the data
        A4.eta: h/(7/8*Phi**(1/kappa)/gamma) = 2/(7*L1)  # largest step size
        A5: 1/64 <= 7/8/16 - 1/256  # Lemma 9
        A6: 1 - (c - 1)/c = 1/c; free c  # contraction per round
        A7: c/(c - 1) = 1 + 64*F0**(-(2 - kappa)/kappa)*gamma**2*L1  # rounds needed per factor e
        A8: u/(1 + u) <= log(1 + u) where u in [1/64, 64]
            # log(1 + u) >= u/(1 + u) makes K sufficient
    Theorem 1 and Lemma 2, rounds, floor and failure probability:
        A9: K/log(R) = c/(c - 1) where 1 < R  # K is the rounds per factor e times log R
        A9.R: log(R) = log(F0) + kappa*log(n*sqrt(rho)/(gamma*L0*sqrt(d)))
            # the bracket of K as the paper prints it
        A10: check recursion_is_maximum  # Phi_k = max(c^-k F0, floor) solves the recursion
        A11: 4*L0*sqrt(K*d*log(1/beta_k))/(n*sqrt(rho)) = level**(1/kappa)/(8*gamma) at beta_k =
            exp(-ell); free K beta_k  # at the floor the gradient error bound meets the stop test
        A12: K*(F0/(gamma*L0*sqrt(K)*X)**kappa)**((2 - kappa)/kappa)*beta_k = beta; free K
            # beta' times the number of estimates is beta
    Lemma 1, radius of the trajectory:
        A13: K*F0**(1/kappa)/(4*gamma*L1) = (F0**(1/kappa)/(4*gamma*L1) + 16*gamma*F0**((kappa -
            1)/kappa))*log(R)  # radius of the trajectory, Lemma 1
    remark after Theorem 1, F0 = (gamma L0)^kappa:
        A14: a = gamma**kappa*L1/L0**(2 - kappa) at F0 = (gamma*L0)**kappa
            # condition number when nothing better than Lipschitz is known of F0
    Lemma 8, privacy of Algorithm 1, cost of each answer:
        B1: D0**2/(2*sigma_hat**2) = 2*rho/K; free K  # round start
        B1.ar: D0_ar**2/(2*sigma_hat**2) = rho/(2*K); free K  # round start, add or remove
        B2: D_k**2/(2*sigma_k**2) = rho/(8*K*T_k); free K T_k  # one difference, printed noise
        B2.ar: D_k_ar**2/(2*sigma_k**2) = rho/(32*K*T_k); free K T_k
            # one difference, printed noise, add or remove
        B3: K*(D0**2/(2*sigma_hat**2) + T_k*D_k**2/(2*sigma_k**2)) = 17/8*rho; free K T_k
            # printed noise, replace-one: 17/8 of the budget
        B3.ar: release D0_ar with noise sigma_hat times K, D_k_ar with noise sigma_k times K*T_k
            within 17/32*rho; free K T_k; relation add-or-remove-one  # printed noise, add or remove
            with a public n: 17/32 of the budget
        B3.loop: (K*D0**2/(2*sigma_hat**2) + K*(T_k + 1)*D_k**2/(2*sigma_k**2))/rho = 9/4 at kappa =
            2; free K  # printed loop at kappa = 2: 9/4 of the budget
        B5.total: K*(D0**2/(2*sigma_0**2) + m*D_k**2/(2*sigma_1**2)) = rho; free K
            # the exact split costs exactly rho
        B5.ratio: sigma_0**2/sigma_1**2 = D0/D_k; free K
            # stationarity of the split: variances in proportion to sensitivities
        B5.variance: sigma_0**2 + m*sigma_1**2 = (D0 + m*D_k)**2*K/(2*rho); free K
            # accumulated variance of the exact split
        B6: T_k*D_k <= L0/(2*n) where Phi <= F0, F0 <= (gamma*L0)**kappa, kappa in [1, 2]
            # the differences of a round add at most L0/(2 n) of sensitivity
        B6.constant: 5/2/sqrt(2) <= 2  # so the floor constant 32 stays
    Lemma 3 and Theorem 9, privacy of Algorithm 4:
        B7: D0**2/(2*(4*L0**2*T/(n**2*rho))) = rho/(2*T)  # Alg 4
        B7.total: release D0 with noise sigma_in times T - 1 within rho where 2 <= T  # Algorithm 4
            with exact noise is rho-zCDP under replace-one
    Theorem 3, privacy of Algorithm 3, cost of each answer:
        B8.norm: D0**2/(2*sigma_norm**2) = 2*sqrt(rho)/n  # cost of a norm
        B8.norm.ar: D0_ar**2/(2*sigma_norm**2) = sqrt(rho)/(2*n)  # cost of a norm, add or remove
        B8.gradient: charge = 2*L0**2*d*ell/(n**2*N_t**2)  # cost of a gradient of Algorithm 3
        B8.switch: L0**2*d*ell/(n**2*N_t**2) = rho/4 at N_t = 2*L0*sqrt(d*ell)/(n*sqrt(rho))
            # where the two branches of sigma_t meet
    Theorem 5, exponential mechanism of the selection:
        B9: n*sqrt(rho)/(2*L0)*2*D0_ar = sqrt(rho); definition  # selection, AR
        B9.ro: n*sqrt(rho)/(2*L0)*2*D0 = 2*sqrt(rho); definition  # selection, RO
    Theorem 2, proof for Algorithm 2:
        C1: (1 + x)/x = 1 + 32*F0**((kappa - 2)/kappa)*gamma**2*Ltil at x = F0**((2 -
            kappa)/kappa)/(32*gamma**2*Ltil)  # stages per factor e of the printed Algorithm 2
        C2: Ltil/4*(Phi**(1/kappa)/(2*gamma*Ltil))**2 = Phi**(2/kappa)/(16*gamma**2*Ltil)
            # decrease forced by the KL condition
        C3: Phi**(2/kappa) = Phi**((2 - kappa)/kappa)*Phi  # exponents
        C3.contraction: 1/u <= u**(-2/kappa) where 1 <= u, kappa in [2, oo]
            # c^(-2/kappa) >= 1/c for kappa >= 2
        C4: L0 + 2*u*L0/(2*u) = 2*L0  # Lipschitz constant on the ball
        C9: Phi**((2 - kappa)/kappa)/(32*u*gamma**2) = 1/4 at u = Phi**((2 -
            kappa)/kappa)/(8*gamma**2)  # largest contraction of a stage
        C9.weight: y = 1/4 at Ltil = Phi**((2 - kappa)/kappa)/(8*gamma**2*(1 + x))
            # the staged weight contracts by the most wherever Ltil is smaller
        C9.cap: y <= 1/4 where kappa in [2, oo]  # y is at most 1/4
        C9.half: Phi/4 <= 4**(-2/kappa)*Phi where kappa in [2, oo]  # splitting at Phi/4
        C10: Phi**((2 - kappa)/kappa)/(32*u*gamma**2)*Phi/2 = Phi**(2/kappa)/(64*u*gamma**2)
            # allowed error of the inner solver
        C10.floor: Phi**(2/kappa)/(64*gamma**2) = A*L0**2*X**2*T*Lam at Phi =
            (8*sqrt(A)*gamma*L0*X*sqrt(T*Lam))**kappa; free X
            # the repaired floor is where the inner solver's error fits
        C10.level: level_prox**(2/kappa)/(64*gamma**2) = A*L0**2*d*T*Lam/(n**2*rho)
            # the floor setting is that value
        C11: (32*gamma**2*Ltil*u)**(kappa/2) = u where 2 < kappa at u =
            (32*gamma**2*Ltil)**(-kappa/(kappa - 2))
            # where the printed floor falls below the inner error
        C12: u/2 <= -log(1 - u/2) where u in [1/100, 1/4]  # log(1/(1 - y/2)) >= y/2
        C12.stages: T_prox/log(R) = Max(8, 2/(F0**((2 - kappa)/kappa)/(32*Ltil*gamma**2))) where 1 <
            R  # stages are 2/y at the smallest y
    Lemma 3 and Theorem 9, utility of Algorithm 4:
        C5: check weights_sum_to_one  # weights sum to 1
        C6: t*(1/(2*eta_in) - Ltil/2) - (t - 1)/(2*eta_in)*t/(t + 1) = 0
            # the weighted descent sum telescopes
        C7.noise: u**2/2 = 2*L0**2*ell_in**2/d at u = 2*L0*ell_in/sqrt(d)
        C7.rate: 4*L0**2*ell_in**2/(Ltil*T_in) = 4*L0**2*d/(Ltil*n**2*rho); definition
            # noise term of Lemma 3
        C7.tail: L0**2/(Ltil*T_in) = L0**2*d/(Ltil*n**2*rho*ell_in**2); definition
            # deterministic term of Lemma 3
        C8: 2/3*-(1/2) + 1/3 = 0  # the distance cancels
        C13: 2*(4*L0**2 + d*2*L0**2*T_in/(n**2*rho))/(u*T_in) = (4 +
            8/ell_in**2)*L0**2*d/(u*n**2*rho)  # Algorithm 4 in expectation
    Lemma 12, descent of Algorithm 3:
        D2: 3*G**2/(8*L1) + inner/(4*L1) - noise/(8*L1) = 0 at inner = -G**2, noise = G**2
            # no step, no descent
        D3: (G**2 - s**2)/(8*L1) <= (G**2 - v**2)/(4*L1) at v = sqrt((G**2 + s**2)/2)
            # halved noise gives the claimed descent
        D10: sigma_t**2*d*ell = N_t**2  # gradient noise follows the norm
    Lemma 13 and Theorem 4, phases of Algorithm 3:
        D4: J*(Phi/u)**(2/kappa)/(16*gamma**2*L1) = (u - 1)/u*Phi where 1 < u at J = (u*F0/Phi)**((2
            - kappa)/kappa), L1 = F0**((2 - kappa)/kappa)/(16*gamma**2*(u - 1))  # steps per phase
        D6: Phi**((kappa - 2)/kappa)*Phi**(-2/kappa) = Phi**((kappa - 4)/kappa)
        D7: Phi**((4 - kappa)/kappa) = F0**((2 - kappa)/kappa)*W**2 where kappa < 4 at Phi = F0**((2
            - kappa)/(4 - kappa))*W**(2*kappa/(4 - kappa))
            # solving the privacy term for the excess risk
        D7.main: main_term**((4 - kappa)/kappa) = F0**((2 -
            kappa)/kappa)*gamma**2*L0**2*d*ell*p_max/(n**2*rho) where kappa < 4
            # the main term solves it
        D8: (1 + x)/x = 1 + 8*gamma**2*L1 at x = 1/(8*gamma**2*L1)
        D9: (sqrt(N**(2*(2 - kappa)/(4 - kappa)))/N)**kappa = N**(-2*kappa/(4 - kappa)) where kappa
            < 4  # norm budget when kappa is known
    Theorem 4, rates after the statement:
        E1.one: 2*kappa/(4 - kappa) = 2/3 at kappa = 1
        E1.two: 2*kappa/(4 - kappa) = 2 at kappa = 2
        E2.switch: (sqrt(d)/N)**(2*kappa/(4 - kappa)) = N**(-kappa/2) where kappa < 4 at d =
            N**(kappa/2)  # the terms meet at d = N^(kappa/2)
        E3: kappa/2 <= kappa/(2 - kappa) where kappa in [1, 199/100]  # E3
        E3.third: 2*kappa/(4 - kappa) <= kappa/(2 - kappa) where kappa in [1, 199/100]
            # the third term never dominates
    Corollary 1, from Theorem 6:
        E4: tau/(tau - 1) = kappa where 1 < kappa at tau = kappa/(kappa - 1)
        E4.constant: tau**(-1/(tau - 1)) = (kappa/(kappa - 1))**(1 - kappa) where 1 < kappa, kappa
            in [1, oo] at tau = kappa/(kappa - 1)  # constant of Corollary 1
    Theorem 5, worst case:
        E5: sqrt(d)/(u*N) = u at u = sqrt(sqrt(d)/N)  # Theorem 5, worst
    Theorem 6, construction:
        F1: (2**(-(tau - 1)/tau)*u)**(tau/(tau - 1)) = 1/2*4**((tau - 1)/tau)*(tau/(tau -
            1))**(1/tau)*Delta**(1/tau)/D where tau in [1, oo] at u = 4**((tau -
            1)**2/tau**2)*(Delta*tau/(D**tau*(tau - 1)))**((tau - 1)/tau**2)
            # growth constant of the first level
        F2: u**tau*2**(tau - 2)*tau*(tau - 1)*v**(tau - 2) = u**(tau/(tau - 1))*L0**((tau - 2)/(tau
            - 1))*(tau**(1/(tau - 1))*(tau - 1)) where tau in [1, oo] at v =
            (L0/(2*tau*u**tau*2**(tau - 2)))**(1/(tau - 1))  # smoothness of a level
        F3: (L0*2**(2 - tau)/(2*tau*u**tau))**(1/(tau - 1)) = D*4**((1 - tau)/tau)*L0**(1/(tau -
            1))*Delta**(-1/tau)*tau**(-1/(tau - 1))*((tau - 1)/tau)**(1/tau) at u = (1/2*4**((tau -
            1)/tau)*(tau/(tau - 1))**(1/tau)*Delta**(1/tau)/D)**((tau - 1)/tau)  # radius of a level
    Theorem 8, instance:
        F5: (2*u)**(kappa/(kappa - 1)) = 2*r*u where 1 < kappa at u = 1/2*r**(kappa - 1)
            # instance of Theorem 8
        F5.value: 2*r*u = (1/(n*epsilon))**kappa at u = 1/2*(n*epsilon)**(1 - kappa), r =
            1/(n*epsilon)  # value of Theorem 8
    Theorem 7, instance:
        F6.slope: 8*u*D = 4*Nz*L0/n at u = Nz*L0/(2*n*D)
        F6.margin: 16*u*D**2 - 4*D*L0*Nz/n = 4*Nz*L0*D/n at u = Nz*L0/(2*n*D)
            # margin outside the ball
    Lemma 7, tightness:
        F7: ((kappa - 1)/(kappa*gamma)*u)**(kappa/(kappa - 1)) = u**(kappa/(kappa - 1))*(kappa -
            1)/kappa where 1 < kappa, kappa in [1, oo] at gamma = ((kappa - 1)/kappa)**(1/kappa)
            # Lemma 7 is tight on r^p/p
    Theorem 1, units of Algorithm 1:
        G.a: [a] = 1  # condition number
        G.R: [R] = 1  # ratio of start to target
        G.K: [K] = 1  # rounds
        G.beta: [beta_k] = 1; free K  # failure probability
        G.T: [T_k] = 1  # steps of a round
        G.floor: [level] = loss; free K beta_k  # floor
        G.h: [h] = parameter  # step length
        G.sigma: [sigma_0] = loss/parameter; free K  # noise
        G.sigma1: [sigma_1] = loss/parameter; free K  # noise
    Theorem 2, units:
        G.prox: [T_prox] = 1  # stages of Algorithm 2
        G.lam: [lam] = loss/parameter**2  # proximal weight
    Lemma 1, units:
        G.radius: [K*F0**(1/kappa)/(gamma*L1)] = parameter; free K  # radius
    Theorem 9, units:
        G.thm9: [L0**2*d/(Ltil*n**2*rho)] = loss  # Lemma 3
    Theorem 5, units:
        G.thm5: [sqrt(L0*X*sqrt(F0*L1))] = loss/parameter  # Theorem 5, worst case
    Theorem 1:
        T1.utility: open it holds with high probability, and a constant is hidden
            # with probability 1 - beta, F(w) - F* = O((gamma L0 sqrt(d K log(1/beta'))/(n
            sqrt(rho)))^kappa)
    Lemma 2:
        L2: open it holds with high probability
            # with probability 1 - beta, every gradient error of a round is at most
            Phi_k^(1/kappa)/(8 gamma)
    Theorem 2:
        T2.utility: open it holds with high probability, and a constant is hidden
            # F(w) - F* = O((gamma L0 sqrt(T d Lam)/(n sqrt(rho)))^kappa) for kappa >= 2, with
            the repaired weight
    Lemma 3 and Theorem 9:
        L3: open it holds with high probability, and a constant is hidden
            # the inner solver's excess is O(L0^2 d log(n^2 log^2(2/beta)/(d beta))/(Ltil n^2
            rho))
    Theorem 4:
        T4: open it holds with high probability, and a constant is hidden
            # three terms bound the excess of Algorithm 3, with probability 1 - 2 beta
    Theorem 5:
        T5: open it holds with high probability, and a constant is hidden
            # a point with small gradient is selected, with probability 1 - 3 beta
    Theorem 6:
        T6: open a constant is hidden
            # excess risk is Omega(tau^(-1/(tau-1)) (L0 sqrt(d)/(lambda n
            epsilon))^(tau/(tau-1))) under growth
    Corollary 1:
        C1.lower: open a constant is hidden
            # excess risk is Omega~((gamma L0 sqrt(d)/(n sqrt(rho)))^kappa) for feasible
            constants
    Theorem 7:
        T7: open a constant is hidden
            # excess risk is Omega(L0 D min(sqrt(d)/(n epsilon), 1)) without constraints
    Theorem 8:
        T8: open it quantifies over all algorithms
            # excess risk is at least (1/4)(1/(n epsilon))^kappa for kappa >= 2
    Lemma 5:
        L5: open a path in a level set is no formula
            # the trajectory of Algorithm 3 stays in one component of a level set
    """,
    CHECKS,
)
