"""Toeplitz strategies: independent noise, lambda-CGD, banded, square roots, and buffered.

>>> root = SquareRoot(256)
>>> print(f"{root.max_error() ** 2:.10f}")
2.8310499319
>>> print(f"{BISR(256, 4).mean_error() ** 2:.7f}")
13.6455536
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpcal._internal import validate
from dpcal.accountants.limits import hold
from dpcal.accountants.matrix import optimise
from dpcal.accountants.matrix.base import Toeplitz, read_only, refuse_explosion
from dpcal.accountants.matrix.participation import Participation
from dpcal.accountants.matrix.recurrences import Buffers, Recurrence, inverse_series
from dpcal.accountants.matrix.workloads import PREFIX_SUMS, Workload

Array = NDArray[np.float64]


class _Family(Toeplitz):
    """A family of strategies, with a search for the best member for a run."""

    _best: ClassVar[Callable[..., tuple[Any, ...]]]
    """Maps an objective and the family's size to the best member's fields after ``steps``."""

    @classmethod
    def optimised(
        cls,
        steps: int,
        *size: int,
        participation: Participation | None = None,
        workload: Workload = PREFIX_SUMS,
        error: str = "mean",
        **named: int,
    ) -> Self:
        """Return the member of least error times sensitivity, locally so with several parameters.

        Parameters
        ----------
        steps
            Number of steps, >= 1.
        *size, **named
            ``bands`` of C in [1, steps] for ``Banded``, ``inverse_bands`` of C^-1 in [1, steps] for
            ``BIFR`` and ``BandedInverse``, and ``buffers`` >= 1, with scales > 0, for ``BLT``; none
            for ``LambdaCGD``.
        participation
            A :class:`~dpcal.accountants.matrix.Participation`: at most once when omitted.
        workload
            A :class:`~dpcal.accountants.matrix.Workload`: the sums of answers that the error
            measures.
        error
            ``"mean"`` or ``"max"``, over the steps.

        >>> print(f"{LambdaCGD.optimised(1000).decay:.4f}")
        0.9562
        >>> print(f"{Banded.optimised(100, 2).coefficients[1]:.4f}")
        0.7615
        >>> print(f"{BIFR.optimised(1000, inverse_bands=2).exponent:.4f}")
        0.9562
        >>> from dpcal.accountants.matrix import Single
        >>> blt = BLT.optimised(256, buffers=3, error="max")
        >>> best = SquareRoot(256)
        >>> blt.max_error() * blt.sensitivity(Single()).value < 1.01 * best.max_error() ** 2
        True
        """
        objective = optimise.Objective(steps, participation, workload, error)
        return cls(objective.steps, *cls._best(objective, *size, **named))  # type: ignore[call-arg]


@dataclass(frozen=True, eq=False)
class Identity(Toeplitz):
    """Independent noise at every step: C is the identity, as in DP-SGD.

    Parameters
    ----------
    steps
        Number of steps, >= 1.

    >>> Identity(3).matrix().tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """

    kind: ClassVar[str] = "identity"
    steps: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))

    @property
    def bands(self) -> int:
        """One."""
        return 1

    @property
    def inverse_bands(self) -> int:
        """One."""
        return 1

    @cached_property
    def coefficients(self) -> Array:
        """First column of C, shape (T,)."""
        return _padded([1.0], self.steps)


@dataclass(frozen=True, eq=False)
class LambdaCGD(_Family):
    """Noise z_t - decay z_{t-1}: each step subtracts part of the last step's noise.

    C[t, u] = decay^(t - u). The last noise can be drawn again instead of being stored, so that you
    need no more memory than DP-SGD (Kalinin, McKenna, Pagh and Lampert 2026, DP-lambdaCGD).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    decay
        Fraction lambda in [0, 1) of the last noise that is subtracted.

    >>> LambdaCGD(3, 0.5).matrix().tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.25, 0.5, 1.0]]
    """

    kind: ClassVar[str] = "lambda-CGD"
    _best = staticmethod(optimise.lambda_cgd)
    steps: int
    decay: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))
        decay = validate.non_negative(decay=self.decay)
        if decay >= 1:
            raise ValueError(f"decay must be a number in [0, 1), got {self.decay!r}.")
        object.__setattr__(self, "decay", decay)

    @property
    def bands(self) -> int | None:
        """One without correlation, otherwise None: all."""
        return None if self.decay else 1

    @property
    def inverse_bands(self) -> int:
        """Two, or one without correlation."""
        return 2 if self.decay and self.steps > 1 else 1

    @cached_property
    def coefficients(self) -> Array:
        """First column of C, shape (T,)."""
        hold(4.0 * self.steps, f"steps={self.steps}")
        return read_only(self.decay ** np.arange(self.steps))

    @cached_property
    def inverse_coefficients(self) -> Array:
        """First column of C^-1, shape (T,)."""
        return _padded([1.0, -self.decay][: self.steps], self.steps)


@dataclass(frozen=True, eq=False, init=False, repr=False)
class Banded(_Family):
    """A banded Toeplitz matrix: the noise of a step depends on the last ``bands - 1`` steps.

    Separated columns are orthogonal, which allows amplification by sampling (Choquette-Choo et al.
    2023; Toeplitz: McKenna 2024).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    bands
        Number of nonzero diagonals of C, in [1, steps].
    coefficients
        First entries of the first column, shape (bands,), the first not 0, with an inverse that
        does not explode (no root of c(x) far inside the unit disc). By default the product of mean
        error on prefix sums and sensitivity is least, for participations at least ``bands`` apart;
        :meth:`optimised` minimises others.

    >>> Banded(3, 2, [1.0, 0.5]).matrix().tolist()
    [[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.5, 1.0]]
    """

    kind: ClassVar[str] = "banded"
    _best = staticmethod(optimise.banded)
    steps: int
    bands: int

    def __init__(self, steps: int, bands: int, coefficients: ArrayLike | None = None) -> None:
        object.__setattr__(self, "steps", validate.count(steps=steps))
        object.__setattr__(self, "bands", optimise.checked_bands("bands", bands, self.steps))
        if coefficients is None:
            objective = optimise.Objective(self.steps, None, PREFIX_SUMS, "mean")
            _, coefficients = optimise.banded(objective, self.bands)
        head = _numbers("coefficients", coefficients)
        if len(head) != self.bands:
            raise ValueError(
                f"coefficients must be bands={self.bands} numbers, got {len(head)} of them."
            )
        if head[0] == 0:
            raise ValueError("coefficients must start with a number other than 0: C is singular.")
        object.__setattr__(self, "_column", _padded(head, self.steps))
        with np.errstate(over="ignore", invalid="ignore"):
            enlarged = np.abs(self.coefficients).sum() * np.abs(self.inverse_coefficients).sum()
        refuse_explosion("coefficients", float(enlarged), self.steps)

    @property
    def coefficients(self) -> Array:
        """First column of C, shape (T,), zeros included."""
        column: Array = vars(self)["_column"]
        return column

    def to_dict(self) -> dict[str, Any]:
        """Return the strategy as JSON values."""
        head = self.coefficients[: self.bands].tolist()
        return {**super().to_dict(), "coefficients": head}

    def __repr__(self) -> str:
        head = ", ".join(f"{value:.6g}" for value in self.coefficients[: min(self.bands, 3)])
        more = ", ..." if self.bands > 3 else ""
        return f"Banded(steps={self.steps}, bands={self.bands}, coefficients=[{head}{more}])"


@dataclass(frozen=True, eq=False)
class SquareRoot(Toeplitz):
    """The square root of the prefix-sum matrix, or its first bands.

    c_k = c_{k-1} (1 - 1 / (2 k)), the coefficients of (1 - x)^(-1/2) (Fichtenberger, Henzinger and
    Upadhyay 2023); with ``bands`` the rest is 0 (Kalinin and Lampert 2024).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    bands
        Number of nonzero diagonals, in [1, steps]; with None for all, noise needs the memory of all
        steps.

    >>> SquareRoot(4).coefficients.tolist()
    [1.0, 0.5, 0.375, 0.3125]
    """

    kind: ClassVar[str] = "square root"
    steps: int
    bands: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))
        if self.bands is not None:
            object.__setattr__(
                self, "bands", optimise.checked_bands("bands", self.bands, self.steps)
            )

    @cached_property
    def coefficients(self) -> Array:
        """First column of C, shape (T,)."""
        hold(4.0 * self.steps, f"steps={self.steps}")
        column = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, self.steps)]))
        if self.bands is not None:
            column[self.bands :] = 0.0
        return read_only(column)

    @cached_property
    def inverse_coefficients(self) -> Array:
        """First column of C^-1, shape (T,)."""
        if self.bands is None:
            return read_only(optimise.root_series(self.steps, 0.5))
        return read_only(inverse_series(self.coefficients[: self.bands], self.steps, fast=True))


class _BandedInverse(Toeplitz):
    """C^-1 is banded, with a unit diagonal; C itself is not banded."""

    @property
    @abstractmethod
    def inverse_bands(self) -> int:
        """Number of diagonals of C^-1 that may be nonzero."""

    @property
    def bands(self) -> int | None:
        """One without correlation, otherwise None: all."""
        return None if self.inverse_bands > 1 else 1

    @cached_property
    def coefficients(self) -> Array:
        """First column of C, shape (T,); exact in sign where it sums numbers >= 0."""
        inverse = self.inverse_coefficients[: self.inverse_bands]
        return read_only(inverse_series(inverse, self.steps))


@dataclass(frozen=True, eq=False)
class BandedInverse(_BandedInverse, _Family):
    """C^-1 is banded Toeplitz; :meth:`optimised` has the entries of least error.

    Noise needs as little memory as :class:`BISR`, and less of it for the same error (BandInvMF:
    Kalinin, McKenna, Upadhyay and Lampert 2025).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    head
        The first entries of the first column of C^-1, at most ``steps`` of them; the first is 1,
        and the inverse must not explode. Sensitivities are exact for fixed epochs where the others
        are <= 0, so that C >= 0.

    >>> BandedInverse(4, (1.0, -0.5, -0.25)).coefficients.tolist()
    [1.0, 0.5, 0.5, 0.375]
    >>> from dpcal.accountants.matrix import FixedEpochs
    >>> schema = FixedEpochs(8, 64)
    >>> best = [each.optimised(512, 4, participation=schema) for each in (BandedInverse, BIFR)]
    >>> for each in (*best, LambdaCGD.optimised(512, participation=schema), BISR(512, 4)):
    ...     print(f"{each.mean_error(participation=schema):.3f}")
    10.269
    11.156
    11.635
    18.422
    """

    kind: ClassVar[str] = "banded inverse"
    _best = staticmethod(optimise.banded_inverse)
    steps: int
    head: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))
        head = _numbers("head", self.head)
        optimise.checked_bands("the length of head", len(head), self.steps)
        if head[0] != 1:
            raise ValueError(f"head must start with 1, got {self.head!r}.")
        object.__setattr__(self, "head", tuple(head.tolist()))
        with np.errstate(over="ignore", invalid="ignore"):
            enlarged = np.abs(self.coefficients).sum() * np.abs(head).sum()
        refuse_explosion("head", float(enlarged), self.steps)

    @property
    def inverse_bands(self) -> int:
        """Number of entries of the head."""
        return len(self.head)

    @cached_property
    def inverse_coefficients(self) -> Array:
        """First column of C^-1, shape (T,)."""
        return _padded(self.head, self.steps)


class _InverseRoot(_BandedInverse):
    """C^-1 holds the first coefficients of (1 - x)^exponent."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))
        count = optimise.checked_bands("inverse_bands", self.inverse_bands, self.steps)
        object.__setattr__(self, "inverse_bands", count)

    @property
    def exponent(self) -> float:
        """The exponent of the root."""
        return 0.5

    @cached_property
    def inverse_coefficients(self) -> Array:
        """First column of C^-1, shape (T,)."""
        head = optimise.root_series(self.inverse_bands, self.exponent)
        return _padded(head, self.steps)


@dataclass(frozen=True, eq=False)
class BISR(_InverseRoot):
    """Banded inverse square root: C^-1 holds the first coefficients of (1 - x)^(1/2).

    Asymptotically optimal for several epochs (Kalinin, McKenna, Upadhyay and Lampert 2025). C
    itself is not banded.

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    inverse_bands
        Number of nonzero diagonals of C^-1, in [1, steps].

    >>> BISR(4, 2).inverse_coefficients.tolist()
    [1.0, -0.5, 0.0, 0.0]
    """

    kind: ClassVar[str] = "banded inverse square root"
    steps: int
    # The base class has a property of this name, so the field needs a default; 0 is refused.
    inverse_bands: int = 0


@dataclass(frozen=True, eq=False)
class BIFR(_InverseRoot, _Family):
    """Banded inverse fractional root: C^-1 holds the first coefficients of (1 - x)^exponent.

    With two inverse bands it is :class:`LambdaCGD` with the exponent as its decay, and with
    exponent 1/2 it is :class:`BISR`. C itself is not banded (gamma-BIFR: Kalinin, Rehn, Andersson,
    Honkela and Lampert 2026, arXiv 2605.18379).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    inverse_bands
        Number of nonzero diagonals of C^-1, in [1, steps].
    exponent
        Number gamma in (0, 1).

    >>> BIFR(4, 2, 0.7).inverse_coefficients.tolist()
    [1.0, -0.7, 0.0, 0.0]
    >>> bool(np.allclose(BIFR(9, 2, 0.7).coefficients, LambdaCGD(9, 0.7).coefficients, rtol=1e-13))
    True
    >>> bool((BIFR(9, 4, 0.5).coefficients == BISR(9, 4).coefficients).all())
    True
    """

    kind: ClassVar[str] = "banded inverse fractional root"
    _best = staticmethod(optimise.fractional_root)
    steps: int
    inverse_bands: int = 0
    exponent: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        exponent = validate.positive(exponent=self.exponent)
        if exponent >= 1:
            raise ValueError(f"exponent must be a number in (0, 1), got {self.exponent!r}.")
        object.__setattr__(self, "exponent", exponent)


@dataclass(frozen=True, eq=False)
class BLT(_Family):
    """A buffered linear Toeplitz matrix: c_0 = 1 and c_k = sum_j scales[j] decays[j]^(k-1).

    Noise needs as many rows of memory as there are buffers (Dvijotham et al. 2024; McMahan, Xu and
    Zhang 2024).

    Parameters
    ----------
    steps
        Number of steps, >= 1.
    decays
        Numbers in [0, 1], one for each buffer, at least one.
    scales
        The same number of finite numbers, for which the inverse does not explode.

    >>> BLT(4, (0.5,), (0.5,)).coefficients.tolist()
    [1.0, 0.5, 0.25, 0.125]
    """

    kind: ClassVar[str] = "BLT"
    _best = staticmethod(optimise.blt)
    steps: int
    decays: tuple[float, ...]
    scales: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "steps", validate.count(steps=self.steps))
        decays, scales = _numbers("decays", self.decays), _numbers("scales", self.scales)
        if len(decays) != len(scales):
            raise ValueError(
                "decays and scales must have one length, "
                f"got {len(decays)} decays and {len(scales)} scales."
            )
        if decays.min() < 0 or decays.max() > 1:
            raise ValueError(f"decays must be numbers in [0, 1], got {self.decays!r}.")
        object.__setattr__(self, "decays", tuple(decays.tolist()))
        object.__setattr__(self, "scales", tuple(scales.tolist()))
        # The column of C^-1 is a sum of powers of these: it grows if one is outside the unit disc.
        zeros = np.linalg.eigvals(np.diag(decays) - np.outer(np.ones(len(decays)), scales))
        growth = self.steps * math.log(max(1.0, float(np.abs(zeros).max())))
        refuse_explosion("scales", math.exp(growth) if growth < 700 else math.inf, self.steps)

    @property
    def bands(self) -> int | None:
        """None: all."""
        return None

    @property
    def series(self) -> tuple[Array, Array]:
        """One series for each distinct decay."""
        distinct, place = np.unique(np.array(self.decays), return_inverse=True)
        sums = np.bincount(place, weights=np.array(self.scales))
        return distinct[sums != 0], sums[sums != 0]

    @cached_property
    def coefficients(self) -> Array:
        """First column of C, shape (T,)."""
        hold((3.0 + len(self.decays)) * self.steps, f"steps={self.steps}")
        powers = np.array(self.decays)[:, None] ** np.arange(self.steps - 1)
        return read_only(np.concatenate([[1.0], np.array(self.scales) @ powers]))

    @cached_property
    def inverse_coefficients(self) -> Array:
        """First column of C^-1, shape (T,): entry k > 0 is -s M^(k-1) 1, M = D - 1 s."""
        scales, ones = np.array(self.scales), np.ones(len(self.scales))
        M = np.diag(self.decays) - np.outer(ones, scales)
        block = math.isqrt(self.steps) + 1
        heads, tails = [scales], [ones]
        for _ in range(block - 1):
            heads.append(heads[-1] @ M)
        jump = np.linalg.matrix_power(M, block)
        for _ in range(-(-self.steps // block)):
            tails.append(jump @ tails[-1])
        column = (np.array(tails) @ np.array(heads).T).reshape(-1)
        return read_only(np.append(1.0, -column)[: self.steps])

    def recurrence(self, dimension: int) -> Recurrence:
        """Return the recurrence with one kept row for each buffer."""
        return Buffers(dimension, np.array(self.scales), np.array(self.decays))


def _padded(head: ArrayLike, steps: int) -> Array:
    """Return a read-only column, shape (steps,), that is 0 after its first entries."""
    hold(steps, f"steps={steps:g}")
    column = np.zeros(steps)
    column[: np.size(head)] = head
    return read_only(column)


def _numbers(name: str, values: ArrayLike) -> Array:
    """Return one or more finite numbers, or raise an error in a sentence."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers, got {values!r}.") from error
    if array.ndim != 1 or not len(array) or not all(map(math.isfinite, array)):
        raise ValueError(f"{name} must be one or more finite numbers, got {values!r}.")
    return array
