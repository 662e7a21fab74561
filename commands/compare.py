"""``dpcal compare``: ask several accountants, or about several samplers, the same question."""

from __future__ import annotations

import warnings
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from typing import Any

import dpcal
from dpcal import _validate
from dpcal.commands._options import (
    ACCOUNTANTS,
    BACKENDS,
    TARGETS,
    add_options,
    backends,
    names_of,
    relation,
    required,
)
from dpcal.commands.checking.mechanism import Mechanism, add_run
from dpcal.commands.checking.output import present
from dpcal.commands.checking.prices import ALL, cell, is_bracket, priced, targets
from dpcal.commands.checking.progress import counted
from dpcal.errors import DisagreementWarning

EXAMPLES = (
    "--sampling-probability 512/60000 --noise-multiplier 1 --steps 10000 --delta 1e-6 "
    "--accountant characteristic,renyi",
    "--samplers --n 6000 --batch-size 512 --epochs 10 --noise-multiplier 1 --delta 1e-5",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the mechanism, deltas, and, in place of the noise, a target epsilon."""
    add_run(parser)
    add_options(
        parser,
        TARGETS,
        relation("the sampler's own"),
        "--accountants --accountant NAMES=characteristic,renyi,pld,prv  comma-separated "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--samplers",
        nargs="?",
        const=ALL,
        metavar="NAMES",
        help=f"one row a sampler, by the best accountant of each: {ALL} (default: all of them)",
    )
    add_options(parser, BACKENDS)


def run(options: Namespace) -> int:
    """Print each accountant's or sampler's epsilon, or the noise needed for a target epsilon.

    The exit status is 1 if two accountants' intervals contradict each other.
    """
    required(options, "delta")
    if (options.epsilon is None) == (options.noise_multiplier is None):
        raise ValueError(
            "Exactly one of --noise-multiplier (compare epsilons) and --epsilon (compare the noise "
            "needed) must be given."
        )
    if options.samplers is not None:
        return _samplers(options)
    told = Mechanism.of(options)
    names, tables = names_of(options.accountants), []
    if not names:
        raise ValueError(f"--accountants must be of {', '.join(ACCOUNTANTS)}, got none.")
    for name in names:
        _validate.choice(ACCOUNTANTS, accountants=name)
    for epsilon, delta in targets(options):
        ask = _epsilons if epsilon is None else _noises
        asked = [
            ask(options, told, epsilon, delta, accountants=(name,))
            for name in counted(options, f"delta = {delta:g}", names, unit="accountant")
        ]
        rows = tuple(row for table in asked for row in table.rows)
        tables.append(replace(asked[0], rows=rows))
    documents = [table.to_dict() for table in tables]
    document = documents[0] if len(documents) == 1 else {"comparisons": documents}
    present(options, document, "\n\n".join(map(str, tables)))
    return 1 if any(getattr(table, "disagreements", ()) for table in tables) else 0


def _epsilons(
    options: Namespace, told: Mechanism, _: float | None, delta: float, **accountants: Any
) -> Any:
    """Return the epsilons of accountants at one delta."""
    with warnings.catch_warnings():
        # The table and the exit status say it.
        warnings.simplefilter("ignore", DisagreementWarning)
        return dpcal.accountants.compare(
            told.event(),
            delta=delta,
            neighboring_relation=told.relation,
            options=backends(options),
            **accountants,
        )


def _noises(
    options: Namespace, told: Mechanism, epsilon: Any, delta: float, **accountants: Any
) -> Any:
    """Return the noise that one target needs, by accountants."""
    if any(backends(options).values()):
        raise ValueError("Options of pld and prv are for comparing epsilons (--noise-multiplier).")
    told.event(noise_multiplier=1.0)  # What is missing is named before anything is solved.
    return dpcal.calibrate.compare(
        lambda sigma: told.event(noise_multiplier=sigma),
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=told.relation,
        **accountants,
    )


# -- what each way of sampling costs


def _samplers(options: Namespace) -> int:
    """Print a row a sampler: what it costs, under which relation, and what it assumes."""
    rows = priced(options, options.samplers)
    present(options, {"samplers": rows}, _table(rows, _heads(options)))
    return 0


def _heads(options: Namespace) -> list[str]:
    """Return the heads of the columns of answers."""
    return [
        f"delta = {delta:g}" if epsilon is None else f"({epsilon:g}, {delta:g})"
        for epsilon, delta in targets(options)
    ]


def _table(rows: list[dict[str, Any]], heads: list[str]) -> str:
    """The answers, and what each sampler assumes: epsilons, or noise multipliers at targets."""
    wide = "".join(f"{head:>20}" for head in heads)
    lines = [f"{'sampler':<21}{'relation':<19}{wide}   assumes", ""]
    for row in rows:
        cells = "".join(f"{cell(each):>20}" for each in row["answers"])
        if not row["answers"]:
            cells = f"{'refused':>20}" * len(heads)
        lines.append(
            f"{row['sampler']:<21}{row['neighboring_relation']:<19}{cells}   {row['assumes']}"
        )
    lines += ["", *(f"{row['sampler']}: {row['refused']}" for row in rows if "refused" in row)]
    if any(is_bracket(each) for row in rows for each in row["answers"]):
        lines += ["", "[lower, upper] is a bracket: epsilon is proved to be between its ends."]
    if heads[0].startswith("("):
        lines += ["", "Numbers are the noise multipliers that meet each target (epsilon, delta)."]
    return "\n".join(lines).rstrip()
