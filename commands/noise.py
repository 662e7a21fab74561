"""``dpcal calibrate``, ``recommend``, ``strategies`` and ``optimizers``: how much noise to add."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal.columns import columns
from dpcal.calibrate.runs import Relation, SampledRun
from dpcal.commands._shared import Accountant, bar, one_or_all
from dpcal.commands._signature import Answer, extends
from dpcal.report.output import answer

if TYPE_CHECKING:
    from dpcal.optim.registry import Optimizer


@extends(SampledRun)
def calibrate(
    *,
    epsilon: Sequence[float],
    delta: Sequence[float],
    accountant: Accountant = "auto",
    gradients: int | None = None,
    max_grad_norm: float = 1.0,
    output: Path | None = None,
    **run: Any,
) -> Answer:
    """Solve for the noise, the steps or the sampling that meets (epsilon, delta).

    Parameters
    ----------
    epsilon
        Target epsilons > 0, one or more.
    delta
        Target deltas in (0, 1), one or more.
    accountant
        Accountant whose epsilon must meet the target, where the noise is solved for.
    gradients
        Number of gradients in the whole run, in place of a batch size and a length: compare the
        noise of ten batch sizes.
    max_grad_norm
        Clipping norm > 0 of a plan.
    output
        File for the plan of a run with n and batch_size, in JSON, for 'dpcal train --use-plan'.

    Examples
    --------
    dpcal calibrate --n 60000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-6 -o plan.json
    dpcal calibrate --n 60000 --gradients 600000 --epsilon 2 --delta 1e-6
    """
    targets = [dict[str, Any](epsilon=target, delta=at) for target in epsilon for at in delta]
    if gradients is not None:
        return _side_by_side(gradients, targets, output=output, **run)
    told, plan = SampledRun(**run), None
    if output is not None:
        if len(targets) > 1:
            raise ValueError("output is for the plan of one epsilon and one delta.")
        plan = told.plan(max_norm=max_grad_norm, accountant=accountant, **targets[0])
    name, documents, texts = told.left_out, [], []
    for target in targets:
        solved, at = told.solved(**target, accountant=accountant), target["delta"]
        if plan is not None:
            solved = replace(told, noise_multiplier=plan.query("gradient").noise_multiplier)
        price = solved.epsilon(delta=at, accountant=accountant)
        solution = getattr(solved, name)
        document = {name: solution, "delta": at, "epsilon": price.to_dict()}
        documents.append({**document, "mechanism": solved.to_dict()})
        texts.append(f"{name} = {solution!r}\n{answer('epsilon', price, f'delta = {at:g}')}")
    if output is not None and plan is not None:
        dpcal.report.replace_file(output, (plan.to_json() + "\n").encode())
        documents[0]["plan"] = plan.to_dict()
        texts.append(f"plan written to {output}")
    return Answer(one_or_all("solutions", documents), "\n".join(texts))


def _side_by_side(
    gradients: int,
    targets: Sequence[dict[str, Any]],
    *,
    n: int | None,
    sampler: str,
    neighboring_relation: str | None,
    **others: Any,
) -> Answer:
    """Compare batch sizes with the same total number of gradients."""
    given = [name for name, value in others.items() if value is not None]
    if given or n is None or len(targets) > 1 or sampler != "poisson":
        raise ValueError(
            "gradients needs n, one epsilon and one delta of a run on Poisson samples, and no more"
            + (f", got {' and '.join(given)}." if given else ".")
        )
    how: dict[str, Any] = {"neighboring_relation": neighboring_relation or "add-or-remove-one"}
    table = dpcal.calibrate.compare_batches(n=n, gradients=gradients, **targets[0], **how)
    return Answer(table.to_dict(), str(table))


@extends("calibrate.recommend")
def recommend(*, loss: Literal["logistic", "squared"], **asked: Any) -> Answer:
    """Rank optimizers of a linear model by predicted error, before a record is read.

    Parameters
    ----------
    loss
        Targets of squared losses are in [-1, 1].

    Examples
    --------
    dpcal recommend --loss logistic --n 20000 --dimension 10 --epsilon 1 --delta 1e-6
    dpcal recommend --loss squared --n 5000 --dimension 4 --epsilon 2 --delta 1e-6 --json
    """
    table = dpcal.calibrate.recommend(loss, **asked)
    return Answer(table.to_dict(), str(table))


def optimizers(name: str | None = None) -> Answer:
    """List the optimizers, or describe one: its problem, its public constants, its rate.

    Parameters
    ----------
    name
        Name of one optimizer (default: list all, a line each).

    Examples
    --------
    dpcal optimizers noisy_gd
    dpcal optimizers --json
    """
    registry = dpcal.optim.registry
    if name is not None:
        row = registry.SELECTIONS.get(name) or registry.find(name)
        return Answer({"optimizers": [row.to_dict()]}, _lines(row))
    every = [*registry.known().values(), *registry.SELECTIONS.values()]
    rows = sorted(every, key=lambda row: row.comparator)
    lines = columns([(row.name, "comparator: " * row.comparator + row.summary) for row in rows])
    lines.append("'dpcal optimizers NAME' lists an optimizer's problem, needs, rate and settings.")
    return Answer({"optimizers": [row.to_dict() for row in rows]}, "\n".join(lines))


def _lines(row: Optimizer) -> str:
    """Return the text on one optimizer, a line for each fact."""
    return "\n".join(
        [
            f"{row.name}: {row.summary}{' (a comparator, not recommended)' * row.comparator}",
            f"  problem    {row.problem}",
            *([f"  if convex  {row.beaten} ended lower at the same cost"] if row.beaten else []),
            f"  needs      {', '.join(row.needs)}",
            f"  rate       {row.measure} {row.rate}, without logarithms",
            f"  theorem    {row.theorem}",
            f"  relations  {', '.join(row.relations)}",
            f"  settings   {', '.join(row.options)}",
        ]
    )


def strategies(
    *,
    steps: int,
    epsilon: float,
    delta: float,
    steps_per_epoch: int | None = None,
    min_separation: int | None = None,
    sampler: Literal[
        "poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "random-allocation"
    ]
    | None = None,
    sampling_probability: float | None = None,
    neighboring_relation: Relation = "replace-special",
    strategies: Sequence[str] | None = None,
) -> Answer:
    """Compare correlated noise (tree, banded, BLT, ...) at one privacy target.

    Parameters
    ----------
    steps
        Number of steps >= 1.
    epsilon
        Target epsilon > 0.
    delta
        Delta of the target, in (0, 1).
    steps_per_epoch
        Number of steps in an epoch: a record takes part once an epoch, at the same place of each.
    min_separation
        Smallest number of steps between two participations of a record.
    sampler
        Sampling of batches at a sampling probability (default: poisson). Groups, separations and
        epochs follow from the probability and from the strategy's bands.
    sampling_probability
        Sampling probability in (0, 1]: expected batch size over the number of records. Without one
        and without the numbers above, a record takes part in at most one step.
    neighboring_relation
        Neighboring relation of the claim.
    strategies
        Strategies, separated by commas, such as
        lambda-cgd=0.5,banded=4,banded=best,blt=1,banded-inverse=4,tree,square-root,identity
        (default: one or more of each family).

    Examples
    --------
    dpcal strategies --steps 1000 --steps-per-epoch 100 --epsilon 2 --delta 1e-6
    dpcal strategies --steps 1000 --sampler cyclic-poisson --sampling-probability 0.01 --epsilon 2
        --delta 1e-6 --strategies identity,banded=4,banded=best
    """
    given = [steps_per_epoch, min_separation, sampling_probability]
    if sum(each is not None for each in given) > 1:
        raise ValueError(
            "steps_per_epoch, min_separation and sampling_probability exclude each other."
        )
    if sampler is not None and sampling_probability is None:
        raise ValueError(f"sampling_probability is needed with sampler={sampler!r}.")
    how: dict[str, Any] = {}
    if sampling_probability is not None:
        batches = dpcal.calibrate.Batches(sampler or "poisson", sampling_probability)
        how["pricing"] = dpcal.calibrate.SampledBatches(batches)
    elif steps_per_epoch is not None:
        epochs = -(-steps // max(1, steps_per_epoch))
        how["participation"] = dpcal.accountants.matrix.FixedEpochs(epochs, steps_per_epoch)
    elif min_separation is not None:
        how["participation"] = dpcal.accountants.matrix.LeastSeparation(min_separation)
    reach = bar("dpcal strategies", "strategy")
    table = dpcal.calibrate.compare_strategies(
        steps=steps,
        epsilon=epsilon,
        delta=delta,
        neighboring_relation=neighboring_relation,
        strategies=strategies,
        progress=lambda _, done, total: reach(done, total),
        **how,
    )
    return Answer(table.to_dict(), str(table))
