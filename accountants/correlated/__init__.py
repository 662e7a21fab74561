"""Epsilon and delta of runs with random batches, and noise correlated across rounds.

Such a run is one event, :class:`~dpcal.accountants.events.CorrelatedGaussianDpEvent`, of which
:func:`dpcal.accountants.epsilon` and :func:`dpcal.accountants.delta` know the price. They choose a
method from a decision table by the shape of the noise and the sampler, and label each answer
``exact``, ``certified`` or ``statistical with certified confidence``.

>>> import numpy as np
>>> from dpcal.accountants import correlated, epsilon, events, matrix
>>> C = np.eye(100) + np.diag(np.full(99, 0.5), -1)
>>> run = events.CorrelatedGaussianDpEvent(
...     matrix.Dense(C), correlated.CyclicPoisson(bands=2, sampling_probability=0.02),
...     noise_multiplier=1.0)
>>> answer = epsilon(run, delta=1e-5)
>>> print(f"{answer:.6f} {answer.label}")
1.578946 exact
"""

from typing import TYPE_CHECKING

from dpcal._internal import lazy

if TYPE_CHECKING:
    from dpcal.accountants.correlated.answers import (
        CorrelatedDelta as CorrelatedDelta,
        CorrelatedEpsilon as CorrelatedEpsilon,
    )
    from dpcal.accountants.correlated.bounds.reductions import revealed as revealed
    from dpcal.accountants.correlated.mechanism import Mechanism as Mechanism
    from dpcal.accountants.samplers import (
        BallsInBins as BallsInBins,
        CyclicPoisson as CyclicPoisson,
        FixedSize as FixedSize,
        MinSeparation as MinSeparation,
        Poisson as Poisson,
        RandomAllocation as RandomAllocation,
        Sampler as Sampler,
    )
else:
    __getattr__, __dir__, __all__ = lazy.attach(__name__)
