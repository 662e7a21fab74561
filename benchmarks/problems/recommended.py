"""Is the optimizer that is recommended first among the best? Problems that fitted nothing.

``python -m benchmarks recommended [--problems 60] [--seeds 12] [--fit]`` draws linear models, runs
each row of :func:`dpcal.calibrate.recommend` on them, and prints the mean excess of the training
loss of the first row over that of the best row in hindsight; the ratio of measured to predicted
excess; and the share of rows whose excess is between the predicted ends. ``--fit`` does so on other
problems, on which the factor of the law was fitted. Rows are told their typical norm. Delta is
1e-6.
"""

import argparse
import warnings
from collections import Counter

import numpy as np
from scipy.optimize import minimize

from dpcal import calibrate, optim

DELTA = 1e-6


def drawn(rng):
    """Return an objective of random size, spectrum and norms, and what a recommendation asks."""
    n, d = int(np.exp(rng.uniform(np.log(500), np.log(20_000)))), int(rng.integers(3, 41))
    scales = np.arange(1, d + 1) ** (-rng.uniform(0, 1) / 2)
    X = np.clip(rng.standard_t(rng.choice([4, 30]), (n, d)), -5, 5) * scales
    w = rng.standard_normal(d)
    epsilon, l2 = float(rng.choice([0.5, 1.0, 2.0, 4.0])), float(rng.choice([0.0, 0.01]))
    X *= rng.choice([0.3, 1.0, 3.0]) / np.sqrt((X**2).sum(axis=1).mean())
    scores = X @ w
    loss = str(rng.choice(["logistic", "logistic", "squared"]))
    if loss == "logistic":
        scores *= rng.uniform(0.5, 4) / scores.std()
        labels = rng.random(n) < 1 / (1 + np.exp(-scores))
        objective = optim.Logistic(X, labels, l2=l2, fit_intercept=False, classes=[False, True])
    else:
        scores *= rng.uniform(0.1, 0.5) / scores.std()
        targets = scores + rng.uniform(0.05, 0.4) * rng.standard_normal(n)
        objective = optim.Squared(X, np.clip(targets, -1, 1), l2=l2, fit_intercept=False)
    norms = np.linalg.norm(X, axis=1)
    typical = float(np.sqrt((norms**2).mean()))
    sizes = {"n": n, "dimension": d, "epsilon": epsilon, "delta": DELTA, "l2": l2}
    return objective, {
        "loss": loss,
        **sizes,
        "row_norm": float(norms.max()),
        "typical_norm": typical,
    }


def measured(objective, row, seeds):
    """Return the mean excess of a row's runs."""
    fitted = minimize(
        objective.loss,
        np.zeros(objective.dimension),
        jac=objective.gradient,
        method="L-BFGS-B",
        options={"maxiter": 3000, "ftol": 1e-15, "gtol": 1e-10},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ends = [optim.run(objective, row.plan, **row.options).w for _ in range(seeds)]
    return max(1e-12, np.mean([objective.loss(w) for w in ends]) - fitted.fun)


def main(problems, seeds, *, fit):
    """Print the worst problems, and the summary."""
    rng = np.random.default_rng(2 if fit else 5)
    regrets, against_sgd, ratios, first = [], [], [], Counter()
    for number in range(problems):
        objective, asked = drawn(rng)
        table = calibrate.recommend(asked.pop("loss"), **asked)
        found = {row.optimizer: measured(objective, row, seeds) for row in table.rows}
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
