"""Does DP-RGDA pass saddle points, and what do minimax methods say on data? Six studies.

    python -m benchmarks.minimax [speed] [slopes] [paths] [saddle] [sensing] [tables]
                                 [--figures FOLDER]

* ``slopes``: how the final gradient of Phi falls with n, over 64 times as many records.
* ``paths``: Phi, its gradient and curvature along runs on the saddle problem, beside DP-SGDA.
* ``speed``: a release of the fused inner loop, of single answers, and of a loop of the same
  mathematics in plain numpy, on problems of tables.
* ``saddle``: 40 seeds of the acceptance problem: certified runs, curvature, first anchors.
* ``sensing``: matrix sensing at the paper's counts, each private run beside a control that sees no
  data (gradients replaced by zero, the same noise and steps) and beside a run without noise.
* ``tables``: worst-group accuracy on an adult-like table, AUC on breast-cancer records, at epsilon
  1, 2 and 4, beside DP-SGD; five seeds.
"""

import argparse
import math
import time
import tomllib
import warnings
from pathlib import Path
from unittest import mock

import numpy as np

from benchmarks.problems.saddles import ToySaddle
from benchmarks.problems.sensing import MatrixSensing
from dpcal import calibrate, optim
from dpcal.optim import minimax
from dpcal.optim.boundary import noise as noise_module

DELTA = 1e-6
EPSILONS = (1.0, 2.0, 4.0)

# The counts of the paper's experiment, and constants that nothing rests on there.
SENSING = {
    "n": 400,
    "epsilon": 2.0,
    "delta": DELTA,
    "steps": 400,
    "period": 10,
    "refresh_size": 200,
    "batch_size": 50,
}
LOOSE = calibrate.Constants(lipschitz=1.0, smoothness=50.0, strong_concavity=1.0)


def median_and_range(values):
    return f"{np.median(values):.3g} ({min(values):.3g} to {max(values):.3g})"


# The acceptance problem's plan, which tests take too.
PLAN = Path(__file__).parents[1] / "tests" / "data" / "saddle.toml"
SADDLE = tomllib.loads(PLAN.read_text())


def saddle_plan(problem, **changes):
    """Return the plan of the acceptance problem."""
    asked = {**SADDLE, "batch_size": problem.n // 10, **changes}
    return calibrate.dp_rgda(problem.constants, n=problem.n, **asked)


def sensing_plan():
    """Return the plan of the paper's experiment on matrix sensing: n = 400, 20 x 20, rank 3."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return calibrate.dp_rgda(
            LOOSE,
            dimensions=(120, 400),
            inner_steps=5,
            difference_norm=1.0,
            accuracy=1e-6,
            step_length=0.2,
            ascent_rate=0.8,
            value_smoothness=1.0,
            escape_steps=10,
            split="common",
            **SENSING,
        )


# -- speed


def numpy_loop(gradients, plan, x, y, steps):
    """Take outer steps at a fixed length, in plain numpy, with no ledger and no checks."""
    rng = np.random.default_rng(0)
    refresh, difference = plan.queries
    lam, length = plan.parameters["ascent_rate"], plan.parameters["step_length"]

    def noisy_mean(rows, table, query, bound):
        norms = np.sqrt(np.einsum("ij,ij->i", table, table))
        total = np.minimum(1.0, bound / np.maximum(norms, 1e-300)) @ table
        total += query.noise_multiplier * bound * rng.standard_normal(len(total))
        return total / query.expected_batch_size(plan.n)

    def sampled(query):
        if query.sampler == "full":
            return np.arange(plan.n)
        return rng.choice(plan.n, query.batch_size, replace=False, shuffle=False)

    before = x, y
    for t in range(steps):
        fresh = t % plan.parameters["period"] == 0
        if fresh:
            rows = sampled(refresh)
            estimate = noisy_mean(rows, gradients(x, y, rows), refresh, refresh.max_norm)
        for k in range(plan.parameters["inner_steps"]):
            if k or not fresh:
                moved = math.hypot(
                    *(np.linalg.norm(a - b) for a, b in zip((x, y), before, strict=True))
                )
                bound = difference.bound(moved)
                if bound > 0:
                    rows = sampled(difference)
                    change = gradients(x, y, rows) - gradients(*before, rows)
                    estimate = estimate + noisy_mean(rows, change, difference, bound)
            before, y = (x, y), y + lam * estimate[len(x) :]
        v = estimate[: len(x)]
        x = x - length / np.linalg.norm(v) * v


def tabled(n=20_000, d=8):
    """Return the problems of tables, with a plan, a start, and their gradients in numpy."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, d))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    labels, groups = (X[:, 0] > 0).astype(int), rng.integers(0, 3, n)
    fair, shift, auc = minimax.FairClassification, minimax.CovariateShift, minimax.AUCMaximization
    posed = {
        "fair": (
            fair(X, labels, groups, dual_l2=1.0, shares=np.full(3, 1 / 3), classes=[0, 1]),
            fair.constants_for(row_norm=2**0.5, dual_l2=1.0, smallest_share=1 / 3),
        ),
        "robust": (
            shift(X, X[:, 0], dual_l2=4.0, tilt_norm=1.0),
            shift.constants_for(row_norm=2**0.5, target_bound=1.0, dual_l2=4.0),
        ),
        "AUC": (
            auc(X, labels, positive_share=0.5, classes=[0, 1]),
            auc.constants_for(row_norm=1.0, positive_share=0.5),
        ),
    }
    cases = {}
    for name, (problem, constants) in posed.items():
        # No phase begins, so that all 400 steps are taken.
        long = {"accuracy": 1e-9, "escape_steps": 400, "movement": 1e-6, "batch_size": n // 10}
        asked = {**SADDLE, **long, "dimensions": problem.dimensions}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            plan = calibrate.dp_rgda(constants, n=n, **asked)

        def gradients(x, y, rows, problem=problem):
            return problem.record_gradients(np.concatenate([x, y]), rows)

        start = np.full(problem.dimensions[0], 0.1)
        cases[f"{name}, n = 20,000, b = 2,000"] = (problem, plan, start, gradients)
    return cases


def speed(repeats=5):
    """Time a release: fused, answer by answer, and in plain numpy."""
    for label, (problem, plan, x, gradients) in tabled().items():
        releases = sum(query.count for query in plan.queries)
        y = np.zeros(problem.dimensions[1])

        def fused(problem=problem, plan=plan, x=x):
            optim.dp_rgda(problem, plan, seed=0, initial=x)

        def single(fused=fused):
            with mock.patch.object(noise_module.Mechanism, "fused", False):
                fused()

        def plain(gradients=gradients, plan=plan, x=x, y=y):
            numpy_loop(gradients, plan, x, y, plan.parameters["steps"])

        # One after the other, again and again, so that a busy machine is so for all of them.
        found = {"fused": [], "answer by answer": [], "plain numpy": []}
        for _ in range(repeats):
            for times, run in zip(found.values(), (fused, single, plain), strict=True):
                began = time.process_time()
                run()
                times.append((time.process_time() - began) / releases * 1e6)
        least = {name: min(times) for name, times in found.items()}
        shown = ", ".join(f"{name} {value:.0f}" for name, value in least.items())
        print(f"{label} | microseconds a release, least of {repeats}: {shown}")
        print(f"{label} | plain numpy / fused: {least['plain numpy'] / least['fused']:.1f}")


# -- what it finds


def saddle(seeds=40):
    problem = ToySaddle(n=20_000, seed=0)
    plan = saddle_plan(problem)
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


def planned(preset, constants, n):
    """Return the plan of the builder, or of a theorem."""
    target = {"n": n, "epsilon": 2.0, "delta": DELTA}
    if preset == "practical":
        given = {"dimensions": (2, 2), "value_smoothness": 5.0}
        relation = {"neighboring_relation": "add-or-remove-one"}
        return calibrate.dp_rgda(constants, **target, **given, **relation)
    name = "dp_rgda_population" if preset == "population" else "dp_rgda"
    letters = {"M": "lipschitz", "L": "smoothness", "F0": "gap", "mu": "strong_concavity"}
    letters = {**letters, "rho": "hessian_lipschitz"}
    known = {letter: getattr(constants, field) for letter, field in letters.items()}
    return calibrate.theory(name, d=4, **target, **known)


def slopes(seeds=3):
    """Fit log of the final gradient's norm against log of eb, which is in proportion to 1 / n."""
    sizes_of = {
        "practical": (3_000, 12_000, 48_000, 192_000),
        "theory": (500, 2_000, 8_000, 32_000),
        # One pass, of which each record is in one batch.
        "population": (10_000, 100_000, 400_000),
    }
    for preset, sizes in sizes_of.items():
        finals = []
        for n in sizes:
            problem = ToySaddle(n=n, seed=0)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                plan = planned(preset, problem.constants, n)
            runs = [optim.dp_rgda(problem, plan, seed=s, initial=[0.3, 0.0]) for s in range(seeds)]
            norms = [float(np.linalg.norm(problem.phi_gradient(run.x))) for run in runs]
            lowest = [np.linalg.eigvalsh(problem.phi_hessian(run.x))[0] for run in runs]
            finals.append(np.median(norms))
            print(
                f"{preset}, n = {n} | T = {plan.parameters['steps']}, gradient "
                f"{median_and_range(norms)}, smallest eigenvalue {median_and_range(lowest)}, "
                f"{sum(run.status == 'certified' for run in runs)} of {seeds} certified",
                flush=True,
            )
        slope = np.polyfit(np.log(1 / np.array(sizes)), np.log(finals), 1)[0]
        print(f"{preset} | slope of the final gradient in eb: {slope:.2f}")


def paths(figures=None, seed=1):
    """Follow Phi, the norm of its gradient and its curvature along runs from (0.3, 0)."""
    problem = ToySaddle(n=20_000, seed=0)
    more = {"n": 20_000, "dimensions": (2, 2), "epsilon": 2.0, "delta": DELTA}
    steps = {"steps": 400, "batch_size": 2_000, "learning_rate": 0.05, "ascent_rate": 0.3}
    plans = {
        "DP-RGDA": saddle_plan(problem),
        "DP-SGDA": calibrate.dp_sgda(problem.constants, **more, **steps),
    }
    found = {}
    for label, plan in plans.items():
        seen = [np.array([0.3, 0.0, 0.0, 0.0])]
        run = getattr(optim, plan.optimizer)(
            problem,
            plan,
            seed=seed,
            initial=[0.3, 0.0],
            callback=lambda progress, seen=seen: seen.append(progress.w) and False,
            callback_every=1,
        )
        points = [w[:2] for w in seen]
        found[label] = np.array(
            [
                (
                    problem.phi(x),
                    np.linalg.norm(problem.phi_gradient(x)),
                    np.linalg.eigvalsh(problem.phi_hessian(x))[0],
                )
                for x in points
            ]
        )
        saddle_steps = int((found[label][:, 2] < 0).sum())
        print(
            f"{label} | {len(points) - 1} steps, {saddle_steps} of them where the smallest "
            f"eigenvalue is below zero; ends at Phi {found[label][-1, 0]:.3f}, {run.status}"
        )
    if figures is not None:
        draw_paths(found, figures)


def draw_paths(found, folder):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
    titles = ("Phi", "norm of the gradient of Phi", "smallest eigenvalue of its Hessian")
    for column, (axis, title) in enumerate(zip(axes, titles, strict=True)):
        for label, values in found.items():
            axis.plot(values[:, column], label=label, linewidth=1.2)
        axis.set(title=title, xlabel="outer step")
    axes[1].set_yscale("log")
    axes[2].axhline(0.0, color="grey", linewidth=0.8)
    axes[0].legend()
    figure.savefig(Path(folder) / "minimax-paths.png", dpi=110)


class NoData(minimax.MinimaxObjective):
    """Gradients are zero: what is left of a run is its noise."""

    def __init__(self, problem):
        super().__init__(n=problem.n, dimensions=problem.dimensions)

    def record_gradients(self, w, rows):
        """Return zeros."""
        return np.zeros((len(rows), self.dimension))

    def digest(self):
        """Return a constant."""
        return b"no data"


def sensing_problem(rescale, norm):
    """Return the paper's instance, with the rescaling that it does not tell."""
    return MatrixSensing.generated(
        n=400, shape=(20, 20), rank=3, rescale=rescale, norm=norm, seed=0
    )


def sensing(seeds=5):
    for rescale, norm in (("none", 1.0), ("frobenius", 20.0)):
        problem = sensing_problem(rescale, norm)
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
        plan = sensing_plan()
        runs = {"DP-RGDA": problem, "the same walk without data": NoData(problem)}
        for label, objective in runs.items():
            points = [
                optim.dp_rgda(objective, plan, seed=seed, initial=start).x for seed in range(seeds)
            ]
            print(f"{label} | {shown(points)}")
        with (
            mock.patch.object(noise_module, "add_gaussian"),
            mock.patch.object(noise_module.Mechanism, "fused", False),
        ):
            how = {"initial": start, "noise": "gaussian"}
            points = [optim.dp_rgda(problem, plan, seed=s, **how).x for s in range(2)]
            print(f"DP-RGDA, noise 0 | {shown(points)}")
        common = {"n": 400, "epsilon": 2.0, "delta": DELTA, "learning_rate": 0.005}
        pairs = {"dimensions": (120, 400), "steps": 400, "ascent_rate": 0.02}
        beside = {
            "Sto-SPIDER on Phi": (
                problem.value,
                calibrate.sto_spider(LOOSE, dimension=120, **{**SENSING, **common}),
            ),
            "Ada-DP-SPIDER on Phi": (
                problem.value,
                calibrate.ada_dp_spider(LOOSE, dimension=120, steps=400, **common),
            ),
            "PrivateDiff": (problem, calibrate.privatediff(LOOSE, **pairs, **common)),
        }
        for label, (objective, plan) in beside.items():
            found = [optim.run(objective, plan, seed=s, initial=start).x for s in range(seeds)]
            print(f"{label} | {shown(found)}", flush=True)


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
        X[train],
        y[train],
        groups[train],
        dual_l2=0.05,
        shares=[0.8, 0.2],
        classes_from_data=True,
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
    fair = optim.dp_sgda(problem, plan, seed=seed, output="tail")
    base = calibrate.dpsgd(batch_size=300, steps=300, max_norm=1.0, **sizes)
    plain = optim.dpsgd(
        optim.Logistic(X[train], y[train], classes_from_data=True),
        base,
        seed=seed,
        learning_rate=2.0,
        output="tail",
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
    problem = minimax.AUCMaximization(
        X[train], y[train], positive_share=0.5, classes_from_data=True
    )
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
    found = optim.dp_sgda(problem, plan, seed=seed, output="tail")
    base = calibrate.dpsgd(batch_size=114, steps=60, max_norm=1.0, **sizes)
    plain = optim.dpsgd(
        optim.Logistic(X[train], y[train], classes_from_data=True),
        base,
        seed=seed,
        learning_rate=0.5,
        output="tail",
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
        axis.minorticks_off()
    axes[0].legend(loc="lower right")
    figure.savefig(Path(folder) / "minimax-tables.png", dpi=110)


STUDIES = {"speed": speed, "slopes": slopes, "saddle": saddle, "sensing": sensing}
# These draw figures too.
DRAWN = {"paths": paths, "tables": tables}


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.minimax")
    parser.add_argument("studies", nargs="*", choices=[*STUDIES, *DRAWN, []])
    parser.add_argument("--figures", type=Path, help="folder for the figures of paths and tables")
    options = parser.parse_args()
    chosen = options.studies or [*STUDIES, *DRAWN]
    with optim.replaying():
        for study in chosen:
            print(f"-- {study}", flush=True)
            if study in DRAWN:
                DRAWN[study](options.figures)
            else:
                STUDIES[study]()


if __name__ == "__main__":
    main()
