"""DP-SGD (Abadi et al. 2016, Algorithm 1): noisy gradient steps on Poisson samples of the records.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Logistic, dpsgd
>>> X = np.random.default_rng(0).standard_normal((1_000, 3))
>>> y = X @ [1.0, -2.0, 0.5] > 0
>>> plan = calibrate.dpsgd(n=1_000, batch_size=100, steps=200, epsilon=4.0, delta=1e-6)
>>> objective = Logistic(X, y, classes=[0, 1])
>>> result = dpsgd(objective, plan, seed=0)
>>> bool((objective.predict(X, result.w) == y).mean() > 0.9), result.message
(True, 'took all 200 planned steps')
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.defaults import Defaults
from dpcal.calibrate.plan import Query
from dpcal.optim.boundary.oracle import Walk
from dpcal.optim.driver import Run, first_late
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Vector, algorithm, planned

OUTPUTS = ("last", "random", "uniform", "tail", "linear")


@Optimizer(
    summary="noisy gradient steps on random batches",
    problem="convex, for the rate; any, for the privacy",
    needs=("batch_size", "epochs or steps", "max_norm"),
    rate="sqrt(d) / (n epsilon)",
    measure="excess risk",
    theorem="Abadi et al. 2016, Algorithm 1; Bassily, Smith and Thakurta 2014, Theorem 2.4",
    options=(
        *("batch_size", "epochs", "steps", "sampler"),
        *("max_norm", "learning_rate", "group_size", "clipped"),
    ),
    constants=False,
).describes
@algorithm()
def dpsgd(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    learning_rate: ArrayLike | None = None,
    output: str | None = None,
    center: ArrayLike | None = None,
    initial: ArrayLike | None,
    radius: float,
) -> Vector:
    """Minimise an objective by DP-SGD, spending a plan.

    Step t: sample records, clip each one's gradient to norm C, sum, add Gaussian noise of standard
    deviation ``noise_multiplier * C``, divide by the expected sample size q n, add the
    regulariser's gradient, and move against it by the learning rate. The size of the actual sample
    is never used; n is public.

    Parameters
    ----------
    plan
        Plan with one query of kind ``"gradient"``, answered once a step. The run uses
        ``"learning_rate"`` and ``"projection_radius"`` of ``plan.parameters``; ``"steps"`` and
        ``"max_norm"`` must agree with the query. Without a finite ``radius`` iterates are projected
        onto the ball of the plan's radius around the start, if it has one (Wang et al. 2026,
        Algorithm 1).
    learning_rate
        A number > 0, or one per step, shape (steps,). When omitted, the plan's, or else
        :func:`default_steps`.
    output
        ``"last"`` returns the last iterate, ``"uniform"`` the mean of all, ``"tail"`` the mean of
        the last half, ``"linear"`` a mean of all in which iterate t has weight t, ``"random"`` one
        of w_0, ..., w_{T-1}, uniformly. When omitted, ``"linear"`` for linear models with the
        default learning rate, and else ``"last"``.
    center
        Centre of the ball of ``radius``, shape (dimension,); the origin when omitted.

    References
    ----------
    Abadi et al. 2016, Algorithm 1; averaging: Polyak and Juditsky 1992, Rakhlin, Shamir and
    Sridharan 2012, Lacoste-Julien, Schmidt and Bach 2012.
    """
    (query,) = planned(plan, "gradient")
    for name, value in (("steps", query.count), ("max_norm", query.max_norm)):
        if plan.parameters.get(name, value) != value:
            raise ValueError(
                f"plan.parameters[{name!r}] must agree with the plan's query, which has {value}, "
                f"got {plan.parameters[name]!r}."
            )
    radius = validate.radius(radius=radius)
    chosen = plan.parameters.get("learning_rate") if learning_rate is None else learning_rate
    if output is None:
        linear = chosen is None and getattr(objective, "linear_loss", None)
        output = "linear" if linear else "last"
    validate.choice(OUTPUTS, output=output)
    reach = math.inf
    if chosen is None:
        chosen, reach = default_steps(objective, query=query, n=plan.n, radius=radius)
    rates = validate.reals(learning_rate=chosen)
    if rates.shape not in ((), (query.count,)) or not ((rates > 0) & np.isfinite(rates)).all():
        raise ValueError(
            f"learning_rate must be a finite number > 0 or {query.count} of them, one per step, "
            f"got {chosen!r}."
        )
    of_plan = plan.parameters.get("projection_radius")
    if math.isinf(radius) and of_plan is not None:
        center, radius = initial, validate.positive(projection_radius=of_plan)
    run = begin(query.count, center=center)
    run.radius = radius
    rates = np.array(np.broadcast_to(rates, query.count))
    return descend(run, query.name, rates, output, reach=reach)


def descend(
    run: Run,
    query: str,
    learning_rates: Vector,
    output: str,
    *,
    difference: str | None = None,
    heard: Collection[int] | None = None,
    **how: Any,
) -> Vector:
    """Take all steps ``w <- P(w - eta_t g_t)`` of a run.

    Parameters
    ----------
    run
        The run, at its start.
    query, difference
        Names of the queries whose answers g_t is, as for :class:`dpcal.optim.boundary.oracle.Walk`.
    learning_rates
        One eta_t a step, shape (steps,).
    output
        What is returned: ``"last"``, the last iterate; ``"random"``, one of w_0, ..., w_{T-1},
        uniformly; ``"smallest-norm"``, the one with the shortest g_t; or a mean of iterates,
        ``"uniform"`` of all, ``"tail"`` of the last half, ``"linear"`` of all with weight t of
        iterate t.
    heard
        Steps with fresh gradients. Where the last iterate is returned, the run hears these answers,
        which show whether it ended below its start; by default the first and late ones, where each
        step has fresh noise.
    **how
        Period of fresh gradients and reach of steps, as for :class:`dpcal._ext.loops.Steps`.
    """
    steps, asked = len(learning_rates), run.oracle.plan.query(query)
    start = {"uniform": 0, "tail": steps // 2, "linear": 0}.get(output, steps)
    drawn = int(run.oracle.public.integers(steps)) if output == "random" else steps
    if heard is None:
        fresh = asked.sampler in ("full", "poisson") and asked.correlation is None
        heard = (0, *range(first_late(steps), steps)) if fresh else ()
    heard = heard if output == "last" else ()
    growth = 1.0 if output == "linear" else 0.0
    how |= {"rates": learning_rates, "averaged_from": start, "growth": growth, **run.ball}
    walk = Walk(run.oracle, run.w, query, difference, **how)
    picked, shortest = run.w, math.inf
    while run.going:
        w, hears = run.w, run.step in heard
        ends = (run.step + run.until_noted, drawn, *heard)
        moves = min(end for end in ends if end > run.step) - run.step
        moves = 1 if hears or output == "smallest-norm" else moves
        run.follow(walk, moves, heard=asked if hears else None)
        if output == "smallest-norm":
            norm = l2_norm(walk.gradient)
            picked, shortest = (w, norm) if norm < shortest else (picked, shortest)
        elif run.step <= drawn:
            picked = run.w
    return walk.mean if run.step > start else picked


def default_steps(
    objective: Problem, *, query: Query, n: int, radius: float = math.inf
) -> tuple[float, float]:
    """Return a learning rate, and a reach that shortens it on the way, from public numbers only.

    For logistic, softmax and squared losses of a linear model, smoothness and noise limit the rate
    (:class:`dpcal.calibrate.defaults.Defaults`): rows are assumed to be as long as the clip, and
    targets of squared losses to be in [-1, 1]. Where rows are longer, such steps are too long, and
    the released gradients show it: step t is at most ``reach / sqrt(|g_1|^2 + ... +
    |g_t|^2)``, whose regret is as small as if their lengths had been known before (Levy, Yurtsever
    and Cevher 2018), with half of the guessed distance to the optimum for the reach. For other
    losses the rate is :func:`regret_rate`, and the reach infinite.

    Correlated noise counts as independent noise with the same sum over the run. Its reach is
    infinite: lengths of gradients show nothing, because later noise cancels much of their noise.

    Examples
    --------
    >>> from dpcal.optim import Logistic
    >>> query = Query(name="gradient", kind="gradient", sampler="poisson",
    ...               sampling_probability=0.1, max_norm=2.0, noise_multiplier=3.0, count=100)
    >>> objective = Logistic(np.zeros((120, 15)), np.zeros(120), classes=[0, 1])
    >>> rate, reach = default_steps(objective, query=query, n=120)
    >>> print(f"{rate:.4f}", reach)  # 6 / (4 sqrt(100 (1 + 0.225 / 12))), and 6 / 2 / 2
    0.1486 1.5
    """
    fixed = query.correlation is not None
    if query.correlation is not None:
        strategy = query.correlation.strategy
        alike = query.noise_multiplier * strategy.max_error() / math.sqrt(strategy.steps)
        query = dataclasses.replace(query, noise_multiplier=alike)
    known = getattr(objective, "linear_loss", None)
    if known is None:
        rate = regret_rate(dimension=objective.dimension, query=query, n=n, radius=radius)
        return rate, math.inf
    loss, weight = known
    tuned = Defaults(
        loss=loss,
        n=validate.count(n=n),
        dimension=objective.dimension,
        row_norm=query.max_norm / weight,
        unit=1.0,
        clip=1.0,
        steps=query.count,
        batch_size=max(1, round(query.expected_batch_size(n))),
    )
    l2 = float(getattr(objective, "l2", 0.0)) / weight
    radius = validate.radius(radius=radius)
    rate = tuned.learning_rate(query.noise_multiplier, l2=l2, radius=radius) / weight
    return rate, math.inf if fixed else tuned.distance(radius) / 2


def regret_rate(*, dimension: int, query: Query, n: int, radius: float = math.inf) -> float:
    """Return the learning rate of a regret bound, for losses that need not be smooth.

    It is ``D / (C sqrt(T (1 + d sigma^2 / b^2)))``, which minimises the textbook regret bound ``D^2
    / (2 eta T) + eta G^2 / 2`` when T noisy gradients have mean square norm at most ``G^2 = C^2 (1
    + d sigma^2 / b^2)`` (Bassily, Smith and Thakurta 2014, Theorem 2.4). The query gives C, sigma,
    T and the expected sample size b of n records. D, the distance to the optimum, is the radius if
    it is finite, and otherwise a guess: ``sqrt(d)``, one unit per parameter, which suits features
    of unit scale.

    Examples
    --------
    >>> query = Query(name="gradient", kind="gradient", sampler="poisson",
    ...               sampling_probability=0.1, max_norm=2.0, noise_multiplier=3.0, count=100)
    >>> regret_rate(dimension=16, query=query, n=120)  # 4 / (2 sqrt(100 (1 + 16 / 4**2)))
    0.1414213562373095
    """
    radius = validate.radius(radius=radius)
    dimension = validate.count(dimension=dimension)
    distance = radius if math.isfinite(radius) else math.sqrt(dimension)
    batch_size = query.expected_batch_size(validate.count(n=n))
    noise = dimension * (query.noise_multiplier / batch_size) ** 2
    return distance / (query.max_norm * math.sqrt(query.count * (1.0 + noise)))
