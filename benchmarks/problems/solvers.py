"""Do other private solvers of linear models beat DP-SGD's rule? A trial of four, at one price.

``python -m benchmarks solvers [--seeds 4] [--held-out]`` takes the twelve problems of ``untuned``
and prints the excess of the training loss as a multiple of the rule's, and the same with the
statistical error added to both ("population"). The rule is that of :class:`dpcal.calibrate.defaults
.Defaults`: 120 to 1,000 full batches and a mean of iterates with growing weights, told the typical
norm of rows and the largest, as ``dpsgd`` of ``untuned``.
Cells are for the best setting of each way in hindsight, of two to four; geometric means, and shares
of cells below 1, are for each setting.

- ``statistics``: ridge from noisy second moments, :class:`dpcal.estimators.LinearRegression`; rows
  of at most 1.3 times the typical norm, or of the largest;
- ``perturbed``: the exact minimiser of the logistic loss plus ``<b, w> + Lam ||w||^2 / 2``, with
  normal b and Lam / n on the mean loss. A record's Hessian has rank one and its gradient one
  direction, so that the privacy loss is at most log(1 + beta / Lam) + mu |g| + mu^2 / 2 with normal
  g, and delta at most twice that of a Gaussian release at what is left of epsilon (Redberg, Koskela
  and Wang 2023); a quarter or a half of epsilon for Lam, and both norms of rows;
- ``scaled``: gradient steps along a tenth of the budget's noisy second moments, inverted above
  their noise; linear averaging, 120 passes, three step sizes;
- ``newton``: 4 or 8 Newton steps with noisy Hessians, for half of the squared budget, inverted
  above their noise.

The relation is that of a blanked record, delta is 1e-6. Noise of the last three is numpy's: the
trial is about what they reach, and none of them is a part of the package.
"""

import itertools
import math
import warnings

import numpy as np
from scipy.optimize import brentq, minimize
from scipy.special import expit, ndtr

from benchmarks.problems.untuned import (
    DELTA,
    RELATION,
    by_dpsgd,
    held_out,
    problems,
    with_options,
)
from dpcal import estimators
from dpcal.calibrate.plans.common import single_release

# Rows are at most so many times the typical norm, where they are shortened.
SHORTENED = 1.3
# Passes of gradient steps along noisy moments, and the share of the squared budget of the moments.
PASSES, SHARE = 120, 0.1
# Noisy eigenvalues below so many deviations of an entry's noise, times sqrt(d), count as these.
FLOOR = 2.0


class Model:
    """A problem whose rows are shortened, with sums that a private solver asks for."""

    def __init__(self, problem, norm):
        norms = np.linalg.norm(problem.X, axis=1)
        self.X = problem.X * np.minimum(1, norm / np.maximum(norms, 1e-300))[:, np.newaxis]
        self.norms, self.norm, self.problem = np.minimum(norms, norm), norm, problem
        self.n, self.d = self.X.shape
        self.curvature = 0.25 if problem.loss == "logistic" else 1.0

    def slopes(self, w):
        """Return the derivative of each record's loss in its score."""
        scores = self.X @ w
        return expit(scores) - self.problem.y if self.curvature < 1 else scores - self.problem.y

    def gradient(self, w, clip, noise, rng):
        """Return a mean gradient, each clipped, with noise of a multiplier."""
        slopes = np.clip(self.slopes(w), -clip / self.norms, clip / self.norms)
        return (slopes @ self.X + noise * clip * rng.standard_normal(self.d)) / self.n

    def hessian(self, w, noise, rng):
        """Return a noisy mean Hessian, inverted above its noise; a record adds h norm^2 at most."""
        if self.curvature < 1:
            p = expit(self.X @ w)
            weights = p * (1 - p)
        else:
            weights = np.ones(self.n)
        deviation = noise * self.curvature * self.norm**2 / self.n
        upper = np.triu(rng.standard_normal((self.d, self.d)))
        # In the Frobenius norm an entry off the diagonal counts twice.
        noisy = (upper + upper.T) / math.sqrt(2)
        noisy[np.diag_indices(self.d)] = np.diag(upper)
        values, vectors = np.linalg.eigh((self.X.T * weights) @ self.X / self.n + deviation * noisy)
        least = FLOOR * deviation * math.sqrt(self.d)
        return (vectors / np.maximum(values, least)) @ vectors.T


def statistics(problem, epsilon, seeds):
    """Return mean excesses of ridge from noisy moments, by the norm of rows."""
    if problem.loss == "logistic":
        return {}
    ends, found = problem.ends, {}
    norms = np.linalg.norm(problem.X / ends, axis=1)
    typical = SHORTENED * math.sqrt((norms**2).mean())
    for name, norm in (("short", typical), ("long", norms.max())):
        model = estimators.LinearRegression(
            solver="statistics",
            bounds=(-ends, ends),
            target_bounds=(-1, 1),
            row_norm=float(norm),
            fit_intercept=False,
            epsilon=epsilon,
            delta=DELTA,
        )
        fits = [model.fit(problem.X, problem.y).coef_ for _ in range(seeds)]
        found[name] = np.mean([problem.excess(w) for w in fits])
    return found


def perturbed(problem, epsilon, seeds):
    """Return mean excesses of objective perturbation."""
    if problem.loss != "logistic":
        return {}
    found, rng = {}, np.random.default_rng(1)
    norms = (("short", SHORTENED * problem.typical), ("long", problem.bound))
    for (name, norm), share in itertools.product(norms, (0.25, 0.5)):
        model = Model(problem, norm)
        strength = model.curvature * norm**2 / math.expm1(share * epsilon)
        left = (1 - share) * epsilon

        def delta(mu, left=left):
            place = max(0.0, left / mu - mu / 2)
            return 2 * (ndtr(-place) - math.exp(left) * ndtr(-place - mu)) - DELTA

        deviation = norm / brentq(delta, 1e-4, 20)
        fits = [
            least(model, strength, deviation * rng.standard_normal(model.d)) for _ in range(seeds)
        ]
        found[f"{name} {share}"] = np.mean([problem.excess(w) for w in fits])
    return found


def least(model, strength, b):
    """Return the minimiser of the sum of losses, plus a regulariser and a linear function."""
    signs = np.where(model.problem.y, 1.0, -1.0)

    def value(w):
        total = np.logaddexp(0, -signs * (model.X @ w)).sum() + strength / 2 * w @ w + b @ w
        return total / model.n, (model.slopes(w) @ model.X + strength * w + b) / model.n

    return minimize(value, np.zeros(model.d), jac=True, method="L-BFGS-B").x


def scaled(problem, epsilon, seeds):
    """Return mean excesses of gradient steps along noisy second moments."""
    model = Model(problem, SHORTENED * problem.typical)
    release, rng = single_release(epsilon, DELTA, RELATION), np.random.default_rng(2)
    found, noise = {}, release * math.sqrt(PASSES / (1 - SHARE))
    for rate in (0.1, 0.3, 1.0):
        excesses = []
        for _ in range(seeds):
            inverse = model.hessian(np.zeros(model.d), release / math.sqrt(SHARE), rng)
            w = average = np.zeros(model.d)
            for step in range(PASSES):
                w = w - rate * inverse @ model.gradient(w, problem.typical, noise, rng)
                average = average + (w - average) * 2 / (step + 2)
            excesses.append(problem.excess(average))
        found[f"rate {rate}"] = np.mean(excesses)
    return found


def newton(problem, epsilon, seeds):
    """Return mean excesses of Newton steps with noisy Hessians."""
    model = Model(problem, SHORTENED * problem.typical)
    release, rng = single_release(epsilon, DELTA, RELATION), np.random.default_rng(3)
    found = {}
    for steps in (4, 8):
        noise, excesses = release * math.sqrt(2 * steps), []
        for _ in range(seeds):
            w = np.zeros(model.d)
            for _ in range(steps):
                inverse = model.hessian(w, noise, rng)
                w = w - inverse @ model.gradient(w, problem.typical, noise, rng)
            excesses.append(problem.excess(w))
        found[f"{steps} steps"] = np.mean(excesses)
    return found


WAYS = {"statistics": statistics, "perturbed": perturbed, "scaled": scaled, "newton": newton}


def main(seeds, epsilons, *, fresh):
    """Print the table, and geometric means and shares of cells below 1 of each setting."""
    warnings.simplefilter("ignore")
    print(f"{'training / population':28}{'epsilon':>8}" + "".join(f"{name:>20}" for name in WAYS))
    rows = {}
    for (name, make), epsilon in itertools.product(
        (held_out(fresh) if fresh else problems()).items(), epsilons
    ):
        problem, cells = make(), ""
        more = problem.statistical
        rule = np.mean([problem.excess(by_dpsgd(problem, epsilon)) for _ in range(seeds)])
        for way, run in WAYS.items():
            tried = run(problem, epsilon, seeds)
            for setting, excess in tried.items():
                ratios = excess / rule, (excess + more) / (rule + more)
                rows.setdefault(f"{way}, {setting}", []).append(ratios)
            if not tried:
                cells += f"{'-':>20}"
                continue
            best = min(tried.values())
            cells += f"{best / rule:12.2f} /{(best + more) / (rule + more):6.2f}"
        print(f"{name:28}{epsilon:8g}{cells}", flush=True)
    for setting, ratios in rows.items():
        means, wins = np.exp(np.mean(np.log(ratios), axis=0)), np.mean(np.array(ratios) < 1, axis=0)
        cells = "".join(f"{a:12.2f} /{b:6.2f}" for a, b in (means, wins))
        print(f"{setting:28} mean, share below 1 {cells}")


if __name__ == "__main__":
    with_options(main, __doc__.splitlines()[0])
