"""Linear workloads over the steps' gradients: the sums that errors are measured in.

A workload A (steps x steps, lower triangular) maps the steps' gradients to the quantities of
interest: the iterates of SGD are prefix sums of gradients, weighted by the learning rates. The
error of a strategy C is the error of A C^-1 z.

>>> Workload().coefficients(4).tolist()
[1.0, 1.0, 1.0, 1.0]
>>> Workload(momentum=0.5).coefficients(4).tolist()
[1.0, 1.5, 1.75, 1.875]
>>> Workload(learning_rates=(1.0, 0.5, 0.25)).accumulate(np.eye(3)).tolist()
[[1.0, 0.0, 0.0], [1.0, 0.5, 0.0], [1.0, 0.5, 0.25]]
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal._internal import validate

Array = NDArray[np.float64]

SCHEDULES = {
    "linear": lambda share, last: 1 - (1 - last) * share,
    "cosine": lambda share, last: last + 0.5 * (1 - last) * (1 + np.cos(np.pi * share)),
    "exponential": lambda share, last: last**share,
}
"""Learning rates that fall from 1 to the last one, by the share of the run that is past."""


def learning_rates(schedule: str, steps: int, last: float) -> tuple[float, ...]:
    """Return the learning rates of a schedule, over the first one, for :class:`Workload`.

    Parameters
    ----------
    schedule
        ``"linear"``, ``"cosine"`` or ``"exponential"``.
    steps
        Number of steps, >= 1.
    last
        Rate of the last step over the rate of the first one, in (0, 1].

    >>> learning_rates("exponential", 3, last=0.25)
    (1.0, 0.5, 0.25)
    """
    validate.choice(tuple(SCHEDULES), schedule=schedule)
    share = np.arange(validate.count(steps=steps)) / max(steps - 1, 1)
    return tuple(SCHEDULES[schedule](share, validate.rate(last=last)).tolist())


@dataclass(frozen=True)
class Workload:
    """Iterates of SGD with momentum, weight decay and a learning-rate schedule.

    Without any of them they are prefix sums. A is the product of a matrix of decays, the diagonal
    matrix of the learning rates, and a matrix of momenta (Kalinin and Andersson 2025, arXiv
    2511.17994, for learning rates).

    Parameters
    ----------
    momentum
        In [0, 1): velocity v <- momentum v + gradient.
    decay
        In (0, 1]: parameters w <- decay w - learning rate times v.
    learning_rates
        The rate > 0 of each step, in any unit, which errors then have, too; None for equal ones.
    """

    momentum: float = 0.0
    decay: float = 1.0
    learning_rates: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        momentum = validate.non_negative(momentum=self.momentum)
        if momentum >= 1:
            raise ValueError(f"momentum must be a number in [0, 1), got {self.momentum!r}.")
        object.__setattr__(self, "momentum", momentum)
        object.__setattr__(self, "decay", validate.rate(decay=self.decay))
        if self.learning_rates is not None:
            rates = tuple(validate.positive(learning_rates=each) for each in self.learning_rates)
            object.__setattr__(self, "learning_rates", rates)

    def rates(self, steps: int) -> Array:
        """Return the learning rate of each step, shape (steps,).

        Raises
        ------
        ValueError
            If there are rates for another number of steps.
        """
        if self.learning_rates is None:
            return np.ones(steps)
        if len(self.learning_rates) != steps:
            raise ValueError(
                f"learning_rates must be one for each of steps={steps}, "
                f"got {len(self.learning_rates)} of them."
            )
        return np.array(self.learning_rates)

    def coefficients(self, steps: int) -> Array:
        """Return the first column of A, shape (steps,), which without rates is Toeplitz."""
        impulse = np.zeros(steps)
        impulse[0] = 1.0
        return self.accumulate(impulse)

    def accumulate(self, column: Array) -> Array:
        """Return A times a column, or a block of columns, of shape (steps, ...)."""
        rows = _sums(column, self.momentum)
        if self.learning_rates is not None:
            rows = (rows.T * self.rates(len(rows))).T
        return _sums(rows, self.decay)

    def norms(self, column: Array) -> Array:
        """Return the norms of the rows of A M, shape (steps,), for a lower-triangular Toeplitz M.

        Parameters
        ----------
        column
            The first column of M, shape (steps,).
        """
        if self.learning_rates is None:
            return np.sqrt(np.cumsum(self.accumulate(column) ** 2))
        steps, column = len(column), _sums(column, self.momentum)
        row, norms = np.zeros(steps), np.empty(steps)
        for t, rate in enumerate(self.rates(steps)):
            row[: t + 1] = self.decay * row[: t + 1] + rate * column[t::-1]
            norms[t] = math.sqrt(row @ row)
        return norms

    def to_dict(self) -> dict[str, Any]:
        """Return the workload as JSON values."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        sums = "prefix sums"
        if (self.momentum, self.decay) != (0.0, 1.0):
            sums = f"momentum {self.momentum:g}, decay {self.decay:g}"
        if self.learning_rates is None:
            return sums
        return f"{sums}, learning rates {self.learning_rates[0]:g} to {self.learning_rates[-1]:g}"


def _sums(rows: Array, factor: float) -> Array:
    """Return total <- factor total + row for each row in turn, shape (steps, ...)."""
    if not factor:
        return rows
    # scipy.signal would take half a second to load.
    found: Iterable[Any] = rows.tolist() if rows.ndim == 1 else rows
    return np.array(list(accumulate(found, lambda total, row: factor * total + row)))


PREFIX_SUMS = Workload()
"""The iterates of plain SGD."""
