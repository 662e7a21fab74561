"""Does a privacy loss of your own keep the contract, and do answers about it? Tests to inherit.

In a file of tests, for pytest or another runner of classes:

>>> from dpcal.accountants.losses.gaussian import Gaussian
>>> class TestMine(LossSuite):
...     pairs = ((Gaussian(noise_multiplier=2.0), Gaussian(noise_multiplier=2.0)),)
>>> suite = TestMine()
>>> for name in sorted(vars(LossSuite)):
...     if name.startswith("test_"):
...         getattr(suite, name)()
...         print(name)
test_accountants_agree
test_delta_and_epsilon_are_inverse
test_delta_falls_and_is_below_the_mass_beyond
test_moments_bounds_and_tilts
test_two_uses_cost_between_one_and_two
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

from dpcal.accountants.events import DominatingPairDpEvent, DpEvent, SelfComposedDpEvent
from dpcal.accountants.interface import compare, delta_bounds, epsilon_bounds
from dpcal.accountants.losses.base import PrivacyLoss
from dpcal.accountants.mechanisms.extensions import check_loss
from dpcal.errors import DisagreementWarning

__all__ = ["LossSuite"]

_RELATION = "replace-one"
# Relative slack of comparisons between two answers, each of which is an interval already.
_SLACK = 1e-9


class LossSuite:
    """Tests of a :class:`~dpcal.accountants.losses.base.PrivacyLoss` that another package brings.

    A loss that passes may still be that of another mechanism: add a closed form of delta, or a sum
    over outcomes.

    Attributes
    ----------
    pairs
        Losses to be tested: that of a removed record, and that of an added one.
    deltas
        Numbers in (0, 1) at which epsilons are asked.
    """

    pairs: ClassVar[Sequence[tuple[PrivacyLoss, PrivacyLoss]]] = ()
    deltas: ClassVar[Sequence[float]] = (1e-2, 1e-6, 1e-12)

    def _events(self) -> Iterator[tuple[DpEvent, tuple[PrivacyLoss, PrivacyLoss]]]:
        if not self.pairs:
            raise ValueError(f"{type(self).__name__}.pairs must have a pair of losses, got none.")
        for removed, added in self.pairs:
            yield DominatingPairDpEvent("a loss", _RELATION, removed, added), (removed, added)

    def test_moments_bounds_and_tilts(self) -> None:
        """The moments belong to one law and its reverse, and bounds are bounds."""
        for _, (removed, added) in self._events():
            check_loss(removed, added)
            check_loss(added, removed)

    def test_delta_falls_and_is_below_the_mass_beyond(self) -> None:
        """Delta falls in epsilon, from at most 1, to nothing beyond the largest loss."""
        for event, losses in self._events():
            scale = max(loss.std for loss in losses)
            found = [_delta(event, k * scale) for k in (0.0, 0.5, 1.0, 2.0, 4.0)]
            for more, less in pairwise(found):
                _hold(less[0] <= more[1] <= 1, "delta falls in epsilon")
            top = max(loss.upper for loss in losses)
            if math.isfinite(top):
                above = max(0.0, top) * (1 + _SLACK) + _SLACK
                _hold(_delta(event, above)[0] == 0, "delta is 0 above the largest loss")

    def test_delta_and_epsilon_are_inverse(self) -> None:
        """Delta at the two ends of an epsilon is on either side of the given delta."""
        for event, _ in self._events():
            for given in self.deltas:
                low, high = _epsilon(event, given)
                _hold(_delta(event, high)[0] <= given * (1 + _SLACK), "epsilon suffices")
                if low > 0:
                    _hold(_delta(event, low)[1] >= given * (1 - _SLACK), "epsilon is needed")

    def test_two_uses_cost_between_one_and_two(self) -> None:
        """Two uses cost no less than one, and at twice delta no more than twice epsilon."""
        for event, _ in self._events():
            twice = SelfComposedDpEvent(event, 2)
            for given in self.deltas:
                one, two = _epsilon(event, given), _epsilon(twice, given)
                _hold(one[0] <= two[1] * (1 + _SLACK), "two uses cost no less than one")
                basic = _epsilon(twice, min(2 * given, 0.5))[0]
                _hold(basic <= 2 * one[1] * (1 + _SLACK), "basic composition is an upper bound")

    def test_accountants_agree(self) -> None:
        """Intervals of all accountants that can answer have a number in common."""
        for event, _ in self._events():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DisagreementWarning)
                found = compare(
                    event,
                    delta=self.deltas[0],
                    neighboring_relation=_RELATION,
                    accountants=("characteristic", "renyi", "pld"),
                )
            _hold(sum(row.upper is not None for row in found.rows) > 1, "two accountants answer")
            _hold(not found.disagreements, f"accountants agree, {found.disagreements}")


def _epsilon(event: DpEvent, given: float) -> Any:
    return epsilon_bounds(event, delta=given, neighboring_relation=_RELATION)


def _delta(event: DpEvent, given: float) -> Any:
    return delta_bounds(event, epsilon=given, neighboring_relation=_RELATION)


def _hold(holds: Any, fact: str) -> None:
    if not holds:
        raise AssertionError(f"Answers about a privacy loss must keep this: {fact}.")
