"""A sixth paper in one file: noisy stochastic gradient descent of Bassily, Smith, Thakurta (2014).

``dpcal audit notebooks/dpsgd_2014.py`` decides its claims. Section 2 of the paper gives Algorithm 1:
n**2 steps of one sampled record each, noise for strong composition, and excess empirical risk of
order sqrt(d)/(n epsilon) up to logarithms. The textbook Gaussian noise that it builds on
(Dwork and Roth 2014, Theorem A.1) is stated for epsilon below 1, and fails beyond.
"""

from dpcal.calibrate.papers import Schedule

SCHEDULE = Schedule(
    name="dpsgd_2014",
    title="Noisy stochastic gradient descent on empirical risk",
    citation=(
        "Bassily, Smith, Thakurta: Private Empirical Risk Minimization: Efficient Algorithms and "
        "Tight Error Bounds, FOCS 2014, arXiv 1405.7085"
    ),
    quantities="""
    n: records; [2, oo)
    d: dimension; [1, oo)
    epsilon: target epsilon; (0, 1]
    delta: target delta; [1/10000000000, 1/100]
    Lam: log(1/delta), for delta up to 1/100; [4, oo)
    L: Lipschitz constant; unit loss/parameter
    D: diameter of the feasible set; unit parameter
    second_moment: bound on the squared norm of a noisy gradient
    t: step, from 1; [1, oo)
    e: an epsilon that may exceed 1; [1/100, 20]
    """,
    settings="""
    T: n**2  # Algorithm 1, line 3: number of steps
    variance: 32*L**2*n**2*(log(n) + Lam)*Lam/epsilon**2
        # Algorithm 1, line 1: noise variance per coordinate
    second_moment: n**2*L**2 + d*variance
        # Theorem 2.4, proof: squared norm of the noisy step, before its expectation
    step: D/sqrt(t*second_moment)  # Theorem 2.4: learning rate
    textbook: sqrt(2*log(125/(100*delta)))/e  # Dwork and Roth, Theorem A.1
    """,
    claims="""
    Algorithm 1, line 3:
        steps: T = n**2; definition  # one pass per record
    Algorithm 1, line 1:
        noise.unit: [sqrt(variance)] = loss/parameter  # noise has the unit of a gradient
    Theorem 2.4:
        step.unit: [step] = parameter**2/loss  # a step turns a gradient into a movement
        excess.exact: D*sqrt(second_moment)/n**2 =O D*L*sqrt(d)*log(n)/n; growth n = 1, d = 1/2
            # excess risk over sqrt(T) steps, with its logarithm, at d = sqrt(n)
        excess: D*sqrt(second_moment)/n**2 =O~ D*L*sqrt(d)/n; growth n = 1, d = 1/2
            # excess risk ~ sqrt(d)/n up to logarithms
        theorem: open an expectation over noise and samples, with a hidden constant
            # expected excess risk O(L D sqrt(d)/(n epsilon) polylog)
    Theorem 2.4, proof; Shamir and Zhang 2013, Theorem 2:
        balance: D**2/step + step*t*second_moment = 2*D*sqrt(t*second_moment); free second_moment
            # the step balances distance and noise
        noise.dominates: n**2*L**2 <= second_moment  # the second moment is at least the signal's
    Theorem 5.3:
        lower: open a lower bound over all private algorithms
            # excess risk is at least of order sqrt(d)/(n epsilon)
    Dwork and Roth, Theorem A.1:
        textbook: release 1 with noise textbook within e, delta where e in [1/100, 1]
            # the textbook noise is enough for epsilon up to 1
    """,
    errata="""
    beyond (privacy; Dwork and Roth, Theorem A.1, outside its condition):
        The textbook noise is used for any epsilon; it fails beyond its range.
        printed: release 1 with noise textbook within e, delta
            # the textbook noise is enough for epsilon up to 20
        use: The smallest multiplier of the exact Gaussian profile: calibrate.noise_multiplier.
    logarithm (rate; Theorem 2.4, read without its logarithms):
        Without its logarithm the rate is not reached.
        printed: D*sqrt(second_moment)/n**2 =O D*L*sqrt(d)/n; growth n = 1, d = 1/2
            # excess risk without logarithms
        use: O-tilde, or the logarithm.
    """,
)
