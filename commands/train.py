"""``dpcal train``: fit a private linear model to a table of one's own, with a report."""

from __future__ import annotations

import dataclasses
import math
import secrets
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpcal.commands._options import add_relation, add_target, number, whole
from dpcal.commands._output import answer, dump, present

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from dpcal.accountants.matrix import Strategy
    from dpcal.calibrate import Constants, Plan, Query
    from dpcal.commands._tables import Ranges, Table
    from dpcal.commands._training import Run, Task
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
CORRELATED_SAMPLERS = ("poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "full")


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
    add_relation(parser)
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
        "--batch-size",
        type=whole,
        metavar="B",
        help="expected batch, in [1, n] (default: 3 sqrt(n), at least 64)",
    )
    model.add_argument("--epochs", type=number, help="> 0 (default: 20, for dpsgd)")
    model.add_argument("--steps", type=whole, metavar="T", help=">= 1 (default: by the optimizer)")
    model.add_argument(
        "--max-norm",
        type=number,
        metavar="C",
        help="clipping norm > 0 of a record's gradient (default: 1 for dpsgd; else what the bounds "
        "imply)",
    )
    model.add_argument(
        "--learning-rate", type=number, help="> 0 (default: follows from public numbers)"
    )
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
    model.add_argument(
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
    data = _read(options)
    plan = _plan(options, data)
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


TUNABLE = ("batch_size", "epochs", "steps", "max_norm", "learning_rate")


def _plan(options: Namespace, data: _Data) -> Plan:
    """Calibrate the optimizer that was asked for, with what was asked of it."""
    from dpcal.optim.registry import find

    optimizer = options.optimizer
    if options.noise is not None and optimizer == "dpsgd":
        optimizer = "correlated_dpsgd"
    row, objective = find(optimizer), data.task.objective
    _check_noise(options, optimizer)
    given = {name: getattr(options, name) for name in TUNABLE if getattr(options, name) is not None}
    for name in given:
        if name not in row.options:
            raise ValueError(f"--{name.replace('_', '-')} is not for --optimizer {row.name}.")
    target = {
        "n": objective.n,
        "epsilon": options.epsilon,
        "delta": options.delta,
        "neighboring_relation": options.neighboring_relation,
    }
    plan: Plan
    if optimizer == "correlated_dpsgd":
        return _correlated_plan(options, row, target, given)
    if row.constants:
        constants = _public_constants(options, data)
        plan = row.build()(constants, dimension=objective.dimension, **target, **given)
    else:
        plan = row.build()(**target, **{**_defaults(objective.n, given), **given})
    return plan


def _check_noise(options: Namespace, optimizer: str) -> None:
    """Refuse options of correlated noise where there is none."""
    if (options.noise is not None) != (optimizer == "correlated_dpsgd"):
        raise ValueError(
            "--noise goes with --optimizer correlated_dpsgd (or none) and only with it, got "
            f"--noise {options.noise} with --optimizer {options.optimizer}."
        )
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


def _public_constants(options: Namespace, data: _Data) -> Constants:
    """Return what the public ranges imply; nothing is read off the records.

    Scaled features are in [-REACH, REACH], and the intercept is a feature 1.
    """
    from dpcal.calibrate import Constants
    from dpcal.commands._tables import REACH

    square = math.inf if data.ranges is None else REACH**2 * len(data.features) + 1
    if options.loss == "logistic":
        return Constants(
            lipschitz=math.sqrt(square), smoothness=square / 4 + options.l2, gap=math.log(2)
        )
    gap = None if data.target_range is None else REACH**2 / 2
    return Constants(lipschitz=math.inf, smoothness=square + options.l2, gap=gap)


def _train(task: Task, plan: Plan, seed: int | None) -> Run:
    import warnings

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

    *weights, intercept = run.result.w.tolist()
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
        # Under correlated noise the first step costs as much as all of them.
        if run.scores and len(plan.queries) == 1 and not correlated:
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
    noise = [_noise(query) for query in result.plan.queries]
    lines = [
        f"{result.message}, {'; '.join(noise)}, {task.objective.n} training records",
        answer("epsilon", result.epsilon(result.plan.delta), f"delta = {result.plan.delta:g}"),
    ]
    if "label" in result.plan.parameters:
        lines.append(f"the price is {result.plan.parameters['label']}")
    if len(task.y_test):
        score = task.score(result.w)
        lines.append(f"held-out {task.metric} (not private): {score:.4g}")
    return "\n".join([*lines, f"report written to {options.output}/"])


def _noise(query: Query) -> str:
    """The noise and the sampling of a query, in words."""
    words = f"noise multiplier {query.noise_multiplier:.5f}"
    if query.correlation is not None:
        words += f", correlated by {query.correlation.strategy.kind}"
    if query.sampling_probability is not None:
        words += f", sampling probability {query.sampling_probability:.5g}"
    return words if query.name == "gradient" else f"{query.name}: {words}"
