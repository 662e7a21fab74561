"""Choose, in private, a candidate that is a second-order point (Tao et al. 2025, Algorithm 4).

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> Z = np.random.default_rng(1).uniform(-1, 1, (20_000, 5))
>>> holdout = optim.FromGradients(  # sum_j (1 - cos(w_j + z_j)), with saddle points
...     lambda w, rows: np.sin(w + Z[rows]), n=20_000, dimension=5,
...     hessian_vectors=lambda w, v, rows: np.cos(w + Z[rows]) * v,
...     constants=calibrate.Constants(
...         lipschitz=5**0.5, smoothness=1.0, gap=10.0, hessian_lipschitz=1.0))
>>> plan = calibrate.select_point(holdout.constants, candidates=3, accuracy=0.5, n=20_000,
...                               dimension=5, epsilon=1.0, delta=1e-6)
>>> saddle, slope, valley = np.pi * np.eye(5)[0], np.full(5, 1.0), np.zeros(5)
>>> chosen = select_point(holdout, [saddle, slope, valley], plan, seed=0)
>>> chosen.index, chosen.status
(2, 'accepted')
>>> print(f"{chosen.accuracy:.2f}", bool(chosen.epsilon(1e-6) <= 1.0))
0.65 True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dpcal.accountants import events
from dpcal.calibrate.plan import Plan
from dpcal.calibrate.plans.kl_problem import number, numbers as numbers_of
from dpcal.optim.boundary.ledger import Ledger, check_ledger
from dpcal.optim.boundary.seeds import Seed, spawned
from dpcal.optim.objectives.arrays import Vector, numbers, parameters
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import Optimizer, check_plan, ledger_kept
from dpcal.optim.result import Result
from dpcal.optim.second_order.gauss_psgd import SecondOrderResult
from dpcal.optim.second_order.oracle import SecondOrderOracle
from dpcal.optim.silos.local import Silo
from dpcal.optim.silos.overlap import about, check_distinct


@dataclass(frozen=True, kw_only=True, eq=False)
class Selection(Result):
    """Outcome of a private selection: a :class:`dpcal.optim.Result`; epsilon covers its training.

    Parameters
    ----------
    index, w
        Number of the chosen candidate, and its parameters, shape (dimension,); None if none passed.
    status, tested
        ``"accepted"``, or ``"none"`` if no candidate passed; and how many were tested.
    accuracy
        alpha': the chosen point is an alpha'-second-order point of the mean population risk, but
        with the plan's failure probability.
    ledgers, plan
        The releases of each silo, and the plan of each.
    training
        The run that used the same records, if any; its cost is added.
    """

    index: int | None
    w: Any
    accuracy: float
    tested: int
    ledgers: tuple[Ledger, ...]
    training: Result | None = None

    def of_silo(self, number: int) -> Result:
        """Return the selection as silo ``number`` may report it, from 0 on: with its own ledger.

        Its ``w`` is the chosen point, or empty if none passed.
        """
        own = {"ledger": self.ledgers[number], "status": "finished"}
        if self.w is None:
            own |= {"w": np.empty(0)}
        return Result(**{each.name: getattr(self, each.name) for each in fields(Result)} | own)

    @property
    def by_silo(self) -> tuple[tuple[Result, ...], ...]:
        """The runs that each silo's records paid for: training on them, if any, and selection."""
        own = [self.of_silo(number) for number in range(len(self.ledgers))]
        before = ((),) if self.training is None else self.training.by_silo
        if len(before) != len(own):
            before = before[:1] * len(own)
        return tuple((*runs, each) for runs, each in zip(before, own, strict=True))

    def verify(self) -> None:
        """Refuse, by LedgerMismatch, a ledger that is not within the plan."""
        for ledger in self.ledgers:
            check_ledger(ledger, self.plan, exact=False)

    def under(self, neighboring_relation: str | None = None) -> tuple[events.DpEvent, str]:
        """Return the event of each silo's records, training included, and the relation.

        It is the event of a silo's whole plan: an early end is one of its outputs.
        """
        event, relation = super().under(neighboring_relation)
        if self.training is not None:
            event = events.ComposedDpEvent([self.training.under(relation)[0], event])
        return event, relation

    def event_for(self, group_size: int) -> events.DpEvent:
        """See :meth:`dpcal.calibrate.plan.Priced.event_for`; training is included."""
        event = super().event_for(group_size)
        if self.training is not None:
            event = events.ComposedDpEvent([self.training.event_for(group_size), event])
        return event


@Optimizer(
    summary="the first of several points that passes a private test, or the best of them",
    problem="smooth with smooth Hessians; second-order points of population risk",
    needs=("candidates", "accuracy", "lipschitz or max_norm", "smoothness", "hessian_lipschitz"),
    rate="alpha + (m n)^(-1/2) + d sqrt(candidates) / (sqrt(m) n epsilon)",
    measure="alpha of an alpha-second-order stationary point",
    theorem="Tao et al. 2025, Algorithm 4, Theorem 4 (corrected), Remark 5; Dwork et al. 2009",
    relations=("replace-one", "add-or-remove-one", "replace-special"),
    options=(
        *("candidates", "accuracy", "method", "silos", "rank", "max_norm"),
        "failure_probability",
    ),
).describes
def select_point(
    holdout: Objective | Sequence[Objective],
    candidates: Sequence[ArrayLike] | SecondOrderResult,
    plan: Plan,
    *,
    training: Result | None = None,
    seed: Seed = None,
    overlap: str = "local",
) -> Selection:
    """Return the first candidate that passes a private test, or the best of all.

    A ValueError is raised if the plan is not for this selection, these silos or so many candidates;
    if silos share a record; or if training was about the records under another neighboring
    relation. A holdout without Hessians raises a TypeError.

    Parameters
    ----------
    holdout
        Records to test on, with Hessians; for several silos one objective each.
    candidates
        Parameters, each of shape (dimension,), functions of released values; or the result of
        ``gauss_psgd``, for the points of its escapes and its end.
    plan
        Plan of :func:`dpcal.calibrate.select_point`.
    training
        The run that also used the holdout's records, if any: the costs of both are composed. If you
        pass a result as ``candidates`` and no training, that result is taken if it was about any of
        the same records. Records are compared while the result's objective is in this process,
        later only whole data sets.
    seed
        See :func:`dpcal.optim.run`.
    overlap
        ``"local"`` compares records, to refuse a record in two silos and to find records that
        training used. ``"ignore"`` compares only whole data sets, because different people may look
        alike.
    """
    silos = [holdout] if isinstance(holdout, Objective) else list(holdout)
    check_plan(plan, "select_point")
    if len(silos) != plan.parameters["silos"]:
        raise ValueError(f"plan must be for {len(silos)} silos, got {plan.parameters['silos']}.")
    check_distinct([Silo(silo) for silo in silos], overlap)
    if isinstance(candidates, SecondOrderResult):
        run: SecondOrderResult | None = candidates
        tried: list[ArrayLike] = [*(each.point for each in candidates.escapes), candidates.end]
    else:
        run, tried = None, list(candidates)
    points = [parameters(numbers("candidates", w), silos[0].dimension) for w in tried]
    if not 1 <= len(points) <= int(plan.parameters["candidates"] or 0):
        raise ValueError(
            f"candidates must be 1 to {plan.parameters['candidates']}, got {len(points)}."
        )
    whole = overlap == "ignore"
    if run and training is None and any(about(run, silo, each=not whole) for silo in silos):
        training = run
    _check_fits(plan, silos, training)
    seeds = spawned(seed, len(silos))
    oracles = [
        SecondOrderOracle(silo, plan, seed=own) for silo, own in zip(silos, seeds, strict=True)
    ]
    with ledger_kept(oracles[0]):
        index, tested = _chosen(oracles, points, plan)
    status = "none" if index is None else "accepted"
    return Selection(
        index=index,
        w=None if index is None else points[index].copy(),
        ledger=oracles[0].ledger,
        plan=plan,
        complete=True,
        message=f"{status} after {tested} candidates",
        status=status,
        early=True,
        seed_given=seed is not None,
        noise=oracles[0].noise,
        accuracy=number(plan.parameters, "accuracy"),
        tested=tested,
        ledgers=tuple(oracle.ledger for oracle in oracles),
        training=training,
    )


def _check_fits(plan: Plan, silos: list[Objective], training: Result | None) -> None:
    """Refuse a training under another relation, and a method that the objectives are not for."""
    if training is not None and training.plan.neighboring_relation != plan.neighboring_relation:
        raise ValueError(
            f"training must be under the plan's relation {plan.neighboring_relation!r}, got "
            f"{training.plan.neighboring_relation!r}."
        )
    if plan.parameters["method"] == "power-method" and any(silo.l2 > 0 for silo in silos):
        raise ValueError(
            f"method 'power-method' is for objectives without a regularizer, got "
            f"l2={max(silo.l2 for silo in silos)}: its bound needs eigenvalues of at most the "
            "smoothness constant. Use method='gaussian'."
        )


def _chosen(
    oracles: list[SecondOrderOracle], points: list[Vector], plan: Plan
) -> tuple[int | None, int]:
    """Return the number of the chosen point, if any, and how many were tested."""
    tau_g, tau_H = numbers_of(plan.parameters, "gradient_threshold hessian_threshold")
    G, M = numbers_of(plan.parameters, "max_norm hessian_norm")
    score: dict[str, Any] = {"query": "score", "thresholds": (tau_g, tau_H), "norms": (G, M)}
    method = plan.parameters["method"]
    if method == "report-noisy-max":
        return oracles[0].best(points, **score), len(points)
    for t, w in enumerate(points):
        if method == "above-threshold":
            passed = oracles[0].accepts(w, **score)
        elif method == "gaussian-score":
            passed = oracles[0].saddle_score(w, **score) <= 0
        else:  # Algorithm 4, lines 1 to 4
            gradient = np.mean([oracle.gradient(w, "gradient") for oracle in oracles], axis=0)
            passed = float(np.linalg.norm(gradient)) <= tau_g
            if method == "power-method":
                passed = passed and not _negative(oracles, w, plan)
            else:
                hessian = np.mean([oracle.hessian(w, "hessian") for oracle in oracles], axis=0)
                passed = passed and float(np.linalg.eigvalsh(hessian)[0]) >= -tau_H
        if passed:
            return t, t + 1
    return None, len(points)


def _negative(oracles: list[SecondOrderOracle], w: Vector, plan: Plan) -> bool:
    """Return whether the power method finds v with v' H v below the threshold (Remark 5)."""
    threshold, largest = numbers_of(plan.parameters, "hessian_threshold hessian_norm")
    v = oracles[0].public.standard_normal(w.size)
    for _ in range(plan.query("product").count // int(number(plan.parameters, "candidates"))):
        v /= np.linalg.norm(v)
        products = [oracle.hessian_vector(w, v, "product") for oracle in oracles]
        product = np.mean(products, axis=0)
        if float(v @ product) < -threshold:
            return True
        v = largest * v - product
    return False
