"""Errata of the paper: lower."""

from __future__ import annotations

from dpcal.calibrate.papers.claims.language import errata_of

LOWER_ERRATA = errata_of(
    """
        EL1 (rate; Theorem 7): The outer part 4 D ||w|| of H in Theorem 7 makes the slope jump
            down: H is not convex.
            claim: 2*u <= 8*D at u = 4*D  # slope at radius 4 D, inside and outside
            printed: 2*4*D <= 4*D  # slope inside is at most the slope outside
            about: the slopes of an instance of a lower bound
            use: H = 8 D ||w|| - 16 D^2 outside the ball of radius 4 D.
        EL2 (minor; Theorem 7): F(w) - F(w*) is printed without the factor 1/2.
            claim: u*w**2 + s*w + s**2/(4*u) = u*(w + s/(2*u))**2  # F(w) - F(w*) in one
                coordinate, u = Nz L0/(2 n D)
            printed: u*w**2 + s*w + s**2/(4*u) = 2*u*(w + s/(2*u))**2  # without the factor 1/2
            about: a step of the proof, for any numbers
            use: Nz L0/(2 n D) ||w - w*||^2.
        EL3 (minor; Theorem 6): Delta of Theorem 6 lacks the exponent tau/(tau - 1).
            claim: D*Delta**((tau - 1)/tau) = L0*D*sqrt(d)/(n*epsilon)
            printed: D*Delta**((tau - 1)/tau) = L0*D*sqrt(d)/(n*epsilon) where tau in [2, 6];
                printed Delta
            use: (L0 sqrt(d)/(n epsilon))^(tau/(tau-1)).
        EL4 (minor; Theorem 6): The first argument of D in Theorem 6 is inverted.
            claim: u*v/D = L1 at D = u*v/L1  # smoothness with u = c2 Delta^..
            printed: u*v/D = L1 at D = v*L1/u
            about: the size of an instance of a lower bound
            use: c2 Delta^(1/tau) L0^((tau-2)/(tau-1))/L1.
        EL5 (minor; Theorem 6): The growth constant of the regularized function is lam, not
            2^((tau-2)/tau) lam.
            claim: (w - 1)**4 <= 4*w**4 - 16*w + 12  # tau = 4, lam = s = 1
            printed: 4*(w - 1)**4 <= 4*w**4 - 16*w + 12; points w = -1
            about: the growth of an instance of a lower bound
            use: (lam, tau)-growth.
        EL6 (minor; Theorem 6): lambda_1 contributes a factor 1/2 that c2 omits.
            claim: (2**(-(tau - 1)/tau))**(tau/(tau - 1)) = 1/2
            printed: (2**(-(tau - 1)/tau))**(tau/(tau - 1)) = 1
            about: a constant of a lower bound, for any tau
            use: The constants with that factor; both printed ones are safe.
        EL7 (minor; Theorem 6): Theorem 6 needs sqrt(d) <= n epsilon, as Theorem 7 has
            min(sqrt(d)/(n epsilon), 1).
            claim: u <= Min(u, 1) where u <= 1  # u = sqrt(d)/(n epsilon)
            printed: u <= Min(u, 1)  # u = sqrt(d)/(n epsilon), any d
            about: the range of a lower bound, for any size u
            use: State the condition, and Omega~ for the logarithm.
        EL8 (rate; Theorem 6, Corollary 1): gamma and L1 are not free: smooth and PL force
            gamma^2 L1 >= 1/2.
            claim: 1/2 <= gamma**2*L1 where G**2/(2*L1) <= Phi, Phi <= gamma**2*G**2  # descent
                and the KL bound force it
            printed: 1/2 <= gamma**2*L1  # for all gamma and L1
            about: two constants that are not free of each other
            use: Evaluate the lower bound at feasible tuples only.
        EL9 (rate; Theorem 8): The growth of the Theorem 8 instance fails beyond distance 1.
            claim: u**tau <= (1 + r)/2*u**tau + (1 - r)/2*u where u in [1/20, 9/25], tau in
                [6/5, 2], r in [0, 1/10]  # growth on the restricted ball
            printed: u**tau <= (1 + r)/2*u**tau + (1 - r)/2*u where tau in [21/20, 2], r in [0,
                1/10]; points u = 2, tau = 2, r = 1/10  # growth everywhere
            about: the growth of an instance of a lower bound
            use: |w| <= 0.36 and 1/(n epsilon) <= 0.1.
        EL10 (minor; Theorem 8): F(-a; S') is (1 - r) a, not (1 + r) a; the constant 1/4 holds
            anyway.
            claim: 1/4 <= (1/2 - (1 - exp(-epsilon))/16*(exp(1/2) - 1)/(exp(epsilon) -
                1))*exp(-(1/2)) where epsilon in [1/1000, 7/10]  # constant of Theorem 8 from an
                independent derivation
            printed: (1 - r)*u = (1 + r)*u  # value at -a
            about: the value of an instance of a lower bound
            use: Needs 1/epsilon an even integer.
    """,
)
