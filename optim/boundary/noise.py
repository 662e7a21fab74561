"""How are contributions summed, and how is noise added? The Gaussian mechanism, in floating point.

Once an answer is admitted, a mechanism sums clipped contributions in units of its own, adds noise,
and divides by a public size. :class:`GaussianMechanism` works in doubles, and
:class:`dpcal.optim.boundary.exact.DiscreteMechanism` in whole numbers.

>>> import numpy as np
>>> answer = np.zeros(3)
>>> add_gaussian(answer, 2.0, np.random.default_rng(0))
>>> bool((answer == 2.0 * np.random.default_rng(0).standard_normal(3)).all())
True
>>> add_correlated(answer, 1.0, -answer)
>>> answer.tolist()
[0.0, 0.0, 0.0]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from dpcal import _annexes
from dpcal._ext.noise import add_gaussian
from dpcal._ext.sums import Sums
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import NonFiniteAnswer, UnsupportedEvent
from dpcal.optim.boundary.seeds import Streams
from dpcal.optim.objectives.arrays import Rows, Vector, norm_of
from dpcal.optim.objectives.base import Objective
from dpcal.optim.objectives.contributions import gradients, kernel_of, losses

if TYPE_CHECKING:
    from dpcal.optim.boundary.last_iterate import LastIterate
    from dpcal.optim.boundary.one_pass import Pass

    Steps: TypeAlias = Pass | LastIterate

__all__ = [
    "SCORED",
    "GaussianMechanism",
    "Mechanism",
    "Summing",
    "add_correlated",
    "add_gaussian",
    "noise_of",
]

# Kinds of answers that are whole numbers only where the rounding of scores before them is known.
SCORED = {"saddle score", "above threshold", "noisy max"}


class Mechanism(Protocol):
    """Sums clipped contributions and adds noise. Totals are arrays in the mechanism's own units.

    The sums take an objective, parameters of shape (dimension,), row numbers in [0, n), and the
    bound > 0 on the size of each record's contribution. A contribution that is not finite counts as
    zero. ``name`` is the value of the keyword ``noise`` of :func:`dpcal.optim.run`, and ``fused``
    is whether compiled answers, with ``compiled_sums``, may replace the mechanism.
    """

    name: str
    fused: bool

    def compiled_sums(self, noise_multiplier: float) -> Sums:
        """Return the mechanism's sums and noise for compiled code."""
        ...

    def gradient_sum(self, objective: Objective, w: Vector, rows: Rows, bound: float) -> Any:
        """Return the sum over ``rows`` of gradients, each clipped to ``bound``."""
        ...

    def difference_sum(
        self, objective: Objective, w: Vector, v: Vector, rows: Rows, bound: float
    ) -> Any:
        """Return the sum over ``rows`` of gradients at w minus at v, each clipped."""
        ...

    def loss_sum(self, objective: Objective, w: Vector, rows: Rows, bound: float) -> Any:
        """Return the sum over ``rows`` of losses, each clipped to [-bound, bound], shape (1,)."""
        ...

    def norm(self, total: Any, offset: Vector, bound: float) -> Any:
        """Return the norm of a sum plus a public vector, shape (1,)."""
        ...

    def mean_iterate(self, one_pass: Steps, objective: Objective, w: Vector, rows: Rows) -> Any:
        """Return the mean iterate of a pass over ``rows``."""
        ...

    def values(self, total: Any, bound: float) -> Vector:
        """Return a total in the units of the answer, as a copy in doubles."""
        ...

    def noisy_mean(
        self, total: Any, query: Query, bound: float, *, size: float, row: Vector | None = None
    ) -> Vector:
        """Return a total with the query's noise, divided by a public ``size`` > 0.

        The noise is the query's multiplier times ``bound``, which bounds the norm of one record's
        contribution. ``row`` is a row of C^-1 z for correlated noise, shape (dimension,); None for
        independent noise. The total must not be used again.
        """
        ...


class Summing:
    """Sums of contributions by one of the two methods of what objectives hand over."""

    how: ClassVar[str]

    @classmethod
    def gradient_sum(cls, objective: Objective, w: Vector, rows: Rows, bound: float) -> Any:
        """See :class:`Mechanism`."""
        return getattr(gradients(objective, rows, w), cls.how)(bound)

    @classmethod
    def difference_sum(
        cls, objective: Objective, w: Vector, v: Vector, rows: Rows, bound: float
    ) -> Any:
        """See :class:`Mechanism`."""
        return getattr(gradients(objective, rows, w, v), cls.how)(bound)

    @classmethod
    def loss_sum(cls, objective: Objective, w: Vector, rows: Rows, bound: float) -> Any:
        """See :class:`Mechanism`."""
        return getattr(losses(objective, rows, w), cls.how)(bound)


class GaussianMechanism(Summing):
    """Sums and Gaussian noise in floating point: the faster mechanism; see docs/security.md."""

    name = "gaussian"
    how = "clipped"
    fused = True

    def __init__(self, plan: Plan, dimension: int, streams: Streams) -> None:
        self._streams = streams

    def compiled_sums(self, noise_multiplier: float) -> Sums:
        """See :class:`Mechanism`."""
        return Sums(self._streams.noise, noise_multiplier)

    def norm(self, total: Vector, offset: Vector, bound: float) -> Vector:
        """See :class:`Mechanism`."""
        return np.array([norm_of(total + offset)])

    def mean_iterate(self, one_pass: Steps, objective: Objective, w: Vector, rows: Rows) -> Vector:
        """See :class:`Mechanism`."""
        return one_pass.mean_iterate(objective, w, rows)

    def values(self, total: Vector, bound: float) -> Vector:
        """See :class:`Mechanism`."""
        return total.copy()

    def noisy_mean(
        self, total: Vector, query: Query, bound: float, *, size: float, row: Vector | None = None
    ) -> Vector:
        """See :class:`Mechanism`; NonFiniteAnswer is raised if a regulariser overflowed."""
        if not np.isfinite(total).all():
            # Clipped sums are finite, so only a regulariser at huge parameters has overflowed.
            raise NonFiniteAnswer(
                f"The sum behind query {query.name!r} is NaN or infinite, and was not released: "
                "the parameters that were asked about are too large."
            )
        standard_deviation = query.noise_multiplier * bound
        if row is None:
            add_gaussian(total, standard_deviation, self._streams.noise)
        else:
            add_correlated(total, standard_deviation, row)
        return total / size


def noise_of(
    noise: str | None, plan: Plan, dimension: int, objective: Objective | None = None
) -> str:
    """Return the noise that is given; or discrete noise, if all answers of a plan have it."""
    if noise is not None:
        return noise
    kinds = {query.kind for query in plan.queries}
    if "one pass" in kinds and objective is not None and kernel_of(objective) is None:
        return "gaussian"
    if kinds & SCORED and plan.neighboring_relation == "add-or-remove-one":
        return "gaussian"
    try:
        for query in plan.queries:
            if query.correlation is not None:
                _annexes.grid_of(query, dimension)  # refuses what has no proof
    except UnsupportedEvent:
        return "gaussian"
    return "discrete"


def add_correlated(
    out: NDArray[np.float64], standard_deviation: float, row: NDArray[np.float64]
) -> None:
    """Add a row of C^-1 z times the standard deviation >= 0 of z to ``out`` in place, both (d,)."""
    out += standard_deviation * row
