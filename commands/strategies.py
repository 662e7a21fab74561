"""``dpcal strategies``: compare correlated noise at one privacy target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import dpcal
from dpcal.calibrate.runs import Relation
from dpcal.commands._shared import bar
from dpcal.commands._signature import Answer


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
