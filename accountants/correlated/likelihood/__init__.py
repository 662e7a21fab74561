r"""How likely is an output with the record, compared to without? Likelihood ratios.

Every engine maps fields ``a = C^T x / sigma^2`` of shape (rounds, draws) to log L. For
``C[t, u] = decay^(t - u)`` the past enters through one number, s_t = decay s_{t-1} + y_t, and

    M_{t-1}(s) = (1 - r) M_t(decay s) + r exp(h_t - decay b_t s) M_t(decay s + 1),    L = M_0(0),

with b_t the energy of column t and h_t = a_t - b_t / 2. Each M_t is the Laplace transform of a
positive measure: log M_t is smooth, convex and decreasing.

* :class:`GridEngine` interpolates M_t at Chebyshev nodes, and log M_t for the draws whose error by
  M_t may be too large; :func:`refined` adds nodes until 64 draws agree to 1e-7 with log M_t at more
  than twice as many. The error falls geometrically in the number of nodes.
* :class:`VectorEngine` does this on a grid of up to three states, for sums of geometric series.
* :class:`BracketEngine` proves bounds: chords lie above a convex function, tangents below.
* :class:`TransferEngine` carries the last ``bands - 1`` participations, exact up to rounding.
* :class:`ParticleEngine` estimates L without bias for any C >= 0. By Jensen's inequality every
  delta that it gives is too large on average, never too small.

>>> import numpy as np
>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.matrix import LambdaCGD
>>> from dpcal.accountants.samplers import Poisson
>>> mechanism = Mechanism.of(LambdaCGD(8, 0.6), noise_multiplier=1.1)
>>> x = 1.5 * np.sin(np.arange(1, 9))[:, None]
>>> engine = GridEngine(mechanism, Poisson(0.2).automaton(8), nodes=48)
>>> print(f"{engine.log_ratio(mechanism.fields(x))[0]:.12f}")
0.013272011634
"""

from dpcal.accountants.correlated.likelihood.base import VALIDATED, Engine, largest_state
from dpcal.accountants.correlated.likelihood.brackets import (
    BracketEngine,
    likely_end,
    mean_field_minorant,
)
from dpcal.accountants.correlated.likelihood.grids import GridEngine, refined
from dpcal.accountants.correlated.likelihood.patterns import ParticleEngine, TransferEngine
from dpcal.accountants.correlated.likelihood.vector_grids import VectorEngine, refined_vector

__all__ = [
    "VALIDATED",
    "BracketEngine",
    "Engine",
    "GridEngine",
    "ParticleEngine",
    "TransferEngine",
    "VectorEngine",
    "largest_state",
    "likely_end",
    "mean_field_minorant",
    "refined",
    "refined_vector",
]
