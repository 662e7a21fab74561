"""``dpcal plot``: draw a privacy profile, a trade-off or Renyi curve, or a report's accuracies."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import dpcal
from dpcal import _validate
from dpcal.commands._options import (
    add_mechanism,
    add_relation,
    mechanism,
    mechanism_dict,
    number,
    required,
)
from dpcal.commands._output import at_most, present

if TYPE_CHECKING:
    from dpcal.plot import Curve

EXAMPLE = (
    "profile --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 -o privacy-profile.png"
)
TITLE = "Private logistic regression: mean and standard deviation over seeds"
PICTURES = ("profile", "trade-off", "renyi", "accuracy")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the picture, what it shows, and its file."""
    parser.add_argument(
        "picture",
        choices=PICTURES,
        help="of a mechanism, profile: delta against epsilon; trade-off: false-negative against "
        "false-positive rate; renyi: divergence against order. accuracy: a demo report's",
    )
    add_mechanism(parser)
    add_relation(parser)
    parser.add_argument(
        "--delta",
        type=number,
        metavar="D",
        help="for profile and renyi: mark epsilon at this delta",
    )
    parser.add_argument(
        "--accountants",
        default="characteristic,renyi",
        metavar="NAMES",
        help="comma-separated, of characteristic, renyi, pld, prv (default: %(default)s)",
    )
    parser.add_argument("--report", type=Path, metavar="FOLDER", help="for accuracy: a report")
    parser.add_argument(
        "-o", "--output", type=Path, required=True, metavar="FILE", help="a .png file"
    )


def run(options: Namespace) -> int:
    """Draw one picture."""
    dpcal.plot.check_picture(options.output)
    if options.picture == "profile":
        curve = _curve(options)
        figure = dpcal.plot.profile([curve])
        document = {"mechanism": mechanism_dict(options), "profile": _values(curve)}
    elif options.picture == "trade-off":
        document, figure = _trade_off(options)
    elif options.picture == "renyi":
        document, figure = _renyi(options)
    else:
        document, figure = _accuracy(options)
    dpcal.plot.save(figure, options.output)
    present(
        options,
        {"output": str(options.output), **document},
        f"picture written to {options.output}",
    )
    return 0


def _curve(options: Namespace) -> Curve:
    event = mechanism(options)
    names = tuple(options.accountants.split(","))
    for name in names:
        _validate.choice(tuple(dpcal.plot.STYLES), accountants=name)
    target = None
    if options.delta is not None:
        relation = options.neighboring_relation
        at_delta = dpcal.accountants.epsilon(
            event, delta=options.delta, neighboring_relation=relation
        )
        target = (at_delta.upper, options.delta)
    return dpcal.plot.Curve.of(
        event,
        "" if target is None else f"epsilon = {at_most(target[0], digits=5)}",
        target=target,
        accountants=names,
        neighboring_relation=options.neighboring_relation,
    )


def _values(curve: Curve) -> list[dict[str, Any]]:
    return [
        {
            "accountant": line.accountant,
            "epsilon": line.epsilon.tolist(),
            "delta": line.delta.tolist(),
        }
        for line in curve.lines
    ]


def _trade_off(options: Namespace) -> tuple[dict[str, Any], Any]:
    """Draw the smallest false-negative rates of any attack."""
    event = mechanism(options)
    # Dense at both ends, where the curve is steep or flat.
    rates = [0.5 - 0.4999 * math.cos(math.pi * k / 200) for k in range(201)]
    curve = dpcal.accountants.trade_off(
        event, rates, neighboring_relation=options.neighboring_relation
    )
    document = {
        "mechanism": mechanism_dict(options),
        "false_positive_rate": curve.false_positive_rates.tolist(),
        "false_negative_rate": {"lower": curve.lower.tolist(), "upper": curve.upper.tolist()},
    }
    return document, dpcal.plot.trade_off_curve([("", curve)])


def _renyi(options: Namespace) -> tuple[dict[str, Any], Any]:
    """Draw Renyi divergences against the order."""
    event = mechanism(options)
    if options.delta is not None:
        _validate.probability(delta=options.delta)
    curve = dpcal.plot.RenyiCurve.of(event, "", neighboring_relation=options.neighboring_relation)
    document = {
        "mechanism": mechanism_dict(options),
        "order": curve.orders.tolist(),
        "divergence": curve.divergences.tolist(),
    }
    return document, dpcal.plot.renyi_curve([curve], delta=options.delta)


def _accuracy(options: Namespace) -> tuple[dict[str, Any], Any]:
    """Read a demonstration's report and draw its accuracies again."""
    required(options, "report")
    try:
        report = dpcal.report.read(options.report)
        scores: dict[float, list[float]] = {}
        for item in report["runs"]:
            scores.setdefault(item["plan"]["epsilon"], []).append(item["accuracy"])
        optimum = report["non_private_optimum"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"report must be the folder of a demo report, got {str(options.report)!r}: {error}."
        ) from error
    points = [
        dpcal.plot.Point(epsilon=value, scores=tuple(group))
        for value, group in sorted(scores.items())
    ]
    rows = [
        {"epsilon": point.epsilon, "mean": point.mean, "standard_deviation": point.spread}
        for point in points
    ]
    figure = dpcal.plot.utility(points, optimum=optimum, chance=None, title=TITLE)
    return {"accuracy": rows, "non_private_optimum": optimum}, figure
