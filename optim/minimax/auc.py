"""The area under the ROC curve, maximised one record at a time by its saddle form.

The square surrogate of AUC is a sum over pairs of records, so that one record moves many terms.
Ying, Wen and Lyu write it as a saddle problem with one term for each record: over weights w, the
mean scores a and b of both classes, and a dual number y.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((400, 2))
>>> labels = X[:, 0] + 0.1 * rng.standard_normal(400) > 0.8
>>> problem = AUCMaximization(X, labels, positive_share=float(labels.mean()), classes=[0, 1])
>>> x = problem.split(problem.minimize())[0]
>>> bool(problem.auc(X, labels, x) > 0.95)
True
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.losses import AreaLoss
from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.minimax.factored import Factored, signs_of
from dpcal.optim.minimax.sets import Box
from dpcal.optim.objectives.domains import records_of


class AUCMaximization(Factored):
    """The square surrogate of AUC for a linear model, as a saddle problem.

    With p the share of positives and s = <w, x>, one record's F is ``(1 - p) (s - a)^2 - 2 (1 + y)
    (1 - p) s`` if it is positive and ``p (s - b)^2 + 2 (1 + y) p s`` if it is not, and a public
    ``-p (1 - p) y^2`` makes it strongly concave in y. x is (w, a, b).

    Parameters
    ----------
    X, labels, primal_l2, classes, classes_from_data, block_shares
        See :class:`dpcal.optim.minimax.factored.Factored`; the second class is positive. There is
        no intercept: it would cancel.
    positive_share
        p in (0, 1), a public guess of the share of positives. Privacy does not rest on it.
    score_bound
        Public bound > 0 on mean scores: y is kept in [-2 score_bound, 2 score_bound].

    References
    ----------
    Ying, Wen and Lyu 2016, Stochastic online AUC maximization, Theorem 1; private: Yang, Lei, Lyu
    and Ying 2021, Stability and differential privacy of stochastic gradient descent for pairwise
    learning with non-smooth loss.
    """

    def __init__(
        self,
        X: ArrayLike,
        labels: ArrayLike,
        *,
        positive_share: float,
        primal_l2: float = 0.0,
        score_bound: float = 2.0,
        classes: tuple[Any, Any] | None = None,
        classes_from_data: bool = False,
        block_shares: tuple[float, float] | None = None,
    ) -> None:
        table, known = records_of(X)
        signs = signs_of(labels, classes, len(table), from_data=classes_from_data)
        self.read_from_data = ("classes",) if classes_from_data else ()
        p = validate.probability(positive_share=positive_share)
        bound = 2 * validate.positive(score_bound=score_bound)
        super().__init__(
            table,
            known & np.isfinite(signs),
            AreaLoss(p),
            (signs > 0).astype(np.float64),
            dual_dimension=1,
            fit_intercept=False,
            dual_set=Box(-bound, bound),
            primal_l2=primal_l2,
            dual_l2=2 * p * (1 - p),
            block_shares=block_shares,
        )

    @classmethod
    def constants_for(
        cls, *, row_norm: float, positive_share: float, radius: float = 1.0
    ) -> Constants:
        """Return constants that hold for weights, mean scores and y of norm at most ``radius``.

        The constants depend only on public numbers: a bound > 0 on the norm of a record, and p.
        """
        p = validate.probability(positive_share=positive_share)
        most = max(p, 1 - p)
        gap = row_norm * radius + radius
        slope = 2 * most * math.hypot((gap + 1 + radius) * row_norm, gap, row_norm * radius)
        return Constants(
            lipschitz=slope,
            smoothness=2 * most * (row_norm**2 + 2 * row_norm + 1),
            strong_concavity=2 * p * (1 - p),
            gap=2 * p * (1 - p),
            hessian_lipschitz=1e-3,
        )

    def auc(self, X: ArrayLike, labels: ArrayLike, x: ArrayLike) -> float:
        """Return the share of pairs of both classes that the first d weights of x rank correctly.

        ``labels`` holds whether each of the records, shape (m, d), is positive. Not private.
        """
        positive = np.asarray(labels, dtype=bool)
        scores = np.asarray(X, dtype=np.float64) @ np.asarray(x)[: self._columns]
        order = np.sort(scores[~positive])
        below = np.searchsorted(order, scores[positive], side="left")
        upto = np.searchsorted(order, scores[positive], side="right")
        return float(((below + upto) / 2).mean() / len(order))
