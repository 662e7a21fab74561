"""What may a run ask of the data? A plan lists every noisy answer before it is asked.

A :class:`Query` is one kind of noisy answer: what is summed over the sampled records, how records
are sampled, the bound on one record's contribution, the noise, and how often it may be asked. A
:class:`Plan` is a set of queries with the target they were calibrated to. ``plan.event`` is a
``DpEvent``, so every accountant can price a plan before anything runs.

>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.01,
...               max_norm=1.0, noise_multiplier=1.0, count=10_000)
>>> plan = Plan(optimizer="dpsgd", n=50_000, queries=(query,), epsilon=7.0, delta=1e-6)
>>> plan == Plan.from_json(plan.to_json())
True
>>> print(f"{plan.price():.4f}")
6.9074
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from dpcal import _validate
from dpcal.calibrate.correlation import Correlation
from dpcal.errors import UnsupportedEvent

if TYPE_CHECKING:
    from dpcal.accountants.answers import Epsilon
    from dpcal.accountants.correlated import Sampler
    from dpcal.accountants.events import DpEvent

__all__ = ["Plan", "Query"]

KINDS = ("gradient", "gradient difference", "gradient norm", "scalar", "one pass")
# The last four are for correlated noise only.
SAMPLERS = (
    "poisson",
    "fixed-size",
    "full",
    "cyclic-poisson",
    "min-separation",
    "balls-in-bins",
    "random-allocation",
)
SEPARATED = ("cyclic-poisson", "min-separation", "balls-in-bins")
WITH_PROBABILITY = ("poisson", "cyclic-poisson", "min-separation")
COMPOSITIONS = ("sequential", "disjoint")
RELATIONS = ("add-or-remove-one", "replace-one", "replace-special")

# Bounds whose noise does not round to zero, which would release the sum bare, and sums of which are
# finite, for an infinite one would give its records away.
LEAST, MOST = 1e-140, 1e140

Parameter = str | int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class Query:
    """One kind of noisy answer: a sum over sampled records of clipped vectors, plus Gaussian noise.

    Parameters
    ----------
    name
        How the optimizer refers to it; unique in its plan.
    kind
        ``"gradient"``, ``"gradient difference"`` (between two parameter vectors), ``"gradient
        norm"`` (the norm of the sum, a number), ``"scalar"`` (a sum of losses) or ``"one pass"``
        (the mean iterate of one pass of gradient descent over disjoint records, one at a time).
    sampler
        ``"poisson"`` (each record independently with ``sampling_probability``), ``"fixed-size"``
        (``batch_size`` distinct records, uniformly) or ``"full"`` (every record). With
        ``correlation`` also ``"cyclic-poisson"`` (each record belongs to one of ``separation``
        groups, of which one is sampled at each answer, in turn), ``"min-separation"`` (a sampled
        record sits out the next ``separation - 1`` answers), ``"balls-in-bins"`` (each record is
        in every ``separation``-th answer, from one drawn at random) and ``"random-allocation"``
        (each record is in ``participations`` of the strategy's answers, drawn at random).
    max_norm
        Bound C in [1e-140, 1e140] on the L2 norm of one record's contribution to the sum, enforced
        by per-record clipping. For ``"one pass"`` it bounds how far one record moves the mean
        iterate: step size times the bound on gradients. With ``proportional`` it is the bound per
        unit of distance between the two parameter vectors.
    noise_multiplier
        Standard deviation of the noise on the sum, in units of C, as in ``GaussianDpEvent``. (The
        sum's L2 sensitivity is C when a record is added, removed or zeroed, 2 C when it is
        replaced; so is that of its norm, by the triangle inequality.) With ``budget``, the
        smallest multiplier that may be chosen.
    count
        How often the query may be asked, at most.
    sampling_probability
        In (0, 1], of a record that is not sitting out; for ``"poisson"``, ``"cyclic-poisson"`` and
        ``"min-separation"``.
    batch_size
        At least 1; for ``"fixed-size"`` only.
    proportional
        Whether C is per unit of ``||w - w'||``; for gradient differences only.
    cap
        The bound in [1e-140, 1e140] that ``max_norm * ||w - w'||`` never exceeds; for proportional
        queries only.
    composition
        ``"sequential"``, or ``"disjoint"`` when the answers are about parts of a partition that
        share no record. Parts are not samples: they earn no amplification.
    partition
        Name of the partition, for disjoint queries only: those that name the same one take their
        parts, of ``batch_size`` records each, from one permutation of the records, so that no two
        parts of any of them overlap. The query's own name when omitted.
    answers_per_part
        How many answers in a row are about the same part, at least 1; for disjoint queries only.
    budget
        For adaptive queries, whose noise is chosen from public outputs when they are asked: the
        noise multiplier of the single answer that would spend all that the plan's adaptive queries
        may spend together. They must be about every record, in sequence. If multipliers z_1, z_2,
        ... always satisfy ``sum z_t^-2 <= budget^-2``, all answers together are as private as that
        one (Smith and Thakurta 2022; Koskela, Tobaben and Honkela 2023).
    correlation
        For noise that is correlated from answer to answer; None for independent noise. The query
        has no event of its own then: all its answers are one event, at a price that holds however
        few of them are asked for. ``noise_multiplier`` is the standard deviation of z.
    separation
        Whole number >= 1; for ``"cyclic-poisson"``, ``"min-separation"`` and ``"balls-in-bins"``
        only: a record takes part in answers that are at least so far apart.
    participations
        Whole number >= 1, at most the strategy's number of steps; for ``"random-allocation"`` only:
        in how many answers a record takes part.
    """

    name: str
    kind: str
    sampler: str
    max_norm: float
    noise_multiplier: float
    count: int
    sampling_probability: float | None = None
    batch_size: int | None = None
    proportional: bool = False
    cap: float | None = None
    composition: str = "sequential"
    partition: str | None = None
    answers_per_part: int = 1
    budget: float | None = None
    correlation: Correlation | None = None
    separation: int | None = None
    participations: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ValueError(f"name must be a non-empty string, got {self.name!r}.")
        _validate.choice(KINDS, kind=self.kind)
        _in_range(max_norm=self.max_norm)
        _validate.positive(noise_multiplier=self.noise_multiplier)
        _validate.count(count=self.count)
        self._check_sampling()
        self._check_scale()
        self._check_partition()
        self._check_budget()
        self._check_correlation()

    def _check_sampling(self) -> None:
        _validate.choice(SAMPLERS, sampler=self.sampler)
        if (self.sampling_probability is not None) != (self.sampler in WITH_PROBABILITY):
            raise ValueError(
                "sampling_probability goes with sampler='poisson', 'cyclic-poisson' or "
                "'min-separation' and only with them, got "
                f"sampling_probability={self.sampling_probability!r} with sampler={self.sampler!r}."
            )
        if (self.batch_size is not None) != (self.sampler == "fixed-size"):
            raise ValueError(
                "batch_size goes with sampler='fixed-size' and only with it, got "
                f"batch_size={self.batch_size!r} with sampler={self.sampler!r}."
            )
        if (self.separation is not None) != (self.sampler in SEPARATED):
            raise ValueError(
                f"separation goes with sampler={' or '.join(map(repr, SEPARATED))} and only with "
                f"them, got separation={self.separation!r} with sampler={self.sampler!r}."
            )
        if self.separation is not None:
            _validate.count(separation=self.separation)
        if (self.participations is not None) != (self.sampler == "random-allocation"):
            raise ValueError(
                "participations goes with sampler='random-allocation' and only with it, got "
                f"participations={self.participations!r} with sampler={self.sampler!r}."
            )
        if self.participations is not None:
            _validate.count(participations=self.participations)
        if self.sampling_probability is not None:
            _validate.rate(sampling_probability=self.sampling_probability)
        if self.batch_size is not None:
            _validate.count(batch_size=self.batch_size)

    def _check_scale(self) -> None:
        if self.proportional and self.kind != "gradient difference":
            raise ValueError(
                "proportional=True is for kind='gradient difference', "
                f"got proportional=True with kind={self.kind!r}."
            )
        if self.cap is not None:
            _in_range(cap=self.cap)
            if not self.proportional:
                raise ValueError(f"cap is for proportional queries, got cap={self.cap!r}.")

    def _check_partition(self) -> None:
        _validate.choice(COMPOSITIONS, composition=self.composition)
        _validate.count(answers_per_part=self.answers_per_part)
        if self.partition is not None and (
            not isinstance(self.partition, str) or not self.partition
        ):
            raise ValueError(f"partition must be a non-empty string, got {self.partition!r}.")
        if self.composition != "disjoint" and (
            self.partition is not None or self.answers_per_part != 1
        ):
            raise ValueError(
                "partition and answers_per_part are for composition='disjoint', got "
                f"partition={self.partition!r} and answers_per_part={self.answers_per_part!r} "
                f"with composition={self.composition!r}."
            )
        if self.kind == "one pass" and (
            self.composition != "disjoint" or self.answers_per_part != 1
        ):
            raise ValueError(
                "kind='one pass' is for composition='disjoint' with answers_per_part=1, got "
                f"composition={self.composition!r} and answers_per_part={self.answers_per_part!r}."
            )

    def _check_budget(self) -> None:
        if self.budget is None:
            return
        _validate.positive(budget=self.budget)
        if self.noise_multiplier < self.budget:
            raise ValueError(
                f"noise_multiplier must be at least budget={self.budget!r}, for less noise would "
                f"spend more than all of it, got {self.noise_multiplier!r}."
            )
        if self.sampler != "full" or self.composition != "sequential":
            raise ValueError(
                "budget is for sampler='full' with composition='sequential', got "
                f"sampler={self.sampler!r} with composition={self.composition!r}."
            )

    def _check_correlation(self) -> None:
        if isinstance(self.correlation, Mapping):
            object.__setattr__(self, "correlation", Correlation.from_dict(self.correlation))
        if self.correlation is None:
            if self.sampler in SEPARATED:
                raise ValueError(
                    f"sampler={self.sampler!r} is for correlated noise, got correlation=None."
                )
            return
        if self.sampler == "fixed-size":
            raise UnsupportedEvent(
                "Batches of a fixed size are refused under correlated noise: the record that a "
                "batch gains, another record of it loses, and no dominating pair is known. Use "
                "sampler 'poisson', or account for known participations with "
                "dpcal.accountants.correlated.revealed_delta."
            )
        if self.kind != "gradient" or self.composition != "sequential" or self.budget is not None:
            raise ValueError(
                "correlation is for kind='gradient' with composition='sequential' and no budget, "
                f"got kind={self.kind!r} with composition={self.composition!r} and "
                f"budget={self.budget!r}."
            )
        if self.count > self.correlation.strategy.steps:
            raise ValueError(
                f"count must be at most the strategy's steps={self.correlation.strategy.steps}, "
                f"got {self.count!r}."
            )

    def bound(self, distance: float | None = None) -> float:
        """Return the bound on one record's contribution: C, or what C is at a distance.

        Parameters
        ----------
        distance
            ``||w - w'||`` >= 0; used by proportional queries, and needed by them.
        """
        if not self.proportional:
            return self.max_norm
        if distance is None:
            raise ValueError("distance must be given for a proportional query, got None.")
        bound = self.max_norm * distance
        return bound if self.cap is None else min(bound, self.cap)

    def event(self, n: int) -> DpEvent:
        """Return the event of one answer on ``n`` records; a part of a partition is no sample.

        Raises
        ------
        UnsupportedEvent
            For correlated noise: its answers are no independent mechanisms, and only all of them
            together have a price.
        """
        from dpcal.accountants import events

        if self.correlation is not None:
            raise UnsupportedEvent(
                f"query {self.name!r} has correlated noise: one of its answers has no price of its "
                "own. All of them together have one, that of the plan."
            )
        gaussian = events.GaussianDpEvent(self.noise_multiplier)
        if self.composition == "disjoint":
            return gaussian
        if self.sampler == "poisson":
            return events.PoissonSampledDpEvent(self.sampling_probability, gaussian)
        if self.sampler == "fixed-size":
            return events.SampledWithoutReplacementDpEvent(n, self.batch_size, gaussian)
        return gaussian

    def participation(self) -> Sampler:
        """Return who takes part when, as a sampler of ``dpcal.accountants.correlated``."""
        from dpcal.accountants import correlated

        q, b = self.sampling_probability or 1.0, self.separation or 1
        if self.sampler == "cyclic-poisson":
            return correlated.CyclicPoisson(b, q)
        if self.sampler == "min-separation":
            return correlated.MinSeparation(b, q, warm_start=True)
        if self.sampler == "balls-in-bins":
            return correlated.BallsInBins(b)
        if self.sampler == "random-allocation":
            return correlated.RandomAllocation(self.participations or 1)
        return correlated.Poisson(q)

    def whole_run(self, neighboring_relation: str) -> DpEvent:
        """Return the event of all answers with correlated noise, whatever ``count`` is.

        Raises
        ------
        ValueError
            If the noise is independent.
        UnsupportedEvent
            If no theorem covers the strategy, the sampler or the relation.
        """
        if self.correlation is None:
            raise ValueError(f"query {self.name!r} has independent noise.")
        strategy = self.correlation.strategy
        if self.sampler == "full":
            from dpcal.accountants.matrix import MinSeparation

            return strategy.event(
                self.noise_multiplier,
                MinSeparation(1, independent=True),
                neighboring_relation=neighboring_relation,
            )
        from dpcal.accountants.correlated import pricing

        sampler = self.participation()
        pricing.check_relation(strategy, sampler, neighboring_relation)
        return pricing.whole_run(
            strategy,
            sampler,
            noise_multiplier=self.noise_multiplier,
            **self.correlation.accounting,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the query as JSON values, by the names of the parameters."""
        values = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        if self.correlation is not None:
            values["correlation"] = self.correlation.to_dict()
        return values

    @property
    def share(self) -> Fraction:
        """What ``count`` answers of an adaptive query spend of the budget, rounded up; else 0.

        It is ``count * (budget / noise_multiplier)^2``. Shares are multiples of powers of two, so
        their sums are exact, whatever the order.
        """
        return self.count * Fraction(self.share_of_one)

    @property
    def share_of_one(self) -> float:
        """What one answer of an adaptive query spends of the budget, rounded up; else 0."""
        if self.budget is None:
            return 0.0
        ratio = self.budget / self.noise_multiplier
        return ratio if ratio == 1 else math.nextafter(ratio * ratio * (1 + 2.0**-51), math.inf)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every noisy answer that a run may ask for, with the privacy target it was calibrated to.

    Parameters
    ----------
    optimizer
        Name of the optimizer in ``dpcal.optim``.
    n
        Number of records, at least 1. Under add-or-remove-one it is treated as public.
    queries
        The queries, with distinct names.
    epsilon, delta
        The target: epsilon >= 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    parameters
        What else the optimizer needs (steps, batch size, learning rate, ...), as JSON scalars.
    """

    optimizer: str
    n: int
    queries: tuple[Query, ...]
    epsilon: float
    delta: float
    neighboring_relation: str = "add-or-remove-one"
    parameters: Mapping[str, Parameter] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        _validate.count(n=self.n)
        _validate.non_negative(epsilon=self.epsilon)
        _validate.probability(delta=self.delta)
        _validate.choice(RELATIONS, neighboring_relation=self.neighboring_relation)
        names = [query.name for query in self.queries]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"queries must be one or more with distinct names, got names {names}.")
        for query in self.queries:
            if query.batch_size is not None and query.batch_size > self.n:
                raise ValueError(
                    f"batch_size of query {query.name!r} must be at most n={self.n}, "
                    f"got {query.batch_size}."
                )
        budgets = {query.budget for query in self.queries}
        if len(budgets) > 1:
            raise ValueError(
                "queries must all be adaptive, with one budget, or none of them, "
                f"got budgets {[query.budget for query in self.queries]}."
            )

    def query(self, name: str) -> Query:
        """Return the query called ``name``."""
        for query in self.queries:
            if query.name == name:
                return query
        known = ", ".join(repr(query.name) for query in self.queries)
        raise ValueError(f"query must be one of {known}, got {name!r}.")

    @property
    def event(self) -> DpEvent:
        """The ``DpEvent`` of asking every query as often as it may be asked."""
        return self._composed(self.neighboring_relation)

    def _composed(self, neighboring_relation: str) -> DpEvent:
        asked = ((query, query.count) for query in self.queries)
        return compose(asked, self.n, neighboring_relation)

    def price(self, delta: float | None = None, **options: Any) -> Epsilon:
        """Return the certified epsilon of the whole plan.

        Parameters
        ----------
        delta
            In (0, 1); the plan's own delta when omitted.
        **options
            Passed to :func:`dpcal.accountants.epsilon`; the neighboring relation is the plan's
            unless given. Answers are composed as theorems for the relation in use allow.
        """
        from dpcal.accountants import epsilon

        delta = self.delta if delta is None else delta
        relation = options.setdefault("neighboring_relation", self.neighboring_relation)
        return epsilon(self._composed(relation), delta=delta, **options)

    def to_json(self) -> str:
        """Return the plan as a JSON document."""
        document = {
            "optimizer": self.optimizer,
            "n": self.n,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighboring_relation": self.neighboring_relation,
            "parameters": dict(self.parameters),
            "queries": [query.to_dict() for query in self.queries],
        }
        return json.dumps(document, indent=2, allow_nan=False)

    def __reduce__(self) -> tuple[Any, ...]:
        return Plan.from_json, (self.to_json(),)

    @classmethod
    def from_json(cls, document: str) -> Plan:
        """Read a plan written by :meth:`to_json`.

        Raises
        ------
        ValueError
            If the document is not JSON, lacks a field, has an unknown one, or a value is out of
            range.
        """
        try:
            fields = json.loads(document)
            queries = tuple(Query(**query) for query in fields.pop("queries"))
            return cls(queries=queries, **fields)
        except (json.JSONDecodeError, TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"document must be a plan in JSON, got {error}.") from error


def _in_range(**argument: float) -> None:
    ((name, value),) = argument.items()
    if not LEAST <= _validate.positive(**argument) <= MOST:
        raise ValueError(f"{name} must be in [{LEAST:g}, {MOST:g}], got {value!r}.")


def compose(asked: Iterable[tuple[Query, int]], n: int, neighboring_relation: str) -> DpEvent:
    """Compose the events of ``(query, count)`` pairs asked of the same ``n`` records.

    Of a partition only the worst part counts: a replaced record is in one part. Adaptive queries
    cost their budget, however much of it was spent: what was spent is itself an output. A query
    with correlated noise costs its whole strategy, however many answers were given.

    Raises
    ------
    UnsupportedEvent
        For disjoint queries under a relation that moves records between parts: parallel
        composition is a theorem when one record is replaced in place, not when its removal shifts
        the others.
    """
    from dpcal.accountants import events

    costs: dict[tuple[Any, ...], tuple[DpEvent, int]] = {}
    worst: dict[tuple[Any, ...], Fraction] = {}
    for query, count in asked:
        gaussian = events.GaussianDpEvent(query.noise_multiplier)
        if not count:
            continue
        if query.correlation is not None:
            # Answers are not independent: however few were given, the price is that of all.
            costs["stream", len(costs)] = (query.whole_run(neighboring_relation), 1)
        elif query.budget is not None:
            costs["budget", query.budget] = (events.GaussianDpEvent(query.budget), 1)
        elif query.composition == "disjoint":
            _check_replaced_in_place(query, neighboring_relation)
            key, answers = (
                ("part", query.partition or query.name),
                min(count, query.answers_per_part),
            )
            # k answers with multiplier z are as one with multiplier z / sqrt(k).
            information = answers / Fraction(query.noise_multiplier) ** 2
            if information > worst.get(key, 0):
                worst[key], costs[key] = information, (gaussian, answers)
        else:
            costs["sequence", len(costs)] = (query.event(n), count)
    parts = [
        event if count == 1 else events.SelfComposedDpEvent(event, count)
        for event, count in costs.values()
    ]
    if not parts:
        return events.NoOpDpEvent()
    return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)


def _check_replaced_in_place(query: Query, neighboring_relation: str) -> None:
    if neighboring_relation == "add-or-remove-one":
        raise UnsupportedEvent(
            f"query {query.name!r} composes over disjoint parts, which needs "
            "neighboring_relation 'replace-one' or 'replace-special', "
            f"got {neighboring_relation!r}."
        )
