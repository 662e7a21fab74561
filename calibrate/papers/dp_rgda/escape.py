"""Claims of the paper: escape."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import claims_of

ESCAPE = (
    *claims_of(
        "Lemma 7, coupled runs",
        """
        X14: r0*sqrt(d)/delta2 = R/2  # coupling gap and radius
        """,
    ),
    *claims_of(
        "Lemmas 6 and 7, phase of an escape",
        """
        X05: 3/2*eta_h*t_thres*rho_phi*R = 1/4; free eta_h  # Hessian drift of a phase
        X11: D_bar = (eta_h*alpha/(192*iota**2))**2; free eta_h  # allowed movement of a phase
        X11.size: D_bar*t_thres**2 = (R - r)**2; definition; free R r t_thres
            # movement that stays within the radius
        X15.cap: eta_h*L_Phi = 1; definition  # escape step at its cap
        X16: t_thres*eta_h*alpha_h = 4*iota; free eta_h  # phase length
        X17: x/2 <= log(1 + x) where x in [1/100, 1]  # log(1 + x) >= x/2, growth of a phase
        """,
    ),
    *claims_of(
        "Definition 4, curvature threshold",
        """
        X10: alpha_h = sqrt(rho_phi)*sqrt(alpha); definition  # curvature threshold
        """,
    ),
    *claims_of(
        "Lemma 6, descent against escapes",
        """
        X12: F0*sqrt(rho)/alpha**(3/2)*(L/sqrt(rho*alpha)) = F0*L/alpha**2
            # escapes times length has the order of the descent
        X13: eta*(alpha - alpha/4) - L_Phi*eta**2/2 = eta*alpha/2  # descent of a normalized step
        """,
    ),
    *claims_of(
        "(13), volume ratio",
        """
        X08: gamma(1 + 1/2*D)/(sqrt(pi)*gamma(1/2 + 1/2*D)*sqrt(D)) <= 1 where D in [1, 64]
            # volume ratio of neighboring dimensions, d up to 64
        """,
    ),
    *claims_of(
        "Lemmas 6 and 7, units",
        """
        X18.R: [R] = parameter  # escape radius
        X18.D: [D_bar] = parameter**2  # allowed squared movement
        """,
    ),
)
