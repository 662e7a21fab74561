"""Integrals along the real line in balls, which hold to double precision, and of allocation."""

import itertools
import math

import numpy as np
from flint import acb, arb, ctx
from scipy.special import ndtr

__all__ = ["allocation", "density", "integral", "power"]


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


def allocation(batches, epsilon, points=1501):
    """Return deltas of removing and adding a record that is in one of a few batches.

    ``batches`` are pairs of a noise multiplier and a probability. The first batch is integrated in
    closed form, the answers of all others are summed over a grid.
    """
    (sigma, p), *others = batches
    x = np.linspace(-9, 9 + 1 / min(rho for rho, _ in others), points)
    density = np.exp(-x * x / 2) / math.sqrt(2 * math.pi) * (x[1] - x[0])
    weights, rest = np.ones(1), np.zeros(1)
    for rho, q in others:
        rest = np.add.outer(rest, q * np.exp(x / rho - 1 / (2 * rho * rho))).ravel()
        weights = np.multiply.outer(weights, density).ravel()
    t, k = 1 / sigma, math.exp(epsilon)

    def places(strike):
        level = np.where(strike > 0, strike, 1.0)
        return level, np.log(level / p) / t + t / 2

    level, d = places(k - rest)
    call = np.where(k > rest, p * ndtr(t - d) - level * ndtr(-d), p - (k - rest))
    level, d = places(1 / k - rest)
    put = np.where(1 / k > rest, level * ndtr(d) - p * ndtr(d - t), 0.0)
    return {"remove": float(weights @ call), "add": k * float(weights @ put)}
