"""Errata of the paper: escape."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

ESCAPE_ERRATA = errata_of(
    """
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
    """,
)
