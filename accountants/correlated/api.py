"""What does a run with correlated noise and random batches cost? The front door.

>>> import numpy as np
>>> from types import SimpleNamespace
>>> from dpcal.accountants import correlated
>>> identity = SimpleNamespace(steps=1000, matrix=lambda: np.eye(1000))
>>> answer = epsilon(identity, correlated.Poisson(0.01), noise_multiplier=0.8, delta=1.76713759e-5)
>>> print(f"{answer:.6f} {answer.label}")
3.000000 exact
>>> C = np.tril(0.5 ** np.maximum(np.subtract.outer(np.arange(100), np.arange(100)), 0))
>>> run = SimpleNamespace(steps=100, matrix=lambda: C, decay=0.5)
>>> answer = epsilon(run, correlated.Poisson(0.01), noise_multiplier=2.0, delta=1e-3, draws=40_000,
...                  seed=0)
>>> print(answer.label, answer.lower < answer.estimate < answer < answer.certified)
statistical with certified confidence True
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import binom

from dpcal import _validate
from dpcal.accountants import delta as event_delta
from dpcal.accountants import epsilon as event_epsilon
from dpcal.accountants.correlated import certified as proofs
from dpcal.accountants.correlated import conditional
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.confidence import draws_needed
from dpcal.accountants.correlated.estimators import (
    Bins,
    Counts,
    Direct,
    Estimator,
    Setting,
    ShiftAdd,
    ShiftRemove,
    Tilted,
)
from dpcal.accountants.correlated.likelihood import (
    BracketEngine,
    Engine,
    GridEngine,
    ParticleEngine,
    TransferEngine,
    VectorEngine,
    likely_end,
    refined,
    refined_vector,
)
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.montecarlo import Progress, Sample, simulate
from dpcal.accountants.correlated.samplers import (
    Automaton,
    BallsInBins,
    CyclicPoisson,
    FixedSize,
    Poisson,
    Sampler,
)
from dpcal.accountants.correlated.table import (
    CERTIFIED,
    EXACT,
    STATISTICAL,
    WITH_CONFIDENCE,
    chosen,
)
from dpcal.accountants.events import (
    ComposedDpEvent,
    DpEvent,
    GaussianDpEvent,
    PoissonSampledDpEvent,
    SelfComposedDpEvent,
)
from dpcal.errors import TargetUnreachable, UnsupportedEvent

__all__ = ["compositions", "delta", "epsilon", "revealed_delta"]

STATISTICS = ("certified", "asymptotic", "none")
ARITHMETIC = ("validated", "bracketed")

# Default probability of misleading draws: this part of the target delta, or this much where there
# is no target; and for bounds that hold only asymptotically.
_PART_OF_DELTA = 1e-2
_WITHOUT_TARGET = 1e-9
_ASYMPTOTIC = 0.05

# Below these, an importance sampler may have missed what matters.
_LEAST_EFFECTIVE = 50.0
_LARGEST_SHARE = 0.02

_PILOT_STREAM = 2**31

# Over the largest column: with less noise, what was released tells who took part.
_LEAST_NOISE_TO_CONDITION = 3.0


@dataclass(frozen=True)
class Options:
    """How to draw; the arguments that :func:`epsilon` and :func:`delta` share."""

    statistics: str = "certified"
    draws: int = 100_000
    failure_probability: float | None = None
    seed: int | None = None
    arithmetic: str = "validated"
    particles: int = 32
    executor: Executor | None = None
    progress: bool | Progress = False
    checkpoint: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        _validate.choice(STATISTICS, statistics=self.statistics)
        _validate.choice(ARITHMETIC, arithmetic=self.arithmetic)
        _validate.count(draws=self.draws)
        _validate.count(particles=self.particles)
        if self.failure_probability is not None:
            _validate.probability(failure_probability=self.failure_probability)

    def simulate(self, estimator: Estimator, stream: int) -> Sample:
        """Draw, with one checkpoint file for each direction."""
        path = None if self.checkpoint is None else f"{os.fspath(self.checkpoint)}.{stream}"
        return simulate(
            estimator,
            draws=self.draws,
            seed=int(self.seed or 0),
            stream=stream,
            executor=self.executor,
            progress=self.progress,
            checkpoint=path,
        )


def _generator(options: Options) -> np.random.Generator:
    sequence = np.random.SeedSequence(options.seed, spawn_key=(_PILOT_STREAM,))
    return np.random.Generator(np.random.PCG64(sequence))


@dataclass(frozen=True, eq=False)
class _Question:
    """A mechanism under a sampler, the route that the table chose, and how to draw."""

    mechanism: Mechanism
    sampler: Sampler
    route: str
    options: Options

    @cached_property
    def law(self) -> Automaton:
        return self.sampler.automaton(self.mechanism.steps)

    @property
    def independent(self) -> bool:
        return self.law.start.size == 1

    def setting(self, direction: str) -> Setting:
        return Setting(self.mechanism, self.law, self._engine(direction))

    def _engine(self, direction: str) -> Engine:
        if self.route in ("separated", "transfer"):
            return TransferEngine(self.mechanism, self.law, separated=self.route == "separated")
        if self.route == "particles":
            return ParticleEngine(self.mechanism, self.law, self.options.particles)
        if self.route == "states":
            return self._states
        if self.options.arithmetic == "validated" and self._grid is not None:
            return self._grid
        end = likely_end(self.mechanism, self.law)
        return BracketEngine(self.mechanism, self.law, upper=direction == "remove", end=end)

    @cached_property
    def _grid(self) -> GridEngine | None:
        """The grid, refined on draws of both laws; None if it would need too many nodes."""
        rng = _generator(self.options)
        end = likely_end(self.mechanism, self.law)
        engine = GridEngine(self.mechanism, self.law, 16, end)
        setting = Setting(self.mechanism, self.law, engine)
        x = setting.telling(32, rng)
        fields = [self.mechanism.fields(x), self.mechanism.fields(setting.noise(32, rng))]
        try:
            return refined(engine, fields)
        except UnsupportedEvent:
            return None

    @cached_property
    def _states(self) -> Engine:
        """The grid of states, refined on draws of both laws; particles if it is too large."""
        rng = _generator(self.options)
        particles = ParticleEngine(self.mechanism, self.law, self.options.particles)
        setting = Setting(self.mechanism, self.law, particles)
        x = np.concatenate([setting.telling(24, rng), setting.noise(8, rng)], axis=1)
        try:
            return refined_vector(self.mechanism, self.law, [self.mechanism.fields(x)])
        except UnsupportedEvent:
            return particles

    @property
    def name(self) -> str:
        """The route that was taken in the end."""
        if self.route == "states" and isinstance(self._states, ParticleEngine):
            return "particles"
        return self.route

    # --- the estimators of each direction -------------------------------------------------------

    def removing(self, level_of: Callable[[Sample], float], goal: float) -> Estimator:
        """The estimator of delta for removing a record."""
        if self.route == "bins":
            return self._bins_removing(goal)
        setting = self.setting("remove")
        exact = isinstance(setting.engine, GridEngine | VectorEngine)
        if not exact or not self.independent:
            return Direct(setting, "remove")
        if self.options.statistics == "certified":
            return self._tilted(setting) or Direct(setting, "remove")
        return self._importance(setting, level_of)

    def _bins_removing(self, goal: float) -> Estimator:
        gram = self._bin_gram
        orders = [q for q in (1, 2, 3) if len(gram) ** q <= 2_000_000]
        found = [Bins(gram, "remove", q) for q in orders]

        # The order whose Renyi conversion alone needs the least epsilon has the smallest range.
        def reach(estimator: Bins) -> float:
            if estimator.order == 1:
                return math.inf
            return proofs.least_epsilon(estimator.largest, goal)

        return min(found, key=reach)

    @cached_property
    def _bin_gram(self) -> Any:
        """Products of the means of the bins, over sigma^2."""
        if not isinstance(self.sampler, BallsInBins):
            raise TypeError(f"sampler must be BallsInBins, got {self.sampler!r}.")
        M = self.mechanism.matrix @ self.sampler.patterns(self.mechanism.steps)
        return M.T @ M / self.mechanism.variance

    def _tilted(self, setting: Setting) -> Estimator | None:
        """Order-2 draws, where the second moment exists in practice and is computed accurately."""
        rates = self.law.rates
        if rates.max() >= 1 or self.mechanism.decay is None:
            return None
        tilted = Tilted(setting)
        if tilted.log_moment > 8 or not tilted.validated():
            return None
        return tilted

    def _importance(self, setting: Setting, level_of: Callable[[Sample], float]) -> Estimator:
        """The importance sampler with the most effective draws in a pilot."""
        rng = _generator(self.options)
        rate = float(self.law.rates.max())
        if rate >= 0.5:
            return Direct(setting, "remove")
        best: tuple[float, Estimator] = (0.0, Direct(setting, "remove"))
        goal = None
        if self.mechanism.decay is not None:
            start = Counts(setting, (1 - 1.5 * rate, 1.4 * rate, 0.1 * rate), 0.1)

            def level(kept: Any, proposal: Counts) -> float:
                return level_of(Sample(proposal, kept, 0))

            counts = start.fitted(level, rng)
            pilot = Sample(counts, counts.draw(2048, rng), 0)
            goal = level_of(pilot)
            best = (self._effective(pilot, goal), counts)
        for scale in (1.0, 2.0, 4.0, 8.0):
            shift = ShiftRemove(setting, scale)
            pilot = Sample(shift, shift.draw(1024, rng), 0)
            at = level_of(pilot) if goal is None else goal
            best = max(best, (2 * self._effective(pilot, at), shift), key=lambda item: item[0])
        return best[1]

    def _effective(self, pilot: Sample, level: float) -> float:
        reading = pilot.at(level, failure_probability=0.05)
        # A single draw that carries much of the mean tells of more that were not seen.
        return reading.effective_draws if reading.largest_share < 0.2 else 0.0

    def adding(
        self, level: float, proved: bool, level_of: Callable[[Sample], float]
    ) -> tuple[Estimator | None, float]:
        """The estimator for adding a record near a level, and a bound that may settle it first."""
        if self.route == "bins":
            gram = self._bin_gram
            return Bins(gram, "add"), proofs.variational_bins_delta(gram, level)
        if level >= -self.law.never:
            return None, 0.0
        setting = self.setting("add")
        if not self.independent:
            return Direct(setting, "add"), self.proved_delta(level)[0]
        bound, share = proofs.variational_delta(setting, level)
        if not proved:
            return self._shifted(setting, level, level_of), bound
        _, kappa, mu = ShiftAdd(setting, share, 1.0).half_space
        scale = (level - kappa) / (mu * mu)
        if scale <= 0.1:
            return Direct(setting, "add"), bound
        return ShiftAdd(setting, share, scale), bound

    def _shifted(
        self, setting: Setting, level: float, level_of: Callable[[Sample], float]
    ) -> Estimator:
        """The shift with the most effective draws in a pilot, near what the pilot is to decide."""
        rng = _generator(self.options)
        best: tuple[float, Estimator] = (0.0, Direct(setting, "add"))
        # Moved by this, the linear part of log L reaches the level in the mean.
        reach = level / ShiftAdd(setting, 1.0, 1.0).half_space[2] ** 2
        for part in (0.2, 0.35, 0.5, 0.7, 0.85, 1.0, 1.2, 1.4):
            shift = ShiftAdd(setting, 1.0, max(part * reach, 1e-3), proved=False)
            pilot = Sample(shift, shift.draw(1024, rng), 0)
            effective = self._effective(pilot, level_of(pilot))
            best = max(best, (effective, shift), key=lambda item: item[0])
        return best[1]

    # --- deterministic bounds ------------------------------------------------------------------

    def proved_delta(self, epsilon: float) -> tuple[float, str]:
        if self.route == "groups":
            return max(group.delta(epsilon) for group in self._groups), self._proof
        return self._revealed.delta(epsilon), self._proof

    @property
    def _proof(self) -> str:
        return "participations revealed" + (", worst group" if self.route == "groups" else "")

    @cached_property
    def _groups(self) -> list[proofs.RevealedGroup]:
        """The bounds of fixed groups: a record stays in one of them, and anyone may know which."""
        sampler = self.sampler
        assert isinstance(sampler, CyclicPoisson)
        rate = float(sampler.sampling_probability)
        gram = self.mechanism.gram
        return [
            proofs.RevealedGroup(gram[g :: sampler.bands, g :: sampler.bands], rate)
            for g in range(min(sampler.bands, len(gram)))
        ]

    @cached_property
    def _revealed(self) -> proofs.Revealed:
        return proofs.Revealed(self.mechanism, self.law)

    def proved_adding(self, target: float) -> float:
        """The least epsilon that a deterministic bound proves for adding a record."""

        def bound(epsilon: float) -> float:
            if self.route == "bins":
                return proofs.variational_bins_delta(self._bin_gram, epsilon)
            if not self.independent:
                return self.proved_delta(epsilon)[0]
            return proofs.variational_delta(self.setting("add"), epsilon)[0]

        return proofs.least_epsilon(bound, target)

    def proved_epsilon(self, target: float) -> tuple[float, str]:
        """The least epsilon that a deterministic bound proves for both directions."""
        revealed = proofs.least_epsilon(lambda e: self.proved_delta(e)[0], target)
        best = (revealed, self._proof)
        if not isinstance(self.sampler, Poisson):
            return best
        rate = float(self.sampler.sampling_probability)
        if rate >= 1:
            return best
        if self.route != "grid":
            return self._by_conditioning(rate, target, best)
        setting = Setting(self.mechanism, self.law, GridEngine(self.mechanism, self.law))
        remove, method = proofs.renyi_epsilon(self.mechanism, rate, target)
        if remove >= revealed:
            return best
        # Adding a record, at this epsilon or above.
        add = remove
        if proofs.variational_delta(setting, remove)[0] > target:
            add = self.proved_adding(target)
        return min(best, (max(remove, add), method))

    def _by_conditioning(
        self, rate: float, target: float, best: tuple[float, str]
    ) -> tuple[float, str]:
        """Conditional composition, where there is enough noise for it to help."""
        mechanism = self.mechanism
        enough = mechanism.sigma >= _LEAST_NOISE_TO_CONDITION * mechanism.largest_column
        if not enough or not conditional.covers(mechanism, rate):
            return best
        bound = conditional.conditional_epsilon(mechanism, rate, target)
        return min(best, (bound, "conditional composition"))


def _question(
    strategy: Any, sampler: Sampler, noise_multiplier: float, options: Options
) -> _Question:
    mechanism = Mechanism.of(strategy, noise_multiplier=noise_multiplier)
    row = chosen(mechanism, sampler, statistics=options.statistics)
    return _Question(mechanism, sampler, row.route, options)


def _options(options: dict[str, Any]) -> Options:
    known = Options(**options)
    return replace(known, seed=secrets.randbits(63)) if known.seed is None else known


def compositions(mechanism: Mechanism, sampler: Sampler) -> list[DpEvent]:
    """Compositions of sampled Gaussians, one for each group that may be the worst."""
    norms = np.sqrt(mechanism.energies)
    if isinstance(sampler, Poisson):
        groups, rate = [norms], sampler.sampling_probability
    elif isinstance(sampler, CyclicPoisson):
        groups = [norms[g :: sampler.bands] for g in range(min(sampler.bands, norms.size))]
        rate = sampler.sampling_probability
    else:
        raise UnsupportedEvent(f"{sampler.name} sampling is no composition of sampled Gaussians.")
    found: list[DpEvent] = []
    kept: list[Any] = []
    for group in groups:
        ordered = np.sort(group)[::-1]
        if any(
            len(other) >= len(ordered) and (other[: len(ordered)] >= ordered).all()
            for other in kept
        ):
            continue
        kept.append(ordered)
        found.append(_composed(ordered, float(rate)))
    return found


def _composed(norms: Any, rate: float) -> DpEvent:
    parts = []
    for norm, count in zip(*np.unique(norms, return_counts=True), strict=True):
        gaussian = GaussianDpEvent(float(1 / norm))
        step = gaussian if rate == 1 else PoissonSampledDpEvent(rate, gaussian)
        parts.append(SelfComposedDpEvent(step, int(count)))
    return parts[0] if len(parts) == 1 else ComposedDpEvent(parts)


def _require_enough(estimator: Estimator, options: Options, target: float, gamma: float) -> None:
    """Refuse, before drawing, a number of draws that could not reach the target."""
    largest = estimator.largest(_hopeful(estimator, target))
    if largest is None:
        return
    if gamma >= target:
        raise ValueError(
            f"failure_probability must be less than delta={target!r}, of which it is a part, "
            f"got {gamma * 2!r}."
        )
    needed = draws_needed(target - gamma, failure_probability=gamma, largest=largest)
    if options.draws < needed:
        reachable = -math.log(gamma) * largest / options.draws
        raise ValueError(
            f"draws={options.draws} cannot bound delta={target:g} with failure probability "
            f"{2 * gamma:g}: even if no draw exceeded epsilon, the bound would be "
            f"{reachable:.2g}; choose draws >= {needed}, or statistics='asymptotic'."
        )


def _hopeful(estimator: Estimator, target: float) -> float:
    """The epsilon at which the estimator's range alone would do; the answer is at most that."""
    largest = estimator.largest(0.0)
    if largest is None or estimator.largest(1.0) == largest:
        return 0.0
    return proofs.least_epsilon(lambda e: float(estimator.largest(e) or 0.0), target)


def _gamma(options: Options, target: float | None) -> float:
    if options.failure_probability is not None:
        return options.failure_probability
    return _WITHOUT_TARGET if target is None else _PART_OF_DELTA * target


def _trusted(sample: Sample, epsilon: float) -> None:
    """Refuse an importance sample whose mean hangs on few draws."""
    reason = _distrust(sample, epsilon)
    if reason is not None:
        raise ValueError(reason)


def _distrust(sample: Sample, epsilon: float) -> str | None:
    """Why the mean of an importance sample hangs on few draws, or None."""
    if sample.estimator.largest(epsilon) is not None:
        return None
    reading = sample.at(epsilon, failure_probability=_ASYMPTOTIC)
    if reading.effective_draws < _LEAST_EFFECTIVE or reading.largest_share > _LARGEST_SHARE:
        needed = sample.draws * max(
            _LEAST_EFFECTIVE / max(reading.effective_draws, 1.0),
            reading.largest_share / _LARGEST_SHARE,
        )
        return (
            f"draws={sample.draws} leave {reading.effective_draws:.0f} effective draws at "
            f"epsilon={epsilon:.4g}, the largest with {reading.largest_share:.0%} of the mean; "
            f"choose draws >= {math.ceil(2 * needed)}."
        )
    return None


def _solved(
    sample: Sample, target: float, gamma: float, added: float
) -> tuple[float, float, float]:
    """Lower end, estimate and upper end of the epsilon at which a sample's delta is the target."""

    def least(part: Callable[[Any], float], goal: float) -> float:
        return proofs.least_epsilon(lambda e: part(sample.at(e, failure_probability=gamma)), goal)

    upper = least(lambda reading: reading.upper, target - added)
    estimate = least(lambda reading: reading.mean, target)
    lower = least(lambda reading: reading.lower, target)
    return lower, estimate, upper


def epsilon(
    strategy: Any,
    sampler: Sampler,
    *,
    delta: float,
    noise_multiplier: float,
    **options: Any,
) -> CorrelatedEpsilon:
    """Return the epsilon of a run with correlated noise and random batches.

    Parameters
    ----------
    strategy
        Has ``steps``, ``matrix()`` (dense lower-triangular C >= 0), and possibly ``decay``, if
        ``C[t, u] = decay^(t - u)``.
    sampler
        One of this package's samplers.
    delta
        A number in (0, 1).
    noise_multiplier
        Standard deviation > 0 of Z, in units of the clipping norm. It is not divided by a norm of
        C: papers that write z for sigma over the largest column norm mean ``z *
        Mechanism.of(strategy, noise_multiplier=1).largest_column`` here.
    statistics
        ``"certified"`` (default): draws with a confidence bound that holds at every sample size,
        and whose failure probability is part of delta. ``"asymptotic"``: importance sampling with a
        normal interval, for small delta with few draws. ``"none"``: deterministic bounds only.
    draws
        Monte Carlo draws for each direction, default 100,000.
    failure_probability
        That the draws mislead; default delta / 100, or 0.05 for normal intervals.
    seed
        Fixes the draws; fresh and secret by default.
    arithmetic
        ``"validated"`` (default) or ``"bracketed"`` likelihood ratios, for lambda-CGD.
    particles
        For matrices without structure.
    executor, progress, checkpoint
        As for :func:`~dpcal.accountants.correlated.montecarlo.simulate`.

    Returns
    -------
    CorrelatedEpsilon
        The upper end, with ``.label``, ``.lower``, ``.estimate`` and the deterministic bound
        ``.certified`` beside it. The relation is zero-out: one record's contributions are left out.

    Raises
    ------
    UnsupportedEvent
        With the reason, where no theorem covers the pair.
    ValueError
        If there are too few draws for the confidence that was asked for.
    """
    target = _validate.probability(delta=delta)
    question = _question(strategy, sampler, noise_multiplier, _options(options))
    if question.route == "product":
        return _exact_epsilon(question, target)
    bound, method = question.proved_epsilon(target)
    if question.options.statistics == "none":
        return _certified_epsilon(bound, method)
    return _sampled_epsilon(question, target, bound, method)


def _exact_epsilon(question: _Question, target: float) -> CorrelatedEpsilon:
    found = [
        event_epsilon(event, delta=target)
        for event in compositions(question.mechanism, question.sampler)
    ]
    worst = max(found, key=lambda answer: answer.upper)
    return CorrelatedEpsilon(
        worst.upper,
        lower=max(answer.lower for answer in found),
        method=f"composition of sampled Gaussians, {worst.method}",
        label=EXACT,
        estimate=worst.upper,
        certified=worst.upper,
    )


def _sampled_epsilon(
    question: _Question, target: float, bound: float, method: str
) -> CorrelatedEpsilon:
    options = question.options
    half = 0.5 * _gamma(options, target)

    def level_of(sample: Sample) -> float:
        return proofs.least_epsilon(
            lambda e: float(sample.estimator.terms(sample.kept, e).mean()), target
        )

    estimator = question.removing(level_of, target)
    proved = estimator.largest(0.0) is not None
    if proved:
        _require_enough(estimator, options, target, half)
    gamma = half if proved else 0.5 * (options.failure_probability or _ASYMPTOTIC)
    # A failure probability is part of delta where the confidence bound holds at every size.
    added = 2 * half if proved else 0.0
    sample = options.simulate(estimator, 0)
    lower, estimate, upper = _solved(sample, target, gamma, added)
    if math.isinf(upper):
        raise TargetUnreachable(
            f"No epsilon bounds delta={target:g} from draws={sample.draws}; choose more draws."
        )
    _trusted(sample, estimate)
    other, settled = question.adding(upper, proved, level_of)
    names = type(estimator).__name__
    if other is not None and settled > target - added:
        add, name = _adding_epsilon(question, other, target, gamma, proved)
        lower, estimate, upper = (
            max(a, b) for a, b in zip((lower, estimate, upper), add, strict=True)
        )
        names += f" and {name}"
    if bound <= upper:
        return _certified_epsilon(bound, method)
    return CorrelatedEpsilon(
        upper,
        lower=0.0 if _one_sided(estimator) else min(lower, upper),
        method=f"{question.name}: {names}",
        label=WITH_CONFIDENCE if proved else STATISTICAL,
        estimate=estimate,
        failure_probability=2 * gamma,
        draws=sample.draws,
        seed=options.seed,
        certified=bound,
    )


def _certified_epsilon(bound: float, method: str) -> CorrelatedEpsilon:
    return CorrelatedEpsilon(
        bound, lower=0.0, method=method, label=CERTIFIED, estimate=bound, certified=bound
    )


def _adding_epsilon(
    question: _Question, estimator: Estimator, target: float, gamma: float, proved: bool
) -> tuple[tuple[float, float, float], str]:
    """Lower end, estimate and upper end for adding a record, and what found the upper end."""
    options = question.options
    if proved:
        _require_enough(estimator, options, target, gamma)
    sample = options.simulate(estimator, 1)
    lower, estimate, upper = _solved(sample, target, gamma, 2 * gamma if proved else 0.0)
    if math.isfinite(upper) and _distrust(sample, estimate) is None:
        return (lower, estimate, upper), type(estimator).__name__
    # The draws do not tell; a bound that needs none may.
    bound = question.proved_adding(target)
    if math.isinf(bound):
        raise TargetUnreachable(
            f"No epsilon bounds delta={target:g} of adding a record from draws={sample.draws}; "
            "choose more draws."
        )
    return (0.0, 0.0, bound), "a bound for adding"


def _one_sided(estimator: Estimator) -> bool:
    """Whether the likelihoods are bounds or estimates that can only raise delta."""
    setting = getattr(estimator, "setting", None)
    return setting is not None and isinstance(setting.engine, BracketEngine | ParticleEngine)


def delta(
    strategy: Any,
    sampler: Sampler,
    *,
    epsilon: float,
    noise_multiplier: float,
    **options: Any,
) -> CorrelatedDelta:
    """Return the delta of a run with correlated noise and random batches at an epsilon >= 0.

    Parameters and errors as for :func:`epsilon`. The failure probability of certified confidence
    (default 1e-9) is added to the delta.
    """
    at = _validate.non_negative(epsilon=epsilon)
    question = _question(strategy, sampler, noise_multiplier, _options(options))
    if question.route == "product":
        return _exact_delta(question, at)
    bound, method = question.proved_delta(at)
    if question.options.statistics == "none":
        return _certified_delta(bound, method)
    return _sampled_delta(question, at, bound, method)


def _exact_delta(question: _Question, at: float) -> CorrelatedDelta:
    found = [
        event_delta(event, epsilon=at)
        for event in compositions(question.mechanism, question.sampler)
    ]
    worst = max(found, key=lambda answer: answer.upper)
    return CorrelatedDelta(
        worst.upper,
        lower=max(answer.lower for answer in found),
        method=f"composition of sampled Gaussians, {worst.method}",
        label=EXACT,
        estimate=worst.upper,
        certified=worst.upper,
    )


def _certified_delta(bound: float, method: str) -> CorrelatedDelta:
    return CorrelatedDelta(
        bound, lower=0.0, method=method, label=CERTIFIED, estimate=bound, certified=bound
    )


def _sampled_delta(question: _Question, at: float, bound: float, method: str) -> CorrelatedDelta:
    options = question.options
    half = 0.5 * _gamma(options, None)
    estimator = question.removing(lambda sample: at, max(1e-300, min(bound, 1e-3)))
    proved = estimator.largest(at) is not None
    gamma = half if proved else 0.5 * (options.failure_probability or _ASYMPTOTIC)
    sample = options.simulate(estimator, 0)
    _trusted(sample, at)
    reading = sample.at(at, failure_probability=gamma)
    lower, estimate, upper = reading.lower, reading.mean, reading.upper
    other, settled = question.adding(at, proved, lambda sample: at)
    names = type(estimator).__name__
    if other is not None and settled > upper:
        second = options.simulate(other, 1)
        add = second.at(at, failure_probability=gamma)
        names += f" and {type(other).__name__}"
        if _distrust(second, at) is None:
            lower, estimate = max(lower, add.lower), max(estimate, add.mean)
            upper = max(upper, min(settled, add.upper))
        else:
            upper = settled
    upper += 2 * half if proved else 0.0
    if bound <= upper:
        return _certified_delta(bound, method)
    return CorrelatedDelta(
        min(upper, 1.0),
        lower=0.0 if _one_sided(estimator) else min(lower, upper),
        method=f"{question.name}: {names}",
        label=WITH_CONFIDENCE if proved else STATISTICAL,
        estimate=min(estimate, upper),
        failure_probability=2 * gamma,
        draws=sample.draws,
        seed=options.seed,
        certified=bound,
    )


def revealed_delta(
    strategy: Any,
    sampler: Sampler,
    *,
    epsilon: float,
    noise_multiplier: float,
) -> CorrelatedDelta:
    """Return a bound on delta that needs no secret about who took part in which round.

    Parameters
    ----------
    strategy, epsilon, noise_multiplier
        As for :func:`delta`.
    sampler
        Any sampler, :class:`~dpcal.accountants.correlated.FixedSize` among them: only the law of
        the number of participations matters.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns; within a pattern the mechanism is
    Gaussian with sensitivity ||C y|| (Denisov et al. 2022).
    """
    at = _validate.non_negative(epsilon=epsilon)
    mechanism = Mechanism.of(strategy, noise_multiplier=noise_multiplier)
    if isinstance(sampler, FixedSize):
        T = mechanism.steps
        law: Any = binom.logpmf(np.arange(T + 1), T, sampler.batch_size / sampler.n)
    else:
        law = sampler.automaton(mechanism.steps)
    bound = proofs.revealed_delta(mechanism, law, at)
    return CorrelatedDelta(
        bound,
        lower=0.0,
        method="participations revealed",
        label=CERTIFIED,
        estimate=bound,
        certified=bound,
    )
