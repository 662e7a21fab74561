"""Errata of the paper: printed formulas that do not hold, and their corrections."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of
from dpcal.calibrate.papers.dp_rgda.checks import CHECKS

ERRATA = errata_of(
    """
    ER-01 (privacy; Definition 3): The Gaussian variance of Definition 3 lacks a factor 2 and is
        insufficient.
        claim: release 1 with noise sqrt(2)*sqrt(log(125/100*10**5))/u within u, 1/10**5 where u in
            [1/10, 1]  # the textbook variance, epsilon from 0.1 to 1, delta = 1e-5
        printed: release 1 with noise sqrt(log(125/100*10**5))/u within u, 1/10**5 where u in [1/10,
            1]; points u = 9/10  # half the textbook variance
        about: textbook noise at a fixed delta
        use: Solve the exact Gaussian profile for the multiplier.
    ER-02 (privacy; Algorithm 3, lines 7, 8, 14, 15): Clipping the averaged gradient has sensitivity
        2C, not 2C/b.
        claim: release 2*C/u with noise z*2*C/u within 1/(2*z**2)  # per-example clip, then average
        printed: release 2*C with noise z*2*C/u within 1/(2*z**2); points u = 64  # clip of the
            average of u gradients, noise for 2C/u
        about: the sensitivity of any clip
        use: Clip each example, then average.
    ER-03 (privacy; Algorithm 3, line 2): The inner loop makes T K increment releases; the noise is
        for T.
        claim: check increments_counted  # T K minus the refreshes
        printed: check increments_fit_rounds  # at most T increments
        about: the count of a loop
        use: Count T K releases (T K - R in the corrected listing).
    ER-04 (privacy; Algorithm 3, B.1, B.2): The x and y estimators share a batch and each spends the
        whole budget.
        claim: release 1 with noise sqrt(2)*z times 2 within 1/(2*z**2)  # two blocks at sqrt(2) z
            cost one release
        printed: release 1 with noise z times 2 within 1/(2*z**2)  # two blocks at z cost one
            release
        about: the cost of two releases of any noise
        use: Clip and release the concatenated vector.
    ER-04.sampled (privacy; Algorithm 3, B.1): From one sampled batch, two blocks counted apart hide
        most of their cost.
        claim: check joint_releases  # 100 joint releases at rate 0.05 and multiplier 0.8 cost 8.87
        printed: check separate_releases  # two blocks of the same batches at multiplier 0.8 each
            cost as much as one
        about: one run at fixed numbers
        use: One release of the concatenated vector.
    ER-05 (privacy; Theorem 2, B.2): The population noise is scaled by S2/n without amplification or
        composition.
        claim: release 2*L*x/u with noise z*2*L*x/u within 1/(2*z**2)  # one pass, noise at the
            scale of the batch
        printed: check sampled_increment  # one increment, Poisson-sampled at S2/n, n = 1e4, S2 = 22
        about: one run at fixed numbers
        use: Noise at 1/S2 over one pass, or exact accounting of several.
    ER-06 (privacy; B.1, B.2): At k = 0 the increment noise is 0 although x moved.
        claim: L**2*x**2 <= L**2*(x**2 + u**2)  # joint movement covers it
        printed: L**2*x**2 <= L**2*u**2  # movement of y covers it
        about: a sensitivity, for any movement
        use: Scale noise and clip by the joint movement of (x, y).
    ER-07 (privacy; Algorithm 3, lines 1 and 2): No constant c appears in the noise; with c = 1 the
        true epsilon is several times the target.
        claim: release 2 with noise 2*(422469/100000) within 1, 1/10**6  # multiplier 4.22469 at (1,
            1e-6)
        printed: release 2 with noise sqrt(log(10**6)) within 1, 1/10**6  # c = 1 at (1, 1e-6):
            noise sqrt(log(1/delta)) on a sensitivity of 2
        about: noise at a fixed target
        use: Exact calibration; print the implied c as a diagnostic only.
    ER-08 (rate; Lemma 1, Algorithm 3): Noise of fixed size does not vanish with movement,
        as Lemma 1 needs.
        printed: C**2 <= v*x**2  # fixed noise is at most B2^2 movement^2
        about: a variance, for any movement
        use: Movement-scaled clip and noise.
    ER-09 (minor; (31)): 2 sqrt(2) L for a sensitivity of 2 L per unit of movement.
        claim: 2*L*x <= 2*sqrt(2)*L*x  # the printed value is an upper bound
        printed: 2*L*x = 2*sqrt(2)*L*x  # the sensitivity
        about: a sensitivity, for any movement
        use: 2 L.
    ER-10 (privacy; Algorithm 2, warm start): The warm start reads the data and is not paid
        for.
        open: a missing entry of the ledger, not a formula
        use: Charge it, or choose y0 independently of the data.
    ER-11 (privacy; Section 5.1, clipping): How differences are clipped in the experiment is
        not said.
        open: the code of the experiment is not available
        use: Clip the per-example difference.
    ER-12 (privacy; Definition 3, neighboring relation): Neighboring relation and sampling
        are not specified.
        open: a missing definition
        use: State both; default replace-one with fixed-size batches.
    ER-13 (privacy; Assumption 1, (30)): Read by coordinate, assumption 1 bounds the
        gradient by M sqrt(d), not M.
        claim: sqrt(d*u**2) <= M at u = M/sqrt(d)  # partials M/sqrt(d) give a gradient of
            norm M
        printed: M*sqrt(d) <= M  # a gradient with all partials M
        about: a norm, for any dimension
        use: Read it block-wise, and enforce it by clipping.
    ER-20 (algorithm; Algorithm 3): A refresh is followed by the increment that leads to it: counted
        twice.
        claim: check refresh_alone
        printed: check refresh_and_increment
        about: the steps of a loop
        use: Skip the k = 0 increment on refresh steps.
    ER-21 (algorithm; Algorithm 3, Theorem 1): K = 1 freezes y.
        claim: check corrected_inner_loop  # K >= 2
        printed: check printed_inner_loop  # K = 1
        about: the steps of a loop
        use: K >= 2.
    ER-22 (algorithm; Algorithm 3, line 18): The argmin over accumulated noise picks k = 0.
        claim: check last_is_kept  # take the last
        printed: check smallest_is_first  # take the argmin
        about: the choice among candidates of a loop
        use: The last candidate.
    ER-23 (minor; Algorithm 2, output): The surrogate gradient mapping is not defined.
        open: a missing definition
        use: (y - Proj(y + lambda u))/lambda.
    ER-24 (algorithm; Algorithm 2, line 14): Rescaling the last step of a phase leaves
        earlier steps too long.
        claim: u**2*v + u**2*w <= m*D at u = sqrt(m*D/(v + w))  # one step size for all
            steps of the phase
        printed: g**2*v + u**2*w <= m*D where m*D <= g**2*(v + w) at u = sqrt(m*D/(v + w));
            points g = 2, v = 1, w = 1, m = 1, D = 1  # earlier steps at eta_h
        about: movements of a phase, for any step lengths
        use: Rescale the whole phase.
    ER-25 (algorithm; Algorithm 2, escape phase): alpha, x_{-1} and the anchor are used
        before they are defined.
        open: undefined objects of a listing
        use: The corrected listing with a status flag.
    ER-26 (algorithm; Lemmas 4 and 5, Algorithm 2): The analysed step 1/(2L) is used as the
        length of a normalized step.
        claim: [eta] = parameter  # step length
        printed: [eta] = parameter; printed eta  # step length
        use: alpha/(2 L_Phi), normalized.
    ER-27 (algorithm; Algorithm 2, line 13): No condition makes the noise floor of v small
        enough ever to certify.
        open: no condition on the noise floor is printed, so there is no formula to refute
        use: Check it, and refuse to certify otherwise.
    ER-30 (rate; Lemma 4): The period of Lemma 4 has T where B2 belongs.
        claim: 1 <= 4*q where eb <= 1, eb*sqrt(F0*L) <= M; free eb
        printed: 1 <= 4*L**2/T**2  # q >= 1
        use: q = 1/(B2^2 eta^2).
    ER-31 (rate; (8)): The bound of Lemma 4 is sqrt(F0/(qT) + B1) for sqrt(F0/(eta T)) + B1.
        claim: [sqrt(F0*L/T) + M*T*eb**2] = loss/parameter; free T eb
        printed: sqrt(T1*eb**2) =O eb**(2/3); growth n = 1  #
            the printed bound gives the claimed rate
        use: sqrt(F0/(eta T)) + B1.
    ER-32 (rate; Lemma 5): The second term of T has log(1/delta) for its square root.
        claim: 1/eb <= T; free T1  # T >= 1/eb
        printed: 1/eb <= T; free T1; printed T; points ell = 14, n = 1000, epsilon = 1, d =
            1, T1 = 1  # T >= 1/eb
        use: n epsilon/sqrt(d log(1/delta)).
    ER-33 (rate; Lemma 5): The period q carries a factor L^-2.
        claim: [q] = 1  # the period is a number
        settings: q
        use: q = 1/(T eb^2).
    ER-34 (rate; Theorem 1, Lemma 5): The second term of S2 lacks epsilon^(-2/3).
        claim: n/sqrt(T*K) <= S2 where 1 <= T, 1 <= K; free T eb  # S2 >= n/sqrt(T K)
        printed: n/sqrt(T1) <= S2; printed S2; points n = 100000, d = 100, epsilon = 1/2,
            ell = 69/5, M = 1, L = 1, F0 = 1  # S2 >= n/sqrt(T1)
        use: S2 from the actual T.
    ER-35 (minor; Lemma 5, proof): B2 and B1 of the proof lack L and M.
        claim: [B2_sq] = loss**2/parameter**4
        settings: B2_sq
        use: B2^2 = L^2 T eb^2, B1^2 = M^2 T eb^2/q.
    ER-35.B1 (minor; Lemma 5, proof): B1 of the proof lacks M.
        claim: [B1_sq] = loss**2/parameter**2
        settings: B1_sq
        use: B1^2 = M^2 T eb^2/q.
    ER-36 (rate; Theorem 1): Theorem 1 states no lower bound on n, without which q < 1.
        claim: 1 <= q where eb <= 1, eb*sqrt(F0*L) <= M; free eb
        printed: 1 <= q; free eb  # q >= 1 for every n
        use: eb <= min(1, M/sqrt(L F0)).
    ER-37 (rate; Theorem 1): F0 subtracts a minimum over y of a strongly concave function:
        infinite.
        claim: M*y - mu*y**2/2 <= M**2/(2*mu)  # gap of the value function in y
        printed: -C <= M*y - mu*y**2/2; points y = 100  # f(x, y) is bounded below
        about: an assumption on the loss
        use: Phi(x0) - inf Phi.
    ER-38 (rate; Lemmas 1 and 3 to 5): (v, -u) is treated as the gradient of F; the y-part
        has the opposite sign.
        printed: y = -y; points y = 1  # estimate -u equals the derivative
        about: the sign of a derivative
        use: Estimator error plus tracking error, through (7).
    ER-39 (rate; B.1): A logarithm above 1 multiplies a bracket that may be negative.
        printed: p <= w*p where 1 <= w; points p = -1, w = 2  # any
        about: a logarithm before a bracket of any sign
        use: Logarithms on B1 and B2 only.
    ER-42 (minor; Lemma 5): The final rate drops M, L and the second branch.
        claim: [(sqrt(F0*L*M)*eb)**(2/3) + M*eb] = loss/parameter; free eb  # the rate has
            the unit of a gradient
        printed: [(sqrt(F0)*eb)**(2/3)] = loss/parameter  # printed rate
        use: (sqrt(F0 L M) eb)^(2/3) + M eb.
    ER-50 (algorithm; Lemma 8): q = eb^(1/3) is below 1 for every eb < 1.
        claim: 1 <= eb**(-1/3) where eb <= 1; free eb  # q = eb^(-1/3)
        printed: 1 <= eb**(1/3) where eb in [1/1000000, 1/2]; free eb
        about: exponents of the rate variable, which stays a symbol
        use: Exponent -1/3.
    ER-51 (privacy; Lemma 8): A refresh batch of n overruns the sample budget.
        claim: eb**(-1/3)*n**(2/3) <= n where 1/n <= eb; free eb  # refreshes of n^(2/3) fit
        printed: eb**(-1/3)*n <= n where eb in [1/1000000, 1/2]; free eb
        about: exponents of the rate variable, which stays a symbol
        use: The batch of ER-54.
    ER-52 (privacy; Lemma 8): Dropping kappa and the logarithms hides a condition of the
        sample budget.
        claim: eb**(-2/3)*kappa*(ell1**2*kappa*eb**(-1/3)) <= n where kappa**2*ell1**2 <= rr
            at eb = rr/n; free eb  # increments fit when rr >= kappa^2 ell1^2
        printed: eb**(-2/3)*kappa*(ell1**2*kappa*eb**(-1/3)) <= n at eb = rr/n; free eb  #
            increments fit
        about: exponents of the rate variable, which stays a symbol
        use: Check the budget.
    ER-53 (rate; B.2): T = eb^(-2/3) steps of length eb^(1/2) descend by eb^(1/3), which
        goes to 0.
        claim: 1 =O T*alpha*alpha at T = alpha**(-2); free T; growth eb = -1
        printed: 1 =O eb**(-2/3)*eb**(1/2)*eb**(1/2); free eb; growth eb = -1  # the total
            descent is of the order of the gap
        about: exponents of the rate variable, which stays a symbol
        use: T = 4 L_Phi F0/alpha^2.
    ER-54 (rate; B.2): A refresh batch of n^(2/3) is too small when privacy dominates.
        claim: rr**2/u**2 <= rr/n at u = sqrt(n*rr)  # S1 = sqrt(n rr)
        printed: rr**2/u**2 <= rr/n at u = n**(2/3)  # S1 = n^(2/3)
        about: the size of a batch, for any noise
        use: max(n^(2/3), sqrt(n rr)).
    ER-55 (rate; Theorem 2): With honest noise the exponent is 3/7, not 1/2.
        claim: rr*u**(-7/3) <= n at u = (rr/n)**(3/7)  # records of the one-pass schedule at
            alpha = (rr/n)^(3/7)
        printed: eb**(-1/3)*eb*rr**2/eb**(-2/3) <= eb where 1 <= rr, rr <= n at eb = rr/n;
            free eb; points rr = 1000, n = 1000000  # accumulated noise q alpha^2 rr^2/S2^2
            fits eb
        about: exponents of the rate variable, which stays a symbol
        use: The one-pass schedule, or a tree-structured estimator.
    ER-56 (minor; (33)-(37)): The squared norm of the noise lacks the dimension.
        printed: d*u**2 = u**2  # E ||N(0, s^2 I_d)||^2
        about: sizes of random vectors, for any dimension
        use: d sigma^2.
    ER-57 (minor; Lemma 8, (44)): The allowed movement lacks kappa.
        claim: eb/(kappa*x)**2 <= eb/x**2 where 1 <= kappa; free eb
        printed: eb/x**2 <= eb/(kappa*x)**2 where 1 <= kappa; free eb
        about: an allowed movement, for any step
        use: 1/(kappa C_Phi).
    ER-58 (rate; (37), (43)): The hidden constants make the induction factor exceed 520.
        claim: 520 <= 4/9*(3*kappa + 2)*(3 + 390*ell1)/(kappa*ell1)
        printed: 4/9*(3*kappa + 2)*(3 + 390*ell1)/(kappa*ell1) <= 1  # the induction factor
            is below 1
        about: constants of an induction
        use: Treat Theorem 2 as asymptotic only.
    ER-70 (rate; Lemmas 6, 7, 9, 10): The phase length lacks 1/alpha_h.
        claim: [t_thres] = 1  # a phase length is a number
        settings: t_thres
        use: 4 iota/(eta_h alpha_h).
    ER-71 (rate; (25)-(26), (61)-(62)): The Hessian drift is rho_phi R, not L_Phi R; the
        printed radius breaks the induction.
        claim: 3/2*eta_h*t_thres*rho_phi*R <= 1/4; free eta_h  # drift of a phase
        printed: L_Phi*eta_h*R + 1/4 <= 1/2; free eta_h; printed R  # bracket of the
            induction step with the printed radius
        use: R = alpha_h/(24 rho_phi iota).
    ER-72 (rate; (25)-(26), (61)-(62)): The estimator's error cannot be absorbed by a small
        escape step.
        printed: 4*C*sqrt(d)/delta2 <= 1 where 1 <= C, 1 <= d, delta2 <= 1  # eta_h L_Phi <=
            1 at the step that would absorb an error of size alpha
        about: constants of an escape step, for any C
        use: Do not claim it; measure lambda_min on synthetic data.
    ER-73 (rate; Lemmas 7, 10): The escape step uses alpha^2 for alpha.
        claim: [eta_h] = parameter**2/loss
        printed: [u/(2*alpha**2)] = parameter**2/loss at u = R
        use: eta_h <= 1/L_Phi.
    ER-74 (rate; Lemmas 6, 7, 9, 10): The curvature threshold is alpha_h, of order eb^(1/3),
        not eb.
        claim: alpha_h**2 = rho_phi*x**(2/3) at alpha = x**(2/3)  # threshold
        printed: alpha_h =O x at alpha = x**(2/3); growth x = -1  # alpha_h is of order eb
        use: lambda_min <= -alpha_h.
    ER-75 (minor; Lemmas 6, 9): Distances are measured from the perturbed point: the radius
        available is R - r.
        claim: r + t_thres*sqrt(D_bar) <= R; free eta_h alpha  # perturbation plus movement
            stay within R
        printed: r + t_thres*sqrt(D_bar) <= R; free eta_h alpha; printed D_bar  #
            perturbation plus movement stay within R
        use: r = R/2 and D = ((R - r)/t_thres)^2.
    ER-76 (minor; Lemma 10): Lemma 10 drops log(1/delta).
        claim: eb = sqrt(d*ell)/(n*epsilon); definition  # rate variable
        printed: eb = sqrt(d)/(n*epsilon)  # rate variable
        use: eb.
    ER-77 (rate; Lemmas 7, 10): No condition keeps eta_h L_Phi bounded.
        claim: eta_h*L_Phi <= 1
        printed: x*L_Phi <= 2 + x*g where g <= L_Phi  # any step x
        about: any step length, as the condition is missing
        use: eta_h L_Phi <= 1.
    ER-78 (rate; Lemmas 6 and 9, proofs): The lemma that bounds the number of phases is
        missing.
        open: a missing lemma
        use: X13 for the descent phase.
    ER-80 (rate; Assumptions 1 and 4): Lipschitz and strongly concave in y force a bounded
        Y.
        claim: mu*x <= 2*M where mu*x <= u, u <= 2*M  # gradients differ by u over a
            diameter x
        printed: mu*x <= 2*M  # any diameter x
        about: an assumption on the loss
        use: A bounded Y, or clipping.
    ER-81 (rate; Definition 4): With a bounded Y the value function need not have a
        Lipschitz Hessian.
        claim: Max(0, 2*x*u) <= 1 where u in [0, 1], x in [0, 1/4]  # interior
        printed: 1 <= C*x  # jump of Huber's second derivative over distance x
        about: an assumption on the loss
        use: Interior y* on the visited region.
    ER-90 (privacy; Section 5.1): y has one coordinate per record, so eb >=
        sqrt(log(1/delta)/n)/epsilon.
        claim: eb = sqrt(ell/n)/epsilon at d = n  # rate variable at d2 = n
        printed: eb =O 1/n at d = n; growth n = 1  # eb falls like 1/n
        use: Keep y_i inside record i's gradient.
    ER-91 (privacy; Section 5.1): The instance has unbounded gradients, and per-sample
        curvature only in one coordinate.
        printed: u*x <= C  # |y_i U V| stays bounded
        about: an instance of the experiment
        use: Clip; report kappa.
    ER-92 (minor; Section 5.1, experiment): Settings of the experiment are unspecified.
        open: missing settings
        use: A reproduction plan of one's own.
    ER-93 (minor; Section 5.1, experiment): A baseline that is announced is absent from the
        table.
        open: a missing experiment
        use: Run it.
    ER-94 (minor; Section 5.1, experiment): The table may reflect noise only.
        open: needs the experiment's data
        use: Report the start and a data-free control.
    ER-40 (minor; B.1): A sign in the display after (9).
        claim: u - v <= u + v  # + eta B1^2/2 is an upper bound
        printed: u + v <= u - v  # - eta B1^2/2 is an upper bound
        about: a step of the proof, for any numbers
        use: + eta B1^2/2.
    ER-41 (minor; B.1, proof): Increment and running estimate exchange names; delta for
        delta1.
        open: names
        use: Lemma 1 with the roles exchanged.
    ER-43 (minor; B.1, proof): Injected noise is called the only randomness of the ERM case.
        open: a remark in prose
        use: Sampling of S2 < n also.
    ER-59a (minor; after (35)): (9, 21, 3) becomes (3, 7, 1): a factor 3 is lost.
        claim: 3*(3*th + 6*L**2*dx) + 3*L**2*dx + 3*ga = 9*th + 21*L**2*dx + 3*ga
        printed: 3*(3*th + 6*L**2*dx) + 3*L**2*dx + 3*ga = 3*th + 7*L**2*dx + ga
        about: a step of the proof, for any numbers
        use: 9, 21, 3.
    ER-59b (minor; (36)-(37)): 7 becomes 8 only for kappa >= 34/3.
        claim: 1 <= (1 - mu/(3*(mu + L)))/(36*(1 - (1 - mu/(3*(mu + L))))) where mu*(34/3)
            <= L  # lambda^2 L^2 A/(1 - A) >= 1 at lambda = 1/(6 L), for kappa >= 34/3
        printed: 1 <= (1 - mu/(3*(mu + L)))/(36*(1 - (1 - mu/(3*(mu + L))))) where mu <= L;
            points L = 1, mu = 1  # lambda^2 L^2 A/(1 - A) >= 1 at lambda = 1/(6 L), for
            every kappa
        about: a step of the proof, for any numbers
        use: State the condition.
    ER-59c (minor; (41)): F0/lambda^2 for F0/(L lambda^2).
        claim: [F0/(L*x**2)] = loss**2/parameter**2 at x = 1/L
        printed: [F0/x**2] = loss**2/parameter**2 at x = 1/L
        about: the unit of a term of a proof
        use: F0/(L lambda^2).
    ER-59d (minor; B.2, misprints): The privacy noise of u_{i,0} is missing in (35).
        open: a missing term; its size depends on the listing chosen
        use: Add it.
    ER-59e (minor; B.2, misprints): (36) and (37) disagree on noise factors and on norms or
        squared norms.
        open: two displays that disagree
        use: Equal factors, squared norms.
    ER-59f (minor; B.2, misprints): log(1/(2 delta1)), sigma_xi and [t/q] q are misprints.
        open: misprints of symbols
        use: log(2/delta1), sigma_zeta, floor(t/q) q.
    ER-60 (minor; Theorem 2, statement): theta_t and gamma_t are defined twice, differently.
        open: two definitions
        use: (28)-(29).
    ER-61 (minor; Theorem 2, statement): d log(1/delta1) for d log(1/delta).
        open: a symbol's index
        use: delta.
    ER-62 (minor; Lemmas 2, 8): 'For all t' without a union bound.
        printed: u*x <= x; points u = 2  # failure x per event, u events
        about: a union bound over any number of events
        use: log(4 T K/delta1).
    ER-79 (minor; Lemmas 6, 9, and misprints in (19), (24), (55), (60), Theorems 2, 3,
        Remark 2): Minor: stated 1 - delta1 - delta2 where 1 - 4 delta1 - delta2 is proved.
        printed: 1 - u - v <= 1 - 4*u - v  # stated value follows from the proof
        about: a failure probability, for any parts
        use: The proved value, and a union over phases.
    """,
    checks=CHECKS,
)
