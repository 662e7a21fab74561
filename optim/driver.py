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
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.plan import Plan, Query
from dpcal.errors import NonFiniteAnswer, warn_caller
from dpcal.optim.boundary.oracle import Oracle, Walk
from dpcal.optim.objectives.arrays import Vector, l2_norm, numbers, parameters
from dpcal.optim.result import Result, Trace

# Clipped gradients rarely have a longer mean, in clips; never for a logistic loss at the origin.
_HIDDEN = 0.5
_NO_BETTER = "as far as its own answers tell, the run ended no better than its start"


# Most late steps in an average: with more, the error of the start remains.
_LATE = 64
_FEWEST = 8
# Standard errors of a rise above 0: 1.3 false alarms in 1,000 runs at a standstill.
_SURE = 3.0


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


class Ending:
    """A test whether a descent ended below its start, by gradients that were released anyway.

    Released gradients ``g_t = grad F(w_t) + e_t`` have errors that are independent of w_t and
    earlier iterates. So the mean over late steps t of ``(w_t - w_0) . g_t`` has the expectation of
    the mean of ``(w_t - w_0) . grad F(w_t)``. Two rises of the loss F follow from it:

    - On a quadratic, ``F(w) - F(w_0) = (w - w_0) . (grad F(w_0) + grad F(w)) / 2``. The error of
      g_0 moved the iterates against itself, so that this estimate is too low, by at most
      ``eta E|e_0|^2 / 2`` where no step eta is longer than the inverse smoothness.
    - A record's logistic or softmax loss is at least 0, and at least ``w . g`` for its gradient g
      at w: the rest is the entropy of its predicted classes. So it is at least ``w . g'`` for a
      clipped gradient g', and ``F(w) - F(0) >= w . grad F(w) - F(0)``. F(0) is known: log 2, or the
      log of the number of classes.

    Standard errors follow from the noise, which is public. Where records are sampled, they follow
    from the scatter of late terms. They are at most as large as for records with gradients that all
    lie along the way and are as long as the clip. All this is a function of released values, and
    costs nothing.

    >>> import numpy as np
    >>> rng, told, w = np.random.default_rng(0), Ending(), np.zeros(5)
    >>> for step in range(50):  # F(w) = |w - 1|^2 / 2, by steps that are too long
    ...     g = w - 1 + rng.normal(size=5)
    ...     told.hear(step, w, g, deviation=1.0)
    ...     w = w - 1.99 * g
    >>> told.no_better
    True

    Parameters
    ----------
    at_origin
        The loss at the origin, or a bound on it, if each record's loss is at least the product of
        parameters and gradient; else infinite.
    l2
        Weight of the penalty ``l2 / 2 ||w||^2``.
    """

    def __init__(self, *, at_origin: float = math.inf, l2: float = 0.0) -> None:
        self._at_origin, self._l2 = at_origin, l2
        self._first: _Heard | None = None
        self._late: deque[_Heard] = deque(maxlen=_LATE)

    @classmethod
    def of(cls, oracle: Oracle) -> Self:
        """Return an ending for answers about an oracle's objective.

        A softmax loss has no more classes than parameters.
        """
        loss, weight = getattr(oracle, "linear_loss", None) or ("", 1.0)
        at_origin = {"logistic": 2, "softmax": oracle.dimension}.get(loss)
        return cls(
            at_origin=math.inf if at_origin is None else weight * math.log(max(2, at_origin)),
            l2=float(getattr(oracle, "l2", 0.0)),
        )

    def hear(
        self, step: int, w: Vector, g: Vector, *, deviation: float, sampling: float = 0.0
    ) -> None:
        """Take note of a gradient.

        Parameters
        ----------
        step
            Number of moves that led to the iterate.
        w, g
            Iterate, and the released gradient there, with an error that is independent of the
            iterate.
        deviation, sampling
            Standard deviation >= 0 of the noise on each coordinate of g; and the largest standard
            deviation, in any direction, that sampling records can add.
        """
        heard = _Heard(step, w.copy(), g.copy(), deviation**2, sampling**2)
        if self._first is None:
            self._first = heard
        else:
            self._late.append(heard)

    @property
    def no_better(self) -> bool:
        """Whether a rise of the loss late in the run is at least 0, by three standard errors."""
        if self._first is None or not self._late:
            return False
        late = [heard for heard in self._late if heard.step >= first_late(self._late[-1].step + 1)]
        if not late:
            return False
        start = self._first.w
        ways = np.array([heard.w - start for heard in late])
        terms = np.array([way @ heard.g for way, heard in zip(ways, late, strict=True)])
        squares = (ways**2).sum(axis=1)
        noise = float(squares @ [heard.noise for heard in late])
        later = noise + float(squares @ [heard.sampling for heard in late])
        mean = ways.mean(axis=0)
        span, first = float(mean @ mean), self._first
        at_start = (first.noise + first.sampling) * span
        if first.sampling > 0 and len(terms) >= _FEWEST:
            scatter = float(terms.var(ddof=1))
            later = min(later, max(noise, scatter * len(terms)))
            at_start = min(at_start, max(first.noise * span, scatter))
        product, variance = float(terms.mean()), later / len(terms) ** 2
        curved = (product + float(mean @ first.g)) / 2
        if curved >= _SURE * math.sqrt(variance + at_start) / 2:
            return True
        penalty = self._l2 / 2 * float(squares.mean())
        low = product - penalty - self._at_origin
        return not start.any() and low >= _SURE * math.sqrt(variance)


def first_late(steps: int) -> int:
    """Return the first late step: late steps are in the last quarter and among the last 64."""
    return max(1, steps - min(_LATE, max(1, steps // 4)))


class _Heard(NamedTuple):
    """Step, iterate, gradient, and the variances of noise and sampling."""

    step: int
    w: Vector
    g: Vector
    noise: float
    sampling: float


class Run(AbstractContextManager["Run"]):
    """The state of a run: the iterate, the trace, the callback, and the sentence on its end.

    As a context manager it stops the run, with the ledger as it is, at an answer that is not
    finite.

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
    step, planned
        Moves made, and planned.
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
        self.planned = validate.count(steps=steps)
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
        self._message = f"took all {self.planned} planned steps"
        self._warns = self._told = False
        self._ending: Ending | None = None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> bool:
        """Stop the run, with the ledger as it is, where an answer is not finite."""
        if isinstance(error, NonFiniteAnswer):
            self.fail(error)
        return isinstance(error, NonFiniteAnswer)

    def fail(self, error: NonFiniteAnswer) -> None:
        """Stop the run because an answer is not finite."""
        self.stop(f"stopped after {self.step} of {self.planned} planned steps: {error}")

    @property
    def going(self) -> bool:
        """Whether moves remain, and nothing stopped the run."""
        return self.step < self.planned and self._status == "finished"

    @property
    def until_noted(self) -> int:
        """Number of moves to the next row of the trace, at least 1."""
        return min(self._every - self.step % self._every, max(1, self.planned - self.step))

    def hear(self, g: Vector, query: Query) -> None:
        """Take note of a gradient at the iterate, the answer to ``query``.

        Where the last iterate is returned, such answers at the first and at late steps show whether
        the run ended below its start (:class:`Ending`). The errors of these answers must
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

    def follow(self, walk: Walk, moves: int, *, heard: Query | None = None) -> None:
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
        if self.step % self._every == 0 or self.step == self.planned:
            self._note()

    def overflow(self, w: Vector, moves: int) -> None:
        """Stop at ``w``, the last finite iterate, which ``moves`` more moves led to."""
        self.w, self.step = w, self.step + moves
        self.stop(
            f"stopped after {self.step} of {self.planned} planned steps, because iterates "
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
        return Result(
            w=w.copy(),
            trace=Trace.of(self._rows),
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
        progress = Progress(step=self.step, steps=self.planned, w=self.w.copy())
        if self._callback(progress) and self.step < self.planned:
            self._status, self._told = "stopped", True
            self._message = (
                f"stopped by the callback after {self.step} of {self.planned} planned steps"
            )


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


def step_size(plan: Plan, objective: Any, learning_rate: float | None) -> float:
    """Return the learning rate that was chosen, or the plan's, shortened for the regulariser.

    The plan's learning rate is for the loss without the regulariser. A learning rate with which the
    regulariser by itself would make iterates diverge is refused.
    """
    l2 = float(getattr(objective, "l2", 0.0))
    if learning_rate is None:
        eta = validate.positive(learning_rate=plan.parameters.get("learning_rate"))
        return eta / (1 + eta * l2)
    eta = validate.positive(learning_rate=learning_rate)
    if eta * l2 >= 2:
        raise ValueError(
            f"learning_rate must be below 2 / l2 = {2 / l2:.6g}, beyond which iterates diverge, "
            f"got {learning_rate!r}."
        )
    return eta


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
