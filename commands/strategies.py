"""``dpcal strategies``: compare correlated noise at one privacy target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Literal

import dpcal
from dpcal.commands._shared import Relation, bar
from dpcal.commands._signature import Answer, flag

if TYPE_CHECKING:
    from dpcal.accountants.matrix import Workload
    from dpcal.calibrate import SampledBatches
    from dpcal.calibrate.correlated.strategies import StrategyRow


class Participation:
    """Who takes part when."""

    @staticmethod
    def of(
        *,
        steps: int,
        steps_per_epoch: int | None = None,
        min_separation: int | None = None,
        at_most: int | None = None,
        groups: int | None = None,
        independent: bool = False,
        sampler: Literal[
            "poisson", "cyclic-poisson", "min-separation", "balls-in-bins", "random-allocation"
        ]
        | None = None,
        sampling_probability: float | None = None,
        draws: int = 0,
        seed: int | None = None,
        failure_probability: float | None = None,
    ) -> dict[str, Any]:
        """Return the steps, and a worst-case participation or how random batches are priced.

        Parameters
        ----------
        steps
            Number >= 1.
        steps_per_epoch
            A record takes part once an epoch of so many steps, at the same place of each; with
            balls-in-bins and random-allocation at a random place.
        min_separation
            A record takes part at steps at least so far apart.
        at_most
            With min_separation: at most so many times.
        groups
            With cyclic-poisson: number of groups.
        independent
            A record's steps do not depend on which others are present.
        sampler
            How batches are drawn (default: at most one step of a record; poisson with a sampling
            probability).
        sampling_probability
            In (0, 1]: expected batch size over the number of records; groups, separations and
            epochs that are not given follow from it and from the strategy's bands.
        draws
            With a sampler: Monte Carlo draws >= 1 for each question where no exact price is known;
            0 for deterministic bounds.
        seed
            With draws: fixes them (default: fresh from the system).
        failure_probability
            With draws: that they mislead, a part of delta (default: delta / 100).
        """
        matrix = dpcal.accountants.matrix
        apart = {
            "groups": groups,
            "min_separation": min_separation,
            "steps_per_epoch": steps_per_epoch,
        }
        if len([each for each in apart.values() if each is not None]) > 1:
            raise ValueError("--steps-per-epoch, --min-separation and --groups exclude each other.")
        if at_most is not None and min_separation is None:
            raise ValueError("--at-most goes with --min-separation.")
        if failure_probability is not None and not draws:
            raise ValueError("--failure-probability goes with --draws.")
        if sampling_probability is not None or sampler is not None:
            pricing = _pricing(sampler or "poisson", apart, sampling_probability)
            drawn = {"draws": draws or 1, "seed": seed, "failure_probability": failure_probability}
            how = pricing(statistics="certified" if draws else "none", **drawn)
            return {"steps": steps, "participation": None, "pricing": how}
        if draws or seed is not None:
            raise ValueError("--draws and --seed go with --sampler.")
        worst: Any = matrix.Single(independent=independent)
        if steps_per_epoch is not None:
            epochs = -(-steps // max(1, steps_per_epoch))
            worst = matrix.FixedEpochs(epochs, steps_per_epoch, independent)
        elif min_separation is not None:
            worst = matrix.LeastSeparation(min_separation, at_most, independent)
        return {"steps": steps, "participation": worst, "pricing": None}


# The option that says how far apart the participations of a sampler are.
_APART = {
    "cyclic-poisson": "groups",
    "min-separation": "min_separation",
    "balls-in-bins": "steps_per_epoch",
    "random-allocation": "steps_per_epoch",
}


def _pricing(
    sampler: str, given: dict[str, int | None], rate: float | None
) -> Callable[..., SampledBatches]:
    """Return what makes the pricing of random batches."""
    apart = _APART.get(sampler, "")
    for name, value in given.items():
        if name != apart and value is not None:
            raise ValueError(f"{flag(name)} does not go with --sampler {sampler}.")
    number = given.get(apart)
    if rate is None and number and apart == "steps_per_epoch":
        rate = 1 / number
    if rate is None:
        raise ValueError(f"--sampling-probability is needed with --sampler {sampler}.")
    batches = dpcal.calibrate.Batches(sampler, rate, number)
    return lambda **how: dpcal.calibrate.SampledBatches(batches, **how)


def strategies(
    *,
    batches: Participation,
    epsilon: float,
    delta: float,
    neighboring_relation: Relation = "replace-special",
    strategies: Sequence[str] | None = None,
    momentum: float = 0.0,
    decay: float = 1.0,
    learning_rates: str | None = None,
    workers: int = 1,
) -> Answer:
    """Compare correlated noise (tree, banded, BLT, ...) at one privacy target.

    Parameters
    ----------
    epsilon
        The target, > 0.
    delta
        The target's delta, in (0, 1).
    neighboring_relation
        What neighbors differ by.
    strategies
        Which ones, separated by commas, such as
        lambda-cgd=0.5,banded=4,banded=best,blt=1,banded-inverse=4,tree,square-root,identity
        (default: one or more of each family).
    momentum
        In [0, 1): of the sums whose errors are compared.
    decay
        In (0, 1]: of the sums whose errors are compared.
    learning_rates
        Schedule (linear, cosine or exponential) and the last rate over the first, such as
        cosine=0.1 (default: rates are equal).
    workers
        Processes that calibrate strategies side by side, >= 1.

    Examples
    --------
    dpcal strategies --steps 1000 --steps-per-epoch 100 --epsilon 2 --delta 1e-6
    dpcal strategies --steps 1000 --sampler cyclic-poisson --sampling-probability 0.01 --epsilon 2
        --delta 1e-6 --strategies identity,banded=4,banded=best
    """
    if workers < 1:
        raise ValueError(f"--workers must be at least 1, got {workers}.")
    told: Any = batches
    reach = bar("dpcal strategies", "strategy")

    def done(row: StrategyRow, count: int, total: int) -> None:
        reach(count, total)

    pool = ProcessPoolExecutor(workers) if workers > 1 else None
    with pool or nullcontext():
        table = dpcal.calibrate.compare_strategies(
            **told,
            epsilon=epsilon,
            delta=delta,
            neighboring_relation=neighboring_relation,
            workload=_workload(told["steps"], momentum, decay, learning_rates),
            strategies=strategies,
            executor=pool,
            progress=done,
        )
    return Answer(table.to_dict(), str(table))


def _workload(steps: int, momentum: float, decay: float, rates: str | None) -> Workload:
    """Return the sums whose errors are compared."""
    matrix, found = dpcal.accountants.matrix, None
    if rates is not None:
        name, _, last = rates.partition("=")
        try:
            rate = float(last)
        except ValueError:
            raise ValueError(
                "--learning-rates must be a schedule and its last rate, such as cosine=0.1, got "
                f"{rates!r}."
            ) from None
        found = matrix.learning_rates(name, steps, rate)
    return matrix.Workload(momentum=momentum, decay=decay, learning_rates=found)
