"""Claims of the paper: escape."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

ESCAPE = (
    *claims_of(
        "(5), lengths and rates of a round",
        """
        A1: Gamma = mu/(eta*sqrt(rho*alpha)); free alpha eta  # length of a round
        A2: eta*sqrt(rho*alpha) = rho*alpha/(M**2*iota**3); free alpha  # escape rate per step
        A3: s*eta*sqrt(rho*alpha) <= 1 where rho*alpha <= M**2, s <= iota**3; free alpha iota
            # a round has at least iota steps
        A27: eta/2*(2*chi)**2 - eta/2*chi**2 = 3/2*eta*chi**2; free eta chi
            # net decrease of a normal step
        A27.alpha: alpha = 4*chi; definition; free chi  # accuracy and error
        """,
    ),
    *claims_of(
        "Lemma 4, (71)-(72), decrease of a round",
        """
        A5: c*eta*psi**2*2*Gamma = 2*c*psi**2*iota/(s*sqrt(rho*alpha)); free alpha eta
            # noise term of a round
        A6: 2*c*psi**2*iota/(s*sqrt(rho*alpha)) = s/(8*iota**4)*sqrt(alpha**3/rho) at alpha =
            4*sqrt(c)*s**(3/2)*mu**(5/2)*psi; free alpha
            # smallest alpha for which the noise takes at most half of the decrease
        A7: alpha**2/(16*c*s**3*mu**5*psi**2) = 16*C/c  # margin of the corrected alpha over A6
        A8: Phi/Gamma = 2*chi**2*eta/(s**3*mu**5); free chi eta  # decrease per step of a round
        """,
    ),
    *claims_of(
        "Theorem 1 and (77), number of rounds and steps",
        """
        A9: U*s**3*mu**5/(2*chi**2*eta) = U*Gamma/Phi; free chi eta  # effective number of steps
        A10: saddles = iota**4*U/s*sqrt(rho/chi**3); free chi iota  # escapes
        A11: 2*saddles/omega = 16*iota**3*U/(s*omega)*sqrt(rho/chi**3); free chi iota; printed
            saddles  # argument of the logarithm in the printed Q
        A26: U/(u*alpha**2) = U*M**2/(sqrt(rho)*alpha**(5/2)) at u = sqrt(rho*alpha)/M**2; free
            alpha  # steps, up to logarithms
        """,
    ),
    *claims_of(
        "Lemma 2, rounds until an escape",
        """
        A12: 1 <= 26/5*log(8/7)/log(2)  # 26/5 rounds per bit suffice with base-2 logarithms
        A12.Q: Q*log(8/7) = log(1/omega); definition  # rounds until failure omega
        """,
    ),
    *claims_of(
        "Lemma 5, third entry of mu",
        """
        A13: 4*sqrt(C)*s*u**2 = C*sqrt(2*L) at u = (C*L)**(1/4)/(2**(3/4)*sqrt(s))
            # third entry of mu as printed
        A13.corrected: 4*sqrt(C)*s**(3/2)*u**(5/2) = C*sqrt(2*L) at u = (C*L/(8*s**3))**(1/5)
            # third entry of mu, corrected
        """,
    ),
    *claims_of(
        "(6), first entry of mu",
        """
        A14: 36*d*Gamma = 9*d/(C**(1/4)*s**(3/4)*mu**(1/4)*eta*sqrt(rho*psi)); free eta
            # argument of the first entry of mu
        A15: R/(eta*r) = 4*C**(1/4)*sqrt(psi/rho)/(s**(3/4)*mu**(1/4)*eta*r); free eta
            # inner logarithm of the first entry of mu
        """,
    ),
    *claims_of(
        "Lemma 20, (41)-(53), growth of the difference",
        """
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
        """,
    ),
    *claims_of(
        "Lemma 1, probabilities",
        """
        A21: 3/4*(1 - 2/9) = 7/12  # probability budget
        A21.rest: 1 - 1/3 - 5/12 = 1/4  # probability budget
        """,
    ),
    *claims_of(
        "(55)-(57) and Lemma 1, elementary steps",
        """
        A22: 2**x <= 1 + x where x in [1/100, 99/100]
            # 1 + a >= 2^a on [0.01, 0.99]; equality at 0 and 1
        A24: -(x*u) = ((u - x)**2 - x**2 - u**2)/2  # inner product by squares, one coordinate
        A25: R/(eta*Gamma) = alpha/(s**(3/2)*mu**(5/2)); free alpha eta
        """,
    ),
    *claims_of(
        "(5)-(6), units",
        """
        A28.R: [R] = parameter  # radius
        A28.Phi: [Phi] = loss  # decrease
        A28.Gamma: [Gamma] = 1  # length of a round
        A28.eta: [eta] = parameter**2/loss  # step size
        A28.log: [d/(eta*sqrt(rho*psi))*(C/s)] = 1  # argument of the first logarithm in mu
        """,
    ),
)
