"""All patterns of participation of few rounds, and the plane of two: what other ways must meet."""

import itertools
import math
from functools import cache

import numpy as np
from scipy.special import logsumexp

SURE = {"failure_probability": 1e-6}


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
