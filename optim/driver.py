"""What do all optimizers keep besides their algorithm? Iterates, a trace, and how the run ended.

A first-order optimizer is a loop over an oracle's answers. :class:`Run` holds what is the same in
all of them, so that the loop reads like the paper's pseudocode:

>>> import numpy as np
>>> from dpcal.calibrate import Plan, Query
>>> from dpcal.optim import PrivateOracle, Squared
>>> query = Query(name="gradient", kind="gradient", sampler="full",
...               max_norm=1.0, noise_multiplier=0.5, count=3)
>>> plan = Plan(optimizer="noisy_gd", n=2, queries=(query,), epsilon=9.0, delta=1e-2)
>>> oracle = PrivateOracle(Squared([[0.0], [1.0]], [0.0, 1.0]), plan, seed=0)
>>> run = Run(oracle, steps=3)
>>> while run.going:
...     run.move(run.w - 0.1 * oracle.gradient(run.w, "gradient"))
>>> run.result().message
'took all 3 planned steps'
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import NonFiniteAnswer, VacuousSchedule
from dpcal.optim.boundary.access import written
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.objectives.arrays import Vector, l2_norm, numbers, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.result import Result, Trace

__all__ = ["Progress", "Run", "RunOver", "planned", "step_size"]


class RunOver(Exception):  # noqa: N818 -- how a run ends, and no error
    """The run is over, for a reason that its ``status`` names; nothing was released for it."""

    status = "stopped"


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """What a callback sees: released values only.

    Parameters
    ----------
    step, steps
        Steps taken, and planned.
    w
        The iterate, shape (dimension,); a copy.
    """

    step: int
    steps: int
    w: Vector


Callback = Callable[[Progress], object]


class _Answering(AbstractContextManager[None]):
    """Stops a run where an answer is not finite; one object for all of its steps."""

    def __init__(self, run: Run) -> None:
        self._run = run

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if not isinstance(error, NonFiniteAnswer):
            return False
        run = self._run
        run.stop(f"stopped after {run.step} of {run.planned} planned steps: {error}")
        return True


class Run:
    """The state of a run: the iterate, the trace, the callback, and the sentence on its end.

    Parameters
    ----------
    oracle
        Whose answers the run is made of.
    steps
        How many moves are planned, at least 1.
    initial
        Where to start, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    radius
        Radius > 0 of a ball that every iterate is projected onto; infinite for none.
    center
        Centre of the ball, shape (dimension,); the origin when omitted. It must not depend on the
        records.
    callback
        Called with a :class:`Progress` every ``callback_every`` steps and after the last; a true
        answer stops the run.
    callback_every
        A whole number >= 1; a hundredth of the run when omitted.

    Attributes
    ----------
    w
        The iterate, shape (dimension,).
    step
        Moves made.
    radius
        As given.
    going
        Whether moves remain, and nothing stopped the run.
    """

    def __init__(
        self,
        oracle: Oracle,
        *,
        steps: int,
        initial: ArrayLike | None = None,
        radius: float = math.inf,
        center: ArrayLike | None = None,
        callback: Callback | None = None,
        callback_every: int | None = None,
    ) -> None:
        dimension = oracle.dimension
        start = np.zeros(dimension) if initial is None else numbers("initial", initial)
        self.oracle = oracle
        self.w = parameters(start, dimension)
        self.step = 0
        self._steps = _validate.count(steps=steps)
        self.radius = _validate.radius(radius=radius)
        self._center = None if center is None else parameters(numbers("center", center), dimension)
        self._callback = callback
        self._every = _validate.count(
            callback_every=max(1, steps // 100) if callback_every is None else callback_every
        )
        self._last = self.w
        self._rows: list[tuple[int, float, float]] = []
        self._stopped: str | None = None
        self._ended = self._warn = False
        self._answering = _Answering(self)

    @property
    def going(self) -> bool:
        """Whether moves remain, and nothing stopped the run."""
        return self.step < self._steps and self._stopped is None and not self._ended

    @property
    def planned(self) -> int:
        """Moves that were planned."""
        return self._steps

    @property
    def until_noted(self) -> int:
        """Moves until the next row of the trace, that move included; at least 1."""
        return min(self._every - self.step % self._every, max(1, self._steps - self.step))

    @property
    def projects_around_origin(self) -> bool:
        """Whether there is no ball, or its centre is the origin."""
        return self._center is None or not math.isfinite(self.radius)

    def move(self, w: Vector) -> None:
        """Take ``w``, projected onto the ball, as the next iterate; stop if it is not finite."""
        if math.isfinite(l2_norm(w)):
            self.jump(self._projected(w) if math.isfinite(self.radius) else w, 1)
        else:
            self.overflow(self.w, 0)

    def jump(self, w: Vector, moves: int) -> None:
        """Take ``w``, finite and inside the ball, as the iterate after so many more moves.

        Parameters
        ----------
        w
            Shape (dimension,).
        moves
            At least 1 and at most :attr:`until_noted`.
        """
        self.w = w
        self.step += moves
        if self.step % self._every == 0 or self.step == self._steps:
            self._note()

    def overflow(self, w: Vector, moves: int) -> None:
        """Stop at ``w``, the last finite iterate, which ``moves`` more moves led to."""
        self.w, self.step = w, self.step + moves
        self.stop(
            f"stopped after {self.step} of {self._steps} planned steps, because iterates "
            "became infinite: the learning rate is too large"
        )

    def _projected(self, w: Vector) -> Vector:
        """The nearest point of the ball."""
        away = w if self._center is None else w - self._center
        norm = l2_norm(away)
        if not norm > self.radius:
            return w
        inside: Vector = away * (self.radius / norm)
        return inside if self._center is None else self._center + inside

    def finish(self, message: str) -> None:
        """End the run as its algorithm says, before all planned moves; this is no failure."""
        if self.step % self._every:
            self._note()
        self._stopped, self._ended = message, True

    def stop(self, message: str) -> None:
        """End the run before its algorithm would; :meth:`result` warns of it."""
        self._stopped, self._warn = message, True

    def answering(self) -> AbstractContextManager[None]:
        """Stop the run, with the ledger as it is, where an objective's answer is not finite."""
        return self._answering

    def result(self, w: Vector | None = None) -> Result:
        """Return the outcome: the last iterate, or ``w`` if given."""
        written(self.oracle)
        if getattr(self.oracle, "closes_with_run", False):
            self.oracle.close()  # type: ignore[attr-defined]  # of a store alone
        if self._warn and self._stopped is not None:
            warnings.warn(self._stopped, RuntimeWarning, stacklevel=4)
        elif self._ended and not self.step and self.oracle.ledger.answers:
            warnings.warn(
                "the run took no step and returns its start, and what its answers cost is spent: "
                f"it {self._stopped}.",
                VacuousSchedule,
                stacklevel=4,
            )
        step, norm, distance = zip(*self._rows, strict=True) if self._rows else ((), (), ())
        return Result(
            w=(self.w if w is None else w).copy(),
            trace=Trace(
                step=np.array(step, dtype=np.int64),
                norm=np.array(norm),
                distance=np.array(distance),
            ),
            ledger=self.oracle.ledger,
            plan=self.oracle.plan,
            complete=self._stopped is None or self._ended,
            message=self._stopped or f"took all {self._steps} planned steps",
            early=self._stopped is not None,
            seed_given=bool(getattr(self.oracle, "seed_given", False)),
        )

    def _note(self) -> None:
        """Write a row of the trace, and ask the callback."""
        self._rows.append((self.step, l2_norm(self.w), l2_norm(self.w - self._last)))
        self._last = self.w
        if self._callback is None:
            return
        written(self.oracle)
        progress = Progress(step=self.step, steps=self._steps, w=self.w.copy())
        if self._callback(progress) and self.step < self._steps:
            self._stopped = (
                f"stopped by the callback after {self.step} of {self._steps} planned steps"
            )


def step_size(plan: Plan, objective: Objective | Oracle, learning_rate: float | None) -> float:
    """Return the learning rate that was chosen, or the plan's, shortened for the regulariser.

    Parameters
    ----------
    plan
        Its parameter ``"learning_rate"`` is for the loss alone.
    objective
        Gives l2.
    learning_rate
        As the user chose it, or None.

    Raises
    ------
    ValueError
        If the regulariser alone would make iterates diverge.
    """
    # An oracle about records elsewhere may not tell its regulariser.
    l2 = float(getattr(objective, "l2", 0.0))
    if learning_rate is None:
        eta = _validate.positive(learning_rate=plan.parameters.get("learning_rate"))
        return eta / (1 + eta * l2)
    eta = _validate.positive(learning_rate=learning_rate)
    if eta * l2 >= 2:
        raise ValueError(
            f"learning_rate must be below 2 / l2 = {2 / l2:.6g}, beyond which iterates diverge, "
            f"got {learning_rate!r}."
        )
    return eta


def planned(plan: Plan, optimizer: str, *kinds: str) -> tuple[Query, ...]:
    """Return a plan's queries if they are of these kinds, in order; say so if they are not."""
    if plan.optimizer != optimizer:
        raise ValueError(
            f"plan must be for optimizer {optimizer!r}, got one for {plan.optimizer!r}."
        )
    if tuple(query.kind for query in plan.queries) != kinds:
        raise ValueError(
            f"plan must have queries of kinds {list(kinds)}, got "
            f"{[(query.name, query.kind) for query in plan.queries]}."
        )
    return plan.queries
