"""What does a run with correlated noise and random batches cost? Its epsilon and its delta.

>>> import numpy as np
>>> from dpcal.accountants import correlated, matrix
>>> identity = correlated.Matrix(np.eye(1000))
>>> answer = epsilon(identity, correlated.Poisson(0.01), noise_multiplier=0.8, delta=1.76713759e-5)
>>> print(f"{answer:.6f} {answer.label}")
3.000000 exact
>>> run = matrix.LambdaCGD(100, 0.5)
>>> answer = epsilon(run, correlated.Poisson(0.01), noise_multiplier=2.0, delta=1e-3, draws=40_000,
...                  seed=0)
>>> print(answer.label, answer.lower < answer.estimate < answer < answer.certified)
statistical with certified confidence True
"""

from __future__ import annotations

from typing import Any

from dpcal import _validate
from dpcal.accountants.correlated.answers import CorrelatedDelta, CorrelatedEpsilon
from dpcal.accountants.correlated.bounds.revealed import revealed
from dpcal.accountants.correlated.mechanism import Mechanism, Shaped
from dpcal.accountants.correlated.price import Goal
from dpcal.accountants.correlated.pricing import priced
from dpcal.accountants.correlated.table import CERTIFIED
from dpcal.accountants.events import CorrelatedGaussianDpEvent
from dpcal.accountants.samplers import Sampler

__all__ = ["delta", "epsilon", "revealed_delta"]


def epsilon(
    strategy: Shaped,
    sampler: Sampler,
    *,
    delta: float,
    noise_multiplier: float,
    executor: Any = None,
    **options: Any,
) -> CorrelatedEpsilon:
    """Return the epsilon of a run with correlated noise and random batches.

    Parameters
    ----------
    strategy
        A :class:`dpcal.accountants.matrix.Strategy`, or a
        :class:`~dpcal.accountants.correlated.Matrix` of your own.
    sampler
        How batches are drawn, such as :class:`~dpcal.accountants.correlated.Poisson`.
    delta
        A number in (0, 1).
    noise_multiplier
        Standard deviation > 0 of Z, in units of the clipping norm. It is not divided by a norm of
        C: papers that write z for sigma over the largest column norm mean ``z *
        Mechanism.of(strategy, noise_multiplier=1).largest_column`` here.
    statistics
        ``"certified"`` (default): draws with a confidence bound that holds at every sample size,
        and whose failure probability is part of delta. ``"none"``: deterministic bounds only.
    draws
        Monte Carlo draws for each direction, default 100,000.
    failure_probability
        Probability of wrong bounds from draws; default delta / 100.
    seed
        Fixes the draws; fresh and secret by default.
    executor
        A ``concurrent.futures`` executor or a Dask client that spreads the chunks of draws.

    Returns
    -------
    CorrelatedEpsilon
        The upper end, with ``.label``, ``.lower``, ``.estimate`` and the deterministic bound
        ``.certified`` beside it. The relation is zero-out: one record's contributions are left out.
        The answer never exceeds the deterministic bound, which also answers where the draws do not
        suffice; ``.note`` then states the reason.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the pair; the message states the reason.
    TargetUnreachable
        If neither draws nor a deterministic bound give a finite epsilon.
    """
    goal = Goal(delta=_validate.probability(delta=delta))
    run = CorrelatedGaussianDpEvent(strategy, sampler, noise_multiplier, **options)
    found: CorrelatedEpsilon = priced(goal, run, executor=executor)
    return found


def delta(
    strategy: Shaped,
    sampler: Sampler,
    *,
    epsilon: float,
    noise_multiplier: float,
    executor: Any = None,
    **options: Any,
) -> CorrelatedDelta:
    """Return the delta of a run with correlated noise and random batches at an epsilon >= 0.

    Parameters
    ----------
    strategy
        A :class:`dpcal.accountants.matrix.Strategy`, or a
        :class:`~dpcal.accountants.correlated.Matrix` of your own.
    sampler
        How batches are drawn.
    epsilon
        At least 0.
    noise_multiplier
        Standard deviation > 0 of Z, in units of the clipping norm.
    **options
        Settings of the draws: the keywords of :func:`epsilon`. The failure probability of certified
        confidence (default 1e-9) is added to the delta.

    Raises
    ------
    UnsupportedEvent
        If no theorem covers the pair; the message states the reason.
    """
    goal = Goal(epsilon=_validate.non_negative(epsilon=epsilon))
    run = CorrelatedGaussianDpEvent(strategy, sampler, noise_multiplier, **options)
    found: CorrelatedDelta = priced(goal, run, executor=executor)
    return found


def revealed_delta(
    strategy: Shaped,
    sampler: Sampler,
    *,
    epsilon: float,
    noise_multiplier: float,
) -> CorrelatedDelta:
    """Return a bound on delta that holds even if all participations are published.

    Parameters
    ----------
    strategy
        A :class:`dpcal.accountants.matrix.Strategy`, or a
        :class:`~dpcal.accountants.correlated.Matrix` of your own.
    epsilon
        At least 0.
    noise_multiplier
        Standard deviation > 0 of z, in units of the clipping norm.
    sampler
        Any sampler, also :class:`~dpcal.accountants.correlated.FixedSize`: only the law of the
        number of participations matters.

    Notes
    -----
    Joint convexity of the hockey-stick divergence over patterns; within a pattern the mechanism is
    Gaussian with sensitivity ||C y|| (Denisov et al. 2022).
    """
    at = _validate.non_negative(epsilon=epsilon)
    mechanism = Mechanism.of(strategy, noise_multiplier=noise_multiplier)
    found = revealed(mechanism, _validate.instance(Sampler, sampler=sampler)).proof(at)
    return CorrelatedDelta.proved(found, label=CERTIFIED)
