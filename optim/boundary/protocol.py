"""The answers that an optimizer needs from an oracle, wherever the records are.

:class:`dpcal.optim.PrivateOracle` answers about records in memory. An object with these attributes
is an oracle too, and every optimizer takes it in place of an objective: for records that are spread
over silos, a ledger that others share, a recording that is played again, a test.

>>> from dpcal.optim import PrivateOracle
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import Logistic
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=2.0, count=1)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=3.0, delta=1e-6)
>>> isinstance(PrivateOracle(Logistic([[0.0], [1.0]], [0, 1], classes=[0, 1]), plan), Oracle)
True
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike

from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.objectives.arrays import Vector

__all__ = ["Oracle"]


@runtime_checkable
class Oracle(Protocol):
    """Answers a plan's queries with noise, and keeps the ledger of all releases.

    An implementation makes the privacy claim. An answer's entry is in the ledger before any record
    is read for it, every record's contribution is within the query's bound, and the noise is the
    plan's. Methods are documented on :class:`dpcal.optim.PrivateOracle`.
    """

    @property
    def dimension(self) -> int:
        """Number of parameters."""

    @property
    def plan(self) -> Plan:
        """Queries, with their counts and their noise."""

    @property
    def ledger(self) -> Ledger:
        """The answers so far."""

    @property
    def public(self) -> np.random.Generator:
        """A generator for public choices."""

    def gradient(
        self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy gradient of the regularised objective, shape (dimension,)."""

    def difference(
        self, w: ArrayLike, v: ArrayLike, query: str, *, noise_multiplier: float | None = None
    ) -> Vector:
        """Return a noisy difference of gradients, at w minus at v, shape (dimension,)."""

    def norm(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy norm of the gradient; possibly negative."""

    def scalar(self, w: ArrayLike, query: str, *, noise_multiplier: float | None = None) -> float:
        """Return a noisy mean of clipped losses."""

    def remaining(self, query: str) -> int:
        """Return the number of answers that are left to the query."""

    def affords(self, query: str, noise_multiplier: float) -> bool:
        """Return whether one more answer to an adaptive query, with this noise, is allowed."""
