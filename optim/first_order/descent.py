"""How do noisy gradients become iterates? One loop of projected descent, for several optimizers.

Noisy gradient descent, DP-SGD and DP-SGD with correlated noise take the same steps: a noisy
gradient, a move against it, a projection onto a ball. Samples and noise are the query's.

>>> from dpcal import calibrate
>>> from dpcal.optim import PrivateOracle, Squared
>>> plan = calibrate.dpsgd(n=2, batch_size=2, steps=3, epsilon=9.0, delta=1e-2)
>>> run = Run(PrivateOracle(Squared([[0.0], [1.0]], [0.0, 1.0]), plan, seed=0), steps=3)
>>> last = projected_descent(run, "gradient", np.full(3, 0.1))
>>> bool((last == run.w).all()), run.step
(True, 3)
"""

from __future__ import annotations

import math

import numpy as np

from dpcal.optim.boundary.fused import FEWEST, Loops
from dpcal.optim.driver import Run
from dpcal.optim.objectives.arrays import Vector, l2_norm

__all__ = ["OUTPUTS", "averaged_descent", "projected_descent"]

OUTPUTS = ("last", "uniform", "tail", "linear")


def projected_descent(
    run: Run,
    query: str,
    learning_rates: Vector,
    *,
    until: int | None = None,
    mean: bool = False,
    growth: float = 0.0,
    reach: float = math.inf,
    squares: Vector | None = None,
    tell: bool = False,
) -> Vector:
    """Take steps ``w <- P(w - eta_t g_t)`` of a run, where g_t answers ``query`` at w.

    The learning rates eta_t are those of every step of the run, shape (steps,). The run goes on
    from its step to the step ``until``, its last when omitted. The last iterate is returned, or the
    mean of the iterates that these steps lead to, in which iterate t has weight t if ``growth`` is
    1.

    No rate is above ``reach / sqrt(|g_1|^2 + ... + |g_t|^2)``, where ``squares``, shape (1,), holds
    the sum of the run's earlier steps, and is overwritten. With ``tell`` the run hears answers that
    tell whether it ended below its start.
    """
    tell = tell and _independent(run, query)
    until = len(learning_rates) if until is None else until
    loops = _loops(run, query)
    squares = np.zeros(1) if squares is None else squares
    average, count = np.zeros_like(run.w), 0
    while run.going and run.step < until:
        moves = min(run.until_noted, until - run.step)
        if tell:
            moves = min(moves, max(1, run.until_telling))
        if loops is not None and moves >= FEWEST:
            w, continued = loops.descend(
                run.w,
                query,
                learning_rates=learning_rates[run.step : run.step + moves],
                radius=run.radius,
                average=(average, count) if mean else None,
                growth=growth,
                reach=reach,
                squares=squares,
            )
            if not math.isfinite(l2_norm(w)):
                run.overflow(run.w, moves)
            else:
                run.jump(w, moves)
                if continued is not None:
                    average, count = continued, count + moves
            continue
        before = run.step
        with run.answering():
            g = run.oracle.gradient(run.w, query)
            if tell and not run.until_telling:
                run.hear(g, run.oracle.plan.query(query))
            eta = learning_rates[run.step]
            if reach < math.inf and g.any():
                # One after another, as a compiled loop adds them.
                squares[0] = np.cumsum(np.append(squares, g * g))[-1]
                eta = min(eta, reach / math.sqrt(squares[0]))
            run.move(run.w - eta * g)
            if mean and run.step > before:
                count += 1
                average += (run.w - average) * (1 + growth) / (count + growth)
    return average if mean and count else run.w


def averaged_descent(
    run: Run, query: str, learning_rates: Vector, output: str, *, reach: float = math.inf
) -> Vector:
    """Take all steps of a run; return the last iterate, or a mean of iterates, as ``output`` says.

    ``"tail"`` is the mean of the last half, and in ``"linear"`` iterate t has weight t. See
    :func:`projected_descent` for the ``reach``.
    """
    squares = np.zeros(1)
    steps = len(learning_rates)
    averaged_from = {"last": steps, "tail": steps // 2}.get(output, 0)
    projected_descent(
        run,
        query,
        learning_rates,
        until=averaged_from,
        reach=reach,
        squares=squares,
        tell=output == "last",
    )
    growth = 1.0 if output == "linear" else 0.0
    return projected_descent(
        run,
        query,
        learning_rates,
        mean=output != "last",
        growth=growth,
        reach=reach,
        squares=squares,
    )


def _independent(run: Run, name: str) -> bool:
    """Return whether the errors of a query's answers are independent of each other."""
    query = run.oracle.plan.query(name)
    return query.sampler in ("full", "poisson") and query.correlation is None


def _loops(run: Run, query: str) -> Loops | None:
    """Return the compiled loops if they take these steps: on all records or Poisson samples."""
    independent = run.oracle.plan.query(query).sampler in ("full", "poisson")
    fits = independent and run.projects_around_origin and Loops.fit(run.oracle, query)
    return Loops(run.oracle) if fits else None
