"""The worst weighting of records for a linear model: fairness, and shifts of covariates.

``F(w, y; record) = (b + <y, phi>) loss(<w, x>, target)``: y tilts the weights of records along
features phi, a public regulariser keeps the tilt small, and w minimises the loss of the worst tilt.

>>> import numpy as np
>>> X = np.array([[1.0, 0.2], [0.8, -0.1], [-1.0, 0.3], [-0.9, -0.2], [0.1, 1.0], [-0.1, -1.0]])
>>> labels, groups = np.array([1, 1, 0, 0, 1, 0]), np.array([0, 0, 0, 0, 1, 1])
>>> problem = FairClassification(X, labels, groups, dual_l2=0.1, shares=[2 / 3, 1 / 3],
...                              fit_intercept=False, classes=[0, 1])
>>> print(problem.group_losses(np.zeros(2)).round(4).tolist())  # log 2 at the origin
[0.6931, 0.6931]
>>> problem.best_response(np.array([2.0, 0.0])).round(3).tolist()  # the second group does worse
[0.0, 1.0]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.losses import LogisticLoss, SquaredLoss, TiltedLoss
from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.minimax.factored import Factored, signs_of
from dpcal.optim.minimax.sets import Ball, Simplex
from dpcal.optim.objectives.arrays import Vector, numbers, row_norms, shrink_factors
from dpcal.optim.objectives.domains import (
    blanked,
    cells,
    codes,
    counted,
    labels_of,
    records_of,
)


class FairClassification(Factored):
    r"""Logistic regression for the worst mixture of groups; y is on the simplex.

    ``f(w, y) = sum_g y_g (mean loss in group g) - dual_l2 / 2 ||y||^2``, up to how well the public
    ``shares`` match the groups. The regulariser pulls y to equal weights: on the simplex it differs
    from ``dual_l2 / 2 ||y - 1 / G||^2`` by a constant.

    Parameters
    ----------
    X, labels, primal_l2, fit_intercept, classes, classes_from_data, block_shares
        See :class:`dpcal.optim.minimax.factored.Factored`.
    groups
        Number of each record's group in [0, G), shape (n,). It is protected like the record's other
        values, and a record of another group is ignored.
    dual_l2
        Strength > 0 of the regulariser of y: mu of the problem.
    shares
        Public guesses > 0 of the groups' shares of all records, shape (G,). A wrong guess weighs a
        group's loss wrongly, and privacy does not rest on it.
    groups_from_data
        Whether G is read off the records, which no claim covers, and shares are equal: every
        statement names it then.

    References
    ----------
    Mohri, Sivek and Suresh 2019, Agnostic federated learning; Sagawa, Koh, Hashimoto and Liang
    2020, Distributionally robust neural networks (group DRO).
    """

    def __init__(
        self,
        X: ArrayLike,
        labels: ArrayLike,
        groups: ArrayLike,
        *,
        dual_l2: float,
        shares: ArrayLike | None = None,
        groups_from_data: bool = False,
        primal_l2: float = 0.0,
        fit_intercept: bool = True,
        classes: tuple[Any, Any] | None = None,
        classes_from_data: bool = False,
        block_shares: tuple[float, float] | None = None,
    ) -> None:
        table, known = records_of(X)
        signs = signs_of(labels, classes, len(table), from_data=classes_from_data)
        told = labels_of(groups)
        if told.shape != (len(table),):
            raise ValueError(f"groups must have shape ({len(table)},), got {told.shape}.")
        if (shares is None) is not groups_from_data:
            raise ValueError(
                "groups must be declared by their shares, or else be read off the records by "
                "groups_from_data=True, which every statement names: give one of both, got "
                f"shares={shares!r} and groups_from_data={groups_from_data!r}."
            )
        if shares is None:
            count = int(counted(told)[0].max()) + 1
            shares = np.full(count, 1 / count)
        weights = numbers("shares", shares)
        if weights.ndim != 1 or not len(weights) or weights.min() <= 0:
            raise ValueError(f"shares must be numbers > 0, one for each group, got {weights}.")
        numbered = codes("groups", told, np.arange(len(weights)))
        known = known & np.isfinite(signs) & (numbered >= 0)
        tilts = blanked((np.eye(len(weights)) / weights)[numbered], known)
        super().__init__(
            table,
            known,
            TiltedLoss(LogisticLoss(), tilts, base=0.0),
            blanked(signs, known, math.nan),
            tilts,
            dual_dimension=len(weights),
            dual_set=Simplex(),
            dual_l2=validate.positive(dual_l2=dual_l2),
            primal_l2=primal_l2,
            fit_intercept=fit_intercept,
            block_shares=block_shares,
        )
        read = {"classes": classes_from_data, "number of groups": groups_from_data}
        self.read_from_data = tuple(name for name, was_read in read.items() if was_read)

    @classmethod
    def constants_for(
        cls, *, row_norm: float, dual_l2: float, smallest_share: float, radius: float = 1.0
    ) -> Constants:
        """Return constants that hold for weights of norm at most ``radius``, from public numbers.

        The public numbers are a bound > 0 on the norm of a record, the constant feature included,
        the problem's ``dual_l2``, and the smallest of its ``shares``, in (0, 1].
        """
        largest = math.log(2) + row_norm * radius
        share = validate.rate(smallest_share=smallest_share)
        return Constants(
            lipschitz=math.hypot(row_norm, largest) / share,
            smoothness=(row_norm**2 / 4 + row_norm) / share + dual_l2,
            strong_concavity=validate.positive(dual_l2=dual_l2),
            gap=math.log(2) / share,
            hessian_lipschitz=(row_norm**3 / 10 + row_norm**2 / 4) / share,
        )

    def group_losses(self, x: ArrayLike) -> Vector:
        """Return each group's mean loss as its share weighs it, shape (G,). Not private."""
        return self._dual_slopes(x)


class CovariateShift(Factored):
    r"""Linear regression for the worst shift in how frequent kinds of records are.

    ``f(w, y) = mean of (1 + <y, phi>) (<w, x> - t)^2 / 2 - dual_l2 / 2 ||y||^2``: the weights of
    records shift along public features phi of them, their covariates themselves by default. y is in
    the ball in which no weight is negative.

    Parameters
    ----------
    X, primal_l2, fit_intercept, block_shares
        See :class:`dpcal.optim.minimax.factored.Factored`.
    targets
        Numbers, shape (n,).
    dual_l2
        Strength > 0 of the regulariser of y: mu of the problem. A smaller strength guards against
        larger shifts.
    tilts
        phi, shape (n, d2); the covariates when omitted.
    tilt_norm
        Public bound > 0 on the norm of phi; longer features are scaled down to it. The ball of y
        has the radius ``1 / tilt_norm``.

    References
    ----------
    Duchi, Hashimoto and Namkoong 2023, Distributionally robust losses for latent covariate
    mixtures, for the idea; the linear tilts make the dual finite and strongly concave.
    """

    def __init__(
        self,
        X: ArrayLike,
        targets: ArrayLike,
        *,
        dual_l2: float,
        tilts: ArrayLike | None = None,
        tilt_norm: float = 1.0,
        primal_l2: float = 0.0,
        fit_intercept: bool = True,
        block_shares: tuple[float, float] | None = None,
    ) -> None:
        table, known = records_of(X)
        t = cells("targets", targets)
        phi = cells("tilts", X if tilts is None else tilts)
        if t.shape != (len(table),) or phi.ndim != 2 or len(phi) != len(table):
            raise ValueError(
                f"targets and tilts must hold {len(table)} records, got shapes {t.shape} and "
                f"{phi.shape}."
            )
        norm = validate.positive(tilt_norm=tilt_norm)
        known = known & np.isfinite(t) & np.isfinite(phi).all(axis=1)
        with np.errstate(all="ignore"):
            phi = blanked(phi * shrink_factors(row_norms(phi), norm)[:, np.newaxis], known)
        super().__init__(
            table,
            known,
            TiltedLoss(SquaredLoss(), phi, base=1.0),
            blanked(t, known, math.nan),
            phi,
            dual_dimension=phi.shape[1],
            dual_set=Ball(1 / norm),
            dual_l2=validate.positive(dual_l2=dual_l2),
            primal_l2=primal_l2,
            fit_intercept=fit_intercept,
            block_shares=block_shares,
        )

    @classmethod
    def constants_for(
        cls, *, row_norm: float, target_bound: float, dual_l2: float, radius: float = 1.0
    ) -> Constants:
        """Return constants that hold for weights of norm at most ``radius`` and tilts at most 1.

        The constants depend only on public numbers: bounds > 0 on the norm of a record, the
        constant feature included, and on the targets' size, and the problem's ``dual_l2``.
        """
        residual = target_bound + row_norm * radius
        return Constants(
            lipschitz=math.hypot(2 * residual * row_norm, residual**2 / 2),
            smoothness=2 * row_norm**2 + residual * row_norm + dual_l2,
            strong_concavity=validate.positive(dual_l2=dual_l2),
            gap=target_bound**2,
            hessian_lipschitz=3 * row_norm**2,
        )
