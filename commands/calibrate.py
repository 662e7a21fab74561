"""``dpcal calibrate``: solve for the noise, the steps or the sampling that meets targets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dpcal
from dpcal.calibrate.runs import SampledRun
from dpcal.commands._shared import Accountant, one_or_all
from dpcal.commands._signature import Answer, extends
from dpcal.report.output import answer


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
