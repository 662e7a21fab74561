"""Can steps of adaptive descent be taken at once? Their loop, with its budget, in compiled code.

The noise of an adaptive answer is chosen from the answers before, so what the steps spend is known
only when they have been taken. The loop checks the budget before every release, with sums rounded
up, and the ledger is written before anything leaves.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal._ext.kl import NO_NORM, NOT_FINITE, adaptive_descent
from dpcal.calibrate.plan import Query
from dpcal.errors import NonFiniteAnswer
from dpcal.optim.boundary.fused import Loops
from dpcal.optim.objectives.arrays import Vector

__all__ = ["AdaptiveLoops", "Steps"]


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """The outcome of several steps of adaptive descent.

    Parameters
    ----------
    w
        The iterate after them, shape (dimension,).
    moves
        How many steps were taken.
    ended
        Why no more were taken: one of the constants of ``dpcal._ext.kl``.
    smallest, best
        The smallest noisy norm that was released, infinite if none was, and where; shape
        (dimension,).
    """

    w: Vector
    moves: int
    ended: int
    smallest: float
    best: Vector


class AdaptiveLoops(Loops):
    """The fused loops over one oracle's answers, with that of adaptive descent."""

    def adapt(
        self,
        w: ArrayLike,
        norm: str,
        gradient: str,
        *,
        steps: int,
        norm_multiplier: float,
        unit: float,
        learning_rate: float,
    ) -> Steps:
        """Take several steps of adaptive descent.

        Each step asks for a noisy norm, with ``norm_multiplier``, and for a gradient with a
        multiplier of ``unit`` times the noisy norm, as long as the norm is positive and the budget
        pays for the next release, which is checked before it is made. All answers leave together,
        after their entries are in the ledger.

        Parameters
        ----------
        w
            Parameters to start from, shape (dimension,), finite.
        norm, gradient
            Names of adaptive queries on all records, of kinds ``"gradient norm"`` and
            ``"gradient"``, with one ``max_norm``.
        steps
            At least 1.
        norm_multiplier, unit, learning_rate
            Positive.
        """
        w = self._parameters("w", w)
        steps = _validate.count(steps=steps)
        eta, unit = _validate.positive(learning_rate=learning_rate), _validate.positive(unit=unit)
        if self._admission.filtered:
            raise ValueError("an oracle with a filter must be asked answer by answer.")
        asked = self._admission.asked(norm, "gradient norm", norm_multiplier)
        query = self._adaptive(gradient, asked)
        best, multipliers = w.copy(), np.empty(steps)
        ledger, budget = self._admission.ledger, query.budget or 0.0
        with self._lock:
            possible = min(steps, self._admission.remaining(norm))
            if possible < 1:
                return Steps(w=w, moves=0, ended=NO_NORM, smallest=math.inf, best=best)
            left = self._admission.remaining(gradient)
            share = ledger.share(budget)
            norms, moves, smallest, ended = adaptive_descent(
                self._kernel,
                w,
                steps=min(possible, max(1, left)),
                noise=self._streams.noise,
                max_norm=query.max_norm,
                l2=self._l2,
                penalized=self._penalized,
                learning_rate=eta,
                norm_multiplier=asked.noise_multiplier,
                unit=unit,
                least=query.noise_multiplier if left else math.inf,
                budget=budget,
                spent=math.nextafter(float(share), math.inf) if share else 0.0,
                norm_share=asked.share_of_one,
                smallest=math.inf,
                best=best,
                multipliers=multipliers,
            )
            if norms:
                ledger.record(asked, norms)
            ledger.record_chosen(query, multipliers[:moves].tolist())
        if ended == NOT_FINITE:
            raise NonFiniteAnswer(
                f"The norm behind query {norm!r} is infinite, and was not released: the "
                "parameters that were asked about are too large."
            )
        return Steps(w=w, moves=moves, ended=ended, smallest=smallest, best=best)

    def _adaptive(self, name: str, norm: Query) -> Query:
        """Return the query that goes with a norm in a fused loop."""
        query = self._admission.plan.query(name)
        pair = (norm.budget, norm.max_norm, "gradient")
        if norm.budget is None or (query.budget, query.max_norm, query.kind) != pair:
            raise ValueError(
                f"queries {norm.name!r} and {name!r} must be adaptive with one budget and one "
                "max_norm, the second of kind 'gradient'."
            )
        return query
