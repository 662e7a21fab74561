"""Claims of the paper about its settings, theorem by theorem; open statements come last."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import theorems_of
from dpcal.calibrate.papers.kan.checks import CHECKS

CLAIMS = theorems_of(
    """
    Section 5.1 and appendix F.1, correlation matrix C:
        I01: check inverse_pair  # inverse pair
        I02: check row_sums  # row and column sums
        I03: check gram  # Gram matrix
        I04: check tridiagonal  # precision matrix
        I05: check prefix_noise  # noise of prefix sums
        I06: check spectral  # spectral norm
        I02.square: growth_sq*(1 - lam)**2 = (1 - lam**T)**2; definition
            # squared bound on the row sums
    Lemma F.11, sensitivity:
        I07: check first_is_worst  # the first k steps are worst
        I08: check closed_sensitivity  # sensitivity in closed form
    Lemma C.1, shifted recursion:
        I09: Wt - eta*(gr + De + c*Z - lam*c*Zp) + eta*c*Z = Wt + eta*c*Zp - eta*(gr + De + (1 -
            lam)*c*Zp)  # shifted recursion: U_t = W_t + eta c Z_t
    Lemma C.1, (6):
        I10: (U - eta*gr - Ws)**2 = (U - Ws)**2 - 2*eta*gr*(U - Ws) + eta**2*gr**2
            # expansion of a step's squared distance
    Remark 4.2, noise factor:
        I16: -2 + 2*lam + 2*eta*lam = 0 at lam = 1/(1 + eta)  # minimizer of the noise factor
        I16.value: (1 - lam)**2 + lam**2*eta = eta/(1 + eta) at lam = 1/(1 + eta)  # its minimum
        I16.one: (1 - lam)**2 + lam**2*eta = eta at lam = 1  # full correlation
        I17: ((1 - lam)**2 + lam**2*eta)/(1 - lam)**2 = 1 + eta*lam**2/(1 - lam)**2  # calibrated
        I17.slope: 2*eta*lam/(1 - lam)**2 + 2*eta*lam**2/(1 - lam)**3 = 2*eta*lam/(1 - lam)**3
            # the calibrated factor grows with lambda
    Theorem 4.1, cross term:
        I18: ((1 - lam)*kappa*eta*sqrt(m*d)/(B**(3/2)*sqrt(T)))**2 = (1 -
            lam)**2*eta*kappa**2*m*d/B**2*(eta/(B*T))  # cross term is a geometric mean
        I18.redundant: 2*sqrt(x*u) <= x + u  # the cross term is at most the sum of the two others
    Lemma C.3:
        I19: -4*eta/3 + 8*beta*eta**2 + eta/3 <= -eta/3 where eta <= 1/(12*beta)
            # descent with eta <= 1/(12 beta)
        I19.young: 2*lam*eta**2*c*u*v <= eta/(12*beta)*u**2 + 12*beta*lam**2*eta**3*c**2*v**2
            # Young's inequality with weight 1/(12 beta)
    Lemma C.2:
        I20: x/(2 - x) <= 1/3 where x in [0, 1/2]  # curvature term
    Lemma D.11 and (21):
        I21: eta/2*8*beta <= 1/3 where eta <= 1/(12*beta)  # descent, independent noise
        I21.width: nu*(2*u)**2 <= 1/2 at nu = 8*x/(64*x*u**2)
            # (21) implies the curvature condition
    Lemma B.2:
        I22: check batch_variance  # batch variance
    Lemmas C.6 to C.9, constants:
        I23: 2*sqrt(2) <= 4  # constants of C.8 and C.9
        I23.log: 1 <= 2*log(2)  # constant of C.6
    Lemma C.7, Freedman's inequality:
        I24: 2*ell*(v + L*x/3) <= x**2 at x = sqrt(2*v*ell) + 2*L*ell/3
            # Freedman: the closed form dominates the root
    Theorem C.13, failure budget:
        I25: x/4 + x/4 + 2*x/8 + 2*x/8 = x  # failure budget
    appendix A, gradients:
        I26: -3*v*u**3*w**2*exp(-v*u**3*w**3/sqrt(d)/sqrt(m))/sqrt(d)/sqrt(m)/(1 +
            exp(-v*u**3*w**3/sqrt(d)/sqrt(m))) = -3*v*(w*u)**2*u/(sqrt(m*d)*(1 +
            exp(v*(w*u)**3/sqrt(m*d))))  # gradient of one unit, by the chain rule
    Section 3, logistic loss:
        I27: 1/(1 + exp(x)) <= log(1 + exp(-x)) where x in [0, 5]
            # self-bounding logistic loss on [0, 5]
        I27.second: x/(1 + x)**2 <= 1/4  # second derivative, x = e^z
    Lemma F.6:
        I28: check duality  # hockey-stick duality
    Theorem D.9, conversion from RDP:
        I11: 8*order*T*B**2/(n**2*u) = epsilon/2 at order = 1 + 2*Lam/epsilon, u =
            16*B**2*T/(n**2*epsilon) + 32*B**2*T*Lam/(n**2*epsilon**2)  # algebra of D.9, given 8
        I12: Lam/(order - 1) = epsilon/2 at order = 1 + 2*Lam/epsilon  # conversion
    Lemma D.7, first coefficient:
        I13: 16*x <= 4*(exp(4*x) - 1)  # first coefficient of the amplification bound, x = 1/kappa^2
        I13.eight: q**2/(order - 1)*order*(order - 1)/2*16/kappa**2 = 8*order*q**2/kappa**2 where 1
            < order  # where the 8 comes from
    Lemma F.10, Chernoff bound:
        I14: u/(r*T)*r*T/3 = Lam + log(2) at u = 3*(Lam + log(2)); definition  # Chernoff exponent
        I14.tau: (taus - r*T)**2 = 3*r*T*(Lam + log(2)); definition
            # deviation of the participations
    Theorem F.12, noise:
        I15: kappa_sq = 2*(relation*growth_sq**(1/2))**2*taus*(log(5/2) + Lam)/epsilon**2;
            definition; free growth_sq taus
            # classical Gaussian noise at sensitivity relation g sqrt(tau)
        I15.zero: kappa_sq*epsilon**2/(growth_sq*taus*log(5/2) + growth_sq*taus*Lam) = 2 at relation
            = 1; free growth_sq taus  # constant 2 under zero-out
        I15.replace: kappa_sq*epsilon**2/(growth_sq*taus*log(5/2) + growth_sq*taus*Lam) = 8 at
            relation = 2; free growth_sq taus  # constant 8 under replace-one
    Theorems 5.1 and 5.4, compared:
        I36: 8*r*T*Lam/(32*r**2*T*Lam) = 1/(4*r)  # no r^2
    Corollary 5.3, each term within the rate:
        I32.1: 1/(gamma**2*T53) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where gamma
            <= 1, epsilon <= 1, 1 <= d, 1 <= n  # optimization term
        I32.2: 1/(gamma*sqrt(n*T53)) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # sampling term, B = n
        I32.4: 1/(gamma*n*epsilon) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # linear noise term
        I32.width: m53 <= n**2*epsilon**2/(gamma**2*d*T53**2) where gamma <= 1, epsilon <= 1, 1 <=
            d, 1 <= n  # width below its upper limit
        I32.small: 10**6 <= m53 where gamma <= 28/1000
            # at a measured margin of 0.028 the width is above a million
        I32.lower: m53 = gamma**(-4); definition  # width at its lower limit
        I32.early: T53 = sqrt(n)/gamma at d = n*epsilon**2*gamma**4/(1 + x)**2
            # steps where sampling decides
        I32.late: T53 = sqrt(n)/(gamma*(1 + x)) at d = n*epsilon**2*gamma**4*(1 + x)**2
            # steps where privacy decides
    Corollary 5.3, upper limit of the width:
        I31: n**2*epsilon**2/(gamma**2*d*T**2) = gamma**(-6) at T = n*epsilon*gamma**2/sqrt(d)
            # upper limit of the width on the printed branch
    Corollary 5.5, table of terms:
        I29.1: 1/(gamma**2*T55) = 1/(gamma*sqrt(n)); definition  # table 3.3
        I29.2: 1/(gamma**2*u*T55) = sqrt(d)/(gamma**3*n*epsilon) at u =
            gamma**2*sqrt(n)*epsilon/sqrt(d); definition  # table 3.3, small step
        I29.3: 1/(gamma*sqrt(u*T55)) = 1/(gamma*sqrt(n)) at u = gamma*sqrt(n); definition
        I29.4: T55*d/(gamma**4*n**2*epsilon**2) = d/(gamma**5*n**(3/2)*epsilon**2); definition
        I29.5: 1/(gamma**2*T) = 1/(gamma*sqrt(n)) at T = sqrt(n)/gamma
        I29.6: T*d/(rho**2*gamma**6*n**2*epsilon**2) = sqrt(d)/(rho**2*gamma**4*n*epsilon) at T =
            n*epsilon*gamma**2/sqrt(d)  # table 3.2
        I29.m: m55 = gamma**(-4); definition  # width of Corollary 5.5
        I29.T: T55*gamma = sqrt(n); definition  # one epoch at B = gamma sqrt(n)
        I29.eta: eta55/(sqrt(n)*epsilon) = Min(1/(sqrt(n)*epsilon), gamma**2/sqrt(d))
    Corollary 5.5, each term within the rate:
        I30.1: 1/(gamma**2*eta55*T55) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # Corollary 5.5, optimization
        I30.2: 1/(gamma*sqrt(B55*T55)) <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where
            gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n  # Corollary 5.5, sampling
        I30.4: eta55/B55 <= Max(1/(gamma*sqrt(n)), sqrt(d)/(gamma**3*n*epsilon)) where gamma <= 1,
            epsilon <= 1, 1 <= d, 1 <= n  # Corollary 5.5, variance
        I30.5: eta55*m55*d*T55/(n**2*epsilon**2) <= Max(1/(gamma*sqrt(n)),
            sqrt(d)/(gamma**3*n*epsilon)) where gamma <= 1, epsilon <= 1, 1 <= d, 1 <= n
            # Corollary 5.5, quadratic noise
        I30.gap: eta55*T55/n <= 1/(gamma*sqrt(n))
            # Corollary 5.5: generalization factor stays bounded
    Corollary 5.5, batch size and noise multiplier:
        I33.kappa: 16*u**2*T/(n**2*epsilon) + 32*u**2*T*Lam/(n**2*epsilon**2) = 16 + 32*Lam/epsilon
            at u = n*sqrt(epsilon/T)  # D.9 with that batch
        I33.small: B55 = n/(1 + u) at T55 = epsilon*n*(1 + x)**2/gamma**2, gamma = sqrt(n)/(1 + u);
            free T55  # batch where the utility branch decides
        I33.batch: B55 <= n, 1 <= B55 where 1 <= n, 1 <= gamma*sqrt(n); free T55  # 1 <= B <= n
    Corollary 5.6, terms:
        I37: eta56*T56 = n/gamma**2  # Corollary 5.6: total step
        I37.1: 1/(gamma**2*eta56*T56) = 1/n  # Corollary 5.6
        I37.2: 1/(gamma*sqrt(B*T56)) = 1/n  # Corollary 5.6
        I37.3: eta56/B = 1/n; definition  # Corollary 5.6
    Theorem E.1 and Corollary 5.6, failure probability:
        I35.delta: delta56*n = 1; definition  # failure probability of Corollary 5.6
    Theorem 4.1:
        T41.risk: open it holds with high probability, and a constant is hidden
            # the average empirical risk is within A_corr times logarithms
    Theorem 5.2:
        T52.population: open it holds with high probability, and a constant is hidden
            # the average population risk is within (1 + eta T/n) A_corr times logarithms
    Corollary 5.3:
        C53.rate: open it holds with high probability, and a constant is hidden
            # correlated noise: risks are O~(1/(gamma sqrt(n)) + sqrt(d)/(gamma^4 n epsilon))
    Theorem 5.1 and Theorem 5.4:
        T54.privacy: open a constant is hidden in the main text
            # noise multipliers are stated up to constants; E02, E05 and E07 treat the explicit
            ones
    Corollary 5.5:
        C55.rate: open it holds with high probability, and a constant is hidden
            # independent noise: risks are O~(1/(gamma sqrt(n)) + sqrt(d)/(gamma^3 n epsilon))
    Corollary 5.6:
        C56.rate: open it holds with high probability, and a constant is hidden
            # without noise: empirical risk is O~(1/n), population risk O~(1/(gamma^2 n))
    Lemma C.12:
        LC12: open it holds with high probability
            # a comparator near the start has risk at most 1/T
    Lemma F.7:
        LF7: open an external theorem about adaptive mixtures
            # mixtures of Gaussians with adaptive rows are dominated
    """,
    CHECKS,
)
