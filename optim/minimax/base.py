"""Minimax objectives: one loss in two blocks of parameters, x and y.

``min over x, max over y in Y of f(x, y)``, f being the mean of ``F(x, y; record)`` over the records
plus public regularisers. For the privacy boundary it is one objective with parameters (x, y), and
its "gradient" is the pair (grad_x F, grad_y F): both blocks of a record are clipped together and
released together, because they are about the same sample.

>>> import numpy as np
>>> from dpcal.optim.minimax import Minimax
>>> a = np.array([1.0, 3.0])
>>> problem = Minimax(  # F = a x y, and a public -y^2 / 2: then y* = 2 x and Phi = 2 x^2
...     lambda x, y, rows: (np.outer(a[rows], y), np.outer(a[rows], x)),
...     n=2, dimensions=(1, 1), dual_l2=1.0)
>>> problem.best_response(np.array([0.5])).round(9).tolist()
[1.0]
>>> problem.phi_gradient(np.array([0.5])).round(9).tolist()
[2.0]
>>> problem.phi_hessian(np.array([0.5])).round(6).tolist()
[[4.0]]
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.minimax.sets import ConvexSet, Everywhere
from dpcal.optim.objectives.arrays import Rows, Vector, numbers, parameters
from dpcal.optim.objectives.base import BLOCK_BYTES, Objective, least_of
from dpcal.optim.objectives.contributions import shaped
from dpcal.optim.objectives.custom import UNKNOWN, answer_of, check_functions

Pairs = Callable[[Vector, Vector, Rows], tuple[ArrayLike, ArrayLike]]
Losses = Callable[[Vector, Vector, Rows], ArrayLike]

# Relative step of central differences: Hessians err by 1e-10 of the largest third derivative.
_STEP = 1e-5

# Length of an ascent step that ends the search, relative to 1 + ||y||: near rounding.
_CLOSE = 1e-11
_MOST_ASCENTS = 20_000


class MinimaxObjective(Objective):
    """Mean of ``F(x, y; record)``, to be minimised over x and maximised over y in a convex set.

    A subclass computes single records' gradients, the pairs (grad_x F, grad_y F), shape (m, d1 +
    d2), and may have a compiled form of their sums. Parameters are one vector w = (x, y) of shape
    (d1 + d2,).

    Parameters
    ----------
    n
        Number of records, at least 1.
    dimensions
        d1 and d2, the numbers of primal and of dual parameters, each at least 1.
    dual_set
        Y; the whole space when omitted.
    primal_l2, dual_l2
        Strengths >= 0 of the public regularisers ``primal_l2 / 2 ||x||^2 - dual_l2 / 2 ||y||^2``.
        They get no noise and are never clipped; the second makes f strongly concave in y.
    block_shares
        None to clip a record's two blocks together to C. A pair of numbers > 0 clips each block by
        itself, to C times its share of the root of their sum of squares, so that both together stay
        within C; each block then has the noise of C. The attribute is scaled to squares that sum to
        at most 1.
    """

    def __init__(
        self,
        *,
        n: int,
        dimensions: tuple[int, int],
        dual_set: ConvexSet | None = None,
        primal_l2: float = 0.0,
        dual_l2: float = 0.0,
        block_shares: tuple[float, float] | None = None,
    ) -> None:
        d1, d2 = validate.counts(dimensions=dimensions)
        self.n = validate.count(n=n)
        self.dimensions = (d1, d2)
        self.dimension, self.penalized, self.ascending = d1 + d2, d1, d2
        self.block = max(1, BLOCK_BYTES // (8 * self.dimension))
        self.dual_set: ConvexSet = Everywhere() if dual_set is None else dual_set
        if not isinstance(self.dual_set, ConvexSet):
            raise TypeError(f"dual_set must be a ConvexSet, got {dual_set!r}.")
        self.l2 = self.primal_l2 = validate.non_negative(primal_l2=primal_l2)
        self.dual_l2 = validate.non_negative(dual_l2=dual_l2)
        self.block_shares = None if block_shares is None else _normalised(block_shares)
        if self.block_shares is not None:
            self._shares = tuple(zip(self.block_shares, self.dimensions, strict=True))

    def split(self, w: Vector) -> tuple[Vector, Vector]:
        """Return x and y, views of w."""
        d1 = self.dimensions[0]
        return w[:d1], w[d1:]

    def best_response(self, x: ArrayLike, *, start: ArrayLike | None = None) -> Vector:
        """Return the y in Y that maximises f(x, y), shape (d2,). Not private.

        The method is accelerated projected ascent from ``start``, shape (d2,), with a step size
        that is found on the way; subclasses have closed forms.
        """
        x = parameters(numbers("x", x), self.dimensions[0])
        begin = np.zeros(self.dimensions[1]) if start is None else numbers("start", start)
        y = self.dual_set.project(parameters(begin, self.dimensions[1]))
        ahead, momentum, rate = y, 1.0, 1.0

        def slope(at: Vector) -> Vector:
            return self.split(self.gradient(np.concatenate([x, at])))[1]

        for _ in range(_MOST_ASCENTS):
            uphill = slope(ahead)
            while True:
                moved = self.dual_set.project(ahead + rate * uphill)
                step = moved - ahead
                if float(np.linalg.norm(step)) <= _CLOSE * (1 + float(np.linalg.norm(moved))):
                    return moved
                if float(np.linalg.norm(slope(moved) - uphill)) * rate <= np.linalg.norm(step):
                    break
                rate /= 2
            if float((moved - y) @ step) < 0:
                momentum = 1.0
            grown = (1 + math.sqrt(1 + 4 * momentum**2)) / 2
            ahead = moved + (momentum - 1) / grown * (moved - y)
            y, momentum = moved, grown
        return y

    def phi(self, x: ArrayLike) -> float:
        """Return the value function Phi(x), the maximum of f(x, y) over Y. Not private."""
        return self.loss(np.concatenate([numbers("x", x), self.best_response(x)]))

    def phi_gradient(self, x: ArrayLike) -> Vector:
        """Return the gradient of Phi, which is grad_x f at the best response. Not private."""
        w = np.concatenate([numbers("x", x), self.best_response(x)])
        return self.split(self.gradient(w))[0].copy()

    def phi_hessian(self, x: ArrayLike) -> Vector:
        """Return the Hessian of Phi, shape (d1, d1), by central differences. Not private.

        At a point where a constraint on y is about to become active, Phi has no Hessian, and the
        result is a mean of both sides.
        """
        x = parameters(numbers("x", x), self.dimensions[0])
        columns = []
        for step in np.diag(_STEP * (1 + np.abs(x))):
            ahead, behind = self.phi_gradient(x + step), self.phi_gradient(x - step)
            columns.append((ahead - behind) / (2 * step.sum()))
        return np.asarray((np.array(columns) + np.array(columns).T) / 2)

    def minimize(self, initial: ArrayLike | None = None, *, tolerance: float = 1e-8) -> Vector:
        """Return (x, y*(x)) at a local minimiser x of Phi, by L-BFGS. Not private.

        The search starts at ``initial``, shape (d1,), or the origin, and stops where no entry of
        the gradient is above the tolerance, > 0.
        """
        start = np.zeros(self.dimensions[0]) if initial is None else numbers("initial", initial)
        x = least_of(self.phi, self.phi_gradient, start, tolerance)
        return np.concatenate([x, self.best_response(x)])


class Minimax(MinimaxObjective):
    """A minimax problem given by a function that returns two gradients per record.

    Parameters
    ----------
    gradients
        ``gradients(x, y, rows)`` returns the gradients of ``F(x, y; record)`` in x, shape (m, d1),
        and in y, shape (m, d2), for ``rows`` (row numbers, shape (m,)). The privacy claim needs
        both to depend only on that record, x and y: no statistics of a batch, no memory. A record
        with a gradient that is NaN or infinite contributes zero.
    n, dimensions, dual_set, primal_l2, dual_l2, block_shares
        See :class:`dpcal.optim.minimax.MinimaxObjective`.
    loss
        ``loss(x, y, rows)`` returns F of ``rows``, shape (m,); for diagnostics.
    constants
        Constants of one record's F; infinite when omitted. Privacy does not rest on them.

    Examples
    --------
    >>> import numpy as np
    >>> a = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0]])
    >>> def gradients(x, y, rows):  # of F = <a, x> <a, y>, and a public -||y||^2 / 2
    ...     A = a[rows]
    ...     return (A @ y)[:, np.newaxis] * A, (A @ x)[:, np.newaxis] * A
    >>> problem = Minimax(gradients, n=3, dimensions=(2, 2), dual_l2=1.0)
    >>> problem.clipped_sum(np.array([1.0, 0.0, 0.0, 1.0]), np.array([0, 2]), 1.0).round(6).tolist()
    [0.5, 0.5, 1.5, 0.5]
    """

    checked = False

    def __init__(
        self,
        gradients: Pairs,
        *,
        n: int,
        dimensions: tuple[int, int],
        dual_set: ConvexSet | None = None,
        loss: Losses | None = None,
        primal_l2: float = 0.0,
        dual_l2: float = 0.0,
        block_shares: tuple[float, float] | None = None,
        constants: Constants | None = None,
    ) -> None:
        check_functions(gradients, loss=loss)
        super().__init__(
            n=n,
            dimensions=dimensions,
            dual_set=dual_set,
            primal_l2=primal_l2,
            dual_l2=dual_l2,
            block_shares=block_shares,
        )
        self._gradients, self._loss = gradients, loss
        self.constants = validate.instance(Constants, constants=constants or UNKNOWN)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        pair = self._gradients(*self.split(w.copy()), rows.copy())
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise TypeError(f"gradients must return a pair of arrays, got {type(pair).__name__}.")
        shapes = ((len(rows), size) for size in self.dimensions)
        tables = [shaped("gradients", *each) for each in zip(pair, shapes, strict=True)]
        return np.concatenate(tables, axis=1)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`; a TypeError is raised without a ``loss``."""
        return answer_of("loss", self._loss, "losses", self.split(w), rows.copy())


def _normalised(shares: tuple[float, float]) -> tuple[float, float]:
    """Return a pair scaled so that its squares sum to at most one, rounding included."""
    primal, dual = shares
    primal, dual = validate.positive(primal_share=primal), validate.positive(dual_share=dual)
    norm = math.hypot(primal, dual) * (1 + 1e-15)
    return primal / norm, dual / norm
