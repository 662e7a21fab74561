"""Answers about curvature: noisy Hessians, and noisy comparisons of saddle scores.

This is a part of the privacy boundary. A :class:`SecondOrderOracle` is a
:class:`dpcal.optim.PrivateOracle` that answers five more kinds of queries. C is the query's
``max_norm``:

=================== ============================================== ==================== =========
method              sum or score behind the answer                 one added or zeroed  replaced
=================== ============================================== ==================== =========
``hessian``         sum of clipped Hessians, their upper triangles C                    2 C
``hessian_vector``  sum of clipped products with a vector          C                    2 C
``saddle_score``    C times the saddle score of a point            C                    2 C
``accepts``         a saddle score, compared with a threshold      1                    2
``best``            saddle scores of several points                1                    2
=================== ============================================== ==================== =========

The saddle score of a point is the larger of ``||g|| / G - n tau_g / G`` and ``-lambda / M - n tau_H
/ M``, where g is the sum of gradients clipped to norm G and lambda the smallest eigenvalue of the
sum of Hessians clipped to operator norm M: both move by at most one contribution, the second by
Weyl's inequality. It is at most 0 where both mean values are within their thresholds.

Scores are whole numbers of 2^-20 contributions, rounded down. Their noise is discrete Laplace noise
(:mod:`dpcal.optim.boundary.discrete`), or the noise of sums. It is wider by 1 part in 500, for
rounding: a score in doubles is within e contributions of its value, where u = 2^-53 and

    e = 4 u (n + 100 d^2 + 64) n (1 + (r + tau_g) / G + sqrt(d) (1 + l2 / M) + tau_H / M),

Here r is the norm of the regulariser's gradient. The bound follows from the bounds of sums in any
order and of norms, and from the backward error of symmetric eigenvalue solvers: 100 d^2 u exceeds
the bound of every analysis. A score with e above 2^-10, and records that are added or removed (they
change how matrix products group the others), are refused.

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import FromGradients
>>> score = Query(name="score", kind="above threshold", sampler="full", max_norm=1.0,
...               noise_multiplier=4.0, count=9)
>>> plan = Plan(optimizer="select_point", n=5_000, queries=(score,), epsilon=1.0, delta=1e-6,
...             neighboring_relation="replace-one")
>>> print(f"{plan.price():.4f}")
1.0000
>>> Z = np.random.default_rng(0).uniform(-1, 1, (5_000, 2))
>>> waves = FromGradients(  # sum_j (1 - cos(w_j + z_j)), with saddle points
...     lambda w, rows: np.sin(w + Z[rows]), n=5_000, dimension=2,
...     hessian_vectors=lambda w, v, rows: np.cos(w + Z[rows]) * v)
>>> oracle = SecondOrderOracle(waves, plan, seed=0)
>>> ask = dict(thresholds=(0.3, 0.3), norms=(2.0**0.5, 1.0))
>>> oracle.accepts([np.pi, 0.0], "score", **ask), oracle.accepts([0.0, 0.0], "score", **ask)
(False, True)
>>> oracle.accepts([0.0, 0.0], "score", **ask)
Traceback (most recent call last):
    ...
dpcal.errors.BudgetExceeded: query 'score' has accepted a point, and answers no more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.sums import grid_step
from dpcal._internal import validate
from dpcal.calibrate.plan import Query
from dpcal.errors import BudgetExceeded, UnsupportedEvent
from dpcal.optim.boundary.discrete import whole_laplace
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.objectives.arrays import Rows, Vector, norm_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import (
    Asked,
    Contributions,
    gradients,
    hessian_products,
    hessians,
)

Pair = tuple[float, float]

# Steps per contribution; largest rounding of a score; most steps that a record moves it, with that.
_STEPS = 1 << 20
_ERROR = 2.0**-10
_MOVED = math.ceil(_STEPS * (1 + 2 * _ERROR)) + 1
# Largest size of a score, in contributions, so that steps fit in 64 bits.
_FARTHEST = 2.0**40


class SecondOrderOracle(PrivateOracle):
    """Answers queries about curvature, in addition to those of :class:`dpcal.optim.PrivateOracle`.

    ``w``, ``query`` and the errors of its methods are as in that class. ``thresholds`` are tau_g
    and tau_H > 0, on the norm of the mean gradient and on how far below zero the smallest
    eigenvalue of the mean Hessian may be; ``norms`` are G and M > 0, to which gradients and
    Hessians are clipped. An objective without Hessians raises a TypeError.
    """

    def __init__(self, objective: Objective, *args: Any, **options: Any) -> None:
        super().__init__(objective, *args, **options)
        self._thresholds: dict[str, int] = {}
        self._accepted: set[str] = set()

    def hessian(self, w: ArrayLike, query: str) -> Vector:
        """Return a noisy Hessian of the regularised objective: symmetric, shape (d, d).

        The numbers on and above the diagonal have independent noise of one size.
        """
        w, asked = self._parameters("w", w), self._asked(query, "hessian")
        triangle = self._curved(lambda rows: hessians(self.objective, rows, w), asked, w)
        H = symmetric(triangle, self.dimension)
        H[np.diag_indices(self.objective.penalized)] += self.objective.l2
        return H

    def hessian_vector(self, w: ArrayLike, v: ArrayLike, query: str) -> Vector:
        """Return the noisy Hessian of the regularised objective times a vector, shape (d,).

        The vector v holds released values, shape (d,); the query's ``max_norm`` bounds one record's
        product with it.
        """
        w, v = self._parameters("w", w), self._parameters("v", v)
        asked = self._asked(query, "hessian vector")
        mean = self._curved(lambda rows: hessian_products(self.objective, rows, w, v), asked, w, v)
        return mean + self.objective.regularizer_gradient(v)

    def saddle_score(self, w: ArrayLike, query: str, *, thresholds: Pair, norms: Pair) -> float:
        """Return a point's noisy saddle score, over the number of records.

        Without noise it is ``max((||g|| - tau_g) / G, (-lambda - tau_H) / M)`` of the mean gradient
        g and the smallest eigenvalue lambda of the mean Hessian. It is one number, and so is its
        Gaussian noise, however many parameters there are.
        """
        asked, (w,) = self._about_scores(query, "saddle score", [w], thresholds, norms)

        def scored(rows: Rows) -> Contributions:
            def score(bound: float) -> Any:
                return np.array([self._score(w, rows, thresholds, norms)])

            return Asked(1, score, score)

        mean = self._curved(scored, asked, w, np.array([*thresholds, *norms]), moved=_MOVED)
        return float(mean[0]) / (grid_step(asked.max_norm) * _STEPS)

    def _curved(
        self,
        handed: Callable[[Rows], Contributions],
        asked: Query,
        w: Vector,
        *about: Vector,
        moved: float | None = None,
    ) -> Vector:
        """Return the noisy mean of contributions at w, which depend on released vectors too."""

        @np.errstate(all="ignore")
        def made() -> Vector:
            rows = self._batches.sample(asked)
            what = asked.kind, self.objective, (w,), rows
            total = self._mechanism.whole(handed(rows), asked.max_norm, *what)
            return self._noisy_mean(total, asked, asked.max_norm, moved=moved)

        return self._given(asked, (w, *about), made)

    def accepts(self, w: ArrayLike, query: str, *, thresholds: Pair, norms: Pair) -> bool:
        """Return whether the noisy saddle score of a point is below a noisy threshold.

        Once a point was accepted, the query answers no more.
        """
        asked, (w,) = self._about_scores(query, "above threshold", [w], thresholds, norms)
        with self._lock, np.errstate(all="ignore"):
            if query in self._accepted:
                raise BudgetExceeded(f"query {query!r} has accepted a point, and answers no more.")
            self._admit((asked, 1))
            b = asked.noise_multiplier
            if query not in self._thresholds:
                self._thresholds[query] = self._laplace(b)
            score = self._score(w, self._batches.sample(asked), thresholds, norms)
            accepted = score + self._laplace(2 * b) <= self._thresholds[query]
            if accepted:
                self._accepted.add(query)
        return accepted

    def best(
        self, points: Sequence[ArrayLike], query: str, *, thresholds: Pair, norms: Pair
    ) -> int:
        """Return the number of the point with the least saddle score, after noise on each."""
        asked, checked = self._about_scores(query, "noisy max", points, thresholds, norms)
        if not checked:
            raise ValueError("points must be one or more, got none.")

        @np.errstate(all="ignore")
        def made() -> Vector:
            rows = self._batches.sample(asked)
            scores = [self._score(w, rows, thresholds, norms) for w in checked]
            noisy = [score + self._laplace(asked.noise_multiplier) for score in scores]
            return np.array([np.argmin(noisy)])

        return int(self._given(asked, (*checked, np.array([*thresholds, *norms])), made)[0])

    def _laplace(self, scale: float) -> int:
        """Return Laplace noise for whole scores; the scale is in contributions."""
        return whole_laplace(math.ceil(scale * _MOVED), self._streams.noise)

    def _about_scores(
        self, query: str, kind: str, points: Sequence[ArrayLike], thresholds: Pair, norms: Pair
    ) -> tuple[Query, list[Vector]]:
        """Return a query, and the points whose scores it is about.

        A score with a rounding error too large for its noise is refused: all numbers are public.
        """
        checked = [self._parameters("w", w) for w in points]
        asked, n, d = self._asked(query, kind), self.plan.n, self.dimension
        tau_g, tau_H = (validate.positive(thresholds=value) for value in thresholds)
        G, M = (validate.positive(norms=value) for value in norms)
        pull = max((norm_of(self.objective.regularizer_gradient(w)) for w in checked), default=0.0)
        size = 1 + (pull + tau_g) / G + math.sqrt(d) * (1 + self.l2 / M) + tau_H / M
        error = 2.0**-51 * (n + 100 * d * d + 64) * n * size
        if not error <= _ERROR:
            raise UnsupportedEvent(
                f"noise leaves room for scores with errors of {_ERROR:.2g} contributions of a "
                f"record, got up to {error:.2g} for n={n} records and {d} parameters."
            )
        return asked, checked

    def _score(self, w: Vector, rows: Rows, thresholds: Pair, norms: Pair) -> int:
        """Return a saddle score in steps; the regulariser is public, and part of both means."""
        (tau_g, tau_H), (G, M) = thresholds, norms
        n, objective = self.plan.n, self.objective
        slope = gradients(objective, rows, w).clipped(G) + n * objective.regularizer_gradient(w)
        H = symmetric(hessians(objective, rows, w, spectral=True).clipped(M), self.dimension)
        H[np.diag_indices(objective.penalized)] += n * objective.l2
        least = float(np.linalg.eigvalsh(H)[0])
        score = max((norm_of(slope) - n * tau_g) / G, (-least - n * tau_H) / M)
        score = min(max(score, -_FARTHEST), _FARTHEST) if math.isfinite(score) else n
        return math.floor(score * _STEPS)


def symmetric(triangle: Vector, dimension: int) -> Vector:
    """Return the symmetric matrix (d, d) of an upper triangle, shape (d (d + 1) / 2,), by rows."""
    H = np.zeros((dimension, dimension))
    H[np.triu_indices(dimension)] = triangle
    return H + np.triu(H, 1).T
