"""The whole way from targets to checked private runs, on real records: ``make run`` runs this.

It calibrates DP-SGD by every accountant, trains five models a target on scikit-learn's breast-cancer
records, and writes a report. ``python notebooks/demonstration.py FOLDER`` writes it elsewhere.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from breast_cancer import HELD_OUT, Task, breast_cancer, scaling

from dpcal import calibrate, plot, run
from dpcal.accountants import events
from dpcal.calibrate import Needs, Plan
from dpcal.optim import Result
from dpcal.plot import Point
from dpcal.report import (
    bind,
    check_replaceable,
    composed_epsilon,
    document_of,
    released,
    sentence_on_reading,
    write_report,
)
from dpcal.report.output import at_most, dump, interval
from dpcal.tables.documents import about_data, add_pages, risk
from dpcal.tables.plans import default_sizes

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5
# The number of records is counted from the table, so a record is blanked, not added or removed.
RELATION = "replace-special"
TARGET: Mapping[str, Any] = {"delta": DELTA, "neighboring_relation": RELATION}
# How many settings a search on these records would have tried; what it would cost is printed.
CANDIDATES = 16
SEEDS = (0, 1, 2, 3, 4)
TITLE = f"Private logistic regression on breast-cancer records, {len(SEEDS)} seeds (mean, sd)"
OUTSIDE = (
    "Each epsilon is that of one run. Whoever sees all runs in this report sees their composition, "
    "whose epsilon is the claim of all together.",
    "The demonstration's seeds are public, so that it can be repeated: it shows what a run with a "
    "secret seed would give, on records that are public anyway.",
    "The ranges of the features and the split into training and held-out records are public: the "
    "ranges are constants, the split depends on the number of records alone.",
    "Nothing was tuned on these records. Batch size, epochs and clipping norm are functions of the "
    "number of records alone; the regulariser is one over that number; the learning rate follows "
    "from public numbers and released gradients.",
    "The held-out accuracies and the non-private optimum are not private quantities.",
)
READ = ("number of records",)


def demonstrate(output: Path) -> None:
    """Calibrate, train, and write the report."""
    check_replaceable(output, force=True)
    task = breast_cancer()
    n = task.objective.n
    sizes = default_sizes(n, {})
    plans = [calibrate.dpsgd(n=n, epsilon=epsilon, **TARGET, **sizes) for epsilon in EPSILONS]
    needs = _calibrate(plans)
    tuning = _tuning(plans)
    print(f"{calibration_table(needs, sizes)}\n\n{tuning_text(tuning)}", flush=True)
    runs = [
        [run(task.objective, plan, seed=seed, output="linear") for seed in SEEDS] for plan in plans
    ]
    points = [
        Point(epsilon=plan.epsilon, scores=tuple(task.score(each.w) for each in group))
        for plan, group in zip(plans, runs, strict=True)
    ]
    optimum = task.score(task.objective.minimize())
    print(f"\n{accuracy_table(points, optimum)}", flush=True)
    document = _document(task, needs, runs, points, optimum)
    document["training"] |= {**sizes, "tuning": tuning}
    write_report(output, {"report.json": dump(document) + "\n"}, force=True)
    # The held-out accuracy of always answering the class that is larger among the held-out.
    share = float((task.y_test == task.y_test[0]).mean())
    chance = max(share, 1 - share)
    pictures = {
        "privacy-profile.svg": lambda: plot.profile(_curves(plans)),
        "accuracy.svg": lambda: plot.utility(points, optimum=optimum, chance=chance, title=TITLE),
    }
    add_pages(output, document, pictures)
    bind(output)
    print(f"\nreport written to {output}/")


# -- calibrate


def _calibrate(plans: list[Plan]) -> list[Needs]:
    """Return the noise that each plan's target needs, by every accountant."""
    query = plans[0].query("gradient")  # All plans have the same sizes.
    rate: Any = query.sampling_probability

    def event(sigma: float) -> events.DpEvent:
        return events.dpsgd(sampling_probability=rate, noise_multiplier=sigma, steps=query.count)

    return [calibrate.compare(event, epsilon=plan.epsilon, **TARGET) for plan in plans]


def calibration_table(needs: list[Needs], sizes: Mapping[str, Any]) -> str:
    """Return the table of noise multipliers, with the epsilon that each run really has."""
    lines = [
        f"Noise multiplier of DP-SGD (batch {sizes['batch_size']}, {sizes['epochs']:g} epochs) at "
        f"delta = {DELTA:g}, {needs[0].neighboring_relation}",
        f"{'target':>7}  {'accountant':<15}{'sigma':>10}  {'certified epsilon of the run':<30}"
        f"{'time':>9}",
    ]
    for need in needs:
        for place, row in enumerate(need.rows):
            target = f"{need.epsilon:>7g}" if place == 0 else " " * 7
            if row.noise_multiplier is None or row.epsilon is None:
                lines.append(f"{target}  {row.accountant:<15}{row.note}")
                continue
            proved = interval(row.epsilon.lower, row.epsilon.upper, digits=9)
            lines.append(
                f"{target}  {row.accountant:<15}{at_most(row.noise_multiplier, digits=7):>10}  "
                f"{proved:<30}{row.seconds * 1e3:>6.1f} ms"
            )
    return "\n".join(lines)


def _tuning(plans: list[Plan]) -> dict[str, Any]:
    """Return the price of tuning: nothing here, and that of a search at the middle target."""
    (plan,) = (plan for plan in plans if plan.epsilon == 1.0)
    price = calibrate.tuning(plan.event, candidates=CANDIDATES, **TARGET)
    return {
        "candidates_tried_on_these_records": 0,
        "epsilon_paid": 0.0,
        "instead": {
            "candidates": CANDIDATES,
            "delta": DELTA,
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
        "tuning to pay.\n"
        f"The best of {instead['candidates']} candidates would have cost epsilon = "
        f"{at_most(instead['best_released'], digits=4)} where one run costs "
        f"{at_most(instead['single'], digits=4)}; all of them "
        f"{at_most(instead['all_released'], digits=4)}."
    )


# -- train


def accuracy_table(points: list[Point], optimum: float) -> str:
    """Return the table of test accuracies beside the non-private optimum."""
    lines = [
        f"Private logistic regression, accuracy on {HELD_OUT} held-out records, {len(SEEDS)} seeds",
        f"{'epsilon':>7}  {'mean':>7}  {'spread (sd)':>11}  {'non-private optimum':>19}",
    ]
    lines += [
        f"{point.epsilon:>7g}  {point.mean:>7.1%}  {point.spread:>11.1%}  {optimum:>19.1%}"
        for point in points
    ]
    return "\n".join(lines)


# -- report


def _document(
    task: Task,
    needs: list[Needs],
    runs: list[list[Result]],
    points: list[Point],
    optimum: float,
) -> dict[str, Any]:
    """Return the content of ``report.json``."""
    results = [each for group in runs for each in group]
    sections = {
        "data": about_data(
            results[0],
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
        "calibration": [need.to_dict() for need in needs],
        "accuracy": [point.to_dict() for point in points],
        "non_private_optimum": optimum,
        "runs": [
            {**released(each), "seed": seed, "accuracy": score}
            for point, group in zip(points, runs, strict=True)
            for each, seed, score in zip(group, SEEDS, point.scores, strict=True)
        ],
        "everything": composed_epsilon(results, DELTA),
        "risk": risk(results),
    }
    outside = [*OUTSIDE, *sentence_on_reading(READ)]
    return document_of(results[0], outside=outside, sections=sections)


def _curves(plans: list[Plan]) -> list[plot.Curve]:
    """Return the privacy profile of every plan."""
    return [
        plot.Curve.of(
            plan.event,
            f"{plan.epsilon:g}",
            target=(plan.epsilon, plan.delta),
            neighboring_relation=plan.neighboring_relation,
        )
        for plan in plans
    ]


if __name__ == "__main__":
    demonstrate(Path(sys.argv[1] if len(sys.argv) > 1 else "dpcal-report"))
