"""Networks, with gradients clipped record by record: the norm comes from two factors.

A layer's gradient at one record is an outer product of its input and of the backward signal at its
output, so its norm is a product of two norms, and the clipped sum over a batch is one matrix
product, as fast as without privacy (Goodfellow 2015; Lee and Kifer 2021, "ghost clipping").

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.standard_normal((300, 2))
>>> y = np.where(X[:, 0] * X[:, 1] > 0, "same", "mixed")
>>> network = MLP(X, y, width=16, classes=["mixed", "same"])
>>> network.dimension  # 16 (2 + 1) + 2 (16 + 1)
82
>>> w = network.minimize(network.initial(seed=0))
>>> bool((network.predict(X, w) == y).mean() > 0.95)
True
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._internal import validate
from dpcal.optim.objectives.arrays import Rows, Vector, in_blocks, parameters, records
from dpcal.optim.objectives.base import Labelled
from dpcal.optim.objectives.contributions import MOST, Contributions, Products, Table
from dpcal.optim.objectives.custom import UNKNOWN


class Network(Labelled):
    """A network with labels and losses of single records.

    A record is ignored if its label is not one of the classes, or if a cell is not a finite number:
    it contributes zero to every answer.

    Parameters
    ----------
    X
        Records, shape (n, d), n and d at least 1. Copied.
    y
        Labels, shape (n,).
    classes
        K >= 2 classes, known in public.
    classes_from_data
        Whether the classes are read off the records, which no claim covers: every statement names
        them then.
    l2
        Strength >= 0 of the regulariser ``l2 / 2 ||w||^2``, which leaves intercepts out.

    Attributes
    ----------
    classes_
        The classes, in sort order.
    """

    constants = UNKNOWN
    _order: NDArray[np.intp] | None = None
    _X: Vector

    def contributions(self, rows: Rows, *at: Vector) -> Contributions:
        """See :meth:`Objective.contributions`: a pair of vectors a layer."""
        if len(at) == 2:
            return Table(self.dimension, self.tables(rows, *at))
        pairs = (self._pairs(at[0], block) for block in in_blocks(rows, MOST))
        return Products(self.dimension, pairs, self._order)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`; whole vectors, only for differences."""
        pairs = self._pairs(w, rows)
        with np.errstate(over="ignore", invalid="ignore"):
            layers = [np.einsum("ij,ik->ijk", left, right) for left, right in pairs]
        table = np.hstack([each.reshape(len(rows), math.prod(each.shape[1:])) for each in layers])
        return table if self._order is None else table[:, self._order]

    def _digested(self) -> tuple[NDArray[Any], ...]:
        return self._X, self._class

    @abstractmethod
    def _pairs(self, w: Vector, rows: Rows) -> list[tuple[Vector, Vector]]:
        """Return two vectors for each record and layer; their outer product is the gradient."""


class MLP(Network):
    """A network with one hidden layer of tanh units, and cross entropy over K classes.

    Parameters
    ----------
    X, y, classes, classes_from_data, l2
        See :class:`Network`.
    width
        Number of hidden units >= 1.

    Attributes
    ----------
    dimension
        width (d + 1) + K (width + 1): the weights of the hidden units one after another, the
        weights of the classes, and then the intercepts of both.

    Notes
    -----
    At the origin only the last intercepts have gradients that are not zero: start at
    :meth:`initial`. The norm of a record's gradient is the root of ``||e1||^2 (||x||^2 + 1) +
    ||e2||^2 (||u||^2 + 1)``, with u the hidden units, e2 the probabilities minus the class, and e1
    the backward signal at the hidden units (Goodfellow 2015, Efficient per-example gradient
    computations).
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        width: int,
        classes: ArrayLike | None = None,
        classes_from_data: bool = False,
        l2: float = 0.0,
    ) -> None:
        table = self._table(X, y, classes, from_data=classes_from_data)
        self.l2 = validate.non_negative(l2=l2)
        self.width = validate.count(width=width)
        self._inputs = np.hstack([table, np.ones((self.n, 1))])
        self._X = self._inputs[:, :-1]
        K = len(self.classes_)
        self.penalized = self.width * (self._columns + K)
        self.dimension = self.penalized + self.width + K
        places = np.arange(self.dimension)
        hidden, out = np.split(places, [self.width * (self._columns + 1)])
        layers = hidden.reshape(self.width, -1), out.reshape(K, -1)
        self._order = np.concatenate(
            [each[:, :-1].ravel() for each in layers] + [each[:, -1] for each in layers]
        )

    def initial(self, seed: int | np.random.Generator) -> Vector:
        """Return a random start: weights of variance one over their number of inputs.

        The seed is public: the start does not depend on the records.
        """
        rng = np.random.default_rng(validate.seed(seed=seed))
        w = np.zeros(self.dimension)
        hidden = self.width * self._columns
        w[: self.penalized] = rng.standard_normal(self.penalized)
        w[:hidden] /= math.sqrt(self._columns)
        w[hidden : self.penalized] /= math.sqrt(self.width)
        return w

    def _pairs(self, w: Vector, rows: Rows) -> list[tuple[Vector, Vector]]:
        inputs = self._inputs[rows]
        units, back, out = self._backward(w, inputs[:, :-1], rows)
        return [(back, inputs), (out, units)]

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.hessian_vector_rows`, by Pearlmutter's R-operator (1994)."""
        X, weights = self._X[rows], self._layers(w)[1]
        V1, V2, c1, c2 = self._layers(v)
        units, _, out = self._backward(w, X, rows)
        hidden, p = units[:, :-1], out.copy()
        p[np.arange(len(rows)), self._class[rows]] += 1.0
        slope = 1.0 - hidden * hidden
        with np.errstate(over="ignore", invalid="ignore"):
            moved = slope * (X @ V1.T + c1)
            scores = moved @ weights.T + hidden @ V2.T + c2
            left = p * (scores - (p * scores).sum(axis=1, keepdims=True))
            below = (left @ weights + out @ V2) * slope - 2 * hidden * moved * (out @ weights)
            W1 = np.einsum("ij,ik->ijk", below, X)
            W2 = np.einsum("ij,ik->ijk", left, hidden) + np.einsum("ij,ik->ijk", out, moved)
        table = [each.reshape(len(rows), -1) for each in (W1, W2, below, left)]
        return np.where(self._class[rows, np.newaxis] < 0, 0.0, np.hstack(table))

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores, shape (m, K), of new records of shape (m, d)."""
        X = records(X, self._columns)
        return self._forward(parameters(w, self.dimension), X)[1]

    def _layers(self, w: Vector) -> tuple[Vector, Vector, Vector, Vector]:
        """Return views of the weights of both layers and of their intercepts."""
        d, m, K = self._columns, self.width, len(self.classes_)
        hidden, out = w[: m * d], w[m * d : self.penalized]
        intercepts = w[self.penalized :]
        return hidden.reshape(m, d), out.reshape(K, m), intercepts[:m], intercepts[m:]

    def _forward(self, w: Vector, X: Vector) -> tuple[Vector, Vector]:
        """Return hidden units and a last one that is 1, shape (m, width + 1), and scores."""
        W1, W2, b1, b2 = self._layers(w)
        units = np.ones((len(X), self.width + 1))
        with np.errstate(over="ignore", invalid="ignore"):
            hidden = np.tanh(X @ W1.T + b1, out=units[:, :-1])
            return units, hidden @ W2.T + b2

    def _backward(self, w: Vector, X: Vector, rows: Rows) -> tuple[Vector, Vector, Vector]:
        """Return hidden units, and signals there and at the scores, zeros for ignored records."""
        units, scores = self._forward(w, X)
        with np.errstate(over="ignore", invalid="ignore"):
            out = np.exp(scores - scores.max(axis=1, keepdims=True))
            out /= out.sum(axis=1, keepdims=True)
            out[np.arange(len(rows)), self._class[rows]] -= 1.0
            out[self._class[rows] < 0] = 0.0
            back = out @ self._layers(w)[1]
            back *= 1.0 - units[:, :-1] ** 2
        return units, back, out

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Network.record_losses`."""
        scores = self._forward(w, self._X[rows])[1]
        own = scores[np.arange(len(rows)), self._class[rows]]
        with np.errstate(invalid="ignore"):
            losses = np.logaddexp.reduce(scores, axis=1) - own
        return np.where(self._class[rows] >= 0, losses, 0.0)


class KAN(Network):
    """A two-layer Kolmogorov-Arnold network of cubic splines, for two classes.

    The score is ``m^(-1/2) sum_j s_j(tanh(<w_j, h(x)> / sqrt(d)))``: h(x) holds the values of p
    cubic B-splines at each of the d features, and the s_j are fixed random splines. The loss is
    ``log(1 + exp(-y score))`` with y in {-1, +1}, +1 for the larger class. A record's gradient is
    one outer product, of m and d p numbers: exact norms cost as much as the two vectors (Wang et
    al. 2026, section 2, with the basis that they leave open). ``dimension`` is m d p.

    Parameters
    ----------
    X, y, classes, classes_from_data, l2
        See :class:`Network`; there are two classes, and features are clamped to [-1, 1].
    width
        Number of hidden units m >= 1.
    intervals
        Number of intervals that [-1, 1] is cut into, >= 1; there are p = intervals + 3 splines.
    seed
        Public seed of the second layer.

    Examples
    --------
    >>> X = np.linspace(-1, 1, 50)[:, np.newaxis]
    >>> network = KAN(X, np.abs(X[:, 0]) > 0.5, width=8, intervals=4, classes=[0, 1])
    >>> w = network.minimize(network.initial(seed=0))
    >>> bool((network.predict(X, w) == (np.abs(X[:, 0]) > 0.5)).mean() > 0.95)
    True
    """

    def __init__(
        self,
        X: ArrayLike,
        y: ArrayLike,
        *,
        width: int,
        intervals: int = 4,
        seed: int = 0,
        classes: ArrayLike | None = None,
        classes_from_data: bool = False,
        l2: float = 0.0,
    ) -> None:
        from scipy.interpolate import BSpline

        table = self._table(X, y, classes, from_data=classes_from_data, two=True)
        self.l2 = validate.non_negative(l2=l2)
        self.width = validate.count(width=width)
        self.intervals = validate.count(intervals=intervals)
        self._knots = 2.0 * np.arange(-3, self.intervals + 4) / self.intervals - 1.0
        self._splines = self.intervals + 3
        rng = np.random.default_rng(validate.seed(seed=seed))
        second = rng.standard_normal((self._splines, self.width))
        spline, ends = BSpline(self._knots, second, 3), self._knots[3 : 3 + self.intervals]
        self._pieces = np.array([spline(ends, nu=k) / math.factorial(k) for k in (3, 2, 1, 0)])
        self._X = self._basis(table)
        self._signs = np.array([-1.0, 1.0, math.nan])[self._class]
        self.dimension = self.penalized = self.width * self._X.shape[1]

    def _basis(self, X: Vector) -> Vector:
        """Return the splines' values at every feature, shape (m, d p)."""
        from scipy.interpolate import BSpline

        inside = np.clip(X, -1.0, 1.0).ravel()
        table = BSpline.design_matrix(inside, self._knots, 3).toarray()
        return np.asarray(table.reshape(len(X), -1), dtype=np.float64)

    def initial(self, seed: int | np.random.Generator) -> Vector:
        """Return a random start of independent standard normals, from a public seed."""
        return np.random.default_rng(validate.seed(seed=seed)).standard_normal(self.dimension)

    def _pairs(self, w: Vector, rows: Rows) -> list[tuple[Vector, Vector]]:
        H, signs = self._X[rows], self._signs[rows]
        scores, slopes = self._forward(w, H)
        with np.errstate(over="ignore", invalid="ignore"):
            slopes *= (-signs / (1.0 + np.exp(signs * scores)))[:, np.newaxis]
        return [(slopes, H)]

    def decision(self, X: ArrayLike, w: ArrayLike) -> Vector:
        """Return the scores, shape (m,), of new records of shape (m, d)."""
        H = self._basis(records(X, self._columns))
        return self._forward(parameters(w, self.dimension), H)[0]

    def _forward(self, w: Vector, H: Vector) -> tuple[Vector, Vector]:
        """Return scores, and their derivatives by <w_j, h(x)>, shape (m, width)."""
        root = math.sqrt(self._columns)
        with np.errstate(over="ignore", invalid="ignore"):
            units = np.tanh(H @ w.reshape(self.width, -1).T / root)
        units = np.nan_to_num(units, nan=0.0)
        place = np.clip((units + 1.0) * (self.intervals / 2), 0.0, self.intervals - 1).astype(
            np.intp
        )
        a, b, c, d = self._pieces[:, place, np.arange(self.width)]
        x = units - self._knots[place + 3]
        values = ((a * x + b) * x + c) * x + d
        slopes = ((3.0 * a * x + 2.0 * b) * x + c) * (1.0 - units * units)
        wide = math.sqrt(self.width)
        return values.sum(axis=1) / wide, slopes / (wide * root)

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Network.record_losses`."""
        margins = self._signs[rows] * self._forward(w, self._X[rows])[0]
        with np.errstate(invalid="ignore"):
            return np.asarray(np.logaddexp(0.0, -margins))
