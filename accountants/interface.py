"""The epsilon and the delta of an event, by the accountant that you choose.

>>> from dpcal.accountants import events
>>> event = events.dpsgd(sampling_probability=0.01, noise_multiplier=1.0, steps=10_000)
>>> answer = epsilon(event, delta=1e-6)
>>> print(f"{answer:.8f} {answer.accountant} {answer.neighboring_relation}")
6.90738450 characteristic add-or-remove-one
>>> print(f"{delta(event, epsilon=8.0):.10e}")
2.0283809415e-08
>>> print(f"{log_delta(event, epsilon=200.0):.6f}")
-1467.030678
"""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, combinations
from typing import Any, Generic, TypeVar

import attr

from dpcal._internal import annexes, lazy, validate
from dpcal.accountants import characteristic, events, renyi
from dpcal.accountants.answers import Bounds, Delta, Epsilon, LogDelta
from dpcal.accountants.directions import Composition, Direction, relation_of
from dpcal.accountants.events import DpEvent
from dpcal.accountants.losses.failure import LossWithFailure
from dpcal.accountants.mechanisms.allocation import DRAWN
from dpcal.accountants.mechanisms.batches import is_sum
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.accountants.mechanisms.pure import pure_epsilon
from dpcal.accountants.mechanisms.row import row_of
from dpcal.accountants.rounding import UNIT, exp_down, exp_up
from dpcal.errors import AccountantsDisagree, BackendRefused, DisagreementWarning, UnsupportedEvent

ACCOUNTANTS = ("auto", "characteristic", "renyi", "pld", "prv")
# Accountants of other packages take a whole composition, and are imported at the first use.
_BACKENDS = {name: lazy.Module(f"dpcal.accountants.{name}") for name in ("pld", "prv")}
_EXACT = "characteristic"
# Events on batches whose mechanism may be a composition of answers about the same batch.
_ON_BATCHES = (
    events.PoissonSampledDpEvent,
    events.SampledWithoutReplacementDpEvent,
    events.AllocatedDpEvent,
)


def _answering(name: str, composition: Composition) -> tuple[str, ...]:
    """Return the accountants to try, with Renyi's if only divergences are known exactly."""
    if name != "auto":
        return (name,)
    if composition.has_law:
        return ("characteristic",)
    return ("renyi",) if composition.laws is None else ("renyi", "characteristic")


def _epsilon_bounds(name: str, composition: Composition, delta: float) -> Bounds:
    """Return an accountant's bounds on epsilon of the worst direction, at a delta in (0, 1)."""
    directions, target = composition.directions, math.log(delta)
    exact = [_finite_end(direction, delta) for direction in directions]
    if name == _EXACT and not any(exact):
        bounds = characteristic.worst_epsilon_bounds(directions, target)
    else:
        ask = characteristic.epsilon_bounds if name == _EXACT else renyi.epsilon_bounds
        pairs = zip(directions, exact, strict=True)
        bounds = Bounds.worst([end or ask(item, target) for item, end in pairs])
    known = 0 < bounds.lower <= bounds.upper < math.inf
    return bounds.saying_width((bounds.upper - bounds.lower) / bounds.upper if known else 0.0)


def _log_delta_bounds(name: str, composition: Composition, epsilon: float) -> Bounds:
    """Return an accountant's bounds on log delta of the worst direction, at an epsilon >= 0."""
    if name == _EXACT:
        bounds = characteristic.worst_log_delta_bounds(composition.directions, epsilon)
    else:
        found = [renyi.log_delta_bounds(item, epsilon) for item in composition.directions]
        bounds = Bounds.worst(found)
    if bounds.upper > -math.inf:
        bounds = bounds.saying_width(bounds.upper - bounds.lower)
    # A true delta below 1 stays below 1 after rounding.
    return Bounds(min(bounds.lower, -UNIT), min(bounds.upper, 0.0), bounds.method)


_NAMES = {Epsilon: "epsilon", LogDelta: "log_delta", Delta: "delta"}
_Number = TypeVar("_Number", Epsilon, LogDelta, Delta)


@dataclass(frozen=True)
class _Question(Generic[_Number]):
    """One number of an event at another, under a relation, and who is to answer it."""

    number: type[_Number]
    at: float
    relation: str
    accountant: str = "auto"
    cross_check: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> str:
        """The epsilon or delta at which the other one is computed."""
        return "delta" if self.number is Epsilon else "epsilon"

    @property
    def bounded(self) -> str:
        """The number that accountants bound."""
        return "epsilon" if self.number is Epsilon else "log_delta"

    def __post_init__(self) -> None:
        validate.choice(ACCOUNTANTS, accountant=self.accountant)
        validate.flag(cross_check=self.cross_check)

    def bounds(self, composition: Composition, name: str, options: Mapping[str, Any]) -> Bounds:
        """Return one accountant's bounds; all but Renyi's need a law for each loss."""
        laws, ends = None, (0.0, math.inf) if self.bounded == "epsilon" else (-math.inf, 0.0)
        if name != "renyi" and not composition.has_law:
            laws = composition.laws
        priced = laws or composition
        if not priced.private:
            bounds = Bounds(ends[1], ends[1], "non-private event")
        elif name in _BACKENDS:
            backend = getattr(_BACKENDS[name], f"{self.bounded}_bounds")
            bounds = backend(priced, self.at, **options)
        else:
            _no_options(name, options)
            own = _epsilon_bounds if self.bounded == "epsilon" else _log_delta_bounds
            bounds = own(name, priced, self.at)
        # A law that dominates a mechanism bounds it from above only.
        return Bounds(ends[0], bounds.upper, bounds.method) if laws else bounds

    def checked(self, event: DpEvent, composition: Composition, name: str) -> Bounds:
        """Return one accountant's bounds, which must meet the bounds of a second, independent one.

        Neither may end below the lower end of a single sum that is answered on batches.
        """
        given = (self.options, {}) if name in _BACKENDS else ({}, self.options)
        bounds, other, second = self.bounds(composition, name, given[0]), _EXACT, None
        if name not in _BACKENDS:
            other = "renyi" if name == _EXACT else _EXACT
            with contextlib.suppress(UnsupportedEvent, BackendRefused):
                second = self.bounds(composition, "pld", {"two_sided": True, **self.options})
                other = "pld"
        found = {name: bounds, other: second or self.bounds(composition, other, given[1])}
        for part, _ in _single_sums(event):
            alone = decompose(part, composition.neighboring_relation)
            if alone != composition:  # else the second question would repeat the first
                lower = self.bounds(alone, _EXACT, {}).lower
                found[f"{part!r}, a part of it,"] = Bounds(lower, math.inf, "")
        for sentence in _contradictions(found):
            asked = f"{self.bounded.replace('_', ' ')} at {self.given}={self.at!r}"
            raise AccountantsDisagree(f"For {asked}, {sentence} One of them is wrong.")
        return bounds

    def answer(self, event: DpEvent) -> _Number:
        """Return the answer: of a whole run, or the one with the smallest upper end."""
        if self.number is Epsilon and self.at == 0:
            return self._pure(event)
        if self.accountant == "auto" and not self.cross_check:
            whole = _whole_run(event, self.relation)
            if whole is not None:
                return self._of_whole_run(*whole)
        composition = decompose(event, self.relation)
        ask: Callable[[str], Bounds] = partial(self.bounds, composition, options=self.options)
        if self.cross_check:
            ask = partial(self.checked, event, composition)
        found = [(ask(each), each) for each in _answering(self.accountant, composition)]
        bounds, name = min(found, key=lambda each: each[0].upper)
        if self.number is Delta:
            bounds = Bounds(exp_down(bounds.lower), exp_up(bounds.upper), bounds.method)
        return self._of(bounds, name)

    def _of(self, bounds: Bounds, accountant: str) -> _Number:
        return self.number.of(bounds, accountant=accountant, neighboring_relation=self.relation)

    def _pure(self, event: DpEvent) -> _Number:
        """Return epsilon at delta=0, the largest loss, for any accountant."""
        if self.accountant in _BACKENDS or self.cross_check:
            raise BackendRefused(
                "delta=0 is priced in closed form: no other package is asked, and none checks the "
                "answer. Leave out accountant and cross_check."
            )
        _no_options(self.accountant, self.options)
        return self._of(pure_epsilon(event, self.relation), self.accountant)

    def _of_whole_run(self, module: Any, run: DpEvent, how: Mapping[str, Any]) -> _Number:
        """Return an annex's answer about a run, from its delta where it has no logarithm."""
        ask = getattr(module, _NAMES[self.number], None) or module.delta
        found = ask(run, **{self.given: self.at}, **how, **self.options)
        if isinstance(found, self.number):
            return found
        ends = Bounds.of_logarithms(found.lower, found.upper, found.provenance)
        return self._of(ends, found.accountant)


def _contradictions(found: Mapping[str, Bounds]) -> Iterator[str]:
    """Yield a sentence for each two bounds on one number that do not meet."""
    for pair in combinations(found.items(), 2):
        (low, below), (high, above) = sorted(pair, key=lambda each: each[1].upper)
        if above.lower > below.upper:
            ends = f"at most {below.upper:.12g} where {high} proves at least {above.lower:.12g}."
            yield f"{low} gives {ends}"


def _no_options(name: str, options: Mapping[str, Any]) -> None:
    if options:
        raise TypeError(f"accountant {name!r} takes no options, got {', '.join(sorted(options))}.")


def _finite_end(direction: Direction, delta: float) -> Bounds | None:
    """Return the largest finite loss of a single mechanism that fails with exactly this delta.

    Failures of a loss that is rounded up may be tails that are left out: they bound from above.
    """
    loss = direction.once
    if isinstance(loss, LossWithFailure) and loss.failure_probability == delta:
        upper = lower = loss.given.upper
        if loss.below is not None:
            lower = min(upper, characteristic.epsilon_bounds(direction, math.log(delta)).lower)
        return Bounds(lower, upper, "support")
    return None


def _single_sums(event: DpEvent, on_batches: bool = False) -> Iterator[tuple[DpEvent, bool]]:
    """Yield each sum of the compositions on batches, as a mechanism of its own on these batches.

    Whoever drops the other answers sees such a sum, which costs no more than the event. Its law is
    computed without the law of a sum of losses, so it is an independent check. The second value is
    whether it has Gaussian noise.
    """
    for leaf, times in leaves(event).items():
        parts: list[tuple[DpEvent, bool]] = []
        if isinstance(leaf, _ON_BATCHES):
            inner = _single_sums(leaf.event, on_batches=True)
            parts = [(attr.evolve(leaf, event=part), gaussian) for part, gaussian in inner]
        elif on_batches and is_sum(leaf):
            parts = [(leaf, isinstance(leaf, events.GaussianDpEvent))]
        for part, gaussian in parts:
            # Only Gaussian answers are as quick if there are many.
            yield events.SelfComposedDpEvent(part, times) if gaussian else part, gaussian


def _whole_run(event: DpEvent, relation: str) -> tuple[Any, DpEvent, dict[str, Any]] | None:
    """Return the module that accounts for a whole run, the run, and keywords with the other events.

    It is None for other events.
    """
    how: dict[str, Any] = {"neighboring_relation": relation}
    row = row_of(event)
    if row is not None and row.equivalent is not None:
        return getattr(annexes, row.whole_run), event, how
    if has_bracket(event, relation):
        return annexes.replacing, event, how
    found = leaves(event)
    runs = [(item, row.whole_run) for item in found if (row := row_of(item)) and row.whole_run]
    several = len(runs) > 1 or any(found[item] > 1 for item, _ in runs)
    if not runs or (several and any(name != "pricing" for _, name in runs)):
        return None
    run, name = runs[0]
    left = {**found, run: found[run] - 1, events.NoOpDpEvent(): 0}
    others = [events.SelfComposedDpEvent(*item) for item in left.items() if item[1]]
    if others:
        how["beside"] = events.ComposedDpEvent(others)
    return getattr(annexes, name), run, how


def check_priced(event: DpEvent, relation: str) -> None:
    """Refuse an event that :func:`epsilon` refuses.

    Raises
    ------
    UnsupportedEvent
        If no theorem here covers the event under this relation.
    """
    if _whole_run(event, relation) is None:
        decompose(event, relation)


def has_bracket(event: DpEvent, relation: str) -> bool:
    """Return whether records draw batches in an event, so that a replaced record has a bracket."""
    return relation == "replace-one" and any(isinstance(leaf, DRAWN) for leaf in leaves(event))


def epsilon(
    event: DpEvent,
    *,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    accountant: str = "auto",
    cross_check: bool = False,
    **options: Any,
) -> Epsilon:
    """Return the epsilon of an event at a given delta, rounded up.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    delta
        A number in [0, 1). At 0, which asks for pure privacy, it is the largest privacy loss.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    accountant
        ``"auto"`` (the characteristic accountant; Renyi's where only Renyi divergences of a
        mechanism are known; the smaller of both where a law dominates such a mechanism),
        ``"characteristic"``, ``"renyi"``, ``"pld"`` or ``"prv"``.
    cross_check
        Whether a second accountant must agree: dp-accounting's PLD, from above and below, or the
        Renyi bound where that does not price the event. For a composition on random batches each
        sum by itself must not cost more, either.
    **options
        Passed to the backend: ``interval``, ``tail_mass`` and ``two_sided`` (pld, also as a second
        accountant), ``eps_error`` and ``delta_error`` (prv).

    Returns
    -------
    Epsilon
        A float equal to its upper bound, with ``.lower``, ``.upper``, ``.accountant``, ``.method``
        and ``.neighboring_relation``.

    Raises
    ------
    ValueError, TypeError
        For an argument out of range.
    UnsupportedEvent
        If no theorem here covers the event under this relation, or, at delta=0, if its privacy loss
        has no bound.
    BackendRefused
        If the chosen backend gives no answer.
    AccountantsDisagree
        If ``cross_check`` is set and the intervals do not meet.

    >>> from dpcal.accountants import events
    >>> event = events.dpsgd(sampling_probability=0.1, noise_multiplier=2.0, steps=100)
    >>> print(f"{epsilon(event, delta=1e-6, cross_check=True, interval=1e-3):.6f}")
    2.675035
    """
    at, relation = validate.below_one(delta=delta), relation_of(neighboring_relation)
    return _Question(Epsilon, at, relation, accountant, cross_check, options).answer(event)


def log_delta(
    event: DpEvent,
    *,
    epsilon: float,
    neighboring_relation: str = "add-or-remove-one",
    accountant: str = "auto",
    cross_check: bool = False,
    **options: Any,
) -> LogDelta:
    """Return the natural logarithm of the event's delta at a given epsilon >= 0, rounded up.

    Deltas far below the range of a double keep their digits.

    For the other parameters and the exceptions, see :func:`epsilon`.

    Parameters
    ----------
    epsilon
        A finite number >= 0.
    """
    at, relation = validate.non_negative(epsilon=epsilon), relation_of(neighboring_relation)
    return _Question(LogDelta, at, relation, accountant, cross_check, options).answer(event)


def delta(
    event: DpEvent,
    *,
    epsilon: float,
    neighboring_relation: str = "add-or-remove-one",
    accountant: str = "auto",
    cross_check: bool = False,
    **options: Any,
) -> Delta:
    """Return the delta of an event at a given epsilon >= 0, rounded up.

    For the other parameters and the exceptions, see :func:`epsilon`.

    Parameters
    ----------
    epsilon
        A finite number >= 0.
    """
    at, relation = validate.non_negative(epsilon=epsilon), relation_of(neighboring_relation)
    return _Question(Delta, at, relation, accountant, cross_check, options).answer(event)


@dataclass(frozen=True)
class Compared:
    """One accountant's interval for epsilon, its time, and a note if it gave no answer."""

    accountant: str
    lower: float | None
    upper: float | None
    seconds: float
    note: str = ""


@dataclass(frozen=True)
class Comparison:
    """The answers of several accountants to one question; ``str()`` is a table."""

    delta: float
    neighboring_relation: str
    rows: tuple[Compared, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as JSON values."""
        return {**vars(self), "rows": [vars(row) for row in self.rows]}

    @property
    def disagreements(self) -> tuple[str, ...]:
        """Sentences naming pairs of accountants whose intervals do not meet."""
        ends = ((row.accountant, row.lower, row.upper) for row in self.rows)
        found = {name: Bounds(low or 0.0, up, "") for name, low, up in ends if up is not None}
        return tuple(_contradictions(found))

    def __str__(self) -> str:
        lines = [
            f"epsilon at delta = {self.delta:g}, {self.neighboring_relation}",
            f"{'accountant':<16}{'lower':>16}{'upper':>16}{'time':>12}",
        ]
        for row in self.rows:
            if row.upper is None:
                lines.append(f"{row.accountant:<16}{row.note}")
            else:
                lower, s = f"{row.lower:.10g}" if row.lower else "-", row.seconds
                taken = f"{s * 1e3:.2f} ms" if s < 1 else f"{s:.2f} s"
                lines.append(f"{row.accountant:<16}{lower:>16}{row.upper:>16.10g}{taken:>12}")
        return "\n".join([*lines, *(f"CONTRADICTION: {item}" for item in self.disagreements)])


def compare(
    event: DpEvent,
    *,
    delta: float,
    neighboring_relation: str = "add-or-remove-one",
    accountants: tuple[str, ...] = ACCOUNTANTS[1:],
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Comparison:
    """Return the epsilons that several accountants compute for one event.

    Warns with :class:`dpcal.errors.DisagreementWarning` if two intervals do not meet.

    Parameters
    ----------
    event
        Any nesting of compositions of supported mechanisms.
    delta
        A number in (0, 1); at 0 accountants have nothing to compare.
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    accountants
        Names of the accountants.
    options
        For each accountant's name, its options: see :func:`epsilon`.

    Returns
    -------
    Comparison
        One row for each accountant: interval, time, and a note if it gave no answer.

    >>> from dpcal.accountants import events
    >>> result = compare(events.GaussianDpEvent(2.0), delta=1e-5,
    ...                  accountants=("characteristic", "renyi"))
    >>> [f"{row.accountant} {row.upper:.4f}" for row in result.rows]
    ['characteristic 1.9931', 'renyi 2.1657']
    """
    relation = relation_of(neighboring_relation)
    question = _Question(Epsilon, validate.probability(delta=delta), relation)
    composition = decompose(event, relation)
    for name in (*accountants, *(options or {})):
        validate.choice(ACCOUNTANTS, accountant=name)
    names = dict.fromkeys(chain(*(_answering(each, composition) for each in accountants)))
    rows = []
    for name in names:
        lower, upper, note, start = None, None, "", time.perf_counter()
        try:
            bounds = question.bounds(composition, name, dict((options or {}).get(name, {})))
            lower, upper = bounds.lower, bounds.upper
        except (BackendRefused, UnsupportedEvent) as error:
            note = str(error)
        rows.append(Compared(name, lower, upper, time.perf_counter() - start, note))
    comparison = Comparison(question.at, relation, tuple(rows))
    for sentence in comparison.disagreements:
        warnings.warn(sentence, DisagreementWarning, stacklevel=2)
    return comparison
