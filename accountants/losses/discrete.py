"""Mechanisms whose privacy loss is discrete: randomized response, discrete Laplace.

>>> loss = randomized_response(noise_parameter=0.5, num_buckets=2)
>>> print(f"{loss.upper:.6f}")                      # log((1 - p + p / k) / (p / k))
1.098612
>>> log_delta, _ = loss.log_delta(0.0)              # total variation distance: 1/2
>>> print(f"{math.exp(log_delta):.6f}")
0.500000
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dpcal._internal import validate
from dpcal._internal.lazy import special
from dpcal.accountants.losses.base import Parts, Points, PrivacyLoss, Reals
from dpcal.accountants.rounding import UNIT, sum_up

_MAX_SUMS = 1 << 15
# Relative error of a value that is the logarithm of few operations on positive numbers.
ROUNDING = 10 * UNIT


class AtomLoss(PrivacyLoss):
    """A privacy loss with atoms only."""

    quick = False


def atoms(values: Reals, log_reference: Reals, sizes: Reals, **limits: Any) -> Points:
    """Return points from values, log masses under Q, and sizes of the values' terms."""
    return Points(values, log_reference + values, sizes, np.abs(log_reference) + sizes, **limits)


class DiscreteLoss(AtomLoss):
    """A privacy loss with finitely many values."""

    log_reference: tuple[float, ...]
    value_rounding: float
    """Relative error of the largest value, which is >= 0."""

    @property
    @abstractmethod
    def values(self) -> Reals:
        """The values of the loss, increasing."""

    @property
    def upper(self) -> float:
        """The largest value, rounded up."""
        return float(self.values[-1]) * (1 + self.value_rounding)

    def points(self, highest: float, *, shifted: bool = False) -> Points:
        """Return the values, which serve all tilts and times."""
        reference = np.array(self.log_reference)
        return atoms(self.values, reference, self._value_sizes, highest=math.inf)

    def log_mgf_bound(self, c: float) -> float:
        """Return c times the largest value."""
        return c * self.upper

    @property
    def _value_sizes(self) -> Reals:
        """Size of the terms of each value, to which its rounding is relative."""
        return np.abs(self.values)

    def log_delta(self, epsilon: float) -> tuple[float, float]:
        """Return the sum over values above epsilon."""
        log_masses = np.array(self.log_reference) + self.values
        return hockey_stick(log_masses, self.values, epsilon)


@dataclass(frozen=True)
class LatticeLoss(DiscreteLoss):
    """A privacy loss with finitely many values: an offset plus multiples of one unit.

    Parameters
    ----------
    unit
        Spacing > 0 of the values.
    multiples
        The values over the unit, increasing whole numbers.
    log_reference
        Log probability of each value under Q; under P it is that plus the value.
    name
        Name of the mechanism.
    offset
        A number that is added to every value.
    value_rounding
        Relative error of the largest value, in addition to a product's and a sum's.
    """

    unit: float
    multiples: tuple[int, ...]
    log_reference: tuple[float, ...]
    name: str
    offset: float = 0.0
    value_rounding: float = field(default=0.0, repr=False)

    @property
    def values(self) -> Reals:
        """The values of the loss."""
        return self.offset + self.unit * np.array(self.multiples, dtype=float)

    @property
    def upper(self) -> float:
        """The largest value, rounded up."""
        if self.value_rounding > 0:
            return super().upper
        return sum_up((self.offset, self.unit), (1, self.multiples[-1]))

    @property
    def _value_sizes(self) -> Reals:
        """Size of the terms of each value."""
        sizes: Reals = self.unit * np.abs(np.array(self.multiples, dtype=float))
        return abs(self.offset) + sizes


@dataclass(frozen=True)
class ResponseLoss(LatticeLoss):
    """The privacy loss of randomized response, for the most revealing answer.

    Parameters
    ----------
    noise_parameter, num_buckets
        p in (0, 1), the probability of answering uniformly at random, and the number k of answers.
    blank
        Which of both laws is uniform: "P", "Q", or neither.
    """

    noise_parameter: float = 0.5
    num_buckets: int = 2
    blank: str = ""

    def __repr__(self) -> str:
        return f"ResponseLoss({self.name!r})"


@dataclass(frozen=True)
class ScatteredLoss(DiscreteLoss):
    """A privacy loss with finitely many values, anywhere.

    Parameters
    ----------
    places
        The values, increasing.
    log_reference
        Log probability of each value under Q; under P it is that plus the value.
    name
        Name of the mechanism.
    sampling_probability
        Probability that the output depends on the record at all.
    below
        A loss that the true loss dominates, if this loss is rounded up; None otherwise.
    value_rounding
        Relative error of the largest value.
    surplus
        Log of the mass of Q: P is given that nothing fails, and Q may fail at another rate.
    """

    places: tuple[float, ...]
    log_reference: tuple[float, ...]
    name: str
    sampling_probability: float = 1.0
    below: PrivacyLoss | None = None
    value_rounding: float = ROUNDING
    surplus: float = 0.0

    def __repr__(self) -> str:
        return f"ScatteredLoss({self.name!r})"

    @property
    def values(self) -> Reals:
        """The values of the loss."""
        return np.array(self.places)

    @property
    def log_unaffected(self) -> float:
        """Log probability that the record is not sampled."""
        q = self.sampling_probability
        return math.log1p(-q) if q < 1 else -math.inf


def hockey_stick(
    log_masses: Reals, values: Reals, epsilon: float, error: float = 0.0, size: float = 0.0
) -> tuple[float, float]:
    """Return log delta(epsilon) of a law with finitely many losses, and its relative error.

    Parameters
    ----------
    log_masses
        Log of the masses under P.
    values
        The losses.
    epsilon
        Any finite number >= 0.
    error
        Relative error of the masses.
    size
        Size of the terms of the losses: their rounding is relative to it and to themselves.

    Returns
    -------
    (float, float)
        The error is infinite where rounding decides whether any loss exceeds epsilon.
    """
    slack = 8 * UNIT * (np.abs(values) + abs(epsilon) + size)
    gaps, near = values - epsilon, values - epsilon > -slack
    if not near.any():
        return -math.inf, 0.0
    logs, gaps, top = log_masses[near], np.maximum(gaps[near], 0.0), log_masses[near].max()
    masses = np.exp(logs - top)
    terms = masses * -np.expm1(-gaps)
    total = float(terms.sum())
    if total == 0:
        return -math.inf, math.inf
    # A loss that is off by its rounding moves its term by at most its mass times that.
    moved = float(masses @ slack[near]) + 8 * UNIT * float(terms @ np.abs(logs))
    return float(top) + math.log(total), error + 32 * UNIT + moved / total


_Sum = tuple[Reals, Reals, float, float]


def log_delta_of_sum(parts: Parts, epsilon: float) -> tuple[float, float] | None:
    """Return log delta(epsilon) of a sum of few values, and its relative error.

    Parameters
    ----------
    parts
        Losses that add up, and how often each, at least once.
    epsilon
        Any finite number >= 0.

    Returns
    -------
    (float, float) or None
        None if a loss is not discrete, or if the law of the sum has too many values.
    """
    law = _law_of_sum(parts)
    if law is None:
        return None
    values, logs, error, size = law
    return hockey_stick(logs, values, epsilon, error, size)


@lru_cache(maxsize=64)
def _law_of_sum(parts: Parts) -> _Sum | None:
    """Return the law of a sum."""
    total: _Sum = (np.zeros(1), np.zeros(1), 0.0, 0.0)
    for loss, times in parts:
        found = _counts(loss, times) if isinstance(loss, DiscreteLoss) else None
        if found is None or len(total[0]) * len(found[0]) > _MAX_SUMS:
            return None
        values, logs = (
            np.add.outer(x, y).ravel() for x, y in zip(total[:2], found[:2], strict=True)
        )
        total = (values, logs, total[2] + found[2] + 8 * UNIT, total[3] + found[3])
    return total


def _counts(loss: DiscreteLoss, times: int) -> _Sum | None:
    """Return the law of a loss that adds up, by how often it has each of its values."""
    values = loss.values
    if times > _MAX_SUMS or math.comb(times + len(values) - 1, times) > _MAX_SUMS:
        return None
    masses = np.array(loss.log_reference) + values
    log_factorials = special.gammaln(np.arange(1.0, times + 2.0))
    left, sums, logs = np.array([times]), np.zeros(1), np.array([log_factorials[-1]])
    for value, mass in zip(values[:-1], masses[:-1], strict=True):
        each = np.repeat(np.arange(len(left)), left + 1)
        count = np.arange(len(each)) - np.repeat(np.cumsum(left + 1) - left - 1, left + 1)
        left, sums = left[each] - count, sums[each] + count * value
        logs = logs[each] + count * mass - log_factorials[count]
    sums, logs = sums + left * values[-1], logs + left * masses[-1] - log_factorials[left]
    size = 2 * times * float(loss._value_sizes.max())
    logged = float(log_factorials[-1]) + times * float(np.abs(loss.log_reference).max()) + size
    return sums, logs, UNIT * (16 + 8 * logged), size


def _response(noise_parameter: float, num_buckets: int) -> tuple[float, int, str]:
    """Return the checked probability of an answer at random, number of answers, and name."""
    p = validate.probability(noise_parameter=noise_parameter)
    k = validate.count(num_buckets=num_buckets)
    if k < 2:
        raise ValueError(f"num_buckets must be a whole number >= 2, got {num_buckets!r}.")
    return p, k, f"randomized response({p!r}, {k})"


def _own_over_other(p: float, k: int) -> float:
    """Return the log of the ratio of probabilities of a record's own answer and of another answer.

    The ratio is 1 + (1 - p) k / p; the form below keeps its digits for p near 1.
    """
    odds = (1 - p) * k / p
    return math.log1p(odds) if odds < 1e300 else math.log1p(-p) + math.log(k) - math.log(p)


def randomized_response(*, noise_parameter: float, num_buckets: int) -> ResponseLoss:
    """Return the loss of randomized response when a record is replaced, the same both ways.

    Parameters
    ----------
    noise_parameter
        p in (0, 1), the probability of answering uniformly at random.
    num_buckets
        k >= 2.
    """
    p, k, name = _response(noise_parameter, num_buckets)
    own, other = math.log1p(-p * (1 - 1 / k)), math.log(p) - math.log(k)
    multiples: tuple[int, ...] = (-1, 1)
    logs: tuple[float, ...] = (own, other)
    if k > 2:
        multiples, logs = (-1, 0, 1), (own, math.log(p) + math.log1p(-2 / k), other)
    return ResponseLoss(_own_over_other(p, k), multiples, logs, name, 0.0, ROUNDING, p, k)


def blanked_response(
    *, noise_parameter: float, num_buckets: int
) -> tuple[ResponseLoss, ResponseLoss]:
    """Return the losses of randomized response against a record that is answered for uniformly.

    The first has the record's own law as P and the uniform one as Q, the second the reverse. For
    the parameters see :func:`randomized_response`.
    """
    p, k, name = _response(noise_parameter, num_buckets)
    uniform, unit = math.log1p(-1 / k), _own_over_other(p, k)
    # The record's own answer is k own times as likely as under the uniform law, others p times.
    most = math.log1p((1 - p) * (k - 1))
    reference = (uniform, -math.log(k))
    to_blank, steps = f"{name} against blank", (-1, 0)
    law = ResponseLoss(unit, steps, reference, to_blank, most, ROUNDING, p, k, "Q")
    reference = (math.log1p(-p * (1 - 1 / k)), uniform + math.log(p))
    from_blank, most = f"blank against {name}", -math.log(p)
    blank = ResponseLoss(unit, steps, reference, from_blank, most, ROUNDING, p, k, "P")
    return law, blank


def pure(epsilon: float) -> LatticeLoss:
    """Return the loss that dominates every epsilon-private mechanism, the same both ways.

    This is the loss of binary randomized response (Kairouz, Oh and Viswanath 2015).

    Parameters
    ----------
    epsilon
        A finite number > 0.
    """
    heads = -math.log1p(math.exp(-epsilon))
    return LatticeLoss(epsilon, (-1, 1), (heads, heads - epsilon), f"{epsilon!r}-private")


def discrete_laplace(*, noise_parameter: float, sensitivity: int) -> LatticeLoss:
    """Return the loss of the discrete Laplace mechanism, the same in both directions.

    Parameters
    ----------
    noise_parameter
        a > 0: the noise x has probability exp(-a abs(x)) tanh(a / 2).
    sensitivity
        Shift s >= 1, a whole number, between neighbors.
    """
    a, s = noise_parameter, sensitivity
    # Under Q the loss of x is a (abs(x) - abs(x - s)): -a s for x <= 0, and a s for x >= s.
    tail = -math.log1p(math.exp(-a))
    inner = [math.log(math.tanh(a / 2)) - a * x for x in range(1, s)]
    masses = [tail, *inner, tail - a * s]
    return LatticeLoss(
        a, tuple(range(-s, s + 1, 2)), tuple(masses), f"discrete Laplace({a!r}, {s})"
    )
