"""What can be asked of an optimizer on the command line? Its plan builder's keywords, as a table.

Which optimizer takes which is in ``dpcal.optim.registry``; here is how each is read and described,
so that ``dpcal train --help`` loads no optimizer.

>>> parser = ArgumentParser()
>>> add_tuning(parser)
>>> given_tuning(parser.parse_args(["--gamma", "2", "--preset", "theory"]))
{'preset': 'theory', 'gamma': 2.0}
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dpcal.commands._options import number, whole

__all__ = [
    "NOISES",
    "PROBLEMS",
    "TUNING",
    "Tunable",
    "add_correlated_noise",
    "add_minimax",
    "add_tuning",
    "flag",
    "given_tuning",
]


@dataclass(frozen=True, kw_only=True)
class Tunable:
    """One keyword of plan builders.

    Parameters
    ----------
    name
        The keyword.
    meaning
        What it is, its range, and what it is when omitted.
    read
        From text to value; its range is checked where it is used.
    metavar
        Its place in the usage, for numbers.
    choices
        The texts that it may be, if it is one of a few.
    """

    name: str
    meaning: str
    read: Callable[[str], Any] = number
    metavar: str | None = None
    choices: tuple[str, ...] | None = None


_BY_OPTIMIZER = "(default: by the optimizer)"

_ROWS = (
    Tunable(
        name="batch_size",
        read=whole,
        metavar="B",
        meaning="expected batch, in [1, n] (default: 3 sqrt(n), at least 64, for dpsgd)",
    ),
    Tunable(name="epochs", metavar="E", meaning="> 0 (default: 20, for dpsgd)"),
    Tunable(name="steps", read=whole, metavar="T", meaning=f">= 1 {_BY_OPTIMIZER}"),
    Tunable(
        name="max_norm",
        metavar="C",
        meaning="clipping norm > 0 of a record's gradient (default: 1 for dpsgd; else what the "
        "bounds imply)",
    ),
    Tunable(
        name="learning_rate", metavar="R", meaning="> 0 (default: follows from public numbers)"
    ),
    Tunable(
        name="difference_batch_size",
        read=whole,
        metavar="B",
        meaning="records behind a gradient difference (default: by the optimizer)",
    ),
    Tunable(
        name="drift",
        metavar="K",
        meaning="squared movement >= 0 after which a gradient is fresh; 0 for all (default: by the "
        "optimizer)",
    ),
    Tunable(
        name="period",
        read=whole,
        metavar="P",
        meaning="every so many gradients one is fresh, in place of --drift",
    ),
    Tunable(
        name="threshold",
        metavar="X",
        meaning="> 0: an escape begins at gradients of 3 X (default: the size of their error)",
    ),
    Tunable(
        name="escape_radius",
        metavar="R",
        meaning="> 0: farther than this is an escape (default: follows from the bounds)",
    ),
    Tunable(
        name="escape_steps",
        read=whole,
        metavar="S",
        meaning="of a round, >= 1 (default: follows from the bounds)",
    ),
    Tunable(
        name="escape_rounds", read=whole, metavar="Q", meaning="of an escape, >= 1 (default: 4)"
    ),
    Tunable(
        name="reset",
        read=str,
        choices=("rewind", "carry", "fresh"),
        meaning="what a gradient estimate is when a round begins (default: rewind)",
    ),
    Tunable(
        name="passes",
        read=whole,
        metavar="E",
        meaning="how often a record may be used, >= 1 (default: 1)",
    ),
    Tunable(
        name="group_size",
        read=whole,
        metavar="K",
        meaning="rows of one person at most, >= 1, by the schema's column of type 'person'; more "
        "are left out (default: the schema's, or 1)",
    ),
    Tunable(
        name="preset",
        read=str,
        choices=("practical", "theory"),
        meaning="constants best for the n at hand, or the theorem's (default: practical)",
    ),
    Tunable(
        name="gamma",
        metavar="G",
        meaning="KL constant > 0: F(w) - F* <= (G ||grad F(w)||)^kappa (default: (2 l2)^(-1/2) "
        "with --no-intercept and kappa = 2)",
    ),
    Tunable(name="kappa", metavar="K", meaning="KL exponent (default: 2)"),
    Tunable(
        name="beta",
        metavar="P",
        meaning="failure probability of the promised accuracy, in (0, 1) (default: 0.05)",
    ),
    Tunable(
        name="weak_convexity",
        metavar="W",
        meaning="W >= 0 that makes F + W/2 ||w||^2 convex (default: 0)",
    ),
    Tunable(
        name="inner_steps",
        read=whole,
        metavar="S",
        meaning="gradients >= 1 of a stage (default: 512), or of an outer step",
    ),
    Tunable(
        name="failure_probability",
        metavar="P",
        meaning="in (0, 1): choose what is proved but with this probability (default: what does "
        "well on average)",
    ),
    Tunable(
        name="distance",
        metavar="W",
        meaning="public bound > 0 on the norm of a minimiser (default: sqrt(d))",
    ),
    Tunable(
        name="subsolver",
        read=str,
        choices=("noisy_gd", "phased_sgd"),
        meaning="what minimises in a round (default: noisy_gd)",
    ),
    Tunable(
        name="inner",
        read=str,
        choices=("spiderboost", "noisy_gd", "recursive_regularization", "tree_spider"),
        meaning="optimizer of embedded records (default: spiderboost)",
    ),
    Tunable(
        name="embedding_dimension",
        read=whole,
        metavar="K",
        meaning=f"of embedded records, >= 1 {_BY_OPTIMIZER}",
    ),
    Tunable(
        name="rank",
        read=whole,
        metavar="R",
        meaning="public bound >= 1 on the dimension of the records' span (default: none)",
    ),
    Tunable(
        name="matrix",
        read=str,
        choices=("gaussian", "sparse"),
        meaning="kind of the embedding (default: gaussian)",
    ),
    Tunable(
        name="matrix_seed",
        read=whole,
        metavar="N",
        meaning="seed >= 0 of the embedding, which is public (default: 0)",
    ),
)

PROBLEMS = ("fair", "robust", "auc")
NOISES = ("lambda-cgd", "banded", "bisr", "blt", "square-root", "tree")
CORRELATED_SAMPLERS = (
    "poisson",
    "cyclic-poisson",
    "min-separation",
    "balls-in-bins",
    "random-allocation",
    "full",
)

TUNING = {row.name: row for row in _ROWS}


def flag(name: str) -> str:
    """Return how a keyword is spelled on the command line."""
    return f"--{name.replace('_', '-')}"


def add_tuning(parser: ArgumentParser) -> None:
    """Declare every keyword that an optimizer may take."""
    group = parser.add_argument_group(
        "tuning", "each is for some optimizers: 'dpcal optimizers NAME' lists an optimizer's own"
    )
    for row in TUNING.values():
        group.add_argument(
            flag(row.name),
            type=row.read,
            metavar=row.metavar,
            choices=row.choices,
            help=row.meaning,
        )


def given_tuning(options: Namespace) -> dict[str, Any]:
    """Return what was given of :func:`add_tuning`, by keyword."""
    values = {name: getattr(options, name) for name in TUNING}
    return {name: value for name, value in values.items() if value is not None}


def add_minimax(parser: ArgumentParser) -> None:
    """Declare what is asked of an optimizer for problems in two blocks."""
    group = parser.add_argument_group("minimax problems (--optimizer dp_rgda, dp_sgda, ...)")
    group.add_argument(
        "--problem",
        choices=PROBLEMS,
        help="worst mixture of groups, worst shift of covariates, or area under the ROC curve",
    )
    group.add_argument("--group", metavar="COLUMN", help="for fair: whose categories are groups")
    group.add_argument(
        "--dual-l2",
        type=number,
        default=1.0,
        metavar="M",
        help="for fair and robust: regulariser > 0 of the dual variable (default: %(default)s)",
    )
    group.add_argument(
        "--positive-share",
        type=number,
        default=0.5,
        metavar="P",
        help="for auc: public guess in (0, 1) (default: %(default)s)",
    )


def add_correlated_noise(parser: ArgumentParser) -> None:
    """Declare how the noise of the steps is correlated, and on which batches."""
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
