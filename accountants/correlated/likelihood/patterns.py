"""Which likelihood ratios come from the participations? Transfer matrices and particles.

>>> from dpcal.accountants.correlated.mechanism import Mechanism
>>> from dpcal.accountants.samplers import Poisson
>>> from dpcal.accountants.matrix import Banded
>>> mechanism = Mechanism.of(Banded(8, 2, (1.0, 0.5)), noise_multiplier=1.1)
>>> law, x = Poisson(0.2).automaton(8), 1.5 * np.sin(np.arange(1.0, 9.0))[:, None]
>>> exact = TransferEngine(mechanism, law).log_ratio(mechanism.fields(x.copy()))[0]
>>> many = np.repeat(mechanism.fields(x), 2000, axis=1)
>>> estimates = ParticleEngine(mechanism, law).log_ratio(many, np.random.default_rng(0))
>>> bool(abs(np.exp(estimates).mean() / np.exp(exact) - 1) < 0.01)
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcal._ext import correlated as kernels
from dpcal.accountants.correlated.likelihood.base import Engine, Floats

__all__ = ["ParticleEngine", "TransferEngine"]

# This array replaces the participations of a draw if there are none.
_NO_REFERENCE = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class TransferEngine(Engine):
    """Transfer matrix over the last participations, for a banded Gram matrix.

    Parameters
    ----------
    mechanism, law
        A mechanism with at most 12 bands, and its law of participations.
    separated
        Whether participations are always at least ``bands`` rounds apart, so that they do not
        interact and no past is needed.
    """

    separated: bool = False

    def log_ratio(self, a: Floats) -> Floats:
        """Return log L of every column of fields."""
        gram = self.mechanism.gram_bands
        if self.separated:
            gram = np.ascontiguousarray(gram[:, :1])
        return kernels.banded_log_ratio(a, gram, self.law.tables)


@dataclass(frozen=True, eq=False)
class ParticleEngine(Engine):
    """An unbiased estimate of L for any C >= 0, from particles that depend on all of x.

    Parameters
    ----------
    mechanism, law
        A mechanism of any kind with C >= 0, and its law of participations.
    particles
        Number of particles; with more particles the estimate, and so delta, is less inflated.

    Notes
    -----
    Andrieu, Doucet and Holenstein 2010 (conditional sequential Monte Carlo); Andrieu and Roberts
    2009 (pseudo-marginal arguments). (u - e^eps)_+ and (1 - e^eps u)_+ are convex in u.
    """

    particles: int = 32

    exact = False

    def log_ratio(
        self,
        a: Floats,
        generator: np.random.Generator | None = None,
        reference: tuple[Floats, NDArray[np.intc]] | None = None,
    ) -> Floats:
        """Return log of the estimate; draws from P pass the participations that they came from."""
        if generator is None:
            generator = np.random.default_rng(0)
        y, first = reference or (_NO_REFERENCE, np.empty(0, dtype=np.intc))
        return kernels.particle_log_ratio(
            a, self.mechanism.gram, self.law.tables, self.particles, y, first, generator
        )
