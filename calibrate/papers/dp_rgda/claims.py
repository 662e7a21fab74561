"""Claims of the paper about its settings, theorem by theorem; open statements come last."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import theorems_of
from dpcal.calibrate.papers.dp_rgda.checks import CHECKS

CLAIMS = theorems_of(
    """
    Theorem 1 and Lemma 5, rounds T and rate:
        E01: T1 = (L*F0)**(1/3)*M**(-2/3)*eb**(-4/3); definition; free eb  # first branch of T
        E02: sqrt(F0*L/T1) = M*T1*eb**2; balance of T1  # T1 balances both errors
        E03: sqrt(F0*L/T1) = (sqrt(F0*L*M)*eb)**(2/3)  # rate
        E04: sqrt(F0*L*eb)/(M*eb) = sqrt(F0*L)/(M*sqrt(eb)); free eb
        E04.T1: T1 <= T; free eb T1  # T is at least the balance
        E04.T2: 1/eb <= T; free eb T1  # T is at least 1/eb
        E04.max: T = Max(T1, 1/eb); definition; free eb T1  # no larger than its branches
        E18: T1*eb = (sqrt(L*F0)/M)**(2/3)*eb**(-1/3); free eb  # which branch of T is active
        E25: eb = rr/n at rr = sqrt(d*ell)/epsilon; definition  # rate variable
    Lemma 5, period q and errors B1, B2:
        E05: L**2/B2_sq = q; free T eb  # period from the increments' error
        E05.eta: 1/(B2_sq/(2*L)**2) = 4*q; free T eb  # the same
        E05.B1: B1_sq = M**2*(T*eb**2)**2; free T eb  # refresh error
        E10: T/q = (T*eb)**2; free T eb; definition  # T >= q iff T >= 1/eb
        E10.order: q <= T; free eb T1  # a period is at most the whole run
    Lemma 4, descent and constants (Lemma 3 of B.1):
        E07: u/2 - L*u**2/2 - u**3*v*w/2 = 1/(16*L) at u = 1/(2*L), v = L**2*T*eb**2, w = q; free T
            eb
        E08: u/2 - L*u**2/2 - u**3*v*w/2 = 0 at u = 1/(2*L), v = L**2*T*eb**2, w = 2/(T*eb**2); free
            T eb
        E09: 2/(T*v)*(1 + L**2/q*q/(4*L**2))*T = 40*L at v = 1/(16*L); free T q
            # first constant of the explicit bound
        E09.B1: u/v + 2 + L**2*u**3/v = 12 at u = 1/(2*L), v = 1/(16*L)
    Theorem 1, batches S1 and S2:
        E12: 1/(T1*eb**2) = (M/(sqrt(F0*L)*eb))**(2/3); free eb
        E12.sub: 1/(T1*eb**2) = (M*n*epsilon/sqrt(F0*L*d*ell))**(2/3)  # first branch of S2
        E13: n/sqrt(T1) = M**(1/3)*n*eb**(2/3)/(L*F0)**(1/6); free eb
        E13.sub: n/sqrt(T1) = (M*n*d*ell)**(1/3)/((L*F0)**(1/6)*epsilon**(2/3))
            # second branch of S2
        E16: 1/(T1*eb**2) <= n where M**2*epsilon**2/(F0*L*d*ell) <= n
            # first branch of S2 is at most n
        E17: n/sqrt(T1) <= n where eb <= (L*F0)**(1/4)/sqrt(M); free eb
            # second branch of S2 is at most n
        E17.S2: S2 <= n, 1 <= S2 where eb <= 1, 1 <= n, 1 <= T, T*eb**2 <= 1, 2 <= K; free eb T
            # 1 <= S2 <= n
        E17.period: Min(n, q) <= S2; free T eb  # increments are at least as many as the period
        E17.value: S2 = n/(1 + u) at T = (1 + u)**2/K, eb = sqrt((1 + x)*(1 + u)/(n*T)); free T eb
            # S2 where the amplified branch decides
        E19.S1: S1 = n; definition  # a refresh uses all records
    Theorem 1, gradient complexity:
        E19: T1/(T1*eb**2) = eb**(-2); free eb; definition  # gradient count
    Theorem 1, units:
        E24.T: [T] = 1  # rounds are a number
        E24.S2: [S2] = 1  # the batch is a number
    Theorem 2 and Lemma 8, B.2, one-pass schedule:
        P04: eb**(-1/3)*n**(2/3)/n = rr**(-1/3) at eb = rr/n; free eb
        P05: eb**(-2/3)*kappa*(ell1**2*kappa*eb**(-1/3))/n = kappa**2*ell1**2/rr at eb = rr/n; free
            eb  # records used by the increments
        P09: rr**2/(n*rr)/(rr/n) = 1; definition  # repaired refresh batch
        P10: eb**(-2/3) <= n**(2/3) where 1/n <= eb; free eb  # the amplified branch is never active
        P13: S1_pop/q_pop/S2_pop = 1  # refreshes and increments cost alike
        P13.rate: alpha**(-2)*S2_pop = rr*alpha**(-7/3)
            # records of the one-pass schedule: alpha = (rr/n)^(3/7)
        P13.S1: S1_pop*alpha = rr; definition  # privacy error of a refresh is alpha
        P13.T: T_pop*(alpha*u/2) = F0 at u = alpha/(2*L_Phi)  # rounds times descent is the gap
        P13.q: q_pop**(3/2)*rr = S1_pop  # period
        P14: alpha**(-2)*(u/w + v) = 2*alpha**(-3) at u = alpha**(-2), w = 1/alpha, v = 1/alpha
            # where sampling dominates: alpha = n^(-1/3)
        P15: alpha**(-2)*2*rr*sqrt((alpha**(-2)/rr)**(2/3)) = 2*rr**(2/3)*alpha**(-8/3)
            # between the regimes
    Lemma 7, coupled runs:
        X14: r0*sqrt(d)/delta2 = R/2  # coupling gap and radius
    Lemmas 6 and 7, phase of an escape:
        X05: 3/2*eta_h*t_thres*rho_phi*R = 1/4; free eta_h  # Hessian drift of a phase
        X11: D_bar = (eta_h*alpha/(192*iota**2))**2; free eta_h  # allowed movement of a phase
        X11.size: D_bar*t_thres**2 = (R - r)**2; definition; free R r t_thres
            # movement that stays within the radius
        X15.cap: eta_h*L_Phi = 1; definition  # escape step at its cap
        X16: t_thres*eta_h*alpha_h = 4*iota; free eta_h  # phase length
        X17: x/2 <= log(1 + x) where x in [1/100, 1]  # log(1 + x) >= x/2, growth of a phase
    Definition 4, curvature threshold:
        X10: alpha_h = sqrt(rho_phi)*sqrt(alpha); definition  # curvature threshold
    Lemma 6, descent against escapes:
        X12: F0*sqrt(rho)/alpha**(3/2)*(L/sqrt(rho*alpha)) = F0*L/alpha**2
            # escapes times length has the order of the descent
        X13: eta*(alpha - alpha/4) - L_Phi*eta**2/2 = eta*alpha/2  # descent of a normalized step
    (13), volume ratio:
        X08: gamma(1 + 1/2*D)/(sqrt(pi)*gamma(1/2 + 1/2*D)*sqrt(D)) <= 1 where D in [1, 64]
            # volume ratio of neighboring dimensions, d up to 64
    Lemmas 6 and 7, units:
        X18.R: [R] = parameter  # escape radius
        X18.D: [D_bar] = parameter**2  # allowed squared movement
    (43):
        C02: 144*k/K*(2*L**2*dx + 2*ga) + (144*k/K + 120*ell1)*(3*th + 6*L**2*dx) +
            120*ell1*L**2/w/(36*L**2)*(9*th + 21*L**2*dx + 3*ga) = (288*k/K + 10*ell1/w)*ga +
            (432*k/K + 360*ell1 + 30*ell1/w)*th + (1152*k/K + 720*ell1 + 70*ell1/w)*L**2*dx
            # coefficients of (43), lambda = 1/(6 L)
    (36)-(37), contraction:
        C03: x/(1 - x) = 3*kappa + 2 at x = 1 - 2/(6*L)*mu*L/(mu + L), L = kappa*mu
            # contraction of an ascent step
        C03.kappa: 1 - 2/(6*L)*mu*L/(mu + L) = 36/37 at L = 34/3*mu
            # where the contraction is 36/37
    Algorithm 3, noise and releases:
        D04: 2*(exp(x) - 1) <= exp(2*x) - 1 where x in [1/100, 5]
            # two blocks from one batch cost more than twice one
        D06: v**2*u/(v*w**2) + g**2*k/(g*w**2) = (v*u + g*k)/w**2  # cost of a split noise budget
        D07: release 2*C1/S1 with noise sigma_v within 1/(2*multiplier**2); free S1  # a refresh
            costs what its multiplier says
        D08: release 2*C2/S2 with noise sigma_u within 1/(2*multiplier**2); free S2  # an increment
            costs what its multiplier says
        D07.std: sigma_v*S1/(2*C1) = multiplier  # multiplier of a refresh
        D08.std: sigma_u*S2/(2*C2) = multiplier; free S2; definition  # of an increment
    Assumptions 2 to 4, Hessian of the value function:
        G01: rho*(1 + 2*kappa + kappa**2)*(1 + kappa) = rho*(1 + kappa)**3
    Lemma 1 and Lemma 3:
        L1.error: open it holds with high probability
            # the squared error is at most log(1/delta1) (B2^2 movement^2 + B1^2)
    Lemma 5 and Theorem 1:
        T1.utility: open it holds with high probability, and a constant is hidden
            # ||grad Phi|| = O((sqrt(F0 L M) eb)^(2/3) + M eb)
    Lemma 6:
        L6.certify: open it holds with high probability
            # a phase that is not broken certifies lambda_min >= -alpha_H
    Lemma 7:
        L7.escape: open it holds with high probability
            # one of two coupled runs leaves the radius R within t_thres steps
    Lemma 8 and Theorem 2:
        T2.utility: open it holds with high probability, and a constant is hidden
            # population rate n^(-1/3) + (sqrt(d)/(n epsilon))^(1/2)
    Lemma 11:
        L11: open it quantifies over functions
            # co-coercivity of strongly convex, smooth functions
    Lemma 12:
        L12: open it quantifies over functions
            # (mu/2) ||y - y*(x)|| is at most the gradient mapping, for lambda <= 1/L
    """,
    CHECKS,
)
