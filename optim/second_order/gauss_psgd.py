"""Gauss-PSGD (Tao et al. 2025, Algorithm 1): descent that leaves saddle points by its own noise.

Where a gradient estimate is small, the iterate may be at a saddle point. From a saddle point the
noise of the next estimates grows along directions of negative curvature, and the iterate is far
away after a few dozen steps. If it stays near in several tries, the point is a second-order point.

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> Z = np.random.default_rng(0).uniform(-1, 1, (100_000, 10))
>>> objective = optim.FromGradients(  # sum_j (1 - cos(w_j + z_j)), with saddle points
...     lambda w, rows: np.sin(w + Z[rows]), n=100_000, dimension=10,
...     hessian_vectors=lambda w, v, rows: np.cos(w + Z[rows]) * v,
...     constants=calibrate.Constants(
...         lipschitz=10**0.5, smoothness=1.0, gap=20.0, hessian_lipschitz=1.0))
>>> saddle = np.array([np.pi] + 9 * [0.0])
>>> plan = calibrate.gauss_psgd(
...     objective.constants, n=100_000, dimension=10, epsilon=1.0, delta=1e-6)
>>> result = gauss_psgd(objective, plan, seed=0, initial=saddle)
>>> result.status, len(result.escapes), result.escapes[0].escaped
('certified', 2, True)
>>> optim.curvature(objective, saddle) < 0 < optim.curvature(objective, result.w)
True

Gradients along the path are fresh answers, and small differences between them:

>>> oracle = optim.PrivateOracle(objective, plan, seed=1)
>>> spider = Spider(oracle, drift=plan.parameters["drift"])
>>> for step in range(8):
...     estimate = spider.query(np.full(10, 0.05 * step))
>>> spider.calls, spider.fresh_calls + spider.difference_calls
(8, 8)
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Self

from dpcal._ext.answers import distance, norm as norm_of
from dpcal._internal import validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.calibrate.plans.second_order.gauss_psgd import RESETS
from dpcal.optim.boundary.oracle import Oracle
from dpcal.optim.driver import Run, RunOver, step_size, worth
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import Begin, Optimizer, Problem, algorithm, read
from dpcal.optim.result import Result
from dpcal.optim.silos.overlap import remember


@dataclass(frozen=True, kw_only=True, eq=False)
class Round:
    """One try to escape: its steps, whether it passed the radius, and its last iterate."""

    steps: int
    escaped: bool
    end: Vector


@dataclass(kw_only=True, eq=False)
class Escape:
    """One escape phase: a point that may be a saddle, and the rounds that were tried from it.

    It has the ``point``, shape (dimension,), the number ``call`` >= 1 and the norm ``estimate`` of
    the estimate there, and the ``rounds`` that ended.
    """

    point: Vector
    call: int
    estimate: float
    rounds: list[Round] = field(default_factory=list)

    @property
    def escaped(self) -> bool:
        """Whether a round escaped."""
        return bool(self.rounds) and self.rounds[-1].escaped


class Settings(NamedTuple):
    """Settings of Algorithm 1.

    Parameters
    ----------
    learning_rate, threshold
        eta > 0, and chi > 0: an escape begins where an estimate is no longer than 3 chi.
    escape_radius, escape_steps, escape_rounds
        R > 0, Gamma >= 1 and Q >= 1.
    steps, reset
        Largest number of estimates, >= 1; and ``"rewind"``, ``"carry"`` or ``"fresh"``.
    """

    learning_rate: float
    threshold: float
    escape_radius: float
    escape_steps: int
    escape_rounds: int
    steps: int
    reset: str = "rewind"

    @classmethod
    def of(cls, plan: Plan, **given: Any) -> Self:
        """Return the settings in a plan's parameters, replaced by the given ones."""
        chosen = {name: value for name, value in given.items() if value is not None}
        plan = replace(plan, parameters={"reset": "rewind", **plan.parameters, **chosen})
        eta, chi, radius = read(plan, validate.positive, *cls._fields[:3])
        length, rounds, calls = read(plan, validate.count, *cls._fields[3:6])
        reset = validate.choice(RESETS, reset=plan.parameters["reset"])
        return cls(eta, chi, radius, length, rounds, calls, reset)


@dataclass(frozen=True, kw_only=True, eq=False)
class SecondOrderResult(Result):
    """Outcome of Gauss-PSGD: a :class:`dpcal.optim.Result` with the escapes of its run.

    Parameters
    ----------
    status
        ``"certified"``: no round led away from ``w``, and the estimate there is small.
        ``"finished"``: all planned estimates were made. ``"budget-exhausted"``: the records are
        used up. ``"silo-lost"``: a silo was lost. ``"stopped"``: by the callback, or by an
        overflow. Only the first is a claim about ``w``.
    escapes
        Escape phases, in order.
    end
        The last iterate, shape (dimension,). In a certified run it is the end of the last round,
        which often has the smaller gradient. Nothing is claimed for it.
    fresh_calls, difference_calls
        Estimates from fresh gradients, and from differences.
    """

    escapes: tuple[Escape, ...]
    end: Vector
    fresh_calls: int
    difference_calls: int


_MESSAGES = {
    "certified": "ended at a point that no round escaped from",
    "budget-exhausted": "ended with the records used up, at a point that nothing is claimed for",
    "finished": "ended after all planned estimates, at a point that nothing is claimed for",
    "silo-lost": "ended because a silo was lost, at a point that nothing is claimed for",
}


ESCAPING = (
    *("max_norm", "learning_rate", "batch_size", "difference_batch_size", "drift", "period"),
    *("threshold", "escape_radius", "escape_steps", "escape_rounds", "reset", "passes", "steps"),
    "failure_probability",
)


@Optimizer(
    summary="one pass of gradients and differences, whose noise leaves saddle points",
    problem="smooth with smooth Hessians, not convex; second-order points of population risk",
    needs=("lipschitz or max_norm", "smoothness", "hessian_lipschitz or escape_radius"),
    rate="n^(-1/3) + (sqrt(d) / (n epsilon))^(2/5) + (d / (n^3 epsilon^2))^(2/17)",
    measure="alpha of an alpha-second-order stationary point",
    theorem="Tao et al. 2025, Algorithms 1 and 2, Theorem 2 (corrected)",
    relations=("replace-one", "replace-special"),
    options=ESCAPING,
).describes
@algorithm()
def gauss_psgd(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    learning_rate: float | None = None,
    reset: str | None = None,
) -> SecondOrderResult:
    """Find a second-order stationary point of population risk, spending a plan.

    The result's ``status`` is whether ``w`` passed the test, and ``plan.parameters["accuracy"]`` is
    the alpha of the claim: gradient no longer than alpha, curvature at least -sqrt(rho alpha). The
    run costs the plan's epsilon, however it ended.

    Parameters
    ----------
    learning_rate
        A number > 0, and below 2 / l2; the plan's eta, shortened for the regulariser, when omitted.
    reset
        ``"rewind"``, ``"carry"`` or ``"fresh"``; the plan's when omitted.

    References
    ----------
    Tao et al. 2025, Algorithm 1, returning the candidate and not the end of its last round (see the
    errata), and Algorithm 2, :class:`Spider`.
    """
    rate = step_size(plan, objective, learning_rate)
    settings = Settings.of(plan, learning_rate=rate, reset=reset)
    _passes_of(plan)  # refuses a wrong plan at no cost
    run = begin(settings.steps)
    drift, period = (plan.parameters.get(name) for name in ("drift", "period"))
    spider = Spider(
        run.oracle,
        drift=validate.non_negative(drift=drift),
        period=None if period is None else int(period),
    )
    status, escapes = walk(spider, run, settings)
    certified = status == "certified"
    if status in _MESSAGES:
        message = _MESSAGES[status]
        if certified:
            last = escapes[-1]
            message = worth(message, plan, at_start=last.call == 1, norm=last.estimate)
        run.finish(message, told=certified)
    result = SecondOrderResult(
        **{**vars(run.result(escapes[-1].point if certified else None)), "status": status},
        escapes=escapes,
        end=run.w.copy(),
        fresh_calls=spider.fresh_calls,
        difference_calls=spider.difference_calls,
    )
    remember(result, [objective] if isinstance(objective, Objective) else [])
    return result


walked = algorithm()(inspect.unwrap(gauss_psgd))


@dataclass(frozen=True, kw_only=True, eq=False)
class State:
    """State of an estimator between two points; released values only.

    It is the point of the last estimate, the estimate there, both of shape (dimension,), and the
    squared movement >= 0 since the last fresh gradient.
    """

    point: Vector
    gradient: Vector
    drift: float


class Ended(RunOver):
    """The end of a walk, with its status; no record was touched."""

    def __init__(self, status: str) -> None:
        self.status = status


class Spider:
    """Ada-DP-SPIDER (Tao et al. 2025, Algorithm 2), on an oracle's disjoint batches.

    Parameters
    ----------
    oracle
        Oracle with the queries of :func:`dpcal.calibrate.gauss_psgd`.
    drift
        kappa >= 0: a gradient is fresh where the squared movement since the last fresh one, the
        step to the new point included, would reach it. At 0 all are fresh: DP-SGD.
    period
        Number of estimates from one fresh gradient to the next, in place of the drift test; the
        first estimate is fresh.

    Attributes
    ----------
    state
        None before the first estimate, or to make the next gradient fresh. Setting it rewinds the
        path, and never the records that were used.
    calls, fresh_calls, difference_calls
        Numbers of all estimates so far, of estimates from fresh gradients, and from differences. An
        estimate at an unmoved point repeats the last estimate, and takes no records.

    Notes
    -----
    Each pass serves a record at most once. If fewer records are left than the next batch needs,
    they are dropped, and the next pass begins. Which records are in a batch depends on released
    values and on a permutation that was drawn before.
    """

    def __init__(self, oracle: Oracle, *, drift: float, period: int | None = None) -> None:
        self._oracle = oracle
        self._kappa = validate.non_negative(drift=drift)
        self._period = None if period is None else validate.count(period=period)
        self._plans: tuple[Plan, ...] = getattr(oracle, "plans", (oracle.plan,))
        self._passes = [_passes_of(plan) for plan in self._plans]
        self._pass = 0
        self._used = [0] * len(self._plans)
        self.state: State | None = None
        self.calls = self.fresh_calls = self.difference_calls = 0

    def query(self, w: Vector) -> Vector:
        """Return an estimate of the gradient at ``w``; raise Ended if too few records are left."""
        before, alive = self.state, self._alive()
        moved = 0.0 if before is None else distance(w, before.point)
        drift = 0.0 if before is None else before.drift + moved * moved
        due = drift >= self._kappa if self._period is None else self.calls % self._period == 0
        gradient = None if before is None or due else before.gradient
        if before is not None and gradient is not None and moved > 0:
            gradient = gradient + self._oracle.difference(w, before.point, self._take(1))
            self.difference_calls += 1
        # The last estimate was a mean that included the lost silo.
        if gradient is None or self._alive() != alive:
            gradient, drift = self._oracle.gradient(w, self._take(0)), 0.0
            self.fresh_calls += 1
        self.calls += 1
        self.state = State(point=w, gradient=gradient, drift=drift)
        return gradient

    def _alive(self) -> tuple[int, ...]:
        """Return the numbers of the silos that answer; an oracle without silos is number 0."""
        alive: tuple[int, ...] = getattr(self._oracle, "alive", (0,))
        return alive

    def _take(self, which: int) -> str:
        """Return the name of the query for the next batch; its records are used from now on."""
        while True:
            queries = [passes[self._pass][which] for passes in self._passes]
            used = [
                before + (query.batch_size or 0)
                for before, query in zip(self._used, queries, strict=True)
            ]
            if all(used[j] <= self._plans[j].n for j in self._alive()):
                self._used = used
                return queries[0].name
            if self._pass + 1 == len(self._passes[0]):
                raise Ended("budget-exhausted")
            self._pass += 1
            self._used = [0] * len(self._plans)


def _passes_of(plan: Plan) -> list[tuple[Query, Query]]:
    """Return the queries of each pass of a plan: for fresh gradients, and for differences.

    If a plan has no differences, every gradient is fresh, and the first query stands for both.
    Queries that are not on disjoint batches, pass by pass, are refused.
    """
    found: dict[str, list[Query]] = {}
    for query in plan.queries:
        found.setdefault(query.partition or query.name, []).append(query)
    kinds = ["gradient", "gradient difference"]
    for queries in found.values():
        disjoint = all(query.composition == "disjoint" and query.batch_size for query in queries)
        if not disjoint or [query.kind for query in queries] != kinds[: len(queries)]:
            raise ValueError(
                "plan must have a gradient on disjoint batches, and possibly its difference, in "
                f"each partition, got {[(query.name, query.kind) for query in queries]}."
            )
    return [(queries[0], queries[-1]) for queries in found.values()]


def walk(estimator: Spider, run: Run, settings: Settings) -> tuple[str, tuple[Escape, ...]]:
    """Walk as Algorithm 1 does, from a run's iterate, on any estimates of gradients.

    The walk is a function only of the estimator's answers; the run may end it. The status and the
    escapes are returned. A certified point is the last escape's.
    """
    eta, escapes, status = settings.learning_rate, list[Escape](), "stopped"
    try:
        with run:
            while True:  # 1
                before, estimate = _next(estimator, run, settings)  # 2, 3
                while (norm := norm_of(estimate)) > 3 * settings.threshold:  # 4
                    run.move(run.w - eta * estimate)
                    before, estimate = _next(estimator, run, settings)
                escapes.append(Escape(point=run.w, call=estimator.calls, estimate=norm))  # 5
                for _ in range(settings.escape_rounds):  # 6
                    run.w = escapes[-1].point  # 7
                    if settings.reset != "carry":
                        estimator.state = before if settings.reset == "rewind" else None
                    escapes[-1].rounds.append(_round(estimator, run, settings))
                    if escapes[-1].escaped:
                        break
                else:
                    raise Ended("certified")  # 11
    except RunOver as over:
        status = over.status
    return status, tuple(escapes)


def _round(estimator: Spider, run: Run, settings: Settings) -> Round:
    """Take at most Gamma steps, until the iterate is farther than the radius from its start."""
    start, steps, escaped = run.w, 0, False
    while steps < settings.escape_steps and not escaped:  # 8
        run.move(run.w - settings.learning_rate * _next(estimator, run, settings)[1])  # 9
        steps += 1
        escaped = distance(run.w, start) >= settings.escape_radius  # 10
    return Round(steps=steps, escaped=escaped, end=run.w)


def _next(estimator: Spider, run: Run, settings: Settings) -> tuple[State | None, Vector]:
    """Return the estimator's state and then its next estimate, or end the walk."""
    if estimator.calls >= settings.steps:
        raise Ended("finished")
    if not run.going:
        raise Ended("finished" if run.step >= settings.steps else "stopped")
    return estimator.state, estimator.query(run.w)
