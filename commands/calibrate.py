"""``dpcal calibrate``: solve for the noise, the steps or the sampling that meets a target."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

import dpcal
from dpcal.commands._options import (
    add_mechanism,
    add_relation,
    add_target,
    mechanism_dict,
    mechanism_with,
    number,
    required,
    whole,
)
from dpcal.commands._output import answer, present

if TYPE_CHECKING:
    from dpcal.accountants.events import DpEvent

EXAMPLE = "--sampling-probability 0.01 --steps 10000 --epsilon 2 --delta 1e-6"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare a mechanism with one unknown, or a run, and the target."""
    add_mechanism(parser)
    run = parser.add_argument_group("run: instead of a sampling probability; gives a plan")
    run.add_argument("--n", type=whole, metavar="N", help="number of records >= 1, public")
    run.add_argument("--batch-size", type=whole, metavar="B", help="expected batch, in [1, N]")
    run.add_argument("--epochs", type=number, metavar="E", help="passes > 0, instead of --steps")
    run.add_argument("--max-norm", type=number, default=1.0, metavar="C", help="clipping norm > 0")
    run.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the plan as JSON")
    add_target(parser, needed=True)
    add_relation(parser)


def run(options: Namespace) -> int:
    """Print the solution with the interval of its epsilon."""
    if options.n is None and options.batch_size is None and options.epochs is None:
        if options.output is not None:
            raise ValueError("--output writes a plan, which needs --n and --batch-size.")
        return _solve(options)
    return _plan(options)


def _plan(options: Namespace) -> int:
    """Calibrate a run and print, or write, its plan."""
    required(options, "n", "batch_size")
    if options.sampling_probability is not None or options.noise_multiplier is not None:
        raise ValueError(
            "--n and --batch-size stand for the sampling probability, and the noise is solved for: "
            "omit --sampling-probability and --noise-multiplier."
        )
    plan = dpcal.calibrate.dpsgd(
        n=options.n,
        batch_size=options.batch_size,
        epochs=options.epochs,
        steps=options.steps,
        epsilon=options.epsilon,
        delta=options.delta,
        max_norm=options.max_norm,
        neighboring_relation=options.neighboring_relation,
    )
    price = plan.price()
    query = plan.query("gradient")
    text = (
        f"noise_multiplier = {query.noise_multiplier!r} for {query.count} steps at "
        f"sampling_probability = {query.sampling_probability:g}\n"
        + answer("epsilon", price, f"delta = {plan.delta:g}")
    )
    if options.output is not None:
        dpcal.report.replace_file(options.output, (plan.to_json() + "\n").encode())
        text += f"\nplan written to {options.output}"
    document = {
        "noise_multiplier": query.noise_multiplier,
        "delta": plan.delta,
        "epsilon": price.to_dict(),
        "plan": json.loads(plan.to_json()),
    }
    present(options, document, text)
    return 0


def _solve(options: Namespace) -> int:
    """Solve for the one parameter of the mechanism that was not given."""
    given = mechanism_dict(options)
    unknown = [name for name, value in given.items() if value is None]
    if len(unknown) != 1:
        raise ValueError(
            "Exactly one of --noise-multiplier, --steps and --sampling-probability must be left "
            f"out, to be solved for, but {len(unknown)} are."
        )
    (name,) = unknown

    def event_of(value: float) -> DpEvent:
        return mechanism_with(options, **{name: value})

    solution = getattr(dpcal.calibrate, name)(
        event_of,
        epsilon=options.epsilon,
        delta=options.delta,
        neighboring_relation=options.neighboring_relation,
    )
    epsilon = dpcal.accountants.epsilon(
        event_of(solution),
        delta=options.delta,
        neighboring_relation=options.neighboring_relation,
    )
    document = {
        name: solution,
        "delta": options.delta,
        "epsilon": epsilon.to_dict(),
        "mechanism": {**given, name: solution},
    }
    text = answer("epsilon", epsilon, f"delta = {options.delta:g}")
    present(options, document, f"{name} = {solution!r}\n{text}")
    return 0
