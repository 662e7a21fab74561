r"""DP-RGDA (Xu et al. 2026, Algorithms 2 and 3, corrected): minimax problems, past strict saddles.

    1  for t = 0, ..., T - 1:
    2      (y, v, u) from Algorithm 3 at (x_t, y), see :class:`Tracker`
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

import numpy as np
from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.errors import NonFiniteAnswer
from dpcal.optim.boundary.oracle import Oracle, Walk
from dpcal.optim.driver import worth
from dpcal.optim.minimax.blocks import Anchor, Blocks, MinimaxResult
from dpcal.optim.minimax.sets import ConvexSet
from dpcal.optim.objectives.arrays import l2_norm
from dpcal.optim.registry import Begin, Optimizer, Plan, Problem, Vector, algorithm, planned, read

STEPS = ("normalised", "plain")
SELECTIONS = ("last", "argmin")
ALGORITHMS = ("corrected", "literal")

_TOO_FAST = "The dual iterate became NaN or infinite: the ascent rate is too large."


class Tracker:
    """Algorithm 3, corrected: estimates v and u of both gradients, and the dual iterate y.

    The estimates (v, u) of the gradients in x and in y are refreshed now and then, and updated by
    noisy differences in between, with one joint release for both blocks. Inside an outer step, y
    climbs by K - 1 projected steps along u.

    The oracle's queries are ``"refresh"`` and ``"difference"``; v and u are estimates of grad_x f
    and grad_y f at (the x of the last step, y). The tracker reads these parameters of a plan:

    - ``period`` q >= 1, outer steps from one refresh to the next; ``inner_steps`` K >= 1, estimates
      of an outer step; and ``ascent_rate`` lambda > 0, the step size of y.
    - ``select``: which of the K triples (y, v, u) is kept: ``"last"``, or the one with the smallest
      gradient mapping, ``"argmin"``. Under noise the mapping's norm grows with k, so that argmin
      keeps the first and y stays where it was.
    - ``algorithm``: ``"literal"`` adds the difference in x once more at a refresh, as the paper
      prints, for audits.

    Examples
    --------
    >>> import numpy as np
    >>> from dpcal import calibrate
    >>> from dpcal.optim import PrivateOracle
    >>> from dpcal.optim.minimax import Everywhere, Minimax
    >>> xi = np.random.default_rng(0).uniform(-0.5, 0.5, (1_000, 2)) - 1.0
    >>> def gradients(x, y, rows):  # of <xi + y, x>, and a public -|y|^2 / 2: Phi is least at 1
    ...     return xi[rows] + y, np.tile(x, (len(rows), 1))
    >>> constants = calibrate.Constants(
    ...     lipschitz=2.0, smoothness=2.0, strong_concavity=1.0, gap=0.5, hessian_lipschitz=1.0)
    >>> problem = Minimax(gradients, n=1_000, dimensions=(2, 2), dual_l2=1.0)
    >>> plan = calibrate.dp_rgda(constants, n=1_000, dimensions=(2, 2), epsilon=2.0, delta=1e-5,
    ...     steps=40, period=2, inner_steps=3, batch_size=100, value_smoothness=5.0)
    >>> oracle = PrivateOracle(problem, plan, seed=0)
    >>> tracker = Tracker(plan, Everywhere())
    >>> tracker.start(oracle, np.array([0.3, 0.0]), np.zeros(2))
    >>> v = tracker.advance(np.array([0.3, 0.0]))
    >>> v.shape, oracle.ledger.count("refresh"), oracle.ledger.count("difference")
    ((2,), 1, 2)
    """

    def __init__(self, plan: Plan, dual_set: ConvexSet) -> None:
        self._dual_set = dual_set
        self._period, self._inner = read(plan, validate.count, "period", "inner_steps")
        (self.rate,) = read(plan, validate.positive, "ascent_rate")
        given = plan.parameters.get
        self._select = validate.choice(SELECTIONS, select=given("select", "last"))
        chosen = validate.choice(ALGORITHMS, algorithm=given("algorithm", "corrected"))
        self._literal = chosen == "literal"

    def start(self, oracle: Oracle, x: Vector, y: Vector) -> None:
        """Begin at (x, y)."""
        self._oracle, self._step, self._x = oracle, 0, x
        self.y = self._dual_set.project(y)
        self.v, self.u = np.zeros_like(x), np.zeros_like(y)
        # The first of the K + 1 answers is the refresh, so no step leads to a second one.
        self._walk = Walk(
            oracle,
            np.concatenate([x, self.y]),
            "refresh",
            "difference",
            rates=np.full(self._inner + 1, -self.rate),
            period=self._inner + 1,
            fixed=len(x),
            project=self._dual_set.project if len(y) else None,
        )

    def advance(self, x: Vector) -> Vector:
        """Take an outer step at ``x``: update v and u, let y climb, and return v, shape (d1,)."""
        walk, d1 = self._walk, len(x)
        at, before = (np.concatenate([point, self.y]) for point in (x, self._x))
        estimate = np.concatenate([self.v, self.u])
        refreshed = self._step % self._period == 0
        if refreshed and self._literal:
            # As printed: the difference in x is counted twice, since a refresh is about x itself.
            estimate, refreshed = self._oracle.gradient(at, "refresh"), False
        walk.start(at, before, estimate, 0 if refreshed else 1)
        shortest = np.inf
        for _ in range(self._inner):
            if not walk.take():
                raise NonFiniteAnswer(_TOO_FAST)
            y = walk.previous[d1:]
            if self._select == "argmin":
                mapping = float(np.linalg.norm(walk.w[d1:] - y)) / self.rate
                if mapping >= shortest:
                    continue
                shortest = mapping
            estimate, self.y = walk.gradient, y
        self.v, self.u = estimate[:d1], estimate[d1:]
        self._step, self._x = self._step + 1, x
        return self.v


class Escape:
    """Lines 3 to 7: the moves of x, computed only from released values.

    The plan's parameters are ``accuracy`` (alpha), ``step`` and ``step_length`` (eta),
    ``escape_rate`` (eta_H), ``perturbation`` (the radius of xi), ``escape_steps`` (t_thres) and
    ``movement`` (Dbar). ``anchors`` are the phases so far, and the last one is ``certified`` if it
    lasted as long as planned.
    """

    def __init__(self, plan: Plan) -> None:
        numbers = ("accuracy", "step_length", "escape_rate", "perturbation", "movement")
        self._accuracy, self._length, self._rate, self._radius, self._movement = read(
            plan, validate.positive, *numbers
        )
        (self._patience,) = read(plan, validate.count, "escape_steps")
        step = validate.choice(STEPS, step=plan.parameters.get("step", "normalised"))
        self._plain = step == "plain"
        self._literal = plan.parameters.get("algorithm") == "literal"
        self._squares = 0.0
        self.anchors: list[Anchor] = []

    @property
    def certified(self) -> bool:
        """Whether the last phase lasted as long as planned."""
        return bool(self.anchors) and self.anchors[-1].outcome == "certified"

    def move(self, x: Vector, v: Vector, step: int, public: np.random.Generator) -> Vector:
        """Return the next iterate, from x_t, the estimate v_t, t, and a generator for xi."""
        norm = l2_norm(v)
        if self.anchors and self.anchors[-1].outcome == "unfinished":
            return self._escaping(self.anchors[-1], x, v, norm)
        if norm >= self._accuracy:
            return x - (self._length if self._plain else self._length / norm) * v  # 3
        self.anchors.append(Anchor(step=step, x=x.copy()))
        self._squares = 0.0
        direction = public.standard_normal(len(x))
        length = self._radius * public.random() ** (1 / len(x))
        return x + direction * float(length / np.linalg.norm(direction))  # 4

    def _escaping(self, phase: Anchor, x: Vector, v: Vector, norm: float) -> Vector:
        before, self._squares = self._squares, self._squares + norm**2
        phase.moves += 1
        allowed, spent = phase.moves * self._movement, self._rate**2 * self._squares
        factor = self._rate
        if spent > allowed:  # 6
            # The rest is at least Dbar, because all earlier moves were within their allowance.
            last = (allowed - self._rate**2 * before) / norm**2
            factor, phase.outcome, spent = math.sqrt(last), "left", allowed
            if self._literal:
                # The paper prints one factor for all steps, which would rescale past steps too.
                last = allowed / self._squares
                factor, spent = math.sqrt(last), self._rate**2 * before + last * norm**2
        elif phase.moves == self._patience:  # 8
            phase.outcome = "certified"
        phase.squared_movement = spent
        return x - factor * v  # 6, 7


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
@algorithm()
def dp_rgda(
    objective: Problem,
    plan: Plan,
    begin: Begin,
    *,
    initial: ArrayLike | None,
    initial_dual: ArrayLike | None = None,
    dual_set: ConvexSet | None = None,
) -> MinimaxResult:
    """Find a second-order stationary point of the value function Phi by DP-RGDA, spending a plan.

    A certified run stops early, and costs its whole plan. Callbacks receive outer steps and (x, y).

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
    blocks, given = Blocks.of(objective, plan, dual_set), plan.parameters.get
    d1, warm_steps = blocks.dimensions[0], int(given("warm_start") or 0)
    planned(plan, *["gradient"] * (1 + (warm_steps > 0)), "gradient difference?")
    escape, tracker, norms = Escape(plan), Tracker(plan, blocks.dual_set), []
    run = begin(*read(plan, validate.count, "steps"), initial=blocks.start(initial, initial_dual))
    with run:
        w = run.w
        for _ in range(warm_steps):
            slope = run.oracle.gradient(w, "warm start")
            w = blocks.climbed(w, slope, tracker.rate)
    tracker.start(run.oracle, w[:d1], w[d1:])
    while run.going:  # 1
        with run:
            x = run.w[:d1].copy()
            v = tracker.advance(x)  # 2
            norms.append(l2_norm(v))
            x = escape.move(x, v, run.step, run.oracle.public)  # 3 to 7
            run.move(np.concatenate([x, tracker.y]))
            if escape.certified:  # 8
                message = f"certified after {run.step} of {run.planned} planned outer steps"
                at_start = len(escape.anchors) == 1 and escape.anchors[0].step == 0
                norm = norms[escape.anchors[-1].step]
                run.finish(worth(message, plan, at_start=at_start, norm=norm), told=True)
    status, end = "not-certified" if given("certifiable", True) else "cannot-certify", run.w
    if escape.certified:
        status, end = "certified", np.concatenate([escape.anchors[-1].x, run.w[d1:]])
    return MinimaxResult.of(
        run.result(end), d1, norms, status=status, anchors=tuple(escape.anchors)
    )
