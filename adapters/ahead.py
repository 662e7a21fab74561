"""Noise of a step that a thread draws while gradients are taken: it depends on none of them.

>>> from dpcal.calibrate import dpsgd
>>> plan = dpsgd(n=8, batch_size=4, steps=2, epsilon=3.0, delta=1e-6)
>>> oracle = Ahead(plan, dimension=MANY, seed=0)
>>> rows = oracle.draw()
>>> oracle.answer().shape
(16384,)
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcal.adapters.stepwise import StepwiseOracle
from dpcal.calibrate.plan import Query
from dpcal.optim.boundary.noise import Mechanism
from dpcal.optim.objectives.arrays import Rows, Vector

MANY = 1 << 14


class Ahead(StepwiseOracle):
    """Draws the noise of a step in a thread, while gradients are taken: it depends on none of them.

    The thread is given the step's noise after its answer is in the ledger. If a step is given up,
    its noise is used for no other step.
    """

    _noise: Future[NDArray[np.int64]] | None = None
    _thread: ThreadPoolExecutor | None = None
    # One step's noise at a time: the thread begins with the next one after this one was added.
    _drawn_in: NDArray[np.int64] | None = None

    def _take(self, rows: Rows) -> None:
        self._noise = None
        super()._take(rows)
        (query,) = self.plan.queries
        independent = type(self._mechanism) is Mechanism and query.correlation is None
        if independent and self.dimension >= MANY:
            self._thread = self._thread or ThreadPoolExecutor(1)
            self._noise = self._thread.submit(self._drawn, query)

    def _drawn(self, query: Query) -> NDArray[np.int64]:
        if self._drawn_in is None:
            self._drawn_in = np.empty(self.dimension, dtype=np.int64)
        self._drawn_in.fill(0)
        self._mechanism.add_noise(self._drawn_in, query, query.max_norm)
        return self._drawn_in

    def _noisy_mean(self, total: Any, query: Query, bound: float, **how: Any) -> Vector:
        noise, self._noise = self._noise, None
        if noise is None:
            return super()._noisy_mean(total, query, bound, **how)
        size = query.expected_batch_size(self.plan.n)
        return self._mechanism.mean(total, bound, size, noise.result())
