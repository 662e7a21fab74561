"""Settings of the paper, as printed and as derived."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Setting

SETTINGS = (
    Setting("eb", "sqrt(d*ell)/(n*epsilon)", source="rate variable"),
    Setting("T1", "((L*F0)**(1/4)/(sqrt(M)*eb))**(4/3)", source="Lemma 5"),
    Setting(
        "T",
        "Max(T1, 1/eb)",
        printed="Max(T1, n*epsilon/(sqrt(d)*ell))",
        source="Lemma 5",
        rounding="up",
    ),
    Setting(
        "q",
        "1/(T*eb**2)",
        printed="n**2*epsilon**2/(L**2*T*d*ell)",
        source="Lemma 5",
        rounding="down",
    ),
    Setting("S1", "n", source="Theorem 1", rounding="up"),
    Setting(
        "S2",
        "Min(n, Max(1/(T*eb**2), n/sqrt(T*K)))",
        printed="Max((M*n*epsilon/sqrt(F0*L*d*ell))**(2/3), (M*n*d*ell)**(1/3)/(L*F0)**(1/6))",
        source="Theorem 1",
        rounding="up",
    ),
    Setting("eta", "alpha/(2*L_Phi)", printed="1/(2*L)", source="Algorithm 2, step length"),
    Setting("B1_sq", "M**2*T*eb**2/q", printed="T*eb**2/q", source="Lemma 5, proof"),
    Setting("B2_sq", "L**2*T*eb**2", printed="T**2*eb**4", source="Lemma 5, proof"),
    Setting(
        "sigma_v",
        "multiplier*2*C1/S1",
        printed="C1*sqrt(ell)/epsilon*Max(1/S1, sqrt(T)/(sqrt(q)*n))",
        source="Algorithm 3, line 1",
    ),
    Setting(
        "sigma_u",
        "multiplier*2*C2/S2",
        printed="C2*sqrt(ell)/epsilon*Max(1/S2, sqrt(T)/n)",
        source="Algorithm 3, line 2",
    ),
    Setting("alpha_h", "sqrt(rho_phi*alpha)", source="Definition 4"),
    Setting("R", "alpha_h/(24*rho_phi*iota)", printed="1/(2*L_Phi*eta_h)", source="Lemma 7"),
    Setting("r", "R/2", printed="R", source="Lemma 6"),
    Setting("eta_h", "1/L_Phi", printed="r0/(2*alpha**2)", source="escape step, at its cap"),
    Setting("r0", "delta2*r/sqrt(d)", source="Lemma 6"),
    Setting(
        "t_thres", "4*iota/(eta_h*alpha_h)", printed="2*iota/eta_h", source="Lemma 6", rounding="up"
    ),
    Setting("D_bar", "((R - r)/t_thres)**2", printed="(R/t_thres)**2", source="Lemma 6"),
    Setting("T_pop", "4*L_Phi*F0/alpha**2", source="one-pass schedule", rounding="up"),
    Setting("S1_pop", "rr/alpha", source="one-pass schedule, privacy dominates", rounding="up"),
    Setting("q_pop", "(S1_pop/rr)**(2/3)", source="one-pass schedule", rounding="down"),
    Setting("S2_pop", "rr*sqrt(q_pop)", source="one-pass schedule", rounding="up"),
)
