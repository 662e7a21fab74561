"""Integrals along the real line in balls: what is returned holds to double precision."""

import itertools

from flint import acb, arb, ctx

__all__ = ["density", "integral", "power"]


def density(x, scale=1.0):
    """Return the density of a normal law of mean 0 and this standard deviation."""
    scale = arb(scale)
    return (-((x / scale) ** 2) / 2).exp() / (scale * (2 * arb.pi()).sqrt())


def power(base, exponent, analytic):
    """Return a power by the principal logarithm, not finite where that is not analytic."""
    return (base.log(analytic=analytic) * exponent).exp()


def integral(integrand, ends, bits=128):
    """Integrate ``integrand(x, analytic)`` from each end to the next, and add up.

    Returns a ball, accurate to 50 bits of its size.
    """
    with ctx.workprec(bits):
        pieces = (
            acb.integral(integrand, acb(low), acb(high)) for low, high in itertools.pairwise(ends)
        )
        total = sum(pieces, acb(0))
        assert total.rel_accuracy_bits() > 50
        return total
