"""``dpcal compare``: ask several accountants the same question."""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace

from dpcal.commands._options import (
    add_backends,
    add_mechanism,
    add_relation,
    add_target,
    backends,
    mechanism,
    required,
)
from dpcal.commands._output import present

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
        from dpcal import accountants
        from dpcal.errors import DisagreementWarning

        with warnings.catch_warnings():
            # The table and the exit status say it.
            warnings.simplefilter("ignore", DisagreementWarning)
            comparison = accountants.compare(
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
    from dpcal import calibrate
    from dpcal.accountants import events

    needs = calibrate.compare(
        lambda sigma: events.dpsgd(
            sampling_probability=options.sampling_probability,
            noise_multiplier=sigma,
            steps=options.steps,
        ),
        epsilon=options.epsilon,
        delta=options.delta,
        neighboring_relation=options.neighboring_relation,
        accountants=names,
    )
    present(options, needs.to_dict(), str(needs))
    return 0
