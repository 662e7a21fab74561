"""Tree aggregation as a strategy: one row of C for each node that a prefix sum uses.

In a binary tree over T steps, prefix sums use T nodes: at step t (from 1) the node that covers the
last 2^k steps, where 2^k is the largest power of two that divides t. With one noise per node this
is a square, lower-triangular C of zeros and ones; its inverse keeps one row per level.

>>> Tree(4).matrix().tolist()
[[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
>>> from dpcal.accountants.matrix import Single
>>> print(f"{Tree(1024).sensitivity(Single()).value ** 2:.6f}")         # levels
11.000000
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate
from dpcal.accountants.matrix import sensitivity as sensitivities
from dpcal.accountants.matrix.base import Strategy
from dpcal.accountants.matrix.participation import Participation
from dpcal.accountants.matrix.recurrences import Recurrence, TreeNodes
from dpcal.accountants.matrix.sensitivity import Sensitivity
from dpcal.accountants.matrix.workloads import PREFIX_SUMS, Workload

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Tree(Strategy):
    """Prefix sums by a binary tree (Dwork, Naor, Pitassi and Rothblum 2010).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    efficient
        Whether a node's estimate also uses the nodes below it (Honaker 2015, from the left only, as
        a stream allows). With r the variance of a refined node of the level below, the refined
        variance is 1 / (1 + 1 / (2 r)). All that a node's estimate takes from the noise of its own
        step is one Gaussian, so that this is a square matrix as well: row t of C holds
        (1 - pull) / spread on the steps of each closed node below, and 1 / spread at t.
    """

    kind: ClassVar[str] = "tree"
    steps: int
    efficient: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))
        if not isinstance(self.efficient, bool):
            raise TypeError(f"efficient must be True or False, got {self.efficient!r}.")

    @property
    def bands(self) -> int | None:
        """None, all, except for a single step."""
        return 1 if self.steps == 1 else None

    @property
    def levels(self) -> int:
        """Number of levels of nodes."""
        return self.steps.bit_length()

    @property
    def nonnegative(self) -> bool:
        """True: weights of nodes below a node's estimate are less than 1."""
        return True

    @cached_property
    def _variances(self) -> Array:
        """Variance of a node's estimate, by level."""
        variances = np.ones(self.levels)
        if self.efficient:
            for level in range(1, self.levels):
                variances[level] = 1 / (1 + 1 / (2 * variances[level - 1]))
        return variances

    @cached_property
    def _weights(self) -> tuple[Array, Array]:
        """Standard deviation of the fresh part of a node, and its weights on closed nodes below.

        An estimate of level l is v_l times the node's own noise plus v_l / (2 v_{l-1}) times the
        estimates of both nodes below; the right one ends at the same step and is used nowhere else.
        """
        levels, variances = self.levels, self._variances
        spread, pull = np.ones(levels), np.zeros((levels, levels))
        if self.efficient:
            for level in range(1, levels):
                below = variances[level] / (2 * variances[level - 1])
                pull[level, : level - 1] = below * pull[level - 1, : level - 1]
                pull[level, level - 1] = below
                spread[level] = np.hypot(variances[level], below * spread[level - 1])
        return spread, pull

    def matrix(self) -> Array:
        """Return C, shape (T, T)."""
        self._affordable()
        spread, pull = self._weights
        C = np.zeros((self.steps, self.steps))
        for count in range(1, self.steps + 1):
            level = (count & -count).bit_length() - 1
            row = C[count - 1]
            row[count - 1] = 1 / spread[level]
            for below in range(level):
                end = count - (1 << below)
                row[end - (1 << below) : end] = (1 - pull[level, below]) / spread[level]
        return C

    def recurrence(self, dimension: int) -> Recurrence:
        """Return the recurrence with one kept row for each level."""
        return TreeNodes(dimension, *self._weights)

    def sensitivity(self, participation: Participation) -> Sensitivity:
        """Return the largest norm of one record's part of C G; see the base class."""
        return sensitivities.of_matrix(self.matrix(), participation)

    def error_profile(self, workload: Workload = PREFIX_SUMS) -> Array:
        """Return the standard deviation of each row of A C^-1 z, shape (T,), in units of z."""
        if workload != PREFIX_SUMS:
            return super().error_profile(workload)
        # A prefix is a sum of disjoint nodes, one for each binary digit 1 of its length.
        counts = np.arange(1, self.steps + 1)
        digits = (counts[:, None] >> np.arange(self.levels)) & 1
        return np.sqrt(digits @ self._variances)
