"""Settings of the paper, as printed and as derived."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Setting

SETTINGS = (
    Setting("growth_sq", "((1 - lam**T)/(1 - lam))**2", source="Lemma F.11, squared"),
    Setting("taus", "r*T + sqrt(3*r*T*log(2) + 3*r*T*Lam)", source="Lemma F.10"),
    Setting(
        "kappa_sq",
        "2*relation**2*growth_sq*taus*(log(5/2) + Lam)/epsilon**2",
        printed="8*growth_sq*taus*(log(5/2) + Lam)/epsilon**2",
        source="Theorem F.12",
    ),
    Setting("T55", "sqrt(n)/gamma", source="Corollary 5.5", rounding="up"),
    Setting(
        "B55",
        "Min(n, Max(gamma*sqrt(n), n*sqrt(epsilon/T55)))",
        printed="gamma*sqrt(n)",
        source="Corollary 5.5",
        rounding="up",
    ),
    Setting("eta55", "Min(1, gamma**2*sqrt(n)*epsilon/sqrt(d))", source="Corollary 5.5"),
    Setting("m55", "gamma**(-4)", source="Corollary 5.5", rounding="up"),
    Setting(
        "T53",
        "Min(sqrt(n)/gamma, n*epsilon*gamma/sqrt(d))",
        printed="Min(sqrt(n)/gamma, n*epsilon*gamma**2/sqrt(d))",
        source="Corollary 5.3",
        rounding="up",
    ),
    Setting("m53", "gamma**(-4)", printed="gamma**(-6)", source="Corollary 5.3", rounding="up"),
    Setting("delta56", "1/n", printed="1/(gamma*n)", source="Corollary 5.6"),
    Setting("T56", "n**2/(gamma**2*B)", source="Corollary 5.6", rounding="up"),
    Setting("eta56", "B/n", source="Corollary 5.6"),
)
