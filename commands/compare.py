"""``dpcal compare``: ask several accountants the same question."""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace

import dpcal
from dpcal.commands._options import (
    add_backends,
    add_mechanism,
    add_relation,
    add_target,
    backends,
    mechanism,
    mechanism_with,
    required,
)
from dpcal.commands._output import present
from dpcal.errors import DisagreementWarning

EXAMPLE = "--sampling-probability 0.01 --noise-multiplier 1 --steps 10000 --delta 1e-6"


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the mechanism, delta, and, in place of the noise, a target epsilon."""
    add_mechanism(parser)
    add_target(parser, needed=False)
    add_relation(parser)
    parser.add_argument(
        "--accountants",
        default="characteristic,renyi,pld,prv",
        metavar="NAMES",
        help="comma-separated (default: %(default)s)",
    )
    add_backends(parser)


def run(options: Namespace) -> int:
    """Print each accountant's epsilon, or the noise that each needs for a target epsilon.

    The exit status is 1 if two accountants' intervals contradict each other.
    """
    required(options, "delta")
    if (options.epsilon is None) == (options.noise_multiplier is None):
        raise ValueError(
            "Exactly one of --noise-multiplier (compare epsilons) and --epsilon (compare the noise "
            "needed) must be given."
        )
    names = tuple(options.accountants.split(","))
    if options.epsilon is None:
        event = mechanism(options)
        with warnings.catch_warnings():
            # The table and the exit status say it.
            warnings.simplefilter("ignore", DisagreementWarning)
            comparison = dpcal.accountants.compare(
                event,
                delta=options.delta,
                neighboring_relation=options.neighboring_relation,
                accountants=names,
                options=backends(options),
            )
        present(options, comparison.to_dict(), str(comparison))
        return 1 if comparison.disagreements else 0
    required(options, "sampling_probability", "steps")
    if any(backends(options).values()):
        raise ValueError("Options of pld and prv are for comparing epsilons (--noise-multiplier).")
    needs = dpcal.calibrate.compare(
        lambda sigma: mechanism_with(options, noise_multiplier=sigma),
        epsilon=options.epsilon,
        delta=options.delta,
        neighboring_relation=options.neighboring_relation,
        accountants=names,
    )
    present(options, needs.to_dict(), str(needs))
    return 0
