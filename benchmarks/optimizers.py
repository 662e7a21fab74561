"""What do the optimizers achieve on records, and do their errors fall as fast as theorems say?

    python -m benchmarks.optimizers [--output FOLDER] [--no-slopes]

Nine first-order optimizers beside DP-SGD at the same (epsilon, delta) and neighboring relation,
five seeds each, on three tables that come with scikit-learn and a synthetic one of 20,000 records.
The epsilon of each run is recomputed from its ledger after a round trip through JSON. Then the
slopes of ``benchmarks.optimizers_kl`` and ``benchmarks.optimizers_spider``, drawn beside theory's.

Runs are appended to ``runs.jsonl`` in the folder and slopes written to ``slopes.json``, so that an
interrupted study goes on where it was; delete them to start over. The pictures are
``optimizers.png`` and ``optimizers-slopes.png``. Five minutes of CPU.
"""

import argparse
import io
import json
import math
import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from dpcal import optim
from dpcal.calibrate import Constants
from dpcal.optim.registry import OPTIMIZERS
from dpcal.plot import BLUE, INK, MUTED, RED

# The first-order optimizers of one objective; the others have studies of their own.
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
EPSILONS = (0.5, 1.0, 2.0, 4.0)
SEEDS = range(5)
DELTA = 1e-5
# The one relation that every optimizer can be calibrated for.
RELATION = "replace-special"
L2 = 0.05

# ----------------------------------------------------------------------------------------- records


@dataclass(frozen=True, kw_only=True, eq=False)
class Table:
    """Records with rows of norm 1, which bounds every constant, and how a model is scored."""

    name: str
    loss: Any
    constants: Constants
    X: Any
    y: Any
    X_test: Any
    y_test: Any

    def objective(self):
        """Return the mean loss of a linear model without an intercept."""
        classes = {"classes_from_data": True} if self.loss is optim.Logistic else {}
        return self.loss(self.X, self.y, l2=L2, fit_intercept=False, **classes)

    def score(self, objective, w):
        """Return held-out accuracy, or the share of held-out variance that is explained."""
        if self.loss is optim.Logistic:
            return float((objective.predict(self.X_test, w) == self.y_test).mean())
        residuals = self.X_test @ w - self.y_test
        return float(1 - (residuals**2).mean() / self.y_test.var())


def table(name, loss, X, y, *, seed=0):
    """Scale each row to norm 1, which looks at that row alone, and hold a fifth out."""
    X = X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    order = np.random.default_rng(seed).permutation(len(X))
    held_out, training = order[: len(X) // 5], order[len(X) // 5 :]
    logistic = loss is optim.Logistic
    constants = Constants(
        lipschitz=1.0 + 1e-12,
        smoothness=0.25 if logistic else 1.0,
        strong_convexity=L2,
        gap=math.log(2) if logistic else 0.5,
    )
    return Table(
        name=name,
        loss=loss,
        constants=constants,
        X=X[training],
        y=y[training],
        X_test=X[held_out],
        y_test=y[held_out],
    )


def cancer():
    from dpcal.commands.training.breast_cancer import breast_cancer

    task = breast_cancer()
    X = np.concatenate([task.X_train, task.X_test])
    return table("breast cancer", optim.Logistic, X, np.concatenate([task.y_train, task.y_test]))


def digits():
    from sklearn.datasets import load_digits

    bunch = load_digits()
    return table("digits below 5", optim.Logistic, bunch.data - 8.0, bunch.target < 5)


def diabetes():
    from sklearn.datasets import load_diabetes

    # Public bounds of the score: 25 to 346, its middle and half its width rounded.
    bunch = load_diabetes()
    y = np.clip((bunch.target - 185) / 165, -1, 1)
    return table("diabetes", optim.Huber, np.c_[bunch.data / 0.05, np.full(len(y), 1.0)], y)


def housing():
    """Make records like those of California's housing: skewed, correlated, with a clipped price."""
    rng = np.random.default_rng(0)
    n = 20_000
    income, age, rooms = (
        rng.lognormal(1.2, 0.45, n),
        rng.uniform(1, 52, n),
        rng.lognormal(1.6, 0.3, n),
    )
    place = rng.normal(size=(n, 2)) @ [[1.0, -0.8], [0.0, 0.6]]
    crowd, people = rng.lognormal(1.0, 0.3, n), rng.lognormal(7.0, 0.7, n)
    worth = 0.45 * income + 0.01 * age - 0.35 * place[:, 0] - 0.4 * place[:, 1] - 0.3 * crowd
    y = np.clip((worth + 0.5 * rng.standard_t(4, n) - 1.5) / 2.5, -1, 1)
    logs = np.log(np.c_[income, rooms, crowd, people]) - [1.2, 1.6, 1.0, 7.0]
    X = np.c_[logs / [0.45, 0.3, 0.3, 0.7], (age - 26) / 15, place, np.ones(n)]
    return table("housing-like, synthetic", optim.Huber, X, y)


TABLES = (cancer, digits, diabetes, housing)

# -------------------------------------------------------------------------------------------- runs


def plan_of(name, table, epsilon):
    """Return a plan with what a user would give: sizes, target and public constants."""
    n, d = table.X.shape
    target = {
        "n": n,
        "epsilon": epsilon,
        "delta": DELTA,
        "neighboring_relation": RELATION,
    }
    build = OPTIMIZERS[name].build()
    if name == "dpsgd":
        return build(batch_size=math.ceil(3 * math.sqrt(n)), epochs=20, max_norm=1.0, **target)
    if name == "correlated_dpsgd":
        from dpcal.accountants.matrix import Banded

        strategy = Banded.optimised(64, 8)
        return build(strategy, batch_size=n, sampler="full", max_norm=1.0, **target)
    constants, more = table.constants, {}
    if "l2" in OPTIMIZERS[name].options:
        more["l2"] = L2
    else:
        constants = Constants(**{**vars(constants), "smoothness": constants.smoothness + L2})
    if name == "jl_glm":
        more["embedding_dimension"] = d  # tables this narrow are not worth embedding
    return build(constants, dimension=d, **more, **target)


def run(name, table, plan, seed):
    """Return one run as a row; its epsilon is that of the ledger."""
    objective = table.objective()
    options: dict[str, Any] = {}
    began = time.process_time()
    result = OPTIMIZERS[name].optimizer()(objective, plan, seed=seed, **options)
    taken = time.process_time() - began
    result.verify()
    ledger = optim.Ledger.from_json(result.ledger.to_json())
    spent = ledger.epsilon(DELTA)
    assert spent <= plan.epsilon
    return {
        "loss": objective.loss(result.w),
        "score": table.score(objective, result.w),
        "spent": spent.upper,
        "seconds": taken,
        "message": result.message,
    }


def study(folder):
    """Return all rows, those of an earlier start among them."""
    path = folder / "runs.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    done = {(row["table"], row["optimizer"], row["epsilon"], row["seed"]) for row in rows}
    for make in TABLES:
        table = make()
        objective = table.objective()
        best, start = (
            objective.loss(objective.minimize()),
            objective.loss(np.zeros(table.X.shape[1])),
        )
        ideal = table.score(objective, objective.minimize())
        for name in STUDIED:
            for epsilon in EPSILONS:
                left = [s for s in SEEDS if (table.name, name, epsilon, s) not in done]
                if not left:
                    continue
                plan = plan_of(name, table, epsilon)
                for seed in left:
                    row = {
                        "table": table.name,
                        "optimizer": name,
                        "epsilon": epsilon,
                        "seed": seed,
                        "n": len(table.X),
                        "best": best,
                        "start": start,
                        "ideal": ideal,
                        **run(name, table, plan, seed),
                    }
                    rows.append(row)
                    with path.open("a") as file:
                        file.write(json.dumps(row) + "\n")
    return rows


def chosen(rows, **wanted):
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def excess(rows):
    return np.array([max(row["loss"] - row["best"], 1e-9) for row in rows])


def report(rows):
    """Print excess risk and held-out score of each optimizer, and how many beat DP-SGD."""
    print(
        f"delta = {DELTA:g}, {RELATION}, mean of {len(SEEDS)} seeds: excess risk (held-out score)"
    )
    for name in dict.fromkeys(row["table"] for row in rows):
        some = chosen(rows, table=name)
        first = some[0]
        print(
            f"\n{name}, n = {first['n']}: at the start {first['start'] - first['best']:.2e}, "
            f"score of the minimiser {first['ideal']:.3f}"
        )
        print(f"{'':<26}" + "".join(f"{f'epsilon {e:g}':>19}" for e in EPSILONS))
        for optimizer in STUDIED:
            cells = ""
            for epsilon in EPSILONS:
                group = chosen(some, optimizer=optimizer, epsilon=epsilon)
                score = np.mean([row["score"] for row in group])
                cells += f"{excess(group).mean():>11.2e} ({score:.3f})"
            print(f"{optimizer:<26}{cells}")
    worst = max(row["spent"] - row["epsilon"] for row in rows)
    print(f"\n{len(rows)} runs; none spent more than its target (closest: {-worst:.0e} below)")


# ------------------------------------------------------------------------------------------ slopes


def of_points(label, panel, points, theorem):
    """Return one series of ``optimizers_kl``, as JSON values."""
    from benchmarks.optimizers_kl import slope

    return {
        "label": label,
        "panel": panel,
        "x": [p.X for p in points],
        "y": [list(p.excess) for p in points],
        "theorem": theorem,
        "slope": list(slope(points)),
    }


def spider_slopes():
    from benchmarks import optimizers_kl as kl

    found = sorted(kl.by_kappa(kl.spider()).items())
    return [of_points(f"kappa = {kappa:g}", "kl_spider", p, kappa) for kappa, p in found]


def adaptive_slopes():
    from benchmarks import optimizers_kl as kl

    found = sorted(kl.by_kappa(kl.adaptive()).items())
    return [
        of_points(f"kappa = {kappa:g}", "adaptive_gd", points, 2 * kappa / (4 - kappa))
        for kappa, points in found
    ]


def proximal_slopes():
    from benchmarks import optimizers_kl as kl

    labels = {"proximal_point": "growing weight"}
    return [
        of_points(labels.get(name, name), "proximal_point, kappa = 3", points, 3.0)
        for name, points in kl.proximal(seeds=4).items()
    ]


def stationary_slopes():
    from benchmarks.optimizers_spider import slopes as study_of_n

    return [
        {
            "label": name,
            "panel": "spiderboost",
            "x": row["sizes"],
            "y": np.transpose(row["norms"]).tolist(),
            "theorem": {"spiderboost": -2 / 3, "noisy_gd": -1 / 2}[name],
            "slope": [row["slope"], *row["interval"]],
        }
        for name, row in study_of_n().items()
    ]


def embedded_slopes():
    from benchmarks.optimizers_spider import flatness

    series = []
    for name, row in flatness().items():
        per_seed = np.polyfit(np.log(row["dimensions"]), np.log(row["norms"]), 1)[0]
        half = stats.t.ppf(0.975, len(per_seed) - 1) * stats.sem(per_seed)
        series.append(
            {
                "label": {"direct": "spiderboost", "embedded": "jl_glm"}[name],
                "panel": "jl_glm, rank 20",
                "x": row["dimensions"],
                "y": row["norms"],
                "theorem": {"direct": 1 / 3, "embedded": 0.0}[name],
                "slope": [per_seed.mean(), per_seed.mean() - half, per_seed.mean() + half],
            }
        )
    return series


SLOPES = (spider_slopes, adaptive_slopes, proximal_slopes, stationary_slopes, embedded_slopes)


def slopes(folder):
    """Return the series of all slope studies; those that are in the folder are not repeated."""
    path = folder / "slopes.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    for part in SLOPES:
        if part.__name__ not in found:
            found[part.__name__] = part()
            path.write_text(json.dumps(found))
    return [each for part in SLOPES for each in found[part.__name__]]


# ---------------------------------------------------------------------------------------- pictures


def picture(rows):
    """Excess risk against epsilon: a row a table, a column an optimizer, DP-SGD in each in grey."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(row["table"] for row in rows))
    others = [name for name in STUDIED if name != "dpsgd"]
    figure = Figure(figsize=(1.65 * len(others), 2.0 * len(names) + 0.7), layout="constrained")
    grid = figure.subplots(len(names), len(others), sharex=True, sharey="row", squeeze=False)
    for name, line in zip(names, grid, strict=True):
        some = chosen(rows, table=name)
        for other, axes in zip(others, line, strict=True):
            axes.axhline(some[0]["start"] - some[0]["best"], color=INK, lw=0.8, ls=":")
            for which, colour, marker in (("dpsgd", MUTED, "s"), (other, BLUE, "o")):
                logs = [np.log(excess(chosen(some, optimizer=which, epsilon=e))) for e in EPSILONS]
                middle = np.array([values.mean() for values in logs])
                spread = np.array([values.std(ddof=1) for values in logs])
                axes.fill_between(
                    EPSILONS,
                    np.exp(middle - spread),
                    np.exp(middle + spread),
                    color=colour,
                    alpha=0.2,
                    lw=0,
                )
                axes.plot(EPSILONS, np.exp(middle), color=colour, marker=marker, ms=3.5, lw=1.4)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xticks(EPSILONS, [f"{e:g}" for e in EPSILONS])
            axes.grid(alpha=0.25)
            axes.tick_params(labelsize=8)
        line[0].set_ylabel(f"{name}\nn = {some[0]['n']:,}", fontsize=9)
    for other, axes in zip(others, grid[0], strict=True):
        axes.set_title(
            other.replace("recursive_regularization", "recursive_\nregularization"), fontsize=9
        )
    figure.supxlabel("epsilon", fontsize=10)
    figure.supylabel("excess of the regularised training loss", fontsize=10)
    from matplotlib.lines import Line2D

    figure.legend(
        handles=[
            Line2D([], [], color=BLUE, marker="o", ms=4, label="the column's optimizer"),
            Line2D([], [], color=MUTED, marker="s", ms=4, label="DP-SGD at the same budget"),
            Line2D([], [], color=INK, lw=0.8, ls=":", label="the start, w = 0"),
        ],
        loc="outside upper center",
        ncols=3,
        fontsize=9,
        frameon=False,
    )
    return figure


def slope_picture(panels):
    """Errors in log-log panels with 95 % intervals, and lines of the theorems' slopes."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(each["panel"] for each in panels))
    figure = Figure(figsize=(10.5, 7.8), layout="constrained")
    places = figure.subplots(2, 3).ravel()
    for name, axes in zip(names, places, strict=False):
        for each, colour, marker in zip(
            [panel for panel in panels if panel["panel"] == name],
            (BLUE, RED, "#117733", "#AA4499"),
            "osD^",
            strict=False,
        ):
            _draw(axes, each, colour, marker)
        axes.set(xscale="log", yscale="log")
        axes.set_title(name, fontsize=10)
        axes.grid(alpha=0.25)
        axes.tick_params(labelsize=8)
        by_size = {"spiderboost": "records n", "jl_glm, rank 20": "dimension d"}
        axes.set_xlabel(by_size.get(name, "X = sqrt(d) / (n sqrt(rho))"), fontsize=9)
        axes.set_ylabel("gradient norm" if name in by_size else "excess risk", fontsize=9)
        for axis in (axes.xaxis, axes.yaxis):
            _spare_ticks(axis)
        axes.legend(fontsize=8, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2))
    for axes in places[len(names) :]:
        axes.axis("off")
    places[-1].text(
        0.0,
        0.9,
        "points: geometric means over seeds,\n95 % intervals\n\n"
        "lines: the theorem's slope, through\nthe middle of the points\n\n"
        "legends: the fitted slope,\nits 95 % interval, the theorem's",
        va="top",
        fontsize=9,
    )
    return figure


def _spare_ticks(axis):
    """Label powers of ten, or 1, 2 and 5 times them where there are few."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_minor_formatter(NullFormatter())
    if high / low < 30:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if x >= 1 else f"{x:g}"))


def _fitted(each):
    found, low, high = each["slope"]
    return f"{found:.2f} [{low:.2f}, {high:.2f}], theorem {each['theorem']:.2f}"


def _draw(axes, each, colour, marker):
    """One series: geometric means with intervals, and the theorem's slope through their middle."""
    x = np.array(each["x"], dtype=float)
    logs = [np.log(values) for values in each["y"]]
    middle = np.array([values.mean() for values in logs])
    half = np.array([stats.t.ppf(0.975, len(v) - 1) * stats.sem(v) for v in logs])
    mean = np.exp(middle)
    axes.errorbar(
        x,
        mean,
        yerr=[mean - np.exp(middle - half), np.exp(middle + half) - mean],
        color=colour,
        marker=marker,
        ms=4,
        lw=0,
        elinewidth=1,
        capsize=2,
        label=f"{each['label']}: {_fitted(each)}",
    )
    line = middle.mean() + each["theorem"] * (np.log(x) - np.log(x).mean())
    axes.plot(x, np.exp(line), color=colour, lw=1)


def save(figure, path):
    """Write a PNG of few colours, which is small enough for documentation."""
    from PIL import Image

    content = io.BytesIO()
    figure.savefig(content, dpi=100)
    with Image.open(content) as image:
        image.convert("RGB").quantize(128).save(path, optimize=True)


def main():
    parser = argparse.ArgumentParser(prog="python -m benchmarks.optimizers")
    parser.add_argument("--output", type=Path, default=Path("dpcal-report.optimizers"))
    parser.add_argument("--no-slopes", action="store_true", help="only the runs on records")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", RuntimeWarning)
    rows = study(options.output)
    report(rows)
    save(picture(rows), options.output / "optimizers.png")
    if not options.no_slopes:
        panels = slopes(options.output)
        for each in panels:
            print(f"{each['panel']:<26}{each['label']:<18} slope {_fitted(each)}")
        save(slope_picture(panels), options.output / "optimizers-slopes.png")


if __name__ == "__main__":
    # Runs are timed again, and compared, at equal seeds.
    from dpcal.optim import replaying

    with replaying():
        main()
