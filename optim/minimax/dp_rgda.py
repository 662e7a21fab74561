r"""DP-RGDA (Xu et al. 2026, Algorithms 2 and 3, corrected): minimax problems, past strict saddles.

    1  for t = 0, ..., T - 1:
    2      (y, v, u) from Algorithm 3 at (x_t, y), see :mod:`dpcal.optim.minimax.tracking`
    3      not escaping, ||v|| >= alpha:   x_{t+1} = x_t - eta v / ||v||
    4      not escaping, ||v|| <  alpha:   m = t;  x_{t+1} = x_t + xi,  xi uniform in a ball
    5      escaping, eta_H^2 sum_{j=m+1}^t ||v_j||^2 > (t - m) Dbar:
    6          x_{t+1} = x_t - eta_t v where eta_t spends exactly (t - m) Dbar;  not escaping
    7      escaping otherwise:             x_{t+1} = x_t - eta_H v
    8          after t_thres such steps return x_m, "certified"
    9  return x_T, "not certified"

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import dp_rgda
>>> from dpcal.optim.minimax import Minimax
>>> xi = np.random.default_rng(0).uniform(-0.5, 0.5, (5_000, 2))
>>> def gradients(x, y, rows):  # of x1^2 / 2 - x2^2 / 2 + x2^4 / 4 - |x - y|^2 / 2 + <xi, x>
...     slope = np.array([x[0], x[1] ** 3 - x[1]]) - x + y
...     return slope + xi[rows], np.tile(x - y, (len(rows), 1))
>>> constants = calibrate.Constants(
...     lipschitz=2.5, smoothness=4.0, gap=0.5, strong_concavity=1.0, hessian_lipschitz=6.0)
>>> problem = Minimax(gradients, n=5_000, dimensions=(2, 2))
>>> plan = calibrate.dp_rgda(constants, n=5_000, dimensions=(2, 2), epsilon=4.0, delta=1e-5,
...     steps=200, inner_steps=3, period=20, batch_size=500, accuracy=0.2, step_length=0.1,
...     escape_rate=0.2, perturbation=0.1, escape_steps=20, value_smoothness=5.0, ascent_rate=0.3)
>>> result = dp_rgda(problem, plan, seed=0, initial=[0.3, 0.0])
>>> result.status
'certified'
>>> bool(np.linalg.eigvalsh(problem.phi_hessian(result.x))[0] > 0.9)  # a minimum, not the saddle
True
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.algorithms import Optimizer, Settings, algorithm, planned
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.driver import Run, worth
from dpcal.optim.minimax.blocks import Blocks
from dpcal.optim.minimax.result import Anchor, MinimaxResult
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.minimax.tracking import Tracker, Tracking
from dpcal.optim.objectives.arrays import Vector, l2_norm
from dpcal.optim.objectives.base import Objective

__all__ = ["Escape", "dp_rgda"]

STEPS = ("normalised", "plain")


class Escape:
    """Lines 3 to 7: the moves of x, from released values alone.

    The plan's parameters are ``accuracy`` (alpha), ``step`` and ``step_length`` (eta),
    ``escape_rate`` (eta_H), ``perturbation`` (the radius of xi), ``escape_steps`` (t_thres) and
    ``movement`` (Dbar). The generator of xi is public. ``anchors`` are the phases so far, and the
    last one is ``certified`` if it lasted as long as planned.
    """

    def __init__(self, plan: Plan, public: np.random.Generator) -> None:
        read = plan.parameters.get
        self._accuracy = _validate.positive(accuracy=read("accuracy"))
        self._plain = _validate.choice(STEPS, step=read("step", "normalised")) == "plain"
        self._length = _validate.positive(step_length=read("step_length"))
        self._rate = _validate.positive(escape_rate=read("escape_rate"))
        self._radius = _validate.positive(perturbation=read("perturbation"))
        self._patience = _validate.count(escape_steps=read("escape_steps"))
        self._movement = _validate.positive(movement=read("movement"))
        self._literal = read("algorithm") == "literal"
        self._public = public
        self._squares: list[float] = []
        self._phase: Anchor | None = None
        self.anchors: tuple[Anchor, ...] = ()
        self.certified = False

    def move(self, x: Vector, v: Vector, step: int) -> Vector:
        """Return the next iterate, from x_t, the estimate v_t and t."""
        norm = l2_norm(v)
        if self._phase is not None:
            return self._escaping(x, v, norm)
        if norm >= self._accuracy:
            return x - (self._length if self._plain else self._length / norm) * v  # 3
        self._phase = Anchor(
            step=step, x=x.copy(), moves=0, squared_movement=0.0, outcome="unfinished"
        )
        self._squares = []
        return x + _uniform_in_ball(self._radius, len(x), self._public)  # 4

    def finish(self) -> None:
        """Record the phase in which the run ended, if any."""
        if self._phase is not None:
            self._close(len(self._squares), self._rate**2 * sum(self._squares), "unfinished")

    @property
    def anchor(self) -> Anchor:
        """The last anchor."""
        return self.anchors[-1]

    def _escaping(self, x: Vector, v: Vector, norm: float) -> Vector:
        before = sum(self._squares)
        self._squares.append(norm**2)
        moves = len(self._squares)
        allowed, spent = moves * self._movement, self._rate**2 * (before + norm**2)
        if spent > allowed:
            # The rest is at least Dbar, because all earlier moves were within their allowance.
            last = (allowed - self._rate**2 * before) / norm**2
            moved = allowed
            if self._literal:
                # The paper prints one factor for all steps, which would rescale past steps too.
                last = allowed / (before + norm**2)
                moved = self._rate**2 * before + last * norm**2
            self._close(moves, moved, "left")
            return x - math.sqrt(last) * v  # 5
        if moves == self._patience:
            self._close(moves, spent, "certified")
            self.certified = True
        return x - self._rate * v  # 6

    def _close(self, moves: int, moved: float, outcome: str) -> None:
        assert self._phase is not None
        ended = replace(self._phase, moves=moves, squared_movement=moved, outcome=outcome)
        self.anchors, self._phase = (*self.anchors, ended), None


def _settings(
    objective: Objective | Oracle,
    plan: Plan,
    *,
    initial: ArrayLike | None,
    initial_dual: ArrayLike | None = None,
    dual_set: ConvexSet | None = None,
) -> Settings:
    fresh = ("gradient",) * (2 if plan.queries[0].name == "warm start" else 1)
    planned(plan, *(*fresh, "gradient difference")[: len(plan.queries)])
    blocks = Blocks.of(objective, plan, dual_set)
    return Settings(
        _validate.count(steps=plan.parameters.get("steps")),
        initial=np.concatenate(blocks.start(initial, initial_dual)),
        blocks=blocks,
        tracking=Tracking.of(plan, blocks.dual_set),
    )


@Optimizer(
    summary="normalised descent along tracked gradients, and escapes from saddle points",
    problem="minimax, smooth, strongly concave in y; or a plain smooth loss",
    needs=(
        "lipschitz or max_norm",
        "smoothness",
        "strong_concavity",
        "gap or steps",
        "hessian_lipschitz",
    ),
    rate="(sqrt(d) / (n epsilon))^(2/3)",
    measure="gradient norm of the value function",
    theorem="Xu et al. 2026, Algorithms 2 and 3, Theorem 1 (corrected)",
    relations=("replace-one", "add-or-remove-one", "replace-special"),
    options=("steps", "batch_size", "max_norm", "inner_steps", "group_size"),
    blocks=True,
).describes
@algorithm(_settings)
def dp_rgda(
    run: Run, oracle: Oracle, plan: Plan, *, blocks: Blocks, tracking: Tracking
) -> MinimaxResult:
    """Find a second-order stationary point of the value function Phi by DP-RGDA, spending a plan.

    A run that is certified stops early, and costs all that was planned. Callbacks receive outer
    steps and (x, y).

    Parameters
    ----------
    objective
        A :class:`dpcal.optim.minimax.MinimaxObjective` over the plan's number of records, or an
        oracle about one. With a plan for ``dimensions=(d, 0)``, any objective: there is no dual
        variable then, and Phi is the objective itself.
    initial, initial_dual
        Where x and y start, shapes (d1,) and (d2,); the origin when omitted. They must not depend
        on the records. With ``warm_start`` in the plan, y first climbs at x_0, by planned answers.
    dual_set
        Set of y; the problem's own when omitted.

    References
    ----------
    Xu et al. 2026, Algorithms 1 to 3, corrected: see the errata. The second-order part of its
    theorems is not proved there: the status ``"certified"`` is not a proof.
    """
    x, y = blocks.split(run.w)
    with run.answering():
        y = blocks.warm_start(oracle, x, y)
    tracker = Tracker(oracle, tracking, x, y)
    escape, norms = Escape(plan, oracle.public), []
    while run.going:  # 1
        with run.answering():
            x, _ = blocks.split(run.w)
            v = tracker.advance(x)  # 2
            norms.append(l2_norm(v))
            run.move(np.concatenate([escape.move(x, v, run.step), tracker.y]))  # 3 to 6
            if escape.certified:  # 7
                message = f"certified after {run.step} of {run.planned} planned outer steps"
                at_start = len(escape.anchors) == 1 and escape.anchors[0].step == 0
                norm = norms[escape.anchors[-1].step]
                run.finish(worth(message, plan, at_start=at_start, norm=norm), told=True)
    escape.finish()
    return _outcome(run, escape, norms, len(x))


def _outcome(run: Run, escape: Escape, norms: list[float], d1: int) -> MinimaxResult:
    """Return the outcome: at the anchor if it is certified, otherwise at the last iterate."""
    possible = bool(run.oracle.plan.parameters.get("certifiable", True))
    status = "not-certified" if possible else "cannot-certify"
    w = None
    if escape.certified:
        status, w = "certified", np.concatenate([escape.anchor.x, run.w[d1:]])
    return MinimaxResult.of(
        run.result(w),
        primal_dimension=d1,
        estimate_norms=norms,
        status=status,
        anchors=escape.anchors,
    )


def _uniform_in_ball(radius: float, dimension: int, public: np.random.Generator) -> Vector:
    """Return a point that is uniform in a ball around the origin, shape (dimension,)."""
    direction = public.standard_normal(dimension)
    length = radius * public.random() ** (1 / dimension)
    return np.asarray(direction * (length / np.linalg.norm(direction)))
