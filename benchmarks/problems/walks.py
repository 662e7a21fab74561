"""What is Gauss-PSGD compared with? A reconstruction of its forerunner, and descent without noise.

Two more are settings of it: SPIDER with a fixed period (``period=``), and DP-SGD (``drift=0``).
The selection of Wang, Chen and Xu (2019) is ``select_point`` with one silo.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from benchmarks.problems.saddles import Trigonometric
>>> objective = Trigonometric.drawn(100_000, 10, seed=0)
>>> plan = calibrate.gauss_psgd(
...     objective.constants, n=100_000, dimension=10, epsilon=1.0, delta=1e-6)
>>> start = np.pi * np.eye(10)[0]
>>> walked = perturbed_spider(objective, plan, small_gradient=0.5, perturbation=0.3, frozen=50,
...                           seed=0, initial=start)
>>> len(walked.iterates) > 500, len(walked.perturbed) >= 1
(True, True)
>>> bool(walked.epsilon(1e-6) <= 1.0)
True

Descent with a bump where gradients vanish, on exact gradients:

>>> where = perturbed_descent(objective, start, learning_rate=0.2, radius=0.1, small_gradient=0.01,
...                           patience=60, decrease=0.1, seed=0)
>>> bool(np.linalg.norm(objective.gradient(where)) < 0.02)
True
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.access import oracle_of
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Run, RunOver
from dpcal.optim.objectives.arrays import Vector, numbers, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result
from dpcal.optim.second_order.estimators import Spider
from dpcal.optim.second_order.gauss_psgd import Settings, spider_of

__all__ = ["Iterates", "perturbed_descent", "perturbed_spider"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Iterates(Result):
    """A result with all of its iterates, one of which is promised to be a second-order point.

    Parameters
    ----------
    iterates
        Shape (T + 1, dimension), from the start on.
    perturbed
        Numbers of the steps that got an extra perturbation.
    """

    iterates: Vector
    perturbed: tuple[int, ...]


def perturbed_spider(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    small_gradient: float,
    perturbation: float,
    frozen: int,
    seed: Seed = None,
    initial: ArrayLike | None = None,
) -> Iterates:
    """Walk as Liu, Ganesh, Oh and Thakurta (2023) do, as far as their text can be rebuilt.

    Where the estimate is small a fresh gradient is asked for, with an extra Gaussian perturbation
    that says nothing of the records; for the next ``frozen`` steps there is no other. All iterates
    are released, and a private selection, charged separately, picks one.

    Parameters
    ----------
    objective
        What to minimise, or an oracle about it.
    plan
        A plan for ``"gauss_psgd"``, whose oracle, ledger and price are the same.
    small_gradient, perturbation, frozen
        Free parameters, which the text does not give: the norm > 0 below which a point looks like a
        saddle, the norm >= 0 of the perturbation, and how many steps >= 0 it sits out.
    seed
        An integer >= 0, a ``numpy.random.SeedSequence`` or ``Generator``, or None for fresh entropy
        from the operating system.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.

    Returns
    -------
    Iterates
        Until the records are used up, or the plan's number of steps is reached.
    """
    level = _validate.positive(small_gradient=small_gradient)
    size = _validate.non_negative(perturbation=perturbation)
    if frozen < 0:
        raise ValueError(f"frozen must be a whole number >= 0, got {frozen!r}.")
    settings = Settings.of(plan)
    oracle = oracle_of(objective, plan, seed)
    run = Run(oracle, steps=settings.steps, initial=initial)
    spider, noise = spider_of(oracle, plan), oracle.public
    iterates, perturbed, wait = [run.w], [], 0
    try:
        while run.going:
            suspect = spider.state is not None and _norm(spider.state.gradient) <= level
            bump = suspect and wait <= 0
            wait = int(frozen) if bump else wait - 1
            run.move(run.w - settings.learning_rate * _estimate(spider, run.w, bump, size, noise))
            iterates.append(run.w)
            perturbed += [run.step] if bump else []
    except RunOver:
        run.finish("ended with the records used up")
    plain = run.result()
    return Iterates(
        **{each.name: getattr(plain, each.name) for each in fields(plain)},
        iterates=np.array(iterates),
        perturbed=tuple(perturbed),
    )


def _estimate(
    spider: Spider, w: Vector, bump: bool, size: float, noise: np.random.Generator
) -> Vector:
    """Return the next estimate, fresh and perturbed where a bump is due; the state holds both."""
    if not bump:
        return spider.query(w)
    spider.state = None
    estimate = spider.query(w)
    estimate += size / np.sqrt(len(w)) * noise.standard_normal(len(w))
    return estimate


def _norm(vector: Vector) -> float:
    return float(np.linalg.norm(vector))


def perturbed_descent(
    objective: Objective,
    initial: ArrayLike,
    *,
    learning_rate: float,
    radius: float,
    small_gradient: float,
    patience: int,
    decrease: float,
    steps: int = 10_000,
    seed: int | np.random.Generator | None = None,
) -> Vector:
    """Return a second-order point by exact descent that is bumped where it stalls. Not private.

    Parameters
    ----------
    objective
        Whose exact gradients and losses are used.
    initial
        Where to start, shape (dimension,).
    learning_rate, radius, small_gradient, decrease
        Step size, length of a bump, gradient norm below which one is due, and by how much the loss
        must fall in ``patience`` steps after it; all > 0.
    patience, steps
        Steps >= 1 that a bump gets, and in all.
    seed
        Of the bumps.

    References
    ----------
    Jin, Netrapalli, Ge, Kakade and Jordan 2021, On nonconvex optimization for machine learning,
    with the decrease of the loss for a criterion. A reference for comparisons.
    """
    for name, value in (("learning_rate", learning_rate), ("radius", radius)):
        _validate.positive(**{name: value})
    rng = np.random.default_rng(seed)
    w = parameters(numbers("initial", initial), objective.dimension)
    point, before, bumped = w, 0.0, -_validate.count(patience=patience) - 1
    for t in range(_validate.count(steps=steps)):
        slope = objective.gradient(w)
        if _norm(slope) <= small_gradient and t - bumped > patience:
            point, before, bumped = w, objective.loss(w), t
            bump = rng.standard_normal(len(w))
            w = w + radius * bump / _norm(bump)
            slope = objective.gradient(w)
        elif t - bumped == patience and objective.loss(w) - before > -decrease:
            return point
        w = w - learning_rate * slope
    return w
