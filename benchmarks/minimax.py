"""Does DP-RGDA pass saddle points, and what do minimax methods say on data? Three studies.

    python -m benchmarks.minimax [saddle] [sensing] [tables] [--figures FOLDER]

* ``saddle``: 40 seeds of the acceptance problem: certified runs, curvature, first anchors.
* ``sensing``: matrix sensing at the paper's counts, each private run beside a control that sees no
  data (gradients replaced by zero, the same noise and steps) and beside a run without noise.
* ``tables``: worst-group accuracy on an adult-like table, AUC on breast-cancer records, at epsilon
  1, 2 and 4, beside DP-SGD; five seeds.
"""

import argparse
import time
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

from dpcal import calibrate, optim
from dpcal.optim import minimax
from dpcal.optim.boundary import noise as noise_module

DELTA = 1e-6
EPSILONS = (1.0, 2.0, 4.0)


def median_and_range(values):
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


def saddle(seeds=40):
    problem = minimax.ToySaddle(n=20_000, seed=0)
    plan = calibrate.dp_rgda(
        problem.constants,
        n=20_000,
        dimensions=(2, 2),
        epsilon=2.0,
        delta=DELTA,
        steps=400,
        inner_steps=4,
        period=20,
        batch_size=2_000,
        value_smoothness=5.0,
        ascent_rate=0.3,
        accuracy=0.1,
        step_length=0.05,
        escape_rate=0.2,
        perturbation=0.05,
        escape_steps=40,
        movement=4e-4,
        split="common",
    )
    rows, start = [], time.process_time()
    for seed in range(seeds):
        result = optim.dp_rgda(problem, plan, seed=seed, initial=[0.3, 0.0])
        lowest = np.linalg.eigvalsh(problem.phi_hessian(result.x))[0]
        first = np.linalg.eigvalsh(problem.phi_hessian(result.anchors[0].x))[0]
        norm = np.linalg.norm(problem.phi_gradient(result.x))
        rows.append((result.status == "certified", lowest, norm, first, len(result.estimate_norms)))
    certified, lowest, norms, first, steps = map(np.array, zip(*rows, strict=True))
    each = (time.process_time() - start) / steps.sum() / 4
    print(f"certified {certified.sum()} of {seeds}, after {steps.min()} to {steps.max()} steps")
    print(f"smallest eigenvalue at least {lowest.min():.3f}, gradient at most {norms.max():.3f}")
    print(f"first anchor at the saddle: {(first <= -0.9).sum()} of {seeds}")
    print(f"{1e6 * each:.0f} microseconds a release")


class NoData(minimax.MinimaxObjective):
    """Gradients are zero: what is left of a run is its noise."""

    def __init__(self, problem):
        super().__init__(n=problem.n, dimensions=problem.dimensions)

    def record_gradients(self, w, rows):
        """Return zeros."""
        return np.zeros((len(rows), self.dimension))

    def clipped_sum(self, w, rows, max_norm):
        """Return zeros."""
        return np.zeros(self.dimension)

    def clipped_difference_sum(self, w, v, rows, max_norm):
        """Return zeros."""
        return np.zeros(self.dimension)

    def digest(self):
        """Return a constant."""
        return b"no data"


def sensing(seeds=5):
    for rescale, norm in (("none", 1.0), ("frobenius", 20.0)):
        problem = minimax.MatrixSensing.generated(
            n=400, shape=(20, 20), rank=3, rescale=rescale, norm=norm, seed=0
        )
        start = 0.1 * np.random.default_rng(0).standard_normal(120)

        def shown(points, problem=problem):
            value = problem.value
            numbers = [
                (value.loss(x), np.linalg.norm(value.gradient(x)), np.linalg.eigvalsh(H)[0])
                for x, H in ((x, value.hessian(x)) for x in points)
            ]
            return " | ".join(median_and_range(each) for each in zip(*numbers, strict=True))

        print(f"rescale {rescale} | Phi | gradient norm | smallest eigenvalue")
        print(f"the start | {shown([start])}")
        big = calibrate.Constants(lipschitz=1.0, smoothness=50.0, strong_concavity=1.0)
        counts = {"n": 400, "epsilon": 2.0, "delta": DELTA, "steps": 400, "period": 10}
        counts |= {"refresh_size": 200, "batch_size": 50}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = calibrate.dp_rgda(
                big,
                dimensions=(120, 400),
                inner_steps=5,
                difference_norm=1.0,
                accuracy=1e-6,
                step_length=0.2,
                ascent_rate=0.8,
                value_smoothness=1.0,
                escape_steps=10,
                split="common",
                **counts,
            )
        runs = {"DP-RGDA": problem, "the same walk without data": NoData(problem)}
        for label, objective in runs.items():
            points = [
                optim.dp_rgda(objective, plan, seed=seed, initial=start).x for seed in range(seeds)
            ]
            print(f"{label} | {shown(points)}")
        with mock.patch.object(noise_module, "add_gaussian"):
            points = [optim.dp_rgda(problem, plan, seed=s, initial=start).x for s in range(2)]
            print(f"DP-RGDA, noise 0 | {shown(points)}")
        spider = calibrate.sto_spider(big, dimension=120, learning_rate=0.005, **counts)
        points = [
            optim.sto_spider(problem.value, spider, seed=seed, initial=start).x
            for seed in range(seeds)
        ]
        print(f"Sto-SPIDER on Phi | {shown(points)}", flush=True)


def adult_like(n=8_000):
    """Records of norm at most 1 in two groups, of which the smaller follows another rule."""
    rng = np.random.default_rng(11)
    groups = (rng.random(n) < 0.2).astype(int)
    X = rng.standard_normal((n, 8)) + 0.4 * groups[:, np.newaxis]
    major, minor = np.array([1, 1, 0.5, 0, 0, 0, 0, 0]), np.array([1, -1, 0.5, 1, 0, 0, 0, 0])
    scores = np.where(groups == 1, X @ minor, X @ major) + 0.5 * rng.standard_normal(n)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True) / 4)
    return X / 4, (scores > 0.2).astype(int), groups


def fair_scores(epsilon, seed):
    X, y, groups = adult_like()
    train = np.arange(len(y)) < 6_000
    sizes = {"n": 6_000, "epsilon": epsilon, "delta": DELTA, "neighboring_relation": "replace-one"}

    def worst(w):
        right = ((X[~train] @ w[:8] + w[8]) > 0) == (y[~train] == 1)
        return min(right[groups[~train] == g].mean() for g in (0, 1))

    problem = minimax.FairClassification(
        X[train], y[train], groups[train], dual_l2=0.05, shares=[0.8, 0.2]
    )
    constants = calibrate.Constants(lipschitz=1.0, smoothness=1.0, strong_concavity=0.05)
    plan = calibrate.dp_sgda(
        constants,
        dimensions=problem.dimensions,
        steps=300,
        batch_size=300,
        max_norm=8.0,
        learning_rate=4.0,
        ascent_rate=0.3,
        **sizes,
    )
    fair = optim.dp_sgda(problem, plan, seed=seed, averaging="tail")
    base = calibrate.dpsgd(batch_size=300, steps=300, max_norm=1.0, **sizes)
    plain = optim.dpsgd(
        optim.Logistic(X[train], y[train]), base, seed=seed, learning_rate=2.0, averaging="tail"
    )
    return worst(fair.x), worst(plain.w)


def auc_scores(epsilon, seed):
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    # Public ranges: the columns' own, for these records are public.
    low, high = X.min(axis=0), X.max(axis=0)
    X = (2 * (X - low) / (high - low) - 1) / np.sqrt(X.shape[1])
    train = np.random.default_rng(0).permutation(len(y)) < 456
    sizes = {"n": 456, "epsilon": epsilon, "delta": DELTA, "neighboring_relation": "replace-one"}
    problem = minimax.AUCMaximization(X[train], y[train], positive_share=0.5)
    constants = calibrate.Constants(lipschitz=1.0, smoothness=4.0, strong_concavity=0.5)
    plan = calibrate.dp_sgda(
        constants,
        dimensions=problem.dimensions,
        steps=60,
        batch_size=114,
        max_norm=1.0,
        learning_rate=0.2,
        ascent_rate=0.2,
        **sizes,
    )
    found = optim.dp_sgda(problem, plan, seed=seed, averaging="tail")
    base = calibrate.dpsgd(batch_size=114, steps=60, max_norm=1.0, **sizes)
    plain = optim.dpsgd(
        optim.Logistic(X[train], y[train]), base, seed=seed, learning_rate=0.5, averaging="tail"
    )
    held = X[~train], y[~train]
    return problem.auc(*held, found.x), problem.auc(*held, plain.w)


def tables(figures=None, seeds=5):
    studies = {
        "accuracy in the worst group, adult-like": fair_scores,
        "AUC, breast cancer": auc_scores,
    }
    found = {}
    for label, scores in studies.items():
        for epsilon in EPSILONS:
            values = np.array([scores(epsilon, seed) for seed in range(seeds)])
            found[label, epsilon] = values
            mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1)
            print(
                f"{label}, epsilon {epsilon:g} | DP-SGDA {mean[0]:.3f} (sd {spread[0]:.3f}) | "
                f"DP-SGD {mean[1]:.3f} (sd {spread[1]:.3f})",
                flush=True,
            )
    if figures is not None:
        draw(found, list(studies), figures)


def draw(found, labels, folder):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
    for axis, label in zip(axes, labels, strict=True):
        for column, name in enumerate(("DP-SGDA on the minimax problem", "DP-SGD")):
            values = np.array([found[label, epsilon][:, column] for epsilon in EPSILONS])
            axis.errorbar(
                EPSILONS, values.mean(axis=1), values.std(axis=1, ddof=1), marker="o", label=name
            )
        axis.set(xscale="log", xlabel="epsilon", title=label)
        axis.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
    axes[0].legend()
    figure.savefig(Path(folder) / "minimax-tables.png", dpi=110)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.minimax")
    parser.add_argument("studies", nargs="*", choices=["saddle", "sensing", "tables", []])
    parser.add_argument("--figures", type=Path, help="folder for the figure of the tables")
    options = parser.parse_args()
    chosen = options.studies or ["saddle", "sensing", "tables"]
    with optim.replaying():
        for study in chosen:
            print(f"-- {study}", flush=True)
            if study == "tables":
                tables(options.figures)
            else:
                {"saddle": saddle, "sensing": sensing}[study]()


if __name__ == "__main__":
    main()
