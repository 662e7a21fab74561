"""Rank of the recommended optimizer among the best, on problems that fitted nothing.

``python -m benchmarks recommended [--problems 60] [--seeds 12] [--fit]`` draws linear models and
runs each row of :func:`dpcal.calibrate.recommend` on them. It prints the mean excess of the
training loss of the first row over the best row in hindsight; the ratio of measured to predicted
excess; and the share of rows with an excess between the predicted ends. ``--fit`` uses other
problems, on which the factor of the law was fitted. Rows have their typical norm as a setting.
Delta is 1e-6.
"""

import argparse
import warnings
from collections import Counter

import numpy as np

from benchmarks.problems.untuned import DELTA, Problem
from dpcal import calibrate, optim


def drawn(rng):
    """Return a problem of random size, spectrum and norms, and arguments of a recommendation."""
    n, d = int(np.exp(rng.uniform(np.log(500), np.log(20_000)))), int(rng.integers(3, 41))
    scales = np.arange(1, d + 1) ** (-rng.uniform(0, 1) / 2)
    X = np.clip(rng.standard_t(rng.choice([4, 30]), (n, d)), -5, 5) * scales
    w = rng.standard_normal(d)
    epsilon, l2 = float(rng.choice([0.5, 1.0, 2.0, 4.0])), float(rng.choice([0.0, 0.01]))
    X *= rng.choice([0.3, 1.0, 3.0]) / np.sqrt((X**2).sum(axis=1).mean())
    scores = X @ w
    if str(rng.choice(["logistic", "logistic", "squared"])) == "logistic":
        scores *= rng.uniform(0.5, 4) / scores.std()
        targets = rng.random(n) < 1 / (1 + np.exp(-scores))
    else:
        scores *= rng.uniform(0.1, 0.5) / scores.std()
        targets = scores + rng.uniform(0.05, 0.4) * rng.standard_normal(n)
        targets = np.clip(targets, -1, 1)
    problem = Problem(X, targets, l2)
    sizes = {"n": n, "dimension": d, "epsilon": epsilon, "delta": DELTA, "l2": l2}
    norms = {"row_norm": problem.bound, "typical_norm": problem.typical}
    return problem, {"loss": problem.loss, **sizes, **norms}


def measured(problem, row, seeds):
    """Return the mean excess of a row's runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = [optim.run(problem.objective, row.plan, **row.options).w for _ in range(seeds)]
    return max(1e-12, np.mean([problem.objective.loss(w) for w in ends]) - problem.least)


def main(problems, seeds, *, fit):
    """Print the worst problems, and the summary."""
    rng = np.random.default_rng(2 if fit else 5)
    regrets, against_sgd, ratios, first = [], [], [], Counter()
    for number in range(problems):
        problem, asked = drawn(rng)
        table = calibrate.recommend(asked.pop("loss"), **asked)
        found = {row.optimizer: measured(problem, row, seeds) for row in table.rows}
        chosen, best = table.rows[0].optimizer, min(found, key=found.get)
        first[chosen] += 1
        regrets.append(found[chosen] / found[best])
        against_sgd.append(found[chosen] / found["dpsgd"])
        ratios += [(row.optimizer, found[row.optimizer] / row.error) for row in table.rows]
        if regrets[-1] > 1.3:
            sizes = {name: asked[name] for name in ("n", "dimension", "epsilon", "l2")}
            print(f"{number}: {chosen} is {regrets[-1]:.2f} times {best}, {sizes}", flush=True)
    print("first", dict(first))
    print(
        f"first row within 1.3 of the best: {np.mean(np.array(regrets) <= 1.3):.0%} of {problems}; "
        f"median {np.median(regrets):.2f}, 90% {np.quantile(regrets, 0.9):.2f}, "
        f"worst {max(regrets):.2f}; beside dpsgd {np.exp(np.mean(np.log(against_sgd))):.2f}"
    )
    for name in first | {name: 0 for name, _ in ratios}:
        logs = np.log([ratio for optimizer, ratio in ratios if optimizer == name])
        inside = np.mean(np.abs(logs) < np.log(2.5))
        print(
            f"{name}: measured over predicted {np.exp(logs.mean()):.2f}, spread "
            f"{np.exp(np.abs(logs - logs.mean()).mean()):.2f}, between the ends {inside:.0%}"
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=12)
    parser.add_argument("--fit", action="store_true")
    given = parser.parse_args()
    main(given.problems, given.seeds, fit=given.fit)
