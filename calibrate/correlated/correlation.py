"""Correlation of a query's noise from answer to answer, and settings of its accounting.

>>> from dpcal.accountants.matrix import LambdaCGD
>>> correlation = Correlation(strategy=LambdaCGD(100, 0.5), statistics="none")
>>> correlation.to_dict()["strategy"]
{'strategy': 'lambda-CGD', 'steps': 100, 'decay': 0.5}
>>> Correlation(**correlation.to_dict()) == correlation
True
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.correlated import pricing
from dpcal.accountants.correlated.price import STATISTICS, Options
from dpcal.accountants.matrix import LeastSeparation, Strategy
from dpcal.accountants.samplers import Full, Sampler

__all__ = ["STATISTICS", "Correlation"]


@dataclass(frozen=True, kw_only=True)
class Correlation:
    """The strategy of a matrix mechanism, and settings to account for a whole run.

    Parameters
    ----------
    strategy
        A :class:`dpcal.accountants.matrix.Strategy`, or the JSON values that it writes: answer t's
        noise is row t of C^-1 z.
    statistics
        Method where no exact epsilon is known: ``"certified"`` (draws, with a confidence bound that
        has a failure probability as part of delta) or ``"none"`` (proved bounds only).
    draws
        Monte Carlo draws >= 1 for each direction.
    seed
        Whole number that fixes the draws, so that a plan and a ledger compute the same epsilon;
        None for fresh draws.
    failure_probability
        Probability in (0, 1) for one answer; by default a hundredth of delta for all answers
        together.
    confirmations
        Largest number of answers, each with fresh draws, until one meets the target. All their
        failure probabilities are part of delta.
    """

    strategy: Strategy
    statistics: str = "certified"
    draws: int = 100_000
    seed: int | None = None
    failure_probability: float | None = None
    confirmations: int = 1

    def __post_init__(self) -> None:
        if isinstance(self.strategy, Mapping):
            object.__setattr__(self, "strategy", Strategy.from_dict(self.strategy))
        validate.instance(Strategy, strategy=self.strategy)
        validate.count(confirmations=self.confirmations)
        Options.of(self)  # checks the other fields

    def whole_run(
        self, sampler: Sampler, noise_multiplier: float, neighboring_relation: str
    ) -> events.DpEvent:
        """Return the event of a whole run.

        Parameters
        ----------
        sampler
            Sampler of the batches.
        noise_multiplier
            Standard deviation > 0 of z, in units of the clipping norm.
        neighboring_relation
            Neighboring relation: ``"add-or-remove-one"``, ``"replace-one"`` or
            ``"replace-special"``.

        Raises
        ------
        UnsupportedEvent
            If no theorem covers the strategy, the sampler or the relation.
        """
        how: dict[str, Any] = {"neighboring_relation": neighboring_relation}
        if isinstance(sampler, Full):
            every_round = LeastSeparation(1, independent=True)
            return self.strategy.event(noise_multiplier, every_round, **how)
        how |= {"sampler": sampler.law, "noise_multiplier": noise_multiplier, **vars(self)}
        return pricing.whole_run(**how)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values, which are keywords of the class."""
        return {**vars(self), "strategy": self.strategy.to_dict()}
