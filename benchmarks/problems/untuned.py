"""Excess of default settings over the best settings in hindsight: linear models, by DP-SGD.

``python -m benchmarks untuned [--seeds 4] [--draw 2028]`` prints, for each of 12 problems and
three epsilons, the excess of the training loss over its minimum as a multiple of the least excess
of 250 settings in hindsight (five ways to draw batches, five clips, five rates, two outputs; the
best four again on other seeds, and the best of these on seeds that are not used again), and the
same with the statistical error d sigma^2 / (2 n) added to both sides ("population"):

- ``dpsgd``: :func:`dpcal.optim.dpsgd` at the settings of
  :class:`dpcal.calibrate.defaults.Defaults`, from the typical and the largest norm of rows;
- ``estimator``: :class:`dpcal.estimators.LogisticRegression`, or ``LinearRegression`` by gradients,
  which spends epsilon on the typical norm, from the largest norm only;
- ``train``: :func:`dpcal.train`, which also spends epsilon on it, from the ranges of columns.

Delta is 1e-6, the relation replace-special. The problems are drawn at random by a number. Some
settings were chosen after the draws 2026 and 2027 had been seen; 2028 was drawn after all of them.
"""

import argparse
import itertools
import warnings

import numpy as np
from scipy.optimize import minimize

import dpcal
from dpcal import calibrate, estimators, optim
from dpcal.calibrate.defaults import Defaults
from dpcal.calibrate.plans.common import single_release
from dpcal.tables import REACH

DELTA, RELATION = 1e-6, "replace-special"
EPSILONS = (0.5, 1.0, 4.0)


class Problem:
    """Rows without a constant column, targets, and the values that a user may know."""

    def __init__(self, X, targets, l2=0.0):
        self.X, self.y = X, targets
        self.loss = "logistic" if targets.dtype == bool else "squared"
        make = optim.Logistic if self.loss == "logistic" else optim.Squared
        known = {"classes": [False, True]} if self.loss == "logistic" else {}
        self.objective = make(X, targets, l2=l2, fit_intercept=False, **known)
        self.n, self.d = X.shape
        norms = np.linalg.norm(X, axis=1)
        # Ranges around 0, in which a model without an intercept is the same.
        self.ends = np.abs(X).max(axis=0)
        self.typical, self.bound = float(np.sqrt((norms**2).mean())), float(norms.max())
        fitted = minimize(
            self.objective.loss,
            np.zeros(self.d),
            jac=self.objective.gradient,
            method="L-BFGS-B",
            options={"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-10},
        )
        self.least = fitted.fun
        spread = 1.0 if self.loss == "logistic" else 2 * fitted.fun
        self.statistical = self.d * spread / (2 * self.n)

    def excess(self, w):
        """Return the excess of the training loss at parameters over the least one."""
        return max(self.objective.loss(w) - self.least, 1e-12)


def drawn(n, d, *, size=1.0, power=0.0, tails=30, prior=0.0, noise=None, seed):
    """Return a problem with scores of deviation ``size``."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.standard_t(tails, (n, d)), -5, 5) * np.arange(1, d + 1) ** (-power / 2)
    w = rng.standard_normal(d)
    w *= size / (X @ w).std()
    if noise is None:
        targets = rng.random(n) < 1 / (1 + np.exp(-(X @ w + prior)))
    else:
        targets = np.clip(X @ w + noise * rng.standard_normal(n), -1, 1)
    return Problem(X, targets)


def problems(draw):
    """Return twelve problems of random sizes, by name; others for another number of the draw."""
    rng, found = np.random.default_rng(draw), {}
    for number in range(12):
        n, d = int(np.exp(rng.uniform(np.log(1_000), np.log(40_000)))), int(rng.integers(3, 41))
        squared = number % 4 == 3
        how = {
            "size": float(rng.uniform(0.1, 0.4) if squared else np.exp(rng.uniform(-0.5, 1.5))),
            "power": float(rng.uniform(0, 1)),
            "tails": int(rng.choice([3, 5, 30])),
            "prior": 0.0 if squared else float(rng.choice([0.0, 0.0, -2.5])),
            "noise": float(rng.uniform(0.05, 0.3)) if squared else None,
            "seed": 100 * (draw - 2025) + number,
        }
        kind = "squared" if squared else "logistic"
        found[f"{kind} {n} x {d}"] = lambda n=n, d=d, how=how: drawn(n, d, **how)
    return found


def target(epsilon):
    """Return the target of a builder."""
    return {"epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}


def in_hindsight(problem, epsilon, seeds):
    """Return the least mean excess of the grid: by one run, then by three, then by fresh ones."""
    n, norm = problem.n, problem.typical
    curvature = norm**2 * (0.25 if problem.loss == "logistic" else 1.0)
    kinds = [(n // 25, 20), (n // 8, 20), (n // 25, 60), (n, 60), (n, 200)]
    tried = []
    for (batch, passes), clip in itertools.product(kinds, (1.5, 1.0, 0.7, 0.4, 0.2)):
        plan = calibrate.dpsgd(
            n=n, batch_size=batch, epochs=passes, max_norm=clip * norm, **target(epsilon)
        )
        for rate, output in itertools.product(4.0 ** np.arange(-2, 3), ("tail", "linear")):
            how = {"learning_rate": rate / curvature, "output": output}
            tried.append((problem.excess(optim.dpsgd(problem.objective, plan, **how).w), plan, how))

    def mean(plan, how, runs):
        ends = [optim.dpsgd(problem.objective, plan, **how).w for _ in range(runs)]
        return float(np.mean([problem.excess(w) for w in ends]))

    few = sorted(tried, key=lambda each: each[0])[:4]
    _, plan, how = min(((mean(plan, how, 3), plan, how) for _, plan, how in few), key=first)
    return mean(plan, how, seeds)


def first(entry):
    """Return the first entry, by which settings are sorted."""
    return entry[0]


def by_dpsgd(problem, epsilon):
    """Return parameters of DP-SGD with the defaults for rows of a given norm."""
    n, norm = problem.n, problem.typical
    release = single_release(epsilon, DELTA, RELATION)
    tuned = Defaults.of(
        problem.loss,
        n=n,
        dimension=problem.d,
        row_norm=norm,
        release=release,
        bound=problem.bound,
    )
    sizes = {"batch_size": tuned.batch_size, "steps": tuned.steps, "max_norm": tuned.max_norm}
    plan = calibrate.dpsgd(n=n, **sizes, **target(epsilon))
    rate = tuned.learning_rate(plan.query("gradient").noise_multiplier)
    return optim.dpsgd(problem.objective, plan, learning_rate=rate, output="linear").w


def by_estimator(problem, epsilon):
    """Return coefficients of the estimator."""
    how = {"epsilon": epsilon, "delta": DELTA, "fit_intercept": False}
    if problem.loss == "logistic":
        model = estimators.LogisticRegression(classes=[False, True], row_norm=problem.bound, **how)
    else:
        ends = problem.ends
        model = estimators.LinearRegression(
            solver="gradient",
            bounds=(-ends, ends),
            row_norm=float(np.linalg.norm(problem.X / ends, axis=1).max()),
            target_bounds=(-1, 1),
            **how,
        )
    return np.ravel(model.fit(problem.X, problem.y).coef_)


def by_train(problem, epsilon):
    """Return weights of a table's training, for the rows as they are."""
    names = [f"x{j}" for j in range(problem.d)]
    columns = {
        name: {"type": "number", "range": [-float(end), float(end)]}
        for name, end in zip(names, problem.ends, strict=True)
    }
    if problem.loss == "logistic":
        columns["y"] = {"type": "class", "categories": ["no", "yes"]}
        y = np.where(problem.y, "yes", "no")
    else:
        columns["y"] = {"type": "number", "range": [-1, 1]}
        y = problem.y
    fit = dpcal.train(
        {**dict(zip(names, problem.X.T, strict=True)), "y": y},
        {"columns": columns},
        target="y",
        epsilon=epsilon,
        delta=DELTA,
        loss=problem.loss,
        optimizer="dpsgd",
        intercept=False,
        test_fraction=0.0,
        held_out="none",
    )
    # Ranges of columns, and of a target, are stretched to [-4, 4].
    return fit.model.weights / problem.ends * (REACH if problem.loss == "logistic" else 1.0)


RUNS = {"dpsgd": by_dpsgd, "estimator": by_estimator, "train": by_train}


def row(problem, epsilon, seeds):
    """Return the training and the population excess of each way over the best in hindsight."""
    best = in_hindsight(problem, epsilon, seeds)
    found = {}
    for name, run in RUNS.items():
        mean = float(np.mean([problem.excess(run(problem, epsilon)) for _ in range(seeds)]))
        more = problem.statistical
        found[name] = mean / best, (mean + more) / (best + more)
    return found


def main(seeds, epsilons, draw):
    """Print the table, and the geometric means."""
    warnings.simplefilter("ignore")
    print(f"{'training / population':28}{'epsilon':>8}" + "".join(f"{name:>18}" for name in RUNS))
    rows = []
    for (name, make), epsilon in itertools.product(problems(draw).items(), epsilons):
        rows.append(row(make(), epsilon, seeds))
        cells = "".join(f"{a:10.2f} /{b:6.2f}" for a, b in rows[-1].values())
        print(f"{name:28}{epsilon:8g}{cells}", flush=True)
    for what, pick in (("geometric mean", lambda x: np.exp(np.mean(np.log(x)))), ("worst", max)):
        both = [[pick([row[name][k] for row in rows]) for k in (0, 1)] for name in RUNS]
        print(f"{what:36}" + "".join(f"{a:10.2f} /{b:6.2f}" for a, b in both))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--epsilons", type=float, nargs="+", default=EPSILONS)
    parser.add_argument("--draw", type=int, default=2028)
    given = parser.parse_args()
    main(given.seeds, given.epsilons, given.draw)
