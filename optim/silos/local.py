"""Silos, with five methods: describe, open a plan, answer, close, ledger.

A silo's records never leave it. The silo adds the noise to its answers with its own generator, and
writes them into its own ledger before any record is read. The caller need not be trusted: without a
file a silo answers one plan in its life, and its owner sets its seed.

>>> import numpy as np
>>> from dpcal import calibrate
>>> from dpcal.optim import Squared
>>> X = np.random.default_rng(0).uniform(-0.5, 0.5, (20_000, 3))
>>> records = Squared(X, X[:, 0], fit_intercept=False)
>>> constants = calibrate.Constants(
...     lipschitz=1.0, smoothness=1.0, gap=1.0, hessian_lipschitz=1.0)
>>> plan = calibrate.distributed_psgd(
...     constants, silos=5, n=20_000, dimension=3, epsilon=4.0, delta=1e-6)
>>> silo = Silo(records)
>>> silo.describe()
Description(n=20000, dimension=3, l2=0.0, read_from_data=(), seed_given=False)
>>> silo.open(plan)
>>> silo.answer("gradient", "refresh", [0.0, 0.0, 0.0]).shape
(3,)
>>> silo.ledger().count("refresh")
1
>>> silo.close()
>>> silo.open(plan)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
ValueError: a silo without a file answers one plan in its life, and has opened one: make the silo...
"""

from __future__ import annotations

from dataclasses import dataclass
from threading import RLock
from typing import NoReturn, Protocol

from numpy.typing import ArrayLike

from dpcal._internal import validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.oracle import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import RunOver
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective
from dpcal.optim.registry import Store, oracle_of

KINDS = ("gradient", "difference")


class SiloLost(RunOver):
    """A silo is gone, or all are: its worker died, or did not answer in time."""

    status = "silo-lost"


@dataclass(frozen=True)
class Description:
    """Public facts of a silo: numbers of records and of parameters, its regulariser's strength.

    ``read_from_data`` is copied from its objective; ``seed_given`` is whether its owner gave a
    seed.
    """

    n: int
    dimension: int
    l2: float
    read_from_data: tuple[str, ...] = ()
    seed_given: bool = False


class Answerer(Protocol):
    """The five methods of a silo, wherever it is; one that is gone raises :class:`SiloLost`."""

    def describe(self) -> Description:
        """Return public numbers."""

    def open(self, plan: Plan) -> None:
        """Make ready to answer a plan, with discrete noise of the silo's own."""

    def answer(self, kind: str, query: str, w: ArrayLike, v: ArrayLike | None = None) -> Vector:
        """Return a noisy answer to a query of the plan."""

    def close(self) -> None:
        """Answer no more."""

    def ledger(self) -> Ledger:
        """Return the releases since the silo was opened."""


class Silo:
    """A silo in this process, about the records of an objective.

    Its owner makes it. The caller chooses the plan and the queries, and need not be trusted.

    Parameters
    ----------
    objective
        The records.
    store
        None: answers are in memory, and the silo opens one plan in its life. The path of a file of
        its own, which holds every answer before it leaves, and so the ledger: opened again, the
        silo repeats these answers to the same questions. A :class:`dpcal.optim.BudgetBook`: any
        plans are answered while their total is within the book's, and no other.
    seed
        Seed as for :func:`dpcal.optim.run`, for runs that must be repeatable. Anyone who knows it
        and guesses the records can draw the noise again.
    gives_digests
        Whether :meth:`fingerprints` answers; with its digests a caller can test guesses of records.
    """

    def __init__(
        self,
        objective: Objective,
        *,
        store: Store = None,
        seed: Seed = None,
        gives_digests: bool = False,
    ) -> None:
        validate.instance(Objective, objective=objective)
        self.objective = objective
        self.in_memory = store is None
        self._store, self._seed, self._gives_digests = store, seed, gives_digests
        self._oracle: Oracle | None = None
        self._closed = False
        self._lock = RLock()

    def describe(self) -> Description:
        """Return public numbers, and whether the owner gave a seed."""
        own = self.objective
        given = self._seed is not None
        return Description(own.n, own.dimension, float(own.l2), own.read_from_data, given)

    def open(self, plan: Plan) -> None:
        """Make ready to answer a plan for this silo's number of records.

        A ValueError is raised if the silo has no file and has opened a plan.
        """
        validate.instance(Plan, plan=plan)
        with self._lock:
            if self._oracle is not None and self._store is None:
                raise ValueError(
                    "a silo without a file answers one plan in its life, and has opened one: make "
                    "the silo with store=PATH to repeat its answers to this plan, or with "
                    "store=BudgetBook(...) to answer further plans within a total."
                )
            self._shut()
            self._oracle = oracle_of(self.objective, plan, self._seed, self._store)
            self._closed = False

    def answer(self, kind: str, query: str, w: ArrayLike, v: ArrayLike | None = None) -> Vector:
        """Return a noisy ``"gradient"`` at w, or a ``"difference"``, at w minus at v.

        An answer that the plan does not allow raises BudgetExceeded, and no record is touched.
        """
        with self._lock:
            oracle = self._opened()
            if self._closed:
                raise ValueError("the silo must not be closed when it is asked.")
            if validate.choice(KINDS, kind=kind) == "gradient" or v is None:
                return oracle.gradient(w, query)
            return oracle.difference(w, v, query)

    def close(self) -> None:
        """Refuse further answers and close the file; the ledger can still be read."""
        with self._lock:
            self._shut()

    def _shut(self) -> None:
        self._closed = True
        getattr(self._oracle, "close", lambda: None)()

    def ledger(self) -> Ledger:
        """Return the releases since the silo was opened."""
        return self._opened().ledger

    def fingerprints(self, key: bytes) -> list[bytes]:
        """Return a digest of each record under a secret key of at most 64 bytes.

        Not private: anyone who has the key can test guesses of a record. A ValueError is raised if
        the owner made the silo without ``gives_digests``.
        """
        if not self._gives_digests:
            raise ValueError(
                "the silo gives no digests of its records: its owner must make it with "
                "gives_digests=True, or overlap must be 'local' or 'ignore'."
            )
        return self.objective.fingerprints(key)

    def _opened(self) -> Oracle:
        if self._oracle is None:
            raise ValueError("the silo must be opened with a plan before it is asked.")
        return self._oracle

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a silo is not copied or pickled: a copy would have the plan's answers too."
        )
