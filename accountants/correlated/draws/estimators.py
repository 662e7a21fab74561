r"""Estimators of delta: plain draws, draws for balls in bins, and tilted draws.

Removing a record costs H(P || Q) = E_P[(1 - e^eps / L)_+], and adding one costs
H(Q || P) = E_Q[(1 - e^eps L)_+]. Each estimator draws from a law of its own and keeps bounds on
log L from above and below. Terms at every epsilon follow from these bounds: the mean of the terms
is at least delta, or at most delta.

===================== =========================================== ================================
estimator             law                                         range of the terms
===================== =========================================== ================================
``Direct``            P, outputs with the record                  1
``Direct``, adding    Q, outputs without the record               1
``Tilted``            B^q Q / E[B^q], B >= L without overlaps     a Renyi bound of order q
``Bins``              L^q Q / E[L^q], in one dimension a bin      1 for q = 1, or the Renyi bound
===================== =========================================== ================================

**Tilted draws** come from a power of a bound on likelihood ratios. For C >= 0 the overlaps of
different rounds of a record are >= 0. Leaving them out gives, pointwise,

    L(x) <= B(x) = E_y exp(sum_t y_t (a_t - G_tt / 2)).

Q B^q is a mixture of N(C N, sigma^2 I), where N = y_1 + ... + y_q counts the participations of q
replicas, with weights

    W(N) = P(N) exp(sum_t (G_tt N_t (N_t - 1) / 2 + N_t sum_{u < t} G_tu N_u)).

The sum Z of these weights is a moment of
:class:`~dpcal.accountants.correlated.bounds.replicas.ReplicaMoments`. So delta = E_Q (L - e^eps)_+
is the mean of Z (L - e^eps)_+ / B^q over draws of Q B^q / Z. These terms are at most Z c
e^{-(q - 1) eps}, c = (q - 1)^(q - 1) / q^q: the Renyi bound of order q.

With little noise the range of B is far too large, because neighboring rounds overlap much. Then
``shared`` is 1: draws come from Q D / Z, with D the same mixture with weights P(N) exp((1 - 1 / q)
||C N||^2 / (2 sigma^2)). D >= L^q holds because sum_i ||C y_i||^2 >= ||C N||^2 / q (Cauchy and
Schwarz), so that the mean of Z (L - e^eps)_+ / L^q is at least delta. These draws bound delta from
above only.

Counts are drawn forward in time, with the table of weights of later rounds that the moment leaves.
Where the table holds a polygon above a convex function of a sum, a draw gets a weight of at most 1
instead of 1. The terms then keep their mean, and stay below the range that the polygon proves.

>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> mechanism = Mechanism.of(LambdaCGD(50, 0.5), noise_multiplier=3.0)
>>> plain = Direct(Likelihood(mechanism, Poisson(0.02).automaton(50), mechanism.memory))
>>> terms = plain.terms(plain.draw(1000, np.random.default_rng(0)), 0.2)
>>> bool(0 < terms.mean() < terms.max() <= plain.largest(0.2))
True
>>> tilted = Tilted(plain.engine, Joining.of(Poisson(0.02), 50), 6)
>>> kept = tilted.draw(500, np.random.default_rng(0))
>>> bool(0 < tilted.terms(kept, 0.2).max() <= tilted.largest(0.2) < 0.03)
True
>>> bins = Bins(np.eye(50), "remove", order=2)
>>> kept = bins.draw(1000, np.random.default_rng(0))
>>> bool(bins.terms(kept, 0.5).max() <= bins.largest(0.5) < 0.2)
True
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dpcal._ext import tilted as kernels
from dpcal.accountants.correlated.bounds.joining import Joining
from dpcal.accountants.correlated.bounds.replicas import (
    Key,
    ReplicaMoments,
    ReplicaSum,
    log_tangent,
)
from dpcal.accountants.correlated.likelihood import Likelihood
from dpcal.accountants.correlated.mechanism import distinct
from dpcal.errors import UnsupportedEvent

Floats = NDArray[np.float64]

# Cells of the polygon of draws: their weights are then within 1e-4 of 1.
_CELLS = 1500
# Most entries of a table: 128 MB.
_LARGEST_TABLE = 2**24
# Log of a ratio of ranges, from which draws that only bound delta from above are worth it.
_WORTH = math.log(30)
_HOPELESS = 600.0


def _rising(log_l: Floats, epsilon: float) -> Floats:
    """Return (1 - e^(epsilon - l))_+."""
    return np.where(log_l > epsilon, -np.expm1(np.minimum(epsilon - log_l, 0.0)), 0.0)


class Estimator:
    """Draws from a law, and terms that estimate delta of one direction.

    Each draw keeps rows: bounds on log L from above and below and, where draws are not plain, the
    logarithm of Q over the law.

    Attributes
    ----------
    direction
        ``"remove"`` or ``"add"``.
    order
        1 for plain draws, else the order q of a Renyi bound.
    log_moment
        Logarithm of E_Q of the power that tilts.
    """

    direction: str = "remove"
    order: int = 1
    log_moment: float = 0.0

    @property
    def steps(self) -> int:
        """Rounds of a draw."""
        raise NotImplementedError

    def draw(self, size: int, generator: np.random.Generator) -> Floats:
        """Return the rows of some draws, shape (rows, size)."""
        raise NotImplementedError

    def terms(self, kept: Floats, epsilon: float, *, above: bool = True) -> Floats:
        """Return terms >= 0 with a mean of at least delta, or at most delta if not ``above``."""
        if self.direction == "add":
            return _rising(-kept[1 if above else 0], epsilon)
        loss = kept[0 if above else 1]
        terms = _rising(loss, epsilon)
        if self.order == 1:
            return terms
        # A draw in doubt has no known weight: its term is the largest one above, and 0 below.
        power = np.where(np.isnan(kept[2]), np.inf if above else -np.inf, kept[2] + loss)
        return np.asarray(
            np.minimum(terms * np.exp(np.minimum(power, _HOPELESS)), self.largest(epsilon))
        )

    def largest(self, epsilon: float) -> float:
        """Return a proved bound on the terms, which is 1 for plain draws."""
        if self.order == 1:
            return 1.0
        exponent = log_tangent(self.order, epsilon) + self.log_moment
        return math.exp(min(exponent, _HOPELESS)) * (1 + 1e-6)


@dataclass(frozen=True, eq=False)
class Direct(Estimator):
    """Draws of outputs with the record, or without it, one value for each round.

    Parameters
    ----------
    engine
        The likelihood ratios of the run.
    direction
        ``"remove"`` for outputs with the record, or ``"add"``.
    """

    engine: Likelihood
    direction: str = field(default="remove", kw_only=True)

    @property
    def steps(self) -> int:
        """Number of rounds, which is the number of values of one draw."""
        return self.engine.mechanism.steps

    def noisy_fields(self, x: Floats, generator: np.random.Generator) -> Floats:
        """Return the fields of x with a draw from Q added to each column."""
        mechanism = self.engine.mechanism
        return mechanism.fields(x + mechanism.sigma * generator.standard_normal(x.shape))

    def sides(self, a: Floats) -> Floats:
        """Return bounds on log L above and below it, of shape (2, draws); infinite if in doubt."""
        high, slack = self.engine.log_ratio(a), self.engine.slack
        low = high if self.engine.exact else self.engine.log_ratio(a, above=False)
        above = np.where(np.isnan(high), np.inf, high + slack)
        return np.stack([above, np.where(np.isnan(low), -np.inf, low - slack)])

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        mechanism, x = self.engine.mechanism, np.zeros((self.steps, draws))
        if self.direction == "remove":
            x = mechanism.means(self.engine.law.sample(draws, generator)[0])
        return self.sides(self.noisy_fields(x, generator))


@dataclass(frozen=True, eq=False)
class Bins(Estimator):
    """Balls in bins: the likelihood ratio in one dimension for each bin.

    L = mean_k exp(u_k - A_kk / 2), where u = M^T x / sigma^2 and A = M^T M / sigma^2 for the means
    M of the bins. For order q = 2 or 3, draws from L^q Q / E_Q[L^q] come from q-tuples of bins with
    probability proportional to exp of their overlaps, and the terms never exceed the order-q Renyi
    conversion of delta.

    Parameters
    ----------
    gram
        A, of shape (bins, bins).
    direction
        ``"remove"`` or ``"add"``.
    order
        1, 2 or 3; 1 for adding.
    """

    gram: Floats
    direction: str
    order: int = 1

    @property
    def steps(self) -> int:
        """Number of bins, which is the number of values of one draw."""
        return len(self.gram)

    @cached_property
    def _root(self) -> Floats:
        values, vectors = np.linalg.eigh(self.gram)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))

    @cached_property
    def _tuples(self) -> Floats:
        """Return log-weights of the q-tuples of bins."""
        A = self.gram
        if self.order == 1:
            return np.zeros(A.shape[0])
        return A if self.order == 2 else A[:, :, None] + A[:, None, :] + A[None]

    @cached_property
    def log_moment(self) -> float:  # type: ignore[override]
        """Log E_Q[L^order]."""
        return float(logsumexp(self._tuples)) - self.order * math.log(self.gram.shape[0])

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the values that are kept of each draw, shape (rows, draws)."""
        bins = self.gram.shape[0]
        u = generator.standard_normal((draws, bins)) @ self._root.T
        if self.direction == "remove":
            reached = np.cumsum(np.exp(self._tuples - self._tuples.max()).ravel())
            chosen = np.searchsorted(reached, generator.random(draws) * reached[-1], side="right")
            chosen = np.minimum(chosen, reached.size - 1)
            for bin_of in np.unravel_index(chosen, self._tuples.shape):
                u += self.gram[bin_of]
        u -= 0.5 * np.diagonal(self.gram)
        log_l = logsumexp(u, axis=1) - math.log(bins)
        return np.stack([log_l, log_l, self.log_moment - self.order * log_l])


class _Table(NamedTuple):
    """Weights of later rounds: distinct rows, the row of each round, and each round's weight."""

    rows: Floats
    places: NDArray[np.intp]
    norms: Floats
    log_moment: float


@dataclass(frozen=True, eq=False)
class Tilted(Direct):
    """Draws of B^q Q / E[B^q], with the terms (L - e^eps)_+ / (B^q / E[B^q]).

    Parameters
    ----------
    engine
        The likelihood ratios of the run.
    joining
        Law of the participations of a record.
    order
        Whole number q >= 2.
    shared
        0 for B^q, or 1 for D.
    """

    joining: Joining
    order: int
    shared: float = 0.0

    @cached_property
    def _sum(self) -> ReplicaSum:
        moments = ReplicaMoments(self.engine.mechanism, self.joining)
        return moments.total(Key(0, self.order, self.shared), _CELLS)

    @cached_property
    def _table(self) -> _Table | None:
        """Weights of rounds, with repeated rows of later rounds; None without a moment."""
        T, period = self.engine.mechanism.steps, self.joining.period
        kept: list[tuple[int, float, Floats]] = []

        def keep(t: int, scale: float, now: Floats) -> None:
            if len(kept) * now.size > _LARGEST_TABLE:
                raise MemoryError
            kept.append((t, scale, now.copy()))

        log_moment = math.inf
        with suppress(MemoryError):
            log_moment = self._sum.log(keep)
        if math.isinf(log_moment):
            return None
        rows = [np.ones_like(kept[0][2]), *(row for _, _, row in kept)]
        places, norms = np.zeros(T + 1, dtype=np.intp), np.empty(T)
        for place, (t, scale, _) in enumerate(kept, 1):
            places[t], norms[t] = place, scale
        for t in range(T - 1, -1, -1):
            if not places[t]:
                places[t], norms[t] = places[t + period], norms[t + period]
        return _Table(np.stack(rows), places, norms, log_moment)

    @property
    def log_moment(self) -> float:  # type: ignore[override]
        """A bound on log E_Q[B^q]; infinite if there is none."""
        return math.inf if self._table is None else self._table.log_moment

    def counts(self, draws: int, generator: np.random.Generator) -> tuple[Floats, Floats]:
        """Return drawn counts, of shape (steps, draws), and logarithms of their weights.

        A weight is the weight of the counts over the probability of drawing them.
        """
        table, made, mechanism = self._table, self._sum.tables, self.engine.mechanism
        if made is None or table is None:
            raise UnsupportedEvent(f"Draws of order {self.order} have no finite range here.")
        each = len(made.sums) // len(made.windows)
        decay, scale, per_cell = 0.0, 0.0, 0.0
        if each > 1:
            assert mechanism.walk is not None
            (decay, scale), per_cell = mechanism.walk, (each - 1) / made.sums[-1]
        counts, log_weights = kernels.replica_draws(
            table.rows,
            table.places,
            table.norms,
            *self._factors,
            np.ascontiguousarray(np.where(made.to[:, ::each] < 0, -1, made.to[:, ::each] // each)),
            np.ascontiguousarray(made.free[:, ::each]),
            (self.joining.epoch, each),
            (decay, scale, (1 - self.shared / self.order) / mechanism.variance, per_cell),
            np.zeros(draws, dtype=np.intp),
            generator,
        )
        return counts, log_weights + float(np.log(table.norms).sum())

    @cached_property
    def _factors(self) -> tuple[Floats, NDArray[np.intp], Floats, NDArray[np.intp]]:
        """Return probabilities and weights of counts by kinds of rounds, and each round's kinds."""
        total, mechanism = self._sum, self.engine.mechanism
        rounds, (products, kinds) = self.joining.chances[:, None], total.products
        if total.past is None:
            gains = np.stack([total.gains(row) for row in products])
        else:
            rounds = np.column_stack([rounds, mechanism.energies])
            assert total.tables is not None
            gains = np.ones((1, 1, len(total.tables.windows)))
        first, chances_of = distinct(rounds)
        return total.chances(first), chances_of, gains, kinds

    def draw(self, draws: int, generator: np.random.Generator) -> Floats:
        """Return the numbers that are kept of draws, shape (rows, draws)."""
        mechanism = self.engine.mechanism
        counts, log_weight = self.counts(draws, generator)
        a = self.noisy_fields(mechanism.means(counts), generator)
        sides = self.sides(a)
        power = sides[1]
        if not self.shared:
            product = replace(self.engine, memory="none")
            power = product.log_ratio(a) - product.slack
        return np.concatenate([sides, (log_weight - self.order * power)[None]])

    def terms(self, kept: Floats, epsilon: float, *, above: bool = True) -> Floats:
        """Return terms >= 0 with a mean of at least delta, or at most delta if not ``above``."""
        if self.shared and not above:
            return np.zeros(kept.shape[1])
        return super().terms(kept, epsilon, above=above)


def best_tilt(engine: Likelihood, joining: Joining | None, epsilon: float) -> Tilted | None:
    """Return the draws with the least range at an epsilon; None if no order has a finite one."""
    if joining is None:
        return None
    moments = ReplicaMoments(engine.mechanism, joining)
    (best, order), shared = moments.best_order(epsilon), 0.0
    if engine.mechanism.walk is not None:
        other, second = moments.best_order(epsilon, shared=1.0)
        if other < best - _WORTH:
            order, shared = second, 1.0
    tilted = Tilted(engine, joining, order, shared=shared)
    return None if math.isinf(tilted.log_moment) else tilted
