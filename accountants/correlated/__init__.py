"""Epsilon and delta of runs with random batches, and noise correlated across rounds.

:func:`epsilon` and :func:`delta` choose a method from a decision table by the shape of the noise
and the sampler, and label each answer ``exact``, ``certified`` or ``statistical with certified
confidence``.

>>> import numpy as np
>>> from dpcal.accountants import correlated, matrix
>>> C = np.eye(100) + np.diag(np.full(99, 0.5), -1)
>>> answer = correlated.epsilon(
...     matrix.Dense(C), correlated.CyclicPoisson(bands=2, sampling_probability=0.02),
...     noise_multiplier=1.0, delta=1e-5)
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
    from dpcal.accountants.correlated.draws.montecarlo import simulate as simulate
    from dpcal.accountants.correlated.mechanism import Mechanism as Mechanism
    from dpcal.accountants.correlated.price import (
        delta as delta,
        epsilon as epsilon,
        revealed_delta as revealed_delta,
    )
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
