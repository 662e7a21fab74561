"""What did an optimizer really do? A recorder for any (optimizer, plan, objective).

``record`` runs an optimizer while it notes, in one sequence, what is written to the ledger, what is
summed over which rows within which bound, and what noise is added. ``check_promises`` then replays
the sequence against the plan:

* each ledger entry comes before the sum and the noise of its answers, and nothing else happens;
* the kind, the clipping bound (at the actual distance, for differences), the standard deviation
  (multiplier times bound, exactly) and the number of noisy numbers are what the query says;
* rows are distinct, all of them, ``batch_size`` of them, a fresh part, or a Poisson sample (whose
  total size is binomial: false alarm 1e-6 per query); under correlated noise no record comes back
  sooner than the sampler allows;
* correlated noise is C^-1 z for rows z of independent normals (whose squares sum to a chi-squared
  number, and neighbouring products to none: false alarm 1e-6 each), one row an answer;
* no record moves a sum by more than the bound (a few records of every tenth sum, by brute force);
* counts stay within the plan, equal it for complete runs, and the result verifies.
"""

import dataclasses
import math
from collections import deque
from contextlib import contextmanager
from unittest import mock

import numpy as np
from scipy import stats

from dpcal._ext.walks import distance
from dpcal.optim import Ledger, Objective
from dpcal.optim.boundary import noise as noise_module

__all__ = ["Recorded", "check_promises", "record"]


@dataclasses.dataclass(frozen=True)
class Entry:
    """An entry of the ledger: ``count`` answers to ``query``."""

    query: object
    count: int


@dataclasses.dataclass(frozen=True)
class Sum:
    """A clipped sum: at one parameter vector, or between two."""

    kind: str
    at: tuple
    rows: np.ndarray
    bound: float


@dataclasses.dataclass(frozen=True)
class Noise:
    """Noise that was added to ``size`` numbers; correlated noise with its row of C^-1 z."""

    size: int
    standard_deviation: float
    row: np.ndarray | None = None


class Recorded(Objective):
    """An objective that notes what is asked of it; it has no kernel, so nothing passes unseen."""

    checked = True

    def __init__(self, objective, happened):
        self.inner, self.happened = objective, happened
        self.n, self.dimension = objective.n, objective.dimension
        self.l2, self.penalized = objective.l2, objective.penalized

    @property
    def constants(self):
        return self.inner.constants

    def digest(self):
        return self.inner.digest()

    def _note(self, kind, at, rows, bound):
        self.happened.append(Sum(kind, tuple(w.copy() for w in at), rows.copy(), bound))

    def clipped_sum(self, w, rows, max_norm):
        self._note("gradient", (w,), rows, max_norm)
        return self.inner.clipped_sum(w, rows, max_norm)

    def clipped_difference_sum(self, w, v, rows, max_norm):
        self._note("gradient difference", (w, v), rows, max_norm)
        return self.inner.clipped_difference_sum(w, v, rows, max_norm)

    def clipped_loss_sum(self, w, rows, max_loss):
        self._note("scalar", (w,), rows, max_loss)
        return self.inner.clipped_loss_sum(w, rows, max_loss)

    def smoothness_when_convex(self, rows):
        return self.inner.smoothness_when_convex(rows)

    def loss(self, w):
        raise AssertionError("the exact loss was asked for")

    def gradient(self, w):
        raise AssertionError("the exact gradient was asked for")


@contextmanager
def _listening(happened, *, noiseless):
    record, add = Ledger.record, noise_module.add_gaussian
    correlate = noise_module.add_correlated

    def recorded(ledger, query, count=1):
        happened.append(Entry(query, count))
        record(ledger, query, count)

    def added(out, standard_deviation, generator):
        happened.append(Noise(len(out), standard_deviation))
        add(out, 0.0 if noiseless else standard_deviation, generator)

    def correlated(out, standard_deviation, row):
        happened.append(Noise(len(out), standard_deviation, row.copy()))
        correlate(out, 0.0 if noiseless else standard_deviation, row)

    with (
        mock.patch.object(Ledger, "record", recorded),
        mock.patch.object(noise_module, "add_gaussian", added),
        mock.patch.object(noise_module, "add_correlated", correlated),
    ):
        yield


def record(optimizer, objective, plan, *, noiseless=False, **options):
    """Run ``optimizer(objective, plan, **options)``; return its result and what happened."""
    happened = []
    with _listening(happened, noiseless=noiseless):
        result = optimizer(Recorded(objective, happened), plan, **options)
    return result, happened


def check_promises(optimizer, objective, plan, **options):
    """Assert that what ``plan`` promises is what ``optimizer`` does; return its result."""
    result, happened = record(optimizer, objective, plan, **options)
    audit = _Audit(objective, plan)
    events = deque(happened)
    while events:
        entry = events.popleft()
        assert isinstance(entry, Entry), f"{entry} happened without an entry in the ledger"
        for _ in range(entry.count):
            audit.answer(entry.query, events)
    audit.finish(result)
    return result


class _Audit:
    def __init__(self, objective, plan):
        self.objective, self.plan = objective, plan
        self.counts = dict.fromkeys((query.name for query in plan.queries), 0)
        self.sampled = dict.fromkeys(self.counts, 0)
        self.used = {}
        self.part = {}
        self.shares = 0.0
        self.streams = {query.name: [] for query in plan.queries if query.correlation}
        self.latest = {}

    def answer(self, asked, events):
        query = self.plan.query(asked.name)
        number = self.counts[query.name]
        self.counts[query.name] += 1
        multiplier = query.noise_multiplier
        if query.budget is not None:
            assert asked.noise_multiplier >= multiplier
            multiplier = asked.noise_multiplier
            self.shares += (query.budget / multiplier) ** 2
        expected = dataclasses.replace(query, noise_multiplier=multiplier)
        same = dataclasses.replace(asked, count=1) == dataclasses.replace(expected, count=1)
        assert same, f"{asked} is not the plan's {query}"
        if query.proportional and (not events or isinstance(events[0], Entry)):
            return  # between equal parameters: an exact zero, no record read, no noise
        if query.kind == "one pass":
            self._one_pass(query, number, events)
            return
        happened = events.popleft()
        assert isinstance(happened, Sum), f"{happened} where a sum was due"
        kind = "gradient" if query.kind == "gradient norm" else query.kind
        assert happened.kind == kind
        moved = distance(*happened.at) if len(happened.at) == 2 else None
        bound = query.bound(moved)
        assert happened.bound == bound
        self._rows(query, number, happened.rows)
        if number % 10 == 0:
            self._sensitivity(happened)
        noise = events.popleft()
        assert isinstance(noise, Noise), f"{noise} where noise was due"
        assert noise.standard_deviation == multiplier * bound, (
            f"noise of standard deviation {noise.standard_deviation}, planned {multiplier * bound}"
        )
        vector = query.kind in ("gradient", "gradient difference")
        assert noise.size == (self.objective.dimension if vector else 1)
        assert (noise.row is not None) == (query.correlation is not None)
        if noise.row is not None:
            self.streams[query.name].append(noise.row)

    def _one_pass(self, query, number, events):
        """One gradient of each record of a part, all clipped alike, and then noise."""
        sums = [events.popleft() for _ in range(query.batch_size)]
        assert all(isinstance(one, Sum) and len(one.rows) == 1 for one in sums)
        assert {(one.kind, one.bound) for one in sums} == {("gradient", sums[0].bound)}
        self._rows(query, number, np.concatenate([one.rows for one in sums]))
        noise = events.popleft()
        assert noise == Noise(self.objective.dimension, query.noise_multiplier * query.max_norm), (
            f"{noise} where the noise of one pass was due"
        )

    def _rows(self, query, number, rows):
        n = self.plan.n
        assert len(np.unique(rows)) == len(rows), "a record is sampled twice"
        assert ((rows >= 0) & (rows < n)).all()
        if query.composition == "disjoint":
            assert len(rows) == query.batch_size
            name = query.partition or query.name
            if number % query.answers_per_part:
                assert set(rows) == self.part[query.name]
                return
            used = self.used.setdefault(name, set())
            assert not used & set(rows), f"a record is in two parts of partition {name!r}"
            used |= set(rows)
            self.part[query.name] = set(rows)
        elif query.separation is not None:
            latest = self.latest.setdefault(query.name, np.full(n, -n - number))
            gaps = number - latest[rows]
            assert (gaps >= query.separation).all(), "a record came back too soon"
            if query.sampler != "min-separation" and number >= query.separation:
                seen = latest[rows] >= 0
                assert (gaps[seen] % query.separation == 0).all()
            latest[rows] = number
        elif query.participations is not None:
            taken = self.latest.setdefault(query.name, np.zeros(n, dtype=int))
            taken[rows] += 1
            left = query.correlation.strategy.steps - number - 1
            assert (taken <= query.participations).all(), "a record came too often"
            assert (taken + left >= query.participations).all(), "a record cannot come often enough"
        elif query.sampler == "full":
            assert len(rows) == n
        elif query.sampler == "fixed-size":
            assert len(rows) == query.batch_size
        self.sampled[query.name] += len(rows)

    def _sensitivity(self, happened):
        """Take a few records out of the sum, one at a time."""
        ask = {
            "gradient": self.objective.clipped_sum,
            "gradient difference": self.objective.clipped_difference_sum,
            "scalar": self.objective.clipped_loss_sum,
        }[happened.kind]
        rows = happened.rows
        whole = ask(*happened.at, rows, happened.bound)
        for gone in range(0, len(rows), max(1, len(rows) // 5)):
            without = ask(*happened.at, np.delete(rows, gone), happened.bound)
            rounding = 1e-12 * (1 + len(rows)) * happened.bound
            assert np.linalg.norm(whole - without) <= happened.bound + rounding

    def _stream(self, query):
        """Undo the correlation, and test that what is left are independent normals."""
        rows = np.array(self.streams[query.name])
        z = query.correlation.strategy.matrix()[: len(rows), : len(rows)] @ rows
        square = float((z**2).sum())
        chance = 2 * min(stats.chi2.cdf(square, z.size), stats.chi2.sf(square, z.size))
        assert chance > 1e-6, f"squares of z sum to {square}, of {z.size} normals"
        if len(z) > 1:
            product = float((z[1:] * z[:-1]).sum()) / math.sqrt(z[1:].size)
            assert abs(product) < 5.5, "rows of z are correlated"

    def finish(self, result):
        for query in self.plan.queries:
            if query.correlation and self.streams[query.name]:
                self._stream(query)
        for query in self.plan.queries:
            asked = self.counts[query.name]
            exact = result.complete and not result.early and query.budget is None
            kept = asked == query.count if exact else asked <= query.count
            assert kept, f"query {query.name!r} was asked {asked} times, planned {query.count}"
            assert asked == result.ledger.count(query.name)
            if query.sampler == "poisson" and asked:
                size = asked * self.plan.n
                chance = stats.binomtest(
                    self.sampled[query.name], size, query.sampling_probability
                ).pvalue
                assert chance > 1e-6
        result.verify()
        assert self.shares <= 1 + 1e-12
        assert math.isfinite(np.linalg.norm(result.w))
        assert result.ledger.event is not None
