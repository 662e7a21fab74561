"""The queries of estimators, and their noise. Queries that meet a target by themselves.

A single Gaussian release that meets (epsilon, delta) sets the noise of all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from dpcal.accountants import events
from dpcal.calibrate import Query, noise_multiplier
from dpcal.calibrate.plans.common import repeated

# A record is kept or zeroed out, never removed: means divide by the exact number of records.
RELATION = "replace-special"

# Share of the squared GDP parameter for learned classes: much more makes the model visibly noisier.
_LABELS_SHARE = 0.1

# Share of delta for releasing a label that only one record has.
_LABELS_DELTA = 0.1


def single_release(
    epsilon: float, delta: float, shares: Sequence[float], *, failure: float = 0.0
) -> list[float]:
    """Return noise multipliers of single Gaussian releases that together meet a target.

    Parameters
    ----------
    epsilon, delta
        The target.
    shares
        Positive; which share of the squared GDP parameter each release has.
    failure
        Part of delta that is spent elsewhere.

    >>> first, second = single_release(1.0, 1e-6, [1, 3])
    >>> print(f"{first / second:.6f}")
    1.732051
    """
    whole = _one_release(epsilon, delta, failure)
    return [whole * math.sqrt(sum(shares) / share) for share in shares]


@lru_cache(maxsize=256)
def _one_release(epsilon: float, delta: float, failure: float) -> float:
    """Noise multiplier of one Gaussian release that meets a target; fits of one target share it."""
    beside = events.EpsilonDeltaDpEvent(0.0, failure)

    def event(sigma: float) -> events.DpEvent:
        gaussian = events.GaussianDpEvent(sigma)
        return gaussian if not failure else events.ComposedDpEvent([gaussian, beside])

    whole = noise_multiplier(event, epsilon=epsilon, delta=delta, neighboring_relation=RELATION)
    return repeated(whole, 1)


def labels_query(epsilon: float, delta: float) -> tuple[Query, float, float]:
    """Return the query that learns classes, the multiplier left for a model, and its failure.

    Parameters
    ----------
    epsilon, delta
        The target of labels and model together.
    """
    failure = _LABELS_DELTA * delta
    labels, model = single_release(
        epsilon, delta, [_LABELS_SHARE, 1 - _LABELS_SHARE], failure=failure * (1 + 1e-6)
    )
    return _labels("labels", labels, failure), model, failure


def _labels(name: str, multiplier: float, failure: float, columns: int = 1) -> Query:
    return Query(
        name=name,
        kind="labels",
        sampler="full",
        max_norm=1.0,
        noise_multiplier=multiplier,
        threshold=1 - multiplier * float(ndtri(failure / columns)),
        count=columns,
    )


def labels_of_columns(name: str, epsilon: float, delta: float, columns: int) -> Query:
    """Return the query of the labels that enough records share, an answer a column, for a target.

    A record changes the count of one label in each column by 1, which costs the Gaussian mechanism
    with sensitivity 1 for each column. A label that no other record has cannot be named without
    that record. With it, the count of 1 exceeds the threshold with a probability of ``0.1 delta /
    columns`` at most, so that by the union bound such a label of any column is named with 0.1 delta
    at most. The query's event holds both: ``EpsilonDeltaDpEvent(0, ...)`` with each Gaussian.

    Parameters
    ----------
    name
        Name of the query.
    epsilon, delta
        The target.
    columns
        How many columns there are, at least 1.

    >>> query = labels_of_columns("categories", 1.0, 1e-6, 3)
    >>> print(f"{query.noise_multiplier:.2f} {query.threshold:.1f} {query.count}")
    7.35 40.7 3
    """
    failure = _LABELS_DELTA * delta
    (whole,) = single_release(epsilon, delta, [1.0], failure=failure * (1 + 1e-6))
    multiplier = repeated(whole, columns)
    return _labels(name, multiplier, failure, columns)


@lru_cache(maxsize=256)
def choices_query(
    name: str, epsilon: float, delta: float, count: int, max_norm: float = 0.5
) -> Query:
    """Return the query of ``count`` answers by the exponential mechanism that meets a target."""

    def event(multiplier: float) -> events.DpEvent:
        return events.SelfComposedDpEvent(events.ExponentialMechanismDpEvent(2 / multiplier), count)

    found = noise_multiplier(event, epsilon=epsilon, delta=delta, neighboring_relation=RELATION)
    return Query(
        name=name,
        kind="selection",
        sampler="full",
        max_norm=max_norm,
        noise_multiplier=found * (1 + 1e-12),
        count=count,
    )


class Pairs:
    """Pairs of the entries of rows; their products have the norm of the matrix of all products.

    Parameters
    ----------
    d
        Number of entries of a row, at least 1.
    norm
        Rows are in units of it.

    Attributes
    ----------
    count
        Number of pairs.

    >>> pairs = Pairs(2)
    >>> products = pairs.products(np.array([[3.0, 4.0]]))
    >>> float(np.linalg.norm(products)), pairs.matrix(products[0]).tolist()
    (25.0, [[9.0, 12.0], [12.0, 16.0]])
    """

    def __init__(self, d: int, norm: float = 1.0) -> None:
        self._d, self._upper = d, np.triu_indices(d)
        # Off the diagonal an entry stands for two.
        self._weights = np.where(self._upper[0] == self._upper[1], 1.0, math.sqrt(2)) / norm**2
        self.count = len(self._weights)

    def products(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weighted products of the entries of each row, shape (n, count)."""
        products: NDArray[np.float64] = (
            rows[:, self._upper[0]] * rows[:, self._upper[1]] * self._weights
        )
        return products

    def matrix(self, products: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the symmetric matrix of such products, the first of a vector, shape (d, d)."""
        found = np.zeros((self._d, self._d))
        found[self._upper] = products[: self.count] / self._weights
        matrix: NDArray[np.float64] = found + found.T - np.diag(np.diag(found))
        return matrix
