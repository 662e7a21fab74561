"""Settings of the paper, as printed and as derived."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Setting

SETTINGS = (
    Setting("abar", "sqrt(d*Lam)/(n*epsilon)", source="rate variable"),
    Setting(
        "T1",
        "(F0*L1)**(1/3)*L0**(-2*(1/3))*abar**(-4*(1/3))",
        printed="((F0*L1)**(1/4)/sqrt(L0*abar))**(4*(1/3))",
        source="Theorem 9, first branch of T",
    ),
    Setting("T", "Max(T1, 1/abar)", source="Theorem 9", rounding="up"),
    Setting(
        "q",
        "1/(2*T*abar**2)",
        printed="n**2*epsilon**2/(L1**2*T*d*Lam)",
        source="Theorem 9",
        rounding="down",
    ),
    Setting("b1", "n", source="Theorem 9", rounding="up"),
    Setting(
        "b2",
        "Min(n, Max(1/(T*abar**2), n/sqrt(T)))",
        printed="Max((L0*n*epsilon/sqrt(F0*L1*d*Lam))**(2*(1/3)), "
        "(L0*n*d*Lam)**(1/3)/((L1*F0)**(1/6)*epsilon**(2*(1/3))))",
        source="Theorem 9",
        rounding="up",
    ),
    Setting("eta", "1/(2*L1)", source="Theorem 9"),
    Setting(
        "sigma1",
        "L0/b1*kappa*sqrt(Max(1, b1**2*T/(q*n**2)))",
        printed="L0*kappa*Max(1/b1, sqrt(T)/sqrt(q*n))",
        source="Algorithm 1, line 2",
    ),
    Setting("sigma2", "L1/b2*kappa*Max(1, b2*sqrt(T)/n)", source="Algorithm 1, line 2"),
    Setting("cap2", "2*L0/b2*kappa*Max(1, b2*sqrt(T)/n)", source="Algorithm 1, line 2"),
    Setting("tau1_sq", "d*sigma1**2", printed="L0**2/b1 + L0**2*sigma1**2", source="Section 3.1"),
    Setting(
        "tau2_sq", "L1**2/b2 + d*sigma2**2", printed="L1**2/b2**2 + d*sigma2**2", source="Thm 9"
    ),
    Setting(
        "b",
        "sqrt(Max(n**(4*(1/3)), n*sqrt(d + 1)/epsilon))",
        printed="Max(n**(2*(1/3)), sqrt(n*d**(1/4))/sqrt(epsilon))",
        source="Theorem 4",
    ),
    Setting(
        "alpha",
        "L0*sqrt(2*Max(1/b, (d + 1)/(b*epsilon)**2))",
        printed="L0*sqrt(2*Max(1/b, d/(b*epsilon)**2))",
        source="Lemma 5, as an equality",
    ),
    Setting(
        "beta",
        "alpha*sqrt(Min(1, b*epsilon**2/(d + 1)))",
        printed="alpha*Min(1, sqrt(b*epsilon)/sqrt(d))",
        source="Theorem 4",
    ),
    Setting(
        "lam",
        "L0**2/(L1*W**2)*Min(1/n, d/(n*epsilon)**2)",
        printed="L0**2/(L1*W)*Min(1/n, d/(n*epsilon)**2)",
        source="Theorem 5.1",
    ),
    Setting(
        "sigma_t",
        "8*L0*rounds*sqrt(K_t*Lam)/(n*epsilon)",
        printed="8*L0*K_t*sqrt(Lam)/(n*epsilon)",
        source="Theorem 5.1",
    ),
)
