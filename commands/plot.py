"""``dpcal plot``: draw a privacy profile, a trade-off or Renyi curve, or a report's accuracies."""

from __future__ import annotations

import math
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import dpcal
from dpcal import _validate
from dpcal.commands._options import add_options, names_of, relation, required
from dpcal.commands.checking.mechanism import Mechanism, add_run
from dpcal.commands.checking.output import at_most, present
from dpcal.commands.checking.prices import ALL, cell, priced
from dpcal.commands.checking.progress import counted, stage

EXAMPLES = (
    "profile --sampling-probability 0.01 --noise-multiplier 1 --steps 10000 -o privacy-profile.png",
    "renyi --n 60000 --batch-size 512 --epochs 10 --noise-multiplier 1 --delta 1e-5 -o renyi.png",
)
TITLE = "Private logistic regression: mean and standard deviation over seeds"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the picture, what it shows, and its file."""
    add_options(
        parser,
        """
picture profile|trade-off|renyi|samplers|accuracy  of a mechanism, profile: delta against epsilon;
    trade-off: false-negative against false-positive rate; renyi: divergence against order. With
    --sampler random-allocation and shuffled-epochs, profile and trade-off are bounds from some
    epsilons, and shuffled-epochs have no renyi. samplers: epsilon at --delta by how batches are
    drawn. accuracy: a demo report's
""",
    )
    add_run(parser)
    add_options(
        parser,
        relation("the sampler's own"),
        """
--delta D:number+                   for profile, renyi and samplers: epsilon at these deltas
--accountants --accountant NAMES=characteristic,renyi  comma-separated, of characteristic, renyi,
    pld, prv (default: %(default)s)
--report FOLDER:path                for accuracy: a report
-o --output FILE:path!              a .png or .svg file
""",
    )


def run(options: Namespace) -> int:
    """Draw one picture."""
    dpcal.plot.check_picture(options.output)
    if options.picture == "accuracy":
        title = "Accuracies of private runs"
        document, figure = _accuracy(options)
        about = [str(options.report), ", ".join(document["neighboring_relations"])]
    else:
        told = Mechanism.of(options)
        title, draw = PICTURES[options.picture]
        found, figure = draw(options, told)
        document = {"mechanism": told.to_dict(), **found}
        about = document.pop("about", [told.sentence(), told.relation])
    about.append(f"dpcal {dpcal.report.software()['dpcal']}")
    if "bound" in document:
        about.append(document["bound"])
    dpcal.plot.save(figure, options.output, title=title, description=" | ".join(about))
    document = {"output": str(options.output), **document}
    present(options, document, f"picture written to {options.output}")
    return 0


def _profile(options: Namespace, told: Mechanism) -> tuple[dict[str, Any], Any]:
    """Draw delta against epsilon, with a mark for each delta that was named."""
    event = told.event()
    names = names_of(options.accountants)
    if not names:
        raise ValueError(f"--accountants must be of {', '.join(dpcal.plot.STYLES)}, got none.")
    for name in names:
        _validate.choice(tuple(dpcal.plot.STYLES), accountants=name)
    relation, targets = told.relation, []
    for delta in options.delta or ():
        stage(options, f"epsilon at delta = {delta:g}")
        at = dpcal.accountants.epsilon(event, delta=delta, neighboring_relation=relation)
        targets.append((at.upper, delta))
    label = f"epsilon = {at_most(targets[0][0], digits=5)}" if targets else ""
    curves: list[Any] = []
    for name in counted(options, "profile", names, unit="accountant"):
        how: dict[str, Any] = {"accountants": (name,), "neighboring_relation": relation}
        curves.append(dpcal.plot.Curve.of(event, label, **how))
        if curves[-1].lines[0].accountant != name:
            # What is priced point by point has the same lines, whatever the accountants are.
            break
    drawn = tuple(line for each in curves for line in each.lines)
    curve = replace(curves[0], lines=drawn, target=targets[0] if targets else None)
    figure = dpcal.plot.profile([curve])
    axes = figure.axes[0]
    for epsilon, delta in targets[1:]:
        color = axes.lines[0].get_color()
        axes.plot(epsilon, delta, marker="D", markersize=8, color=color, zorder=4)
        text = f"epsilon = {at_most(epsilon, digits=5)}\ndelta = {delta:g}"
        dpcal.plot.note(axes, text, (epsilon, delta), (-10, -6), ha="right", va="top", color=color)
    marks = [{"epsilon": epsilon, "delta": delta} for epsilon, delta in targets]
    lines = [
        {
            "accountant": line.accountant,
            "epsilon": line.epsilon.tolist(),
            "delta": line.delta.tolist(),
        }
        for line in curve.lines
    ]
    return {"profile": lines, "marks": marks}, figure


def _trade_off(options: Namespace, told: Mechanism) -> tuple[dict[str, Any], Any]:
    """Draw the smallest false-negative rates of any attack."""
    # Dense at both ends, where the curve is steep or flat.
    rates = [0.5 - 0.4999 * math.cos(math.pi * k / 200) for k in range(201)]
    stage(options, "trade-off curve")
    found = dpcal.plot.TradeOffCurve.of(told.event(), rates, neighboring_relation=told.relation)
    curve = found.curve
    document = {
        "false_positive_rate": curve.false_positive_rates.tolist(),
        "false_negative_rate": {"lower": curve.lower.tolist(), "upper": curve.upper.tolist()},
    }
    if found.points:
        document["bound"] = found.label
        document["points"] = [{"epsilon": at, "delta": delta} for at, delta in found.points]
    # The area between the bound and the diagonal is unknown, not an error band.
    drawn = dpcal.plot.trade_off_curve([(found.label, curve)], shaded=not found.points)
    return document, drawn


def _renyi(options: Namespace, told: Mechanism) -> tuple[dict[str, Any], Any]:
    """Draw Renyi divergences against the order."""
    event, deltas = told.event(), options.delta or ()
    for delta in deltas:
        _validate.probability(delta=delta)
    if len(deltas) > 1:
        raise ValueError(f"A renyi picture marks one delta, got --delta {deltas}.")
    stage(options, "Renyi divergences")
    curve = dpcal.plot.RenyiCurve.of(event, "", neighboring_relation=told.relation)
    document = {
        "order": curve.orders.tolist(),
        "divergence": curve.divergences.tolist(),
    }
    return document, dpcal.plot.renyi_curve([curve], delta=deltas[0] if deltas else None)


def _samplers(options: Namespace, told: Mechanism) -> tuple[dict[str, Any], Any]:
    """Draw epsilon of each sampler that has a price."""
    told.known("noise_multiplier", "steps")
    if len(options.delta or ()) != 1:
        raise ValueError(f"A samplers picture needs one --delta, got {options.delta}.")
    rows = priced(Namespace(**vars(options) | {"epsilon": None}), ALL)
    drawn = [
        (f"{row['sampler']}\n{row['neighboring_relation']}", cell(each), each["epsilon"])
        for row in rows
        for each in row["answers"]
    ]
    sizes = (
        f"{told.n} records, batches of {told.batch_size}, {told.passes} passes, noise of "
        f"{told.noise_multiplier!r} clipping norms"
    )
    figure = dpcal.plot.samplers(drawn, delta=options.delta[0])
    return {"samplers": rows, "about": [sizes]}, figure


def _accuracy(options: Namespace) -> tuple[dict[str, Any], Any]:
    """Read a demonstration's report and draw its accuracies again."""
    required(options, "report")
    try:
        report = dpcal.report.read(options.report)
        scores: dict[float, list[float]] = {}
        relations = {item["plan"]["neighboring_relation"] for item in report["runs"]}
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
    figure = dpcal.plot.utility(points, optimum=optimum, chance=None, title=TITLE)
    document = {
        "accuracy": [point.to_dict() for point in points],
        "non_private_optimum": optimum,
        "neighboring_relations": sorted(relations),
    }
    return document, figure


PICTURES: Mapping[str, tuple[str, Callable[..., tuple[dict[str, Any], Any]]]] = {
    "profile": ("Privacy profile", _profile),
    "trade-off": ("Trade-off of false positives and false negatives", _trade_off),
    "renyi": ("Renyi divergences", _renyi),
    "samplers": ("Epsilon by how batches are drawn", _samplers),
}
