"""The whole way from a target to a checked private run, on real records: ``make run`` runs this.

It calibrates DP-SGD to epsilon = 1 by every accountant, trains a model on scikit-learn's
breast-cancer records, and writes its report. Beside it are four more models of that target and five
each of four others, which show what epsilon buys; nobody would publish all of them.
``python notebooks/demonstration.py FOLDER`` writes it elsewhere.
"""

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from breast_cancer import HELD_OUT, Task, breast_cancer, scaling

from dpcal import calibrate, plot, run
from dpcal.accountants import events
from dpcal.calibrate import Needs, Plan
from dpcal.optim import Result
from dpcal.report import (
    about_data,
    check_replaceable,
    composed_epsilon,
    document_of,
    released,
    risk,
    write,
)
from dpcal.report.output import at_most, interval
from dpcal.tables.request import default_sizes

TARGET: Mapping[str, Any] = {"epsilon": 1.0, "delta": 1e-5}
EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
# The number of records is counted from the table, so a record is blanked, not added or removed.
RELATION: Mapping[str, Any] = {"neighboring_relation": "replace-special"}
# Settings that a search on these records would have tried, and for which the cost is printed.
CANDIDATES = 16
SEEDS = (0, 1, 2, 3, 4)
OUTSIDE = (
    "The claim is about one model. Whoever sees all models of this report sees their composition: "
    "each shows what its epsilon buys, and nobody publishes all of them.",
    "The demonstration's seeds are public, so that it can be repeated: it shows what a run with a "
    "secret seed would give, on records that are public anyway.",
    "The ranges of the features and the split into training and held-out records are public: the "
    "ranges are constants, the split depends on the number of records alone.",
    "Nothing was tuned on these records. Batch size, epochs and clipping norm are functions of the "
    "number of records alone; the regulariser is one over that number; the learning rate follows "
    "from public numbers and released gradients.",
    "The held-out accuracies and the non-private optimum are not private quantities.",
    "Read from the data, and not covered by the claim: number of records.",
)
READ = ("number of records",)


@dataclass(frozen=True, kw_only=True)
class Point:
    """Accuracies of models with different seeds at one epsilon."""

    epsilon: float
    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Mean over the seeds."""
        return float(np.mean(self.scores))

    @property
    def spread(self) -> float:
        """Sample standard deviation over the seeds."""
        return float(np.std(self.scores, ddof=1))

    def to_dict(self) -> dict[str, float]:
        """Return epsilon, mean and spread as JSON values."""
        return {"epsilon": self.epsilon, "mean": self.mean, "standard_deviation": self.spread}


def demonstrate(output: Path) -> None:
    """Calibrate, train, and write the report."""
    check_replaceable(output, force=True)
    task = breast_cancer()
    n = task.objective.n
    sizes = default_sizes(n, {})
    how = {"n": n, "delta": TARGET["delta"], **RELATION, **sizes}
    plans = {epsilon: calibrate.dpsgd(epsilon=epsilon, **how) for epsilon in EPSILONS}
    plan = plans[TARGET["epsilon"]]
    needs, tuning = _needs(plan), _tuning(plan)
    print(f"{noise_table(needs, sizes)}\n\n{tuning_text(tuning)}\n", flush=True)
    runs = {
        at: [run(task.objective, each, seed=seed, output="linear") for seed in SEEDS]
        for at, each in plans.items()
    }
    points = [
        Point(epsilon=at, scores=tuple(task.score(each.w) for each in group))
        for at, group in runs.items()
    ]
    optimum = task.score(task.objective.minimize())
    document = _document(task, runs, points)
    document |= {"calibration": [needs.to_dict()], "non_private_optimum": optimum}
    document["training"] |= {**sizes, "tuning": tuning}
    print(accuracy_table(document, optimum), flush=True)
    target = (plan.epsilon, plan.delta)
    figures = {
        "privacy-profile.svg": plot.profile(
            plan.event, f"epsilon = {plan.epsilon:g}", marks=[target], **RELATION
        ),
        "accuracy.svg": accuracy_picture(points, optimum),
    }
    pictures = {name: partial(_drawn, figure) for name, figure in figures.items()}
    write(output, document, pictures=pictures, force=True)
    print(f"\nreport written to {output}/")


def _needs(plan: Plan) -> Needs:
    """Return the noise that a plan's target needs, by every accountant."""
    query = plan.query("gradient")
    rate: Any = query.sampling_probability

    def event(sigma: float) -> events.DpEvent:
        return events.dpsgd(sampling_probability=rate, noise_multiplier=sigma, steps=query.count)

    return calibrate.compare(event, **TARGET, **RELATION)


def noise_table(needs: Needs, sizes: Mapping[str, Any]) -> str:
    """Return the table of noise multipliers, with the epsilon that each run really has."""
    lines = [
        f"Noise multiplier of DP-SGD (batch {sizes['batch_size']}, {sizes['epochs']:g} epochs) for "
        f"epsilon = {needs.epsilon:g},\ndelta = {needs.delta:g}, {needs.neighboring_relation}",
        f"{'accountant':<15}{'sigma':>10}  {'certified epsilon of the run':<30}{'time':>9}",
    ]
    for row in needs.rows:
        if row.noise_multiplier is None or row.epsilon is None:
            lines.append(f"{row.accountant:<15}{row.note}")
            continue
        proved = interval(row.epsilon.lower, row.epsilon.upper, digits=9)
        sigma = at_most(row.noise_multiplier, digits=7)
        lines.append(f"{row.accountant:<15}{sigma:>10}  {proved:<30}{row.seconds * 1e3:>6.1f} ms")
    return "\n".join(lines)


def _tuning(plan: Plan) -> dict[str, Any]:
    """Return the price of tuning: nothing here, and that of a search for one model."""
    price = calibrate.tuning(plan.event, candidates=CANDIDATES, delta=plan.delta, **RELATION)
    return {
        "candidates_tried_on_these_records": 0,
        "epsilon_paid": 0.0,
        "instead": {
            "candidates": CANDIDATES,
            "delta": plan.delta,
            "single": price.single,
            "best_released": float(price),
            "all_released": price.released,
        },
    }


def tuning_text(tuning: Mapping[str, Any]) -> str:
    """Return the text on what tuning costs here, and what it would have cost."""
    instead = tuning["instead"]
    return (
        "Nothing was tuned on these records: sizes and clip are functions of n, and there is no "
        f"tuning\nto pay. The best of {instead['candidates']} candidates would have cost epsilon = "
        f"{at_most(instead['best_released'])} where one run costs\n{at_most(instead['single'])}; "
        f"all of them {at_most(instead['all_released'])}."
    )


def accuracy_table(document: Mapping[str, Any], optimum: float) -> str:
    """Return the accuracy of the published model, and those of all beside the optimum."""
    shown, whole = document["runs"][document["published_run"]], document["everything"]
    lines = [
        f"Private logistic regression: the model with epsilon = {shown['plan']['epsilon']:g} is "
        f"right about {shown['accuracy']:.1%} of\n{HELD_OUT} held-out records. What epsilon buys, "
        f"over {len(SEEDS)} seeds:",
        f"{'epsilon':>7}  {'mean':>7}  {'spread (sd)':>11}  {'non-private optimum':>19}",
    ]
    lines += [
        f"{point['epsilon']:>7g}  {point['mean']:>7.1%}  {point['standard_deviation']:>11.1%}  "
        f"{optimum:>19.1%}"
        for point in document["accuracy"]
    ]
    together = at_most(whole["epsilon"]["upper"])
    lines.append(
        f"All {whole['runs']} models together would cost epsilon = {together}: "
        "nobody publishes all."
    )
    return "\n".join(lines)


def accuracy_picture(points: list[Point], optimum: float) -> Any:
    """Draw the accuracies of all models against epsilon, and how far chance moves them."""
    figure, axes = plot.figure_and_axes("More epsilon, better models")
    for point in points:
        many = {"color": plot.BLUE, "alpha": 0.35, "label": "a model"} | (
            {"label": "_"} if point is not points[0] else {}
        )
        axes.plot([point.epsilon] * len(point.scores), point.scores, "o", markersize=4, **many)
    at, means = zip(*((point.epsilon, point.mean) for point in points), strict=True)
    axes.plot(at, means, "D", color=plot.BLUE, label="mean of five")
    axes.axhline(optimum, color=plot.RED, linewidth=1.2, label="without privacy")
    off = (optimum * (1 - optimum) / HELD_OUT) ** 0.5
    chance: dict[str, Any] = {"color": plot.RED, "alpha": 0.12, "linewidth": 0}
    axes.axhspan(optimum - off, optimum + off, **chance, label=f"error of {HELD_OUT} records")
    axes.set(xscale="log", xlabel="epsilon", ylabel="held-out accuracy")
    plot.plain_ticks(axes.xaxis, (min(at), max(at)), at)
    axes.yaxis.set_major_formatter("{x:.0%}")
    plot.legend(axes, loc="lower right")
    return figure


def _document(
    task: Task, runs: Mapping[float, list[Result]], points: list[Point]
) -> dict[str, Any]:
    """Return the content of ``report.json``."""
    results = [each for group in runs.values() for each in group]
    published = runs[TARGET["epsilon"]][0]
    sections = {
        "data": about_data(
            published,
            [task.X_train, task.y_train, task.X_test, task.y_test],
            name="Wisconsin diagnostic breast cancer, as shipped by scikit-learn",
            scaling=scaling(),
            read_from_data=READ,
        ),
        "training": {
            "loss": "logistic",
            "l2": task.objective.l2,
            "learning_rate": "dpcal.optim.first_order.dpsgd.default_steps",
            "averaging": "linear",
        },
        "accuracy": [point.to_dict() for point in points],
        "runs": [
            {**released(each), "seed": seed, "accuracy": score}
            for point, group in zip(points, runs.values(), strict=True)
            for each, seed, score in zip(group, SEEDS, point.scores, strict=True)
        ],
        "published_run": next(i for i, each in enumerate(results) if each is published),
        "everything": composed_epsilon(results, published.plan.delta),
        "risk": risk([published]),
    }
    return document_of(published, outside=OUTSIDE, sections=sections)


def _drawn(figure: Any, title: str, about: str) -> str:
    return plot.svg(figure, title=title, description=about)


if __name__ == "__main__":
    demonstrate(Path(sys.argv[1] if len(sys.argv) > 1 else "dpcal-report"))
