"""A private step in plain numpy: the same arithmetic, with no plan, no ledger and no checks.

Each function returns a function that takes one answer: sample rows, take gradients of the logistic
loss by their rank-one form, clip by norms, sum, add noise, move. Nothing here comes from dpcal.
"""

import numpy as np


class Records:
    """A logistic regression of unit rows."""

    def __init__(self, n, d, seed=0):
        rng = np.random.default_rng(seed)
        self.X = rng.standard_normal((n, d))
        self.X /= np.linalg.norm(self.X, axis=1, keepdims=True)
        self.signs = np.where(rng.random(n) < 0.5, 1.0, -1.0)
        self.lengths = np.linalg.norm(self.X, axis=1)


def slopes(w, X, signs):
    """Return the derivative of each record's loss by its score."""
    return -signs / (1 + np.exp(signs * (X @ w)))


def sampled(query, n, rng):
    """Return a function that draws the rows of an answer; None for all of them."""
    if query.composition == "disjoint":
        order, size = rng.permutation(n), query.batch_size
        starts = iter(range(10**9))
        return lambda: order[next(starts) * size % max(1, n - size + 1) :][:size]
    if query.sampler == "poisson":
        q = query.sampling_probability
        return lambda: np.flatnonzero(rng.random(n) < q)
    if query.sampler == "fixed-size":
        return lambda: rng.choice(n, query.batch_size, replace=False)
    return lambda: slice(None)


def expected(query, n):
    """Return how many records an answer is about on average."""
    return query.batch_size or (query.sampling_probability or 1.0) * n


def summed(records, at, rows, bound):
    """Return the clipped sum of gradients, or of their differences between two vectors."""
    X, signs = records.X[rows], records.signs[rows]
    change = slopes(at[0], X, signs)
    if len(at) == 2:
        change = change - slopes(at[1], X, signs)
    norms = np.abs(change) * records.lengths[rows]
    return (change * np.minimum(1.0, bound / np.maximum(norms, 1e-300))) @ X


def answered(query, records, rng):
    """Return a function that takes one answer to a query, and the step after it."""
    n, d = records.X.shape
    draw, z, bound = sampled(query, n, rng), query.noise_multiplier, query.max_norm
    size = expected(query, n)
    w, v = rng.standard_normal((2, d)) * 0.1
    last = np.zeros(d)

    def gradient():
        total = summed(records, (w,), draw(), bound) + z * bound * rng.standard_normal(d)
        return w - 1e-3 * (total / size)

    def correlated():
        nonlocal last
        fresh = rng.standard_normal(d)
        total = summed(records, (w,), draw(), bound) + z * bound * (fresh - 0.5 * last)
        last = fresh
        return w - 1e-3 * (total / size)

    def difference():
        reach = bound * np.linalg.norm(w - v) if query.proportional else bound
        total = summed(records, (w, v), draw(), reach) + z * reach * rng.standard_normal(d)
        return w - 1e-3 * (last + total / size)

    def norm():
        total = summed(records, (w,), draw(), bound)
        return np.linalg.norm(total) / size + z * bound * rng.standard_normal()

    def one_pass():
        point, mean = w, np.zeros(d)
        for row in range(query.batch_size):
            x, sign = records.X[row], records.signs[row]
            slope = -sign / (1 + np.exp(sign * (x @ point)))
            slope *= min(1.0, bound / max(abs(slope) * records.lengths[row], 1e-300))
            point = point - 1e-3 * slope * x
            mean += point
        return mean / query.batch_size + z * rng.standard_normal(d)

    if query.correlation is not None:
        return correlated
    kinds = {
        "gradient": gradient,
        "gradient difference": difference,
        "gradient norm": norm,
        "one pass": one_pass,
    }
    return kinds[query.kind]


def ranked(query, records, rng):
    """Return a function that takes one answer about the saddle problem of an area under a curve."""
    n, d = records.X.shape
    draw, z, bound = sampled(query, n, rng), query.noise_multiplier, query.max_norm
    size, share = expected(query, n), 0.5
    positive = records.signs > 0
    w, v = rng.standard_normal((2, d + 3)) * 0.1

    def factors(at, X, there):
        """Slopes in the score, and in a, b and y."""
        scores, (a, b, y) = X @ at[:d], at[-3:]
        away = np.where(there, (1 - share) * (scores - a), share * (scores - b))
        lean = np.where(there, -(1 - share), share)
        others = np.stack(
            [np.where(there, -2 * away, 0.0), np.where(there, 0.0, -2 * away), 2 * lean * scores]
        )
        return 2 * away + 2 * (1 + y) * lean, others

    def step():
        rows = draw()
        X, there = records.X[rows], positive[rows]
        reach = bound
        slope, others = factors(w, X, there)
        if query.kind == "gradient difference":
            reach = bound * np.linalg.norm(w - v) if query.proportional else bound
            before, others_before = factors(v, X, there)
            slope, others = slope - before, others - others_before
        norms = np.sqrt((slope * records.lengths[rows]) ** 2 + (others**2).sum(axis=0))
        shrink = np.minimum(1.0, reach / np.maximum(norms, 1e-300))
        total = np.concatenate([(slope * shrink) @ X, others @ shrink])
        return w - 1e-3 * (total + z * reach * rng.standard_normal(d + 3)) / size

    return step
