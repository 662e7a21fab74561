"""Objectives of your own models, from a function that returns one gradient per record.

>>> import numpy as np
>>> X, y = np.array([[1.0], [2.0], [3.0]]), np.array([2.0, 4.0, 6.0])
>>> def gradients(w, rows):
...     return (X[rows] @ w - y[rows])[:, np.newaxis] * X[rows]
>>> objective = FromGradients(gradients, n=3, dimension=1)
>>> objective.clipped_sum(np.zeros(1), np.array([0, 2]), 5.0).round(9).tolist()  # -2, -18 cut to -5
[-7.0]

Records can also be persons. Then the gradients of each person's rows are summed, and the sum is
clipped.

>>> table = np.array([[3.0, 0.0], [0.0, 4.0], [0.3, 0.4]])
>>> rows = FromGradients(lambda w, some: table[some], n=3, dimension=2)
>>> users = Users(rows, ["ann", "ann", "bob"], group_size=2)
>>> users.n, users.clipped_sum(np.zeros(2), np.array([0, 1]), 1.0).round(9).tolist()
(2, [0.9, 1.2])
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.constants import Constants
from dpcal.optim.objectives.arrays import Rows, Vector, digest_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import shaped
from dpcal.optim.objectives.domains import persons

PerRecord = Callable[[Vector, Rows], ArrayLike]

UNKNOWN = Constants(lipschitz=math.inf, smoothness=math.inf)


def answer_of(
    name: str, function: Any, what: str, at: tuple[Vector, ...], rows: Rows, *size: int
) -> Vector:
    """Return what a function returns for rows, if it was given and its shape is (m, *size)."""
    if function is None:
        raise TypeError(f"{name} must be given for {what} to be asked for, got None.")
    return shaped(name, function(*(w.copy() for w in at), rows), (len(rows), *size))


def check_functions(gradients: Any, **others: Any) -> None:
    """Refuse a function that cannot be called; all but ``gradients`` may be None."""
    for name, function in {"gradients": gradients, **others}.items():
        if not callable(function) and (name == "gradients" or function is not None):
            raise TypeError(f"{name} must be callable, got {function!r}.")


class FromGradients(Objective):
    """An objective given by a function that returns one gradient per record.

    Before the first run the function is called for a few random rows, to test that gradients do not
    depend on the other rows of a call; ``objective.checked = True`` skips the test.

    Parameters
    ----------
    gradients
        ``gradients(w, rows)`` returns the gradients of ``rows`` (row numbers, shape (m,)) at ``w``
        (shape (dimension,)), shape (m, dimension). The privacy claim needs the gradient of a record
        to depend only on that record and on ``w``: no statistics of a batch, no memory. A record
        contributes zero if its gradient or loss is NaN or infinite.
    n, dimension, l2
        See :class:`Objective`.
    loss
        ``loss(w, rows)`` returns the losses of ``rows``, shape (m,), under the same condition.
    hessian_vectors
        ``hessian_vectors(w, v, rows)`` returns the Hessians of the losses of ``rows`` times ``v``
        (shape (dimension,)), one product per record, shape (m, dimension), under the same
        condition. :func:`dpcal.optim.check_objective` compares it with differences of gradients.
    constants
        Known constants of one record's loss; infinite when omitted. Nothing private rests on them:
        gradients are always clipped.
    block
        See :class:`Objective`.
    """

    checked = False

    def __init__(
        self,
        gradients: PerRecord,
        *,
        n: int,
        dimension: int,
        loss: PerRecord | None = None,
        hessian_vectors: Callable[[Vector, Vector, Rows], ArrayLike] | None = None,
        l2: float = 0.0,
        constants: Constants | None = None,
        block: int | None = None,
    ) -> None:
        check_functions(gradients, loss=loss, hessian_vectors=hessian_vectors)
        self._gradients = gradients
        self._loss = loss
        self._hessian_vectors = hessian_vectors
        self.n = validate.count(n=n)
        self.dimension = self.penalized = validate.count(dimension=dimension)
        self.l2 = validate.non_negative(l2=l2)
        self.constants = validate.instance(Constants, constants=constants or UNKNOWN)
        self.block = None if block is None else validate.count(block=block)

    def record_gradients(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_gradients`."""
        return shaped("gradients", self._gradients(w, rows), (len(rows), self.dimension))

    def record_losses(self, w: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.record_losses`; a TypeError is raised without a ``loss``."""
        return answer_of("loss", self._loss, "losses", (w,), rows)

    def hessian_vector_rows(self, w: Vector, v: Vector, rows: Rows) -> Vector:
        """See :meth:`Objective.hessian_vector_rows`; a TypeError is raised without Hessians."""
        asked = "hessian_vectors", self._hessian_vectors, "Hessians"
        return answer_of(*asked, (w, v), rows, self.dimension)


class Users(FromGradients):
    """An objective with one record a person: user-level sampling and clipping.

    A person's gradient is the sum over the first ``group_size`` of the person's rows, in their
    order; further rows are never read. It is clipped as a whole, so that a person with any number
    of rows moves a sum by at most the bound, and an epsilon for one record is an epsilon for one
    person (Charles et al. 2024). Make plans for it with ``clipped="user"``, the same
    ``group_size``, and the number of persons for n.

    Parameters
    ----------
    objective
        Objective with one record a row.
    owners
        Person of each row, shape (objective.n,): numbers or texts. Two rows are about one person if
        their texts are the same.
    group_size
        Largest number of rows of a person that are used, >= 1.

    Raises
    ------
    ValueError
        If the shape is another one, or a row names no person.
    """

    group_size: int

    def __init__(self, objective: Objective, owners: ArrayLike, *, group_size: int) -> None:
        self.group_size = validate.count(group_size=group_size)
        validate.instance(Objective, objective=objective)
        people = persons("owners", owners, objective.n)
        order = np.argsort(people, kind="stable").astype(np.intp)
        starts = np.flatnonzero(np.diff(people[order], prepend=-1))
        self._of_person = [some[:group_size] for some in np.split(order, starts[1:])]
        self._rows = objective
        super().__init__(
            partial(self._by_person, objective.clipped_sum),
            n=len(starts),
            dimension=objective.dimension,
            loss=partial(self._by_person, objective.clipped_loss_sum),
        )
        self.l2, self.penalized = objective.l2, objective.penalized
        self.dual_l2, self.ascending = objective.dual_l2, objective.ascending
        self.checked, self.read_from_data = objective.checked, objective.read_from_data

    def _by_person(self, ask: Callable[..., Any], w: Vector, some: Rows) -> Vector:
        """Return the sums over the rows of each of some persons, not clipped."""
        with np.errstate(all="ignore"):
            return np.array([ask(w, self._of_person[each], math.inf) for each in some])

    def digest(self) -> bytes:
        """See :meth:`Objective.digest`."""
        rows = np.concatenate(self._of_person)
        lengths = np.array([len(each) for each in self._of_person])
        return digest_of(np.frombuffer(self._rows.digest(), np.uint8), rows, lengths)
