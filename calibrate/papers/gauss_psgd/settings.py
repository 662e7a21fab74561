"""Settings of the paper, as printed and as derived."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Setting

SETTINGS = (
    Setting("iota", "s*mu", source="(5)"),
    Setting(
        "chi", "4*sqrt(C)*s**(3/2)*mu**(5/2)*psi", printed="4*sqrt(C)*s*mu**2*psi", source="(5)"
    ),
    Setting("alpha", "4*chi", source="(5)"),
    Setting(
        "eta",
        "sqrt(rho*alpha)/(M**2*iota**3)",
        printed="sqrt(rho*alpha)/(M**2*iota**2)",
        source="(5)",
    ),
    Setting("Gamma", "iota/(s*eta*sqrt(rho*alpha))", source="(5)", rounding="up"),
    Setting("R", "iota**(-3/2)*sqrt(alpha/rho)", source="(5)"),
    Setting(
        "Phi",
        "s/(8*iota**4)*sqrt(alpha**3/rho)",
        printed="s/(8*iota**3)*sqrt(alpha**3/rho)",
        source="(5)",
    ),
    Setting(
        "saddles", "U/Phi", printed="8*iota**3*U/s*sqrt(rho/chi**3)", source="(77)", rounding="up"
    ),
    Setting(
        "Q", "log(1/omega)/log(8/7)", printed="26/5*log(1/omega)", source="Lemma 2", rounding="up"
    ),
    Setting("b1", "n*kappa/(2*U*eta)", source="Theorem 2", rounding="down"),
    Setting("b2", "n*eta*chi**2/(2*U)", source="Theorem 2", rounding="down"),
    Setting("e1", "(G**2*U*sqrt(rho)/(m*M**2*n*kappa))**(2/3)", source="Theorem 3"),
    Setting("e2", "G**2*d*U**2*rho/(m*M**4*n**2*epsilon**2*kappa**2)", source="Theorem 3"),
    Setting("e3", "(M**4*U*kappa/(m*n*sqrt(rho)))**(2/9)", source="Theorem 3"),
    Setting("e4", "(M**6*d*U**2*kappa/(m*rho*n**2*epsilon**2))**(1/7)", source="Theorem 3"),
    Setting("k13", "G**(3/2)*sqrt(U*rho)/(M**(5/2)*sqrt(m*n))", source="Theorem 3"),
    Setting(
        "k24",
        "G**(14/15)*d**(2/5)*U**(4/5)*rho**(8/15)/(M**(34/15)*(sqrt(m)*n*epsilon)**(4/5))",
        source="Theorem 3",
    ),
    Setting(
        "k14",
        "G**(28/17)*U**(8/17)*rho**(10/17)*epsilon**(6/17)/(M**(46/17)*d**(3/17)*m**(11/17)*"
        "n**(8/17))",
        source="mixed regime, missing in the paper",
    ),
    Setting(
        "k23",
        "G**(9/10)*U**(4/5)*sqrt(rho)*d**(9/20)/(M**(11/5)*epsilon**(9/10)*m**(7/20)*n**(4/5))",
        source="mixed regime",
    ),
    Setting("a13", "(G*U*M/(m*n))**(1/3)", source="Theorem 3"),
    Setting(
        "a24",
        "G**(2/15)*U**(2/5)*M**(8/15)*rho**(-1/15)*(sqrt(d)/(sqrt(m)*n*epsilon))**(2/5)",
        printed="G**(2/15)*U**(2/5)*M**(8/15)*rho**(-1/15)*(sqrt(d)/(m*n*epsilon))**(2/5)",
        source="Theorem 3; the introduction prints m n epsilon",
    ),
    Setting(
        "a14",
        "(G**2*M**4*U**3*d/(sqrt(rho)*m**2*n**3*epsilon**2))**(2/17)",
        source="mixed regime, missing in the paper",
    ),
    Setting(
        "a23",
        "(G*M**2*U**2)**(1/5)*d**(1/10)/(epsilon**(1/5)*m**(3/10)*n**(2/5))",
        source="mixed regime",
    ),
)
