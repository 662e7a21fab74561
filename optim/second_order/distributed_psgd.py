"""Gauss-PSGD over silos (Tao et al. 2025, Algorithm 3): records stay, noisy answers leave.

Each silo answers about its own records with its own noise, and keeps its own ledger. The server
averages, decides which gradients are fresh, and walks as :func:`dpcal.optim.gauss_psgd` does.

>>> import numpy as np
>>> from dpcal import calibrate, optim
>>> constants = calibrate.Constants(
...     lipschitz=5**0.5, smoothness=1.0, gap=10.0, hessian_lipschitz=1.0)
>>> def records(owner):  # sum_j (1 - cos(w_j + z_j)), with saddle points
...     Z = np.random.default_rng(owner).uniform(-1, 1, (20_000, 5))
...     return optim.FromGradients(lambda w, rows: np.sin(w + Z[rows]), n=20_000, dimension=5)
>>> silos = [optim.Silo(records(owner), seed=owner) for owner in range(5)]
>>> plan = calibrate.distributed_psgd(
...     constants, silos=5, n=20_000, dimension=5, epsilon=1.0, delta=1e-6)
>>> result = distributed_psgd(silos, plan, initial=np.pi * np.eye(5)[0])
>>> result.status, len(result.ledgers)
('certified', 5)
>>> print(f"epsilon <= {result.epsilon(1e-6):.4f} for {result.unit}")
epsilon <= 1.0000 for one record of one silo, all other records fixed
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from numpy.typing import ArrayLike

from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.ledger import ONE_OF_A_SILO, Ledger, check_ledger
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import Callback
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import Store, check_plan, ledger_kept
from dpcal.optim.result import Result
from dpcal.optim.second_order.gauss_psgd import SecondOrderResult, Settings, gauss_psgd, walked
from dpcal.optim.silos import Silo, SiloOracle
from dpcal.optim.silos.local import Answerer
from dpcal.optim.silos.overlap import remember


@dataclass(frozen=True, kw_only=True, eq=False)
class DistributedResult(SecondOrderResult):
    """Outcome of a run over silos.

    Parameters
    ----------
    ledgers, plans
        The releases and the plan of each silo. No epsilon is summed over silos.
    lost
        Numbers of the silos that were lost; their ledgers hold every answer that was begun.
    unit
        Unit of privacy that the claim is about.
    """

    ledgers: tuple[Ledger, ...]
    plans: tuple[Plan, ...]
    lost: tuple[int, ...] = ()
    unit: str = ONE_OF_A_SILO

    def verify(self) -> None:
        """Refuse, by LedgerMismatch, a silo's ledger that is not within its plan."""
        for ledger, plan in zip(self.ledgers, self.plans, strict=True):
            check_ledger(ledger, plan, exact=False)

    @property
    def by_silo(self) -> tuple[tuple[Result, ...], ...]:
        """The runs that each silo's records paid for."""
        return tuple((self.of_silo(number),) for number in range(len(self.ledgers)))

    def of_silo(self, number: int) -> Result:
        """Return the result with the ledger and the plan of silo ``number``, from 0 on."""
        own = {"ledger": self.ledgers[number], "plan": self.plans[number], "early": True}
        return Result(**{each.name: getattr(self, each.name) for each in fields(Result)} | own)


@replace(
    gauss_psgd.row,
    name="",
    summary="gauss_psgd on the mean of many silos, each private by itself",
    problem="smooth with smooth Hessians, not convex; mean of the silos' population risks",
    rate="(m n)^(-1/3) + (sqrt(d) / (sqrt(m) n epsilon))^(2/5) + (d / (m^2 n^3 epsilon^2))^(2/17)",
    theorem="Tao et al. 2025, Algorithm 3, Theorem 3 (corrected)",
).describes
def distributed_psgd(
    objective: Sequence[Answerer | Objective] | Objective,
    plan: Plan | Sequence[Plan],
    *,
    seed: Seed = None,
    on_lost: str = "stop",
    reset: str | None = None,
    initial: ArrayLike | None = None,
    callback: Callback | None = None,
    callback_every: int | None = None,
    store: Store = None,
    overlap: str = "local",
) -> DistributedResult:
    """Find a second-order stationary point of the mean of the silos' population risks.

    See :func:`dpcal.optim.run` for the other keywords. The result has one ledger for each silo; its
    ``epsilon`` holds for any one of them, or is the largest of the silos' epsilons. An error that
    ends the run, ``KeyboardInterrupt`` too, has this ledger (:func:`dpcal.optim.released`).

    Parameters
    ----------
    objective
        :class:`dpcal.optim.Silo` for each, objects with its methods, or objectives; all with
        the same number of parameters, and with the plan's number of records at least.
    plan
        Plan of :func:`dpcal.calibrate.distributed_psgd`; for one silo also a plan for
        ``"gauss_psgd"``. Or a plan for each silo, of :func:`dpcal.calibrate.silo_plans`.
    seed
        Each objective has a child of it. A silo keeps the seed that its owner gave, if any; a seed
        next to silos is refused.
    on_lost
        ``"stop"`` ends a run that loses a silo with the status ``"silo-lost"``; ``"continue"`` goes
        on with a fresh gradient of the others' mean.
    reset
        ``"rewind"``, ``"carry"`` or ``"fresh"``; the plan's when omitted.
    store
        For one objective in place of silos: its file or its budget, as of a
        :class:`dpcal.optim.Silo`. Each of several silos has its own.
    overlap
        A record in two silos would spend twice, so silos that share a record are refused.
        ``"local"`` compares the records of silos in this process, by digests under a key of their
        own. ``"all"`` also compares the records of silos elsewhere: their owners let the digests
        come here, so that this process could test guesses of their records. ``"ignore"`` compares
        no record, because different people may look alike. The information in a refusal is outside
        the claim.

    References
    ----------
    Tao et al. 2025, Algorithm 3. With one silo it is Algorithm 2, and the same numbers.
    """
    plans: list[Any] = list(plan) if isinstance(plan, list | tuple) and plan else [plan]
    for each in plans:
        check_plan(each, "distributed_psgd", "gauss_psgd")
    if store is not None and not isinstance(objective, Objective):
        raise ValueError("store is for one objective: give each silo a store of its own.")
    Settings.of(plans[0], reset=reset)  # wrong settings are refused before a silo opens its file
    silos: list[Answerer | Objective]
    if isinstance(objective, Objective):
        silos, seed = [Silo(objective, store=store, seed=seed)], None
    else:
        silos = list(objective)
    opened = SiloOracle(silos, plan, seed=seed, on_lost=on_lost, overlap=overlap)
    with opened as server, ledger_kept(server):
        given: dict[str, Any] = {"reset": reset, "initial": initial, "callback": callback}
        plain = walked(server, server.plan, callback_every=callback_every, **given)
        server.verify()
    result = DistributedResult(
        **vars(plain),
        ledgers=server.ledgers,
        plans=server.plans,
        lost=tuple(j for j in range(len(silos)) if j not in server.alive),
    )
    local = [silo.objective if isinstance(silo, Silo) else silo for silo in silos]
    remember(result, [each for each in local if isinstance(each, Objective)])
    return result
