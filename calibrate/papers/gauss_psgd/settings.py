"""Symbols of the paper, and its settings as printed and as corrected."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import Quantity, auxiliary, settings_of

GRADIENT = {"loss": 1, "parameter": -1}
QUANTITIES = (
    Quantity("n", "records per client", range="[1, oo)", whole=True),
    Quantity("m", "clients", range="[1, oo)", whole=True),
    Quantity("d", "dimension", range="[1, oo)", whole=True),
    Quantity("epsilon", "target epsilon"),
    Quantity("G", "Lipschitz constant", GRADIENT),
    Quantity("M", "smoothness constant", {"loss": 1, "parameter": -2}),
    Quantity("rho", "Lipschitz constant of the Hessian", {"loss": 1, "parameter": -3}),
    Quantity("U", "initial gap", {"loss": 1}),
    Quantity("psi", "size of the oracle's error", GRADIENT),
    Quantity("r", "noise per coordinate", GRADIENT),
    Quantity("kappa", "drift after which the oracle refreshes", {"parameter": 2}),
    Quantity("mu", "logarithmic factor", range="[1, oo)"),
    Quantity("s", "absolute constant"),
    Quantity("C", "absolute constant"),
    Quantity("omega", "failure probability", range="(0, 1)"),
    Quantity("T", "oracle calls", range="[1, oo)", whole=True),
    *auxiliary("A L Lam N c g t u v w x z"),
)

SETTINGS = settings_of(
    """
    iota: s*mu  # (5)
    chi: 4*sqrt(C)*s**(3/2)*mu**(5/2)*psi; printed 4*sqrt(C)*s*mu**2*psi  # (5)
    alpha: 4*chi  # (5)
    eta: sqrt(rho*alpha)/(M**2*iota**3); printed sqrt(rho*alpha)/(M**2*iota**2)  # (5)
    Gamma: iota/(s*eta*sqrt(rho*alpha)); up  # (5)
    R: iota**(-3/2)*sqrt(alpha/rho)  # (5)
    Phi: s/(8*iota**4)*sqrt(alpha**3/rho); printed s/(8*iota**3)*sqrt(alpha**3/rho)  # (5)
    saddles: U/Phi; printed 8*iota**3*U/s*sqrt(rho/chi**3); up  # (77)
    Q: log(1/omega)/log(8/7); printed 26/5*log(1/omega); up  # Lemma 2
    b1: n*kappa/(2*U*eta); down  # Theorem 2
    b2: n*eta*chi**2/(2*U); down  # Theorem 2
    e1: (G**2*U*sqrt(rho)/(m*M**2*n*kappa))**(2/3)  # Theorem 3
    e2: G**2*d*U**2*rho/(m*M**4*n**2*epsilon**2*kappa**2)  # Theorem 3
    e3: (M**4*U*kappa/(m*n*sqrt(rho)))**(2/9)  # Theorem 3
    e4: (M**6*d*U**2*kappa/(m*rho*n**2*epsilon**2))**(1/7)  # Theorem 3
    k13: G**(3/2)*sqrt(U*rho)/(M**(5/2)*sqrt(m*n))  # Theorem 3
    k24: G**(14/15)*d**(2/5)*U**(4/5)*rho**(8/15)/(M**(34/15)*(sqrt(m)*n*epsilon)**(4/5))  # Theorem
        3
    k14:
        G**(28/17)*U**(8/17)*rho**(10/17)*epsilon**(6/17)/(M**(46/17)*d**(3/17)*m**(11/17)*n**(8/17))
        # mixed regime, missing in the paper
    k23: G**(9/10)*U**(4/5)*sqrt(rho)*d**(9/20)/(M**(11/5)*epsilon**(9/10)*m**(7/20)*n**(4/5))  #
        mixed regime
    a13: (G*U*M/(m*n))**(1/3)  # Theorem 3
    a24: G**(2/15)*U**(2/5)*M**(8/15)*rho**(-1/15)*(sqrt(d)/(sqrt(m)*n*epsilon))**(2/5); printed
        G**(2/15)*U**(2/5)*M**(8/15)*rho**(-1/15)*(sqrt(d)/(m*n*epsilon))**(2/5)  # Theorem 3; the
        introduction prints m n epsilon
    a14: (G**2*M**4*U**3*d/(sqrt(rho)*m**2*n**3*epsilon**2))**(2/17)  # mixed regime, missing in the
        paper
    a23: (G*M**2*U**2)**(1/5)*d**(1/10)/(epsilon**(1/5)*m**(3/10)*n**(2/5))  # mixed regime
    """
)
