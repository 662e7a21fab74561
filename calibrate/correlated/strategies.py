"""Comparison of correlation strategies at one privacy target.

Every row is calibrated to the same (epsilon, delta), so that only the errors differ.

>>> from dpcal.accountants.matrix import FixedEpochs, Identity, LambdaCGD
>>> table = compare_strategies(
...     steps=1000, epsilon=2.0, delta=1e-6, participation=FixedEpochs(10, 100),
...     strategies=(Identity(1000), LambdaCGD(1000, 0.95)))
>>> for row in table.rows:
...     print(f"{row.strategy.kind:<12}{row.noise_multiplier:8.3f}{row.mean_error:8.1f}")
identity       7.053   157.8
lambda-CGD    22.710    34.1
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from dpcal._internal import validate
from dpcal._internal.columns import columns, wrapped
from dpcal._internal.executors import mapping
from dpcal.accountants import events, matrix, samplers
from dpcal.accountants.correlated import Sampler, pricing
from dpcal.accountants.correlated.bounds.base import least_until_rising
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.price import Options
from dpcal.accountants.directions import relation_of
from dpcal.accountants.matrix import PREFIX_SUMS, Participation, Strategy, Workload
from dpcal.accountants.rounding import UNIT
from dpcal.calibrate.batching import SAMPLED
from dpcal.calibrate.correlated.calibration import CalibratedNoise, Calibration
from dpcal.calibrate.correlated.families import Best, chosen, for_random_batches, usual
from dpcal.calibrate.noise import noise_multiplier
from dpcal.errors import TargetUnreachable, UnsupportedEvent

_MOMENTUM = 0.9


Pricing = Callable[..., CalibratedNoise]
"""A way to calibrate a strategy; ``str()`` of it is the schedule or the sampler.

It is called with the strategy and the keywords ``epsilon``, ``delta`` and ``neighboring_relation``,
and raises UnsupportedEvent if no theorem covers the strategy.
"""


@dataclass(frozen=True)
class KnownSchedule:
    """Without sampling: the whole run is one Gaussian mechanism (Denisov et al. 2022).

    Parameters
    ----------
    participation
        The guarantee of the data pipeline.
    """

    participation: Participation

    def __call__(self, strategy: Strategy, **target: Any) -> CalibratedNoise:
        """Return the Gaussian mechanism's noise multiplier times the sensitivity, rounded up."""
        # This call refuses relations that no theorem covers.
        strategy.event(1.0, self.participation, neighboring_relation=target["neighboring_relation"])
        sensitivity = strategy.sensitivity(self.participation)
        single = noise_multiplier(events.GaussianDpEvent, **target)
        # The product and its quotient by the sensitivity are rounded once each.
        sigma = single * sensitivity.value * (1 + 4 * UNIT)
        return CalibratedNoise(sigma, f"Gaussian, {sensitivity.theorem}", sensitivity.label)

    def __str__(self) -> str:
        return f"each record {self.participation}"


@dataclass(frozen=True)
class SampledBatches:
    """Random batches: the run as a composition where it is one, else by correlated accounting.

    Parameters
    ----------
    sampler
        Sampler of :mod:`dpcal.accountants.correlated`, or a function that returns one for a
        strategy, such as :class:`Batches`.
    statistics
        Method where no exact epsilon is known: ``"none"`` (deterministic bounds, the default) or
        ``"certified"`` (draws with a confidence bound), as for
        :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`. If there are too few draws to
        bound delta, the deterministic bound is returned, with its label.
    draws
        Monte Carlo draws >= 1 for each direction and each question.
    failure_probability
        Failure probability of the draws of a row, a part of delta; default delta / 100.
    seed
        Whole number that fixes the draws; fresh when omitted.
    """

    sampler: Sampler | Callable[[Strategy], Sampler]
    statistics: str = "none"
    draws: int = 100_000
    seed: int | None = None
    failure_probability: float | None = None

    def __post_init__(self) -> None:
        if not callable(self.sampler):
            validate.instance(Sampler, sampler=self.sampler)
        Options.of(self)  # checks the other fields

    def __call__(self, strategy: Strategy, **target: Any) -> CalibratedNoise:
        """Return the noise multiplier, with the bound or the draws that confirm it."""
        sampler = self.of(strategy)
        relation = {"neighboring_relation": target["neighboring_relation"]}

        def event(sigma: float) -> events.DpEvent:
            return pricing.whole_run(strategy, sampler, noise_multiplier=sigma, **relation)

        if not isinstance(event(1.0), events.CorrelatedGaussianDpEvent):
            sigma = noise_multiplier(event, **target)
            return CalibratedNoise(sigma, "composition of sampled Gaussians", "exact")
        goal = target["epsilon"], target["delta"]
        return Calibration(Mechanism.of(strategy), sampler, *goal, Options.of(self)).least()

    def of(self, strategy: Strategy) -> Sampler:
        """Return the sampler of a strategy."""
        return self.sampler if isinstance(self.sampler, Sampler) else self.sampler(strategy)

    def schedule(self, steps: int) -> Participation:
        """Return participations at the same rate, evenly spaced."""
        rate = float(self.of(matrix.Identity(steps)).automaton(steps).rates.mean())
        separation = min(steps, max(1, round(1 / rate)))
        return matrix.FixedEpochs(-(-steps // separation), separation)

    def __str__(self) -> str:
        return f"batches by {self.sampler!r}"


@dataclass(frozen=True)
class Batches:
    """Batches of one expected size by a sampler's name, for every strategy.

    Parameters
    ----------
    name
        ``"poisson"``, ``"cyclic-poisson"``, ``"min-separation"``, ``"balls-in-bins"`` or
        ``"random-allocation"`` (one round an epoch).
    sampling_probability
        Expected batch size over the number of records, in (0, 1].
    apart
        Number of groups, least separation, number of bins, or rounds of an epoch. When omitted,
        groups or separation are the bands of the strategy (1 if it has a band for every step), and
        bins or rounds of an epoch are the number of batches that hold each record once.

    >>> from dpcal.accountants.matrix import Banded
    >>> Batches("cyclic-poisson", 0.01)(Banded(100, 4))
    CyclicPoisson(bands=4, sampling_probability=0.04, random_shift=False)
    """

    name: str
    sampling_probability: float
    apart: int | None = None

    def __post_init__(self) -> None:
        validate.choice(SAMPLED, name=self.name)
        validate.rate(sampling_probability=self.sampling_probability)
        if self.apart is not None:
            validate.count(apart=self.apart)

    def __call__(self, strategy: Strategy) -> Sampler:
        """Return the sampler of a strategy.

        Raises
        ------
        ValueError
            If there are too few records in a group for such batches.
        """
        q = self.sampling_probability
        if self.name == "poisson":
            return samplers.Poisson(q)
        if self.name == "balls-in-bins":
            return samplers.BallsInBins(self.apart or round(1 / q))
        if self.name == "random-allocation":
            return samplers.RandomAllocation(1, epoch=self.apart or round(1 / q))
        # With a band for every step, groups are worth little, and take the batches of many rounds.
        bands = strategy.bands or 1
        apart = self.apart or (min(bands, int(1 / q)) if bands < strategy.steps else 1)
        cyclic = self.name == "cyclic-poisson"
        rate = q * apart if cyclic else q / max(1 - (apart - 1) * q, 1e-300)
        if rate > 1 + 1e-9:
            raise ValueError(
                f"sampling_probability must be at most {1 / apart:.6g} for batches of {self.name} "
                f"that are {apart} apart, got {q!r}."
            )
        # A rate of 1 may be off by rounding.
        kind = samplers.CyclicPoisson if cyclic else samplers.MinSeparation
        return kind(apart, min(rate, 1.0))


@dataclass(frozen=True)
class StrategyRow:
    """One strategy at the target.

    Parameters
    ----------
    strategy
        The strategy.
    noise_multiplier
        Standard deviation of z, in units of the clipping norm; None where no theorem covers it.
    max_error, mean_error
        Largest and root-mean-square standard deviation over steps of a coordinate of the workload
        (iterates, for prefix sums), in units of the clipping norm.
    memory
        Rows that the noise keeps.
    momentum_error
        The root-mean-square error of the iterates with momentum 0.9, at the same noise.
    method, label
        Argument that the noise suffices, and its certainty.
    note
        Reason if there is no answer.
    """

    strategy: Strategy
    noise_multiplier: float | None
    max_error: float | None
    mean_error: float | None
    memory: int
    momentum_error: float | None = None
    method: str = ""
    label: str = ""
    note: str = ""

    @property
    def name(self) -> str:
        """The strategy's kind and its size, short enough for a table."""
        match strategy := self.strategy:
            case matrix.LambdaCGD():
                size = f", decay {strategy.decay:.4g}"
            case matrix.BLT():
                size = f", {len(strategy.decays)} buffer" + "s" * (len(strategy.decays) > 1)
            case matrix.BISR() | matrix.BIFR() | matrix.BandedInverse():
                size = f", {strategy.inverse_bands} bands"
            case matrix.Tree():
                size = ", efficient" * strategy.efficient
            case _:
                banded = strategy.bands is not None and not isinstance(strategy, matrix.Identity)
                size = f", {strategy.bands} bands" * banded
        return strategy.kind + size

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {**vars(self), "strategy": self.strategy.to_dict()}


@dataclass(frozen=True)
class StrategyTable:
    """Strategies at one target; ``str()`` is a table."""

    steps: int
    epsilon: float
    delta: float
    neighboring_relation: str
    workload: Workload
    schedule: str
    rows: tuple[StrategyRow, ...]

    @property
    def baseline(self) -> StrategyRow | None:
        """The row of independent noise, DP-SGD, with which the others are compared."""
        return next((r for r in self.rows if r.mean_error and r.strategy.kind == "identity"), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        rows = [row.to_dict() for row in self.rows]
        return {**vars(self), "workload": self.workload.to_dict(), "rows": rows}

    def __str__(self) -> str:
        """Return the table, at most 80 columns wide, with the strategies of each label below it."""
        above = [
            f"noise for epsilon = {self.epsilon:g}, delta = {self.delta:g}, "
            f"{self.neighboring_relation}; {self.steps} steps",
            self.schedule,
            f"errors of {self.workload}, in clipping norms; memory in rows",
        ]
        heads = "strategy", "noise", "max", "mean", "of DP-SGD", "momentum", "rows"
        table = [heads, *map(self._cells, self.rows)]
        labels: dict[str, list[str]] = {}
        for row in self.rows:
            labels.setdefault(row.label, []).append(row.name)
        every = len(labels) == 1
        below = [
            f"{label}: {'every strategy' if every else '; '.join(names)}"
            for label, names in labels.items()
            if label
        ]
        return "\n".join([*wrapped(above), *columns(table, right=1), *wrapped(below)])

    def _cells(self, row: StrategyRow) -> tuple[str, ...]:
        if row.noise_multiplier is None or row.mean_error is None or row.momentum_error is None:
            return row.name, row.note
        least = self.baseline
        share = "" if least is None else f"{row.mean_error / (least.mean_error or 1.0):.3f}"
        errors = row.max_error, row.mean_error, row.momentum_error
        largest, mean, momentum = (f"{error:.4g}" for error in errors)
        noise = f"{row.noise_multiplier:.5g}"
        return row.name, noise, largest, mean, share, momentum, str(row.memory)


def compare_strategies(
    *,
    steps: int,
    epsilon: float,
    delta: float,
    participation: Participation | None = None,
    workload: Workload = PREFIX_SUMS,
    neighboring_relation: str = "replace-special",
    strategies: Sequence[Strategy | str] | None = None,
    pricing: Pricing | None = None,
    executor: Any = None,
    progress: Callable[[StrategyRow, int, int], None] | None = None,
) -> StrategyTable:
    """Calibrate several strategies to one target, and compare their errors.

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    epsilon
        Target, > 0.
    delta
        Target, in (0, 1).
    participation
        The guarantee of the data pipeline; at most once when omitted. Families with parameters are
        optimised for it.
    workload
        Sums for which the errors are compared.
    neighboring_relation
        ``"replace-special"``, ``"replace-one"``, or ``"add-or-remove-one"`` for schemas with
        ``independent=True``.
    strategies
        Candidates, as strategies or as texts such as ``"lambda-cgd=0.5"``, ``"banded=4"``,
        ``"blt=1"``, ``"banded-inverse=4"``, ``"tree"``, ``"square-root"`` and ``"identity"``. Free
        parameters of a text are optimised; ``"banded=best"`` has the number of bands with the least
        error under these batches. One or more of each family when omitted.
    pricing
        Function that calibrates a strategy; ``KnownSchedule(participation)``, without amplification
        by sampling, when omitted. ``SampledBatches(sampler, ...)`` is for random batches; without a
        ``participation``, families with parameters are then optimised for participations at the
        same rate, evenly spaced.
    executor
        Executor that calibrates several strategies at a time, if given: a ``concurrent.futures``
        executor, or a Dask client as it is. The table is the same for every executor.
    progress
        A function that is called after each strategy with its row, how many are done, and how many
        there are.

    Returns
    -------
    StrategyTable
        One row a strategy.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range, or a strategy for another number of steps.
    UnsupportedEvent
        If no theorem covers any of the strategies.
    """
    count = validate.count(steps=steps)
    validate.instance(Workload, workload=workload)
    validate.instance(Participation, type(None), participation=participation)
    target: dict[str, Any] = {
        "epsilon": validate.positive(epsilon=epsilon),
        "delta": validate.probability(delta=delta),
        "neighboring_relation": relation_of(neighboring_relation),
    }
    sampled = pricing if isinstance(pricing, SampledBatches) else None
    schema = participation or (sampled.schedule(count) if sampled else matrix.Single())
    schema.earliest(count)
    priced_by = pricing or KnownSchedule(schema)
    if strategies is None:
        strategies = for_random_batches(count) if sampled else usual(count, schema)
    members = chosen(strategies, count, schema, workload)
    calibrated = partial(_row, pricing=priced_by, workload=workload, target=target)
    rows: list[StrategyRow] = []
    # Rows come in the order of the strategies.
    for row in mapping(executor)(calibrated, members):
        rows.append(row)
        if progress is not None:
            progress(row, len(rows), len(members))
    if all(row.noise_multiplier is None for row in rows):
        raise UnsupportedEvent(rows[0].note)
    return StrategyTable(
        steps=count, workload=workload, schedule=str(priced_by), rows=tuple(rows), **target
    )


def _row(
    strategy: Strategy | Best, pricing: Pricing, workload: Workload, target: dict[str, Any]
) -> StrategyRow:
    """Return the row of a strategy, or of the best of a family, calibrated to a target."""
    if isinstance(strategy, Best):
        rows = (_row(each, pricing, workload, target) for each in strategy)
        tried = ((math.inf if row.mean_error is None else row.mean_error, row) for row in rows)
        return least_until_rising(tried)[1]
    memory = len(strategy.recurrence(1).buffers)
    try:
        found = pricing(strategy, **target)
    except (UnsupportedEvent, TargetUnreachable) as refusal:
        return StrategyRow(strategy, None, None, None, memory, note=str(refusal))
    sigma = found.noise_multiplier
    return StrategyRow(
        strategy,
        sigma,
        sigma * strategy.max_error(workload),
        sigma * strategy.mean_error(workload),
        memory,
        sigma * strategy.mean_error(replace(workload, momentum=_MOMENTUM, decay=1.0)),
        found.method,
        found.label,
    )
