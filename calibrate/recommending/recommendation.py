"""Which optimizer for a linear model of so many records? Errors are predicted, no record is read.

Errors follow :mod:`dpcal.calibrate.recommending.error_law`, times a factor that was fitted.

>>> table = recommend("logistic", n=20_000, dimension=10, epsilon=1.0, delta=1e-6)
>>> table.rows[0].optimizer, table.rows[0].error < table.rows[1].error
('noisy_gd', True)
>>> table.rows[0].plan.price() <= 1.0
True
"""

from __future__ import annotations

import dataclasses
import math
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from types import MappingProxyType
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal._internal.columns import columns, wrapped
from dpcal.accountants.matrix import Banded, Strategy
from dpcal.calibrate.constants import Constants
from dpcal.calibrate.defaults import Defaults
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.common import single_release
from dpcal.calibrate.plans.correlated_dpsgd import correlated_dpsgd
from dpcal.calibrate.plans.dpsgd import dpsgd
from dpcal.calibrate.plans.kl_spider import kl_spider
from dpcal.calibrate.plans.noisy_gd import noisy_gd
from dpcal.calibrate.plans.spiderboost import spiderboost
from dpcal.calibrate.recommending.error_law import LOSSES, excess, transposed_inverse
from dpcal.errors import UnsupportedEvent, VacuousSchedule

# Typical norm of rows over its bound, by default.
_TYPICAL = 0.6
_PASSES, _BANDS = (5.0, 20.0, 60.0), (4, 16)
_FULL_STEPS = (60, 200)
# Above this epsilon noise is small: samples are tried with the most passes, and independent noise.
_LARGE_EPSILON = 100.0
# Measured over predicted excess on 84 held-out problems; two of three runs are within _SPREAD.
_FACTORS = {"dpsgd": 1.25, "noisy_gd": 1.35, "correlated_dpsgd": 1.1}
_SPREAD = 2.5
# The same factor for full steps that noise and smoothness allow, on 60 other problems.
_ALLOWED_FULL = 1.15
# Least waste of sampling for which correlated noise gains, and its factor below that.
_WASTE, _NO_GAIN = 1.2, 1.4


@dataclass(frozen=True, kw_only=True)
class Recommended:
    """One way to fit the model.

    Parameters
    ----------
    optimizer
        Name of the optimizer, and of the builder.
    plan, options
        The plan, and keywords of :func:`dpcal.optim.run` that the prediction is for.
    error, low, high
        Predicted excess of the training loss over its minimum, and the range of two of three runs;
        for a bound, only ``error``.
    measure, basis
        The quantity of ``error``, and its source: ``"fitted law"``, or ``"theorem"`` for an upper
        bound with its constants.
    passes, evaluations, seconds
        Passes over the records, gradients of one record, and processor seconds on this machine
        (:meth:`dpcal.calibrate.Plan.seconds`).
    needs
        The facts that must be public.
    """

    optimizer: str
    plan: Plan
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    error: float
    low: float | None = None
    high: float | None = None
    measure: str = "excess risk"
    basis: str = "fitted law"
    passes: float
    evaluations: float
    seconds: float
    needs: str

    def to_dict(self) -> dict[str, Any]:
        """Return the row as JSON values, its plan by its parameters."""
        values = dict(vars(self))
        parameters = dict(values.pop("plan").parameters)
        return {**values, "options": dict(self.options), "parameters": parameters}


@dataclass(frozen=True, kw_only=True)
class Recommendation:
    """Ways to fit a linear model at one target, best first.

    Parameters
    ----------
    rows
        Sorted by predicted excess risk.
    bounds
        Optimizers with a theorem that bounds an error from above: not comparable with ``rows``.
    lower_bound
        ``C sqrt(d log(1 / delta)) / (n epsilon)`` with C the bound on gradients: no private method
        has a smaller gradient on all problems, up to a constant (Arora et al. 2022, Theorem 2).
    statistical
        Excess of the population loss that the records leave without privacy: ``d / (2 n)``, of
        squared losses times the assumed variance of residuals.
    note
        The assumptions.
    """

    rows: tuple[Recommended, ...]
    bounds: tuple[Recommended, ...]
    lower_bound: float
    statistical: float
    note: str

    def to_dict(self) -> dict[str, Any]:
        """Return the table as JSON values."""
        rows, bounds = ([row.to_dict() for row in each] for each in (self.rows, self.bounds))
        return {**vars(self), "rows": rows, "bounds": bounds}

    def __str__(self) -> str:
        """Return the table, at most 80 columns wide, with what it rests on below."""
        lines = [("optimizer", "steps of records", "error", "between", "passes", "time")]
        known: dict[str, list[str]] = {}
        for row in (*self.rows, *self.bounds):
            between = "" if row.low is None else f"{row.low:.0e} {row.high:.0e}"
            cost = f"{row.passes:.0f}", f"{row.seconds:.1g} s"
            lines.append((row.optimizer, _settings(row), f"{row.error:.1e}", between, *cost))
            basis = row.basis if row.low is not None else f"theorem, {row.measure.split()[0]}"
            known.setdefault(basis, []).append(row.optimizer)
        dpsgd = next(row for row in self.rows if row.optimizer == "dpsgd")
        needs: dict[str, list[str]] = {}
        for row in (*self.rows, *self.bounds):
            needs.setdefault(row.needs, []).append(row.optimizer)
        said = [
            f"(lower bound of the gradient norm, up to a constant: {self.lower_bound:.1e})",
            f"dpsgd: {dpsgd.error / self.rows[0].error:.2g} times the first row. "
            f"Without privacy, the records leave {self.statistical:.1e} of population loss.",
            f"Errors are known by {_grouped(known)}.",
            f"To be known in public: {_grouped(needs)}.",
            self.note,
        ]
        return "\n".join([*columns(lines), *wrapped(said)])


def _grouped(names: Mapping[str, Sequence[str]]) -> str:
    """Return a text on what several optimizers have in common, each with their names."""
    return "; ".join(f"{what} ({', '.join(own)})" for what, own in names.items())


def _settings(row: Recommended) -> str:
    """Return steps, batch and strategy in a few words."""
    query = row.plan.queries[-1]
    size = query.expected_batch_size(row.plan.n)
    words = [f"{query.count} of {'all' if query.sampler == 'full' else format(size, '.0f')}"]
    if query.correlation is not None:
        words.append(f"{query.correlation.strategy.bands} bands")
    return ", ".join(words)


def recommend(
    loss: str,
    *,
    n: int,
    dimension: int,
    epsilon: float,
    delta: float,
    row_norm: float = 1.0,
    typical_norm: float | None = None,
    l2: float = 0.0,
    passes: float | None = None,
    neighboring_relation: str = "replace-special",
) -> Recommendation:
    """Return ways to fit a linear model in private, with predicted errors, best first.

    Parameters
    ----------
    loss
        ``"logistic"``, or ``"squared"`` with targets in [-1, 1].
    n
        Number of records, public.
    dimension
        Number of parameters, the intercept among them.
    epsilon
        The target, > 0.
    delta
        The target's delta, in (0, 1).
    row_norm
        Bound on the norm of a row, with its constant column.
    typical_norm
        Root mean square of the rows' norms, if it is public (default: 0.6 of the bound).
    l2
        Weight >= 0 of the penalty ``l2 / 2 ||w||^2``.
    passes
        Most passes over the records (default: 60 of steps on samples, and of steps on all records
        as many as noise and smoothness allow, at most 1,000). Above epsilon = 100 only 60 passes
        and independent noise are tried on samples.
    neighboring_relation
        ``"add-or-remove-one"`` or ``"replace-special"``.

    Returns
    -------
    Recommendation
        Its plans run by ``optim.run(objective, row.plan, **row.options)``.

    Raises
    ------
    ValueError
        For an argument out of range.

    References
    ----------
    The law is exact for quadratics; a factor and a spread are fitted (``python -m benchmarks
    recommended``).
    """
    rows_of: dict[str, Any] = {"row_norm": row_norm, "typical_norm": typical_norm, "l2": l2}
    target: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
    target["neighboring_relation"] = neighboring_relation
    case = _Case(loss=loss, n=n, dimension=dimension, **rows_of, **target)
    rows = case.best(None if passes is None else validate.positive(passes=passes), tuple(_FACTORS))
    guess = ", assumed" if typical_norm is None else ""
    return Recommendation(
        rows=rows,
        bounds=tuple(case.bounds()),
        lower_bound=case.slope * math.sqrt(dimension * math.log(1 / delta)) / (n * epsilon),
        statistical=LOSSES[loss].residual * dimension / (2 * n),
        note=f"Rows have a typical norm of {case.norm:.3g}{guess}; errors are about the training "
        "loss.",
    )


def first_choice(loss: str, optimizers: Collection[str], **asked: Any) -> Recommended:
    """Return the row of the least predicted error among some optimizers that have a fitted law.

    For other arguments see :func:`recommend`.
    """
    return _Case(loss=loss, **asked).best(None, optimizers)[0]


@dataclass(frozen=True, kw_only=True)
class _Case:
    """A problem with its target, every number checked."""

    loss: str
    n: int
    dimension: int
    epsilon: float
    delta: float
    row_norm: float = 1.0
    typical_norm: float | None = None
    l2: float = 0.0
    neighboring_relation: str = "replace-special"
    plans: dict[Defaults, Plan] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validate.choice(tuple(LOSSES), loss=self.loss)
        validate.positive(epsilon=self.epsilon)
        row_norm = validate.positive(row_norm=self.row_norm)
        if validate.positive(typical_norm=self.norm) > row_norm:
            raise ValueError(
                f"typical_norm must be at most row_norm={self.row_norm}, got {self.norm!r}."
            )
        relation = self.target["neighboring_relation"]
        validate.choice(("add-or-remove-one", "replace-special"), neighboring_relation=relation)
        validate.count(n=self.n)
        validate.count(dimension=self.dimension)
        validate.non_negative(l2=self.l2)

    @property
    def norm(self) -> float:
        """Typical norm of rows."""
        return _TYPICAL * self.row_norm if self.typical_norm is None else self.typical_norm

    @property
    def target(self) -> dict[str, Any]:
        """The keywords of a builder's target."""
        relation = validate.relation(self.neighboring_relation)
        return {"epsilon": self.epsilon, "delta": self.delta, "neighboring_relation": relation}

    @property
    def release(self) -> float:
        """Noise multiplier of one Gaussian release that spends the whole target."""
        return single_release(**self.target)

    @property
    def slope(self) -> float:
        """Bound on the norm of a record's gradient."""
        return LOSSES[self.loss].slope * self.row_norm

    def best(self, most: float | None, optimizers: Collection[str]) -> tuple[Recommended, ...]:
        """Return the best setting of each of these optimizers, best first."""
        found: dict[str, Recommended] = {}
        for row in self.candidates(most, optimizers):
            if row.optimizer not in found or row.error < found[row.optimizer].error:
                found[row.optimizer] = row
        return tuple(sorted(found.values(), key=lambda row: row.error))

    def candidates(self, most: float | None, optimizers: Collection[str]) -> Iterator[Recommended]:
        """Return every setting of these optimizers that is tried, with its prediction."""
        limit = math.inf if most is None else most
        tried = [passes for passes in _PASSES if passes <= limit] or [limit]
        large = self.epsilon > _LARGE_EPSILON
        if large:
            tried = tried[-1:]
        if "dpsgd" in optimizers:
            yield from (self._sampled(self._defaults(passes=passes)) for passes in tried)
        if "noisy_gd" in optimizers:
            for steps in _FULL_STEPS:
                if steps <= limit or steps == _FULL_STEPS[0]:
                    yield self._full(self._defaults(steps=steps, batch_size=self.n))
            allowed = self._defaults()
            if allowed.batch_size == self.n and allowed.steps <= limit:
                yield self._full(allowed, _ALLOWED_FULL / _FACTORS["noisy_gd"])
        if "correlated_dpsgd" in optimizers and not large:
            for passes in tried[:2]:
                tuned = self._defaults(passes=passes)
                more = _NO_GAIN if self._waste(tuned) < _WASTE else 1.0
                for bands in _BANDS:
                    if bands * tuned.batch_size <= self.n:
                        yield self._banded(tuned, bands, more)

    def _defaults(self, **sizes: Any) -> Defaults:
        given: dict[str, Any] = {"n": self.n, "dimension": self.dimension, "row_norm": self.norm}
        return Defaults.of(self.loss, **given, release=self.release, **sizes)

    def _plan(self, tuned: Defaults) -> Plan:
        if tuned not in self.plans:
            sizes: dict[str, Any] = {"batch_size": tuned.batch_size, "steps": tuned.steps}
            self.plans[tuned] = dpsgd(n=self.n, **sizes, max_norm=tuned.max_norm, **self.target)
        return self.plans[tuned]

    def _waste(self, tuned: Defaults) -> float:
        """Return noise on Poisson samples over the noise on full batches at the same epsilon."""
        alone = self.release * tuned.batch_size / self.n * math.sqrt(tuned.steps)
        return self._plan(tuned).queries[0].noise_multiplier / alone

    def _sampled(self, tuned: Defaults) -> Recommended:
        plan = self._plan(tuned)
        rate = tuned.learning_rate(plan.query("gradient").noise_multiplier)
        return self._row(_at_rate(plan, rate), tuned, rate)

    def _full(self, tuned: Defaults, more: float = 1.0) -> Recommended:
        rate = tuned.learning_rate(self.release * math.sqrt(tuned.steps))
        sizes = {"n": self.n, "dimension": self.dimension, "steps": tuned.steps}
        steps = {"max_norm": tuned.max_norm, "learning_rate": rate}
        plan = noisy_gd(self._constants(), **sizes, **steps, **self.target)
        return self._row(plan, tuned, rate, more=more)

    def _banded(self, tuned: Defaults, bands: int, more: float) -> Recommended:
        strategy = _banded(tuned.steps, bands)
        steps = {"batch_size": tuned.batch_size, "max_norm": tuned.max_norm}
        how = {"sampler": "cyclic-poisson", **steps, **self.target}
        plan = correlated_dpsgd(strategy, n=self.n, **how)
        ones = np.full((1, tuned.steps), 1.0)
        alike = float(np.linalg.norm(transposed_inverse(strategy, ones))) / math.sqrt(tuned.steps)
        rate = tuned.learning_rate(alike * plan.query("gradient").noise_multiplier)
        return self._row(_at_rate(plan, rate), tuned, rate, strategy, more=more)

    def _constants(self, **more: Any) -> Constants:
        smoothness = LOSSES[self.loss].smoothness * self.row_norm**2 + self.l2
        return Constants(lipschitz=self.slope, smoothness=smoothness, **more)

    def _row(
        self,
        plan: Plan,
        tuned: Defaults,
        rate: float,
        strategy: Strategy | None = None,
        *,
        more: float = 1.0,
    ) -> Recommended:
        noise = plan.queries[0].noise_multiplier
        left = excess(tuned, rate, noise, l2=self.l2, strategy=strategy)
        error = more * _FACTORS[plan.optimizer] * left
        known = {"low": error / _SPREAD, "high": error * _SPREAD, "error": error}
        options = MappingProxyType({"output": "linear"})
        return self._told(plan, options=options, needs="n, d, typical norm of rows", **known)

    def _told(self, plan: Plan, **known: Any) -> Recommended:
        """Return the row of a plan, with its passes, gradients of a record and seconds."""
        asked, seconds = plan.evaluations, plan.seconds(self.dimension)
        cost: dict[str, Any] = {"passes": asked / plan.n, "evaluations": asked, "seconds": seconds}
        return Recommended(optimizer=plan.optimizer, plan=plan, **cost, **known)

    def bounds(self) -> Iterator[Recommended]:
        """Return optimizers with a theorem that bounds an error at these sizes."""
        gap = math.log(2) if self.loss == "logistic" else 0.5
        constants = self._constants(strong_convexity=self.l2, gap=gap)
        sizes: dict[str, Any] = {"n": self.n, "dimension": self.dimension, **self.target}
        builders: list[tuple[Callable[..., Plan], str, str]] = [
            (spiderboost, "gradient norm", "L0, L1, F0"),
            # Without a penalty, no KL constant is known, and it refuses.
            (partial(kl_spider, l2=self.l2), "excess risk", "L0, L1, F0, l2"),
        ]
        for build, measure, needs in builders:
            with warnings.catch_warnings(action="ignore", category=VacuousSchedule):
                try:
                    plan = build(constants, **sizes)
                except (UnsupportedEvent, ValueError):
                    continue
            accuracy = plan.parameters.get("accuracy")
            if isinstance(accuracy, int | float):
                about = {"measure": measure, "basis": "theorem", "needs": needs}
                yield self._told(plan, error=float(accuracy), **about)


def _at_rate(plan: Plan, rate: float) -> Plan:
    return dataclasses.replace(plan, parameters={**plan.parameters, "learning_rate": rate})


@cache
def _banded(steps: int, bands: int) -> Banded:
    return Banded(steps, bands)
