"""``dpcal epsilon``: bound epsilon at a delta, or delta at an epsilon."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from typing import Any

import dpcal
from dpcal.commands._options import (
    add_backends,
    add_mechanism,
    add_relation,
    add_target,
    backends,
    mechanism,
    mechanism_dict,
)
from dpcal.commands._output import answer, present

EXAMPLE = "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --delta 1e-6"
ACCOUNTANTS = ("auto", "characteristic", "renyi", "pld", "prv")


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the mechanism, exactly one of delta and epsilon, and the accountant."""
    add_mechanism(parser)
    add_target(parser, needed=False)
    add_relation(parser)
    parser.add_argument(
        "--accountant",
        choices=ACCOUNTANTS,
        default="auto",
        metavar="NAME",
        help=f"{', '.join(ACCOUNTANTS)} (default: %(default)s)",
    )
    parser.add_argument(
        "--cross-check",
        action="store_true",
        help="ask a second accountant, and fail with status 2 if the intervals do not meet",
    )
    add_backends(parser)


def run(options: Namespace) -> int:
    """Print the interval that contains the asked quantity."""
    if (options.epsilon is None) == (options.delta is None):
        raise ValueError("Exactly one of --delta and --epsilon must be given.")
    event = mechanism(options)
    how = {
        "neighboring_relation": options.neighboring_relation,
        "accountant": options.accountant,
        "cross_check": options.cross_check,
        **_accuracy(options),
    }
    document: dict[str, Any] = {"mechanism": mechanism_dict(options)}
    if options.epsilon is None:
        epsilon = dpcal.accountants.epsilon(event, delta=options.delta, **how)
        document |= {"delta": options.delta, "epsilon": epsilon.to_dict()}
        text = answer("epsilon", epsilon, f"delta = {options.delta:g}")
    else:
        log_delta = dpcal.accountants.log_delta(event, epsilon=options.epsilon, **how)
        delta = dpcal.accountants.delta(event, epsilon=options.epsilon, **how)
        document |= {
            "epsilon": options.epsilon,
            "delta": delta.to_dict(),
            "log_delta": log_delta.to_dict(),
        }
        text = answer("delta", delta, f"epsilon = {options.epsilon:g}")
    present(options, document, text)
    return 0


def _accuracy(options: Namespace) -> dict[str, float]:
    """What was given for the one other package that is asked."""
    given = backends(options)
    asked = options.accountant
    if asked not in given and options.cross_check:
        asked = "pld"
    for name, values in given.items():
        if values and name != asked:
            raise ValueError(f"Options of {name} were given, but {name} is not asked.")
    return given.get(asked, {})
