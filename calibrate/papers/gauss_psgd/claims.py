"""Claims of the paper about its settings, theorem by theorem; open statements come last."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import theorems_of
from dpcal.calibrate.papers.gauss_psgd.checks import CHECKS

CLAIMS = theorems_of(
    """
    (5), lengths and rates of a round:
        A1: Gamma = mu/(eta*sqrt(rho*alpha)); free alpha eta  # length of a round
        A2: eta*sqrt(rho*alpha) = rho*alpha/(M**2*iota**3); free alpha  # escape rate per step
        A3: s*eta*sqrt(rho*alpha) <= 1 where rho*alpha <= M**2, s <= iota**3; free alpha iota
            # a round has at least iota steps
        A27: eta/2*(2*chi)**2 - eta/2*chi**2 = 3/2*eta*chi**2; free eta chi
            # net decrease of a normal step
        A27.alpha: alpha = 4*chi; definition; free chi  # accuracy and error
    Lemma 4, (71)-(72), decrease of a round:
        A5: c*eta*psi**2*2*Gamma = 2*c*psi**2*iota/(s*sqrt(rho*alpha)); free alpha eta
            # noise term of a round
        A6: 2*c*psi**2*iota/(s*sqrt(rho*alpha)) = s/(8*iota**4)*sqrt(alpha**3/rho) at alpha =
            4*sqrt(c)*s**(3/2)*mu**(5/2)*psi; free alpha
            # smallest alpha for which the noise takes at most half of the decrease
        A7: alpha**2/(16*c*s**3*mu**5*psi**2) = 16*C/c  # margin of the corrected alpha over A6
        A8: Phi/Gamma = 2*chi**2*eta/(s**3*mu**5); free chi eta  # decrease per step of a round
    Theorem 1 and (77), number of rounds and steps:
        A9: U*s**3*mu**5/(2*chi**2*eta) = U*Gamma/Phi; free chi eta  # effective number of steps
        A10: saddles = iota**4*U/s*sqrt(rho/chi**3); free chi iota  # escapes
        A11: 2*saddles/omega = 16*iota**3*U/(s*omega)*sqrt(rho/chi**3); free chi iota; printed
            saddles  # argument of the logarithm in the printed Q
        A26: U/(u*alpha**2) = U*M**2/(sqrt(rho)*alpha**(5/2)) at u = sqrt(rho*alpha)/M**2; free
            alpha  # steps, up to logarithms
    Lemma 2, rounds until an escape:
        A12: 1 <= 26/5*log(8/7)/log(2)  # 26/5 rounds per bit suffice with base-2 logarithms
        A12.Q: Q*log(8/7) = log(1/omega); definition  # rounds until failure omega
    Lemma 5, third entry of mu:
        A13: 4*sqrt(C)*s*u**2 = C*sqrt(2*L) at u = (C*L)**(1/4)/(2**(3/4)*sqrt(s))
            # third entry of mu as printed
        A13.corrected: 4*sqrt(C)*s**(3/2)*u**(5/2) = C*sqrt(2*L) at u = (C*L/(8*s**3))**(1/5)
            # third entry of mu, corrected
    (6), first entry of mu:
        A14: 36*d*Gamma = 9*d/(C**(1/4)*s**(3/4)*mu**(1/4)*eta*sqrt(rho*psi)); free eta
            # argument of the first entry of mu
        A15: R/(eta*r) = 4*C**(1/4)*sqrt(psi/rho)/(s**(3/4)*mu**(1/4)*eta*r); free eta
            # inner logarithm of the first entry of mu
    Lemma 20, (41)-(53), growth of the difference:
        A16: 2*c*eta*rho*R*Gamma*sqrt(iota) = 2*c/s; free alpha eta  # (41) with sqrt(iota)
        A18: v*sqrt(eta)*r/(40*sqrt(2*g)) = v/sqrt(2*eta*g)*eta*r/40; free eta
            # noise reaches this fraction of the growth (v = (1 + eta g)^Gamma)
        A19: 1 + x <= 2*mu where x <= 1, 1 <= mu  # growth increases with the curvature
        A20: 40*sqrt(2)*(rho*alpha)**(1/4)*R/(sqrt(eta)*r) = 40*sqrt(2)*M*sqrt(alpha/rho)/r; free
            alpha  # growth needed for an escape
        A23: (v**2 - 1)/((1 + x)**2 - 1)/(v**2/(2*x)) = 2*(1 - v**(-2))/(2 + x)
            # ratio of the two growth factors, v = (1 + x)^t
        A23.half: 1/2 <= 2*(1 - v**(-2))/(2 + x) where 2 <= v, x <= 1, v in [2, 1000000], x in [0,
            1]  # at least 1/2 once the growth has doubled
    Lemma 1, probabilities:
        A21: 3/4*(1 - 2/9) = 7/12  # probability budget
        A21.rest: 1 - 1/3 - 5/12 = 1/4  # probability budget
    (55)-(57) and Lemma 1, elementary steps:
        A22: 2**x <= 1 + x where x in [1/100, 99/100]
            # 1 + a >= 2^a on [0.01, 0.99]; equality at 0 and 1
        A24: -(x*u) = ((u - x)**2 - x**2 - u**2)/2  # inner product by squares, one coordinate
        A25: R/(eta*Gamma) = alpha/(s**(3/2)*mu**(5/2)); free alpha eta
    (5)-(6), units:
        A28.R: [R] = parameter  # radius
        A28.Phi: [Phi] = loss  # decrease
        A28.Gamma: [Gamma] = 1  # length of a round
        A28.eta: [eta] = parameter**2/loss  # step size
        A28.log: [d/(eta*sqrt(rho*psi))*(C/s)] = 1  # argument of the first logarithm in mu
    Theorem 2, b1 and b2, records:
        B1: b1*(U*eta/kappa) + b2*(U/(eta*chi**2)) = n; free eta chi  # budget
    Theorem 2, (98)-(101), four error terms:
        B2.1: G**2/(m*b1) = 2*G**2*U*eta/(m*n*kappa); free eta; definition
            # sampling error of a refresh
        B2.2: G**2*d/(m*b1**2*epsilon**2) = 4*G**2*d*U**2*eta**2/(m*n**2*epsilon**2*kappa**2); free
            eta  # privacy error of a refresh
        B2.3: M**2*kappa/(m*b2) = 2*M**2*U*kappa/(m*n*eta*chi**2); free eta chi; definition
            # sampling error of the differences
        B2.4: M**2*d*kappa/(m*b2**2*epsilon**2) =
            4*M**2*d*U**2*kappa/(m*n**2*epsilon**2*eta**2*chi**4); free eta chi
            # privacy error of the differences
        B3.1: G**2*U*u/(m*n*kappa) = G**2*U*sqrt(rho*alpha)/(m*M**2*n*kappa) at u =
            sqrt(rho*alpha)/M**2; free alpha; definition  # first error with the step size put in
        B3.4: M**2*d*U**2*kappa/(m*n**2*epsilon**2*u**2*alpha**4) =
            M**6*d*U**2*kappa/(m*rho*n**2*epsilon**2*alpha**5) at u = sqrt(rho*alpha)/M**2; free
            alpha  # fourth error with the step size put in
    Theorem 2, proof, balance in kappa:
        B4.1: e1**2 = G**2*U*sqrt(rho*e1)/(m*M**2*n*kappa)
        B4.2: e2**2 = G**2*d*U**2*rho*e2/(m*M**4*n**2*epsilon**2*kappa**2); definition
        B4.3: e3**2 = M**4*U*kappa/(m*sqrt(rho)*n*e3**(5/2))
        B4.4: e4**2 = M**6*d*U**2*kappa/(m*rho*n**2*epsilon**2*e4**5)
        B5: e1 = e3 at kappa = k13  # where e1 and e3 cross
        B5.alpha: e1 = a13 at kappa = k13  # accuracy there
        B6: e2 = e4 at kappa = k24  # where e2 and e4 cross
        B7: e1 = e4 at kappa = k14  # where e1 and e4 cross
        B7.alpha: e1 = a14 at kappa = k14  # accuracy there
        B8: e2 = e3 at kappa = k23  # where e2 and e3 cross
        B8.alpha: e2 = a23 at kappa = k23  # accuracy there
        B9: check crossings_are_optimal  # the best kappa gives the largest of the four crossings
        B10: u**(1/5)*n**(-2/5) <= Max(n**(-1/3), (u/n)**(2/5)) where 1 <= u, 1 <= n
            # the crossing of e2 and e3 never dominates (unit constants, u = sqrt(d)/epsilon)
        B12: e4 = n**(-13/42) at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, kappa = k13, d =
            n**(1/3)
        B12.best: a14 = n**(-16/51) at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, d =
            n**(1/3)
    Theorem 2, batches b1 and b2:
        B13.b1: n*k13/u = n**(2/3) at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, u =
            n**(-1/6)  # refresh batch where sampling dominates
        B13.b2: n*u*a24**2 = n*x at G = 1, M = 1, U = 1, rho = 1, m = 1, epsilon = 1, u = x**(1/5),
            d = (n*x)**2  # difference batch where privacy dominates (x = p)
        B14: b1 <= n, 1 <= b1 where kappa <= 2*U*eta, 2*U*eta/kappa <= n; free eta  # 1 <= b1 <= n
        B14.b2: b2 <= n, 1 <= b2 where eta*chi**2 <= 2*U, 2*U/(eta*chi**2) <= n; free eta chi
            # 1 <= b2 <= n
    Lemma 8, proof, one step:
        B15: x*g - g**2/2 + g**2/6 <= 3/4*x**2  # rise of a call, x = chi
    Lemma 8, number of refreshes:
        B16: u*(A*U/(eta*chi**2)) = A/2*n at u = n*eta*chi**2/(2*U); free eta chi
            # records used by the differences
        B16.refresh: u*6*eta/kappa*(U + 3/4*A*U) = 3*(1 + 3/4*A)*n at u = n*kappa/(2*U*eta); free
            eta  # records used by the refreshes
    introduction, earlier rates:
        B18: (u/(n*v))**(1/2) = n**(-1/3) at u = 1, v = n**(-1/3)
            # earlier exponent with eta = 1/M, unit constants
    Theorems 2 and 3, units:
        B19.k13: [k13] = parameter**2
        B19.k24: [k24] = parameter**2
        B19.k14: [k14] = parameter**2
        B19.k23: [k23] = parameter**2
        B19.a13: [a13] = loss/parameter
        B19.a24: [a24] = loss/parameter
        B19.a14: [a14] = loss/parameter
        B19.a23: [a23] = loss/parameter
    Theorem 3, rates for m clients:
        X9: a14/u = m**(-4/17) at u = (G**2*M**4*U**3*d/(sqrt(rho)*n**3*epsilon**2))**(2/17)
            # gain from m clients in the mixed regime
    Theorem 4, (143), curvature error:
        C1: (sqrt(rho*alpha) + M/sqrt(m*n) + M*d*alpha**(-5/4)/(sqrt(m)*n*epsilon))**2/rho = alpha +
            M**2/(rho*m*n) + M**2*d**2/(rho*m*n**2*epsilon**2*alpha**(5/2)) +
            2*M*sqrt(alpha)/(sqrt(rho)*sqrt(m*n)) + 2*M*d/(sqrt(rho)*sqrt(m)*n*epsilon*alpha**(3/4))
            + 2*M**2*d/(rho*m*n**(3/2)*epsilon*alpha**(5/4)); free alpha
            # square of the curvature error
        C3: 2*sqrt(x*u) <= x + u  # cross terms are absorbed by the squares
    Remark 4, conditions:
        C4: sqrt(d)/(N*u**(5/4))/u = d**(1/20)*N**(-1/10) at u = (sqrt(d)/N)**(2/5)
            # first condition of Remark 4
        C4.second: d/(N*u**(3/4))/u = d**(13/20)*N**(-3/10) at u = (sqrt(d)/N)**(2/5)
            # second condition of Remark 4
    Theorem 4, matrix Bernstein, Lemma 14:
        C5: t**2/(2*(4*M**2/x + 2*M/x*t/3)) = L at t = 4*M*sqrt(L/x), x = 4/9*L
            # matrix Bernstein at m n = (4/9) L
    Algorithm 4, (123)-(126), tails:
        C6: 4*exp(-t**2) = omega/8 where omega <= 1 at t = sqrt(log(32/omega))  # tail
    Theorem 4, privacy of Algorithm 4:
        C7: release 2*G/n with noise sqrt(2*T)*z*2*G/n times T, 2*M*sqrt(d)/n with noise
            sqrt(2*T)*z*2*M*sqrt(d)/n times T within 1/(2*z**2)  # gradients and Hessians compose to
            one release at multiplier z
    Lemma 7, constants c1 and c2:
        X1: (2*z*G/u)**2 = v*G**2*Lam/(u**2*epsilon**2) at v = 4*z**2*epsilon**2/Lam
        X2: (2*z*M*x/u)**2 = v*M**2*Lam*x**2/(u**2*epsilon**2) at v = 4*z**2*epsilon**2/Lam
            # c2 equals c1
        X3: 4*z**2*epsilon**2/Lam = 8*L/Lam at z = sqrt(2*L)/epsilon
            # c1 of the textbook formula, L = log(1.25/delta)
    Theorem 2, privacy, several passes:
        X5: release 1 with noise sqrt(u)*z times u within 1/(2*z**2)  # u passes at sqrt(u) z cost
            one release at z
    Lemma 7, noise of a difference:
        X6: (2*z*M*eta/u)**2*d/m = 4*d*z**2*M**2*eta**2/(u**2*m); free eta
    Lemma 1 and Corollary 1:
        L1.escape: open it holds with a probability
            # one of two coupled runs leaves the ball of radius R within Gamma steps with
            probability 1/4
    Corollary 2:
        C2.descent: open it holds with high probability
            # the sum of gradients bounds the decrease, with probability 1 - 2 exp(-iota)
    Lemma 5:
        L5.error: open it holds with high probability
            # all errors are at most C sqrt(2 log(4T/omega)) psi <= chi
    Theorem 1:
        T1.sosp: open it holds with high probability, and a constant is hidden
            # with probability 1 - omega, Algorithm 1 returns an alpha-SOSP in O~(alpha^(-5/2))
            steps
    Lemma 7:
        L7.noise: open a constant is hidden
            # sigma and r of the oracle are of the stated order
    Lemma 8:
        L8.refreshes: open it holds with high probability
            # the number of refreshes is O(U eta/kappa)
    Theorem 2:
        T2.rate: open it holds with high probability, and a constant is hidden
            # alpha is O~((G U M/n)^(1/3)) plus a private term, for one machine
    Theorem 3:
        T3.rate: open it holds with high probability, and a constant is hidden
            # alpha is O~((G U M/(m n))^(1/3)) plus a private term, for m clients
    Theorem 4:
        T4.selection: open it holds with high probability, and a constant is hidden
            # Algorithm 4 selects an alpha'-SOSP where some candidate is an alpha-SOSP
    """,
    CHECKS,
)
