"""Errors of the optimizers, and their slopes against the theorems.

    python -m benchmarks.utility [tables] [slopes] [saddles] [--only WORD] [--output FOLDER]

* ``tables``: first-order optimizers at the same (epsilon, delta) and neighboring relation, five
  seeds each, on three tables that come with scikit-learn and a synthetic one of 20,000 records. The
  epsilon of each run is recomputed from its ledger after a round trip through JSON.
* ``slopes``: log-log slopes of errors on problems whose minima are known, beside the theorems'.
* ``saddles``: how many runs leave a saddle point, and what they end with.

Every study is a list of :class:`benchmarks.harness.Series`. Seeds are public here, so that runs can
be repeated.
"""

import math
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.linalg import eigvalsh, norm

from benchmarks.harness import Series, run_studies
from benchmarks.problems.kl import PowerNorm, Softplus, balanced
from benchmarks.problems.saddles import ToySaddle, Trigonometric
from benchmarks.problems.tables import tables
from dpcal import calibrate, optim
from dpcal.calibrate import Constants
from dpcal.calibrate.plans.common import Given
from dpcal.calibrate.plans.kl_problem import Problem
from dpcal.optim.registry import OPTIMIZERS

TARGET: dict[str, Any] = {"epsilon": 2.0, "delta": 1e-6}


def slope(each, rows, *, draws=2_000):
    """Return (slope, low, high) of log error against log x, with a 95 % bootstrap over seeds."""
    x = np.log([each.x(size) for size in each.sizes])
    logs = [np.log([row["error"] for row in rows[size]]) for size in each.sizes]
    rng = np.random.default_rng(0)

    def fit(samples):
        return float(np.polyfit(x, [sample.mean() for sample in samples], 1)[0])

    drawn = [fit([rng.choice(sample, len(sample)) for sample in logs]) for _ in range(draws)]
    return fit(logs), *np.quantile(drawn, [0.025, 0.975]).tolist()


EPSILONS = (0.5, 1.0, 2.0, 4.0)
STUDIED = (
    "dpsgd",
    "noisy_gd",
    "kl_spider",
    "proximal_point",
    "adaptive_gd",
    "spiderboost",
    "tree_spider",
    "recursive_regularization",
    "jl_glm",
    "correlated_dpsgd",
)


def on_tables():
    """Return a series for each table and optimizer, over epsilon."""
    return [
        Series(
            panel=table.name,
            label=name,
            sizes=EPSILONS,
            run=lambda epsilon, seed, table=table, name=name: table.run(name, epsilon, seed),
        )
        for table in tables()
        for name in STUDIED
    ]


def report_tables(found, _):
    """Print excess risk and held-out score at epsilon 1, and where DP-SGD is beaten."""
    panels = list(dict.fromkeys(each.panel for each, _ in found))
    means = {
        (each.label, each.panel, epsilon): np.mean(
            [(row["error"], row["score"]) for row in rows[epsilon]], axis=0
        )
        for each, rows in found
        for epsilon in EPSILONS
    }
    print(f"| optimizer | {' | '.join(panels)} | better than `dpsgd` |")
    print("|---" * (2 + len(panels)) + "|")
    for label in dict.fromkeys(each.label for each, _ in found):
        cells = ["{:.1e} ({:.3f})".format(*means[label, panel, 1.0]) for panel in panels]
        better = sum(
            means[label, panel, epsilon][0] < means["dpsgd", panel, epsilon][0]
            for panel in panels
            for epsilon in EPSILONS
        )
        cells.append(f"{better} of {len(panels) * len(EPSILONS)}")
        print(f"| `{label}` | {' | '.join(cells)} |")


def rate(n, d, **target):
    """Return X = sqrt(d) / (n sqrt(rho)), the variable of theorems on the KL condition."""
    given = Given.of(
        Constants(lipschitz=1.0, smoothness=1.0), n=n, dimension=d, **{**TARGET, **target}
    )
    return Problem.of(given, gamma=1.0).rate


def kl_series(name, kappa, *, d, sizes, theorem, seeds=10, known=False, **target):
    """Return a series of an optimizer on a loss with known KL constants and minimum."""

    def run(n, seed):
        X = balanced(n, d, seed=1)
        posed = Softplus(X) if kappa == 1 else PowerNorm(X, power=kappa / (kappa - 1))
        start = np.zeros(d) if kappa == 1 else np.eye(d)[0]
        kl = {"gamma": posed.kl[0], "kappa": kappa} if known else {}
        plan = OPTIMIZERS[name].build()(
            posed.constants, n=n, dimension=d, public=True, **kl, **{**TARGET, **target}
        )
        found = OPTIMIZERS[name].optimizer()(posed, plan, seed=seed, initial=start)
        promised = plan.parameters.get("accuracy", math.inf) if known else math.inf
        error = posed.loss(found.w)
        return {"error": error, "kept": error <= promised}

    return Series(
        panel=name,
        label=f"kappa = {kappa:g}",
        sizes=sizes,
        run=run,
        seeds=seeds,
        theorem=theorem,
        x=lambda n: rate(n, d, **target),
    )


def ramp(n, steepness, *, d=20):
    """Return a ramp of length 1 / steepness next to quadratics, and the norm of its gradient."""
    rng = np.random.default_rng(n)
    curvature = rng.choice([0.5, 1.0], size=n)
    points = rng.standard_normal((n, d - 1))
    points *= 0.2 / norm(points, axis=1, keepdims=True)
    mean_curvature, mean_pull = curvature.mean(), curvature @ points / n

    def first(w):
        return min(0.0, max(-steepness, w[0] - 1 / steepness - steepness))

    def gradients(w, rows):
        rest = curvature[rows, np.newaxis] * (w[1:] - points[rows])
        return np.c_[np.full(len(rows), first(w)), rest]

    def length(w):
        return math.hypot(first(w), norm(mean_curvature * w[1:] - mean_pull))

    return optim.FromGradients(gradients, n=n, dimension=d, block=10**6), length


def on_ramps(name):
    """Return a run's mean gradient norm at the worst of four ramps; their slope follows n."""

    def run(n, seed):
        constants = Constants(lipschitz=1.0, smoothness=1.0, gap=1.0)
        plan = OPTIMIZERS[name].build()(constants, n=n, dimension=20, epsilon=1.0, delta=1e-6)
        scale = math.sqrt(1 / (plan.parameters["learning_rate"] * plan.parameters["steps"]))
        worst = 0.0
        for factor in np.geomspace(0.5, 2.0, 4):
            objective, length = ramp(n, min(0.5, scale * factor))
            seen = []

            def note(progress, seen=seen, length=length):
                seen.append(length(progress.w))

            how = {"callback": note, "callback_every": 1}
            OPTIMIZERS[name].optimizer()(objective, plan, seed=seed, **how)
            worst = max(worst, np.mean(seen))
        return {"error": worst}

    return run


def sigmoids(size, seed):
    """Return a nonconvex linear model of records of norm 1."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((size, 3))
    X /= norm(X, axis=1, keepdims=True)
    return optim.Sigmoid(X, X @ [1.0, -2.0, 0.5] > 0, fit_intercept=False, classes=[0, 1])


SIGMOID = Constants(lipschitz=0.2963, smoothness=0.15406, gap=0.25)


def tree(n, seed):
    """Return the population gradient that tree Spider ends with."""
    plan = calibrate.tree_spider(SIGMOID, n=n, dimension=3, epsilon=1.0, delta=1e-6)
    w = optim.tree_spider(sigmoids(n, seed), plan, seed=seed).w
    return {"error": norm(sigmoids(200_000, 10**6 + seed).gradient(w))}


def location(d, epsilon):
    """Return the population gradient of recursive regularization on a Huber location problem."""

    def gradients(w, points):
        moved = w - points
        return moved / np.maximum(1.0, norm(moved, axis=1, keepdims=True))

    def run(n, seed):
        points, fresh = (
            (3 + np.random.default_rng(s).standard_normal((size, d))) / math.sqrt(d)
            for size, s in ((n, seed), (200_000, 10**6 + seed))
        )
        objective = optim.FromGradients(
            lambda w, rows: gradients(w, points[rows]), n=n, dimension=d, block=10**6
        )
        given = {"n": n, "dimension": d, "epsilon": epsilon, "delta": 1e-6, "distance": 3.0}
        known = Constants(lipschitz=1.0, smoothness=1.0)
        plan = calibrate.recursive_regularization(known, **given)
        w = optim.recursive_regularization(objective, plan, seed=seed).w
        return {"error": norm(gradients(w, fresh).mean(axis=0))}

    return run


def embedded(name):
    """Return the gradient norm of a model of rank 20 in d dimensions, n = 5,000."""

    def run(d, seed):
        rng = np.random.default_rng(seed)
        span, _ = np.linalg.qr(rng.standard_normal((d, 20)))
        X = rng.standard_normal((5_000, 20)) @ span.T
        X /= norm(X, axis=1, keepdims=True)
        y = (X @ span[:, 0] > 0) ^ (rng.random(5_000) < 0.1)
        objective = optim.Sigmoid(X, y, fit_intercept=False, classes=[0, 1])
        plan = OPTIMIZERS[name].build()(SIGMOID, n=5_000, dimension=d, epsilon=1.0, delta=1e-6)
        return {"error": norm(objective.gradient(optim.run(objective, plan, seed=seed).w))}

    return run


def minimax(n, seed):
    """Return the final gradient of Phi on the saddle problem, at settings that are derived."""
    problem = ToySaddle(n=n, seed=0)
    plan = calibrate.dp_rgda(
        problem.constants,
        n=n,
        dimensions=(2, 2),
        value_smoothness=5.0,
        neighboring_relation="add-or-remove-one",
        **TARGET,
    )
    result = optim.dp_rgda(problem, plan, seed=seed, initial=[0.3, 0.0])
    return {"error": norm(problem.phi_gradient(result.x))}


def on_sizes():
    """Return a series for each theorem's exponent."""
    some, many = (4_000, 10_000, 26_000, 64_000, 160_000), (200, 400, 800, 1_600, 3_200)
    spider = [
        kl_series("kl_spider", kappa, d=10, sizes=some, theorem=kappa, known=True)
        for kappa in (1.0, 1.25, 1.5, 2.0)
    ]
    adaptive = [
        kl_series(
            "adaptive_gd", k, d=3_000, sizes=many, theorem=2 * k / (4 - k), seeds=6, epsilon=30.0
        )
        for k in (1.2, 1.5, 2.0)
    ]
    stages = (500, 900, 1_600, 2_800, 5_000)
    proximal = kl_series("proximal_point", 3.0, d=4, sizes=stages, theorem=3.0, seeds=5, known=True)
    n, d = {"x": lambda n: 1 / n, "seeds": 4}, {"sizes": (400, 1_000, 2_000, 4_000), "seeds": 3}
    small, large = (1_000, 3_000, 10_000), (100_000, 400_000, 1_600_000)
    spread = (1_000, 3_000, 10_000, 30_000)
    rows = [
        ("gradient norm in 1 / n", "spiderboost", small, on_ramps("spiderboost"), 2 / 3),
        ("gradient norm in 1 / n", "noisy_gd", small, on_ramps("noisy_gd"), 1 / 2),
        ("population gradient in 1 / n", "tree_spider", large, tree, 1 / 3),
        (
            "population gradient in 1 / n",
            "recursive, sampling",
            spread,
            location(5, 4.0),
            1 / 2,
        ),
        ("population gradient in 1 / n", "recursive, noise", spread, location(100, 0.5), 1.0),
        ("gradient of Phi in 1 / n", "dp_rgda", (3_000, 12_000, 48_000, 192_000), minimax, 2 / 3),
    ]
    others = [
        Series(panel=panel, label=label, sizes=sizes, run=run, theorem=theorem, **n)
        for panel, label, sizes, run, theorem in rows
    ]
    flat = [
        Series(
            panel="gradient norm in d, rank 20", label=label, run=embedded(label), **d, theorem=t
        )
        for label, t in (("spiderboost", 1 / 3), ("jl_glm", 0.0))
    ]
    return [*spider, proximal, *adaptive, *others, *flat]


def report_slopes(found, _):
    """Print each slope beside its theorem's."""
    print("| error | of | size | error, mean | slope, 95 % | theorem |\n" + "|---" * 6 + "|")
    for each, rows in found:
        middle, low, high = slope(each, rows)
        first, last = each.sizes[0], each.sizes[-1]
        means = [np.exp(np.mean(np.log([r["error"] for r in rows[s]]))) for s in (first, last)]
        print(
            f"| {each.panel} | {each.label} | {first:,} to {last:,} | {means[0]:.1e} to "
            f"{means[1]:.1e} | {middle:.2f} [{low:.2f}, {high:.2f}] | {each.theorem:.2f} |"
        )


PHI = math.sin(1.0)
WALK = {
    "batch_size": 2000,
    "difference_batch_size": 100,
    "drift": 0.05,
    "learning_rate": 0.2,
    "escape_rounds": 4,
    "escape_steps": 60,
    "escape_radius": 1.0,
}
SADDLE = tomllib.loads((Path(__file__).parents[1] / "tests" / "data" / "saddle.toml").read_text())


def records_of(ledger):
    """Return how many records a run's answers are about, on average."""
    return sum(each.count * each.expected_batch_size(ledger.n) for each in ledger.totals)


def waves(epsilon, **options):
    """Return a run of Gauss-PSGD from the saddle of the trigonometric problem, n = 100,000."""
    objective = Trigonometric.drawn(100_000, 10, seed=0)
    plan = calibrate.gauss_psgd(
        objective.constants, n=100_000, dimension=10, epsilon=epsilon, delta=1e-6, **WALK, **options
    )

    def run(_, seed, **watch):
        result = optim.gauss_psgd(
            objective, plan, seed=seed, initial=math.pi * np.eye(10)[0], **watch
        )
        return {
            "certified": result.status == "certified",
            "curvature": (PHI * np.cos(result.w)).min(),
            "gradient": norm(PHI * np.sin(result.w)),
            "records": records_of(result.ledger),
        }

    return run


def silos(m):
    """Return a run over m silos of 20,000 records with other centers each."""
    offsets = np.random.default_rng(m).uniform(-0.5, 0.5, (m, 10))
    offsets -= offsets.mean(axis=0)
    given = [Trigonometric.drawn(20_000, 10, offset=o, seed=j) for j, o in enumerate(offsets)]
    changes = {"batch_size": 1_000, "difference_batch_size": 20, "drift": 0.02, "escape_rounds": 3}
    plan = calibrate.distributed_psgd(
        given[0].constants,
        n=20_000,
        dimension=10,
        epsilon=1.0,
        delta=1e-6,
        silos=m,
        **{**WALK, **changes},
    )

    def run(_, seed):
        result = optim.distributed_psgd(given, plan, seed=seed, initial=math.pi * np.eye(10)[0])
        curved = np.mean([np.cos(g.Z + result.end).mean(axis=0) for g in given], axis=0)
        return {
            "certified": result.status == "certified",
            "curvature": curved.min(),
            "gradient": norm(np.mean([g.gradient(result.end) for g in given], axis=0)),
            "records": records_of(result.ledgers[0]),
        }

    return run


def pairs():
    """Return a run of DP-RGDA on the acceptance problem, n = 20,000."""
    problem = ToySaddle(n=20_000, seed=0)
    plan = calibrate.dp_rgda(problem.constants, n=20_000, **{**SADDLE, "batch_size": 2_000})

    def run(_, seed):
        result = optim.dp_rgda(problem, plan, seed=seed, initial=[0.3, 0.0])
        return {
            "certified": result.status == "certified",
            "curvature": eigvalsh(problem.phi_hessian(result.x))[0],
            "gradient": norm(problem.phi_gradient(result.x)),
            "records": records_of(result.ledger),
        }

    return run


def at_saddles():
    """Return a series for each optimizer that passes saddle points."""
    made = {
        "gauss_psgd, epsilon 1, rewind": waves(1.0, reset="rewind"),
        "gauss_psgd, epsilon 1, fresh": waves(1.0, reset="fresh"),
        "gauss_psgd, epsilon 0.25": waves(0.25),
        "distributed_psgd, 2 silos": silos(2),
        "distributed_psgd, 10 silos": silos(10),
        "dp_rgda, epsilon 2": pairs(),
    }
    return [
        Series(panel="saddle", label=label, sizes=(1,), run=run, seeds=40)
        for label, run in made.items()
    ]


def report_saddles(found, _):
    """Print what the runs end with."""
    print("| run | certified | smallest eigenvalue, least | gradient, mean and most | records |")
    print("|---" * 5 + "|")
    for each, rows in found:
        columns = {k: np.array([row[k] for row in rows[1]]) for k in rows[1][0]}
        gradient = columns["gradient"]
        print(
            f"| {each.label} | {columns['certified'].mean():.0%} | "
            f"{columns['curvature'].min():.2f} | {gradient.mean():.3f}, {gradient.max():.3f} | "
            f"{columns['records'].mean():,.0f} |"
        )


STUDIES = {
    "tables": (on_tables, report_tables),
    "slopes": (on_sizes, report_slopes),
    "saddles": (at_saddles, report_saddles),
}


if __name__ == "__main__":
    with optim.replaying():
        run_studies(STUDIES, "utility")
