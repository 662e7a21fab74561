"""Epsilon and delta of the event of a whole run, by itself and next to other events.

Answers of a matrix mechanism are not independent: a run is one event, and a single step has no
epsilon of its own. If the steps are in fact independent, the event is a composition that every
accountant supports:

>>> from dpcal.accountants.matrix import Banded, LambdaCGD
>>> from dpcal.accountants.samplers import CyclicPoisson, MinSeparation
>>> whole_run(LambdaCGD(100, 0.0), Poisson(0.01), noise_multiplier=1.0)
... # doctest: +NORMALIZE_WHITESPACE
SelfComposedDpEvent(event=PoissonSampledDpEvent(sampling_probability=0.01,
event=GaussianDpEvent(noise_multiplier=1.0)), count=100)

Otherwise the event is a :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`. This also
holds for a run that costs as much as a composition under the relations of the theorems, because its
cost differs under other relations.

>>> event = whole_run(LambdaCGD(100, 0.5), Poisson(0.01), noise_multiplier=3.0, statistics="none")
>>> answer = epsilon(event, delta=1e-5, neighboring_relation="add-or-remove-one")
>>> print(f"{answer:.3f} {answer.label}")
0.418 certified

Every accountant treats a run that is a composition as this composition, by itself and next to other
events. Such runs have independent rounds, groups that are apart, or one random round an epoch:

>>> run = events.CorrelatedGaussianDpEvent(Banded(200, 4), CyclicPoisson(4, 0.04), 2.0)
>>> equivalent(run).count                                # rounds of one group
50
>>> histogram = events.GaussianDpEvent(5.0)
>>> answer = event_epsilon(events.ComposedDpEvent([run, histogram]), delta=1e-6)
>>> print(f"{answer:.4f} {answer.accountant}")
1.7025 characteristic

For other runs the proofs of :mod:`bounds <dpcal.accountants.correlated.bounds>` bound Renyi
divergences. Every run costs at most as much as the Gaussian mechanism that it is if all
participations are public.

>>> run = events.CorrelatedGaussianDpEvent(Banded(200, 4), MinSeparation(4, 0.01), 2.0)
>>> equivalent(run) is None
True
>>> answer = event_epsilon(events.ComposedDpEvent([run, histogram]), delta=1e-6)
>>> print(f"{answer:.4f} {answer.method}")
1.6706 run composed by accountant 'renyi', Renyi order 11.9926
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache, partial
from typing import Any

import attr
import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.accountants import events
from dpcal.accountants.answers import Delta, Epsilon
from dpcal.accountants.correlated.bounds.base import Bound
from dpcal.accountants.correlated.bounds.reductions import Reduction, largest_norm
from dpcal.accountants.correlated.price import DRAWING, Goal, Question, priced
from dpcal.accountants.directions import RELATIONS
from dpcal.accountants.interface import delta as event_delta, epsilon as event_epsilon
from dpcal.accountants.loaders.beside import beside as beside_of
from dpcal.accountants.losses.base import Pairs, PrivacyLoss, Reals
from dpcal.accountants.losses.failure import MomentBound
from dpcal.accountants.losses.gaussian import Gaussian
from dpcal.accountants.matrix.base import Strategy
from dpcal.accountants.mechanisms.decompose import leaves
from dpcal.accountants.samplers import CyclicPoisson, Poisson, Sampler
from dpcal.errors import UnsupportedEvent

# Smallest tilt at which moments are bounded; moments at smaller tilts are smaller.
_LEAST_TILT = 1e-6
_STEP = 1e-3
# Relative margin of a noise multiplier, outward: sensitivities are sums over the rounds.
_MARGIN = 1 - 1e-9


def whole_run(
    strategy: Strategy,
    sampler: Sampler,
    *,
    noise_multiplier: float,
    neighboring_relation: str = "replace-special",
    **accounting: Any,
) -> events.DpEvent:
    """Return the event of a whole run of correlated noise on random batches.

    A record's participations do not depend on other records, and sums are divided by a public
    number. So adding, removing and zeroing out a record are one pair of distributions. A replaced
    record has another pair. :func:`epsilon` and :func:`delta` account for it, but no run is
    calibrated for it.

    Parameters
    ----------
    strategy
        The matrix C, a :class:`dpcal.accountants.matrix.Strategy`.
    sampler
        Sampler of the batches.
    noise_multiplier
        Standard deviation > 0 of z, in units of the clipping norm.
    neighboring_relation
        Neighboring relation: ``"add-or-remove-one"`` or ``"replace-special"``; ``"replace-one"``
        for independent noise on Poisson samples.
    **accounting
        Other fields of :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`; they have no
        effect on an exact epsilon.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the matrix, the sampler or the relation, with the reason.
    """
    run = events.CorrelatedGaussianDpEvent(strategy, sampler, noise_multiplier, **accounting)
    question = _question(run)
    correlated, relation = question.mechanism.bands > 1, neighboring_relation
    validate.choice(RELATIONS, neighboring_relation=relation)
    if relation == "replace-one" and (correlated or not isinstance(sampler, Poisson)):
        raise UnsupportedEvent(
            "Correlated noise on random batches is not calibrated for neighboring relation "
            "'replace-one'. Use 'add-or-remove-one' or 'replace-special', or ask all records at "
            "every step (sampler 'full')."
        )
    if correlated or isinstance(sampler, CyclicPoisson):
        return attr.evolve(run, noise_multiplier=question.mechanism.sigma)
    return equivalent(run) or run


def equivalent(run: events.CorrelatedGaussianDpEvent) -> events.DpEvent | None:
    """Return the composition that equals a run; None if there is none, or the worst of several."""
    question = _question(run)
    if question.route != "product" and question.mechanism.bands > 1:
        return None
    bound = question.proved
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
        Loss of the run with all participations public, for the worst pattern; it dominates the run.
    bound
        Proved bound on the run.
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
    """Return the losses of a run that is not a composition, for removing and adding a record."""
    question, replaced = _question(run, relation), relation == "replace-one"
    mechanism, bound = question.mechanism, question.proved
    distance = (2 if replaced else 1) * largest_norm(mechanism.unit, run.sampler)
    public = Gaussian(mechanism.sigma / distance * _MARGIN)
    kind = f"correlated noise on {run.sampler.name} batches"
    # The directions of a replaced record are mirror images.
    names = "remove", "remove" if replaced else "add"
    removed, added = (RunLoss(kind, name, public, bound) for name in names)
    return removed, added


def _question(run: events.CorrelatedGaussianDpEvent, relation: str = "zero-out") -> Question:
    return Question.of(run.strategy, run.sampler, run.noise_multiplier, relation=relation)


def epsilon(event: events.CorrelatedGaussianDpEvent, *, delta: float, **how: Any) -> Epsilon:
    """Return the epsilon of a whole run, by itself or next to other events.

    Parameters
    ----------
    event
        The run.
    delta
        Number in (0, 1).
    neighboring_relation
        Neighboring relation: ``"add-or-remove-one"``, ``"replace-special"`` or ``"replace-one"``.
    beside
        Other events about the same records, including other runs, if any; the run is then not a
        composition.
    **options
        Fields of the event to replace, such as a ``seed`` for independent draws.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the pair.
    """
    found: Epsilon = _asked(Goal(delta=delta), event, **how)
    return found


def delta(event: events.CorrelatedGaussianDpEvent, *, epsilon: float, **how: Any) -> Delta:
    """Return the delta of a whole run at an epsilon >= 0; see :func:`epsilon`."""
    found: Delta = _asked(Goal(epsilon=epsilon), event, **how)
    return found


def _asked(
    goal: Goal,
    event: events.CorrelatedGaussianDpEvent,
    *,
    neighboring_relation: str,
    beside: events.DpEvent | None = None,
    **options: Any,
) -> Any:
    for name in options:
        if name not in DRAWING:
            raise TypeError(
                f"options of correlated noise must be among {', '.join(DRAWING)}, got {name!r}."
            )
    event = attr.evolve(event, **options)
    if beside is not None:
        return _composed(goal, event, beside, neighboring_relation)
    return (priced if event.seed is None else _remembered)(goal, event, neighboring_relation)


def _composed(
    goal: Goal, run: events.CorrelatedGaussianDpEvent, others: events.DpEvent, relation: str
) -> Epsilon | Delta:
    """Return the least cost by Renyi divergences, by public participations, and by claims."""
    runs, rest = [run], []
    for leaf, count in leaves(others).items():
        if isinstance(leaf, events.CorrelatedGaussianDpEvent):
            runs += [leaf] * count
        else:
            rest.append(events.SelfComposedDpEvent(leaf, count))
    both, found = events.ComposedDpEvent([run, others]), {}
    price: Any = event_delta if goal.delta is None else event_epsilon
    given = {"epsilon": goal.epsilon} if goal.delta is None else {"delta": goal.delta}
    for name in ("renyi", "characteristic"):
        with suppress(UnsupportedEvent):
            answer = price(both, neighboring_relation=relation, accountant=name, **given)
            found[f"run composed by accountant {name!r}, {answer.method}"] = answer
    (asked,) = given

    def alone(each: events.DpEvent, at: float) -> Any:
        return price(each, neighboring_relation=relation, **{asked: at})

    prices, rest_of = [partial(alone, each) for each in runs], events.ComposedDpEvent(rest)
    ends = beside_of(prices, rest_of, found, relation, claimed="runs as claims", **given)
    made = Delta if goal.delta is None else Epsilon
    return made.of(ends, accountant="correlated", neighboring_relation=relation)


_remembered = lru_cache(maxsize=128)(priced)
