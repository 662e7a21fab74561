"""How does a run of correlated noise compose with other events, and with what accountant?

A run that is a composition, of independent rounds, of groups that are apart, or of one random round
an epoch, is the composition for every accountant, alone and beside other events:

>>> from dpcal.accountants import epsilon
>>> from dpcal.accountants.matrix import Banded
>>> from dpcal.accountants.samplers import CyclicPoisson, MinSeparation
>>> run = events.CorrelatedGaussianDpEvent(Banded(200, 4), CyclicPoisson(4, 0.04), 2.0)
>>> equivalent(run).count                                # rounds of one group
50
>>> histogram = events.GaussianDpEvent(5.0)
>>> answer = epsilon(events.ComposedDpEvent([run, histogram]), delta=1e-6)
>>> print(f"{answer:.4f} {answer.accountant}")
1.7025 characteristic

Of other runs Renyi divergences are bounded, by the proofs of :mod:`bounds
<dpcal.accountants.correlated.bounds>`; and every run costs at most the Gaussian mechanism that it
is if all participations are public.

>>> run = events.CorrelatedGaussianDpEvent(Banded(200, 4), MinSeparation(4, 0.01), 2.0)
>>> equivalent(run) is None
True
>>> answer = epsilon(events.ComposedDpEvent([run, histogram]), delta=1e-6)
>>> print(f"{answer:.4f} {answer.method}")
1.6706 run composed by accountant 'renyi', Renyi order 12
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.correlated.bounds.base import Bound
from dpcal.accountants.correlated.bounds.proved import largest_norm, proved
from dpcal.accountants.correlated.bounds.reductions import Reduction
from dpcal.accountants.correlated.mechanism import Mechanism
from dpcal.accountants.correlated.table import chosen
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.accountants.loaders.beside import beside
from dpcal.accountants.losses.base import Pairs, PrivacyLoss, Reals
from dpcal.accountants.losses.failure import MomentBound
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.errors import UnsupportedEvent

__all__ = ["RunLoss", "delta", "epsilon", "equivalent", "losses"]

Answer = TypeVar("Answer", Epsilon, Delta)

_CLAIMED = "runs as claims"

# Smallest tilt at which moments are bounded: those at smaller ones are smaller.
_LEAST_TILT = 1e-6
# Relative difference of tilts for derivatives, which only lead a search.
_STEP = 1e-3
# Relative margin of a noise multiplier, outward: sensitivities are sums over the rounds.
_MARGIN = 1 - 1e-9


def equivalent(run: events.CorrelatedGaussianDpEvent) -> events.DpEvent | None:
    """Return the composition that a run is, or None if it is none, or the worst of several."""
    mechanism = _mechanism(run)
    if chosen(mechanism, run.sampler).route != "product" and mechanism.bands > 1:
        return None
    bound = proved(mechanism, run.sampler)
    return bound.event if isinstance(bound, Reduction) and bound.exact else None


@dataclass(frozen=True, eq=False)
class RunLoss(MomentBound):
    """Bounds on the Renyi divergences of one direction of a run.

    Parameters
    ----------
    kind
        The run, in words.
    direction
        ``"remove"`` or ``"add"``.
    public
        The loss of the run with all participations public, at their worst: a law above it.
    bound
        What is proved of the run.
    """

    kind: str
    direction: str
    public: PrivacyLoss = field(repr=False)
    bound: Bound = field(repr=False)

    @property
    def law(self) -> PrivacyLoss:
        """The loss with all participations public."""
        return self.public

    def moments(self, c: ArrayLike) -> Reals:
        """Return the least bound on log M at each c, and differences for its derivatives."""
        tilts = np.maximum(np.atleast_1d(np.asarray(c, dtype=float)), _LEAST_TILT)
        return np.array([self._moments(float(at)) for at in tilts])

    def _moments(self, c: float) -> tuple[float, float, float]:
        left, at, right = (self.log_mgf_bound(each * c) for each in (1 - _STEP, 1, 1 + _STEP))
        if not math.isfinite(at + left + right):
            return math.inf, math.inf, 0.0
        h = _STEP * c
        return at, (right - left) / (2 * h), max(0.0, (right - 2 * at + left) / (h * h))

    def log_mgf_bound(self, c: float) -> float:
        """Return the least bound on log M(c)."""
        return self.bound.log_mgf(c, self.direction)


def losses(run: events.CorrelatedGaussianDpEvent, relation: str) -> Pairs:
    """Return the losses of a run that is no composition, when a record is removed and added."""
    mechanism, replaced = _mechanism(run), relation == "replace-one"
    chosen(mechanism, run.sampler)
    bound = proved(mechanism, run.sampler, relation)
    distance = (2 if replaced else 1) * largest_norm(mechanism.shape, run.sampler)
    public = Gaussian(mechanism.sigma / distance * _MARGIN)
    kind = f"{mechanism.kind} noise on {run.sampler.name} batches"
    if replaced:
        # The directions are mirror images.
        loss = RunLoss(kind, "remove", public, bound)
        return loss, loss
    return RunLoss(kind, "remove", public, bound), RunLoss(kind, "add", public, bound)


def _mechanism(run: events.CorrelatedGaussianDpEvent) -> Mechanism:
    sigma = _validate.noise(noise_multiplier=run.noise_multiplier)
    return Mechanism.of(run.strategy, noise_multiplier=sigma)


def epsilon(
    run: events.CorrelatedGaussianDpEvent,
    *,
    delta: float,
    neighboring_relation: str,
    beside: events.DpEvent,
) -> Epsilon:
    """Return the epsilon of a run that is no composition, with other events, and runs, beside.

    It is the least by Renyi divergences, by public participations, and by the runs' own answers,
    which may be drawn, as claims.
    """
    return _composed(Epsilon, event_epsilon, run, beside, neighboring_relation, delta=delta)


def delta(
    run: events.CorrelatedGaussianDpEvent,
    *,
    epsilon: float,
    neighboring_relation: str,
    beside: events.DpEvent,
) -> Delta:
    """Return the delta of a run that is no composition, with other events beside, at an epsilon.

    The parameters are those of :func:`epsilon`.
    """
    return _composed(Delta, event_delta, run, beside, neighboring_relation, epsilon=epsilon)


def _composed(
    made: type[Answer],
    price: Callable[..., Answer],
    run: events.CorrelatedGaussianDpEvent,
    others: events.DpEvent,
    relation: str,
    **given: float,
) -> Answer:
    """Return the least price by losses of runs, and by claims."""
    runs, rest = [run], []
    for leaf, count in leaves(others).items():
        if isinstance(leaf, events.CorrelatedGaussianDpEvent):
            runs += [leaf] * count
        else:
            rest.append(events.SelfComposedDpEvent(leaf, count))
    both, found = events.ComposedDpEvent([run, others]), {}
    for name in ("renyi", "characteristic"):
        with suppress(UnsupportedEvent):
            answer = price(both, neighboring_relation=relation, accountant=name, **given)
            found[f"run composed by accountant {name!r}, {answer.method}"] = answer
    (asked,) = given

    def alone(each: events.DpEvent, at: float) -> Answer:
        return price(each, neighboring_relation=relation, **{asked: at})

    prices = [partial(alone, each) for each in runs]
    ends = beside(prices, events.ComposedDpEvent(rest), found, relation, claimed=_CLAIMED, **given)
    return made.of(ends, accountant="correlated", neighboring_relation=relation)
