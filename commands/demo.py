"""``dpcal demo``: the whole way from targets to checked private runs, on real records."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcal.commands._output import at_most, dump, duration, interval, present

if TYPE_CHECKING:
    from dpcal.calibrate import Needs, Plan
    from dpcal.commands._tables import Ranges
    from dpcal.commands._training import Run, Task
    from dpcal.plot import Point

EXAMPLE = "-o dpcal-report"

EPSILONS = (0.5, 1.0, 2.0, 4.0, 8.0)
DELTA = 1e-5
BATCH_SIZE = 64
EPOCHS = 40
SEEDS = (0, 1, 2, 3, 4)
TITLE = f"Private logistic regression on breast-cancer records, {len(SEEDS)} seeds (mean, sd)"
OUTSIDE = (
    "Each epsilon is that of one run. Whoever sees all runs in this report sees their composition, "
    "whose epsilon is under 'everything'.",
    "The demonstration's seeds are public, so that it can be repeated: it shows what a run with a "
    "secret seed would give, on records that are public anyway.",
    "The ranges of the features and the split into training and held-out records are public: the "
    "ranges are constants, the split depends on the number of records alone.",
    "Batch size, epochs, clipping norm, regulariser and scaling were fixed before these runs, "
    "after non-private cross-validation on the training records; the claim does not cover that "
    "choice. The learning rate follows from public numbers. The rule sees training records only; "
    "exploration before it saw other splits of these public records.",
    "The held-out accuracies and the non-private optimum are not private quantities.",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the output folder."""
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("dpcal-report"),
        metavar="FOLDER",
        help="report to write or replace (default: %(default)s)",
    )


def run(options: Namespace) -> int:
    """Calibrate, train, and write the report."""
    from dpcal import calibrate
    from dpcal.commands._breast_cancer import breast_cancer
    from dpcal.report import check_replaceable

    check_replaceable(options.output)
    task, ranges = breast_cancer()
    plans = [
        calibrate.dpsgd(
            n=task.objective.n, batch_size=BATCH_SIZE, epochs=EPOCHS, epsilon=epsilon, delta=DELTA
        )
        for epsilon in EPSILONS
    ]
    needs = _calibrate(plans)
    if not options.json:
        print(calibration_table(needs))
    runs = _train(task, plans)
    points = _points(task, runs)
    optimum = task.score(task.objective.minimize())
    if not options.json:
        print(f"\n{accuracy_table(points, optimum)}")
    document = _document(task, ranges, needs, runs, points, optimum)
    _write(options.output, document, plans, points, optimum, _larger_class(task))
    present(options, document, f"\nreport written to {options.output}/")
    return 0


# -- calibrate


def _calibrate(plans: list[Plan]) -> list[Needs]:
    """Ask every accountant for the noise that each plan's target needs."""
    from dpcal import calibrate
    from dpcal.accountants import events
    from dpcal.commands._training import progress_bar

    needs = []
    with progress_bar(len(plans), "calibrating", unit="target") as bar:
        for plan in plans:
            query = plan.query("gradient")

            def event(sigma: float, query: Any = query) -> events.DpEvent:
                return events.dpsgd(
                    sampling_probability=query.sampling_probability,
                    noise_multiplier=sigma,
                    steps=query.count,
                )

            needs.append(calibrate.compare(event, epsilon=plan.epsilon, delta=plan.delta))
            bar.update()
    return needs


def calibration_table(needs: list[Needs]) -> str:
    """Return the table of noise multipliers, with the epsilon that each run really has."""
    lines = [
        f"Noise multiplier of DP-SGD (batch {BATCH_SIZE}, {EPOCHS} epochs) at delta = {DELTA:g}, "
        f"{needs[0].neighboring_relation}",
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
                f"{proved:<30}"
                f"{duration(row.seconds):>9}"
            )
    return "\n".join(lines)


# -- train


def _train(task: Task, plans: list[Plan]) -> list[list[Run]]:
    """Run every plan with every seed."""
    from dpcal.commands._training import progress_bar, train

    total = sum(plan.query("gradient").count for plan in plans) * len(SEEDS)
    with progress_bar(total, "training") as bar:
        return [
            [train(task, plan, seed=seed, advance=bar.update) for seed in SEEDS] for plan in plans
        ]


def _points(task: Task, runs: list[list[Run]]) -> list[Point]:
    from dpcal.plot import Point

    return [
        Point(
            epsilon=group[0].result.plan.epsilon,
            scores=tuple(task.score(run.result.w) for run in group),
        )
        for group in runs
    ]


def accuracy_table(points: list[Point], optimum: float) -> str:
    """Return the table of test accuracies beside the non-private optimum."""
    lines = [
        f"Private logistic regression, accuracy on {_held_out()} held-out records, "
        f"{len(SEEDS)} seeds",
        f"{'epsilon':>7}  {'mean':>7}  {'spread (sd)':>11}  {'non-private optimum':>19}",
    ]
    lines += [
        f"{point.epsilon:>7g}  {point.mean:>7.1%}  {point.spread:>11.1%}  {optimum:>19.1%}"
        for point in points
    ]
    return "\n".join(lines)


def _held_out() -> int:
    from dpcal.commands._breast_cancer import HELD_OUT

    return HELD_OUT


def _larger_class(task: Task) -> float:
    """Held-out accuracy of always answering the class that is larger among the held-out."""
    share = float((task.y_test == task.y_test[0]).mean())
    return max(share, 1 - share)


# -- report


def _document(
    task: Task,
    ranges: Ranges,
    needs: list[Needs],
    runs: list[list[Run]],
    points: list[Point],
    optimum: float,
) -> dict[str, Any]:
    """Everything that ``report.json`` says."""
    from dpcal.commands._breast_cancer import RANGES
    from dpcal.commands._training import AVERAGING
    from dpcal.report import (
        FORMAT,
        composed_epsilon,
        fingerprint,
        privacy_statement,
        released,
        software,
    )

    flat = [run for group in runs for run in group]
    seeds = list(SEEDS) * len(runs)
    return {
        "format": FORMAT,
        "version": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "privacy": privacy_statement(flat[0].result, outside=OUTSIDE),
        "data": {
            "name": "Wisconsin diagnostic breast cancer, as shipped by scikit-learn",
            "training_records": task.objective.n,
            "held_out_records": len(task.y_test),
            "features": len(RANGES),
            "scaling": ranges.to_dict(list(RANGES)),
            "fingerprint": fingerprint([task.X_train, task.y_train, task.X_test, task.y_test]),
        },
        "training": {
            "loss": task.loss,
            "l2": task.l2,
            "batch_size": BATCH_SIZE,
            "epochs": EPOCHS,
            "learning_rate": "dpcal.optim.dpsgd.default_learning_rate",
            "averaging": AVERAGING,
        },
        "calibration": [need.to_dict() for need in needs],
        "accuracy": [
            {"epsilon": point.epsilon, "mean": point.mean, "standard_deviation": point.spread}
            for point in points
        ],
        "non_private_optimum": optimum,
        "runs": [
            {**released(run.result), "seed": seed, "accuracy": task.score(run.result.w)}
            for run, seed in zip(flat, seeds, strict=True)
        ],
        "everything": composed_epsilon([run.result for run in flat], DELTA),
        "software": software(),
    }


def _write(
    folder: Path,
    document: dict[str, Any],
    plans: list[Plan],
    points: list[Point],
    optimum: float,
    chance: float,
) -> None:
    from dpcal import plot
    from dpcal.commands._training import progress_bar
    from dpcal.report import replacing

    curves = []
    with progress_bar(len(plans), "drawing", unit="curve") as bar:
        for plan in plans:
            curves.append(
                plot.Curve.of(plan.event, f"{plan.epsilon:g}", target=(plan.epsilon, plan.delta))
            )
            bar.update()
    with replacing(folder) as temporary:
        (temporary / "report.json").write_text(dump(document) + "\n")
        plot.save(plot.profile(curves), temporary / "privacy-profile.png")
        picture = plot.utility(points, optimum=optimum, chance=chance, title=TITLE)
        plot.save(picture, temporary / "accuracy.png")
