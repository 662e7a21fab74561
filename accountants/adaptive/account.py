"""Compositions that grow step by step: the privacy that has been spent so far.

>>> from dpcal.accountants.events import GaussianDpEvent, PoissonSampledDpEvent
>>> account = Account()
>>> step = PoissonSampledDpEvent(0.01, GaussianDpEvent(1.0))
>>> for _ in range(1000):
...     account = account.compose(step)
>>> print(f"{account.epsilon(1e-6):.6f}")
2.124515
>>> print(f"{account.compose(step, 9000).epsilon(1e-6):.6f}")
6.907384

The two accountants are dp-accounting's ``PrivacyAccountant``, for any code that takes one:

>>> from dp_accounting import calibrate_dp_mechanism
>>> sigma = calibrate_dp_mechanism(CharacteristicAccountant, GaussianDpEvent, 1.0, 1e-6)
>>> print(f"{sigma:.4f}")
4.2247
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from threading import RLock
from typing import Any

from dp_accounting import privacy_accountant

from dpcal._internal import validate
from dpcal.accountants import events, interface
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.directions import Composition, relation_of
from dpcal.accountants.mechanisms.decompose import decompose, leaves
from dpcal.accountants.mechanisms.row import OnlyAuto
from dpcal.accountants.rounding import exp_up
from dpcal.errors import UnsupportedEvent

NeighboringRelation = privacy_accountant.NeighboringRelation

# One for all accounts, which may be copied.
_LOCK = RLock()


def _composed(counts: Mapping[events.DpEvent, int]) -> events.DpEvent:
    """Return the composition of elementary events and their counts."""
    parts = [
        part if times == 1 else events.SelfComposedDpEvent(part, times)
        for part, times in counts.items()
    ]
    if len(parts) == 1:
        return parts[0]
    return events.ComposedDpEvent(parts) if parts else events.NoOpDpEvent()


class Account:
    """All releases so far, as one composition to which steps are added.

    Equal mechanisms are merged when they are added, so that a step takes a dictionary update, and
    the time of an answer depends on the number of distinct mechanisms.

    Parameters
    ----------
    neighboring_relation
        ``"add-or-remove-one"``, ``"replace-one"`` or ``"replace-special"``.
    """

    def __init__(self, *, neighboring_relation: str = "add-or-remove-one") -> None:
        self._relation = relation_of(neighboring_relation)
        self._counts: dict[events.DpEvent, int] = {}
        self._by_parts = True

    @property
    def neighboring_relation(self) -> str:
        """Which data sets count as neighbors."""
        return self._relation

    def compose(self, event: events.DpEvent, count: int = 1) -> Account:
        """Add ``count`` >= 1 runs of ``event`` and return the account itself.

        Raises
        ------
        UnsupportedEvent
            If no theorem here covers the event; then nothing is added.
        """
        times = 1 if count == 1 else validate.count(count=count)
        parts = {part: runs * times for part, runs in leaves(event).items()}
        with _LOCK:
            self._by_parts = self._check(parts)
            for part, runs in parts.items():
                self._counts[part] = self._counts.get(part, 0) + runs
        return self

    def _check(self, parts: Mapping[events.DpEvent, int]) -> bool:
        """Refuse an event that no theorem covers here; return whether every part has a law."""
        by_parts = self._by_parts
        for part in parts:
            if part not in self._counts:
                try:
                    decompose(part, self._relation)
                except OnlyAuto:
                    by_parts = False
        if not by_parts:
            together = events.ComposedDpEvent([self.event, _composed(parts)])
            interface.check_priced(together, self._relation)
        return by_parts

    def __len__(self) -> int:
        """Return the number of elementary mechanisms that have run, repetitions counted."""
        return sum(self._counts.values())

    def __bool__(self) -> bool:
        """Return True, also before the first step: an account is not a list."""
        return True

    def supports(self, event: events.DpEvent) -> bool:
        """Return whether a theorem here covers ``event`` under the account's relation."""
        try:
            self._check(leaves(event))
        except UnsupportedEvent:
            return False
        return True

    @property
    def event(self) -> events.DpEvent:
        """The composition so far, equal mechanisms gathered in order of first use."""
        with _LOCK:
            return _composed(self._counts)

    def epsilon(self, delta: float, **options: Any) -> Epsilon:
        """Return epsilon at a delta in [0, 1), by an accountant and its options, given by name."""
        return interface.epsilon(
            self.event, delta=delta, neighboring_relation=self._relation, **options
        )

    def delta(self, epsilon: float, **options: Any) -> Delta:
        """Return delta at an epsilon >= 0, by an accountant and its options, given by name."""
        return interface.delta(
            self.event, epsilon=epsilon, neighboring_relation=self._relation, **options
        )


def _without_zeros(leaf: events.DpEvent) -> events.DpEvent:
    """Return an elementary event; as in dp-accounting, one with zero noise becomes non-private.

    Calibrators compute such events at the ends of their brackets.
    """
    if isinstance(leaf, events.PoissonSampledDpEvent):
        if leaf.sampling_probability == 0:
            return leaf
        inner = _without_zeros(leaf.event)
        return leaf if inner is leaf.event else inner
    if getattr(leaf, "noise_multiplier", None) == 0:
        return events.NonPrivateDpEvent()
    return leaf


class _Adapter(privacy_accountant.PrivacyAccountant):  # type: ignore[misc]
    """An :class:`Account` behind dp-accounting's interface."""

    _accountant: str

    def __init__(self, neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE) -> None:
        name = relation_of(neighboring_relation)
        super().__init__(NeighboringRelation[name.upper().replace("-", "_")])
        self._account = Account(neighboring_relation=name)

    def _maybe_compose(self, event: events.DpEvent, count: int, do_compose: bool) -> Any:
        """Compose ``event``, or return the part of it that no theorem here covers."""
        for leaf, times in leaves(event).items():
            part = _without_zeros(leaf)
            try:
                composition = decompose(part, self._account.neighboring_relation)
                if self._accountant == "characteristic" and composition.laws is None:
                    raise UnsupportedEvent(f"Only Renyi divergences are known of {part!r}.")
                if do_compose and count > 0:
                    self._account.compose(part, times * count)
            except UnsupportedEvent as error:
                return self.CompositionErrorDetails(invalid_event=leaf, error_message=str(error))
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Return epsilon at a delta in [0, 1], rounded up."""
        if target_delta == 1:
            return 0.0 if self._composition.private else math.inf
        if target_delta > 0:
            return self._account.epsilon(target_delta, accountant=self._accountant).upper
        try:
            return self._account.epsilon(0.0).upper
        except UnsupportedEvent:
            return math.inf

    def get_delta(self, target_epsilon: float) -> float:
        """Return delta at an epsilon >= 0, which may be infinite, rounded up."""
        composition = self._composition
        if not composition.private:
            return 1.0
        if target_epsilon < math.inf:
            return self._account.delta(target_epsilon, accountant=self._accountant).upper
        # At infinite epsilon only losses that may be infinite have a delta.
        lowest = min(item.finite[0] for item in composition.directions)
        return exp_up(math.log(-math.expm1(lowest))) if lowest < 0 else 0.0

    @property
    def _composition(self) -> Composition:
        return decompose(self._account.event, self._account.neighboring_relation)


class CharacteristicAccountant(_Adapter):
    """dp-accounting's interface to the characteristic accountant.

    Parameters
    ----------
    neighboring_relation
        dp-accounting's ``NeighboringRelation``, or its name as elsewhere in this package.

    >>> accountant = CharacteristicAccountant().compose(events.GaussianDpEvent(2.0), 4)
    >>> print(f"{accountant.get_epsilon(1e-5):.6f}")
    4.377178
    """

    _accountant = "characteristic"


class RenyiAccountant(_Adapter):
    """dp-accounting's interface to the Renyi accountant, optimised over all real orders.

    Parameters
    ----------
    neighboring_relation
        dp-accounting's ``NeighboringRelation``, or its name as elsewhere in this package.

    >>> accountant = RenyiAccountant().compose(events.GaussianDpEvent(2.0), 4)
    >>> print(f"{accountant.get_epsilon(1e-5):.6f}")
    4.728387
    """

    _accountant = "renyi"
