"""What is a silo? Five methods: describe, open a plan, answer, close, ledger.

Its records never leave it. It adds the noise to its answers with a generator of its own, and writes
them into a ledger of its own before any record is read.

>>> from dpcal import calibrate
>>> from dpcal.optim.problems import Trigonometric
>>> records = Trigonometric.drawn(20_000, 3, seed=0)
>>> plan = calibrate.distributed_psgd(
...     records.constants, silos=5, n=20_000, dimension=3, epsilon=4.0, delta=1e-6)
>>> silo = Silo(records)
>>> silo.describe()
Description(n=20000, dimension=3, l2=0.0, read_from_data=())
>>> silo.open(plan, seed=0)
>>> silo.answer("gradient", "refresh", [0.0, 0.0, 0.0]).shape
(3,)
>>> silo.ledger().count("refresh")
1
>>> silo.close()
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from numpy.typing import ArrayLike

from dpcal import _validate
from dpcal.calibrate.plan import Plan
from dpcal.optim.boundary.access import Store, oracle_of
from dpcal.optim.boundary.ledger import Ledger
from dpcal.optim.boundary.protocol import Oracle
from dpcal.optim.boundary.seeds import Seed
from dpcal.optim.driver import RunOver
from dpcal.optim.objectives.arrays import Vector
from dpcal.optim.objectives.base import Objective

__all__ = ["Answerer", "Description", "Silo", "SiloLost"]

KINDS = ("gradient", "difference")


class SiloLost(RunOver):
    """A silo is gone, or all are: its worker died, or did not answer in time."""

    status = "silo-lost"


@dataclass(frozen=True)
class Description:
    """Public facts of a silo: numbers of records and of parameters, its regulariser's strength.

    ``read_from_data`` is that of its objective.
    """

    n: int
    dimension: int
    l2: float
    read_from_data: tuple[str, ...] = ()


class Answerer(Protocol):
    """The five methods of a silo, wherever it is."""

    def describe(self) -> Description:
        """Return public numbers."""
        ...

    def open(self, plan: Plan, seed: Seed = None, noise: str | None = None) -> None:
        """Make ready to answer a plan, with noise from the silo's own generator."""
        ...

    def answer(self, kind: str, query: str, w: ArrayLike, v: ArrayLike | None = None) -> Vector:
        """Return a noisy answer to a query of the plan."""
        ...

    def close(self) -> None:
        """Answer no more."""
        ...

    def ledger(self) -> Ledger:
        """Return the releases since the silo was opened."""
        ...


class Silo:
    """A silo in this process, about the records of an objective.

    Its ``store`` is the path of a file of its own that holds every answer before it leaves, and so
    the ledger; None for memory alone.
    """

    def __init__(self, objective: Objective, *, store: Store = None) -> None:
        if not isinstance(objective, Objective):
            raise TypeError(f"objective must be an Objective, got {objective!r}.")
        self.objective = objective
        self._store = store
        self._oracle: Oracle | None = None

    @property
    def in_memory(self) -> bool:
        """Whether answers are not written to a file."""
        return self._store is None

    def describe(self) -> Description:
        """Return the number of records, of parameters, and the regulariser's strength."""
        own = self.objective
        return Description(own.n, own.dimension, float(own.l2), own.read_from_data)

    def open(self, plan: Plan, seed: Seed = None, noise: str | None = None) -> None:
        """Make ready to answer a plan for this silo's number of records, with a seed of its own."""
        self._oracle = oracle_of(self.objective, plan, seed, self._store, noise)

    def answer(self, kind: str, query: str, w: ArrayLike, v: ArrayLike | None = None) -> Vector:
        """Return a noisy ``"gradient"`` at w, or a ``"difference"``, at w minus at v.

        An answer that the plan does not allow raises BudgetExceeded, and no record is touched.
        """
        oracle = self._opened()
        if _validate.choice(KINDS, kind=kind) == "gradient" or v is None:
            return oracle.gradient(w, query)
        return oracle.difference(w, v, query)

    def close(self) -> None:
        """Refuse further answers and close the file; the ledger can still be read."""
        if self._oracle is not None:
            getattr(self._oracle, "close", lambda: None)()

    def ledger(self) -> Ledger:
        """Return the releases since the silo was opened."""
        return self._opened().ledger

    def fingerprints(self, key: bytes) -> list[bytes]:
        """Return a digest of each record under a secret key of at most 64 bytes.

        Not private: whoever has the key can test guesses of a record.
        """
        return self.objective.fingerprints(key)

    def _ledger_json(self) -> str:
        """Return the ledger as a document, which goes from process to process."""
        return self.ledger().to_json()

    def _opened(self) -> Oracle:
        if self._oracle is None:
            raise ValueError("the silo must be opened with a plan before it is asked.")
        return self._oracle
