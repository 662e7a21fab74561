"""``dpcal strategies``: compare correlated noise at one privacy target."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING

import dpcal
from dpcal.commands._options import TARGET, add_options, fields_of, relation
from dpcal.commands.checking.output import present

if TYPE_CHECKING:
    from dpcal.accountants.matrix import Participation, Workload
    from dpcal.calibrate import SampledBatches
    from dpcal.calibrate.correlated.strategies import StrategyRow, StrategyTable

# Characters of a full bar.
_BAR = 24
EXAMPLES = (
    "--steps 1000 --steps-per-epoch 100 --epsilon 2 --delta 1e-6",
    "--steps 1000 --sampler cyclic-poisson --sampling-probability 0.01 --epsilon 2 --delta 1e-6 "
    "--strategies identity,banded=4,banded=best",
)


def add_arguments(parser: ArgumentParser) -> None:
    """Declare the run, who takes part when, and the target."""
    add_options(parser, "--steps T:whole!  number >= 1")
    group = parser.add_argument_group("participation of a record (default: at most one step)")
    schemas = group.add_mutually_exclusive_group()
    add_options(
        schemas,
        """
--steps-per-epoch B:whole  once an epoch of B steps, at the same place of each; with --sampler
    balls-in-bins, random-allocation: at a random place
--min-separation B:whole   at steps at least B apart
--groups B:whole           with --sampler cyclic-poisson: number of groups
""",
    )
    add_options(
        group,
        """
--sampler NAME                   batches are drawn by poisson (the default with
    --sampling-probability), cyclic-poisson, min-separation, balls-in-bins or random-allocation
--sampling-probability Q:number  in (0, 1]: expected batch size over the number of records; groups,
    separations and epochs that are not given follow from it and from the strategy's bands
--at-most K:whole                with --min-separation: at most K times
--independent                    a record's steps do not depend on which others are present
""",
    )
    add_options(
        parser,
        """
[strategies and draws]
--draws N:whole                 with a sampler: Monte Carlo draws >= 1 for each question where no
    exact price is known; 0 (the default) for deterministic bounds
--seed SEED:whole               with --draws: fixes them (default: fresh from the system)
--failure-probability P:number  with --draws: that they mislead, a part of delta (default: delta /
    100)
--strategies NAMES              which ones, separated by commas, such as
    lambda-cgd=0.5,banded=4,banded=best,blt=1,banded-inverse=4,tree,square-root,identity (default:
    one or more of each family)
--workers N:whole=1             processes that calibrate strategies side by side, >= 1 (default:
    1)
--progress                      a bar on stderr, longer with each strategy done
""",
        TARGET,
        relation(default="replace-special"),
        """
[workload (default: prefix sums)]
--momentum M:number=0.0  in [0, 1)
--decay A:number=1.0     in (0, 1]
--learning-rates RATES   linear, cosine or exponential, and the last rate over the first, such as
    cosine=0.1 (default: they are equal)
""",
    )


def run(options: Namespace) -> int:
    """Print one row a strategy: the noise it needs, its errors, its memory."""
    if options.at_most is not None and options.min_separation is None:
        raise ValueError("--at-most goes with --min-separation.")
    if not _sampled(options) and (options.draws or options.seed is not None):
        raise ValueError("--draws and --seed go with --sampler.")
    if options.failure_probability is not None and not options.draws:
        raise ValueError("--failure-probability goes with --draws.")
    if options.workers < 1:
        raise ValueError(f"--workers must be at least 1, got {options.workers}.")
    pool = ProcessPoolExecutor(options.workers) if options.workers > 1 else None
    with pool or nullcontext():
        table = _compared(options, pool)
    present(options, table.to_dict(), str(table))
    return 0


def _compared(options: Namespace, executor: Executor | None) -> StrategyTable:
    """The table, by one process or by several."""
    sampled = _sampled(options)
    return dpcal.calibrate.compare_strategies(
        **fields_of(options, "steps", "epsilon", "delta", "neighboring_relation"),
        participation=None if sampled else _participation(options),
        pricing=_pricing(options) if sampled else None,
        workload=_workload(options),
        strategies=None if options.strategies is None else options.strategies.split(","),
        executor=executor,
        progress=_report if options.progress else None,
    )


def _workload(options: Namespace) -> Workload:
    """Return the sums whose errors are compared."""
    matrix, rates = dpcal.accountants.matrix, None
    if options.learning_rates is not None:
        name, _, last = options.learning_rates.partition("=")
        try:
            rate = float(last)
        except ValueError:
            raise ValueError(
                "--learning-rates must be a schedule and its last rate, such as cosine=0.1, got "
                f"{options.learning_rates!r}."
            ) from None
        rates = matrix.learning_rates(name, options.steps, rate)
    return matrix.Workload(**fields_of(options, "momentum", "decay"), learning_rates=rates)


def _report(row: StrategyRow, done: int, count: int) -> None:
    """Print a bar with the strategy that is done."""
    found = "no answer" if row.mean_error is None else f"mean error {row.mean_error:.5g}"
    bar = "#" * (_BAR * done // count)
    line = f"[{bar:<{_BAR}}] {done}/{count} {row.name}: {found}"
    print(f"{_over()}{line}", file=sys.stderr, flush=True)


def _over() -> str:
    """Characters that clear a terminal's line."""
    return "\r\033[K" if sys.stderr.isatty() else ""


def _participation(options: Namespace) -> Participation:
    """Return the worst-case participation of a record."""
    matrix = dpcal.accountants.matrix
    if options.steps_per_epoch is not None:
        epochs = -(-options.steps // max(1, options.steps_per_epoch))
        return matrix.FixedEpochs(epochs, options.steps_per_epoch, options.independent)
    if options.min_separation is not None:
        return matrix.LeastSeparation(options.min_separation, options.at_most, options.independent)
    return matrix.Single(independent=options.independent)


def _sampled(options: Namespace) -> bool:
    """Return whether batches are drawn at random."""
    return options.sampling_probability is not None or options.sampler is not None


# The option that says how far apart the participations of a sampler are.
_APART = {
    "cyclic-poisson": "groups",
    "min-separation": "min_separation",
    "balls-in-bins": "steps_per_epoch",
    "random-allocation": "steps_per_epoch",
}


def _pricing(options: Namespace) -> SampledBatches:
    """Return how prices of random batches are computed."""
    sampler, given = options.sampler or "poisson", ("groups", "min_separation", "steps_per_epoch")
    apart = _APART.get(sampler, "")
    for name in given:
        if name != apart and getattr(options, name) is not None:
            raise ValueError(f"--{name.replace('_', '-')} does not go with --sampler {sampler}.")
    number, rate = getattr(options, apart, None), options.sampling_probability
    if rate is None and number and apart == "steps_per_epoch":
        rate = 1 / number
    if rate is None:
        raise ValueError(f"--sampling-probability is needed with --sampler {sampler}.")
    return dpcal.calibrate.SampledBatches(
        dpcal.calibrate.Batches(sampler, rate, number),
        statistics="certified" if options.draws else "none",
        draws=options.draws or 1,
        **fields_of(options, "seed", "failure_probability"),
    )
