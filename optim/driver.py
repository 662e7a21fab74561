"""The state of a run: its iterate, its trace, its callback, and the sentence on how it ended.

An optimizer is a loop over an oracle's answers. :class:`Run` holds the rest, so that the loop reads
like the paper's pseudocode:

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> X = np.random.default_rng(0).standard_normal((1_000, 3))
>>> objective = optim.Logistic(X, X @ [1.0, -2.0, 0.5] > 0, classes=[0, 1])
>>> plan = calibrate.dpsgd(n=1_000, batch_size=100, steps=20, epsilon=1.0, delta=1e-6)
>>> oracle = optim.PrivateOracle(objective, plan, seed=0)
>>> state = Run(oracle, steps=20)
>>> while state.going:
...     state.move(state.w - 0.1 * oracle.gradient(state.w, "gradient"))
>>> state.result().complete
True
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal._ext.loops import Steps
from dpcal._internal import validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import NonFiniteAnswer, warn_caller
from dpcal.optim.boundary.oracle import CompiledWalk, PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.ending import Ending
from dpcal.optim.objectives.arrays import Vector, l2_norm, numbers, parameters
from dpcal.optim.result import Result, Trace

__all__ = [
    "Callback",
    "Progress",
    "Run",
    "RunOver",
    "Walk",
    "check_callback",
    "walk_of",
    "warn_of_noise",
    "worth",
    "written",
]


# Clipped gradients rarely have a longer mean, in clips; never for a logistic loss at the origin.
_HIDDEN = 0.5
_NO_BETTER = "as far as its own answers tell, the run ended no better than its start"


class RunOver(Exception):  # noqa: N818 -- the end of a run, not an error
    """The end of a run, for the reason in its ``status``, without a release."""

    status = "stopped"


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """Argument of a callback: steps taken and planned, and a copy of the iterate; all released."""

    step: int
    steps: int
    w: Vector


Callback = Callable[[Progress], object]


class Run(AbstractContextManager[None]):
    """The state of a run: the iterate, the trace, the callback, and the sentence on its end.

    Parameters
    ----------
    oracle
        Answers the plan's queries.
    steps
        Planned moves, at least 1.
    center
        Centre of the ball, shape (dimension,); the origin when omitted. The centre must not depend
        on the records.
    initial, radius, callback, callback_every
        Arguments as in :func:`dpcal.optim.run`.

    Attributes
    ----------
    w
        The iterate, shape (dimension,).
    step
        Moves made.
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
        start = np.zeros(dimension) if initial is None else _point("initial", initial, dimension)
        self.oracle = oracle
        self.w = self._start = start
        self.step = 0
        self._steps = validate.count(steps=steps)
        self.radius = validate.radius(radius=radius)
        self._center = None if center is None else _point("center", center, dimension)
        check_callback(callback)
        self._callback = callback
        self._every = validate.count(
            callback_every=max(1, steps // 100) if callback_every is None else callback_every
        )
        self._last = self.w
        self._rows: list[tuple[int, float, float]] = []
        self._status = "finished"
        self._message = f"took all {self._steps} planned steps"
        self._warns = self._told = False
        self._ending: Ending | None = None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        """Stop the run, with the ledger as it is, where an answer is not finite."""
        if not isinstance(error, NonFiniteAnswer):
            return False
        self.stop(f"stopped after {self.step} of {self._steps} planned steps: {error}")
        return True

    @property
    def going(self) -> bool:
        """Whether moves remain, and nothing stopped the run."""
        return self.step < self._steps and self._status == "finished"

    @property
    def planned(self) -> int:
        """Number of planned moves."""
        return self._steps

    @property
    def until_noted(self) -> int:
        """Number of moves to the next row of the trace, at least 1."""
        return min(self._every - self.step % self._every, max(1, self._steps - self.step))

    def hear(self, g: Vector, query: Query) -> None:
        """Take note of a gradient at the iterate, the answer to ``query``.

        Where the last iterate is returned, such answers at the first and at late steps show whether
        the run ended below its start (:mod:`dpcal.optim.ending`). The errors of these answers must
        be independent of the iterate.
        """
        if self._ending is None:
            self._ending = Ending.of(self.oracle)
        size = query.expected_batch_size(self.oracle.plan.n)
        q = query.sampling_probability or 1.0
        self._ending.hear(
            self.step,
            self.w,
            g,
            deviation=query.noise_multiplier * query.max_norm / size,
            sampling=query.max_norm * math.sqrt((1 - q) / size),
        )

    @property
    def ball(self) -> dict[str, Any]:
        """The ball that iterates are projected onto, as a walk takes it."""
        if self._center is None or not math.isfinite(self.radius):
            return {"radius": self.radius}
        return {"project": self._projected}

    def follow(self, walk: Walk | CompiledWalk, moves: int, *, heard: Query | None = None) -> None:
        """Make up to ``until_noted`` moves of a walk from the run's iterate.

        The answer of the first one is heard as :meth:`hear` does, if its query is given.
        """
        before = walk.step
        with self:
            finite = walk.take(moves)
            if heard is not None:
                self.hear(walk.gradient, heard)
            if finite:
                self.jump(walk.w, walk.step - before)
            else:
                self.overflow(walk.w, walk.step - before)

    def move(self, w: Vector) -> None:
        """Take ``w``, projected onto the ball, as the next iterate; stop if it is not finite."""
        if math.isfinite(l2_norm(w)):
            self.jump(self._projected(w) if math.isfinite(self.radius) else w, 1)
        else:
            self.overflow(self.w, 0)

    def jump(self, w: Vector, moves: int) -> None:
        """Take ``w``, finite and in the ball, as the iterate after 1 to ``until_noted`` moves."""
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
        """Return the nearest point of the ball."""
        away = w if self._center is None else w - self._center
        norm = l2_norm(away)
        if not norm > self.radius:
            return w
        inside: Vector = away * (self.radius / norm)
        return inside if self._center is None else self._center + inside

    def finish(self, message: str, *, told: bool = False) -> None:
        """End the run by its algorithm, before all planned moves; this is not a failure.

        ``told`` is whether the algorithm warned of a point that may be no better than the start.
        """
        if self.step % self._every:
            self._note()
        self._status, self._message, self._told = "ended", message, told

    def stop(self, message: str) -> None:
        """End the run before its algorithm would; :meth:`result` warns of it."""
        self._status, self._message, self._warns = "stopped", message, True

    def answering(self) -> AbstractContextManager[None]:
        """Stop the run, with the ledger as it is, where an objective's answer is not finite."""
        return self

    def result(self, w: Vector | None = None) -> Result:
        """Return the outcome: the last iterate, or ``w`` if given."""
        written(self.oracle)
        if getattr(self.oracle, "closes_with_run", False):
            self.oracle.close()  # type: ignore[attr-defined]  # of a store alone
        w, message = self.w if w is None else w, self._message
        if self._warns:
            warn_caller(message, RuntimeWarning)
        elif self._told:
            pass
        elif self.oracle.ledger.answers and np.array_equal(w, self._start):
            found = "took no step" if not self.step else "found no better point by its answers"
            warn_caller(
                f"the run {found} and returns its start, and what its answers cost is spent: it "
                f"{message}."
            )
        elif np.array_equal(w, self.w) and self._ending is not None and self._ending.no_better:
            message += f"; {_NO_BETTER}"
            warn_caller(
                f"{_NO_BETTER}, and what its answers cost is spent: the learning rate is too "
                "large, or noise hides the gradients."
            )
        step, norm, distance = np.array(self._rows).reshape(-1, 3).T.copy()
        return Result(
            w=w.copy(),
            trace=Trace(step=step.astype(np.int64), norm=norm, distance=distance),
            ledger=self.oracle.ledger,
            plan=self.oracle.plan,
            complete=self._status != "stopped",
            message=message,
            status=self._status,
            early=self._status != "finished",
            seed_given=bool(getattr(self.oracle, "seed_given", False)),
            noise=getattr(self.oracle, "noise", "gaussian"),
            read_from_data=tuple(getattr(self.oracle, "read_from_data", ())),
        )

    def _note(self) -> None:
        """Write a row of the trace, and call the callback."""
        self._rows.append((self.step, l2_norm(self.w), l2_norm(self.w - self._last)))
        self._last = self.w
        if self._callback is None:
            return
        written(self.oracle)
        progress = Progress(step=self.step, steps=self._steps, w=self.w.copy())
        if self._callback(progress) and self.step < self._steps:
            self._status, self._told = "stopped", True
            self._message = (
                f"stopped by the callback after {self.step} of {self._steps} planned steps"
            )


class Walk(Steps):
    """Steps over the answers of any oracle, one at a time; ``how`` is as for :class:`Steps`.

    ``refresh`` and ``difference`` are names of its queries of kinds ``"gradient"`` and ``"gradient
    difference"``, not adaptive; the latter None where every gradient is fresh.
    """

    def __init__(
        self, oracle: Oracle, w: Vector, refresh: str, difference: str | None = None, **how: Any
    ) -> None:
        def fresh(w: Vector) -> Vector:
            return oracle.gradient(w, refresh)

        def change(w: Vector, v: Vector) -> Vector:
            return oracle.difference(w, v, str(difference))

        super().__init__(fresh, None if difference is None else change, w, **how)

    def take(self, steps: int = 1) -> bool:
        """Take a step; return False where the next iterate would not be finite."""
        return super().take(min(steps, 1)) == 1


def walk_of(
    oracle: Oracle, w: Vector, refresh: str, difference: str | None = None, **how: Any
) -> Walk | CompiledWalk:
    """Return a walk from ``w``, with many steps at once where the oracle has compiled answers.

    Its ledger has an entry before a record is read; ``how`` is as for :class:`Steps`.
    """
    if isinstance(oracle, PrivateOracle):
        names = [refresh] if difference is None else [refresh, difference]
        compiled = oracle._walk(w, *names, **how)
        if compiled is not None:
            return compiled
    return Walk(oracle, w, refresh, difference, **how)


def written(oracle: Oracle) -> None:
    """Write answers that wait in an oracle to its file, before anything that depends on them."""
    getattr(oracle, "flush", lambda: None)()


def check_callback(callback: Any) -> None:
    """Refuse a callback that is neither None nor a function, before a run costs anything."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be a function of a Progress or None, got {callback!r}.")


def worth(message: str, plan: Plan, *, at_start: bool, norm: float) -> str:
    """Return a message on a point that passed a test; warn with it where every point passes.

    ``norm`` is the norm of the estimate there, and ``at_start`` whether the run never left its
    start.
    """
    if not (at_start or plan.parameters.get("vacuous")):
        return message
    alpha = plan.parameters.get("accuracy")
    why = "it is the start" if at_start else "the plan is vacuous, and every point passes"
    known = "" if alpha is None else f"alpha is {alpha:.3g}, and "
    message += f": {why}; {known}the estimate there has norm {norm:.3g}"
    warn_caller(message)
    return message


def warn_of_noise(plan: Plan, dimension: int) -> None:
    """Warn before a run if noise hides the mean of all its gradients."""
    norm = plan.noise_norm(dimension)
    if norm > _HIDDEN:
        warn_caller(
            f"the noise in the mean of all gradients that {plan.optimizer} asks for has norm "
            f"{norm:.2g}, in units of the clip: it hides them, and the run is not expected to end "
            "better than its start. More records, a larger epsilon or fewer parameters are needed."
        )


def _point(name: str, given: ArrayLike, dimension: int) -> Vector:
    """Return a copy of given parameters; refuse another shape by the argument's name."""
    point = numbers(name, given)
    if point.shape != (dimension,):
        raise ValueError(f"{name} must have shape ({dimension},), got {point.shape}.")
    return parameters(point, dimension)
