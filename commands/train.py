"""``dpcal train``: fit a private linear model to a table of one's own, with a report."""

from __future__ import annotations

import dataclasses
import math
import secrets
import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcal.commands._options import add_relation, add_target, number, whole
from dpcal.commands._output import answer, dump, present
from dpcal.commands._tuning import add_tuning, flag, given_tuning

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpcal.accountants.matrix import Strategy
    from dpcal.calibrate import Constants, Plan, Query
    from dpcal.commands._tables import Ranges, Table
    from dpcal.commands._training import Run, Task
    from dpcal.optim import Result
    from dpcal.optim.registry import Optimizer
    from dpcal.plot import Curve

EXAMPLE = "--csv patients.csv --target diagnosis --epsilon 1 --delta 1e-5 --bounds 0:100"

OUTSIDE = (
    "The ranges given with --bounds and --target-bounds, batch size, epochs, clipping norm and the "
    "other options are taken as public: the claim does not cover a choice that looked at records.",
    "The split into training and held-out records depends on the number of rows alone. Held-out "
    "records played no part in the parameters, and are not protected: the section 'evaluation' and "
    "accuracy.png are computed from them without noise.",
    "The fingerprint is keyed; its key, fingerprint.key, must not be published: with it, guesses "
    "of a record can be tested.",
)


NOISES = ("lambda-cgd", "banded", "bisr", "blt", "square-root", "tree")
CORRELATED_SAMPLERS = (
    "poisson",
    "cyclic-poisson",
    "min-separation",
    "balls-in-bins",
    "random-allocation",
    "full",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the table, the target, the model and its training."""
    table = parser.add_argument_group("table")
    table.add_argument("--csv", type=Path, required=True, metavar="FILE", help="numeric features")
    table.add_argument("--target", required=True, metavar="COLUMN", help="what to predict")
    table.add_argument(
        "--bounds",
        metavar="LOW:HIGH|FILE",
        help="public range of every feature, or a JSON file of column: [low, high]; values are "
        "clamped, and ranges scaled to [-4, 4] (default: features are used as they are)",
    )
    table.add_argument(
        "--target-bounds",
        metavar="LOW:HIGH",
        help="public range of the target of a squared loss, scaled likewise",
    )
    table.add_argument(
        "--test-fraction",
        type=number,
        default=0.2,
        metavar="F",
        help="share in [0, 1) of the rows to hold out (default: %(default)s)",
    )
    add_target(parser, needed=True)
    add_relation(parser, default=None, note="the optimizer's first")
    model = parser.add_argument_group("model and training")
    model.add_argument(
        "--optimizer",
        default="dpsgd",
        metavar="NAME",
        help="one of those that 'dpcal optimizers' lists (default: %(default)s)",
    )
    model.add_argument(
        "--loss", choices=("logistic", "squared"), default="logistic", help="(default: %(default)s)"
    )
    model.add_argument("--l2", type=number, default=0.0, help="regulariser >= 0")
    model.add_argument(
        "--no-intercept",
        dest="intercept",
        action="store_false",
        help="fit no intercept: with --l2 the loss is then strongly convex",
    )
    public = parser.add_argument_group(
        "constants", "public bounds; those that --bounds does not imply, or better ones"
    )
    public.add_argument(
        "--smoothness", type=number, metavar="L", help="of one record's loss, > 0, without --l2"
    )
    public.add_argument(
        "--gap", type=number, metavar="F", help="on how much the loss can fall below its start, > 0"
    )
    add_tuning(parser)
    correlated = parser.add_argument_group("correlated noise (--optimizer correlated_dpsgd)")
    correlated.add_argument(
        "--noise",
        choices=NOISES,
        metavar="NAME",
        help=f"what correlates the noise of the steps: {', '.join(NOISES)} (default: nothing)",
    )
    correlated.add_argument(
        "--decay", type=number, help="for lambda-cgd: share in [0, 1) of the last noise taken back"
    )
    correlated.add_argument(
        "--bands",
        type=whole,
        help="for banded and bisr: diagonals >= 1 of C or of its inverse (default: 4); for blt: "
        "buffers",
    )
    correlated.add_argument(
        "--sampler",
        choices=CORRELATED_SAMPLERS,
        metavar="NAME",
        help=f"{', '.join(CORRELATED_SAMPLERS)} (default: poisson)",
    )
    correlated.add_argument(
        "--separation", type=whole, metavar="B", help="steps between two of one record, at least"
    )
    correlated.add_argument(
        "--proved",
        action="store_true",
        help="calibrate by proved bounds, not by draws, at the price of more noise",
    )
    parser.add_argument(
        "--seed", type=whole, help=">= 0; to be kept secret (default: fresh from the system)"
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("dpcal-report"),
        metavar="FOLDER",
        help="report to write or replace (default: %(default)s)",
    )


def run(options: Namespace) -> int:
    """Read, calibrate, train, and write the report."""
    from dpcal.report import check_replaceable

    check_replaceable(options.output)
    row = _row(options)
    data = _read(options)
    plan = _plan(options, row, data)
    run = _train(data.task, plan, options.seed)
    document = _document(options, data, run)
    _write(options.output, document, data, run)
    present(options, document, _summary(options, data.task, run))
    return 0


# -- data


@dataclass(frozen=True, kw_only=True, eq=False)
class _Data:
    """The table as a task, and how it was scaled."""

    features: list[str]
    task: Task
    ranges: Ranges | None
    target_range: Ranges | None
    key: bytes

    def scaling(self) -> dict[str, Any]:
        """Return what was done to the records, as JSON values."""
        scaling: dict[str, Any] = {"features": "used as they are; privacy rests on clipping"}
        if self.ranges is not None:
            scaling["features"] = self.ranges.to_dict(self.features)
        if self.target_range is not None:
            scaling["target"] = self.target_range.to_dict(["target"])
        return scaling


def _read(options: Namespace) -> _Data:
    """Read the table, scale it by public ranges, and split it."""
    from dpcal.commands._tables import read_csv, read_ranges, split
    from dpcal.commands._training import Task

    table = read_csv(options.csv)
    y, target_range = _target(options, table)
    features = [name for name in table.columns if name != options.target]
    if not features:
        raise ValueError(f"csv must hold a column beside the target, got only {options.target!r}.")
    X = table.numbers(features)
    ranges = None
    if options.bounds is not None:
        ranges = read_ranges(options.bounds, features)
        X = ranges.scale(X)
    if not 0 <= options.test_fraction < 1:
        raise ValueError(f"test_fraction must be a number in [0, 1), got {options.test_fraction}.")
    training, held_out = split(len(y), math.floor(options.test_fraction * len(y)))
    task = Task(
        loss=options.loss,
        X_train=X[training],
        y_train=y[training],
        X_test=X[held_out],
        y_test=y[held_out],
        l2=options.l2,
        intercept=options.intercept,
        unit=1.0 if target_range is None else _unit(target_range),
    )
    return _Data(
        features=features,
        task=task,
        ranges=ranges,
        target_range=target_range,
        key=secrets.token_bytes(32),
    )


def _target(options: Namespace, table: Table) -> tuple[NDArray[Any], Ranges | None]:
    """Labels as text, or numbers scaled by their public range."""
    import numpy as np

    from dpcal.commands._tables import read_ranges

    labels = table.column(options.target)
    if options.loss == "logistic":
        if options.target_bounds is not None:
            raise ValueError("--target-bounds is for --loss squared.")
        return _classes(options, table, labels), None
    y = table.numbers([options.target])
    if options.target_bounds is None:
        return y[:, 0], None
    ranges = read_ranges(options.target_bounds, [options.target], option="target_bounds")
    return np.asarray(ranges.scale(y)[:, 0]), ranges


def _classes(options: Namespace, table: Table, labels: list[str]) -> NDArray[np.str_]:
    """Return two-class labels, or say which they are instead."""
    import numpy as np

    array = np.array([label.strip() for label in labels])
    missing = [line for line, label in zip(table.lines, array, strict=True) if not label]
    if missing:
        raise ValueError(
            f"Every record must have a label, got none in row {missing[0]}, column "
            f"{options.target!r}."
        )
    classes = np.unique(array)
    if len(classes) != 2:
        shown = ", ".join(map(repr, classes[:5].tolist())) + (", ..." if len(classes) > 5 else "")
        raise ValueError(
            f"target must hold two classes for --loss logistic, got {len(classes)} in column "
            f"{options.target!r}: {shown}."
        )
    return array


def _unit(ranges: Ranges) -> float:
    """How much of the original target one unit of the scaled one is."""
    from dpcal.commands._tables import REACH

    return float(ranges.high[0] - ranges.low[0]) / (2 * REACH)


# -- the run


# What implies a constant that a theorem needs, for readers who gave too little.
SOURCES = {
    "lipschitz": "--max-norm, or --bounds with --loss logistic",
    "smoothness": "--smoothness or --bounds",
    "gap": "--gap, or --target-bounds",
    "gamma": "--gamma, or --l2 > 0 with --no-intercept and kappa = 2",
}


def _row(options: Namespace) -> Optimizer:
    """Return the optimizer that was asked for, if it can do what was asked of it."""
    from dpcal.optim.registry import find

    optimizer = options.optimizer
    if options.noise is not None and optimizer == "dpsgd":
        optimizer = "correlated_dpsgd"
    row = find(optimizer)
    _check_noise(options, optimizer)
    for name in given_tuning(options):
        if name not in row.options and not (name == "max_norm" and row.constants):
            raise ValueError(f"{flag(name)} is not for --optimizer {row.name}.")
    for name in ("smoothness", "gap"):
        if getattr(options, name) is not None and not row.constants:
            raise ValueError(f"{flag(name)} is not for --optimizer {row.name}.")
    if options.neighboring_relation is None:
        options.neighboring_relation = row.relations[0]
    if options.neighboring_relation not in row.relations:
        raise ValueError(
            f"--neighboring-relation must be {' or '.join(row.relations)} for --optimizer "
            f"{row.name}, got {options.neighboring_relation!r}."
        )
    return row


def _plan(options: Namespace, row: Optimizer, data: _Data) -> Plan:
    """Calibrate the optimizer that was asked for, with what was asked of it."""
    objective, given = data.task.objective, given_tuning(options)
    target = {
        "n": objective.n,
        "epsilon": options.epsilon,
        "delta": options.delta,
        "neighboring_relation": options.neighboring_relation,
    }
    if row.name == "correlated_dpsgd":
        return _correlated_plan(options, row, target, given)
    if not row.constants:
        plan: Plan = row.build()(**target, **{**_defaults(objective.n, given), **given})
        return plan
    constants = _public_constants(options, data, row)
    _check_needs(row, constants, given)
    if "max_norm" not in row.options:
        given.pop("max_norm", None)  # it is among the constants
    if "l2" in row.options:
        given["l2"] = options.l2
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        plan = row.build()(constants, dimension=objective.dimension, **target, **given)
    for warning in caught:
        print(f"dpcal: warning: {warning.message}", file=sys.stderr)
    return plan


def _check_noise(options: Namespace, optimizer: str) -> None:
    """Refuse options of correlated noise where there is none."""
    if options.noise is None and optimizer == "correlated_dpsgd":
        raise ValueError(f"--optimizer {optimizer} needs --noise: one of {', '.join(NOISES)}.")
    if options.noise is not None and optimizer != "correlated_dpsgd":
        raise ValueError(f"--noise is not for --optimizer {optimizer}.")
    if options.decay is not None and options.noise != "lambda-cgd":
        raise ValueError("--decay is for --noise lambda-cgd.")
    if options.bands is not None and options.noise not in ("banded", "bisr", "blt"):
        raise ValueError("--bands is for --noise banded, bisr or blt.")
    for name in ("sampler", "separation", "proved"):
        if getattr(options, name) not in (None, False) and options.noise is None:
            raise ValueError(f"--{name} goes with --noise.")


def _correlated_plan(
    options: Namespace, row: Optimizer, target: Mapping[str, Any], given: dict[str, Any]
) -> Plan:
    """Calibrate a matrix mechanism for the number of steps that was asked for."""
    n, sampler = target["n"], options.sampler or "poisson"
    chosen = {**_defaults(n, given), **given}
    if sampler == "full":
        chosen["batch_size"] = given.get("batch_size", n)
    epochs, steps = chosen.pop("epochs", None), chosen.pop("steps", None)
    if epochs is not None and steps is not None:
        raise ValueError("--epochs and --steps exclude each other.")
    if steps is None:
        from dpcal import _validate

        steps = math.ceil(_validate.positive(epochs=epochs) * n / chosen["batch_size"])
    plan: Plan = row.build()(
        _strategy(options, steps),
        sampler=sampler,
        separation=options.separation,
        statistics=not options.proved,
        **target,
        **chosen,
    )
    return plan


def _strategy(options: Namespace, steps: int) -> Strategy:
    """Return the strategy of a name, optimised for prefix sums where it has free parameters."""
    from dpcal.accountants import matrix

    bands = min(options.bands or 4, steps)
    if options.noise == "lambda-cgd":
        if options.decay is None:
            raise ValueError("--noise lambda-cgd needs --decay.")
        return matrix.LambdaCGD(steps, options.decay)
    strategies: dict[str, Callable[[], Strategy]] = {
        "banded": lambda: matrix.Banded.optimised(steps, bands),
        "bisr": lambda: matrix.BISR(steps, bands),
        "blt": lambda: matrix.BLT.optimised(steps, bands),
        "square-root": lambda: matrix.SquareRoot(steps),
        "tree": lambda: matrix.Tree(steps),
    }
    return strategies[options.noise]()


def _defaults(n: int, given: Mapping[str, Any]) -> dict[str, Any]:
    """What DP-SGD is run with where nothing else is asked for."""
    defaults = {"batch_size": min(n, max(64, math.ceil(3 * math.sqrt(n)))), "max_norm": 1.0}
    return defaults if "steps" in given else {**defaults, "epochs": 20.0}


def _public_constants(options: Namespace, data: _Data, row: Optimizer) -> Constants:
    """Return what the public ranges imply, or was said; nothing is read off the records.

    Scaled features are in [-REACH, REACH], and the intercept is a feature 1.
    """
    from dpcal import _validate
    from dpcal.calibrate import Constants
    from dpcal.commands._tables import REACH

    square = math.inf
    if data.ranges is not None:
        square = REACH**2 * len(data.features) + options.intercept
    if options.loss == "logistic":
        lipschitz, smoothness, gap = math.sqrt(square), square / 4, math.log(2)
    else:
        lipschitz, smoothness = math.inf, square
        gap = math.inf if data.target_range is None else REACH**2 / 2
    if options.smoothness is not None:
        smoothness = _validate.positive(smoothness=options.smoothness)
    if options.gap is not None:
        gap = _validate.positive(gap=options.gap)
    if options.max_norm is not None and "max_norm" not in row.options:
        lipschitz = _validate.positive(max_norm=options.max_norm)
    return Constants(
        lipschitz=lipschitz,
        smoothness=smoothness + (0.0 if "l2" in row.options else options.l2),
        strong_convexity=0.0 if options.intercept else options.l2,
        gap=None if gap == math.inf else gap,
    )


def _check_needs(row: Optimizer, constants: Constants, given: Mapping[str, Any]) -> None:
    """Say what else an optimizer needs, in words of the command line."""
    implied = constants.strong_convexity > 0 and given.get("kappa", 2.0) == 2
    known = {
        "lipschitz": constants.lipschitz < math.inf,
        "smoothness": constants.smoothness < math.inf,
        "gap": constants.gap is not None,
        "gamma": implied,
    }
    for need in row.needs:
        ways = need.split(" or ")
        if ways[0] in known and not any(known.get(way) or way in given for way in ways):
            others = "".join(f", or {flag(way)}" for way in ways[1:] if way != "max_norm")
            raise ValueError(
                f"--optimizer {row.name} needs {ways[0]}: give {SOURCES[ways[0]]}{others}."
            )


def _train(task: Task, plan: Plan, seed: int | None) -> Run:
    from dpcal.commands._training import progress_bar, train

    steps = plan.parameters.get("steps") or sum(query.count for query in plan.queries)
    with progress_bar(int(steps), "training") as bar, warnings.catch_warnings():
        # A run that diverged says so in its message.
        warnings.simplefilter("ignore", RuntimeWarning)
        run = train(task, plan, seed=seed, advance=bar.update)
    if not run.result.complete:
        raise ValueError(f"The run {run.result.message}; nothing was written.")
    return run


# -- the report


def _document(options: Namespace, data: _Data, run: Run) -> dict[str, Any]:
    """Everything that ``report.json`` says."""
    from dpcal.commands._training import averaging
    from dpcal.report import (
        FORMAT,
        composed_epsilon,
        fingerprint,
        privacy_statement,
        released,
        software,
    )

    task, result = data.task, run.result
    arrays = [task.X_train, task.y_train, task.X_test, task.y_test]
    return {
        "format": FORMAT,
        "version": 1,
        "written": datetime.now(UTC).isoformat(timespec="seconds"),
        "privacy": privacy_statement(result, outside=OUTSIDE),
        "data": {
            "name": options.csv.name,
            "training_records": task.objective.n,
            "held_out_records": len(task.y_test),
            "features": len(data.features),
            "scaling": data.scaling(),
            "fingerprint": fingerprint(arrays, key=data.key),
        },
        "training": {
            "optimizer": result.plan.optimizer,
            "loss": task.loss,
            "l2": task.l2,
            "averaging": averaging(result.plan.optimizer),
        },
        "model": _model(data, run),
        "runs": [{**released(result), "seed_given": options.seed is not None}],
        "everything": composed_epsilon([result], result.plan.delta),
        "evaluation": {
            "covered_by_the_claim": False,
            "metric": task.metric,
            "held_out": task.score(result.w) if len(task.y_test) else None,
        },
        "software": software(),
    }


def _model(data: _Data, run: Run) -> dict[str, Any]:
    """The released parameters, for scaled features."""
    from dpcal.optim import Logistic

    weights = run.result.w.tolist()
    intercept = weights.pop() if data.task.intercept else 0.0
    model = {
        "weights": dict(zip(data.features, weights, strict=True)),
        "intercept": intercept,
        "for": "scaled features, as under data.scaling",
    }
    if isinstance(data.task.objective, Logistic):
        model["classes"] = data.task.objective.classes_.tolist()
        model["predicts"] = "the second class where <weights, features> + intercept > 0"
    return model


def _write(folder: Path, document: dict[str, Any], data: _Data, run: Run) -> None:
    from dpcal import plot
    from dpcal.report import replacing

    plan = run.result.plan
    correlated = any(query.correlation for query in plan.queries)
    with replacing(folder) as temporary:
        (temporary / "report.json").write_text(dump(document) + "\n")
        secret = temporary / "fingerprint.key"
        secret.touch(mode=0o600)
        secret.write_text(data.key.hex() + "\n")
        if not correlated:
            plot.save(plot.profile([_curve(plan)]), temporary / "privacy-profile.png")
        if run.scores and _evenly(plan):
            plot.save(_picture(data.task, run), temporary / "accuracy.png")


def _curve(plan: Plan) -> Curve:
    """The privacy profile of a plan."""
    from dpcal import plot

    return plot.Curve.of(
        plan.event,
        f"epsilon = {plan.epsilon:g}",
        target=(plan.epsilon, plan.delta) if plan.epsilon > 0 else None,
        accountants=("characteristic", "renyi"),
        neighboring_relation=plan.neighboring_relation,
    )


def _evenly(plan: Plan) -> bool:
    """Whether every step costs the same answer, so that a cost can be told along the run."""
    query, *others = plan.queries
    # Under correlated noise the first step costs as much as all of them.
    plain = query.budget is None and query.correlation is None
    return plain and not others and query.composition == "sequential"


def _picture(task: Task, run: Run) -> Any:
    """Held-out score along the run, against the epsilon spent until then."""
    from dpcal import plot
    from dpcal.optim import Ledger

    plan = run.result.plan
    (query,) = plan.queries

    def spent(steps: int) -> float:
        entry = dataclasses.replace(query, count=steps)
        return Ledger(plan.n, plan.neighboring_relation, entries=[entry]).epsilon(plan.delta)

    return plot.along_run(
        [spent(steps) for steps, _ in run.scores],
        [score for _, score in run.scores],
        final=task.score(run.result.w),
        ylabel=f"held-out {task.metric}",
        share=task.loss == "logistic",
    )


def _summary(options: Namespace, task: Task, run: Run) -> str:
    result = run.result
    lines = [
        f"{result.message}, {task.objective.n} training records",
        *_answers(result),
        answer("epsilon", result.epsilon(result.plan.delta), f"delta = {result.plan.delta:g}"),
    ]
    if "label" in result.plan.parameters:
        lines.append(f"the price is {result.plan.parameters['label']}")
    if len(task.y_test):
        score = task.score(result.w)
        lines.append(f"held-out {task.metric} (not private): {score:.4g}")
    return "\n".join([*lines, f"report written to {options.output}/"])


def _answers(result: Result) -> list[str]:
    """What was released, with the noise that it got: a line for each kind of answer."""
    lines = []
    totals = result.ledger.totals
    for kind in dict.fromkeys(query.kind for query in totals):
        lines.append(_line([query for query in totals if query.kind == kind]))
    if totals and totals[0].budget is not None:
        lines.append(
            "noise was chosen as the run went; all answers are charged as a single one with noise "
            f"multiplier {totals[0].budget:.5f}, which is the whole plan"
        )
    return lines or ["no record was asked about"]


def _line(queries: list[Query]) -> str:
    """How many answers of one kind there were, on which records, with what noise."""
    count = sum(query.count for query in queries)
    noises = [query.noise_multiplier for query in queries]
    least, most = f"{min(noises):.5f}", f"{max(noises):.5f}"
    noise = least if least == most else f"{least} to {most}"
    sizes = {query.batch_size for query in queries if query.batch_size is not None}
    records = " and ".join(dict.fromkeys(query.sampling.summary for query in queries))
    if queries[0].composition == "disjoint":
        records = f"on parts of {_range(sizes)} records that share none"
    if queries[0].correlation is not None:
        noise += f" correlated by {queries[0].correlation.strategy.kind}"
    noun = "mean iterate of one pass" if queries[0].kind == "one pass" else queries[0].kind
    return f"{noun}: {count} answer{'s' * (count != 1)}, noise multiplier {noise}, {records}"


def _range(sizes: set[int]) -> str:
    return str(min(sizes)) if len(sizes) == 1 else f"{min(sizes)} to {max(sizes)}"
