"""Claims of the paper about its settings, theorem by theorem; open statements come last."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import theorems_of
from dpcal.calibrate.papers.spiderboost.checks import CHECKS

CLAIMS = theorems_of(
    """
    Theorem 9, rounds T and rate:
        S1: sqrt(F0*L1/T1) = L0*T1*abar**2; balance of T1  # T1 balances both errors
        S2: T1 = ((F0*L1)**(1/4)*n*epsilon/sqrt(L0*d*Lam))**(4*(1/3))  # T1 as Theorem 9 prints it
        S3: sqrt(F0*L1/T1) = (sqrt(F0*L1*L0)*abar)**(2*(1/3))
        S4: sqrt(F0*L1*L0)*sqrt(d*Lam)/(n*epsilon) = sqrt(F0*L1*L0*d*Lam)/(n*epsilon)
            # Theorems 1 and 9 print the same rate
        S5: L0*T*abar**2 = L0*abar at T = 1/abar; free T abar  # second branch
        S5.branch: sqrt(F0*L1/T) <= L0*abar where F0*L1 <= L0**2*abar; free abar
            # when the second branch is active it dominates
        S5.T1: T1 <= 1/abar where F0*L1 <= L0**2*abar; free abar  # switch
        S5.T: T1 <= T; free abar T1  # T is at least the balance
        S5.T2: 1/abar <= T; free abar T1  # T is at least 1/abar
    Theorem 9, period q in its proof:
        S6: L0*sqrt(T/q)*abar = sqrt(2)*L0*T*abar**2; free T  # refresh error with the period q
        S7: q <= T; free abar T1  # T >= q
    Theorem 9, batches b1, b2 and their conditions:
        S8: 1/(T1*abar**2) = (L0/(sqrt(F0*L1)*abar))**(2*(1/3)); free abar
        S9: 1/(T1*abar**2) = (L0*n*epsilon/sqrt(F0*L1*d*Lam))**(2*(1/3))  # first branch of b2
        S10: n/sqrt(T1) = (L0*n*d*Lam)**(1/3)/((L1*F0)**(1/6)*epsilon**(2*(1/3)))
            # second branch of b2
        S21: 1/(T1*abar**2) <= n where L0**2*epsilon**2/(F0*L1*d*Lam) <= n
            # first branch of b2 is at most n
        S22: n/sqrt(T1) <= n where L0**2*abar**4 <= F0*L1; free abar
            # second branch of b2 is at most n under its own condition
        S23: 1 <= 1/(T*abar**2), 1/T <= 1 where abar <= 1, sqrt(F0*L1)*abar <= L0; free abar
            # period and rounds are at least 1 (before the factor 2)
        S23.b2: b2 <= n, 1 <= b2 where abar <= 1, 1 <= n, 1/n <= T*abar**2, 1 <= T, T*abar**2 <= 1;
            free abar T  # 1 <= b2 <= n
        S23.second: b2 = n/(1 + u) at abar = sqrt((1 + x)/(n*sqrt(T))), T = (1 + u)**2; free T abar
            # b2 where the amplified branch decides
        S23.first: b2 = n/(1 + v) at abar = 1/sqrt((1 + x)*n*sqrt(T)), T = ((1 + x)*(1 + v))**2;
            free T abar  # b2 where the period decides
    Theorem 8 and Algorithm 1, noise and errors tau1, tau2:
        S11: d*L0**2*kappa**2*T/(q*n**2) = L0**2*T*abar**2/q at kappa = n*abar/sqrt(d); free T q
            abar  # squared refresh error when kappa = n abar/sqrt(d)
        S11.tau: tau1_sq = d*sigma1**2; definition; free sigma1  # isotropic noise
        S12: sigma2 = L1*kappa*sqrt(T)/n at b2 = n*(1 + x)/sqrt(T); free b2 T
            # difference noise per unit of movement when b2 >= n/sqrt(T)
        S13: cap2/sigma2 = 2*L0/L1; free b2 T  # constant multiplier
        S13.min: Min(sigma2*move, cap2) = sigma2/L1*Min(L1*move, 2*L0); free b2 T
            # noise and sensitivity are capped alike
        S14: n/sqrt(T) <= b2 where 1 <= T; free T abar  # branch of sigma2
        S15: (1 - r)/b2 <= 1/b2; free b2  # sampling variance, Poisson
        S15.wor: (n - u)/((n - 1)*u) <= 1/u where 1 <= u, 2 <= n, n in [2, oo], u in [1, oo]
            # sampling variance, without replacement
        S15.tau: tau2_sq = L1**2*(1 + x)/b2 - L1**2*x/b2 + d*sigma2**2; free b2 sigma2
            # variance of a batch mean, and isotropic noise
    Lemma 3, descent and constants:
        S16: u/2 - L1*u**2/2 - u**3*x*v/2 = (1 - x*v/(2*L1**2))/(8*L1) at u = 1/(2*L1)  # descent
        S16.eta: eta*L1 = 1/2; definition  # step size
        S17: u/2 - L1*u**2/2 - u**3*x*v/2 = 1/(16*L1) at u = 1/(2*L1), v = L1**2/x  # descent at q
        S17.zero: u/2 - L1*u**2/2 - u**3*x*v/2 = 0 at u = 1/(2*L1), v = 2*L1**2/x
            # no descent at twice q
        S18: 2*F0/(T*A)*(1 + x*u**2*v) + (u/A + 2 + x*u**3*v/A)*r = 40*F0*L1/T + 12*r at A =
            1/(16*L1), u = 1/(2*L1), v = L1**2/x; free T
            # explicit constants of Lemma 3, r = tau1^2
    Theorem 1, oracle complexity:
        S19: T1/(T1*abar**2) = n**2*epsilon**2/(d*Lam)  # cost, first
        S19.second: T1*n/sqrt(T1) = n**(5*(1/3))*epsilon**(2*(1/3))*d**(-(1/3)) at F0 = 1, L1 = 1,
            L0 = 1, Lam = 1  # cost, second
        S20: n/(sqrt(d)/(n*epsilon))**(2*(1/3)) = (n**5*epsilon**2/d)**(1/3)
            # both printings of the oracle complexity
    Theorem 9, units:
        S24.T: [T] = 1  # rounds are a number
        S24.q: [q] = 1  # the period is a number
        S24.b2: [b2] = 1  # the batch is a number
        S24.eta: [eta] = parameter/gradient  # step size
        S24.sigma1: [sigma1] = gradient  # refresh noise
        S24.sigma2: [sigma2] = gradient/parameter  # difference noise
        S24.abar: abar**2 = d*Lam/(n*epsilon)**2  # rate variable
    Theorem 9, batch b1:
        S24.b1: b1 = n; definition  # refreshes use all records
    Theorem 3, sensitivities, noise and records of Algorithm 2:
        S25: 2*2**(D - j)*(2**j/u)*v/2**(D/2) = 2*v*2**(D/2)/u
            # right-child sensitivity does not depend on the depth
        S26: 2*ell*(2*L0/u)**2 = 8*L0**2*ell/u**2  # root noise
        S26.node: 2*ell*(2*v*2**(D/2)/u)**2 = 8*2**D*v**2*ell/u**2  # node noise
        S27: check records_of_round  # records of a round
    Section 4, tree of Algorithm 2:
        S29: check tree_facts  # depth-first order
        S30: 2**(D/2) = sqrt(u/(2*D)) at u = D*2**(D + 1)
    Theorem 4, batch b and number of rounds:
        S31.b: 1/b <= n**(-2*(1/3))  # sampling error of a round's root
        S31.size: b**2 = Max(n**(4/3), n*sqrt(d + 1)/epsilon); definition  # batch of a round's root
        S32: n**(2*(1/3)) = sqrt(n)*u**(1/4)/sqrt(epsilon) at u = n**(2*(1/3))*epsilon**2
            # the two batch sizes meet
        S33: b*(D/2 + 1) <= n where (D/2 + 1)**3 <= n, sqrt(d + 1)*(D/2 + 1)**2/epsilon <= n at D =
            2*u - 2  # at least one round fits (u = D/2 + 1)
    Lemma 5, union bound and balance:
        S34: 8*32 = 256  # tail constant
        S35: 4*L0**2/u + 4*v**2*2**D/u = 4*(L0**2/u + v**2*2**D/u)  # variance proxy of a leaf
        S36: 4*2*u/p = 2*T*2**(D + 1)/p at u = T*2**(D - 1); free T
        S37: 64*log(8*x) <= 256*(1/3)*log(4*x) where x in [3, 1000000]
            # with all leaves counted the martingale part fits (log(1.25/delta) >= 1/3)
        S38: log(16) <= 4*ell*log(8) where 1/3 <= ell
            # the leaf count is absorbed when log(1.25/delta) >= 1/3
        S39.early: (L0**2/b + beta**2/2)*Max(1, (d + 1)/(b*epsilon**2)) = alpha**2 at d =
            b*epsilon**2/(1 + x) - 1; free b  # Lemma 5 balance
        S39.alpha: alpha**2 = 2*L0**2*(1 + x)/b at d = b*epsilon**2*(1 + x) - 1; free b
            # accuracy where privacy dominates
    Lemma 6, descent of one step:
        S40: -x/2 + w/4 <= -x/4 where u <= x at w = u
            # descent of one leaf step (x = stopping level, u = accuracy)
    Theorem 4, last steps of the proof:
        S41: F0/(T*u*v/(2*D)/(2*4*sqrt(v/(2*D))*L1)) = 8*L1*F0*sqrt(2*D)*(D/2 + 1)*sqrt(v)/(n*u) at
            T = n/(v*(D/2 + 1)); free T b  # contradiction threshold, v = b
        S42: n**(-(1/2))*x**(1/4) <= x where n**(-2*(1/3)) <= x
            # last step of Theorem 4's proof, x = sqrt(d)/(n epsilon)
        S44: 2*x + sqrt(u*x) <= 3*x where u <= x  # final accuracy
        S45: 64*(D + 1) <= 64*2*D where D in [1, oo]  # a floored depth keeps the constant
        S45.depth: check floored_depth  # floored depth
    Theorem 3, exact noise instead of the textbook formula:
        S46: release 2*L0/u with noise 2*L0/u*(422469/100000) within 1, 1/10**6  # one release at
            multiplier 4.22469 is (1, 1e-6)-DP
    Algorithm 3, strong convexity, selector and step:
        S47: check modulus  # strong convexity of a round
        S48: check geometric_sum  # selector weights
    Theorem 5.1, noise of a round:
        S51: K_t*(2*L0*rounds/n)**2/(2*sigma_t**2) = epsilon**2/(32*Lam)  # budget of a round, zCDP
        S51.budget: epsilon**2/(32*Lam) + epsilon/sqrt(8) <= epsilon where epsilon <= 20*Lam
            # the zCDP budget gives (epsilon, delta) for epsilon <= 20 Lam
        S52: K_t*(2*L0*rounds/n)**2/(2*sigma_t**2) = rounds**2*epsilon**2/(32*K_t*Lam); printed
            sigma_t  # printed noise: private only for K of the order of rounds^2
        S53: d*sigma_t**2/K_t = 64*d*L0**2*rounds**2*Lam/(n*epsilon)**2
            # noise part of the excess does not depend on K
    Theorem 5.1, inner steps K_t:
        S54: (2**j*u)**2*(2**(j/2)*W)**2 = 8**j*u**2*W**2  # bias
        S54.last: 8**j*u**2*W**2 = L1**3*W**2/u at L1 = 2**j*u
        S55: (L0**2 + L1**3*W**2/u)/v = d*L0**2*rounds**2*Lam/(n*epsilon)**2 at v =
            n**2*epsilon**2*(L0**2*u + L1**3*W**2)/(rounds**2*u*d*L0**2*Lam)
            # inner steps balance bias and noise
        S56: [L0**2*lam] = gradient**3/parameter  # unit of S55
        S56.second: [L1**3*W**2] = gradient**3/parameter  # unit of S55
    Theorem 5, proof: radii, gradient and bias:
        S57: W**2 + v*W**2 <= 2*v*W**2 where 1 <= v
            # radii sqrt(2^t) W satisfy the recursion, v = 2^t
        S57.root: W**2 + j*W**2 = (j + 1)*W**2  # so do radii sqrt(t) W
        S58: u*W + L1*v <= u*W + 4*u*v where L1 <= 4*u
            # gradient of the last center, one round (u = lam, v = its error)
        S59: u*x <= 2*sqrt(u*v) where u*x**2/4 <= v  # distance from excess, modulus at least lam/2
        S60: lam*W = L0**2/(L1*W)*Min(1/n, d/(n*epsilon)**2); definition
            # bias of the regularization
    Theorem 6, projected constants:
        S63.lipschitz: sqrt(2)*L0*Xn <= 2*L0*Xn  # projected Lipschitz
    Corollary 1, embedding dimension:
        S64: k**(1/3)/N**(2*(1/3)) = k**(-(1/2)) at k = N**(4/5); balance of k
            # embedding dimension, nonconvex
        S64.error: k**(-(1/2)) = N**(-2/5) at k = N**(4/5); definition
        S65: sqrt(k)/N = k**(-(1/2)) at k = N; balance of k  # convex
        S66: (sqrt(rank*ell)/N)**(2*(1/3)) = (sqrt(rank)/N)**(2*(1/3))*ell**(1/3)  # rank branch
        S67: (sqrt(rank)/N)**(2*(1/3)) <= N**(-2/5) where rank <= N**(4/5)
            # where the rank branch wins
        S69: k**(1/3)/N**(2*(1/3)) = k**(-1/4) at k = N**(8/7)
    Algorithm 4, norm event:
        S68: 2/(1 - log(2)) <= 6518/1000  # chi-square tail: k >= 6.518 log(2n/delta) is enough
    Theorem 2, instance, and Lemma 2:
        S70: L1*u = L0 at u = L0/L1  # Huber slope at the switch
        S71: L1*(B/2)**2/(B/2) = L0/2 at B = L0/L1  # sphere
        S72: open a bound over all vectors and data sets; it repairs E46 and was derived on paper  #
            ||grad F(w)|| >= (L1/2) ||Proj(w) - mean|| for every w
    Theorem 7, instance and cases:
        S73: L1*u + L0/2 = L0 at u = L0/(2*L1)  # total slope
        S74: 1/8 <= 1/4 - 1/(8*sqrt(n)) where n in [1, oo]  # case 1 of Theorem 7
        S74.second: (L0*v*r/2 + L1*u)**2 = L0**2/4*(v*r - x)**2 at u = -L0*x/(2*L1)
            # case 2 of Theorem 7
        S75: L0/2*r*(1 - 1/4)/2 = 3*L0/(64*sqrt(n)) at r = 1/(4*sqrt(n))  # two-point constant
        S75.tv: check total_variation_is_small  # binomials
    Theorem 10 and Lemma 4, optimality of Theorem 1:
        S76: (F0*tau2*tau1/G)**(1/3) = (F0*L1*L0)**(1/3)*abar**(2*(1/3)) at tau1 = L0*sqrt(G)*abar,
            tau2 = L1*sqrt(G)*abar; free abar  # Theorem 10: G cancels
        S77: (F0*L1*L0)**(1/3)*abar**(2*(1/3)) <= L0*abar where L1 <= L0**2*abar/F0; free abar
            # window in which Theorem 1 is optimal
    Section 1.3 and Table 1, comparisons:
        S78: 2*F0*L1/u = L0**2*u*abar**2 at u = sqrt(2*F0*L1)/(L0*abar); balance of u; free abar
            # steps of plain noisy gradient descent
        S79: sqrt(d)*epsilon = (sqrt(d)/(n*epsilon))**(1/2) at epsilon = d**(-1/6)*n**(-(1/3))
            # comparison with an earlier rate
        S80: x**(2*(1/3)) <= sqrt(x), sqrt(x) <= x**(2/5) where x <= 1  # order of the exponents
    Theorem 1 and Theorem 9:
        T9.utility: open a constant is hidden
            # E ||grad F(w; S)|| = O((sqrt(F0 L1 L0) abar)^(2/3) + L0 abar)
    Lemma 1:
        L1.error: open an expectation over the run
            # the squared error is at most tau2^2 times the squared movement since the refresh,
            plus tau1^2
    Theorem 8:
        T8.privacy: open a constant c is not given
            # noise c lambda sqrt(log(1/delta))/epsilon max(1/b, sqrt(T)/n) makes T sampled
            answers private
    Theorem 2:
        T2.lower: open a constant is hidden
            # some data set has E ||grad F|| = Omega(L0 min(1, sqrt(d Lam)/(n epsilon)))
    Theorem 4:
        T4.utility: open it holds with high probability
            # with probability 1 - p, ||grad F(w)|| <= 3 sqrt(2) L0 Ct max(n^(-1/3), (sqrt(d)/(n
            epsilon))^(1/2))
    Lemma 5:
        L5.error: open it holds with high probability
            # with probability 1 - p, all visited leaves have squared error at most alpha times
            the stopping level
    Theorem 5.1:
        T51.utility: open a constant is hidden
            # E ||grad F(w)|| = O~(L0/sqrt(n) + L0 sqrt(d)/(n epsilon)) with noisy gradient
            descent inside
    Theorem 5.2:
        T52.utility: open a constant is hidden
            # the same with phased SGD inside, plus L1 ||w*||/sqrt(n)
    Theorem 6:
        T6.reduction: open a constant is hidden
            # a random projection reduces the dimension of a generalized linear model
    Theorem 7:
        T7.lower: open a constant is hidden
            # without privacy, sup E ||grad F(w)|| = Omega(L0/sqrt(n))
    Theorem 10:
        T10.lower: open a constant is hidden
            # in the oracle model, Omega((F0 tau2 tau1/G)^(1/3) + tau1/sqrt(G))
    """,
    CHECKS,
)
