"""How far do two runs with one noise move apart if one record is replaced? KANs, and their bound.

    python -m benchmarks.problems.kan_stability [--widths M ...] [--records R]

Wang et al. 2026, Lemmas C.16 and C.21 and Theorem C.22: two runs of clipped SGD with correlated
noise share start, batches and noise, and train on tables that differ in record i. Their distance D
grows by no more than

    D_t+1 <= (1 + a eta (L_B(W_t) + L_B'(W'_t))) D_t + [i in B] (eta b / B) (l_i + l'_i)

where b bounds the gradient of the score by the weights, and a / 2 the norm of its Hessian. The
paper's a and b hold with high probability over the start and have open constants; here they are
bounds of the network itself, for any weights. So each step can be checked, and so can the sum

    (1/n) sum_i E D_T <= (2 e eta b / n) sum_t E L_S(W_t)    where the growth factors sum to 1.

Each row is a width: the largest ratio of a distance to its bound in one step; the sum of the growth
factors; mean distances over replaced records at the end, of the recursion, and of the theorem.
"""

import argparse
import math

import numpy as np


def constants(network):
    """Return a and b: for any weights and any record of the network's table.

    The derivatives of a hidden unit's function s(tanh(u)) are largest on a fine grid; between its
    points they are larger by less than the factor 1.01.
    """
    pieces, knots = network._pieces, network._knots
    first = second = np.zeros(network.width)
    for place in range(network.intervals):
        low, high = knots[place + 3], knots[place + 4]
        for t in np.linspace(low, high, 400):
            a, b, c, _ = pieces[:, place]
            x, slope = t - low, 1 - t * t
            by_t, by_tt = (3 * a * x + 2 * b) * x + c, 6 * a * x + 2 * b
            first = np.maximum(first, np.abs(by_t * slope))
            second = np.maximum(second, np.abs(by_tt * slope**2 - 2 * t * slope * by_t))
    longest = network._norms.max() / math.sqrt(network._columns)
    root = math.sqrt(network.width)
    gradient = 1.01 * longest * np.linalg.norm(first) / root
    return 2 * 1.01 * longest**2 * second.max() / root, gradient


def table(n, d, seed):
    """Return records in [-1, 1]^d, and whether a sum of waves is positive."""
    X = np.random.default_rng(seed).uniform(-1, 1, (n, d))
    return X, np.sin(3 * X).sum(axis=1) > 0


def coupled(
    width, *, n=400, d=4, steps=60, batch=20, rate=0.5, decay=0.5, multiplier=1.0, record=0, seed=0
):
    """Return distances, bounds on each from the one before, growth factors, additions, losses.

    All have the shape (steps,); the first is the distance after the first step. ``multiplier`` is
    the noise's, for a clipping norm of b, at which nothing is clipped.
    """
    from dpcal.accountants.matrix import LambdaCGD
    from dpcal.optim import KAN, NoiseStream

    X, y = table(n + 1, d, seed)
    ours, theirs = np.arange(n), np.arange(n)
    theirs[record] = n
    networks = [
        KAN(X[rows], y[rows], width=width, intervals=4, classes=[False, True])
        for rows in (ours, theirs)
    ]
    bounds = [constants(network) for network in networks]
    a, b = (max(pair) for pair in zip(*bounds, strict=True))
    noise = NoiseStream(LambdaCGD(steps, decay), dimension=networks[0].dimension, seed=seed)
    rng = np.random.default_rng(seed + 10**6)
    weights = [networks[0].initial(seed=seed)] * 2
    everyone = np.arange(n)
    found = []
    for _ in range(steps):
        rows = np.sort(rng.choice(n, batch, replace=False))
        losses = [
            network.record_losses(w, rows) for network, w in zip(networks, weights, strict=True)
        ]
        growth = a * rate * sum(each.mean() for each in losses)
        own = rows == record
        added = rate * b / batch * sum(each[own].sum() for each in losses)
        distance = float(np.linalg.norm(weights[0] - weights[1]))
        risk = float(networks[0].record_losses(weights[0], everyone).mean())
        shared = multiplier * b * next(noise)
        weights = [
            w - rate / batch * (network.clipped_sum(w, rows, b) + shared)
            for network, w in zip(networks, weights, strict=True)
        ]
        after = float(np.linalg.norm(weights[0] - weights[1]))
        found.append([after, (1 + growth) * distance + added, growth, added, risk])
    return np.array(found).T, b


def summary(width, *, records=8, rate=0.5, n=400, **options):
    """Return the worst step, growth, and mean distances: at the end, of the recursion, of C.22."""
    rows = []
    for seed in range(records):
        (after, bound, growth, added, risk), b = coupled(
            width, n=n, rate=rate, record=seed, seed=seed, **options
        )
        moved = bound > 0
        worst = float((after[moved] / bound[moved]).max())
        recursion = 0.0
        for factor, plus in zip(growth, added, strict=True):
            recursion = (1 + factor) * recursion + plus
        theorem = 2 * math.e * rate * b / n * risk.sum()
        rows.append([worst, growth.sum(), after[-1], recursion, theorem])
    table = np.array(rows)
    return [table[:, 0].max(), *table[:, 1:].mean(axis=0)]


def main():
    parser = argparse.ArgumentParser(description="Coupled runs of KANs, and their bound.")
    parser.add_argument("--widths", type=int, nargs="+", default=[64, 512])
    parser.add_argument("--records", type=int, default=8)
    options = parser.parse_args()
    print("width  rate  worst step / bound  sum of growth  distance  recursion  Theorem C.22")
    for width in options.widths:
        for rate in (0.5, 0.02, 0.005):
            worst, growth, distance, recursion, theorem = summary(
                width, records=options.records, rate=rate
            )
            ends = f"{distance:9.4f} {recursion:10.3g} {theorem:13.4f}"
            print(f"{width:6} {rate:5} {worst:19.3f} {growth:14.2f} {ends}", flush=True)


if __name__ == "__main__":
    main()
