r"""Bounds on removing a record by Renyi moments: one sum over replicas, for many samplers.

With s the law of a record's participations y, L = sum_y s(y) exp((<C y, x> - ||C y||^2 / 2) /
sigma^2) the likelihood ratio, and G = C^T C / sigma^2 >= 0:

1. For independent replicas y_1, ..., y_q of y, multiplying out L^q and integrating the Gaussian x,

       E_Q L^q = E exp(sum_{i<j} y_i^T G y_j) = E exp((N^T G N - sum_i y_i^T G y_i) / 2),

   with N = y_1 + ... + y_q.

2. A replica's overlap with itself, y^T G y, is at least sum_t G_tt y_t, because G >= 0. With e_t =
   G_tt, therefore,

       E_Q L^q <= E exp(sum_t (e_t N_t (N_t - 1) / 2 + N_t sum_{u<t} G_tu N_u)),

   with equality where two participations of a record have no overlap.

3. Replicas are exchangeable. In a round of chance r each of the f free ones joins: N_t has the law
   Bin(f, r). With Poisson batches all q replicas are free. With b-min-separation the free replicas
   are in none of the last b - 1 counts. With one random round an epoch the free replicas have not
   joined the epoch yet, and r is one over the rounds that are left. So E is a sum over rounds of
   the states (free replicas) x (memory of C), added up from the last round on.

4. Memory: the last counts, as many as C has bands less one. Or, where one number w carries the past
   (w' = decay w + y, the mean of a round is scale w + y), the sum S of the replicas' numbers: then
   ||C N||^2 = sum_t (scale S_t + N_t)^2. The weight of later rounds is a sum of products of convex
   functions >= 0 that increase in S. It is therefore such a function, and its chords on a grid lie
   above it.
   There a record's overlap with itself, sum_i ||C y_i||^2, is also at least ||C N||^2 / q (Cauchy
   and Schwarz), and at least any mean of both bounds.

   A C of any other kind costs at most as much as one of this kind with larger products of columns:
   each moment of step 1 rises with each entry of G. The columns of this larger C never end. After
   the last round the mean of an output falls as (scale S) d^k, and the sum starts with the weight
   of this rest of ||C N||^2.

5. Let A hold the patterns in which the number w never exceeds a cap h. Then L = L_A + L_B with E_Q
   L_B = 1 - s(A), so that delta(eps) <= E_Q (L_A - e^eps)_+ + 1 - s(A). The moments of L_A are sums
   over replicas in A, for which S <= q h. A sum from which n participations would lead beyond q h
   does not count: the last sum that counts stands in its place. The weight of later rounds
   increases in S, but is no longer convex. So S is rounded up, on a finer grid.

6. (L - e^eps)_+ <= c L^q e^(-(q - 1) eps) with c = (q - 1)^(q - 1) / q^q: the tangent of L^q.

>>> from dpcal.accountants.matrix import Banded
>>> from dpcal.accountants.samplers import MinSeparation
>>> mechanism = Mechanism.of(Banded(200, 3, (1, 0.5, 0.2)), noise_multiplier=2.0)
>>> bound = ReplicaMoments(mechanism, Joining(np.full(200, 0.01), separation=3))
>>> found = bound.epsilon(1e-6)
>>> found.value < 2, abs(bound.delta(found.value) / 1e-6 - 1) < 1e-6
(True, True)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import tilted as kernels
from dpcal.accountants.correlated.bounds.base import MARGIN, Bound, Proof, least_until_rising
from dpcal.accountants.correlated.bounds.joining import TINY, Joining, binomials, state_cap
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.rounding import UNIT, exp_up

Floats = NDArray[np.float64]
Places = NDArray[np.intc]

_ORDERS = range(2, 25)
# Most entries of a table of states and counts, 12 bytes each; more bands leave fewer orders.
_LARGEST_TABLE = 2**23
# Most terms of the sum over all rounds: some seconds, and a fraction of a second.
_MOST_TERMS, _QUICK_TERMS = 2e9, 1e8
# Cells of a grid of sums, to choose an order and to prove: with chords, and rounded up.
_CELLS, _CAPPED = (100, 500), (1500, 8000)
# Rounding of the share of a cell, outward: sums are at most a million cells.
_SHARE = 1e-9
# Weights of the bound by ||C N||^2 / q in step 4; the middle one saves 8 percent at decay .5.
_SHARED = (0.0, 0.3, 1.0)
_FAR = 0.1
_DECAYS = 1 - np.geomspace(0.6, 1e-4, 150)
# Exponent k of the last tail 10^(-k / 2): doubles hold no tail far below it.
_LAST_TAIL = 600
_SPAN = 32
# Relative change of later rounds' weight: below it, one span's factor bounds all earlier ones.
_SETTLED = 1e-11
# Rounds with weights of their own, in units of bands plus period; all earlier rounds weigh alike.
_OWN_ROUNDS = 32


@lru_cache(maxsize=2 * len(_ORDERS))
def _windows(order: int, length: int, every: int, most: int) -> NDArray[np.int16] | None:
    """Return the last counts, of shape (states, length), the latest first; None if too many.

    Any ``every`` counts in a row have a sum of at most ``most``, and each is at most the order. The
    limit on states keeps the order far below 2^15.
    """
    kept = np.zeros((1, 0), dtype=np.int16)
    for _ in range(length):
        left = np.minimum(order, most - kept[:, : every - 1].sum(axis=1))
        times = left + 1
        if times.sum() * (order + 2 + kept.shape[1]) > _LARGEST_TABLE:
            return None
        first = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        kept = np.column_stack([first.astype(np.int16), np.repeat(kept, times, axis=0)])
    return kept


def _after(windows: NDArray[np.int16], q: int) -> NDArray[np.intp]:
    """Return the place of the window after each count, of shape (q + 1, windows); -1 for none."""
    powers = (q + 1) ** np.arange(windows.shape[1])[::-1]
    codes = windows @ powers
    order = np.argsort(codes)
    after = np.arange(q + 1)[:, None] * powers[:1].sum() + codes // (q + 1)
    place = np.minimum(np.searchsorted(codes[order], after), len(codes) - 1)
    return np.where(codes[order][place] == after, order[place], -1)


@dataclass(frozen=True, eq=False)
class Past:
    """The number w that carries a record's past: ``w' = decay w + y``, with mean ``scale w + y``.

    Attributes
    ----------
    decay, scale, variance
        The recurrence, and sigma^2.
    energies
        Squared norms of the columns over sigma^2, of shape (rounds,).
    endless
        Whether columns go on after the last round.
    """

    decay: float
    scale: float
    variance: float
    energies: Floats
    endless: bool = False

    @classmethod
    def of(cls, mechanism: Mechanism) -> Past:
        """Return the past of a mechanism, or one with larger products of columns.

        Products k rounds apart are at most ``g d^(k - 1)``. For endless columns 1, s, s d, ... over
        sigma^2 the products are ``s d^(k - 1) (1 + s d / (1 - d^2)) / sigma^2``.
        """
        if mechanism.walk is not None:
            return cls(*mechanism.walk, mechanism.variance, mechanism.energies)
        products = mechanism.overlaps[: mechanism.bands]
        energy, later = float(products[0]), products[1:][products[1:] > 0]
        d = _DECAYS[:, None]
        logs = np.log(later) - np.arange(later.size) * np.log(d)
        g = np.exp(np.minimum(logs.max(axis=1, initial=-math.inf), 600.0))
        energies = np.maximum(energy, g / _DECAYS)
        sums = energies + g * (1 - _DECAYS**mechanism.steps) / (1 - _DECAYS)
        at = int(np.argmin(sums))
        decay, ratio = float(_DECAYS[at]), float(g[at] / energies[at])
        # The scale s solves s (1 + s d / (1 - d^2)) = ratio (1 + s^2 / (1 - d^2)).
        bend = (decay - ratio) / (1 - decay * decay)
        scale = 2 * ratio / (1 + math.sqrt(1 + 4 * max(bend, 0.0) * ratio))
        one = 1 + scale * scale / (1 - decay * decay)
        two = scale * (1 + scale * decay / (1 - decay * decay))
        needed = max(float(energies[at]) / one, float(g[at]) / two if two else 0.0) * (1 + MARGIN)
        return cls(decay, scale, 1 / needed, np.full(mechanism.steps, needed * one), endless=True)


@dataclass(frozen=True)
class _Tables:
    """States of the replicas and of the memory, and where counts lead.

    Attributes
    ----------
    windows
        The last counts of each state, of shape (states, length), the latest first.
    to
        The state after each count, of shape (order + 1, states); -1 for none.
    share
        Share of the way from there to the next state at which the sum is, of the same shape; above
        1 beyond the grid.
    free
        Free replicas, of shape (joined, states), with one row for each number that has joined an
        epoch.
    sums
        Largest sum S of each state; zeros without a grid.
    """

    windows: NDArray[np.int16]
    to: Places
    share: Floats
    free: Places
    sums: Floats


@dataclass(frozen=True, eq=False)
class ReplicaSum:
    """The sum over replicas of one order, from the last round on.

    Parameters
    ----------
    mechanism, joining
        The run.
    order
        Number q >= 2 of replicas.
    past
        The number that carries the past, in place of the last counts.
    cap
        Largest number w of one record, where one number carries the past; else 0.
    shared
        Weight in [0, 1] of the bound ||C N||^2 / q on a record's overlap with itself (step 4).
    cells
        Cells of the grid of sums, else 0.
    capped
        Whether the number w of some patterns exceeds the cap.
    """

    mechanism: Mechanism
    joining: Joining
    order: int
    past: Past | None = None
    cap: float = 0.0
    shared: float = 0.0
    cells: int = 0
    capped: bool = False

    @property
    def terms(self) -> float:
        """Number of terms of all rounds; infinite if there are too many states."""
        if self.tables is None:
            return math.inf
        rounds = self.mechanism.steps
        if self.mechanism.column is not None:
            rounds = min(rounds, _OWN_ROUNDS * (self.mechanism.bands + self.joining.period))
        return self.tables.to.size * len(self.tables.free) * rounds

    @property
    def affordable(self) -> bool:
        """Whether states, and terms of all rounds, are few enough."""
        return self.terms <= _MOST_TERMS

    @cached_property
    def _lags(self) -> int:
        return 0 if self.past is not None else self.mechanism.bands - 1

    @cached_property
    def tables(self) -> _Tables | None:
        """The states, and where counts lead; None if there are too many."""
        joining, q = self.joining, self.order
        length = max(self._lags, joining.separation - 1)
        every, most = (joining.epoch, 2 * q) if joining.epoch else (joining.separation, q)
        windows, cells = _windows(q, length, every, most), self.cells + 1
        # The number that encodes the last counts has 62 bits.
        fits = length * math.log2(q + 1) <= 62
        if windows is None or windows.size * cells * q > _LARGEST_TABLE or not fits:
            return None
        counts, place = np.arange(q + 1)[:, None], _after(windows, q)
        sums, cell, share = self._grid(counts)
        to = np.where(place[:, :, None] < 0, -1, place[:, :, None] * cells + cell[:, None, :])
        free = np.full((1, len(windows)), q)
        if joining.epoch:
            free = np.repeat(q - counts, len(windows), axis=1)
        elif joining.separation > 1:
            free = q - windows[:, : joining.separation - 1].sum(axis=1)[None]
        return _Tables(
            windows,
            np.ascontiguousarray(to.reshape(q + 1, -1), dtype=np.intc),
            np.ascontiguousarray(np.tile(share, len(windows))),
            np.ascontiguousarray(np.repeat(free, cells, axis=1), dtype=np.intc),
            np.tile(sums, len(windows)),
        )

    def _grid(self, counts: NDArray[np.intp]) -> tuple[Floats, NDArray[np.intp], Floats]:
        """Return the sums of a grid, the cell that each count leads to, and its share there."""
        if self.past is None:
            return np.zeros(1), np.zeros(counts.shape, dtype=np.intp), np.zeros(counts.shape)
        sums = self.order * self.cap * np.arange(self.cells + 1) / self.cells
        moved = self.past.decay * sums + counts
        if self.capped:
            # Round up to a whole cell, also a sum that is a node but for rounding.
            cell = np.searchsorted(sums, moved * (1 + 1e-14), side="left")
            return sums, np.minimum(cell, self.cells), np.zeros(cell.shape)
        cell = np.clip(np.searchsorted(sums, moved, side="right") - 1, 0, self.cells - 1)
        share = (moved - sums[cell]) / (sums[cell + 1] - sums[cell])
        return sums, cell, np.where(moved > 0, share * (1 + _SHARE) + _SHARE, 0.0)

    def chances(self, rounds: NDArray[np.intp]) -> Floats:
        """Return chances of counts by the free replicas, of shape (rounds, q + 1, q + 1)."""
        rates = self.joining.chances[rounds].tolist()
        chances = np.stack([binomials(self.order, rate) for rate in rates])
        if self.past is None:
            return chances
        # The part of the squared mean that a participation cancels, rounded down.
        energies = self.past.energies[rounds] * (1 - (self.mechanism.steps + 8) * UNIT)
        counts = np.arange(self.order + 1) * (energies * (1 - self.shared))[:, None, None]
        return np.where(chances > 0, np.maximum(chances * np.exp(-0.5 * counts), TINY), 0.0)

    @cached_property
    def products(self) -> tuple[Floats, NDArray[np.intp]]:
        """Rows of e_t, and of G between rounds t and t - 1, t - 2, ...; the row of each round."""
        if self.past is not None:
            return np.zeros((1, 0)), np.zeros(self.mechanism.steps, dtype=np.intp)
        rows, kinds = self.mechanism.gram_bands
        # Sums of up to T products >= 0 are rounded by less than this part.
        return rows * (1 + (self.mechanism.steps + 8) * UNIT), kinds

    @np.errstate(over="ignore")
    def gains(self, products: Floats) -> Floats:
        """Return the weights of counts in each state, of shape (order + 1, states), rounded up.

        Where a weight overflows, the moment is infinite.
        """
        tables, n = self.tables, np.arange(self.order + 1)[:, None]
        assert tables is not None
        past = self.past
        if past is None:
            pull = tables.windows[:, : self._lags] @ products[1:]
            return np.asarray(np.exp(0.5 * products[0] * n * (n - 1) + n * pull))
        sums = tables.sums
        if self.capped and past.decay > 0:
            # Step 5: a sum that leads beyond the cap does not count.
            sums = np.minimum(sums, np.maximum(self.order * self.cap - n, 0.0) / past.decay)
        return self._squares(past.scale * sums + n)

    def _squares(self, mean: Floats) -> Floats:
        """Return the weights of squared means of the replicas, rounded up."""
        assert self.past is not None
        curvature = (0.5 - 0.5 * self.shared / self.order) / self.past.variance
        return np.asarray(np.exp(curvature * mean * mean * (1 + 8 * UNIT)))

    @np.errstate(over="ignore")
    def _after(self) -> Floats:
        """Return the weights after the last round, of shape (joined, states)."""
        tables, past = self.tables, self.past
        assert tables is not None
        left = np.ones((len(tables.free), len(tables.sums)))
        if past is None or not past.endless:
            return left
        root = past.scale / math.sqrt(1 - past.decay**2) * (1 + MARGIN)
        return np.ascontiguousarray(left * self._squares(root * tables.sums))

    def log(self, keep: Callable[[int, float, Floats], None] | None = None) -> float:
        """Return a bound on the logarithm of E_Q L_A^q; infinite if none is computed.

        Parameters
        ----------
        keep
            Function that is called with each round, except for rounds that repeat a later period.
            Its other arguments are the weight of all rounds from this one on in the first state,
            over the weight of the rounds after it; and the weights in all states, over the weight
            in the first state.
        """
        tables, joining = self.tables, self.joining
        if tables is None or not self.affordable:
            return math.inf
        T, steps, (products, kinds) = self.mechanism.steps, self._lags, self.products
        span = joining.period * math.ceil(_SPAN / joining.period)
        now = self._after()
        if not np.isfinite(now).all():
            return math.inf
        settled, largest, total, since, t = now.copy(), 0.0, 0.0, 0.0, T
        gains, kind = now, -1
        while t > 0:
            left = min(t, span - (T - t) % span)
            unlike = np.flatnonzero(kinds[t - left : t] != kinds[t - 1])
            many = left - 1 - int(unlike[-1]) if unlike.size else left
            if kinds[t - 1] != kind:
                kind = int(kinds[t - 1])
                gains = np.ascontiguousarray(self.gains(products[kind]))
                largest = max(largest, float(gains.max()))
            chances = self.chances(np.arange(t - 1, t - many - 1, -1))
            then = np.empty((many if keep else 2, *now.shape))
            states = tables.to, tables.share, gains, chances, tables.free
            scales = kernels.replica_rounds(now, *states, t, joining.epoch, then)
            if np.isnan(scales[-1]):
                return math.inf
            if keep is not None:
                for k, scale in enumerate(scales.tolist()):
                    keep(t - 1 - k, scale, then[k])
            t, now, weighed = t - many, then[(many - 1) % len(then)], float(np.log(scales).sum())
            total, since = total + weighed, since + weighed
            if (T - t) % span == 0:
                least, most = _ratios(now, settled)
                if not most < math.inf:
                    return math.inf
                repeats = self.past is not None or (
                    self.mechanism.column is not None and t + steps < T
                )
                if repeats and most <= least * (1 + _SETTLED) and t >= span + steps:
                    # The sum is linear and monotone, and earlier rounds weigh no more: no earlier
                    # span of whole periods has a larger factor.
                    skipped = (t - steps) // span
                    total += skipped * (since + math.log(most) + 4 * UNIT)
                    t -= skipped * span
                settled, since = now.copy(), 0.0
        found = total + math.log(float(now[0, 0]))
        # Each round adds and multiplies numbers >= 0, and rounds the exponents of gains.
        operations = 3 * self.order + 16 + math.log(max(largest, 2.0)) * (self._lags + 6)
        return found + T * operations * UNIT + MARGIN * (1 + abs(found))


def log_tangent(q: int, epsilon: float) -> float:
    """Return the logarithm of c e^(-(q - 1) eps), by which L^q bounds (L - e^eps)_+."""
    return (q - 1) * (math.log(q - 1) - epsilon) - q * math.log(q)


def _ratios(now: Floats, before: Floats) -> tuple[float, float]:
    """Return the least and the largest ratio of weights; (0, infinity) if a weight of zero grew."""
    if not np.isfinite(now).all() or (now[before == 0] > 0).any():
        return 0.0, math.inf
    ratios = now[before > 0] / before[before > 0]
    return float(ratios.min()), float(ratios.max())


@dataclass(frozen=True, order=True)
class Key:
    """One moment: the exponent k of the tail 10^(-k / 2) (0: none), order, overlap, and grid."""

    tail: int
    order: int
    shared: float = 0.0
    fine: bool = False

    @property
    def beyond(self) -> float:
        """Probability of the patterns beyond the cap."""
        return 10.0 ** (-self.tail / 2) if self.tail else 0.0


_Cost = Callable[[Key], float]


def _descent(key: Key, cost: _Cost) -> tuple[float, Key]:
    """Return the least cost along neighboring orders and, on fine grids, neighboring tails."""
    last = None
    if math.isinf(cost(key)):
        key = replace(key, order=_ORDERS[0])
    while key != last:
        last, near = key, [key]
        near += [replace(key, order=q) for q in (key.order - 1, key.order + 1) if q in _ORDERS]
        if key.fine and key.tail:
            near += [replace(key, tail=k) for k in (key.tail - 1, key.tail + 1) if k]
        key = min(near, key=cost)
    return cost(key), key


def _by_tails(key: Key, cost: _Cost, tails: Iterable[int]) -> Iterator[tuple[float, Key]]:
    """Yield the least cost on coarse grids for each tail, and its moment."""
    for tail in tails:
        found: list[tuple[float, Key]] = []
        for shared in _SHARED:
            found.append(_descent(replace(key, tail=tail, shared=shared), cost))
            # On a grid the logarithm of a moment is convex in its weight.
            value, best = min(found)
            if tail and found[-1][0] - value > _FAR * abs(value):
                break
        key = best
        yield value, key


@dataclass(frozen=True, eq=False)
class ReplicaMoments(Bound):
    """Bounds on removing a record by Renyi moments of the likelihood ratio.

    Parameters
    ----------
    mechanism
        A strategy of any kind; C is Toeplitz, or rounds are alike.
    joining
        How a record takes part, with chances below 1 outside of the last rounds of epochs.
    """

    mechanism: Mechanism
    joining: Joining
    _moments: dict[Key, float] = field(default_factory=dict, repr=False)

    method: ClassVar[str] = "Renyi moments of replicas"

    def log_moment(self, order: int) -> float:
        """Return a bound on the logarithm of E_Q L^q, infinite if none is computed."""
        return min(self._moment(Key(0, order, shared, fine=True)) for shared in _SHARED)

    def log_mgf(self, c: float, direction: str) -> float:
        """Return a chord of the bound on log M(c) of removing a record, from whole orders."""
        low = math.floor(c)
        if direction == "add" or low + 2 > _ORDERS[-1]:
            return math.inf
        if self.total(Key(0, low + 2), _CELLS[True]).terms > _QUICK_TERMS:
            return math.inf
        first, second = (self.log_moment(k + 1) if k else 0.0 for k in (low, low + 1))
        if math.isinf(second):
            return math.inf
        return (first + (c - low) * (second - first)) * (1 + MARGIN)

    @cached_property
    def _past(self) -> Past:
        return Past.of(self.mechanism)

    def total(self, key: Key, cells: int) -> ReplicaSum:
        """Return the sum with the last counts where they are few, else with one number."""
        if self.mechanism.walk is None and not key.shared and not key.tail:
            window = ReplicaSum(self.mechanism, self.joining, key.order)
            if window.affordable:
                return window
        decay, joining = self._past.decay, self.joining
        cap = joining.largest_state(decay)
        if key.tail:
            rate, period = float(joining.chances.max()), joining.period
            rounds = -(-self.mechanism.steps // period)
            cap = min(cap, state_cap(decay**period, rate, rounds, key.beyond))
        run = self.mechanism, self.joining, key.order
        return ReplicaSum(*run, self._past, cap, key.shared, cells, key.tail > 0)

    def _moment(self, key: Key) -> float:
        if key not in self._moments:
            total = self.total(key, (_CAPPED if key.tail else _CELLS)[key.fine])
            self._moments[key] = total.log()
            if total.past is None:
                self._moments[replace(key, fine=not key.fine)] = self._moments[key]
        # A fine grid may be too large where a coarse one, which is a proof as well, is not.
        found = self._moments[key]
        return self._moment(replace(key, fine=False)) if key.fine and math.isinf(found) else found

    def best_order(self, epsilon: float, shared: float = 0.0) -> tuple[float, int]:
        """Return the logarithm of the least bound on delta of sums of C itself, and its order."""
        keys = (Key(0, order, shared) for order in _ORDERS)
        if self.mechanism.walk is None:
            keys = (key for key in keys if self.total(key, 0).past is None)
        found = ((self._log_delta(key, epsilon), key.order) for key in keys)
        return least_until_rising(chain(found, [(math.inf, _ORDERS[0])]))

    def _log_delta(self, key: Key, epsilon: float) -> float:
        found = self._moment(key) + log_tangent(key.order, epsilon)
        return float(np.logaddexp(found, math.log(key.beyond))) if key.tail else found

    def _least(self, cost: _Cost, log_delta: float | None = None) -> Proof:
        """Return the least cost of moments, without a cap and with one.

        Coarse grids choose where fine grids begin, because their costs are near enough.

        Parameters
        ----------
        cost
            Function that returns the epsilon, or the logarithm of delta, that a moment proves.
        log_delta
            Logarithm of the given delta; None if ``cost`` returns logarithms of deltas.
        """
        ((value, key),) = _by_tails(Key(0, _ORDERS[0]), cost, (0,))
        tried = [key]
        if self.joining.independent and self.total(key, 0).past is not None:
            least = -2 * min(value if log_delta is None else log_delta, 0.0) / math.log(10)
            tails = range(math.floor(least) + 1, _LAST_TAIL + 1)
            if tails:
                tried.append(least_until_rising(_by_tails(key, cost, tails))[1])
        found, key = min(_descent(replace(each, fine=True), cost) for each in tried)
        return Proof(found, f"{self.method}, order {key.order}")

    def epsilon(self, delta: float) -> Proof:
        """Return a bound on epsilon at a delta in (0, 1)."""

        def cost(key: Key) -> float:
            left = delta - key.beyond
            if left <= 0:
                return math.inf
            at_zero = self._moment(key) + log_tangent(key.order, 0.0)
            return max(0.0, (at_zero - math.log(left)) / (key.order - 1))

        found = self._least(cost, math.log(delta))
        return found._replace(value=found.value * (1 + MARGIN))

    def proof(self, epsilon: float) -> Proof:
        """Return a bound on delta at an epsilon >= 0."""
        found = self._least(lambda key: self._log_delta(key, epsilon))
        return found._replace(value=exp_up(min(found.value, 0.0)))
