"""``dpcal strategies``: compare correlated noise at one privacy target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import dpcal
from dpcal.calibrate.runs import Relation
from dpcal.commands._shared import bar
from dpcal.commands._signature import Answer

_APART = {
    "poisson": "",
    "cyclic-poisson": "groups",
    "min-separation": "min_separation",
    "balls-in-bins": "steps_per_epoch",
    "random-allocation": "steps_per_epoch",
}


def strategies(
    *,
    steps: int,
    epsilon: float,
    delta: float,
    steps_per_epoch: int | None = None,
    min_separation: int | None = None,
    groups: int | None = None,
    sampler: Literal[
        "poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "random-allocation"
    ]
    | None = None,
    sampling_probability: float | None = None,
    draws: int = 0,
    failure_probability: float | None = None,
    neighboring_relation: Relation = "replace-special",
    strategies: Sequence[str] | None = None,
    learning_rates: Mapping[str, float] | None = None,
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
        Number of steps in an epoch. A record takes part once an epoch: at the same place of each
        epoch, or at a random place with balls-in-bins and random-allocation.
    min_separation
        Smallest number of steps between two participations of a record.
    groups
        With cyclic-poisson: number of groups.
    sampler
        Sampling of batches (default: a record takes part in at most one step; poisson if you give a
        sampling probability).
    sampling_probability
        Sampling probability in (0, 1]: expected batch size over the number of records. Groups,
        separations and epochs that you do not give follow from it and from the strategy's bands.
    draws
        With a sampler: number of Monte Carlo draws >= 1 where no exact cost is known; 0 uses
        deterministic bounds.
    failure_probability
        With draws: probability that the draws mislead, a part of delta (default: delta / 100).
    neighboring_relation
        Neighboring relation of the claim.
    strategies
        Strategies, separated by commas, such as
        lambda-cgd=0.5,banded=4,banded=best,blt=1,banded-inverse=4,tree,square-root,identity
        (default: one or more of each family).
    learning_rates
        Schedule (linear, cosine or exponential) and the ratio of the last rate to the first, such
        as cosine=0.1 (default: equal rates).

    Examples
    --------
    dpcal strategies --steps 1000 --steps-per-epoch 100 --epsilon 2 --delta 1e-6
    dpcal strategies --steps 1000 --sampler cyclic-poisson --sampling-probability 0.01 --epsilon 2
        --delta 1e-6 --strategies identity,banded=4,banded=best
    """
    matrix = dpcal.accountants.matrix
    if failure_probability is not None and not draws:
        raise ValueError("failure_probability goes with --draws.")
    given = {"steps_per_epoch": steps_per_epoch, "min_separation": min_separation, "groups": groups}
    apart = {name: value for name, value in given.items() if value is not None}
    if len(apart) > 1:
        raise ValueError(f"{' and '.join(apart)} exclude each other.")
    how: dict[str, Any] = {}
    if sampler is not None or sampling_probability is not None:
        batches = _batches(sampler or "poisson", sampling_probability, apart)
        how["pricing"] = dpcal.calibrate.SampledBatches(
            batches,
            statistics="certified" if draws else "none",
            draws=draws or 1,
            failure_probability=failure_probability,
        )
    elif draws or groups is not None:
        raise ValueError("draws and groups go with --sampler.")
    elif steps_per_epoch is not None:
        epochs = -(-steps // max(1, steps_per_epoch))
        how["participation"] = matrix.FixedEpochs(epochs, steps_per_epoch)
    elif min_separation is not None:
        how["participation"] = matrix.LeastSeparation(min_separation)
    if learning_rates is not None:
        ((name, last), *_) = learning_rates.items()
        rates = matrix.learning_rates(name, steps, last)
        how["workload"] = matrix.Workload(learning_rates=rates)
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


def _batches(sampler: str, rate: float | None, apart: Mapping[str, int]) -> Any:
    """Return the random batches of a strategy."""
    if unfit := [name for name in apart if name != _APART[sampler]]:
        raise ValueError(f"{unfit[0]} does not go with sampler={sampler!r}.")
    number = next(iter(apart.values()), None)
    if rate is None and number and "steps_per_epoch" in apart:
        rate = 1 / number
    if rate is None:
        raise ValueError(f"sampling_probability is needed with sampler={sampler!r}.")
    return dpcal.calibrate.Batches(sampler, rate, number)
