"""How far are settings that nobody chose from the best in hindsight? Linear models, by DP-SGD.

``python -m benchmarks untuned [--seeds 2]`` prints, for each problem and epsilon, the excess of the
training loss over its minimum as a multiple of the least excess of 96 settings in hindsight (four
clips, six rates, two batches, two outputs; best on seeds that are not used again), and the same
with the statistical error d sigma^2 / (2 n) added to both sides ("population"): of the settings of
:class:`dpcal.calibrate.defaults.Defaults`, of the same at a norm of rows that is 1.4 times too
large and too small, and of DP-SGD as it was before: clip 1, batch 3 sqrt(n), the rate of the regret
bound, the mean of the last half. Rows are told their true typical norm. Delta is 1e-6.
"""

import argparse
import itertools
import warnings

import numpy as np
from scipy.optimize import minimize

import dpcal
from dpcal import calibrate, optim
from dpcal.calibrate.defaults import Defaults

DELTA, RELATION = 1e-6, "replace-special"
EPSILONS = (0.5, 1.0, 4.0)


def logistic(n, d, *, norm, prior=0.0, tails=False, seed=0):
    """Return an objective whose labels are those of a logistic model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(3, (n, d)) if tails else rng.standard_normal((n, d))
    X = np.clip(X, -6, 6)
    w = rng.standard_normal(d)
    w *= norm / np.linalg.norm(w)
    y = rng.random(n) < 1 / (1 + np.exp(-(X @ w + prior)))
    return optim.Logistic(X, y, classes=[False, True]), X, "logistic"


def squared(n, d, *, noise, seed=0):
    """Return an objective whose targets, in [-1, 1], are linear in the rows but for noise."""
    rng = np.random.default_rng(seed)
    X = np.clip(rng.standard_normal((n, d)), -4, 4)
    w = rng.standard_normal(d)
    y = X @ (0.3 * w / np.linalg.norm(w)) + noise * rng.standard_normal(n)
    return optim.Squared(X, np.clip(y, -1, 1)), X, "squared"


PROBLEMS = {
    "logistic 4000 x 8": lambda: logistic(4_000, 8, norm=1.5),
    "logistic 16000 x 20": lambda: logistic(16_000, 20, norm=1.0),
    "logistic 16000 x 5, steep": lambda: logistic(16_000, 5, norm=5.0),
    "logistic 20000 x 12, 5 percent": lambda: logistic(20_000, 12, norm=1.2, prior=-3.4),
    "logistic 8000 x 8, heavy tails": lambda: logistic(8_000, 8, norm=1.0, tails=True),
    "squared 10000 x 10": lambda: squared(10_000, 10, noise=0.2),
    "squared 3000 x 5": lambda: squared(3_000, 5, noise=0.3),
}


def excess(objective, least, plan, *, output, learning_rate=None):
    """Return by how much a run's training loss is above the least one."""
    how = {} if learning_rate is None else {"learning_rate": learning_rate}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = optim.dpsgd(objective, plan, output=output, **how)
    return max(objective.loss(result.w) - least, 1e-12)


def tuned_plan(objective, loss, norm, epsilon):
    """Return the plan of the defaults, for rows of a norm."""
    n, target = objective.n, {"epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}
    release = dpcal.noise_multiplier(dpcal.events.GaussianDpEvent, **target)
    tuned = Defaults.of(loss, n=n, dimension=objective.dimension, row_norm=norm, release=release)
    plan = calibrate.dpsgd(
        n=n, batch_size=tuned.batch_size, steps=tuned.steps, max_norm=tuned.max_norm, **target
    )
    return plan, tuned.learning_rate(plan.query("gradient").noise_multiplier)


def in_hindsight(objective, least, loss, norm, epsilon):
    """Return the setting of the grid with the least excess, as plan, rate and output."""
    n, target = objective.n, {"epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}
    curvature = norm**2 * (0.25 if loss == "logistic" else 1.0)
    best = None
    for batch, clip in itertools.product((n // 25, n // 8), (2.0, 1.0, 0.5, 0.25)):
        plan = calibrate.dpsgd(n=n, batch_size=batch, epochs=20, max_norm=clip * norm, **target)
        for rate, output in itertools.product(2.0 ** np.arange(-4, 8, 2), ("tail", "linear")):
            found = excess(objective, least, plan, output=output, learning_rate=rate / curvature)
            if best is None or found < best[0]:
                best = found, plan, rate / curvature, output
    return best[1:]


def main(seeds):
    """Print the table, and the geometric means."""
    names = ("defaults", "norm x 1.4", "norm / 1.4", "before")
    logs = {name: ([], []) for name in names}
    head = "".join(f"{name:>24}" for name in names)
    print(f"{'training / population':32}{'epsilon':>8}{head}")
    for problem, epsilon in itertools.product(PROBLEMS, EPSILONS):
        objective, X, loss = PROBLEMS[problem]()
        n, d = objective.n, objective.dimension
        norm = float(np.sqrt((X**2).sum(axis=1).mean() + 1))
        fitted = minimize(
            objective.loss,
            np.zeros(d),
            jac=lambda w, of=objective: of.clipped_sum(w, np.arange(of.n), 1e9) / of.n,
            method="L-BFGS-B",
            options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9},
        )
        spread = 1.0 if loss == "logistic" else 2 * fitted.fun
        statistical = d * spread / (2 * n)
        runs = {
            "best": in_hindsight(objective, fitted.fun, loss, norm, epsilon),
            **{
                name: (*tuned_plan(objective, loss, norm * factor, epsilon), "linear")
                for name, factor in zip(names, (1.0, 1.4, 1 / 1.4), strict=False)
            },
        }
        target = {"epsilon": epsilon, "delta": DELTA, "neighboring_relation": RELATION}
        before = calibrate.dpsgd(n=n, batch_size=int(3 * n**0.5), epochs=20, **target)
        runs["before"] = before, None, "tail"
        found = {
            name: np.mean(
                [
                    excess(objective, fitted.fun, plan, output=output, learning_rate=rate)
                    for _ in range(seeds)
                ]
            )
            for name, (plan, rate, output) in runs.items()
        }
        cells = []
        for name in names:
            training = found[name] / found["best"]
            population = (found[name] + statistical) / (found["best"] + statistical)
            logs[name][0].append(training)
            logs[name][1].append(population)
            cells.append(f"{training:13.2f} /{population:9.2f}")
        print(f"{problem:32}{epsilon:8g}" + "".join(cells), flush=True)
    for what, pick in (("geometric mean", lambda x: np.exp(np.mean(np.log(x)))), ("worst", max)):
        cells = [f"{pick(logs[name][0]):13.2f} /{pick(logs[name][1]):9.2f}" for name in names]
        print(f"{what:40}" + "".join(cells))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=2)
    main(parser.parse_args().seeds)
