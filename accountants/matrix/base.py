"""A strategy: the matrix C of a matrix mechanism, its errors, its event and its noise.

Notation of the package: A is the workload, B = A C^-1, X = C^T C, z has rows of independent
standard normals, and T is the number of steps.
"""

from __future__ import annotations

import dataclasses
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import toeplitz

from dpcal._internal import validate
from dpcal._internal.files import fields_of, read_as
from dpcal.accountants import events
from dpcal.accountants.matrix import sensitivity as sensitivities
from dpcal.accountants.matrix.participation import Participation, Single
from dpcal.accountants.matrix.recurrences import (
    Feedback,
    Filter,
    Recurrence,
    Rows,
    inverse_series,
)
from dpcal.accountants.matrix.sensitivity import Sensitivity
from dpcal.accountants.matrix.workloads import PREFIX_SUMS, Workload
from dpcal.errors import UnsupportedEvent

Array = NDArray[np.float64]

RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")

_DENSE_STEPS = 2**14

# Growth of a rounding error by C^-1 and C: at 1e10, times 2^-53, the noise is z to six digits.
_MOST_ENLARGED = 1e10

_KINDS: dict[str, type[Strategy]] = {}
_OWN = (".dense", ".toeplitz", ".tree")


def read_only(array: ArrayLike) -> Array:
    """Return a contiguous, read-only copy of doubles."""
    copy = np.array(array, dtype=np.float64, order="C")
    copy.setflags(write=False)
    return copy


def refuse_explosion(name: str, enlarged: float, steps: int) -> None:
    """Refuse a matrix with an inverse that turns rounding errors into noise.

    Parameters
    ----------
    name
        The argument that determines C.
    enlarged
        Largest row sum of abs(C) times the largest of abs(C^-1), or a bound on its growth.
    steps
        Number of steps.

    Raises
    ------
    ValueError
        If it is above 1e10.
    """
    if not enlarged <= _MOST_ENLARGED:
        size = f"{enlarged:.2g}" if np.isfinite(enlarged) else "more than 1e308"
        raise ValueError(
            f"{name} must have an inverse that does not explode: over steps={steps} it enlarges "
            f"rounding errors by a factor of {size}, where at most {_MOST_ENLARGED:g} is allowed."
        )


class Strategy(ABC):
    """A lower-triangular, invertible matrix C: step t's noise is row t of C^-1 z.

    The mechanism releases C G + noise_multiplier z row by row, where G holds the steps' sums of
    clipped contributions in units of the clipping norm; the optimizer reads G + noise_multiplier
    C^-1 z, from which C G + noise_multiplier z follows. ``noise_multiplier`` is the standard
    deviation of z, not of the correlated noise, and is not divided by a norm of C.

    Attributes
    ----------
    steps
        Number T of rows of C.
    bands
        Number of diagonals of C, from the main one down, that may be nonzero; None for all. (Of C,
        not of its inverse: a strategy with few bands has orthogonal separated columns.)
    inverse_bands
        The same number for C^-1.
    """

    kind: ClassVar[str]
    steps: int

    if TYPE_CHECKING:

        @property
        def bands(self) -> int | None:
            """Number of diagonals of C that may be nonzero; None for all."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kind" in vars(cls):
            _KINDS[cls.kind] = cls

    @property
    def inverse_bands(self) -> int | None:
        """Number of diagonals of C^-1 that may be nonzero; None for all."""
        return None

    @property
    def coefficients(self) -> Array | None:
        """First column of C, shape (T,), if C is Toeplitz, else None."""
        return None

    @property
    def inverse_coefficients(self) -> Array | None:
        """First column of C^-1, shape (T,), if C is Toeplitz, else None."""
        return None

    @property
    def series(self) -> tuple[Array, Array] | None:
        """Decays d, scales s of ``C[t + k, t] = sum_j s[j] d[j]^(k - 1)``, of a buffered matrix.

        C has a unit diagonal then; None for all others.
        """
        return None

    @property
    @abstractmethod
    def nonnegative(self) -> bool:
        """Whether every entry of C is >= 0."""

    @abstractmethod
    def matrix(self) -> Array:
        """Return C, shape (T, T).

        Raises
        ------
        ValueError
            If T is above 16384: the matrix would not fit into memory.
        """

    @abstractmethod
    def recurrence(self, dimension: int) -> Recurrence:
        """Return the recurrence that turns rows of z, of length ``dimension``, into C^-1 z."""

    @abstractmethod
    def sensitivity(self, participation: Participation) -> Sensitivity:
        """Return the largest norm of one record's part of C G, in units of the clipping norm.

        Parameters
        ----------
        participation
            The guarantee of the data pipeline.

        Raises
        ------
        ValueError
            If the schema is not one for this number of steps.
        """

    def inverse(self) -> Array:
        """Return C^-1, shape (T, T); for T up to 16384."""
        self._affordable()
        return self.recurrence(self.steps).solve(np.eye(self.steps))

    def _affordable(self) -> None:
        if self.steps > _DENSE_STEPS:
            raise ValueError(
                f"steps must be at most {_DENSE_STEPS} for a dense matrix, got {self.steps}."
            )

    def error_profile(self, workload: Workload = PREFIX_SUMS) -> Array:
        """Return the standard deviation of each row of A C^-1 z, shape (T,), in units of z."""
        validate.instance(Workload, workload=workload)
        return np.asarray(np.linalg.norm(workload.accumulate(self.inverse()), axis=1))

    def max_error(
        self, workload: Workload = PREFIX_SUMS, *, participation: Participation | None = None
    ) -> float:
        """Return the largest standard deviation of a coordinate of A C^-1 z.

        Parameters
        ----------
        workload
            The workload A.
        participation
            If given, the error is multiplied by the sensitivity under this schema: you can compare
            strategies by it, as they then have the same epsilon.
        """
        return float(self.error_profile(workload).max()) * self._scale(participation)

    def mean_error(
        self, workload: Workload = PREFIX_SUMS, *, participation: Participation | None = None
    ) -> float:
        """Return the root mean square over steps of :meth:`error_profile`.

        Parameters
        ----------
        workload
            The workload A.
        participation
            If given, the error is multiplied by the sensitivity under this schema.
        """
        mean_square = float((self.error_profile(workload) ** 2).mean())
        return float(np.sqrt(mean_square)) * self._scale(participation)

    def _scale(self, participation: Participation | None) -> float:
        return 1.0 if participation is None else self.sensitivity(participation).value

    def event(
        self,
        noise_multiplier: float,
        participation: Participation | None = None,
        *,
        neighboring_relation: str = "replace-special",
    ) -> events.DpEvent:
        """Return the event of the whole run, without amplification by sampling.

        The run is one Gaussian mechanism with standard deviation noise_multiplier / sensitivity,
        also for contributions chosen adaptively (Denisov et al. 2022).

        Parameters
        ----------
        noise_multiplier
            Standard deviation > 0 of z, in units of the clipping norm (not of the sensitivity).
        participation
            The guarantee of the data pipeline; ``Single()`` when omitted.
        neighboring_relation
            ``"replace-special"`` (one record's contributions become zero), ``"replace-one"``
            (another record takes its place and its steps; accountants count twice the sensitivity),
            or ``"add-or-remove-one"``, for schemas with ``independent=True`` only.

        Raises
        ------
        UnsupportedEvent
            For adding or removing a record if that may change other records' steps.
        """
        neighboring_relation = validate.relation(neighboring_relation)
        sigma = validate.positive(noise_multiplier=noise_multiplier)
        schema = Single() if participation is None else participation
        validate.choice(RELATIONS, neighboring_relation=neighboring_relation)
        if neighboring_relation == "add-or-remove-one" and not schema.independent:
            raise UnsupportedEvent(
                "Adding or removing a record may change the steps of others under a schedule of "
                f"the data set ({schema}): no theorem here prices that. Use 'replace-special', or "
                "a schema with independent=True if each record's steps are fixed by themselves."
            )
        return events.GaussianDpEvent(sigma / self.sensitivity(schema).value)

    def to_dict(self) -> dict[str, Any]:
        """Return the strategy as JSON values."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}  # type: ignore[arg-type]
        plain = {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }
        return {"strategy": self.kind, **plain}

    def to_json(self) -> str:
        """Return the strategy as a JSON document that :meth:`from_json` reads, bit for bit."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @staticmethod
    def from_dict(document: Mapping[str, Any]) -> Strategy:
        """Return the strategy that :meth:`to_dict` wrote."""
        if not isinstance(document, Mapping):
            raise TypeError(f"document must be a mapping, got {type(document).__name__}.")
        for module in _OWN:
            import_module(module, __package__)
        kind = validate.choice(tuple(sorted(_KINDS)), strategy=document.get("strategy"))
        fields = {name: value for name, value in document.items() if name != "strategy"}
        try:
            return _KINDS[kind](**fields)
        except TypeError as error:
            raise ValueError(f"document is not a strategy of kind {kind!r}: {error}.") from error

    @staticmethod
    def from_json(text: str) -> Strategy:
        """Return the strategy that :meth:`to_json` wrote.

        >>> from dpcal.accountants.matrix import LambdaCGD
        >>> Strategy.from_json(LambdaCGD(100, 0.9).to_json())
        LambdaCGD(steps=100, decay=0.9)
        """
        must = "text must be a strategy in JSON"
        fields = fields_of(text, must)
        with read_as(must):
            return Strategy.from_dict(fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Strategy):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash(self.to_json())


class Toeplitz(Strategy):
    """A strategy with a matrix that is constant along diagonals: the first column determines it."""

    @property
    @abstractmethod
    def coefficients(self) -> Array:
        """First column of C, shape (T,)."""

    @cached_property
    def inverse_coefficients(self) -> Array:
        """First column of C^-1, shape (T,)."""
        return read_only(inverse_series(self.coefficients[: self.bands], self.steps, fast=True))

    @property
    def nonnegative(self) -> bool:
        """Whether every entry of C is >= 0."""
        return bool(self.coefficients.min() >= 0)

    def matrix(self) -> Array:
        """Return C, shape (T, T)."""
        self._affordable()
        return toeplitz(self.coefficients, np.zeros(self.steps))

    def recurrence(self, dimension: int) -> Recurrence:
        """Return the recurrence that keeps the fewest rows."""
        if self.inverse_bands is not None:
            return Filter(dimension, self.inverse_coefficients[: self.inverse_bands])
        if self.bands is not None:
            return Feedback(dimension, self.coefficients[: self.bands])
        inverse = self.inverse_coefficients
        return Rows(dimension, self.steps, lambda step: inverse[step::-1])

    def sensitivity(self, participation: Participation) -> Sensitivity:
        """Return the largest norm of one record's part of C G; see the base class."""
        return sensitivities.of_toeplitz(self.coefficients, self.bands, participation)

    def error_profile(self, workload: Workload = PREFIX_SUMS) -> Array:
        """Return the standard deviation of each row of A C^-1 z, shape (T,), in units of z."""
        validate.instance(Workload, workload=workload)
        return workload.norms(self.inverse_coefficients)
