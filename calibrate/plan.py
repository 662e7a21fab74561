"""Which noisy answers may a run take from the data? A plan lists them before the run.

A :class:`Query` is one kind of noisy answer: the function that is summed over the sampled records,
the sampler, the bound on one record's contribution, the noise, and the number of answers. A
:class:`Plan` is a set of queries with the target they were calibrated to. ``plan.event`` is a
``DpEvent``, so you can compute its epsilon with every accountant before anything runs.

>>> query = Query(name="gradient", kind="gradient", sampler="poisson", sampling_probability=0.01,
...               max_norm=1.0, noise_multiplier=1.0, count=10_000)
>>> plan = Plan(optimizer="dpsgd", n=50_000, queries=(query,), epsilon=7.0, delta=1e-6)
>>> plan == Plan.from_json(plan.to_json())
True
>>> print(f"{plan.price():.4f}")
6.9074
>>> print(plan)
plan of dpsgd, target epsilon = 7 at delta = 1e-06, add-or-remove-one, n = 50000
  cost: 100 passes, 5e+06 gradients
  gradient: kind gradient, sampler poisson, max_norm 1, noise_multiplier 1, count 10000,
    sampling_probability 0.01
"""

from __future__ import annotations

import json
import math
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from types import MappingProxyType
from typing import Any, overload

from dpcal._internal import annexes, validate
from dpcal._internal.files import fields_of, read_as
from dpcal.accountants import Delta, Epsilon, delta as delta_of, epsilon as epsilon_of, events
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.interface import ACCOUNTANTS
from dpcal.calibrate.persons import for_group
from dpcal.calibrate.query import KINDS, LAPLACE_TOTAL, Query
from dpcal.errors import UnsupportedEvent

__all__ = ["RELATIONS", "Parameter", "Plan", "Priced", "Query", "compose", "screen", "told"]

Parameter = str | int | float | bool | None
Parameters = dict[str, Parameter]


class Priced:
    """A release with an event, and so an epsilon at a delta, and a delta at an epsilon."""

    @property
    def group_size(self) -> int:
        """Largest number of records of a person whom the claim is about; 1 for single records."""
        return 1

    @property
    def accountant(self) -> str:
        """Accountant of its claim: see :func:`dpcal.accountants.epsilon`."""
        return "auto"

    @property
    def event(self) -> events.DpEvent:
        """The event of everything released, as :meth:`under` composes it for its own relation."""
        return self.under()[0]

    def under(self, neighboring_relation: str | None = None) -> tuple[events.DpEvent, str]:
        """Return the event, composed for a relation, its own when omitted, and the relation."""
        raise NotImplementedError

    def event_for(self, group_size: int) -> events.DpEvent:
        """Return the event that bounds the loss of ``group_size`` records, at least its own number.

        UnsupportedEvent is raised if no theorem here covers it.
        """
        records = validate.count(group_size=group_size)
        return for_group(self.event, -(-records // self.group_size))

    def epsilon(self, delta: float, **options: Any) -> Epsilon:
        """Return the certified epsilon of everything released.

        Parameters
        ----------
        delta
            In (0, 1).
        **options
            Passed to :func:`dpcal.accountants.epsilon`; the neighboring relation and the accountant
            are its own unless given. Answers are composed as theorems for the relation allow.
        """
        return epsilon_of(delta=delta, **_asked_of(self, options))

    def delta(self, epsilon: float, **options: Any) -> Delta:
        """Return the certified delta of everything released.

        Parameters
        ----------
        epsilon
            At least 0.
        **options
            Passed to :func:`dpcal.accountants.delta`, as the options of :meth:`epsilon` are.
        """
        return delta_of(epsilon=epsilon, **_asked_of(self, options))


def _asked_of(release: Priced | Plan, options: dict[str, Any]) -> dict[str, Any]:
    """Return the keywords of a question about a release: its own relation and accountant first."""
    event, relation = release.under(options.pop("neighboring_relation", None))
    own = {"event": event, "neighboring_relation": relation, "accountant": release.accountant}
    return {**own, **options}


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Every noisy answer that a run may use, with the privacy target it was calibrated to.

    Parameters
    ----------
    optimizer
        Name of the optimizer in ``dpcal.optim``.
    n
        Number of records, at least 1. Under add-or-remove-one it is treated as public: two data
        sets of different sizes have the same plan, so it must not be the size of either, unless
        the size is public.
    queries
        The queries, with distinct names.
    epsilon, delta
        The target: epsilon >= 0, delta in (0, 1).
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    parameters
        Other values for the optimizer (steps, batch size, learning rate, ...), as JSON scalars.
    public_n
        Whether n was given in public, so that the number of records may differ from it; for
        add-or-remove-one only, with queries about every record, about independent samples, or
        about batches that each record draws by itself.
    accountant
        The accountant of the plan and of its ledger: see :func:`dpcal.accountants.epsilon`.
    """

    optimizer: str
    n: int
    queries: tuple[Query, ...]
    epsilon: float
    delta: float
    neighboring_relation: str = "add-or-remove-one"
    parameters: Mapping[str, Parameter] = field(default_factory=dict, hash=False)
    public_n: bool = False
    accountant: str = "auto"

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", tuple(self.queries))
        validate.instance(Mapping, parameters=self.parameters)
        object.__setattr__(self, "parameters", MappingProxyType(dict(self.parameters)))
        validate.count(n=self.n)
        validate.non_negative(epsilon=self.epsilon)
        validate.probability(delta=self.delta)
        relation = validate.relation(self.neighboring_relation)
        validate.choice(RELATIONS, neighboring_relation=relation)
        object.__setattr__(self, "neighboring_relation", relation)
        validate.choice(ACCOUNTANTS, accountant=self.accountant)
        names = [query.name for query in self.queries]
        if not names or len(set(names)) != len(names):
            raise ValueError(f"queries must be one or more with distinct names, got names {names}.")
        for query in self.queries:
            _check_relation(query, relation)
            if query.batch_size is not None and query.batch_size > self.n:
                raise ValueError(
                    f"batch_size of query {query.name!r} must be at most n={self.n}, "
                    f"got {query.batch_size}."
                )
        if len({query.clipped for query in self.queries}) > 1:
            raise ValueError("queries must all have the same clipped, 'row' or 'user'.")
        budgets = [query.budget for query in self.queries]
        if len(set(budgets)) > 1:
            raise ValueError(
                "queries must all be adaptive, with one budget, or none of them, got budgets "
                f"{budgets}."
            )
        public = self.neighboring_relation == "add-or-remove-one" and all(
            (
                query.sampler in ("full", "poisson")
                and query.composition == "sequential"
                and query.descent is None
            )
            or (query.sampler == "random-allocation" and query.correlation is None)
            for query in self.queries
        )
        if self.public_n and not public:
            raise ValueError(
                "public_n is for neighboring_relation 'add-or-remove-one' with queries about every "
                "record, Poisson samples in sequence, or random allocation with independent noise, "
                f"got {self.neighboring_relation!r} with "
                f"samplers {sorted({query.sampler for query in self.queries})}."
            )
        if self.group_size > 1 and any(query.sampler == "fixed-size" for query in self.queries):
            self.under()  # refuses relations that do not cover rows of a person

    def query(self, name: str) -> Query:
        """Return the query called ``name``."""
        named = {query.name: query for query in self.queries}
        return named[validate.choice(tuple(named), query=name)]

    @property
    def accuracy_kind(self) -> str | None:
        """Kind of ``parameters["accuracy"]`` and ``parameters["vacuous"]``; None without one.

        A ``"guarantee"`` is a bound with all its constants, from a theorem or from the point that a
        private test with explicit thresholds accepts, up to its failure probability. An ``"order"``
        has hidden constants or logarithms taken as 1, or is the aim of a setting, as in
        ``gauss_psgd`` and in the practical ``dp_rgda``. The kind of older plans is derived here:
        the digest of a plan seeds its noise, so another parameter would change every seeded run.
        """
        if "accuracy" not in self.parameters:
            return None
        explicit = self.parameters.get("thresholds") == "explicit"
        said = self.parameters.get("accuracy_kind", "guarantee" if explicit else "order")
        return str(said)

    @property
    def group_size(self) -> int:
        """Largest number of records of a person whom the claim is about; 1 for single records."""
        return max(query.group_size for query in self.queries)

    @property
    def clipped(self) -> str:
        """Whether each ``"row"`` is clipped, or the sum of a ``"user"``'s rows, who is a record."""
        return self.queries[0].clipped

    @property
    def event(self) -> events.DpEvent:
        """The ``DpEvent`` of every query, answered as often as it may be."""
        return self.under()[0]

    def under(self, neighboring_relation: str | None = None) -> tuple[events.DpEvent, str]:
        """Return the event of the whole plan, composed for a relation, and the relation."""
        relation = validate.relation(neighboring_relation or self.neighboring_relation)
        return self._composed(relation, 1), relation

    def event_for(self, group_size: int) -> events.DpEvent:
        """See :meth:`Priced.event_for`."""
        return self._composed(self.neighboring_relation, validate.count(group_size=group_size))

    def _composed(self, relation: str, group_size: int) -> events.DpEvent:
        asked = ((query, query.count) for query in self.queries)
        return compose(asked, self.n, relation, group_size)

    @overload
    def price(self, delta: float | None = None, *, epsilon: None = None, **how: Any) -> Epsilon: ...
    @overload
    def price(self, delta: None = None, *, epsilon: float, **how: Any) -> Delta: ...

    def price(
        self, delta: float | None = None, *, epsilon: float | None = None, **how: Any
    ) -> Epsilon | Delta:
        """Return the certified epsilon of the whole plan at a delta, or its delta at an epsilon.

        A plan's ``epsilon`` and ``delta`` are its target, so both answers have this name; results
        and ledgers have methods :meth:`~Priced.epsilon` and :meth:`~Priced.delta`.

        Parameters
        ----------
        delta
            In (0, 1); the plan's own delta when neither is given.
        epsilon
            At least 0; given in place of ``delta``.
        **how
            Passed to :func:`dpcal.accountants.epsilon` or :func:`dpcal.accountants.delta`; the
            neighboring relation and the accountant are the plan's unless given.
        """
        asked = _asked_of(self, how)
        if epsilon is None:
            return epsilon_of(delta=self.delta if delta is None else delta, **asked)
        if delta is not None:
            raise ValueError(f"delta must be left out with epsilon={epsilon!r}, got {delta!r}.")
        return delta_of(epsilon=epsilon, **asked)

    @property
    def evaluations(self) -> float:
        """Gradients of one record that the answers take at most, on average; two a difference."""
        return sum(
            (2 if query.kind == "gradient difference" else 1)
            * query.sums
            * query.expected_batch_size(self.n)
            for query in self.queries
            if "gradient" in query.kind or query.descent is not None
        )

    def seconds(self, dimension: int) -> float:
        """Return the processor seconds that a run on a linear model takes on this machine.

        They are the answers of all planned steps: rounds that reach their targets earlier take
        less. See :func:`dpcal.calibrate.recommending.seconds.predicted_seconds`.
        """
        found: float = annexes.predicted_seconds(self.queries, n=self.n, dimension=dimension)
        return found

    def noise_norm(self, dimension: int) -> float:
        """Return the norm of the noise in the mean of all gradients, in units of the clip.

        It is 0 for a plan without answers of the kind ``"gradient"``, or for one descent with a
        single answer. Noise that is chosen on the way is taken to be as small as the budget allows.

        Parameters
        ----------
        dimension
            Number of parameters, >= 1.
        """
        told = sum(_precision(query, self.n) for query in self.queries)
        return math.sqrt(validate.count(dimension=dimension) / told) if told else 0.0

    def __str__(self) -> str:
        """Return a summary of the plan, at most 16 lines of at most 100 characters."""
        about = f"n = {self.n}{' (public)' if self.public_n else ''}"
        about += "" if self.accountant == "auto" else f", by accountant {self.accountant}"
        asked = self.evaluations
        most = "at most " if any(query.budget is not None for query in self.queries) else ""
        cost = f"cost: {most}{asked / self.n:.3g} passes, {asked:.3g} gradients"
        lines = [cost] if asked else []
        lines += [f"{query.name}: {told(query.given())}" for query in self.queries]
        lines += [f"parameters: {told(self.parameters)}"] if self.parameters else []
        return screen(
            f"plan of {self.optimizer}, target epsilon = {self.epsilon:g} at delta = "
            f"{self.delta:g}, {self.neighboring_relation}, {about}",
            lines,
            most=16,
        )

    def to_json(self) -> str:
        """Return the plan as a JSON document."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON values."""
        names = ("optimizer", "n", "epsilon", "delta", "neighboring_relation")
        document: dict[str, Any] = {name: getattr(self, name) for name in names}
        document["parameters"] = dict(self.parameters)
        document["queries"] = [query.to_dict() for query in self.queries]
        # A plan without them has the same text, and so the same digest, as in earlier versions.
        document |= {"public_n": True} if self.public_n else {}
        document |= {"accountant": self.accountant} if self.accountant != "auto" else {}
        return document

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
        must = "document must be a plan in JSON"
        fields = fields_of(document, must)
        with read_as(must):
            queries = tuple(Query(**query) for query in fields.pop("queries"))
            return cls(queries=queries, **fields)


def _precision(query: Query, n: int) -> float:
    """Return the inverse variance of a mean of all gradients, by coordinate, in units of the clip.

    It is 0 for answers of other kinds than gradients and the last iterate of their descent.
    """
    if query.kind != "gradient" and query.descent is None:
        return 0.0
    answers, noise = float(query.count), query.noise_multiplier
    if query.descent is not None:
        answers = float(query.descent.steps)
    if query.budget is not None:
        answers, noise = 1.0, query.budget
    elif query.correlation is not None:
        strategy = query.correlation.strategy
        answers, noise = strategy.steps**2, noise * strategy.max_error()
    return answers * (query.expected_batch_size(n) / noise) ** 2


def told(values: Mapping[str, Any]) -> str:
    """Return names and values as words, numbers with six digits and long texts cut."""
    texts = {
        name: f"{value:.6g}" if isinstance(value, float) else str(value)
        for name, value in values.items()
    }
    return ", ".join(
        f"{name} {text if len(text) <= 60 else f'{text[:57]}...'}" for name, text in texts.items()
    )


def screen(head: str, lines: Iterable[str], *, most: int) -> str:
    """Return a head and lines below it, wrapped to 100 columns and cut to ``most`` lines."""
    rows = []
    for start, line in [("", head), *(("  ", line) for line in lines)]:
        starts: dict[str, Any] = {"initial_indent": start, "subsequent_indent": "    "}
        rows += textwrap.wrap(line, 100, break_on_hyphens=False, **starts)
    left = len(rows) - most
    return "\n".join(rows if left <= 0 else [*rows[: most - 1], f"  ... and {left + 1} lines more"])


def compose(
    asked: Iterable[tuple[Query, int]], n: int, neighboring_relation: str, group_size: int = 1
) -> events.DpEvent:
    """Compose the events of ``(query, count)`` pairs about the same ``n`` records.

    They bound the loss of ``group_size`` records together, or of as many as a query is about, if
    more: all queries are accounted for with the largest person.

    Laplace noise on totals is one answer with the sum of their inverse scales as its inverse scale:
    Laplace laws are log-concave, so shifts of several numbers reveal no more than one shift by
    their sum. In a partition only the worst part counts: a replaced record is in one part. Adaptive
    queries cost their whole budget, because the spent part is itself an output. A query with
    correlated noise costs its whole strategy, for any number of answers.

    Raises
    ------
    UnsupportedEvent
        For disjoint queries under a relation that moves records between parts: parallel composition
        is a theorem when one record is replaced in place, not when its removal shifts the others.
        For a query that no theorem covers for a person with several records.
    """
    costs: dict[tuple[Any, ...], tuple[events.DpEvent, int]] = {}
    worst: dict[tuple[Any, ...], Fraction] = {}
    rate = Fraction(0)
    asked = [(query, count) for query, count in asked if count]
    group_size = max([group_size, *(query.group_size for query, _ in asked)])
    # Where the sum of a person's rows is clipped, persons are the records.
    records = group_size if all(query.clipped == "row" for query, _ in asked) else 1
    for query, count in asked:
        _check_relation(query, neighboring_relation)
        query = query.of_group(1)
        gaussian = events.GaussianDpEvent(query.noise_multiplier)
        if query.correlation is not None:
            # Answers are not independent, so any number of them costs as much as all.
            costs["stream", len(costs)] = (query.whole_run(neighboring_relation), 1)
        elif KINDS[query.kind].once:
            costs["once", query.name] = (query.event(n), 1)
        elif query.kind == LAPLACE_TOTAL:
            rate += count / Fraction(query.noise_multiplier)
            costs["laplace",] = (events.LaplaceDpEvent(math.nextafter(float(1 / rate), 0.0)), 1)
        elif query.budget is not None:
            costs["budget", query.budget] = (events.GaussianDpEvent(query.budget), 1)
        elif query.composition == "disjoint":
            key = "part", query.partition or query.name
            answers = min(count, query.answers_per_part)
            # k answers with multiplier z are as one with multiplier z / sqrt(k).
            information = answers / Fraction(query.noise_multiplier) ** 2
            if information > worst.get(key, 0):
                worst[key], costs[key] = information, (gaussian, answers)
        elif query.kind == "labels":
            # The bound for labels of one record does not extend to a person's, one after another.
            costs["person", len(costs)] = (query.of_group(group_size).event(n), count)
        else:
            costs["sequence", len(costs)] = query.answers(n, count)
    parts: list[events.DpEvent] = []
    for key, (event, count) in costs.items():
        if key[0] != "person":
            event = for_group(event, records, neighboring_relation)
        parts.append(event if count == 1 else events.SelfComposedDpEvent(event, count))
    if not parts:
        return events.NoOpDpEvent()
    return parts[0] if len(parts) == 1 else events.ComposedDpEvent(parts)


def _check_relation(query: Query, neighboring_relation: str) -> None:
    relations = KINDS[query.kind].relations
    if neighboring_relation not in relations:
        raise UnsupportedEvent(
            f"query {query.name!r} of kind {query.kind!r} is for neighboring_relation "
            f"{' or '.join(map(repr, relations))}, got {neighboring_relation!r}."
        )
    if query.composition == "disjoint" and neighboring_relation == "add-or-remove-one":
        raise UnsupportedEvent(
            f"query {query.name!r} composes over disjoint parts, which needs "
            "neighboring_relation 'replace-one' or 'replace-special', "
            f"got {neighboring_relation!r}."
        )
