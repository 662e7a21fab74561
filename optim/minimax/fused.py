"""The fused inner loop of minimax methods, over one oracle's answers; a part of the boundary.

It gives the answers of :class:`dpcal.optim.PrivateOracle`, step by step, with the same random
numbers, and writes the ledger before it reads a record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from dpcal._ext.follower import Follower
from dpcal.errors import NonFiniteAnswer
from dpcal.optim.boundary.fused import described, plain
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.objectives.arrays import Vector, numbers

__all__ = ["TOO_FAST", "PairLoops"]

TOO_FAST = "The dual iterate became NaN or infinite: the ascent rate is too large."


class PairLoops:
    """The fused inner loop of minimax methods, over one oracle's answers.

    Parameters
    ----------
    oracle
        Whose objective has ``pairs``; see :class:`dpcal.optim.minimax.MinimaxObjective`.
    refresh, difference
        Names of queries of kinds ``"gradient"`` and ``"gradient difference"`` in its plan, not
        adaptive, not disjoint and with independent noise.
    """

    def __init__(self, oracle: PrivateOracle, refresh: str, difference: str) -> None:
        # The loop is a part of the boundary: it uses the oracle's own admission and streams.
        self._admission, self._lock = oracle._admission, oracle._lock
        self._queries = (
            self._admission.asked(refresh, "gradient"),
            self._admission.asked(difference, "gradient difference"),
        )
        of_refresh, of_difference = (
            described(query, oracle.plan.n, oracle._mechanism) for query in self._queries
        )
        objective: Any = oracle.objective
        self._follower = Follower(
            objective.pairs,
            d1=objective.dimensions[0],
            sampling=oracle._streams.sampling,
            refresh=of_refresh,
            difference=of_difference,
            primal_l2=objective.primal_l2,
            dual_l2=objective.dual_l2,
        )

    @classmethod
    def over(cls, oracle: object, refresh: str, difference: str) -> Self | None:
        """Return the loop over an oracle's answers to two queries; None where it does not apply."""
        if not isinstance(oracle, PrivateOracle) or oracle._answers is None:
            return None
        queries = [query for query in oracle.plan.queries if query.name in (refresh, difference)]
        pairs = getattr(oracle.objective, "pairs", None)
        if pairs is None or len(queries) != 2 or not all(map(plain, queries)):
            return None
        return cls(oracle, refresh, difference)

    def track(
        self,
        at: Vector,
        before: Vector,
        estimate: Vector,
        *,
        refreshed: bool,
        literal: bool,
        shortest: bool,
        inner_steps: int,
        ascent_rate: float,
        project: Callable[[Vector], Vector],
    ) -> tuple[Vector, Vector]:
        """Take an outer step: K estimates of both gradients, and y's steps between them.

        The result is the estimate that is kept, shape (dimension,), and its y. BudgetExceeded is
        raised if fewer answers remain than the step needs; no record is touched and nothing is
        spent. NonFiniteAnswer is raised if y would not be finite, or an iterate is too far from the
        one before; the ledger holds the answers that were given until then.

        Parameters
        ----------
        at, before
            (x, y) now, and at the last estimate; shape (dimension,), finite.
        estimate
            Of both gradients at ``before``, shape (dimension,), finite.
        refreshed, literal, shortest
            Whether the step begins afresh; whether a difference follows a refresh at once, as
            printed; whether the estimate with the shortest step of y is kept, not the last one.
        inner_steps, ascent_rate
            K, at least 1, and the step size > 0 of y.
        project
            Function that returns the point of Y nearest to its argument, shape (d2,).
        """
        at, before, estimate = (numbers("w", w).copy() for w in (at, before, estimate))
        refresh, difference = self._queries
        differences = inner_steps - (refreshed and not literal)
        answers = [(refresh, 1)] if refreshed else []
        if differences:
            answers.append((difference, differences))
        with self._lock:
            asking = self._admission.in_turn(answers)
            y = self._follower.track(
                at,
                before,
                estimate,
                refreshed=refreshed,
                literal=literal,
                shortest=shortest,
                inner_steps=inner_steps,
                ascent_rate=ascent_rate,
                project=project,
                asking=asking,
            )
        if y is None:
            raise NonFiniteAnswer(TOO_FAST)
        return estimate, y
