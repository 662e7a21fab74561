"""Integrals in balls, which hold to double precision; of allocation; and sums over all outcomes.

The values of allocation and of shuffles by other programs are in ``TABLES``, and points at which
tests ask what they know in many digits are in ``POINTS``.

Outcomes are those of mechanisms with few answers, and patterns of participation in a run with
correlated noise.
"""

import itertools
import json
import math
import tomllib
from dataclasses import replace
from functools import cache, reduce

import mpmath
import numpy as np
import pytest
from _tree import DATA
from flint import acb, arb, ctx
from scipy.special import log_ndtr, logsumexp, ndtr

from dpcal.accountants.certificates.enclosure import enclose
from dpcal.accountants.certificates.search.contour import choose_contour
from dpcal.accountants.characteristic import log_delta_bounds
from dpcal.accountants.losses.base import OutOfReach

POINTS = tomllib.loads((DATA / "points.toml").read_text(encoding="utf-8"))
TABLES = json.loads((DATA / "allocation_and_shuffle.json").read_text())


def each_row(rows, is_quick):
    """Ask rows of a table one by one: those that are not quick in studies alone."""
    marked = [pytest.param(row, marks=[pytest.mark.study] * (not is_quick(row))) for row in rows]
    return pytest.mark.parametrize(
        "row", marked, ids=lambda row: "{sigma:g}-{batches}-{epochs}".format(**row)
    )


def transform(loss, z, log_unit=0.0):
    """Return M(z) / exp(log_unit), Im z >= 0, from points of a loss on its shifted line."""
    points = loss.points(max(8.0, z.real), shifted=True)
    return np.exp(points.log_masses + z * points.values - log_unit).sum()


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


def sampled_moment(q, sigma, direction, z):
    """Return log M(z) of the loss of a Gaussian on a Poisson sample, in a ball."""
    with ctx.workprec(160):
        exponent = acb(z) + 1 if direction == "remove" else -acb(z)

        def integrand(x, analytic):
            excess = arb(q) * ((2 * x - 1) / (2 * arb(sigma) ** 2)).expm1()
            return density(x, sigma) * (
                power(1 + excess, exponent, analytic) - 1 - exponent * excess
            )

        centers = (0.0, 1.0, float(exponent.real))
        ends = sorted(m + 14 * k * sigma for m in centers for k in (-1, 0, 1))
        return (1 + integral(integrand, ends, bits=160)).log()


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


def gaussian_delta(mu, epsilon):
    """Return delta of one Gaussian answer at distance mu (Balle and Wang 2018, Theorem 8)."""
    at = np.divide(epsilon, mu)
    return ndtr(mu / 2 - at) - np.exp(epsilon + log_ndtr(-mu / 2 - at))


def exact_gaussian_delta(mu, epsilon):
    """Return it at 60 digits."""
    with mpmath.workdps(60):
        near, far = (mpmath.mpf(epsilon) / mu + side * mpmath.mpf(mu) / 2 for side in (-1, 1))
        return mpmath.ncdf(-near) - mpmath.exp(epsilon) * mpmath.ncdf(-far)


def divergence(p, q, epsilon):
    """Return the divergence of order exp(epsilon) of two laws on the same outcomes."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def worse(p, q, epsilon):
    """Return the larger divergence of two laws, in either order."""
    return max(divergence(p, q, epsilon), divergence(q, p, epsilon))


def product(*pairs):
    """Return the pair of laws of independent answers, one a pair."""
    return [reduce(np.multiply.outer, laws) for laws in zip(*pairs, strict=True)]


def response(epsilon, delta=0.0):
    """Return the worst (epsilon, delta)-private pair, as two laws on four outcomes."""
    high = (1 - delta) / (1 + math.exp(-epsilon))
    p = np.array([delta, high, 1 - delta - high, 0.0])
    return p, p[::-1]


def masses(loss):
    """Return the masses of P and Q of a loss with finitely many values."""
    q = np.exp(np.array(loss.log_reference))
    return q * np.exp(loss.values), q


def holds(found, truth, slack=1e-9):
    """Return whether truths lie between both ends of an answer, but for their own rounding."""
    above, below = truth <= found.upper * (1 + slack), found.lower <= truth * (1 + slack)
    return bool(np.all(above) and np.all(below))


def toeplitz(column):
    """Return the lower triangular matrix with this first column."""
    lag = np.subtract.outer(np.arange(len(column)), np.arange(len(column)))
    return np.where(lag >= 0, np.asarray(column)[np.abs(lag)], 0.0)


@cache
def patterns(rounds):
    """Return every pattern of participation, one a row."""
    return np.array(list(itertools.product((0.0, 1.0), repeat=rounds)))


def independent(rates):
    """Return log-probabilities of all patterns of rounds that are independent."""
    with np.errstate(divide="ignore"):
        logs = np.where(patterns(len(rates)) > 0, np.log(rates), np.log1p(-np.asarray(rates)))
    return logs.sum(axis=1)


def log_ratios(C, sigma, x, log_chances):
    """Return log L of observations, one a column, as a sum over all patterns."""
    means = patterns(C.shape[1]) @ C.T
    exponents = (x.T @ means.T - 0.5 * (means**2).sum(axis=1)) / sigma**2
    return logsumexp(exponents + log_chances, axis=1)


@cache
def _plane(C, sigma, rate):
    """Return logarithms of Q's masses on a grid of two observations, and of L."""
    x = np.linspace(-12, 15, 901) * sigma
    grid = np.stack([axis.ravel() for axis in np.meshgrid(x, x, indexing="ij")])
    log_q = -(grid**2).sum(axis=0) / (2 * sigma**2)
    log_q += 2 * math.log((x[1] - x[0]) / (sigma * math.sqrt(2 * math.pi)))
    return log_q, log_ratios(np.array(C), sigma, grid, independent([rate, rate]))


def plane(C, sigma, rate):
    """Return logarithms of the masses of two rounds' noise on a grid, and of likelihood ratios."""
    return _plane(tuple(map(tuple, C)), sigma, rate)


def two_rounds(C, sigma, rate, epsilon):
    """Return delta of removing and of adding a record of two rounds, by the trapezoid rule."""
    log_q, log_l = plane(C, sigma, rate)
    removed = np.maximum(np.exp(log_q + log_l) - np.exp(epsilon + log_q), 0.0)
    added = np.maximum(np.exp(log_q) - np.exp(epsilon + log_q + log_l), 0.0)
    return float(removed.sum()), float(added.sum())


def in_balls(direction, epsilon, most=4e5, width=1e-18):
    """Return bounds on log delta in balls of 256 bits; None beyond so many terms."""
    about = log_delta_bounds(direction, epsilon).upper
    try:
        chosen = choose_contour(direction.parts, epsilon, log_delta=about, width=width)
    except OutOfReach:
        return None
    points = sum(lines[0].points if lines else 1 for lines in chosen.lines)
    if (chosen.nodes + 100) * points > most:
        return None
    lower, upper = enclose(replace(chosen, bits=256), direction.parts, epsilon)
    with ctx.workprec(256):
        return arb(lower).log().lower(), arb(upper).log().upper()
