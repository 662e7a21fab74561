"""How is a number predicted, privately? Least squares, from noisy sums or by noisy gradients.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.uniform(-1, 1, (5_000, 2))
>>> y = X @ [2.0, -1.0] + 0.5 + 0.1 * rng.standard_normal(5_000)
>>> model = LinearRegression(bounds=(-1, 1), target_bounds=(-4, 4), epsilon=1.0).fit(X, y)
>>> model.coef_.round(1).tolist(), round(model.intercept_, 1), model.solver_
([2.0, -1.0], 0.5, 'statistics')
>>> bool(model.epsilon_spent_ <= 1.0)
True
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from dpcal import _validate
from dpcal.calibrate import Plan
from dpcal.calibrate.plans.common import repeated
from dpcal.estimators.base import (
    RELATION,
    GaussianEstimator,
    Table,
    bounded,
    single_release,
    sum_query,
)
from dpcal.estimators.bounds import fit_learning_bounds
from dpcal.estimators.scores import PrivateR2
from dpcal.optim import Squared, noisy_gd
from dpcal.optim.budget import Budget
from dpcal.optim.objectives.arrays import row_norms, shrink_factors

__all__ = ["LinearRegression", "Ridge"]

SOLVERS = ("auto", "statistics", "gradient")

# Passes of the gradient solver, its step in units of the inverse smoothness, and its clip in units
# of what one record's gradient is at the origin at most; as for logistic regression.
_STEPS, _STEP, _CLIP = 60, 2.0, 0.5


class Ridge(PrivateR2, RegressorMixin, GaussianEstimator):  # type: ignore[misc]
    """Ridge regression from noisy second moments, or by noisy gradient descent.

    Records and targets are scaled to [-1, 1] by their bounds. The solver "statistics" releases the
    second moments of records and their products with the target in one noisy sum, and adds as much
    to the diagonal as the noise needs (AdaSSP). The solver "gradient" takes 60 noisy gradients.

    Parameters
    ----------
    epsilon
        Privacy parameter > 0 of one fit; neighbors differ by one record that is there or blanked,
        so that it contributes nothing (``"replace-special"``). The number of records is told.
    delta
        Privacy parameter in (0, 1).
    alpha
        Strength >= 0 of the regulariser ``alpha ||w||^2``, beside the sum of squared residuals, in
        the units of the scaled records.
    bounds
        A pair (low, high) of numbers or of arrays of shape (n_features,), known without a look at
        the records. Values outside are moved to the nearer bound. Needed.
    target_bounds
        A pair (low, high) of numbers for the target. Needed.
    row_norm
        Bound > 0 on the L2 norm of a scaled record; longer ones are shortened. When omitted,
        ``sqrt(n_features)``, which shortens none.
    solver
        ``"statistics"``, ``"gradient"``, or ``"auto"``: statistics, unless their noise is expected
        to be larger than what they tell of a direction.
    fit_intercept
        Whether there is an intercept; it is not regularised by ``alpha``.
    budget
        A :func:`dpcal.budget` that fits are paid from, besides those in use; None for none.

    Attributes
    ----------
    coef_, intercept_
        Shape (n_features,), and a number.
    solver_
        Which solver was used.
    ledger_, epsilon_spent_, report_
        What was released, and what it cost.

    Notes
    -----
    ``partial_fit`` adds the moments of its batches (solver "statistics" only); each call costs
    (epsilon, delta), and all calls are composed as if they were about the same records.

    References
    ----------
    Wang 2018, Revisiting differentially private linear regression, Algorithm 1 (AdaSSP); here the
    smallest eigenvalue is that of the noisy moments, and is not asked for by itself.
    """

    # Records seen, the sum of their moments, and in how many noisy sums.
    _statistics: tuple[int, Any, int]

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        alpha: float = 1.0,
        bounds: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.row_norm = row_norm
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.budget = budget

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Learn from records of shape (n, n_features) and targets of shape (n,)."""
        rows, targets = self._read(X, y, y_numeric=True)
        if self._learns_bounds():
            fit_learning_bounds(self, rows, targets)
            return self
        return self._learn(rows, targets, first=True)

    def partial_fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Add the moments of further records; costs a fit, and needs the solver "statistics"."""
        first = not hasattr(self, "coef_")
        rows, targets = self._read(X, y, reset=first, y_numeric=True)
        return self._learn(rows, targets, first=first, solver="statistics")

    def _strength(self) -> float:
        return _validate.non_negative(alpha=self.alpha)

    def _learn(self, X: Table, y: Table, *, first: bool, solver: str | None = None) -> Self:
        n, d = X.shape
        alpha, target = self._strength(), self._target()
        rows, norm = self._rows(X)
        values = self._scaled_target(y)
        (multiplier,) = single_release(*target, [1.0])
        chosen = _validate.choice(SOLVERS, solver=solver or self.solver)
        if chosen == "auto":
            chosen = "statistics" if _informative(multiplier, n, d) else "gradient"
        if chosen == "statistics":
            w = self._from_statistics(rows, values, norm, multiplier, alpha, first=first)
        else:
            w = self._from_gradients(rows, values, norm, multiplier, alpha)
        self.solver_ = chosen
        self._keep(w, d)
        return self

    def _rows(self, X: Table) -> tuple[Table, float]:
        """Return scaled records, with the constant column, and the bound on their norm."""
        d = X.shape[1]
        low, high = bounded("bounds", self._limits(), d)
        X = np.clip((2 * X - (high + low)) / (high - low), -1.0, 1.0)
        norm = math.sqrt(d) if self.row_norm is None else self.row_norm
        X = X * shrink_factors(row_norms(X), _validate.positive(row_norm=norm))[:, np.newaxis]
        if not self.fit_intercept:
            return X, norm
        return np.hstack([X, np.ones((len(X), 1))]), math.hypot(norm, 1.0)

    def _scaled_target(self, y: Table) -> Table:
        low, high = bounded("target_bounds", self._limits("target_bounds"))
        scaled: Table = np.clip((2 * y - (high + low)) / (high - low), -1.0, 1.0)
        return scaled

    def _from_statistics(
        self,
        rows: Table,
        values: Table,
        norm: float,
        multiplier: float,
        alpha: float,
        *,
        first: bool,
    ) -> Table:
        """Solve for the weights from noisy second moments."""
        n, d = rows.shape
        upper = np.triu_indices(d)
        # Off the diagonal an entry stands for two, so that the vector has the matrix's norm.
        weights = np.where(upper[0] == upper[1], 1.0, math.sqrt(2)) / norm**2

        def vectors(chosen: Any) -> Table:
            some = rows[chosen]
            squares = some[:, upper[0]] * some[:, upper[1]] * weights
            return np.hstack([squares, some * (values[chosen, np.newaxis] / norm)])

        plan = self._plan(n, sum_query("moments", math.sqrt(2), multiplier))
        with self._paid(plan):
            mean, ledger = self._noisy_mean(plan, "moments", vectors, len(weights) + d)
        seen, kept, calls = (0, 0.0, 0) if first else self._statistics
        self._statistics = seen, kept, calls = (seen + n, kept + n * mean, calls + 1)
        second = np.zeros((d, d))
        second[upper] = kept[: len(weights)] / weights
        second = second + second.T - np.diag(np.diag(second))
        # The diagonal has this deviation, and the whole noise a norm of about sqrt(2 d) of it. Most
        # directions are well inside, so that a penalty of sqrt(d) of it is enough.
        deviation = multiplier * math.sqrt(2 * calls) * norm**2
        noise = deviation * math.sqrt(d)
        least = float(np.linalg.eigvalsh(second)[0])
        penalty = np.full(d, alpha + max(0.0, noise - least))
        if self.fit_intercept:
            penalty[-1] = max(0.0, noise - least)
        self._close(plan, [ledger], mean, first=first)
        solved: Table = np.linalg.solve(second + np.diag(penalty), norm * kept[len(weights) :])
        return solved

    def _from_gradients(
        self, rows: Table, values: Table, norm: float, multiplier: float, alpha: float
    ) -> Table:
        """Descend on the mean of half squared residuals."""
        n = len(rows)
        query = sum_query("gradient", _CLIP * norm, repeated(multiplier, _STEPS), _STEPS)
        objective = Squared(rows, values, l2=alpha / n, fit_intercept=False)
        step = _STEP / (norm**2 + alpha / n)
        plan = Plan(
            optimizer="noisy_gd",
            n=n,
            queries=(query,),
            epsilon=float(self.epsilon),
            delta=float(self.delta),
            neighboring_relation=RELATION,
            parameters={"steps": _STEPS, "learning_rate": step},
        )
        whole = self._plan(n, query, steps=_STEPS, learning_rate=step)
        with self._paid(whole):
            result = noisy_gd(objective, plan, seed=self._seed)
        self._close(whole, [result.ledger], result.w, first=True, complete=result.complete)
        return result.w

    def _keep(self, w: Table, d: int) -> None:
        low, high = bounded("bounds", self._limits(), d)
        lowest, highest = (
            float(end) for end in bounded("target_bounds", self._limits("target_bounds"))
        )
        half = (highest - lowest) / 2
        self.coef_ = half * w[:d] * 2 / (high - low)
        intercept = half * (float(w[d]) if self.fit_intercept else 0.0) + (highest + lowest) / 2
        self.intercept_ = intercept - float(self.coef_ @ (high + low)) / 2

    def predict(self, X: ArrayLike) -> Table:
        """Return predictions for records of shape (m, n_features)."""
        check_is_fitted(self)
        predicted: Table = self._read(X, reset=False) @ self.coef_ + self.intercept_
        return predicted

    def _extent(self) -> tuple[float, float]:
        low, high = bounded("target_bounds", self._limits("target_bounds"))
        return float(low), float(high)


class LinearRegression(Ridge):
    """Least squares from noisy second moments, or by noisy gradient descent.

    Records and targets are scaled to [-1, 1] by their bounds. The solver "statistics" releases the
    second moments of records and their products with the target in one noisy sum, and adds as much
    to the diagonal as the noise needs (AdaSSP). The solver "gradient" takes 60 noisy gradients.

    Parameters
    ----------
    epsilon
        Privacy parameter > 0 of one fit; neighbors differ by one record that is there or blanked,
        so that it contributes nothing (``"replace-special"``). The number of records is told.
    delta
        Privacy parameter in (0, 1).
    bounds
        A pair (low, high) of numbers or of arrays of shape (n_features,), known without a look at
        the records. Values outside are moved to the nearer bound. Needed.
    target_bounds
        A pair (low, high) of numbers for the target. Needed.
    row_norm
        Bound > 0 on the L2 norm of a scaled record; longer ones are shortened. When omitted,
        ``sqrt(n_features)``, which shortens none.
    solver
        ``"statistics"``, ``"gradient"``, or ``"auto"``: statistics, unless their noise is expected
        to be larger than what they tell of a direction.
    fit_intercept
        Whether there is an intercept.
    budget
        A :func:`dpcal.budget` that fits are paid from, besides those in use; None for none.

    Attributes
    ----------
    coef_, intercept_
        Shape (n_features,), and a number.
    solver_
        Which solver was used.
    ledger_, epsilon_spent_, report_
        What was released, and what it cost.

    References
    ----------
    Wang 2018, Revisiting differentially private linear regression, Algorithm 1 (AdaSSP).
    """

    def __init__(
        self,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        bounds: Any = None,
        target_bounds: Any = None,
        row_norm: float | None = None,
        solver: str = "auto",
        fit_intercept: bool = True,
        budget: Budget | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.bounds = bounds
        self.target_bounds = target_bounds
        self.row_norm = row_norm
        self.solver = solver
        self.fit_intercept = fit_intercept
        self.budget = budget

    def _strength(self) -> float:
        return 0.0


def _informative(multiplier: float, n: int, d: int) -> bool:
    """Whether second moments of n records in d columns are expected to stand above their noise.

    Records of norm R that point everywhere alike have moments of n R^2 / d in every direction; the
    noise has a spectral norm of about ``multiplier R^2 sqrt(2 d)``.
    """
    return multiplier * math.sqrt(2 * d) * d < n
