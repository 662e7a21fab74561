"""``dpcal calibrate``: solve for the noise, the steps or the sampling that meets targets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal._internal import lazy
from dpcal.calibrate.batching import CORRELATED
from dpcal.calibrate.runs import RUN_SAMPLERS, SampledRun
from dpcal.commands._shared import Accountant, one_or_all
from dpcal.commands._signature import Answer, extends
from dpcal.report.output import answer

if TYPE_CHECKING:
    from dpcal.calibrate import Plan

_families = lazy.Module("dpcal.calibrate.correlated.families")

Drawn = Literal[
    "poisson",
    "random-allocation",
    "without-replacement",
    "with-replacement",
    "shuffled-epochs",
    "cyclic-poisson",
    "min-separation",
    "balls-in-bins",
    "full",
]


@extends(SampledRun)
def calibrate(
    *,
    epsilon: Sequence[float],
    delta: Sequence[float],
    sampler: Drawn = "poisson",
    accountant: Accountant = "auto",
    gradients: int | None = None,
    noise: str | None = None,
    separation: int | None = None,
    proved: bool = False,
    max_grad_norm: float = 1.0,
    output: Path | None = None,
    **run: Any,
) -> Answer:
    """Solve for the noise, the steps or the sampling that meets (epsilon, delta).

    Parameters
    ----------
    epsilon
        Targets > 0, one or more.
    delta
        Of the targets, one or more, in (0, 1).
    sampler
        How batches are drawn; the last four, and poisson and random-allocation, go with noise.
    accountant
        Its epsilon must meet the target, where the noise is solved for.
    gradients
        Of the whole run, in place of a batch size and a length: compare the noise of ten batch
        sizes.
    noise
        Noise that is correlated from step to step, such as lambda-cgd=0.5, banded=4, bisr=4, blt=1,
        square-root or tree (default: independent noise).
    separation
        With noise: steps between two of one record, at least.
    proved
        With noise: calibrate by proved bounds, not by draws, with more noise.
    max_grad_norm
        Clipping norm > 0 of a plan.
    output
        Write the plan of a run with n and batch_size as JSON, for 'dpcal train --use-plan'.

    Examples
    --------
    dpcal calibrate --n 60000 --batch-size 512 --epochs 10 --epsilon 2 --delta 1e-6 -o plan.json
    dpcal calibrate --n 60000 --gradients 600000 --epsilon 2 --delta 1e-6
    """
    targets = [dict[str, Any](epsilon=target, delta=at) for target in epsilon for at in delta]
    if noise is None and (separation is not None or proved):
        raise ValueError("separation and proved go with --noise.")
    if noise is None and sampler not in RUN_SAMPLERS:
        raise ValueError(f"{sampler=} goes with --noise.")
    if gradients is not None:
        return _side_by_side(gradients, targets, sampler=sampler, output=output, **run)
    known: Any = "poisson" if noise else sampler
    told = SampledRun(sampler=known, **run)
    if noise is not None or output is not None:
        if len(targets) > 1 or told.n is None or told.noise_multiplier is not None:
            raise ValueError(
                "output and noise are for the plan of one run: they need n and batch_size, one "
                "epsilon and one delta, and no noise_multiplier."
            )
        how: dict[str, Any] = {"max_norm": max_grad_norm, "accountant": accountant, **targets[0]}
        if noise is None:
            return _plan(told.plan(**how), output)
        how |= {"separation": separation, "statistics": not proved}
        return _plan(_correlated(noise, told, sampler, **how), output)
    name, documents, texts = told.left_out, [], []
    for target in targets:
        solved, at = told.solved(**target, accountant=accountant), target["delta"]
        price = solved.epsilon(delta=at, accountant=accountant)
        solution = getattr(solved, name)
        document = {name: solution, "delta": at, "epsilon": price.to_dict()}
        documents.append({**document, "mechanism": solved.to_dict()})
        texts.append(f"{name} = {solution!r}\n{answer('epsilon', price, f'delta = {at:g}')}")
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
    """Compare batch sizes that compute as many gradients."""
    given = [name for name, value in others.items() if value is not None]
    if given or n is None or len(targets) > 1 or sampler != "poisson":
        raise ValueError(
            "gradients needs n, one epsilon and one delta of a run on Poisson samples, and no more"
            + (f", got {' and '.join(given)}." if given else ".")
        )
    how: dict[str, Any] = {"neighboring_relation": neighboring_relation or "add-or-remove-one"}
    table = dpcal.calibrate.compare_batches(n=n, gradients=gradients, **targets[0], **how)
    return Answer(table.to_dict(), str(table))


def _correlated(noise: str, run: SampledRun, sampler: str, **how: Any) -> Plan:
    """Return the plan of DP-SGD with correlated noise."""
    if sampler not in CORRELATED:
        raise ValueError(
            f"sampler must be one of {', '.join(CORRELATED)} with noise, got {sampler!r}."
        )
    (steps,) = run.known("length")
    worst, sums = dpcal.accountants.matrix.Single(), dpcal.accountants.matrix.PREFIX_SUMS
    (strategy,) = _families.chosen((noise,), steps, worst, sums)
    return dpcal.calibrate.correlated_dpsgd(
        strategy,
        n=run.n or 0,
        batch_size=run.batch_size or 0,
        sampler=sampler,
        neighboring_relation=run.relation,
        **how,
    )


def _plan(plan: Plan, output: Path | None) -> Answer:
    """Return, and write, a plan."""
    price = plan.price()
    query = plan.query("gradient")
    batches = f"{query.sampler} batches of {plan.parameters['batch_size']} of {plan.n} records"
    text = (
        f"noise_multiplier = {query.noise_multiplier!r} for {query.count} steps on {batches}\n"
        + answer("epsilon", price, f"delta = {plan.delta:g}")
    )
    if output is not None:
        dpcal.report.replace_file(output, (plan.to_json() + "\n").encode())
        text += f"\nplan written to {output}"
    document = {"noise_multiplier": query.noise_multiplier, "delta": plan.delta}
    return Answer({**document, "epsilon": price.to_dict(), "plan": plan.to_dict()}, text)
