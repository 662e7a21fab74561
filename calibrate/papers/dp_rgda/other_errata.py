"""Errata of the paper: other."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

OTHER_ERRATA = errata_of(
    """
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
)
