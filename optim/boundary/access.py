"""Who answers an optimizer? An oracle made for the run, one with a file, or one that is given."""

from __future__ import annotations

import os
from typing import Protocol, runtime_checkable

from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.oracle import PrivateOracle
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.boundary.store import StoredOracle
from dpcal.optim.objectives.base import Objective

__all__ = ["Keeper", "Store", "oracle_of"]


@runtime_checkable
class Keeper(Protocol):
    """What keeps runs, and makes their oracles: :class:`dpcal.optim.BudgetBook`, for instance."""

    def oracle(self, objective: Objective, plan: Plan, *, seed: Seed = None) -> Oracle:
        """Return an oracle about an objective's records whose run is kept."""
        ...


Store = str | os.PathLike[str] | Keeper | None


def oracle_of(
    records: Objective | Oracle, plan: Plan, seed: Seed = None, store: Store = None
) -> Oracle:
    """Return who answers an optimizer: an oracle about an objective's records, or the one given.

    Parameters
    ----------
    records
        An objective, or an oracle.
    plan
        What may be asked; an oracle's own.
    seed
        Of an objective's oracle; an oracle that is given has its own randomness.
    store
        Path of a file that holds the run, so that it survives its process; a budget book that the
        run is charged to; or None.

    Raises
    ------
    ValueError
        If an oracle is given with another plan than its own, with a seed or with a store.
    """
    if isinstance(records, Objective):
        if isinstance(store, Keeper):
            return store.oracle(records, plan, seed=seed)
        if store is not None:
            stored = StoredOracle(store, records, plan, seed=seed)
            stored.closes_with_run = True
            return stored
        return PrivateOracle(records, plan, seed=seed)
    if not isinstance(records, Oracle):
        raise TypeError(f"objective must be an Objective or an Oracle, got {records!r}.")
    if records.plan != plan:
        raise ValueError("plan must be the oracle's own, oracle.plan, got another one.")
    if seed is not None or store is not None:
        raise ValueError("seed goes with an objective, and so does store, got them with an oracle.")
    return records
