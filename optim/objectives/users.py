"""Are persons the records? The rows of each are summed, and the sum is clipped.

>>> from dpcal.optim import FromGradients
>>> table = np.array([[3.0, 0.0], [0.0, 4.0], [0.3, 0.4]])
>>> rows = FromGradients(lambda w, some: table[some], n=3, dimension=2)
>>> users = Users(rows, ["ann", "ann", "bob"], group_size=2)
>>> users.n, users.clipped_sum(np.zeros(2), np.array([0, 1]), 1.0).round(9).tolist()
(2, [0.9, 1.2])
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.custom import FromGradients
from dpcal.optim.objectives.domains import persons

__all__ = ["Users"]


class Users(FromGradients):
    """An objective whose records are persons: user-level sampling and clipping.

    A person's gradient is the sum over the first ``group_size`` of the person's rows, in their
    order; more are never read, whoever else there is. It is clipped as a whole, so that a person
    with any rows moves a sum by at most the bound, and any price of one record is that of a person
    (Charles et al. 2024). Plans for it are made with ``clipped="user"``, the same ``group_size``,
    and the number of persons for n.

    Parameters
    ----------
    objective
        Of rows.
    owners
        Who each row is about, shape (objective.n,): numbers or texts. Two are one person if their
        texts are the same.
    group_size
        Largest number of rows of a person that are used, >= 1.

    Raises
    ------
    ValueError
        If the shape is another one, or a row does not say whose it is.
    """

    group_size: int

    def __init__(self, objective: Objective, owners: ArrayLike, *, group_size: int) -> None:
        self.group_size = _validate.count(group_size=group_size)
        _validate.instance(Objective, objective=objective)
        people = persons("owners", owners, objective.n)
        order = np.argsort(people, kind="stable").astype(np.intp)
        starts = np.flatnonzero(np.diff(people[order], prepend=-1))
        self._of_person = [some[:group_size] for some in np.split(order, starts[1:])]
        self._rows = objective
        super().__init__(
            self._sums, n=len(starts), dimension=objective.dimension, loss=self._losses
        )
        self.l2, self.penalized = objective.l2, objective.penalized
        self.dual_l2, self.ascending = objective.dual_l2, objective.ascending
        self.checked, self.read_from_data = objective.checked, objective.read_from_data

    def _sums(self, w: Vector, some: Rows) -> Vector:
        """Return the sum of each person's gradients, not clipped, shape (m, dimension)."""
        ask, of = self._rows.clipped_sum, self._of_person
        with np.errstate(all="ignore"):
            return np.array([ask(w, of[each], math.inf) for each in some])

    def _losses(self, w: Vector, some: Rows) -> Vector:
        """Return the sum of each person's losses, shape (m,)."""
        ask, of = self._rows.clipped_loss_sum, self._of_person
        with np.errstate(all="ignore"):
            return np.array([ask(w, of[each], math.inf) for each in some])

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        rows = np.concatenate(self._of_person)
        lengths = np.array([len(each) for each in self._of_person])
        return digest_of(np.frombuffer(self._rows.digest(), np.uint8), rows, lengths)
